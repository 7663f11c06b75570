//! Reports the state of the system to a model: tools, resources with updates, events, a prompt, a live panel. Linux only.
//!
//! `cargo run --release --example sysmon` shows how to connect a host to it.

mod events;
mod panel;
mod resources;
mod system;
mod tools;
mod watch;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::Server;
use mcp_sansio::service::Service;
use mcp_sansio_extensions::events::{deliver, end_stream, turn};
use mcp_sansio_http::endpoint::App;
use mcp_sansio_http::seal::HmacSeal;
use mcp_sansio_smol::http::{HttpServer, HttpServerOptions, SessionSeal};
use mcp_sansio_smol::{Serve, Work, channel};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const INSTRUCTIONS: &str = "\
Figures of the machine this server runs on, measured when you ask. Begin with load, memory, disk and processes for an \
overview; use watch to see how things develop over some seconds. Sizes are in bytes. Nothing here changes the system: \
kill_hint asks the user, and then only says what could be done.";

const USAGE: &str = "\
sysmon: an MCP server that tells how this system does

Usage: sysmon [OPTIONS]     serves MCP over stdin and stdout, or over HTTP

  --http ADDRESS  serve over HTTP at ADDRESS:PORT, like 127.0.0.1:8931 (port 0: any
                  that is free), or at unix:/path, for this user alone; the URL is
                  printed on stderr
  --session-key FILE
                  serve sessions of other processes with the same key too, over HTTP;
                  the file has 32 secret bytes. Given twice, the second key is accepted
                  as well, while keys change
  --page-size N   list so many tools, resources and prompts at once (default: all)
  --version       print the version
  --help          print this
";

/// The interval of updates to subscribers.
const EVERY_SECOND: Duration = Duration::from_secs(1);

/// The most calls of `watch` at once.
const MOST_WATCHES: usize = 100;

/// The state of the handlers.
struct Monitor {
    /// The calls of `watch` under way.
    watches: Work<Monitor>,
    cpu: panel::CpuLoad,
    news: events::News,
}

/// The transport to serve on.
#[derive(Default)]
struct Options {
    page_size: Option<usize>,
    /// The address for HTTP. `None` means stdio.
    http: Option<Address>,
    /// The keys of session ids: the one to seal with, and another one to accept.
    keys: Vec<[u8; 32]>,
}

enum Address {
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(String),
}

enum Command {
    Serve(Options),
    Print(String),
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Command::Print(text)) => {
            // `print!` would panic if standard output is full or closed.
            let printed = io::stdout().write_all(text.as_bytes());
            if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(Command::Serve(options)) => match smol::block_on(serve(&options)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(format_args!("sysmon: {error}"));
                ExitCode::FAILURE
            }
        },
        Err(wrong) => {
            say(format_args!("sysmon: {wrong}; see sysmon --help"));
            ExitCode::from(2)
        }
    }
}

/// Writes a line to standard error. If standard error is full or closed, the server goes on; `eprintln!` would panic.
fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(Command::Print(USAGE.into())),
            "--version" | "-V" => return Ok(Command::Print(format!("sysmon {VERSION}\n"))),
            "--page-size" => {
                let size = args.next().ok_or("--page-size needs a number")?;
                let parsed = size.parse().ok().filter(|size| *size > 0);
                options.page_size =
                    Some(parsed.ok_or_else(|| format!("--page-size needs a number from 1 on, not {size:?}"))?);
            }
            "--http" => {
                let address = args.next().ok_or("--http needs an address and a port, like 127.0.0.1:8931")?;
                let parsed = match address.strip_prefix("unix:") {
                    Some(path) => Some(Address::Unix(path.into())),
                    None => address.parse().ok().map(Address::Tcp),
                };
                options.http = Some(
                    parsed.ok_or_else(|| format!("--http needs an address like 127.0.0.1:8931, not {address:?}"))?,
                );
            }
            "--session-key" => {
                let file = args.next().ok_or("--session-key needs a file with 32 bytes")?;
                let key = std::fs::read(&file).map_err(|error| format!("--session-key {file}: {error}"))?;
                let key = key.try_into().map_err(|_| format!("--session-key {file}: it must have 32 bytes"))?;
                options.keys.push(key);
            }
            _ => return Err(format!("there is no option {arg:?}")),
        }
    }
    if options.keys.len() > 2 || !options.keys.is_empty() && options.http.is_none() {
        return Err("--session-key is for --http, and at most two keys are in use".into());
    }
    Ok(Command::Serve(options))
}

