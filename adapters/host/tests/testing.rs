//! The module for tests of services, on a service with one of each thing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ServerCapability, code};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{Progress, RequestToken, RespondError, ServerChange};
use mcp_sansio::service::{
    Call, GetPrompt, HandlerResult, InputRequest, Prompt, ReadResource, Resource, Service, Tool,
};
use mcp_sansio_host::testing::{ClientServerPair, Conversation, Delivery, Reply};

#[derive(Default)]
struct State {
    later: Option<RequestToken>,
    calls: u32,
}

fn count(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.calls += 1;
    call.progress(Progress::new(1).of(2));
    let n: String = call.arg("n")?;
    call.json_raw(Raw::parse(format!("{{\"n\":{n}}}").as_bytes()).unwrap_or(Raw::constant("null")))
}

fn silent(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text("seven")
}

fn fails(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.error("no")
}

fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.later = Some(token);
    outcome
}

fn ask(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"ok":{"type":"boolean"}}}"#);
    match call.answer("sure") {
        Some(_) => call.text("done"),
        None => call.ask(&[InputRequest::elicit("sure", "Sure?", SCHEMA)], b""),
    }
}

const OUTPUT: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

fn publish(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.publish(ServerChange::Tools);
    call.text("published")
}

static TOOLS: [Tool<State>; 6] = [
    Tool::new("publish", "Publishes", publish),
    Tool::new("count", "Counts", count)
        .input(r#"{"type":"object","properties":{"n":{"type":"string","description":"JSON"}},"required":["n"]}"#)
        .output(OUTPUT),
    Tool::new("silent", "Says seven", silent).output(OUTPUT),
    Tool::new("fails", "Fails", fails).output(OUTPUT),
    Tool::new("later", "Comes later", later),
    Tool::new("ask", "Asks", ask).output(OUTPUT),
];

fn read(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("a note")
}

static RESOURCES: [Resource<State>; 1] = [Resource::new("test://note", "note", read)];

fn greet(_: &mut State, prompt: &mut GetPrompt<'_>) -> HandlerResult {
    prompt.user("Say hello")
}

static PROMPTS: [Prompt<State>; 1] = [Prompt::new("greet", "Greets", greet)];

const SERVICE: Service<'static, State> =
    Service::new("tested", "1.2.3").tools(&TOOLS).resources(&RESOURCES).prompts(&PROMPTS);

fn open(revision: Revision) -> Conversation<'static, State> {
    let mut conversation = Conversation::new(const { &SERVICE }, State::default()).cut(Delivery::Random(3));
    conversation.open(revision);
    conversation
}

/// Returns what a test says when it fails.
fn panics<T>(run: impl FnOnce() -> T) -> String {
    let error = catch_unwind(AssertUnwindSafe(run)).err().expect("it does not panic");
    error.downcast_ref::<String>().cloned().or_else(|| error.downcast_ref::<&str>().map(|text| (*text).into())).unwrap()
}

