//! Walks through what a server offers, with the blocking client: lists all, takes the steps that it reads from stdin (one
//! JSON object a line), and prints what came of each (one JSON object a line).
//!
//! `walker REVISION|auto URL`, `walker REVISION|auto -- COMMAND ARGS…`

mod step;
mod watch;

use std::io::{BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use mcp_sansio::client::views::{Prompts, Resources, Templates, Tools, View};
use mcp_sansio::client::{Profile, Request};
use mcp_sansio::protocol::{ClientFeature, Feature};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{
    Child, ChildOptions, Client, Error, Http, HttpOptions, Options, Stderr, Transport, Way,
};
use serde_json::{Value, json};

use watch::Watch;

type Guide<T> = Client<'static, T, Watch>;

/// How long any one thing may take: on a busy machine some servers need as long to start.
const STEP: Duration = Duration::from_secs(25);

/// How long a server may take to end.
const END: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(revision), Some(target)) = (words.next(), words.next()) else {
        eprintln!("usage: walker REVISION|auto URL | walker REVISION|auto -- COMMAND ARGS...");
        return ExitCode::from(2);
    };
    let profile: &'static Profile<'static> = Box::leak(Box::new(profile(Revision::from_date(&revision))));
    // Servers that take long to start are not taken for older ones.
    let options = Options::new().timeout(STEP).probe_timeout(STEP);
    let begun = Instant::now();
    let done = if target == "--" {
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let options = ChildOptions::new().options(options).stderr(Stderr::Inherit).close_time(END);
        Child::spawn_with(command, profile, options).map(|child| {
            let mut child = walk(child, begun);
            let ended = child.end();
            tell(
                json!({"step": "end", "how": format!("{:?}", ended.how), "code": ended.status.and_then(|s| s.code())}),
            );
        })
    } else {
        Http::with(&target, profile, HttpOptions::new().options(options)).map(|http| {
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

/// A client that can be asked for everything.
fn profile(pinned: Option<Revision>) -> Profile<'static> {
    let profile = Profile::new("walker", "1.0")
        .title("Walker")
        .feature(ClientFeature::ElicitForm)
        .feature(ClientFeature::ElicitUrl)
        .feature(ClientFeature::Sampling)
        .feature(ClientFeature::SamplingTools)
        .roots_changed();
    match pinned {
        Some(revision) => profile.revisions(Revisions::NONE.with(revision)),
        None => profile,
    }
}

fn walk<T: Transport<'static>>(transport: T, begun: Instant) -> T {
    let mut client = Client::new(transport, Watch::default());
    if std::env::var_os("WALKER_TRACE").is_some() {
        client.trace(|way, message| {
            let arrow = if way == Way::Sent { ">" } else { "<" };
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
    let offered = client.engine().offered();
    let lists = [
        ("tools", Feature::Tools, Request::list_tools()),
        ("resources", Feature::Resources, Request::list_resources()),
        ("templates", Feature::Resources, Request::list_templates()),
        ("prompts", Feature::Prompts, Request::list_prompts()),
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

/// The pages, the items, what is wrong with them.
type Listed = (usize, Vec<Value>, Vec<String>);

pub(crate) fn list_all<T: Transport<'static>>(
    client: &mut Guide<T>,
    what: &str,
    list: Request<'_>,
) -> Result<Listed, Error> {
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
            "tools" => look!(Tools),
            "resources" => look!(Resources),
            "templates" => look!(Templates),
            _ => look!(Prompts),
        }
    }
    Ok((pages, items, flaws))
}

/// Says what came of a step, with all that happened meanwhile.
fn told<T: Transport<'static>>(client: &mut Guide<T>, mut came: Value) {
    came["events"] = Value::Array(std::mem::take(&mut client.handler().events));
    tell(came);
}

fn tell(came: Value) {
    let mut out = std::io::stdout().lock();
    // Whoever reads it may have gone.
    let _ = writeln!(out, "{came}").and_then(|()| out.flush());
}

pub(crate) fn value(raw: mcp_sansio::json::Raw<'_>) -> Value {
    serde_json::from_slice(raw.as_bytes()).unwrap_or_else(|error| json!({"unreadable": error.to_string()}))
}
