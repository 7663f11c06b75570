//! Each client's share of common resources: requests in flight, questions, sessions, subscriptions. Each resource has
//! a share for one client and a total for all.
use crate::common;

use common::http::*;
use common::*;
use mcp_sansio::json::Text;
use mcp_sansio::server::{
    IncomingRequest, MessageLimits, Peer, RespondError, Scope, Server, ServerChange, ServerOptions,
};
use mcp_sansio::service::{Dispatched, MessageSource, Service};
use mcp_sansio::sink::{FullError, LineSink, Out, SliceStorage};
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead};
use std::cell::Cell;
use std::collections::HashSet;

const D: &str = "2025-11-25";

fn web(config: EndpointConfig<'static>, limits: MessageLimits) -> Web {
    let mut web = Web::of(Endpoint::growing(config, Server::growing(limits), EndpointLimits::default()));
    web.authorize = Box::new(|head| Access::Granted { principal: named(head) });
    web
}

fn named(head: &RequestHead<'_>) -> Option<&'static str> {
    ["alice", "bob"].into_iter().find(|name| head.text("authorization") == Some(*name))
}

fn config_of(request_share: usize) -> EndpointConfig<'static> {
    config().request_share(request_share)
}

fn later(web: &mut Web, session: &str, id: i64) -> Reply {
    web.call(session, id, "later", json!({"tag": format!("{session}{id}")}))
}

#[test]
fn requests_in_flight_of_one_session() {
    let mut web = web(config_of(16), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let (greedy, other) = (web.open(D), web.open(D));
    for id in 0..16 {
        later(&mut web, &greedy, id).opened();
    }
    for id in 16..20 {
        let reply = later(&mut web, &greedy, id);
        assert_eq!((reply.status, reply.code(), &reply.body["id"]), (503, -32603, &json!(id)));
        // Its handler kept the token, and `on_cancel` is called.
        assert_eq!(web.world.cancelled.last(), Some(&web.later(&format!("{greedy}{id}"))));
    }
    // A request that is answered at once is served, and other clients are not affected.
    assert_eq!(web.call(&greedy, 20, "count", json!({})).status, 200);
    assert!(web.call(&greedy, 21, "confirm", json!({})).text().contains("too many questions"));
    later(&mut web, &other, 1).opened();
    web.call(&other, 2, "confirm", json!({})).opened();
    web.modern(1, "tools/call", json!({"name": "later", "arguments": {"tag": "m"}})).opened();
    // One answer makes room for another request.
    assert_eq!(web.answer(web.later(&format!("{greedy}0")), "done"), Ok(()));
    later(&mut web, &greedy, 22).opened();
}

#[test]
fn the_total_leaves_a_place_for_what_is_answered_at_once() {
    let mut web = web(config_of(64), MessageLimits { in_flight: 16, ..MessageLimits::default() });
    let sessions: Vec<_> = (0..4).map(|_| web.open(D)).collect();
    let taken = (0..24).filter(|id| later(&mut web, &sessions[*id as usize % 4], *id).status == 200).count();
    assert_eq!((taken, web.endpoint.load().0), (15, 15));
    for session in &sessions {
        assert_eq!(web.call(session, 99, "count", json!({})).status, 200);
        assert_eq!(web.say(session, &request(D, 98, "tools/list", json!({}))).status, 200);
    }
    assert_eq!(web.modern(1, "tools/call", json!({"name": "count"})).status, 200);
    assert_eq!(web.modern(1, "tools/call", json!({"name": "later"})).status, 503);
    assert_eq!(web.endpoint.load().0, 15);
}

/// 256 calls whose connections are closed at once: when others need their slots, the oldest calls are cancelled.
#[test]
fn requests_of_clients_that_are_gone_make_way() {
    let mut web = web(config_of(16), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let gone: Vec<_> = (0..4).map(|_| web.open(D)).collect();
    let mut first = None;
    for id in 0..64 {
        let reply = later(&mut web, &gone[id as usize / 16], id);
        web.now += 1;
        if let Some(stream) = reply.stream {
            let events = web.pull(stream).events;
            first = first.or_else(|| events[0].id.clone());
            web.detach(stream);
        }
    }
    assert_eq!(web.endpoint.load().0, 63);
    let session = web.open(D);
    for id in 0..16 {
        later(&mut web, &session, id).opened();
    }
    assert_eq!(later(&mut web, &session, 16).status, 503);
    assert_eq!((web.endpoint.load().0, web.world.cancelled.len()), (63, 18));
    // A client that resumes its stream gets the error of the cancelled request.
    let again = web.listen(&gone[0], first.as_deref()).opened();
    let told = web.pull(again).only();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(0), &json!(-32603)));
    assert_eq!(web.answer(web.later(&format!("{}0", gone[0])), "late"), Err(RespondError::Stale));
}