#[test]
fn calls_in_all_revisions() {
    for revision in Revision::ALL {
        let mut talk = open(revision);
        let reply = talk.call("count", &serde_json::json!({ "n": "7" }));
        assert!(!reply.is_error() && reply.requests.is_empty(), "{reply}");
        assert_eq!(reply.notifications.len(), 1, "{reply}");
        assert!(reply.notifications[0].contains(r#""progressToken":"test-2""#), "{reply}");
        // Structured content came with 2025-06-18; before, it is text.
        if reply.result().get("structuredContent").is_some() {
            assert_eq!(reply.structured().get("n").and_then(|n| n.u64()), Some(7));
        }
        assert_eq!(reply.text(), r#"{"n":7}"#);
        let reply = talk.call("fails", &());
        assert!(reply.is_error() && reply.text() == "no");
        assert_eq!(talk.call("nope", &()).error().unwrap().code, code::INVALID_PARAMS);
        assert_eq!(talk.read("test://note").text(), "a note");
        assert_eq!(talk.prompt("greet", &()).text(), "Say hello");
        assert!(talk.request("tools/list", &serde_json::json!({})).result().get("tools").is_some());
        assert_eq!(talk.state().calls, 1, "the looks aside call no handlers");
    }
}

#[test]
fn answers_must_fit_their_schema() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let words = panics(|| open(revision).call("count", &serde_json::json!({ "n": "\"7\"" })));
        assert!(
            words.starts_with("the answer of \"count\" does not fit its output schema: n: a string, expected integer"),
            "{words}"
        );
        let words = panics(|| open(revision).call("silent", &()));
        assert!(
            words.starts_with("the tool \"silent\" has an output schema, and answers without structuredContent"),
            "{words}"
        );
        // Without the check: as any request.
        let reply = open(revision).request("tools/call", &serde_json::json!({ "name": "silent" }));
        assert_eq!(reply.text(), "seven");
        let words = panics(|| reply.structured());
        assert!(words.starts_with("the result has no structuredContent"), "{words}");
    }
}

#[test]
fn what_is_not_answered_at_once() {
    let mut talk = open(Revision::V2026_07_28);
    let reply = talk.call("later", &());
    assert!(reply.is_pending() && panics(|| reply.text()).starts_with("there is no answer yet"));
    let token = talk.state().later.take().unwrap();
    let lines = talk.answer(token, |_, call| call.text("at last")).unwrap();
    assert_eq!(Reply::of(lines).text(), "at last");
    // A question is a request of the server up to 2025-11-25, and a result of its own kind from 2026-07-28 on.
    let asked = talk.call("ask", &());
    assert!(asked.result().get("resultType").unwrap().text().unwrap().eq_str("input_required"), "{asked}");
    let asked = open(Revision::V2025_11_25).call("ask", &());
    assert!(asked.is_pending() && asked.requests[0].contains("elicitation/create"), "{asked}");
    // Without the capability there is no question.
    let mut talk = Conversation::new(const { &SERVICE }, State::default()).capabilities(Raw::constant("{}"));
    talk.open(Revision::V2026_07_28);
    assert_eq!(talk.call("ask", &()).error().unwrap().code, code::MISSING_CAPABILITY);
}

#[test]
fn mistakes_of_a_test_are_told() {
    let mut talk = Conversation::new(const { &SERVICE }, State::default());
    assert!(panics(|| talk.call("count", &())).starts_with("open the conversation first"));
    talk.open(Revision::V2025_06_18);
    assert!(
        panics(|| talk.request("tools/list", &[1])).starts_with("the params of tools/list are not a JSON object: [1]")
    );
    assert_eq!(talk.call("fails", &()).text(), "no");
    const OLD: Service<'static, State> = SERVICE.revisions(Revisions::NONE.with(Revision::V2025_06_18));
    let mut talk = Conversation::new(const { &OLD }, State::default());
    assert!(panics(|| talk.open(Revision::V2024_11_05)).starts_with("the service does not have 2024-11-05"));
    let reply = talk.open(Revision::V2026_07_28);
    assert!(reply.error().is_some());
    // The revision that the test wants, and no other.
    assert!(panics(|| talk.snapshot()).starts_with("the request was refused"));
    talk.open(Revision::V2025_06_18);
    assert!(talk.snapshot().contains("tools/count/name: \"count\"\n"));
}

#[test]
fn a_change_must_be_declared() {
    for (change, capability, line) in [
        (ServerChange::Tools, ServerCapability::ToolsChanged, ".feature(ServerCapability::ToolsChanged)"),
        (ServerChange::Prompts, ServerCapability::PromptsChanged, ".feature(ServerCapability::PromptsChanged)"),
        (ServerChange::Resources, ServerCapability::ResourcesChanged, ".feature(ServerCapability::ResourcesChanged)"),
        (ServerChange::Resource("test://note"), ServerCapability::Subscribe, ".feature(ServerCapability::Subscribe)"),
    ] {
        let words = panics(|| open(Revision::V2025_11_25).publish(change));
        assert!(words.contains(line), "{words}");
        let declared = SERVICE.feature(capability);
        let mut talk = Conversation::new(&declared, State::default());
        talk.open(Revision::V2025_11_25);
        talk.request("resources/subscribe", &serde_json::json!({ "uri": "test://note" }));
        assert_eq!(talk.publish(change).len(), 1, "{line}");
        // A service of the legacy revisions alone declares it in another way.
        let old = declared.revisions(Revisions::NONE.with(Revision::V2025_11_25));
        let _ = Conversation::new(&old, State::default()).publish(change);
    }
}

#[test]
fn a_handler_must_declare_its_changes_too() {
    let words = panics(|| open(Revision::V2026_07_28).call("publish", &()));
    assert!(words.contains("add `.feature(ServerCapability::ToolsChanged)` to the service"), "{words}");
    let declared = SERVICE.feature(ServerCapability::ToolsChanged);
    let mut talk = Conversation::new(&declared, State::default());
    talk.open(Revision::V2025_11_25);
    let reply = talk.call("publish", &());
    assert!(reply.text() == "published" && reply.notifications[0].contains("tools/list_changed"), "{reply}");
}

/// The first answer is the answer.
#[test]
fn lines_of_a_server_that_answers_twice() {
    let line = |text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let reply = Reply::of(vec![line("one"), line("two")]);
    assert_eq!((reply.text(), &reply.notifications[..]), ("one".into(), &[line("two")][..]));
}

/// The connection for questions of the test itself is opened as clients do it.
#[test]
fn a_connection_aside_is_initialized() {
    for (revision, told) in [(Revision::V2025_11_25, 1), (Revision::V2026_07_28, 0)] {
        let service = Service::new("told", "1").on_notification(|told: &mut u32, _| *told += 1);
        let mut talk = Conversation::new(&service, 0);
        talk.open(revision);
        let before = *talk.state();
        assert_eq!(before, told);
        talk.snapshot();
        assert_eq!(*talk.state() - before, told, "{revision:?}");
    }
}

#[test]
fn time_passes_on_demand() {
    static CLOCK: [Tool<()>; 1] = [Tool::new("now", "Says the time", |(): &mut (), call| {
        let now = call.now();
        call.text(now)
    })];
    let service = Service::new("clock", "1").tools(&CLOCK);
    let mut talk = Conversation::new(&service, ());
    talk.open(Revision::V2026_07_28);
    assert_eq!(talk.call("now", &()).text(), "0");
    assert!(talk.wait(40).is_empty() && talk.wait(2).is_empty());
    assert_eq!(talk.call("now", &()).text(), "42");
    let info = ClientInfo::new("editor", "1.0");
    let mut pair = ClientServerPair::new(&info, &service, ());
    let mut heard = Vec::new();
    let mut handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Done { outcome: Ok(result), .. } => heard.push(result.to_string()),
        _ => drop(handle.send(&Request::call("now")).unwrap()),
    };
    pair.client.client.connect();
    pair.wait(7, &mut handler);
    pair.client.handle().send(&Request::call("now")).unwrap();
    pair.wait(5, &mut handler);
    assert!(heard.len() == 2 && heard[0].contains(r#""text":"7""#) && heard[1].contains(r#""text":"12""#), "{heard:?}");
}

#[test]
fn an_initialized_client_says_so() {
    let service = Service::new("told", "1").on_notification(|told: &mut u32, _| *told += 1);
    let mut talk = Conversation::new(&service, 0);
    talk.open(Revision::V2025_11_25);
    assert_eq!(*talk.state(), 1);
}

/// A handler that asks sees that its client has gone; a request that is put off gets an error.
#[test]
fn the_end_of_the_input_ends_all_requests() {
    let mut talk = open(Revision::V2025_11_25);
    assert!(talk.call("later", &()).is_pending() && talk.call("ask", &()).is_pending());
    let last: Vec<_> = talk.finish().into_iter().map(|line| Reply::of(vec![line])).collect();
    assert!(last.len() == 2 && last[0].text() == "done" && last[1].error().is_some(), "{last:?}");
    assert!(talk.finish().is_empty());
}

#[test]
fn another_client_does_not_get_what_was_of_the_first() {
    let mut talk = open(Revision::V2025_11_25);
    assert!(talk.call("later", &()).is_pending());
    let token = talk.state().later.take().unwrap();
    talk.server.progress(token, Progress::new(1));
    talk.server.new_peer();
    assert_eq!(talk.answer(token, |_, call| call.text("too late")), Err(RespondError::Stale));
    let hello = talk.open(Revision::V2025_06_18);
    assert!(hello.notifications.is_empty() && hello.result().get("serverInfo").is_some(), "{hello}");
}

/// Run by [`snapshots_are_written_when_that_is_asked_for`] with a file.
#[test]
#[ignore = "a part of another test"]
fn snapshot_to_a_file() {
    mcp_sansio_host::testing::assert_snapshot(std::env::var_os("SNAPSHOT_FILE").unwrap(), "a: 1\n");
}

#[test]
fn snapshots_are_written_when_that_is_asked_for() {
    let file = std::env::temp_dir().join(format!("mcp-snapshot-{}", std::process::id()));
    let passes = |update: &str| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "snapshot_to_a_file", "--ignored"]).env("SNAPSHOT_FILE", &file);
        command.env("UPDATE_SNAPSHOTS", update).output().unwrap().status.success()
    };
    assert!(!passes("0") && !file.exists(), "it is compared with a file that is not there");
    assert!(passes("1") && std::fs::read(&file).unwrap() == b"a: 1\n");
    std::fs::write(&file, "a: 2\n").unwrap();
    assert!(!passes("") && passes("1") && passes("0"));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_snapshot_has_what_clients_see() {
    let text = open(Revision::V2026_07_28).snapshot();
    for line in [
        "capabilities/tools: {}",
        "_meta/io.modelcontextprotocol/serverInfo/name: \"tested\"",
        "tools/count/inputSchema/properties/n/description: \"JSON\"",
        "tools/count/outputSchema/required: [\"n\"]",
        "tools/ask/description: \"Asks\"",
        "resources/test://note/name: \"note\"",
        "prompts/greet/name: \"greet\"",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("1.2.3"), "{text}");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), text.lines().count(), "each line is there once");
    // All pages of a list.
    let paged = SERVICE.page_size(2);
    let mut talk = Conversation::new(&paged, State::default());
    assert_eq!(talk.snapshot(), text);
}
