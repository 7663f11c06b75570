//! The driver of the HTTP tests: an endpoint without sockets, virtual time, random bytes from a seed. Each message of
//! the endpoint is judged.

use super::everything::{self, World};
use super::{Dice, MODERN, Value, Window, json};
use mcp_sansio::revision::Era;
use mcp_sansio::server::{MessageLimits, Millis, RequestToken, RespondError, Server, ServerChange};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{FullError, LineSink, Sink};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, StreamId, StreamStatus,
};
use mcp_sansio_test_support::Oracle;
use std::collections::{HashMap, HashSet};

/// A sink that takes a limited number of bytes.
pub struct Tap {
    pub bytes: Vec<u8>,
    pub room: usize,
}

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        if bytes.len() > self.room {
            return Err(FullError::Now);
        }
        self.room -= bytes.len();
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        self.room
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The JSON body, or `null`.
    pub body: Value,
    pub stream: Option<StreamId>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn code(&self) -> i64 {
        self.body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {self:?}"))
    }

    pub fn text(&self) -> &str {
        self.body["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {self:?}"))
    }

    /// Returns the stream that the request opened.
    pub fn opened(&self) -> StreamId {
        assert_eq!(self.status, 200, "{self:?}");
        self.stream.unwrap_or_else(|| panic!("no stream: {self:?}"))
    }

    /// Checks that the request was refused, with an error without an id.
    pub fn refused(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.body.get("error").is_some() && self.body.get("id").is_none(), "{self:?}");
    }
}

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub kind: String,
    pub data: String,
    pub retry: Option<u64>,
    pub comment: bool,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn read(block: &str) -> Event {
        let mut event = Event::default();
        for line in block.lines() {
            match line.split_once(':').map(|(field, value)| (field, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("id", id)) => event.id = Some(id.into()),
                Some(("event", kind)) => event.kind = kind.into(),
                Some(("data", data)) => {
                    assert!(event.data.is_empty(), "two lines of data: {block}");
                    event.data = data.into();
                }
                Some(("retry", retry)) => event.retry = Some(retry.parse().unwrap()),
                Some(("", _)) => event.comment = true,
                _ => panic!("what is {line:?} in {block}"),
            }
        }
        event
    }
}

/// The output of a stream.
#[derive(Debug)]
pub struct Pulled {
    pub events: Vec<Event>,
    pub ended: bool,
}

impl Pulled {
    /// Returns the messages.
    pub fn json(&self) -> Vec<Value> {
        self.events.iter().filter(|event| !event.data.is_empty() && event.kind == "message").map(Event::json).collect()
    }

    /// Returns the only message, which must be the last one of the stream.
    pub fn only(&self) -> Value {
        let mut all = self.json();
        assert!(self.ended && all.len() == 1, "{self:?}");
        all.remove(0)
    }
}

type Authorize = dyn Fn(&RequestHead<'_>) -> Access<'static>;

/// Gives a closure the lifetime that `App` wants.
pub fn allowing<'a, F: Fn(&RequestHead<'_>) -> Access<'a>>(allow: F) -> F {
    allow
}

/// An endpoint under test, with a host that does only the necessary: it pulls a stream when the endpoint reports it
/// as ready, and sets the time when there is a deadline. A stream that is pulled without being reported must have no
/// output.
pub struct Web {
    pub endpoint: Endpoint<'static>,
    pub service: Service<'static, World>,
    pub world: World,
    pub now: Millis,
    pub dice: Dice,
    /// The limit of a JSON body.
    pub body: usize,
    /// The limit of bytes that a socket takes at once.
    pub gulp: usize,
    pub authorize: Box<Authorize>,
    /// The endpoint has no sessions, by its configuration: its messages are judged by 2026-07-28.
    pub stateless: bool,
    oracle: Oracle,
    /// The methods of the requests, by revision and id.
    asked: HashMap<(String, String), String>,
    /// The revision of each session.
    pub sessions: HashMap<String, String>,
    streams: HashMap<StreamId, String>,
    partial: HashMap<StreamId, Vec<u8>>,
    /// Streams whose last pull reported more output.
    more: HashSet<StreamId>,
}

pub const BOTH: &str = "application/json, text/event-stream";
pub const JSON: (&str, &str) = ("content-type", "application/json");
pub const ACCEPT: (&str, &str) = ("accept", BOTH);
pub const SSE: (&str, &str) = ("accept", "text/event-stream");

