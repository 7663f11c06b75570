//! Requests of the server to the client ("questions"), in both eras: the cases that the prototypes got wrong.
use crate::common;

use common::*;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::{MessageLimits, NotifyStatus, Server};

const D: &str = "2025-11-25";

fn ask(rig: &mut Rig, id: &str, tool: &str) -> Value {
    parse(&rig.one(&call(D, id, tool, json!({}))))["id"].clone()
}

fn accepted(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// At most N-1 of N slots wait for answers, so that tools and pings are always served.
#[test]
fn pending_questions_never_starve_the_others() {
    let mut rig = Rig::in_flight(4).opened(D);
    for id in ["a", "b", "c"] {
        assert!(rig.one(&call(D, id, "confirm", json!({}))).contains("elicitation/create"));
    }
    assert!(rig.one(&call(D, "d", "confirm", json!({}))).contains("\"isError\":true"), "the fourth is refused");
    for id in 0..5 {
        assert_eq!(text(&rig.one(&call(D, id, "add", json!({"a": id, "b": 1})))), (id + 1).to_string());
        rig.one(&request(D, id, "ping", json!({})));
        rig.one(&request(D, id, "tools/list", json!({})));
    }
    // With one slot no question can be asked.
    let mut rig = Rig::in_flight(1).opened(D);
    assert!(rig.one(&call(D, "a", "confirm", json!({}))).contains("\"isError\":true"));
}

#[test]
fn answers_in_any_order() {
    let mut rig = Rig::new().opened(D);
    let (a, b) = (ask(&mut rig, "a", "confirm"), ask(&mut rig, "b", "confirm"));
    assert_eq!(text(&rig.one(&answer(&b, accepted("B")))), "accepted B");
    let c = ask(&mut rig, "c", "confirm");
    assert_eq!(text(&rig.one(&answer(&a, accepted("A")))), "accepted A");
    assert_eq!(text(&rig.one(&answer(&c, accepted("C")))), "accepted C");
    assert_eq!(rig.session.server.in_flight(), 0);
}

/// An answer that is stale, repeated, invented or from an earlier round is ignored.
// spec: B140
#[test]
fn answers_that_do_not_count() {
    let mut rig = Rig::new().opened(D);
    let first = ask(&mut rig, "a", "interview");
    let second = parse(&rig.one(&answer(&first, accepted("one"))))["id"].clone();
    assert_ne!(first, second);
    // Repeated.
    assert!(rig.say(&answer(&first, accepted("again"))).is_empty());
    // Invented: ids near the real one, and ids of other types.
    let near = second.as_i64().unwrap();
    for id in (near - 40..near + 40).filter(|id| *id != near) {
        assert!(rig.say(&answer(&json!(id), accepted("x"))).is_empty(), "{id}");
    }
    for id in [json!(near.to_string()), json!(null), json!(-near), json!(u64::MAX), json!([near])] {
        assert!(rig.say(&answer(&id, accepted("x"))).is_empty(), "{id}");
    }
    assert_eq!(text(&rig.one(&answer(&second, accepted("two")))), "accepted one, then accepted two");
    // Stale.
    assert!(rig.say(&answer(&second, accepted("late"))).is_empty());
    assert_eq!(rig.world.runs, 3);
    // A later request in the same slot is not answered by it either.
    ask(&mut rig, "b", "confirm");
    assert!(rig.say(&answer(&second, accepted("late"))).is_empty());
    assert!(rig.say(&answer(&first, accepted("late"))).is_empty());
}

/// A response without `result` and `error` answers nothing. Errors are passed to the handler.
#[test]
fn errors_and_broken_answers() {
    let mut rig = Rig::new().opened(D);
    let id = ask(&mut rig, "a", "confirm");
    assert_eq!(code(&rig.one(&json!({"jsonrpc": "2.0", "id": id}).to_string())), -32600);
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no"}});
    assert_eq!(text(&rig.one(&error.to_string())), "error -32602");
    for (result, told) in [(json!(5), "answered 5"), (json!({}), "answered {}"), (json!(null), "answered null")] {
        let id = ask(&mut rig, "b", "confirm");
        assert_eq!(text(&rig.one(&answer(&id, result))), told);
    }
    let id = ask(&mut rig, "c", "confirm");
    let odd = json!({"jsonrpc": "2.0", "id": id, "error": "no"}).to_string();
    assert_eq!(text(&rig.one(&odd)), "error -32603");
}

/// The memory for questions is too small for the request, for the answer, or for the second round.
#[test]
fn too_large() {
    let small = |bytes: usize| {
        let server = Server::new(Slots::growing(8)).scratch(Store::growing(4096)).asks(Store::growing(bytes));
        Rig::of(usize::MAX, server).opened(D)
    };
    let mut rig = small(0);
    assert!(rig.one(&call(D, "a", "confirm", json!({}))).contains("\"isError\":true"), "no arena, no question");
    let mut rig = small(256);
    let reply = rig.one(&call(D, "a", "confirm", json!({"padding": "x".repeat(300)})));
    assert!(reply.contains("\"isError\":true"), "{reply}");
    let id = ask(&mut rig, "b", "confirm");
    let reply = rig.one(&answer(&id, accepted(&"x".repeat(300))));
    assert_eq!(code(&reply), -32603);
    assert_eq!(parse(&reply)["id"], "b");
    // All memory is free again.
    let id = ask(&mut rig, "c", "interview");
    let reply = rig.one(&answer(&id, accepted(&"y".repeat(100))));
    assert!(reply.contains("\"isError\":true"), "the second round does not fit: {reply}");
    let id = ask(&mut rig, "d", "confirm");
    assert_eq!(text(&rig.one(&answer(&id, accepted("ok")))), "accepted ok");
}

/// Cancelling a request ends its open questions; later answers are ignored.
// spec: B126 B140 B185 B188
#[test]
fn cancelled_while_asking() {
    let mut rig = Rig::new().opened(D);
    let questions = rig.say(&call(D, "a", "survey", json!({})));
    let ids: Vec<_> = questions.iter().map(|line| parse(line)["id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    assert!(rig.say(&answer(&ids[0], accepted("x"))).is_empty());
    let said = rig.say(&cancel("a"));
    let open = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ids[1]}});
    assert_eq!(said.iter().map(|line| parse(line)).collect::<Vec<_>>(), [open]);
    assert!(rig.say(&answer(&ids[1], json!({"roots": []}))).is_empty());
    assert_eq!((rig.session.server.in_flight(), rig.world.runs, rig.world.cancelled.len()), (0, 1, 1));
}

