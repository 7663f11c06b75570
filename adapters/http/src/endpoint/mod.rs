//! The protocol over HTTP, without HTTP's bytes: mount it in any HTTP server.
//!
//! An [`Endpoint`] takes a request's head and body and gives status, headers and either one JSON body or an event
//! stream. A stream is [pulled](Endpoint::pull) whenever its socket has room; streams do not wait for each other. It
//! serves Streamable HTTP of 2025-03-26 to 2026-07-28 and the HTTP+SSE transport of 2024-11-05 on one path.
//!
//! Sessions, streams and the log of events live in memory that the caller lends, or that grows up to limits with the
//! feature `alloc`. The caller also brings the time and random bytes.

mod config;
mod exchange;
mod gate;
mod head;
mod legacy;
mod modern;
mod pool;
mod session;
mod stream;

pub use config::{Config, Streams};
pub use head::{Content, Head, Headers, Response, STREAM_HEADERS, SessionId};
pub use pool::Pool;
pub use session::{PRINCIPAL_MAX, Session};
pub use stream::{Stream, StreamId};

use core::cell::Cell;

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{Level, code};
use mcp_sansio::records::Records;
use mcp_sansio::server::{
    Change, Engine, Failure, Gate, Millis, Peer, Progress, Request, Scope, SendError, Server, Token, Told,
};
use mcp_sansio::service::{Call, Origin, Outcome, Pump, Service, Step};
use mcp_sansio::sink::{Kind, Out, Sink};
use mcp_sansio::store::Store;
use mcp_sansio::{Full, server};

use exchange::{Exchange, Mode};
use gate::HeaderGate;
use stream::{Link, Log, Purpose, StreamOut, Written, write_events, write_priming};

/// Whether somebody may use the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access<'a> {
    /// Yes; and who it is, if that is known. Sessions, subscriptions and states belong to whoever began them. At most
    /// [`PRINCIPAL_MAX`] bytes: give a digest of longer names.
    Granted {
        /// Who it is.
        principal: Option<&'a str>,
    },
    /// No.
    Denied {
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<&'a str>,
    },
}

/// The application around an endpoint.
pub struct App<'a, S: 'static> {
    /// What it offers.
    pub service: &'a Service<'a, S>,
    /// The state of its handlers.
    pub state: &'a mut S,
    /// Looks at the head of each request before the protocol does.
    pub authorize: &'a dyn Fn(&Head<'_>) -> Access<'a>,
}

impl<'a, S> App<'a, S> {
    /// An application that anybody may use.
    pub fn new(service: &'a Service<'a, S>, state: &'a mut S) -> Self {
        App { service, state, authorize: &|_| Access::Granted { principal: None } }
    }

    /// With authorization.
    #[must_use]
    pub fn authorize(self, authorize: &'a dyn Fn(&Head<'_>) -> Access<'a>) -> Self {
        App { authorize, ..self }
    }
}

impl<S> core::fmt::Debug for App<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("App").field("service", self.service).finish_non_exhaustive()
    }
}

/// What [`Endpoint::pull`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Pull {
    /// There is nothing to say.
    Idle,
    /// There is more to say: send what there is, then pull again.
    More,
    /// That was all: end the response.
    End,
    /// There is no such stream any more: end the response.
    Stale,
}

/// The endpoint, with at most `N` requests in flight.
#[derive(Debug)]
pub struct Endpoint<'m, const N: usize> {
    config: Config<'m>,
    server: Server<'m, N>,
    sessions: Pool<'m, Session>,
    streams: Pool<'m, Stream>,
    log: Log<'m>,
    /// The last exchange's number.
    exchanges: u32,
    /// The last scope that was given away; 0 is nobody's.
    scopes: u32,
    now: Millis,
    /// No session and no stream has a deadline before this.
    soonest: Millis,
    /// Some stream may be ready.
    stirred: Cell<bool>,
}

/// How far an [`Endpoint`] may grow where there is an allocator.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct EndpointLimits {
    /// Sessions; 10,000.
    pub sessions: usize,
    /// Event streams, open ones and those that clients may come back to; 10,000.
    pub streams: usize,
    /// Bytes that have not been sent on all streams; 256 MiB.
    pub log: usize,
    /// Bytes that have not been sent on one stream; 16 MiB.
    pub stream: usize,
    /// Bytes that were sent and are kept for clients that come back; 1 MiB.
    pub keep: usize,
}

#[cfg(feature = "alloc")]
impl Default for EndpointLimits {
    fn default() -> Self {
        EndpointLimits { sessions: 10_000, streams: 10_000, log: 256 << 20, stream: 16 << 20, keep: 1 << 20 }
    }
}

/// What a request is answered for: who asks, and how its stream would be.
struct Asker {
    scope: Scope,
    session: Option<u16>,
    resumable: bool,
    primed: bool,
    modern: bool,
}

