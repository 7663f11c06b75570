//! A button: clients hear of it, by a stream or by polls.

use board::Static;
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, StreamSlot, emit};

use crate::device::State;
use crate::random::Random;

/// Holds the last presses.
static RING: Static<[u8; 320]> = Static::new([0; 320]);
/// Streams that are open.
static STREAMS: Static<[StreamSlot; 2]> = Static::new([StreamSlot::FREE; 2]);
/// Their arguments.
static SUBSCRIPTIONS: Static<[u8; 64]> = Static::new([0; 64]);

/// Makes the memory of events. Works once.
pub(crate) fn events(random: &mut Random) -> Option<Events<'static>> {
    // Without a true source of randomness this is the same at each start: a client that has stayed then takes new presses for old ones.
    let mut start = [0; 8];
    random.fill(&mut start);
    Some(Events::new(RING.take()?, 8, u64::from_le_bytes(start)).streams(STREAMS.take()?, SUBSCRIPTIONS.take()?, 2))
}

impl HasEvents for State {
    const EVENTS: &'static [EventType<Self>] =
        &[EventType::new("button.pressed", "The button of the board is pressed")
            .payload_schema(r#"{"type":"object","properties":{"seconds":{"type":"integer"}},"required":["seconds"]}"#)];
    const STREAMS: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.events
    }

    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

/// Emits the event of a press.
pub(crate) fn pressed(state: &mut State, now: Millis) {
    let seconds = state.seconds();
    // There is always room: the oldest goes.
    let _ = emit(state, &EventOccurrence::new("button.pressed"), now, &mut |data| data.number("seconds", seconds));
}
