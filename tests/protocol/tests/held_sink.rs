//! A sink that one message holds, while another message has to be written.

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

fn ask(_: &mut u32, call: &mut Call<'_>) -> HandlerResult {
    match call.answer("q") {
        None => call.ask(&[InputRequest::roots("q")], b""),
        Some(answer) => call.text(format_args!("{:?}", answer.result)),
    }
}

fn text(_: &mut u32, call: &mut Call<'_>) -> HandlerResult {
    call.text("0123456789012345678901234567890123456789012345678901234567890123456789")
}

/// Has an effect, logs until there is no room, then answers with more bytes than there is room for.
fn chatty(runs: &mut u32, call: &mut Call<'_>) -> HandlerResult {
    *runs += 1;
    for _ in 0..100 {
        let _ = call.log(LoggingLevel::Error, "something to say");
    }
    text(runs, call)
}

static TOOLS: [Tool<u32>; 3] = [
    Tool::new("ask", "Asks", ask).reserve(0),
    Tool::new("text", "Says something", text).reserve(0),
    Tool::new("chatty", "Logs", chatty).reserve(0),
];

fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

fn call(id: u32, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

type Small<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

fn feed(session: &mut Small<'_>, lines: &[String]) {
    for line in lines {
        let space = session.space();
        space[..line.len()].copy_from_slice(line.as_bytes());
        space[line.len()] = b'\n';
        session.filled(line.len() + 1);
    }
}

/// Runs to the end, taking a few bytes at a time. Returns all output.
fn drain(session: &mut Small<'_>, service: &Service<'_, u32>, state: &mut u32) -> String {
    let mut written = Vec::new();
    for _ in 0..10_000 {
        let next = session.run(service, state);
        let taken = session.out.pending().len().min(7);
        if taken == 0 && next == NextStep::Read {
            return String::from_utf8(written).unwrap();
        }
        written.extend_from_slice(&session.out.pending()[..taken]);
        session.out.sent(taken);
    }
    panic!("it never comes to rest: {}", String::from_utf8_lossy(&written));
}

#[test]
fn a_question_that_times_out_while_a_batch_is_half_out_does_not_stop_it() {
    let (mut input, mut output, mut asks, mut scratch) = ([0; 4096], [0; 512], [0; 1024], [0; 512]);
    let mut slots = [RequestSlot::FREE; 4];
    let server = Server::new(&mut slots).asks(&mut asks).scratch(&mut scratch).ask_timeout(100);
    let mut session = Small::new(LineBuffer::new(&mut input), server, LineSink::new(SliceStorage::new(&mut output)));
    let service = Service::new("t", "1").tools(&TOOLS);
    feed(&mut session, &[initialize("2025-03-26"), call(1, "ask")]);
    let asked = drain(&mut session, &service, &mut 0);
    assert!(asked.contains("roots/list"), "{asked}");
    let batch: Vec<String> = (2..12).map(|id| call(id, "text")).collect();
    feed(&mut session, &[format!("[{}]", batch.join(","))]);
    assert_eq!(session.run(&service, &mut 0), NextStep::Write);
    session.server.expire(1000);
    let written = drain(&mut session, &service, &mut 0);
    for id in 1..12 {
        assert_eq!(written.matches(&format!("\"id\":{id},")).count(), 1, "{id} in {written}");
    }
}

#[test]
fn a_handler_without_reserve_runs_once_however_full_the_sink_is() {
    for room in 300..700 {
        let (mut input, mut output, mut slots) = ([0; 4096], vec![0; room], [RequestSlot::FREE; 4]);
        let server = Server::new(&mut slots);
        let mut session =
            Small::new(LineBuffer::new(&mut input), server, LineSink::new(SliceStorage::new(&mut output)));
        let service = Service::new("t", "1").tools(&TOOLS).feature(ServerCapability::Logging);
        feed(&mut session, &[initialize("2025-06-18"), call(1, "text"), call(2, "chatty")]);
        let mut runs = 0;
        let written = drain(&mut session, &service, &mut runs);
        assert_eq!((runs, written.matches("\"id\":2,").count()), (1, 1), "room {room}: {written}");
    }
}
