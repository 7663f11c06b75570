//! Requests in flight: a table of slots, the tokens for them, and the state of each request.

use super::id::{RequestToken, Scope};
use super::request::{IncomingRequest, Negotiated};
use super::streamed_reply::{StreamedReply, WINDOWS};
use super::{Caching, Millis, RespondError, RpcError, Server, respond_failure, words};
use crate::json::{Raw, object::Object};
use crate::machine;
use crate::memory::FixedText;
use crate::protocol::{ClientCapabilities, LoggingLevel, Method};
use crate::revision::Revision;
use crate::rpc::{begin, is_complete, same_id};
use crate::sink::{FullError, MessageHead, Out, whole};

/// Handlers can ask. Without the feature the compiler leaves out all code that depends on it.
pub(crate) const ASKS: bool = cfg!(feature = "ask");

/// The longest id, and the longest progress token, as JSON text: a string of 64 bytes, with the feature `alloc` of 128, and its
/// quotes. A longer one is refused.
// Each slot has two: with 128 the static RAM of the image `uart`, with four slots, is 3,644 bytes in place of 3,132.
pub const ID_MAX: usize = if cfg!(feature = "alloc") { 130 } else { 66 };

/// The error for a request without a free slot.
pub(crate) const OVERLOADED: RpcError<'static> =
    RpcError::internal(words("Overloaded: too many requests in flight")).refusing();

/// The text of an id or of a progress token.
pub(crate) type IdText = FixedText<ID_MAX>;

/// The state of a slot. It is assigned in this file alone, by the methods of [`RequestSlot`] that [`TRANSITIONS`]
/// lists.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "it lies in its slot; a box would need an allocator")]
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "these parts are for asking alone"))]
enum RequestState {
    /// There is no request.
    Free,
    /// Its handler runs, or will answer later.
    Open,
    /// Its handler will run again when the request is woken.
    Suspended(Round),
    /// Its handler has asked the client.
    Asking(Round),
    /// Its handler can run again: no question is open, or the request was woken.
    Ready(Round),
    /// Its handler runs again.
    Resumed(Round),
    /// Its reply goes out in windows.
    Streaming(StreamedReply),
}

machine!(RequestState, TRANSITIONS: Free Open Suspended Asking Ready Resumed Streaming);

/// The last questions of a request. While a request has a round, the store for questions has records of it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "ask"), allow(dead_code, reason = "these parts are for asking alone"))]
pub(crate) struct Round {
    /// The number of asks so far; at least 1.
    pub(crate) number: u8,
    /// The id of the first question; the others follow.
    pub(crate) first: u64,
    /// A bit for each question.
    pub(crate) asked: u8,
    /// A bit for each question that is answered.
    pub(crate) answered: u8,
    /// The handler has suspended the request. It waits for no answers.
    pub(crate) suspended: bool,
    /// The reason why the open questions get no answer.
    pub(crate) ended: Option<Ended>,
    pub(crate) deadline: Option<Millis>,
}

impl Round {
    #[cfg(feature = "ask")]
    const NONE: Round =
        Round { number: 1, first: 0, asked: 0, answered: 0, suspended: false, ended: None, deadline: None };

    /// Returns the bits of the questions that are not answered.
    pub(crate) const fn open(&self) -> u8 {
        self.asked & !self.answered
    }
}

/// Every change of a request's state: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Open", "admit"),
    ("Open", "Asking", "ask"),
    ("Open", "Ready", "ask nothing"),
    ("Open", "Suspended", "suspend"),
    ("Open", "Open", "put off"),
    ("Open", "Streaming", "stream"),
    ("Open", "Free", "close"),
    ("Asking", "Asking", "answer"),
    ("Asking", "Ready", "last answer"),
    ("Asking", "Ready", "end questions"),
    ("Asking", "Free", "close"),
    ("Suspended", "Ready", "wake"),
    ("Suspended", "Open", "put off"),
    ("Suspended", "Streaming", "stream"),
    ("Suspended", "Free", "close"),
    ("Ready", "Ready", "end questions"),
    ("Ready", "Resumed", "resume"),
    ("Ready", "Free", "close"),
    ("Resumed", "Asking", "ask"),
    ("Resumed", "Ready", "ask nothing"),
    ("Resumed", "Suspended", "suspend"),
    ("Resumed", "Ready", "wait for room"),
    ("Resumed", "Open", "put off"),
    ("Resumed", "Streaming", "stream"),
    ("Resumed", "Free", "close"),
    ("Streaming", "Free", "close"),
];

