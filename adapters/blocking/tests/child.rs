//! Clients of child processes: servers that behave, and servers that do not.
#![cfg(all(feature = "client", unix))]

use std::process::Command;
use std::time::{Duration, Instant};

use mcp_sansio::client::views::{CallResult, Tools};
use mcp_sansio::client::{Lost, Profile, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::Revision;
use mcp_sansio::service::{Call, Outcome, Service, Tool};
use mcp_sansio_blocking::client::{Child, ChildOptions, Client, Error, Event, How, Ignore, Options, Stderr};

fn add(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", a + b))
}

static TOOLS: [Tool<()>; 1] = [Tool::new("add", "Adds", add)];

/// What this program is when [`own_server`] runs it: a server that behaves.
#[test]
#[ignore = "a server"]
fn server() {
    mcp_sansio_blocking::serve_stdio(&Service::new("own", "1").tools(&TOOLS), &mut ()).unwrap();
}

/// The harness says a few words of its own on stdout, which a client has to bear.
fn own_server() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    command
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

static PROFILE: Profile<'static> = Profile::new("test", "1");

#[test]
fn a_whole_life() {
    let mut client = Client::new(Child::spawn(own_server(), &PROFILE).unwrap(), Ignore);
    let hello = client.connect().unwrap();
    assert_eq!(hello.revision(), Revision::V2026_07_28);
    let names: Vec<_> = client
        .pages(Request::list_tools())
        .flat_map(|page| {
            page.unwrap()
                .view::<Tools>()
                .unwrap()
                .iter()
                .map(|tool| tool.unwrap().name().to_string())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(names, ["add"]);
    let arguments = Raw::constant(r#"{"a":1,"b":2}"#);
    let answer = client.request(&Request::call("add").arguments(&arguments)).unwrap();
    assert!(answer.as_str().contains("\"3\""), "{answer:?}");
    answer.view::<CallResult>().unwrap();
    let begun = Instant::now();
    let ended = client.close().end();
    assert_eq!(ended.how, How::Closed);
    assert!(begun.elapsed() < Duration::from_secs(1));
}
