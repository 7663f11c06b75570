//! Requests that wait for responses of the client, up to 2025-11-25, and requests that are suspended. See
//! [sampling](https://modelcontextprotocol.io/specification/2025-11-25/client/sampling),
//! [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation) and
//! [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots).
//!
//! The params of the request, the state of its handler and the answers are records in memory that the caller lends.
//! This module takes the responses in and says when a handler can run again. The service writes the questions: see
//! [`Call::ask`](crate::service::Call).

use super::in_flight::{ASKS, Ended};
use super::subscriptions::write_cancelled;
use super::{Millis, RequestSlot, RequestToken, RespondError, Server};
use crate::json::{Raw, write::digits};
use crate::rpc::{Envelope, begin, end_with_params, write_notification};
use crate::sink::{FullError, MessageHead, Out, RequestInfo, whole};

/// The most questions that one ask can hold.
pub(crate) const QUESTIONS_MAX: usize = 8;

/// The most asks of one request. A handler that never has enough would otherwise go on for ever.
#[cfg(feature = "ask")]
pub(crate) const ROUNDS_MAX: u8 = 64;

/// The params of the request.
pub(crate) const PARAMS: u8 = 1;
/// The handler's state.
pub(crate) const STATE: u8 = 2;
/// The key of a question; the tag is its number.
#[cfg(feature = "ask")]
pub(crate) const KEY: u8 = 3;
/// An answer; the tag is its question's number, and [`REFUSED`] if it is an error.
pub(crate) const ANSWER: u8 = 4;
/// The principal of a request that asks or is suspended, if the transport knows it.
pub(crate) const PRINCIPAL: u8 = 5;
/// In the tag of an answer: an error instead of a result.
pub(crate) const REFUSED: u8 = 0x80;

