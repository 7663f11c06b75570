//! 2026-07-28 over HTTP: headers, status codes, listens.
use crate::common;

use common::http::*;
use common::{MODERN, Value, json, request};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{MessageLimits, RespondError, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_http::endpoint::{Endpoint, EndpointLimits, StreamStatus};

fn ran(_: &mut common::World, call: &mut Call<'_>) -> HandlerResult {
    call.text("ran")
}

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "count":{"type":"integer","x-mcp-header":"Count"},
    "dry":{"type":"boolean","x-mcp-header":"Dry"},
    "deep":{"type":"object","properties":{"key":{"type":"string","x-mcp-header":"Deep-Key"}}},
    "list":{"type":"array","items":{"type":"object","properties":{"no":{"type":"string"}}}}}}"#;

static TOOLS: [Tool<common::World>; 1] = [Tool::new("annotated", "Has headers", ran).input(SCHEMA)];

fn annotated() -> Web {
    let mut web = Web::new();
    web.service = Service::new("annotated", "1").tools(&TOOLS);
    web
}

fn call(web: &mut Web, headers: &[(&str, &str)], arguments: Value) -> Reply {
    web.modern_with(headers, 1, "tools/call", json!({"name": "annotated", "arguments": arguments}))
}

// spec: S068 T093 T126 T145 T146 T147 T148 T149 T150 T152 T154 T163 T164 T165
#[test]
fn params_in_headers() {
    let mut web = annotated();
    type Case<'c> = (&'c [(&'c str, &'c str)], Value, bool);
    let cases: &[Case<'_>] = &[
        (&[], json!({}), true),
        (&[], json!({"region": null}), true),
        (&[("Mcp-Param-Region", "eu")], json!({"region": "eu"}), true),
        (&[("mcp-param-region", " eu ")], json!({"region": "eu"}), true),
        (&[("mcp-param-region", "EU")], json!({"region": "eu"}), false),
        (&[], json!({"region": "eu"}), false),
        (&[("mcp-param-region", "eu")], json!({}), false),
        (&[("mcp-param-region", "eu")], json!({"region": null}), false),
        (&[("mcp-param-region", "=?base64?ZXU=?=")], json!({"region": "eu"}), true),
        (&[("mcp-param-region", "=?base64?w6k=?=")], json!({"region": "\u{e9}"}), true),
        (&[("mcp-param-region", "=?base64?ZXU?=")], json!({"region": "eu"}), false),
        (&[("mcp-param-region", "=?base64?ZXV=?=")], json!({"region": "eu"}), false),
        (&[("mcp-param-region", "=?base64?ZX U=?=")], json!({"region": "eu"}), false),
        (&[("mcp-param-region", "=?BASE64?ZXU=?=")], json!({"region": "eu"}), false),
        (&[("mcp-param-region", "=?base64??=")], json!({"region": ""}), true),
        (&[("mcp-param-count", "5")], json!({"count": 5}), true),
        (&[("mcp-param-count", "5.0")], json!({"count": 5}), true),
        (&[("mcp-param-count", "-7")], json!({"count": -7}), true),
        (&[("mcp-param-count", "42.00")], json!({"count": 42}), true),
        (&[("mcp-param-count", "42")], json!({"count": 42.0}), true),
        (&[("mcp-param-count", "1e2")], json!({"count": 100}), true),
        (&[("mcp-param-count", "=?base64?NDI=?=")], json!({"count": 42}), true),
        (&[("mcp-param-count", "=?base64?NDM=?=")], json!({"count": 42}), false),
        (&[("mcp-param-count", "9007199254740991")], json!({"count": 9007199254740991i64}), true),
        (&[("mcp-param-count", "9007199254740993")], json!({"count": 9007199254740993i64}), false),
        (&[("mcp-param-dry", "=?base64?dHJ1ZQ==?=")], json!({"dry": true}), true),
        (&[("mcp-param-region", "eu"), ("Mcp-Param-Region", "eu")], json!({"region": "eu"}), true),
        (&[("mcp-param-region", "eu"), ("mcp-param-region", "us")], json!({"region": "eu"}), false),
        (&[("mcp-param-count", "6")], json!({"count": 5}), false),
        (&[("mcp-param-count", "five")], json!({"count": 5}), false),
        (&[("mcp-param-dry", "true")], json!({"dry": true}), true),
        (&[("mcp-param-dry", "True")], json!({"dry": true}), false),
        (&[("mcp-param-deep-key", "k")], json!({"deep": {"key": "k"}}), true),
        (&[], json!({"deep": {"key": "k"}}), false),
        (&[("mcp-param-deep-key", "k")], json!({"deep": {}}), false),
        (&[("mcp-param-deep-key", "k")], json!({}), false),
        (&[("mcp-param-other", "x")], json!({"list": [{"no": "x"}]}), true),
    ];
    for (headers, arguments, fits) in cases {
        let reply = call(&mut web, headers, arguments.clone());
        match fits {
            true => assert_eq!(reply.text(), "ran", "{headers:?} {arguments}"),
            false => assert_eq!((reply.status, reply.code()), (400, -32020), "{headers:?} {arguments}"),
        }
    }
}

