//! Walks through a server with the blocking client: lists every item, does the steps that it reads from stdin (one
//! JSON object in each line), and prints the outcome of each (one JSON object in each line).
//!
//! `walker REVISION|auto URL`, `walker REVISION|auto -- COMMAND ARGS…`

mod step;
mod watch;

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use mcp_sansio::client::views::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, View,
};
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::protocol::{ClientCapability, ServerCapability};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{
    Child, ChildExit, ChildOptions, Client, ClientError, ClientOptions, Direction, Http, HttpOptions, Stderr, Transport,
};
use serde_json::{Value, json};

use watch::Watch;

type Guide<T> = Client<'static, T, Watch>;

/// The time for each step: on a busy machine some servers need as long to start.
const STEP: Duration = Duration::from_secs(25);

/// The time for a server to end.
const END: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(revision), Some(target)) = (words.next(), words.next()) else {
        eprintln!("usage: walker REVISION|auto URL | walker REVISION|auto -- COMMAND ARGS...");
        return ExitCode::from(2);
    };
    let info: &'static ClientInfo<'static> = Box::leak(Box::new(info(Revision::from_date(&revision))));
    // A server that starts slowly must not be taken for an older one.
    let options = ClientOptions::DEFAULT.timeout(STEP).probe_timeout(STEP);
    let begun = Instant::now();
    let done = if target == "--" {
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let options = ChildOptions::new().options(options).stderr(Stderr::Inherit).close_time(END);
        Child::spawn_with(command, info, options).map(|child| {
            let ended = walk(child, begun);
            let after = ended.map(|ended| format!("{:?}", ended.after));
            tell(json!({"step": "end", "after": after, "code": ended.and_then(|ended| ended.status?.code())}));
        })
    } else {
        Http::with(&target, info, HttpOptions::new().options(options)).map(|http| {
            walk(http, begun);
            tell(json!({"step": "end"}));
        })
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(json!({"step": "start", "failure": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}

/// Returns a info with all capabilities.
fn info(pinned: Option<Revision>) -> ClientInfo<'static> {
    let info = ClientInfo::new("walker", "1.0")
        .title("Walker")
        .feature(ClientCapability::ElicitForm)
        .feature(ClientCapability::ElicitUrl)
        .feature(ClientCapability::Sampling)
        .feature(ClientCapability::SamplingTools)
        .roots_changed();
    match pinned {
        Some(revision) => info.revisions(Revisions::NONE.with(revision)),
        None => info,
    }
}

fn walk(transport: impl Transport<'static>, begun: Instant) -> Option<ChildExit> {
    let mut client = Client::new(transport, Watch::default());
    if std::env::var_os("WALKER_TRACE").is_some() {
        client.trace(|way, message| {
            let arrow = if way == Direction::Sent { ">" } else { "<" };
            eprintln!("{arrow} {}", String::from_utf8_lossy(message));
        });
    }
    if opened(&mut client, begun) {
        look_around(&mut client);
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match serde_json::from_str(&line) {
                Ok(step) => {
                    let begun = Instant::now();
                    let mut came = step::take(&mut client, &step);
                    came["took"] = json!(begun.elapsed().as_millis() as u64);
                    told(&mut client, came);
                }
                Err(error) => tell(json!({"failure": format!("{line}: {error}")})),
            }
        }
    }
    client.close()
}

fn opened<T: Transport<'static>>(client: &mut Guide<T>, begun: Instant) -> bool {
    let came = match client.connect() {
        Ok(hello) => json!({
            "step": "connect",
            "revision": hello.revision().date(),
            "result": value(hello.raw()),
            "server": hello.server().map(value),
        }),
        Err(error) => json!({"step": "connect", "failure": error.to_string()}),
    };
    let is_open = came.get("failure").is_none();
    let mut came = came;
    came["took"] = json!(begun.elapsed().as_millis() as u64);
    told(client, came);
    is_open
}

/// Lists all that the server says it has.
fn look_around<T: Transport<'static>>(client: &mut Guide<T>) {
    let offered = client.engine().offered;
    let lists = [
        ("tools", ServerCapability::Tools, Request::list_tools()),
        ("resources", ServerCapability::Resources, Request::list_resources()),
        ("templates", ServerCapability::Resources, Request::list_templates()),
        ("prompts", ServerCapability::Prompts, Request::list_prompts()),
    ];
    for (what, feature, list) in lists {
        if !offered.has(feature) {
            continue;
        }
        let came = match list_all(client, what, list) {
            Ok((pages, items, flaws)) => {
                json!({"step": "list", "name": what, "pages": pages, "items": items, "flaws": flaws})
            }
            Err(error) => step::failed(json!({"step": "list", "name": what}), &error),
        };
        told(client, came);
    }
}

/// The number of pages, the items, and their errors.
type Listed = (usize, Vec<Value>, Vec<String>);

pub(crate) fn list_all<T: Transport<'static>>(
    client: &mut Guide<T>,
    what: &str,
    list: Request<'_>,
) -> Result<Listed, ClientError> {
    let (mut pages, mut items, mut flaws) = (0, Vec::new(), Vec::new());
    for page in client.pages(list) {
        let page = page?;
        pages += 1;
        macro_rules! look {
            ($list:ident) => {
                match page.view::<$list<'_>>() {
                    Ok(view) => {
                        for item in view.iter() {
                            match item.and_then(|item| item.check().map(|()| item)) {
                                Ok(item) => items.push(value(item.raw())),
                                Err(flaw) => flaws.push(flaw.to_string()),
                            }
                        }
                    }
                    Err(flaw) => flaws.push(flaw.to_string()),
                }
            };
        }
        match what {
            "tools" => look!(ListToolsResult),
            "resources" => look!(ListResourcesResult),
            "templates" => look!(ListResourceTemplatesResult),
            _ => look!(ListPromptsResult),
        }
    }
    Ok((pages, items, flaws))
}

/// Prints the outcome of a step, with all events in between.
fn told<T: Transport<'static>>(client: &mut Guide<T>, mut came: Value) {
    came["events"] = Value::Array(std::mem::take(&mut client.handler.events));
    tell(came);
}

fn tell(came: Value) {
    let mut out = std::io::stdout().lock();
    // The reader of stdout may have closed it.
    let _ = writeln!(out, "{came}").and_then(|()| out.flush());
}

pub(crate) fn value(raw: mcp_sansio::json::Raw<'_>) -> Value {
    serde_json::from_slice(raw.as_bytes()).unwrap_or_else(|error| json!({"unreadable": error.to_string()}))
}