impl Server<'_> {
    /// Returns whether the handler of a request has [suspended](crate::service::RequestContext::suspend) it:
    /// [`wake`](Server::wake) is possible.
    #[must_use]
    pub fn is_suspended(&self, token: RequestToken) -> bool {
        self.slot(token).and_then(RequestSlot::round).is_some_and(|round| round.suspended)
    }

    /// Wakes a request whose handler has [suspended](crate::service::RequestContext::suspend) it:
    /// [`ready`](Server::ready) returns it from now on. A second call changes nothing.
    ///
    /// A request with a method of an [extension](crate::service::extension) is woken also while it asks the client: its open
    /// questions are taken back, and have no answer, as after their timeout. If all have ended already, nothing changes.
    ///
    /// # Errors
    /// [`RespondError::Stale`] if it was answered or cancelled, [`RespondError::WrongKind`] if it is not suspended.
    pub fn wake(&mut self, token: RequestToken) -> Result<(), RespondError> {
        let slot = self.slot_mut(token).ok_or(RespondError::Stale)?;
        if slot.wake() { Ok(()) } else { Err(RespondError::WrongKind) }
    }

    /// Returns the next time at which [`expire`](Server::expire) has something to do, in milliseconds.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        if !ASKS || self.in_flight() == 0 {
            return None;
        }
        let left = |deadline: &Millis| deadline.wrapping_sub(self.now) as i64;
        self.slots.iter().filter_map(RequestSlot::deadline).min_by_key(left)
    }

    /// Sets the time, in milliseconds. Questions whose deadline has passed stay without an answer, and
    /// [`ready`](Server::ready) returns their requests.
    pub fn expire(&mut self, now: Millis) {
        self.now = now;
        if !ASKS || self.in_flight() == 0 {
            return;
        }
        for slot in self.slots.iter_mut() {
            if slot.deadline().is_some_and(|deadline| now.wrapping_sub(deadline) as i64 >= 0) {
                slot.end_questions(Ended::TimedOut);
            }
        }
    }

    /// Notes the end of the input: open questions stay without an answer, and listens end. [`ready`](Server::ready)
    /// and [`pull`](Server::pull) still write everything that is due.
    pub fn end_of_input(&mut self) {
        let scope = self.scope;
        self.close_questions(|slot| slot.scope == scope);
        self.end_listens();
    }

    /// Ends the open questions of the requests with a [`transport_id`](Server::transport_id): their client is gone.
    /// [`ready`](Server::ready) returns these requests.
    pub fn end_questions(&mut self, transport_id: u32) {
        self.close_questions(|slot| slot.transport_id == transport_id);
    }

    fn close_questions(&mut self, which: impl Fn(&RequestSlot) -> bool) {
        if ASKS {
            self.slots.iter_mut().filter(|slot| which(slot)).for_each(|slot| slot.end_questions(Ended::Closed));
        }
    }

    /// Takes a response in. One without an open question is ignored: a response never gets an answer.
    pub(crate) fn response(
        &mut self,
        envelope: &Envelope<'_>,
        id: Option<Raw<'_>>,
        out: &mut dyn Out,
    ) -> Result<(), FullError> {
        if !ASKS {
            return Ok(());
        }
        let Some((token, question)) = id.and_then(|id| id.u64()).and_then(|id| self.question(id)) else {
            return Ok(());
        };
        let (payload, refused) = match envelope.response() {
            Some(Ok(result)) => (result, 0),
            Some(Err(error)) => (error, REFUSED),
            None => return Ok(()),
        };
        let owner = u32::from(token.slot());
        let answer = payload.as_bytes();
        if !self.has_ask_share(answer.len()) || self.asks.push(owner, ANSWER, question | refused, &[answer]).is_err() {
            if !self.over_http {
                return self.abandon_request(token, "The client's answer is too large", out);
            }
            // The answer came in another exchange than the one that takes the reply.
            if let Some(slot) = self.slot_mut(token) {
                slot.end_questions(Ended::Closed);
            }
            return Ok(());
        }
        if let Some(slot) = self.slot_mut(token) {
            slot.answer(question);
        }
        Ok(())
    }

    /// Returns the request and the number of the open question with this id.
    fn question(&self, id: u64) -> Option<(RequestToken, u8)> {
        let question_of = |slot: &RequestSlot| {
            let round = slot.waiting().filter(|round| slot.scope == self.scope && round.ended.is_none())?;
            let question = u8::try_from(id.checked_sub(round.first)?).ok()?;
            (round.open() & 1u8.checked_shl(question.into())? != 0).then_some(question)
        };
        let found = self.slots.iter().enumerate().find_map(|(number, slot)| Some((number, question_of(slot)?)));
        found.and_then(|(number, question)| Some((self.token_at(number)?, question)))
    }

    /// Writes `notifications/cancelled` for each open question of a request.
    pub(crate) fn cancel_questions(&self, token: RequestToken, out: &mut dyn Out) -> Result<(), FullError> {
        let round = self.slot(token).and_then(RequestSlot::waiting);
        let (first, open) = round.map_or((0, 0), |round| (round.first, round.open()));
        let mark = out.mark();
        for question in (0..QUESTIONS_MAX as u8).filter(|question| open & 1 << question != 0) {
            let id = first + u64::from(question);
            whole(out, MessageHead::Notification, |out| write_cancelled(out, digits(id, &mut [0; 20])))
                .inspect_err(|_| out.roll_back(mark))?;
        }
        Ok(())
    }

    /// Writes `notifications/cancelled` for the questions of a request whose time is over; nothing if that is larger
    /// than the empty sink.
    ///
    /// # Errors
    /// [`FullError::Now`] if the sink is full: try again when there is room.
    pub(crate) fn withdraw_questions(&mut self, token: RequestToken, out: &mut dyn Out) -> Result<(), FullError> {
        let round = self.slot(token).and_then(RequestSlot::waiting);
        if round.is_none_or(|round| round.ended != Some(Ended::TimedOut)) {
            return Ok(());
        }
        if self.cancel_questions(token, out) == Err(FullError::Now) {
            return Err(FullError::Now);
        }
        if let Some(slot) = self.slot_mut(token) {
            slot.withdraw_questions();
        }
        Ok(())
    }

    /// Returns whether the request that is being handled may wait for answers. One slot is kept for requests that do
    /// not wait.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn can_ask(&self, params: Option<Raw<'_>>) -> bool {
        if !ASKS || self.is_crowded() || !self.has_ask_share(params.map_or(0, |params| params.as_bytes().len())) {
            return false;
        }
        // The request is in flight itself. Counting is seldom needed.
        self.in_flight() < self.capacity() || self.count_waiting() + 1 < self.capacity()
    }

    /// Does the same as [`can_ask`](Server::can_ask) for a request that has waited before.
    pub(crate) fn can_ask_again(&self) -> bool {
        self.in_flight() < self.capacity() || self.count_waiting() < self.capacity()
    }

    fn count_waiting(&self) -> usize {
        self.slots.iter().filter(|slot| slot.waiting().is_some()).count()
    }

    /// Returns whether the present scope may keep `more` bytes for its questions.
    fn has_ask_share(&self, more: usize) -> bool {
        let is_own = |owner: u32| self.slots.get(owner as usize).is_some_and(|slot| slot.scope == self.scope);
        let own = || self.asks.iter().filter(|record| is_own(record.owner)).map(|record| record.size()).sum::<usize>();
        // If all scopes together are within one share, the owners do not matter.
        let within = |used: usize| used.saturating_add(more) <= self.ask_share;
        within(self.asks.used()) || within(own())
    }

    pub(crate) fn forget_asks(&mut self, token: RequestToken) {
        if ASKS {
            self.asks.remove(|record| record.owner == u32::from(token.slot()));
        }
    }

    /// Writes a request of any method to a client up to 2025-11-25, as it is, and returns its `id`. The program takes the response
    /// itself: it [reads](super::IncomingRequest::read) each message first, and leaves out those with this id. The response to a
    /// [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping) needs no handling.
    ///
    /// # Errors
    /// [`RespondError::NotInitialized`] unless the client has sent `initialize`: in 2026-07-28 a server sends no
    /// requests. [`RespondError::FullNow`] or [`RespondError::FullNever`] if the sink has no room.
    pub fn send_request(
        &mut self,
        method: &str,
        params: Option<Raw<'_>>,
        out: &mut dyn Out,
    ) -> Result<u64, RespondError> {
        if self.peer.revision().is_none() {
            return Err(RespondError::NotInitialized);
        }
        let id = self.next_id;
        whole(out, MessageHead::Request(&RequestInfo::new(id, method)), |out| {
            begin(out, digits(id, &mut [0; 20]), ",\"method\":");
            out.string(method);
            end_with_params(out, params)
        })?;
        self.next_id += 1;
        Ok(id)
    }

    /// Writes a notification of any method, as it is, for a program that passes notifications on. Changes and logs have methods of
    /// their own, which know what the client wants: [`publish`](Server::publish), [`log_data`](Server::log_data).
    ///
    /// # Errors
    /// [`FullError`] if the sink has no room.
    pub fn notify(&self, method: &str, params: Option<Raw<'_>>, out: &mut dyn Out) -> Result<(), FullError> {
        write_notification(out, MessageHead::Notification, method, params)
    }
}
