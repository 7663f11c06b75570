//! What the device offers.

use board::Led;
use mcp_sansio::protocol::Feature;
use mcp_sansio::server::{Change, Progress, SendError, Token};
use mcp_sansio::service::{Call, Hints, Outcome, Read, Resource, Service, Tool};
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};
use serde::Deserialize;
use thermometer::{history, sensor};

use crate::REQUESTS;
use crate::samples::{self, Samples};

const STATUS: &str = "board://status";

/// The state that all handlers share.
pub(crate) struct Device {
    led: Led,
    /// Seconds since the start.
    pub(crate) seconds: u32,
    /// The resource has changed and its subscribers do not know yet.
    changed: bool,
    measurements: [Option<Measurement>; MEASUREMENTS],
}

/// How many can be under way.
const MEASUREMENTS: usize = 2;

#[derive(Clone, Copy)]
struct Measurement {
    token: Token,
    samples: u32,
    /// How many the client knows of.
    told: u32,
    /// What the timer had taken before.
    begun: Samples,
}

type Connection = Session<'static, Lines<Slice<'static>>, REQUESTS>;

impl Device {
    pub(crate) fn new(led: Led) -> Self {
        Device { led, seconds: 0, changed: false, measurements: [None; MEASUREMENTS] }
    }
}

pub(crate) const SERVICE: Service<'static, Device> = Service::new("interrupts", env!("CARGO_PKG_VERSION"))
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .feature(Feature::Subscribe)
    .on_cancel(cancelled);

const READS: Hints = Hints::new().read_only(true).open_world(false);
const SETS: Hints = Hints::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static TOOLS: [Tool<Device>; 4] = [
    Tool::new("read_temperature", "Measures the temperature, in degrees Celsius", read_temperature).hints(READS),
    Tool::new("set_led", "Turns the LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    Tool::new("history", "Gives the temperature of each of the last 1000 minutes", |_, call| call.stream_text(0))
        .source(history::read)
        .hints(READS),
    Tool::new("measure", "Gives the mean of some measurements; tells how far it is", measure)
        .input(
            r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":1000,"default":5}}}"#,
        )
        .hints(READS),
];

static RESOURCES: [Resource<Device>; 1] =
    [Resource::new(STATUS, "status", status).description("The LED and the time since the start").mime("text/plain")];

fn read_temperature(_: &mut Device, call: &mut Call<'_>) -> Outcome {
    call.text(&[sensor::celsius(samples::now().last).into(), " degrees Celsius".into()])
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> Outcome {
    let SetLed { on } = call.args()?;
    device.changed |= on != device.led.is_on();
    device.led.set(on);
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

#[derive(Deserialize)]
struct Measure {
    samples: Option<u32>,
}

/// Answered later, when the timer has taken enough samples.
fn measure(device: &mut Device, call: &mut Call<'_>) -> Outcome {
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

fn status(device: &mut Device, read: &mut Read<'_>) -> Outcome {
    let led = if device.led.is_on() { "on" } else { "off" };
    read.text(&["LED: ".into(), led.into(), "\nup: ".into(), i64::from(device.seconds).into(), " s\n".into()])
}

fn cancelled(device: &mut Device, token: Token) {
    for place in &mut device.measurements {
        if place.is_some_and(|measurement| measurement.token == token) {
            *place = None;
        }
    }
}

/// What is due, at every turn of the loop.
pub(crate) fn go_on(device: &mut Device, session: &mut Connection) {
    if core::mem::take(&mut device.changed) {
        session.publish(Change::Resource(STATUS));
    }
    for at in 0..MEASUREMENTS {
        let Some(Some(measurement)) = device.measurements.get(at).copied() else { continue };
        let left = step(measurement, device, session);
        if let Some(place) = device.measurements.get_mut(at) {
            *place = left;
        }
    }
}

/// Tells how far a measurement is, or answers; what is left to do.
fn step(mut measurement: Measurement, device: &mut Device, session: &mut Connection) -> Option<Measurement> {
    let Measurement { token, samples, begun, .. } = measurement;
    let now = samples::now();
    let taken = now.count.wrapping_sub(begun.count);
    if taken < samples {
        if taken > measurement.told {
            measurement.told = taken;
            let _ = session.progress(token, Progress::new(taken.into()).of(samples.into()));
        }
        return Some(measurement);
    }
    let mean = (now.sum.wrapping_sub(begun.sum) / taken.max(1)) as u16;
    let answered = session.answer(&SERVICE, device, token, |_, call| {
        call.text(&[sensor::celsius(mean).into(), " degrees Celsius on average".into()])
    });
    // Without room it is answered at the next turn.
    (answered == Err(SendError::FullNow)).then_some(measurement)
}
