//! Admitting, finding, answering and ending the requests in flight.

use super::{Caching, Engine, Failure, SendError, Slot, State, Token, respond_failure};
use crate::json::{Raw, object::Object};
use crate::rpc::begin;
use crate::server::request::{Request, Terms};
use crate::sink::{Full, Kind, Out, whole};

/// Whether a result of the application's own making ends its request: nothing else may say how long it is kept.
pub(crate) fn is_complete(result: Raw<'_>) -> bool {
    result.get("resultType").and_then(|kind| kind.text()).is_none_or(|kind| kind.is("complete"))
}

/// There is no place for one more request in flight.
pub(crate) const OVERLOADED: Failure<'static> = Failure::internal("Overloaded: too many requests in flight").refusing();

impl Engine<'_> {
    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::from(self.live)
    }

    /// The most requests in flight with which a request that comes in from here on may stay in flight: one more that puts
    /// its answer off, or is answered in windows, is refused as overload, and one that asks is told that it cannot.
    /// Requests that are answered at once are not concerned. Without, there is no limit but the table's.
    ///
    /// For transports that serve many clients with one engine: what they let one client take is theirs to decide.
    pub fn set_most_in_flight(&mut self, most: usize) {
        self.most_in_flight = u16::try_from(most).unwrap_or(u16::MAX);
    }

    /// Whether the request that is being handled, which is in flight itself, must be answered at once.
    pub(crate) fn is_crowded(&self) -> bool {
        self.live > self.most_in_flight
    }

    /// Whether the token's request still waits for its answer.
    #[must_use]
    pub fn is_open(&self, token: Token) -> bool {
        self.slot(token).is_some_and(|slot| slot.state == State::Open)
    }

    /// Answers a request with `result`, a JSON object as it stands. Where 2026-07-28 demands more, that is added:
    /// `resultType`, and for lists and `resources/read` the hints of [`Caching::NONE`] where `result` has no valid `ttlMs`
    /// or `cacheScope`. Name and version of the server (`_meta`, `io.modelcontextprotocol/serverInfo`) SHOULD be there in
    /// that revision; they are the caller's to put in.
    ///
    /// # Errors
    /// The request was answered or cancelled, or `result` does not fit: then it is still open.
    pub fn respond(&mut self, token: Token, result: Raw<'_>, out: &mut dyn Out) -> Result<(), SendError> {
        let slot = self.slot(token).filter(|slot| slot.state == State::Open).ok_or(SendError::Stale)?;
        whole(out, Kind::Result, |out| {
            begin(out, slot.id.as_bytes(), ",\"result\":");
            let mut object = Object::open(out);
            if slot.revision.is_modern() && result.get("resultType").is_none() {
                object.fixed("resultType", "\"complete\"")?;
            }
            if !(slot.revision.is_modern() && slot.method.is_cached() && is_complete(result)) {
                object.spread(result)?;
                return object.finish().put(b"}");
            }
            for (key, value) in result.members().filter(|(key, _)| !Caching::is_hint(key)) {
                object.member(key, value)?;
            }
            Caching::NONE.or_of(result).write(&mut object)?;
            object.finish().put(b"}")
        })?;
        self.close(token);
        Ok(())
    }

    /// Answers a request with an error.
    pub fn fail(&mut self, token: Token, failure: &Failure<'_>, out: &mut dyn Out) -> Result<(), SendError> {
        let slot = self.slot(token).filter(|slot| slot.state == State::Open).ok_or(SendError::Stale)?;
        respond_failure(out, Some(slot.id.as_bytes()), failure)?;
        self.close(token);
        Ok(())
    }

    /// The request that a cancellation names, in the present scope.
    #[must_use]
    pub fn named_by(&self, cancellation: &Request<'_>) -> Option<Token> {
        self.find(cancellation.members().request_id?.as_bytes())
    }

    /// Gives up a request without answering it: as if it had never come.
    pub fn forget(&mut self, token: Token) {
        self.close(token);
    }

    /// Takes a request into the table. Its id has been checked for duplicates.
    pub(crate) fn admit(&mut self, request: &Request<'_>, terms: &Terms, why: &mut Failure<'_>) -> Option<Token> {
        let (scope, route) = (self.scope, self.route);
        let free = self.slots.iter_mut().enumerate().find(|(_, slot)| !slot.is_live());
        let Some((number, slot)) = free else {
            return why.be(OVERLOADED);
        };
        if !slot.id.set(request.id.as_bytes()) {
            return why.be_request("Invalid request: the id is too long");
        }
        let progress_token = request.envelope.meta.progress_token.map_or(&b""[..], |token| token.as_bytes());
        if !slot.progress_token.set(progress_token) {
            return why.be_params("Invalid params: the progress token is too long");
        }
        slot.scope = scope;
        slot.route = route;
        slot.released = false;
        slot.state = State::Open;
        slot.method = request.method;
        slot.revision = terms.revision;
        slot.client = terms.client;
        slot.level = terms.level;
        slot.progress = 0;
        let token = Token { slot: number as u16, generation: slot.generation };
        self.live += 1;
        Some(token)
    }

    pub(crate) fn slot(&self, token: Token) -> Option<&Slot> {
        self.slots.get(usize::from(token.slot)).filter(|slot| slot.is_live() && slot.generation == token.generation)
    }

    pub(crate) fn slot_mut(&mut self, token: Token) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(usize::from(token.slot))?;
        (slot.is_live() && slot.generation == token.generation).then_some(slot)
    }

    /// The request with this id in the present scope.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Token> {
        if self.live == 0 {
            return None;
        }
        let scope = self.scope;
        let (number, slot) = self.slots.iter().enumerate().find(|(_, slot)| slot.is(scope, id))?;
        Some(Token { slot: number as u16, generation: slot.generation })
    }

    /// Ends a request: answered, cancelled or given up.
    pub(crate) fn close(&mut self, token: Token) {
        let Some(slot) = self.slot_mut(token) else { return };
        let asked = slot.asking.is_open();
        slot.free();
        self.live -= 1;
        if asked {
            self.forget_asks(token);
        }
    }

    /// Takes an admission back because the sink is full: the same message will come again, and nobody has seen the
    /// token.
    pub(crate) fn retract(&mut self, token: Token) {
        if let Some(slot) = self.slot_mut(token) {
            slot.free();
            slot.generation = token.generation;
            self.live -= 1;
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Refuses a request with an error that names it.
    pub(crate) fn refuse(&self, request: &Request<'_>, failure: &Failure<'_>, out: &mut dyn Out) -> Result<(), Full> {
        match respond_failure(out, Some(request.id.as_bytes()), failure) {
            // The id is longer than the sink.
            Err(Full::Never) => respond_failure(out, self.no_id(), failure),
            refused => refused,
        }
    }
}
