//! Calls of the engine that wait to be sent.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_sansio_http::fleet::ProcessTag;

/// A call that goes to Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A message for all others, with its number among these.
    Tell { number: u64, message: Vec<u8>, until: Option<Instant> },
    /// A message for one process, with its number among all such messages of this process.
    Send { to: ProcessTag, number: u64, message: Vec<u8>, until: Option<Instant> },
    Append {
        log: String,
        id: Option<u64>,
        entry: Vec<u8>,
        keep: u64,
        /// The entries before it are removed.
        alone: bool,
    },
    /// Reads a log that is in the list of those that are read.
    Read { log: String },
}

impl Command {
    fn size(&self) -> usize {
        match self {
            Command::Tell { message, .. } | Command::Send { message, .. } => message.len(),
            Command::Append { log, entry, .. } => log.len() + entry.len(),
            Command::Read { log } => log.len(),
        }
    }

    /// Returns whether it is too late for it.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        match self {
            Command::Tell { until, .. } | Command::Send { until, .. } => until.is_some_and(|until| until <= now),
            _ => false,
        }
    }
}

/// A queue with limits. The number of a message that has no room stays free: the others then know that one is missing.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    commands: VecDeque<Command>,
    bytes: usize,
    /// The numbers of the last messages for all, and for one.
    told: u64,
    sent: u64,
    ended: bool,
    /// Nothing is taken any more.
    left: bool,
    /// Another process asks for a sign of life.
    is_asked: bool,
    /// Redis has refused what was sent, with this answer.
    refused: Option<String>,
    /// Redis can be reached again.
    is_reached: bool,
}

/// The state of the queue after some commands were taken.
pub(crate) struct Taken {
    /// The queue has ended, and everything was taken.
    pub(crate) ended: bool,
    /// The number of the last message for all, taken or left out; `None` while more commands wait.
    pub(crate) told: Option<u64>,
    /// Another process asks for a sign of life.
    pub(crate) is_asked: bool,
}

/// The commands that are taken at once, and their bytes.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 1 << 20;

impl Outbox {
    /// Makes a queue of at most `most` commands of at most `most_bytes` bytes.
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        Outbox { waiting: Mutex::default(), filled: Condvar::new(), most, most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message for all others.
    pub(crate) fn tell(&self, message: &[u8], until: Option<Instant>) {
        let mut waiting = self.lock();
        waiting.told += 1;
        let number = waiting.told;
        self.push(waiting, Command::Tell { number, message: message.into(), until });
    }

    /// Adds a message for one process.
    pub(crate) fn send(&self, to: ProcessTag, message: &[u8], until: Option<Instant>) {
        let mut waiting = self.lock();
        waiting.sent += 1;
        let number = waiting.sent;
        self.push(waiting, Command::Send { to, number, message: message.into(), until });
    }

    /// Adds another command. Returns whether there was room.
    pub(crate) fn add(&self, command: Command) -> bool {
        self.push(self.lock(), command)
    }

    fn push(&self, mut waiting: MutexGuard<'_, Waiting>, command: Command) -> bool {
        let bytes = waiting.bytes.saturating_add(command.size());
        let fits = waiting.commands.len() < self.most && bytes <= self.most_bytes && !waiting.ended;
        if fits {
            waiting.bytes = bytes;
            waiting.commands.push_back(command);
            drop(waiting);
            self.filled.notify_all();
        }
        fits
    }

    /// Waits until there are commands, or for a time, and takes some.
    pub(crate) fn take(&self, time: Duration, batch: &mut VecDeque<Command>) -> Taken {
        let waiting = self.lock();
        let is_idle = |waiting: &mut Waiting| waiting.commands.is_empty() && !waiting.ended && !waiting.is_asked;
        let waiting = self.filled.wait_timeout_while(waiting, time, is_idle);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner).0;
        let mut bytes = 0;
        while batch.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(command) = waiting.commands.pop_front()
        {
            bytes += command.size();
            batch.push_back(command);
        }
        waiting.bytes -= bytes.min(waiting.bytes);
        let is_empty = waiting.commands.is_empty();
        Taken {
            ended: waiting.ended && is_empty && batch.is_empty(),
            told: is_empty.then_some(waiting.told),
            is_asked: std::mem::take(&mut waiting.is_asked),
        }
    }

    /// Asks for a sign of life.
    pub(crate) fn ask(&self) {
        self.lock().is_asked = true;
        self.filled.notify_all();
    }

    /// Notes that Redis has refused what was sent, or with `None` that it takes it again.
    pub(crate) fn note_refused(&self, answer: Option<String>) {
        self.lock().refused = answer;
    }

    /// Returns the answer of Redis, if it refuses what is sent.
    pub(crate) fn refused(&self) -> Option<String> {
        self.lock().refused.clone()
    }

    /// Notes that Redis can be reached again: the next connection is made at once.
    pub(crate) fn note_reached(&self) {
        self.lock().is_reached = true;
        self.filled.notify_all();
    }

    /// Waits for a time, or until Redis can be reached again, or the queue ends. Returns whether it has ended.
    pub(crate) fn pause_until_reached(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let wait = self.filled.wait_timeout_while(waiting, time, |waiting| !waiting.ended && !waiting.is_reached);
        let mut waiting = wait.unwrap_or_else(PoisonError::into_inner).0;
        waiting.is_reached = false;
        waiting.ended
    }

    /// Returns the number of commands that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().commands.len()
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
    fn a_message_without_room_leaves_its_number_free() {
        let outbox = Outbox::new(2, 10);
        for message in [&b"a"[..], b"b", b"c"] {
            outbox.tell(message, None);
        }
        let mut batch = VecDeque::new();
        let taken = outbox.take(Duration::ZERO, &mut batch);
        assert!(!taken.ended && taken.told == Some(3) && batch.len() == 2 && outbox.len() == 0);
        outbox.tell(b"long enough", None);
        outbox.tell(b"d", None);
        outbox.take(Duration::ZERO, &mut batch);
        let numbers = batch.iter().map(|command| match command {
            Command::Tell { number, .. } => *number,
            _ => 0,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 5]);
        batch.clear();
        outbox.end();
        assert!(outbox.take(Duration::from_secs(60), &mut batch).ended && outbox.pause(Duration::from_secs(60)));
        assert!(!outbox.add(Command::Read { log: "a".into() }));
    }
}
