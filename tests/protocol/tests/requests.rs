//! Requests in flight, late answers, published changes, progress, log messages, and unsubscribing.
use crate::common;

use common::*;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{
    MIN_ROOM, MessageLimits, NotifyStatus, Progress, RespondError, RpcError, Server, ServerChange,
};
use mcp_sansio_test_support::Oracle;

const C: &str = "2025-06-18";

#[test]
fn overload_is_answered() {
    for revision in REVISIONS {
        let mut rig = Rig::in_flight(2).opened(revision);
        for id in [1, 2] {
            assert!(rig.say(&call(revision, id, "later", json!({"tag": id.to_string()}))).is_empty());
        }
        assert_eq!(code(&rig.one(&call(revision, 3, "add", json!({"a": 1, "b": 1})))), -32603);
        assert_eq!(code(&rig.one(&call(revision, 1, "add", json!({"a": 1, "b": 1})))), -32600, "in flight");
        if !is_modern(revision) {
            rig.one(&request(revision, 4, "ping", json!({})));
        }
        assert!(rig.say(&cancel(1)).is_empty());
        assert_eq!(text(&rig.one(&call(revision, 3, "add", json!({"a": 1, "b": 1})))), "2");
    }
}

/// Ids are compared by value: `"é"` is `"\u00e9"`, `1` is not `"1"`.
#[test]
fn ids_are_compared_by_value() {
    for (first, same, other) in
        [("\"\u{e9}\"", r#""\u00e9""#, "\"e\""), ("1", "1", "\"1\""), (r#""a\/b""#, "\"a/b\"", "\"a\"")]
    {
        let mut rig = Rig::new().opened(C);
        let with = |id: &str, tool: &str| call(C, "ID", tool, json!({"a": 1, "b": 1})).replace("\"ID\"", id);
        assert!(rig.say(&with(first, "later")).is_empty());
        let refused = rig.one(&with(same, "add"));
        assert!(refused.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{same},"error":{{"code":-32600"#)), "{refused}");
        assert_eq!(text(&rig.one(&with(other, "add"))), "2");
        assert!(rig.say(&cancel("ID").replace("\"ID\"", other)).is_empty());
        assert_eq!(rig.world.cancelled.len(), 0);
        assert!(rig.say(&cancel("ID").replace("\"ID\"", same)).is_empty());
        assert_eq!(rig.world.cancelled.len(), 1);
    }
}

// spec: B173 B203 T079
#[test]
fn stale_tokens_are_refused() {
    for revision in REVISIONS {
        let mut rig = Rig::new().opened(revision);
        for id in ["a", "b"] {
            rig.say(&call(revision, id, "later", json!({"tag": id})));
        }
        let (a, b) = (rig.world.later[0].1, rig.world.later[1].1);
        assert!(rig.say(&cancel("a")).is_empty());
        assert_eq!(rig.world.cancelled, [a]);
        // Another request takes the slot.
        rig.say(&call(revision, "c", "later", json!({"tag": "c"})));
        let c = rig.world.later[2].1;
        assert_ne!(a, c);
        let Rig { session, service, world, .. } = &mut rig;
        assert_eq!(session.answer(service, world, a, |_, call| call.text("stale")), Err(RespondError::Stale));
        assert_eq!(session.progress(a, Progress::new(1)), NotifyStatus::Stale);
        assert!(!session.server.is_open(a) && session.server.is_open(c));
        let (server, out) = (&mut session.server, &mut session.out);
        assert_eq!(server.fail(a, &RpcError::internal("stale"), out), Err(RespondError::Stale));
        assert_eq!(session.answer(service, world, c, |_, call| call.text("c")), Ok(()));
        assert_eq!(session.answer(service, world, c, |_, call| call.text("c again")), Err(RespondError::Stale));
        assert_eq!(session.answer(service, world, b, |_, call| call.error("b")), Ok(()));
        rig.work();
        let said = rig.take();
        assert_eq!(said.iter().map(|line| text(line)).collect::<Vec<_>>(), ["c", "b"]);
    }
}

/// A late answer that does not fit leaves the request open.
#[test]
fn late_answers_that_do_not_fit() {
    let mut rig: Rig = Rig::with(512).opened(C);
    rig.say(&call(C, 1, "later", json!({"tag": "a"})));
    let token = rig.world.later[0].1;
    let Rig { session, service, world, .. } = &mut rig;
    let long = "x".repeat(1000);
    assert_eq!(session.answer(service, world, token, |_, call| call.text(&long)), Err(RespondError::FullNever));
    assert_eq!(session.answer(service, world, token, |_, call| call.text("short")), Ok(()));
    rig.work();
    assert_eq!(text(&rig.take()[0]), "short");
}

/// At the end everything that is open is answered with an error.
#[test]
fn abandoned() {
    let mut rig = Rig::new().opened(C);
    rig.say(&call(C, 1, "later", json!({})));
    rig.say(&call(C, 2, "confirm", json!({})));
    assert_eq!(rig.end().len(), 1, "the question is closed, the late answer still owed");
    assert!(!rig.session.is_done());
    let _ = rig.session.abandon();
    rig.work();
    assert_eq!(code(&rig.take()[0]), -32603);
    assert!(rig.session.is_done());
}

#[test]
fn changes_fold() {
    let mut rig = Rig::new().opened(C);
    rig.one(&request(C, 1, "resources/subscribe", json!({"uri": "test://text"})));
    rig.one(&request(C, 2, "resources/subscribe", json!({"uri": "test://text"})));
    for _ in 0..100 {
        rig.session.server.publish(ServerChange::Tools);
        rig.session.server.publish(ServerChange::Resource("test://text"));
        rig.session.server.publish(ServerChange::Resource("test://blob"));
    }
    rig.work();
    assert_eq!(rig.take().len(), 2);
    let mut rig = Rig::new();
    for id in [1, 2] {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://text", "test://text"]});
        rig.one(&request(MODERN, id, "subscriptions/listen", json!({"notifications": filter})));
    }
    for _ in 0..100 {
        rig.session.server.publish(ServerChange::Tools);
        rig.session.server.publish(ServerChange::Resource("test://text"));
    }
    rig.work();
    assert_eq!(rig.take().len(), 4);
}

/// A subscription to an escaped URI is the same as to the plain one; templates too.
// spec: S024
#[test]
fn uris_are_compared_by_value() {
    for uri in ["test://text", "test://items/7"] {
        let mut rig = Rig::new().opened(C);
        let escaped = uri.replace('/', "\\/");
        rig.one(&request(C, 1, "resources/subscribe", json!({"uri": uri})).replace(uri, &escaped));
        rig.session.server.publish(ServerChange::Resource(uri));
        rig.work();
        assert_eq!(rig.take().len(), 1, "{uri}");
        rig.one(&request(C, 2, "resources/unsubscribe", json!({"uri": uri})));
        rig.session.server.publish(ServerChange::Resource(uri));
        rig.work();
        assert!(rig.take().is_empty());
        let read = request(C, 3, "resources/read", json!({"uri": uri})).replace(uri, &escaped);
        assert_eq!(parse(&rig.one(&read))["result"]["contents"][0]["uri"], uri);
    }
    // A server without scratch memory reads fixed resources, and reports that it cannot decode other URIs.
    let mut rig = Rig::of(usize::MAX, Server::new(Slots::growing(4))).opened(C);
    let read = request(C, 3, "resources/read", json!({"uri": "test://text"})).replace("//", "\\/\\/");
    assert_eq!(parse(&rig.one(&read))["result"]["contents"][0]["uri"], "test://text");
    let read = request(C, 3, "resources/read", json!({"uri": "test://items/7"})).replace("//", "\\/\\/");
    assert_eq!(code(&rig.one(&read)), -32603);
}

/// At the end of the input a listen ends with its result, then with the cancellation; in small windows and with long
/// ids too.
// spec: B122 B180 B181
#[test]
fn listens_end_in_order() {
    for window in [MIN_ROOM, MIN_ROOM + 44, usize::MAX] {
        for id in [json!(1), json!("x".repeat(mcp_sansio::server::ID_MAX - 2))] {
            let mut rig: Rig = Rig::with(window);
            // With a long id there is no room for the signature.
            if window < usize::MAX {
                rig = rig.judged_by(Oracle::new().without_server_info());
            }
            rig.one(&request(
                MODERN,
                id.clone(),
                "subscriptions/listen",
                json!({"notifications": {"toolsListChanged": true}}),
            ));
            rig.one(&request(MODERN, "second", "subscriptions/listen", json!({"notifications": {}})));
            let said = rig.end();
            assert_eq!(said.len(), 4, "{said:?}");
            for (pair, id) in said.chunks(2).zip([id, json!("second")]) {
                let (result, cancelled) = (parse(&pair[0]), parse(&pair[1]));
                assert_eq!(result["id"], id);
                assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
                assert_eq!(cancelled["params"]["requestId"], id);
            }
            assert!(rig.session.is_done());
        }
    }
}

/// A server of 2026-07-28 cancels only listens when its input ends. (The rig judges that too.)
// spec: B123 B124 B125
#[test]
fn nothing_but_listens_is_cancelled() {
    let mut rig = Rig::new();
    rig.say(&call(MODERN, 1, "later", json!({"tag": "a"})));
    rig.say(&call(MODERN, 2, "later", json!({"tag": "b"})));
    assert!(rig.one(&call(MODERN, 3, "confirm", json!({}))).contains("input_required"));
    rig.one(&request(MODERN, 4, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})));
    rig.say(&cancel(1));
    let mut said = rig.end();
    let _ = rig.session.abandon();
    rig.work();
    said.extend(rig.take());
    let cancelled: Vec<_> = said.iter().filter(|line| line.contains("notifications/cancelled")).collect();
    assert_eq!(cancelled.len(), 1, "{said:?}");
    assert_eq!(parse(cancelled[0])["params"]["requestId"], 4);
    assert!(said.iter().any(|line| parse(line)["id"] == 2), "what is open is answered: {said:?}");
}

/// A listen that waits for room gets no notification before its acknowledgement.
// spec: B178
#[test]
fn nothing_before_the_acknowledgement() {
    let listen = request(MODERN, "l", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut told = 0;
    // The answer before it leaves little room.
    for size in 0..400 {
        let mut rig: Rig = Rig::with(600);
        rig.feed_and_keep(&call(MODERN, 1, "large", json!({"size": size})));
        rig.feed_and_keep(&listen);
        rig.session.server.publish(ServerChange::Tools);
        rig.work();
        let said: Vec<_> = rig.take().iter().map(|line| parse(line)["method"].clone()).collect();
        let first = said.iter().position(|method| method == "notifications/subscriptions/acknowledged").unwrap();
        let change = said.iter().position(|method| method == "notifications/tools/list_changed");
        assert!(change.is_none_or(|change| first < change), "{size}: {said:?}");
        told += usize::from(change.is_some());
    }
    assert!((1..400).contains(&told), "{told}: some were open before the change, some had to wait");
}

/// An update whose URI is larger than the sink is dropped; the others do not wait for it.
#[test]
fn an_update_that_never_fits() {
    let mut rig: Rig = Rig::with(300).opened(C);
    let long = format!("file:///{}", "x".repeat(400));
    for uri in [long.as_str(), "test://text"] {
        rig.one(&request(C, 1, "resources/subscribe", json!({"uri": uri})));
    }
    rig.session.server.publish(ServerChange::Resource(&long));
    rig.session.server.publish(ServerChange::Resource("test://text"));
    rig.work();
    assert_eq!(rig.take().len(), 1);
    // A listen with such a URI is acknowledged without its URIs.
    let mut rig: Rig = Rig::with(300);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [long]});
    let reply = parse(&rig.one(&request(MODERN, 1, "subscriptions/listen", json!({"notifications": filter}))));
    assert_eq!(reply["params"]["notifications"], json!({"toolsListChanged": true}));
}

/// With full tables of subscriptions there is still an answer; listens do not count as requests in flight.
#[test]
fn many_subscriptions() {
    let server = Server::new(Slots::growing(2)).subscriptions(Store::growing(256));
    let mut rig = Rig::of(usize::MAX, server).opened(C);
    let codes: Vec<_> = (0..30)
        .map(|n| rig.one(&request(C, n + 1, "resources/subscribe", json!({"uri": format!("test://items/{n}")}))))
        .map(|line| parse(&line)["error"]["code"].as_i64())
        .collect();
    assert_eq!((codes.first(), codes.last()), (Some(&None), Some(&Some(-32603))));
    let mut rig = Rig::in_flight(2);
    for id in 0..20 {
        rig.one(&request(MODERN, id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})));
    }
    assert_eq!(text(&rig.one(&call(MODERN, 50, "add", json!({"a": 1, "b": 1})))), "2");
    assert_eq!(rig.session.server.in_flight(), 0);
}

