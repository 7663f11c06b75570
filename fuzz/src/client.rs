//! A client over HTTP in lent memory, driven by operations made from the fuzzer's bytes.

use std::collections::BTreeSet;

use arbitrary::{Result, Unstructured};
use mcp_sansio::sink::{MessageHead, RequestInfo, Writer, whole};
use mcp_sansio_http::client::{
    ExchangeSlot, HttpClientConfig, HttpClientEvent, HttpTransport, SocketAction, TransportKind,
};

type Site<'m> = HttpTransport<'m>;

/// The state of the driver and of the simulated network.
#[derive(Default)]
struct World {
    now: u64,
    sent: u64,
    /// Requests without an outcome.
    open: BTreeSet<u64>,
    /// Requests whose answer came in an array. In some revisions that is their outcome; in others it comes
    /// later.
    batched: BTreeSet<u64>,
    /// Connections that exist or are being opened.
    links: [bool; 4],
    dialing: [bool; 4],
    /// The bytes that are still to be delivered on each connection.
    coming: [Vec<u8>; 4],
    challenged: Vec<usize>,
}

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// What a client sends, and the method and the version of a request.
fn message(u: &mut Unstructured<'_>, id: u64) -> Result<(MessageHead<'static>, String, Option<[&'static str; 2]>)> {
    let meta = if u.arbitrary()? { MODERN } else { r#""a":1"# };
    let method = *u.choose(&["tools/list", "tools/call", "ping", "resources/read", "initialize", "initialize"])?;
    let meta = if method == "initialize" { r#""a":1"# } else { meta };
    Ok(match u.int_in_range(0..=5)? {
        0 => (MessageHead::Initialized, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(), None),
        1 => (MessageHead::Result, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#.to_owned(), None),
        _ => (
            MessageHead::Notification,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"t","uri":"a:\u00e9","arguments":{{"r":"x","o":{{"n":5}}}},{meta}}}}}"#
            ),
            Some([method, if meta == MODERN { "2026-07-28" } else { "" }]),
        ),
    })
}

const TOOLS: &str = r#""tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"},"o":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}]"#;

/// Tools whose headers are wrong.
const WRONG: &str = r#""tools":[{"name":"w","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no name"}}}},{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":["string","null"],"x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},{"name":"u","inputSchema":{}}],"nextCursor":"2""#;

/// Makes a body, or the data of an event.
fn said(u: &mut Unstructured<'_>, world: &World) -> Result<String> {
    let id = if world.open.is_empty() || u.ratio(1, 8)? {
        u.int_in_range(0..=9)?
    } else {
        let all: Vec<u64> = world.open.iter().copied().collect();
        *u.choose(&all)?
    };
    Ok(match u.int_in_range(0..=9)? {
        0 => String::new(),
        1 => "{".to_owned(),
        2 => r#"{"jsonrpc":"2.0","method":"ping","id":5}"#.to_owned(),
        3 => r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}"#.to_owned(),
        4 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"m"}}}}"#),
        5 => format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#),
        6 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":"{}"}}}}"#, "x".repeat(u.int_in_range(0..=600)?)),
        kind => {
            let tools = if kind == 7 { WRONG } else { TOOLS };
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25",{tools}}}}}"#)
        }
    })
}

fn events(u: &mut Unstructured<'_>, world: &World) -> Result<String> {
    let mut all = String::new();
    for _ in 0..u.int_in_range(0..=4)? {
        all.push_str(u.choose(&[
            "",
            "",
            "id: 3\n",
            "retry: 20\n",
            "event: endpoint\ndata: /post?x\n\n",
            ": c\r\n",
            "\u{feff}",
        ])?);
        all.push_str(&format!("data: {}\n\n", said(u, world)?));
    }
    Ok(all)
}

