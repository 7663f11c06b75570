//! Effects of exchanges on each other: sessions begin and are lost, streams open, events go out in turn.

use mcp_sansio::memory::records::OVERHEAD;
use mcp_sansio::sink::MessageHead;

use super::event::{FailureReason, HttpClientEvent};
use super::exchange::{ExchangeSlot, Hold};
use super::origin::{Signals, Sse};
use super::task::{Purpose, Topic};
use super::{HttpTransport, INITIALIZED, ListenState, Target};

impl HttpTransport<'_> {
    /// Sends the message written into a slot.
    pub(crate) fn dispatch(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        if slot.is_excluded(&self.origin) {
            return;
        }
        let message = slot.outgoing.repeated().message;
        // Of a message that is too long its start is shown.
        let room = self.shown.limit().saturating_sub(self.shown.used() + OVERHEAD);
        let _ = self.shown.push(0, 0, 0, &[message.get(..room).unwrap_or(message)]);
        let task = slot.task;
        if task.purpose == Purpose::Request {
            self.origin.modern = task.is_modern();
        }
        if task.topic == Topic::Initialize {
            self.begin_session(at);
        }
        let early =
            task.purpose == Purpose::Request && task.in_session() && self.slots.iter().any(|slot| slot.greets(true));
        let hold = match self.origin.sse {
            Sse::Unused | Sse::Known => early.then_some(Hold::Initialized),
            Sse::Wanted | Sse::Opening => Some(Hold::Endpoint),
        };
        if let Some(slot) = self.slots.get_mut(at) {
            slot.submit(hold, &mut self.origin);
        }
        if hold == Some(Hold::Endpoint) {
            self.settle();
        }
    }

    /// Sends the messages that waited for a slot.
    pub(crate) fn flush(&mut self) {
        while let Some((at, kind)) = self.outbox.iter().next().map(|first| (first.at(), first.kind))
            && self.writing == Target::None
            && let Some(slot_at) = self.choose(false)
            && let Some(slot) = self.slots.get_mut(slot_at)
        {
            let head = if kind == INITIALIZED { MessageHead::Initialized } else { MessageHead::Notification };
            let message = self.outbox.get(at).map_or(&[][..], |first| first.data);
            match slot.begin(head, &self.origin).and_then(|()| slot.outgoing.put(message)) {
                Ok(()) => self.dispatch(slot_at),
                Err(_) => slot.roll_back(&self.origin),
            }
            self.outbox.remove(|record| record.at() == at);
        }
    }

    /// Begins another session with the message in a slot, and ends all that belongs to an earlier one.
    fn begin_session(&mut self, at: usize) {
        self.forget_streams();
        for (_, slot) in self.slots.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            if slot.is(Purpose::EndSession) && !slot.is_over() {
                slot.give_way(FailureReason::SessionLost, &mut self.origin);
            } else if slot.is_post() && (slot.task.sse || !slot.task.is_modern()) {
                slot.fail_next(FailureReason::SessionLost);
            }
        }
        self.origin.end_session();
    }

    /// Closes the streams of a session that is over.
    fn forget_streams(&mut self) {
        // A failed stream still reports its end.
        for slot in self.slots.iter_mut().filter(|slot| slot.is_stream() && !slot.is_over()) {
            slot.abandon(&mut self.origin);
        }
    }

    /// Returns a free slot, if possible one with a connection. For a request, one more slot must be free while
    /// the server may send requests.
    pub(crate) fn choose(&mut self, request: bool) -> Option<usize> {
        let free = |slot: &ExchangeSlot<'_>| slot.is_free() || slot.is_draining();
        let count = self.slots.iter().filter(|slot| free(slot)).count();
        if request && self.slots.len() > 1 && count < 2 && !self.origin.modern {
            return None;
        }
        let find = |good: &dyn Fn(&ExchangeSlot<'_>) -> bool| self.slots.iter().position(good);
        let at = find(&|slot| slot.is_free() && slot.is_connected())
            .or_else(|| find(&|slot| slot.is_free()))
            .or_else(|| find(&free))?;
        let slot = self.slots.get_mut(at)?;
        if slot.is_draining() {
            slot.abandon(&mut self.origin);
        }
        Some(at)
    }

    /// Applies the facts that one slot found to the others. Returns `true` if there was one.
    pub(crate) fn settle(&mut self) -> bool {
        let signals = core::mem::take(&mut self.origin.signals);
        // Most turns change nothing for other slots.
        let listens = self.origin.listening == ListenState::Opening;
        if signals == Signals::default() && !listens && !self.slots.iter().any(ExchangeSlot::is_waiting) {
            return false;
        }
        if signals.initialized && self.origin.may_listen() {
            self.origin.listening = ListenState::Opening;
        }
        if signals.session_lost {
            self.forget_streams();
            for slot in self.slots.iter_mut().filter(|slot| slot.is_post() && slot.task.in_session()) {
                slot.fail_next(FailureReason::SessionLost);
            }
            self.origin.end_session();
        }
        if signals.endpoint {
            self.submit_held(&[Hold::Endpoint, Hold::Fallback]);
        }
        if let Some(why) = signals.sse_failed {
            self.lose_sse(why);
        }
        let opened = self.open_stream();
        // Requests that waited for `notifications/initialized`.
        let early = !self.slots.iter().any(|slot| slot.greets(true)) && self.submit_held(&[Hold::Initialized]);
        signals != Signals::default() || opened || early
    }

    /// Sends the messages that waited. Returns `true` if there was one.
    fn submit_held(&mut self, until: &[Hold]) -> bool {
        let mut any = false;
        for slot in self.slots.iter_mut().filter(|slot| slot.is_held(until)) {
            slot.submit(None, &mut self.origin);
            any = true;
        }
        any
    }

    /// Handles a stream of HTTP with SSE that could not be opened, or ended.
    fn lose_sse(&mut self, why: FailureReason) {
        let known = self.origin.sse == Sse::Known;
        self.forget_streams();
        let mut told = false;
        for slot in self.slots.iter_mut() {
            if slot.is_held(&[Hold::Fallback]) {
                slot.end_with_error();
            } else if slot.is_post() && slot.task.sse {
                slot.fail_next(if known { FailureReason::SessionLost } else { why });
                told = true;
            }
        }
        // If no exchange is in flight, the failure is still reported: the stream has left a slot free for that.
        if known
            && !told
            && let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_free())
        {
            slot.fail(FailureReason::SessionLost);
        }
        self.origin.end_session();
    }

    /// Opens the stream that is wanted, if there is a slot for it.
    fn open_stream(&mut self) -> bool {
        let waits = |slot: &ExchangeSlot<'_>| slot.is_held(&[Hold::Endpoint, Hold::Fallback]);
        let any_waits = self.slots.iter().any(waits);
        if self.origin.sse == Sse::Unused && any_waits {
            self.lose_sse(FailureReason::SessionLost);
            return true;
        }
        let purpose = if self.origin.sse == Sse::Wanted && any_waits {
            Purpose::SseStream
        } else if self.origin.listening == ListenState::Opening
            && !self.slots.iter().any(|slot| slot.is(Purpose::Listen))
        {
            Purpose::Listen
        } else {
            return false;
        };
        let Some(at) = self.choose(false) else {
            let stuck = purpose == Purpose::SseStream && self.slots.iter().all(waits);
            if stuck {
                self.lose_sse(FailureReason::NoRoom);
            }
            return stuck;
        };
        if purpose == Purpose::SseStream {
            self.origin.sse = Sse::Opening;
        }
        if let Some(slot) = self.slots.get_mut(at) {
            slot.open(purpose, &mut self.origin);
        }
        true
    }

    pub(crate) fn delete_session(&mut self) -> bool {
        if self.origin.session().is_none() {
            return false;
        }
        self.forget_streams();
        self.origin.listening = ListenState::No;
        let at = self.choose(false);
        let Some(slot) = at.and_then(|at| self.slots.get_mut(at)) else {
            self.origin.end_session();
            return false;
        };
        slot.open(Purpose::EndSession, &mut self.origin);
        true
    }

    pub(crate) fn drop_all(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.hang_up();
            slot.abandon(&mut self.origin);
        }
        (self.writing, self.held, self.given) = (Target::None, false, None);
        self.origin.listening = ListenState::No;
        self.origin.end_sse();
        self.origin.signals = Signals::default();
    }

    /// Continues the slot whose event the caller has read.
    pub(crate) fn told(&mut self) {
        if let Some(slot) = self.given.take().and_then(|at| self.slots.get_mut(at)) {
            slot.told(&mut self.origin);
        }
    }

    /// Finds the next event. The caller has read the last one.
    pub(crate) fn find_event(&mut self) -> Option<usize> {
        self.told();
        loop {
            let mut any = self.settle();
            let slots = self.slots.len();
            for round in 0..slots {
                let at = self.next + round;
                let at = if at >= slots { at - slots } else { at };
                // Most slots are at rest, and change nothing for the others.
                if self.slots.get_mut(at)?.step(&mut self.origin) {
                    any |= self.settle();
                }
                if self.slots.get(at)?.has_event() {
                    self.next = if at + 1 >= slots { 0 } else { at + 1 };
                    self.given = Some(at);
                    return Some(at);
                }
            }
            if !any {
                return None;
            }
        }
    }

    /// Returns the event of a slot. A response that came on another stream ends its own exchange.
    pub(crate) fn tell(&mut self, at: usize) -> Option<HttpClientEvent<'_>> {
        let mut answered = self.slots.get(at)?.answers_another();
        if let Some(id) = answered {
            let mut others = self.slots.iter_mut().enumerate();
            match others.find(|(other, slot)| *other != at && slot.request() == Some(id)) {
                Some((_, slot)) if !slot.is_over() => slot.abandon(&mut self.origin),
                _ => answered = None,
            }
        }
        self.slots.get_mut(at)?.event(answered)
    }
}
