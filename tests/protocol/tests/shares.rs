//! What one client can take of what all share: requests in flight, questions, sessions, subscriptions. Each has a share and
//! a total; what the others need stays free.
mod common;

use common::http::*;
use common::*;
use mcp_sansio::json::Text;
use mcp_sansio::server::{Change, Context, Limits, Peer, Scope, SendError, Server};
use mcp_sansio::service::{Origin, Step};
use mcp_sansio::sink::{Full, Lines, Out, Slice};
use mcp_sansio_http::endpoint::{Access, Config, Endpoint, EndpointLimits, Head};
use std::cell::Cell;
use std::collections::HashSet;

const D: &str = "2025-11-25";

fn web<const N: usize>(config: Config<'static>, limits: Limits) -> Web<N> {
    let mut web = Web::of(Endpoint::growing(config, Server::growing(limits), EndpointLimits::default()));
    web.authorize = Box::new(|head| Access::Granted { principal: named(head) });
    web
}

fn named(head: &Head<'_>) -> Option<&'static str> {
    ["alice", "bob"].into_iter().find(|name| head.text("authorization") == Some(*name))
}

fn config_of(request_share: usize) -> Config<'static> {
    config().request_share(request_share)
}

fn later<const N: usize>(web: &mut Web<N>, session: &str, id: i64) -> Reply {
    web.call(session, id, "later", json!({"tag": format!("{session}{id}")}))
}

#[test]
fn requests_in_flight_of_one_session() {
    let mut web: Web<64> = web(config_of(16), Limits::default());
    let (greedy, other) = (web.open(D), web.open(D));
    for id in 0..16 {
        later(&mut web, &greedy, id).opened();
    }
    for id in 16..20 {
        let reply = later(&mut web, &greedy, id);
        assert_eq!((reply.status, reply.code(), &reply.body["id"]), (503, -32603, &json!(id)));
        // Its handler kept the token, and is told.
        assert_eq!(web.world.cancelled.last(), Some(&web.later(&format!("{greedy}{id}"))));
    }
    // What is answered at once is, and the others are not concerned.
    assert_eq!(web.call(&greedy, 20, "count", json!({})).status, 200);
    assert!(web.call(&greedy, 21, "confirm", json!({})).text().contains("too many questions"));
    later(&mut web, &other, 1).opened();
    web.call(&other, 2, "confirm", json!({})).opened();
    web.modern(1, "tools/call", json!({"name": "later", "arguments": {"tag": "m"}})).opened();
    // One that is answered makes room for another.
    assert_eq!(web.answer(web.later(&format!("{greedy}0")), "done"), Ok(()));
    later(&mut web, &greedy, 22).opened();
}

#[test]
fn the_total_leaves_a_place_for_what_is_answered_at_once() {
    let mut web: Web<16> = web(config_of(64), Limits::default());
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

/// 256 calls whose connections are closed at once: their places are given up when others need them, oldest first.
#[test]
fn requests_of_clients_that_are_gone_make_way() {
    let mut web: Web<64> = web(config_of(16), Limits::default());
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
    // What was given up is said to a client that comes back.
    let again = web.listen(&gone[0], first.as_deref()).opened();
    let told = web.pull(again).only();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(0), &json!(-32603)));
    assert_eq!(web.answer(web.later(&format!("{}0", gone[0])), "late"), Err(SendError::Stale));
}

#[test]
fn a_session_takes_back_places_of_its_own() {
    let mut web: Web<64> = web(config_of(4), Limits::default());
    let session = web.open(D);
    for id in 0..20 {
        let stream = later(&mut web, &session, id).opened();
        web.detach(stream);
    }
    assert_eq!((web.endpoint.load().0, web.world.cancelled.len()), (4, 16));
}

#[test]
fn a_batch_takes_no_more_than_the_share() {
    let mut web: Web<64> = web(config_of(8), Limits::default());
    let session = web.open("2025-03-26");
    let call = |id| serde_json::from_str(&call("2025-03-26", id, "later", json!({"tag": "b"}))).unwrap();
    let batch: Vec<Value> = (0..30).map(call).collect();
    let stream = web.say(&session, &json!(batch).to_string()).opened();
    let refused: usize = web.pull(stream).json().iter().map(|answers| answers.as_array().unwrap().len()).sum();
    assert_eq!((refused, web.endpoint.load().0), (22, 8));
}

