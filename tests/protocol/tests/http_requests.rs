//! The checks of each HTTP request: method, path, media types, `Host` and `Origin`.
use crate::common;

use common::http::*;
use common::{MODERN, call, initialize, json, notify};
use mcp_sansio::revision::{Revision, Revisions};

fn hello() -> String {
    initialize("2025-11-25", json!({}))
}

// spec: T062
#[test]
fn accept() {
    let mut web = Web::new();
    for accept in [BOTH, "*/*", "application/*, text/*", "application/json", "APPLICATION/JSON;q=0.9,text/event-stream"]
    {
        assert_eq!(web.request("POST", "/mcp", &[JSON, ("Accept", accept)], &hello()).status, 200, "{accept}");
    }
    assert_eq!(web.request("POST", "/mcp", &[JSON], &hello()).status, 200);
    for accept in ["text/event-stream", "text/html", "application/jsonx", ""] {
        web.request("POST", "/mcp", &[JSON, ("accept", accept)], &hello()).refused(406);
    }
    let session = web.open("2025-11-25");
    for (accept, status) in [
        ("text/event-stream", 200),
        ("text/*", 200),
        ("*/*, text/event-stream;q=0.1", 200),
        ("*/*", 406),
        ("text/event-stream;q=0, */*", 406),
        ("application/json", 406),
    ] {
        let reply = web.request("GET", "/mcp", &[("accept", accept), ("mcp-session-id", &session)], "");
        assert_eq!(reply.status, status, "{accept}");
        assert_eq!(web.request("GET", "/mcp", &[("accept", accept)], "").status, status, "{accept}");
    }
    web.request("GET", "/mcp", &[("mcp-session-id", &session)], "").refused(406);
    web.request("GET", "/mcp", &[], "").refused(406);
    // At the old path, events are the only possible answer.
    assert_eq!(web.request("GET", "/sse", &[("accept", "*/*")], "").status, 200);
}

#[test]
fn content_type() {
    let mut web = Web::new();
    for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(web.request("POST", "/mcp", &[ACCEPT, ("Content-Type", kind)], &hello()).status, 200, "{kind}");
    }
    for kind in ["text/plain", "application/jsonp", ""] {
        web.request("POST", "/mcp", &[ACCEPT, ("content-type", kind)], &hello()).refused(415);
    }
    web.request("POST", "/mcp", &[ACCEPT], &hello()).refused(415);
}

#[test]
fn content_encoding() {
    let mut web = Web::new();
    let mut send = |codings: &[&str]| {
        let codings = codings.iter().map(|coding| ("Content-Encoding", *coding));
        let headers: Vec<_> = [ACCEPT, JSON].into_iter().chain(codings).collect();
        web.request("POST", "/mcp", &headers, &hello())
    };
    assert_eq!((send(&["identity"]).status, send(&["Identity "]).status), (200, 200));
    for codings in [&["gzip"][..], &["br"], &[""], &["identity, gzip"], &["identity", "gzip"], &["gzip", "identity"]] {
        let refused = send(codings);
        refused.refused(415);
        assert_eq!(refused.header("accept-encoding"), Some("identity"), "{codings:?}");
    }
}

