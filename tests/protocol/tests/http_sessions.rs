//! Sessions of the legacy revisions.
use crate::common;

use common::http::*;
use common::{LEGACY, MODERN, call, initialize, json, notify};
use mcp_sansio::server::ServerChange;
use mcp_sansio_http::endpoint::{Access, EndpointLimits};

// spec: T051 T053
#[test]
fn begin_with_initialize_alone() {
    let mut web = Web::new();
    for revision in &LEGACY[1..] {
        let reply = web.post(&initialize(revision, json!({})));
        let id = reply.header("mcp-session-id").unwrap();
        assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{id}");
    }
    assert_eq!(web.endpoint.load().1, 3);
    web.post(&call("2025-11-25", 1, "count", json!({}))).refused(400);
    web.post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).refused(400);
    let failed = web.post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    assert_eq!((failed.code(), failed.header("mcp-session-id")), (-32602, None));
    assert_eq!(web.endpoint.load(), (0, 3, 0));
}

// spec: T050
#[test]
fn ids_differ_and_come_from_the_caller() {
    let mut web = Web::new();
    let ids: std::collections::HashSet<_> = (0..50).map(|_| web.open("2025-11-25")).collect();
    assert_eq!(ids.len(), 50);
    web.dice.0 = 7;
    let mut again = Web::new();
    assert!(ids.contains(&again.open("2025-11-25")));
}

// spec: T053
#[test]
fn missing_and_unknown() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let other = session.replace(|c: char| c.is_ascii_digit(), "a");
    for wrong in
        [other.as_str(), "", "x", &session[1..], &format!("{session}0"), "\u{e9}\u{e9}00000000000000000000000000"]
    {
        let reply = web.call(wrong, 1, "count", json!({}));
        reply.refused(404);
        // Some clients look for this code, others for these words.
        assert_eq!((reply.code(), &reply.body["error"]["message"]), (-32001, &json!("Session not found")));
        web.listen(wrong, None).refused(404);
        web.request("DELETE", "/mcp", &[("mcp-session-id", wrong)], "").refused(404);
        web.say(wrong, &initialize("2025-11-25", json!({}))).refused(404);
    }
    // An id with one digit changed, or with two exchanged, is refused: the whole id is compared.
    let digits = session.as_bytes();
    for (a, b) in (4..32).flat_map(|a| (a + 1..32).map(move |b| (a, b))) {
        let (mut flipped, mut exchanged) = (digits.to_vec(), digits.to_vec());
        flipped[a] ^= 1;
        flipped[b] ^= 1;
        exchanged.swap(a, b);
        for forged in [flipped, exchanged].into_iter().filter(|forged| forged != digits) {
            let forged = String::from_utf8(forged).unwrap();
            web.listen(&forged, None).refused(404);
        }
    }
    web.request("DELETE", "/mcp", &[], "").refused(400);
    web.request("GET", "/mcp", &[SSE, ("mcp-protocol-version", "2025-11-25")], "").refused(400);
    let twice = web.say(&session, &initialize("2025-06-18", json!({})));
    assert_eq!((twice.status, twice.code()), (400, -32600));
    assert_eq!(web.call(&session, 1, "count", json!({})).text(), "1");
}

/// A notification carries the number of its session, as requests of the session do.
#[test]
fn notifications_tell_their_session() {
    let mut web = Web::new();
    let sessions = [web.open("2025-06-18"), web.open("2025-11-25")];
    web.world.heard_from.clear();
    for session in [&sessions[0], &sessions[1], &sessions[0]] {
        let said = web.say(session, &notify("notifications/roots/list_changed", json!({})));
        assert_eq!(said.status, 202);
    }
    let scopes: Vec<_> = web.world.heard_from.iter().map(|(scope, _)| *scope).collect();
    assert!(scopes.len() == 3 && scopes[0] == scopes[2] && scopes[0] != scopes[1], "{scopes:?}");
}

