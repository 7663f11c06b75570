//! Two processes of a fleet, and an engine between them that hands in anything: what they have said, parts of it, again, at another
//! place or damaged, messages and entries of logs from made-up fields, and processes that come and go.
//!
//! Clients resume streams at the other process. As long as no entry of a log is damaged or made up, an event id names one message,
//! wherever it is read, and none is left out between two of a stream.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use mcp_sansio::FullError;
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MessageLimits, RespondError, Server, ServerChange};
use mcp_sansio::service::{Call, Extension, HandlerResult, KeptTopic, Service, Tool, Topic};
use mcp_sansio::sink::{LineSink, Sink};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, SessionSeal, StreamId,
    StreamStatus,
};
use mcp_sansio_http::fleet::{Arrival, Engine, FleetLimits, ProcessTag, Recipients};
use mcp_sansio_http::seal::HmacSeal;

use crate::event_fields;
use crate::service::{PROMPTS, RESOURCES, State, TEMPLATES, ask, later, message, now, source, stream};

const LIMITS: FleetLimits = FleetLimits {
    outbox: 24,
    outbox_bytes: 16_000,
    within: 1_000,
    turn: 4,
    processes: 4,
    session_entries: 4,
    session_bytes: 600,
    settled: 3,
    settle_within: 300,
    join_within: 500,
    waiting: 4,
    waiting_share: 2,
    waiting_bytes: 2_000,
    relayed: 3,
    relay_bytes: 2_000,
    relay_within: 500,
    states_bytes: 1_000,
    keep: 60_000,
    principals: 3,
    copied_stream: 2_000,
    copied: 4_000,
    followed_share: 2,
    followed: 3,
};
const PLACES: EndpointLimits =
    EndpointLimits { sessions: 4, streams: 4, log: 16_000, stream: 8_000, keep: 4_000, unread: 5 };
/// The most bytes that the processes of a run and the driver have in memory, with all that is on its way.
const MEMORY: usize = 512 << 10;
/// The most that the driver keeps of each thing.
const KEPT: usize = 24;

const CLIENTS: [Option<&str>; 3] = [None, Some("ann"), Some("bob")];
/// Members and keys of topics, also unknown ones.
const KEYS: [&str; 4] = ["0", "1", "\u{e9}\"", ""];

/// `give`: is answered by the other process, or from what that has kept.
fn give(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let key = call.arguments().get("key").and_then(|key| key.text()?.plain()).unwrap_or("");
    let process = call.arguments().get("to").and_then(|to| to.u64()).unwrap_or(2);
    match call.kept() {
        Some(kept) => call.text(kept.as_str()),
        None if call.can_relay() => call.relay(process as u32, key),
        None => call.text("here"),
    }
}

const KEPT_TOPIC: Topic<State> = Topic::new("things", "notifications/things", |_, key, params| params.text("key", key))
    .outlives(
        |_, key| (key != "0").then_some(KeptTopic { principal: (key == "1").then_some("ann"), keep: 5_000 }),
        |kept: Raw<'_>, params: &mut Object<'_, '_>| match kept.get("key") {
            Some(key) => params.raw("ended", key),
            None => Err(FullError::Never),
        },
    );

static EXTENSIONS: [Extension<State>; 1] = [Extension::new("com.example/things").topics(&[KEPT_TOPIC])];

/// What the engine of a process does: it keeps what the process says, and has arrivals for it.
struct Hands {
    tag: ProcessTag,
    arrivals: VecDeque<Arrival>,
    said: VecDeque<(Recipients, Vec<u8>)>,
    logs: VecDeque<(String, u64, Vec<u8>)>,
    reads: VecDeque<String>,
}

/// Keeps the last of some things.
fn keep<T>(list: &mut VecDeque<T>, thing: T) {
    if list.len() >= KEPT {
        list.pop_front();
    }
    list.push_back(thing);
}