/// A request with many errors, which are corrected one by one: each time the next check refuses it, with this text.
// spec: B048 T108 T109 T110 T111 T112 T153 T154 T158 T165
#[test]
fn order_of_checks() {
    let mut web = annotated();
    let good = request(MODERN, 1, "tools/call", json!({"name": "annotated", "arguments": {"region": "eu"}}));
    let other = good.replace(MODERN, "2027-01-01");
    let invented = good.replace(MODERN, "v999.0.0");
    let no_meta = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"annotated"}}"#;
    let unknown = good.replace("\"annotated\"", "\"nobody\"");
    let (version, method, name) =
        (("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "annotated"));
    let region = ("mcp-param-region", "eu");
    let differs = "MCP-Protocol-Version differs";
    let unsupported = "Unsupported protocol version";
    let not_found = "Method not found";
    #[allow(clippy::type_complexity, reason = "a table")]
    let steps: &[(&[(&str, &str)], &str, u16, i64, &str)] = &[
        (&[version], "{", 400, -32700, "Parse error"),
        (&[version], r#"{"jsonrpc":"2.0"}"#, 400, -32600, "Invalid request"),
        (&[version], no_meta, 400, -32602, "protocolVersion is missing"),
        (&[], &good, 400, -32020, "MCP-Protocol-Version is missing"),
        (&[("mcp-protocol-version", "2025-11-25")], &good, 400, -32020, differs),
        (&[version], &other, 400, -32020, differs),
        (&[("mcp-protocol-version", "2027-01-01")], &other, 400, -32022, unsupported),
        (&[("mcp-protocol-version", "v999.0.0")], &invented, 400, -32022, unsupported),
        (&[("mcp-protocol-version", "v999.0.0")], &good, 400, -32020, differs),
        (&[("mcp-protocol-version", "v999.0.0")], no_meta, 400, -32022, unsupported),
        (&[version], &good, 400, -32020, "Mcp-Method is missing"),
        (&[version, ("mcp-method", "Tools/Call")], &good, 400, -32020, "Mcp-Method differs"),
        (&[version, method, region], &good, 400, -32020, "Mcp-Name is missing"),
        (&[version, method, ("mcp-name", "Annotated"), region], &good, 400, -32020, "Mcp-Name differs"),
        (&[version, method, name], &good, 400, -32020, "the header of an argument is missing"),
        (&[version, method, name, region], &good, 200, 0, ""),
        (&[version, method, ("mcp-name", "=?base64?YW5ub3RhdGVk?="), region], &good, 200, 0, ""),
        (&[version, method, ("mcp-name", "nobody")], &unknown, 200, -32602, "nknown tool"),
        (
            &[version, ("mcp-method", "nothing/here")],
            &good.replace("tools/call", "nothing/here"),
            404,
            -32601,
            not_found,
        ),
        (
            &[version, ("mcp-method", "prompts/list")],
            &good.replace("tools/call", "prompts/list"),
            404,
            -32601,
            not_found,
        ),
        (&[version, ("mcp-method", "ping")], &good.replace("tools/call", "ping"), 404, -32601, not_found),
        (
            &[version, ("mcp-method", "ping")],
            &good.replace("tools/call", "nothing/here"),
            400,
            -32020,
            "Mcp-Method differs",
        ),
    ];
    for (headers, body, status, code, words) in steps {
        let headers: Vec<_> = [JSON, ACCEPT].iter().chain(*headers).copied().collect();
        let reply = web.request("POST", "/mcp", &headers, body);
        let error = &reply.body["error"];
        let found = (reply.status, error["code"].as_i64().unwrap_or(0));
        assert_eq!(found, (*status, *code), "{headers:?} {body} {reply:?}");
        assert!(error["message"].as_str().unwrap_or("").contains(words), "{headers:?} {body} {reply:?}");
    }
}

/// Each with all other headers right.
// spec: T151 T158
#[test]
fn what_a_request_names_is_in_a_header() {
    let mut web = Web::new();
    for (method, params, name) in [
        ("tools/call", json!({"name": "count"}), "count"),
        ("prompts/get", json!({"name": "plain"}), "plain"),
        ("resources/read", json!({"uri": "test://text"}), "test://text"),
    ] {
        let body = request(MODERN, 1, method, params);
        let headers = [JSON, ACCEPT, ("mcp-protocol-version", MODERN), ("mcp-method", method)];
        let mut ask = |name: Option<&str>| {
            let mut headers = headers.to_vec();
            headers.extend(name.map(|name| ("mcp-name", name)));
            let reply = web.request("POST", "/mcp", &headers, &body);
            (reply.status, reply.body["error"]["message"].as_str().unwrap_or("").to_owned())
        };
        assert_eq!(ask(None), (400, "Mcp-Name is missing".into()), "{method}");
        for wrong in ["", "other", &name.to_uppercase(), &format!("{name}x")] {
            assert_eq!(
                ask(Some(wrong)),
                (400, "Mcp-Name differs from what the request names".into()),
                "{method} {wrong}"
            );
        }
        assert_eq!(ask(Some(name)), (200, String::new()), "{method}");
    }
}

/// A proxy that reads only one of two headers must not see another value than the server.
// spec: T151
#[test]
fn headers_that_differ_from_line_to_line() {
    let mut web = Web::new();
    let params = json!({"name": "count"});
    for (name, value) in [("mcp-protocol-version", "2025-11-25"), ("Mcp-Method", "tools/list"), ("mcp-name", "add")] {
        let reply = web.modern_with(&[(name, value)], 7, "tools/call", params.clone());
        assert_eq!((reply.status, reply.code(), &reply.body["id"]), (400, -32020, &json!(7)), "{name}");
    }
    let same = [("MCP-PROTOCOL-VERSION", MODERN), ("mcp-method", "tools/call"), ("Mcp-Name", " count ")];
    assert_eq!(web.modern_with(&same, 7, "tools/call", params).text(), "1");
    // The same with a legacy request; its revision has no such error code.
    let session = web.open("2025-11-25");
    let two = |name: &'static str, one: &'static str, other: &'static str| [(name, one), (name, other)];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for more in [two("mcp-protocol-version", "2025-11-25", "2025-06-18"), two("mcp-session-id", "x", "y")] {
        let mut headers = vec![JSON, ACCEPT, ("mcp-session-id", session.as_str())];
        headers.extend(more);
        let reply = web.request("POST", "/mcp", &headers, ping);
        assert_eq!((reply.status, reply.code()), (400, -32600), "{more:?}");
        assert_eq!(web.request("DELETE", "/mcp", &headers, "").status, 400, "{more:?}");
        headers.push(SSE);
        assert_eq!(web.request("GET", "/mcp", &headers, "").status, 400, "{more:?}");
    }
    assert_eq!(web.say(&session, ping).status, 200);
}

// spec: T144 T146 T153
#[test]
fn characters_that_no_header_has() {
    let mut web = annotated();
    let body = |name: &str, region: Value| {
        request(MODERN, 1, "tools/call", json!({"name": name, "arguments": {"region": region}}))
    };
    let good = [
        ("content-type", &b"application/json"[..]),
        ("mcp-protocol-version", MODERN.as_bytes()),
        ("mcp-method", b"tools/call"),
        ("mcp-name", b"annotated"),
        ("mcp-param-region", b"eu"),
    ];
    let mut ask = |name: &str, value: &[u8], body: &str| {
        let headers = good.map(|(known, right)| (known, if known == name { value } else { right }));
        let reply = web.request_raw("POST", "/mcp", &headers, body);
        (reply.status, reply.body["error"]["code"].as_i64().unwrap_or(0), reply.body["id"].clone())
    };
    let refused = (400, -32020, json!(1));
    assert_eq!(ask("", b"", &body("annotated", json!("eu"))), (200, 0, json!(1)));
    for value in ["h\u{e9}".as_bytes(), b"h\xe9", b"a\x01b", b"a\x7fb", b"\0"] {
        let text = String::from_utf8(value.to_vec()).unwrap_or_default();
        assert_eq!(ask("mcp-param-region", value, &body("annotated", json!(text))), refused, "{value:?}");
        assert_eq!(ask("mcp-param-region", value, &body("annotated", json!(null))), refused, "{value:?}");
        assert_eq!(ask("mcp-name", value, &body(&text, json!("eu"))), refused, "{value:?}");
        assert_eq!(ask("mcp-method", value, &body("annotated", json!("eu"))), refused, "{value:?}");
        assert_eq!(ask("mcp-protocol-version", value, &body("annotated", json!("eu"))), refused, "{value:?}");
    }
    assert_eq!(ask("mcp-param-region", b"a\tb", &body("annotated", json!("a\tb"))), (200, 0, json!(1)));
}

#[test]
fn streams_where_they_are_preferred() {
    use mcp_sansio_http::endpoint::StreamPolicy;
    let mut web = Web::with(config().streams(StreamPolicy::Preferred));
    let events_first = ("accept", "text/event-stream, application/json");
    // The answer to `initialize` is a JSON body, even if the client prefers events.
    let reply = web.request("POST", "/mcp", &[JSON, events_first], &common::initialize("2025-11-25", json!({})));
    assert!(reply.stream.is_none() && reply.body["result"].is_object(), "{reply:?}");
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let modern = request(MODERN, 1, "tools/call", json!({"name": "count"}));
    let legacy = common::call("2025-11-25", 1, "count", json!({}));
    let kind = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "count")];
    for (accept, streams) in [
        (ACCEPT, false),
        (events_first, true),
        (("accept", "application/json;q=0.5, text/event-stream"), true),
        (("accept", "text/event-stream;q=0.5, application/json"), false),
        (("accept", "*/*"), false),
    ] {
        let in_session = web.request("POST", "/mcp", &[JSON, accept, ("mcp-session-id", &session)], &legacy);
        let stateless = web.request("POST", "/mcp", &[&[JSON, accept][..], &kind].concat(), &modern);
        for reply in [in_session, stateless] {
            assert_eq!(reply.stream.is_some(), streams, "{accept:?} {reply:?}");
            match reply.stream {
                Some(stream) => assert!(web.pull(stream).only()["result"].is_object()),
                None => assert!(reply.body["result"].is_object(), "{reply:?}"),
            }
        }
    }
    // Two lines of the header are one list: the first weight of a media type holds.
    let twice = [JSON, ("accept", "application/json;q=0.5, text/event-stream"), ACCEPT];
    let reply = web.request("POST", "/mcp", &[&twice[..], &kind].concat(), &modern);
    assert!(reply.stream.is_some(), "{reply:?}");
    // An error is a JSON body, because its status matters.
    let reply = web.request("POST", "/mcp", &[&[JSON, events_first][..], &kind[..2]].concat(), &modern);
    assert_eq!((reply.status, reply.code(), reply.stream), (400, -32020, None));
    let mut needed = Web::new();
    assert_eq!(needed.request("POST", "/mcp", &[&[JSON, events_first][..], &kind].concat(), &modern).text(), "1");
}

