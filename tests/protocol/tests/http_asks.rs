//! Questions to the client over HTTP: in sessions on streams, in 2026-07-28 as a result.
use crate::common;

use common::http::*;
use common::{Value, all_capabilities, answer, call, cancel, initialize, json, notify};
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio_http::endpoint::{Access, Endpoint, EndpointLimits, StreamId};

fn accepted(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Calls a tool that asks. Returns its stream and the ids of the questions.
fn ask(web: &mut Web, session: &str, id: i64, tool: &str) -> (StreamId, Vec<Value>) {
    let stream = web.call(session, id, tool, json!({})).opened();
    let questions = web.pull(stream).json();
    assert!(questions.iter().all(|question| question["method"].is_string()));
    (stream, questions.iter().map(|question| question["id"].clone()).collect())
}

#[test]
fn answered_by_another_post() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut web = Web::new();
        let session = web.open(revision);
        let (stream, asked) = ask(&mut web, &session, 1, "confirm");
        let reply = web.say(&session, &answer(&asked[0], accepted("Ada")));
        assert_eq!((reply.status, reply.stream), (202, None));
        assert!(web.is_ready(stream));
        assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "accepted Ada");
        // The question is answered already: a second answer is ignored.
        assert_eq!(web.say(&session, &answer(&asked[0], accepted("Eve"))).status, 202);
        assert_eq!((web.world.runs, web.endpoint.load()), (2, (0, 1, 0)));
    }
}

#[test]
fn several_at_once() {
    let mut web = Web::new();
    let sessions = [web.open("2025-11-25"), web.open("2025-06-18")];
    let asks: Vec<_> = (0..6).map(|i| (i, ask(&mut web, &sessions[i % 2], i as i64, "survey"))).collect();
    for (i, (_, asked)) in asks.iter().rev() {
        web.say(&sessions[i % 2], &answer(&asked[1], json!({"roots": [{"uri": format!("file:///{i}")}]})));
        web.say(&sessions[i % 2], &answer(&asked[0], accepted(&format!("n{i}"))));
    }
    for (i, (stream, _)) in &asks {
        let result = web.pull(*stream).only();
        assert_eq!(result["id"], json!(i));
        assert!(result["result"]["content"][0]["text"].as_str().unwrap().starts_with(&format!("accepted n{i}")));
    }
    assert_eq!(web.endpoint.load(), (0, 2, 0));
}

// spec: C047
#[test]
fn answered_by_its_own_session_only() {
    let mut web = Web::new();
    let (session, other) = (web.open("2025-11-25"), web.open("2025-11-25"));
    let (stream, asked) = ask(&mut web, &session, 1, "confirm");
    assert_eq!(web.say(&other, &answer(&asked[0], accepted("Eve"))).status, 202);
    assert!(web.pull(stream).events.is_empty());
    web.say(&session, &answer(&asked[0], accepted("Ada")));
    assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "accepted Ada");
}

/// The id of a session is not enough to answer a question to its user.
// spec: C047 C057 C058
#[test]
fn answered_by_its_own_principal_only() {
    let mut web = Web::new();
    web.authorize = Box::new(|head| {
        let names = ["alice", "bob"];
        Access::Granted { principal: names.into_iter().find(|name| head.text("authorization") == Some(*name)) }
    });
    let opening = initialize("2025-11-25", all_capabilities("2025-11-25"));
    let opened = web.request("POST", "/mcp", &[JSON, ACCEPT, ("authorization", "alice")], &opening);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let post = |web: &mut Web, who: Option<&str>, body: &str| {
        let mut headers = vec![JSON, ACCEPT, ("mcp-session-id", session.as_str())];
        headers.extend(who.map(|who| ("authorization", who)));
        web.request("POST", "/mcp", &headers, body)
    };
    post(&mut web, Some("alice"), &notify("notifications/initialized", json!({})));
    let call = call("2025-11-25", 1, "confirm", json!({}));
    let stream = post(&mut web, Some("alice"), &call).opened();
    let asked = web.pull(stream).json().last().unwrap()["id"].clone();
    for other in [Some("bob"), None] {
        post(&mut web, other, &answer(&asked, accepted("Eve"))).refused(404);
        assert!(web.pull(stream).events.is_empty());
    }
    assert_eq!(post(&mut web, Some("alice"), &answer(&asked, accepted("Ada"))).status, 202);
    assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "accepted Ada");
}

/// A session is asked only for the capabilities that it declared itself.
// spec: C003
#[test]
fn what_a_session_did_not_declare() {
    let mut web = Web::new();
    let able = web.open("2025-11-25");
    let opened = web.post(&initialize("2025-11-25", json!({"elicitation": {"url": {}}})));
    let bare = opened.header("mcp-session-id").unwrap().to_owned();
    for (session, form, visit) in [(&able, true, true), (&bare, false, true)] {
        for (tool, asked) in [("confirm", form), ("visit", visit)] {
            let reply = web.call(session, 1, tool, json!({}));
            assert_eq!(reply.stream.is_some(), asked, "{tool}");
            match reply.stream {
                Some(stream) => assert_eq!(web.pull(stream).json()[0]["method"], "elicitation/create"),
                None => assert_eq!(reply.body["result"]["isError"], true),
            }
            web.say(session, &cancel(1));
        }
    }
}