pub fn config() -> EndpointConfig<'static> {
    EndpointConfig::DEFAULT
}

impl Web {
    pub fn new() -> Web {
        Web::with(config())
    }

    pub fn with(config: EndpointConfig<'static>) -> Web {
        Web::limited(config, EndpointLimits::default())
    }

    pub fn limited(config: EndpointConfig<'static>, limits: EndpointLimits) -> Web {
        let server =
            Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() }).seal(&super::toy_seal::SEAL);
        Web::of(Endpoint::growing(config, server, limits))
    }

    /// Returns an endpoint in memory of these sizes, as on a device.
    pub fn lent(sessions: usize, streams: usize, log: usize) -> Web {
        Web::lent_with(config(), sessions, streams, log)
    }

    pub fn lent_with(config: EndpointConfig<'static>, sessions: usize, streams: usize, log: usize) -> Web {
        use mcp_sansio_http::endpoint::{Session, Stream};
        let server =
            Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() }).seal(&super::toy_seal::SEAL);
        let sessions = vec![Session::FREE; sessions].leak();
        let streams = vec![Stream::FREE; streams].leak();
        Web::of(Endpoint::new(config, server, sessions, streams, vec![0; log].leak()))
    }
}

impl Web {
    pub fn of(endpoint: Endpoint<'static>) -> Web {
        Web {
            endpoint,
            service: everything::service(),
            world: World::default(),
            now: 1000,
            dice: Dice(7),
            body: usize::MAX,
            gulp: usize::MAX,
            authorize: Box::new(|_| Access::Granted { principal: None }),
            stateless: false,
            oracle: Oracle::new(),
            asked: HashMap::new(),
            sessions: HashMap::new(),
            streams: HashMap::new(),
            partial: HashMap::new(),
            more: HashSet::new(),
        }
    }

