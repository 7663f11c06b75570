//! The parts that rows of the table add to the five tools, each as small as possible.

#[cfg(feature = "windows")]
use mcp_sansio::service::SourceError;
use mcp_sansio::service::{
    Call, Complete, GetPrompt, HandlerResult, Prompt, PromptArgument, ReadResource, Resource, ResourceTemplate, Tool,
};

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

/// The tool with a large reply.
#[cfg(feature = "windows")]
pub(crate) const STREAM: Tool<Device> = Tool::new("history", "Gives 20 KB of text", history).source(history_at);

/// A resource.
pub static RESOURCES: [Resource<Device>; 1] = [Resource::new("board://status", "status", status).mime("text/plain")];

/// A family of resources.
pub static TEMPLATES: [ResourceTemplate<Device>; 1] =
    [ResourceTemplate::new("board://pin/{pin}", "pin", pin).mime("text/plain").complete(complete)];

/// A prompt.
pub static PROMPTS: [Prompt<Device>; 1] =
    [Prompt::new("explain", "Explains a value", explain).arguments(&ARGUMENTS).complete(complete)];

static ARGUMENTS: [PromptArgument; 1] = [PromptArgument::required("value")];

pub(crate) fn formatted(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.text(format_args!("up: {} s", device.seconds))
}

#[cfg(feature = "windows")]
fn history(_: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

#[cfg(feature = "windows")]
fn history_at(_: &mut Device, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    let left = 20_000_u32.saturating_sub(at) as usize;
    let count = left.min(bytes.len());
    for byte in bytes.iter_mut().take(count) {
        *byte = b'.';
    }
    Ok(count)
}

fn status(device: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text(if device.led { "on" } else { "off" })
}

fn pin(_: &mut Device, read: &mut ReadResource<'_>) -> HandlerResult {
    match read.var("pin") {
        Some(pin) => read.text(pin),
        None => read.not_found(),
    }
}

fn complete(_: &mut Device, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["temperature", "time"])
}

fn explain(_: &mut Device, get: &mut GetPrompt<'_>) -> HandlerResult {
    match get.arg("value") {
        Some(value) => get.user(value),
        None => get.user("What does it mean?"),
    }
}
