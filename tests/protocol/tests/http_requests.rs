//! What a request must be to be heard: methods, paths, types, where it comes from.
mod common;

use common::http::*;
use common::{MODERN, call, initialize, json, notify};

fn hello() -> String {
    initialize("2025-11-25", json!({}))
}

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
    for (accept, status) in [("text/event-stream", 200), ("*/*", 200), ("text/*", 200), ("application/json", 406)] {
        let reply = web.request("GET", "/mcp", &[("accept", accept), ("mcp-session-id", &session)], "");
        assert_eq!(reply.status, status, "{accept}");
    }
    assert_eq!(web.request("GET", "/mcp", &[("mcp-session-id", &session)], "").status, 200);
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
    for path in ["/", "/mcp/", "/MCP", "/mcpx", "", "/.well-known/oauth-protected-resource"] {
        web.request("POST", path, &[JSON], &hello()).refused(404);
    }
}

#[test]
fn stateless_only() {
    let mut web = Web::with({
        let mut config = config();
        config.legacy = false;
        config
    });
    web.post(&hello()).refused(400);
    for (method, path) in [("GET", "/mcp"), ("DELETE", "/mcp")] {
        assert_eq!(web.request(method, path, &[], "").header("allow"), Some("POST"));
    }
    web.request("GET", "/sse", &[SSE], "").refused(405);
    assert_eq!(web.modern(1, "tools/call", json!({"name": "count"})).text(), "1");
}

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
    for origin in ["null", "localhost", "ftp://localhost", "http://localhost/x", "http://evil@localhost"] {
        web.request("POST", "/mcp", &[JSON, ("Origin", origin)], &hello()).refused(403);
    }
    web.request_raw("POST", "/mcp", &[("content-type", b"application/json"), ("host", b"\xff")], &hello()).refused(403);
    web.request_raw("GET", "/mcp", &[("origin", b"\xff")], "").refused(403);
    assert_eq!(web.endpoint.load().1, 6);
}

#[test]
fn more_hosts() {
    let mut config = config();
    config.hosts = &["example.com"];
    let mut web = Web::with(config);
    let headers = [JSON, ("host", "Example.com:443"), ("origin", "https://example.com")];
    assert_eq!(web.request("POST", "/mcp", &headers, &hello()).status, 200);
    web.request("POST", "/mcp", &[JSON, ("host", "www.example.com")], &hello()).refused(403);
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
