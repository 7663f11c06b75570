//! Loads HTTP servers (`PROGRAM http PORT`, at `/mcp`) and checks every answer.
//!
//! - `http load NAME=PROGRAM...` prints rates over 1 and 16 kept connections, in rounds, compared with the
//!   first server.
//! - `http scale PROGRAM` prints the cost of 1,000 connections, sessions and event streams, and checks that it
//!   is freed.
//! - `http allocations` counts the allocations of the blocking server and the endpoint for each request.
//! - `http requests KIND N PROGRAM` sends N requests over one connection, to count instructions.

use mcp_sansio_bench::counting::{self, Counting};
use mcp_sansio_bench::{Kind, id, text};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::HttpServer;

const ROUNDS: usize = 5;
const WARM: Duration = Duration::from_millis(100);
const MEASURE: Duration = Duration::from_millis(400);
const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;

/// A server process; it is killed on drop.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &str, cpu: usize) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let port = free.port();
        let child = Command::new("taskset")
            .args(["-c", &cpu.to_string()])
            .args(program.split(' '))
            .args(["http", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Server { child, port };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{program} does not listen");
    }

    /// Returns its own memory in KiB.
    fn memory(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Returns the number of its open sockets.
    fn sockets(&self) -> usize {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs");
        let links = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket")).count()
    }

    /// Returns its processor time in nanoseconds.
    fn processor_time(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap_or_default();
        stat.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Callgrind counts until SIGTERM.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
struct Client {
    socket: TcpStream,
    received: Vec<u8>,
}

/// The positions of the parts of an answer in the received bytes.
struct Answer {
    head: usize,
    end: usize,
}

impl Client {
    fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
        socket.set_nodelay(true).expect("a TCP socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a TCP socket");
        Client { socket, received: Vec::with_capacity(4096) }
    }

    fn send(&mut self, request: &[u8]) {
        self.socket.write_all(request).expect("it reads");
    }

    fn read(&mut self) {
        let from = self.received.len();
        self.received.resize(from + (64 << 10), 0);
        let n = self.socket.read(&mut self.received[from..]).expect("it answers in time");
        assert!(n > 0, "it closed: {}", String::from_utf8_lossy(&self.received[..from]));
        self.received.truncate(from + n);
    }

    /// Reads the head of the answer. Returns its length.
    fn head(&mut self) -> usize {
        loop {
            match memchr::memmem::find(&self.received, b"\r\n\r\n") {
                Some(at) => return at + 4,
                None => self.read(),
            }
        }
    }

    fn answer(&mut self) -> Answer {
        let head = self.head();
        let fields = &self.received[..head];
        let at = memchr::memmem::find(fields, b"\r\nContent-Length: ").map_or(usize::MAX, |at| at + 18);
        let digits = fields.get(at..).unwrap_or_else(|| panic!("no length: {}", String::from_utf8_lossy(fields)));
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit());
        let end = head + length.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
        while self.received.len() < end {
            self.read();
        }
        Answer { head, end }
    }

    /// Opens a session. Returns its id.
    fn open_session(&mut self) -> String {
        self.send(&post(OPENING, ""));
        let answer = self.answer();
        let head = String::from_utf8_lossy(&self.received[..answer.head]).into_owned();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        self.received.clear();
        let session = head.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: "));
        session.unwrap_or_default().to_owned()
    }

    /// Opens an event stream and waits for its head.
    fn open_stream(&mut self, request: &[u8]) {
        self.send(request);
        let head = self.head();
        let text = String::from_utf8_lossy(&self.received[..head]).into_owned();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("text/event-stream"), "{text}");
    }
}