/// The reason why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) enum Ended {
    TimedOut,
    Closed,
}

/// The place of one request in flight. Lend the [`Server`] as many as it may have in flight.
#[derive(Debug)]
pub struct RequestSlot {
    /// That of its request; `None` when it is free.
    token: Option<RequestToken>,
    state: RequestState,
    pub(crate) scope: Scope,
    /// The number of [`Server::transport_id`](field@Server::transport_id).
    pub(crate) transport_id: u32,
    /// The number of [`Server::set_transport_data`].
    pub(crate) transport_data: u64,
    /// The index of the tool, resource or template that it names; a late answer pulls the source of that one.
    pub(crate) handler: u16,
    /// The client may close its connection and come back.
    pub(crate) released: bool,
    pub(crate) method: Method,
    pub(crate) revision: Revision,
    pub(crate) client: ClientCapabilities,
    /// The level of log messages in `_meta` (2026-07-28).
    pub(crate) level: Option<LoggingLevel>,
    pub(crate) id: IdText,
    /// Empty if the request has none.
    pub(crate) progress_token: IdText,
    /// The least rank of the next progress.
    pub(crate) progress: u64,
}

impl RequestSlot {
    /// A free slot.
    pub const FREE: RequestSlot = RequestSlot {
        token: None,
        state: RequestState::Free,
        scope: Scope(0),
        transport_id: 0,
        transport_data: 0,
        handler: 0,
        released: false,
        // Never read; the first, which is 0.
        method: Method::Initialize,
        revision: Revision::BEFORE_OPENING,
        client: ClientCapabilities::NONE,
        level: None,
        id: IdText::EMPTY,
        progress_token: IdText::EMPTY,
        progress: 0,
    };

