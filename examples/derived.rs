//! The tools of `calc` from functions: no schema is written by hand, and nothing of serde is used.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/server/tools>.
//! Try it: `cargo run --example inspect -- call add a=1 b=2 -- cargo run --quiet --example derived`.
use mcp_sansio::service::{Service, tool};

/// Adds two integers
#[tool]
fn add(a: i64, b: i64) -> i128 {
    i128::from(a) + i128::from(b)
}

/// Gives a text back
#[tool]
fn echo(text: &str) -> &str {
    text
}

fn main() -> std::io::Result<()> {
    mcp_sansio_blocking::serve_stdio(&Service::new("derived", "1.0").tools(&[ADD, ECHO]), &mut ())
}
