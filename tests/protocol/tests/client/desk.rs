//! A client under test: the test sends the server's messages, and checks the client's messages and events.

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{Client, ClientEvent, ClientInfo, PendingId, Request, SendError, ServerRequestId};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Icon;
use mcp_sansio::sink::{FullError, Mark, MessageHead, Out, Sink};
use mcp_sansio_test_support::Oracle;
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;

/// A client that declares every capability.
pub(crate) const FULL: ClientInfo<'static> = ClientInfo::new("desk", "1.0")
    .title("The \"Desk\"")
    .description("What a test sits at")
    .website("https://example.com/desk")
    .icons(&[Icon::new("https://example.com/desk.png")])
    .feature(ClientCapability::SamplingTools)
    .feature(ClientCapability::SamplingContext)
    .feature(ClientCapability::ElicitForm)
    .feature(ClientCapability::ElicitUrl)
    .roots_changed()
    .experimental(Raw::constant(r#"{"x":{"a":1}}"#))
    .extensions(Raw::constant(r#"{"com.example/x":{}}"#), &["com.example/x"]);

/// A client that declares no capability.
pub(crate) const PLAIN: ClientInfo<'static> = ClientInfo::new("plain", "1");

/// The capabilities of a server that has all of them.
pub(crate) const OFFERS: &str = r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;

pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

thread_local! {
    /// The number of the write that is refused, and the number of writes so far.
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
    static WRITES: Cell<usize> = const { Cell::new(0) };
}

/// Plays a scenario, and plays it again for each of its writes, with this write refused: the outcome must be the
/// same.
pub(crate) fn everywhere(scenario: impl Fn() -> Desk) {
    let play = |refused| {
        REFUSED.set(refused);
        WRITES.set(0);
        let desk = scenario();
        REFUSED.set(None);
        desk.told
    };
    let told = play(None);
    for write in 0..WRITES.get() {
        assert_eq!(play(Some(write)), told, "write {write} is refused");
    }
}

/// A sink that refuses one write.
#[derive(Default)]
struct Tap(Vec<u8>);

impl Tap {
    fn count() -> Result<(), FullError> {
        let write = WRITES.get();
        WRITES.set(write + 1);
        if REFUSED.get() == Some(write) { Err(FullError::Now) } else { Ok(()) }
    }
}

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        Tap::count()?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

impl Out for Tap {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        Tap::count()
    }
    fn end(&mut self) {
        self.0.push(b'\n');
    }
    // Never 0: a refusal is `FullError::Now`, and the client tries again.
    fn mark(&self) -> Mark {
        Mark::new(self.0.len() + 1)
    }
    fn roll_back(&mut self, mark: Mark) {
        self.0.truncate(mark.at() - 1);
    }
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

/// A client, its messages and its events.
pub(crate) struct Desk {
    client: Client<'static>,
    out: Tap,
    now: u64,
    /// All messages and events, in order.
    told: Vec<String>,
    lines: Vec<Value>,
    events: Vec<String>,
    /// The questions of the last event with questions, and their params.
    pub(crate) asked: Vec<(ServerRequestId, String)>,
    /// The method of each question of the server, by its id.
    methods: HashMap<String, String>,
    oracle: Oracle,
    last_id: u64,
}

impl Desk {
    pub(crate) fn new(info: &'static ClientInfo<'static>) -> Desk {
        Desk::of(Client::new(info, Slots::growing(6)).held(Store::growing(16 << 20)).timeout(60_000))
    }

    pub(crate) fn of(client: Client<'static>) -> Desk {
        Desk {
            client,
            out: Tap::default(),
            now: 0,
            told: Vec::new(),
            lines: Vec::new(),
            events: Vec::new(),
            asked: Vec::new(),
            methods: HashMap::new(),
            oracle: Oracle::new(),
            last_id: 0,
        }
    }

    /// Returns a client of the newest revision, connected to a server with all capabilities.
    pub(crate) fn modern(info: &'static ClientInfo<'static>) -> Desk {
        let mut desk = Desk::new(info);
        desk.open_modern(OFFERS);
        desk
    }

    pub(crate) fn open_modern(&mut self, offers: &str) {
        self.open_modern_as(Revision::LATEST, offers);
    }

    /// Opens the connection to a server that has this revision alone.
    fn open_modern_as(&mut self, revision: Revision, offers: &str) {
        self.client.connect();
        self.pump();
        self.result(&format!(
            r#"{{"resultType":"complete","supportedVersions":["{revision}"],"capabilities":{offers},"ttlMs":0,"cacheScope":"private"}}"#
        ));
        self.forget();
    }

    /// Returns a client of this revision, connected to a server with all capabilities.
    pub(crate) fn legacy(info: &'static ClientInfo<'static>, revision: Revision) -> Desk {
        let mut desk = Desk::new(info);
        desk.open_legacy(revision, OFFERS);
        desk
    }

    pub(crate) fn open_legacy(&mut self, revision: Revision, offers: &str) {
        self.client.connect_as(revision);
        self.pump();
        self.initialized(revision.date(), offers);
        self.forget();
    }

    pub(crate) fn speaking(revision: Revision) -> Desk {
        let mut desk = Desk::new(&FULL);
        match revision.is_modern() {
            true => desk.open_modern_as(revision, OFFERS),
            false => desk.open_legacy(revision, OFFERS),
        }
        desk
    }

    /// Answers `initialize`.
    pub(crate) fn initialized(&mut self, version: &str, offers: &str) {
        self.result(&format!(
            r#"{{"protocolVersion":"{version}","capabilities":{offers},"serverInfo":{{"name":"s","version":"1"}}}}"#
        ));
    }

    pub(crate) fn client(&mut self) -> &mut Client<'static> {
        &mut self.client
    }

    /// Repeats an action until it is not refused for the moment.
    fn insist<T, E: PartialEq>(
        &mut self,
        full: E,
        mut what: impl FnMut(&mut Client<'static>, &mut Tap) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.out.0.len();
        let mut result = what(&mut self.client, &mut self.out);
        if matches!(&result, Err(error) if *error == full) {
            assert_eq!(self.out.0.len(), before, "what was refused leaves no bytes");
            result = what(&mut self.client, &mut self.out);
        }
        self.collect();
        result
    }

    /// Lets the client write its pending messages.
    pub(crate) fn pump(&mut self) {
        self.pump_once();
        // For a message that was refused after another one was written.
        self.pump_once();
    }

    fn pump_once(&mut self) {
        let mut seen = Vec::new();
        loop {
            match self.client.advance(self.now, &mut self.out) {
                Ok(Some(event)) => seen.extend(note(event, &mut self.asked)),
                Ok(None) => break,
                Err(FullError::Now) => {}
                Err(FullError::Never) => panic!("nothing is too large"),
            }
        }
        self.tell(seen);
        self.collect();
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now = self.now.wrapping_add(millis);
        self.pump();
    }

    /// Sets the clock.
    pub(crate) fn set_clock(&mut self, now: u64) {
        self.now = now;
        self.client.now = now;
    }

    /// The server sends a message.
    pub(crate) fn feed(&mut self, message: &str) {
        self.feed_on(None, message);
    }

    pub(crate) fn feed_on(&mut self, exchange: Option<u64>, message: &str) {
        if let Ok(value) = serde_json::from_str::<Value>(message)
            && let (Some(id), Some(method)) = (value.get("id"), value["method"].as_str())
        {
            self.methods.insert(id.to_string(), method.to_owned());
        }
        let mut events = Vec::new();
        let mut batch = None;
        let received = self.client.receive_on(exchange, message.as_bytes(), &mut self.out);
        let received = match received {
            Err(FullError::Now) => self.client.receive_on(exchange, message.as_bytes(), &mut self.out),
            other => other,
        };
        match received {
            Ok(Some(ClientEvent::Batch(array))) => batch = Some(array),
            Ok(Some(event)) => events.extend(note(event, &mut self.asked)),
            Ok(None) => {}
            Err(full) => panic!("{full}"),
        }
        self.tell(events);
        self.collect();
        for item in batch.iter().flat_map(Raw::items) {
            self.feed_on(exchange, item.as_str());
        }
        self.pump();
    }

    /// The server answers the last request.
    pub(crate) fn result(&mut self, result: &str) {
        self.result_of(self.last_id, result);
    }

    pub(crate) fn result_of(&mut self, id: u64, result: &str) {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    pub(crate) fn error(&mut self, code: i32, data: &str) {
        let data = if data.is_empty() { String::new() } else { format!(r#","data":{data}"#) };
        let id = self.last_id;
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"{data}}}}}"#));
    }

    /// The server sends a request with this id.
    pub(crate) fn ask(&mut self, id: &str, method: &str, params: &str) {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn try_send(&mut self, request: &Request<'_>) -> Result<PendingId, SendError> {
        self.insist(SendError::FullNow, |client, out| client.send(request, out))
    }

    pub(crate) fn send(&mut self, request: &Request<'_>) -> PendingId {
        self.try_send(request).expect("it can be sent")
    }

    pub(crate) fn reply(&mut self, question: ServerRequestId, reply: &ClientResult<'_>) -> Result<(), SendError> {
        let replied = self.insist(SendError::FullNow, |client, out| client.reply(question, reply, out));
        self.pump();
        replied
    }

    pub(crate) fn refuse(&mut self, question: ServerRequestId, refusal: &RpcError<'_>) -> Result<(), SendError> {
        let refused = self.insist(SendError::FullNow, |client, out| client.refuse(question, refusal, out));
        self.pump();
        refused
    }

    pub(crate) fn cancel(&mut self, token: PendingId) -> Result<(), SendError> {
        let done = self.insist(SendError::FullNow, |client, out| client.cancel(token, Some("enough"), out));
        self.pump();
        done
    }

    pub(crate) fn with<T>(
        &mut self,
        what: impl FnMut(&mut Client<'static>, &mut dyn Out) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let mut what = what;
        let done = self.insist(SendError::FullNow, |client, out| what(client, out));
        self.pump();
        done
    }

    /// Runs an action, without a turn of the client after it.
    pub(crate) fn client_and_out<T>(
        &mut self,
        what: impl FnMut(&mut Client<'static>, &mut dyn Out) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let mut what = what;
        self.insist(SendError::FullNow, |client, out| what(client, out))
    }

    /// Takes the messages written since the last call.
    pub(crate) fn said(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.lines)
    }

    /// Takes the only message written since the last call.
    pub(crate) fn one(&mut self) -> Value {
        let mut said = self.said();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    /// Takes the events since the last call.
    pub(crate) fn events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// Takes the only event since the last call.
    pub(crate) fn event(&mut self) -> String {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    /// Checks that there was no message and no event since the last call.
    pub(crate) fn quiet(&mut self) {
        assert_eq!((self.said(), self.events()), (vec![], vec![]));
    }

    /// Drops the messages and events so far.
    pub(crate) fn forget(&mut self) {
        self.lines.clear();
        self.events.clear();
    }

    /// The id of the last request.
    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    fn tell(&mut self, events: Vec<String>) {
        self.told.extend(events.iter().cloned());
        self.events.extend(events);
    }

    /// Takes the written bytes, and judges each message.
    fn collect(&mut self) {
        let bytes = std::mem::take(&mut self.out.0);
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: Value = serde_json::from_slice(line).expect("a line is JSON");
            self.judge(line, &value);
            if value.get("method").is_some() {
                self.last_id = value["id"].as_u64().unwrap_or(self.last_id);
            }
            self.told.push(String::from_utf8_lossy(line).into_owned());
            self.lines.push(value);
        }
    }

    fn judge(&self, line: &[u8], value: &Value) {
        if REFUSED.get().is_some() {
            return; // It was judged before.
        }
        let revision = match value["method"].as_str() {
            Some("server/discover") => {
                let version = &value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
                version.as_str().expect("a version")
            }
            Some("initialize") => value["params"]["protocolVersion"].as_str().expect("a version"),
            _ => self.client.revision().map_or("2025-11-25", Revision::date),
        };
        let answered = self.methods.get(&value["id"].to_string()).map(String::as_str);
        if let Err(wrong) = self.oracle.client_sends(revision, answered, line) {
            panic!("{wrong}");
        }
    }
}

/// Describes an event in words.
fn note(event: ClientEvent<'_>, asked: &mut Vec<(ServerRequestId, String)>) -> Option<String> {
    Some(match event {
        ClientEvent::Connected(connected) => format!("connected {}", connected.revision),
        ClientEvent::Unconnected(why) => format!("unconnected: {why}"),
        ClientEvent::Done { method, outcome: Ok(result), .. } => format!("{} ok {result}", name(method.name())),
        ClientEvent::Done { method, outcome: Err(failure), .. } => format!("{} failed: {failure}", name(method.name())),
        ClientEvent::Asked(questions) => {
            *asked = questions.questions().map(|q| (q.id, q.params.as_str().to_owned())).collect();
            format!("asked {:?}", questions.questions().map(|q| q.kind).collect::<Vec<_>>())
        }
        ClientEvent::Withdrawn { question, reason } => {
            format!("withdrawn {:?}{}", question.kind(), reason.map_or(String::new(), |reason| format!(": {reason}")))
        }
        ClientEvent::Progress { done, total, message, .. } => format!(
            "progress {} of {} {}",
            done,
            total.map_or("?".into(), |total| total.to_string()),
            message.map_or(String::new(), |message| message.to_string())
        ),
        ClientEvent::Log { level, logger, data, .. } => {
            format!("log {level:?} {}{data}", logger.map_or(String::new(), |logger| format!("of {logger}: ")))
        }
        ClientEvent::Listening(listening) => format!(
            "listening{}{}{} {}",
            if listening.tools { " tools" } else { "" },
            if listening.prompts { " prompts" } else { "" },
            if listening.resources { " resources" } else { "" },
            listening.uris
        ),
        ClientEvent::Changed { listen, what } => {
            format!("changed {what:?}{}", if listen.is_some() { " on a listen" } else { "" })
        }
        ClientEvent::ElicitationComplete { id } => format!("visited {id}"),
        ClientEvent::Notification { method, .. } => format!("notification {method}"),
        ClientEvent::Ignored(oddity) => format!("ignored {oddity:?}"),
        other => format!("{other:?}"),
    })
}

fn name(method: &str) -> &str {
    if method.is_empty() { "other" } else { method }
}
