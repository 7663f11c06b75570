//! The service of the module.

use mcp_sansio::service::{SourceError, Call, HandlerResult, Service, Tool};
use serde::Deserialize;

/// The state of all handlers.
#[derive(Default)]
pub(crate) struct State {
    calls: i64,
}

pub(crate) const SERVICE: Service<'static, State> = Service::new("module", env!("CARGO_PKG_VERSION")).tools(&TOOLS);

static TOOLS: [Tool<State>; 4] = [
    Tool::new("add", "Adds two integers", add).input(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#,
    ),
    Tool::new("echo", "Gives a text back", echo)
        .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#),
    Tool::new("calls", "Says how often tools were called before", calls),
    Tool::new("large", "Gives 100 KB of text, through a window of 1 KB", large).source(large_at),
];

#[derive(Deserialize)]
struct Add {
    a: i32,
    b: i32,
}

fn add(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.calls += 1;
    let Add { a, b } = call.args()?;
    call.text(i64::from(a) + i64::from(b))
}

#[derive(Deserialize)]
struct Echo<'a> {
    text: &'a str,
}

fn echo(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.calls += 1;
    let Echo { text } = call.args()?;
    call.text(text)
}

fn calls(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text(state.calls)
}

fn large(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.calls += 1;
    call.stream_text(0)
}

/// Repeats the alphabet.
fn large_at(_: &mut State, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    let count = (100_000_u32.saturating_sub(at) as usize).min(bytes.len());
    for (place, letter) in bytes.iter_mut().take(count).zip(at..) {
        *place = b'a' + (letter % 26) as u8;
    }
    Ok(count)
}
