//! Panics of handlers that are contained: each kind of handler, at once, late and again, in all revisions, over lines and
//! over HTTP. The server answers, and is as before.
mod common;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::http::*;
use common::*;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Progress, ServerChange};
use mcp_sansio::service::{
    Call, Caller, Complete, CustomRequest, DynamicList, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument,
    ReadResource, Resource, ResourceInfo, ResourceTemplate, Service, SourceError, Tool, ToolInfo,
};
use mcp_sansio_host::testing::{Conversation, Reply};

/// Keeps the panics of handlers, whose texts are constants, out of the output.
fn be_quiet() {
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref::<&str>().is_none() {
            eprintln!("{panic}");
        }
    }));
}

fn catch_panic(run: &mut dyn FnMut()) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_ok()
}

/// Panics while it is written.
struct Torn;

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a beginning")?;
        panic!("within an answer")
    }
}

fn plain(_: &mut World, _: &mut Call<'_>) -> HandlerResult {
    panic!("before an answer")
}

fn torn(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let _ = call.progress(Progress::new(1));
    call.text(format_args!("{Torn}"))
}

fn answered(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let _ = call.text("an answer");
    call.publish(ServerChange::Tools);
    panic!("after an answer")
}

fn asked(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.answer("roots").is_some() {
        panic!("with the answers");
    }
    let outcome = call.ask(&[InputRequest::roots("roots")], b"state");
    if call.arguments().get("now").is_some() {
        panic!("after a question");
    }
    outcome
}

fn suspended(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.is_resumed() {
        panic!("when it runs again");
    }
    let (token, done) = call.suspend(b"state")?;
    world.later.push((String::new(), token));
    if call.arguments().get("now").is_some() {
        panic!("after it was suspended");
    }
    Ok(done)
}

fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    world.later.push((String::new(), token));
    outcome
}

fn fine(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.text("fine")
}

fn streamed(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let outcome = call.stream_text(1);
    if call.arguments().get("now").is_some() {
        panic!("after the head of a stream");
    }
    outcome
}

fn source(_: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    if at >= 100 {
        panic!("within a content");
    }
    let len = bytes.len().min(10);
    bytes[..len].fill(b'x');
    Ok(len)
}

fn read(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text(format_args!("{Torn}"))
}

fn get(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user(format_args!("{Torn}"))
}

fn complete(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    complete.offer((0..5).map(|n| if n < 3 { n.to_string() } else { panic!("within the values") }))
}

fn other(_: &mut World, _: &mut CustomRequest<'_>) -> HandlerResult {
    panic!("in a method of one's own")
}

static TOOLS: [Tool<World>; 8] = [
    Tool::new("plain", "Panics", plain),
    Tool::new("torn", "Panics while it writes", torn),
    Tool::new("answered", "Panics after its answer", answered),
    Tool::new("asked", "Panics with a question", asked),
    Tool::new("suspended", "Panics when it runs again", suspended),
    Tool::new("later", "Answers later", later),
    Tool::new("fine", "Does not panic", fine),
    Tool::new("streamed", "Streams", streamed).source(source),
];
static RESOURCES: [Resource<World>; 1] = [Resource::new("test://r", "r", read)];
static TEMPLATES: [ResourceTemplate<World>; 1] = [ResourceTemplate::new("test://t/{x}", "t", read).complete(complete)];
static PROMPTS: [Prompt<World>; 1] =
    [Prompt::new("p", "A prompt", get).arguments(&[PromptArgument::optional("a")]).complete(complete)];

fn service() -> Service<'static, World> {
    be_quiet();
    Service::new("panics", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .other(other)
        .feature(ServerCapability::ToolsChanged)
        .on_cancel(|world, token| {
            world.cancelled.push(token);
            panic!("when it is cancelled")
        })
        .on_notification(|_, _| panic!("at a notification"))
        .contain_panics(catch_panic)
}

#[track_caller]
fn assert_panicked(reply: &Reply) {
    let error = reply.error().expect("an error");
    assert_eq!((error.code, &*error.message), (-32603, "The handler has panicked"));
    assert!(reply.requests.is_empty(), "{:?}", reply.requests);
}

#[test]
fn each_kind_of_handler_over_lines() {
    let service = service();
    for revision in Revision::ALL {
        let mut talk = Conversation::new(&service, World::default());
        talk.open(revision);
        // More of them than there are slots: each one is released.
        for _ in 0..20 {
            for tool in ["plain", "torn", "answered"] {
                assert_panicked(&talk.call(tool, &()));
                assert_eq!(talk.call("fine", &()).text(), "fine");
            }
            for tool in ["asked", "suspended", "streamed"] {
                assert_panicked(&talk.call(tool, &json!({"now": true})));
            }
            let streamed = talk.call("streamed", &());
            assert!(streamed.is_error() && streamed.text().starts_with(&"x".repeat(100)), "{}", streamed.text());
            assert_panicked(&talk.read("test://r"));
            assert_panicked(&talk.read("test://t/1"));
            assert_panicked(&talk.prompt("p", &()));
            let reference = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
            assert_panicked(&talk.request("completion/complete", &reference));
            assert_panicked(&talk.request("demo/x", &json!({})));
            assert!(talk.say(&notify("notifications/demo", json!({}))).is_empty());
        }
        assert_eq!(talk.call("fine", &()).text(), "fine");
    }
}

