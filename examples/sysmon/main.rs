//! Tells a model how the system does that it runs on: tools, resources with updates, a prompt. Linux only.
//!
//! `cargo run --release --example sysmon` shows how to connect a host to it.

mod resources;
mod system;
mod tools;
mod watch;

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use mcp_sansio::protocol::Feature;
use mcp_sansio::server::Token;
use mcp_sansio::service::Service;
use mcp_sansio_smol::{Answers, Ended, Serve, channel};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const INSTRUCTIONS: &str = "\
Figures of the machine this server runs on, measured when you ask. Begin with load, memory, disk and processes for an \
overview; use watch to see how things develop over some seconds. Sizes are in bytes. Nothing here changes the system: \
kill_hint asks the user, and then only says what could be done.";

const USAGE: &str = "\
sysmon: an MCP server that tells how this system does

Usage: sysmon [OPTIONS]     serves MCP over stdin and stdout

  --page-size N   list so many tools, resources and prompts at once (default: all)
  --version       print the version
  --help          print this
";

/// The state of the handlers.
struct Monitor {
    /// For tasks that answer later.
    answers: Answers<Monitor>,
    /// Calls of `watch` that are under way.
    watches: HashMap<Token, smol::Task<Result<(), Ended>>>,
}

impl Monitor {
    /// A call was answered or cancelled: dropping its task ends it.
    fn forget(&mut self, token: Token) {
        self.watches.remove(&token);
    }
}

enum Command {
    Serve { page_size: Option<usize> },
    Print(String),
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Command::Print(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Command::Serve { page_size }) => match smol::block_on(serve(page_size)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("sysmon: {error}");
                ExitCode::FAILURE
            }
        },
        Err(wrong) => {
            eprintln!("sysmon: {wrong}; see sysmon --help");
            ExitCode::from(2)
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut page_size = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(Command::Print(USAGE.into())),
            "--version" | "-V" => return Ok(Command::Print(format!("sysmon {VERSION}\n"))),
            "--page-size" => {
                let size = args.next().ok_or("--page-size needs a number")?;
                let parsed = size.parse().ok().filter(|size| *size > 0);
                page_size = Some(parsed.ok_or_else(|| format!("--page-size needs a number from 1 on, not {size:?}"))?);
            }
            _ => return Err(format!("there is no option {arg:?}")),
        }
    }
    Ok(Command::Serve { page_size })
}

async fn serve(page_size: Option<usize>) -> io::Result<()> {
    if io::stdin().is_terminal() {
        greet();
    }
    let mut service = Service::new("sysmon", VERSION)
        .title("System monitor")
        .description("Tells how the system does that it runs on")
        .instructions(INSTRUCTIONS)
        .tools(&tools::TOOLS)
        .resources(&resources::RESOURCES)
        .templates(&resources::TEMPLATES)
        .prompts(&resources::PROMPTS)
        .feature(Feature::Subscribe)
        .feature(Feature::Logging)
        .on_cancel(Monitor::forget);
    if let Some(entries) = page_size {
        service = service.page_size(entries);
    }
    let (answers, late) = channel();
    let mut monitor = Monitor { answers, watches: HashMap::new() };
    Serve::new(&service).late(late).watch(Duration::from_secs(1), resources::publish).stdio(&mut monitor).await
}

/// A person has started it by hand: says what it is, and how to go on.
fn greet() {
    let command = std::env::current_exe().map_or_else(|_| "sysmon".into(), |path| path.display().to_string());
    let command = serde_json::Value::from(command);
    eprintln!(
        "\
sysmon {VERSION}: an MCP server that tells how this system does. It speaks JSON-RPC over stdin and stdout, so you will \
want to connect a host. Most take this block in their configuration:

{{
  \"mcpServers\": {{
    \"sysmon\": {{ \"command\": {command} }}
  }}
}}

Or paste a line, and end with Ctrl-D:

{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"load\",\"_meta\":\
{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}
"
    );
}
