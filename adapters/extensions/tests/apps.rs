//! Apps from outside: what clients of each revision read, and which of them are shown pages.

use mcp_sansio::json::Raw;
use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{Call, Extension, HandlerResult, Resource, Service, Tool};
use mcp_sansio_extensions::apps::{
    CLIENT_EXTENSIONS, EXTENSION, MIME, Page, ResourceCsp, ResourceMeta, ResourcePermissions, ToolMeta, ToolVisibility,
    can_show, ui_meta,
};
use mcp_sansio_host::testing::Conversation;
use serde_json::{Value, json};

const HTML: &str = "<!DOCTYPE html><title>\"Pump\" \u{e9}</title>";

static PANEL: Page = Page::new("ui://pump/panel", "panel", HTML).meta(ui_meta!(
    ResourceMeta::new()
        .csp(ResourceCsp::new().connect_domains(&["wss://a.example.com", "https://b.example.com"]).frame_domains(&[]))
        .permissions(ResourcePermissions::new().camera().clipboard_write())
        .domain("pump.example.com")
        .prefers_border(true)
));
static PLAIN: Page = Page::new("ui://pump/plain?a=%20#b", "plain", "<!doctype html>");

fn pressure(_: &mut Option<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    match can_show(call) {
        true => call.json_raw(Raw::constant(r#"{"bar":2.5}"#)),
        false => call.text("2.5 bar"),
    }
}

fn later(waiting: &mut Option<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    *waiting = Some(token);
    outcome
}

static TOOLS: [Tool<Option<RequestToken>>; 2] = [
    Tool::new("pressure", "Measures the pressure", pressure).meta(ui_meta!(ToolMeta::new("ui://pump/panel"))),
    Tool::new("later", "Answers later", later)
        .meta(ui_meta!(ToolMeta::without_page().visibility(&[ToolVisibility::Model, ToolVisibility::App]))),
];
static RESOURCES: [Resource<Option<RequestToken>>; 2] =
    [PANEL.resource(|_, read| PANEL.read(read)), PLAIN.resource(|_, read| PLAIN.read(read))];
// Behind another one, so that its bit is not the first.
static EXTENSIONS: [Extension<Option<RequestToken>>; 2] =
    [Extension::new("com.example/other"), mcp_sansio_extensions::apps::extension()];
const SERVICE: Service<'static, Option<RequestToken>> =
    Service::new("pump", "1.0").tools(&TOOLS).resources(&RESOURCES).extend(&EXTENSIONS);

type Talk = Conversation<'static, Option<RequestToken>>;

/// A client, opened if its revision has a handshake.
struct Client {
    talk: Talk,
    meta: Option<Value>,
}

impl Client {
    fn new(revision: &str, extensions: &Value) -> Self {
        let mut client = Client { talk: Conversation::new(const { &SERVICE }, None), meta: None };
        let capabilities = json!({ "extensions": extensions });
        if revision == "2026-07-28" {
            client.meta = Some(json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }));
            return client;
        }
        let info = json!({ "name": "host", "version": "1" });
        let opened = client.ask(
            "initialize",
            json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info }),
        );
        assert_eq!(opened["protocolVersion"], revision);
        assert!(client.talk.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).is_empty());
        client
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut lines = self.send(method, params);
        assert_eq!(lines.len(), 1, "{lines:?}");
        serde_json::from_str::<Value>(&lines.remove(0)).unwrap()["result"].take()
    }

    fn send(&mut self, method: &str, mut params: Value) -> Vec<String> {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.talk.say(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string())
    }
}

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn shows() -> Value {
    serde_json::from_str(CLIENT_EXTENSIONS.as_str()).unwrap()
}