#[test]
fn late_answers_and_handlers_that_run_again() {
    let service = service();
    for revision in Revision::ALL {
        let mut talk = Conversation::new(&service, World::default());
        talk.open(revision);
        for _ in 0..20 {
            talk.state().later.clear();
            assert!(talk.call("later", &()).is_pending());
            let token = talk.state().later[0].1;
            assert_panicked(&Reply::of(talk.answer(token, |_, call| call.text(format_args!("{Torn}"))).unwrap()));
            assert!(talk.answer(token, |_, call| call.text("")).is_err(), "it is answered");

            assert!(talk.call("suspended", &()).is_pending());
            let token = talk.state().later[1].1;
            assert_panicked(&Reply::of(talk.resume(token).unwrap()));

            if revision < Revision::V2026_07_28 {
                let asked = talk.say(&call(revision.date(), 77, "asked", json!({})));
                let id = parse(&asked[0])["id"].clone();
                assert_panicked(&Reply::of(talk.say(&answer(&id, json!({"roots": []})))));
            }

            assert!(talk.say(&call(revision.date(), 78, "later", json!({}))).is_empty());
            assert!(talk.say(&cancel(78)).is_empty());
        }
        assert_eq!(talk.state().cancelled.len(), 20);
        assert_eq!(talk.call("fine", &()).text(), "fine");
    }
}

#[test]
fn in_a_batch_the_others_are_answered() {
    let service = service();
    let mut talk = Conversation::new(&service, World::default());
    talk.open(Revision::V2025_03_26);
    let of = |id, tool| call("2025-03-26", id, tool, json!({}));
    let lines = talk.say(&format!("[{},{},{},{}]", of(1, "fine"), of(2, "torn"), of(3, "plain"), of(4, "fine")));
    let answers = parse(lines.last().unwrap());
    let errors: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(errors, [None, Some(-32603), Some(-32603), None], "{lines:?}");
}

#[test]
fn each_kind_of_handler_over_http() {
    let mut web = Web::new();
    web.service = service();
    for n in 0..20 {
        for (method, params) in [
            ("tools/call", json!({"name": "plain"})),
            ("tools/call", json!({"name": "torn"})),
            ("tools/call", json!({"name": "answered"})),
            ("tools/call", json!({"name": "streamed", "arguments": {"now": true}})),
            ("resources/read", json!({"uri": "test://r"})),
            ("prompts/get", json!({"name": "p"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
            ),
        ] {
            let reply = web.modern(n, method, params);
            assert_eq!(reply.code(), -32603, "{reply:?}");
        }
        // A stream, because the client wants progress.
        let mut params = json!({"name": "torn", "arguments": {}});
        params["_meta"] = json!({"progressToken": 1});
        let reply = web.modern(n, "tools/call", params);
        let answer = match reply.stream {
            Some(stream) => web.pull(stream).json().pop().unwrap(),
            None => reply.body,
        };
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert_eq!(web.modern(n, "tools/call", json!({"name": "fine"})).text(), "fine");
        web.world.later.clear();
        let stream = web.modern(n, "tools/call", json!({"name": "later"})).opened();
        let token = web.world.later[0].1;
        let Web { endpoint, service, world, .. } = &mut web;
        let mut app = mcp_sansio_http::endpoint::App::new(service, world);
        endpoint.answer(&mut app, token, |_, call| call.text(format_args!("{Torn}"))).unwrap();
        assert_eq!(web.pull(stream).only()["error"]["code"], -32603, "{n}");
    }
    let session = web.open("2025-11-25");
    for n in 0..20 {
        let reply = web.call(&session, n, "torn", json!({}));
        assert_eq!(reply.code(), -32603, "{reply:?}");
        assert_eq!(web.call(&session, 100 + n, "fine", json!({})).text(), "fine");
    }
}

/// Lists whose lock is poisoned, or whose query fails.
struct Broken;

impl DynamicList<Tool<World>> for Broken {
    fn list(&self, _: &World, _: &Caller<'_>, _: usize, _: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        panic!("in a list")
    }
    fn run(&self, _: usize, _: &mut World, call: &mut Call<'_>) -> HandlerResult {
        call.text("never")
    }
}

impl DynamicList<Resource<World>> for Broken {
    fn list(&self, _: &World, _: &Caller<'_>, _: usize, _: &mut dyn FnMut(&ResourceInfo<'_>) -> bool) {
        panic!("in a list")
    }
    fn run(&self, _: usize, _: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
        read.text("never")
    }
}

#[test]
fn the_search_in_lists_from_the_state() {
    be_quiet();
    let service = Service::new("panics", "1.0")
        .tools(&TOOLS)
        .dynamic_tools(&Broken)
        .dynamic_resources(&Broken)
        .feature(ServerCapability::Subscribe)
        .contain_panics(catch_panic);
    for revision in Revision::ALL {
        let mut talk = Conversation::new(&service, World::default());
        talk.open(revision);
        for _ in 0..20 {
            assert_panicked(&talk.call("of the state", &()));
            assert_panicked(&talk.read("test://of-the-state"));
            assert_panicked(&talk.request("tools/list", &json!({})));
            if revision != Revision::V2026_07_28 {
                let reply = talk.request("resources/subscribe", &json!({"uri": "test://of-the-state"}));
                assert!(reply.error().is_some());
            }
            assert_eq!(talk.call("fine", &()).text(), "fine");
        }
    }
}

/// Without the option a panic goes through.
#[test]
fn it_is_an_option() {
    let service = Service::new("panics", "1.0").tools(&TOOLS);
    let mut talk = Conversation::new(&service, World::default());
    talk.open(Revision::V2026_07_28);
    be_quiet();
    assert!(!catch_panic(&mut || drop(talk.call("plain", &()))));
}
