//! Open requests for `events/stream`, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::server::{Millis, RequestToken};

use crate::events::source::{Cursor, EventSubscription};
use crate::events::subscribers::{Entry, Place, Subscribers};

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Free,
    /// There is nothing to send before the next heartbeat.
    Quiet,
    /// There may be something to send.
    Due,
    /// There was, and the loop has got the token.
    Given,
}

mcp_sansio::machine!(StreamState, TRANSITIONS: Free Quiet Due Given);

/// Every change of the state: from, to, cause.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("Free", "Due", "open"),
    ("Quiet", "Due", "emit"),
    ("Due", "Due", "emit"),
    ("Given", "Due", "emit"),
    ("Quiet", "Given", "next"),
    ("Due", "Given", "next"),
    // The loop could not deliver.
    ("Given", "Due", "again"),
    ("Given", "Quiet", "deliver"),
    ("Due", "Quiet", "deliver"),
    ("Due", "Due", "deliver"),
    ("Quiet", "Quiet", "deliver"),
    ("Quiet", "Due", "deliver"),
    ("Quiet", "Free", "end"),
    ("Due", "Free", "end"),
    ("Given", "Free", "end"),
];

/// The place of one open `events/stream`. Lend the [`Events`](super::Events) as many as there may be.
#[derive(Clone, Copy, Debug)]
pub struct StreamSlot {
    state: StreamState,
    token: u64,
    /// The number of the event type.
    pub(crate) event: u32,
    /// The cursor up to which everything was sent.
    pub(crate) cursor: Cursor,
    /// The oldest `timestamp` that is sent, in milliseconds since the beginning of 1970.
    pub(crate) not_before: u64,
    /// The time of the next heartbeat.
    pub(crate) beat: Millis,
    /// The time at which the source is read again, if nothing is emitted before.
    pub(crate) look: Millis,
}

impl StreamSlot {
    /// A place without a stream.
    pub const FREE: StreamSlot = StreamSlot {
        state: StreamState::Free,
        token: 0,
        event: 0,
        cursor: Cursor::EMPTY,
        not_before: 0,
        beat: 0,
        look: Millis::MAX,
    };

    /// A stream that begins at a cursor.
    pub(crate) const fn new(token: RequestToken, event: u32, cursor: Cursor, not_before: u64) -> Self {
        StreamSlot { token: token.to_bits(), event, cursor, not_before, ..StreamSlot::FREE }
    }

    fn has(&self, token: RequestToken) -> bool {
        !self.is_free() && self.token == token.to_bits()
    }

    fn due_at(&self) -> Millis {
        self.beat.min(self.look)
    }
}

impl Place for StreamSlot {
    const FREE: Self = StreamSlot::FREE;

    fn is_free(&self) -> bool {
        #[cfg(test)]
        crate::shared::looks::add_one();
        self.state == StreamState::Free
    }
}

/// The streams of a program.
pub(crate) type Streams<'m> = Subscribers<'m, StreamSlot>;

