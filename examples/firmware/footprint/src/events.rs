//! A button that clients hear of.

use board::Static;
use mcp_sansio::service::{Call, Extension, HandlerResult, Tool};
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};

use crate::Device;
use crate::tools::RAW_TABLE;

static RING: Static<[u8; 512]> = Static::new([0; 512]);

/// The last 16 occurrences, in 512 bytes.
pub(crate) struct Ring(Events<'static>);

impl Default for Ring {
    fn default() -> Self {
        let Some(bytes) = RING.take() else { board::exit() };
        // A device counts its starts.
        Ring(Events::new(bytes, 16, 1))
    }
}

impl HasEvents for Device {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("button.pressed", "The button is pressed")
        .payload_schema(r#"{"type":"object","properties":{"seconds":{"type":"integer"}}}"#)];

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

/// The five tools and one that presses the button.
pub static TOOLS: [Tool<Device>; 6] = {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, Tool::new("press", "Presses the button", press)]
};

/// The extension.
pub static EXTENSIONS: [Extension<Device>; 1] = [extension()];