#[test]
fn streams_do_not_come_back() {
    let mut web = Web::new();
    let more = [("last-event-id", "0-0-0")];
    assert_eq!(web.modern_with(&more, 1, "tools/call", json!({"name": "count"})).text(), "1");
}

#[test]
fn resources_are_named_by_their_uri() {
    let mut web = Web::new();
    let reply = web.modern(1, "resources/read", json!({"uri": "test://text"}));
    assert!(reply.body["result"]["contents"].is_array());
    let missing = web.modern(1, "resources/read", json!({"uri": "test://nothing"}));
    assert_eq!((missing.status, missing.code()), (200, -32602));
    assert_eq!(web.modern("d", "server/discover", json!({})).status, 200);
}

// spec: T116
#[test]
fn ids_are_of_one_post() {
    let mut web = Web::new();
    let one = web.modern(1, "tools/call", json!({"name": "later", "arguments": {"tag": "a"}})).opened();
    let two = web.modern(1, "tools/call", json!({"name": "later", "arguments": {"tag": "b"}})).opened();
    web.answer(web.later("b"), "B").unwrap();
    web.answer(web.later("a"), "A").unwrap();
    assert_eq!(web.pull(one).only()["result"]["content"][0]["text"], "A");
    let pulled = web.pull(two);
    assert!(pulled.events.iter().all(|event| event.id.is_none() && event.retry.is_none()));
    assert_eq!(pulled.only()["result"]["content"][0]["text"], "B");
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

// spec: B141 T091 T092
#[test]
fn leaving_cancels() {
    let mut web = Web::new();
    let stream = web.modern(1, "tools/call", json!({"name": "later", "arguments": {"tag": "a"}})).opened();
    web.detach(stream);
    assert_eq!(web.world.cancelled, [web.later("a")]);
    assert_eq!(web.answer(web.later("a"), "A"), Err(RespondError::Stale));
    let book = web.modern(1, "tools/call", json!({"name": "picture"}));
    if let Some(book) = book.stream {
        web.detach(book);
    }
    assert_eq!(web.endpoint.load(), (0, 0, 0));
}

const FILTER: &str = "io.modelcontextprotocol/subscriptionId";

// spec: B071 T114
#[test]
fn listens() {
    let mut web = Web::new();
    let all =
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://text", "no://where"]}});
    let one = web.modern(7, "subscriptions/listen", all).opened();
    let two = web.modern(7, "subscriptions/listen", json!({"notifications": {"promptsListChanged": true}})).opened();
    let acknowledged = web.pull(one).json().remove(0);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"][FILTER], 7);
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["test://text"]})
    );
    assert_eq!(web.pull(two).json().len(), 1);
    assert_eq!(web.endpoint.load(), (0, 0, 2));
    let call = web.modern(8, "tools/call", json!({"name": "later", "arguments": {"tag": "t"}})).opened();
    for change in [
        ServerChange::Tools,
        ServerChange::Tools,
        ServerChange::Resource("test://text"),
        ServerChange::Resource("test://blob"),
    ] {
        web.publish(change);
    }
    let heard = web.pull(one).json();
    assert_eq!(heard.len(), 2);
    assert!(heard.iter().all(|message| message["params"]["_meta"][FILTER] == 7));
    assert!(web.pull(call).events.is_empty(), "what concerns no request is not told on the stream of one");
    web.detach(call);
    assert!(web.pull(two).events.is_empty());
    web.wait(15_000);
    assert!(web.pull(one).events[0].comment);
    web.detach(two);
    web.publish(ServerChange::Prompts);
    web.endpoint.shut_down();
    let last = web.pull(one).only();
    assert_eq!((&last["id"], &last["result"]["_meta"][FILTER]), (&json!(7), &json!(7)));
    assert_eq!((web.sip(two, 99), web.endpoint.load()), ((StreamStatus::Stale, 0), (0, 0, 0)));
}

