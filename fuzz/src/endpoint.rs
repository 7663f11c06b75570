//! An endpoint in lent memory, driven by operations made from the fuzzer's bytes.

use arbitrary::{Result, Unstructured};
use mcp_sansio::protocol::Feature;
use mcp_sansio::server::{Change, MIN_ROOM, Progress, SendError, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{Full, Lines, Sink};
use mcp_sansio_http::endpoint::{App, Config, Content, Endpoint, Head, Pull, Session, Stream, StreamId};

use crate::service::{PROMPTS, RESOURCES, State, TEMPLATES, TOOLS, message};

type Site<'m> = Endpoint<'m, 4>;

/// A socket with so much room.
struct Tap {
    bytes: Vec<u8>,
    room: usize,
}

impl Sink for Tap {
    fn put(&mut self, bytes: &[u8]) -> std::result::Result<(), Full> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(Full::Now)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
    fn room(&self) -> usize {
        self.room
    }
}

/// Everything but the endpoint.
struct World<'w> {
    service: Service<'w, State>,
    state: State,
    now: u64,
    sessions: Vec<String>,
    /// Open streams and what has come over them that is no whole event yet, in an order that is the same each time.
    streams: Vec<(StreamId, Vec<u8>)>,
    /// Streams whose last pull said that there is more.
    more: Vec<StreamId>,
    /// Ids of events, to come back with.
    ids: Vec<String>,
    /// Paths to post to.
    posts: Vec<String>,
    asked: Vec<u64>,
    /// Some session was ended by its client.
    deleted: bool,
}

impl World<'_> {
    fn request(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>, sent: u32) -> Result<()> {
        let body = message(u, sent)?;
        let (method, path) = *u.choose(&[
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/mcp"),
            ("POST", "/messages"),
            ("GET", "/mcp"),
            ("GET", "/sse"),
            ("DELETE", "/mcp"),
        ])?;
        let session = if self.sessions.is_empty() { String::new() } else { u.choose(&self.sessions)?.clone() };
        let last = if self.ids.is_empty() { String::new() } else { u.choose(&self.ids)?.clone() };
        let query = if self.posts.is_empty() { String::new() } else { u.choose(&self.posts)?.clone() };
        let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let named = value["method"].as_str().unwrap_or("").to_owned();
        let target = value["params"]["name"].as_str().or(value["params"]["uri"].as_str()).unwrap_or("").to_owned();
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
        self.send(site, (method, path, &query), &headers, body.as_bytes(), sent);
        Ok(())
    }

    fn send(
        &mut self,
        site: &mut Site<'_>,
        (method, path, query): (&str, &str, &str),
        headers: &[(&str, &[u8])],
        body: &[u8],
        seed: u32,
    ) {
        let mut out = Lines::new(Vec::new());
        let mut app = App::new(&self.service, &mut self.state);
        // Different each time, and the same for the same input.
        let mut dice = (self.sessions.len() as u32 + 1).wrapping_mul(2_654_435_761) ^ seed;
        let mut random = |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (dice >> 24) as u8
            });
        };
        let head = Head::new(method, path, Some(query), &headers);
        let response = site.request(&mut app, &head, body, self.now, &mut random, &mut out);
        self.deleted |= method == "DELETE" && response.status == 204;
        self.sessions.extend(response.session.map(|id| id.as_str().to_owned()));
        match response.content {
            Content::Stream(id) => {
                assert!(self.streams.iter().all(|(open, _)| *open != id), "a stream is given away twice");
                self.streams.push((id, Vec::new()));
            }
            Content::Json => {
                let _: serde_json::Value = serde_json::from_slice(out.pending()).expect("a body is JSON");
            }
            _ => assert!(out.pending().is_empty(), "a body that nobody sends"),
        }
    }

    /// Pulls. A stream of which the endpoint did not tell has nothing to say: hosts pull no other ones.
    fn pull(&mut self, site: &mut Site<'_>, id: StreamId, room: usize) -> (Pull, usize) {
        let asked = site.ready().any(|ready| ready == id) || self.more.contains(&id);
        let mut tap = Tap { bytes: Vec::new(), room };
        let pull = site.pull(id, &mut App::new(&self.service, &mut self.state), self.now, &mut tap);
        let n = tap.bytes.len();
        let idle = n == 0 && matches!(pull, Pull::Idle | Pull::Stale);
        assert!(asked || idle, "{pull:?} with {n} bytes, of which ready() did not tell");
        self.more.retain(|more| *more != id);
        if pull == Pull::More {
            self.more.push(id);
        }
        let _ = site.ready().count();
        let Some(at) = self.streams.iter().position(|(open, _)| *open == id) else { return (pull, n) };
        let (_, mut bytes) = self.streams.remove(at);
        bytes.extend(tap.bytes);
        while let Some(end) = bytes.windows(2).position(|pair| pair == b"\n\n") {
            let event = String::from_utf8(bytes.drain(..end + 2).collect()).expect("UTF-8");
            self.event(&event);
        }
        match pull {
            Pull::End => {
                // Whoever ends a session does not wait for the rest of its answers.
                let half = String::from_utf8_lossy(&bytes);
                assert!(half.is_empty() || self.deleted, "half an event: {half}");
            }
            Pull::Stale => {}
            _ => self.streams.insert(at, (id, bytes)),
        }
        (pull, n)
    }

    fn event(&mut self, event: &str) {
        let (mut kind, mut data) = ("", Vec::new());
        for line in event.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').expect("a field");
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => self.ids.push(value.to_owned()),
                "event" => kind = value,
                "data" => data.push(value),
                "retry" | "" => {}
                _ => panic!("what is {line}"),
            }
        }
        let data = data.join("\n");
        match kind {
            "endpoint" => self.posts.extend(data.split_once('?').map(|(_, query)| query.to_owned())),
            _ if data.is_empty() => {}
            _ => {
                let value: serde_json::Value =
                    serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}"));
                if value.get("method").is_some() {
                    self.asked.extend(value["id"].as_u64());
                }
            }
        }
    }

    fn detach(&mut self, site: &mut Site<'_>, id: StreamId) {
        self.streams.retain(|(open, _)| *open != id);
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
        Ok(self.streams.get(at).map(|(id, _)| *id))
    }

    fn answer(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        if self.state.open.is_empty() {
            return Ok(());
        }
        let token = self.state.open[u.choose_index(self.state.open.len())?];
        let _ = site.progress(token, Progress::new(u.arbitrary()?));
        let mut app = App::new(&self.service, &mut self.state);
        match site.answer(&mut app, token, |_, call| call.text("at last")) {
            Ok(()) | Err(SendError::Stale) => self.state.open.retain(|open| *open != token),
            Err(_) => {}
        }
        Ok(())
    }

    fn answer_question(&mut self, site: &mut Site<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        if self.asked.is_empty() || self.sessions.is_empty() {
            return Ok(());
        }
        let id = *u.choose(&self.asked)?;
        let session = u.choose(&self.sessions)?.clone();
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"action\":\"accept\",\"content\":{{}}}}}}");
        let headers: [(&str, &[u8]); 2] =
            [("content-type", b"application/json"), ("mcp-session-id", session.as_bytes())];
        self.send(site, ("POST", "/mcp", ""), &headers, body.as_bytes(), 0);
        Ok(())
    }
}

