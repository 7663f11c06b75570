//! Clients of HTTP servers that check every answer.

use crate::{Kind, id, text};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// A server process; it is killed on drop.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The port on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts `PROGRAM http PORT` on one processor, and waits until it listens.
    ///
    /// # Panics
    /// If it does not within 20 s.
    pub fn start(program: &str, cpu: usize) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let port = free.port();
        let child = Command::new("taskset")
            .args(["-c", &cpu.to_string()])
            .args(program.split(' '))
            .args(["http", &port.to_string()])
            .stdout(Stdio::null())
            // One of them writes all requests and answers there.
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Server { child, port };
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{program} does not listen");
    }

    /// Returns its own memory in KiB.
    pub fn memory(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Returns the number of its open sockets.
    pub fn sockets(&self) -> usize {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs");
        let links = fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket")).count()
    }

    /// Returns the processor time of its threads, in nanoseconds.
    pub fn processor_time(&self) -> u64 {
        crate::processor_time(self.child.id())
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
#[derive(Debug)]
pub struct Client {
    /// Its socket.
    pub socket: TcpStream,
    /// The bytes that were received and not looked at.
    pub received: Vec<u8>,
}

/// The positions of the parts of an answer in the received bytes.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The end of the head.
    pub head: usize,
    /// The end of the body.
    pub end: usize,
}

impl Client {
    /// Connects to the port on 127.0.0.1.
    pub fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
        socket.set_nodelay(true).expect("a TCP socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a TCP socket");
        Client { socket, received: Vec::with_capacity(4096) }
    }

    /// Sends a whole request.
    pub fn send(&mut self, request: &[u8]) {
        self.socket.write_all(request).expect("it reads");
    }

    /// Waits for bytes; 10 s at most.
    pub fn read(&mut self) {
        let from = self.received.len();
        self.received.resize(from + (64 << 10), 0);
        let n = self.socket.read(&mut self.received[from..]).expect("it answers in time");
        assert!(n > 0, "it closed: {}", String::from_utf8_lossy(&self.received[..from]));
        self.received.truncate(from + n);
    }

    /// Reads the head of the answer. Returns its length.
    pub fn head(&mut self) -> usize {
        loop {
            match memchr::memmem::find(&self.received, b"\r\n\r\n") {
                Some(at) => return at + 4,
                None => self.read(),
            }
        }
    }

    /// Reads a whole answer.
    pub fn answer(&mut self) -> Answer {
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
    pub fn open_session(&mut self) -> String {
        self.send(&post(OPENING, ""));
        let answer = self.answer();
        let head = String::from_utf8_lossy(&self.received[..answer.head]).into_owned();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        self.received.clear();
        let session = head.lines().find_map(|line| line.strip_prefix("Mcp-Session-Id: "));
        session.unwrap_or_default().to_owned()
    }

    /// Opens an event stream and waits for its head.
    pub fn open_stream(&mut self, request: &[u8]) {
        self.send(request);
        let head = self.head();
        let text = String::from_utf8_lossy(&self.received[..head]).into_owned();
        assert!(text.starts_with("HTTP/1.1 200") && text.contains("text/event-stream"), "{text}");
    }
}

/// Returns a `POST` of a message, with more header fields.
pub fn post(body: &str, fields: &str) -> Vec<u8> {
    post_to("127.0.0.1", body, fields)
}

/// Returns a `POST` of a message to a server with this name, with more header fields.
pub fn post_to(host: &str, body: &str, fields: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Returns the header fields of a message in a session.
pub fn session_fields(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n")
}

/// The header field of the revision 2026-07-28.
pub const MODERN: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

/// Requests of a kind over one connection, and their expected answers.
#[derive(Debug)]
pub struct Load {
    client: Client,
    kind: Kind,
    request: Vec<u8>,
    id_in: usize,
    text_in: usize,
    template: Vec<u8>,
    id_at: usize,
    text_at: usize,
    /// The place of the first letter of a header's name, if it changes its case with each request.
    letter: Option<usize>,
    n: u64,
}

impl Load {
    /// Connects, opens a session if the kind needs one, and makes a first request.
    pub fn new(port: u16, kind: Kind) -> Self {
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
        Load { client, kind, request, id_in, text_in, template, id_at, text_at, letter: None, n: 0 }
    }

    /// Makes each head differ from the one before it, by one letter.
    pub fn change_heads(&mut self) {
        self.letter = memchr::memmem::find(&self.request, b"\r\nHost:").map(|at| at + 2);
    }

    /// Sends the next request.
    pub fn send(&mut self) {
        self.n += 1;
        let n = self.n;
        number(&mut self.request[self.id_in..], id(n));
        number(&mut self.request[self.text_in..], n);
        if let Some(letter) = self.letter {
            self.request[letter] ^= 0x20;
        }
        self.client.send(&self.request);
    }

    /// Waits for its answer, and compares every byte.
    pub fn check(&mut self) {
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
pub(crate) fn number(place: &mut [u8], mut n: u64) {
    for digit in place[..10].iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

/// Returns requests per second, and microseconds of the server's processor time for each.
pub fn rate(server: &Server, loads: &mut [Load], time: Duration) -> (f64, f64) {
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