impl Engine for Hands {
    fn tag(&self) -> ProcessTag {
        self.tag
    }
    fn publish(&mut self, to: Recipients, message: &[u8], _: u64) {
        keep(&mut self.said, (to, message.to_vec()));
    }
    fn take(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }
    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], _: u64) {
        keep(&mut self.logs, (log.to_owned(), id.unwrap_or(1), entry.to_vec()));
    }
    fn replace(&mut self, log: &str, entry: &[u8], _: u64) {
        self.logs.retain(|(name, ..)| name != log);
        keep(&mut self.logs, (log.to_owned(), 1, entry.to_vec()));
    }
    fn read(&mut self, log: &str, _: u64, _: Option<u64>) {
        keep(&mut self.reads, log.to_owned());
    }
    fn stop(&mut self, log: &str) {
        self.reads.retain(|name| name != log);
    }
    fn set_waker(&mut self, _: Arc<dyn Fn() + Send + Sync>) {}
}

struct Process<'s> {
    site: Endpoint<'s>,
    state: State,
    engine: Hands,
    streams: Vec<OpenStream>,
}

/// A stream that a client reads.
struct OpenStream {
    id: StreamId,
    /// The begin of an event.
    bytes: Vec<u8>,
    client: Client,
    /// The id of the last event, if it had one.
    last: Option<String>,
}

/// A session, or the query of one for `POST`, and the client that began it.
type Client = (String, Option<&'static str>);

struct World<'s> {
    service: Service<'s, State>,
    now: u64,
    processes: [Process<'s>; 2],
    sessions: VecDeque<Client>,
    posts: VecDeque<Client>,
    /// Ids of events, and the clients that have got them.
    events: VecDeque<(String, Client)>,
    /// The hashes of messages by the ids of their events.
    messages: BTreeMap<String, u64>,
    /// An entry of a log was damaged or made up.
    is_forged: bool,
    asked: VecDeque<u64>,
    dice: u32,
    sent: u32,
}

struct Tap(Vec<u8>);

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> std::result::Result<(), FullError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        2_000usize.saturating_sub(self.0.len())
    }
}

fn one<'t, T>(u: &mut Unstructured<'_>, list: &'t VecDeque<T>) -> Result<Option<&'t T>> {
    if list.is_empty() { Ok(None) } else { Ok(list.get(u.choose_index(list.len())?)) }
}