impl<'m, const N: usize> Endpoint<'m, N> {
    /// An endpoint over lent memory. `log` holds what has not been sent on event streams, and what clients may come back
    /// for; each stream may use `log / streams` of it.
    pub fn new(
        config: Config<'m>,
        server: Server<'m, N>,
        sessions: impl Into<Pool<'m, Session>>,
        streams: impl Into<Pool<'m, Stream>>,
        log: impl Into<Store<'m>>,
    ) -> Self {
        let (streams, log) = (streams.into(), log.into());
        let share = log.limit() / streams.slots().len().max(1);
        let keep = log.limit();
        Endpoint::build(config, server, sessions.into(), streams, Log::new(Records::new(log), share, keep))
    }

    /// Lets each stream use so many bytes of the log rather than an equal share, as far as others leave them: for many
    /// streams that say little. Slow readers can then take the log from others, until their connections are given up.
    pub const fn set_share(&mut self, bytes: usize) {
        self.log.share = bytes;
    }

    /// An endpoint whose memory grows, up to limits.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(config: Config<'m>, server: Server<'m, N>, limits: EndpointLimits) -> Self {
        let log = Records::new(Store::growing(limits.log));
        let log = Log::new(log, limits.stream.min(limits.log), limits.keep);
        Endpoint::build(config, server, Pool::growing(limits.sessions), Pool::growing(limits.streams), log)
    }

    fn build(
        config: Config<'m>,
        mut server: Server<'m, N>,
        sessions: Pool<'m, Session>,
        streams: Pool<'m, Stream>,
        log: Log<'m>,
    ) -> Self {
        server.set_over_http();
        Endpoint {
            config,
            server,
            sessions,
            streams,
            log,
            exchanges: 0,
            scopes: 0,
            now: 0,
            soonest: Millis::MAX,
            stirred: Cell::new(true),
        }
    }

    /// Handles one request. A JSON body is written to `body`, which must be empty; streams are pulled. `random` fills
    /// bytes that nobody can guess.
    pub fn request<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        now: Millis,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        self.tick(now);
        let mut response = self.respond(app, head, content, random, body);
        if self.config.cors {
            response.origin = head.text("origin").filter(|origin| self.config.allows_origin(origin));
        }
        response
    }

    fn respond<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        let host = head.text("host").or_else(|| head.text(":authority"));
        let origin = head.text("origin");
        // What is there and cannot be read is not allowed either.
        let unreadable = |name, text: Option<&str>| text.is_none() && head.headers.get(name).is_some();
        let garbled = unreadable("host", host) || unreadable("origin", origin);
        let foreign = host.is_some_and(|host| !self.config.allows(host))
            || origin.is_some_and(|origin| !self.config.allows_origin(origin))
            || (garbled && !self.config.any_host);
        if foreign {
            return refuse(body, 403, code::INVALID_REQUEST, "Host or Origin is not allowed");
        }
        if head.method == "OPTIONS" && self.config.cors {
            let mut response = Response::status(204);
            response.preflight = true;
            response.requested = head.text("access-control-request-headers").filter(|names| is_header_list(names));
            return response;
        }
        let path = head.path;
        if let Some(metadata) = self.config.resource_metadata.filter(|_| is_metadata(path, self.config.path)) {
            return serve_metadata(head, metadata, body);
        }
        let known = [self.config.path, self.config.old_path, self.config.post_path].contains(&path);
        if !known {
            return refuse(body, 404, code::INVALID_REQUEST, "There is nothing here");
        }
        let principal = match (app.authorize)(head) {
            Access::Granted { principal } => principal,
            Access::Denied { status, challenge } => {
                return Response { challenge, ..refuse(body, status, code::INVALID_REQUEST, "Not authorized") };
            }
        };
        if principal.is_some_and(|principal| principal.len() > PRINCIPAL_MAX) {
            return refuse(body, 500, code::INTERNAL, "The principal's name is too long");
        }
        self.route(app, head, content, principal, random, body)
    }

    fn route<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        let path = head.path;
        if path == self.config.post_path && path != self.config.path {
            return match head.method {
                "POST" => self.old_post(app, head, content, principal, body),
                _ => not_allowed(body, "POST"),
            };
        }
        if path != self.config.path {
            return match head.method {
                "GET" if self.config.legacy => self.old_get(app, head, principal, random, body),
                _ => not_allowed(body, "GET"),
            };
        }
        let modern = gate::modern_version(head);
        match head.method {
            // What a POST is can stand in its body, too.
            "GET" | "DELETE" if gate::is_unknown_version(head) => refuse(body, 400, code::INVALID_REQUEST, NO_VERSION),
            "POST" if path == self.config.path => self.post(app, head, content, principal, modern, random, body),
            "GET" | "DELETE" if modern || !self.config.legacy => not_allowed(body, "POST"),
            "GET" => self.get(app, head, principal, random, body),
            "DELETE" if path == self.config.path => self.delete(app, head, principal, body),
            _ => not_allowed(body, if self.config.legacy { "GET, POST, DELETE" } else { "POST" }),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what a POST has")]
    fn post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        modern: bool,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        if !head.is_json() {
            return refuse(body, 415, code::INVALID_REQUEST, "Content-Type is not application/json");
        }
        if !head.accepts("application/json") {
            return refuse(body, 406, code::INVALID_REQUEST, "Accept must have application/json and text/event-stream");
        }
        let mut request = Request::empty();
        let read = request.read(content);
        let modern = modern || request.envelope().meta.is_modern();
        match read {
            Ok(()) if modern => self.modern_post(app, head, &mut request, principal, body),
            Err(_) if modern => self.unreadable(content, body),
            _ if gate::is_unknown_version(head) => refuse(body, 400, code::INVALID_REQUEST, NO_VERSION),
            _ if !self.config.legacy => {
                refuse(body, 400, code::INVALID_REQUEST, "This server is stateless: see 2026-07-28")
            }
            Ok(()) => self.legacy_post(app, head, &mut request, principal, random, body),
            Err(_) => self.legacy_batch(app, head, content, principal, body),
        }
    }

    /// Not JSON, or no object.
    fn unreadable<'r>(&mut self, content: &[u8], body: &mut dyn Out) -> Response<'r> {
        match Raw::parse(content) {
            Ok(_) => refuse(body, 400, code::INVALID_REQUEST, "Invalid request: not an object"),
            Err(_) => refuse(body, 400, code::PARSE, "Parse error"),
        }
    }

    /// Runs one message for one peer, and turns what was said into a response.
    #[allow(clippy::too_many_arguments, reason = "one place where all the parts meet")]
    fn exchange<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        asker: &Asker,
        peer: &mut Peer,
        principal: Option<&str>,
        message: Message<'_, '_>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        self.exchanges = self.exchanges.wrapping_add(1).max(1);
        let route = self.exchanges;
        let takes_stream = head.accepts("text/event-stream");
        let slot = if takes_stream { self.open_stream(asker, route) } else { None };
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let stream = slot.and_then(|slot| Some(StreamOut::new(log, streams.get_mut(usize::from(slot))?, slot)));
        // What opens a session is a body: it decides what the session's streams are like.
        let open = asker.modern || peer.revision().is_some();
        let prefers = open && self.config.streams == Streams::Preferred && head.prefers_stream();
        let mut exchange = Exchange::new(body, stream, prefers);
        let gate = HeaderGate { head: *head, modern: asker.modern };
        let origin = origin_of(&gate, principal);
        let server: &mut Engine<'m> = &mut self.server;
        server.swap_peer(peer, asker.scope);
        server.set_route(route);
        let step = match message {
            Message::Read(request) => app.service.dispatch_read(&origin, app.state, request, server, &mut exchange),
            Message::Bytes(bytes) => app.service.dispatch_from(&origin, app.state, bytes, server, &mut exchange),
        };
        if step == Err(Full::Now) {
            // The message will not come again.
            server.drop_batch();
            exchange.clear();
        }
        server.swap_peer(peer, Scope(0));
        let (mode, wanted) = (exchange.mode, exchange.wanted_stream);
        drop(exchange);
        if step == Err(Full::Now) {
            self.give_up_route(app, route);
        }
        // Without a stream there is nowhere to answer later.
        let wanted = wanted || (!takes_stream && self.server.has_route(route));
        self.conclude(app, asker, route, slot, step, mode, wanted, body)
    }

    #[allow(clippy::too_many_arguments, reason = "what an exchange leaves behind")]
    fn conclude<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        asker: &Asker,
        route: u32,
        slot: Option<u16>,
        step: Result<Step, Full>,
        mode: Mode,
        wanted_stream: bool,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let waits = self.server.has_route(route);
        let response = match (mode, slot) {
            (Mode::Stream, Some(slot)) => {
                let id = self.stream_id(slot);
                if let Some(stream) = self.stream_mut(id) {
                    stream.ready = true;
                }
                self.stirred.set(true);
                return self.after(app, Response::status(200).with(Content::Stream(id)));
            }
            (Mode::Body(kind), _) => {
                let status = if wanted_stream { 406 } else { status_of(kind, asker.modern) };
                Response::status(status).with(Content::Json)
            }
            (_, Some(slot)) if waits => {
                let id = self.stream_id(slot);
                self.stirred.set(true);
                return self.after(app, Response::status(200).with(Content::Stream(id)));
            }
            _ if step.is_err() => refuse(body, 503, code::INTERNAL, "Overloaded: try again"),
            // A handler puts its answer off, and the client takes no stream, or there is none left.
            _ if waits && !wanted_stream => refuse(body, 503, code::INTERNAL, "Overloaded: too many streams"),
            _ if waits => refuse(body, 406, code::INVALID_REQUEST, "The answer is an event stream"),
            _ => Response::status(202),
        };
        if waits {
            // Nobody can hear the answer.
            self.give_up_route(app, route);
        }
        if let Some(slot) = slot {
            self.free_stream(slot);
        }
        self.after(app, response)
    }

    /// What every call may have made possible.
    fn after<'r, S>(&mut self, app: &mut App<'_, S>, response: Response<'r>) -> Response<'r> {
        self.go_on(app);
        response
    }

    /// Writes what a stream has to say into the sink of its connection. Call it when the stream is [`ready`](Endpoint::ready)
    /// and whenever its socket has room; it may be called at any time.
    pub fn pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        let pulled = self.pull_some(id, app, now, out);
        if pulled == Pull::More {
            self.stirred.set(true);
            self.due(self.config.keep_alive, now);
        }
        pulled
    }

    fn pull_some<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        self.tick(now);
        self.go_on(app);
        if self.stream_mut(id).is_none_or(|stream| stream.link != Link::Attached) {
            return Pull::Stale;
        }
        if self.greet(id, out).is_err() {
            return Pull::More;
        }
        let room = out.room();
        loop {
            let before = out.room();
            let more = self.fill(id, app);
            let (streams, log) = (self.streams.slots_mut(), &mut self.log);
            let Some(stream) = streams.get_mut(usize::from(id.slot)) else { return Pull::Stale };
            if write_events(stream, id.slot, log, out) == Written::Full {
                stream.written = now;
                return Pull::More;
            }
            if !more {
                break;
            }
            if out.room() == before {
                // Others have taken the log: later. (What never fits does not come here.)
                self.mark_ready(id);
                return Pull::Idle;
            }
        }
        if out.room() != room {
            self.wrote(id, now);
        }
        self.finish_pull(id, app, now, out)
    }

    fn mark_ready(&mut self, id: StreamId) {
        self.stirred.set(true);
        if let Some(stream) = self.stream_mut(id) {
            stream.ready = true;
        }
    }

    fn wrote(&mut self, id: StreamId, now: Millis) {
        if let Some(stream) = self.stream_mut(id) {
            stream.written = now;
        }
    }

    /// Everything there is has been written: is that the end?
    fn finish_pull<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis, out: &mut dyn Sink) -> Pull {
        let Some(stream) = self.stream_mut(id) else { return Pull::Stale };
        stream.ready = false;
        let (purpose, route, scope) = (stream.purpose, stream.route, stream.scope);
        let (hangs_up, due) = (stream.hangs_up, now.saturating_sub(stream.written));
        let hung_up = stream.hung_up;
        let over = match purpose {
            Purpose::Post => !self.server.has_route(route),
            Purpose::Listen => !self.server.has_subscriptions(scope),
            Purpose::Session | Purpose::Old => self.stream_mut(id).is_none_or(|stream| stream.ended),
        };
        if over {
            let session = self.stream_mut(id).and_then(|stream| stream.session).filter(|_| purpose == Purpose::Old);
            self.free_stream(id.slot);
            if let Some(session) = session {
                // A session of the old transport is its stream.
                self.end_session(app, session);
            }
            return Pull::End;
        }
        let released = purpose == Purpose::Post && !hung_up && self.server.is_released(route);
        if (hangs_up || released) && self.hang_up(id, now) {
            return Pull::End;
        }
        if self.config.keep_alive > 0 && due >= self.config.keep_alive {
            if out.put(b":\n\n").is_err() {
                return Pull::More;
            }
            self.wrote(id, now);
        }
        let written = self.stream_mut(id).map_or(now, |stream| stream.written);
        self.due(self.config.keep_alive, written);
        Pull::Idle
    }

    /// Lets go of a client that will come back; only where it can.
    fn hang_up(&mut self, id: StreamId, now: Millis) -> bool {
        match self.stream_mut(id).filter(|stream| stream.primed) {
            Some(stream) => {
                stream.link = Link::Detached { since: now };
                stream.hung_up = true;
                self.soonest = now;
                true
            }
            None => false,
        }
    }

    /// Writes what stands before the first event.
    fn greet(&mut self, id: StreamId, out: &mut dyn Sink) -> Result<(), Full> {
        let (retry, post_path) = (self.config.retry, self.config.post_path);
        let session = self.stream_mut(id).and_then(|stream| stream.session);
        let session = session.and_then(|slot| self.sessions.slots().get(usize::from(slot)).map(|session| session.id));
        let Some(stream) = self.stream_mut(id).filter(|stream| !stream.greeted) else { return Ok(()) };
        match (stream.purpose, session) {
            (Purpose::Old, Some(session)) => {
                let (begin, id) = (b"event: endpoint\ndata: ", session.as_str().as_bytes());
                stream.put_head(&[begin, post_path.as_bytes(), b"?session=", id, b"\n\n"], out)?;
            }
            _ if stream.primed => write_priming(stream, id.slot, retry, out)?,
            _ => {}
        }
        (stream.greeted, stream.head) = (true, 0);
        Ok(())
    }

    /// Puts into the log what is due on a stream: windows of a large reply, changes. Whether there may be more once that
    /// has been written.
    fn fill<S>(&mut self, id: StreamId, app: &mut App<'_, S>) -> bool {
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let Some(stream) = streams.get_mut(usize::from(id.slot)) else { return false };
        if stream.ended && stream.purpose == Purpose::Session {
            // A newer one says what there is to say.
            return false;
        }
        let (route, purpose, scope, session) = (stream.route, stream.purpose, stream.scope, stream.session);
        let server: &mut Engine<'m> = &mut self.server;
        if let Some(token) = server.streaming(route).filter(|_| matches!(purpose, Purpose::Post | Purpose::Old)) {
            let mut out = StreamOut::new(log, stream, id.slot);
            return app.service.pump(app.state, token, server, &mut out) == Pump::More;
        }
        let mut nobody = Peer::NEW;
        let peer = match (purpose, session) {
            (Purpose::Session | Purpose::Old, Some(slot)) => {
                match self.sessions.slots_mut().get_mut(usize::from(slot)) {
                    Some(session) => &mut session.peer,
                    None => return false,
                }
            }
            (Purpose::Listen, _) => &mut nobody,
            _ => return false,
        };
        let mut out = StreamOut::new(log, stream, id.slot);
        server.swap_peer(peer, scope);
        let pulled = server.pull(app.service.about(), &mut out);
        server.swap_peer(peer, Scope(0));
        pulled == server::Pull::More
    }

    /// Runs handlers whose questions were answered, each on its own stream.
    fn go_on<S>(&mut self, app: &mut App<'_, S>) {
        let mut first = 0;
        while let Some((number, token)) = self.server.ready_from(first) {
            first = number + 1;
            let resumed = self.on_stream_of(token, |service_server, session, out| {
                let (server, state) = (service_server, &mut *app.state);
                let gate = ();
                let origin = origin_of(&gate, session);
                app.service.resume_from(&origin, state, token, server, out)
            });
            // Full: its own stream must be read first; the others do not wait for it.
            if resumed.is_none() {
                self.server.forget(token);
            }
        }
    }

    /// Does something with the stream on which a request is answered; `None` if it is gone.
    fn on_stream_of<T>(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Engine<'m>, Option<&str>, &mut dyn Out) -> T,
    ) -> Option<T> {
        let id = self.stream_of(token)?;
        let (streams, log) = (self.streams.slots_mut(), &mut self.log);
        let stream = streams.get_mut(usize::from(id.slot))?;
        let (scope, session) = (stream.scope, stream.session);
        let mut nobody = Session::FREE;
        let session = match session {
            Some(slot) => self.sessions.slots_mut().get_mut(usize::from(slot))?,
            None => &mut nobody,
        };
        let mut peer = session.peer;
        let server: &mut Engine<'m> = &mut self.server;
        server.swap_peer(&mut peer, scope);
        let mut out = StreamOut::new(log, stream, id.slot);
        let done = act(server, session.principal(), &mut out);
        server.swap_peer(&mut peer, Scope(0));
        drop(out);
        session.peer = peer;
        stream.ready = true;
        self.stirred.set(true);
        Some(done)
    }

    /// Answers a tool call that was put off, see [`Service::answer`].
    ///
    /// # Errors
    /// [`SendError::Stale`] if the request was cancelled or its client is gone; the other ones leave it open.
    pub fn answer<S>(
        &mut self,
        app: &mut App<'_, S>,
        token: Token,
        answer: impl FnOnce(&mut S, &mut Call<'_>) -> Outcome,
    ) -> Result<(), SendError> {
        let answered = self.on_stream_of(token, |server, _, out| {
            app.service.answer(&mut *app.state, token, server, out, answer).map(|_| ())
        });
        answered.unwrap_or(Err(SendError::Stale))
    }

    /// Gives up the requests of an exchange that nobody can hear any more; handlers that put their answer off are told.
    fn give_up_route<S>(&mut self, app: &mut App<'_, S>, route: u32) {
        for slot in 0..N {
            let token = self.server.token_at(slot).filter(|token| self.server.route(*token) == Some(route));
            if let Some(token) = token {
                app.service.forget(app.state, token, &mut self.server);
            }
        }
    }

    /// Tells how far a request is that was put off.
    pub fn progress(&mut self, token: Token, progress: Progress<'_>) -> Told {
        let told = self.on_stream_of(token, |server, _, out| server.progress(token, progress, out));
        told.unwrap_or(Told::Stale)
    }

    /// Sends a log message on behalf of a request that was put off, if its client wants messages of that level.
    pub fn log<S>(&mut self, app: &App<'_, S>, token: Token, level: Level, message: impl core::fmt::Display) -> Told {
        let about = app.service.about();
        let told = self.on_stream_of(token, |server, _, out| {
            server.log(about, Some(token), level, None, format_args!("{message}"), out)
        });
        told.unwrap_or(Told::Stale)
    }

    /// Does with the server what [`answer`](Endpoint::answer) and [`progress`](Endpoint::progress) do not, on the stream of a
    /// request; `None` if that is gone.
    pub fn with_stream_of<T>(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut Engine<'m>, &mut dyn Out) -> T,
    ) -> Option<T> {
        self.on_stream_of(token, |server, _, out| act(server, out))
    }

    /// Tells that something has changed: every session and every listen that wants to hear of it does, once.
    pub fn publish(&mut self, change: Change<'_>) {
        let server: &mut Engine<'m> = &mut self.server;
        server.publish(change);
        for session in self.sessions.slots_mut().iter_mut().filter(|session| session.live) {
            session.peer.note(change);
        }
        self.stirred.set(true);
        for stream in self.streams.slots_mut() {
            stream.ready |= matches!(stream.purpose, Purpose::Session | Purpose::Old | Purpose::Listen);
        }
    }

    /// Sends a log message on behalf of nobody in particular, to each session that wants messages of that level and
    /// hears what concerns no request.
    pub fn announce<S>(&mut self, app: &App<'_, S>, level: Level, message: &str) {
        self.stirred.set(true);
        for (slot, stream) in self.streams.slots_mut().iter_mut().enumerate() {
            let session = stream.session.filter(|_| matches!(stream.purpose, Purpose::Session | Purpose::Old));
            let Some(session) = session.filter(|_| !stream.is_free()) else { continue };
            let Some(session) = self.sessions.slots_mut().get_mut(usize::from(session)) else { continue };
            let server: &mut Engine<'m> = &mut self.server;
            server.swap_peer(&mut session.peer, session.scope);
            let mut out = StreamOut::new(&mut self.log, stream, slot as u16);
            // A client that does not read misses it.
            let _ = server.log(app.service.about(), None, level, None, format_args!("{message}"), &mut out);
            server.swap_peer(&mut session.peer, Scope(0));
        }
    }

    /// The streams that have something to say, or may have.
    pub fn ready(&self) -> impl Iterator<Item = StreamId> + '_ {
        let is_ready = |stream: &Stream| stream.ready && stream.link == Link::Attached;
        // Most turns make no stream ready: then none is looked at.
        self.stirred.set(self.stirred.get() && self.streams.slots().iter().any(is_ready));
        let streams = if self.stirred.get() { self.streams.slots() } else { &[] };
        let ready = streams.iter().enumerate().filter(move |(_, stream)| is_ready(stream));
        ready.map(|(slot, stream)| StreamId { slot: slot as u16, generation: stream.generation, visit: stream.visit })
    }

    /// The stream on which a request is answered.
    #[must_use]
    pub fn stream_of(&self, token: Token) -> Option<StreamId> {
        let route = self.server.route(token)?;
        let found = self.streams.slots().iter().position(|stream| {
            !stream.is_free() && stream.route == route && matches!(stream.purpose, Purpose::Post | Purpose::Old)
        });
        found.map(|slot| self.stream_id(slot as u16))
    }

    /// Whether a stream answers no request, but is open for what may happen. Where connections are scarce, ending its
    /// connection does the least harm: its client comes back.
    #[must_use]
    pub fn only_listens(&self, id: StreamId) -> bool {
        let stream = self.streams.slots().get(id.slot()).filter(|stream| stream.is(id));
        stream.is_some_and(|stream| matches!(stream.purpose, Purpose::Session | Purpose::Listen))
    }

    /// The connection of a stream is gone. A client of the legacy revisions may come back for its answer; from 2026-07-28
    /// on, that cancels its request.
    pub fn detach<S>(&mut self, id: StreamId, app: &mut App<'_, S>, now: Millis) {
        let Some(stream) = self.stream_mut(id).filter(|stream| stream.link == Link::Attached) else { return };
        match (stream.purpose, stream.resumable) {
            (Purpose::Old, _) => {
                let session = stream.session;
                self.free_stream(id.slot);
                if let Some(session) = session {
                    self.end_session(app, session);
                }
            }
            (_, true) if stream.session.is_some() && !stream.held => {
                stream.link = Link::Detached { since: now };
                self.due(self.config.resume_within, now);
            }
            (_, true) => {
                // Its session is over; or a reply in windows has begun, which cannot be sent again.
                let (route, ended) = (stream.route, stream.session.is_none());
                self.free_stream(id.slot);
                if !ended {
                    self.give_up_route(app, route);
                }
            }
            (_, false) => {
                let scope = stream.scope;
                let own = stream.session.is_none();
                self.free_stream(id.slot);
                if own {
                    app.service.end_scope(app.state, scope, &mut self.server);
                }
            }
        }
    }

    /// Tells the time: ends sessions that are idle, forgets answers that nobody comes back for.
    pub fn expire<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.tick(now);
        if self.soonest <= now {
            self.expire_all(app, now);
        }
        self.go_on(app);
    }

    /// Looks at every session and every stream.
    fn expire_all<S>(&mut self, app: &mut App<'_, S>, now: Millis) {
        self.soonest = Millis::MAX;
        for slot in 0..self.sessions.slots().len() {
            let session = self.sessions.slots().get(slot).copied().unwrap_or(Session::FREE);
            let heard = session.live && self.is_heard(slot as u16);
            let idle = now.saturating_sub(session.used) >= self.config.session_idle;
            if !session.live || session.old {
                continue;
            }
            match self.sessions.slots_mut().get_mut(slot) {
                Some(_) if !idle => self.due(self.config.session_idle, session.used),
                // Somebody listens: that is use, too.
                Some(session) if heard => {
                    session.used = now;
                    self.due(self.config.session_idle, now);
                }
                _ => self.end_session(app, slot as u16),
            }
        }
        for slot in 0..self.streams.slots().len() {
            let Some(stream) = self.streams.slots_mut().get_mut(slot) else { break };
            match stream.link {
                // Losing its stream cancels nothing: the time for coming back begins with the answer.
                Link::Detached { .. } if stream.purpose == Purpose::Post && self.server.has_route(stream.route) => {
                    stream.link = Link::Detached { since: now };
                    self.due(self.config.resume_within, now);
                }
                Link::Detached { since } if now.saturating_sub(since) >= self.config.resume_within => {
                    self.free_stream(slot as u16);
                }
                Link::Detached { since } => self.due(self.config.resume_within, since),
                // One that is ready is about to be pulled, or waits for its socket.
                Link::Attached if self.config.keep_alive > 0 && !stream.ready => {
                    let written = stream.written;
                    stream.ready = now.saturating_sub(written) >= self.config.keep_alive;
                    match stream.ready {
                        true => self.stirred.set(true),
                        false => self.due(self.config.keep_alive, written),
                    }
                }
                _ => {}
            }
        }
    }

    /// Something is due so long after a time; 0 for never.
    fn due(&mut self, after: Millis, since: Millis) {
        if after > 0 {
            self.soonest = self.soonest.min(since.saturating_add(after));
        }
    }

    /// The time at which [`expire`](Endpoint::expire) is to be called; it may then have nothing to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let own = (self.soonest != Millis::MAX).then_some(self.soonest);
        own.into_iter().chain(self.server.next_deadline()).min()
    }

    /// The server is going away: listens end, what is open is answered with an error. Pull the streams to their ends.
    pub fn shut_down(&mut self) {
        self.server.end_listens();
        self.stirred.set(true);
        for slot in 0..self.streams.slots().len() {
            let id = self.stream_id(slot as u16);
            let Some(stream) = self.stream_mut(id).filter(|stream| !stream.is_free()) else { continue };
            stream.ended = true;
            stream.ready = true;
        }
        let open: [Option<Token>; N] = core::array::from_fn(|slot| self.server.token_at(slot));
        for token in open.into_iter().flatten() {
            // A reply in windows is under way already, and ends by itself.
            let streams = self.server.route(token).and_then(|route| self.server.streaming(route)) == Some(token);
            let attached = self.stream_of(token).is_some_and(|id| self.is_attached(id));
            if streams && attached {
                continue;
            }
            let told =
                self.on_stream_of(token, |server, _, out| server.give_up(token, "The server is going away", out));
            if told != Some(Ok(())) {
                self.server.forget(token);
            }
        }
    }

    /// Requests in flight, sessions, streams: for limits and statistics.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        let sessions = self.sessions.slots().iter().filter(|session| session.live).count();
        let streams = self.streams.slots().iter().filter(|stream| !stream.is_free()).count();
        (self.server.in_flight(), sessions, streams)
    }

    fn tick(&mut self, now: Millis) {
        self.now = now;
        self.server.expire(now);
    }

    fn new_scope(&mut self) -> Scope {
        self.scopes = self.scopes.wrapping_add(1).max(1);
        Scope(self.scopes)
    }

    fn stream_id(&self, slot: u16) -> StreamId {
        let stream = self.streams.slots().get(usize::from(slot));
        let (generation, visit) = stream.map_or((0, 0), |stream| (stream.generation, stream.visit));
        StreamId { slot, generation, visit }
    }

    fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.streams.slots_mut().get_mut(usize::from(id.slot))?;
        stream.is(id).then_some(stream)
    }

    fn is_attached(&self, id: StreamId) -> bool {
        let stream = self.streams.slots().get(usize::from(id.slot));
        stream.is_some_and(|stream| stream.is(id) && stream.link == Link::Attached)
    }

    /// Whether a client reads a stream of this session.
    fn is_heard(&self, session: u16) -> bool {
        let mut streams = self.streams.slots().iter();
        streams.any(|stream| stream.link == Link::Attached && stream.session == Some(session))
    }

    /// A slot for a stream: one that is free, or that of an answer which was sent and only kept in case.
    fn open_stream(&mut self, asker: &Asker, route: u32) -> Option<u16> {
        let slot = self.streams.free(Stream::is_free, || Stream::FREE).or_else(|| self.steal_stream())?;
        let now = self.now;
        self.due(self.config.keep_alive, now);
        let stream = self.streams.slots_mut().get_mut(slot)?;
        *stream = Stream {
            link: Link::Attached,
            generation: stream.generation.wrapping_add(1),
            session: asker.session,
            route,
            scope: asker.scope,
            resumable: asker.resumable,
            primed: asker.primed,
            written: now,
            ready: true,
            ..Stream::FREE
        };
        u16::try_from(slot).ok()
    }

    fn steal_stream(&mut self) -> Option<usize> {
        let idle =
            |stream: &Stream| matches!(stream.link, Link::Detached { .. }) && !self.server.has_route(stream.route);
        let slot = self.streams.slots().iter().position(idle)?;
        self.free_stream(slot as u16);
        Some(slot)
    }

    fn free_stream(&mut self, slot: u16) {
        let Some(stream) = self.streams.slots_mut().get_mut(usize::from(slot)) else { return };
        stream.link = Link::Free;
        stream.ready = false;
        let used = stream.next_event > 1;
        if used {
            self.log.forget(slot);
        }
    }
}

