//! What exchanges mean for each other: sessions begin and are lost, streams are opened, events are told in turn.

use mcp_sansio::frame::sse::Item;

use super::event::{Event, Why};
use super::site::{News, Old};
use super::slot::{Phase, Ready, Slot, Topic, Wait, What};
use super::{Listening, Remote};

impl<const N: usize> Remote<'_, N> {
    /// The message in a slot has been written.
    pub(crate) fn dispatch(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.classify();
        if let Some(why) = slot.excluded(&self.site) {
            return slot.fail_kept(Why::Excluded(why));
        }
        let task = slot.task;
        if task.what == What::Request {
            self.site.modern = task.modern;
        }
        if task.topic == Topic::Initialize {
            self.begin_session(at);
        }
        let early = task.what == What::Request && task.in_session() && self.slots.iter().any(Slot::is_greeting);
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.task.old = self.site.old != Old::No;
        if matches!(self.site.old, Old::No | Old::Known) {
            if early {
                slot.phase = Phase::Wait(Wait::Greeting);
            } else {
                slot.launch(at, &mut self.site);
            }
        } else {
            slot.phase = Phase::Wait(Wait::Endpoint);
            self.settle();
        }
    }

    /// Another session begins with the message in a slot: whatever belongs to an earlier one is over.
    fn begin_session(&mut self, at: usize) {
        self.forget_streams();
        for (_, slot) in self.slots.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            if slot.is(What::Delete) && slot.phase != Phase::Over {
                slot.hang_up();
                slot.ended();
            } else if (slot.is(What::Request) || slot.is(What::Tell)) && (slot.task.old || !slot.task.modern) {
                slot.fail_next(Why::SessionLost);
            }
        }
        self.site.end_session();
    }

    /// Closes the streams of a session that is over.
    fn forget_streams(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            // One that has failed will be told.
            if slot.is_listen() && slot.phase != Phase::Over {
                slot.abandon(&mut self.site, at);
            }
        }
    }

    /// A free slot: best one with a connection. For a request, one more must be free as long as the server may ask.
    pub(crate) fn choose(&mut self, request: bool) -> Option<usize> {
        let free = |slot: &Slot<'_>| slot.is_free() || slot.phase == Phase::Drain;
        let count = self.slots.iter().filter(|slot| free(slot)).count();
        if request && N > 1 && count < 2 && !self.site.modern {
            return None;
        }
        let find = |good: &dyn Fn(&Slot<'_>) -> bool| self.slots.iter().position(good);
        let at = find(&|slot| slot.is_free() && slot.is_up())
            .or_else(|| find(&|slot| slot.is_free()))
            .or_else(|| find(&free))?;
        let slot = self.slots.get_mut(at)?;
        if slot.phase == Phase::Drain {
            slot.abandon(&mut self.site, at);
        }
        slot.deadline = None;
        Some(at)
    }

    /// Makes the slots follow what one of them found out; whether there was anything.
    pub(crate) fn settle(&mut self) -> bool {
        let news = core::mem::take(&mut self.site.news);
        let mut any = news != News::default();
        if news.initialized && self.site.config.listen && self.site.old == Old::No && !self.site.modern {
            self.site.listening = Listening::Opening;
        }
        if news.lost {
            self.lose_session();
        }
        if news.endpoint {
            self.post_what_waits();
        }
        if let Some(why) = news.old_failed {
            self.lose_old(why);
        }
        any |= self.open_streams();
        any |= self.post_what_was_early();
        any
    }

    /// Sends the requests that waited for `notifications/initialized`.
    fn post_what_was_early(&mut self) -> bool {
        let waits = |slot: &Slot<'_>| slot.phase == Phase::Wait(Wait::Greeting);
        if !self.slots.iter().any(waits) || self.slots.iter().any(Slot::is_greeting) {
            return false;
        }
        for (at, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| waits(slot)) {
            slot.launch(at, &mut self.site);
        }
        true
    }

    fn lose_session(&mut self) {
        self.forget_streams();
        for slot in &mut self.slots {
            if (slot.is(What::Request) || slot.is(What::Tell)) && slot.task.in_session() {
                slot.fail_next(Why::SessionLost);
            }
        }
        self.site.end_session();
    }

    fn post_what_waits(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if matches!(slot.phase, Phase::Wait(Wait::Endpoint | Wait::Fallback)) {
                slot.task.old = true;
                slot.launch(at, &mut self.site);
            }
        }
    }

    /// The stream of the old transport is not there, or no more.
    fn lose_old(&mut self, why: Why) {
        let known = self.site.old == Old::Known;
        self.forget_streams();
        let mut told = false;
        for slot in &mut self.slots {
            if slot.phase == Phase::Wait(Wait::Fallback) {
                slot.tell_error();
            } else if slot.task.old && (slot.is(What::Request) || slot.is(What::Tell)) {
                slot.fail_next(if known { Why::SessionLost } else { why });
                told = true;
            }
        }
        // Where nothing is under way, it is told all the same: the stream has left a slot.
        if known
            && !told
            && let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_free())
        {
            slot.fail_kept(Why::SessionLost);
        }
        self.site.end_session();
    }

    /// Opens the streams that are wanted, where there is a slot for them.
    fn open_streams(&mut self) -> bool {
        let waits = |slot: &Slot<'_>| matches!(slot.phase, Phase::Wait(Wait::Endpoint | Wait::Fallback));
        if self.site.old == Old::No && self.slots.iter().any(waits) {
            self.lose_old(Why::SessionLost);
            return true;
        }
        let what = if self.site.old == Old::Wanted && self.slots.iter().any(waits) {
            What::OldStream
        } else if self.site.listening == Listening::Opening && !self.slots.iter().any(|slot| slot.is(What::Listen)) {
            What::Listen
        } else {
            return false;
        };
        let Some(at) = self.choose(false) else {
            let stuck = what == What::OldStream && self.slots.iter().all(waits);
            if stuck {
                self.lose_old(Why::NoRoom);
            }
            return stuck;
        };
        let Some(slot) = self.slots.get_mut(at) else { return false };
        slot.begin();
        slot.task.what = what;
        if what == What::OldStream {
            self.site.old = Old::Opening;
        }
        slot.launch(at, &mut self.site);
        true
    }

    pub(crate) fn delete_session(&mut self) -> bool {
        if self.site.session().is_none() {
            return false;
        }
        self.forget_streams();
        self.site.listening = Listening::No;
        let at = self.choose(false);
        let Some((at, slot)) = at.and_then(|at| Some((at, self.slots.get_mut(at)?))) else {
            self.site.end_session();
            return false;
        };
        slot.begin();
        slot.task.what = What::Delete;
        slot.launch(at, &mut self.site);
        true
    }

    pub(crate) fn drop_all(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            slot.hang_up();
            slot.release(at, &mut self.site);
        }
        (self.writing, self.held, self.given) = (None, false, None);
        self.site.listening = Listening::No;
        self.site.end_old();
        self.site.news = News::default();
    }

    /// The last event has been told.
    pub(crate) fn told(&mut self) {
        if let Some(at) = self.given.take()
            && let Some(slot) = self.slots.get_mut(at)
        {
            slot.consume(at, &mut self.site);
        }
    }

    /// Looks for the next event; the last one has been told.
    pub(crate) fn find_event(&mut self) -> Option<usize> {
        self.told();
        loop {
            let mut any = self.settle();
            for round in 0..N {
                let at = self.next.saturating_add(round);
                let at = if at >= N { at - N } else { at };
                self.slots.get_mut(at)?.step(at, &mut self.site);
                any |= self.settle();
                if self.slots.get(at).is_some_and(|slot| slot.ready.is_some()) {
                    self.next = if at + 1 >= N { 0 } else { at + 1 };
                    self.given = Some(at);
                    return Some(at);
                }
            }
            if !any {
                return None;
            }
        }
    }

    /// A response that came on another stream ends the exchange that it belongs to.
    fn end_elsewhere(&mut self, on: usize, id: u64) -> bool {
        let mut others = self.slots.iter_mut().enumerate();
        let Some((at, slot)) = others.find(|(at, slot)| *at != on && slot.request() == Some(id)) else { return false };
        if slot.phase == Phase::Over {
            return false;
        }
        slot.abandon(&mut self.site, at);
        true
    }

    /// Tells the event that a slot has ready.
    pub(crate) fn give(&mut self, at: usize) -> Option<Event<'_>> {
        let ready = self.slots.get(at)?.ready?;
        let mut told = None;
        if let Ready::Item { request, answers } = ready {
            told = request;
            if let Some(id) = answers.filter(|id| Some(*id) != request) {
                told = self.end_elsewhere(at, id).then_some(id);
            }
        }
        let slot = self.slots.get_mut(at)?;
        let request = slot.task.request;
        Some(match ready {
            Ready::Item { .. } => match slot.message.item()? {
                Item::Event(event) => Event::Message { request: told, bytes: event.data },
                _ => return None,
            },
            Ready::Body => Event::Message { request, bytes: slot.kept() },
            Ready::Failed(why) => Event::Failed { request, why, detail: text(slot.kept()) },
            Ready::Challenge(status) => {
                Event::Challenge { slot: at, request, status, www_authenticate: text(slot.kept()) }
            }
            Ready::Skipped(why) => Event::Skipped { request, why, start: start(slot) },
            Ready::Ended => Event::Ended,
        })
    }
}

fn start<'s>(slot: &'s mut Slot<'_>) -> &'s [u8] {
    match slot.message.item() {
        Some(Item::Event(event)) => event.data,
        Some(Item::TooLarge { start }) => start,
        _ => &[],
    }
}

/// As much as is text, and not too much of it.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
