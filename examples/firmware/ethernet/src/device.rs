//! What the board offers: its temperature, its LED, a measurement that takes a while, and what it remembers.

use board::{Adc, Led};
use mcp_sansio::json::Decimal;
use mcp_sansio::protocol::Feature;
use mcp_sansio::server::{Change, Failure, Millis, Progress, SendError, Token};
use mcp_sansio::service::{
    Argument, Broken, Call, Complete, Get, Hints, Outcome, Prompt, Read, Resource, Service, Tool,
};
use serde::Deserialize;

use crate::{App, Endpoint};

/// The URI of the state of the LED and the clock.
const STATUS: &str = "board://status";
/// The URI of the temperature.
const TEMPERATURE: &str = "board://temperature";

/// Measurements at a time.
const MEASUREMENTS: usize = 4;

/// How often it is looked whether the temperature has changed.
const LOOK_MILLIS: Millis = 1_000;

/// The state that all handlers share.
pub(crate) struct State {
    led: Led,
    adc: Adc,
    /// Milliseconds since the start.
    now: Millis,
    started: Millis,
    measurements: [Option<Measurement>; MEASUREMENTS],
    /// The LED was switched, and subscribers do not know yet.
    switched: bool,
    /// The reading that subscribers were told of, and when that was.
    told: (u16, Millis),
}

/// A measurement under way.
struct Measurement {
    token: Token,
    samples: u32,
    taken: u32,
    sum: u32,
    every: Millis,
    due: Millis,
}

pub(crate) const SERVICE: Service<'static, State> = Service::new("board", env!("CARGO_PKG_VERSION"))
    .title("A thermometer with LEDs")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .prompts(&PROMPTS)
    .feature(Feature::Subscribe)
    .on_cancel(cancelled);

