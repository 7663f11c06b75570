//! A client: starts a server as a child process, lists its tools and calls one.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/server/tools>.
//! Try it: `cargo build --examples && cargo run --example client -- target/debug/examples/calc`.
use std::process::Command;

use mcp_sansio::client::views::{CallToolResult, ListToolsResult};
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio_blocking::client::{Child, Client, Ignore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::args().nth(1).ok_or("usage: client PROGRAM")?;
    let info = ClientInfo::new("example", "1.0");
    // `Ignore` drops logs and changes and refuses questions. A function in its place sees them all.
    let mut client = Client::new(Child::spawn(Command::new(program), &info)?, Ignore);

    // Finds out which revision the server speaks: `server/discover` first, `initialize` where that is unknown.
    client.connect()?;
    for page in client.pages(Request::list_tools()) {
        for tool in page?.view::<ListToolsResult>()?.iter().flatten() {
            println!("{}", tool.name());
        }
    }

    // One request has one outcome, after 5 seconds at the latest.
    let arguments = serde_json::json!({"a": 1, "b": 2});
    match client.request(&Request::call("add").arguments(&arguments).timeout(5_000)) {
        Ok(answer) => println!("add: {}", answer.view::<CallToolResult>()?.text().ok_or("no text")?),
        Err(error) => println!("add: {error}"),
    }

    // Closes the child's standard input and waits; then SIGTERM, then SIGKILL.
    client.close();
    Ok(())
}
