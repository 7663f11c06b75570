//! A button: clients hear of it, by a stream or by polls.

use board::Static;
use mcp_sansio::server::Millis;
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, StreamSlot, emit};

use crate::service::Device;

/// Holds the last presses.
static RING: Static<[u8; 320]> = Static::new([0; 320]);
/// Streams that are open, also those of a client that has gone, until the next press.
static STREAMS: Static<[StreamSlot; 4]> = Static::new([StreamSlot::FREE; 4]);
/// Their arguments.
static SUBSCRIPTIONS: Static<[u8; 128]> = Static::new([0; 128]);

/// Makes the memory of events, for a start with this number. Works once.
pub(crate) fn events(start: u64) -> Option<Events<'static>> {
    Some(Events::new(RING.take()?, 8, start).streams(STREAMS.take()?, SUBSCRIPTIONS.take()?, 4))
}

impl HasEvents for Device {
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
pub(crate) fn pressed(device: &mut Device, now: Millis) {
    let seconds = device.seconds.into();
    // There is always room: the oldest goes.
    let _ = emit(device, &EventOccurrence::new("button.pressed"), now, &mut |data| data.number("seconds", seconds));
}
