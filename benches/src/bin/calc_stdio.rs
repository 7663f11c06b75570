//! The tools of `examples/calc.rs` over stdio only: the program to measure the size of a stdio server.
use mcp_sansio::json::Text;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use serde::Deserialize;

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

fn add(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let Add { a, b } = call.args()?;
    call.text(format_args!("{}", i128::from(a) + i128::from(b)))
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let Echo { text } = call.args()?;
    call.text(text)
}

static TOOLS: [Tool<()>; 2] = [
    Tool::new("add", "Adds two integers", add).input(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#,
    ),
    Tool::new("echo", "Gives a text back", echo)
        .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#),
];

fn main() -> std::io::Result<()> {
    mcp_sansio_blocking::serve_stdio(&Service::new("calc", env!("CARGO_PKG_VERSION")).tools(&TOOLS), &mut ())
}