#[test]
fn a_session_takes_back_places_of_its_own() {
    let mut web = web(config_of(4), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let session = web.open(D);
    for id in 0..20 {
        let stream = later(&mut web, &session, id).opened();
        web.detach(stream);
    }
    assert_eq!((web.endpoint.load().0, web.world.cancelled.len()), (4, 16));
}

#[test]
fn a_batch_takes_no_more_than_the_share() {
    let mut web = web(config_of(8), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let session = web.open("2025-03-26");
    let call = |id| serde_json::from_str(&call("2025-03-26", id, "later", json!({"tag": "b"}))).unwrap();
    let batch: Vec<Value> = (0..30).map(call).collect();
    let stream = web.say(&session, &json!(batch).to_string()).opened();
    let refused: usize = web.pull(stream).json().iter().map(|answers| answers.as_array().unwrap().len()).sum();
    assert_eq!((refused, web.endpoint.load().0), (22, 8));
}

/// Without a slot, a reply in windows is refused before it begins: the error follows no part of it.
#[test]
fn a_reply_in_windows_without_a_place_is_refused_whole() {
    let mut web = web(config_of(1), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    for (revision, tool) in [("2025-03-26", "book"), (D, "book"), (D, "picture")] {
        let session = web.open(revision);
        later(&mut web, &session, 1).opened();
        let call = |id, tool| call(revision, id, tool, json!({}));
        let reply = web.say(&session, &call(2, tool));
        assert_eq!((reply.status, reply.code(), &reply.body["id"]), (503, -32603, &json!(2)));
        let read = request(revision, 3, "resources/read", json!({"uri": "test://film"}));
        assert_eq!((web.say(&session, &read).status, web.endpoint.load().0), (503, web.world.later.len()));
        if revision != "2025-03-26" {
            continue;
        }
        let batch = format!("[{},{},{}]", call(4, "count"), call(5, tool), call(6, "count"));
        let headers = [JSON, ("accept", "application/json"), ("mcp-session-id", &*session)];
        let answers = web.request("POST", "/mcp", &headers, &batch).body;
        let stream = web.say(&session, &batch).opened();
        for answers in [answers, web.pull(stream).only()] {
            assert_eq!(answers.as_array().unwrap().len(), 3, "{answers}");
            assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&json!(5), &json!(-32603)));
            assert!(answers[0].get("result").is_some() && answers[2].get("result").is_some(), "{answers}");
        }
    }
}

#[test]
fn a_principal_has_one_share_for_all_its_sessions() {
    let mut web = web(config_of(8), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let mut open = |name: &str| {
        let headers = [JSON, ACCEPT, ("authorization", name)];
        let reply = web.request("POST", "/mcp", &headers, &initialize(D, json!({})));
        reply.header("mcp-session-id").unwrap().to_owned()
    };
    let sessions = [open("alice"), open("alice"), open("bob")];
    let mut call = |session: &str, name: &str, id: i64| {
        let headers = [JSON, ACCEPT, ("authorization", name), ("mcp-session-id", session)];
        web.request("POST", "/mcp", &headers, &call(D, id, "later", json!({}))).status
    };
    let statuses: Vec<_> = (0..10).map(|id| call(&sessions[id as usize % 2], "alice", id)).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 503, 503]);
    assert_eq!(call(&sessions[2], "bob", 1), 200);
    let mut modern =
        |name: &str| web.modern_with(&[("authorization", name)], 1, "tools/call", json!({"name": "later"})).status;
    assert_eq!((modern("alice"), modern("bob"), modern("nobody")), (503, 200, 200));
}

