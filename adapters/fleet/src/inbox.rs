//! Arrivals that wait to be taken, and the logs that are read.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_sansio_http::fleet::Arrival;

use crate::entry::EntryId;

/// A function that reports arrivals.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A queue with a limit: those who fill it wait for room.
pub(crate) struct Inbox {
    inner: Mutex<Inner>,
    room: Condvar,
    most: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct Inner {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
    wake: Option<Wake>,
    ended: bool,
    reads: HashMap<String, Reading>,
}

/// A log that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) after: EntryId,
    /// The end of following it.
    pub(crate) until: Option<Instant>,
    /// All entries that it had were given.
    pub(crate) follows: bool,
}

/// The time for which one who fills the queue waits before it looks whether the queue has ended.
const LOOK: Duration = Duration::from_millis(200);

impl Inbox {
    /// Makes a queue of some `most` arrivals of `most_bytes` bytes. One always fits.
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        Inbox { inner: Mutex::default(), room: Condvar::new(), most, most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is locked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self, inner: &Inner) -> bool {
        inner.arrivals.len() >= self.most || inner.bytes >= self.most_bytes
    }

    /// Adds an arrival, when there is room. After the end it adds nothing.
    pub(crate) fn push(&self, arrival: Arrival) {
        let mut inner = self.lock();
        while self.is_full(&inner) && !inner.ended {
            inner = self.room.wait_timeout(inner, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        if inner.ended {
            return;
        }
        let first = inner.arrivals.is_empty();
        inner.bytes += size(&arrival);
        inner.arrivals.push_back(arrival);
        let wake = inner.wake.clone().filter(|_| first);
        drop(inner);
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Adds the end of a reading. Does not wait for room: the one who takes arrivals calls it.
    pub(crate) fn over(&self, log: &str) {
        let mut inner = self.lock();
        inner.arrivals.push_back(Arrival::ReadOver { log: log.into() });
        let wake = inner.wake.clone();
        drop(inner);
        if let Some(wake) = wake {
            wake();
        }
    }

    pub(crate) fn take(&self) -> Option<Arrival> {
        let mut inner = self.lock();
        let was_full = self.is_full(&inner);
        let arrival = inner.arrivals.pop_front();
        inner.bytes -= arrival.as_ref().map_or(0, size);
        drop(inner);
        if was_full {
            self.room.notify_all();
        }
        arrival
    }

    pub(crate) fn set_waker(&self, wake: Wake) {
        let mut inner = self.lock();
        inner.wake = Some(Arc::clone(&wake));
        let waits = !inner.arrivals.is_empty();
        drop(inner);
        if waits {
            wake();
        }
    }

    /// Notes that arrivals are not taken any more.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.room.notify_all();
    }

    /// Begins to read a log. Returns `false` if too many are read.
    pub(crate) fn read(&self, log: &str, reading: Reading) -> bool {
        let mut inner = self.lock();
        let fits = inner.reads.len() < self.most || inner.reads.contains_key(log);
        if fits {
            inner.reads.insert(log.into(), reading);
        }
        fits
    }

    /// Changes the reading of a log, if it goes on; `None` ends it.
    pub(crate) fn go_on(&self, log: &str, reading: Option<Reading>) {
        let mut inner = self.lock();
        match (inner.reads.get_mut(log), reading) {
            (Some(known), Some(reading)) => *known = reading,
            (Some(_), None) => drop(inner.reads.remove(log)),
            (None, _) => {}
        }
    }

    pub(crate) fn reading(&self, log: &str) -> Option<Reading> {
        self.lock().reads.get(log).copied()
    }

    /// Returns the logs that are followed, and ends those whose time is over.
    pub(crate) fn followed(&self, now: Instant) -> Vec<(String, Reading)> {
        let mut over = Vec::new();
        let mut inner = self.lock();
        inner.reads.retain(|log, reading| {
            let is_over = reading.follows && reading.until.is_none_or(|until| until <= now);
            if is_over {
                over.push(log.clone());
            }
            !is_over
        });
        let follows = inner.reads.iter().filter(|(_, reading)| reading.follows);
        let follows = follows.map(|(log, reading)| (log.clone(), *reading)).collect();
        drop(inner);
        over.into_iter().for_each(|log| self.push(Arrival::ReadOver { log }));
        follows
    }
}

/// Returns the bytes that count in the queue.
fn size(arrival: &Arrival) -> usize {
    match arrival {
        Arrival::Message { message, .. } => message.len(),
        Arrival::Entry { log, entry, .. } => log.len() + entry.len(),
        _ => 0,
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("most", &self.most).finish_non_exhaustive()
    }
}
