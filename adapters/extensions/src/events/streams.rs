//! Open requests for `events/stream`, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::server::{Millis, RequestToken};

use crate::events::source::{Cursor, EventSubscription};
use crate::events::subscribers::{Place, Subscribers};

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
        self.state == StreamState::Free
    }
}

/// The streams of a program.
pub(crate) type Streams<'m> = Subscribers<'m, StreamSlot>;

impl Streams<'_> {
    /// Returns a stream and its subscription.
    pub(crate) fn find(&self, token: RequestToken) -> Option<(StreamSlot, EventSubscription<'_>)> {
        let (number, slot) = self.slots.iter().enumerate().find(|(_, slot)| slot.has(token))?;
        Some((*slot, self.subscription(number)))
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

    pub(crate) fn next(&mut self, now: Millis) -> Option<RequestToken> {
        let is_due = |slot: &&mut StreamSlot| {
            slot.state == StreamState::Due || slot.state == StreamState::Quiet && now >= slot.due_at()
        };
        match self.slots.iter_mut().find(is_due) {
            Some(slot) => {
                slot.state.enter("next", StreamState::Given);
                Some(RequestToken::from_bits(slot.token))
            }
            None => {
                // What the loop could not deliver is due again in the next turn.
                let given = self.slots.iter_mut().filter(|slot| slot.state == StreamState::Given);
                given.for_each(|slot| slot.state.enter("again", StreamState::Due));
                None
            }
        }
    }

    /// Notes how far a stream was sent, and whether there is more: then it is due again in the next turn, when there may be room.
    pub(crate) fn delivered(&mut self, stream: &StreamSlot, has_more: bool) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.has(RequestToken::from_bits(stream.token))) {
            let state = slot.state;
            *slot = StreamSlot { state, ..*stream };
            match state {
                StreamState::Given if has_more => {}
                _ => slot.state.enter("deliver", if has_more { StreamState::Due } else { StreamState::Quiet }),
            }
        }
    }

    /// Frees the place of a stream. Returns its number and its event type.
    pub(crate) fn close(&mut self, token: RequestToken) -> Option<(usize, u32)> {
        let (number, slot) = self.slots.iter_mut().enumerate().find(|(_, slot)| slot.has(token))?;
        slot.state.enter("end", StreamState::Free);
        Some((number, slot.event))
    }

    pub(crate) fn next_due(&self) -> Option<Millis> {
        self.slots.iter().filter(|slot| !slot.is_free()).map(StreamSlot::due_at).min()
    }
}
