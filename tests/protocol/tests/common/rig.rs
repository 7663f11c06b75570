//! The driver: bytes in, lines out, every line judged by the oracle.

use super::everything::{self, Deed, World};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::memory::Store;
use mcp_sansio::server::{MessageLimits, RespondError, Server, ServerChange};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, Storage};
use mcp_sansio_test_support::Oracle;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Storage of a fixed size, like a device's output buffer; `usize::MAX` for none.
#[derive(Debug)]
pub struct Window {
    bytes: Vec<u8>,
    limit: usize,
}

impl Window {
    pub fn of(limit: usize) -> Window {
        Window { bytes: Vec::new(), limit }
    }
}

impl Storage for Window {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn append(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= self.limit - self.bytes.len();
        if fits {
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }
    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
    fn drop_front(&mut self, n: usize) {
        self.bytes.drain(..n);
    }
    fn limit(&self) -> usize {
        self.limit
    }
}

/// The limit of `run` asking for room although all output was taken: more is an endless loop.
const PATIENCE: usize = 3;

pub struct Rig {
    pub session: LineServer<'static, LineSink<Window>>,
    pub service: Service<'static, World>,
    pub world: World,
    /// The limit of bytes that the other end takes at once.
    pub gulp: usize,
    judge: Option<Judge>,
    partial: Vec<u8>,
    lines: Vec<String>,
}

impl Rig {
    /// Returns a rig with eight requests in flight, the service of `everything`, and no limit on output.
    pub fn new() -> Rig {
        Rig::with(usize::MAX)
    }

    /// The service with everything behind an output window.
    pub fn with(window: usize) -> Rig {
        Rig::of(window, Rig::server(8))
    }

    /// Returns a rig with this limit of requests in flight.
    pub fn in_flight(most: usize) -> Rig {
        Rig::of(usize::MAX, Rig::server(most))
    }

    fn server(in_flight: usize) -> Server<'static> {
        Server::growing(MessageLimits { in_flight, ..MessageLimits::default() }).seal(&super::toy_seal::SEAL)
    }

