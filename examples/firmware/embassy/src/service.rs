//! The service: tools, and a resource.

use board::Led;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Progress, RequestToken, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, ReadResource, Resource, Service, Tool, ToolAnnotations};
use mcp_sansio::sink::{LineSink, SliceStorage};
use serde::Deserialize;
use thermometer::{history, sensor};

use crate::measure::{CANCELLED, JOBS, Job, NEWS, News, seconds};

const STATUS: &str = "board://status";

/// The state that all handlers share.
pub(crate) struct Device {
    led: Led,
}

impl Device {
    pub(crate) fn new(led: Led) -> Self {
        Device { led }
    }
}

pub(crate) const SERVICE: Service<'static, Device> = Service::new("embassy", env!("CARGO_PKG_VERSION"))
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .feature(ServerCapability::Subscribe)
    .on_cancel(|_, token| CANCELLED.signal(token));

const READS: ToolAnnotations = ToolAnnotations::new().read_only(true).open_world(false);
const SETS: ToolAnnotations =
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static TOOLS: [Tool<Device>; 4] = [
    Tool::new("read_temperature", "Measures the temperature, in degrees Celsius", read_temperature).hints(READS),
    Tool::new("set_led", "Turns the LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    Tool::new("history", "Gives the temperature of each of the last 1000 minutes", |_, call| call.stream_text(0))
        .source(history::read)
        .hints(READS),
    Tool::new("measure", "Gives the mean of some measurements; reports progress", measure)
        .input(
            r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":1000,"default":5},"interval_ms":{"type":"integer","minimum":1,"maximum":60000,"default":100}}}"#,
        )
        .hints(READS),
];

static RESOURCES: [Resource<Device>; 1] =
    [Resource::new(STATUS, "status", status).description("The LED and the time since the start").mime("text/plain")];

fn read_temperature(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.text(&[sensor::celsius(sensor::reading(seconds())).into(), " degrees Celsius".into()])
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let SetLed { on } = call.args()?;
    if on != device.led.is_on() {
        // If the channel is full, other news follow at once, and the client reads the status then.
        let _ = NEWS.try_send(News::Switched);
    }
    device.led.set(on);
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

#[derive(Deserialize)]
struct Measure {
    samples: Option<u32>,
    interval_ms: Option<u32>,
}

/// Starts a measurement. The task that measures answers later.
fn measure(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Measure { samples, interval_ms } = call.args()?;
    let (samples, every) = (samples.unwrap_or(5), interval_ms.unwrap_or(100));
    if !(1..=1000).contains(&samples) || !(1..=60_000).contains(&every) {
        return call.error("samples is 1 to 1000, interval_ms is 1 to 60000");
    }
    if JOBS.is_full() {
        return call.error("Too many measurements are under way: try again later");
    }
    let (token, later) = call.later();
    // There is room: no other code sends.
    let _ = JOBS.try_send(Job { token, samples, every_millis: every.into() });
    later
}

fn status(device: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
    let led = if device.led.is_on() { "on" } else { "off" };
    read.text(&["LED: ".into(), led.into(), "\nup: ".into(), i64::from(seconds()).into(), " s\n".into()])
}

/// Passes news on to the client. For cancelled requests the token is stale, and the session refuses it.
pub(crate) fn tell(
    news: News,
    device: &mut Device,
    session: &mut LineServer<'static, LineSink<SliceStorage<'static>>>,
) {
    match news {
        News::Sampled(token, taken, of) => {
            let _ = session.progress(token, Progress::new(taken).of(of));
        }
        News::Measured(token, mean) => answer(token, mean, device, session),
        News::Switched => session.server.publish(ServerChange::Resource(STATUS)),
    }
}

fn answer(
    token: RequestToken,
    mean: u16,
    device: &mut Device,
    session: &mut LineServer<'_, LineSink<SliceStorage<'_>>>,
) {
    // There is room: all output was written before these news were taken.
    let _ = session.answer(&SERVICE, device, token, |_, call| {
        call.text(&[sensor::celsius(mean).into(), " degrees Celsius on average".into()])
    });
}
