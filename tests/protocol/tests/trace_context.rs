//! The trace context of requests on the server: each kind of request, each revision, and runs after the first.
use crate::common;

use common::*;
use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument, ReadResource,
    RequestContext, Resource, Service, Tool,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// The members that the handler sees.
fn seen(context: &RequestContext<'_>) -> String {
    let trace = context.trace_context();
    let text = |text: Option<mcp_sansio::json::Text<'_>>| text.map_or("-".into(), |text| text.to_string());
    let parent = trace.traceparent().map_or("-".into(), |parent| parent.to_string());
    format!("{parent} {} {}", text(trace.tracestate()), text(trace.baggage()))
}

fn look(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let seen = seen(call);
    call.text(&seen)
}

/// Asks for the roots, which each revision has, and says what both runs have seen.
fn ask(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.notified.push(seen(call));
    if call.answer("roots").is_some() {
        return call.text(world.notified.join(", "));
    }
    call.ask(&[InputRequest::roots("roots")], b"")
}

fn suspend(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.is_resumed() {
        return look(world, call);
    }
    let (token, done) = call.suspend(b"")?;
    world.later.push((String::new(), token));
    Ok(done)
}

fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let (token, done) = call.later();
    world.later.push((String::new(), token));
    done
}

fn read(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    let seen = seen(read);
    read.text(&seen)
}

fn get(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let seen = seen(get);
    get.user(&seen)
}

fn complete(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    let seen = seen(complete);
    complete.offer([seen.as_str()])
}

fn other(_: &mut World, request: &mut CustomRequest<'_>) -> HandlerResult {
    let seen = json!({ "seen": seen(request) }).to_string();
    request.result(mcp_sansio::json::Raw::parse(seen.as_bytes()).expect("JSON"))
}

static TOOLS: [Tool<World>; 4] = [
    Tool::new("look", "Says what it sees", look),
    Tool::new("ask", "Asks", ask),
    Tool::new("suspend", "Waits, and runs again", suspend),
    Tool::new("later", "Answers late", later),
];
static RESOURCES: [Resource<World>; 1] = [Resource::new("trace://seen", "seen", read)];
static PROMPTS: [Prompt<World>; 1] =
    [Prompt::new("seen", "Says what it sees", get).arguments(&[PromptArgument::required("a")]).complete(complete)];
const SERVICE: Service<'static, World> =
    Service::new("traced", "1").tools(&TOOLS).resources(&RESOURCES).prompts(&PROMPTS).other(other);

fn rig(revision: &str, service: Service<'static, World>) -> Rig {
    Rig::new().serving(service).opened(revision)
}

fn traced(revision: &str, id: u64, method: &str, mut params: Value, trace: &Value) -> String {
    params["_meta"] = trace.clone();
    request(revision, id, method, params)
}

fn full() -> Value {
    json!({"traceparent": PARENT, "tracestate": "a=\"1\"", "baggage": "user=42"})
}

// spec: B055
#[test]
fn each_kind_of_request_in_each_revision() {
    for revision in REVISIONS {
        let mut rig = rig(revision, SERVICE);
        let expected = format!("{PARENT} a=\"1\" user=42");
        let reference = json!({"ref": {"type": "ref/prompt", "name": "seen"}, "argument": {"name": "a", "value": ""}});
        let requests = [
            ("tools/call", json!({"name": "look", "arguments": {}}), "/content/0/text"),
            ("resources/read", json!({"uri": "trace://seen"}), "/contents/0/text"),
            ("prompts/get", json!({"name": "seen", "arguments": {"a": "1"}}), "/messages/0/content/text"),
            ("completion/complete", reference, "/completion/values/0"),
            ("demo/example", json!({}), "/seen"),
        ];
        for (id, (method, params, place)) in (1..).zip(requests) {
            let reply = parse(&rig.one(&traced(revision, id, method, params, &full())));
            assert_eq!(reply["result"].pointer(place), Some(&json!(expected)), "{revision} {method}: {reply}");
        }
        assert_eq!(text(&rig.one(&call(revision, 9, "look", json!({})))), "- - -");
    }
}

