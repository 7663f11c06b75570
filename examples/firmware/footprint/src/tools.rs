//! Five tools, in three versions: arguments read from the JSON by hand, by serde, and by types that are the schema.

use mcp_sansio::service::{Arguments, Call, HandlerResult, Service, Tool, ToolAnnotations};
use serde::Deserialize;

use crate::Device;

/// A service with five tools that read their arguments by hand: it needs only the core.
pub const RAW: Service<'static, Device> = Service::new("footprint", "1.0").tools(&TOOLS_RAW);

/// The same service with arguments by serde.
pub const SERDE: Service<'static, Device> = Service::new("footprint", "1.0").tools(&TOOLS);

/// The same service with arguments by types that are the schema.
pub const DERIVED: Service<'static, Device> = Service::new("footprint", "1.0").tools(&TOOLS_DERIVED);

const SETS: ToolAnnotations = ToolAnnotations::new().read_only(false).destructive(false);
const ADD: &str =
    r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#;
const SET: &str = r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#;
const ECHO: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

static TOOLS_RAW: [Tool<Device>; 5] = RAW_TABLE;
static TOOLS: [Tool<Device>; 5] = TABLE;
static TOOLS_DERIVED: [Tool<Device>; 5] = [
    Tool::new("read_temperature", "Measures the temperature, in tenths of a degree Celsius", read_temperature),
    Tool::new("uptime", "Gives the seconds since the start", uptime),
    Tool::new("set_led", "Turns the LED on or off", set_led_derived).input(SetLed::SCHEMA).hints(SETS),
    Tool::new("add", "Adds two integers", add_derived).input(Add::SCHEMA),
    Tool::new("echo", "Gives a text back", echo_derived).input(Echo::SCHEMA),
];

pub(crate) const RAW_TABLE: [Tool<Device>; 5] = [
    Tool::new("read_temperature", "Measures the temperature, in tenths of a degree Celsius", read_temperature),
    Tool::new("uptime", "Gives the seconds since the start", uptime),
    Tool::new("set_led", "Turns the LED on or off", set_led_raw).input(SET).hints(SETS),
    Tool::new("add", "Adds two integers", add_raw).input(ADD),
    Tool::new("echo", "Gives a text back", echo_raw).input(ECHO),
];

pub(crate) const TABLE: [Tool<Device>; 5] = [
    Tool::new("read_temperature", "Measures the temperature, in tenths of a degree Celsius", read_temperature),
    Tool::new("uptime", "Gives the seconds since the start", uptime),
    Tool::new("set_led", "Turns the LED on or off", set_led).input(SET).hints(SETS),
    Tool::new("add", "Adds two integers", add).input(ADD),
    Tool::new("echo", "Gives a text back", echo).input(ECHO),
];

fn read_temperature(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.text(mcp_sansio::json::Decimal::new(200 + i64::from(device.seconds % 16), 1))
}

fn uptime(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.text(i64::from(device.seconds))
}

fn answer_led(device: &mut Device, call: &mut Call<'_>, on: bool) -> HandlerResult {
    device.led = on;
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

fn set_led_raw(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    match call.arguments().get("on").and_then(|on| on.bool()) {
        Some(on) => answer_led(device, call, on),
        None => call.error("`on` is a boolean"),
    }
}

fn add_raw(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let arguments = call.arguments();
    let argument = |name| arguments.get(name).and_then(|value| value.i64());
    match (argument("a"), argument("b")) {
        (Some(a), Some(b)) => call.text(a.wrapping_add(b)),
        _ => call.error("`a` and `b` are integers"),
    }
}

fn echo_raw(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    match call.arguments().get("text").and_then(|text| text.text()) {
        Some(text) => call.text(text),
        None => call.error("`text` is a string"),
    }
}

#[derive(Arguments, Deserialize)]
struct SetLed {
    on: bool,
}

fn set_led(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let SetLed { on } = call.args()?;
    answer_led(device, call, on)
}

#[derive(Arguments, Deserialize)]
struct Add {
    a: i32,
    b: i32,
}

fn add(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Add { a, b } = call.args()?;
    call.text(i64::from(a) + i64::from(b))
}

#[derive(Arguments, Deserialize)]
struct Echo<'a> {
    text: &'a str,
}

fn echo(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Echo { text } = call.args()?;
    call.text(text)
}

fn set_led_derived(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let SetLed { on } = call.read_args()?;
    answer_led(device, call, on)
}

fn add_derived(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Add { a, b } = call.read_args()?;
    call.text(i64::from(a) + i64::from(b))
}

fn echo_derived(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Echo { text } = call.read_args()?;
    call.text(text)
}