/// Only `notifications/initialized`, or the first request in its place, lets go out what was noted before: each later request
/// leaves the session's stream alone, which costs its driver a turn.
#[test]
fn requests_do_not_wake_the_stream_of_their_session() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let stream = web.listen(&session, None).opened();
    web.pull(stream);
    for id in 1..=3 {
        assert!(web.call(&session, id, "count", json!({})).body.get("result").is_some());
        assert!(!web.is_ready(stream), "request {id}");
    }
    web.publish(ServerChange::Tools);
    assert!(web.is_ready(stream));
}

/// An answer that was given while its client was away rests from the next call with the time on, also if that call is about
/// another stream.
#[test]
fn an_answer_rests_from_the_loss_of_another_stream_on() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let listens = web.listen(&session, None).opened();
    let waits = web.call(&session, 1, "later", json!({"tag": "l"})).opened();
    for stream in [listens, waits] {
        web.pull(stream);
    }
    web.detach(waits);
    web.answer(web.later("l"), "done").unwrap();
    web.detach(listens);
    assert_eq!(web.endpoint.load(), (0, 1, 2));
    web.wait(config().resume_within);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

// spec: T013
#[test]
fn version_header() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut say = |version: &str| {
        let headers = [JSON, ACCEPT, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let get = [SSE, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let notification = notify("notifications/x", json!({}));
        (
            web.request("POST", "/mcp", &headers, ping).status,
            web.request("POST", "/mcp", &headers, &notification).status,
            web.request("GET", "/mcp", &get, "").status,
        )
    };
    for version in LEGACY {
        assert_eq!(say(version), (200, 202, 200), "{version}");
    }
    let unknown =
        ["1999-01-01", "", "x", "2025-06-19", "2026-07-27", "2027-01-01", "2099-01-01", "abcdefghij", "latest"];
    for version in unknown {
        assert_eq!(say(version), (400, 400, 400), "{version}");
    }
    for (version, status) in unknown.iter().map(|version| (*version, 400)).chain([(MODERN, 405), ("2025-11-25", 204)]) {
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        assert_eq!(web.request("DELETE", "/mcp", &headers, "").status, status, "{version}");
    }
}

/// The negotiated revision decides, with or without a header: 2025-03-26 has batches and no header, later ones have
/// no batches.
// spec: T012 T039
#[test]
fn without_a_version_header() {
    let mut web = Web::new();
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#;
    let old = web.open("2025-03-26");
    let stream = web.say(&old, batch).opened();
    let answers = web.pull(stream).json();
    let ids: Vec<_> =
        answers.iter().flat_map(|answer| answer.as_array().cloned().unwrap()).map(|a| a["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);
    for revision in ["2025-06-18", "2025-11-25"] {
        let session = web.open(revision);
        let reply = web.say(&session, batch);
        assert_eq!((reply.status, reply.code()), (400, -32600), "{revision}");
    }
}

// spec: T054
#[test]
fn exactly_at_its_end() {
    let mut web = Web::with(config().session_idle(10_000));
    let session = web.open("2025-11-25");
    web.wait(9_999);
    assert_eq!(web.endpoint.load().1, 1);
    assert_eq!(web.call(&session, 1, "count", json!({})).text(), "1");
    web.wait(9_999);
    assert_eq!(web.endpoint.load().1, 1);
    web.wait(1);
    assert_eq!(web.endpoint.load().1, 0);
    web.call(&session, 1, "count", json!({})).refused(404);
}

#[test]
fn signs_of_life() {
    for (keep_alive, wait, comments) in [(0, 1_000_000, 0), (1, 1, 1), (1_000, 999, 0), (1_000, 1_000, 1)] {
        let mut web = Web::with(config().keep_alive(keep_alive));
        let session = web.open("2025-11-25");
        let events = web.listen(&session, None).opened();
        let _ = web.pull(events);
        web.wait(wait);
        let found = web.pull(events).events.iter().filter(|event| event.comment).count();
        assert_eq!(found, comments, "{keep_alive} {wait}");
    }
}

// spec: T054
#[test]
fn deleted() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let events = web.listen(&session, None).opened();
    let stream = web.call(&session, 1, "later", json!({"tag": "a"})).opened();
    let asks = web.call(&session, 2, "confirm", json!({})).opened();
    web.say(&session, &common::request("2025-11-25", 3, "resources/subscribe", json!({"uri": "test://text"})));
    let _ = (web.pull(stream), web.pull(events));
    assert_eq!(web.endpoint.load(), (2, 1, 3));
    assert_eq!(web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status, 204);
    for stream in [events, stream, asks] {
        assert!(web.is_ready(stream) && web.pull(stream).ended);
    }
    assert_eq!(web.endpoint.load(), (0, 0, 0));
    assert_eq!(web.answer(web.later("a"), "x"), Err(mcp_sansio::server::RespondError::Stale));
    assert_eq!(web.world.cancelled.len(), 2);
    web.call(&session, 1, "count", json!({})).refused(404);
    web.publish(ServerChange::Resource("test://text"));
    // The next session in its place receives nothing of it.
    let next = web.open("2025-11-25");
    let events = web.listen(&next, None).opened();
    assert_eq!(web.pull(events).json().len(), 0);
    web.call(&session, 1, "count", json!({})).refused(404);
}

#[test]
fn expiry() {
    let mut config = config();
    config.session_idle = 10_000;
    config.resume_within = 1_000;
    let mut web = Web::with(config);
    let idle = web.open("2025-11-25");
    let busy = web.open("2025-11-25");
    let heard = web.open("2025-11-25");
    let works = web.open("2025-11-25");
    let events = web.listen(&heard, None).opened();
    let work = web.call(&works, 1, "later", json!({"tag": "w"})).opened();
    for _ in 0..4 {
        web.wait(3_000);
        assert_eq!(web.call(&busy, 1, "count", json!({})).status, 200);
        let _ = (web.pull(events), web.pull(work));
    }
    assert_eq!(web.endpoint.load().1, 3);
    web.call(&idle, 1, "count", json!({})).refused(404);
    let token = web.later("w");
    assert_eq!(web.answer(token, "done"), Ok(()));
    assert!(web.pull(work).ended);
    web.detach(events);
    web.wait(20_000);
    assert_eq!(web.endpoint.load(), (0, 0, 0));
    assert_eq!(web.endpoint.next_deadline(), None);
}

// spec: A188
#[test]
fn belong_to_their_principal() {
    let mut web = Web::new();
    web.authorize = Box::new(|head| Access::Granted {
        principal: match head.text("authorization") {
            Some("a") => Some("alice"),
            Some("b") => Some("bob"),
            _ => None,
        },
    });
    let reply = web.request("POST", "/mcp", &[JSON, ("authorization", "a")], &initialize("2025-11-25", json!({})));
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let id = ("mcp-session-id", session.as_str());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(web.request("POST", "/mcp", &[JSON, id, ("authorization", "a")], ping).status, 200);
    for other in ["b", "c"] {
        web.request("POST", "/mcp", &[JSON, id, ("authorization", other)], ping).refused(404);
        web.request("GET", "/mcp", &[SSE, id, ("authorization", other)], "").refused(404);
        web.request("DELETE", "/mcp", &[id, ("authorization", other)], "").refused(404);
    }
    assert_eq!(web.endpoint.load().1, 1);
}

// spec: A004 A021 A064 A084 A085 A132 A150 A151 A152 A153 A175 A178 A188
#[test]
fn denied() {
    let mut web = Web::new();
    let challenge = "Bearer resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"";
    web.authorize = Box::new(move |head| match head.text("authorization") {
        None => Access::Denied { status: 401, challenge: Some(challenge) },
        Some("weak") => Access::Denied { status: 403, challenge: Some("Bearer error=\"insufficient_scope\"") },
        Some("broken") => Access::Denied { status: 400, challenge: None },
        Some("longest") => {
            Access::Granted { principal: Some("1234567890123456789012345678901234567890123456789012345678901234") }
        }
        Some("long") => {
            Access::Granted { principal: Some("12345678901234567890123456789012345678901234567890123456789012345") }
        }
        _ => Access::Granted { principal: None },
    });
    let reply = web.post(&initialize("2025-11-25", json!({})));
    reply.refused(401);
    assert_eq!(reply.header("www-authenticate"), Some(challenge));
    web.request("GET", "/sse", &[SSE], "").refused(401);
    let reply = web.request("POST", "/mcp", &[JSON, ("authorization", "weak")], "{}");
    reply.refused(403);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
    web.request("POST", "/mcp", &[JSON, ("authorization", "broken")], "{}").refused(400);
    web.request("POST", "/mcp", &[JSON, ("authorization", "long")], "{}").refused(500);
    assert_eq!(web.endpoint.load().1, 0);
    let longest = [JSON, ACCEPT, ("authorization", "longest")];
    assert_eq!(web.request("POST", "/mcp", &longest, &initialize("2025-11-25", json!({}))).status, 200);
}

// spec: A069 A084 A086 A087 A088 A134
#[test]
fn resource_metadata() {
    let mut config = config();
    config.resource_metadata = Some(mcp_sansio::json::Raw::constant(r#"{"resource":"http://localhost/mcp"}"#));
    let mut web = Web::with(config);
    web.authorize = Box::new(|_| Access::Denied { status: 401, challenge: None });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let reply = web.request("GET", path, &[], "");
        assert_eq!((reply.status, &reply.body["resource"]), (200, &json!("http://localhost/mcp")));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        web.request("POST", path, &[JSON], "{}").refused(405);
    }
    web.request("GET", "/.well-known/oauth-protected-resource/other", &[], "").refused(404);
}

#[test]
fn too_many() {
    let mut web = Web::limited(config(), EndpointLimits::default().sessions(2));
    let first = web.open("2025-11-25");
    web.open("2025-03-26");
    for reply in [web.post(&initialize("2025-11-25", json!({}))), web.request("GET", "/sse", &[SSE], "")] {
        reply.refused(503);
        assert_eq!((reply.code(), reply.header("retry-after")), (-32603, Some("1")));
    }
    web.request("DELETE", "/mcp", &[("mcp-session-id", &first)], "");
    web.open("2025-11-25");
}

#[test]
fn resting_ones_make_way() {
    let mut config = config();
    config.session_rest = 100;
    let mut web = Web::limited(config, EndpointLimits::default().sessions(3));
    let (heard, rests, works) = (web.open("2025-11-25"), web.open("2025-11-25"), web.open("2025-11-25"));
    let stream = web.listen(&heard, None).opened();
    let call = web.call(&works, 1, "later", json!({"tag": "a"})).opened();
    web.detach(call);
    web.wait(99);
    web.post(&initialize("2025-11-25", json!({}))).refused(503);
    web.wait(1);
    let newer = web.open("2025-11-25");
    web.say(&rests, &initialize("2025-11-25", json!({}))).refused(404);
    // The newest session is too young, one has an open stream, and one waits for its answer.
    web.wait(99);
    for reply in [web.post(&initialize("2025-11-25", json!({}))), web.request("GET", "/sse", &[SSE], "")] {
        reply.refused(503);
    }
    web.wait(1);
    assert_eq!(web.request("GET", "/sse", &[SSE], "").status, 200);
    web.call(&newer, 1, "count", json!({})).refused(404);
    assert_eq!(web.call(&heard, 1, "count", json!({})).text(), "1");
    assert!(web.answer(web.later("a"), "done").is_ok());
    assert!(web.pulled(stream, false).events.is_empty());
}

// spec: T105
#[test]
fn modern_requests_have_none() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let reply = web.modern_with(&[("mcp-session-id", "nonsense")], 1, "tools/call", json!({"name": "count"}));
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    let reply = web.modern(
        1,
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    );
    assert_eq!((reply.status, reply.code(), reply.header("mcp-session-id")), (404, -32601, None));
    assert_eq!(web.call(&session, 1, "count", json!({})).status, 200);
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", MODERN)];
    web.request("DELETE", "/mcp", &headers, "").refused(405);
    assert_eq!(web.say(&session, &notify("notifications/initialized", json!({}))).status, 202);
}
