//! Sessions: Streamable HTTP of 2025-03-26 to 2025-11-25, and the HTTP+SSE transport of 2024-11-05.

use mcp_sansio::Full;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{Method, code};
use mcp_sansio::revision::Revision;
use mcp_sansio::rpc::Shape;
use mcp_sansio::server::Request;

use mcp_sansio::sink::Out;

use super::config::same_path;
use super::exchange::{Message, origin_of};
use super::head::{BadField, Content, Head, Response, SessionId};
use super::media::{Accept, is_json};
use super::refusal::refuse;
use super::session::{Session, make_id, same_id, slot_of};
use super::stream::{Link, Purpose, Stream, StreamId, StreamOut, read_event_id};
use super::{App, Asker, Endpoint};

const UNREAD: &str = "Overloaded: the event stream is not being read";

/// Why a request has no session.
enum NoSession {
    Missing,
    Unknown,
    /// Two lines of the header name two sessions.
    Differing,
}

/// The code of an unknown session. No page defines it; the SDKs write it, and clients look for it and for the words.
const SESSION_NOT_FOUND: i32 = -32001;

impl<const N: usize> Endpoint<'_, N> {
    pub(crate) fn legacy_post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        request: &mut Request<'_>,
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        let opens = matches!(request.envelope().shape(), Shape::Request { method, .. } if Method::from_name(&method) == Method::Initialize);
        let no_header = head.headers.get("mcp-session-id").is_none();
        if opens && no_header {
            return self.open_session(app, head, request, principal, random, body);
        }
        match self.session_of(head, principal) {
            Ok(slot) => self.in_session(app, head, slot, principal, Message::Read(request), body),
            Err(none) => no_session(none, body),
        }
    }

    pub(crate) fn legacy_batch<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let is_array = Raw::parse(content).is_ok_and(|raw| raw.as_bytes().starts_with(b"["));
        match self.session_of(head, principal) {
            Ok(slot) if is_array => self.in_session(app, head, slot, principal, Message::Bytes(content), body),
            _ => self.unreadable(content, body),
        }
    }

    fn open_session<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        request: &mut Request<'_>,
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        let Some((slot, id)) = self.new_session(app, principal, random) else {
            return refuse(body, 503, code::INTERNAL, "Overloaded: too many sessions");
        };
        let mut response = self.in_session(app, head, slot, principal, Message::Read(request), body);
        let opened = self.session(slot).is_some_and(|session| session.peer.revision().is_some());
        if opened {
            response.session = Some(id);
            self.prime_opening(slot, response.content);
        } else {
            self.end_session(app, slot);
        }
        response
    }

    /// The answer to `initialize` may be an event stream too; whether that is primed is known only now.
    fn prime_opening(&mut self, slot: u16, content: Content) {
        let primed = self.session(slot).is_some_and(|session| session.peer.revision() == Some(Revision::V2025_11_25));
        if let Content::Stream(id) = content
            && let Some(stream) = self.stream_mut(id)
        {
            stream.primed = primed;
        }
    }

    /// Where what a message makes the server say belongs: a cancellation concerns the stream of its request.
    fn cancels(&mut self, slot: u16, message: &Message<'_, '_>) -> Option<StreamId> {
        let Message::Read(request) = message else { return None };
        let cancels = matches!(request.envelope().shape(), Shape::Notification { method } if method.is("notifications/cancelled"));
        let scope = self.session(slot)?.scope;
        let server: &mut mcp_sansio::server::Engine<'_> = &mut self.server;
        let mut nobody = mcp_sansio::server::Peer::NEW;
        server.swap_peer(&mut nobody, scope);
        let token = if cancels { server.named_by(request) } else { None };
        server.swap_peer(&mut nobody, Default::default());
        self.stream_of(token?)
    }

    /// A cancellation: what it makes the server say goes where its request would be answered, and that stream ends.
    fn cancel<S>(
        &mut self,
        app: &mut App<'_, S>,
        slot: u16,
        id: StreamId,
        principal: Option<&str>,
        message: Message<'_, '_>,
    ) {
        let Message::Read(request) = message else { return };
        let Some(session) = self.sessions.slots_mut().get_mut(usize::from(slot)) else { return };
        let server: &mut mcp_sansio::server::Engine<'_> = &mut self.server;
        server.swap_peer(&mut session.peer, session.scope);
        let mut out = StreamOut::new(&mut self.log, self.streams.slots_mut(), id.slot);
        let gate = ();
        // A stream that is full hears nothing of it; the request is over all the same.
        let _ = app.service.dispatch_read(&origin_of(&gate, principal), app.state, request, server, &mut out);
        drop(out);
        server.swap_peer(&mut session.peer, Default::default());
        self.mark_ready(id);
    }

    /// One message of a session.
    fn in_session<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        slot: u16,
        principal: Option<&'r str>,
        message: Message<'_, '_>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        let now = self.now;
        let Some(session) = self.session_mut(slot) else { return no_session(NoSession::Unknown, body) };
        session.used = now;
        let (scope, mut peer) = (session.scope, session.peer);
        if let Some(id) = self.cancels(slot, &message) {
            self.cancel(app, slot, id, principal, message);
            return Response::status(202);
        }
        let primed = peer.revision() == Some(Revision::V2025_11_25);
        let asker = Asker { scope, session: Some(slot), resumable: true, primed, modern: false };
        let response = self.exchange(app, head, &asker, &mut peer, principal, message, body);
        let Some(session) = self.session_mut(slot) else { return response };
        // A change that was noted before is told from `notifications/initialized`, or the first request, on.
        let begins = peer.is_initialized() && !session.peer.is_initialized();
        session.peer = peer;
        if let Some(id) = session.stream.filter(|_| begins) {
            self.mark_ready(id);
        }
        response
    }

    /// GET: the stream of a session, or a stream that was broken off.
    pub(crate) fn get<'r, S>(
        &mut self,
        app: &mut App<'_, S>,
        head: &Head<'r>,
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        // Not `*/*`: who only looks what is here would wait for a stream that has nothing to say.
        if !Accept::of(head).names_stream() {
            return refuse(body, 406, code::INVALID_REQUEST, "Accept must have text/event-stream");
        }
        let bare = head.headers.get("mcp-session-id").is_none() && head.headers.get("mcp-protocol-version").is_none();
        if bare {
            // Clients of 2024-11-05 open their stream at the same URL.
            return self.old_get(app, head, principal, random, body);
        }
        let slot = match self.session_of(head, principal) {
            Ok(slot) => slot,
            Err(none) => return no_session(none, body),
        };
        if let Some(session) = self.sessions.slots_mut().get_mut(usize::from(slot)) {
            session.used = self.now;
        }
        let stream = match head.text("last-event-id") {
            Some(last) => self.come_back(slot, last),
            None => self.open_session_stream(slot),
        };
        match (stream, head.text("last-event-id")) {
            (Some(id), _) => Response::status(200).with(Content::Stream(id)),
            (None, Some(_)) => refuse(body, 400, code::INVALID_REQUEST, "Last-Event-ID is unknown or too old"),
            (None, None) => refuse(body, 503, code::INTERNAL, "Overloaded: too many streams"),
        }
    }

    /// A client comes back for the rest of a stream of its own session.
    fn come_back(&mut self, slot: u16, last: &str) -> Option<StreamId> {
        let (place, number, event) = read_event_id(last)?;
        let streams = self.streams.slots_mut();
        let stream = streams.get(usize::from(place)).filter(|stream| !stream.is_free())?;
        let known = stream.number == number && stream.session == Some(slot) && stream.resumable;
        // What was sent, and has not been forgotten since.
        if !known || event >= stream.seen || event + 1 < stream.chain.first() {
            return None;
        }
        self.log.seek(streams, place, event + 1);
        let stream = streams.get_mut(usize::from(place))?;
        // Of a session's streams, this is the one in use again.
        (stream.greeted, stream.ended) = (true, false);
        stream.attach(event + 1);
        let (purpose, id) = (stream.purpose, self.stream_id(place));
        self.stirred.set(true);
        if purpose == Purpose::Session {
            self.replace_session_stream(slot, id)?;
        }
        Some(id)
    }

    fn open_session_stream(&mut self, slot: u16) -> Option<StreamId> {
        let session = *self.session(slot)?;
        let primed = session.peer.revision() == Some(Revision::V2025_11_25);
        let asker = Asker { scope: session.scope, session: Some(slot), resumable: true, primed, modern: false };
        let stream = self.open_stream(&asker, 0)?;
        let id = self.name_stream(stream);
        self.stream_mut(id)?.purpose = Purpose::Session;
        self.stirred.set(true);
        self.replace_session_stream(slot, id)?;
        Some(id)
    }

    /// Each message goes to one stream only: to the newest.
    fn replace_session_stream(&mut self, slot: u16, newer: StreamId) -> Option<()> {
        let older = self.session_mut(slot)?.stream.replace(newer);
        if let Some(older) = older.and_then(|id| self.stream_mut(id)) {
            older.ended = true;
            older.ready = true;
        }
        Some(())
    }

    pub(crate) fn delete<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        principal: Option<&'r str>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        match self.session_of(head, principal) {
            Ok(slot) => {
                self.end_session(app, slot);
                Response::status(204)
            }
            Err(none) => no_session(none, body),
        }
    }

    /// The old transport: GET opens the stream on which everything is answered.
    pub(crate) fn old_get<'r, S>(
        &mut self,
        app: &mut App<'_, S>,
        head: &Head<'r>,
        principal: Option<&'r str>,
        random: &mut dyn FnMut(&mut [u8]),
        body: &mut dyn Out,
    ) -> Response<'r> {
        if !Accept::of(head).stream() {
            return refuse(body, 406, code::INVALID_REQUEST, "Accept must have text/event-stream");
        }
        let overloaded = "Overloaded: too many sessions";
        let Some((slot, _)) = self.new_session(app, principal, random) else {
            return refuse(body, 503, code::INTERNAL, overloaded);
        };
        let scope = self.session(slot).map_or_else(Default::default, |session| session.scope);
        self.exchanges = self.exchanges.wrapping_add(1).max(1);
        let asker = Asker { scope, session: Some(slot), resumable: false, primed: false, modern: false };
        let Some(stream) = self.open_stream(&asker, self.exchanges) else {
            if let Some(session) = self.session_mut(slot) {
                session.live = false;
            }
            return refuse(body, 503, code::INTERNAL, overloaded);
        };
        let id = self.name_stream(stream);
        self.stirred.set(true);
        if let Some(stream) = self.stream_mut(id) {
            stream.purpose = Purpose::Old;
        }
        if let Some(session) = self.session_mut(slot) {
            session.old = true;
            session.stream = Some(id);
        }
        Response::status(200).with(Content::Stream(id))
    }

    /// The old transport: what is posted is answered on the stream.
    pub(crate) fn old_post<'r, 'a: 'r, S>(
        &mut self,
        app: &mut App<'a, S>,
        head: &Head<'r>,
        content: &[u8],
        principal: Option<&'r str>,
        body: &mut dyn Out,
    ) -> Response<'r> {
        if !is_json(head) {
            return refuse(body, 415, code::INVALID_REQUEST, "Content-Type is not application/json");
        }
        let Some(given) = head.member("session") else { return no_session(NoSession::Missing, body) };
        let Some(slot) =
            self.find_session(given.as_bytes(), principal).filter(|slot| self.session(*slot).is_some_and(|s| s.old))
        else {
            return no_session(NoSession::Unknown, body);
        };
        let now = self.now;
        let scope = self.session(slot).map_or_else(Default::default, |session| session.scope);
        let client = self.client_of(scope, false, principal);
        self.allow_places(client);
        let Some(session) = self.sessions.slots_mut().get_mut(usize::from(slot)) else {
            return no_session(NoSession::Unknown, body);
        };
        session.used = now;
        let Some(id) = session.stream else {
            return no_session(NoSession::Unknown, body);
        };
        let streams = self.streams.slots_mut();
        let Some(&Stream { route, .. }) =
            streams.get(usize::from(id.slot)).filter(|stream| stream.unread() < self.log.unread)
        else {
            return refuse(body, 503, code::INTERNAL, UNREAD);
        };
        let server: &mut mcp_sansio::server::Engine<'_> = &mut self.server;
        server.swap_peer(&mut session.peer, scope);
        server.set_route(route);
        let mut out = StreamOut::new(&mut self.log, streams, id.slot);
        let (gate, before) = ((), out.unsent());
        let step = app.service.dispatch_from(&origin_of(&gate, principal), app.state, content, server, &mut out);
        if let (Err(Full::Now), Some(before)) = (step, before) {
            // The message will not come again.
            server.drop_batch();
            out.back_to(before);
        }
        drop(out);
        server.swap_peer(&mut session.peer, Default::default());
        self.mark_ready(id);
        self.settle(app, client, route, id.slot);
        self.go_on(app);
        match step {
            Ok(_) => Response::status(202),
            Err(_) => refuse(body, 503, code::INTERNAL, UNREAD),
        }
    }

    /// Whether a request had better wait: it belongs to a session of the old transport, and on the only stream that this
    /// has a reply in windows is under way, or what was said has not been sent. Keep it until that has gone out; given to
    /// [`request`](Endpoint::request) now, it may be refused as overload.
    #[must_use]
    pub fn must_wait(&self, head: &Head<'_>) -> bool {
        let session = head
            .member("session")
            .filter(|_| same_path(self.config.post_path, head.path))
            .and_then(|id| slot_of(id.as_bytes()));
        let session = session.and_then(|slot| self.sessions.slots().get(slot)).filter(|session| session.live);
        let stream = session.and_then(|session| session.stream).filter(|_| session.is_some_and(|session| session.old));
        let stream = stream.and_then(|id| self.streams.slots().get(id.slot()).filter(|stream| stream.is(id)));
        stream.is_some_and(|stream| stream.held || stream.chain.unsent() > 0)
    }

    /// Ends a session with everything in it.
    pub(crate) fn end_session<S>(&mut self, app: &mut App<'_, S>, slot: u16) {
        let Some(session) = self.session_mut(slot) else { return };
        session.live = false;
        let scope = session.scope;
        app.service.end_scope(app.state, scope, &mut self.server);
        self.stirred.set(true);
        for number in 0..self.streams.slots().len() {
            let Some(stream) = self.streams.slots_mut().get_mut(number) else { break };
            if stream.is_free() || stream.session != Some(slot) {
                continue;
            }
            // Whoever reads it is told by its end; nobody else will come.
            stream.ended = true;
            stream.ready = true;
            stream.session = None;
            if stream.link != Link::Attached {
                self.free_stream(number as u16);
            }
        }
    }

    /// Ends a session where there is no room for another one, or none in its principal's share; `false` if none makes way.
    fn make_room<S>(&mut self, app: &mut App<'_, S>, principal: Option<&str>) -> bool {
        let is_its = |session: &&Session| session.live && session.is_of(principal);
        let own =
            principal.is_some() && self.sessions.slots().iter().filter(is_its).count() >= self.config.session_share;
        if !own && self.sessions.free(|session| !session.live, || Session::FREE).is_some() {
            return true;
        }
        let (rest, now) = (self.config.session_rest, self.now);
        if rest == 0 {
            return false;
        }
        self.mark_busy();
        let rests = |session: &Session| !session.peer.is_initialized() || now.saturating_sub(session.used) >= rest;
        let may_go = |session: &Session| {
            session.live && !session.old && !session.busy && rests(session) && (!own || session.is_of(principal))
        };
        let sessions = self.sessions.slots().iter().enumerate().filter(|(_, session)| may_go(session));
        let Some((slot, _)) = sessions.min_by_key(|(_, session)| (session.peer.is_initialized(), session.used)) else {
            return false;
        };
        self.end_session(app, slot as u16);
        true
    }

    fn new_session<S>(
        &mut self,
        app: &mut App<'_, S>,
        principal: Option<&str>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Option<(u16, SessionId)> {
        if !self.make_room(app, principal) {
            return None;
        }
        let slot = self.sessions.free(|session| !session.live, || Session::FREE)?;
        let slot = u16::try_from(slot).ok()?;
        let mut bytes = [0; SessionId::LEN / 2];
        random(&mut bytes);
        let (id, scope, now) = (make_id(bytes, slot), self.new_scope(), self.now);
        *self.sessions.slots_mut().get_mut(usize::from(slot))? = Session::new(id, scope, principal, now);
        self.due(self.config.session_idle, now);
        Some((slot, id))
    }

    /// The session that a request's header names; one of another principal is as if unknown.
    fn session_of(&self, head: &Head<'_>, principal: Option<&str>) -> Result<u16, NoSession> {
        let given = match head.only("mcp-session-id") {
            Ok(given) => given.ok_or(NoSession::Missing)?,
            Err(BadField::Differing) => return Err(NoSession::Differing),
            Err(BadField::Characters) => return Err(NoSession::Unknown),
        };
        let found = self.find_session(given.as_bytes(), principal);
        found.filter(|slot| self.session(*slot).is_some_and(|session| !session.old)).ok_or(NoSession::Unknown)
    }

    fn find_session(&self, given: &[u8], principal: Option<&str>) -> Option<u16> {
        let slot = u16::try_from(slot_of(given)?).ok()?;
        let session = self.session(slot)?;
        (same_id(&session.id, given) && session.is_of(principal)).then_some(slot)
    }

    fn session(&self, slot: u16) -> Option<&Session> {
        self.sessions.slots().get(usize::from(slot)).filter(|session| session.live)
    }

    fn session_mut(&mut self, slot: u16) -> Option<&mut Session> {
        self.sessions.slots_mut().get_mut(usize::from(slot)).filter(|session| session.live)
    }
}

fn no_session<'r>(none: NoSession, body: &mut dyn Out) -> Response<'r> {
    match none {
        NoSession::Missing => refuse(body, 400, code::INVALID_REQUEST, "Mcp-Session-Id is missing: initialize first"),
        NoSession::Unknown => refuse(body, 404, SESSION_NOT_FOUND, "Session not found"),
        NoSession::Differing => refuse(body, 400, code::INVALID_REQUEST, "Mcp-Session-Id came twice, and differs"),
    }
}