    /// Returns a rig with this server.
    pub fn of(window: usize, server: Server<'static>) -> Rig {
        let out = LineSink::new(Window { bytes: Vec::new(), limit: window });
        let input = LineBuffer::new(Store::growing(1 << 20));
        Rig {
            session: LineServer::new(input, server, out),
            service: everything::service(),
            world: World::default(),
            gulp: usize::MAX,
            judge: Some(Judge::new(Oracle::new())),
            partial: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Replaces the service; the handlers' state stays.
    pub fn serving(mut self, service: Service<'static, World>) -> Self {
        self.service = service;
        self
    }

    /// Sets the limit of an input line.
    pub fn input(mut self, limit: usize) -> Self {
        let out = LineSink::new(Window { bytes: Vec::new(), limit: self.session.out.capacity_of() });
        self.session = LineServer::new(LineBuffer::new(Store::growing(limit)), Rig::server(8), out);
        self
    }

    /// Judges no lines: they were judged in another run, with another cutting.
    pub fn unjudged(mut self) -> Self {
        self.judge = None;
        self
    }

    /// Judges with another oracle.
    pub fn judged_by(mut self, oracle: Oracle) -> Self {
        self.judge = Some(Judge::new(oracle));
        self
    }

    /// Opens the connection with `initialize` from a client with all capabilities; sends nothing for 2026-07-28.
    pub fn opened(self, revision: &str) -> Self {
        self.opened_by(revision, super::all_capabilities(revision))
    }

    pub fn opened_by(mut self, revision: &str, capabilities: Value) -> Self {
        if !super::is_modern(revision) {
            let reply = self.one(&super::initialize(revision, capabilities));
            assert_eq!(super::parse(&reply)["result"]["protocolVersion"], revision);
            assert!(self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
        }
        self
    }

    /// Feeds a line (and a newline) and returns the lines of output.
    pub fn say(&mut self, line: &str) -> Vec<String> {
        self.feed(line.as_bytes());
        self.feed(b"\n");
        self.take()
    }

    /// Feeds a line that has exactly one answer, and returns the answer.
    pub fn one(&mut self, line: &str) -> String {
        let mut lines = self.say(line);
        assert_eq!(lines.len(), 1, "to {line}\n{lines:#?}");
        lines.remove(0)
    }

    /// Feeds bytes in one piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(judge) = &mut self.judge {
            judge.hear(bytes);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let space = self.session.space();
            assert!(!space.is_empty(), "no space although everything was handled");
            let n = space.len().min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            self.session.filled(n);
            rest = &rest[n..];
            self.work();
        }
    }

    /// Feeds a line and lets the session work once; its output stays in the window.
    pub fn feed_and_keep(&mut self, line: &str) {
        if let Some(judge) = &mut self.judge {
            judge.hear(&[line.as_bytes(), b"\n"].concat());
        }
        for byte in line.bytes().chain([b'\n']) {
            self.session.space()[0] = byte;
            self.session.filled(1);
        }
        let _ = self.session.run(&self.service, &mut self.world);
    }

    /// Ends the input and returns the remaining output.
    pub fn end(&mut self) -> Vec<String> {
        self.session.end_of_input();
        self.work();
        self.take()
    }

    /// Lets the session work until it waits for input, and does the actions that handlers have put off.
    pub fn work(&mut self) {
        loop {
            self.run();
            let Some(deed) = (!self.world.deeds.is_empty()).then(|| self.world.deeds.remove(0)) else { return };
            self.act(deed);
        }
    }

    fn run(&mut self) {
        let mut stuck = 0;
        loop {
            let next = self.session.run(&self.service, &mut self.world);
            let taken = self.drain(if next == NextStep::Read { usize::MAX } else { self.gulp });
            match next {
                NextStep::Read => return,
                _ if taken > 0 => stuck = 0,
                _ => stuck += 1,
            }
            assert!(stuck < PATIENCE, "the session asks for room again and again");
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Publish(what) => match what.as_str() {
                "tools" => self.session.server.publish(ServerChange::Tools),
                "prompts" => self.session.server.publish(ServerChange::Prompts),
                "resources" => self.session.server.publish(ServerChange::Resources),
                uri => self.session.server.publish(ServerChange::Resource(uri)),
            },
            Deed::Answer(token, text) => loop {
                let answered =
                    self.session.answer(&self.service, &mut self.world, token, |_, call| call.text(text.as_str()));
                match answered {
                    Err(RespondError::FullNow) => assert!(self.drain(usize::MAX) > 0, "full, but nothing is pending"),
                    _ => break,
                }
            },
        }
    }

    fn drain(&mut self, most: usize) -> usize {
        let pending = self.session.out.pending();
        let n = pending.len().min(most);
        let bytes = pending[..n].to_vec();
        self.session.out.sent(n);
        for byte in bytes {
            if byte == b'\n' {
                self.line();
            } else {
                self.partial.push(byte);
            }
        }
        n
    }

    fn line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        if let Some(judge) = &mut self.judge {
            judge.line(&line);
        }
        self.lines.push(String::from_utf8(line).expect("UTF-8"));
    }

    /// Takes the lines since the last call. When the session waits for input, no line may be half written.
    pub fn take(&mut self) -> Vec<String> {
        assert!(self.partial.is_empty(), "half a line: {}", String::from_utf8_lossy(&self.partial));
        std::mem::take(&mut self.lines)
    }
}

trait CapacityOf {
    fn capacity_of(&self) -> usize;
}

impl CapacityOf for LineSink<Window> {
    fn capacity_of(&self) -> usize {
        use mcp_sansio::sink::Out;
        match self.capacity() {
            usize::MAX => usize::MAX,
            capacity => capacity + 1,
        }
    }
}

/// Finds the revision that each line must be judged by, from the messages of the client.
struct Judge {
    oracle: Oracle,
    heard: Vec<u8>,
    negotiated: Option<String>,
    /// Open requests by their ids: revision (if modern) and method.
    asked: HashMap<String, (bool, String)>,
    tokens: HashMap<String, bool>,
    /// The ids of all listens.
    listens: HashSet<String>,
    /// The ids of all questions.
    questions: HashSet<String>,
}