// spec: B082 B087 B088 B112 B134 B136
#[test]
fn deadlines() {
    let mut rig = Rig::of(
        usize::MAX,
        Server::growing(MessageLimits { in_flight: 8, ask_timeout: 1000, ..MessageLimits::default() }),
    )
    .opened(D);
    rig.session.server.expire(u64::MAX - 100);
    let a = ask(&mut rig, "a", "confirm");
    // The clock may wrap around.
    rig.session.server.expire(500);
    let b = ask(&mut rig, "b", "confirm");
    assert_eq!(rig.session.server.next_deadline(), Some(899));
    // Progress of the client does not prolong it.
    let progress = json!({"progressToken": a, "progress": 1});
    assert!(rig.say(&notify("notifications/progress", progress)).is_empty());
    rig.session.server.expire(898);
    rig.work();
    assert!(rig.take().is_empty());
    rig.session.server.expire(899);
    rig.work();
    let said = rig.take();
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(parse(&said[0])["params"]["requestId"], a);
    assert_eq!(text(&said[1]), "timed out");
    assert!(rig.say(&answer(&a, accepted("late"))).is_empty());
    assert_eq!(text(&rig.one(&answer(&b, accepted("in time")))), "accepted in time");
    assert_eq!(rig.session.server.next_deadline(), None);
}

/// At the end of the input, questions end as closed, and every answer is written.
#[test]
fn end_of_input() {
    let mut rig = Rig::new().opened(D);
    ask(&mut rig, "a", "confirm");
    ask(&mut rig, "b", "interview");
    let said = rig.end();
    assert_eq!(text(&said[0]), "closed");
    assert_eq!(parse(said.last().unwrap())["id"], "b");
    assert!(rig.session.is_done());
}

