//! An endpoint in lent memory, driven by operations made from the fuzzer's bytes.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MIN_ROOM, Progress, RequestSlot, RespondError, Server, ServerChange};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{FullError, LineSink, Sink};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, RequestHead, ResponseBody, Session, Stream, StreamId, StreamPolicy,
    StreamStatus,
};
use mcp_sansio_http::seal::HmacSeal;

use crate::event_fields;
use crate::service::{PROMPTS, RESOURCES, Rounds, State, TEMPLATES, TOOLS, for_client, message};

type Site<'m> = Endpoint<'m>;

/// A socket with limited room.
struct Tap {
    bytes: Vec<u8>,
    room: usize,
}

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> std::result::Result<(), FullError> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(FullError::Now)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        self.room
    }
}

/// The name of a client; `None` has none.
type Who = Option<&'static str>;

const CLIENTS: [Who; 3] = [None, Some("ann"), Some("bob")];

/// An open stream.
struct Open {
    id: StreamId,
    /// The client that opened it.
    who: Who,
    /// Received bytes that are not a whole event yet.
    bytes: Vec<u8>,
    /// The id of the request of 2026-07-28 that it answers. At its end it must have answered.
    owes: Option<u32>,
}

/// The state of the driver and of the simulated clients.
struct World<'w> {
    service: Service<'w, State>,
    state: State,
    now: u64,
    /// Sessions, and the clients that began them.
    sessions: Vec<(String, Who)>,
    /// Open streams. The order is the same in each run.
    streams: Vec<Open>,
    /// Streams whose last pull said that there is more.
    more: Vec<StreamId>,
    /// Ids of events to resume at.
    ids: Vec<String>,
    /// Events by their ids: a client that comes back gets some again.
    events: BTreeMap<String, String>,
    /// Queries for `POST`, and the clients that got them.
    posts: Vec<(String, Who)>,
    asked: Vec<u64>,
    rounds: Rounds<Who>,
    /// The number of answers by the ids of their requests, which are all different.
    answered: BTreeMap<String, u32>,
    /// The ids in notifications that cancel.
    cancelled: Vec<String>,
    /// Random bytes may contain an id: then answers are not counted.
    unknown: bool,
    /// A client has ended a session.
    deleted: bool,
    /// The server ends all streams.
    shut_down: bool,
}

