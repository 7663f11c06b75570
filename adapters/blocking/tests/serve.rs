//! A server over a reader and a writer.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use mcp_sansio::server::{Limits, Progress};
use mcp_sansio::service::{Call, Outcome, Service, Tool};

/// What has been written so far, for the handlers to look at.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn work(written: &mut Shared, call: &mut Call<'_>) -> Outcome {
    let seen = |part: &str| String::from_utf8_lossy(&written.0.borrow()).contains(part);
    for step in 1..=3_u64 {
        let _ = call.progress(Progress::new(step).of(3));
        if !seen(&format!("\"progress\":{step},")) {
            return call.error(format_args!("nobody has heard of step {step}"));
        }
    }
    call.text("done")
}

static TOOLS: [Tool<Shared>; 1] = [Tool::new("work", "Takes its time", work)];

/// A handler that takes long tells its progress while it runs, not when it is done.
#[test]
fn progress_is_told_at_once() {
    let input = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":7,
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let input: Vec<u8> = input.iter().copied().filter(|byte| *byte != b'\n').collect();
    let service = Service::new("worker", "1.0").tools(&TOOLS);
    let (mut state, written) = (Shared::default(), Shared::default());
    state.0 = Rc::clone(&written.0);
    mcp_sansio_blocking::serve(&input[..], written.clone(), &service, &mut state, Limits::default()).unwrap();
    let text = String::from_utf8(written.0.take()).unwrap();
    assert!(text.contains(r#""text":"done""#), "{text}");
}