/// State without questions: the handler runs again at once, up to a limit.
#[test]
fn state_only() {
    for revision in LEGACY {
        let mut rig = Rig::new().opened(revision);
        assert_eq!(text(&rig.one(&call(revision, 1, "restless", json!({})))), "rested");
        assert_eq!(rig.world.runs, 4);
        assert_eq!(code(&rig.one(&call(revision, 1, "endless", json!({})))), -32603);
        assert!(rig.world.runs < 100, "there is a bound");
        assert_eq!(rig.session.server.in_flight(), 0);
        // The same behind a window and in a batch.
        if revision < "2025-06-18" {
            let mut rig: Rig = Rig::with(1400).opened(revision);
            let batch = [
                call(revision, 1, "restless", json!({})),
                call(revision, 2, "contents", json!({})),
                call(revision, 3, "weather", json!({})),
            ]
            .join(",");
            let said = rig.say(&format!("[{batch}]"));
            assert!(said.iter().any(|line| line.contains("rested")), "{said:?}");
        }
    }
    let mut rig = Rig::new();
    let mut state = Value::Null;
    for round in 0..3 {
        let mut params = json!({"name": "restless"});
        if round > 0 {
            params["requestState"] = state.clone();
        }
        let reply = parse(&rig.one(&request(MODERN, round, "tools/call", params)));
        assert_eq!(reply["result"]["resultType"], "input_required");
        assert!(reply["result"].get("inputRequests").is_none());
        state = reply["result"]["requestState"].clone();
    }
    let reply = rig.one(&request(MODERN, 9, "tools/call", json!({"name": "restless", "requestState": state})));
    assert_eq!(text(&reply), "rested");
}

/// The state comes back sealed: it is refused with any other request than its own.
// spec: B157 B160 B161 B162
#[test]
fn sealed_state() {
    let mut rig = Rig::new();
    let params = |arguments: Value, name: &str, state: &str| {
        json!({"name": name, "arguments": arguments, "requestState": state,
            "inputResponses": {"second": accepted("two")}})
    };
    let mut first = params(json!({"x": 1}), "interview", "");
    first["inputResponses"] = json!({"first": accepted("one")});
    let reply = parse(&rig.one(&request(MODERN, 1, "tools/call", first)));
    let state = reply["result"]["requestState"].as_str().unwrap().to_owned();
    let good = params(json!({"x": 1}), "interview", &state);
    assert_eq!(text(&rig.one(&request(MODERN, 2, "tools/call", good.clone()))), "accepted one, then accepted two");
    // Changed state: at each character, cut off, doubled, not base64.
    for at in 0..state.len() {
        let mut broken = state.clone().into_bytes();
        broken[at] = if broken[at] == b'A' { b'B' } else { b'A' };
        let broken = String::from_utf8(broken).unwrap();
        let reply = rig.one(&request(MODERN, 3, "tools/call", params(json!({"x": 1}), "interview", &broken)));
        assert_eq!(code(&reply), -32602, "changed at {at}");
    }
    for broken in [&state[..state.len() - 4], &state[4..], "!", "====", "AAAA", &state.repeat(2)] {
        let reply = rig.one(&request(MODERN, 3, "tools/call", params(json!({"x": 1}), "interview", broken)));
        assert_eq!(code(&reply), -32602, "{broken}");
    }
    // State with another tool, with other arguments, or too late.
    for wrong in [params(json!({"x": 1}), "confirm", &state), params(json!({"x": 2}), "interview", &state)] {
        assert_eq!(code(&rig.one(&request(MODERN, 4, "tools/call", wrong))), -32602);
    }
    rig.session.server.expire(60_000);
    assert_eq!(code(&rig.one(&request(MODERN, 5, "tools/call", good.clone()))), -32602);
    // A server without a seal sends no state and accepts none.
    let mut rig = Rig::of(usize::MAX, Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() }));
    assert_eq!(code(&rig.one(&request(MODERN, 6, "tools/call", good))), -32602);
    assert_eq!(code(&rig.one(&call(MODERN, 7, "restless", json!({})))), -32603);
    // In the older revisions the member has no meaning.
    let mut rig = Rig::new().opened(D);
    let reply =
        rig.one(&request(D, 8, "tools/call", json!({"name": "confirm", "requestState": 5, "inputResponses": 7})));
    assert!(reply.contains("elicitation/create"), "{reply}");
}

