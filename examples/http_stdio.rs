//! HTTP over stdin and stdout: a server, and with the argument `client` a client that starts it.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>; the bytes go
//! over pipes instead of a socket. Try it: `cargo run --example http_stdio client`. Under inetd, systemd (`Accept=yes`) or
//! `socat TCP-LISTEN:8934,bind=127.0.0.1,fork EXEC:target/debug/examples/http_stdio` each connection has a process of its own, which is
//! enough for 2026-07-28, since it has no sessions: `cargo run --example inspect -- call add a=1 b=2 http://127.0.0.1:8934/mcp`.
use std::process::{Command, Stdio};

use mcp_sansio::client::views::CallToolResult;
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::client::{Client, Http, HttpOptions, Ignore};
use mcp_sansio_blocking::http::HttpServer;

fn add(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i32, i32) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", i64::from(a) + i64::from(b)))
}

static TOOLS: [Tool<()>; 1] = [Tool::new("add", "Adds two integers", add)
    .input(r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#)];

/// Serves until the client closes stdin.
fn serve() -> std::io::Result<()> {
    HttpServer::stdio()?.serve(&Service::new("http_stdio", "1.0").tools(&TOOLS), &mut ())
}

fn use_it() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Command::new(std::env::current_exe()?).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(output), Some(input)) = (server.stdout.take(), server.stdin.take()) else { return Ok(()) };
    let info = ClientInfo::new("http_stdio", "1.0");
    let mut client = Client::new(Http::over(output, input, &info, HttpOptions::new())?, Ignore);
    println!("revision {}", client.connect()?.revision().date());
    let arguments = serde_json::json!({ "a": 1, "b": 2 });
    let answer = client.request(&Request::call("add").arguments(&arguments))?;
    println!("1 + 2 = {}", answer.view::<CallToolResult>()?.text().ok_or("the answer has no text")?);
    client.close(); // closes the stdin of the server, which then ends
    println!("{}", server.wait()?);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("client") => use_it(),
        _ => Ok(serve()?),
    }
}