impl World<'_> {
    /// Sends a request of any kind. One in 16 has another `Mcp-Name` than in its body, if it has one, and one in 16 a head that is
    /// refused; `choice` says which ones.
    fn request(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>, sent: u32, choice: u32) -> Result<()> {
        let misnamed = (sent + choice).is_multiple_of(16);
        let spoilt = (sent + choice) % 16 == 8;
        let mut body = message(u, sent)?;
        let mut asked = None;
        if body.contains(r#""name":"none""#)
            && let Some((next, who)) = self.rounds.next(u, sent)?
        {
            (body, asked) = (next, Some(who));
        }
        let (mut method, mut path) = *u.choose(&[
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/messages"),
            ("GET", "/mcp"),
            ("GET", "/sse"),
            ("DELETE", "/mcp"),
        ])?;
        let (session, owner) =
            if self.sessions.is_empty() { Default::default() } else { u.choose(&self.sessions)?.clone() };
        let last = if self.ids.is_empty() { String::new() } else { u.choose(&self.ids)?.clone() };
        let (query, poster) = if self.posts.is_empty() { Default::default() } else { u.choose(&self.posts)?.clone() };
        let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let named = value["method"].as_str().unwrap_or("").to_owned();
        let mut target = value["params"]["name"].as_str().or(value["params"]["uri"].as_str()).unwrap_or("").to_owned();
        let has_name = matches!(&*named, "tools/call" | "resources/read" | "prompts/get");
        let misnamed = misnamed && has_name && (method, path) == ("POST", "/mcp") && body.contains("2026-07-28");
        if misnamed {
            target.push('x');
        }
        let mut headers: Vec<(&str, &[u8])> = vec![("content-type", b"application/json")];
        match u.int_in_range(0..=3)? {
            0 => headers.push(("accept", b"application/json")),
            _ => headers.push(("accept", b"application/json, text/event-stream")),
        }
        if body.contains("2026-07-28") && !body.contains("\"initialize\"") {
            headers.push(("mcp-protocol-version", b"2026-07-28"));
            headers.push(("mcp-method", named.as_bytes()));
            headers.push(("mcp-name", target.as_bytes()));
        } else if !session.is_empty() && !body.contains("\"initialize\"") {
            headers.push(("mcp-session-id", session.as_bytes()));
        }
        if method == "GET" && !last.is_empty() && u.arbitrary()? {
            headers.push(("last-event-id", last.as_bytes()));
        }
        // Most clients use what is their own.
        let in_session = headers.iter().any(|(name, _)| *name == "mcp-session-id");
        let any = CLIENTS[sent as usize % CLIENTS.len()];
        let who = match path {
            "/messages" if !sent.is_multiple_of(8) => poster,
            "/mcp" if in_session && !sent.is_multiple_of(8) => owner,
            "/mcp" if asked.is_some() && !sent.is_multiple_of(4) => asked.unwrap_or_default(),
            _ => any,
        };
        let foreign = (path == "/messages" && !query.is_empty() && poster != who)
            || (path == "/mcp" && in_session && owner != who);
        let spoilt = spoilt && (method, path) == ("POST", "/mcp");
        let refused = spoilt.then(|| spoil(sent / 16 + choice, &mut method, &mut path, &mut headers));
        self.unknown |= !body.starts_with(r#"{"jsonrpc":"2.0""#) && !body.starts_with('[') && body.contains("id");
        self.cancelled.extend(value.pointer("/params/requestId").map(serde_json::Value::to_string));
        let before = (site.load(), self.state.open.len());
        let status = self.send(site, (method, path, &query), (&headers, who), body.as_bytes(), sent);
        let refused = refused.or(misnamed.then_some(400));
        let goes_away = site.is_draining() && status == 503;
        assert!(
            refused.is_none_or(|refused| status == refused || goes_away),
            "{status} for {method} {path} with {headers:?}"
        );
        if misnamed || spoilt {
            let after = (site.load(), self.state.open.len());
            assert_eq!(before, after, "a refused request has changed something: {body}");
        }
        assert!(!foreign || status >= 400, "{status}: a session of {owner:?} or {poster:?} was used by {who:?}");
        Ok(())
    }

    fn send(
        &mut self,
        site: &mut Site<'_>,
        (method, path, query): (&str, &str, &str),
        (headers, who): (&[(&str, &[u8])], Who),
        body: &[u8],
        seed: u32,
    ) -> u16 {
        let mut out = LineSink::new(Vec::new());
        let authorize = |_: &RequestHead<'_>| Access::Granted { principal: who };
        let mut app = App::new(&self.service, &mut self.state).authorize(&authorize);
        // Different each time, and the same for the same input.
        let mut dice = (self.sessions.len() as u32 + 1).wrapping_mul(2_654_435_761) ^ seed;
        let mut random = |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (dice >> 24) as u8
            });
        };
        let head = RequestHead::new(method, path, Some(query), &headers);
        assert!(path == "/messages" || site.must_wait_for(&head).is_none(), "{method} {path} waits for a stream");
        let response = site.request(&mut app, &head, body, self.now, &mut random, &mut out);
        self.deleted |= method == "DELETE" && response.status == 204;
        self.sessions.extend(response.session.map(|id| (id.as_str().to_owned(), who)));
        let (status, content) = (response.status, response.content);
        let request = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
        self.rounds.sent(&request);
        let id = request["id"].as_u64().filter(|_| method == "POST" && request["method"].is_string());
        match content {
            ResponseBody::Stream(stream) => {
                assert!(self.streams.iter().all(|open| open.id != stream), "a stream is given away twice");
                let is_modern = headers.iter().any(|(name, _)| *name == "mcp-protocol-version");
                let owes = id.filter(|_| is_modern && request["method"] != "subscriptions/listen");
                self.streams.push(Open { id: stream, who, bytes: Vec::new(), owes: owes.map(|id| id as u32) });
            }
            ResponseBody::Json => {
                let answer: serde_json::Value = serde_json::from_slice(out.pending()).expect("a body is JSON");
                if let Some(id) = id.filter(|_| status == 200) {
                    assert_eq!(answer["id"].as_u64(), Some(id), "the answer is to another request: {answer}");
                }
                self.message(&answer, who);
            }
            _ => assert!(out.pending().is_empty(), "a body that nobody sends"),
        }
        status
    }

    /// Notes a message that a client got, or several.
    fn message(&mut self, message: &serde_json::Value, who: Who) {
        if let serde_json::Value::Array(messages) = message {
            return messages.iter().for_each(|message| self.message(message, who));
        }
        let text = message.to_string();
        for other in CLIENTS.into_iter().filter(|other| *other != who) {
            assert!(!text.contains(&for_client(other)), "{who:?} got a message for {other:?}: {text}");
        }
        match (message.get("id").filter(|id| !id.is_null()), message.get("method")) {
            (Some(id), None) => {
                self.rounds.heard(message, who);
                let times = self.answered.entry(id.to_string()).or_default();
                *times += 1;
                assert!(*times == 1 || self.unknown, "{id} was answered {times} times: {text}");
            }
            (Some(id), Some(_)) => self.asked.extend(id.as_u64()),
            _ => {}
        }
    }

    /// Pulls a stream. A stream that `ready()` does not name must have nothing to send, because hosts do not
    /// pull it.
    fn pull(&mut self, site: &mut Site<'_>, id: StreamId, room: usize) -> (StreamStatus, usize) {
        let asked = site.ready().any(|ready| ready == id) || self.more.contains(&id);
        let mut tap = Tap { bytes: Vec::new(), room };
        let pull = site.pull(id, &mut App::new(&self.service, &mut self.state), self.now, &mut tap);
        let n = tap.bytes.len();
        let idle = n == 0 && matches!(pull, StreamStatus::Idle | StreamStatus::Stale);
        assert!(asked || idle, "{pull:?} with {n} bytes, of which ready() did not tell");
        self.more.retain(|more| *more != id);
        if pull == StreamStatus::More {
            self.more.push(id);
        }
        let _ = site.ready().count();
        let Some(at) = self.streams.iter().position(|open| open.id == id) else { return (pull, n) };
        let mut open = self.streams.remove(at);
        open.bytes.extend(tap.bytes);
        while let Some(end) = open.bytes.windows(2).position(|pair| pair == b"\n\n") {
            let event = String::from_utf8(open.bytes.drain(..end + 2).collect()).expect("UTF-8");
            self.event(&event, open.who);
        }
        match pull {
            StreamStatus::End => {
                // A client that ends a session does not wait for the rest of its answers.
                let half = String::from_utf8_lossy(&open.bytes);
                assert!(half.is_empty() || self.deleted, "half an event: {half}");
                let owes =
                    open.owes.map(|id| id.to_string()).filter(|id| !self.unknown && !self.cancelled.contains(id));
                if let Some(id) = owes.filter(|_| !self.shut_down) {
                    assert!(self.answered.contains_key(&id), "the stream of {id} ended without an answer");
                }
            }
            StreamStatus::Stale => {}
            _ => self.streams.insert(at, open),
        }
        (pull, n)
    }

    fn event(&mut self, event: &str, who: Who) {
        let (named, kind, data) = event_fields(event);
        if let Some(id) = named {
            self.ids.push(id.to_owned());
            if let Some(earlier) = self.events.insert(id.to_owned(), data.clone()) {
                assert_eq!(earlier, data, "two events have the id {id}");
                return;
            }
        }
        match kind {
            "endpoint" => self.posts.extend(data.split_once('?').map(|(_, query)| (query.to_owned(), who))),
            _ if data.is_empty() => {}
            _ => {
                let value = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}"));
                self.message(&value, who);
            }
        }
    }

    fn detach(&mut self, site: &mut Site<'_>, id: StreamId) {
        self.streams.retain(|open| open.id != id);
        site.detach(id, &mut App::new(&self.service, &mut self.state), self.now);
    }

    fn expire(&mut self, site: &mut Site<'_>, millis: u64) {
        let end = self.now + millis;
        while let Some(deadline) = site.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            site.expire(&mut App::new(&self.service, &mut self.state), self.now);
            assert!(site.next_deadline().is_none_or(|next| next > self.now), "what was due is due again");
        }
        self.now = end;
    }

    fn choose(&self, u: &mut Unstructured<'_>) -> Result<Option<StreamId>> {
        let at = u.int_in_range(0..=self.streams.len().saturating_sub(1))?;
        Ok(self.streams.get(at).map(|open| open.id))
    }

    fn answer(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        if self.state.open.is_empty() {
            return Ok(());
        }
        let (token, text) = self.state.open[u.choose_index(self.state.open.len())?].clone();
        let _ = site.progress(token, Progress::new(u.arbitrary::<u64>()?));
        let mut app = App::new(&self.service, &mut self.state);
        match site.answer(&mut app, token, |_, call| call.text(&text)) {
            Ok(()) | Err(RespondError::Stale) => self.state.open.retain(|(open, _)| *open != token),
            Err(_) => {}
        }
        Ok(())
    }

    /// Gives the answers of the application. Returns whether one was taken.
    fn answer_all(&mut self, site: &mut Site<'_>) -> bool {
        let before = self.state.open.len();
        for (token, text) in self.state.open.clone() {
            let mut app = App::new(&self.service, &mut self.state);
            match site.answer(&mut app, token, |_, call| call.text(&text)) {
                Ok(()) | Err(RespondError::Stale) => self.state.open.retain(|(open, _)| *open != token),
                Err(_) => {}
            }
        }
        self.state.open.len() < before
    }

    /// Reads all streams to where they have nothing more now. Returns whether something came.
    fn read_all(&mut self, site: &mut Site<'_>) -> bool {
        let ids: Vec<StreamId> = self.streams.iter().map(|open| open.id).collect();
        ids.into_iter().fold(false, |came, id| {
            let (status, n) = self.pull(site, id, 2_000);
            came | (n > 0) | matches!(status, StreamStatus::End | StreamStatus::Stale)
        })
    }

    fn answer_question(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        if self.asked.is_empty() || self.sessions.is_empty() {
            return Ok(());
        }
        let id = *u.choose(&self.asked)?;
        let (session, owner) = u.choose(&self.sessions)?.clone();
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"action\":\"accept\",\"content\":{{}}}}}}");
        let headers: [(&str, &[u8]); 2] =
            [("content-type", b"application/json"), ("mcp-session-id", session.as_bytes())];
        self.send(site, ("POST", "/mcp", ""), (&headers, owner), body.as_bytes(), 0);
        Ok(())
    }
}