/// A malformed member counts as absent, and a malformed `traceparent` takes its `tracestate` with it. The request itself
/// is served as any other.
// spec: B055
#[test]
fn malformed_members_are_absent() {
    for revision in REVISIONS {
        let mut rig = rig(revision, SERVICE);
        let mut look = |trace: Value| {
            let params = json!({"name": "look", "arguments": {}});
            text(&rig.one(&traced(revision, 1, "tools/call", params, &trace)))
        };
        let zeros = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        for wrong in [json!(zeros), json!("00-x"), json!(PARENT.to_uppercase()), json!(5), json!(null), json!({})] {
            assert_eq!(look(json!({"traceparent": wrong, "tracestate": "a=1", "baggage": "b=1"})), "- - b=1");
        }
        assert_eq!(look(json!({"traceparent": PARENT, "tracestate": "A", "baggage": "b"})), format!("{PARENT} - -"));
        assert_eq!(look(json!({"tracestate": "a=1"})), "- - -");
        assert_eq!(look(json!({"traceparent": format!("{PARENT}\n")})), "- - -");
    }
}

/// A handler that runs again sees the same: up to 2025-11-25 the first request is kept, in 2026-07-28 the retry has its
/// own `_meta`.
#[test]
fn kept_for_the_run_after_a_question() {
    for revision in REVISIONS {
        let mut rig = rig(revision, SERVICE);
        let params = json!({"name": "ask", "arguments": {}});
        let first = parse(&rig.one(&traced(revision, 1, "tools/call", params.clone(), &full())));
        let roots = json!({"roots": [{"uri": "file:///work"}]});
        let (last, again) = if is_modern(revision) {
            let again = "00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01";
            let mut params = params;
            params["inputResponses"] = json!({ "roots": roots });
            let retry = traced(revision, 2, "tools/call", params, &json!({ "traceparent": again }));
            (rig.one(&retry), format!("{again} - -"))
        } else {
            (rig.one(&answer(&first["id"], roots)), format!("{PARENT} a=\"1\" user=42"))
        };
        assert_eq!(text(&last), format!("{PARENT} a=\"1\" user=42, {again}"), "{revision}");
    }
}

/// Without `Service::trace_questions` a question has no trace context; with it, the one of its request. In 2026-07-28 a
/// question is part of a result.
#[test]
fn questions_up_to_2025_11_25_carry_it() {
    for revision in REVISIONS {
        let params = json!({"name": "ask", "arguments": {}});
        let ask = |service: Service<'static, World>, trace: &Value| {
            parse(&rig(revision, service).one(&traced(revision, 1, "tools/call", params.clone(), trace)))
        };
        let traced = ask(SERVICE.trace_questions(), &full());
        if is_modern(revision) {
            assert_eq!(traced["result"]["inputRequests"]["roots"]["params"].get("_meta"), None);
            continue;
        }
        assert_eq!((&traced["method"], &traced["params"]["_meta"]), (&json!("roots/list"), &full()), "{revision}");
        assert_eq!(ask(SERVICE, &full())["params"].get("_meta"), None);
        // Nothing malformed goes on, and nothing else of `_meta`.
        let half = json!({"traceparent": "x", "tracestate": "a=1", "baggage": "b=1", "com.example/x": 1});
        assert_eq!(ask(SERVICE.trace_questions(), &half)["params"]["_meta"], json!({"baggage": "b=1"}));
        assert_eq!(ask(SERVICE.trace_questions(), &json!({"com.example/x": 1}))["params"].get("_meta"), None);
    }
}

#[test]
fn kept_while_suspended_and_gone_for_late_answers() {
    for revision in REVISIONS {
        let mut rig = rig(revision, SERVICE);
        let mut start = |id, tool: &str| -> RequestToken {
            let params = json!({"name": tool, "arguments": {}});
            assert_eq!(rig.say(&traced(revision, id, "tools/call", params, &full())), [""; 0]);
            rig.world.later.pop().expect("a token").1
        };
        let (suspended, late) = (start(1, "suspend"), start(2, "later"));
        rig.session.server.wake(suspended).expect("it is suspended");
        rig.work();
        assert_eq!(text(&rig.take().remove(0)), format!("{PARENT} a=\"1\" user=42"), "{revision}");
        rig.session.answer(&rig.service, &mut rig.world, late, look).expect("it waits");
        rig.work();
        assert_eq!(text(&rig.take().remove(0)), "- - -", "{revision}");
    }
}