#[test]
fn a_second_round() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let (stream, first) = ask(&mut web, &session, 1, "interview");
    web.say(&session, &answer(&first[0], accepted("one")));
    let pulled = web.pull(stream);
    assert!(!pulled.ended);
    let second = pulled.json()[0]["id"].clone();
    assert_ne!(first[0], second);
    web.say(&session, &answer(&second, accepted("two")));
    assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "accepted one, then accepted two");
}

#[test]
fn a_deadline() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let (stream, _) = ask(&mut web, &session, 1, "confirm");
    let deadline = web.now + 600_000;
    while web.now < deadline {
        let next = web.endpoint.next_deadline().unwrap().min(deadline);
        assert!(next > web.now);
        web.wait(next - web.now);
        let pulled = web.pull(stream);
        if pulled.ended {
            let all = pulled.json();
            assert_eq!(all[0]["method"], "notifications/cancelled");
            assert_eq!(all[1]["result"]["content"][0]["text"], "timed out");
            return;
        }
    }
    panic!("nothing happened");
}

#[test]
fn answered_while_away() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let stream = web.call(&session, 1, "confirm", json!({})).opened();
    let events = web.pull(stream).events;
    web.detach(stream);
    let asked = events[1].json()["id"].clone();
    web.say(&session, &answer(&asked, accepted("Ada")));
    let again = web.listen(&session, events[1].id.as_deref()).opened();
    assert_eq!(web.pull(again).only()["result"]["content"][0]["text"], "accepted Ada");
}

#[test]
fn an_answer_that_is_too_large() {
    let limits = MessageLimits { asks: 700, ..MessageLimits::default() };
    let mut web = Web::of(Endpoint::growing(
        config(),
        Server::growing(MessageLimits { in_flight: 8, ..limits }),
        EndpointLimits::default(),
    ));
    let session = web.open("2025-11-25");
    let (stream, asked) = ask(&mut web, &session, 1, "confirm");
    let reply = web.say(&session, &answer(&asked[0], accepted(&"x".repeat(2000))));
    assert_eq!((reply.status, reply.stream), (202, None));
    let last = web.pull(stream).only();
    assert_eq!(last["id"], 1);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

#[test]
fn a_full_stream_does_not_stop_the_others() {
    let mut web = Web::lent(2, 4, 6000);
    let session = web.open("2025-11-25");
    let slow = web.call(&session, 1, "confirm", json!({})).opened();
    let fast = web.call(&session, 2, "confirm", json!({})).opened();
    // Takes both questions, without reading the first stream to its end.
    let fast_id = web.pull(fast).json()[0]["id"].clone();
    let slow_id = json!(fast_id.as_u64().unwrap() - 1);
    web.say(&session, &answer(&slow_id, accepted("slow")));
    web.say(&session, &answer(&fast_id, accepted("fast")));
    assert_eq!(web.pull(fast).only()["result"]["content"][0]["text"], "accepted fast");
    let all = web.pull(slow).json();
    assert_eq!(all.last().unwrap()["result"]["content"][0]["text"], "accepted slow");
}

#[test]
fn cancelled() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let (stream, asked) = ask(&mut web, &session, 1, "survey");
    web.say(&session, &cancel(1));
    let pulled = web.pull(stream);
    assert!(pulled.ended);
    let gone: Vec<_> = pulled.json().iter().map(|message| message["params"]["requestId"].clone()).collect();
    assert_eq!(gone, asked);
    assert_eq!(web.say(&session, &answer(&asked[0], accepted("x"))).status, 202);
    assert_eq!((web.world.runs, web.endpoint.load()), (1, (0, 1, 0)));
}

// spec: T115
#[test]
fn input_required() {
    let mut web = Web::new();
    let first = web.modern(1, "tools/call", json!({"name": "interview", "arguments": {}}));
    assert_eq!((first.status, &first.body["result"]["resultType"]), (200, &json!("input_required")));
    let state = first.body["result"].get("requestState").cloned();
    let mut params = json!({"name": "interview", "arguments": {}, "inputResponses": {"first": accepted("one")}});
    if let Some(state) = state {
        params["requestState"] = state;
    }
    let second = web.modern(1, "tools/call", params);
    let mut params = json!({"name": "interview", "arguments": {}, "inputResponses": {"second": accepted("two")}});
    params["requestState"] = second.body["result"]["requestState"].clone();
    assert_eq!(web.modern(1, "tools/call", params.clone()).text(), "accepted one, then accepted two");
    params["requestState"] = json!("forged");
    assert_eq!(web.modern(1, "tools/call", params).code(), -32602);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

#[test]
fn a_missing_capability() {
    let mut web = Web::new();
    let body = common::request_of(common::MODERN, 1, "tools/call", json!({"name": "confirm"}), json!({}));
    let headers =
        [JSON, ACCEPT, ("mcp-protocol-version", common::MODERN), ("mcp-method", "tools/call"), ("mcp-name", "confirm")];
    let reply = web.request("POST", "/mcp", &headers, &body);
    assert_eq!((reply.status, reply.code()), (400, -32021));
}