/// Makes a request one that its head alone refuses. Returns the status.
fn spoil(how: u32, method: &mut &str, path: &mut &str, headers: &mut Vec<(&str, &[u8])>) -> u16 {
    match how % 6 {
        0 => {
            headers.push(("origin", b"http://elsewhere.example"));
            403
        }
        1 => {
            headers.push(("host", b"elsewhere.example"));
            403
        }
        2 => {
            *path = "/other";
            404
        }
        3 => {
            *method = "PUT";
            405
        }
        4 => {
            headers[0] = ("content-type", b"text/plain");
            415
        }
        _ => {
            headers.extend([("mcp-protocol-version", &b"2026-07-28"[..]), ("mcp-protocol-version", b"2025-11-25")]);
            400
        }
    }
}

/// Runs the operations. The last byte chooses options and the end, so that an input that was found before they were there still
/// does the same operations.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let choice = u.peek_bytes(u.len()).and_then(<[u8]>::last).copied().unwrap_or(0);
    let streams = if choice & 1 == 0 { StreamPolicy::Needed } else { StreamPolicy::Preferred };
    let mut config = EndpointConfig::DEFAULT.streams(streams).cors(choice & 2 != 0).legacy(choice & 16 == 0);
    if choice & 8 != 0 {
        config = config.session_share(1).request_share(2).resume_within(300).session_rest(0).keep_alive(0);
    }
    let service = Service::new("fuzz", "1")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Logging);
    let (mut sessions, mut streams) = ([Session::FREE; 3], [Stream::FREE; 4]);
    let mut log = vec![0; u.int_in_range(4 * (MIN_ROOM + 64)..=8000)?];
    let (mut asks, mut subscriptions) = (vec![0; u.int_in_range(0..=900)?], vec![0; u.int_in_range(0..=300)?]);
    let mut slots = [RequestSlot::FREE; 4];
    let seal = HmacSeal::new(&[7; 32]);
    let server = Server::new(&mut slots).seal(&seal).asks(&mut asks[..]).subscriptions(&mut subscriptions[..]);
    let server = server.ask_timeout(50_000);
    let mut site = Site::new(config, server, &mut sessions, &mut streams, &mut log[..]);
    let mut world = World {
        service,
        state: State::default(),
        now: 0,
        sessions: Vec::new(),
        streams: Vec::new(),
        more: Vec::new(),
        ids: Vec::new(),
        events: BTreeMap::new(),
        posts: Vec::new(),
        asked: Vec::new(),
        rounds: Rounds::default(),
        answered: BTreeMap::new(),
        cancelled: Vec::new(),
        unknown: false,
        deleted: false,
        shut_down: false,
    };
    let mut sent = 0;
    while !u.is_empty() && sent < 100 {
        match u.int_in_range(0..=11)? {
            0..=4 => {
                sent += 1;
                if choice & 36 == 36 && sent == 12 {
                    // What comes now is refused, and answers come to their end.
                    site.drain(&mut App::new(&world.service, &mut world.state));
                }
                world.request(&mut site, u, sent, choice.into())?;
            }
            5 | 6 => {
                let room = u.int_in_range(0..=700)?;
                if let Some(id) = world.choose(u)? {
                    let _ = world.pull(&mut site, id, room);
                }
            }
            7 => {
                if let Some(id) = world.choose(u)? {
                    world.detach(&mut site, id);
                }
            }
            8 => site.publish(if u.arbitrary()? { ServerChange::Tools } else { ServerChange::Resource("r://one") }),
            9 => world.expire(&mut site, u.int_in_range(0..=40_000)?),
            10 => world.answer(&mut site, u)?,
            _ => world.answer_question(&mut site, u)?,
        }
    }
    if choice & 4 != 0 {
        drain(&mut site, &mut world);
    }
    finish(&mut site, &mut world);
    Ok(())
}

