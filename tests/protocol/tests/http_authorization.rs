//! Authorization at the endpoint: decisions that own their texts, decisions that come later, and decisions about messages.
use crate::common;

use std::cell::{Cell, RefCell};

use common::{MODERN, REVISIONS, World, call, everything, initialize, is_modern, json, modern_meta};
use mcp_sansio::FullError;
use mcp_sansio::memory::Store;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Prompt, Resource, ResourceTemplate, Service, Tool, Visibility};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, ExtraHeaders, GRANT_HEADERS, Grant, MessageAccess,
    REFUSAL_HEADERS, Refusal, RequestHead, ResponseBody,
};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

/// A server whose tokens are names, with scopes after a dot: `Bearer ann.1`.
struct Site {
    endpoint: Endpoint<'static>,
    service: Service<'static, World>,
    world: World,
    body: BodyBuffer<Vec<u8>>,
    /// The application knows the tokens.
    decided: Cell<bool>,
    /// The heads that the application was asked about.
    asked: Cell<usize>,
    /// The messages that the application was asked about.
    messages: RefCell<Vec<String>>,
}

const ADMIN: u64 = 2;

impl Site {
    fn new() -> Site {
        let server = Server::growing(MessageLimits::default());
        Site {
            endpoint: Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default()),
            service: everything::service(),
            world: World::default(),
            body: BodyBuffer::new(Vec::new()),
            decided: Cell::new(true),
            asked: Cell::new(0),
            messages: RefCell::default(),
        }
    }

    /// Gives bytes to a connection, and serves it once. Returns the answers.
    fn send(&mut self, http: &mut HttpConnection<'static>, bytes: &str) -> (WaitFor, String) {
        let Site { endpoint, service, world, body, decided, asked, messages } = self;
        let space = http.space();
        space[..bytes.len()].copy_from_slice(bytes.as_bytes());
        http.connection.filled(bytes.len());
        let authorize = |head: &RequestHead<'_>| {
            asked.set(asked.get() + 1);
            if !decided.get() {
                return Access::Later;
            }
            let refused = |status| Refusal::new(status).header("DPoP-Nonce", "next").unwrap();
            let Some(token) = head.text("authorization").and_then(|value| value.strip_prefix("Bearer ")) else {
                let challenge = format!("Bearer resource_metadata=\"https://{}/meta\"", "localhost");
                return Access::RefusedWith(refused(401).header("WWW-Authenticate", challenge).unwrap());
            };
            let (name, scopes) = token.split_once('.').unwrap();
            let grant = Grant::to(Some(&format!("principal {name}"))).unwrap();
            Access::GrantedTo(grant.scopes(scopes.parse().unwrap()).header("DPoP-Nonce", "next").unwrap())
        };
        let permit = |message: &MessageAccess<'_>| {
            let target = message.name.or(message.uri).map(|target| target.to_string());
            messages.borrow_mut().push(format!("{} {}", message.method, target.unwrap_or_default()));
            assert!(message.principal.unwrap().starts_with("principal "));
            if message.lacks_scope() || message.calls_tool("add") && message.scopes & ADMIN == 0 {
                return Access::Denied {
                    status: 403,
                    challenge: Some("Bearer error=\"insufficient_scope\", scope=\"admin\""),
                };
            }
            Access::Granted { principal: None }
        };
        let mut app = App::new(service, world).authorize(&authorize).permit(&permit);
        let mut host = ServeContext { endpoint, app: &mut app, body, now: 0 };
        // Another id for each session.
        let fill = u8::try_from(asked.get()).unwrap();
        let wait = http.serve(&mut host, &mut |bytes| bytes.fill(fill));
        let seen = String::from_utf8(http.connection.pending().to_vec()).unwrap();
        http.connection.sent(seen.len());
        (wait, seen)
    }
}

fn http() -> HttpConnection<'static> {
    HttpConnection::new(Store::growing(1 << 16), Store::growing(1 << 16), ConnectionLimits::default())
}

fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn status(seen: &str) -> &str {
    seen.get(9..12).unwrap_or("none")
}