#[test]
fn listens_that_cannot_be() {
    let limits = MessageLimits { subscriptions: 60, ..MessageLimits::default() };
    let mut web = Web::of(Endpoint::growing(
        config(),
        Server::growing(MessageLimits { in_flight: 8, ..limits }),
        EndpointLimits::default(),
    ));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let open: Vec<_> = (0..9).map(|id| web.modern(id, "subscriptions/listen", filter.clone())).collect();
    let refused: Vec<_> = open.iter().filter(|reply| reply.stream.is_none()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|reply| reply.status == 503));
    for stream in open.iter().filter_map(|reply| reply.stream) {
        web.detach(stream);
    }
    assert!(web.modern(1, "subscriptions/listen", filter).stream.is_some());
    let body = request(MODERN, 1, "subscriptions/listen", json!({"notifications": {}}));
    let headers = [
        JSON,
        ("accept", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "subscriptions/listen"),
    ];
    web.request("POST", "/mcp", &headers, &body).refused(406);
    assert_eq!(web.modern(1, "subscriptions/listen", json!({})).code(), -32602);
}

// spec: T141
#[test]
fn sse_by_what_the_handler_does() {
    let mut web = Web::new();
    let mut params = json!({"name": "chatty"});
    params["_meta"] = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "info"});
    let stream = web.modern(1, "tools/call", params).opened();
    let all = web.pull(stream);
    assert!(all.ended && all.json().len() == 6, "{all:#?}");
    assert_eq!(web.modern(1, "tools/call", json!({"name": "chatty"})).text(), "2");
}

