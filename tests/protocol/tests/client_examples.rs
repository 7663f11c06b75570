//! The blocking client and the example servers, as real processes: over stdio and over HTTP, in all revisions.

use crate::programs;

use std::cell::RefCell;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Once;
use std::time::Duration;

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::{CallToolResult, ListResourcesResult, ListToolsResult};
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{
    Child, Client, ClientEvent, ClientHandle, ClientHandler, Http, Ignore, StopSignal, Transport,
};

/// Returns the command of an example. They are built again, once, since they may be old.
fn example(name: &str) -> Command {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| programs::build(&["calc", "sysmon"]));
    Command::new(programs::example(name))
}

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);

fn only(revision: Revision) -> ClientInfo<'static> {
    PROFILE.revisions(Revisions::NONE.with(revision))
}

#[test]
fn calc() {
    for revision in Revision::ALL {
        let info = only(revision);
        let mut client = Client::new(Child::spawn(example("calc"), &info).unwrap(), Ignore);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let arguments = serde_json::json!({ "a": 40, "b": 2 });
        let answer = client.request(&Request::call("add").arguments(&arguments)).unwrap();
        let result = answer.view::<CallToolResult<'_>>().unwrap();
        assert!(!result.is_error && answer.as_str().contains("\"42\""), "{answer:?}");
        let wrong = client.request(&Request::call("add")).unwrap();
        assert!(wrong.view::<CallToolResult<'_>>().unwrap().is_error);
        assert_eq!(client.close().unwrap().after, StopSignal::StdinClosed);
    }
}

/// Uses each item of the system monitor, which asks before some actions.
fn look_around<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>) {
    let revision = client.connect().unwrap().revision();
    let mut tools = Vec::new();
    for page in client.pages(Request::list_tools()) {
        tools.extend(
            page.unwrap().view::<ListToolsResult<'_>>().unwrap().iter().map(|tool| tool.unwrap().name().to_string()),
        );
    }
    assert!(tools.iter().any(|tool| tool == "memory"), "{revision:?}: {tools:?}");
    let answer = client.request(&Request::call("memory").timeout(10_000)).unwrap();
    assert!(!answer.view::<CallToolResult<'_>>().unwrap().is_error, "{answer:?}");
    let mut uris = Vec::new();
    for page in client.pages(Request::list_resources()) {
        let page = page.unwrap();
        uris.extend(
            page.view::<ListResourcesResult<'_>>().unwrap().iter().map(|found| found.unwrap().uri().to_string()),
        );
    }
    for uri in uris.iter().take(3) {
        client.request(&Request::read(uri.as_str())).unwrap();
    }
    assert!(client.request(&Request::read("sys://no/such/thing")).unwrap_err().server().is_some());
}

#[test]
fn sysmon() {
    for revision in Revision::ALL {
        let info = only(revision);
        let mut client = Client::new(Child::spawn(example("sysmon"), &info).unwrap(), Ignore);
        look_around(&mut client);
        client.close();
    }
    let mut client = Client::new(Child::spawn(example("sysmon"), &PROFILE).unwrap(), Ignore);
    assert_eq!(client.connect().unwrap().revision(), Revision::V2026_07_28);
}

/// The system monitor on a port of its own.
struct Served(std::process::Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve() -> Served {
    use std::io::BufRead;
    let mut command = example("sysmon");
    command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let url = loop {
        let line = lines.next().unwrap().unwrap();
        if let Some((_, url)) = line.split_once("serving at ") {
            break url.to_owned();
        }
    };
    // Reads on: with a full pipe the server would block.
    std::thread::spawn(move || lines.for_each(drop));
    Served(child, url)
}

#[test]
fn sysmon_over_http() {
    let server = serve();
    for revision in Revision::ALL {
        let info = only(revision);
        let mut client = Client::new(Http::new(&server.1, &info).unwrap(), Ignore);
        look_around(&mut client);
        client.close();
    }
}

/// The tool asks for an action on a process and gets the answer, in each revision's way.
fn ask<'m, T: Transport<'m>>(transport: T, goal: &'static str, expected: &str) {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let sink = asked.clone();
    let handler = move |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
        if let ClientEvent::Asked(questions) = event {
            for question in questions.questions() {
                sink.borrow_mut().push(question.params.as_str().to_owned());
                handle.reply(question.id, &ClientResult::accept(Raw::constant(goal))).unwrap();
            }
        }
    };
    let mut client = Client::new(transport, handler);
    client.connect().unwrap();
    let arguments = serde_json::json!({ "pid": std::process::id() });
    let call = Request::call("kill_hint").arguments(&arguments).timeout(10_000);
    let answer = client.request(&call).unwrap();
    assert!(answer.as_str().contains(expected), "{answer:?}");
    assert!(asked.borrow().len() == 1 && asked.borrow()[0].contains("What do you want"));
    // There is no further event.
    assert!(!client.turn(Duration::from_millis(1)).unwrap());
}

#[test]
fn questions() {
    let server = serve();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let info = only(revision);
        let pause = r#"{"goal":"pause"}"#;
        ask(Child::spawn(example("sysmon"), &info).unwrap(), pause, "kill -STOP");
        ask(Http::new(&server.1, &info).unwrap(), pause, "kill -STOP");
    }
    // The client may accept other content than the form offers.
    let info = only(Revision::V2025_11_25);
    for (goal, expected) in [(r#"{"goal":"end"}"#, "kill -TERM"), (r#"{"goal":"destroy"}"#, "was not among the goals")]
    {
        ask(Http::new(&server.1, &info).unwrap(), goal, expected);
    }
}
