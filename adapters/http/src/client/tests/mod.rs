//! Servers made of scripts: checks the bytes that a client sends, and its events for answers cut at any place.

mod challenges;
mod engine;
mod failures;
mod fetch;
mod old;
mod room;
mod sessions;
pub(crate) mod states;
mod streams;

use super::*;
use mcp_sansio::rpc::{Envelope, MessageShape};
use mcp_sansio::sink::{RequestInfo, Writer, whole};
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// The events, as text.
type Told = Vec<String>;

/// A client with sockets that end in strings.
struct Bench {
    remote: HttpTransport<'static>,
    /// The bytes sent on each open connection and not read yet.
    sent: [Option<Vec<u8>>; 4],
    told: Told,
    now: u64,
    /// Number of bytes delivered at once; 0 means all.
    step: usize,
    connections: usize,
}

/// Writes a message, with the head that a client gives it.
fn write(out: &mut dyn Out, message: &str) -> Result<(), FullError> {
    write_with(out, message, |out| out.put(message.as_bytes()))
}

/// Writes with `put`, and the head of `message`.
fn write_with(out: &mut dyn Out, message: &str, put: impl FnOnce(&mut Writer<'_>)) -> Result<(), FullError> {
    let Ok(envelope) = Envelope::parse(message.as_bytes()) else { return whole(out, MessageHead::Notification, put) };
    match envelope.shape() {
        MessageShape::Request { id, method } => {
            let text = |member: &str, out: &mut Writer<'_>| {
                let value =
                    envelope.params.and_then(|params| params.get(member)).filter(|value| value.text().is_some());
                value.map(|value| out.put(value.as_bytes())).is_some()
            };
            let version = envelope.meta.version.and_then(|version| version.text()).and_then(|version| version.plain());
            let (version, method) = (version.unwrap_or(""), method.plain().unwrap());
            whole(out, MessageHead::Request(&RequestInfo { id: id.u64().unwrap(), method, version, text: &text }), put)
        }
        MessageShape::Notification { method } if method.eq_str("notifications/initialized") => {
            whole(out, MessageHead::Initialized, put)
        }
        MessageShape::Notification { .. } => whole(out, MessageHead::Notification, put),
        _ => whole(out, MessageHead::Result, put),
    }
}

impl Bench {
    fn new(url: &str, config: HttpClientConfig) -> Bench {
        Bench {
            remote: HttpTransport::growing(url, config, 4).unwrap(),
            sent: [const { None }; 4],
            told: Vec::new(),
            now: 0,
            step: 0,
            connections: 0,
        }
    }

    fn send(&mut self, message: &str) {
        write(&mut self.remote, message).unwrap();
        self.turn();
    }

    /// Carries out actions, takes sent bytes and reads events, until there is nothing more to do.
    fn turn(&mut self) {
        loop {
            let mut any = self.listen();
            while let Some(action) = self.remote.next_action() {
                any = true;
                match action {
                    SocketAction::Connect(slot) => {
                        assert!(self.sent[slot].is_none(), "it is connected");
                        self.sent[slot] = Some(Vec::new());
                        self.connections += 1;
                        self.remote.connected(slot);
                    }
                    SocketAction::Close(slot) => {
                        assert!(self.sent[slot].take().is_some(), "it is not connected");
                    }
                }
            }
            for slot in 0..4 {
                let n = self.remote.pending(slot).len();
                if n > 0 {
                    any = true;
                    let sent = self.sent[slot].as_mut().expect("a connection");
                    sent.extend_from_slice(self.remote.pending(slot));
                    self.remote.sent(slot, n);
                }
            }
            if !any {
                break;
            }
        }
    }