/// The log messages of a request go out on its own stream: not on a subscription, nor on the stream of another
/// request.
// spec: S145
#[test]
fn log_messages_stay_with_their_request() {
    let mut web = Web::new();
    let level = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let listen = web.modern("l", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).opened();
    let other = web.modern(2, "tools/call", json!({"name": "later", "_meta": level})).opened();
    let _ = [listen, other].map(|stream| web.pull(stream));
    let stream = web.modern(1, "tools/call", json!({"name": "gossip", "_meta": level})).opened();
    let said = web.pull(stream).json();
    assert_eq!(said.iter().filter(|message| message["method"] == "notifications/message").count(), 8, "{said:?}");
    assert!(web.pull(listen).json().is_empty() && web.pull(other).json().is_empty());
}

/// Streams cannot be resumed in this revision.
// spec: T106
#[test]
fn a_last_event_id_is_ignored() {
    let mut web = Web::new();
    let count = json!({"name": "count"});
    let reply = web.modern_with(&[("Last-Event-ID", "0-1-0")], 1, "tools/call", count);
    assert_eq!(reply.text(), "1");
    let stream = web.modern_with(
        &[("last-event-id", "0-1-1")],
        2,
        "tools/call",
        json!({"name": "later", "arguments": {"tag": "t"}}),
    );
    let stream = stream.opened();
    web.answer(web.later("t"), "done").unwrap();
    assert_eq!(web.pull(stream).only()["id"], 2);
}

/// A message that is no request may have the id of one.
#[test]
fn a_version_that_is_refused_is_refused_for_its_request() {
    let mut web = Web::new();
    for (body, id) in [
        (r#"{"jsonrpc":"2.0","id":5}"#, json!(5)),
        (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Value::Null),
    ] {
        let reply = web.request("POST", "/mcp", &[JSON, ACCEPT, ("mcp-protocol-version", "v999.0.0")], body);
        assert_eq!((reply.status, reply.code(), &reply.body["id"]), (400, -32022, &id), "{reply:?}");
    }
}

/// Only requests need the header of the version, and they say themselves which one they are of.
#[test]
fn a_notification_needs_no_version_where_there_are_no_sessions() {
    let mut web = Web::new();
    web.service = common::everything::service().revisions(Revisions::NONE.with(Revision::V2026_07_28));
    let mut post = |body: &str| web.request("POST", "/mcp", &[JSON, ACCEPT], body);
    let cancelled = post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!((cancelled.status, cancelled.body), (202, Value::Null));
    let asked = post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!((asked.status, asked.code()), (400, -32020), "{asked:?}");
}