#[test]
fn a_client_that_takes_only_json() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    let headers = [JSON, ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let mut say = |tool: &str| web.request("POST", "/mcp", &headers, &call("2025-11-25", 1, tool, json!({})));
    assert_eq!(say("count").text(), "1");
    assert_eq!(say("chatty").text(), "2"); // what it tells meanwhile is left out
    assert_eq!(say("later").status, 406);
    assert_eq!(say("confirm").status, 406);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

// spec: T040
#[test]
fn json_or_events_by_what_the_handler_does() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    assert_eq!(web.call(&session, 1, "count", json!({})).text(), "1");
    let stream = web.call(&session, 2, "gossip", json!({})).opened();
    let pulled = web.pull(stream);
    let all = pulled.json();
    assert!(pulled.ended && all.len() == 8 && all[7]["id"] == 2, "{all:?}");
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

// spec: T029 T139
#[test]
fn notifications_and_responses() {
    let mut web = Web::new();
    let session = web.open("2025-11-25");
    for body in [notify("notifications/initialized", json!({})), r#"{"jsonrpc":"2.0","id":5,"result":{}}"#.into()] {
        let reply = web.say(&session, &body);
        assert_eq!((reply.status, reply.body.is_null(), reply.stream), (202, true, None));
    }
    let modern = [JSON, ACCEPT, ("mcp-protocol-version", MODERN)];
    assert_eq!(web.request("POST", "/mcp", &modern, &notify("notifications/x", json!({}))).status, 202);
    web.request("POST", "/mcp", &modern, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#).refused(400);
    web.request("POST", "/mcp", &modern, "[]").refused(400);
    assert_eq!(web.endpoint.load(), (0, 1, 0));
}

/// They are answered by the HTTP status alone.
// spec: T030 T140
#[test]
fn notifications_and_responses_that_are_none() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    let modern = [JSON, ACCEPT, ("mcp-protocol-version", MODERN)];
    for body in [
        r#"{"jsonrpc":"1.0","method":"notifications/x"}"#,
        r#"{"method":"notifications/x"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":5}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":5}"#,
        r#"{"jsonrpc":"2.0","id":77,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"1.0","id":77,"result":{}}"#,
    ] {
        for reply in [web.say(&session, body), web.request("POST", "/mcp", &modern, body)] {
            reply.refused(400);
            assert_eq!(reply.code(), -32600, "{body}");
        }
    }
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#,
    ] {
        assert_eq!(web.say(&session, body).status, 202, "{body}");
    }
    // A version that the server does not support.
    let future = [JSON, ACCEPT, ("mcp-protocol-version", "2099-01-01")];
    for body in [notify("notifications/x", json!({})), r#"{"jsonrpc":"2.0","id":5,"result":{}}"#.into()] {
        web.request("POST", "/mcp", &future, &body).refused(400);
        web.request("POST", "/mcp", &[&future[..], &[("mcp-session-id", &session)]].concat(), &body).refused(400);
    }
}