    /// Returns the token of its request.
    pub(crate) const fn token(&self) -> Option<RequestToken> {
        self.token
    }

    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state, RequestState::Free)
    }

    /// Returns whether it can be answered: its handler does not wait for the client.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, RequestState::Open | RequestState::Suspended(_))
    }

    /// Returns whether its handler can run again.
    pub(crate) fn is_ready(&self) -> bool {
        ASKS && matches!(self.state, RequestState::Ready(_))
    }

    /// Returns whether its reply goes out in windows.
    pub(crate) fn is_streaming(&self) -> bool {
        WINDOWS && matches!(self.state, RequestState::Streaming(_))
    }

    /// Returns the questions that its handler waits for, or that are answered and not handled yet.
    pub(crate) fn waiting(&self) -> Option<&Round> {
        match &self.state {
            RequestState::Asking(round) | RequestState::Ready(round) if ASKS => Some(round),
            _ => None,
        }
    }

    /// Returns the last questions, while the store has records of them.
    pub(crate) fn round(&self) -> Option<&Round> {
        match &self.state {
            RequestState::Suspended(round)
            | RequestState::Asking(round)
            | RequestState::Ready(round)
            | RequestState::Resumed(round)
                if ASKS =>
            {
                Some(round)
            }
            _ => None,
        }
    }

    /// Returns whether its handler runs again because the request was woken, and not because of answers.
    #[cfg(feature = "ask")]
    pub(crate) fn is_resumed(&self) -> bool {
        matches!(&self.state, RequestState::Resumed(round) if round.suspended)
    }

    /// Returns the deadline of its questions.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        match &self.state {
            RequestState::Asking(round) => round.deadline,
            _ => None,
        }
    }

    /// Returns the reply that goes out in windows.
    pub(crate) fn large_mut(&mut self) -> Option<&mut StreamedReply> {
        match &mut self.state {
            RequestState::Streaming(large) if WINDOWS => Some(large),
            _ => None,
        }
    }

    /// Notes that its handler has asked `count` questions, whose ids begin at `first`. Without any it can run again.
    #[cfg(feature = "ask")]
    pub(crate) fn ask(&mut self, first: u64, count: usize, deadline: Option<Millis>) {
        let number = self.round().map_or(0, |round| round.number) + 1;
        let round = Round { number, first, asked: (1u16 << count).wrapping_sub(1) as u8, deadline, ..Round::NONE };
        match count {
            0 => self.state.enter("ask nothing", RequestState::Ready(round)),
            _ => self.state.enter("ask", RequestState::Asking(round)),
        }
    }

    /// Suspends it: its handler will run again. The answers to the last questions stay.
    #[cfg(feature = "ask")]
    pub(crate) fn suspend(&mut self) {
        let round = *self.round().unwrap_or(&Round::NONE);
        let round = Round { answered: round.asked, suspended: true, deadline: None, ..round };
        self.state.enter("suspend", RequestState::Suspended(round));
    }

    /// Wakes it. Returns `false` if it is not suspended.
    pub(crate) fn wake(&mut self) -> bool {
        match self.state {
            // The handlers of extensions also take back what they have asked.
            #[cfg(feature = "extensions")]
            RequestState::Asking(_) if self.method == Method::Other => self.end_questions(Ended::TimedOut),
            // Their questions have ended already: they run anyway.
            #[cfg(feature = "extensions")]
            RequestState::Ready(_) if self.method == Method::Other => {}
            RequestState::Suspended(round) => self.state.enter("wake", RequestState::Ready(round)),
            RequestState::Ready(round) => return round.suspended,
            _ => return false,
        }
        true
    }

    /// Notes that a question is answered.
    pub(crate) fn answer(&mut self, question: u8) {
        let RequestState::Asking(mut round) = self.state else { return };
        round.answered |= 1 << question;
        match round.open() {
            0 => self.state.enter("last answer", RequestState::Ready(round)),
            _ => self.state.enter("answer", RequestState::Asking(round)),
        }
    }

    /// Ends its open questions without an answer.
    pub(crate) fn end_questions(&mut self, why: Ended) {
        let (RequestState::Asking(mut round) | RequestState::Ready(mut round)) = self.state else { return };
        round.ended = round.ended.or(Some(why));
        self.state.enter("end questions", RequestState::Ready(round));
    }

    /// Forgets the open questions: the client knows that they need no answer.
    pub(crate) fn withdraw_questions(&mut self) {
        if let RequestState::Ready(round) = &mut self.state {
            round.asked = round.answered;
        }
    }

    /// Notes that its handler runs again.
    pub(crate) fn resume(&mut self) {
        if let RequestState::Ready(round) = self.state {
            self.state.enter("resume", RequestState::Resumed(round));
        }
    }

    /// Notes that the sink had no room for the questions of its handler, which must run once more.
    pub(crate) fn wait_for_room(&mut self) {
        if let RequestState::Resumed(round) = self.state {
            self.state.enter("wait for room", RequestState::Ready(round));
        }
    }

    fn free(&mut self) {
        self.state.enter("close", RequestState::Free);
        self.token = None;
    }

    /// Ends the request that a server which is gone has left here.
    pub(super) fn clear(&mut self) {
        if self.is_live() {
            self.free();
        }
    }
}