/// Makes bytes that a server may send.
fn reply(u: &mut Unstructured<'_>, world: &World) -> Result<Vec<u8>> {
    let status = *u.choose(&[200, 200, 200, 200, 202, 204, 400, 401, 403, 404, 405, 500, 302, 307, 308, 100])?;
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    for header in [
        "Mcp-Session-Id: s\r\n",
        "WWW-Authenticate: Bearer\r\n",
        "Location: ../x/./y\r\n",
        "Retry-After: 3\r\n",
        "Connection: close\r\n",
    ] {
        if u.ratio(1, 3)? {
            head.push_str(header);
        }
    }
    let streams = u.arbitrary()?;
    let body = if streams { events(u, world)? } else { said(u, world)? };
    head.push_str(if streams { "Content-Type: text/event-stream\r\n" } else { "Content-Type: application/json\r\n" });
    Ok(match u.int_in_range(0..=9)? {
        0 => u.bytes(u.len().min(40))?.to_vec(),
        1 | 2 => format!("{head}\r\n{body}").into_bytes(),
        3..=5 => format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes(),
        n => {
            let (one, other) = body.split_at(if body.is_char_boundary(body.len() / 2) { body.len() / 2 } else { 0 });
            let mut all = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
            for part in [one, other].iter().filter(|part| !part.is_empty()) {
                all.push_str(&format!("{:x};e\r\n{part}\r\n", part.len()));
            }
            all.push_str(if n == 6 { "" } else { "0\r\nT: x\r\n\r\n" });
            all.into_bytes()
        }
    })
}

impl World {
    fn send(&mut self, remote: &mut Site<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        self.sent += 1;
        let (mut head, message, request) = message(u, self.sent)?;
        let text = |member: &str, out: &mut Writer<'_>| {
            let text = match member {
                "name" => r#""t""#,
                "uri" => r#""a:\u00e9""#,
                _ => return false,
            };
            out.put(text.as_bytes());
            true
        };
        let asks = request.map(|[method, version]| RequestInfo { id: self.sent, method, version, text: &text });
        if let Some(asks) = &asks {
            head = MessageHead::Request(asks);
        }
        let taken = whole(remote, head, |out| out.put(message.as_bytes())).is_ok();
        if taken && asks.is_some() {
            self.open.insert(self.sent);
        }
        Ok(())
    }

    fn act(&mut self, remote: &mut Site<'_>) {
        for round in 0.. {
            assert!(round < 1000, "actions without end");
            match remote.next_action() {
                Some(SocketAction::Connect(slot)) => {
                    assert!(!self.links[slot] && !self.dialing[slot], "it is connected");
                    self.dialing[slot] = true;
                }
                Some(SocketAction::Close(slot)) => {
                    self.links[slot] = false;
                    self.dialing[slot] = false;
                    self.coming[slot].clear();
                }
                None => break,
            }
        }
    }

    fn listen(&mut self, remote: &mut Site<'_>) {
        for round in 0.. {
            assert!(round < 10_000, "events without end");
            match remote.next_event() {
                None => break,
                Some(HttpClientEvent::Message { request, bytes }) => {
                    let value: serde_json::Value = serde_json::from_slice(bytes).expect("a message is JSON");
                    if let Some(id) = request {
                        self.hear(id, &value);
                    }
                }
                Some(HttpClientEvent::Failed { request: Some(id), .. }) => {
                    assert!(self.open.remove(&id), "{id} comes to two ends");
                }
                Some(HttpClientEvent::Challenge { slot, .. }) => self.challenged.push(slot),
                Some(_) => {}
            }
            self.act(remote);
        }
    }

    /// Handles the event that came for a request.
    fn hear(&mut self, id: u64, message: &serde_json::Value) {
        let of_any = |one: &serde_json::Value| one.get("error").is_some() && one["id"].is_null();
        let is_its = |one: &serde_json::Value| one.get("method").is_none() && one["id"].as_u64() == Some(id);
        if is_its(message) || (message.get("method").is_none() && of_any(message)) {
            assert!(self.open.remove(&id), "{id} comes to two ends");
        } else if message.as_array().is_some_and(|all| all.iter().any(is_its)) {
            assert!(self.open.contains(&id), "{id} comes to two ends");
            self.batched.insert(id);
        }
    }

    fn transfer(&mut self, remote: &mut Site<'_>, u: &mut Unstructured<'_>, slot: usize) -> Result<()> {
        if self.dialing[slot] {
            self.dialing[slot] = false;
            self.links[slot] = u.ratio(7, 8)?;
            if self.links[slot] { remote.connected(slot) } else { remote.failed(slot) }
        }
        if !self.links[slot] {
            return Ok(());
        }
        let n = remote.pending(slot).len();
        remote.sent(slot, if u.ratio(1, 8)? { n / 2 } else { n });
        if n > 0 || u.ratio(1, 4)? {
            let reply = reply(u, self)?;
            self.coming[slot].extend(reply);
        }
        let cut = u.int_in_range(1..=400)?;
        let space = remote.space(slot);
        let n = space.len().min(self.coming[slot].len()).min(cut);
        space[..n].copy_from_slice(&self.coming[slot][..n]);
        self.coming[slot].drain(..n);
        remote.filled(slot, n);
        if u.ratio(1, 12)? {
            self.links[slot] = false;
            self.coming[slot].clear();
            if u.arbitrary()? { remote.closed(slot) } else { remote.failed(slot) }
        }
        Ok(())
    }

    /// Ends the run: all connections are lost, time passes, and nothing may be left.
    fn finish(&mut self, remote: &mut Site<'_>) {
        for _ in 0..60 {
            self.listen(remote);
            self.act(remote);
            for slot in 0..4 {
                if core::mem::take(&mut self.dialing[slot]) || core::mem::take(&mut self.links[slot]) {
                    remote.failed(slot);
                }
                self.coming[slot].clear();
            }
            self.listen(remote);
            for slot in core::mem::take(&mut self.challenged) {
                remote.give_up(slot);
            }
            self.now += 1_000_000;
            remote.expire(self.now);
        }
        self.listen(remote);
        self.open.retain(|id| !self.batched.contains(id));
        assert!(self.open.is_empty(), "{:?} have no end", self.open);
        assert!(remote.is_idle(), "something is left");
    }
}

