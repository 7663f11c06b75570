//! A button that clients hear of.

use board::Static;
use mcp_sansio::service::{Call, Extension, HandlerResult, Service, Tool};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventType, Events, HasEvents, StreamSlot, deliver, emit, end_stream, extension, turn,
};

use crate::tools::RAW_TABLE;
use crate::{Device, Session};

static RING: Static<[u8; 512]> = Static::new([0; 512]);
static STREAMS: Static<([StreamSlot; 2], [u8; 64])> = Static::new(([StreamSlot::FREE; 2], [0; 64]));

/// The last 16 occurrences, in 512 bytes.
pub(crate) struct Ring(Events<'static>);

impl Default for Ring {
    fn default() -> Self {
        let Some(bytes) = RING.take() else { board::exit() };
        // A device counts its starts.
        let events = Events::new(bytes, 16, 1);
        if !Device::STREAMS {
            return Ring(events);
        }
        let Some((slots, store)) = STREAMS.take() else { board::exit() };
        Ring(events.streams(slots, store, 2))
    }
}

impl HasEvents for Device {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("button.pressed", "The button is pressed")
        .payload_schema(r#"{"type":"object","properties":{"seconds":{"type":"integer"}}}"#)];

    const STREAMS: bool = cfg!(feature = "push");

    fn events(&self) -> &Events<'static> {
        &self.ring.0
    }

    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.ring.0
    }
}

/// Presses the button, as its interrupt does.
fn press(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let seconds = device.seconds.into();
    let emitted = emit(device, &EventOccurrence::new("button.pressed"), call.now(), &mut |data| {
        data.number("seconds", seconds);
    });
    emitted.map_err(|_| "there is no room")?;
    call.text("pressed")
}

static TOOLS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, Tool::new("press", "Presses the button", press)]
};

static EXTENSIONS: [Extension<Device>; 1] = [extension()];

/// Adds the extension and its tools to a service.
pub const fn with(service: Service<'static, Device>) -> Service<'static, Device> {
    let service = service.tools(&TOOLS).extend(&EXTENSIONS);
    if Device::STREAMS { service.on_cancel(end_stream) } else { service }
}

/// Does one turn of the loop: pushes what streams wait for.
pub(crate) fn work(service: &Service<'static, Device>, device: &mut Device, session: &mut Session) {
    if Device::STREAMS {
        turn(device, 0, |device, token| session.answer(service, device, token.as_custom(), deliver));
    }
}
