//! More clients, streams and messages than the HTTP server handles in one turn. No further event wakes it for those that are
//! left over.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_smol::http::{HttpServer, Stopper};
use mcp_sansio_smol::{LateSender, channel};

/// The server takes 64 of each kind in one turn.
const MANY: usize = 100;

struct State {
    late: LateSender<State>,
}

/// Publishes changes in which no client is interested, and answers behind them.
fn flood(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    for _ in 0..2 * MANY {
        state.late.publish(ServerChange::Resource("test://nothing")).unwrap();
    }
    state.late.answer(token, |_, call| call.text("at last")).unwrap();
    outcome
}

static TOOLS: [Tool<State>; 3] = [
    Tool::new("wait", "Is not answered", |_: &mut State, call: &mut Call<'_>| call.later().1),
    Tool::new("change", "Changes the tools", |_, call| {
        call.publish(ServerChange::Tools);
        call.text("changed")
    }),
    Tool::new("flood", "Answers behind many messages", flood),
];

struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

fn serve(server: HttpServer<'static, State>) -> Running {
    let (late, receiver) = channel();
    let server = server.late(receiver).grace(Duration::from_secs(600));
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || {
        let service = Service::new("crowd", "1").tools(&TOOLS).feature(ServerCapability::ToolsChanged);
        smol::block_on(server.serve(&service, &mut State { late }))
    });
    Running { address, stopper, thread }
}

fn start() -> Running {
    serve(HttpServer::bind("127.0.0.1:0").unwrap())
}

impl Running {
    fn end(self) {
        self.stopper.stop();
        self.thread.join().unwrap().unwrap();
    }

    fn listen(&self) -> TcpStream {
        let mut socket =
            send(self.address, "subscriptions/listen", "", r#""notifications":{"toolsListChanged":true},"#);
        read_to(&mut socket, "acknowledged");
        socket
    }

    fn call(&self, tool: &str) -> TcpStream {
        send(self.address, "tools/call", tool, &format!(r#""name":"{tool}","arguments":{{}},"#))
    }
}

/// Sends a request of 2026-07-28 on a connection of its own.
fn send(address: SocketAddr, method: &str, name: &str, params: &str) -> TcpStream {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Accept: application/json, text/event-stream\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).unwrap();
    socket
}

/// Reads until `words` have come. Less than the time after which a stream is kept alive, which would wake the server.
fn read_to(socket: &mut TcpStream, words: &str) {
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    while !text.contains(words) {
        let n = socket.read(&mut bytes).unwrap_or_else(|error| panic!("{error} after {text}"));
        assert!(n > 0, "the end after {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
}

#[test]
fn connections_that_wait_before_the_server_begins_are_all_accepted() {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut clients: Vec<_> = (0..MANY).map(|_| send(address, "tools/list", "", "")).collect();
    let running = serve(server);
    for client in &mut clients {
        read_to(client, "\"flood\"");
    }
    running.end();
}

#[test]
fn a_change_is_heard_on_all_streams() {
    let running = start();
    let mut streams: Vec<_> = (0..MANY).map(|_| running.listen()).collect();
    let mut caller = running.call("change");
    read_to(&mut caller, "changed");
    for stream in &mut streams {
        read_to(stream, "notifications/tools/list_changed");
    }
    running.end();
}

#[test]
fn late_messages_are_all_taken() {
    let running = start();
    read_to(&mut running.call("flood"), "at last");
    running.end();
}

#[test]
fn every_call_gets_its_error_at_a_second_stop() {
    let running = start();
    let mut calls: Vec<_> = (0..MANY).map(|_| running.call("wait")).collect();
    for call in &mut calls {
        read_to(call, "HTTP/1.1 200");
    }
    running.stopper.stop();
    running.stopper.stop();
    for call in &mut calls {
        read_to(call, "The server is going away");
    }
    running.end();
}

#[test]
fn a_tick_comes_at_the_time_that_the_last_one_has_returned() {
    const PERIOD: u64 = 20;
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let server = HttpServer::bind("127.0.0.1:0").unwrap().tick(move |_, _, now| {
        noted.lock().unwrap().push(now / PERIOD);
        Some((now / PERIOD + 1) * PERIOD)
    });
    let running = serve(server);
    let begun = Instant::now();
    let seen = || {
        let mut seen = times.lock().unwrap().clone();
        let all = seen.len();
        seen.dedup();
        (all, seen.len())
    };
    while seen().1 < 6 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", seen());
        thread::sleep(Duration::from_millis(5));
    }
    running.end();
    let (all, periods) = seen();
    assert!(all < 8 * periods, "{all} ticks in {periods} periods");
}
