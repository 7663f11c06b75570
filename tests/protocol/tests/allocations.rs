//! Memory: nothing is allocated for a message in the steady state, and a large message is in memory twice at most.
//! One test, in a program of its own: the counter counts the whole process.

use mcp_sansio::json::Text;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, Progress};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::WriterOut;
use mcp_sansio_test_allocator::{Counting, count, peak};
use serde::Deserialize;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let Echo { text } = call.args()?;
    call.text(text)
}

fn work(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    for done in 1..=3 {
        call.progress(Progress::new(done).of(3));
    }
    call.text(format_args!("{} of {}", 3, 3))
}

static TOOLS: [Tool<()>; 2] = [Tool::new("echo", "Echo", echo), Tool::new("work", "Work", work)];

/// Counts the written bytes and keeps none.
struct Count<'c>(&'c AtomicUsize);

impl Write for Count<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.fetch_add(bytes.len(), Relaxed);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn feed<W: Write>(session: &mut LineServer<'static, WriterOut<W>>, service: &Service<'_, ()>, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = session.space();
        let n = space.len().min(rest.len());
        space[..n].copy_from_slice(&rest[..n]);
        session.filled(n);
        rest = &rest[n..];
        while session.run(service, &mut ()) == NextStep::Write {}
        session.out.flush();
    }
}

#[test]
fn memory() {
    let service = Service::new("memory", "1").tools(&TOOLS);
    let written = AtomicUsize::new(0);
    let mut session = LineServer::growing(MessageLimits::default(), WriterOut::new(Count(&written)));
    let opening = concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n"
    );
    feed(&mut session, &service, opening.as_bytes());
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"0123456789abcdef0123456789abcdef"}}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"0123456789abcdef0123456789\n\u00e9\""}},{meta}}}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":"t"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"unknown"}"#.to_owned(),
        "nonsense".to_owned(),
    ]
    .map(|line| line + "\n");
    for line in &lines {
        // The first lines grow the buffers.
        for _ in 0..3 {
            feed(&mut session, &service, line.as_bytes());
        }
        let (before, bytes) = (count(), written.load(Relaxed));
        for _ in 0..1000 {
            feed(&mut session, &service, line.as_bytes());
        }
        let (allocated, answered) = (count() - before, written.load(Relaxed) - bytes);
        assert_eq!(allocated, 0, "for 1000 of {line}");
        assert!(answered > 30_000, "each was answered");
    }
    // One message of 1 MiB takes its buffer, and the old buffer while the new one is filled.
    const SIZE: usize = 1 << 20;
    let large = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{}\"}}}}}}\n",
        "x\\n".repeat(SIZE / 3)
    );
    let mut fresh = LineServer::growing(MessageLimits::default(), WriterOut::new(Count(&written)));
    feed(&mut fresh, &service, opening.as_bytes());
    let bytes = written.load(Relaxed);
    let peak = peak(|| feed(&mut fresh, &service, large.as_bytes()));
    assert!(written.load(Relaxed) - bytes > SIZE);
    println!("peak for one message of 1 MiB: {peak} bytes");
    let constant = 512 * 1024;
    assert!(peak <= 2 * SIZE + constant, "{peak} bytes at once for a message of {SIZE}");
}