impl World<'_> {
    /// Makes a request of a client, most in sessions, to any process.
    fn request(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.sent += 1;
        let at = usize::from(u.arbitrary::<bool>()?);
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/things":{}}}}"#;
        let (id, key) = (self.sent, u.choose(&KEYS)?);
        let key = key.replace('"', "\\\"");
        let body = match u.int_in_range(0..=11)? {
            0..=2 => {
                let to = u.int_in_range(0..=3)?;
                let meta = if u.arbitrary()? { meta } else { r#""_meta":{"progressToken":1}"# };
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"give","arguments":{{"to":{to},"key":"{key}"}},{meta}}}}}"#
                )
            }
            3 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"things":["{key}"],"toolsListChanged":true}},{meta}}}}}"#
            ),
            4 | 5 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"elicitation":{{}},"sampling":{{}},"roots":{{}}}},"clientInfo":{{"name":"f","version":"1"}}}}}}"#
            ),
            6 if !self.asked.is_empty() => {
                let asked = *one(u, &self.asked)?.unwrap_or(&0);
                format!(r#"{{"jsonrpc":"2.0","id":{asked},"result":{{"action":"accept","content":{{}}}}}}"#)
            }
            7 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"debug"}}}}"#),
            _ => message(u, id)?,
        };
        let (method, path) = *u.choose(&[
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/messages"),
            ("GET", "/mcp"),
            ("GET", "/mcp"),
            ("GET", "/sse"),
            ("DELETE", "/mcp"),
        ])?;
        let known = if path == "/messages" { &self.posts } else { &self.sessions };
        let (session, who) = one(u, known)?.cloned().unwrap_or_default();
        let (last, _) = one(u, &self.events)?.cloned().unwrap_or_default();
        let resumes = method == "GET" && u.arbitrary()?;
        let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let named = value["method"].as_str().unwrap_or("").to_owned();
        let target = value["params"]["name"].as_str().or(value["params"]["uri"].as_str()).unwrap_or("").to_owned();
        let mut headers: Vec<(&str, &[u8])> =
            vec![("content-type", b"application/json"), ("accept", b"application/json, text/event-stream")];
        let begins = named == "initialize";
        if body.contains("2026-07-28") && !begins {
            headers.push(("mcp-protocol-version", b"2026-07-28"));
            headers.push(("mcp-method", named.as_bytes()));
            headers.push(("mcp-name", target.as_bytes()));
        } else if !session.is_empty() && !begins && path == "/mcp" {
            headers.push(("mcp-session-id", session.as_bytes()));
        }
        if resumes && !last.is_empty() {
            headers.push(("last-event-id", last.as_bytes()));
        }
        let who = if session.is_empty() || begins { *u.choose(&CLIENTS)? } else { who };
        let query = if path == "/messages" { session.as_str() } else { "" };
        let client = (session.clone(), who);
        self.send(at, (method, path, query), &headers, &client, body.as_bytes());
        Ok(())
    }

    /// Resumes a stream of a client, more often than not at another process. That one reads the log of its copy first, most often as
    /// it is.
    fn come_back(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some((last, client)) = one(u, &self.events)?.cloned() else { return Ok(()) };
        let at = usize::from(u.arbitrary::<bool>()?);
        for _ in 0..2 {
            let headers: [(&str, &[u8]); 3] = [
                ("accept", b"text/event-stream"),
                ("mcp-session-id", client.0.as_bytes()),
                ("last-event-id", last.as_bytes()),
            ];
            self.send(at, ("GET", "/mcp", ""), &headers, &client, b"");
            self.meet(at);
            self.read_logs(u, at)?;
        }
        Ok(())
    }

    /// Hands the logs in that a process reads.
    fn read_logs(&mut self, u: &mut Unstructured<'_>, at: usize) -> Result<()> {
        self.meet(1 - at);
        for log in self.processes[at].engine.reads.clone() {
            let all = self.processes.iter().flat_map(|process| &process.engine.logs);
            let entries: Vec<_> = all.filter(|(name, ..)| *name == log).cloned().collect();
            for (log, id, entry) in entries {
                if !u.ratio(1, 12)? {
                    self.processes[at].engine.arrivals.push_back(Arrival::Entry { log, id, entry });
                    self.meet(at);
                }
            }
            if !u.ratio(1, 12)? {
                self.processes[at].engine.arrivals.push_back(Arrival::CaughtUp { log });
                self.meet(at);
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        at: usize,
        (method, path, query): (&str, &str, &str),
        headers: &[(&str, &[u8])],
        client: &Client,
        body: &[u8],
    ) {
        let who = client.1;
        let (now, dice) = (self.now, &mut self.dice);
        let Process { site, state, streams, .. } = &mut self.processes[at];
        let authorize = |_: &RequestHead<'_>| Access::Granted { principal: who };
        let mut app = App::new(&self.service, state).authorize(&authorize);
        let mut random = |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                *dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (*dice >> 24) as u8
            });
        };
        let head = RequestHead::new(method, path, Some(query), &headers);
        let mut out = LineSink::new(Vec::new());
        // One that is undecided is a 503; the client comes again when the input says so.
        let response = site.request(&mut app, &head, body, now, &mut random, &mut out);
        let mut client = client.clone();
        if let Some(id) = response.session {
            client.0 = id.as_str().to_owned();
            keep(&mut self.sessions, client.clone());
        }
        match response.content {
            ResponseBody::Stream(id) => {
                assert!(streams.iter().all(|open| open.id != id), "a stream is given away twice");
                let resumes = headers.iter().find(|(name, _)| *name == "last-event-id");
                let last = resumes.and_then(|(_, last)| String::from_utf8(last.to_vec()).ok());
                streams.push(OpenStream { id, bytes: Vec::new(), client, last });
                // The posts of a stream of 2024-11-05 come as its first event.
                let _ = self.pull(at, self.processes[at].streams.len() - 1);
            }
            ResponseBody::Json => {
                let _: serde_json::Value = serde_json::from_slice(out.pending()).expect("a body is JSON");
            }
            _ => {}
        }
    }

    fn pull(&mut self, at: usize, index: usize) -> Option<StreamStatus> {
        let now = self.now;
        let Process { site, state, streams, .. } = &mut self.processes[at];
        let stream = streams.get_mut(index)?;
        let mut tap = Tap(Vec::new());
        let status = site.pull(stream.id, &mut App::new(&self.service, state), now, &mut tap);
        stream.bytes.extend(tap.0);
        let mut events = Vec::new();
        while let Some(end) = stream.bytes.windows(2).position(|pair| pair == b"\n\n") {
            events.push(String::from_utf8(stream.bytes.drain(..end + 2).collect()).expect("UTF-8"));
        }
        let (client, mut last) = (stream.client.clone(), stream.last.take());
        for event in events {
            last = self.event(&event, &client, last);
        }
        let streams = &mut self.processes[at].streams;
        match status {
            StreamStatus::End | StreamStatus::Stale => drop(streams.remove(index)),
            _ => streams[index].last = last,
        }
        Some(status)
    }

    /// Takes an event, where the one before it had this id; returns its own, if it has one.
    fn event(&mut self, event: &str, client: &Client, before: Option<String>) -> Option<String> {
        let (id, kind, data) = event_fields(event);
        if let Some(id) = id {
            keep(&mut self.events, (id.to_owned(), client.clone()));
            self.compare(id, &data, before.as_deref());
        }
        match (kind, data.as_str()) {
            ("endpoint", data) => {
                if let Some((_, query)) = data.split_once('?') {
                    keep(&mut self.posts, (query.to_owned(), client.1));
                }
            }
            // A comment, or the first event of a stream.
            (_, "") => return id.map(str::to_owned).or(before),
            (_, data) => {
                let value: serde_json::Value =
                    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error} in {data:?}"));
                if let Some(id) = value["id"].as_u64().filter(|_| value.get("method").is_some()) {
                    keep(&mut self.asked, id);
                }
            }
        }
        id.map(str::to_owned)
    }

    /// Checks that an id always names the same message, and that its number follows that of the event before it.
    fn compare(&mut self, id: &str, data: &str, before: Option<&str>) {
        // An answer in place of one that is lost.
        if self.is_forged || data.is_empty() || data.contains(" has ended") {
            return;
        }
        if let (Some((stream, number)), Some((same, before))) = (event_of(id), before.and_then(event_of))
            && stream == same
        {
            assert_eq!(number, before + 1, "an event is left out or comes again, before {id}");
        }
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        let message = hasher.finish();
        let known = *self.messages.entry(id.to_owned()).or_insert(message);
        assert_eq!(known, message, "the event {id} was another message than {data}");
    }

    /// Makes the fields of a message: a version, a kind, and more often than not what belongs to that kind.
    fn made_up(&self, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        const IN_ORDER: [(u8, &[u8]); 18] = [
            (1, b""),
            (2, b""),
            (3, b""),
            (4, b"t"),
            (5, b"tt"),
            (6, b""),
            (16, b"sm"),
            (17, b"sm"),
            (18, b"s"),
            (26, b"s"),
            (19, b"sm"),
            (40, b"nzom"),
            (41, b"nfm"),
            (42, b"n"),
            (43, b"ttom"),
            (44, b"c"),
            (24, b"snlnl"),
            (25, b"sl"),
        ];
        let (kind, fields) = *u.choose(&IN_ORDER)?;
        let mut out = vec![if u.ratio(1, 30)? { u.arbitrary()? } else { 1 }, kind];
        for field in fields {
            self.field(u, *field, &mut out)?;
        }
        Ok(out)
    }

    fn field(&self, u: &mut Unstructured<'_>, field: u8, out: &mut Vec<u8>) -> Result<()> {
        let number = |u: &mut Unstructured<'_>| -> Result<u32> {
            Ok(if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(0..=6)? })
        };
        let bytes = |out: &mut Vec<u8>, bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        };
        let option = |u: &mut Unstructured<'_>, out: &mut Vec<u8>, text: Option<&str>| -> Result<()> {
            let text = if u.ratio(1, 12)? { *u.choose(&CLIENTS)? } else { text };
            out.extend_from_slice(&u32::from(text.is_some()).to_be_bytes());
            text.inspect(|text| bytes(out, text.as_bytes()));
            Ok(())
        };
        match field {
            b't' => bytes(out, u.choose(&["things", "r://one", "0", "1", ""])?.as_bytes()),
            // A session and its client; one of 2024-11-05 is named by a query.
            b's' => {
                let known = if u.ratio(1, 3)? { &self.posts } else { &self.sessions };
                let (id, who) = one(u, known)?.cloned().unwrap_or_default();
                bytes(out, id.rsplit('=').next().unwrap_or(&id).as_bytes());
                option(u, out, who)?;
            }
            b'z' => bytes(
                out,
                if u.ratio(1, 3)? { one(u, &self.sessions)?.map_or("", |(id, _)| id) } else { "" }.as_bytes(),
            ),
            b'o' => {
                let who = *u.choose(&CLIENTS)?;
                option(u, out, who)?;
            }
            b'n' => out.extend_from_slice(&number(u)?.to_be_bytes()),
            b'f' => out.extend_from_slice(&u32::from(u.arbitrary::<bool>()?).to_be_bytes()),
            b'l' => {
                let long = if u.arbitrary()? { self.now } else { u.arbitrary()? };
                out.extend_from_slice(&long.to_be_bytes());
            }
            b'c' => {
                let len = u.int_in_range(0..=90)?;
                let counts = u.bytes(u.len().min(len))?;
                bytes(out, counts);
            }
            _ => {
                let any = u.int_in_range(0..=self.sent)?;
                let text = match u.int_in_range(0..=7)? {
                    0 => format!(r#"{{"jsonrpc":"2.0","id":{any},"result":{{"content":[]}}}}"#),
                    1 => format!(r#"{{"jsonrpc":"2.0","id":{any},"error":{{"code":-1,"message":"m"}}}}"#),
                    2 => format!("{{\"jsonrpc\":\"2.0\",\r\n\n\"id\":{any},\"result\":{{}}}}"),
                    3 => r#"{"key":"1"}"#.to_owned(),
                    // More than a process takes.
                    4 if u.ratio(1, 3)? => message(u, 1_000 + any)? + &" ".repeat(LIMITS.relay_bytes),
                    4 => String::new(),
                    5 => String::from_utf8_lossy(u.bytes(u.len().min(12))?).into_owned(),
                    _ => message(u, 1_000 + any)?,
                };
                bytes(out, text.as_bytes());
            }
        }
        Ok(())
    }

    /// Damages bytes, more often than not only a little.
    fn damage(u: &mut Unstructured<'_>, bytes: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = u.choose_index(bytes.len())?;
        match u.int_in_range(0..=3)? {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= u.arbitrary::<u8>()?,
            2 => bytes.insert(at, u.arbitrary()?),
            _ => {
                let again = bytes[at..].to_vec();
                bytes.extend(again.iter().take(300));
            }
        }
        Ok(())
    }

    /// Hands something in to a process.
    fn arrival(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let to = usize::from(u.arbitrary::<bool>()?);
        let (here, there) = (&self.processes[to].engine, &self.processes[1 - to].engine);
        let tag = |u: &mut Unstructured<'_>| -> Result<ProcessTag> {
            Ok(match u.int_in_range(0..=5)? {
                0..=3 => there.tag,
                4 => here.tag,
                _ => ProcessTag::new(u.int_in_range(0..=9)?),
            })
        };
        let log = |u: &mut Unstructured<'_>| -> Result<String> {
            Ok(match u.int_in_range(0..=3)? {
                0 => one(u, &there.logs)?.map(|(log, ..)| log.clone()).unwrap_or_default(),
                1 => format!("{}{}", u.choose(&["e:", "e:2-0-", "s:", "t:", ""])?, u.choose(&KEYS)?),
                _ => one(u, &here.reads)?.cloned().unwrap_or_default(),
            })
        };
        let mut is_made_up = false;
        let mut arrival = match u.int_in_range(0..=15)? {
            0..=4 => {
                let message = match one(u, &there.said)? {
                    Some((_, message)) => message.clone(),
                    None => return Ok(()),
                };
                Arrival::Message { from: there.tag, message }
            }
            5..=7 => Arrival::Message { from: tag(u)?, message: self.made_up(u)? },
            8 | 9 => match one(u, &there.logs)? {
                Some((log, id, entry)) => Arrival::Entry { log: log.clone(), id: *id, entry: entry.clone() },
                None => return Ok(()),
            },
            10 => {
                let (log, id) = (log(u)?, u.int_in_range(0..=3)?);
                let entry = if u.arbitrary()? { self.made_up(u)? } else { self.copy(u)? };
                is_made_up = true;
                Arrival::Entry { log, id, entry }
            }
            11 => Arrival::CaughtUp { log: log(u)? },
            12 => Arrival::ReadOver { log: log(u)? },
            13 => Arrival::Joined(tag(u)?),
            14 => Arrival::Left(tag(u)?),
            _ => Arrival::Lost,
        };
        if let Arrival::Message { message: bytes, .. } | Arrival::Entry { entry: bytes, .. } = &mut arrival
            && u.ratio(1, 6)?
        {
            World::damage(u, bytes)?;
            is_made_up = true;
        }
        self.is_forged |= is_made_up && matches!(arrival, Arrival::Entry { .. });
        // Again and again, from others: what is kept of it has a limit.
        let times = if u.ratio(1, 100)? { u.int_in_range(1..=300u32)? } else { 1 };
        for time in 0..times {
            let mut arrival = arrival.clone();
            if let Arrival::Message { from, .. } | Arrival::Joined(from) = &mut arrival
                && time > 0
            {
                *from = ProcessTag::new(100 + time);
            }
            self.processes[to].engine.arrivals.push_back(arrival);
            self.meet(to);
        }
        Ok(())
    }

    /// Makes an entry of the copy of a stream.
    fn copy(&self, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let mut out = vec![1];
        for _ in 0..u.int_in_range(0..=4)? {
            let mut record = Vec::new();
            let kind = u.int_in_range(0..=6)?;
            match kind {
                1 => {
                    let id = one(u, &self.sessions)?.map_or("", |(id, _)| id);
                    record.extend_from_slice(id.get(..16).unwrap_or("").as_bytes());
                    for id in 0..u.int_in_range(0..=2)? {
                        record.extend_from_slice(&[0, 0, 0, 1, b'0' + id]);
                    }
                }
                2 => {
                    let event = u.int_in_range(0..=9u32)?;
                    record.extend_from_slice(&event.to_be_bytes());
                    let mut content = Vec::new();
                    self.field(u, b'm', &mut content)?;
                    record.extend_from_slice(&content[4..]);
                    // Some are too many for the room of a stream.
                    record.resize(record.len() + if event % 4 == 3 { 3_000 } else { 0 }, b' ');
                }
                _ => record.extend_from_slice(u.bytes(u.len().min(kind.into()))?),
            }
            out.push(kind);
            out.extend_from_slice(&(record.len() as u32).to_be_bytes());
            out.extend_from_slice(&record);
        }
        Ok(out)
    }

    fn meet(&mut self, at: usize) {
        let now = self.now;
        let Process { site, state, engine, .. } = &mut self.processes[at];
        let mut app = App::new(&self.service, state);
        for round in 0.. {
            assert!(round < 1_000, "it takes without end");
            if !site.meet_fleet(&mut app, engine, now) {
                break;
            }
        }
        assert!(engine.arrivals.is_empty(), "something is left although it has taken all");
        let (in_flight, sessions, streams) = site.load();
        assert!(sessions <= PLACES.sessions && streams <= PLACES.streams && in_flight <= 8, "{:?}", site.load());
        while state.open.len() > KEPT {
            state.open.remove(0);
        }
    }

    fn wait(&mut self, millis: u64) {
        let end = self.now + millis;
        for round in 0.. {
            assert!(round < 10_000, "what was due is due again");
            let due = self.processes.iter().filter_map(|process| process.site.next_deadline()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            for at in 0..2 {
                let Process { site, state, .. } = &mut self.processes[at];
                site.expire(&mut App::new(&self.service, state), self.now);
                self.meet(at);
            }
        }
        self.now = end;
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let at = usize::from(u.arbitrary::<bool>()?);
        match u.int_in_range(0..=15)? {
            0..=4 => self.request(u)?,
            5..=9 => self.arrival(u)?,
            10 => self.come_back(u)?,
            11 | 12 => {
                let streams = self.processes[at].streams.len();
                if streams > 0 {
                    let index = u.choose_index(streams)?;
                    if u.ratio(1, 6)? {
                        let OpenStream { id, .. } = self.processes[at].streams.remove(index);
                        let Process { site, state, .. } = &mut self.processes[at];
                        site.detach(id, &mut App::new(&self.service, state), self.now);
                    } else {
                        let _ = self.pull(at, index);
                    }
                }
            }
            13 => {
                let change = match u.int_in_range(0..=3)? {
                    0 => ServerChange::Tools,
                    1 => ServerChange::Resource("r://one"),
                    _ => ServerChange::Topic { member: "things", key: u.choose(&KEYS)? },
                };
                self.processes[at].site.publish(change);
            }
            14 => self.wait(u.int_in_range(0..=3_000)?),
            _ => {
                let Process { site, state, .. } = &mut self.processes[at];
                if let Some((token, text)) = state.open.pop() {
                    let answered = site.answer(&mut App::new(&self.service, state), token, |_, call| call.text(&text));
                    if answered.is_err_and(|error| !matches!(error, RespondError::Stale)) {
                        self.processes[at].state.open.push((token, text));
                    }
                }
            }
        }
        self.meet(at);
        Ok(())
    }

    /// Ends the run: each process is alone, its clients are gone, and nothing may be left.
    fn finish(&mut self) {
        for at in 0..2 {
            let own = self.processes[at].engine.tag;
            self.processes[at].engine.arrivals.push_back(Arrival::Left(own));
            self.meet(at);
            self.processes[at].site.shut_down();
            for round in 0.. {
                assert!(round < 10_000, "it spins");
                let Some(last) = self.processes[at].streams.len().checked_sub(1) else { break };
                assert_ne!(self.pull(at, last), Some(StreamStatus::Idle), "an open stream has no end");
            }
        }
        self.wait(10_000_000);
        self.wait(10_000_000);
        for process in &self.processes {
            assert_eq!(process.site.load(), (0, 0, 0), "something is left");
        }
    }
}

