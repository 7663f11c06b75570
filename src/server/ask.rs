//! Requests that wait for answers of the client, under the revisions in which a server sends requests.
//!
//! The original request's params, the handler's state and the answers are records in the caller's memory; this module
//! takes the answers in and says when a request can go on. Asking itself is the service's: see
//! [`Call::ask`](crate::service::Call).

use core::fmt;

use super::{Engine, Failure, Millis, SendError, Slot, State, Token, respond_failure};
use crate::json::{Raw, write};
use crate::rpc::Envelope;
use crate::sink::{Full, Kind, Out, Writer, whole};

/// Whether handlers can ask. What follows from it is not compiled into a program that cannot.
pub(crate) const ASKS: bool = cfg!(feature = "ask");

/// The most questions that one ask can hold.
pub(crate) const QUESTIONS_MAX: usize = 8;

/// How often a request may ask before it is given up: a handler that never has enough would go on for ever.
pub(crate) const ROUNDS_MAX: u8 = 64;

/// The params of the request.
pub(crate) const PARAMS: u8 = 1;
/// The handler's state.
pub(crate) const STATE: u8 = 2;
/// The key of a question; the tag is its number.
pub(crate) const KEY: u8 = 3;
/// An answer; the tag is its question's number, and [`REFUSED`] if it is an error.
pub(crate) const ANSWER: u8 = 4;
/// Whom a suspended request came from, where the transport knows that.
pub(crate) const PRINCIPAL: u8 = 5;
/// In the tag of an answer: an error instead of a result.
pub(crate) const REFUSED: u8 = 0x80;

/// The questions of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    /// How often it has asked, 0 if never; at least 1 if it is suspended.
    pub(crate) round: u8,
    /// The id of this round's first question; the others follow.
    pub(crate) first: u64,
    /// A bit for each open question of this round.
    pub(crate) asked: u8,
    pub(crate) answered: u8,
    /// The handler can go on.
    pub(crate) ready: bool,
    /// The handler has put its answer off and wants to be run again.
    pub(crate) suspended: bool,
    /// Why questions without an answer will get none.
    pub(crate) ended: Option<Ended>,
    pub(crate) deadline: Option<Millis>,
}

/// Why a question was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) enum Ended {
    // Not 0: a free slot is then nothing but zeros, which take no room.
    TimedOut = 1,
    Closed,
}

impl Asking {
    pub(crate) const NONE: Asking = Asking {
        round: 0,
        first: 0,
        asked: 0,
        answered: 0,
        ready: false,
        suspended: false,
        ended: None,
        deadline: None,
    };

    /// Whether there are records of it.
    pub(crate) const fn is_open(&self) -> bool {
        self.round > 0
    }
}

/// What a sealed state belongs to. A seal must refuse a state that comes back with anything else.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Bound<'b> {
    /// The method of the request.
    pub method: &'b str,
    /// The name or URI that it is for, as JSON text.
    pub target: &'b [u8],
    /// Its arguments, as JSON text.
    pub arguments: &'b [u8],
    /// Whom it came from, where the transport knows that.
    pub principal: Option<&'b str>,
    /// The time on the caller's clock, for an expiry.
    pub now: Millis,
}

impl<'b> Bound<'b> {
    /// A request from nobody known, at the beginning of time: for tests of seals.
    #[must_use]
    pub const fn new(method: &'b str, target: &'b [u8], arguments: &'b [u8]) -> Self {
        Bound { method, target, arguments, principal: None, now: 0 }
    }

    /// From somebody known, or not.
    #[must_use]
    pub const fn principal(self, principal: Option<&'b str>) -> Self {
        Bound { principal, ..self }
    }

    /// At another time.
    #[must_use]
    pub const fn now(self, now: Millis) -> Self {
        Bound { now, ..self }
    }
}

/// Why a state was not sealed or not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SealError {
    /// The buffer is too small.
    Room,
    /// It was not sealed here, or for something else, or it is too old.
    Broken,
}