/// Runs the operations.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut inputs = [[0; 600]; 4];
    let mut messages = [[0; 1000]; 4];
    let mut outputs = [[0; 2000]; 4];
    let (mut texts, mut tools) = (vec![0; u.int_in_range(40..=600)?], vec![0; u.int_in_range(0..=300)?]);
    let mut memory = inputs.iter_mut().zip(&mut messages).zip(&mut outputs);
    let mut slots: [ExchangeSlot<'_>; 4] = core::array::from_fn(|_| {
        let ((input, message), output) = memory.next().expect("four of each");
        ExchangeSlot::new(input, message, output)
    });
    let transport =
        *u.choose(&[TransportKind::Detect, TransportKind::Detect, TransportKind::Streamable, TransportKind::Sse])?;
    let config = HttpClientConfig::DEFAULT.transport(transport);
    let mut remote =
        Site::new("http://h/mcp", config, &mut texts[..], &mut tools[..], &mut slots).expect("it is a URL");
    let mut world = World::default();
    while !u.is_empty() && world.sent < 100 {
        match u.int_in_range(0..=15)? {
            0..=3 => world.send(&mut remote, u)?,
            4..=10 => {
                let slot = u.int_in_range(0..=3)?;
                world.transfer(&mut remote, u, slot)?;
            }
            11 => {
                world.now += u.int_in_range(0..=2_000)?;
                remote.expire(world.now);
            }
            12 => {
                if let Some(slot) = world.challenged.pop() {
                    let _ = remote.set_header("Authorization", "Bearer x");
                    if u.arbitrary()? { remote.retry(slot) } else { remote.give_up(slot) }
                }
            }
            13 => {
                let id = u.int_in_range(0..=world.sent)?;
                let (known, open) = (remote.abandon(id), world.open.remove(&id));
                assert!(known == open || world.batched.contains(&id), "{id} is known to one of us only");
            }
            14 if u.ratio(1, 4)? => drop(remote.end_session()),
            _ => {}
        }
        for (tool, why) in remote.excluded() {
            assert!(tool.eq_str("w") || tool.eq_str("t"), "{tool} is left out: {why}");
        }
        world.act(&mut remote);
        world.listen(&mut remote);
    }
    world.finish(&mut remote);
    Ok(())
}
