//! A tool that asks the user (elicitation) before it does something.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation> and, for 2026-07-28,
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr>. The handler is the same for both.
//! Try it in a terminal: `cargo run --example inspect -- call reset -- cargo run --quiet --example question`.
use mcp_sansio::json::Raw;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool, ToolAnnotations};
use mcp_sansio_blocking::serve_stdio;

/// The `requestedSchema` of the form: one yes-or-no field.
const SURE: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean","title":"Sure?"}},"required":["sure"]}"#);

/// Runs twice: the first run has no answer and asks; the second run, from the beginning, has the answer.
fn reset(count: &mut u64, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("confirm") else {
        // The second argument is state that comes back with the answers; this handler needs none.
        return call.ask(&[InputRequest::elicit("confirm", "Set the counter to 0?", SURE)], b"");
    };
    // Not accepted: the user declined, closed the form, or the client is gone.
    if !answer.accepted() || answer.value("sure").and_then(|sure| sure.bool()) != Some(true) {
        return call.text(format_args!("The counter stays at {count}"));
    }
    *count = 0;
    call.text("The counter is 0")
}

static TOOLS: [Tool<u64>; 1] = [Tool::new("reset", "Sets the counter to 0, if the user agrees", reset)
    .hints(ToolAnnotations::new().destructive(true).open_world(false))];

fn main() -> std::io::Result<()> {
    serve_stdio(&Service::new("question", "1.0").tools(&TOOLS), &mut 42)
}
