//! The host turn by turn, at times of the tests' choice, with sockets in memory.

use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::{format, vec};
use core::cell::RefCell;

use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Service, Tool};

use super::*;
use crate::endpoint::{Access, EndpointConfig, EndpointLimits, RequestHead};

/// Both ends of a connection.
#[derive(Default)]
struct Wire {
    /// Bytes from the client, and from the server.
    received: Vec<u8>,
    sent: Vec<u8>,
    /// The number of bytes that the socket still takes.
    room: usize,
    /// The client has ended its side, or all is over.
    is_ended: bool,
    is_broken: bool,
    /// The server has ended its side.
    is_shut: bool,
    /// The server has dropped its end.
    is_closed: bool,
    /// The number of calls.
    reads: usize,
    writes: usize,
    interest: Option<Interest>,
    again: bool,
}

/// The server's end. It knows when nothing is there to read.
struct End(Rc<RefCell<Wire>>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.borrow_mut().is_closed = true;
    }
}

impl HttpSocket for End {
    fn is_readable(&mut self) -> bool {
        let wire = self.0.borrow();
        !wire.received.is_empty() || wire.is_ended || wire.is_broken
    }

    fn waiting(&self) -> usize {
        self.0.borrow().received.len()
    }

    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        let mut wire = self.0.borrow_mut();
        wire.reads += 1;
        if wire.is_broken {
            return Poll::Ready(Err(Broken));
        }
        let n = wire.received.len().min(space.len());
        if n == 0 && !wire.is_ended {
            return Poll::Pending;
        }
        space[..n].copy_from_slice(&wire.received[..n]);
        wire.received.drain(..n);
        Poll::Ready(Ok(n))
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        let mut wire = self.0.borrow_mut();
        wire.writes += 1;
        let n = bytes.len().min(wire.room);
        if wire.is_broken {
            return Poll::Ready(Err(Broken));
        }
        if n == 0 {
            return Poll::Pending;
        }
        wire.room -= n;
        wire.sent.extend(&bytes[..n]);
        Poll::Ready(Ok(n))
    }

    fn shut(&mut self) -> Result<(), Broken> {
        self.0.borrow_mut().is_shut = true;
        Ok(())
    }

    fn wait_for(&mut self, interest: Interest, again: bool) -> Result<(), Broken> {
        let mut wire = self.0.borrow_mut();
        (wire.interest, wire.again) = (Some(interest), again);
        Ok(())
    }
}

/// The client's end.
struct Client {
    wire: Rc<RefCell<Wire>>,
    slot: usize,
}

impl Client {
    fn send(&self, bytes: impl AsRef<[u8]>) {
        self.wire.borrow_mut().received.extend(bytes.as_ref());
    }

    /// Returns the bytes that the host has written to this socket since the last call.
    fn received(&self) -> String {
        String::from_utf8(take(&mut self.wire.borrow_mut().sent)).unwrap()
    }

    /// Sets the number of bytes that the socket takes.
    fn set_room(&self, bytes: usize) {
        self.wire.borrow_mut().room = bytes;
    }

    fn interest(&self) -> Interest {
        self.wire.borrow().interest.unwrap()
    }

    fn is_closed(&self) -> bool {
        self.wire.borrow().is_closed
    }
}

static TOOLS: [Tool<()>; 3] = [
    Tool::new("echo", "Answers", |(), call| call.text("here")),
    Tool::new("large", "One MiB", |(), call| call.text(&*"x".repeat(LARGE))),
    Tool::new("later", "Is never answered", |(), call| call.later().1),
];
const LARGE: usize = 1 << 20;

/// A request that is answered with 404.
const REQUEST: &str = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// A request for the stream of a session of HTTP with SSE.
const STREAM: &str = "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
/// The time of the first turn.
const START: Millis = 1_000_000;