async fn serve(options: &Options) -> io::Result<()> {
    let mut service = Service::new("sysmon", VERSION)
        .title("System monitor")
        .description("Reports on the system that it runs on")
        .instructions(INSTRUCTIONS)
        .tools(&tools::TOOLS)
        .resources(&resources::RESOURCES)
        .templates(&resources::TEMPLATES)
        .prompts(&resources::PROMPTS)
        .extend(&panel::EXTENSIONS)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::Logging)
        .on_cancel(|monitor: &mut Monitor, token| {
            monitor.watches.cancel(token);
            end_stream(monitor, token);
        });
    if let Some(entries) = options.page_size {
        service = service.page_size(entries);
    }
    let (late, receiver) = channel();
    let watches = Work::new(late, MOST_WATCHES).spawner(|future| smol::spawn(future).detach());
    // Over HTTP the clock of the server is the time of day.
    let epoch = if options.http.is_some() { 0 } else { events::News::epoch() };
    let mut monitor = Monitor { watches, cpu: panel::CpuLoad::new(), news: events::News::new(epoch) };
    if let Some(address) = &options.http {
        let server = match address {
            Address::Tcp(address) => HttpServer::bind(address)?,
            Address::Unix(path) => HttpServer::bind_unix(path)?,
        };
        let server = server.options(http_options(&options.keys)).late(receiver).watch(EVERY_SECOND, |_, endpoint| {
            resources::CHANGING.into_iter().for_each(|change| endpoint.publish(change));
        });
        let server = server.tick(|app, endpoint, now| {
            let (look, service) = (events::look(app.state, now), app.service);
            let next = turn(app.state, now, |monitor, token| {
                endpoint.answer(&mut App::new(service, monitor), token.as_custom(), deliver)
            });
            look.into_iter().chain(next).min()
        });
        match address {
            Address::Tcp(_) => say(format_args!("sysmon: serving at http://{}/mcp", server.local_addr()?)),
            Address::Unix(path) => say(format_args!("sysmon: serving at unix:{path}")),
        }
        return server.serve(&service, &mut monitor).await;
    }
    if io::stdin().is_terminal() {
        greet();
    }
    let watch = |_: &mut Monitor, server: &mut Server<'_>| {
        resources::CHANGING.into_iter().for_each(|change| server.publish(change));
    };
    let serve =
        Serve::new(&service).late(receiver).watch(EVERY_SECOND, watch).tick(|service, monitor, server, out, now| {
            let look = events::look(monitor, now);
            let next = turn(monitor, now, |monitor, token| {
                service.answer(monitor, token.as_custom(), server, out, deliver).map(drop)
            });
            look.into_iter().chain(next).min()
        });
    serve.stdio(&mut monitor).await
}

/// Returns the options of the server: its sessions travel if there is a key.
fn http_options(keys: &[[u8; 32]]) -> HttpServerOptions {
    let options = HttpServerOptions::new();
    let seal = match keys {
        [] => return options,
        [key] => HmacSeal::new(key),
        [key, other, ..] => HmacSeal::new(key).accept(other),
    };
    // For as long as the process.
    options.session_seal(SessionSeal::new(Box::leak(Box::new(seal))))
}

/// Explains the program to a user who has started it by hand.
fn greet() {
    let command = std::env::current_exe().map_or_else(|_| "sysmon".into(), |path| path.display().to_string());
    let command = serde_json::Value::from(command);
    say(format_args!(
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
    ));
}
