//! A client at a desk: say what the server sends, see what the client writes and tells.

use mcp_sansio::client::{Client, Event, Profile, QuestionId, Request, SendError, Token};
use mcp_sansio::client::{Engine, reply::Refusal, reply::Reply};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientFeature;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::Icon;
use mcp_sansio::sink::{Full, Kind, Mark, Out, Sink};
use mcp_sansio_test_support::Oracle;
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;

/// A client that has and says everything.
pub(crate) const FULL: Profile<'static> = Profile::new("desk", "1.0")
    .title("The \"Desk\"")
    .description("What a test sits at")
    .website("https://example.com/desk")
    .icons(&[Icon::new("https://example.com/desk.png")])
    .feature(ClientFeature::SamplingTools)
    .feature(ClientFeature::SamplingContext)
    .feature(ClientFeature::ElicitForm)
    .feature(ClientFeature::ElicitUrl)
    .roots_changed()
    .experimental(Raw::constant(r#"{"x":{"a":1}}"#))
    .extensions(Raw::constant(r#"{"com.example/x":{}}"#));

/// A client that can be asked for nothing.
pub(crate) const PLAIN: Profile<'static> = Profile::new("plain", "1");

/// A server that has everything.
pub(crate) const OFFERS: &str = r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;

pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

thread_local! {
    /// Which write is refused, and how many there were.
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
    static WRITES: Cell<usize> = const { Cell::new(0) };
}

/// Plays a scenario, and plays it again for each of its writes, which is refused then: nothing else may come of it.
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
    fn count() -> Result<(), Full> {
        let write = WRITES.get();
        WRITES.set(write + 1);
        if REFUSED.get() == Some(write) { Err(Full::Now) } else { Ok(()) }
    }
}

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        Tap::count()?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        usize::MAX
    }
}

impl Out for Tap {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        Tap::count()
    }
    fn end(&mut self) {
        self.0.push(b'\n');
    }
    // Never 0: what is refused is refused for now.
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

/// A client, what it wrote and what it told.
pub(crate) struct Desk {
    client: Client<'static, 6>,
    out: Tap,
    now: u64,
    /// All of it, in order.
    told: Vec<String>,
    lines: Vec<Value>,
    events: Vec<String>,
    /// The questions of the last event that had some, with their params.
    pub(crate) asked: Vec<(QuestionId, String)>,
    /// What the server asked under an id.
    methods: HashMap<String, String>,
    oracle: Oracle,
    last_id: u64,
}

impl Desk {
    pub(crate) fn new(profile: &'static Profile<'static>) -> Desk {
        Desk::of(Client::growing(profile).timeout(60_000))
    }

    pub(crate) fn of(client: Client<'static, 6>) -> Desk {
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

    /// One that speaks 2026-07-28 with a server that has everything.
    pub(crate) fn modern(profile: &'static Profile<'static>) -> Desk {
        let mut desk = Desk::new(profile);
        desk.open_modern(OFFERS);
        desk
    }

    pub(crate) fn open_modern(&mut self, offers: &str) {
        self.client.connect();
        self.pump();
        self.result(&format!(
            r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{offers},"ttlMs":0,"cacheScope":"private"}}"#
        ));
        self.forget();
    }

    /// One that speaks that revision with a server that has everything.
    pub(crate) fn legacy(profile: &'static Profile<'static>, revision: Revision) -> Desk {
        let mut desk = Desk::new(profile);
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
        if revision.is_modern() { Desk::modern(&FULL) } else { Desk::legacy(&FULL, revision) }
    }

    /// Answers `initialize`.
    pub(crate) fn initialized(&mut self, version: &str, offers: &str) {
        self.result(&format!(
            r#"{{"protocolVersion":"{version}","capabilities":{offers},"serverInfo":{{"name":"s","version":"1"}}}}"#
        ));
    }

    pub(crate) fn client(&mut self) -> &mut Engine<'static> {
        &mut self.client
    }

    /// Does something until it is not refused for the moment.
    fn insist<T, E: PartialEq>(
        &mut self,
        full: E,
        mut what: impl FnMut(&mut Engine<'static>, &mut Tap) -> Result<T, E>,
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

    /// Lets the client say what it has to say.
    pub(crate) fn pump(&mut self) {
        self.pump_once();
        // What was refused after something else had been written.
        self.pump_once();
    }

    fn pump_once(&mut self) {
        let mut seen = Vec::new();
        loop {
            match self.client.advance(self.now, &mut self.out) {
                Ok(Some(event)) => seen.extend(note(event, &mut self.asked)),
                Ok(None) => break,
                Err(Full::Now) => {}
                Err(Full::Never) => panic!("nothing is too large"),
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
        self.client.set_now(now);
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
            Err(Full::Now) => self.client.receive_on(exchange, message.as_bytes(), &mut self.out),
            other => other,
        };
        match received {
            Ok(Some(Event::Batch(array))) => batch = Some(array),
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

    /// The server asks, under an id.
    pub(crate) fn ask(&mut self, id: &str, method: &str, params: &str) {
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn try_send(&mut self, request: &Request<'_>) -> Result<Token, SendError> {
        self.insist(SendError::FullNow, |client, out| client.send(request, out))
    }

    pub(crate) fn send(&mut self, request: &Request<'_>) -> Token {
        self.try_send(request).expect("it can be sent")
    }

    pub(crate) fn reply(&mut self, question: QuestionId, reply: &Reply<'_>) -> Result<(), SendError> {
        let replied = self.insist(SendError::FullNow, |client, out| client.reply(question, reply, out));
        self.pump();
        replied
    }

    pub(crate) fn refuse(&mut self, question: QuestionId, refusal: &Refusal<'_>) -> Result<(), SendError> {
        let refused = self.insist(SendError::FullNow, |client, out| client.refuse(question, refusal, out));
        self.pump();
        refused
    }

    pub(crate) fn cancel(&mut self, token: Token) -> Result<(), SendError> {
        let done = self.insist(SendError::FullNow, |client, out| client.cancel(token, Some("enough"), out));
        self.pump();
        done
    }

    pub(crate) fn with<T>(
        &mut self,
        what: impl FnMut(&mut Engine<'static>, &mut dyn Out) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let mut what = what;
        let done = self.insist(SendError::FullNow, |client, out| what(client, out));
        self.pump();
        done
    }

    /// Does something, without a turn of the client after it.
    pub(crate) fn client_and_out<T>(
        &mut self,
        what: impl FnMut(&mut Engine<'static>, &mut dyn Out) -> Result<T, SendError>,
    ) -> Result<T, SendError> {
        let mut what = what;
        self.insist(SendError::FullNow, |client, out| what(client, out))
    }

    /// The messages written since the last look.
    pub(crate) fn said(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.lines)
    }

    /// The one message written since the last look.
    pub(crate) fn one(&mut self) -> Value {
        let mut said = self.said();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    /// What was told since the last look.
    pub(crate) fn events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }

    /// The one thing told since the last look.
    pub(crate) fn event(&mut self) -> String {
        let mut events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    /// Nothing was written and nothing told since the last look.
    pub(crate) fn quiet(&mut self) {
        assert_eq!((self.said(), self.events()), (vec![], vec![]));
    }

    /// What has been written and told so far is of no interest.
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

    /// Takes what was written, and judges it.
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
            Some("server/discover") => "2026-07-28",
            Some("initialize") => value["params"]["protocolVersion"].as_str().expect("a version"),
            _ => self.client.revision().map_or("2025-11-25", Revision::date),
        };
        let answered = self.methods.get(&value["id"].to_string()).map(String::as_str);
        if let Err(wrong) = self.oracle.client_sends(revision, answered, line) {
            panic!("{wrong}");
        }
    }
}

/// What an event says, in words.
fn note(event: Event<'_>, asked: &mut Vec<(QuestionId, String)>) -> Option<String> {
    Some(match event {
        Event::Connected(connected) => format!("connected {}", connected.revision),
        Event::Unconnected(why) => format!("unconnected: {why}"),
        Event::Done { method, outcome: Ok(result), .. } => format!("{} ok {result}", name(method.name())),
        Event::Done { method, outcome: Err(failure), .. } => format!("{} failed: {failure}", name(method.name())),
        Event::Asked(questions) => {
            *asked = questions.questions().map(|q| (q.id, q.params.as_str().to_owned())).collect();
            format!("asked {:?}", questions.questions().map(|q| q.kind).collect::<Vec<_>>())
        }
        Event::Withdrawn(question) => format!("withdrawn {:?}", question.kind()),
        Event::Progress(report) => format!(
            "progress {} of {} {}",
            report.done,
            report.total.map_or("?".into(), |total| total.to_string()),
            report.message.map_or(String::new(), |message| message.to_string())
        ),
        Event::Log(log) => format!("log {:?} {}", log.level, log.data),
        Event::Listening(listening) => format!(
            "listening{}{}{} {}",
            if listening.tools { " tools" } else { "" },
            if listening.prompts { " prompts" } else { "" },
            if listening.resources { " resources" } else { "" },
            listening.uris
        ),
        Event::Changed { listen, what } => {
            format!("changed {what:?}{}", if listen.is_some() { " on a listen" } else { "" })
        }
        Event::Visited { id } => format!("visited {id}"),
        Event::Notification { method, .. } => format!("notification {method}"),
        Event::Ignored(oddity) => format!("ignored {oddity:?}"),
        other => format!("{other:?}"),
    })
}

fn name(method: &str) -> &str {
    if method.is_empty() { "other" } else { method }
}
