//! The service: temperature, LED, a measurement that takes some time, a history, and a panel for hosts that can show it.

use board::{Adc, Button, Led};
use mcp_sansio::json::write::decimal;
use mcp_sansio::json::{Decimal, Object};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Millis, Progress, RequestToken, RespondError, RpcError, ServerChange};
use mcp_sansio::service::{
    Call, Complete, Extension, GetPrompt, HandlerResult, Prompt, PromptArgument, ReadResource, Resource, Service,
    SourceError, Tool, ToolAnnotations,
};
use mcp_sansio_extensions::apps::{Page, ResourceMeta, ToolMeta, can_show, ui_meta};
use mcp_sansio_extensions::events::{self, Events, deliver, end_stream, turn};
use serde::Deserialize;

use crate::random::Random;
use crate::{App, Endpoint, button, manual};

/// The URI of the state of the LED and the clock.
const STATUS: &str = "board://status";
/// The URI of the temperature.
const TEMPERATURE: &str = "board://temperature";

/// The most measurements at a time.
const MEASUREMENTS: usize = 4;

/// The interval of checks for a changed temperature.
const LOOK_MILLIS: Millis = 1_000;

/// The state that all handlers share.
pub(crate) struct State {
    led: Led,
    button: Button,
    pub(crate) events: Events<'static>,
    adc: Adc,
    /// The milliseconds since the start.
    now: Millis,
    started: Millis,
    measurements: [Option<Measurement>; MEASUREMENTS],
    /// The LED was switched, and subscribers are not notified yet.
    switched: bool,
    /// The reading in the last notification to subscribers, and the time of that notification.
    told: (u16, Millis),
}

/// A measurement under way.
struct Measurement {
    token: RequestToken,
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
    .templates(&manual::TEMPLATES)
    .prompts(&PROMPTS)
    .extend(&EXTENSIONS)
    .feature(ServerCapability::Subscribe)
    .on_cancel(cancelled);

const READS: ToolAnnotations = ToolAnnotations::new().read_only(true).open_world(false);
const SETS: ToolAnnotations =
    ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);

static EXTENSIONS: [Extension<State>; 3] =
    [mcp_sansio_extensions::apps::extension(), events::extension(), manual::EXTENSION];

/// The panel: longer than any buffer of the board, sent in windows.
static PANEL: Page = Page::new("ui://board/panel", "panel", include_str!("panel.html"))
    .meta(ui_meta!(ResourceMeta::new().prefers_border(true)));

static TOOLS: [Tool<State>; 6] = [
    Tool::new("read_temperature", "Measures the temperature of the chip, in degrees Celsius", read_temperature)
        .hints(READS),
    Tool::new("set_led", "Turns the status LED on or off", set_led)
        .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)
        .hints(SETS),
    Tool::new("measure", "Measures the temperature several times and gives the mean; it reports progress", measure)
        .input(
            r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":1000,"description":"How many; 10 without"},"interval_ms":{"type":"integer","minimum":1,"maximum":60000,"description":"Between two; 100 without"}}}"#,
        )
        .hints(READS),
    Tool::new("uptime", "Tells how long the board has been running", uptime).hints(READS),
    Tool::new("history", "Gives the temperature of each of the last 2500 minutes, 50 KB", history)
        .source(read_history)
        .hints(READS),
    Tool::new("show_board", "Gives temperature, LED and uptime; shows a live panel where the host can", show_board)
        .meta(ui_meta!(ToolMeta::new(PANEL.uri)))
        .hints(READS),
];

static RESOURCES: [Resource<State>; 5] = [
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
    PANEL.resource(|_, read| PANEL.read(read)).source(|_, _, at, to| Ok(PANEL.copy(at, to))),
    manual::RESOURCE,
];

static PROMPTS: [Prompt<State>; 1] = [Prompt::new("check_temperature", "Asks whether the board is too warm", check)
    .arguments(&[PromptArgument::required("limit").description("Degrees Celsius that are too much")])
    .complete(complete_limit)];

/// Returns the state at the start.
pub(crate) fn state(led: Led, mut button: Button, adc: Adc, now: Millis, random: &mut Random) -> Option<State> {
    let measurements = [const { None }; MEASUREMENTS];
    let events = button::events(random)?;
    button.start();
    Some(State { led, button, events, adc, now, started: now, measurements, switched: false, told: (0, now) })
}

impl State {
    pub(crate) fn seconds(&self) -> u64 {
        self.now.saturating_sub(self.started) / 1000
    }

    fn celsius(&mut self) -> Decimal {
        Decimal::new(Adc::tenths(self.adc.reading()).into(), 1)
    }
}

