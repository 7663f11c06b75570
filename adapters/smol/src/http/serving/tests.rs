//! The loop of the server, turn by turn, at times of the tests' choice.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::task::Waker;

use async_io::Async;
use futures_lite::future::block_on;
use mcp_sansio::service::Tool;
use mcp_sansio_host::HttpServerOptions;

use super::*;

static TOOLS: [Tool<()>; 1] = [Tool::new("large", "One MiB", |(), call| call.text(&*"x".repeat(LARGE)))];
/// More than a socket takes.
const LARGE: usize = 1 << 20;

/// A request that is answered with 404.
const REQUEST: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// A request for the stream of a session of HTTP with SSE.
const STREAM: &[u8] = b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";

/// Runs a test with a server that has no connection, and an application that asks `authorize`.
fn with_asking_server(
    options: HttpServerOptions,
    authorize: &dyn Fn(&RequestHead<'_>) -> Access<'static>,
    test: impl FnOnce(&mut Hall, &mut App<'_, ()>),
) {
    let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
    let server = HttpServer::bind("127.0.0.1:0").unwrap().options(options);
    let Serving { service, state, mut hall, .. } = Serving::new(server, &service, &mut state);
    let asks = |head: &RequestHead<'_>| authorize(head);
    test(&mut hall, &mut App::new(service, state).authorize(&asks));
}

/// Runs a test with a server that has no connection.
fn with_server(test: impl FnOnce(&mut Hall, &mut App<'_, ()>)) {
    with_asking_server(HttpServerOptions::new(), &|_| Access::Granted { principal: None }, test);
}

/// Accepts a client that has sent `bytes`. Returns its end, and the place of the connection.
fn connect(hall: &mut Hall, app: &mut App<'_, ()>, bytes: &[u8]) -> (UnixStream, usize) {
    let (mut client, server) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    client.write_all(bytes).unwrap();
    let slot = hall.free.last().copied().unwrap_or(hall.connections.len());
    hall.enter(app, Socket::Unix(Async::new(server).unwrap()));
    (client, slot)
}

/// Gives a connection the turn that it has when its socket wakes it.
fn wake(hall: &mut Hall, app: &mut App<'_, ()>, slot: usize) {
    if let Some(connection) = &hall.connections[slot] {
        connection.ring();
    }
    hall.turn(app, slot);
}

/// Returns the bytes that the client can read now.
fn received(client: &mut UnixStream) -> String {
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    loop {
        match client.read(&mut bytes) {
            Ok(0) => return text,
            Ok(n) => text.push_str(&String::from_utf8_lossy(&bytes[..n])),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return text;
            }
        }
    }
}

/// Reads all that the server has for a client.
fn read_all(hall: &mut Hall, app: &mut App<'_, ()>, client: &mut UnixStream, slot: usize) -> String {
    let mut all = String::new();
    loop {
        let text = received(client);
        if text.is_empty() {
            return all;
        }
        all.push_str(&text);
        wake(hall, app, slot);
    }
}

fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A request of 2026-07-28.
fn modern(method: &str, headers: &str, params: &str) -> Vec<u8> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
    post("/mcp", &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{headers}"), &body)
}

/// A call of `large`: its answer is no stream.
fn large() -> Vec<u8> {
    modern("tools/call", "Mcp-Name: large\r\n", r#""name":"large","arguments":{},"#)
}

/// Opens a session of HTTP with SSE whose stream is not read. Returns the client of the stream, its place, and a request that
/// has to wait for it.
fn unread_session(hall: &mut Hall, app: &mut App<'_, ()>) -> (UnixStream, usize, Vec<u8>) {
    let (mut stream, slot) = connect(hall, app, STREAM);
    let begun = received(&mut stream);
    let path = begun.split("data: ").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
    for body in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}"#,
    ] {
        let (mut client, _) = connect(hall, app, &post(&path, "", body));
        assert!(received(&mut client).starts_with("HTTP/1.1 202"));
        hall.write_streams(app);
    }
    while !hall.connections[slot].as_ref().unwrap().blocked {
        assert!(hall.write_streams(app), "the answer is larger than the socket");
    }
    (stream, slot, post(&path, "", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#))
}

#[test]
fn a_deadline_is_met_when_it_comes() {
    with_server(|hall, app| {
        let (mut client, _) = connect(hall, app, &REQUEST[..10]);
        let deadline = hall.soonest;
        assert!(deadline > hall.epoch);
        hall.expire(app, deadline - 1);
        assert_eq!((received(&mut client), hall.soonest), (String::new(), deadline));
        hall.expire(app, deadline);
        assert!(received(&mut client).starts_with("HTTP/1.1 408"));
    });
}

#[test]
fn the_deadlines_of_others_are_kept() {
    with_server(|hall, app| {
        let (_first, one) = connect(hall, app, b"");
        let soonest = hall.soonest;
        hall.epoch += 5;
        let (_second, other) = connect(hall, app, b"");
        let deadline = hall.deadlines[other];
        assert!(hall.soonest == soonest && soonest < deadline);
        hall.expire(app, soonest);
        assert!(hall.connections[one].is_none() && hall.connections[other].is_some());
        assert_eq!(hall.soonest, deadline);
        hall.expire(app, deadline);
        assert!(hall.connections[other].is_none());
        assert_eq!((hall.soonest, hall.free.len()), (NEVER, 2));
    });
}

/// A deadline that is over already waits for something else, so it is looked at again after a while.
#[test]
fn the_next_deadline_is_the_first_of_all() {
    with_server(|hall, app| {
        assert_eq!(hall.next_deadline(hall.epoch), None);
        let _client = connect(hall, app, STREAM);
        (hall.soonest, hall.sweep) = (NEVER, NEVER);
        let at = hall.endpoint.next_deadline().unwrap();
        assert_eq!(hall.next_deadline(at - 1), Some(at));
        assert_eq!(hall.next_deadline(at), Some(at + OVERDUE));
        hall.soonest = at - 7;
        assert_eq!(hall.next_deadline(at - 1), Some(at - 7));
        hall.sweep = at - 8;
        assert_eq!(hall.next_deadline(at - 1), Some(at - 8));
    });
}

/// Opens an event stream, and goes to the time of its next keep-alive. Returns the client and the place of its connection.
fn until_keep_alive(hall: &mut Hall, app: &mut App<'_, ()>) -> (UnixStream, usize) {
    let (mut client, slot) = connect(hall, app, STREAM);
    assert!(received(&mut client).contains("event: endpoint"));
    assert!(!hall.write_streams(app));
    let deadline = hall.endpoint.next_deadline().unwrap();
    hall.epoch += deadline - hall.now();
    hall.expire(app, deadline - 1);
    assert_eq!(hall.endpoint.ready().count(), 0);
    hall.expire(app, deadline);
    assert_eq!(hall.endpoint.ready().count(), 1);
    (client, slot)
}

#[test]
fn a_stream_is_kept_alive_in_time() {
    with_server(|hall, app| {
        let (mut client, _) = until_keep_alive(hall, app);
        // What was written may have made room for others.
        assert!(hall.write_streams(app));
        assert!(received(&mut client).contains("\n:\n"));
        assert!(!hall.write_streams(app));
    });
}

/// Those that were left over have their turn at once, also if there was nothing to write for the others.
#[test]
fn streams_that_are_left_over_are_written_next() {
    with_server(|hall, app| {
        let (client, slot) = until_keep_alive(hall, app);
        let stream = hall.connections[slot].as_ref().and_then(|connection| connection.stream).unwrap();
        drop(client);
        wake(hall, app, slot);
        assert!(hall.connections[slot].is_none() && hall.streams.is_empty());
        hall.ready = vec![stream; AT_ONCE + 1];
        assert_eq!((hall.write_streams(app), hall.ready.len()), (true, 1));
        assert_eq!((hall.write_streams(app), hall.ready.len()), (false, 0));
    });
}

/// Also those that were received together with others, when no further byte comes.
#[test]
fn requests_that_are_there_are_answered() {
    with_server(|hall, app| {
        let (mut client, _) = connect(hall, app, &REQUEST.repeat(40));
        assert_eq!(received(&mut client).matches("HTTP/1.1 404").count(), 40);
    });
}

#[test]
fn a_connection_that_ends_gives_its_memory_back() {
    with_server(|hall, app| {
        let mut bytes = large();
        bytes.extend(&REQUEST[..20]);
        let (client, slot) = connect(hall, app, &bytes);
        assert!(hall.budget.used() > 0 && hall.budget.output_used() > LARGE / 2);
        drop(client);
        wake(hall, app, slot);
        assert!(hall.connections[slot].is_none());
        assert_eq!((hall.budget.used(), hall.budget.output_used()), (0, 0));
    });
}

/// While memory is there, a connection that is used keeps some for its next answer.
#[test]
fn the_memory_of_a_large_answer_is_given_back_when_its_connection_is_idle() {
    with_server(|hall, app| {
        let (mut client, slot) = connect(hall, app, &large());
        assert!(read_all(hall, app, &mut client, slot).len() > LARGE);
        let (kept, mut now) = (hall.budget.output_used(), hall.sweep);
        assert!(kept > LARGE && now > hall.now());
        for (used, next) in [(kept, now + SWEEP), (0, NEVER)] {
            hall.expire(app, now);
            assert_eq!((hall.budget.output_used(), hall.sweep), (used, next));
            now = next;
        }
        wake(hall, app, slot);
        assert!(hall.sweep != NEVER);
    });
}

#[test]
fn the_memory_of_a_large_answer_is_given_back_when_it_was_sent() {
    let scarce = HttpServerOptions::new().output_total(4 * LARGE);
    with_asking_server(scarce, &|_| Access::Granted { principal: None }, |hall, app| {
        let (mut client, slot) = connect(hall, app, &large());
        assert!(hall.budget.output_used() > LARGE / 2);
        assert!(!hall.is_drained(), "much of it is not sent");
        let answer = read_all(hall, app, &mut client, slot);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > LARGE);
        assert!(hall.is_drained());
        assert!(hall.budget.output_used() < LARGE / 2, "{}", hall.budget.output_used());
    });
}

/// Unsent answers have a total: those who have not read the most of them make room.
#[test]
fn a_client_that_does_not_read_goes_when_there_is_too_much_unsent() {
    let options = HttpServerOptions::new().output_total(4 * LARGE);
    with_asking_server(options, &|_| Access::Granted { principal: None }, |hall, app| {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(connect(hall, app, &large()));
            assert!(!hall.budget.is_exceeded());
        }
        let open = hall.connections.iter().flatten().count();
        assert!((1..8).contains(&open), "{open} are open");
    });
}

/// The memory of answers that were sent is taken back instead.
#[test]
fn clients_that_have_read_all_stay() {
    let options = HttpServerOptions::new().output_total(5_000);
    with_asking_server(options, &|_| Access::Granted { principal: None }, |hall, app| {
        let mut clients: Vec<_> = (0..40).map(|_| connect(hall, app, REQUEST).0).collect();
        assert!(!hall.budget.is_exceeded() && hall.connections.iter().flatten().count() == 40);
        assert!(clients.iter_mut().all(|client| received(client).starts_with("HTTP/1.1 404")));
    });
}

#[test]
fn a_connection_ends_behind_the_last_byte_of_its_answers() {
    with_server(|hall, app| {
        let (mut client, slot) = connect(hall, app, &large());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        wake(hall, app, slot);
        assert!(hall.connections[slot].is_some());
        assert!(read_all(hall, app, &mut client, slot).len() > LARGE);
        assert!(hall.connections[slot].is_none());
    });
}

/// The server ends its side behind its last byte, and reads on.
#[test]
fn a_refusal_is_sent_whole_behind_a_large_answer() {
    with_server(|hall, app| {
        let refused = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n";
        let (mut client, slot) = connect(hall, app, &[&large()[..], refused].concat());
        let answers = read_all(hall, app, &mut client, slot);
        assert!(answers.len() > LARGE && answers[LARGE..].contains("HTTP/1.1 403"));
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end");
        client.write_all(&[b' '; 1000]).unwrap();
        wake(hall, app, slot);
        assert!(hall.connections[slot].is_some());
        drop(client);
        wake(hall, app, slot);
        assert!(hall.connections[slot].is_none());
    });
}

/// It may be open for hours, and little is read meanwhile.
#[test]
fn a_stream_that_is_open_takes_no_memory_of_the_input() {
    with_server(|hall, app| {
        let (_client, slot) = connect(hall, app, STREAM);
        assert!(hall.connections[slot].as_ref().unwrap().stream.is_some());
        assert!(!hall.is_drained());
        assert_eq!(hall.budget.used(), 0);
    });
}

#[test]
fn a_request_waits_until_its_stream_was_read() {
    with_server(|hall, app| {
        let (mut stream, carrier, ping) = unread_session(hall, app);
        let (mut client, slot) = connect(hall, app, &ping);
        assert_eq!((received(&mut client), &*hall.parked), (String::new(), &[slot][..]));
        for _ in 0..2 {
            assert!(!hall.serve_parked(app), "it still waits");
            assert_eq!(hall.parked, [slot]);
        }
        let answer = read_all(hall, app, &mut stream, carrier);
        assert!(answer.len() > LARGE && answer.ends_with("\n\n\r\n"), "{}", answer.len());
        assert!(hall.serve_parked(app));
        assert!(received(&mut client).starts_with("HTTP/1.1 202") && hall.parked.is_empty());
        assert!(!hall.serve_parked(app));
        assert!(hall.write_streams(app));
        assert!(received(&mut stream).contains(r#""id":2"#));
    });
}

/// One more is handled at once, and may be refused.
#[test]
fn at_most_256_requests_wait_for_their_streams() {
    with_server(|hall, app| {
        let (_stream, _, ping) = unread_session(hall, app);
        hall.parked = vec![usize::MAX; PARKED - 1];
        let (mut last, _) = connect(hall, app, &ping);
        assert_eq!((received(&mut last), hall.parked.len()), (String::new(), PARKED));
        let (mut one_more, _) = connect(hall, app, &ping);
        assert!(received(&mut one_more).starts_with("HTTP/1.1 "));
        assert_eq!(hall.parked.len(), PARKED);
    });
}

#[test]
fn a_request_that_is_answered_waits_for_nothing() {
    with_server(|hall, app| {
        let (mut client, _) = connect(hall, app, REQUEST);
        assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        assert!(hall.parked.is_empty());
        #[cfg(feature = "resource-server")]
        assert!(hall.undecided.is_empty());
    });
}

/// Each decision asks about each of these requests once, until it is the one that decides. From then on its connection is like
/// any other: no look for a client that has gone is due.
#[cfg(feature = "resource-server")]
#[test]
fn an_undecided_request_is_asked_about_at_each_decision() {
    use std::cell::Cell;

    let (asked, decided) = (Cell::new(0), Cell::new(false));
    let authorize = |_: &RequestHead<'_>| {
        asked.set(asked.get() + 1);
        if decided.get() { Access::Granted { principal: None } } else { Access::Later }
    };
    with_asking_server(HttpServerOptions::new(), &authorize, |hall, app| {
        let (mut client, slot) = connect(hall, app, &modern("tools/list", "", ""));
        let once = asked.get();
        for times in 1..4 {
            assert_eq!((asked.get(), &*hall.undecided), (times * once, &[slot][..]));
            hall.ask_again(app);
        }
        let now = hall.now();
        assert!(hall.deadlines[slot] <= now + 1_000, "it is looked at soon");
        assert_eq!(received(&mut client), "");
        decided.set(true);
        hall.ask_again(app);
        assert!(received(&mut client).starts_with("HTTP/1.1 200") && hall.undecided.is_empty());
        assert!(hall.deadlines[slot] > now + 10_000, "it is idle");
    });
}

/// Nothing is read from it meanwhile, so only a look finds that it has gone. A client that has closed its side waits for its answer.
#[cfg(feature = "resource-server")]
#[test]
fn a_client_whose_request_is_undecided_is_looked_at_each_second() {
    use std::cell::Cell;

    let asked = Cell::new(0);
    let authorize = |_: &RequestHead<'_>| {
        asked.set(asked.get() + 1);
        Access::Later
    };
    with_asking_server(HttpServerOptions::new(), &authorize, |hall, app| {
        let (client, slot) = connect(hall, app, &modern("tools/list", "", ""));
        let (first, once) = (hall.deadlines[slot], asked.get());
        assert!(first > hall.epoch);
        for (now, next) in [(first - 1, first), (first, first + 1_000), (first + 1_000, first + 2_000)] {
            hall.expire(app, now);
            assert_eq!((hall.deadlines[slot], hall.soonest, asked.get()), (next, next, once));
            client.shutdown(std::net::Shutdown::Write).unwrap();
        }
        drop(client);
        hall.expire(app, first + 1_999);
        assert!(hall.connections[slot].is_some());
        hall.expire(app, first + 2_000);
        assert!(hall.connections[slot].is_none());
    });
}

/// It is gone when it has closed its side: its stream was all that it waited for.
#[test]
fn a_client_with_a_full_input_behind_its_stream_is_looked_at() {
    with_server(|hall, app| {
        let (mut client, slot) = connect(hall, app, STREAM);
        while client.write(&[b' '; 16 * 1024]).is_ok() {}
        wake(hall, app, slot);
        let look_at = hall.deadlines[slot];
        hall.expire(app, look_at);
        assert_eq!(hall.deadlines[slot], look_at + 1_000);
        client.shutdown(std::net::Shutdown::Write).unwrap();
        hall.expire(app, look_at + 1_000);
        assert!(hall.connections[slot].is_none() && hall.streams.is_empty());
    });
}

/// Also one whose bytes have come a moment ago, so that its socket has not woken yet.
#[test]
fn a_request_that_is_there_at_the_end_is_answered() {
    with_server(|hall, app| {
        let (mut client, slot) = connect(hall, app, REQUEST);
        assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        client.write_all(REQUEST).unwrap();
        hall.drain(app);
        let answer = received(&mut client);
        assert!(answer.starts_with("HTTP/1.1 ") && answer.contains("Connection: close\r\n"), "{answer}");
        assert!(hall.connections[slot].is_none() && hall.listener.is_none());
    });
}

#[test]
fn a_broken_connection_is_over_at_the_end() {
    with_server(|hall, app| {
        let (_stream, _, ping) = unread_session(hall, app);
        let (client, slot) = connect(hall, app, &[REQUEST, &ping].concat());
        assert_eq!(hall.parked, [slot]);
        // It has not read its first answer: a reset.
        drop(client);
        hall.drain(app);
        assert!(hall.connections[slot].is_none());
    });
}

#[test]
fn a_socket_that_has_woken_is_served_once() {
    with_server(|hall, app| {
        let (mut client, slot) = connect(hall, app, b"");
        let cx = Context::from_waker(Waker::noop());
        client.write_all(REQUEST).unwrap();
        hall.connections[slot].as_ref().unwrap().ring();
        hall.serve_woken(app, &cx);
        assert!(received(&mut client).starts_with("HTTP/1.1 404"));
        assert!(hall.slots.contains(&slot) && hall.slots.capacity() > 0, "its allocation is kept");
    });
}

/// The only client of a server over a stream cannot open another connection.
#[test]
fn a_server_over_a_stream_does_not_end_for_being_idle() {
    let (client, server) = UnixStream::pair().unwrap();
    let (reader, writer) = (Async::new(server.try_clone().unwrap()).unwrap(), Async::new(server).unwrap());
    let (service, mut state) = (Service::<()>::new("test", "1"), ());
    let server = HttpServer::over(reader, writer);
    let mut serving = Serving::new(server, &service, &mut state);
    assert!(serving.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(serving.hall.soonest >= serving.hall.epoch + FOREVER);
    drop(client);
}

/// When all connections that wait were accepted, the next one need not wait.
#[test]
fn accepting_rests_only_after_an_error() {
    let (service, mut state) = (Service::<()>::new("test", "1"), ());
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut serving = Serving::new(server, &service, &mut state);
    let mut clients = Vec::new();
    for connections in 1..4 {
        clients.push(TcpStream::connect(address).unwrap());
        block_on(poll_fn(|cx| match serving.poll(cx) {
            Poll::Ready(ended) => panic!("{ended:?}"),
            Poll::Pending if serving.hall.connections.len() == connections => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        }));
        assert!(serving.hall.accept_at.is_none());
    }
}

#[test]
fn only_an_error_of_one_connection_is_no_reason_to_rest() {
    for (kind, is_of_one) in [
        (ErrorKind::Interrupted, true),
        (ErrorKind::ConnectionAborted, true),
        (ErrorKind::OutOfMemory, false),
        (ErrorKind::Other, false),
    ] {
        assert_eq!(is_of_one_connection(kind), is_of_one, "{kind}");
    }
}