/// The operations.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let service = Service::new("fuzz", "1")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(Feature::Subscribe)
        .feature(Feature::ToolsChanged)
        .feature(Feature::Logging);
    let (mut sessions, mut streams) = ([Session::FREE; 3], [Stream::FREE; 4]);
    let mut log = vec![0; u.int_in_range(4 * (MIN_ROOM + 64)..=8000)?];
    let (mut asks, mut subscriptions) = (vec![0; u.int_in_range(0..=900)?], vec![0; u.int_in_range(0..=300)?]);
    let server = Server::new().asks(&mut asks[..]).subscriptions(&mut subscriptions[..]).ask_timeout(50_000);
    let mut site = Site::new(Config::DEFAULT, server, &mut sessions, &mut streams, &mut log[..]);
    let mut world = World {
        service,
        state: State::default(),
        now: 0,
        sessions: Vec::new(),
        streams: Vec::new(),
        more: Vec::new(),
        ids: Vec::new(),
        posts: Vec::new(),
        asked: Vec::new(),
        deleted: false,
    };
    let mut sent = 0;
    while !u.is_empty() && sent < 100 {
        match u.int_in_range(0..=11)? {
            0..=4 => {
                sent += 1;
                world.request(&mut site, u, sent)?;
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
            8 => site.publish(if u.arbitrary()? { Change::Tools } else { Change::Resource("r://one") }),
            9 => world.expire(&mut site, u.int_in_range(0..=40_000)?),
            10 => world.answer(&mut site, u)?,
            _ => world.answer_question(&mut site, u)?,
        }
    }
    finish(&mut site, &mut world);
    Ok(())
}

/// The end: the server goes away, whoever reads is told, nothing is left.
fn finish(site: &mut Site<'_>, world: &mut World<'_>) {
    site.shut_down();
    let open: Vec<StreamId> = world.streams.iter().map(|(id, _)| *id).collect();
    for id in open {
        for round in 0.. {
            match world.pull(site, id, 200) {
                (Pull::End | Pull::Stale, _) => break,
                (Pull::Idle, 0) => panic!("an open stream has no end"),
                _ => assert!(round < 10_000, "it spins"),
            }
        }
    }
    world.expire(site, 10_000_000);
    world.expire(site, 10_000_000);
    assert_eq!(site.load(), (0, 0, 0), "something is left");
}
