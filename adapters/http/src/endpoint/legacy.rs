//! Sessions: Streamable HTTP of 2025-03-26 to 2025-11-25, and HTTP with SSE of 2024-11-05.

use mcp_sansio::FullError;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Method;
use mcp_sansio::rpc::MessageShape;
use mcp_sansio::server::{IncomingRequest, Peer, RpcError};
use mcp_sansio::service::MessageSource;
use mcp_sansio::sink::Out;

use super::config::same_path;
use super::events::EventId;
use super::exchange::Message;
use super::head::{EndpointResponse, RequestHead, ResponseBody, unsupported};
use super::ids::{SessionId, StreamId};
use super::refusal::{going_away, refuse, refuse_request};
use super::request::{is_request, unreadable};
use super::session::{Hashed, Session};
use super::stream::{Asker, Purpose, Stream};
use super::{App, Endpoint, Turn};
use crate::names::Known;

const UNREAD: &str = "Overloaded: the event stream is not being read";
const TOO_MANY: &str = "Overloaded: too many sessions";
const NO_STREAM: &str = "Accept must have text/event-stream";

/// The reason why a request has no session.
pub(crate) enum NoSession {
    Missing,
    Unknown,
    /// Two lines of the header name different sessions.
    Differing,
    /// It was opened elsewhere, and there is no room for it here.
    #[cfg_attr(not(feature = "alloc"), allow(dead_code, reason = "ids are sealed with an allocator"))]
    NoRoom,
}

/// The code of an unknown session. The specification defines none; the SDKs write this one, and clients look for
/// the code and the words.
const SESSION_NOT_FOUND: i32 = -32001;