const LIMITS: HostLimits = HostLimits {
    wire: ConnectionLimits::DEFAULT,
    message: 4 * LARGE,
    connections: 100,
    input_total: 64 * 4 * LARGE,
    output_total: 64 * 4 * LARGE,
};

/// A server.
struct Site<'a> {
    host: HttpHost<End>,
    app: App<'a, ()>,
    now: Millis,
}

/// Runs a test with a server whose application asks `authorize`.
fn with_asking_site(
    limits: HostLimits,
    authorize: &dyn Fn(&RequestHead<'_>) -> Access<'static>,
    test: impl FnOnce(&mut Site<'_>),
) {
    let (service, mut state) = (Service::new("test", "1").tools(&TOOLS), ());
    let asks = |head: &RequestHead<'_>| authorize(head);
    let server = Server::growing(MessageLimits::default());
    let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default());
    let mut ids = 0;
    let host = HttpHost::new(endpoint, limits, move |bytes| {
        ids += 1;
        bytes.fill(ids);
    });
    test(&mut Site { host, app: App::new(&service, &mut state).authorize(&asks), now: START });
}

fn with_site_of(limits: HostLimits, test: impl FnOnce(&mut Site<'_>)) {
    with_asking_site(limits, &|_| Access::Granted { principal: None }, test);
}

fn with_site(test: impl FnOnce(&mut Site<'_>)) {
    with_site_of(LIMITS, test);
}

impl Site<'_> {
    /// Accepts a client that has sent `bytes`, and whose socket takes `room` bytes.
    fn connect_with(&mut self, bytes: impl AsRef<[u8]>, room: usize) -> Client {
        let wire = Wire { received: bytes.as_ref().to_vec(), room, ..Wire::default() };
        let client = Client { wire: Rc::new(RefCell::new(wire)), slot: self.host.vacant() };
        self.host.enter(End(Rc::clone(&client.wire)), &mut self.app, self.now);
        client
    }

    fn connect(&mut self, bytes: impl AsRef<[u8]>) -> Client {
        self.connect_with(bytes, usize::MAX)
    }

    fn turn(&mut self, client: &Client) {
        self.host.turn(client.slot, &mut self.app, self.now);
    }

    fn expire(&mut self, now: Millis) {
        self.now = now;
        self.host.expire(&mut self.app, now);
    }

    fn write_streams(&mut self) -> Option<Millis> {
        self.host.write_streams(&mut self.app, self.now)
    }

    fn serve_parked(&mut self) -> Option<Millis> {
        self.host.serve_parked(&mut self.app, self.now)
    }

    fn served(&mut self, client: &Client) -> &mut Served<End> {
        self.host.connections[client.slot].as_mut().unwrap()
    }

    /// Opens an event stream, and goes to the time of its next keep-alive.
    fn until_keep_alive(&mut self) -> Client {
        let client = self.connect(STREAM);
        assert!(client.received().contains("event: endpoint"));
        assert_eq!(self.write_streams(), None);
        let deadline = self.host.endpoint.next_deadline().unwrap();
        self.expire(deadline - 1);
        assert_eq!(self.host.endpoint.ready().count(), 0);
        self.expire(deadline);
        assert_eq!(self.host.endpoint.ready().count(), 1);
        client
    }

    /// Opens a session of HTTP with SSE whose stream is not read. Returns the client of the stream, and a request that has to wait
    /// for it.
    fn unread_session(&mut self) -> (Client, String) {
        let stream = self.connect(STREAM);
        let begun = stream.received();
        let path = begun.split("data: ").nth(1).and_then(|data| data.lines().next()).unwrap().trim();
        stream.set_room(0);
        for body in [
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        ] {
            assert!(self.connect(post(path, "", body)).received().starts_with("HTTP/1.1 202"));
            self.write_streams();
        }
        (stream, post(path, "", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#))
    }
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A call of 2026-07-28 without arguments.
fn call(tool: &str) -> String {
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nAccept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}",{meta}}}}}"#);
    post("/mcp", &headers, &body)
}

/// A call with a body of this length.
fn call_of(bytes: usize) -> String {
    let call = call("echo");
    let (head, body) = call.split_once("\r\n\r\n").unwrap();
    let (head, _) = head.rsplit_once("Content-Length").unwrap();
    format!("{head}Content-Length: {bytes}\r\n\r\n{body}{}", " ".repeat(bytes - body.len()))
}

#[test]
fn a_connection_is_watched_for_what_it_waits_for() {
    let parked = [WaitFor::Stream, WaitFor::Decision];
    let cases = [
        (WaitFor::Write, false, [Interest::Write, Interest::Write]),
        (WaitFor::Close, false, [Interest::Write, Interest::Write]),
        (WaitFor::Close, true, [Interest::Write, Interest::Write]),
        (WaitFor::Read, false, [Interest::Read, Interest::Both]),
        (WaitFor::Read, true, [Interest::End, Interest::Write]),
        (WaitFor::Shut, false, [Interest::Read, Interest::Both]),
        (WaitFor::Shut, true, [Interest::End, Interest::Write]),
    ];
    let parked = parked.map(|wait| [false, true].map(|full| (wait, full, [Interest::Nothing, Interest::Write])));
    with_site(|site| {
        let client = site.connect_with("", 0);
        for pending in [false, true] {
            let served = site.served(&client);
            assert_eq!(served.http.connection.has_pending(), pending);
            for &(wait, full, interest) in parked.iter().flatten().chain(&cases) {
                (served.wait, served.is_full) = (wait, full);
                let interest = interest[usize::from(pending)];
                assert_eq!(served.interest(), interest, "{wait:?}, full: {full}, pending: {pending}");
            }
            served.wait = WaitFor::Read;
            client.send(REQUEST);
            site.turn(&client);
        }
        assert_eq!(client.interest(), Interest::Both);
    });
}

/// A body of known length is read with one call for what its head has brought, and then with one for all that the system has.
#[test]
fn a_body_of_known_length_is_read_with_as_few_calls_as_the_system_allows() {
    with_site(|site| {
        let reads = |client: &Client| take(&mut client.wire.borrow_mut().reads);
        let client = site.connect(call_of(LARGE));
        assert!(client.received().starts_with("HTTP/1.1 200"));
        assert_eq!(reads(&client), 2);
        // The memory is kept: the next one needs one call, for head and body.
        client.send(call_of(LARGE));
        site.turn(&client);
        assert!(client.received().starts_with("HTTP/1.1 200"));
        assert_eq!(reads(&client), 1);
        // It comes in pieces: one call for each.
        let request = call_of(LARGE);
        for piece in request.as_bytes().chunks(LARGE / 4) {
            client.send(piece);
            site.turn(&client);
            assert_eq!(reads(&client), 1);
        }
        assert!(client.received().starts_with("HTTP/1.1 200"));
    });
}

/// It may be as long as it wants.
#[test]
fn a_body_that_is_only_promised_takes_no_memory() {
    with_site(|site| {
        let request = call_of(4 * LARGE);
        let (head, _) = request.split_at(request.len() - 4 * LARGE);
        let client = site.connect(head);
        assert!(site.host.budget.used() <= 4096, "{}", site.host.budget.used());
        client.send([b' '; 10_000]);
        site.turn(&client);
        assert!(site.host.budget.used() <= 32 * 1024, "{}", site.host.budget.used());
    });
}

#[test]
fn requests_that_are_there_together_are_answered_in_one_write() {
    with_site(|site| {
        let client = site.connect(call("echo").repeat(6));
        let answers = client.received();
        assert_eq!((answers.matches("HTTP/1.1 200").count(), answers.matches("here").count()), (6, 6));
        assert_eq!(client.wire.borrow().writes, 1);
    });
}

/// The others have their turns between.
#[test]
fn more_requests_than_one_turn_serves_come_in_the_next() {
    with_site(|site| {
        let client = site.connect(REQUEST.repeat(200));
        let mut answered = client.received().matches("HTTP/1.1 404").count();
        assert!((40..100).contains(&answered), "{answered}");
        while take(&mut client.wire.borrow_mut().again) {
            site.turn(&client);
            answered += client.received().matches("HTTP/1.1 404").count();
        }
        assert_eq!(answered, 200);
    });
}

#[test]
fn answers_that_wait_hold_up_further_requests() {
    with_site(|site| {
        let client = site.connect_with(REQUEST.repeat(40), 0);
        assert_eq!(site.served(&client).wait, WaitFor::Write);
        assert!(!client.wire.borrow().again);
        let pending =
            String::from_utf8_lossy(site.served(&client).http.connection.pending()).matches("HTTP/1.1 404").count();
        assert!(pending < 40, "{pending}");
        client.send(REQUEST);
        site.turn(&client);
        assert_eq!(client.wire.borrow().received.len(), REQUEST.len(), "it was not read");
        client.set_room(usize::MAX);
        site.turn(&client);
        assert_eq!(client.received().matches("HTTP/1.1 404").count(), 41);
    });
}

/// The output has some room beside its messages.
#[test]
fn an_answer_may_be_larger_than_the_largest_request() {
    with_site_of(HostLimits { message: LARGE / 2, ..LIMITS }, |site| {
        let answer = site.connect(call("large")).received();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > LARGE, "{} bytes", answer.len());
    });
}

#[test]
fn the_last_answer_is_sent_before_the_connection_closes() {
    with_site(|site| {
        let client = site.connect_with(REQUEST.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"), 0);
        site.turn(&client);
        assert!(!client.is_closed() && client.interest() == Interest::Write);
        client.set_room(usize::MAX);
        site.turn(&client);
        assert!(client.is_closed() && client.received().starts_with("HTTP/1.1 404"));
        // Behind a large answer whose client has ended its side.
        let client = site.connect_with(call("large"), LARGE / 2);
        client.wire.borrow_mut().is_ended = true;
        site.turn(&client);
        assert!(!client.is_closed());
        client.set_room(usize::MAX);
        site.turn(&client);
        assert!(client.is_closed() && client.received().len() > LARGE);
    });
}

/// The rest of a body that is refused is read, so that the system does not reset the connection before the answer was read.
#[test]
fn a_refused_body_is_read_after_the_answer_is_sent_and_the_sending_side_is_shut() {
    with_site(|site| {
        let refused = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 16000\r\n\r\n";
        let client = site.connect_with(call("large") + refused, LARGE);
        assert!(!client.wire.borrow().is_shut);
        client.set_room(usize::MAX);
        site.turn(&client);
        assert!(client.wire.borrow().is_shut && client.received()[LARGE..].contains("HTTP/1.1 403"));
        client.send([b' '; 1000]);
        site.turn(&client);
        assert!(client.wire.borrow().received.is_empty() && !client.is_closed());
        client.wire.borrow_mut().is_ended = true;
        site.turn(&client);
        assert!(client.is_closed());
    });
}

#[test]
fn a_connection_that_is_broken_is_over() {
    with_site(|site| {
        for (request, room) in [("", 0), (REQUEST, 0), (STREAM, usize::MAX)] {
            let client = site.connect_with(request, room);
            client.wire.borrow_mut().is_broken = true;
            site.turn(&client);
            assert!(client.is_closed());
            assert_eq!((site.host.budget.used(), site.host.budget.output_used(), site.host.open()), (0, 0, 0));
        }
    });
}

/// Behind an open stream, a client may send some bytes; then only the end of the connection is looked for.
#[test]
fn a_stream_that_is_open_takes_little_input_and_no_memory() {
    with_site(|site| {
        let client = site.connect(call_of(LARGE));
        assert!(site.host.budget.used() > LARGE);
        client.send(STREAM);
        site.turn(&client);
        assert_eq!((client.interest(), site.host.budget.used()), (Interest::Read, 0));
        assert!(!site.host.is_drained());
        client.send([b'\n'; LARGE]);
        while client.interest() == Interest::Read {
            site.turn(&client);
        }
        assert_eq!(client.interest(), Interest::End);
        assert!(client.wire.borrow().received.len() > LARGE - 20_000);
    });
}

/// A large request or answer that was handled leaves memory for the next one, until the connection is idle for a while.
#[test]
fn buffers_of_idle_connections_are_given_back() {
    with_site(|site| {
        let client = site.connect(call_of(LARGE) + &call("large"));
        for _ in 0..2 {
            assert!(client.received().ends_with('}'));
            let (now, kept) = (site.now, (site.host.budget.used(), site.host.budget.output_used()));
            assert!(kept.0 > LARGE && kept.1 > LARGE);
            // In the first period it had a turn.
            for (passed, sweep, kept) in [
                (SWEEP - 1, now + SWEEP, kept),
                (SWEEP, now + 2 * SWEEP, kept),
                (2 * SWEEP - 1, now + 2 * SWEEP, kept),
                (2 * SWEEP, NEVER, (0, 0)),
            ] {
                site.expire(now + passed);
                let used = (site.host.budget.used(), site.host.budget.output_used());
                assert_eq!((site.host.sweep, used), (sweep, kept), "after {passed} ms");
            }
            client.send(call_of(LARGE) + &call("large"));
            site.turn(&client);
        }
    });
}

/// If memory is scarce, it is given back at once.
#[test]
fn little_memory_is_kept_where_it_is_scarce() {
    with_site_of(HostLimits { input_total: 3 * LARGE, output_total: 3 * LARGE, ..LIMITS }, |site| {
        let client = site.connect(call_of(LARGE));
        assert!(client.received().starts_with("HTTP/1.1 200"));
        assert!(site.host.budget.used() < LARGE / 8, "{}", site.host.budget.used());
        client.send(call("large"));
        site.turn(&client);
        assert!(client.received().len() > LARGE);
        assert!(site.host.budget.output_used() < LARGE / 8, "{}", site.host.budget.output_used());
    });
}

/// Unsent answers have a total: those who have not read the most of them make room. Memory of answers that were sent is taken back
/// instead.
#[test]
fn a_client_that_does_not_read_goes_when_there_is_too_much_unsent() {
    with_site_of(HostLimits { output_total: 4 * LARGE, ..LIMITS }, |site| {
        let small = site.connect_with(REQUEST, 0);
        let large: Vec<_> = (0..8).map(|_| site.connect_with(call("large"), 0)).collect();
        assert!(!site.host.budget.is_exceeded());
        let open = large.iter().filter(|client| !client.is_closed()).count();
        assert!((1..4).contains(&open), "{open} are open");
        assert!(!small.is_closed());
    });
    with_site_of(HostLimits { output_total: 5_000, ..LIMITS }, |site| {
        let clients: Vec<_> = (0..40).map(|_| site.connect(REQUEST)).collect();
        assert!(!site.host.budget.is_exceeded() && site.host.open() == 40);
        assert!(clients.iter().all(|client| client.received().starts_with("HTTP/1.1 404")));
    });
}

#[test]
fn each_connection_has_a_deadline_of_its_own() {
    with_site(|site| {
        let first = site.connect("");
        let idle = site.host.soonest;
        site.now += 55_000;
        let second = site.connect(&REQUEST[..10]);
        let head = site.served(&second).http.connection.next_deadline().unwrap();
        assert!(START < idle && idle < head && site.host.soonest == idle);
        site.expire(idle - 1);
        assert!(!first.is_closed() && site.host.soonest == idle);
        site.expire(idle);
        assert!(first.is_closed() && !second.is_closed());
        assert_eq!((site.host.soonest, second.received()), (head, String::new()));
        site.expire(head);
        assert!(second.received().starts_with("HTTP/1.1 408"));
    });
}

/// A deadline that is over already waits for something else, so it is looked at again after a while.
#[test]
fn the_next_deadline_is_the_first_of_all() {
    with_site(|site| {
        assert_eq!(site.host.next_deadline(START), None);
        let _client = site.connect(STREAM);
        let at = site.host.endpoint.next_deadline().unwrap();
        (site.host.soonest, site.host.sweep) = (NEVER, NEVER);
        assert_eq!(site.host.next_deadline(at - 1), Some(at));
        assert_eq!(site.host.next_deadline(at), Some(at + OVERDUE));
        site.host.soonest = at - 7;
        assert_eq!(site.host.next_deadline(at - 1), Some(at - 7));
        site.host.sweep = at - 8;
        assert_eq!(site.host.next_deadline(at - 1), Some(at - 8));
    });
}

#[test]
fn a_stream_is_kept_alive_in_time() {
    with_site(|site| {
        let client = site.until_keep_alive();
        // What was written may have made room for others.
        assert_eq!(site.write_streams(), Some(site.now + 1));
        assert!(client.received().contains("\n:\n"));
        assert_eq!(site.write_streams(), None);
    });
}

/// Those that were left over have their turn at once, also if there was nothing to write for the others.
#[test]
fn streams_that_are_left_over_are_written_next() {
    with_site(|site| {
        let client = site.until_keep_alive();
        let stream = site.served(&client).stream.unwrap();
        client.wire.borrow_mut().is_broken = true;
        site.turn(&client);
        assert!(client.is_closed());
        site.host.streams = vec![stream; AT_ONCE + 1];
        assert_eq!((site.write_streams(), site.host.streams.len()), (Some(site.now), 1));
        assert_eq!((site.write_streams(), site.host.streams.len()), (None, 0));
    });
}

/// A stream whose socket is full has its turn when there is room, and not each time that it has messages.
#[test]
fn a_stream_with_a_full_socket_is_left_alone() {
    with_site(|site| {
        let client = site.until_keep_alive();
        client.set_room(0);
        let stream = site.served(&client).stream.unwrap();
        assert!(site.write_streams().is_some());
        site.host.streams.push(stream);
        assert_eq!(site.write_streams(), None);
        client.set_room(usize::MAX);
        site.turn(&client);
        assert!(client.received().contains(':'));
        site.host.streams.push(stream);
        assert!(site.write_streams().is_some());
    });
}

#[test]
fn a_request_waits_until_its_stream_was_read() {
    with_site(|site| {
        let (stream, ping) = site.unread_session();
        let client = site.connect(&ping);
        assert_eq!((client.received(), client.interest()), (String::new(), Interest::Nothing));
        for _ in 0..2 {
            assert_eq!(site.serve_parked(), None, "it still waits");
            assert_eq!(site.host.parked, [client.slot]);
        }
        stream.set_room(usize::MAX);
        site.turn(&stream);
        while site.write_streams().is_some() {}
        assert!(stream.received().contains("here"));
        assert_eq!(site.serve_parked(), Some(site.now + 1));
        assert!(client.received().starts_with("HTTP/1.1 202") && site.host.parked.is_empty());
        assert_eq!(site.serve_parked(), None);
        assert!(site.write_streams().is_some());
        assert!(stream.received().contains(r#""id":2"#));
    });
}

/// One more is handled at once, and may be refused.
#[test]
fn at_most_256_requests_wait_for_their_streams() {
    with_site(|site| {
        let (_stream, ping) = site.unread_session();
        site.host.parked = vec![usize::MAX; PARKED - 1];
        let last = site.connect(&ping);
        assert_eq!((last.received(), site.host.parked.len()), (String::new(), PARKED));
        assert!(site.connect(&ping).received().starts_with("HTTP/1.1 "));
        assert_eq!(site.host.parked.len(), PARKED);
    });
}

/// Each decision asks about each of these requests once, until it is the one that decides.
#[cfg(feature = "resource-server")]
#[test]
fn an_undecided_request_is_asked_about_at_each_decision() {
    use core::cell::Cell;
    let (asked, decided) = (Cell::new(0), Cell::new(false));
    let authorize = |_: &RequestHead<'_>| {
        asked.set(asked.get() + 1);
        if decided.get() { Access::Granted { principal: None } } else { Access::Later }
    };
    with_asking_site(LIMITS, &authorize, |site| {
        let client = site.connect(call("echo"));
        let once = asked.get();
        for times in 1..4 {
            assert_eq!((asked.get(), &*site.host.undecided), (times * once, &[client.slot][..]));
            assert_eq!((client.received(), client.interest()), (String::new(), Interest::Nothing));
            site.host.ask_again(&mut site.app, START);
        }
        decided.set(true);
        site.host.ask_again(&mut site.app, START);
        assert!(client.received().starts_with("HTTP/1.1 200") && site.host.undecided.is_empty());
        assert_eq!(client.interest(), Interest::Read);
    });
}

#[test]
fn there_is_room_for_so_many_connections() {
    with_site_of(HostLimits { connections: 2, ..LIMITS }, |site| {
        let first = site.connect("");
        assert!(site.host.has_room());
        let second = site.connect("");
        assert!(!site.host.has_room() && site.host.open() == 2);
        site.host.close(first.slot, &mut site.app, START);
        assert!(site.host.has_room() && first.is_closed());
        // Descriptors are scarce until another one closes.
        site.host.is_crowded = true;
        assert!(!site.host.has_room());
        site.host.close(second.slot, &mut site.app, START);
        site.host.close(second.slot, &mut site.app, START);
        assert!(site.host.has_room() && site.host.open() == 0);
        // Places are used again.
        let third = site.connect(REQUEST);
        assert_eq!((third.slot, site.host.sockets().count(), site.host.connections.len()), (second.slot, 1, 2));
        assert!(site.host.socket(first.slot).is_none() && site.host.socket(third.slot).is_some());
    });
}

/// Also one whose bytes have come a moment ago, so that its socket has said nothing yet.
#[test]
fn the_end_answers_the_requests_that_are_there() {
    with_site(|site| {
        let (half, whole) = (site.connect(&REQUEST[..10]), site.connect(""));
        let unread = site.connect_with(REQUEST, 0);
        whole.send(REQUEST);
        site.host.drain(&mut site.app, START);
        let answer = whole.received();
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("Connection: close\r\n"), "{answer}");
        assert!(whole.is_closed() && !unread.is_closed() && !site.host.is_drained());
        unread.set_room(usize::MAX);
        site.turn(&unread);
        assert!(unread.is_closed() && site.host.is_drained());
        assert_eq!(half.received(), "");
    });
}

/// At the end, also more streams than one turn writes.
#[test]
fn the_end_gives_each_request_an_error() {
    with_site(|site| {
        let clients: Vec<_> = (0..AT_ONCE + 6).map(|_| site.connect(call("later"))).collect();
        assert!(clients.iter().all(|client| client.received().starts_with("HTTP/1.1 200")));
        site.host.drain(&mut site.app, START);
        assert!(!site.host.is_drained(), "they may finish");
        site.host.shut_down(&mut site.app, START);
        for client in &clients {
            let rest = client.received();
            assert!(rest.contains("The server is going away") && rest.ends_with("0\r\n\r\n"), "{rest}");
        }
        assert!(site.host.is_drained());
    });
}

#[test]
fn ids_of_sessions_are_random() {
    with_site(|site| {
        let [one, other] = [(); 2].map(|()| site.connect(STREAM).received().to_string());
        assert_ne!(one, other);
    });
}

/// The first message on a late answer decides: an error with a status of its own is a body, all else is an event stream.
#[test]
fn a_late_error_has_its_status() {
    use crate::endpoint::StreamPolicy;
    use mcp_sansio::server::{Progress, RequestToken, RpcError};
    use mcp_sansio::service::{Call, HandlerResult};

    fn late(tokens: &mut Vec<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
        let (token, later) = call.later();
        tokens.push(token);
        later
    }
    static TOOLS: [Tool<Vec<RequestToken>>; 1] = [Tool::new("late", "Late", late)];
    let (service, mut tokens) = (Service::new("test", "1").tools(&TOOLS), Vec::new());
    let mut app = App::new(&service, &mut tokens);
    let server = Server::growing(MessageLimits::default());
    let config = EndpointConfig::DEFAULT.streams(StreamPolicy::Deferred);
    let mut endpoint = Endpoint::growing(config, server, EndpointLimits::default());
    let (input, output) = (Store::growing(10_000), Store::growing(10_000));
    let mut connection: HttpConnection<'_> = HttpConnection::new(input, output, ConnectionLimits::DEFAULT);
    let mut body = BodyBuffer::new(Vec::new());
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"late","_meta":{"progressToken":1,
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: late\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n{message}",
        message.len()
    );
    let events = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n";
    for (code, first, head, end) in [
        (-32601, "", "HTTP/1.1 404 Not Found\r\nContent-Length: 63\r\nContent-Type: application/json\r\n", "no\"}}"),
        (-32021, "", "HTTP/1.1 400 Bad Request\r\nContent-Length: 63\r\nContent-Type: application/json\r\n", "no\"}}"),
        (-32603, "", events, "no\"}}\n\n\r\n0\r\n\r\n"),
        (-32601, "progress", events, "no\"}}\n\n\r\n0\r\n\r\n"),
        // In the same turn.
        (-32601, "at once", events, "no\"}}\n\n\r\n0\r\n\r\n"),
        (-32601, "keep-alive", events, "no\"}}\n\n\r\n0\r\n\r\n"),
    ] {
        connection.space()[..request.len()].copy_from_slice(request.as_bytes());
        connection.connection.filled(request.len());
        let mut text = String::new();
        let mut serve = |connection: &mut HttpConnection<'_>, endpoint: &mut Endpoint<'_>, app: &mut _, now| {
            let mut host = ServeContext { endpoint, app, body: &mut body, now };
            assert_eq!(connection.serve(&mut host, &mut |bytes| bytes.fill(7)), WaitFor::Read);
            let n = connection.connection.pending().len();
            text.push_str(core::str::from_utf8(connection.connection.pending()).unwrap());
            connection.connection.sent(n);
            text.clone()
        };
        let now = endpoint.next_deadline().unwrap_or(0);
        assert_eq!(serve(&mut connection, &mut endpoint, &mut app, now), "", "nothing is decided");
        let token = app.state.pop().unwrap();
        match first {
            "" => {}
            "keep-alive" => {
                let due = endpoint.next_deadline().unwrap();
                endpoint.expire(&mut app, due);
                assert!(serve(&mut connection, &mut endpoint, &mut app, due).ends_with("3\r\n:\n\n\r\n"));
            }
            _ => {
                let _ = endpoint.progress(token, Progress::new(1.0));
                if first == "progress" {
                    assert!(serve(&mut connection, &mut endpoint, &mut app, now).starts_with(events));
                }
            }
        }
        let failed = RpcError::new(code, "no");
        endpoint.with_stream_of(token, |server, out| server.fail(token, &failed, out)).unwrap().unwrap();
        let got = serve(&mut connection, &mut endpoint, &mut app, now);
        assert!(got.starts_with(head) && got.ends_with(end), "{code} {first}: {got}");
        assert_eq!((endpoint.load(), connection.stream()), ((0, 0, 0), None));
    }
}
