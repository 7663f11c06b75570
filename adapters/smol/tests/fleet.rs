//! Two servers of one fleet: what comes from the other one wakes the loop.
#![cfg(feature = "fleet")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Service, Tool};
use mcp_sansio_smol::http::fleet::{Arrival, Engine, FleetLimits, MemoryHub, ProcessTag, Recipients};
use mcp_sansio_smol::http::{HttpServer, HttpServerOptions, Stopper};

static TOOLS: [Tool<()>; 1] = [Tool::new("change", "Changes the tools", |(), call| {
    call.publish(ServerChange::Tools);
    call.text("changed")
})];

type Running = (SocketAddr, Stopper, thread::JoinHandle<std::io::Result<()>>);

fn start(hub: &MemoryHub, tag: u32) -> Running {
    serve(HttpServer::bind("127.0.0.1:0").unwrap().fleet(hub.join(ProcessTag::new(tag))))
}

fn serve(server: HttpServer<'static, ()>) -> Running {
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let serve = move || {
        let service = Service::new("test", "1").tools(&TOOLS).feature(ServerCapability::ToolsChanged);
        smol::block_on(server.serve(&service, &mut ()))
    };
    (address, stopper, thread::spawn(serve))
}

/// Posts a request of 2026-07-28. Returns the socket.
fn post(address: SocketAddr, method: &str, name: &str, params: &str) -> TcpStream {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{meta}}}}}"#);
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket
}

fn read_to(socket: &mut TcpStream, words: &str) {
    let mut text = String::new();
    while !text.contains(words) {
        let mut bytes = [0; 1024];
        let n = socket.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(n > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
}

#[test]
fn a_change_of_another_server_is_sent_at_once() {
    let hub = MemoryHub::new();
    let (one, two) = (start(&hub, 1), start(&hub, 2));
    let listen = r#""notifications":{"toolsListChanged":true}"#;
    let mut heard = post(one.0, "subscriptions/listen", "", listen);
    read_to(&mut heard, "acknowledged");
    let began = Instant::now();
    read_to(&mut post(two.0, "tools/call", "change", r#""name":"change","arguments":{}"#), "changed");
    read_to(&mut heard, "notifications/tools/list_changed");
    // Not when the next keep-alive is due, after 15 s.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    for (_, stopper, thread) in [one, two] {
        stopper.stop();
        thread.join().unwrap().unwrap();
    }
}

/// An engine that counts how often it has nothing.
struct Counting<E> {
    engine: E,
    empty: Arc<AtomicUsize>,
}

impl<E: Engine> Engine for Counting<E> {
    fn tag(&self) -> ProcessTag {
        self.engine.tag()
    }
    fn publish(&mut self, to: Recipients, message: &[u8], within: u64) {
        self.engine.publish(to, message, within);
    }
    fn take(&mut self) -> Option<Arrival> {
        let taken = self.engine.take();
        self.empty.fetch_add(usize::from(taken.is_none()), Ordering::Relaxed);
        taken
    }
    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: u64) {
        self.engine.append(log, id, entry, keep);
    }
    fn replace(&mut self, log: &str, entry: &[u8], keep: u64) {
        self.engine.replace(log, entry, keep);
    }
    fn read(&mut self, log: &str, after: u64, follow: Option<u64>) {
        self.engine.read(log, after, follow);
    }
    fn stop(&mut self, log: &str) {
        self.engine.stop(log);
    }
    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.engine.set_waker(wake);
    }
}

/// A second meeting in a turn is for requests that wait for news of the others.
#[test]
fn a_turn_in_which_no_request_waits_meets_the_fleet_once() {
    let [empty, turns] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let engine = Counting { engine: MemoryHub::new().join(ProcessTag::new(1)), empty: Arc::clone(&empty) };
    let ticks = Arc::clone(&turns);
    let server = HttpServer::bind("127.0.0.1:0").unwrap().fleet(engine).tick(move |_, _, _| {
        ticks.fetch_add(1, Ordering::Relaxed);
        None
    });
    let (address, stopper, thread) = serve(server);
    for _ in 0..3 {
        read_to(&mut post(address, "tools/call", "change", r#""name":"change","arguments":{}"#), "changed");
    }
    stopper.stop();
    thread.join().unwrap().unwrap();
    let [empty, turns] = [empty, turns].map(|count| count.load(Ordering::Relaxed));
    assert!(turns >= 3 && empty <= turns, "{empty} meetings without news in {turns} turns");
}

/// More than is handled in one turn, and no further event wakes the server.
#[test]
fn all_news_of_the_others_are_taken() {
    let (hub, empty) = (MemoryHub::new(), Arc::new(AtomicUsize::new(0)));
    let engine = Counting { engine: hub.join(ProcessTag::new(1)), empty: Arc::clone(&empty) };
    let others: Vec<_> = (2..42).map(|tag| hub.join(ProcessTag::new(tag))).collect();
    let options = HttpServerOptions::new().fleet_limits(FleetLimits { turn: 1, ..FleetLimits::default() });
    let (_, stopper, thread) = serve(HttpServer::bind("127.0.0.1:0").unwrap().options(options).fleet(engine));
    let began = Instant::now();
    while empty.load(Ordering::Relaxed) == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "there is more");
        thread::sleep(Duration::from_millis(5));
    }
    drop(others);
    stopper.stop();
    thread.join().unwrap().unwrap();
}