/// Protects the state of a question that travels through the client (`requestState` of 2026-07-28), where anybody can
/// change it. The core has no cryptography: lend an implementation over a MAC or an AEAD.
pub trait Seal {
    /// Writes the protected form of `state` to `sealed`, and returns its length.
    fn seal(&self, bound: &Bound<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError>;

    /// Checks `sealed`, writes what was sealed to `state`, and returns its length.
    fn open(&self, bound: &Bound<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError>;
}

/// No protection: for states with which nothing worse can be done than making the request fail.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing inside")]
pub struct Unsealed;

impl Seal for Unsealed {
    fn seal(&self, _: &Bound<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
        crate::sink::copy(sealed.get_mut(..state.len()).ok_or(SealError::Room)?, state);
        Ok(state.len())
    }

    fn open(&self, bound: &Bound<'_>, sealed: &[u8], state: &mut [u8]) -> Result<usize, SealError> {
        self.seal(bound, sealed, state)
    }
}

impl Engine<'_> {
    /// A request whose questions are answered, or will not be: call
    /// [`resume`](crate::service::Service::resume) with the sink that its reply belongs to.
    pub fn ready(&self) -> Option<Token> {
        if !ASKS || self.in_flight() == 0 {
            return None;
        }
        let asking = self.slots.iter().enumerate().find(|(_, slot)| slot.is_ready());
        asking.map(|(number, slot)| Token { slot: number as u16, generation: slot.generation })
    }

    /// As [`ready`](Engine::ready), from a slot of the table on, and its number; for those whose requests are answered on
    /// different sinks, where one that is full must not keep the others waiting.
    #[must_use]
    pub fn ready_from(&self, first: usize) -> Option<(usize, Token)> {
        if !ASKS || self.live == 0 {
            return None;
        }
        let mut slots = self.slots.iter().enumerate().skip(first);
        let (number, slot) = slots.find(|(_, slot)| slot.is_ready())?;
        Some((number, Token { slot: number as u16, generation: slot.generation }))
    }

    /// Whether the handler of a request has [suspended](crate::service::Handling::suspend) it, and it can be
    /// [woken](Engine::wake).
    #[must_use]
    pub fn is_suspended(&self, token: Token) -> bool {
        self.slot(token).is_some_and(|slot| slot.asking.suspended)
    }

    /// Wakes a request whose handler has [suspended](crate::service::Handling::suspend) it: [`ready`](Engine::ready) names
    /// it from now on. To wake it twice changes nothing.
    ///
    /// # Errors
    /// [`SendError::Stale`] if it was answered or cancelled, [`SendError::WrongKind`] if it is not suspended.
    pub fn wake(&mut self, token: Token) -> Result<(), SendError> {
        let slot = self.slot_mut(token).ok_or(SendError::Stale)?;
        if !slot.asking.suspended {
            return Err(SendError::WrongKind);
        }
        slot.state = State::Asking;
        slot.asking.ready = true;
        Ok(())
    }

    /// The soonest time at which [`expire`](Engine::expire) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        if !ASKS || self.live == 0 {
            return None;
        }
        let waiting = self.slots.iter().filter(|slot| slot.is_asking() && !slot.asking.ready);
        let left = |deadline: &Millis| deadline.wrapping_sub(self.now) as i64;
        waiting.filter_map(|slot| slot.asking.deadline).min_by_key(left)
    }

    /// Tells the time; questions whose deadline has passed will not be answered any more, and [`ready`](Engine::ready)
    /// names their requests.
    pub fn expire(&mut self, now: Millis) {
        self.now = now;
        if !ASKS || self.live == 0 {
            return;
        }
        let passed = |deadline: Millis| now.wrapping_sub(deadline) as i64 >= 0;
        for slot in self.slots.iter_mut().filter(|slot| slot.is_asking() && !slot.asking.ready) {
            if slot.asking.deadline.is_some_and(passed) {
                slot.asking.ended = Some(Ended::TimedOut);
                slot.asking.ready = true;
            }
        }
    }

    /// The peer will not say anything more: open questions resolve as closed, listens are ended. Everything that is
    /// owed can still be written, by [`ready`](Engine::ready) and [`pull`](Engine::pull).
    pub fn end_of_input(&mut self) {
        let scope = self.scope;
        self.close_questions(|slot| slot.scope == scope);
        self.mark_ending();
    }

    /// Ends the open questions of the requests with a [`route`](Engine::route): their client is gone. They resolve as
    /// closed, and [`ready`](Engine::ready) names their requests.
    pub fn end_questions(&mut self, route: u32) {
        self.close_questions(|slot| slot.route == route);
    }

    fn close_questions(&mut self, which: impl Fn(&Slot) -> bool) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_asking() && which(slot)) {
            slot.asking.ended = slot.asking.ended.or(Some(Ended::Closed));
            slot.asking.ready = true;
        }
    }

    /// Takes in a response. One that nobody waits for is ignored: responses are never answered.
    pub(crate) fn response(
        &mut self,
        envelope: &Envelope<'_>,
        id: Option<Raw<'_>>,
        out: &mut dyn Out,
    ) -> Result<(), Full> {
        if !ASKS {
            return Ok(());
        }
        let Some((token, question)) = id.and_then(|id| id.u64()).and_then(|id| self.question(id)) else {
            return Ok(());
        };
        let (payload, refused) = match (envelope.result, envelope.error) {
            (Some(result), _) => (result, 0),
            (None, Some(error)) => (error, REFUSED),
            (None, None) => return Ok(()),
        };
        let owner = u32::from(token.slot);
        let answer = payload.as_bytes();
        if !self.has_ask_share(answer.len()) || self.asks.push(owner, ANSWER, question | refused, &[answer]).is_err() {
            if !self.over_http {
                return self.give_up(token, "The client's answer is too large", out);
            }
            // The answer came by another exchange than the one that its request is answered in.
            if let Some(slot) = self.slot_mut(token) {
                slot.asking.ended = slot.asking.ended.or(Some(Ended::Closed));
                slot.asking.ready = true;
            }
            return Ok(());
        }
        if let Some(slot) = self.slot_mut(token) {
            slot.asking.answered |= 1 << question;
            slot.asking.ready = slot.asking.answered == slot.asking.asked;
        }
        Ok(())
    }

    /// The request and the number of a question that is still open, by its id.
    fn question(&self, id: u64) -> Option<(Token, u8)> {
        let question_of = |slot: &Slot| {
            let asking = &slot.asking;
            let question = u8::try_from(id.checked_sub(asking.first)?).ok()?;
            let bit = 1u8.checked_shl(question.into())?;
            let open = slot.is_asking()
                && slot.scope == self.scope
                && asking.asked & !asking.answered & bit != 0
                && asking.ended.is_none();
            open.then_some(question)
        };
        self.slots.iter().enumerate().find_map(|(number, slot)| {
            let token = Token { slot: number as u16, generation: slot.generation };
            question_of(slot).map(|question| (token, question))
        })
    }

    /// Ends a request with an internal error, whatever it is waiting for.
    pub fn give_up(&mut self, token: Token, message: &str, out: &mut dyn Out) -> Result<(), Full> {
        if let Some(slot) = self.slot(token) {
            respond_failure(out, Some(slot.id.as_bytes()), &Failure::internal(message))?;
        }
        self.close(token);
        Ok(())
    }

    /// Tells the client that the open questions of a request need no answer any more.
    pub(crate) fn cancel_questions(&self, slot: &Slot, out: &mut dyn Out) -> Result<(), Full> {
        let open = slot.asking.asked & !slot.asking.answered;
        let mark = out.mark();
        for question in (0..QUESTIONS_MAX as u8).filter(|question| open & 1 << question != 0) {
            let id = slot.asking.first + u64::from(question);
            whole(out, Kind::Notification, |out| write_cancelled(out, id)).inspect_err(|_| out.roll_back(mark))?;
        }
        Ok(())
    }

    /// Whether the request that is being handled may wait for answers: one place is kept for those that do not.
    pub(crate) fn can_ask(&self, params: Option<Raw<'_>>) -> bool {
        if !ASKS || self.is_crowded() || !self.has_ask_share(params.map_or(0, |params| params.as_bytes().len())) {
            return false;
        }
        let asking = || self.slots.iter().filter(|slot| slot.is_asking()).count();
        // It is in flight itself, and counting is seldom needed.
        self.in_flight() < self.capacity() || asking() + 1 < self.capacity()
    }

    /// As [`can_ask`](Engine::can_ask), for a request that has waited already and runs again.
    pub(crate) fn can_ask_again(&self) -> bool {
        let asking = || self.slots.iter().filter(|slot| slot.is_asking()).count();
        self.in_flight() < self.capacity() || asking() < self.capacity()
    }

    /// Whether the present scope may keep so many more bytes for its questions.
    fn has_ask_share(&self, more: usize) -> bool {
        let is_own = |owner: u32| self.slots.get(owner as usize).is_some_and(|slot| slot.scope == self.scope);
        let own = || self.asks.iter().filter(|record| is_own(record.owner)).map(|record| record.size()).sum::<usize>();
        // While all of them are within one share, whose they are need not be known.
        let within = |used: usize| used.saturating_add(more) <= self.ask_share;
        within(self.asks.used()) || within(own())
    }

    /// The questions of a request are through; it is answered another way.
    pub(crate) fn forget_questions(&mut self, token: Token) {
        let open = ASKS
            && self.slot_mut(token).is_some_and(|slot| core::mem::replace(&mut slot.asking, Asking::NONE).is_open());
        if open {
            self.forget_asks(token);
        }
    }

    pub(crate) fn forget_asks(&mut self, token: Token) {
        if ASKS {
            self.asks.remove(|record| record.owner == u32::from(token.slot));
        }
    }

    /// Answers everything that is still open with an error: the server is going away.
    pub fn abandon(&mut self, out: &mut dyn Out) -> Result<(), Full> {
        for number in 0..self.capacity() {
            let Some(slot) = self.slots.get(number).filter(|slot| slot.is_live()) else { continue };
            let token = Token { slot: number as u16, generation: slot.generation };
            self.give_up(token, "The server is going away", out)?;
        }
        Ok(())
    }

    /// Any request of a scope.
    pub(crate) fn any_of(&self, scope: super::Scope) -> Option<Token> {
        let found = self.slots.iter().enumerate().find(|(_, slot)| slot.is_live() && slot.scope == scope);
        found.map(|(number, slot)| Token { slot: number as u16, generation: slot.generation })
    }

    /// The request in a slot of the table, for walking over all of them.
    #[must_use]
    pub fn token_at(&self, number: usize) -> Option<Token> {
        let slot = self.slots.get(number).filter(|slot| slot.is_live())?;
        Some(Token { slot: number as u16, generation: slot.generation })
    }

    /// Ends all listens: each with its result, by the next [`pull`](Engine::pull).
    pub fn end_listens(&mut self) {
        self.mark_ending();
    }

    /// Ends everything of a scope: a connection or session that is over. Its requests go unanswered, its tokens
    /// are stale, its subscriptions are dropped.
    pub fn end_scope(&mut self, scope: super::Scope) {
        let slots = if self.live == 0 { 0 } else { self.capacity() };
        for number in 0..slots {
            let Some(slot) = self.slots.get(number).filter(|slot| slot.is_live() && slot.scope == scope) else {
                continue;
            };
            let token = Token { slot: number as u16, generation: slot.generation };
            self.close(token);
        }
        self.drop_subscriptions(scope);
    }

    /// Sends the client a `ping` under an id of its own. The answer needs no handling.
    ///
    /// # Errors
    /// [`SendError::NotInitialized`] unless the client has sent `initialize`: in 2026-07-28 a server sends no requests.
    /// [`SendError::FullNow`] and [`SendError::FullNever`] if there is no room for it.
    pub fn ping(&mut self, out: &mut dyn Out) -> Result<(), SendError> {
        if self.peer.revision.is_none() {
            return Err(SendError::NotInitialized);
        }
        let id = self.next_id;
        whole(out, Kind::Request, |out| {
            out.put(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
            write::unsigned(out, id)?;
            out.put(b",\"method\":\"ping\"}")
        })?;
        self.next_id += 1;
        Ok(())
    }
}

fn write_cancelled(out: &mut Writer<'_>, id: u64) -> Result<(), Full> {
    out.put(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":")?;
    write::unsigned(out, id)?;
    out.put(b"}}")
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::Room => "the buffer is too small for the state",
            SealError::Broken => "the state was not sealed here and now",
        })
    }
}

impl core::error::Error for SealError {}