/// A server of 2026-07-28 keeps nothing for a request that may never be retried: any server with the same key accepts
/// the retry.
// spec: B079 B168
#[test]
fn another_server_takes_the_retry() {
    let mut first = Rig::new();
    let question = parse(&first.one(&call(MODERN, 1, "interview", json!({}))));
    assert_eq!(question["result"]["resultType"], "input_required");
    assert_eq!((first.session.server.in_flight(), first.session.server.next_deadline()), (0, None));
    let mut params = json!({"name": "interview", "inputResponses": {"first": accepted("one")}});
    if let Some(state) = question["result"].get("requestState") {
        params["requestState"] = state.clone();
    }
    let again = parse(&Rig::new().one(&request(MODERN, 2, "tools/call", params)));
    let state = again["result"]["requestState"].clone();
    let params = json!({"name": "interview", "requestState": state, "inputResponses": {"second": accepted("two")}});
    let answer = Rig::new().one(&request(MODERN, 3, "tools/call", params));
    assert_eq!(text(&answer), "accepted one, then accepted two");
    assert_eq!(first.session.server.in_flight(), 0);
}

/// State of another principal is refused. (A line has no principals, so this test calls the service itself.)
// spec: B163 C053 C061
#[test]
fn state_of_another_principal() {
    use mcp_sansio::service::MessageSource;
    use mcp_sansio::sink::LineSink;
    let service = everything::service();
    let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() }).seal(&toy_seal::SEAL);
    let mut world = World::default();
    let mut ask = |who: MessageSource<'_>, params: Value| {
        let mut out = LineSink::new(Vec::new());
        let line = request(MODERN, 1, "tools/call", params);
        let _ = service.dispatch_from(&who, &mut world, line.as_bytes(), &mut server, &mut out).unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    };
    let anna = || MessageSource::new(&()).principal(Some("anna"));
    let first = json!({"name": "interview", "inputResponses": {"first": accepted("one")}});
    let state = parse(&ask(anna(), first))["result"]["requestState"].clone();
    let second = json!({"name": "interview", "requestState": state, "inputResponses": {"second": accepted("two")}});
    assert_eq!(code(&ask(MessageSource::new(&()).principal(Some("berta")), second.clone())), -32602);
    assert_eq!(code(&ask(MessageSource::new(&()), second.clone())), -32602);
    assert_eq!(text(&ask(anna(), second)), "accepted one, then accepted two");
}

/// A capability that the client did not declare is not used: the tool answers with a text or an error.
// spec: B084 B104 B107 C003 C091 C132
#[test]
fn not_declared() {
    for revision in LEGACY {
        let mut rig = Rig::new().opened_by(revision, json!({}));
        for tool in ["confirm", "visit", "must_visit", "sample", "sample_tools", "roots", "need"] {
            rig.world.visits = 0;
            let reply = rig.one(&call(revision, tool, tool, json!({})));
            assert!(reply.contains("\"isError\":true"), "{revision} {reply}");
        }
        for (method, params) in
            [("resources/read", json!({"uri": "test://secret"})), ("prompts/get", json!({"name": "quiz"}))]
        {
            assert_eq!(code(&rig.one(&request(revision, 1, method, params))), -32603);
        }
    }
    // An empty object means form; url alone means no form.
    let mut rig = Rig::new().opened_by(D, json!({"elicitation": {}}));
    assert!(rig.one(&call(D, 1, "confirm", json!({}))).contains("elicitation/create"));
    assert!(rig.one(&call(D, 2, "visit", json!({}))).contains("\"isError\":true"));
    let mut rig = Rig::new().opened_by(D, json!({"elicitation": {"url": {}}}));
    assert!(rig.one(&call(D, 1, "confirm", json!({}))).contains("\"isError\":true"));
    assert!(rig.one(&call(D, 2, "visit", json!({}))).contains("elicitation/create"));
    // Sampling alone means no tools.
    let mut rig = Rig::new().opened_by(D, json!({"sampling": {}}));
    assert!(rig.one(&call(D, 1, "sample", json!({}))).contains("sampling/createMessage"));
    assert!(rig.one(&call(D, 2, "sample_tools", json!({}))).contains("\"isError\":true"));
}

/// A sampling that the user refuses is error -1, in each revision where the question is a request.
#[test]
fn a_refused_sampling() {
    for revision in LEGACY {
        let mut rig = Rig::new().opened(revision);
        let id = parse(&rig.one(&call(revision, "s", "sample", json!({}))))["id"].clone();
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "User rejected"}});
        assert_eq!(text(&rig.one(&error.to_string())), "refused", "{revision}");
    }
}