/// Finds requests.
impl Server<'_> {
    /// Returns the number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::from(self.live)
    }

    /// Returns the most requests in flight: the number of slots, or the limit to which they grow.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.limit()
    }

    /// Sets the most requests in flight with which a new request may stay in flight. Beyond it, a request that is
    /// answered later or in windows is refused as overload, and a handler cannot ask. Requests that are answered at
    /// once are always served. Default: the number of slots.
    ///
    /// A transport with many clients gives each its share by this.
    pub fn set_most_in_flight(&mut self, most: usize) {
        self.most_in_flight = u16::try_from(most).unwrap_or(u16::MAX);
    }

    /// Returns whether the request that is being handled must be answered at once. It is in flight itself.
    pub(crate) fn is_crowded(&self) -> bool {
        self.live > self.most_in_flight
    }

    /// Returns whether the request still waits for its answer.
    #[must_use]
    pub fn is_open(&self, token: RequestToken) -> bool {
        self.slot(token).is_some_and(RequestSlot::is_open)
    }

    /// Returns the `id` that the client gave a request in flight. A notification that belongs to it names it, as
    /// `io.modelcontextprotocol/subscriptionId`: a program that passes such notifications on writes it.
    #[must_use]
    pub fn wire_id(&self, token: RequestToken) -> Option<Raw<'_>> {
        Raw::parse(self.slot(token)?.id.as_bytes()).ok()
    }

    pub(crate) fn slot(&self, token: RequestToken) -> Option<&RequestSlot> {
        self.slots.get(usize::from(token.slot())).filter(|slot| slot.token == Some(token))
    }

    pub(crate) fn slot_mut(&mut self, token: RequestToken) -> Option<&mut RequestSlot> {
        self.slots.get_mut(usize::from(token.slot())).filter(|slot| slot.token == Some(token))
    }

    /// Returns the first request for which `which` returns `true`, from a slot of the table on.
    fn first(&self, from: usize, which: impl Fn(&RequestSlot) -> bool) -> Option<RequestToken> {
        if self.live == 0 {
            return None;
        }
        self.slots.iter().skip(from).find(|slot| slot.is_live() && which(slot))?.token
    }

    /// Returns the request with this id in the present scope. Ids are compared by value, see
    /// [`same_id`](crate::rpc::same_id).
    pub(crate) fn find(&self, id: &[u8]) -> Option<RequestToken> {
        self.first(0, |slot| slot.scope == self.scope && same_id(slot.id.as_bytes(), id))
    }

    /// Returns the request that a `notifications/cancelled` names, in the present scope.
    #[must_use]
    pub fn named_by(&self, cancellation: &IncomingRequest<'_>) -> Option<RequestToken> {
        self.find(cancellation.envelope.members.request_id?.as_bytes())
    }

    /// Returns any request of a scope.
    pub(crate) fn any_of(&self, scope: Scope) -> Option<RequestToken> {
        self.first(0, |slot| slot.scope == scope)
    }

    /// Returns the request in a slot of the table, for a walk over all slots.
    #[must_use]
    pub fn token_at(&self, number: usize) -> Option<RequestToken> {
        self.slots.get(number)?.token
    }

    /// Returns a request whose handler can run again: call [`resume`](crate::service::Service::resume) with the sink
    /// of its reply.
    pub fn ready(&self) -> Option<RequestToken> {
        self.first(0, RequestSlot::is_ready)
    }

    /// Does the same as [`ready`](Server::ready), from a slot of the table on; also returns the number of the slot.
    /// For transports with many sinks: a full one must not keep the others waiting.
    #[must_use]
    pub fn ready_from(&self, first: usize) -> Option<(usize, RequestToken)> {
        self.first(first, RequestSlot::is_ready).map(|token| (usize::from(token.slot()), token))
    }

    /// Returns the number that [`transport_id`](field@Server::transport_id) had when this request came.
    #[must_use]
    pub fn transport_id(&self, token: RequestToken) -> Option<u32> {
        self.slot(token).map(|slot| slot.transport_id)
    }

    /// Keeps a number of the transport on a request. Over HTTP: the client that it belongs to.
    pub fn set_transport_data(&mut self, token: RequestToken, data: u64) {
        if let Some(slot) = self.slot_mut(token) {
            slot.transport_data = data;
        }
    }

    /// Returns the number of [`set_transport_data`](Server::set_transport_data) of a request; 0 if it has none.
    #[must_use]
    pub fn transport_data(&self, token: RequestToken) -> Option<u64> {
        self.slot(token).map(|slot| slot.transport_data)
    }

    /// Returns a request in flight with this id of the transport.
    #[must_use]
    pub fn with_transport_id(&self, transport_id: u32) -> Option<RequestToken> {
        self.first(0, |slot| slot.transport_id == transport_id)
    }

    /// Returns a request with this id of the transport whose reply goes out in windows.
    #[must_use]
    pub fn streaming(&self, transport_id: u32) -> Option<RequestToken> {
        self.first(0, |slot| slot.is_streaming() && slot.transport_id == transport_id)
    }

    /// Returns whether the handler of a request with this id of the transport lets the client close the connection and come back
    /// for the answer.
    #[must_use]
    pub fn is_released(&self, transport_id: u32) -> bool {
        self.first(0, |slot| slot.transport_id == transport_id && slot.released).is_some()
    }
}

