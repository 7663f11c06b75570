//! The trace context of the client's requests.

use crate::desk::{Desk, FULL, LEGACY, everywhere};
use mcp_sansio::client::{ClientEvent, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::Revision;
use mcp_sansio::trace_context::{TraceContext, TraceContextError, TraceParent};
use serde_json::{Value, json};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

fn trace() -> TraceContext<'static> {
    let parent = TraceParent::parse(PARENT).unwrap();
    TraceContext::new(parent).with_tracestate("a=1").unwrap().with_baggage("user=42").unwrap()
}

/// Returns the members of `_meta` that are not the protocol's own.
fn own(said: &Value) -> Value {
    let mut meta = said["params"]["_meta"].clone();
    if let Some(members) = meta.as_object_mut() {
        members.retain(|key, _| !key.starts_with("io.modelcontextprotocol/") && key != "progressToken");
    }
    meta
}

fn full() -> Value {
    json!({"traceparent": PARENT, "tracestate": "a=1", "baggage": "user=42"})
}

// spec: B055
#[test]
fn every_revision_carries_it() {
    for revision in Revision::ALL {
        let mut desk = Desk::speaking(revision);
        let trace = trace();
        let arguments = Raw::constant(r#"{"a":1}"#);
        let requests = [
            Request::call("x").arguments(&arguments).with_progress(),
            Request::read("a:b"),
            Request::prompt("p"),
            Request::list_tools(),
            Request::complete_prompt("p", "a", ""),
            Request::raw("com.example/x", Some(Raw::constant(r#"{"_meta":{"baggage":"other=1"},"n":1}"#))),
        ];
        for request in requests {
            desk.send(&request.trace_context(&trace));
            assert_eq!(own(&desk.one()), full(), "{revision} {}", request.name);
            desk.result("{}");
            desk.forget();
            // A request that is kept for later is the same.
            let kept = request.trace_context(&trace).keep().unwrap();
            desk.send(&kept.request());
            assert_eq!(own(&desk.one()), full(), "{revision} {}", request.name);
            desk.result("{}");
            desk.forget();
        }
        // Nothing is written for nothing.
        desk.send(&Request::call("x").trace_context(&TraceContext::NONE));
        assert!(own(&desk.one()).as_object().is_none_or(serde_json::Map::is_empty));
    }
}

/// The setter wins over the same members of `Request::meta`, and leaves its others alone.
#[test]
fn beside_own_members() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let meta = Raw::constant(r#"{"traceparent":"mine","tracestate":"b=2","com.example/x":1,"baggage":"c=3"}"#);
        let parent = TraceContext::new(TraceParent::parse(PARENT).unwrap());
        let request = Request::call("x").meta(meta).trace_context(&parent);
        let expected = json!({"traceparent": PARENT, "com.example/x": 1, "baggage": "c=3"});
        desk.send(&request);
        assert_eq!(own(&desk.one()), expected);
        desk.send(&request.keep().unwrap().request());
        assert_eq!(own(&desk.one()), expected);
        desk
    });
}

/// The client sends the call again, with the answers: the trace context is the same.
#[test]
fn kept_when_the_client_retries() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let trace = trace();
        desk.send(&Request::call("x").meta(Raw::constant(r#"{"com.example/x":1}"#)).trace_context(&trace));
        let first = own(&desk.one());
        assert_eq!(first["traceparent"], PARENT);
        for _ in 0..2 {
            desk.result(r#"{"resultType":"input_required","requestState":"s"}"#);
            let again = desk.one();
            assert_eq!(again["params"]["requestState"], "s");
            assert_eq!(own(&again), first);
        }
        desk
    });
    // In 2025-11-25 the retry follows a page that the user has visited.
    let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
    let trace = trace();
    desk.send(&Request::call("x").trace_context(&trace));
    desk.forget();
    desk.error(
        -32042,
        r#"{"elicitations":[{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"e1"}]}"#,
    );
    let visit = desk.asked[0].0;
    desk.reply(visit, &mcp_sansio::client::result::ClientResult::consent()).unwrap();
    assert_eq!(own(&desk.one()), full());
}

/// A malformed value is refused before there is a request: nothing is sent.
// spec: B055
#[test]
fn malformed_values_are_refused() {
    for wrong in ["", "00-x", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\n"] {
        assert_eq!(TraceParent::parse(wrong), Err(TraceContextError::Traceparent));
    }
    for wrong in ["a=1\r\n", "a=\u{0}", "\"", "a"] {
        assert_eq!(trace().with_tracestate(wrong), Err(TraceContextError::Tracestate));
        assert_eq!(trace().with_baggage(wrong), Err(TraceContextError::Baggage));
    }
}

/// A request of the server up to 2025-11-25 has a trace context of its own.
#[test]
fn questions_of_the_server() {
    for revision in LEGACY {
        let info = FULL;
        let mut client = mcp_sansio::client::Client::growing(&info);
        let mut out = mcp_sansio::sink::LineSink::new(Vec::new());
        client.connect_as(revision);
        client.advance(0, &mut out).unwrap();
        let opened = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
        );
        client.receive(opened.as_bytes(), &mut out).unwrap();
        let asks = |meta: Value| json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list", "params": {"_meta": meta}});
        for (meta, expected) in [(full(), trace()), (json!({"traceparent": "x"}), TraceContext::NONE)] {
            let message = asks(meta).to_string();
            let Some(ClientEvent::Asked(asked)) = client.receive(message.as_bytes(), &mut out).unwrap() else {
                panic!("{revision}: no question")
            };
            assert_eq!(asked.questions().next().unwrap().trace_context(), expected);
        }
    }
}