/// Clients of 2026-07-28 without authorization are one: together they leave a share to a client that is known.
#[test]
fn clients_that_cannot_be_distinguished_leave_a_share() {
    let mut web = web(config_of(16), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let session = web.open(D);
    let mut modern = |id: i64| web.modern(id, "tools/call", json!({"name": "later"})).status;
    assert_eq!((0..60).filter(|id| modern(*id) == 200).count(), 63 - 16);
    for id in 0..16 {
        later(&mut web, &session, id).opened();
    }
    assert_eq!(later(&mut web, &session, 16).status, 503);
}

/// A table of four, as on a device: one client may take nearly all of it, and quick answers still go out.
#[test]
fn small_tables() {
    let mut web = web(config(), MessageLimits { in_flight: 4, ..MessageLimits::default() });
    let session = web.open(D);
    for id in 0..3 {
        later(&mut web, &session, id).opened();
    }
    assert_eq!(later(&mut web, &session, 3).status, 503);
    assert_eq!(web.call(&session, 4, "count", json!({})).status, 200);
    let mut web = self::web(config(), MessageLimits { in_flight: 1, ..MessageLimits::default() });
    let session = web.open(D);
    later(&mut web, &session, 0).opened();
    assert_eq!(later(&mut web, &session, 1).status, 503);
}

#[test]
fn questions_of_a_client_that_is_gone_end() {
    let mut web = web(config_of(16), MessageLimits { in_flight: 64, ..MessageLimits::default() });
    let (gone, other) = (web.open(D), web.open(D));
    let mut last = None;
    for id in 0..30 {
        if let Some(stream) = web.call(&gone, id, "confirm", json!({})).stream {
            last = web.pull(stream).events.last().and_then(|event| event.id.clone());
            web.detach(stream);
        }
    }
    assert_eq!(web.endpoint.load().0, 16);
    let stream = web.call(&other, 1, "confirm", json!({})).opened();
    assert_eq!(web.pull(stream).json()[0]["method"], "elicitation/create");
    web.wait(59_999);
    assert_eq!(web.endpoint.load().0, 17);
    web.wait(1);
    assert_eq!(web.endpoint.load().0, 1, "the one whose client is there");
    // The answer is kept for the same time again.
    web.wait(59_999);
    let again = web.listen(&gone, last.as_deref()).opened();
    assert_eq!(web.pull(again).only()["result"]["content"][0]["text"], "closed");
    web.wait(60_000);
    assert_eq!(web.endpoint.load().2, 1);
}

/// The client has seen no event id, so it cannot resume; and it has never got the question.
#[test]
fn questions_that_were_never_read_end_at_once() {
    let mut web = web(config(), MessageLimits { in_flight: 8, ..MessageLimits::default() });
    for revision in ["2025-03-26", D] {
        let session = web.open(revision);
        let tool = if revision == D { "confirm" } else { "sample" };
        let unread = web.call(&session, 1, tool, json!({})).opened();
        web.detach(unread);
        assert_eq!(web.endpoint.load().0, 0, "{revision}");
    }
}

#[test]
fn memory_for_questions_has_a_share() {
    let limits = MessageLimits { asks: 4_000, ask_share: 1_000, ..MessageLimits::default() };
    let mut web = web(config(), MessageLimits { in_flight: 64, ..limits });
    let (greedy, other) = (web.open(D), web.open(D));
    let asks = |web: &mut Web, session: &str, id, size| {
        let reply = web.call(session, id, "confirm", json!({"x": "x".repeat(size)}));
        reply.stream.is_some()
    };
    assert!(!asks(&mut web, &greedy, 0, 1_000));
    let open = (1..20).filter(|id| asks(&mut web, &greedy, *id, 200)).count();
    assert_eq!(open, 3);
    assert!(asks(&mut web, &other, 1, 200));
    // An answer beyond the share is dropped.
    let stream = web.call(&other, 2, "confirm", json!({})).opened();
    let question = web.pull(stream).json()[0]["id"].clone();
    let long = json!({"action": "accept", "content": {"name": "x".repeat(900)}});
    assert_eq!(web.say(&other, &answer(&question, long)).status, 202);
    assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "closed");
}

fn begin(web: &mut Web, name: &str) -> Reply {
    web.request("POST", "/mcp", &[JSON, ACCEPT, ("authorization", name)], &initialize(D, json!({})))
}

/// A burst of `initialize` excludes no other client: sessions without another request end first, the oldest before
/// the others.
#[test]
fn sessions_that_only_began_make_way() {
    let mut web = Web::limited(config(), EndpointLimits::default().sessions(10));
    let used = web.open(D);
    let heard = begin(&mut web, "").header("mcp-session-id").unwrap().to_owned();
    let stream = web.listen(&heard, None).opened();
    let working = begin(&mut web, "").header("mcp-session-id").unwrap().to_owned();
    web.call(&working, 1, "later", json!({})).opened();
    for _ in 0..1_000 {
        assert_eq!(begin(&mut web, "").status, 200);
    }
    assert_eq!(web.endpoint.load().1, 10);
    for session in [&used, &heard, &working] {
        assert_eq!(web.say(session, &request(D, 2, "ping", json!({}))).status, 200);
    }
    assert!(!web.pull(stream).ended);
}