/// Progress of requests that were put off: only with a token, and only increasing.
// spec: B170 B171 B176 B197 B201 B205
#[test]
fn late_progress() {
    for revision in REVISIONS {
        let mut rig = Rig::new().opened(revision);
        rig.say(&request(revision, 1, "tools/call", json!({"name": "later", "_meta": {"progressToken": "t"}})));
        rig.say(&request(revision, 2, "tools/call", json!({"name": "later"})));
        let (with, without) = (rig.world.later[0].1, rig.world.later[1].1);
        let told: Vec<_> =
            [0, 5, 5, 4, 6].map(|done| rig.session.progress(with, Progress::new(done).message("m"))).into();
        assert_eq!(
            told,
            [
                NotifyStatus::Sent,
                NotifyStatus::Sent,
                NotifyStatus::NotAsked,
                NotifyStatus::NotAsked,
                NotifyStatus::Sent
            ]
        );
        assert_eq!(rig.session.progress(without, Progress::new(1)), NotifyStatus::NotAsked);
        rig.work();
        let said = rig.take();
        assert_eq!(said.len(), 3);
        assert_eq!(said.iter().all(|line| line.contains("\"message\"")), revision != "2024-11-05");
    }
}

/// Log messages that belong to no request: to legacy clients only, and at `info` and above before `logging/setLevel`.
#[test]
fn log_messages() {
    for revision in REVISIONS {
        let mut rig = Rig::new().opened(revision);
        let (about, mut said) = (*rig.service.about(), Vec::new());
        for level in LoggingLevel::ALL {
            let (server, out) = (&mut rig.session.server, &mut rig.session.out);
            said.push(server.log(&about, None, level, Some("core"), format_args!("{}", level.name()), out));
        }
        rig.work();
        let count = said.iter().filter(|told| **told == NotifyStatus::Sent).count();
        assert_eq!(count, if is_modern(revision) { 0 } else { 7 }, "{revision}");
        assert_eq!(rig.take().len(), count);
    }
}