/// A request with a member that comes twice, or with an outcome: in all revisions, on its own and in a batch.
#[test]
fn two_messages_in_one() {
    let bad = [
        r#""id":7,"method":"ping","result":{}"#,
        r#""id":7,"error":{"code":1,"message":"x"},"method":"tools/list""#,
        r#""jsonrpc":"2.0","id":7,"method":"ping""#,
        r#""id":8,"method":"ping","id":7"#,
        r#""id":7,"method":"ping","method":"tools/list""#,
    ];
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut web = Web::new();
        let session = web.open(revision);
        for members in bad {
            let reply = web.say(&session, &format!(r#"{{"jsonrpc":"2.0",{members}}}"#));
            assert_eq!((reply.status, reply.code(), &reply.body["id"]), (400, -32600, &json!(7)), "{members}");
        }
        if revision == "2025-03-26" {
            let batch = bad.map(|members| format!(r#"{{"jsonrpc":"2.0",{members}}}"#)).join(",");
            let stream = web.say(&session, &format!("[{batch}]")).opened();
            let answers = web.pull(stream).json().remove(0);
            let codes = answers.as_array().unwrap().iter().map(|answer| answer["error"]["code"].as_i64());
            assert_eq!(codes.collect::<Vec<_>>(), [Some(-32600); 5]);
        }
    }
    let mut web = Web::new();
    let meta = common::modern_meta(json!({}));
    for members in bad {
        let body = format!(r#"{{"jsonrpc":"2.0","params":{{"_meta":{meta}}},{members}}}"#);
        for method in ["ping", "tools/list"] {
            let headers = [JSON, ACCEPT, ("mcp-protocol-version", MODERN), ("mcp-method", method)];
            let reply = web.request("POST", "/mcp", &headers, &body);
            assert_eq!((reply.status, reply.code()), (400, -32600), "{members}");
        }
    }
}

#[test]
fn not_json_and_no_request() {
    let mut web = Web::new();
    let session = web.open("2025-06-18");
    for (body, code) in [("{", -32700), ("", -32700), ("7", -32600), ("[]", -32600), ("{}", -32600)] {
        for reply in
            [web.say(&session, body), web.request("POST", "/mcp", &[JSON, ("mcp-protocol-version", MODERN)], body)]
        {
            reply.refused(400);
            assert_eq!(reply.code(), code, "{body}");
        }
    }
}

// spec: T005 T062 T089
#[test]
fn methods_and_paths() {
    let mut web = Web::new();
    for method in ["PUT", "HEAD", "PATCH", "OPTIONS", "get"] {
        let reply = web.request(method, "/mcp", &[], "");
        reply.refused(405);
        assert_eq!(reply.header("allow"), Some("GET, POST, DELETE"));
    }
    for method in ["GET", "DELETE"] {
        let reply = web.request(method, "/mcp", &[("mcp-protocol-version", MODERN)], "");
        reply.refused(405);
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    for (method, path, allow) in [("POST", "/sse", "GET"), ("GET", "/messages", "POST"), ("DELETE", "/sse", "GET")] {
        let reply = web.request(method, path, &[], "");
        reply.refused(405);
        assert_eq!(reply.header("allow"), Some(allow), "{method} {path}");
    }
    for (method, path, status) in [("POST", "/mcp/", 200), ("GET", "/sse/", 200), ("POST", "/messages/?session=1", 404)]
    {
        let reply = web.request(method, path, &[JSON, if method == "GET" { SSE } else { ACCEPT }], &hello());
        assert_eq!(reply.status, status, "{path}");
    }
    for path in ["/", "/mcp//", "/MCP", "/mcpx", "", "/.well-known/oauth-protected-resource"] {
        web.request("POST", path, &[JSON], &hello()).refused(404);
    }
}

/// The service supports 2026-07-28 alone, or the endpoint has no sessions.
// spec: T103 T104 T105 T107 T111 T113
#[test]
fn stateless_only() {
    let alone = || {
        let mut web = Web::new();
        web.service = common::everything::service().revisions(Revisions::NONE.with(Revision::V2026_07_28));
        web
    };
    let without_sessions = || {
        let mut web = Web::with(config().legacy(false));
        web.stateless = true;
        web
    };
    for mut web in [alone(), without_sessions()] {
        for (method, path) in [("GET", "/mcp"), ("DELETE", "/mcp")] {
            for version in [None, Some("2025-11-25"), Some(MODERN), Some("2099-01-01")] {
                let mut headers = vec![SSE, ("mcp-session-id", "x")];
                headers.extend(version.map(|version| ("mcp-protocol-version", version)));
                let reply = web.request(method, path, &headers, "");
                reply.refused(405);
                assert_eq!(reply.header("allow"), Some("POST"));
            }
        }
        for (method, path) in [("GET", "/sse"), ("POST", "/messages?session=1"), ("POST", "/messages")] {
            web.request(method, path, &[SSE, JSON], "{}").refused(404);
        }
        // The message names the supported versions too: a client may show nothing else to its user.
        for version in [None, Some("2025-11-25"), Some(MODERN), Some("foo")] {
            let mut headers = vec![JSON, ACCEPT];
            headers.extend(version.map(|version| ("mcp-protocol-version", version)));
            let reply = web.request("POST", "/mcp", &headers, &hello());
            assert_eq!((reply.status, reply.code(), reply.header("mcp-session-id")), (400, -32022, None));
            let error = &reply.body["error"];
            assert_eq!(error["data"], json!({"supported": [MODERN], "requested": "2025-11-25"}), "{version:?}");
            assert!(error["message"].as_str().unwrap().contains(MODERN));
        }
        // Other requests are judged by their headers; the session is ignored.
        // So are methods that it does not have: without `_meta` the params are what is wrong.
        for method in ["tools/list", "ping", "foo/bar"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}"}}"#);
            for (version, code) in [
                (None, -32020),
                (Some("2025-11-25"), -32022),
                (Some("foo"), -32022),
                (Some("fo\"o"), -32022),
                (Some("2099-01-01"), -32022),
                (Some(MODERN), -32602),
            ] {
                let mut headers = vec![JSON, ACCEPT, ("mcp-session-id", "x")];
                headers.extend(version.map(|version| ("mcp-protocol-version", version)));
                let reply = web.request("POST", "/mcp", &headers, &body);
                let found = (reply.status, reply.code(), &reply.body["id"]);
                assert_eq!(found, (400, code, &json!("a")), "{method} {version:?}");
                if code == -32022 {
                    let requested = version.map(|version| version.split('"').next().unwrap());
                    assert_eq!(reply.body["error"]["data"], json!({"supported": [MODERN], "requested": requested}));
                }
            }
        }
        assert_eq!(web.modern(1, "tools/call", json!({"name": "count"})).text(), "1");
        assert_eq!(web.modern_with(&[("mcp-session-id", "x")], 1, "tools/call", json!({"name": "count"})).text(), "2");
        assert_eq!(web.modern(1, "initialize", json!({})).status, 404);
    }
}

/// Clients of both eras send `initialize` only after an answer that does not look like 2026-07-28.
// spec: T013
#[test]
fn legacy_only() {
    let mut web = Web::new();
    web.service = common::everything::service().revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let body = common::request(MODERN, 1, "server/discover", json!({}));
    for version in [None, Some(MODERN), Some("2099-01-01")] {
        let mut headers = vec![JSON, ACCEPT, ("mcp-method", "server/discover")];
        headers.extend(version.map(|version| ("mcp-protocol-version", version)));
        let reply = web.request("POST", "/mcp", &headers, &body);
        assert_eq!((reply.status, reply.code(), &reply.body["error"]["data"]), (400, -32600, &json!(null)));
    }
    let session = web.open("2025-11-25");
    for version in [MODERN, "2099-01-01", "2025-06-18", "2024-11-05"] {
        let headers = [JSON, ACCEPT, SSE, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        for (method, body) in [
            ("POST", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            ("POST", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            ("GET", ""),
            ("DELETE", ""),
        ] {
            assert_eq!(web.request(method, "/mcp", &headers, body).status, 400, "{method} {version}");
        }
    }
    assert_eq!(web.call(&session, 1, "count", json!({})).text(), "1");
}

// spec: A128 T019 T129 T132
#[test]
fn host_and_origin() {
    let mut web = Web::new();
    for host in ["localhost", "localhost:8931", "127.0.0.1:80", "[::1]", "[::1]:8931", "LOCALHOST:1"] {
        let origin = format!("http://{host}");
        let reply = web.request("POST", "/mcp", &[JSON, ("Host", host), ("Origin", &origin)], &hello());
        assert_eq!(reply.status, 200, "{host}");
    }
    for host in ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com:80", "localhost:x", "[::2]", "", "::1"] {
        web.request("POST", "/mcp", &[JSON, ("Host", host)], &hello()).refused(403);
        web.request("POST", "/mcp", &[JSON, ("Origin", &format!("http://{host}"))], &hello()).refused(403);
    }
    // A server of HTTP/2 may give the pseudo-headers too.
    assert_eq!(web.request("POST", "/mcp", &[JSON, (":authority", "localhost")], &hello()).status, 200);
    for (authority, host) in [("evil.example.com", "localhost"), ("localhost", "evil.example.com")] {
        web.request("POST", "/mcp", &[JSON, (":authority", authority), ("host", host)], &hello()).refused(403);
        web.request("POST", "/mcp", &[JSON, ("host", host), (":authority", authority)], &hello()).refused(403);
    }
    web.request("POST", "/mcp", &[JSON, (":authority", "evil.example.com")], &hello()).refused(403);
    for origin in ["null", "localhost", "ftp://localhost", "http://localhost/x", "http://evil@localhost"] {
        web.request("POST", "/mcp", &[JSON, ("Origin", origin)], &hello()).refused(403);
    }
    web.request_raw("POST", "/mcp", &[("content-type", b"application/json"), ("host", b"\xff")], &hello()).refused(403);
    web.request_raw("GET", "/mcp", &[("origin", b"\xff")], "").refused(403);
    let (own, evil) = (("origin", "http://localhost"), ("origin", "http://evil.example.com"));
    for two in
        [[own, evil], [evil, own], [own, ("origin", "http://127.0.0.1")], [("host", "localhost"), ("host", "evil")]]
    {
        web.request("POST", "/mcp", &[&[JSON][..], &two].concat(), &hello()).refused(403);
    }
    // The paths of 2024-11-05 are checked in the same way.
    for (method, path) in [("GET", "/sse"), ("POST", "/messages?session=1"), ("POST", "/messages")] {
        for foreign in [evil, ("host", "evil.example.com")] {
            web.request(method, path, &[JSON, SSE, foreign], "{}").refused(403);
        }
    }
    assert_eq!(web.endpoint.load().1, 7);
}

#[test]
fn more_hosts() {
    let mut config = config();
    config.hosts = &["example.com"];
    let mut web = Web::with(config);
    let headers = [JSON, ("host", "Example.com:443"), ("origin", "https://example.com")];
    assert_eq!(web.request("POST", "/mcp", &headers, &hello()).status, 200);
    web.request("POST", "/mcp", &[JSON, ("host", "www.example.com")], &hello()).refused(403);
    let mut web = Web::with(config.ip_hosts(true));
    for host in ["192.168.1.7", "192.168.1.7:80", "[fe80::1]:80"] {
        assert_eq!(web.request("POST", "/mcp", &[JSON, ("host", host)], &hello()).status, 200, "{host}");
        let foreign = ("origin", &*format!("http://{host}"));
        web.request("POST", "/mcp", &[JSON, ("host", host), foreign], &hello()).refused(403);
    }
    web.request("POST", "/mcp", &[JSON, ("host", "board.local")], &hello()).refused(403);
    config.any_host = true;
    let mut web = Web::with(config);
    let headers = [JSON, ("host", "any.where"), ("origin", "null")];
    assert_eq!(web.request("POST", "/mcp", &headers, &hello()).status, 200);
}

#[test]
fn cors() {
    let mut config = config();
    config.cors = true;
    let mut web = Web::with(config);
    let origin = ("origin", "http://localhost:3000");
    let reply =
        web.request("OPTIONS", "/mcp", &[origin, ("access-control-request-headers", "mcp-param-region, accept")], "");
    assert_eq!((reply.status, reply.body.is_null()), (204, true));
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin.1));
    assert_eq!(reply.header("access-control-allow-methods"), Some("GET, POST, DELETE, OPTIONS"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("mcp-param-region, accept"));
    let names: Vec<_> =
        reply.headers.iter().map(|(name, _)| name.strip_prefix("Access-Control-").unwrap_or(name)).collect();
    assert_eq!(names, ["Allow-Origin", "Vary", "Expose-Headers", "Allow-Methods", "Allow-Headers", "Max-Age"]);
    assert_eq!(reply.header("access-control-max-age"), Some("86400"));
    let reply = web.request("OPTIONS", "/mcp", &[origin, ("access-control-request-headers", "a\r\nb")], "");
    assert!(reply.header("access-control-allow-headers").unwrap().contains("Mcp-Session-Id"));
    let reply = web.request("POST", "/mcp", &[JSON, origin], &hello());
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin.1));
    assert_eq!(reply.header("access-control-expose-headers"), Some("Mcp-Session-Id, WWW-Authenticate"));
    assert_eq!(reply.header("vary"), Some("Origin"));
    let reply = web.request("OPTIONS", "/mcp", &[("origin", "http://evil.example.com")], "");
    reply.refused(403);
    assert_eq!(reply.header("access-control-allow-origin"), None);
    assert_eq!(
        Web::new().request("POST", "/mcp", &[JSON, origin], &hello()).header("access-control-allow-origin"),
        None
    );
}