/// A session that was used is kept for a minute, and then may end.
#[test]
fn used_sessions_make_way_after_a_minute() {
    let mut web = Web::limited(config(), EndpointLimits::default().sessions(4));
    for _ in 0..4 {
        web.open(D);
    }
    begin(&mut web, "").refused(503);
    web.wait(60_000);
    assert_eq!(begin(&mut web, "").status, 200);
}

/// With a rest of 0, sessions that were used never make way.
#[test]
fn used_sessions_stay_if_the_server_wants_it() {
    let limits = EndpointLimits::default().sessions(2);
    let mut web = Web::limited(config().session_rest(0), limits);
    let sessions = [web.open(D), web.open(D)];
    web.wait(600_000);
    begin(&mut web, "").refused(503);
    for session in &sessions {
        assert_eq!(web.say(session, &request(D, 2, "ping", json!({}))).status, 200);
    }
}

/// Principals end in the order in which they came, with others in the same rows of the index: those that stay are found.
#[test]
fn principals_come_and_go() {
    const MANY: usize = 40;
    let names: Vec<&'static str> = (0..MANY).map(|n| &*format!("user {n}").leak()).collect();
    let limits = EndpointLimits::default().sessions(64);
    let mut web = Web::limited(config().session_share(1), limits);
    let known = names.clone();
    web.authorize = Box::new(move |head| Access::Granted {
        principal: known.iter().copied().find(|name| head.text("authorization") == Some(*name)),
    });
    for round in 0..2 {
        let sessions: Vec<String> = names
            .iter()
            .map(|name| {
                let session = begin(&mut web, name).header("mcp-session-id").unwrap().to_owned();
                let headers = [JSON, ACCEPT, ("authorization", name), ("mcp-session-id", &session)];
                let initialized = notify("notifications/initialized", json!({}));
                assert_eq!(web.request("POST", "/mcp", &headers, &initialized).status, 202);
                session
            })
            .collect();
        // First in the order in which they came, then the other way.
        let order: Vec<usize> = if round == 0 { (0..MANY).collect() } else { (0..MANY).rev().collect() };
        for (gone, &index) in order.iter().enumerate() {
            let headers = [("authorization", names[index]), ("mcp-session-id", &*sessions[index])];
            assert_eq!(web.request("DELETE", "/mcp", &headers, "").status, 204);
            assert_eq!(web.endpoint.load().1, MANY - gone - 1);
            for &stays in &order[gone + 1..] {
                begin(&mut web, names[stays]).refused(503);
            }
        }
    }
}

/// The key of the index of principals is random, and made once: with the first principal.
#[test]
fn names_of_principals_are_hashed_with_a_random_key() {
    let mut web = web(config(), MessageLimits { in_flight: 8, ..MessageLimits::default() });
    let mut drawn = |name: &'static str| {
        let body = request(MODERN, 1, "tools/list", json!({}));
        let headers: &[(&str, &[u8])] = &[
            ("content-type", b"application/json"),
            ("accept", BOTH.as_bytes()),
            ("mcp-protocol-version", MODERN.as_bytes()),
            ("mcp-method", b"tools/list"),
        ];
        let mut drawn = Vec::new();
        let mut out = LineSink::new(Vec::new());
        let allow = |_: &RequestHead<'_>| Access::Granted { principal: Some(name).filter(|name| !name.is_empty()) };
        let mut app = App::new(&web.service, &mut web.world).authorize(&allow);
        let mut random = |bytes: &mut [u8]| {
            bytes.fill(7);
            drawn.push(bytes.len());
        };
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let response = web.endpoint.request(&mut app, &head, body.as_bytes(), 1000, &mut random, &mut out);
        assert_eq!(response.status, 200);
        drawn
    };
    assert_eq!((drawn(""), drawn("alice"), drawn("bob")), (vec![], vec![8], vec![]));
}

#[test]
fn sessions_of_one_principal() {
    let mut web = web(config().session_share(3), MessageLimits { in_flight: 8, ..MessageLimits::default() });
    let mut next = || {
        web.now += 1;
        begin(&mut web, "alice").header("mcp-session-id").unwrap().to_owned()
    };
    let ids: Vec<_> = (0..6).map(|_| next()).collect();
    assert_eq!(web.endpoint.load().1, 3, "its oldest make way, since they only began");
    for id in &ids[3..] {
        let headers = [JSON, ACCEPT, ("authorization", "alice"), ("mcp-session-id", id)];
        assert_eq!(web.request("POST", "/mcp", &headers, &request(D, 1, "ping", json!({}))).status, 200);
        assert_eq!(web.request("POST", "/mcp", &headers, &notify("notifications/initialized", json!({}))).status, 202);
    }
    begin(&mut web, "alice").refused(503);
    assert_eq!((begin(&mut web, "bob").status, begin(&mut web, "").status), (200, 200));
    web.wait(60_000);
    assert_eq!((begin(&mut web, "alice").status, web.endpoint.load().1), (200, 5));
}

