//! Late answers over HTTP: of each kind of request, and of handlers that are resumed and then ask.
use crate::common;

use common::http::*;
use common::*;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::RespondError;
use mcp_sansio::server::{Progress, RpcError, ServerChange};
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerResult, InputRequest, Prompt, ReadResource, Resource, Service,
    Tool,
};
use mcp_sansio_host::{LateReceiver, LateSender, LogMessage, channel};
use mcp_sansio_http::endpoint::{Access, App, StreamId};

fn job(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.notified.push(call.principal().unwrap_or("nobody").to_owned());
    if call.answer("roots").is_some() {
        return call.text(std::str::from_utf8(call.state()).unwrap());
    }
    if call.is_resumed() {
        return call.ask(&[InputRequest::roots("roots")], b"as asked");
    }
    let (token, done) = call.suspend(b"")?;
    world.later.push((String::new(), token));
    Ok(done)
}

fn read_later(world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    let (token, outcome) = read.later();
    world.later.push((String::new(), token));
    outcome
}

fn get_later(world: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let (token, outcome) = get.later();
    world.later.push((String::new(), token));
    outcome
}

fn complete_later(world: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    let (token, outcome) = complete.later();
    world.later.push((String::new(), token));
    outcome
}

fn other_later(world: &mut World, other: &mut CustomRequest<'_>) -> HandlerResult {
    let (token, outcome) = other.later();
    world.later.push((String::new(), token));
    outcome
}

static TOOLS: [Tool<World>; 1] = [Tool::new("job", "Asks after it has waited", job).reserve(1024)];
static RESOURCES: [Resource<World>; 1] = [Resource::new("t://later", "later", read_later)];
static ARGUMENTS: [mcp_sansio::service::PromptArgument; 1] = [mcp_sansio::service::PromptArgument::optional("who")];
static PROMPTS: [Prompt<World>; 1] =
    [Prompt::new("later", "Later", get_later).arguments(&ARGUMENTS).complete(complete_later)];

fn web() -> Web {
    let mut web = Web::new();
    web.service = Service::new("late", "1.0").tools(&TOOLS).resources(&RESOURCES).prompts(&PROMPTS).other(other_later);
    web.authorize = Box::new(|_| Access::Granted { principal: Some("ada") });
    web
}

fn resume(web: &mut Web) -> Result<(), RespondError> {
    let token = web.world.later[0].1;
    let Web { endpoint, service, world, .. } = web;
    endpoint.resume(&mut App::new(service, world), token)
}

/// In a session, the question goes out on the stream of its request, and so does the reply.
#[test]
fn a_resumed_handler_asks_on_its_own_stream() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut web = web();
        let session = web.open(revision);
        let other = web.listen(&session, None).opened();
        let stream = web.call(&session, 1, "job", json!({})).opened();
        assert!(web.pull(stream).json().is_empty());
        assert_eq!(resume(&mut web), Ok(()));
        assert!(web.is_ready(stream));
        let asked = web.pull(stream).json().remove(0);
        assert_eq!(asked["method"], "roots/list", "{asked}");
        assert_eq!(web.say(&session, &answer(&asked["id"], json!({"roots": []}))).status, 202);
        assert_eq!(text(&web.pull(stream).only().to_string()), "as asked");
        assert!(web.pull(other).json().is_empty());
        assert_eq!(resume(&mut web), Err(RespondError::Stale));
        assert_eq!(web.world.notified, ["ada"; 3]);
    }
}

/// Without a session, the question is the result, and it belongs to the principal of the request.
// spec: T115
#[test]
fn a_resumed_handler_asks_by_its_result() {
    let mut web = web();
    let params = json!({"name": "job", "arguments": {"text": "\"\u{e9}\""}});
    let stream = web.modern(1, "tools/call", params.clone()).opened();
    assert_eq!(resume(&mut web), Ok(()));
    let asked = web.pull(stream).only();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut retry = params;
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] = json!({"roots": {"roots": []}});
    assert_eq!(web.modern(2, "tools/call", retry.clone()).text(), "as asked");
    assert_eq!(web.world.notified, ["ada"; 3]);
    // Another principal cannot use the state.
    web.authorize = Box::new(|_| Access::Granted { principal: Some("eve") });
    assert_eq!(web.modern(3, "tools/call", retry).code(), -32602);
}

