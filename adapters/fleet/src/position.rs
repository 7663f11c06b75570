//! The place of a process in the stream of changes: which entries are new, and whether some were missed.

use std::collections::HashMap;

/// The number of an entry: milliseconds, and a number within these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId(u64, u64);

impl EntryId {
    /// Reads `1700000000000-0`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (milliseconds, number) = text.split_once('-')?;
        Some(EntryId(milliseconds.parse().ok()?, number.parse().ok()?))
    }
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

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

/// The processes whose last number is kept. Each process that ever sent a change counts; of more, some are forgotten.
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
        }
        missed
    }

    /// Returns the entry after which the next are read.
    pub(crate) const fn at(&self) -> EntryId {
        self.at
    }

    /// Takes the next entry. Returns whether it is a new one: a process whose connection was lost may have sent its
    /// change twice.
    pub(crate) fn advance(&mut self, id: EntryId, from: &str, number: u64) -> bool {
        (self.at, self.passed) = (id, self.passed + 1);
        if let Some(last) = self.numbers.get_mut(from) {
            let is_new = number > *last;
            *last = number.max(*last);
            return is_new;
        }
        if self.numbers.len() >= PROCESSES {
            self.numbers.clear();
        }
        self.numbers.insert(from.to_owned(), number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(run: &str, added: u64, length: u64) -> StreamState {
        StreamState { run: run.into(), last: EntryId(added, 0), added, length }
    }

    #[test]
    fn ids_in_order() {
        assert_eq!(EntryId::read("12-3").unwrap().to_string(), "12-3");
        assert!(EntryId::read("12-3") > EntryId::read("12-2") && EntryId::read("13-0") > EntryId::read("12-9"));
        assert_eq!(EntryId::read("12"), None);
    }

    #[test]
    fn begins_at_the_end_and_continues_where_it_was() {
        let mut position = Position::default();
        assert!(!position.meet(&state("a", 7, 3)));
        assert_eq!(position.at(), EntryId(7, 0));
        assert!(!position.meet(&state("a", 9, 2)));
        assert_eq!(position.at(), EntryId(7, 0));
        assert!(position.advance(EntryId(8, 0), "x", 1));
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
    fn an_entry_that_was_sent_twice_counts_once() {
        let mut position = Position::default();
        assert!(position.advance(EntryId(1, 0), "x", 1));
        assert!(!position.advance(EntryId(2, 0), "x", 1));
        assert!(position.advance(EntryId(3, 0), "y", 1) && position.advance(EntryId(4, 0), "x", 2));
        assert_eq!(position.at(), EntryId(4, 0));
    }
}