/// A server that is set not to add its name to results does not add it.
// spec: B052
#[test]
fn unsigned() {
    let oracle = Oracle::new().without_server_info();
    let mut rig = Rig::new().judged_by(oracle).serving(everything::service().without_server_info());
    for tool in ["add", "confirm", "raw", "book"] {
        let reply = rig.one(&call(MODERN, 1, tool, json!({"a": 1, "b": 1})));
        assert!(!reply.contains("serverInfo"), "{reply}");
    }
}

/// Tools made at run time come after the others, in the list and in calls.
#[test]
fn tools_made_at_run_time() {
    use mcp_sansio_host::{OwnedTool, OwnedTools};
    let tools = OwnedTools::new();
    let greeting = String::from("good morning");
    tools.push(OwnedTool::new("greet", "Greets", move |_: &mut World, call| call.text(&greeting)).unwrap());
    let tools: &'static OwnedTools<World> = Box::leak(Box::new(tools));
    for window in [300, usize::MAX] {
        for revision in REVISIONS {
            let mut rig: Rig = Rig::with(window).serving(everything::service().dynamic_tools(tools)).opened(revision);
            assert_eq!(text(&rig.one(&call(revision, 1, "greet", json!({})))), "good morning");
            let listed = parse(&rig.one(&request(revision, 2, "tools/list", json!({}))));
            assert_eq!(listed["result"]["tools"].as_array().unwrap().last().unwrap()["name"], "greet");
        }
    }
    let _ = MessageLimits::default();
}