fn session(seen: &str) -> String {
    let (_, id) = seen.split_once("Mcp-Session-Id: ").expect("a session");
    format!("Mcp-Session-Id: {}\r\n", &id[..32])
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn principals_and_headers_of_a_token() {
    let (mut site, mut http) = (Site::new(), http());
    let opening = initialize("2025-11-25", json!({}));
    let (_, refused) = site.send(&mut http, &post("", &opening));
    assert_eq!(status(&refused), "401");
    assert!(refused.contains("WWW-Authenticate: Bearer resource_metadata=\"https://localhost/meta\"\r\n"), "{refused}");
    assert!(refused.contains("DPoP-Nonce: next\r\n") && refused.ends_with('}'), "{refused}");
    // The whole request was there, so the connection goes on.
    let (_, opened) = site.send(&mut http, &post("Authorization: Bearer ann.1\r\n", &opening));
    assert_eq!((status(&opened), opened.contains("DPoP-Nonce: next\r\n")), ("200", true), "{opened}");
    let id = session(&opened);
    for (token, expected) in [("ann.1", "200"), ("ann.3", "200"), ("bob.3", "404")] {
        let (_, seen) = site.send(&mut http, &post(&format!("Authorization: Bearer {token}\r\n{id}"), PING));
        assert_eq!(status(&seen), expected, "{token}");
    }
}

#[test]
fn a_decision_comes_later() {
    let (mut site, mut http) = (Site::new(), http());
    site.decided.set(false);
    let whole = post("Authorization: Bearer ann.1\r\n", &initialize("2025-11-25", json!({})));
    let (start, rest) = whole.split_at(whole.len() - 10);
    // Without the body, and with all of it, nothing is answered and nothing is handled.
    for (bytes, asked) in [(start, 1), (rest, 2), ("", 3)] {
        assert_eq!(site.send(&mut http, bytes), (WaitFor::Decision, String::new()));
        assert_eq!((site.asked.get(), site.messages.borrow().len()), (asked, 0));
    }
    site.decided.set(true);
    let (wait, seen) = site.send(&mut http, "");
    assert_eq!((wait, status(&seen), site.asked.get()), (WaitFor::Read, "200", 4));
    // The next request of the same connection is decided about by itself.
    site.decided.set(false);
    let next = post("", PING);
    assert_eq!(site.send(&mut http, &next), (WaitFor::Decision, String::new()));
    site.decided.set(true);
    let (_, seen) = site.send(&mut http, "");
    assert_eq!(status(&seen), "401");
}

/// Requests that were sent ahead wait for the first, and are answered in order.
#[test]
fn requests_ahead_wait_for_the_decision() {
    let (mut site, mut http) = (Site::new(), http());
    site.decided.set(false);
    let both = post("", PING) + &post("Authorization: Bearer ann.1\r\n", &initialize("2025-11-25", json!({})));
    assert_eq!(site.send(&mut http, &both), (WaitFor::Decision, String::new()));
    site.decided.set(true);
    let (_, seen) = site.send(&mut http, "");
    let statuses: Vec<&str> = seen.match_indices("HTTP/1.1 ").map(|(at, _)| &seen[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["401", "200"]);
}

/// Without `admit` there is no waiting.
#[test]
fn undecided_is_unavailable() {
    let mut site = Site::new();
    let later = |_: &RequestHead<'_>| Access::Later;
    let mut app = App::new(&site.service, &mut site.world).authorize(&later);
    let headers: &[(&str, &[u8])] = &[("content-type", b"application/json"), ("accept", b"*/*")];
    let head = RequestHead::new("POST", "/mcp", None, &headers);
    let mut space = [0; 512];
    let mut out = LineSink::new(SliceStorage::new(&mut space));
    let response = site.endpoint.request(&mut app, &head, PING.as_bytes(), 0, &mut |_| {}, &mut out);
    assert_eq!((response.status, response.content), (503, ResponseBody::Json));
    out.clear();
    assert!(matches!(site.endpoint.admit(&app, &head, &mut out), Ok(None)));
    assert_eq!(out.pending(), b"");
}

// spec: A151 A152 A153 A160
#[test]
fn scopes_by_tool_in_all_revisions() {
    let sum = json!({"a": 1, "b": 2});
    for revision in REVISIONS {
        let (mut site, mut http) = (Site::new(), http());
        let mut headers = String::new();
        if !is_modern(revision) {
            let opening = post("Authorization: Bearer ann.1\r\n", &initialize(revision, json!({})));
            headers = session(&site.send(&mut http, &opening).1);
        }
        for (token, tool, expected) in
            [("ann.1", "add", "403"), ("ann.1", "echo", "200"), ("ann.3", "add", "200"), ("ann.2", "add", "200")]
        {
            let arguments = if tool == "add" { sum.clone() } else { json!({"text": "x"}) };
            let mut message: common::Value = common::parse(&call(revision, 7, tool, arguments));
            let mut routing = format!("Authorization: Bearer {token}\r\n{headers}");
            if is_modern(revision) {
                message["params"]["_meta"] = modern_meta(json!({}));
                routing += &format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
            }
            let (_, seen) = site.send(&mut http, &post(&routing, &message.to_string()));
            assert_eq!(status(&seen), expected, "{revision} {token} {tool} {seen}");
            let challenge = "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"admin\"\r\n";
            assert_eq!(seen.contains(challenge), expected == "403", "{seen}");
        }
        assert!(site.messages.borrow().contains(&"tools/call add".to_owned()));
    }
}

/// Entries whose definition names scopes: a challenge for each kind, in each revision; hidden ones do not exist.
// spec: A151 A152 A153 A160
#[test]
fn scopes_by_entry_in_all_revisions() {
    const ADMINS: Visibility<World> = Visibility::challenge(ADMIN);
    const HIDDEN: Visibility<World> = Visibility::scopes(ADMIN);
    static TOOLS: [Tool<World>; 2] = [
        Tool::new("act", "Acts", |_, call| call.text("done")).visible(&ADMINS),
        Tool::new("hidden", "Acts unseen", |_, call| call.text("done")).visible(&HIDDEN),
    ];
    static RESOURCES: [Resource<World>; 1] = [Resource::new("x://it", "it", |_, read| read.text("x")).visible(&ADMINS)];
    static TEMPLATES: [ResourceTemplate<World>; 1] =
        [ResourceTemplate::new("y://{it}", "it", |_, read| read.text("y")).visible(&ADMINS)];
    static PROMPTS: [Prompt<World>; 1] = [Prompt::new("ask", "Asks", |_, get| get.user("z")).visible(&ADMINS)];
    const SERVICE: Service<'static, World> =
        Service::new("site", "1").tools(&TOOLS).resources(&RESOURCES).templates(&TEMPLATES).prompts(&PROMPTS);
    for revision in REVISIONS {
        let (mut site, mut http) = (Site { service: SERVICE, ..Site::new() }, http());
        let mut session_header = String::new();
        if !is_modern(revision) {
            let opening = post("Authorization: Bearer ann.1\r\n", &initialize(revision, json!({})));
            session_header = session(&site.send(&mut http, &opening).1);
        }
        for (method, member, name, with_low) in [
            ("tools/call", "name", "act", "403"),
            ("resources/read", "uri", "x://it", "403"),
            ("resources/read", "uri", "y://1", "403"),
            ("prompts/get", "name", "ask", "403"),
            ("tools/call", "name", "hidden", "200"),
        ] {
            let message = common::request(revision, 7, method, json!({member: name}));
            for (token, expected) in [("ann.1", with_low), ("ann.3", "200")] {
                let mut headers = format!("Authorization: Bearer {token}\r\n{session_header}");
                if is_modern(revision) {
                    headers +=
                        &format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n");
                }
                let (_, seen) = site.send(&mut http, &post(&headers, &message));
                assert_eq!(status(&seen), expected, "{revision} {token} {name} {seen}");
                let challenge = "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"admin\"\r\n";
                assert_eq!(seen.contains(challenge), expected == "403", "{seen}");
                assert_eq!(seen.contains("Unknown tool"), name == "hidden" && token == "ann.1", "{seen}");
            }
        }
    }
}

#[test]
fn no_message_hides_from_the_decision() {
    let (mut site, mut http) = (Site::new(), http());
    let opening = post("Authorization: Bearer ann.1\r\n", &initialize("2025-03-26", json!({})));
    let headers = format!("Authorization: Bearer ann.1\r\n{}", session(&site.send(&mut http, &opening).1));
    let add = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#;
    for (body, expected) in [
        (format!("[{PING},{add}]"), "403"),
        (format!(" [{add}]"), "403"),
        (add.replace("\"add\"", "\"\\u0061dd\""), "403"),
        (add.replace("tools/call", "tools\\/call"), "403"),
        (add.replace("\"name\"", "\"n\\u0061me\""), "403"),
        (add.replace("\"name\":\"add\"", "\"name\":\"echo\",\"name\":\"add\""), "403"),
        (format!("[{add}"), "400"),
        (format!("[{add}]]"), "400"),
        (format!("[{PING}]"), "200"),
    ] {
        let (_, seen) = site.send(&mut http, &post(&headers, &body));
        assert_eq!(status(&seen), expected, "{body} {seen}");
        assert!(!seen.contains("\"text\":\"3\""), "{body} {seen}");
    }
    // The last member counts, for the decision as for the engine: it is not `add` that runs.
    let last = add.replace("\"name\":\"add\"", "\"name\":\"add\",\"name\":\"echo\"");
    let (_, seen) = site.send(&mut http, &post(&headers, &last));
    assert!(!seen.contains("\"text\":\"3\""), "{seen}");
}

#[test]
fn headers_cannot_be_injected() {
    let refusal = Refusal::new(401);
    let add = |name: &str, value: &str| refusal.clone().header(name, value).map(drop);
    assert_eq!(add("X-Good", "a b\tc"), Ok(()));
    for (name, value) in
        [("X", "a\r\nY: b"), ("X", "a\nb"), ("X", "\u{e9}"), ("X", "\0"), ("X Y", "a"), ("X:", "a"), ("", "a")]
    {
        assert_eq!(add(name, value), Err(FullError::Never), "{name:?} {value:?}");
    }
    assert_eq!(add("X", &"a".repeat(REFUSAL_HEADERS - 3)), Ok(()));
    assert_eq!(add("X", &"a".repeat(REFUSAL_HEADERS - 2)), Err(FullError::Never));
    // What was written of a header that is refused is gone.
    let mut headers = ExtraHeaders::<16>::EMPTY;
    headers.add("A", "b").unwrap();
    let before = headers.clone();
    for value in ["good, then\n", "no room for this"] {
        assert_eq!(headers.add("X", value), Err(FullError::Never));
        assert_eq!(headers, before);
    }
    let grant = Grant::to(None).unwrap();
    assert!(grant.clone().header("X", "a".repeat(GRANT_HEADERS - 3)).is_ok());
    assert!(grant.header("X", "a".repeat(GRANT_HEADERS - 2)).is_err());
    // A name that was cut could be the name of another principal.
    assert!(Grant::to(Some(&"a".repeat(64))).is_ok() && Grant::to(Some(&"a".repeat(65))).is_err());
}