#[test]
fn both_eras_declare_what_they_can_show() {
    let with = |settings: Value| json!({ EXTENSION: settings });
    let declarations = [
        (shows(), true),
        (with(json!({ "mimeTypes": ["image/png", MIME], "more": 1 })), true),
        (json!({ "com.example/other": {}, EXTENSION: { "mimeTypes": [MIME] } }), true),
        (json!({}), false),
        (json!({ "com.example/other": { "mimeTypes": [MIME] } }), false),
        (with(json!({})), false),
        (with(json!({ "mimeTypes": ["text/html"] })), false),
        (with(json!({ "mimeTypes": MIME })), false),
        (with(json!([MIME])), false),
        (with(json!(null)), false),
        (json!([EXTENSION]), false),
    ];
    for revision in REVISIONS {
        for (extensions, shown) in &declarations {
            let mut client = Client::new(revision, extensions);
            let result = client.ask("tools/call", json!({ "name": "pressure", "arguments": {} }));
            let text = if *shown { r#"{"bar":2.5}"# } else { "2.5 bar" };
            assert_eq!(result["content"][0]["text"], text, "{revision} {extensions}");
            let structured = *shown && revision >= "2025-06-18";
            assert_eq!(result.get("structuredContent").is_some(), structured, "{revision} {extensions}");
        }
    }
}

/// A client of 2026-07-28 declares in each request, and the next one may be another.
#[test]
fn a_declaration_holds_for_one_request() {
    let mut client = Client::new("2026-07-28", &shows());
    let call = json!({ "name": "pressure", "arguments": {} });
    assert_eq!(client.ask("tools/call", call.clone())["structuredContent"]["bar"], 2.5);
    client.meta = Client::new("2026-07-28", &json!({})).meta;
    assert_eq!(client.ask("tools/call", call)["content"][0]["text"], "2.5 bar");
}

/// A second `initialize` replaces the first declaration.
#[test]
fn another_initialize_declares_anew() {
    let mut client = Client::new("2025-11-25", &shows());
    let info = json!({ "name": "host", "version": "1" });
    client.ask("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }));
    let result = client.ask("tools/call", json!({ "name": "pressure", "arguments": {} }));
    assert_eq!(result["content"][0]["text"], "2.5 bar");
}

#[test]
fn late_answers_know_it() {
    for revision in REVISIONS {
        for (extensions, text) in [(shows(), r#"{"bar":2.5}"#), (json!({}), "2.5 bar")] {
            let mut client = Client::new(revision, &extensions);
            assert!(client.send("tools/call", json!({ "name": "later", "arguments": {} })).is_empty());
            let token = client.talk.state().take().unwrap();
            let lines = client.talk.answer(token, pressure).unwrap();
            let line: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["result"]["content"][0]["text"], text, "{revision}");
        }
    }
}

#[test]
fn tools_and_pages_have_their_meta() {
    let page = json!({ "ui": {
        "csp": { "connectDomains": ["wss://a.example.com", "https://b.example.com"] },
        "permissions": { "camera": {}, "clipboardWrite": {} },
        "domain": "pump.example.com",
        "prefersBorder": true,
    }});
    for revision in REVISIONS {
        let has_meta = revision >= "2025-06-18";
        let or_none = |meta: &Value| if has_meta { meta.clone() } else { Value::Null };
        let mut client = Client::new(revision, &json!({}));
        let tools = client.ask("tools/list", json!({}));
        assert_eq!(tools["tools"][0]["_meta"], or_none(&json!({ "ui": { "resourceUri": "ui://pump/panel" } })));
        assert_eq!(tools["tools"][1]["_meta"], or_none(&json!({ "ui": { "visibility": ["model", "app"] } })));
        let resources = client.ask("resources/list", json!({}));
        assert_eq!(resources["resources"][0]["_meta"], or_none(&page));
        assert_eq!(resources["resources"][1], json!({ "uri": PLAIN.uri, "name": "plain", "mimeType": MIME }));
        let mut read = client.ask("resources/read", json!({ "uri": "ui://pump/panel" }));
        let mut contents = json!({ "uri": "ui://pump/panel", "mimeType": MIME, "text": HTML });
        if has_meta {
            contents["_meta"] = page.clone();
        }
        assert_eq!(read["contents"].take(), json!([contents]), "{revision}");
        let plain = client.ask("resources/read", json!({ "uri": PLAIN.uri }));
        assert_eq!(plain["contents"][0], json!({ "uri": PLAIN.uri, "mimeType": MIME, "text": "<!doctype html>" }));
    }
}

#[test]
fn a_server_declares_it() {
    let mut client = Client::new("2026-07-28", &json!({}));
    let discovered = client.ask("server/discover", json!({}));
    assert_eq!(discovered["capabilities"]["extensions"][EXTENSION], json!({}));
}

/// The URIs, pages and origins that a constant refuses; each panics when it is made at run time.
#[test]
fn wrong_constants_are_refused() {
    fn panics(make: fn()) -> bool {
        std::panic::catch_unwind(make).is_err()
    }
    assert!(!panics(|| drop(Page::new("ui://a", "a", "<!Doctype HTML>"))));
    for wrong in [
        || drop(Page::new("ui://", "a", HTML)),
        || drop(Page::new("ui:/a", "a", HTML)),
        || drop(Page::new("UI://a", "a", HTML)),
        || drop(Page::new("https://a", "a", HTML)),
        || drop(Page::new("ui://a\"b", "a", HTML)),
        || drop(Page::new("ui://a\\b", "a", HTML)),
        || drop(Page::new("ui://a b", "a", HTML)),
        || drop(Page::new("ui://\u{e9}", "a", HTML)),
        || drop(Page::new("ui://a", "a", "")),
        || drop(Page::new("ui://a", "a", "<!doctype htm")),
        || drop(Page::new("ui://a", "a", "<html>")),
        || drop(Page::new("ui://a", "a", HTML).meta("{")),
    ] as [fn(); 12]
    {
        assert!(panics(wrong));
    }
    for wrong in [
        || _ = ToolMeta::new("pump://panel"),
        || _ = ToolMeta::without_page().visibility(&[]),
        || _ = ResourceMeta::new().domain(""),
        || _ = ResourceMeta::new().domain("a\nb"),
        || _ = ResourceCsp::new().connect_domains(&["https://a", "https://b; script-src *"]),
        || _ = ResourceCsp::new().resource_domains(&["'unsafe-eval'"]),
        || _ = ResourceCsp::new().frame_domains(&["a,b"]),
        || _ = ResourceCsp::new().base_uri_domains(&["a\"b"]),
        || _ = ToolMeta::new("ui://a").ui().json::<8>(),
    ] as [fn(); 9]
    {
        assert!(panics(wrong));
    }
}

/// Pages larger than the output of the server.
mod windows {
    use super::*;
    use mcp_sansio::frame::LineBuffer;
    use mcp_sansio::line_server::{LineServer, NextStep};
    use mcp_sansio::server::{RequestSlot, Server};
    use mcp_sansio::sink::{LineSink, SliceStorage};

    /// 3,000 bytes, with quotes and characters of two bytes.
    const LONG: &str = {
        const BYTES: [u8; 3000] = {
            let mut bytes = [b'"'; 3000];
            let (mut at, start) = (0, b"<!doctype html>");
            while at < start.len() {
                bytes[at] = start[at];
                at += 1;
            }
            while at + 3 < 3000 {
                (bytes[at], bytes[at + 1]) = (0xc3, 0xa9);
                at += 3;
            }
            bytes
        };
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => "",
        }
    };

    static LARGE: Page =
        Page::new("ui://pump/large", "large", LONG).meta(ui_meta!(ResourceMeta::new().prefers_border(false)));
    static RESOURCES: [Resource<()>; 1] =
        [LARGE.resource(|_, read| LARGE.read(read)).source(|_, _, at, to| Ok(LARGE.copy(at, to)))];
    const SERVICE: Service<'static, ()> = Service::new("pump", "1.0").resources(&RESOURCES);

    #[test]
    fn a_page_larger_than_the_output() {
        for room in [320, 512, 1000, 8192] {
            let line = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"ui://pump/large","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
            let (mut input, mut output, mut slots) = ([0; 1024], vec![0; room], [RequestSlot::FREE; 2]);
            let sink = LineSink::new(SliceStorage::new(&mut output));
            let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), sink);
            session.space()[..line.len()].copy_from_slice(line.as_bytes());
            session.filled(line.len());
            session.end_of_input();
            let mut answer = Vec::new();
            loop {
                let step = session.run(&SERVICE, &mut ());
                let len = session.out.pending().len();
                answer.extend_from_slice(session.out.pending());
                session.out.sent(len);
                if len == 0 && !matches!(step, NextStep::Write) {
                    break;
                }
            }
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let contents = &answer["result"]["contents"][0];
            assert_eq!(contents["text"], LONG, "{room}");
            assert_eq!(contents["_meta"]["ui"]["prefersBorder"], false);
            assert_eq!(contents["mimeType"], MIME);
        }
    }
}
