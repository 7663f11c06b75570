//! A client over lines: cut anywhere, ended anywhere, in lent memory, with sinks of any size.

use crate::desk::{FULL, OFFERS, PLAIN};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, LineClient, Request, SubscriptionFilter};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::NextStep;
use mcp_sansio::memory::Slots;
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::{LineSink, SliceStorage};

const ANSWERS: [&str; 4] = [
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
    r#"[{"jsonrpc":"2.0","id":"q","method":"ping"},{"jsonrpc":"2.0","id":"r","method":"ping"},{"jsonrpc":"2.0","method":"x"}]"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#,
];

/// Sends each kind of message to a client of 2025-03-26. Returns its messages and its events.
fn talk(step: usize, room: usize, newline: bool) -> (String, Vec<String>) {
    let (mut input, mut output, mut held) = (vec![0; 1024], vec![0; room], [0; 64]);
    let info = PLAIN;
    let client = Client::new(&info, Slots::growing(2)).held(&mut held);
    let sink = LineSink::new(SliceStorage::new(&mut output));
    let mut session = LineClient::new(LineBuffer::new(&mut input[..]), client, sink);
    let (mut said, mut told) = (Vec::new(), Vec::new());
    session.client.connect_as(Revision::V2025_03_26);
    let opened = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-03-26","capabilities":{OFFERS},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    );
    let mut stream = format!("{opened}\n{}", ANSWERS.join("\r\n\n"));
    if newline {
        stream.push('\n');
    }
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
        if let ClientEvent::Connected(_) = event {
            // The notification may still fill the sink.
            if handle.send(&Request::list_tools()).is_err() {
                return told.push("no room".to_owned());
            }
        }
        told.push(match event {
            ClientEvent::Done { method, outcome, .. } => format!("{method:?} {}", outcome.is_ok()),
            ClientEvent::Connected(connected) => connected.revision.to_string(),
            ClientEvent::Changed { .. } => "changed".into(),
            ClientEvent::Notification { method, .. } => method.to_string(),
            other => format!("{other:?}"),
        });
    };
    let mut rest = stream.as_bytes();
    let mut ended = false;
    for _ in 0..100_000 {
        let next = session.run(0, &mut handler);
        // The other end takes a few bytes at a time.
        let n = session.out.pending().len().min(7);
        said.extend_from_slice(&session.out.pending()[..n]);
        session.out.sent(n);
        if next == NextStep::Write {
            assert!(n > 0, "it waits for room that is there");
            continue;
        }
        if !rest.is_empty() {
            let space = session.space();
            let n = space.len().min(step).min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            session.filled(n);
            rest = &rest[n..];
        } else if session.out.pending().is_empty() {
            if ended {
                return (String::from_utf8(said).unwrap(), told);
            }
            session.end_of_input();
            ended = true;
        }
    }
    panic!("it does not come to rest");
}

#[test]
fn cut_anywhere_with_sinks_of_all_sizes() {
    let whole = talk(usize::MAX, 4096, true);
    assert_eq!(whole.1, ["2025-03-26", "changed", "x", "ToolsList true", "Closed"]);
    assert_eq!(whole.0.lines().count(), 6);
    for step in 1..70 {
        assert_eq!(talk(step, 4096, true), whole, "in pieces of {step}");
    }
    // From the size on that holds the largest message.
    for room in 230..420 {
        let told = talk(64, room, true);
        if told.1.contains(&"no room".to_owned()) {
            continue;
        }
        assert_eq!(told, whole, "with room for {room}");
    }
}

#[test]
fn a_last_message_without_its_newline() {
    assert_eq!(talk(usize::MAX, 4096, false), talk(usize::MAX, 4096, true));
    assert_eq!(talk(1, 4096, false), talk(1, 4096, true));
}

fn session(limit: usize) -> LineClient<'static, LineSink<Vec<u8>>> {
    let mut session = LineClient::growing(&FULL, limit, LineSink::new(Vec::new()));
    session.client.connect_as(Revision::V2026_07_28);
    session
}

/// Feeds all bytes. Returns the events.
fn feed(session: &mut LineClient<'_, LineSink<Vec<u8>>>, text: &str) -> Vec<String> {
    let (mut rest, mut told) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let space = session.space();
        let n = space.len().min(rest.len());
        assert!(n > 0, "there is space after each run");
        space[..n].copy_from_slice(&rest[..n]);
        session.filled(n);
        rest = &rest[n..];
        told.extend(run(session));
    }
    told
}