/// Does the work that is due between two turns of the network.
pub(crate) fn go_on(app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) {
    let state = &mut *app.state;
    state.now = now;
    if state.button.was_pressed(now) {
        button::pressed(state, now);
    }
    turn(state, now, |state, token| endpoint.answer(&mut App::new(&SERVICE, state), token.as_custom(), deliver));
    if core::mem::take(&mut state.switched) {
        endpoint.publish(ServerChange::Resource(STATUS));
    }
    if now.saturating_sub(state.told.1) >= LOOK_MILLIS {
        let reading = state.adc.reading();
        if Adc::tenths(reading) != Adc::tenths(state.told.0) {
            endpoint.publish(ServerChange::Resource(TEMPERATURE));
        }
        state.told = (reading, now);
    }
    for place in 0..MEASUREMENTS {
        // Taken out of its place during the work, because the endpoint borrows the state.
        let Some(mut measurement) = app.state.measurements.get_mut(place).and_then(Option::take) else { continue };
        let through = measurement.due <= now && step(&mut measurement, app, endpoint, now);
        if let Some(place) = app.state.measurements.get_mut(place).filter(|_| !through) {
            *place = Some(measurement);
        }
    }
}

/// Takes a sample, or answers if there are enough. Returns `true` after the answer.
fn step(measurement: &mut Measurement, app: &mut App<'_>, endpoint: &mut Endpoint, now: Millis) -> bool {
    if measurement.taken < measurement.samples {
        measurement.sum += u32::from(app.state.adc.reading());
        measurement.taken += 1;
        measurement.due = now.saturating_add(measurement.every);
        let progress = Progress::new(measurement.taken).of(measurement.samples);
        // A client that reads too slowly misses this report.
        let _ = endpoint.progress(measurement.token, progress);
        return false;
    }
    let mean = Decimal::new(Adc::tenths((measurement.sum / measurement.samples.max(1)) as u16).into(), 1);
    let samples = measurement.samples;
    let answered = endpoint.answer(app, measurement.token, |_, call| {
        call.text(format_args!("{mean} degrees Celsius, the mean of {samples} measurements"))
    });
    !matches!(answered, Err(RespondError::FullNow))
}

fn cancelled(state: &mut State, token: RequestToken) {
    end_stream(state, token);
    for place in &mut state.measurements {
        if place.as_ref().is_some_and(|measurement| measurement.token == token) {
            *place = None;
        }
    }
}

fn read_temperature(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text(format_args!("{} degrees Celsius", state.celsius()))
}

#[derive(Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
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

fn measure(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
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

fn uptime(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text(format_args!("{} s", state.seconds()))
}

fn history(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

/// Answers with words for the model, and for clients with panels with the same as structured content.
fn show_board(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (celsius, is_on, seconds) = (state.celsius(), state.led.is_on(), state.seconds());
    let led = if is_on { "on" } else { "off" };
    let words = format_args!("{celsius} degrees Celsius, the LED is {led}, up for {seconds} s");
    if !can_show(call) {
        return call.text(words);
    }
    call.result_as("complete", &mut |result| {
        let out = result.key("content");
        out.put(b"[");
        let mut text = Object::open(out);
        text.fixed("type", "\"text\"");
        text.shown("text", &words);
        text.close();
        out.put(b"]");
        let mut seen = Object::open(result.key("structuredContent"));
        seen.key("celsius").write(|out| decimal(out, celsius));
        seen.boolean("led", is_on);
        seen.number("up_seconds", seconds);
        seen.number("stack_used", board::stack::used() as u64);
        seen.number("stack_size", board::stack::size() as u64);
        seen.close();
    })
}

fn status(state: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    let led = if state.led.is_on() { "on" } else { "off" };
    let (used, size) = (board::stack::used(), board::stack::size());
    read.text(format_args!("LED: {led}\nup: {} s\nstack: {used} of {size} bytes\n", state.seconds()))
}

fn temperature(state: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text(format_args!("{} degrees Celsius", state.celsius()))
}

fn check(state: &mut State, get: &mut GetPrompt<'_>) -> HandlerResult {
    const MISSING: RpcError<'static> = RpcError::invalid_params("Invalid params: limit is not a string");
    let limit = get.arg("limit").ok_or(MISSING)?;
    get.user(format_args!("The board is at {} degrees Celsius. Is that more than {limit}?", state.celsius()))
}

fn complete_limit(_: &mut State, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["30", "40", "50", "60"])
}

/// The remembered measurements, one per minute.
const MINUTES: u32 = 2500;

const LAYOUT: &[u8; 20] = b"minute ####: +##.#C\n";

/// The length of a line. All lines have the same length.
const LINE: u32 = LAYOUT.len() as u32;

/// Generates the history on demand: 50 KB that are stored nowhere.
fn read_history(_: &mut State, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
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
