//! The HTTP server over real sockets. Other tests check the content of its answers.
#![cfg(feature = "http")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::server::{Millis, RequestToken};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::{EndpointConfig, HttpServer, HttpServerOptions, Stopper};
use mcp_sansio_http::http1;

/// Calls that are answered at a given time.
#[derive(Default)]
struct Later {
    due: Vec<(RequestToken, Millis)>,
    cancelled: usize,
    /// The number of looks of a watch.
    looks: usize,
}

fn wait(state: &mut Later, call: &mut Call<'_>) -> HandlerResult {
    let millis = call.arguments().get("millis").and_then(|millis| millis.u64()).unwrap_or(0);
    let due = call.now() + millis;
    let (token, later) = call.later();
    state.due.push((token, due));
    later
}

fn cancelled(state: &mut Later, token: RequestToken) {
    state.due.retain(|(waiting, _)| *waiting != token);
    state.cancelled += 1;
}

static TOOLS: [Tool<Later>; 5] = [
    Tool::new("wait", "Answers later", wait),
    Tool::new("cancelled", "How many were cancelled", |state, call| {
        call.text(format_args!("cancelled: {}", state.cancelled))
    }),
    Tool::new("looks", "How often the watch looked", |state, call| call.text(format_args!("looks: {};", state.looks))),
    Tool::new("large", "Eight MiB", |_, call| call.text(&*"x".repeat(8 << 20))),
    Tool::new("larger", "Ten MiB", |_, call| call.text(&*"x".repeat(10 << 20))),
];

/// Counters from inside the server.
#[derive(Default)]
struct Seen {
    /// The turns of its loop.
    turns: AtomicUsize,
    /// The open event streams.
    streams: AtomicUsize,
}

struct Running {
    address: SocketAddr,
    seen: Arc<Seen>,
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

type Server = HttpServer<'static, Later>;

fn start() -> Running {
    start_with(|server| server)
}

fn start_with(configure: fn(Server) -> Server) -> Running {
    let server = configure(HttpServer::bind("127.0.0.1:0").unwrap());
    let seen = Arc::new(Seen::default());
    let looks = Arc::clone(&seen);
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || {
        let service = Service::new("later", "1").tools(&TOOLS).on_cancel(cancelled);
        let server = server.tick(move |app, endpoint, now| {
            looks.turns.fetch_add(1, Relaxed);
            looks.streams.store(endpoint.load().2, Relaxed);
            let (due, rest): (Vec<_>, Vec<_>) = app.state.due.iter().partition(|(_, at)| *at <= now);
            app.state.due = rest;
            for (token, _) in due {
                endpoint.answer(app, token, |_, call| call.text("at last")).unwrap();
            }
            app.state.due.iter().map(|(_, at)| *at).min()
        });
        server.serve(&service, &mut Later::default())
    });
    Running { address, stopper, thread, seen }
}

impl Running {
    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    /// Waits until this many streams are open. Returns how many turns the loop took for it.
    fn turns_until(&self, streams: usize) -> usize {
        let before = self.seen.turns.load(Relaxed);
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.seen.streams.load(Relaxed) != streams {
            assert!(Instant::now() < deadline, "{} streams are open", self.seen.streams.load(Relaxed));
            thread::sleep(Duration::from_millis(5));
        }
        self.seen.turns.load(Relaxed) - before
    }

    fn stop(self) {
        self.stopper.stop();
        self.thread.join().unwrap().unwrap();
    }
}