    /// Any request, with exactly these headers; `path` may have a query.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let pairs: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        self.request_raw(method, path, &pairs, body)
    }

    pub fn request_raw(&mut self, method: &str, path: &str, headers: &[(&str, &[u8])], body: &str) -> Reply {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        self.turn();
        let revision = self.revision_of(headers, query, body);
        self.hear(&revision, body);
        let mut out = LineSink::new(Window::of(self.body));
        let Web { endpoint, service, world, dice, authorize, now, .. } = self;
        let allow = allowing(|head| authorize(head));
        let mut app = App::new(service, world).authorize(&allow);
        let head = RequestHead::new(method, path, query, &headers);
        let mut random = |bytes: &mut [u8]| bytes.fill_with(|| dice.roll(256) as u8);
        let response = endpoint.request(&mut app, &head, body.as_bytes(), *now, &mut random, &mut out);
        let mut reply = Reply { status: response.status, headers: Vec::new(), body: Value::Null, stream: None };
        response.headers(&mut |name, value| reply.headers.push((name.into(), value.into())));
        let line = String::from_utf8(out.pending().to_vec()).expect("UTF-8");
        match response.content {
            ResponseBody::Json => {
                // The sink ends a message with a newline: it knows then that the message is whole.
                assert_eq!(line.find('\n'), line.len().checked_sub(1), "a body without its end: {line}");
                reply.body = super::parse(&line);
            }
            ResponseBody::Stream(id) => reply.stream = Some(id),
            _ => {}
        }
        if reply.stream.is_some() || reply.body.is_null() {
            assert_eq!(line, "", "a body that nobody sends");
        }
        self.note(&mut reply, &revision);
        reply
    }

    fn note(&mut self, reply: &mut Reply, revision: &str) {
        let mut revision = revision.to_owned();
        if let Some(session) = reply.header("mcp-session-id").map(str::to_owned) {
            let version = reply.body["result"]["protocolVersion"].as_str().unwrap_or(&revision).to_owned();
            self.sessions.insert(session, version.clone());
            revision = version;
        }
        if let Some(stream) = reply.stream {
            self.streams.insert(stream, revision);
        } else if reply.body.get("jsonrpc").is_some() || reply.body.is_array() {
            let body = reply.body.clone();
            self.judge(&revision, &body);
        }
    }

    fn revision_of(&self, headers: &[(&str, &[u8])], query: Option<&str>, body: &str) -> String {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.and_then(|(_, value)| std::str::from_utf8(value).ok())
        };
        let session = header("mcp-session-id").or(query.and_then(|query| query.strip_prefix("session=")));
        let stateless = self.stateless || !self.service.about().served().has_era(Era::Legacy);
        let version = header("mcp-protocol-version");
        let unknown = version.is_some_and(|version| !super::LEGACY.contains(&version));
        let modern = body.contains("modelcontextprotocol/protocolVers")
            || version == Some(MODERN)
            || unknown && header("mcp-session-id").is_none()
            || stateless;
        match session.and_then(|id| self.sessions.get(id)) {
            _ if modern => MODERN.into(),
            Some(revision) => revision.clone(),
            None => "2025-11-25".into(),
        }
    }

    /// Notes the requests of a message that the client sends, perhaps to another process.
    pub fn hear(&mut self, revision: &str, body: &str) {
        let Ok(value) = serde_json::from_str::<Value>(body) else { return };
        let messages = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        for message in messages {
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                self.asked.insert((revision.into(), id.to_string()), method.into());
            }
        }
    }

    fn judge(&self, revision: &str, message: &Value) {
        let asked = &self.asked;
        let method_of = |id: &Value| {
            let known = |revision: &str| asked.get(&(revision.to_owned(), id.to_string())).cloned();
            known(revision).or_else(|| known("2025-11-25"))
        };
        let line = message.to_string();
        self.oracle.server_answers(revision, &method_of, line.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    /// Takes the output of a stream, at most `gulp` bytes at a time.
    pub fn pull(&mut self, id: StreamId) -> Pulled {
        let mut idle = 0;
        loop {
            let (pull, n) = self.sip(id, self.gulp);
            idle = if n == 0 { idle + 1 } else { 0 };
            match pull {
                StreamStatus::More => assert!(idle < 4, "the stream wants room again and again"),
                _ => return self.pulled(id, pull != StreamStatus::Idle),
            }
        }
    }

    /// Pulls once into a sink of this size. Returns the number of bytes.
    pub fn sip(&mut self, id: StreamId, room: usize) -> (StreamStatus, usize) {
        let asked = self.is_ready(id) || self.more.contains(&id);
        let mut tap = Tap { bytes: Vec::new(), room };
        let Web { endpoint, service, world, authorize, now, .. } = self;
        let allow = allowing(|head| authorize(head));
        let pull = endpoint.pull(id, &mut App::new(service, world).authorize(&allow), *now, &mut tap);
        let n = tap.bytes.len();
        let idle = n == 0 && matches!(pull, StreamStatus::Idle | StreamStatus::Stale);
        assert!(asked || idle, "{pull:?} with {n} bytes, of which ready() did not tell");
        match pull {
            StreamStatus::More => self.more.insert(id),
            _ => self.more.remove(&id),
        };
        self.partial.entry(id).or_default().extend(tap.bytes);
        self.turn();
        (pull, n)
    }

    /// Returns the whole events that were taken from a stream.
    pub fn pulled(&mut self, id: StreamId, ended: bool) -> Pulled {
        let bytes = self.partial.entry(id).or_default();
        let whole = bytes.windows(2).rposition(|pair| pair == b"\n\n").map_or(0, |at| at + 2);
        let text = String::from_utf8(bytes.drain(..whole).collect()).expect("UTF-8");
        if ended {
            assert!(bytes.is_empty(), "half an event: {}", String::from_utf8_lossy(bytes));
        }
        let events: Vec<Event> = text.split_terminator("\n\n").map(Event::read).collect();
        let revision = self.streams.get(&id).cloned().unwrap_or("2025-11-25".into());
        let revision = self.endpoint_session(&events, id).unwrap_or(revision);
        for event in events.iter().filter(|event| event.kind == "message") {
            let negotiated = event.json()["result"]["protocolVersion"].as_str().map(str::to_owned);
            let revision = negotiated.unwrap_or(revision.clone());
            // The end of the stream cancels over HTTP.
            let cancels = revision == MODERN && event.json()["method"] == "notifications/cancelled";
            assert!(!cancels, "a stream of {MODERN} cancels: {}", event.data);
            self.judge(&revision, &event.json());
        }
        Pulled { events, ended }
    }

    /// With the old transport, the first event carries the session and the first answer the revision.
    fn endpoint_session(&mut self, events: &[Event], id: StreamId) -> Option<String> {
        if let Some(session) = events.iter().find(|e| e.kind == "endpoint").and_then(|e| e.data.split_once("session="))
        {
            self.sessions.insert(session.1.into(), "2024-11-05".into());
            self.streams.insert(id, "2024-11-05".into());
        }
        self.streams.get(&id).cloned()
    }

    /// Ends a turn: looks which streams are ready, as hosts do.
    fn turn(&self) -> usize {
        self.endpoint.ready().count()
    }

    /// Returns whether the endpoint reports the stream as ready.
    pub fn is_ready(&self, id: StreamId) -> bool {
        self.endpoint.ready().any(|ready| ready == id)
    }

    pub fn detach(&mut self, id: StreamId) {
        self.partial.remove(&id);
        self.more.remove(&id);
        let Web { endpoint, service, world, now, .. } = self;
        endpoint.detach(id, &mut App::new(service, world), *now);
    }

    /// Lets time pass, from one deadline to the next.
    pub fn wait(&mut self, millis: Millis) {
        let end = self.now + millis;
        while let Some(deadline) = self.endpoint.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            let Web { endpoint, service, world, now, .. } = self;
            endpoint.expire(&mut App::new(service, world), *now);
            assert!(
                endpoint.next_deadline().is_none_or(|next| next > *now),
                "what was due at {deadline} is due again at {:?}, {:?}",
                endpoint.next_deadline(),
                endpoint.load()
            );
        }
        self.now = end;
    }

    pub fn publish(&mut self, change: ServerChange<'_>) {
        self.endpoint.publish(change);
    }

    /// Answers a tool call that was put off.
    pub fn answer(&mut self, token: RequestToken, text: &str) -> Result<(), RespondError> {
        let Web { endpoint, service, world, .. } = self;
        endpoint.answer(&mut App::new(service, world), token, |_, call| call.text(text))
    }

    pub fn drain(&mut self) {
        let Web { endpoint, service, world, .. } = self;
        endpoint.drain(&mut App::new(service, world));
    }

    /// Returns the token of the call of `later` with this tag.
    pub fn later(&self, tag: &str) -> RequestToken {
        self.world.later.iter().find(|(known, _)| known == tag).expect("it was called").1
    }

    /// A POST without a session.
    pub fn post(&mut self, body: &str) -> Reply {
        self.request("POST", "/mcp", &[JSON, ACCEPT], body)
    }

    /// A POST in a session.
    pub fn say(&mut self, session: &str, body: &str) -> Reply {
        self.request("POST", "/mcp", &[JSON, ACCEPT, ("Mcp-Session-Id", session)], body)
    }

    /// A GET in a session, for its stream or, with an event id, the rest of one.
    pub fn listen(&mut self, session: &str, last: Option<&str>) -> Reply {
        let mut headers = vec![SSE, ("mcp-session-id", session)];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.request("GET", "/mcp", &headers, "")
    }

    /// A session of a revision whose client can do everything.
    pub fn open(&mut self, revision: &str) -> String {
        let reply = self.post(&super::initialize(revision, super::all_capabilities(revision)));
        assert_eq!((reply.status, &reply.body["result"]["protocolVersion"]), (200, &json!(revision)), "{reply:?}");
        let session = reply.header("mcp-session-id").expect("a session").to_owned();
        assert_eq!(self.say(&session, &super::notify("notifications/initialized", json!({}))).status, 202);
        session
    }

    /// A call of a tool in a session.
    pub fn call(&mut self, session: &str, id: i64, tool: &str, arguments: Value) -> Reply {
        self.say(session, &super::call("2025-11-25", id, tool, arguments))
    }

    /// A request of 2026-07-28 with the headers that it needs.
    pub fn modern(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Reply {
        self.modern_with(&[], id, method, params)
    }

    pub fn modern_with(&mut self, more: &[(&str, &str)], id: impl Into<Value>, method: &str, params: Value) -> Reply {
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let body = super::request(MODERN, id, method, params);
        let mut headers = vec![JSON, ACCEPT, ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        headers.extend(more);
        self.request("POST", "/mcp", &headers, &body)
    }
}
