//! What the rows add to the five tools, each as little as shows its cost.

#[cfg(feature = "windows")]
use mcp_sansio::service::Broken;
use mcp_sansio::service::{Argument, Call, Complete, Get, Outcome, Prompt, Read, Resource, Template, Tool};

use crate::Device;
use crate::tools::RAW_TABLE;

const fn with(tool: Tool<Device>) -> [Tool<Device>; 6] {
    let [a, b, c, d, e] = RAW_TABLE;
    [a, b, c, d, e, tool]
}

/// The five tools and one that formats.
pub static FORMATS: [Tool<Device>; 6] = with(Tool::new("formatted", "Gives the seconds since the start", formatted));

/// The five tools and one with a large reply.
#[cfg(feature = "windows")]
pub static STREAMS: [Tool<Device>; 6] = with(STREAM);

/// With a large reply.
#[cfg(feature = "windows")]
pub(crate) const STREAM: Tool<Device> = Tool::new("history", "Gives 20 KB of text", history).source(history_at);

/// A resource.
pub static RESOURCES: [Resource<Device>; 1] = [Resource::new("board://status", "status", status).mime("text/plain")];

/// A family of resources.
pub static TEMPLATES: [Template<Device>; 1] =
    [Template::new("board://pin/{pin}", "pin", pin).mime("text/plain").complete(complete)];

/// A prompt.
pub static PROMPTS: [Prompt<Device>; 1] =
    [Prompt::new("explain", "Explains a value", explain).arguments(&ARGUMENTS).complete(complete)];

static ARGUMENTS: [Argument; 1] = [Argument::required("value")];

pub(crate) fn formatted(device: &mut Device, call: &mut Call<'_>) -> Outcome {
    call.text(format_args!("up: {} s", device.seconds))
}

#[cfg(feature = "windows")]
fn history(_: &mut Device, call: &mut Call<'_>) -> Outcome {
    call.stream_text(0)
}

#[cfg(feature = "windows")]
fn history_at(_: &mut Device, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, Broken> {
    let left = 20_000_u32.saturating_sub(at) as usize;
    let count = left.min(bytes.len());
    for byte in bytes.iter_mut().take(count) {
        *byte = b'.';
    }
    Ok(count)
}

fn status(device: &mut Device, read: &mut Read<'_>) -> Outcome {
    read.text(if device.led { "on" } else { "off" })
}

fn pin(_: &mut Device, read: &mut Read<'_>) -> Outcome {
    match read.var("pin") {
        Some(pin) => read.text(pin),
        None => read.not_found(),
    }
}

fn complete(_: &mut Device, complete: &mut Complete<'_>) -> Outcome {
    complete.matching(["temperature", "time"])
}

fn explain(_: &mut Device, get: &mut Get<'_>) -> Outcome {
    match get.arg("value") {
        Some(value) => get.user(value),
        None => get.user("What does it mean?"),
    }
}