/// Admits, answers and ends requests.
impl Server<'_> {
    /// Takes a request into the table. The caller has checked that its id is not in use.
    pub(crate) fn admit(
        &mut self,
        request: &IncomingRequest<'_>,
        terms: &Negotiated,
        why: &mut RpcError<'_>,
    ) -> Option<RequestToken> {
        let free = self.slots.find_free(|slot| !slot.is_live(), || RequestSlot::FREE);
        let free = free.and_then(|at| Some((u16::try_from(at).ok()?, self.slots.get_mut(at)?)));
        let (number, slot) = free.or_else(|| why.set(OVERLOADED))?;
        if !slot.id.set(request.id.as_bytes()) {
            return why.fail_request("Invalid request: the id is too long");
        }
        let progress_token = request.envelope.meta.progress_token.map_or(&b""[..], |token| token.as_bytes());
        if !slot.progress_token.set(progress_token) {
            return why.fail_params("Invalid params: the progress token is too long");
        }
        (slot.scope, slot.transport_id, slot.transport_data) = (self.scope, self.transport_id, 0);
        (slot.released, slot.progress) = (false, 0);
        (slot.method, slot.revision, slot.client, slot.level) =
            (request.method, terms.revision, terms.client, terms.level);
        slot.state.enter("admit", RequestState::Open);
        slot.token = Some(self.tokens.take(number));
        self.live += 1;
        slot.token
    }

    /// Answers a request with `result`, a JSON object. In 2026-07-28 adds `resultType` if it is missing, and for
    /// lists and `resources/read` the hints of [`Caching::NONE`] for a missing or wrong `ttlMs` or `cacheScope`. The
    /// caller adds the name and version of the server (`_meta`, `io.modelcontextprotocol/serverInfo`), which SHOULD
    /// be there.
    ///
    /// # Errors
    /// [`RespondError::Stale`] if the request was answered or cancelled. [`RespondError::FullNow`] or
    /// [`RespondError::FullNever`] if `result` does not fit; the request is then still open.
    pub fn respond(&mut self, token: RequestToken, result: Raw<'_>, out: &mut dyn Out) -> Result<(), RespondError> {
        let slot = self.slot(token).filter(|slot| slot.is_open()).ok_or(RespondError::Stale)?;
        whole(out, MessageHead::Result, |out| {
            begin(out, slot.id.as_bytes(), ",\"result\":");
            let mut object = Object::open(out);
            if slot.revision.is_modern() && result.get("resultType").is_none() {
                object.fixed("resultType", "\"complete\"");
            }
            if !(slot.revision.is_modern() && slot.method.is_cached() && is_complete(result)) {
                object.spread(result);
                return object.finish().put(b"}");
            }
            for (key, value) in result.members().filter(|(key, _)| !Caching::is_hint(key)) {
                object.member(key, value);
            }
            Caching::NONE.or_of(result).write(&mut object);
            object.finish().put(b"}")
        })?;
        self.forget(token);
        Ok(())
    }

    /// Answers a request with an error.
    ///
    /// # Errors
    /// [`RespondError::Stale`] if the request was answered or cancelled. [`RespondError::FullNow`] or
    /// [`RespondError::FullNever`] if the error does not fit; the request is then still open.
    pub fn fail(&mut self, token: RequestToken, failure: &RpcError<'_>, out: &mut dyn Out) -> Result<(), RespondError> {
        let slot = self.slot(token).filter(|slot| slot.is_open()).ok_or(RespondError::Stale)?;
        respond_failure(out, Some(slot.id.as_bytes()), failure)?;
        self.forget(token);
        Ok(())
    }

    /// Answers a request with an `error` object as it is, for a program that passes errors on.
    ///
    /// # Errors
    /// As [`fail`](Server::fail).
    pub fn fail_raw(
        &mut self,
        token: RequestToken,
        code: i32,
        error: Raw<'_>,
        out: &mut dyn Out,
    ) -> Result<(), RespondError> {
        let slot = self.slot(token).filter(|slot| slot.is_open()).ok_or(RespondError::Stale)?;
        whole(out, MessageHead::Error(code), |out| {
            begin(out, slot.id.as_bytes(), ",\"error\":");
            out.raw(error);
            out.put(b"}")
        })?;
        self.forget(token);
        Ok(())
    }

    /// Refuses a request that has no slot.
    pub(crate) fn refuse(
        &self,
        request: &IncomingRequest<'_>,
        failure: &RpcError<'_>,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        match respond_failure(out, Some(request.id.as_bytes()), failure) {
            // The id is longer than the sink.
            Err(FullError::Never) => respond_failure(out, self.no_id(), failure),
            refused => refused,
        }
    }

    /// Notes that the handler will answer later. A suspended request is no longer suspended.
    pub(crate) fn put_off(&mut self, token: RequestToken) {
        self.leave_questions(token, "put off", RequestState::Open);
    }

    /// Sends the rest of a reply that has begun in windows, and holds the sink for it.
    pub(crate) fn stream(&mut self, token: RequestToken, large: StreamedReply, out: &mut dyn Out) {
        out.hold(true);
        self.leave_questions(token, "stream", RequestState::Streaming(large));
    }

    fn leave_questions(&mut self, token: RequestToken, cause: &str, state: RequestState) {
        let Some(slot) = self.slot_mut(token) else { return };
        let has_records = slot.round().is_some();
        slot.state.enter(cause, state);
        if has_records {
            self.forget_asks(token);
        }
    }

    /// Ends a request without an answer; also if the sink is full and the same message comes again.
    pub fn forget(&mut self, token: RequestToken) {
        let Some(slot) = self.slot_mut(token) else { return };
        let has_records = slot.round().is_some();
        slot.free();
        self.live -= 1;
        if has_records {
            self.forget_asks(token);
        }
    }

    /// Ends a request in any state with an internal error.
    ///
    /// # Errors
    /// [`FullError`] if the error does not fit; the request is then still open.
    pub fn abandon_request(&mut self, token: RequestToken, message: &str, out: &mut dyn Out) -> Result<(), FullError> {
        if let Some(slot) = self.slot(token) {
            respond_failure(out, Some(slot.id.as_bytes()), &RpcError::internal(message))?;
        }
        self.forget(token);
        Ok(())
    }

    /// Answers all requests with an error, because the server stops.
    ///
    /// # Errors
    /// [`FullError`] if an error does not fit. Send the pending bytes, then call again.
    pub fn abandon(&mut self, out: &mut dyn Out) -> Result<(), FullError> {
        while let Some(token) = self.first(0, |_| true) {
            self.abandon_request(token, "The server is going away", out)?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "ask"))]
