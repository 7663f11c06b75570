//! Open requests for `events/stream`, in lent memory.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::memory::records::{Record, Records};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::{Millis, RequestToken};

/// The user of a stream. Data: the name.
const PRINCIPAL: u8 = 1;
/// The arguments. Data: JSON.
const ARGUMENTS: u8 = 2;

const TOO_MANY: RpcError<'static> =
    RpcError::new(-32025, "ResourceExhausted").with_data(Raw::constant(r#"{"limit":"subscriptions"}"#));

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
    ("Given", "Due", "deliver"),
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
    /// The position up to which everything was sent.
    pub(crate) position: u64,
    /// The oldest `timestamp` that is sent, in milliseconds since the beginning of 1970.
    pub(crate) not_before: u64,
    /// The time of the next heartbeat.
    pub(crate) beat: Millis,
}

impl StreamSlot {
    /// A place without a stream.
    pub const FREE: StreamSlot =
        StreamSlot { state: StreamState::Free, token: 0, event: 0, position: 0, not_before: 0, beat: 0 };

    /// A stream that begins at a position.
    pub(crate) const fn new(token: RequestToken, event: u32, position: u64, not_before: u64) -> Self {
        StreamSlot { state: StreamState::Free, token: token.to_bits(), event, position, not_before, beat: 0 }
    }

    fn change(&mut self, cause: &str, to: StreamState) {
        self.state.enter(cause, to);
    }

    fn is_open(&self) -> bool {
        self.state != StreamState::Free
    }
}

/// The streams of a program.
#[derive(Debug)]
pub(crate) struct Streams<'m> {
    slots: Slots<'m, StreamSlot>,
    records: Records<'m>,
    share: usize,
}

impl<'m> Streams<'m> {
    pub(crate) const fn none() -> Self {
        Streams { slots: Slots::lent(&mut []), records: Records::new(Store::none()), share: usize::MAX }
    }

    pub(crate) fn new(mut slots: Slots<'m, StreamSlot>, store: Store<'m>, share: usize) -> Self {
        // What others have left there.
        slots.iter_mut().for_each(|slot| *slot = StreamSlot::FREE);
        Streams { slots, records: Records::new(store), share }
    }

    /// Returns a stream, its arguments and its user.
    pub(crate) fn find(&self, token: RequestToken) -> Option<(StreamSlot, Raw<'_>, Option<&str>)> {
        let (slot, number) =
            self.slots.iter().zip(0..).find(|(slot, _)| slot.is_open() && slot.token == token.to_bits())?;
        let one = |kind| self.records.iter().find(|record| record.owner == number && record.kind == kind);
        let arguments = one(ARGUMENTS).and_then(|record| Raw::parse(record.data).ok());
        let principal = one(PRINCIPAL).and_then(|record| core::str::from_utf8(record.data).ok());
        Some((*slot, arguments.unwrap_or(Raw::constant("{}")), principal))
    }

    pub(crate) fn open(
        &mut self,
        stream: StreamSlot,
        arguments: Raw<'_>,
        principal: Option<&str>,
    ) -> Result<(), RpcError<'static>> {
        let open = |slots: &[StreamSlot], number: u32| slots.get(number as usize).is_some_and(StreamSlot::is_open);
        let is_own =
            |record: &Record<'_>| record.kind == PRINCIPAL && Some(record.data) == principal.map(str::as_bytes);
        let own = match principal {
            Some(_) => self.records.iter().filter(is_own).count(),
            // All without a user have one share together.
            None => {
                let named =
                    self.records.iter().filter(|record| record.kind == PRINCIPAL && open(&self.slots, record.owner));
                self.slots.iter().filter(|slot| slot.is_open()).count().saturating_sub(named.count())
            }
        };
        if own >= self.share {
            return Err(TOO_MANY);
        }
        let at = self.slots.find_free(|slot| !slot.is_open(), || StreamSlot::FREE).ok_or(TOO_MANY)?;
        let owner = u32::try_from(at).map_err(|_| TOO_MANY)?;
        let parts = [(ARGUMENTS, Some(arguments.as_bytes())), (PRINCIPAL, principal.map(str::as_bytes))];
        for (kind, data) in parts {
            if let Some(data) = data
                && self.records.push(owner, kind, 0, &[data]).is_err()
            {
                self.records.remove(|record| record.owner == owner);
                return Err(TOO_MANY);
            }
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = stream;
            slot.change("open", StreamState::Due);
        }
        Ok(())
    }

    /// Notes that there is something to send for an event type.
    pub(crate) fn emitted(&mut self, event: u32) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_open() && slot.event == event) {
            slot.change("emit", StreamState::Due);
        }
    }

    pub(crate) fn next(&mut self, now: Millis) -> Option<RequestToken> {
        let is_due = |slot: &&mut StreamSlot| {
            slot.state == StreamState::Due || slot.state == StreamState::Quiet && now >= slot.beat
        };
        match self.slots.iter_mut().find(is_due) {
            Some(slot) => {
                slot.change("next", StreamState::Given);
                Some(RequestToken::from_bits(slot.token))
            }
            None => {
                // What the loop could not deliver is due again in the next turn.
                let given = self.slots.iter_mut().filter(|slot| slot.state == StreamState::Given);
                given.for_each(|slot| slot.change("again", StreamState::Due));
                None
            }
        }
    }

    /// Notes how far a stream was sent, and whether there is more.
    pub(crate) fn delivered(&mut self, stream: &StreamSlot, has_more: bool) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_open() && slot.token == stream.token) {
            let state = slot.state;
            *slot = StreamSlot { state, ..*stream };
            slot.change("deliver", if has_more { StreamState::Due } else { StreamState::Quiet });
        }
    }

    pub(crate) fn end(&mut self, token: RequestToken) {
        let mut numbered = self.slots.iter_mut().zip(0..);
        if let Some((slot, number)) = numbered.find(|(slot, _)| slot.is_open() && slot.token == token.to_bits()) {
            slot.change("end", StreamState::Free);
            self.records.remove(|record| record.owner == number);
        }
    }

    pub(crate) fn next_beat(&self) -> Option<Millis> {
        self.slots.iter().filter(|slot| slot.is_open()).map(|slot| slot.beat).min()
    }
}