impl Streams<'_> {
    /// Returns a stream and its subscription.
    pub(crate) fn find(&self, token: RequestToken) -> Option<(StreamSlot, EventSubscription<'_>)> {
        let entry = self.of(token)?;
        Some((*self.slots.get(entry.number)?, entry.subscription()))
    }

    fn of(&self, token: RequestToken) -> Option<Entry<'_>> {
        // In a turn it is the one that `next` has returned.
        let mut entries = self.entries(self.walk.0).chain(self.entries(0));
        entries.find(|entry| self.slots.get(entry.number).is_some_and(|slot| slot.has(token)))
    }

    pub(crate) fn open(
        &mut self,
        stream: StreamSlot,
        subscription: &EventSubscription<'_>,
    ) -> Result<(), RpcError<'static>> {
        let at = self.add(stream, subscription)?;
        if let Some(slot) = self.slots.get_mut(at) {
            slot.state.enter("open", StreamState::Due);
        }
        Ok(())
    }

    /// Notes that there may be something to send for an event type, or for all.
    pub(crate) fn emitted(&mut self, event: Option<u32>) {
        let concerned = |slot: &&mut StreamSlot| !slot.is_free() && event.is_none_or(|event| slot.event == event);
        for slot in self.slots.iter_mut().filter(concerned) {
            slot.state.enter("emit", StreamState::Due);
        }
    }

    /// Returns the streams that have something to send, each once in a turn.
    ///
    /// # Errors
    /// There is no more in this turn: the time of the next one.
    pub(crate) fn next(&mut self, now: Millis) -> Result<RequestToken, Option<Millis>> {
        if self.walk == (0, 0) && core::mem::take(&mut self.is_woken) {
            self.emitted(None);
        }
        while let Some(Entry { number, at, end, .. }) = self.entry(self.walk.1) {
            self.walk = (at, end);
            let Some(slot) = self.slots.get_mut(number) else { continue };
            if slot.state == StreamState::Due || slot.state == StreamState::Quiet && now >= slot.due_at() {
                slot.state.enter("next", StreamState::Given);
                return Ok(RequestToken::from_bits(slot.token));
            }
        }
        self.walk = (0, 0);
        let mut next = self.is_woken.then_some(now);
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_free()) {
            // A hook of this turn has emitted something.
            let due = if slot.state == StreamState::Due { now } else { slot.due_at() };
            next = next.into_iter().chain([due]).min();
            // What the loop could not deliver is due again in the next turn.
            if slot.state == StreamState::Given {
                slot.state.enter("again", StreamState::Due);
            }
        }
        Err(next)
    }

    /// Notes how far a stream was sent, and whether there is more: then it is due again in the next turn, when there may be room.
    pub(crate) fn delivered(&mut self, stream: &StreamSlot, has_more: bool) {
        let number = self.of(RequestToken::from_bits(stream.token)).map(|entry| entry.number);
        if let Some(slot) = number.and_then(|number| self.slots.get_mut(number)) {
            let state = slot.state;
            *slot = StreamSlot { state, ..*stream };
            match state {
                StreamState::Given if has_more => {}
                _ => slot.state.enter("deliver", if has_more { StreamState::Due } else { StreamState::Quiet }),
            }
        }
    }

    /// Frees the place of a stream. Returns its position in the records, and its event type.
    pub(crate) fn close(&mut self, token: RequestToken) -> Option<(usize, u32)> {
        let Entry { number, at, .. } = self.of(token)?;
        let slot = self.slots.get_mut(number)?;
        slot.state.enter("end", StreamState::Free);
        Some((at, slot.event))
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::events::source::NO_ARGUMENTS;
    use crate::shared::looks;

    /// The work of a turn grows with the streams, not with their square: each lookup of one once searched from the first.
    #[test]
    fn a_turn_looks_at_each_stream_a_few_times() {
        for count in [10, 100, 1_000] {
            let mut slots = vec![StreamSlot::FREE; count];
            let mut bytes = vec![0; 64 * count];
            let mut streams = Streams::new(slots.as_mut_slice().into(), bytes.as_mut_slice().into(), count);
            for (token, principal) in (1..=count as u64).zip([Some("alice"), None].into_iter().cycle()) {
                let stream = StreamSlot::new(RequestToken::from_bits(token), 0, Cursor::EMPTY, 0);
                streams.open(stream, &EventSubscription { arguments: NO_ARGUMENTS, principal }).unwrap();
            }
            for ends in [false, true] {
                streams.is_woken = true;
                looks::take();
                let mut given = 0;
                while let Ok(token) = streams.next(1) {
                    let (stream, subscription) = streams.find(token).unwrap();
                    assert_eq!(subscription.principal, (token.to_bits() % 2 == 1).then_some("alice"));
                    given += 1;
                    if ends {
                        streams.close(token).unwrap();
                    } else {
                        streams.delivered(&stream, false);
                    }
                }
                assert!(looks::take() < 10 * count);
                assert_eq!(given, count);
            }
        }
    }
}
