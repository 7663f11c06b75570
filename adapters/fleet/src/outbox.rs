//! Changes that wait to be sent to the other processes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_sansio::server::{OwnedServerChange, ServerChange};

/// A queue with a limit. If it is full, its changes become one [`ServerChange::All`]: nothing is lost without a word.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    most: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    changes: VecDeque<OwnedServerChange>,
    ended: bool,
    /// Nothing is taken any more.
    left: bool,
}

impl Outbox {
    /// Makes a queue of at most `most` changes.
    pub(crate) fn new(most: usize) -> Self {
        Outbox { waiting: Mutex::default(), filled: Condvar::new(), most: most.max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change that does not wait already. Never blocks.
    pub(crate) fn push(&self, change: ServerChange<'_>) {
        let change = OwnedServerChange::from(change);
        let mut waiting = self.lock();
        let covered = waiting.changes.iter().any(|other| *other == change || other.as_change() == ServerChange::All);
        if covered || waiting.ended {
            return;
        }
        if waiting.changes.len() >= self.most {
            waiting.changes.clear();
            waiting.changes.push_back(ServerChange::All.into());
        } else {
            waiting.changes.push_back(change);
        }
        drop(waiting);
        self.filled.notify_all();
    }

    /// Waits for a change, and takes it. `None` if the queue has ended and is empty.
    pub(crate) fn take(&self) -> Option<OwnedServerChange> {
        let mut waiting = self.lock();
        loop {
            if let Some(change) = waiting.changes.pop_front() {
                return Some(change);
            }
            if waiting.ended {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the number of changes that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().changes.len()
    }

    /// Ends the queue: nothing is added any more.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_all();
    }

    /// Notes that nothing is taken any more.
    pub(crate) fn leave(&self) {
        self.lock().left = true;
        self.filled.notify_all();
    }

    /// Waits for a time, or until nothing is taken any more.
    pub(crate) fn wait_left(&self, time: Duration) {
        let waiting = self.lock();
        drop(self.filled.wait_timeout_while(waiting, time, |waiting| !waiting.left));
    }

    /// Returns whether the queue has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Waits for a time, or until the queue ends. Returns whether it has ended.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let wait = self.filled.wait_timeout_while(waiting, time, |waiting| !waiting.ended);
        wait.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_changes_wait_once_and_too_many_become_one() {
        let outbox = Outbox::new(2);
        outbox.push(ServerChange::Tools);
        outbox.push(ServerChange::Tools);
        outbox.push(ServerChange::Resource("a"));
        assert_eq!(outbox.lock().changes.len(), 2);
        outbox.push(ServerChange::Resource("b"));
        outbox.push(ServerChange::Resource("c"));
        assert_eq!(outbox.take().unwrap().as_change(), ServerChange::All);
        assert!(outbox.lock().changes.is_empty());
        outbox.push(ServerChange::Prompts);
        assert_eq!(outbox.take().unwrap().as_change(), ServerChange::Prompts);
        outbox.end();
        assert!(outbox.take().is_none() && outbox.pause(Duration::from_secs(60)));
    }
}