const D: &str = "2025-11-25";

impl Judge {
    fn new(oracle: Oracle) -> Judge {
        Judge {
            oracle,
            heard: Vec::new(),
            negotiated: None,
            asked: HashMap::new(),
            tokens: HashMap::new(),
            listens: HashSet::new(),
            questions: HashSet::new(),
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                self.heard.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.heard);
            match serde_json::from_slice(&line) {
                // In revisions without batches, a batch contains no requests.
                Ok(Value::Array(_)) if self.negotiated.as_deref().is_none_or(|revision| revision > "2025-03-26") => {}
                Ok(Value::Array(messages)) => messages.iter().for_each(|message| self.message(message)),
                Ok(message) => self.message(&message),
                Err(_) => self.unreadable(&line),
            }
        }
    }

    /// A line that serde_json refuses (numbers beyond an f64, lone surrogates) may still be a request.
    fn unreadable(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let member = |key: &str| line.split_once(key)?.1.split([',', '}']).next().map(|value| value.trim_matches('"'));
        if let (Some(id), Some(method)) = (member("\"id\":"), member("\"method\":")) {
            let modern = line.contains("io.modelcontextprotocol/protocolVersion");
            self.asked.entry(id.to_owned()).or_insert((modern, method.to_owned()));
        }
    }

    fn message(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { return };
        let meta = &message["params"]["_meta"];
        let modern = meta.get("io.modelcontextprotocol/protocolVersion").is_some()
            || meta.get("io.modelcontextprotocol/clientCapabilities").is_some();
        self.asked.entry(id.to_string()).or_insert((modern, method.to_owned()));
        if method == "subscriptions/listen" {
            self.listens.insert(id.to_string());
        }
        if let Some(token) = meta.get("progressToken") {
            self.tokens.insert(token.to_string(), modern);
        }
    }

    fn line(&mut self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
        let id = message["id"].to_string();
        if self.asked.get(&id).is_some_and(|(modern, method)| !modern && method == "initialize")
            && let Some(version) = message["result"]["protocolVersion"].as_str()
        {
            self.negotiated = Some(version.to_owned());
        }
        let revision = self.revision(&message);
        let asked = &self.asked;
        let method_of = |id: &Value| asked.get(&id.to_string()).map(|(_, method)| method.clone());
        self.oracle.server_answers(&revision, &method_of, line).unwrap_or_else(|wrong| panic!("{wrong}"));
        let messages = message.as_array().cloned().unwrap_or_else(|| vec![message]);
        for message in messages {
            match message["method"].as_str() {
                Some("notifications/cancelled") => self.cancelled(&message["params"]["requestId"].to_string()),
                Some(_) if message.get("id").is_some() => drop(self.questions.insert(message["id"].to_string())),
                _ => {}
            }
            let duplicate = message["error"]["message"].as_str().is_some_and(|m| m.contains("in use"));
            if message.get("method").is_none() && !duplicate {
                self.asked.remove(&message["id"].to_string());
            }
        }
    }

    /// A server cancels its own requests; from 2026-07-28 on it has none and cancels only subscriptions.
    fn cancelled(&self, id: &str) {
        let its_own = self.questions.contains(id) || self.listens.contains(id);
        assert!(its_own, "{id} is cancelled: neither a question of the server's nor a listen");
    }

    fn revision(&self, message: &Value) -> String {
        let legacy = self.negotiated.clone().unwrap_or(D.into());
        let modern = match message["method"].as_str() {
            _ if message.is_array() => false,
            None => self.asked.get(&message["id"].to_string()).is_some_and(|(modern, _)| *modern),
            Some("notifications/progress") => self.tokens[&message["params"]["progressToken"].to_string()],
            Some("notifications/message") => self.negotiated.is_none(),
            // Before 2026-07-28 it belongs to a question, from then on to a subscription.
            Some("notifications/cancelled") => self.listens.contains(&message["params"]["requestId"].to_string()),
            Some(_) => message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some(),
        };
        if modern { super::MODERN.into() } else { legacy }
    }
}
