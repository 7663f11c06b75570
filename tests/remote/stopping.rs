//! The end of an HTTP server in order, over real sockets: the same for both adapters, with the same service.
//!
//! The file that takes this module in has `start`: it serves a service and a state, in a thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_host::{LateSender, Stopper};

pub(crate) struct State {
    pub(crate) late: LateSender<State>,
}

fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    let millis = call.arguments().get("ms").and_then(|ms| ms.u64()).unwrap_or(0);
    let late = state.late.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(millis));
        late.answer(token, |_, call| call.text("it has waited"))
    });
    outcome
}

static TOOLS: [Tool<State>; 1] = [Tool::new("wait", "Waits", wait)];

pub(crate) const SERVICE: Service<'static, State> =
    Service::new("stopping", "1").tools(&TOOLS).feature(ServerCapability::ToolsChanged);

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stopper: Stopper,
    pub(crate) thread: JoinHandle<std::io::Result<()>>,
}

impl Running {
    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    /// Sends a request of 2026-07-28, and reads the head of its answer.
    fn begin(&self, method: &str, name: &str, params: &str) -> TcpStream {
        let mut socket = self.connect();
        socket.write_all(request(method, name, params).as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        socket
    }

    fn wait(&self, millis: u64) -> TcpStream {
        self.begin("tools/call", "wait", &format!(r#""name":"wait","arguments":{{"ms":{millis}}},"#))
    }

    fn end(self) {
        self.thread.join().unwrap().unwrap();
    }
}

fn request(method: &str, name: &str, params: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"r","method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Accept: application/json, text/event-stream\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn rest(mut socket: TcpStream) -> String {
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn calls_in_flight_finish_and_nothing_else_begins() {
    let server = super::start(30 * SECOND);
    let (waiting, idle, mut half) = (server.wait(1500), server.connect(), server.connect());
    let late = request("tools/call", "wait", r#""name":"wait","arguments":{"ms":0},"#);
    let (head, body) = late.split_at(late.len() - 5);
    half.write_all(head.as_bytes()).unwrap();
    // Its head is there before the server is stopped.
    thread::sleep(SECOND / 5);
    let begun = Instant::now();
    server.stopper.stop();
    assert_eq!(rest(idle), "", "an idle connection is closed");
    let refused = TcpStream::connect(server.address).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
    half.write_all(body.as_bytes()).unwrap();
    let answer = rest(half);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Connection: close\r\n"), "{answer}");
    assert!(answer.contains("Retry-After: 1\r\n"), "{answer}");
    assert!(begun.elapsed() < SECOND, "the call is still in flight");
    let answer = rest(waiting);
    assert!(answer.contains("it has waited") && answer.ends_with("0\r\n\r\n"), "{answer}");
    server.end();
    assert!(begun.elapsed() < 10 * SECOND);
}

/// Nothing has woken the server before.
#[test]
fn a_server_that_has_served_nothing_ends() {
    for pause in [Duration::ZERO, SECOND / 5] {
        let server = super::start(600 * SECOND);
        thread::sleep(pause);
        server.stopper.stop();
        let begun = Instant::now();
        while !server.thread.is_finished() {
            assert!(begun.elapsed() < 20 * SECOND, "it goes on");
            thread::sleep(SECOND / 100);
        }
        server.end();
    }
}

#[test]
fn calls_that_take_too_long_get_an_error() {
    let server = super::start(SECOND / 2);
    let waiting = server.wait(600_000);
    let begun = Instant::now();
    server.stopper.stop();
    let answer = rest(waiting);
    assert!(begun.elapsed() >= SECOND / 2);
    assert!(answer.contains("The server is going away") && answer.ends_with("0\r\n\r\n"), "{answer}");
    server.end();
    assert!(begun.elapsed() < 10 * SECOND);
}

#[test]
fn a_second_stop_ends_the_time() {
    let server = super::start(600 * SECOND);
    let waiting = server.wait(600_000);
    let begun = Instant::now();
    server.stopper.stop();
    thread::sleep(SECOND / 5);
    assert!(!server.thread.is_finished());
    server.stopper.clone().stop();
    let answer = rest(waiting);
    assert!(answer.contains("The server is going away"), "{answer}");
    server.end();
    assert!(begun.elapsed() < 10 * SECOND);
}

#[test]
fn listens_and_streams_of_sessions_end_at_once() {
    let server = super::start(600 * SECOND);
    let listen = server.begin("subscriptions/listen", "", r#""notifications":{"toolsListChanged":true},"#);
    let mut old = server.connect();
    old.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    let mut seen = [0; 4096];
    let mut text = String::new();
    while !text.contains("event: endpoint") {
        let n = old.read(&mut seen).unwrap();
        text.push_str(std::str::from_utf8(&seen[..n]).unwrap());
    }
    let begun = Instant::now();
    server.stopper.stop();
    let last = rest(listen);
    assert!(last.contains(r#""id":"r","result":{"#) && last.ends_with("0\r\n\r\n"), "{last}");
    assert!(rest(old).ends_with("0\r\n\r\n"));
    server.end();
    assert!(begun.elapsed() < 10 * SECOND);
}