/// The request was cancelled when its stream was lost: its handler does not run again.
#[test]
fn what_has_no_stream_any_more_is_not_resumed() {
    let mut web = web();
    let stream = web.modern(1, "tools/call", json!({"name": "job"})).opened();
    web.detach(stream);
    assert_eq!(resume(&mut web), Err(RespondError::Stale));
    assert_eq!(web.world.notified.len(), 1);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

#[test]
fn every_kind_of_request_can_be_answered_late() {
    let completion = json!({"ref": {"type": "ref/prompt", "name": "later"}, "argument": {"name": "who", "value": "A"}});
    let ways = [
        ("tools/call", json!({"name": "job"})),
        ("resources/read", json!({"uri": "t://later"})),
        ("prompts/get", json!({"name": "later"})),
        ("completion/complete", completion),
        ("demo/later", json!({})),
    ];
    for revision in ["2025-11-25", MODERN] {
        for (at, (method, params)) in ways.iter().enumerate() {
            let mut web = web();
            let stream: StreamId = match revision {
                MODERN => web.modern(1, method, params.clone()).opened(),
                _ => {
                    let session = web.open(revision);
                    web.say(&session, &request(revision, 1, method, params.clone())).opened()
                }
            };
            let token = web.world.later[0].1;
            for kind in (0..ways.len()).filter(|kind| *kind != at).chain([at]) {
                let Web { endpoint, service, world, .. } = &mut web;
                let app = &mut App::new(service, world);
                let answered = match kind {
                    0 => endpoint.answer(app, token, |_, call| call.text("hello")),
                    1 => endpoint.answer(app, token.as_read("t://later"), |_, read| read.text("hello")),
                    2 => endpoint.answer(app, token.as_prompt(), |_, get| get.user("hello")),
                    3 => {
                        endpoint.answer(app, token.as_completion("h"), |_, complete| complete.matching(["hello", "x"]))
                    }
                    _ => endpoint.answer(app, token.as_custom(), |_, other| {
                        other.result(mcp_sansio::json::Raw::constant(r#"{"hello":1}"#))
                    }),
                };
                assert_eq!(answered, if kind == at { Ok(()) } else { Err(RespondError::WrongKind) });
            }
            let reply = web.pull(stream).only();
            assert!(reply["result"].to_string().contains("hello"), "{reply}");
        }
    }
}

fn give(web: &mut Web, receiver: &mut LateReceiver<World>) -> bool {
    let Web { endpoint, service, world, .. } = web;
    receiver.give(endpoint, service, world)
}

/// Gives each kind of message through the channel of an adapter.
#[test]
fn the_channel_reaches_the_streams() {
    let (late, mut receiver): (LateSender<World>, _) = channel();
    let mut web = web();
    web.service = web.service.feature(ServerCapability::Logging).feature(ServerCapability::ToolsChanged);
    web.service = web.service.contain_panics(|run| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok());
    let session = web.open("2025-11-25");
    let own = web.listen(&session, None).opened();
    let open = |web: &mut Web, method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = json!({"progressToken": 7});
        web.world.later.clear();
        let stream = web.say(&session, &request("2025-11-25", 1, method, params)).opened();
        (stream, web.world.later[0].1)
    };

    let completion = json!({"ref": {"type": "ref/prompt", "name": "later"}, "argument": {"name": "who", "value": "A"}});
    let (stream, token) = open(&mut web, "resources/read", json!({"uri": "t://later"}));
    late.progress(token, Progress::new(1).of(2).message("half")).unwrap();
    late.log(token, LoggingLevel::Error, "of a request").unwrap();
    late.answer(token.as_read("t://later"), |_, read| read.text("read")).unwrap();
    assert!(!give(&mut web, &mut receiver));
    let said = web.pull(stream).json();
    assert_eq!(said.len(), 3, "{said:?}");
    let progress = &said[0]["params"];
    assert_eq!(
        (&progress["progress"], &progress["total"], &progress["message"]),
        (&json!(1), &json!(2), &json!("half"))
    );
    assert_eq!(said[1]["params"]["data"], "of a request");
    assert_eq!(said[2]["result"]["contents"][0]["text"], "read");

    // As a gateway passes on what another server has logged.
    let facts = || LogMessage::from(mcp_sansio::json::Raw::constant(r#"{"rows":3}"#)).logger("db");
    let (stream, token) = open(&mut web, "resources/read", json!({"uri": "t://later"}));
    late.log(token, LoggingLevel::Error, facts()).unwrap();
    late.announce(LoggingLevel::Error, facts()).unwrap();
    late.answer(token.as_read("t://later"), |_, read| read.text("read")).unwrap();
    give(&mut web, &mut receiver);
    let expected = json!({"level": "error", "logger": "db", "data": {"rows": 3}});
    assert_eq!([&web.pull(stream).json()[0]["params"], &web.pull(own).json()[0]["params"]], [&expected; 2]);
    late.announce(LoggingLevel::Error, "of none").unwrap();
    late.publish(ServerChange::Tools).unwrap();
    give(&mut web, &mut receiver);
    let said = web.pull(own).json();
    assert_eq!(
        (&said[0]["params"]["data"], &said[1]["method"]),
        (&json!("of none"), &json!("notifications/tools/list_changed"))
    );

    type Send = fn(&LateSender<World>, mcp_sansio::server::RequestToken);
    let job = json!({"name": "job"});
    let ways: [(&str, Value, Send, &str); 9] = [
        (
            "prompts/get",
            json!({"name": "later"}),
            |late, token| late.answer(token.as_prompt(), |_, get| get.user("hello")).unwrap(),
            "hello",
        ),
        (
            "completion/complete",
            completion,
            |late, token| {
                late.answer(token.as_completion("h"), |_, complete| complete.matching(["hello", "x"])).unwrap()
            },
            r#""values":["hello"]"#,
        ),
        (
            "demo/later",
            json!({}),
            |late, token| {
                late.answer(token.as_custom(), |_, other| other.result(Raw::constant(r#"{"hello":1}"#))).unwrap()
            },
            r#""hello":1"#,
        ),
        ("tools/call", job.clone(), |late, token| late.answer(token, |_, call| call.text("hello")).unwrap(), "hello"),
        ("tools/call", job.clone(), |late, token| late.fail(token, &RpcError::new(-31000, "no")).unwrap(), "-31000"),
        (
            "tools/call",
            job.clone(),
            |late, token| late.answer(token.as_prompt(), |_, get| get.user("hello")).unwrap(),
            "of another kind",
        ),
        (
            "prompts/get",
            json!({"name": "later"}),
            |late, token| late.resume(token, |_| panic!("it runs")).unwrap(),
            "of another kind",
        ),
        (
            "tools/call",
            job.clone(),
            |late, token| late.resume(token, |_| panic!("as it should")).unwrap(),
            "has panicked",
        ),
        ("tools/call", job, |late, token| late.resume(token, |world| world.notified.clear()).unwrap(), "roots/list"),
    ];
    for (method, params, send, expected) in ways {
        let (stream, token) = open(&mut web, method, params);
        assert!(web.pull(stream).json().is_empty());
        send(&late, token);
        assert!(!give(&mut web, &mut receiver) && receiver.is_empty());
        let said = web.pull(stream).json();
        assert!(said.len() == 1 && said[0].to_string().contains(expected), "{expected}: {said:?}");
    }
    assert_eq!(web.world.notified, ["ada"], "the state was prepared before the handler ran");
}