/// Only an object declares a capability. Some clients write `null` or `false` for a missing one.
// spec: C132
#[test]
fn declared_by_an_object_alone() {
    let asks = |capabilities: &Value, tool: &str| {
        let legacy = Rig::new().opened_by(D, capabilities.clone()).one(&call(D, 1, tool, json!({})));
        let modern = request_of(MODERN, 1, "tools/call", json!({"name": tool}), capabilities.clone());
        let modern = Rig::new().one(&modern);
        let asked = legacy.contains("\"method\"");
        assert_eq!(asked, modern.contains("inputRequests"), "{legacy}\n{modern}");
        asked
    };
    for none in [json!(null), json!(false), json!(true), json!([]), json!("x"), json!(1)] {
        for (key, tool) in [("elicitation", "confirm"), ("sampling", "sample"), ("roots", "roots")] {
            assert!(!asks(&json!({key: none}), tool), "{key} {none}");
        }
        let (form, url) =
            (json!({"elicitation": {"form": {}, "url": none}}), json!({"elicitation": {"form": none, "url": {}}}));
        assert!(asks(&form, "confirm") && !asks(&form, "visit"), "{none}");
        assert!(!asks(&url, "confirm") && asks(&url, "visit"), "{none}");
        let tools = json!({"sampling": {"tools": none}});
        assert!(asks(&tools, "sample") && !asks(&tools, "sample_tools"), "{none}");
    }
    let nothing = json!({"elicitation": {"form": null, "url": null}});
    assert!(asks(&nothing, "confirm") && !asks(&nothing, "visit"), "as an empty object");
}

/// `includeContext` other than `none` is sent only to clients that declare it, from 2025-11-25 on.
// spec: C101
#[test]
fn context_for_sampling() {
    for (revision, capabilities, given) in [
        ("2024-11-05", json!({"sampling": {}}), true),
        ("2025-06-18", json!({"sampling": {}}), true),
        (D, json!({"sampling": {}}), false),
        (D, json!({"sampling": {"context": {}}}), true),
    ] {
        let mut rig = Rig::new().opened_by(revision, capabilities);
        let question = rig.one(&call(revision, 1, "sample", json!({})));
        assert_eq!(question.contains("includeContext"), given, "{question}");
    }
    let capabilities =
        |context: bool| if context { json!({"sampling": {"context": {}}}) } else { json!({"sampling": {}}) };
    for given in [false, true] {
        let line = request_of(MODERN, 1, "tools/call", json!({"name": "sample"}), capabilities(given));
        assert_eq!(Rig::new().one(&line).contains("includeContext"), given);
    }
}

/// `notifications/elicitation/complete` is sent only to clients of 2025-11-25.
// spec: C005 C006 C012
#[test]
fn visits() {
    let mut rig = Rig::new().opened(D);
    let refused = parse(&rig.one(&call(D, 1, "must_visit", json!({}))));
    assert_eq!(refused["error"]["code"], -32042);
    assert_eq!(refused["error"]["data"]["elicitations"][0]["elicitationId"], "visit-1");
    let (server, out) = (&mut rig.session.server, &mut rig.session.out);
    assert_eq!(server.elicitation_complete("visit-1", out), Ok(NotifyStatus::Sent));
    rig.work();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "visit-1"}});
    assert_eq!(parse(&rig.take()[0]), told);
    assert_eq!(text(&rig.one(&call(D, 2, "must_visit", json!({})))), "visited");
    let others =
        ["2024-11-05", "2025-03-26", "2025-06-18", MODERN].map(|revision| (revision, all_capabilities(revision)));
    // A client that did not declare it was not asked.
    let unable = [json!({}), json!({"elicitation": {}}), json!({"elicitation": {"form": {}, "url": null}})];
    for (revision, capabilities) in others.into_iter().chain(unable.map(|capabilities| (D, capabilities))) {
        let mut rig = Rig::new().opened_by(revision, capabilities);
        let (server, out) = (&mut rig.session.server, &mut rig.session.out);
        assert_eq!(server.elicitation_complete("visit-1", out), Ok(NotifyStatus::NotAsked));
        rig.work();
        assert!(rig.take().is_empty());
    }
}
