//! A bridge, a host and a server.

use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo, LineClient};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::LineSink;
use mcp_sansio_bridge::{Bridge, BridgeLimits};
use serde_json::{Value, json};

/// The capabilities of the server.
pub(crate) const OFFERS: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}"#;

/// A host that can answer every question.
static INFO: ClientInfo<'static> = ClientInfo::new("host", "1")
    .feature(mcp_sansio::protocol::ClientCapability::Sampling)
    .feature(mcp_sansio::protocol::ClientCapability::ElicitUrl)
    .feature(mcp_sansio::protocol::ClientCapability::Roots);

type Line = LineClient<'static, LineSink<Vec<u8>>>;

pub(crate) struct Rig {
    pub(crate) bridge: Bridge,
    client: Option<Line>,
    /// The description of the client behind.
    pub(crate) info: &'static ClientInfo<'static>,
    pub(crate) now: u64,
    server: Revision,
    /// The last id of the host.
    pub(crate) last: u64,
    /// The messages that the host has got and not looked at.
    pub(crate) got: Vec<Value>,
    /// The lines that both have got, as they are.
    pub(crate) wire: String,
    /// The messages that the server has got and not looked at; the test answers them.
    pub(crate) heard: Vec<Value>,
}

impl Rig {
    pub(crate) fn new(server: Revision, limits: BridgeLimits) -> Self {
        Rig::of(server, Bridge::new(limits))
    }

    /// A rig around a bridge.
    pub(crate) fn of(server: Revision, bridge: Bridge) -> Self {
        Rig {
            bridge,
            client: None,
            info: &INFO,
            now: 0,
            server,
            last: 0,
            got: Vec::new(),
            wire: String::new(),
            heard: Vec::new(),
        }
    }

    /// A host and a server that are open.
    pub(crate) fn open(host: Revision, server: Revision) -> Self {
        let mut rig = Rig::new(server, BridgeLimits::DEFAULT);
        let opening = rig.opening(host);
        rig.up();
        assert!(rig.answer(opening)["result"].is_object());
        rig.heard.clear();
        rig
    }

    /// Sends the first request of a host, and returns its id.
    pub(crate) fn opening(&mut self, host: Revision) -> u64 {
        if host.is_modern() {
            return self.send("server/discover", json!({}), true);
        }
        let info = json!({"name": "host", "version": "1"});
        let params = json!({"protocolVersion": host.date(), "capabilities": {}, "clientInfo": info});
        let id = self.send("initialize", params, false);
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        id
    }

    /// Sends a request of the host.
    pub(crate) fn send(&mut self, method: &str, mut params: Value, modern: bool) -> u64 {
        self.last += 1;
        if modern {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
        }
        let id = self.last;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub(crate) fn call(&mut self, modern: bool) -> u64 {
        self.send("tools/call", json!({"name": "t"}), modern)
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.act(|bridge, link, now| bridge.line(line.as_bytes(), link, now).unwrap());
    }

    /// Calls the bridge with the client, if there is one.
    pub(crate) fn act<T>(&mut self, act: impl FnOnce(&mut Bridge, Option<&mut ClientHandle<'_, '_>>, u64) -> T) -> T {
        let now = self.now;
        let set_now = |client: &mut Line| client.client.now = now;
        self.client.iter_mut().for_each(set_now);
        let done = match self.client.as_mut().map(LineClient::handle) {
            Some(mut link) => act(&mut self.bridge, Some(&mut link), self.now),
            None => act(&mut self.bridge, None, self.now),
        };
        self.run();
        done
    }

    /// Runs the client, and takes what both ends got.
    fn run(&mut self) {
        if let Some(client) = &mut self.client {
            let (bridge, now) = (&mut self.bridge, self.now);
            let _ = client.run(now, &mut |event: ClientEvent<'_>, link: &mut ClientHandle<'_, '_>| {
                bridge.event(event, link, now)
            });
            let sent = client.out.pending().to_vec();
            client.out.sent(sent.len());
            self.wire.push_str(std::str::from_utf8(&sent).unwrap());
            let lines = sent.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.heard.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        }
        loop {
            let lines = self.bridge.pending().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.got.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
            self.wire.push_str(std::str::from_utf8(self.bridge.pending()).unwrap());
            let n = self.bridge.pending().len();
            self.bridge.sent(n);
            if !self.bridge.pull() && self.bridge.pending().is_empty() {
                break;
            }
        }
        if !self.bridge.is_up() {
            self.client = None;
        }
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.act(|bridge, link, now| bridge.expire(link, now));
    }

    /// Opens a connection as soon as the bridge wants one, and answers its opening.
    pub(crate) fn up(&mut self) {
        self.begin();
        let opening = self.heard.pop().expect("an opening");
        let info = json!({"name": "s", "version": "1"});
        let result = match self.server.is_modern() {
            true => {
                format!(r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{OFFERS}}}"#)
            }
            false => {
                format!(r#"{{"protocolVersion":"{}","capabilities":{OFFERS},"serverInfo":{info}}}"#, self.server.date())
            }
        };
        self.serve(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, opening["id"]));
    }

    /// Opens a connection without an answer of the server.
    pub(crate) fn begin(&mut self) {
        while !self.bridge.wants_connection() {
            self.now = self.bridge.next_deadline().expect("it never wants one").max(self.now);
            self.wait(0);
        }
        let client = Client::new(self.info, Slots::growing(64)).held(Store::growing(1 << 20));
        let mut client = LineClient::new(LineBuffer::new(Store::growing(1 << 20)), client, LineSink::new(Vec::new()));
        match self.server.is_modern() {
            true => client.client.connect(),
            false => client.client.connect_as(self.server),
        }
        self.client = Some(client);
        self.run();
    }

    /// Gives a line of the server to the client.
    pub(crate) fn serve(&mut self, line: &str) {
        self.feed(format!("{line}\n").as_bytes());
    }

    /// Gives bytes of the server to the client.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(client) = &mut self.client else { return };
            let space = client.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            client.filled(n);
            bytes = &bytes[n..];
            self.run();
        }
    }

    /// Answers a request that the server has heard.
    pub(crate) fn result(&mut self, heard: &Value, result: &str) {
        self.serve(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, heard["id"]));
    }

    /// Returns the only request with this method that the server has heard.
    pub(crate) fn one(&mut self, method: &str) -> Value {
        let mut found: Vec<_> = self.heard.iter().filter(|message| message["method"] == method).cloned().collect();
        assert_eq!(found.len(), 1, "{method}: {:?}", self.heard);
        self.heard.clear();
        found.remove(0)
    }

    /// Ends the connection.
    pub(crate) fn lose(&mut self) {
        if let Some(client) = &mut self.client {
            client.end_of_input();
        }
        self.run();
        assert!(self.client.is_none());
    }

    /// Returns the answers with this id.
    pub(crate) fn answers(&self, id: u64) -> Vec<&Value> {
        self.got.iter().filter(|message| message["id"] == id && message.get("method").is_none()).collect()
    }

    pub(crate) fn answer(&self, id: u64) -> Value {
        let answers = self.answers(id);
        assert_eq!(answers.len(), 1, "{id}: {:?}", self.got);
        answers[0].clone()
    }

    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.answers(id).is_empty()
    }

    /// Returns how many messages of this method the host has got.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.got.iter().filter(|message| message["method"] == method).count()
    }
}