/// Ends in order: all requests get their answers from the application, and their clients read all. Each request of 2026-07-28 whose
/// client is there must be answered then.
fn drain(site: &mut Site<'_>, world: &mut World<'_>) {
    site.drain(&mut App::new(&world.service, &mut world.state));
    // Memory that belongs to clients that may come back is free when their time is over.
    for _ in 0..50 {
        while world.answer_all(site) | world.read_all(site) {}
        let Some(deadline) = site.next_deadline() else { break };
        world.expire(site, deadline.saturating_sub(world.now));
    }
    assert!(world.state.open.is_empty(), "an answer of the application finds no room");
    let open = world.streams.iter().filter_map(|open| open.owes).map(|id| id.to_string());
    let owes: Vec<String> = open.filter(|id| !world.unknown && !world.cancelled.contains(id)).collect();
    assert!(owes.iter().all(|id| world.answered.contains_key(id)), "all read, and not all of {owes:?} were answered");
}

/// Ends the run: the server shuts down, each stream must end, and nothing may be left.
fn finish(site: &mut Site<'_>, world: &mut World<'_>) {
    site.shut_down();
    world.shut_down = true;
    // A stream may wait until others are read: they share the log.
    for round in 0.. {
        let open: Vec<StreamId> = world.streams.iter().map(|open| open.id).collect();
        let mut goes_on = open.is_empty();
        for id in open {
            let pulled = world.pull(site, id, 200);
            goes_on |= !matches!(pulled, (StreamStatus::Idle, 0));
        }
        if world.streams.is_empty() {
            break;
        }
        assert!(goes_on, "an open stream has no end");
        assert!(round < 10_000, "it spins");
    }
    world.expire(site, 10_000_000);
    world.expire(site, 10_000_000);
    assert_eq!(site.load(), (0, 0, 0), "something is left");
}