fn run(session: &mut LineClient<'_, LineSink<Vec<u8>>>) -> Vec<String> {
    let mut told = Vec::new();
    let next = session.run(0, &mut |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
        told.push(match event {
            ClientEvent::Done { outcome: Err(failure), .. } => failure.to_string(),
            ClientEvent::Done { .. } => "done".into(),
            other => format!("{other:?}"),
        });
    });
    assert_eq!(next, NextStep::Read);
    told
}

#[test]
fn half_a_line_and_no_more() {
    for half in ["", "{", r#"{"jsonrpc":"2.0","id":1,"result":{}"#] {
        let mut session = session(4096);
        session.handle().send(&Request::list_tools()).unwrap();
        assert_eq!(feed(&mut session, half), [""; 0]);
        session.end_of_input();
        assert_eq!(run(&mut session), ["the connection ended before the answer came", "Closed"], "{half}");
        assert_eq!(run(&mut session), [""; 0]);
    }
}

#[test]
fn a_line_that_is_too_long_loses_its_request_alone() {
    let mut session = session(4096);
    session.handle().send(&Request::list_tools()).unwrap();
    session.handle().send(&Request::list_prompts()).unwrap();
    let long = "x".repeat(6000);
    let mut lines = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":\"{long}\"}}}}\n");
    lines.push_str("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
    let mut told = feed(&mut session, &lines);
    told.sort_unstable();
    assert_eq!(told, ["Ignored(TooLong)", "done", "the answer is larger than the limit"]);
}

/// The id of a server's request may equal the id of one of the client's.
#[test]
fn a_long_request_of_the_servers_loses_none_of_ours() {
    let long = "x".repeat(6000);
    let asks = format!(r#""method":"sampling/createMessage","params":{{"messages":"{long}"}}"#);
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":1,{asks}}}"#),
        format!(r#"{{{asks},"jsonrpc":"2.0","id":1}}"#),
        // The member that shows the kind of the message is behind the limit.
        format!(r#"{{"jsonrpc":"2.0","id":1,"x":"{long}","result":{{}}}}"#),
    ] {
        let mut session = session(4096);
        session.handle().send(&Request::list_tools()).unwrap();
        assert_eq!(feed(&mut session, &format!("{line}\n")), ["Ignored(TooLong)"]);
        assert_eq!(feed(&mut session, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"), ["done"]);
    }
}

/// The server writes before it reads: its message is taken, although the sink has no room for the next request.
#[test]
fn a_full_sink_does_not_keep_answers_out() {
    let mut output = [0; 600];
    let mut input = [0; 512];
    let client = Client::growing(&PLAIN);
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    session.client.connect_as(Revision::V2026_07_28);
    while session.handle().send(&Request::list_tools()).is_ok() {}
    session.client.listen(&SubscriptionFilter::new().tools()).unwrap();
    let mut told = 0;
    assert_eq!(session.run(0, &mut |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| told += 1), NextStep::Write);
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    session.space()[..line.len()].copy_from_slice(line);
    session.filled(line.len());
    let next = session.run(0, &mut |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| told += 1);
    assert_eq!((next, told), (NextStep::Write, 1));
    let n = session.out.pending().len();
    session.out.sent(n);
    let next = session.run(0, &mut |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| told += 1);
    assert_eq!((next, told), (NextStep::Read, 1));
    assert!(session.out.pending().windows(20).any(|part| part == b"subscriptions/listen"));
}

/// The server has closed its output and reads nothing: messages that cannot be sent do not delay the end.
#[test]
fn a_full_sink_at_the_end() {
    let mut output = [0; 700];
    let info = PLAIN;
    let client = Client::growing(&info);
    let mut input = [0; 512];
    let mut session =
        LineClient::new(LineBuffer::new(&mut input), client, LineSink::new(SliceStorage::new(&mut output)));
    session.client.connect_as(Revision::V2026_07_28);
    while session.handle().send(&Request::list_tools()).is_ok() {}
    let open = session.client.in_flight();
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    session.space()[..line.len()].copy_from_slice(line);
    session.filled(line.len());
    session.end_of_input();
    let mut told = 0;
    // All requests are overdue at the same time.
    let next = session.run(100_000, &mut |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| told += 1);
    assert_eq!((next, told, session.client.in_flight()), (NextStep::Read, open + 1, 0));
}