/// Without a place a reply in windows is refused before it begins: nothing of it stands in front of the error.
#[test]
fn a_reply_in_windows_without_a_place_is_refused_whole() {
    let mut web: Web<64> = web(config_of(1), Limits::default());
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
    let mut web: Web<64> = web(config_of(8), Limits::default());
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

/// A table of four, as on a device: one client may take nearly all of it, and quick answers still go out.
#[test]
fn small_tables() {
    let mut web: Web<4> = web(config(), Limits::default());
    let session = web.open(D);
    for id in 0..3 {
        later(&mut web, &session, id).opened();
    }
    assert_eq!(later(&mut web, &session, 3).status, 503);
    assert_eq!(web.call(&session, 4, "count", json!({})).status, 200);
    let mut web: Web<1> = self::web(config(), Limits::default());
    let session = web.open(D);
    later(&mut web, &session, 0).opened();
    assert_eq!(later(&mut web, &session, 1).status, 503);
}

#[test]
fn questions_of_a_client_that_is_gone_end() {
    let mut web: Web<64> = web(config_of(16), Limits::default());
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
    // The answer is kept for as long again.
    web.wait(59_999);
    let again = web.listen(&gone, last.as_deref()).opened();
    assert_eq!(web.pull(again).only()["result"]["content"][0]["text"], "closed");
    web.wait(60_000);
    assert_eq!(web.endpoint.load().2, 1);
}

/// It has seen no event id: it cannot come back, and was not asked.
#[test]
fn questions_that_were_never_read_end_at_once() {
    let mut web: Web<8> = web(config(), Limits::default());
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
    let limits = Limits { asks: 4_000, ask_share: 1_000, ..Limits::default() };
    let mut web: Web<64> = web(config(), limits);
    let (greedy, other) = (web.open(D), web.open(D));
    let asks = |web: &mut Web<64>, session: &str, id, size| {
        let reply = web.call(session, id, "confirm", json!({"x": "x".repeat(size)}));
        reply.stream.is_some()
    };
    assert!(!asks(&mut web, &greedy, 0, 1_000));
    let open = (1..20).filter(|id| asks(&mut web, &greedy, *id, 200)).count();
    assert_eq!(open, 3);
    assert!(asks(&mut web, &other, 1, 200));
    // An answer beyond the share is none.
    let stream = web.call(&other, 2, "confirm", json!({})).opened();
    let question = web.pull(stream).json()[0]["id"].clone();
    let long = json!({"action": "accept", "content": {"name": "x".repeat(900)}});
    assert_eq!(web.say(&other, &answer(&question, long)).status, 202);
    assert_eq!(web.pull(stream).only()["result"]["content"][0]["text"], "closed");
}

fn begin<const N: usize>(web: &mut Web<N>, name: &str) -> Reply {
    web.request("POST", "/mcp", &[JSON, ACCEPT, ("authorization", name)], &initialize(D, json!({})))
}

/// A burst of `initialize` locks nobody out: sessions that were not used after it make way, oldest first.
#[test]
fn sessions_that_only_began_make_way() {
    let mut web = Web::limited(config(), EndpointLimits { sessions: 10, ..EndpointLimits::default() });
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

/// Sessions that were used are left alone for a minute, and no longer.
#[test]
fn used_sessions_make_way_after_a_minute() {
    let mut web = Web::limited(config(), EndpointLimits { sessions: 4, ..EndpointLimits::default() });
    for _ in 0..4 {
        web.open(D);
    }
    begin(&mut web, "").refused(503);
    web.wait(60_000);
    assert_eq!(begin(&mut web, "").status, 200);
}

#[test]
fn sessions_of_one_principal() {
    let mut web: Web<8> = web(config().session_share(3), Limits::default());
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

/// However many URIs a listen names, no more than the limit are looked at.
#[test]
fn work_for_uris_is_bounded() {
    let service = everything::service();
    let looks = Cell::new(0);
    let has_resource = |_: &Text<'_>| {
        looks.set(looks.get() + 1);
        true
    };
    let mut context = Context::new(service.about());
    context.has_resource = &has_resource;
    let mut same = (0..100_000).map(|_| "test://text".to_owned());
    let mut differ = (0..100_000).map(|n| format!("test://items/{n}"));
    // (URIs in all, share of bytes, looked at, granted)
    for (uris, share, limit, least) in
        [(&mut same as &mut dyn Iterator<Item = String>, 65_536, 1_000, 1), (&mut differ, 65_536, 1_000, 1_000)]
    {
        let limits = Limits { subscription_share: share, ..Limits::default() };
        let mut server = Server::<4>::growing(limits);
        let mut out = Lines::new(Window::of(usize::MAX));
        looks.set(0);
        server.handle(&context, listen(1, uris).as_bytes(), &mut out).unwrap();
        assert_eq!((looks.get(), granted(out.pending())), (limit, least));
    }
    // Without memory, the first that does not fit is the last.
    let mut server = Server::<4>::growing(Limits { subscription_share: 500, ..Limits::default() });
    let mut out = Lines::new(Window::of(usize::MAX));
    looks.set(0);
    server.handle(&context, listen(1, (0..5_000).map(|n| format!("test://items/{n}"))).as_bytes(), &mut out).unwrap();
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
    // One that is known is no more than before, and one that ends makes room.
    let known = request(D, 1_001, "resources/subscribe", json!({"uri": "test://items/7"}));
    assert!(rig.one(&known).contains("\"result\":{}"));
    rig.one(&request(D, 1_002, "resources/unsubscribe", json!({"uri": "test://items/7"})));
    assert!(rig.one(&more).contains("\"result\":{}"));
    rig.session.publish(Change::Resource("test://items/8"));
    rig.work();
    assert_eq!(rig.take().len(), 1);
}

/// Over HTTP each listen has a share: large ones leave room for the others'.
#[test]
fn memory_for_subscriptions_has_a_share() {
    let limits = Limits { subscriptions: 200_000, subscription_share: 20_000, ..Limits::default() };
    let mut web: Web<8> = web(config(), limits);
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
    // The total is for all: a listen of which nothing is left is refused.
    let streams: Vec<_> = (1..20).map(|n| web.modern(n, "subscriptions/listen", large(n as usize * 1_000))).collect();
    let refused: Vec<_> = streams.iter().filter(|reply| reply.stream.is_none()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|reply| (reply.status, reply.code()) == (503, -32603)));
    web.publish(Change::Resource("test://text"));
    assert_eq!(web.pull(second).json().len(), 1);
}

/// Two listens under the same id have nothing to do with each other.
#[test]
fn two_clients_with_the_same_ids() {
    let mut web = Web::new();
    let filter = |uri: &str| json!({"notifications": {"resourceSubscriptions": [uri]}});
    let one = web.modern(1, "subscriptions/listen", filter("test://text")).opened();
    let two = web.modern(1, "subscriptions/listen", filter("test://blob")).opened();
    let uris = |told: &[Value]| told[0]["params"]["notifications"]["resourceSubscriptions"].clone();
    assert_eq!(uris(&web.pull(one).json()), json!(["test://text"]));
    assert_eq!(uris(&web.pull(two).json()), json!(["test://blob"]));
    for _ in 0..2 {
        web.publish(Change::Resource("test://blob"));
        assert_eq!(web.pull(two).json()[0]["params"]["uri"], "test://blob");
        assert!(web.pull(one).json().is_empty());
        web.detach(one);
    }
}

/// The end of one client's input leaves the questions to another one open.
#[test]
fn questions_of_two_clients() {
    let (service, mut world) = (everything::service(), World::default());
    let mut server = Server::<4>::growing(Limits::default());
    let mut out = Lines::new(Window::of(usize::MAX));
    let mut peers = [Peer::NEW; 2];
    let mut on = |server: &mut Server<'static, 4>, peers: &mut [Peer; 2], at: usize, message: &str| {
        server.swap_peer(&mut peers[at], Scope(at as u32 + 1));
        let _ = service.dispatch(&mut world, message.as_bytes(), server, &mut out).unwrap();
        server.swap_peer(&mut peers[at], Scope(0));
        let said = String::from_utf8(out.pending().to_vec()).unwrap();
        let said: Vec<_> = said.lines().map(parse).collect();
        let n = out.pending().len();
        out.sent(n);
        said
    };
    let mut ids = Vec::new();
    for at in 0..2 {
        on(&mut server, &mut peers, at, &initialize(D, all_capabilities(D)));
        ids.push(on(&mut server, &mut peers, at, &call(D, 7, "confirm", json!({})))[0]["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    server.swap_peer(&mut peers[0], Scope(1));
    server.end_of_input();
    server.swap_peer(&mut peers[0], Scope(0));
    let ended = server.ready().expect("the first one's");
    server.forget(ended);
    assert_eq!((server.ready(), server.in_flight()), (None, 1));
    on(&mut server, &mut peers, 1, &answer(&ids[1], json!({"action": "decline"})));
    assert!(server.ready().is_some());
}

/// What a session leaves behind is gone when its slot is used again: questions, params and answers.
#[test]
fn a_slot_that_asked_is_used_again() {
    let limits = Limits { asks: 1_000, ..Limits::default() };
    let mut web: Web<2> = web(config(), limits);
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
        // A late answer counts for nothing.
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

/// No id is sent twice, however many there are, and a ping has one of them.
#[test]
fn ids_of_questions_never_come_again() {
    let (service, mut world) = (everything::service(), World::default());
    let mut server = Server::<4>::growing(Limits::default());
    let mut out = Lines::new(Window::of(usize::MAX));
    let mut say = |server: &mut Server<'static, 4>, line: &str| {
        let _ = service.dispatch(&mut world, line.as_bytes(), server, &mut out).unwrap();
        take(&mut out)
    };
    say(&mut server, &initialize(D, all_capabilities(D)));
    let (ask, cancel) = (call(D, 1, "roots", json!({})), cancel(1));
    let mut seen = HashSet::new();
    // More often than 16 bits can count, in one place of the table.
    for round in 0..70_000 {
        assert!(seen.insert(id_of(&say(&mut server, &ask))), "round {round}");
        say(&mut server, &cancel);
    }
    for _ in 0..3 {
        let mut out = Lines::new(Window::of(usize::MAX));
        server.ping(&mut out).unwrap();
        let ping = take(&mut out);
        assert!(ping.ends_with(",\"method\":\"ping\"}\n") && seen.insert(id_of(&ping)), "{ping}");
        // Its answer means nothing to anybody.
        assert_eq!(say(&mut server, &answer(&json!(id_of(&ping)), json!({}))), "");
    }
}

fn take(out: &mut Lines<Window>) -> String {
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
    let mut out = Lines::new(Window::of(usize::MAX));
    assert_eq!(rig.session.server().ping(&mut out), Err(SendError::NotInitialized));
    rig.one(&request(MODERN, 1, "tools/list", json!({})));
    assert_eq!(rig.session.server().ping(&mut out), Err(SendError::NotInitialized));
    assert!(out.pending().is_empty());
    let mut rig = Rig::new().opened("2024-11-05");
    let mut small = [0; 20];
    assert_eq!(rig.session.server().ping(&mut Lines::new(Slice::new(&mut small))), Err(SendError::FullNever));
}

/// Listens that are refused, for whatever reason, leave nothing in the memory for subscriptions.
#[test]
fn refused_listens_leave_nothing() {
    let limits = Limits { subscriptions: 60, ..Limits::default() };
    let few = EndpointLimits { streams: 1, ..EndpointLimits::default() };
    let mut web = Web::of(Endpoint::<8>::growing(config(), Server::growing(limits), few));
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
    for id in 0..100 {
        let reply = web.modern(id, "subscriptions/listen", filter.clone());
        assert!(reply.stream.is_none() && reply.status >= 400, "{reply:?}");
    }
    web.detach(open);
    web.modern(1, "subscriptions/listen", filter).opened();
}

/// A subscription is taken back if its answer finds no room: the message comes again.
#[test]
fn an_answer_without_room_subscribes_nobody() {
    let service = everything::service();
    let mut world = World::default();
    let mut server = Server::<4>::growing(Limits::default());
    let mut out = Lines::new(Window::of(usize::MAX));
    let _ = service.dispatch(&mut world, initialize(D, json!({})).as_bytes(), &mut server, &mut out).unwrap();
    let subscribe = request(D, 1, "resources/subscribe", json!({"uri": "test://text"}));
    let mut bytes = [0; 300];
    let mut small = Lines::new(Slice::new(&mut bytes));
    while server.ping(&mut small).is_ok() {}
    let step = service.dispatch(&mut world, subscribe.as_bytes(), &mut server, &mut small);
    assert!(matches!(step, Err(Full::Now)), "{step:?}");
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
    let refused = rig.one(&request(MODERN, "x".repeat(63), "subscriptions/listen", filter.clone()));
    assert_eq!(code(&refused), -32600);
    assert!(!rig.session.server().has_subscribers());
    let told = rig.one(&request(MODERN, "x".repeat(62), "subscriptions/listen", filter));
    assert!(told.contains("subscriptions/acknowledged"));
}

/// `initialize` cannot be cancelled: its answer goes out whole, though it goes out in windows.
#[test]
fn an_initialize_that_is_cancelled_half_way() {
    static LONG: &str = "Read this first. And read this first. And read this first. And read this first. And read this \
        first. And read this first. And read this first. And read this first. And read this first. And read this first. \
        And read this first. And read this first. And read this first. And read this first. And read this first.";
    let service = everything::service().instructions(LONG);
    let mut world = World::default();
    let mut server = Server::<4>::growing(Limits::default());
    let mut bytes = [0; 300];
    let mut out = Lines::new(Slice::new(&mut bytes));
    let step = service.dispatch(&mut world, initialize(D, json!({})).as_bytes(), &mut server, &mut out);
    let Ok(Step::Streaming(token)) = step else { panic!("{step:?}") };
    let mut said = out.pending().to_vec();
    out.sent(said.len());
    let _ = service.dispatch_from(&Origin::LINE, &mut world, cancel(0).as_bytes(), &mut server, &mut out).unwrap();
    for _ in 0..100 {
        let done = service.pump(&mut world, token, &mut server, &mut out) == mcp_sansio::service::Pump::Done;
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
