//! The service: tools, and a resource.

use board::Led;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool, ToolAnnotations};
#[cfg(feature = "status")]
use mcp_sansio::{
    protocol::ServerCapability,
    service::{ReadResource, Resource},
};
#[cfg(feature = "history")]
use thermometer::history;
use thermometer::sensor;

/// The URI of the resource.
#[cfg(feature = "status")]
pub(crate) const STATUS: &str = "board://status";

/// The state that all handlers share.
pub(crate) struct Device {
    led: Led,
    /// Seconds since the start.
    pub(crate) seconds: u32,
    /// The resource has changed, and its subscribers are not notified yet.
    pub(crate) changed: bool,
}

impl Device {
    pub(crate) fn new(led: Led) -> Self {
        Device { led, seconds: 0, changed: false }
    }
}

pub(crate) const SERVICE: Service<'static, Device> = service();

/// Returns the service. The linker drops the code of the protocol for the parts that a service does not have.
const fn service() -> Service<'static, Device> {
    let service = Service::new("firmware", env!("CARGO_PKG_VERSION")).tools(&TOOLS);
    #[cfg(feature = "status")]
    let service = service.resources(&RESOURCES).feature(ServerCapability::Subscribe);
    service
}

const READS: ToolAnnotations = ToolAnnotations::new().read_only(true).open_world(false);
const SETS: ToolAnnotations =
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static TOOLS: [Tool<Device>; 2 + cfg!(feature = "history") as usize] = [
    Tool::new("read_temperature", "Measures the temperature, in degrees Celsius", read_temperature).hints(READS),
    Tool::new("set_led", "Turns the LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    #[cfg(feature = "history")]
    Tool::new("history", "Gives the temperature of each of the last 1000 minutes", history)
        .source(history::read)
        .hints(READS),
];

#[cfg(feature = "status")]
static RESOURCES: [Resource<Device>; 1] =
    [Resource::new(STATUS, "status", status).description("The LED and the time since the start").mime("text/plain")];

fn read_temperature(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let reading = sensor::reading(device.seconds);
    // Joined, not formatted: formatting would take another kilobyte.
    call.text(&[sensor::celsius(reading).into(), " degrees Celsius".into()])
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    // Not by serde, which takes 2 KB for one argument.
    let Some(on) = call.arguments().get("on").and_then(|on| on.bool()) else {
        return call.error("`on` is a boolean");
    };
    device.changed |= on != device.led.is_on();
    device.led.set(on);
    call.text(if device.led.is_on() { "The LED is on" } else { "The LED is off" })
}

#[cfg(feature = "history")]
fn history(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

#[cfg(feature = "status")]
fn status(device: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
    let led = if device.led.is_on() { "on" } else { "off" };
    let seconds = i64::from(device.seconds);
    read.text(&["LED: ".into(), led.into(), "\nup: ".into(), seconds.into(), " s\n".into()])
}