/// One message of a request.
enum Message<'x, 'a> {
    Read(&'x mut Request<'a>),
    Bytes(&'a [u8]),
}

fn origin_of<'o>(gate: &'o dyn Gate, principal: Option<&'o str>) -> Origin<'o> {
    match principal {
        Some(principal) => Origin::new(gate).principal(principal),
        None => Origin::new(gate),
    }
}

/// The status of a JSON body.
fn status_of(kind: Kind, modern: bool) -> u16 {
    match (kind, modern) {
        (Kind::Refusal(code::INTERNAL), _) => 503,
        (Kind::Error(code::METHOD_NOT_FOUND) | Kind::Refusal(code::METHOD_NOT_FOUND), true) => 404,
        (Kind::Refusal(_), true) => 400,
        (Kind::Refusal(code::PARSE | code::INVALID_REQUEST), false) => 400,
        _ => 200,
    }
}

/// An error of HTTP, with a JSON-RPC error without id to read.
fn refuse<'r>(body: &mut dyn Out, status: u16, code: i32, message: &str) -> Response<'r> {
    let written = server::write_error(body, &Failure::new(code, message));
    let content = if written.is_ok() { Content::Json } else { Content::None };
    Response::status(status).with(content)
}

fn not_allowed<'r>(body: &mut dyn Out, allow: &'static str) -> Response<'r> {
    let mut response = refuse(body, 405, code::INVALID_REQUEST, "Method not allowed");
    response.allow = Some(allow);
    response
}

/// Whether a text can stand as a list of header names in a header.
fn is_header_list(names: &str) -> bool {
    names.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
}

const NO_VERSION: &str = "MCP-Protocol-Version is not supported";

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

fn is_metadata(path: &str, endpoint: &str) -> bool {
    path.strip_prefix(WELL_KNOWN).is_some_and(|rest| rest.is_empty() || rest == endpoint)
}

fn serve_metadata<'r>(head: &Head<'_>, metadata: Raw<'_>, body: &mut dyn Out) -> Response<'r> {
    if head.method != "GET" {
        return not_allowed(body, "GET");
    }
    let mut write = || {
        body.begin(Kind::Result)?;
        body.put(metadata.as_bytes())?;
        body.end();
        Ok::<(), Full>(())
    };
    match write() {
        Ok(()) => Response::status(200).with(Content::Json),
        Err(_) => Response::status(500),
    }
}