const READS: Hints = Hints::new().read_only(true).open_world(false);
const SETS: Hints = Hints::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static TOOLS: [Tool<State>; 5] = [
    Tool::new("read_temperature", "Measures the temperature of the chip, in degrees Celsius", read_temperature)
        .hints(READS),
    Tool::new("set_led", "Turns the status LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    Tool::new("measure", "Measures the temperature several times and tells the mean; tells how far it is", measure)
        .input(
            r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":1000,"description":"How many; 10 without"},"interval_ms":{"type":"integer","minimum":1,"maximum":60000,"description":"Between two; 100 without"}}}"#,
        )
        .hints(READS),
    Tool::new("uptime", "Tells how long the board has been running", uptime).hints(READS),
    Tool::new("history", "Gives the temperature of each of the last 2500 minutes, 50 KB", history)
        .source(read_history)
        .hints(READS),
];

static RESOURCES: [Resource<State>; 3] = [
    Resource::new(STATUS, "status", status)
        .description("The LED, the time since the start, the stack")
        .mime("text/plain"),
    Resource::new(TEMPERATURE, "temperature", temperature)
        .description("The temperature of the chip; subscribe to hear of changes")
        .mime("text/plain"),
    Resource::new("board://history", "history", |_, read| read.stream_text(0))
        .description("The temperature of each of the last 2500 minutes")
        .mime("text/plain")
        .source(read_history),
];

static PROMPTS: [Prompt<State>; 1] = [Prompt::new("check_temperature", "Asks whether the board is too warm", check)
    .arguments(&[Argument::required("limit").description("Degrees Celsius that are too much")])
    .complete(complete_limit)];

/// The state at the start.
pub(crate) fn state(led: Led, adc: Adc, now: Millis) -> State {
    let measurements = [const { None }; MEASUREMENTS];
    State { led, adc, now, started: now, measurements, switched: false, told: (0, now) }
}

impl State {
    fn seconds(&self) -> u64 {
        self.now.saturating_sub(self.started) / 1000
    }

    fn celsius(&mut self) -> Decimal {
        Decimal::new(Adc::tenths(self.adc.reading()).into(), 1)
    }
}

/// What is due, between two turns of the network.
pub(crate) fn go_on(app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) {
    let state = &mut *app.state;
    state.now = now;
    if core::mem::take(&mut state.switched) {
        endpoint.publish(Change::Resource(STATUS));
    }
    if now.saturating_sub(state.told.1) >= LOOK_MILLIS {
        let reading = state.adc.reading();
        if Adc::tenths(reading) != Adc::tenths(state.told.0) {
            endpoint.publish(Change::Resource(TEMPERATURE));
        }
        state.told = (reading, now);
    }
    for place in 0..MEASUREMENTS {
        // Out of its place while it is at work, for the endpoint has the state meanwhile.
        let Some(mut measurement) = app.state.measurements.get_mut(place).and_then(Option::take) else { continue };
        let through = measurement.due <= now && step(&mut measurement, app, endpoint, now);
        if let Some(place) = app.state.measurements.get_mut(place).filter(|_| !through) {
            *place = Some(measurement);
        }
    }
}

/// Takes a sample, or answers if there are enough; whether that was it.
fn step(measurement: &mut Measurement, app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) -> bool {
    if measurement.taken < measurement.samples {
        measurement.sum += u32::from(app.state.adc.reading());
        measurement.taken += 1;
        measurement.due = now.saturating_add(measurement.every);
        let progress = Progress::new(measurement.taken.into()).of(measurement.samples.into());
        // Whoever does not listen fast enough misses one.
        let _ = endpoint.progress(measurement.token, progress);
        return false;
    }
    let mean = Decimal::new(Adc::tenths((measurement.sum / measurement.samples.max(1)) as u16).into(), 1);
    let samples = measurement.samples;
    let answered = endpoint.answer(app, measurement.token, |_, call| {
        call.text(format_args!("{mean} degrees Celsius, the mean of {samples} measurements"))
    });
    !matches!(answered, Err(SendError::FullNow))
}

fn cancelled(state: &mut State, token: Token) {
    for place in &mut state.measurements {
        if place.as_ref().is_some_and(|measurement| measurement.token == token) {
            *place = None;
        }
    }
}

fn read_temperature(state: &mut State, call: &mut Call<'_>) -> Outcome {
    call.text(format_args!("{} degrees Celsius", state.celsius()))
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(state: &mut State, call: &mut Call<'_>) -> Outcome {
    let SetLed { on } = call.args()?;
    state.switched |= on != state.led.is_on();
    state.led.set(on);
    call.text(if state.led.is_on() { "The LED is on" } else { "The LED is off" })
}

#[derive(Deserialize)]
struct Measure {
    samples: Option<u32>,
    interval_ms: Option<u32>,
}

fn measure(state: &mut State, call: &mut Call<'_>) -> Outcome {
    let Measure { samples, interval_ms } = call.args()?;
    let (samples, every) = (samples.unwrap_or(10), interval_ms.unwrap_or(100));
    if !(1..=1000).contains(&samples) || !(1..=60_000).contains(&every) {
        return call.error("samples is 1 to 1000, interval_ms is 1 to 60000");
    }
    let now = call.now();
    let Some(place) = state.measurements.iter_mut().find(|place| place.is_none()) else {
        return call.error("Too many measurements are under way: try again later");
    };
    let (token, later) = call.later();
    *place = Some(Measurement { token, samples, taken: 0, sum: 0, every: every.into(), due: now });
    later
}

fn uptime(state: &mut State, call: &mut Call<'_>) -> Outcome {
    call.text(format_args!("{} s", state.seconds()))
}

fn history(_: &mut State, call: &mut Call<'_>) -> Outcome {
    call.stream_text(0)
}

fn status(state: &mut State, read: &mut Read<'_>) -> Outcome {
    let led = if state.led.is_on() { "on" } else { "off" };
    let (used, size) = (board::stack::used(), board::stack::size());
    read.text(format_args!("LED: {led}\nup: {} s\nstack: {used} of {size} bytes\n", state.seconds()))
}

fn temperature(state: &mut State, read: &mut Read<'_>) -> Outcome {
    read.text(format_args!("{} degrees Celsius", state.celsius()))
}

fn check(state: &mut State, get: &mut Get<'_>) -> Outcome {
    const MISSING: Failure<'static> = Failure::invalid_params("Invalid params: limit is not a string");
    let limit = get.arg("limit").ok_or(MISSING)?;
    get.user(format_args!("The board is at {} degrees Celsius. Is that more than {limit}?", state.celsius()))
}

fn complete_limit(_: &mut State, complete: &mut Complete<'_>) -> Outcome {
    complete.matching(["30", "40", "50", "60"])
}

/// Measurements that are remembered, one a minute.
const MINUTES: u32 = 2500;

const LAYOUT: &[u8; 20] = b"minute ####: +##.#C\n";

/// Of a line; all are of one length.
const LINE: u32 = LAYOUT.len() as u32;

/// What the thermometer remembers, made when it is asked for: 50 KB that are nowhere.
fn read_history(_: &mut State, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, Broken> {
    let minute = at / LINE;
    if minute >= MINUTES {
        return Ok(0);
    }
    let line = line(minute);
    let rest = line.get((at % LINE) as usize..).unwrap_or_default();
    for (place, byte) in bytes.iter_mut().zip(rest) {
        *place = *byte;
    }
    Ok(rest.len().min(bytes.len()))
}

fn line(minute: u32) -> [u8; LINE as usize] {
    let mut line = *LAYOUT;
    let noise = (minute.wrapping_mul(0x9E37_79B9) >> 28) as u16;
    let tenths = Adc::tenths(520 + noise);
    let mut digits = minute * 1000 + tenths.unsigned_abs() % 1000;
    // From the last digit to the first.
    for place in line.iter_mut().rev() {
        if *place == b'#' {
            *place = b'0' + (digits % 10) as u8;
            digits /= 10;
        }
    }
    line
}
