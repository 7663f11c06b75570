//! What the device offers.

use board::Led;
use mcp_sansio::protocol::Feature;
use mcp_sansio::service::{Call, Hints, Outcome, Read, Resource, Service, Tool};
use serde::Deserialize;

use crate::{history, sensor};

/// The URI of the resource.
pub(crate) const STATUS: &str = "board://status";

/// The state that all handlers share.
pub(crate) struct Device {
    led: Led,
    /// Seconds since the start.
    pub(crate) seconds: u32,
    /// The resource has changed and its subscribers do not know yet.
    pub(crate) changed: bool,
}

impl Device {
    pub(crate) fn new(led: Led) -> Self {
        Device { led, seconds: 0, changed: false }
    }
}

pub(crate) const SERVICE: Service<'static, Device> =
    Service::new("firmware", env!("CARGO_PKG_VERSION")).tools(&TOOLS).resources(&RESOURCES).feature(Feature::Subscribe);

const READS: Hints = Hints::new().read_only(true).open_world(false);
const SETS: Hints = Hints::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static TOOLS: [Tool<Device>; 3] = [
    Tool::new("read_temperature", "Measures the temperature, in degrees Celsius", read_temperature).hints(READS),
    Tool::new("set_led", "Turns the LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    Tool::new("history", "Gives the temperature of each of the last 1000 minutes", history)
        .source(history::read)
        .hints(READS),
];

static RESOURCES: [Resource<Device>; 1] =
    [Resource::new(STATUS, "status", status).description("The LED and the time since the start").mime("text/plain")];

fn read_temperature(device: &mut Device, call: &mut Call<'_>) -> Outcome {
    let reading = sensor::reading(device.seconds);
    call.text(format_args!("{} degrees Celsius", sensor::celsius(reading)))
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> Outcome {
    let SetLed { on } = call.args()?;
    device.changed |= on != device.led.is_on();
    device.led.set(on);
    call.text(if device.led.is_on() { "The LED is on" } else { "The LED is off" })
}

fn history(_: &mut Device, call: &mut Call<'_>) -> Outcome {
    call.stream_text(0)
}

fn status(device: &mut Device, read: &mut Read<'_>) -> Outcome {
    let led = if device.led.is_on() { "on" } else { "off" };
    read.text(format_args!("LED: {led}\nup: {} s\n", device.seconds))
}
