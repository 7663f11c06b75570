//! A prompt with a required and an optional argument.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/server/prompts>.
//! Try it: `cargo run --example inspect -- prompt review language=Rust -- cargo run --quiet --example prompt`.
use mcp_sansio::service::{ContentBlock, GetPrompt, HandlerResult, Prompt, PromptArgument, PromptMessage, Service};
use mcp_sansio_blocking::serve_stdio;

/// Answers `prompts/get`. A call without `language` never comes here: the library answers it with an error, -32602.
fn review(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
    let Some(language) = get.arg("language") else { return get.user("Review the code.") };
    let focus = match get.arg("focus") {
        Some(focus) => ContentBlock::text(focus),
        None => ContentBlock::text("correctness"),
    };
    get.messages(&[
        PromptMessage::assistant(ContentBlock::text("In which language is the code, and where shall I look first?")),
        PromptMessage::user(ContentBlock::text(language)),
        PromptMessage::user(focus),
    ])
}

static PROMPTS: [Prompt<()>; 1] = [Prompt::new("review", "Reviews code", review).title("Code review").arguments(&[
    PromptArgument::required("language").description("The programming language"),
    PromptArgument::optional("focus").description("What to look at first"),
])];

fn main() -> std::io::Result<()> {
    serve_stdio(&Service::new("prompt", "1.0").prompts(&PROMPTS), &mut ())
}
