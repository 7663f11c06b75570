//! The lists of those that wait: bodies of event streams, requests behind an unread stream, requests that are not decided.

use std::collections::HashMap;
use std::task::Waker;

use mcp_sansio_http::endpoint::StreamId;

use crate::keeper::Keeper;

/// Number of requests that may wait for an event stream. Further ones are handled at once, and may get 503.
const POSTS: usize = 256;

/// The wakers of a mount. They are taken while its lock is held, and woken after it.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Bodies that have nothing to send, each at the slot of its stream.
    streams: Vec<Option<(StreamId, Waker)>>,
    open: usize,
    /// The slot of the body that keeps the time.
    keeper: Option<usize>,
    /// Requests of 2024-11-05 that wait until a stream was read.
    posts: HashMap<u64, (StreamId, Waker)>,
    /// Requests that the application has not decided about.
    undecided: HashMap<u64, Waker>,
    last_key: u64,
    woken: Vec<Waker>,
}

impl Waits {
    /// Returns a name for a request that waits.
    pub(crate) fn key(&mut self) -> u64 {
        self.last_key += 1;
        self.last_key
    }

    /// Notes the body of a stream that has nothing to send. An earlier body at its slot is woken: its client has come back
    /// on another connection, and it has to end.
    pub(crate) fn wait(&mut self, id: StreamId, waker: &Waker, keeper: &Keeper) {
        let slot = id.slot();
        self.take(slot, |known| known != id);
        if self.streams.len() <= slot {
            self.streams.resize(slot + 1, None);
        }
        let Some(place) = self.streams.get_mut(slot) else { return };
        if place.replace((id, waker.clone())).is_none() {
            self.open += 1;
        }
        if *self.keeper.get_or_insert(slot) == slot {
            keeper.set_body(Some(waker.clone()));
        }
    }

    /// Wakes an earlier body at the slot of a stream that begins.
    pub(crate) fn replace(&mut self, id: StreamId) {
        self.take(id.slot(), |known| known != id);
    }

    /// Wakes the body of a stream.
    pub(crate) fn wake(&mut self, id: StreamId) {
        self.take(id.slot(), |known| known == id);
    }

    /// Forgets the body of a stream, which is polled now or is gone.
    pub(crate) fn forget(&mut self, id: StreamId) {
        let woken = self.woken.len();
        self.wake(id);
        self.woken.truncate(woken);
    }

    fn take(&mut self, slot: usize, which: impl FnOnce(StreamId) -> bool) {
        let place = self.streams.get_mut(slot);
        let Some((_, waker)) = place.and_then(|place| place.take_if(|(id, _)| which(*id))) else { return };
        self.woken.push(waker);
        self.open -= 1;
        if self.keeper == Some(slot) {
            self.keeper = None;
        }
    }

    pub(crate) const fn has_streams(&self) -> bool {
        self.open > 0
    }

    /// Chooses a waiting body as the keeper of the time, if the last one waits no more.
    pub(crate) fn choose_keeper(&mut self, keeper: &Keeper) {
        if self.keeper.is_some_and(|slot| matches!(self.streams.get(slot), Some(Some(_)))) {
            return;
        }
        let mut waiting = self.streams.iter().enumerate().filter(|_| self.open > 0);
        let next = waiting.find_map(|(slot, place)| Some((slot, &place.as_ref()?.1)));
        keeper.set_body(next.map(|(_, waker)| waker.clone()));
        self.keeper = next.map(|(slot, _)| slot);
    }

    /// Wakes the keeper, to set the timer.
    pub(crate) fn call(&mut self, keeper: &Keeper) {
        self.woken.extend(keeper.waker());
    }

    /// Notes a request that waits for a stream. Returns `false` if too many wait.
    pub(crate) fn post(&mut self, key: u64, id: StreamId, waker: &Waker) -> bool {
        let fits = self.posts.len() < POSTS || self.posts.contains_key(&key);
        if fits {
            self.posts.insert(key, (id, waker.clone()));
        }
        fits
    }

    /// Wakes the requests that wait for a stream, after it was read or has ended.
    pub(crate) fn wake_posts(&mut self, id: StreamId) {
        if !self.posts.is_empty() {
            self.woken.extend(self.posts.extract_if(|_, (stream, _)| *stream == id).map(|(_, (_, waker))| waker));
        }
    }

    pub(crate) fn undecided(&mut self, key: u64, waker: &Waker) {
        self.undecided.insert(key, waker.clone());
    }

    pub(crate) fn wake_undecided(&mut self) {
        self.woken.extend(self.undecided.drain().map(|(_, waker)| waker));
    }

    /// Forgets a request that is gone.
    pub(crate) fn drop_request(&mut self, key: u64) {
        self.posts.remove(&key);
        self.undecided.remove(&key);
    }

    /// Wakes all, for an end.
    pub(crate) fn wake_all(&mut self) {
        self.woken.extend(self.streams.drain(..).flatten().map(|(_, waker)| waker));
        (self.open, self.keeper) = (0, None);
        self.woken.extend(self.posts.drain().map(|(_, (_, waker))| waker));
        self.wake_undecided();
    }

    /// Takes the wakers to wake, when the lock is free again.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }
}