/// One `IncomingRequest` for all messages of a loop, and for the same message when the sink was full.
#[test]
fn a_request_is_read_into_again() {
    use mcp_sansio::protocol::Method;
    use mcp_sansio::server::{IncomingRequest, RequestSlot, Server, ServerEvent, ServerInfo, ServerOptions};
    use mcp_sansio::sink::{LineSink, SliceStorage};

    let about = ServerInfo::new("test", "1.0").feature(mcp_sansio::protocol::ServerCapability::Tools);
    let options = ServerOptions::new(&about);
    let mut slots = [RequestSlot::FREE; 2];
    let mut server = Server::new(&mut slots);
    let mut space = [0; 64];
    let mut out = LineSink::new(SliceStorage::new(&mut space));
    let mut request = IncomingRequest::empty();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert!(server.handle(&options, ping, &mut request, &mut out).unwrap().is_none());
    // There is no room for a second answer: the same message comes again.
    assert_eq!(server.handle(&options, ping, &mut request, &mut out).unwrap_err(), mcp_sansio::FullError::Now);
    out.clear();
    assert!(server.handle(&options, ping, &mut request, &mut out).unwrap().is_none());
    assert!(out.pending().ends_with(b"\"result\":{}}\n"), "{}", out.pending().escape_ascii());
    // Nothing of an earlier message is in a later one, also of one that could not be read.
    let call = call(MODERN, 2, "t", json!({"a": 1}));
    let event = server.handle(&options, call.as_bytes(), &mut request, &mut out).unwrap();
    assert!(matches!(event, Some(ServerEvent::Request { .. })) && request.arguments().is_some());
    assert!(request.read(b"{\"id\":1,").is_err());
    request.read(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
    assert_eq!(
        (request.method, request.envelope.params.is_none(), request.envelope.members.meta.is_none()),
        (Method::Other, true, true)
    );
    assert_eq!((request.envelope.id.is_none(), request.envelope.duplicate), (true, false));
}