mod tests {
    use super::super::streamed_reply::{ListPage, StreamBody};
    use super::*;

    fn slot_in(state: &str) -> RequestSlot {
        let round = Round { asked: 0b11, ..Round::NONE };
        let state = match state {
            "Free" => RequestState::Free,
            "Open" => RequestState::Open,
            "Suspended" => RequestState::Suspended(Round { suspended: true, ..Round::NONE }),
            "Asking" => RequestState::Asking(round),
            "Ready" => RequestState::Ready(Round { answered: 0b11, ..round }),
            "Resumed" => RequestState::Resumed(Round { answered: 0b11, ..round }),
            "Streaming" => RequestState::Streaming(StreamedReply::of(StreamBody::List(ListPage::from(0)))),
            other => panic!("{other}"),
        };
        RequestSlot { state, ..RequestSlot::FREE }
    }

    fn apply(slot: &mut RequestSlot, event: &str) {
        match event {
            "admit" => slot.state.enter("admit", RequestState::Open),
            "ask" => slot.ask(1, 2, None),
            "ask nothing" => slot.ask(1, 0, None),
            "suspend" => slot.suspend(),
            "put off" => slot.state.enter("put off", RequestState::Open),
            "stream" => slot
                .state
                .enter("stream", RequestState::Streaming(StreamedReply::of(StreamBody::List(ListPage::from(0))))),
            "answer" => slot.answer(0),
            "last answer" => (slot.answer(0), slot.answer(1)).0,
            "end questions" => slot.end_questions(Ended::Closed),
            "wake" => assert!(slot.wake()),
            "resume" => slot.resume(),
            "wait for room" => slot.wait_for_room(),
            "close" => slot.free(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn each_transition_leads_where_the_table_says() {
        for (from, to, event) in TRANSITIONS {
            let mut slot = slot_in(from);
            apply(&mut slot, event);
            assert_eq!(slot.state.name(), *to, "{from}, {event}");
        }
    }
}
