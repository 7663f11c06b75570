//! The HTTP server over real sockets: what only shows there. What it answers is tested elsewhere.
#![cfg(feature = "http")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::server::{Millis, Token};
use mcp_sansio::service::{Call, Outcome, Service, Tool};
use mcp_sansio_blocking::http::{App, HttpServer, Stopper};

/// Calls that are answered when they are due.
#[derive(Default)]
struct Later {
    due: Vec<(Token, Millis)>,
    cancelled: usize,
}

fn wait(state: &mut Later, call: &mut Call<'_>) -> Outcome {
    let millis = call.arguments().get("millis").and_then(|millis| millis.u64()).unwrap_or(0);
    let due = call.now() + millis;
    let (token, later) = call.later();
    state.due.push((token, due));
    later
}

fn cancelled(state: &mut Later, token: Token) {
    state.due.retain(|(waiting, _)| *waiting != token);
    state.cancelled += 1;
}

static TOOLS: [Tool<Later>; 2] = [
    Tool::new("wait", "Answers later", wait),
    Tool::new("cancelled", "How many were cancelled", |state, call| {
        call.text(format_args!("cancelled: {}", state.cancelled))
    }),
];

struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

fn start() -> Running {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper().unwrap());
    let thread = thread::spawn(move || {
        let service = Service::new("later", "1").tools(&TOOLS).on_cancel(cancelled);
        server.serve_with(App::new(&service, &mut Later::default()), &mut |app, endpoint, now| {
            let (due, rest): (Vec<_>, Vec<_>) = app.state.due.iter().partition(|(_, at)| *at <= now);
            app.state.due = rest;
            for (token, _) in due {
                endpoint.answer(app, token, |_, call| call.text("at last")).unwrap();
            }
            app.state.due.iter().map(|(_, at)| *at).min()
        })
    });
    Running { address, stopper, thread }
}

impl Running {
    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn stop(self) {
        self.stopper.stop();
        self.thread.join().unwrap().unwrap();
    }
}

/// A request of 2026-07-28 that calls a tool.
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

/// Reads until `end` has come.
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

/// Requests that are sent ahead wait behind an open stream; what their handlers put off is heard of at once.
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

/// What is open when it stops is answered, and idle connections do not keep it.
#[test]
fn stopping() {
    let server = start();
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