    fn listen(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.remote.next_event() {
            any = true;
            self.told.push(match event {
                HttpClientEvent::Message { request, bytes } => {
                    format!("{} {}", id(request), String::from_utf8_lossy(bytes))
                }
                HttpClientEvent::Failed { request, why, detail } => format!("{} {why:?} {detail}", id(request)),
                HttpClientEvent::Challenge { slot, request, status, www_authenticate } => {
                    format!("{} challenge {slot} {status} {www_authenticate}", id(request))
                }
                HttpClientEvent::Skipped { request, why, start } => {
                    format!("{} skipped {why:?} {}", id(request), String::from_utf8_lossy(start))
                }
                HttpClientEvent::Ended => "ended".to_string(),
            });
        }
        any
    }

    /// Returns the one request that came on a connection.
    fn received(&mut self, slot: usize) -> String {
        let bytes = core::mem::take(self.sent[slot].as_mut().unwrap_or_else(|| panic!("{slot} is not connected")));
        String::from_utf8(bytes).unwrap()
    }

    /// Returns the connection on which the sent bytes begin with `start`.
    fn find(&self, start: &str) -> usize {
        let found = |sent: &Option<Vec<u8>>| sent.as_ref().is_some_and(|sent| sent.starts_with(start.as_bytes()));
        self.sent.iter().position(found).unwrap_or_else(|| panic!("no {start} in {:?}", self.sent))
    }

    fn reply(&mut self, slot: usize, bytes: &str) {
        let mut rest = bytes.as_bytes();
        while !rest.is_empty() {
            let space = self.remote.space(slot);
            let step = if self.step == 0 { rest.len() } else { self.step };
            let n = space.len().min(step).min(rest.len());
            if n == 0 {
                break; // it is closed
            }
            let (now, later) = rest.split_at(n);
            space[..n].copy_from_slice(now);
            rest = later;
            self.remote.filled(slot, n);
            self.turn();
        }
    }

    fn close(&mut self, slot: usize) {
        self.sent[slot] = None;
        self.remote.closed(slot);
        self.turn();
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.remote.expire(self.now);
        self.turn();
    }

    fn told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }
}

fn id(request: Option<u64>) -> String {
    request.map_or("-".to_string(), |id| id.to_string())
}

fn json(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn stream(body: &str) -> String {
    let chunk = if body.is_empty() { String::new() } else { chunk(body) };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"
    )
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn modern(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{META}}}}}"#)
}

fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// Runs a script with answers whole, byte by byte, and in other pieces.
fn in_pieces(url: &str, config: HttpClientConfig, script: impl Fn(&mut Bench)) {
    for step in [0, 1, 2, 3, 5, 7, 16, 61] {
        let mut bench = Bench::new(url, config);
        bench.step = step;
        script(&mut bench);
    }
}

/// Sends `initialize` and `notifications/initialized`, with a session. The stream for the server's own messages
/// opens at the end.
fn open_session(bench: &mut Bench, headers: &str) -> usize {
    bench.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
    let request = bench.received(0);
    assert!(!request.contains("Mcp-") && !request.contains("MCP-"), "{request}");
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    bench.reply(0, &json("200 OK", headers, answer));
    assert_eq!(bench.told(), [format!("0 {answer}")]);
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let request = bench.received(0);
    assert!(request.contains("\r\nMCP-Protocol-Version: 2025-06-18\r\n"), "{request}");
    assert_eq!(request.contains("\r\nMcp-Session-Id: s-1\r\n"), headers.contains("s-1"), "{request}");
    bench.reply(0, ACCEPTED);
    assert!(bench.told().is_empty());
    bench.find("GET /mcp HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n")
}

const SESSION: &str = "mcp-session-id: s-1\r\n";

fn legacy(id: u64, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

/// Returns a client with two connections.
fn web(info: &'static mcp_sansio::client::ClientInfo<'static>) -> HttpClient<'static> {
    let client = mcp_sansio::client::Client::growing(info).timeout(5_000);
    let mut web =
        HttpClient::growing(client, HttpTransport::growing("http://h/mcp", HttpClientConfig::DEFAULT, 2).unwrap());
    web.client.connect_as(Revision::V2026_07_28);
    web
}

const PROFILE: mcp_sansio::client::ClientInfo<'static> = mcp_sansio::client::ClientInfo::new("test", "1");
