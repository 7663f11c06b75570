//! The place of a process in the stream of messages for all: which entries are new, and whether some were missed.

use std::collections::HashMap;

use crate::entry::EntryId;

/// The state of the stream at the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamState {
    /// The run of the server process: another one may have lost entries.
    pub(crate) run: String,
    /// The last entry that was ever added.
    pub(crate) last: EntryId,
    /// The number of entries that were ever added.
    pub(crate) added: u64,
    /// The number of those that are still there; the oldest are dropped.
    pub(crate) length: u64,
}

/// An entry, by the numbers of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was heard before: a process whose connection was lost may send its message twice.
    Again,
    New,
    /// Messages of the sender before it are missing.
    Gap,
}

/// The processes whose last number is kept. Of more, some are forgotten.
const PROCESSES: usize = 4096;

/// The place in the stream.
#[derive(Debug, Default)]
pub(crate) struct Position {
    run: Option<String>,
    at: EntryId,
    /// The number of entries of the stream before this place.
    passed: u64,
    numbers: HashMap<String, u64>,
}

impl Position {
    /// Takes the state of the stream after a connection or a pause. Returns `true` if entries may have been missed; then
    /// the place is the end of the stream.
    pub(crate) fn meet(&mut self, state: &StreamState) -> bool {
        let known = self.run.replace(state.run.clone());
        let missed = match &known {
            None => false,
            Some(run) => {
                let dropped = state.added.saturating_sub(state.length);
                *run != state.run || dropped > self.passed || state.added < self.passed
            }
        };
        if known.is_none() || missed {
            (self.at, self.passed) = (state.last, state.added);
            // The gaps are known.
            self.numbers.clear();
        }
        missed
    }

    /// Returns the entry after which the next are read.
    pub(crate) const fn at(&self) -> EntryId {
        self.at
    }

    /// Takes the next entry, which has no number.
    pub(crate) const fn pass(&mut self, id: EntryId) {
        (self.at, self.passed) = (id, self.passed + 1);
    }

    /// Takes the next entry: the `number` of its sender's messages, this one with them.
    pub(crate) fn advance(&mut self, id: EntryId, from: &str, number: u64) -> Step {
        self.pass(id);
        if let Some(last) = self.numbers.get_mut(from) {
            let step = match number {
                _ if number <= *last => Step::Again,
                _ if number == *last + 1 => Step::New,
                _ => Step::Gap,
            };
            *last = number.max(*last);
            return step;
        }
        if self.numbers.len() >= PROCESSES {
            self.numbers.clear();
        }
        self.numbers.insert(from.to_owned(), number);
        Step::New
    }

    /// Takes the next entry, which has no message: `number` is the one of its sender's last message. Returns `true` if that is
    /// missing.
    pub(crate) fn beat(&mut self, id: EntryId, from: &str, number: u64) -> bool {
        let last = self.numbers.get(from).copied();
        self.advance(id, from, number);
        last.is_some_and(|last| number > last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(run: &str, added: u64, length: u64) -> StreamState {
        StreamState { run: run.into(), last: EntryId(added, 0), added, length }
    }

    #[test]
    fn begins_at_the_end_and_continues_where_it_was() {
        let mut position = Position::default();
        assert!(!position.meet(&state("a", 7, 3)));
        assert_eq!(position.at(), EntryId(7, 0));
        assert!(!position.meet(&state("a", 9, 2)));
        assert_eq!(position.at(), EntryId(7, 0));
        assert_eq!(position.advance(EntryId(8, 0), "x", 1), Step::New);
        assert!(!position.meet(&state("a", 10, 2)));
    }

    #[test]
    fn knows_what_it_missed() {
        for later in [state("b", 9, 9), state("a", 9, 1), state("a", 2, 2)] {
            let mut position = Position::default();
            assert!(!position.meet(&state("a", 7, 3)));
            assert!(position.meet(&later), "{later:?}");
            assert_eq!(position.at(), later.last);
            assert!(!position.meet(&later));
        }
    }

    #[test]
    fn an_entry_that_was_sent_twice_counts_once_and_gaps_are_seen() {
        let mut position = Position::default();
        assert_eq!(position.advance(EntryId(1, 0), "x", 5), Step::New);
        assert_eq!(position.advance(EntryId(2, 0), "x", 5), Step::Again);
        assert_eq!(position.advance(EntryId(3, 0), "y", 1), Step::New);
        assert_eq!(position.advance(EntryId(4, 0), "x", 6), Step::New);
        assert_eq!(position.advance(EntryId(5, 0), "x", 8), Step::Gap);
        assert!(!position.beat(EntryId(6, 0), "x", 8) && position.beat(EntryId(7, 0), "x", 9));
        assert!(!position.beat(EntryId(8, 0), "z", 4));
        position.pass(EntryId(9, 0));
        assert_eq!(position.advance(EntryId(10, 0), "z", 5), Step::New);
        assert_eq!(position.at(), EntryId(10, 0));
    }
}