fn listen(id: i64, uris: impl Iterator<Item = String>) -> String {
    let uris: Vec<_> = uris.collect();
    request(MODERN, id, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}))
}

fn granted(line: &[u8]) -> usize {
    let line: Value = serde_json::from_slice(line).unwrap();
    line["params"]["notifications"]["resourceSubscriptions"].as_array().map_or(0, Vec::len)
}

/// A listen may name any number of URIs; the server looks only at a limited number.
#[test]
fn work_for_uris_is_bounded() {
    let service = everything::service();
    let looks = Cell::new(0);
    let has_resource = |_: &Text<'_>| {
        looks.set(looks.get() + 1);
        true
    };
    let mut context = ServerOptions::new(service.about());
    context.has_resource = &has_resource;
    let mut same = (0..100_000).map(|_| "test://text".to_owned());
    let mut differ = (0..100_000).map(|n| format!("test://items/{n}"));
    // (URIs in all, share of bytes, looked at, granted)
    for (uris, share, limit, least) in
        [(&mut same as &mut dyn Iterator<Item = String>, 65_536, 1_000, 1), (&mut differ, 65_536, 1_000, 1_000)]
    {
        let limits = MessageLimits { subscription_share: share, ..MessageLimits::default() };
        let mut server = Server::growing(MessageLimits { in_flight: 4, ..limits });
        let mut out = LineSink::new(Window::of(usize::MAX));
        looks.set(0);
        server.handle(&context, listen(1, uris).as_bytes(), &mut IncomingRequest::empty(), &mut out).unwrap();
        assert_eq!((looks.get(), granted(out.pending())), (limit, least));
    }
    // Without memory for it, the first URI that does not fit ends the list.
    let mut server =
        Server::growing(MessageLimits { in_flight: 4, subscription_share: 500, ..MessageLimits::default() });
    let mut out = LineSink::new(Window::of(usize::MAX));
    looks.set(0);
    let long = listen(1, (0..5_000).map(|n| format!("test://items/{n}")));
    server.handle(&context, long.as_bytes(), &mut IncomingRequest::empty(), &mut out).unwrap();
    assert_eq!(looks.get(), granted(out.pending()) + 1);
    assert!(looks.get() < 20, "{}", looks.get());
}

#[test]
fn subscriptions_one_by_one() {
    let mut rig = Rig::new().unjudged().opened(D);
    for n in 0..1_000 {
        let subscribe = request(D, n, "resources/subscribe", json!({"uri": format!("test://items/{n}")}));
        assert!(rig.one(&subscribe).contains("\"result\":{}"));
    }
    let more = request(D, 1_000, "resources/subscribe", json!({"uri": "test://items/more"}));
    assert_eq!(code(&rig.one(&more)), -32603);
    // A known URI is not counted again, and one that ends makes room.
    let known = request(D, 1_001, "resources/subscribe", json!({"uri": "test://items/7"}));
    assert!(rig.one(&known).contains("\"result\":{}"));
    rig.one(&request(D, 1_002, "resources/unsubscribe", json!({"uri": "test://items/7"})));
    assert!(rig.one(&more).contains("\"result\":{}"));
    rig.session.server.publish(ServerChange::Resource("test://items/8"));
    rig.work();
    assert_eq!(rig.take().len(), 1);
}