/// Returns a 2026-07-28 request that calls a tool.
fn call(id: u32, tool: &str, arguments: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
        Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads until `end` was received.
fn read_to(socket: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while !text.contains(end) {
        let n = socket.read(&mut chunk).unwrap();
        assert!(n > 0, "the server hung up after {text}");
        text.push_str(std::str::from_utf8(&chunk[..n]).unwrap());
    }
    text
}

/// Requests sent behind an open stream wait; a late answer goes out at once.
#[test]
fn requests_behind_a_stream() {
    let server = start();
    let mut socket = server.connect();
    let begun = Instant::now();
    let both = call(1, "wait", r#"{"millis":50}"#) + &call(2, "wait", r#"{"millis":50}"#);
    socket.write_all(both.as_bytes()).unwrap();
    let answers = read_to(&mut socket, "\"id\":2");
    assert!(answers.find("\"id\":1").unwrap() < answers.find("\"id\":2").unwrap());
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(100) && taken < Duration::from_secs(2), "{taken:?}");
    server.stop();
}

/// From 2026-07-28 on, closing the connection cancels the request.
// spec: T091 T092
#[test]
fn a_client_that_leaves_cancels() {
    let server = start();
    let mut gone = server.connect();
    gone.write_all(call(1, "wait", r#"{"millis":60000}"#).as_bytes()).unwrap();
    read_to(&mut gone, "\r\n\r\n");
    drop(gone);
    let deadline = Instant::now() + Duration::from_secs(5);
    let told = || {
        let mut socket = server.connect();
        socket.write_all(call(2, "cancelled", "{}").as_bytes()).unwrap();
        read_to(&mut socket, "cancelled: ").contains("cancelled: 1")
    };
    while !told() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
    server.stop();
}

/// When the server stops, open requests are answered, and idle connections do not delay it.
#[test]
fn stopping() {
    let server = start_with(|server| server.grace(Duration::ZERO));
    let _idle = server.connect();
    let mut waiting = server.connect();
    waiting.write_all(call(1, "wait", r#"{"millis":60000}"#).as_bytes()).unwrap();
    read_to(&mut waiting, "\r\n\r\n");
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_secs(2));
    let mut rest = String::new();
    waiting.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("The server is going away") && rest.ends_with("0\r\n\r\n"), "{rest}");
}

/// Sends as many bytes behind an open stream as the server and the sockets take. Returns their number.
fn fill(socket: &mut TcpStream) -> usize {
    socket.set_nonblocking(true).unwrap();
    let (mut sent, mut refused) = (0, 0);
    while refused < 10 {
        match socket.write(&[b' '; 64 * 1024]) {
            Ok(n) => (sent, refused) = (sent + n, 0),
            Err(_) => {
                refused += 1;
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    sent
}

const STREAM: &[u8] = b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";

fn with_keep_alive(server: Server, millis: Millis) -> Server {
    let mut config = EndpointConfig::DEFAULT;
    config.keep_alive = millis;
    server.options(HttpServerOptions::new().config(config))
}

/// Starts a stream, fills its input and leaves. Returns how many turns the loop took to notice.
fn turns_for_one_that_goes(configure: fn(Server) -> Server, reads: bool) -> usize {
    let server = start_with(configure);
    let mut socket = server.connect();
    socket.write_all(STREAM).unwrap();
    if reads {
        read_to(&mut socket, "event: endpoint");
    }
    fill(&mut socket);
    server.turns_until(1);
    drop(socket);
    let turns = server.turns_until(0);
    server.stop();
    turns
}

/// A client fills its input behind a stream, and leaves: this must not make a busy loop.
#[test]
fn a_client_that_goes_with_its_input_full() {
    // The client leaves with unread bytes, so the system sends a reset. The server notices it without sending
    // anything.
    let turns = turns_for_one_that_goes(|server| with_keep_alive(server, 0), false);
    assert!(turns < 20, "{turns} turns");
    // The end of the connection is behind bytes that do not fit. The server notices it with the next keep-alive.
    let turns = turns_for_one_that_goes(|server| with_keep_alive(server, 100), true);
    assert!(turns < 20, "{turns} turns");
}

#[test]
fn a_watch_looks_while_a_stream_is_open() {
    let server = start_with(|server| server.watch(Duration::from_millis(20), |state, _| state.looks += 1));
    let looks = || {
        let mut socket = server.connect();
        socket.write_all(call(1, "looks", "{}").as_bytes()).unwrap();
        let answer = read_to(&mut socket, ";\"");
        answer.split("looks: ").nth(1).unwrap().split(';').next().unwrap().parse::<usize>().unwrap()
    };
    let rests_at = |number| {
        thread::sleep(Duration::from_millis(100));
        assert_eq!(looks(), number);
    };
    rests_at(0);
    let mut stream = server.connect();
    stream.write_all(STREAM).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while looks() < 3 {
        assert!(Instant::now() < deadline, "{} looks", looks());
    }
    drop(stream);
    server.turns_until(0);
    rests_at(looks());
    server.stop();
}

#[test]
fn the_first_look_of_a_watch_is_a_period_later() {
    let server = start_with(|server| server.watch(Duration::from_secs(3600), |state, _| state.looks += 1));
    let mut stream = server.connect();
    stream.write_all(STREAM).unwrap();
    server.turns_until(1);
    for _ in 0..3 {
        let mut socket = server.connect();
        socket.write_all(call(1, "looks", "{}").as_bytes()).unwrap();
        read_to(&mut socket, "looks: 0;");
    }
    server.stop();
}

/// Sets times of 50 ms, for tests of slow clients.
fn hurried(server: Server) -> Server {
    let limits = http1::ConnectionLimits::DEFAULT.head_time(50).body_time(50).idle_time(50).linger_time(50);
    server.options(HttpServerOptions::new().wire_limits(limits.write_time(50)))
}

/// Reads until the server closes the connection.
fn rest(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    // Bytes sent to a server that does not read them may end in a reset.
    if let Err(error) = socket.read_to_string(&mut text) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "after {text:?}");
    }
    text
}

#[test]
fn those_that_are_slow_are_let_go() {
    let server = start_with(hurried);
    let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let begun = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
    for (sent, answer) in [("", ""), ("POST /m", timeout), (begun, timeout)] {
        let mut socket = server.connect();
        socket.write_all(sent.as_bytes()).unwrap();
        assert_eq!(rest(&mut socket), answer, "{sent:?}");
    }
    // The connection is idle after an answer.
    let mut socket = server.connect();
    socket.write_all(call(1, "cancelled", "{}").as_bytes()).unwrap();
    assert!(rest(&mut socket).contains("cancelled: 0"));
    // The time of a head that comes in pieces begins with its first byte; the next head has its own time.
    let mut socket = server.connect();
    let request = call(1, "cancelled", "{}");
    for _ in 0..3 {
        socket.write_all(&request.as_bytes()[..20]).unwrap();
        thread::sleep(Duration::from_millis(5));
        socket.write_all(&request.as_bytes()[20..]).unwrap();
        read_to(&mut socket, "cancelled: 0");
    }
    drop(socket);
    server.stop();
}

/// A client that does not read its answer is disconnected; others are served meanwhile.
#[test]
fn a_client_that_does_not_read() {
    let server = start_with(|server| {
        server.options(HttpServerOptions::new().wire_limits(http1::ConnectionLimits::DEFAULT.write_time(100)))
    });
    let mut socket = server.connect();
    let request = call(1, "cancelled", "{}").repeat(1000);
    socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let deadline = Instant::now() + Duration::from_secs(20);
    // The sockets hold some bytes, and then the connection ends.
    let error = loop {
        match socket.write(&request.as_bytes()[sent % request.len()..]) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(5)),
            Err(error) => break error.kind(),
        }
        assert!(Instant::now() < deadline, "{sent} bytes were taken");
    };
    assert!(matches!(error, std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe), "{error}");
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    let mut other = server.connect();
    other.write_all(call(2, "cancelled", "{}").as_bytes()).unwrap();
    read_to(&mut other, "cancelled: 0");
    server.stop();
}

/// A head that must be refused is refused before its body comes; all bodies together have a limit.
#[test]
fn bodies_that_are_not_taken_in() {
    let server = start_with(|server| server.options(HttpServerOptions::new().input_total(100 * 1024)));
    let mut foreign = server.connect();
    foreign.write_all(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 16000000\r\n\r\n").unwrap();
    assert!(rest(&mut foreign).starts_with("HTTP/1.1 403"));
    let mut large = server.connect();
    large.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n").unwrap();
    let _ = large.write_all(&[b' '; 150_000]);
    assert!(rest(&mut large).starts_with("HTTP/1.1 503"));
    let mut small = server.connect();
    small.write_all(call(1, "cancelled", "{}").as_bytes()).unwrap();
    read_to(&mut small, "cancelled: 0");
    server.stop();
}

/// Unread answers have a total limit: the server closes the connection with the most bytes.
#[test]
fn answers_that_are_not_read() {
    let server = start_with(|server| server.options(HttpServerOptions::new().output_total(15 << 20)));
    let ask = |tool: &str| {
        let mut socket = server.connect();
        socket.write_all(call(1, tool, "{}").as_bytes()).unwrap();
        socket.read_exact(&mut [0; 15]).unwrap();
        socket
    };
    let (mut large, mut larger) = (ask("large"), ask("larger"));
    let mut other = server.connect();
    other.write_all(call(2, "cancelled", "{}").as_bytes()).unwrap();
    read_to(&mut other, "cancelled: 0");
    assert!(rest(&mut larger).len() < 10 << 20, "it was cut short");
    large.read_exact(&mut vec![0; 8 << 20]).unwrap();
    server.stop();
}

/// A state that cannot be prepared for a suspended handler is an error of its request, and of no other.
#[test]
fn a_preparation_that_panics() {
    use mcp_sansio_blocking::{LateSender, channel};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    struct State(LateSender<State>);
    static TOOLS: [Tool<State>; 2] = [
        Tool::new("suspend", "Is resumed", |state, call| {
            if call.is_resumed() {
                return call.text("resumed");
            }
            let fails = call.arguments().get("fails").is_some();
            let (token, outcome) = call.suspend(b"")?;
            let late = state.0.clone();
            thread::spawn(move || late.resume(token, move |_| assert!(!fails, "it cannot be prepared")));
            Ok(outcome)
        }),
        Tool::new("echo", "Answers", |_, call| call.text("here")),
    ];
    let (late, receiver) = channel();
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let serving = thread::spawn(move || {
        let service = Service::new("suspends", "1").tools(&TOOLS);
        let service = service.contain_panics(|run| catch_unwind(AssertUnwindSafe(run)).is_ok());
        server.late(receiver).serve(&service, &mut State(late))
    });
    for (tool, arguments, answer) in [
        ("suspend", "{}", "resumed"),
        ("suspend", r#"{"fails":true}"#, "The handler has panicked"),
        ("echo", "{}", "here"),
        ("suspend", "{}", "resumed"),
    ] {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.write_all(call(1, tool, arguments).as_bytes()).unwrap();
        read_to(&mut socket, answer);
    }
    stopper.stop();
    serving.join().unwrap().unwrap();
}

/// Introspection elsewhere: the request waits without turning the loop, other requests do not wait.
#[test]
fn authorization_comes_later() {
    use std::sync::atomic::AtomicBool;

    use mcp_sansio_blocking::http::{Access, Grant, Refusal, RequestHead};

    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let (asked, known) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let turns = Arc::new(AtomicUsize::new(0));
    let (turned, learn) = (Arc::clone(&turns), Arc::clone(&known));
    let client = thread::spawn(move || {
        let answer = |mut socket: &TcpStream| {
            let mut seen = [0; 4096];
            let n = socket.read(&mut seen).unwrap();
            String::from_utf8_lossy(&seen[..n]).into_owned()
        };
        let request = |token: &str| {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
                "capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            write!(
                socket,
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{token}Content-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            socket
        };
        let begun = Instant::now();
        let slow = request("Authorization: Bearer ann\r\n");
        slow.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(answer(&request("")).starts_with("HTTP/1.1 401"));
        assert!(begun.elapsed() < Duration::from_millis(200));
        assert!(answer(&slow).starts_with("HTTP/1.1 200"));
        assert!(begun.elapsed() > Duration::from_millis(250));
        stopper.stop();
    });
    let authorize = |head: &RequestHead<'_>| {
        asked.fetch_add(1, Relaxed);
        match head.text("authorization") {
            None => Access::RefusedWith(Refusal::new(401)),
            Some(token) if known.load(Relaxed) => Access::GrantedTo(Grant::to(Some(token)).unwrap()),
            Some(_) => Access::Later,
        }
    };
    let service = Service::<()>::new("guarded", "1");
    let begun = Instant::now();
    let server = server.authorize(&authorize).tick(move |_, _, now| {
        turned.fetch_add(1, Relaxed);
        learn.store(begun.elapsed() > Duration::from_millis(300), Relaxed);
        Some(now + 50)
    });
    server.serve(&service, &mut ()).unwrap();
    client.join().unwrap();
    assert!(turns.load(Relaxed) < 60 && asked.load(Relaxed) < 40, "{turns:?} {asked:?}");
}

/// A client whose request waits for a decision, and whose connection breaks with much that was not read: its place comes free,
/// and nothing turns the loop.
#[test]
fn an_undecided_client_that_is_reset() {
    use mcp_sansio::server::MessageLimits;
    use mcp_sansio_blocking::http::{Access, RequestHead};

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn authorize(head: &RequestHead<'_>) -> Access<'static> {
        ASKED.fetch_add(1, Relaxed);
        head.text("authorization").map_or(Access::Granted { principal: None }, |_| Access::Later)
    }
    let server = start_with(|server| {
        // The input takes less than what the sockets hold.
        let limits = MessageLimits { message: 10_000, ..MessageLimits::default() };
        server.options(HttpServerOptions::new().connections(1).limits(limits)).authorize(&authorize)
    });
    for fills in [false, true] {
        let asked = ASKED.load(Relaxed);
        let mut gone = server.connect();
        let head = "Authorization: Bearer ann\r\nHost";
        gone.write_all(call(1, "cancelled", "{}").replacen("Host", head, 1).as_bytes()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while ASKED.load(Relaxed) == asked {
            assert!(Instant::now() < deadline, "nobody was asked");
            thread::sleep(Duration::from_millis(5));
        }
        let before = server.seen.turns.load(Relaxed);
        if fills {
            fill(&mut gone);
        }
        rustix::net::sockopt::set_socket_linger(&gone, Some(Duration::ZERO)).unwrap();
        drop(gone);
        let mut other = server.connect();
        other.write_all(call(2, "cancelled", "{}").as_bytes()).unwrap();
        read_to(&mut other, "cancelled: 0");
        let turns = server.seen.turns.load(Relaxed) - before;
        assert!(turns < 20, "{turns} turns");
    }
    server.stop();
}