impl Endpoint<'_> {
    /// Handles a message; `method` is that of a request.
    pub(crate) fn legacy_post<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        request: &mut IncomingRequest<'_>,
        method: Option<Method>,
    ) -> EndpointResponse<'static> {
        if method == Some(Method::Initialize) && !turn.head.fields.get(Known::Session).is_there() {
            return self.open_session(turn, request);
        }
        match self.session_of(turn) {
            Ok(slot) => {
                if matches!(method, Some(Method::Subscribe | Method::SetLevel)) {
                    self.end_elsewhere(slot);
                }
                self.in_session(turn, slot, Message::Read(request))
            }
            Err(none) => no_session(none, turn.body),
        }
    }

    pub(crate) fn legacy_batch<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> EndpointResponse<'static> {
        let content = turn.content;
        let is_array = Raw::parse(content).is_ok_and(|raw| raw.as_bytes().starts_with(b"["));
        match self.session_of(turn) {
            Ok(slot) if is_array => {
                // It may subscribe.
                self.end_elsewhere(slot);
                self.in_session(turn, slot, Message::Bytes(content))
            }
            _ => unreadable(content, turn.body),
        }
    }

    fn open_session<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        request: &mut IncomingRequest<'_>,
    ) -> EndpointResponse<'static> {
        let Some(slot) = self.new_session(turn, false) else { return turn.refuse(503, TOO_MANY) };
        let mut response = self.in_session(turn, slot, Message::Read(request));
        let opened = self.sessions.get(slot).filter(|session| session.peer.revision().is_some());
        if let Some(plain) = opened.map(|session| session.id.clone()) {
            response.session = Some(self.sealed_id(slot, turn).unwrap_or(plain));
            self.prime_opening(slot, response.content);
        } else {
            self.end_session(turn.app, slot);
        }
        response
    }

    /// Primes the stream of an answer to `initialize`. Only the answer decides whether the stream has a first
    /// event.
    fn prime_opening(&mut self, slot: u16, content: ResponseBody) {
        let primed = self.sessions.get(slot).is_some_and(Session::primes_streams);
        if let ResponseBody::Stream(id) = content
            && let Some(stream) = self.streams.get_mut(id)
        {
            stream.primed = primed;
        }
    }

    /// Returns the stream of the request that a message cancels.
    pub(crate) fn cancels(&mut self, slot: u16, message: &Message<'_, '_>) -> Option<StreamId> {
        let Message::Read(request) = message else { return None };
        if request.envelope.id.is_some() {
            return None;
        }
        let cancels = matches!(request.envelope.shape(), MessageShape::Notification { method } if method.eq_str("notifications/cancelled"));
        let scope = self.sessions.get(slot).filter(|_| cancels)?.scope;
        let token = self.requests.server.with_peer(&mut Peer::NEW.clone(), scope, |server| server.named_by(request));
        self.stream_of(token?)
    }

    /// Handles a cancellation: its messages go to the stream of its request, and that stream ends.
    fn cancel<S>(&mut self, app: &mut App<'_, S>, id: StreamId, message: Message<'_, '_>) {
        let Message::Read(request) = message else { return };
        // If the stream is full, the messages are lost; the request is over anyway.
        let _ = self.on_stream(id, |server, principal, out| {
            app.service.dispatch_read(&MessageSource::LINE.principal(principal), app.state, request, server, out)
        });
    }

    /// Handles one message of a session.
    fn in_session<S>(
        &mut self,
        turn: &mut Turn<'_, '_, S>,
        slot: u16,
        message: Message<'_, '_>,
    ) -> EndpointResponse<'static> {
        let now = self.now;
        self.sessions.touch(slot, now);
        let Some(session) = self.sessions.get(slot) else { return no_session(NoSession::Unknown, turn.body) };
        let (asker, mut peer) = (Asker::of_session(slot, session), session.peer);
        if let Some(id) = self.cancels(slot, &message) {
            self.cancel(turn.app, id, message);
            return EndpointResponse::status(202);
        }
        let response = self.exchange(turn, asker, &mut peer, message);
        let Some(session) = self.sessions.get_mut(slot) else { return response };
        // A change that was noted earlier goes out from `notifications/initialized`, or the first request, on.
        let begins = peer.is_initialized() && !session.peer.is_initialized();
        session.peer = peer;
        if begins {
            let stream = session.stream.filter(|id| self.streams.get(*id).is_some());
            self.sessions.touch(slot, now);
            if let Some(id) = stream {
                self.streams.stir(id.slot);
            }
        }
        response
    }

    /// Handles GET: opens the stream of a session, or resumes a broken stream.
    pub(crate) fn get<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> EndpointResponse<'static> {
        let fields = &turn.head.fields;
        // `*/*` is not enough: a program that only looks would wait for a stream without events.
        if !fields.accept.names_stream() {
            return turn.refuse(406, NO_STREAM);
        }
        if !fields.get(Known::Session).is_there() && !fields.get(Known::Version).is_there() {
            // Clients of 2024-11-05 open their stream at the same URL.
            return self.old_get(turn);
        }
        let slot = match self.session_of(turn) {
            Ok(slot) => slot,
            Err(none) => return no_session(none, turn.body),
        };
        self.sessions.touch(slot, self.now);
        let last = turn.head.fields.get(Known::LastEventId);
        if self.draining && !last.is_there() {
            return going_away(None, turn.body);
        }
        let (stream, status, why) = match last.value.and_then(|last| core::str::from_utf8(last).ok()) {
            Some(last) => (self.come_back(slot, last), 400, "Last-Event-ID is unknown or too old"),
            None => (self.open_session_stream(slot), 503, "Overloaded: too many streams"),
        };
        match stream {
            Some(id) => EndpointResponse::status(200).with(ResponseBody::Stream(id)),
            None => turn.refuse(status, why),
        }
    }

    /// Resumes a stream of the client's own session
    /// ([resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports)).
    fn come_back(&mut self, slot: u16, last: &str) -> Option<StreamId> {
        let EventId { slot: place, stream: number, event } = EventId::read(last)?;
        let is_own = |stream: &&Stream| stream.number == number && stream.session == Some(slot) && stream.resumable;
        let stream = self.streams.at(place).filter(is_own)?;
        // Only events that were sent and not forgotten since.
        if event >= stream.seen || event + 1 < stream.chain.first {
            return None;
        }
        let purpose = stream.purpose;
        let (log, slots) = self.streams.log_mut();
        log.seek(slots, place, event + 1);
        // Of the session's streams, this one is in use again.
        let id = self.streams.attach(&mut self.sessions, place, event + 1, self.now);
        if purpose == Purpose::Session {
            self.replace_session_stream(slot, id)?;
            if self.draining {
                // After the messages that it has missed.
                self.streams.end(place);
            }
        }
        Some(id)
    }

    fn open_session_stream(&mut self, slot: u16) -> Option<StreamId> {
        let asker = Asker::of_session(slot, self.sessions.get(slot)?);
        let stream = self.reserve_stream(asker, 0)?;
        self.end_elsewhere(slot);
        let id = self.send_stream(stream, Purpose::Session);
        self.replace_session_stream(slot, id)?;
        Some(id)
    }

    /// Replaces the session's stream: each message goes to one stream only, the newest.
    fn replace_session_stream(&mut self, slot: u16, newer: StreamId) -> Option<()> {
        let older = self.sessions.get_mut(slot)?.stream.replace(newer);
        if let Some(older) = older.filter(|id| self.streams.get(*id).is_some()) {
            self.streams.end(older.slot);
        }
        Some(())
    }

    pub(crate) fn delete<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> EndpointResponse<'static> {
        match self.session_of(turn) {
            Ok(slot) => {
                self.end_elsewhere(slot);
                self.close_sealed(slot, true);
                self.end_session(turn.app, slot);
                EndpointResponse::status(204)
            }
            Err(none) => no_session(none, turn.body),
        }
    }

    /// Handles GET of 2024-11-05: opens the stream on which all is answered.
    pub(crate) fn old_get<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> EndpointResponse<'static> {
        if !turn.head.fields.accept.stream() {
            return turn.refuse(406, NO_STREAM);
        }
        if self.draining {
            return going_away(None, turn.body);
        }
        let Some(slot) = self.new_session(turn, true) else { return turn.refuse(503, TOO_MANY) };
        let Some(session) = self.sessions.get(slot) else { return turn.refuse(503, TOO_MANY) };
        let asker = Asker { resumable: false, ..Asker::of_session(slot, session) };
        let exchange_id = self.requests.new_exchange();
        let Some(stream) = self.reserve_stream(asker, exchange_id) else {
            self.sessions.close(slot);
            return turn.refuse(503, TOO_MANY);
        };
        let id = self.send_stream(stream, Purpose::Old);
        if let Some(session) = self.sessions.get_mut(slot) {
            session.stream = Some(id);
        }
        EndpointResponse::status(200).with(ResponseBody::Stream(id))
    }

    /// Handles POST of 2024-11-05: the answer goes to the stream.
    pub(crate) fn old_post<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> EndpointResponse<'static> {
        if let Some(why) = unsupported(turn.head) {
            return turn.refuse(415, why);
        }
        if self.draining {
            let mut request = IncomingRequest::empty();
            if request.read(turn.content).is_err() || is_request(&request.envelope) {
                return going_away(None, turn.body);
            }
        }
        let Some(given) = turn.head.member("session") else { return no_session(NoSession::Missing, turn.body) };
        let found = self.sessions.find(given.as_bytes(), turn.principal).filter(|slot| self.is_old(*slot));
        let Some(slot) = found else { return no_session(NoSession::Unknown, turn.body) };
        match self.old_message(turn, slot) {
            true => EndpointResponse::status(202),
            false => turn.refuse(503, UNREAD),
        }
    }

    pub(crate) fn is_old(&self, slot: u16) -> bool {
        self.sessions.get(slot).is_some_and(|session| session.old)
    }

    /// Handles a message of a session of 2024-11-05. Returns `false` if its stream has no room for the answers.
    fn old_message<S>(&mut self, turn: &mut Turn<'_, '_, S>, slot: u16) -> bool {
        let Some(&Session { scope, stream: Some(id), .. }) = self.sessions.get(slot) else { return false };
        let client = self.requests.client_of(scope, false, turn.principal);
        self.requests.allow_places(&self.streams, &self.config, client);
        let unread = self.streams.log.unread;
        let Some(&Stream { exchange_id, .. }) = self.streams.at(id.slot).filter(|stream| stream.unread() < unread)
        else {
            return false;
        };
        let App { service, state, .. } = &mut *turn.app;
        let step = self.on_stream(id, |server, principal, out| {
            let (source, before) = (MessageSource::LINE.principal(principal), out.unsent());
            server.transport_id = exchange_id;
            let step = service.dispatch_from(&source, state, turn.content, server, out);
            if let (Err(FullError::Now), Some(before)) = (step, before) {
                // The client does not send the message again.
                server.drop_batch();
                out.back_to(before);
            }
            step
        });
        self.settle(turn.app, client, exchange_id, id.slot);
        self.run_ready(turn.app);
        step.is_some_and(|step| step.is_ok())
    }

    /// Returns the stream that must be read before a request is handled: that of its session of HTTP with SSE, if it has a reply
    /// in windows in progress, or unsent messages. Keep the request until these went out: [`request`](Endpoint::request) may
    /// refuse it as overload before that.
    #[must_use]
    pub fn must_wait_for(&self, head: &RequestHead<'_>) -> Option<StreamId> {
        let session = head
            .member("session")
            .filter(|_| same_path(self.config.post_path, head.path))
            .and_then(|id| SessionId::slot_of(id.as_bytes()));
        let id = self.sessions.get(session?).filter(|session| session.old)?.stream?;
        let stream = self.streams.get(id)?;
        (self.requests.server.streaming(stream.exchange_id).is_some() || stream.chain.unsent() > 0).then_some(id)
    }

    /// Ends a session and all that belongs to it.
    pub(crate) fn end_session<S>(&mut self, app: &mut App<'_, S>, slot: u16) {
        let Some(scope) = self.sessions.get(slot).map(|session| session.scope) else { return };
        app.service.end_scope(app.state, scope, &mut self.requests.server);
        self.close_sealed(slot, false);
        self.sessions.close(slot);
        while let Some(stream) = self.sessions.streams_mut(slot).and_then(|streams| streams.first()) {
            // The end of the stream informs its reader. The session has no other stream to come.
            self.streams.leave_session(&mut self.sessions, stream);
            match self.streams.at(stream).is_some_and(Stream::is_attached) {
                true => self.streams.end(stream),
                false => self.free_stream(stream),
            }
        }
    }

    /// Ends a session for a new one, if there is no room for it or in its principal's share. Returns `false` if
    /// none may be ended.
    pub(crate) fn make_room<S>(&mut self, app: &mut App<'_, S>, principal: Option<Hashed<'_>>) -> bool {
        let own = principal.filter(|own| self.sessions.of(*own).count() >= self.config.session_share);
        if own.is_none() && self.sessions.has_room() {
            return true;
        }
        let rest = self.config.session_rest;
        let spare = if rest > 0 { self.sessions.spare(own, rest, self.now) } else { None };
        spare.map(|slot| self.end_session(app, slot)).is_some()
    }

    fn new_session<S>(&mut self, turn: &mut Turn<'_, '_, S>, old: bool) -> Option<u16> {
        let principal = turn.principal.map(|name| (name, self.requests.hash(name)));
        if !self.make_room(turn.app, principal) {
            return None;
        }
        let mut bytes = [0; SessionId::LEN / 2];
        (turn.random)(&mut bytes);
        let scope = self.requests.new_scope();
        self.sessions.open(principal, old, self.now, |slot| (SessionId::new(bytes, slot), scope))
    }

    /// Returns the session in a request's header. A session of another principal counts as unknown.
    fn session_of<S>(&mut self, turn: &mut Turn<'_, '_, S>) -> Result<u16, NoSession> {
        let field = turn.head.fields.get(Known::Session);
        let given = match field.value {
            None => return Err(NoSession::Missing),
            Some(_) if field.differs => return Err(NoSession::Differing),
            Some(given) => given,
        };
        if let Some(found) = self.sealed_session(turn, given) {
            return found;
        }
        let found = self.sessions.find(given, turn.principal);
        found.filter(|slot| self.sessions.get(*slot).is_some_and(|session| !session.old)).ok_or(NoSession::Unknown)
    }
}

fn no_session(none: NoSession, body: &mut dyn Out) -> EndpointResponse<'static> {
    match none {
        NoSession::Missing => refuse(body, 400, "Mcp-Session-Id is missing: initialize first"),
        NoSession::Unknown => refuse_request(body, 404, None, &RpcError::new(SESSION_NOT_FOUND, "Session not found")),
        NoSession::NoRoom => refuse(body, 503, TOO_MANY),
        NoSession::Differing => refuse(body, 400, "Mcp-Session-Id came twice, and differs"),
    }
}