/// Over HTTP each listen has a share of the memory: large listens leave room for others.
#[test]
fn memory_for_subscriptions_has_a_share() {
    let limits = MessageLimits { subscriptions: 200_000, subscription_share: 20_000, ..MessageLimits::default() };
    let mut web = web(config(), MessageLimits { in_flight: 8, ..limits });
    let large = |from: usize| {
        let uris: Vec<_> = (from..from + 30).map(|n| format!("test://items/{n}{}", "x".repeat(1_000))).collect();
        json!({"notifications": {"resourceSubscriptions": uris}})
    };
    let first = web.modern(1, "subscriptions/listen", large(0)).opened();
    let told = web.pull(first).json().remove(0);
    let kept = told["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len();
    assert!((10..20).contains(&kept), "{kept}");
    let small = json!({"notifications": {"resourceSubscriptions": ["test://text"]}});
    let second = web.modern(1, "subscriptions/listen", small.clone()).opened();
    assert_eq!(web.pull(second).json()[0]["params"]["notifications"], small["notifications"]);
    let session = web.open(D);
    let subscribe = |uri: String| request(D, 1, "resources/subscribe", json!({"uri": uri}));
    assert_eq!(web.say(&session, &subscribe("test://text".into())).status, 200);
    // The total is for all: a listen is refused if none of its URIs fits.
    let streams: Vec<_> = (1..20).map(|n| web.modern(n, "subscriptions/listen", large(n as usize * 1_000))).collect();
    let refused: Vec<_> = streams.iter().filter(|reply| reply.stream.is_none()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|reply| (reply.status, reply.code()) == (503, -32603)));
    web.publish(ServerChange::Resource("test://text"));
    assert_eq!(web.pull(second).json().len(), 1);
}

/// Two listens with the same id are independent, in their URIs and in their lists.
#[test]
fn two_clients_with_the_same_ids() {
    let mut web = Web::new();
    let filter = |uri: &str| json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [uri]}});
    let one = web.modern(1, "subscriptions/listen", filter("test://text")).opened();
    let two = web.modern(1, "subscriptions/listen", filter("test://blob")).opened();
    let uris = |told: &[Value]| told[0]["params"]["notifications"]["resourceSubscriptions"].clone();
    assert_eq!(uris(&web.pull(one).json()), json!(["test://text"]));
    assert_eq!(uris(&web.pull(two).json()), json!(["test://blob"]));
    for _ in 0..2 {
        web.publish(ServerChange::Resource("test://blob"));
        assert_eq!(web.pull(two).json()[0]["params"]["uri"], "test://blob");
        assert!(web.pull(one).json().is_empty());
        web.detach(one);
    }
    web.publish(ServerChange::Tools);
    assert_eq!(web.pull(two).json()[0]["method"], "notifications/tools/list_changed");
}

/// A resource whose URI is the id of a listen changes nothing of that listen.
#[test]
fn a_resource_with_the_name_of_a_listen() {
    let mut rig = Rig::new();
    let filter = json!({"notifications": {"promptsListChanged": true}});
    assert!(rig.one(&request(MODERN, 1, "subscriptions/listen", filter)).contains("subscriptions/acknowledged"));
    for unwanted in [ServerChange::Resource("1"), ServerChange::Tools, ServerChange::Resources] {
        rig.session.server.publish(unwanted);
        rig.work();
        assert_eq!(rig.take(), [""; 0], "{unwanted:?}");
    }
    rig.session.server.publish(ServerChange::Prompts);
    rig.work();
    assert_eq!(rig.take().len(), 1);
}

/// One server for two clients, as an endpoint has it.
struct TwoClients {
    server: Server<'static>,
    peers: [Peer; 2],
    service: Service<'static, World>,
    world: World,
    out: LineSink<Window>,
}

impl TwoClients {
    fn new() -> Self {
        TwoClients {
            server: Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() }),
            peers: [Peer::NEW; 2],
            service: everything::service(),
            world: World::default(),
            out: LineSink::new(Window::of(usize::MAX)),
        }
    }

    /// Returns what the server says to a message of one of them.
    fn on(&mut self, at: usize, message: &str) -> Vec<Value> {
        let TwoClients { server, peers, service, world, out } = self;
        server.with_peer(&mut peers[at], Scope(at as u32 + 1), |server| {
            let _ = service.dispatch(world, message.as_bytes(), server, out).unwrap();
        });
        let said = String::from_utf8(out.pending().to_vec()).unwrap();
        let n = out.pending().len();
        out.sent(n);
        said.lines().map(parse).collect()
    }
}