fn post(body: &str, fields: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn session_fields(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n")
}

const MODERN: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

/// Requests of a kind over one connection, and their expected answers.
struct Load {
    client: Client,
    kind: Kind,
    request: Vec<u8>,
    id_in: usize,
    text_in: usize,
    template: Vec<u8>,
    id_at: usize,
    text_at: usize,
    n: u64,
}

impl Load {
    fn new(port: u16, kind: Kind) -> Self {
        let mut client = Client::connect(port);
        let fields = match kind {
            Kind::Modern32 => format!("{MODERN}Mcp-Method: tools/call\r\nMcp-Name: echo\r\n"),
            _ => session_fields(&client.open_session()),
        };
        let line = kind.line(0);
        let request = post(line.trim_end(), &fields);
        let find = |bytes: &[u8], what: &str| memchr::memmem::find(bytes, what.as_bytes()).expect("a hole");
        let (id_in, text_in) = (find(&request, &id(0).to_string()), find(&request, "0000000000x"));
        client.send(&request);
        let answer = client.answer();
        let template = client.received[..answer.end].to_vec();
        let json: serde_json::Value = serde_json::from_slice(&template[answer.head..]).expect("an answer is JSON");
        assert_eq!((json["id"].as_u64(), &json["result"]["content"][0]["text"]), (Some(id(0)), &text(kind, 0).into()));
        client.received.clear();
        let (id_at, text_at) = (find(&template, &id(0).to_string()), find(&template, "0000000000x"));
        Load { client, kind, request, id_in, text_in, template, id_at, text_at, n: 0 }
    }

    fn send(&mut self) {
        self.n += 1;
        let n = self.n;
        number(&mut self.request[self.id_in..], id(n));
        number(&mut self.request[self.text_in..], n);
        self.client.send(&self.request);
    }

    fn check(&mut self) {
        number(&mut self.template[self.id_at..], id(self.n));
        number(&mut self.template[self.text_at..], self.n);
        while self.client.received.len() < self.template.len() {
            self.client.read();
        }
        let received = &self.client.received;
        assert!(*received == self.template, "{:?} {}: {}", self.kind, self.n, String::from_utf8_lossy(received));
        self.client.received.clear();
    }
}

/// Writes a number of ten digits.
fn number(place: &mut [u8], mut n: u64) {
    for digit in place[..10].iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

/// Returns requests per second, and microseconds of the server's processor time for each.
fn rate(server: &Server, loads: &mut [Load], time: Duration) -> (f64, f64) {
    let (began, spent) = (Instant::now(), server.processor_time());
    let mut count = 0;
    while began.elapsed() < time {
        loads.iter_mut().for_each(Load::send);
        loads.iter_mut().for_each(Load::check);
        count += loads.len();
    }
    let spent = (server.processor_time() - spent) as f64;
    (count as f64 / began.elapsed().as_secs_f64(), spent / count as f64 / 1e3)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn loads(servers: &[(&str, &str)]) {
    println!("| HTTP load | connections | server | requests/s | of {0} | cpu us each | of {0} |", servers[0].0);
    println!("|---|---|---|---|---|---|---|");
    for (kind, width) in [(Kind::Modern32, 1), (Kind::Modern32, 16), (Kind::Echo32, 1), (Kind::Echo32, 16)] {
        let cpu = if width == 1 { 0 } else { 1 };
        let mut measured = vec![Vec::new(); servers.len()];
        for _ in 0..ROUNDS {
            for (place, (_, program)) in measured.iter_mut().zip(servers) {
                let server = Server::start(program, cpu);
                let mut clients: Vec<_> = (0..width).map(|_| Load::new(server.port, kind)).collect();
                rate(&server, &mut clients, WARM);
                place.push(rate(&server, &mut clients, MEASURE));
            }
        }
        for (results, (name, _)) in measured.iter().zip(servers) {
            let ratio =
                |of: fn(&(f64, f64)) -> f64| median(results.iter().zip(&measured[0]).map(|(a, b)| of(a) / of(b)));
            println!(
                "| {} | {width} | {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
                kind.name(),
                median(results.iter().map(|r| r.0)),
                ratio(|r| r.0),
                median(results.iter().map(|r| r.1)),
                ratio(|r| r.1)
            );
        }
    }
}

const MANY: usize = 1000;

/// Waits until the server has at most `sockets` sockets. Returns their number.
fn settle(server: &Server, sockets: usize) -> usize {
    let began = Instant::now();
    while server.sockets() > sockets && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.sockets()
}

fn get(session: &str) -> Vec<u8> {
    let fields = session_fields(session);
    format!("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n{fields}\r\n").into_bytes()
}

fn listen() -> Vec<u8> {
    post(LISTEN, &format!("{MODERN}Mcp-Method: subscriptions/listen\r\n"))
}

/// Opens many connections, each with a session.
fn with_sessions(server: &Server) -> (Vec<Client>, Vec<String>) {
    let mut clients: Vec<_> = (0..MANY).map(|_| Client::connect(server.port)).collect();
    let sessions = clients.iter_mut().map(Client::open_session).collect();
    (clients, sessions)
}

/// Prints the cost of `MANY` of each, each in a process of its own.
fn memory(program: &str) {
    let cost = |what: &str, open: &dyn Fn(&Server) -> Vec<Client>| {
        let server = Server::start(program, 1);
        let mut one = Load::new(server.port, Kind::Modern32);
        rate(&server, std::slice::from_mut(&mut one), WARM);
        let before = server.memory();
        let held = open(&server);
        // With this answer the server has handled everything before it.
        one.send();
        one.check();
        println!("| {what} | {:.1} |", (server.memory() - before) as f64 / MANY as f64);
        drop(held);
    };
    println!("| {MANY} of each, in a process of its own | KiB each |\n|---|---|");
    cost("sessions, opened over one connection", &|server| {
        let mut client = Client::connect(server.port);
        (0..MANY).for_each(|_| drop(client.open_session()));
        vec![client]
    });
    cost("event streams (listens of 2026-07-28), each with its connection", &|server| {
        let mut clients: Vec<_> = Vec::with_capacity(MANY);
        for _ in 0..MANY {
            let mut client = Client::connect(server.port);
            client.open_stream(&listen());
            clients.push(client);
        }
        clients
    });
    cost("sessions with their event streams and connections", &|server| {
        let mut clients: Vec<_> = Vec::with_capacity(MANY);
        for _ in 0..MANY {
            let mut client = Client::connect(server.port);
            let session = client.open_session();
            client.open_stream(&get(&session));
            clients.push(client);
        }
        clients
    });
    cost("kept connections with a session, just now used", &|server| with_sessions(server).0);
    cost("kept connections with a session, idle for 11 seconds", &|server| {
        let clients = with_sessions(server).0;
        std::thread::sleep(Duration::from_secs(11));
        clients
    });
}

fn scale(program: &str) {
    memory(program);
    let server = Server::start(program, 1);
    let sockets = settle(&server, 3);
    let mut clients: Vec<_> = (0..16).map(|_| Load::new(server.port, Kind::Modern32)).collect();
    let measure = |what: &str, clients: &mut [Load]| {
        rate(&server, clients, WARM);
        let (many, spent) = rate(&server, clients, Duration::from_secs(3));
        rate(&server, &mut clients[..1], WARM);
        let (one, spent_one) = rate(&server, &mut clients[..1], Duration::from_secs(1));
        println!(
            "{what}: {many:.0} requests/s over 16 connections ({spent:.1} us of processor time each), {one:.0} over one ({spent_one:.1} us)"
        );
        many
    };
    let alone = measure("no streams", &mut clients);
    let base = server.memory();
    let (mut idle, sessions) = with_sessions(&server);
    // Half of the streams belong to these sessions, the others are `subscriptions/listen`.
    for (n, (client, session)) in idle.iter_mut().zip(&sessions).enumerate() {
        let request = if n % 2 == 0 { get(session) } else { listen() };
        client.open_stream(&request);
    }
    let held = measure("1,000 event streams and 1,000 sessions", &mut clients);
    println!("rate with them, of that without: {:.2}", held / alone);

    let mut cycle = |idle: Vec<Client>| {
        drop(idle);
        clients[0].send();
        clients[0].check();
        let left = settle(&server, sockets + clients.len());
        assert_eq!(left, sockets + clients.len(), "sockets after the clients have gone");
    };
    cycle(idle);
    let after = server.memory();
    println!("sockets when they have gone: {sockets} and those of the load; memory {base} KiB before, {after} KiB now");
    for turn in 1..=3 {
        let mut again: Vec<Client> = (0..MANY).map(|_| Client::connect(server.port)).collect();
        for client in &mut again {
            client.open_stream(&listen());
        }
        cycle(again);
        println!("after 1,000 more listens have come and gone, time {turn}: {} KiB", server.memory());
    }
    let grown = server.memory() - after;
    assert!(grown < 512, "{grown} KiB have grown");
    assert!(held >= 10_000.0, "10,000 requests a second");
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

static TOOLS: [Tool<()>; 1] = [Tool::new("echo", "Gives a text back", echo)
    .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#)];

/// Counts the allocations of client and server: both run in this process.
fn allocations() {
    let server = HttpServer::bind("127.0.0.1:0").expect("a free port");
    let port = server.local_addr().expect("bound").port();
    let stopper = server.stopper().expect("a socket");
    let serving = std::thread::spawn(move || server.serve(&Service::new("count", "1").tools(&TOOLS), &mut ()));
    println!("| allocations per HTTP request | driver, endpoint, engine |\n|---|---|");
    for (kind, width) in [(Kind::Modern32, 1), (Kind::Modern32, 16), (Kind::Echo32, 1), (Kind::Echo32, 16)] {
        let mut loads: Vec<_> = (0..width).map(|_| Load::new(port, kind)).collect();
        let mut run = |n: usize| {
            let before = counting::allocations();
            for _ in 0..n {
                loads.iter_mut().for_each(Load::send);
                loads.iter_mut().for_each(Load::check);
            }
            counting::allocations() - before
        };
        run(100);
        let count = run(1000);
        println!("| {}, {width} connections | {:.3} |", kind.name(), count as f64 / (1000 * width) as f64);
        assert_eq!(count, 0, "allocations in the steady state");
    }
    stopper.stop();
    serving.join().expect("no panic").expect("no error");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", ref servers @ ..] if !servers.is_empty() => {
            loads(&servers.iter().map(|s| s.split_once('=').expect("NAME=PROGRAM")).collect::<Vec<_>>());
        }
        ["allocations"] => allocations(),
        ["scale", program] => scale(program),
        ["requests", kind, n, program] => {
            let server = Server::start(program, 0);
            let mut load = Load::new(server.port, Kind::named(kind));
            for _ in 0..n.parse().expect("a number") {
                load.send();
                load.check();
            }
        }
        _ => eprintln!("usage: http load NAME=PROGRAM... | allocations | scale PROGRAM | requests KIND N PROGRAM"),
    }
}
