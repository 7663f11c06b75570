//! A server over HTTP whose tools differ by user: `reader` sees `show`, `writer` sees `show` and `change`. Their names are their tokens.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>.
//! Try it: `cargo run --example callers -- 8935`, then
//! `cargo run --example inspect -- --header "Authorization: Bearer writer" tools http://127.0.0.1:8935/mcp`.
//! A journal, a line for each request, goes to standard error.
use std::error::Error;

use mcp_sansio::service::{Call, HandlerResult, Layer, Service, Tool, ToolAnnotations, Visibility};
use mcp_sansio_blocking::http::{Access, Grant, HttpServer, RequestHead};
use mcp_sansio_blocking::layers::{Journal, RateLimit};

type Note = String;

/// The scopes that a user has, one bit each.
const READ: u64 = 1;
const WRITE: u64 = 1 << 1;
const WRITERS: Visibility<Note> = Visibility::scopes(WRITE);

static TOOLS: [Tool<Note>; 2] = [
    Tool::new("show", "Shows the note", show).hints(ToolAnnotations::new().read_only(true)),
    Tool::new("change", "Replaces the note by the text", change)
        .input(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#)
        .visible(&WRITERS),
];

fn show(note: &mut Note, call: &mut Call<'_>) -> HandlerResult {
    call.text(note.as_str())
}

fn change(note: &mut Note, call: &mut Call<'_>) -> HandlerResult {
    *note = call.arguments().get("text").and_then(|text| text.text()).ok_or("text is missing")?.to_string();
    call.text("changed")
}

/// Decides about a request by its head. Real tokens are checked as in `guarded`.
fn authorize<'a>(head: &RequestHead<'_>) -> Access<'a> {
    let token = head.text("authorization").and_then(|value| value.split_once(' '));
    let user = match token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        Some((_, "reader")) => ("reader", READ),
        Some((_, "writer")) => ("writer", READ | WRITE),
        _ => return Access::Denied { status: 401, challenge: Some("Bearer") },
    };
    // The names are short enough.
    Grant::to(Some(user.0))
        .map_or(Access::Denied { status: 500, challenge: None }, |grant| Access::GrantedTo(grant.scopes(user.1)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).unwrap_or("8935".into());
    let server = HttpServer::bind(format!("127.0.0.1:{port}"))?;
    println!("url: http://{}/mcp", server.local_addr()?);
    let (journal, limit) = (Journal::new(std::io::stderr()), RateLimit::new(600, 6_000, 60_000));
    let layers: [&dyn Layer<Note>; 2] = [&journal, &limit];
    let service = Service::new("callers", "1.0").tools(&TOOLS).layers(&layers);
    Ok(server.authorize(&authorize).serve(&service, &mut "water the plants".into())?)
}