/// The end of one client's input does not end the questions to another one.
#[test]
fn questions_of_two_clients() {
    let mut two = TwoClients::new();
    let mut ids = Vec::new();
    for at in 0..2 {
        two.on(at, &initialize(D, all_capabilities(D)));
        ids.push(two.on(at, &call(D, 7, "confirm", json!({})))[0]["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    two.server.with_peer(&mut two.peers[0], Scope(1), |server| server.end_of_input());
    let ended = two.server.ready().expect("the first one's");
    two.server.forget(ended);
    assert_eq!((two.server.ready(), two.server.in_flight()), (None, 1));
    two.on(1, &answer(&ids[1], json!({"action": "decline"})));
    assert!(two.server.ready().is_some());
}

/// What one client cancels is its own listen, and not the other's with the same id.
#[test]
fn listens_of_two_clients() {
    let mut two = TwoClients::new();
    let filter = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://clock"]}});
    let listen = request("2026-07-28", 7, "subscriptions/listen", filter);
    for at in 0..2 {
        assert_eq!(two.on(at, &listen)[0]["method"], "notifications/subscriptions/acknowledged");
    }
    two.on(0, &cancel(7));
    assert_eq!(code(&two.on(1, &listen)[0].to_string()), -32600, "it is still open");
    assert_eq!(two.on(0, &listen)[0]["method"], "notifications/subscriptions/acknowledged");
}

/// When the slot of a session is used again, its questions, params and answers are gone.
#[test]
fn a_slot_that_asked_is_used_again() {
    let limits = MessageLimits { asks: 1_000, ..MessageLimits::default() };
    let mut web = web(config(), MessageLimits { in_flight: 2, ..limits });
    for round in 0..20 {
        let session = web.open(D);
        let stream = web.call(&session, 1, "survey", json!({"x": "x".repeat(300)})).opened();
        let asked = web.pull(stream).json();
        assert_eq!(asked.len(), 2, "round {round}");
        web.say(&session, &answer(&asked[0]["id"], json!({"action": "accept", "content": {"name": "old"}})));
        match round % 2 {
            0 => assert_eq!(web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status, 204),
            _ => assert_eq!(web.say(&session, &cancel(1)).status, 202),
        }
        assert_eq!(web.endpoint.load().0, 0);
        // A late answer is ignored.
        web.say(&session, &answer(&asked[1]["id"], json!({"roots": []})));
    }
    let session = web.open(D);
    let stream = web.call(&session, 1, "survey", json!({})).opened();
    for question in web.pull(stream).json() {
        let result = match question["method"].as_str() {
            Some("roots/list") => json!({"roots": [{"uri": "file:///new"}]}),
            _ => json!({"action": "accept", "content": {"name": "new"}}),
        };
        web.say(&session, &answer(&question["id"], result));
    }
    let last = web.pull(stream).only();
    assert!(last["result"]["content"][0]["text"].as_str().unwrap().starts_with("accepted new, "), "{last}");
}

/// Each id is used once, however many there are. A ping takes one of them.
// spec: B063
#[test]
fn ids_of_questions_never_come_again() {
    let (service, mut world) = (everything::service(), World::default());
    let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
    let mut out = LineSink::new(Window::of(usize::MAX));
    let mut say = |server: &mut Server<'static>, line: &str| {
        let _ = service.dispatch(&mut world, line.as_bytes(), server, &mut out).unwrap();
        take(&mut out)
    };
    say(&mut server, &initialize(D, all_capabilities(D)));
    let (ask, cancel) = (call(D, 1, "roots", json!({})), cancel(1));
    let mut seen = HashSet::new();
    // More often than 16 bits can count, in one slot of the table.
    for round in 0..70_000 {
        assert!(seen.insert(id_of(&say(&mut server, &ask))), "round {round}");
        say(&mut server, &cancel);
    }
    for _ in 0..3 {
        let mut out = LineSink::new(Window::of(usize::MAX));
        server.send_request("ping", None, &mut out).unwrap();
        let ping = take(&mut out);
        assert!(ping.ends_with(",\"method\":\"ping\"}\n") && seen.insert(id_of(&ping)), "{ping}");
        // An answer to it is ignored.
        assert_eq!(say(&mut server, &answer(&json!(id_of(&ping)), json!({}))), "");
    }
}

fn take(out: &mut LineSink<Window>) -> String {
    let said = String::from_utf8(out.pending().to_vec()).unwrap();
    out.sent(said.len());
    said
}

/// The id of a request, without reading the rest.
fn id_of(line: &str) -> u64 {
    let digits = line.strip_prefix("{\"jsonrpc\":\"2.0\",\"id\":").and_then(|rest| rest.split_once(',')).unwrap().0;
    digits.parse().unwrap()
}

#[test]
fn a_ping_needs_a_client_that_initialized() {
    let mut rig = Rig::new();
    let mut out = LineSink::new(Window::of(usize::MAX));
    assert_eq!(rig.session.server.send_request("ping", None, &mut out), Err(RespondError::NotInitialized));
    rig.one(&request(MODERN, 1, "tools/list", json!({})));
    assert_eq!(rig.session.server.send_request("ping", None, &mut out), Err(RespondError::NotInitialized));
    assert!(out.pending().is_empty());
    let mut rig = Rig::new().opened("2024-11-05");
    let mut small = [0; 20];
    assert_eq!(
        rig.session.server.send_request("ping", None, &mut LineSink::new(SliceStorage::new(&mut small))),
        Err(RespondError::FullNever)
    );
}

/// Refused listens leave nothing in the memory for subscriptions.
#[test]
fn refused_listens_leave_nothing() {
    let limits = MessageLimits { subscriptions: 60, ..MessageLimits::default() };
    let few = EndpointLimits::default().streams(1);
    let mut web = Web::of(Endpoint::growing(config(), Server::growing(MessageLimits { in_flight: 8, ..limits }), few));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let body = request(MODERN, 1, "subscriptions/listen", filter.clone());
    let json_only = [
        JSON,
        ("accept", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "subscriptions/listen"),
    ];
    for _ in 0..100 {
        web.request("POST", "/mcp", &json_only, &body).refused(406);
    }
    let open = web.modern(1, "subscriptions/listen", filter.clone()).opened();
    assert_eq!(web.pull(open).json()[0]["method"], "notifications/subscriptions/acknowledged");
    for id in 0..100 {
        let reply = web.modern(id, "subscriptions/listen", filter.clone());
        assert!(reply.stream.is_none() && reply.status >= 400, "{reply:?}");
    }
    // One of them had the id of the open one, which still hears.
    web.publish(ServerChange::Tools);
    assert_eq!(web.pull(open).json()[0]["method"], "notifications/tools/list_changed");
    web.detach(open);
    web.modern(1, "subscriptions/listen", filter).opened();
}

/// A subscription is undone if its answer finds no room: the message is handled again later.
#[test]
fn an_answer_without_room_subscribes_nobody() {
    let service = everything::service();
    let mut world = World::default();
    let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
    let mut out = LineSink::new(Window::of(usize::MAX));
    let _ = service.dispatch(&mut world, initialize(D, json!({})).as_bytes(), &mut server, &mut out).unwrap();
    let subscribe = request(D, 1, "resources/subscribe", json!({"uri": "test://text"}));
    let mut bytes = [0; 300];
    let mut small = LineSink::new(SliceStorage::new(&mut bytes));
    while server.send_request("ping", None, &mut small).is_ok() {}
    let step = service.dispatch(&mut world, subscribe.as_bytes(), &mut server, &mut small);
    assert!(matches!(step, Err(FullError::Now)), "{step:?}");
    assert!(!server.has_subscribers());
    let n = small.pending().len();
    small.sent(n);
    assert!(service.dispatch(&mut world, subscribe.as_bytes(), &mut server, &mut small).is_ok());
    assert!(server.has_subscribers());
}

#[test]
fn a_listen_with_a_long_id() {
    let mut rig = Rig::new();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let refused =
        rig.one(&request(MODERN, "x".repeat(mcp_sansio::server::ID_MAX - 1), "subscriptions/listen", filter.clone()));
    assert_eq!(code(&refused), -32600);
    assert!(!rig.session.server.has_subscribers());
    let told = rig.one(&request(MODERN, "x".repeat(mcp_sansio::server::ID_MAX - 2), "subscriptions/listen", filter));
    assert!(told.contains("subscriptions/acknowledged"));
}

/// `initialize` cannot be cancelled: its answer goes out whole, even in windows.
// spec: B186
#[test]
fn an_initialize_that_is_cancelled_half_way() {
    static LONG: &str = "Read this first. And read this first. And read this first. And read this first. And read this \
        first. And read this first. And read this first. And read this first. And read this first. And read this first. \
        And read this first. And read this first. And read this first. And read this first. And read this first.";
    let service = everything::service().instructions(LONG);
    let mut world = World::default();
    let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
    let mut bytes = [0; 300];
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    let step = service.dispatch(&mut world, initialize(D, json!({})).as_bytes(), &mut server, &mut out);
    let Ok(Dispatched::Streaming(token)) = step else { panic!("{step:?}") };
    let mut said = out.pending().to_vec();
    out.sent(said.len());
    let _ =
        service.dispatch_from(&MessageSource::LINE, &mut world, cancel(0).as_bytes(), &mut server, &mut out).unwrap();
    for _ in 0..100 {
        let done = service.pump(&mut world, token, &mut server, &mut out) == mcp_sansio::service::Dispatched::Handled;
        said.extend_from_slice(out.pending());
        let n = out.pending().len();
        out.sent(n);
        if done {
            break;
        }
    }
    assert!(!out.held());
    let answer: Value = serde_json::from_slice(&said).expect("one whole line");
    assert_eq!(answer["result"]["instructions"], LONG);
    assert!(world.cancelled.is_empty());
}
