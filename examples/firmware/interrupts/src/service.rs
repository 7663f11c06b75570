//! The service: tools, and a resource.

use board::Led;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Millis, Progress, RequestToken, RespondError, ServerChange};
use mcp_sansio::service::{Call, Extension, HandlerResult, ReadResource, Resource, Service, Tool, ToolAnnotations};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_extensions::events::{Events, deliver, end_stream, extension, turn};
use serde::Deserialize;
use thermometer::{history, sensor};

use crate::samples::{self, Samples};

const STATUS: &str = "board://status";

/// The state that all handlers share.
pub(crate) struct Device {
    led: Led,
    /// Seconds since the start.
    pub(crate) seconds: u32,
    /// The resource has changed, and its subscribers are not notified yet.
    changed: bool,
    pub(crate) events: Events<'static>,
    measurements: [Option<Measurement>; MEASUREMENTS],
}

/// The most measurements at a time.
const MEASUREMENTS: usize = 2;

#[derive(Clone, Copy)]
struct Measurement {
    token: RequestToken,
    samples: u32,
    /// The number of samples in the last progress report.
    told: u32,
    /// The samples at the start of this measurement.
    begun: Samples,
}

type Connection = LineServer<'static, LineSink<SliceStorage<'static>>>;

impl Device {
    pub(crate) fn new(led: Led, events: Events<'static>) -> Self {
        Device { led, seconds: 0, changed: false, events, measurements: [None; MEASUREMENTS] }
    }
}

pub(crate) const SERVICE: Service<'static, Device> = Service::new("interrupts", env!("CARGO_PKG_VERSION"))
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .extend(&EXTENSIONS)
    .feature(ServerCapability::Subscribe)
    .on_cancel(cancelled);

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
            r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":1000,"default":5}}}"#,
        )
        .hints(READS),
];

static EXTENSIONS: [Extension<Device>; 1] = [extension()];

static RESOURCES: [Resource<Device>; 1] =
    [Resource::new(STATUS, "status", status).description("The LED and the time since the start").mime("text/plain")];

fn read_temperature(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.text(&[sensor::celsius(samples::now().last).into(), " degrees Celsius".into()])
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let SetLed { on } = call.args()?;
    device.changed |= on != device.led.is_on();
    device.led.set(on);
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

#[derive(Deserialize)]
struct Measure {
    samples: Option<u32>,
}

/// Starts a measurement. The answer follows when the timer has taken enough samples.
fn measure(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Measure { samples } = call.args()?;
    let samples = samples.unwrap_or(5);
    if !(1..=1000).contains(&samples) {
        return call.error("samples is 1 to 1000");
    }
    let Some(place) = device.measurements.iter_mut().find(|place| place.is_none()) else {
        return call.error("Too many measurements are under way: try again later");
    };
    let (token, later) = call.later();
    *place = Some(Measurement { token, samples, told: 0, begun: samples::now() });
    later
}

fn status(device: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
    let led = if device.led.is_on() { "on" } else { "off" };
    read.text(&["LED: ".into(), led.into(), "\nup: ".into(), i64::from(device.seconds).into(), " s\n".into()])
}

fn cancelled(device: &mut Device, token: RequestToken) {
    end_stream(device, token);
    for place in &mut device.measurements {
        if place.is_some_and(|measurement| measurement.token == token) {
            *place = None;
        }
    }
}

/// Does the work that is due, at every turn of the loop.
pub(crate) fn go_on(device: &mut Device, session: &mut Connection, now: Millis) {
    if core::mem::take(&mut device.changed) {
        session.server.publish(ServerChange::Resource(STATUS));
    }
    for at in 0..MEASUREMENTS {
        let Some(Some(measurement)) = device.measurements.get(at).copied() else { continue };
        let left = step(measurement, device, session);
        if let Some(place) = device.measurements.get_mut(at) {
            *place = left;
        }
    }
    turn(device, now, |device, token| session.answer(&SERVICE, device, token.as_custom(), deliver));
    // A stream has no end of its own.
    if session.has_ended() && device.measurements.iter().all(Option::is_none) {
        let _ = session.abandon();
    }
}

/// Reports progress, or answers. Returns the measurement if it is not complete.
fn step(mut measurement: Measurement, device: &mut Device, session: &mut Connection) -> Option<Measurement> {
    let Measurement { token, samples, begun, .. } = measurement;
    let now = samples::now();
    let taken = now.count.wrapping_sub(begun.count);
    if taken < samples {
        if taken > measurement.told {
            measurement.told = taken;
            let _ = session.progress(token, Progress::new(taken).of(samples));
        }
        return Some(measurement);
    }
    let mean = (now.sum.wrapping_sub(begun.sum) / taken.max(1)) as u16;
    let answered = session.answer(&SERVICE, device, token, |_, call| {
        call.text(&[sensor::celsius(mean).into(), " degrees Celsius on average".into()])
    });
    // Without room for the answer, the next turn tries again.
    (answered == Err(RespondError::FullNow)).then_some(measurement)
}