/// Returns the stream of an event, and its number, by its id.
fn event_of(id: &str) -> Option<([&str; 3], u32)> {
    let mut parts = id.split('-');
    let (slot, stream, event, process) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(([slot, stream, process], event.parse().ok()?))
}

pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut done = Ok(());
    let most = mcp_sansio_test_allocator::peak(|| done = run_within(u));
    assert!(most <= MEMORY, "{most} bytes of memory");
    done
}

fn run_within(u: &mut Unstructured<'_>) -> Result<()> {
    static TOOLS: [Tool<State>; 5] = [
        Tool::new("give", "Is answered elsewhere", give),
        Tool::new("now", "Answers at once", now),
        Tool::new("later", "Answers later", later),
        Tool::new("stream", "Answers with a stream", stream).source(source),
        Tool::new("ask", "Asks first", ask),
    ];
    let service = Service::new("fuzz", "1")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .extend(&EXTENSIONS)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Logging);
    let seal = HmacSeal::new(&[7; 32]);
    let process = |tag: u32| {
        let limits = MessageLimits {
            in_flight: 8,
            message: 4_000,
            asks: 4_000,
            ask_share: 2_000,
            subscriptions: 1_000,
            subscription_share: 500,
            ..MessageLimits::default()
        };
        let tag = ProcessTag::new(tag);
        let sealed = SessionSeal::new(&seal).lifetime(600_000).ended(16);
        let site = Endpoint::growing(EndpointConfig::DEFAULT, Server::growing(limits).seal(&seal), PLACES);
        let site = site.seal_sessions(sealed).join_fleet(tag, LIMITS);
        let arrivals = [Arrival::Joined(ProcessTag::new(3 - tag.number())), Arrival::Joined(tag)].into();
        let (said, logs, reads) = Default::default();
        let engine = Hands { tag, arrivals, said, logs, reads };
        Process { site, state: State::default(), engine, streams: Vec::new() }
    };
    let mut world = World {
        service,
        now: 1_000_000,
        processes: [process(1), process(2)],
        sessions: VecDeque::new(),
        posts: VecDeque::new(),
        events: VecDeque::new(),
        messages: BTreeMap::new(),
        is_forged: false,
        asked: VecDeque::new(),
        dice: 1,
        sent: 0,
    };
    for at in 0..2 {
        world.meet(at);
    }
    let mut steps = 0;
    while !u.is_empty() && steps < 100 {
        steps += 1;
        world.step(u)?;
    }
    world.finish();
    Ok(())
}
