//! The extension over HTTP: the headers, the streams of listens, users, and the client of this project.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Server, ServerChange};
use mcp_sansio::sink::LineSink;
use mcp_sansio_blocking::client::{Client, Http, HttpClientConfig, HttpOptions, Ignore};
use mcp_sansio_blocking::http::{App, HttpServer};
use mcp_sansio_extension_tests::{ID, Kitchen, NAMES, SERVICE};
use mcp_sansio_http::endpoint::{
    Access, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, StreamId, StreamStatus,
};
use serde_json::{Value, json};

/// An endpoint whose users are named by a header.
struct Site {
    endpoint: Endpoint<'static>,
    kitchen: Kitchen,
}

fn user(head: &RequestHead<'_>) -> Access<'static> {
    let principal = ["anna", "bert"].into_iter().find(|user| head.text("x-user") == Some(user));
    Access::Granted { principal }
}

/// The answer to a request: a status and a message, or a stream.
enum Answer {
    Json(u16, Value),
    Stream(StreamId),
}

impl Site {
    fn new() -> Self {
        let server = Server::growing(MessageLimits::default());
        let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default());
        Site { endpoint, kitchen: Kitchen::new() }
    }

    fn post(&mut self, method: &str, mut params: Value, more: &[(&str, &str)]) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} } },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
            ("mcp-protocol-version", b"2026-07-28"),
            ("mcp-method", method.as_bytes()),
        ];
        headers.extend(more.iter().map(|(name, value)| (*name, value.as_bytes())));
        let headers: &[(&str, &[u8])] = &headers;
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let mut app = App::new(const { &SERVICE }, &mut self.kitchen).authorize(&|head| user(head));
        let mut out = LineSink::new(Vec::new());
        let response = self.endpoint.request(&mut app, &head, body.as_bytes(), 0, &mut |bytes| bytes.fill(7), &mut out);
        match response.content {
            ResponseBody::Stream(id) => Answer::Stream(id),
            _ => Answer::Json(response.status, serde_json::from_slice(out.pending()).unwrap()),
        }
    }

    fn json(&mut self, method: &str, params: Value, more: &[(&str, &str)]) -> (u16, Value) {
        match self.post(method, params, more) {
            Answer::Json(status, value) => (status, value),
            Answer::Stream(_) => panic!("{method} is answered with a stream"),
        }
    }

    /// Pulls what a stream has to say now.
    fn pull(&mut self, id: StreamId) -> String {
        let mut app = App::new(const { &SERVICE }, &mut self.kitchen);
        let mut out = LineSink::new(Vec::new());
        assert_eq!(self.endpoint.pull(id, &mut app, 0, &mut out), StreamStatus::Idle);
        String::from_utf8(out.pending().to_vec()).unwrap()
    }
}

#[test]
fn mcp_name_repeats_the_target() {
    let mut site = Site::new();
    let mut get = |name: Option<&str>| {
        let headers: Vec<_> = name.iter().map(|name| ("mcp-name", *name)).collect();
        let (status, answer) = site.json("com.example/timers/get", json!({ "timer": "egg" }), &headers);
        (status, answer["error"]["code"].as_i64().unwrap_or(0))
    };
    assert_eq!(get(Some("egg")), (200, 0));
    assert_eq!(get(Some("=?base64?ZWdn?=")), (200, 0));
    assert_eq!(get(Some("cake")), (400, -32020));
    assert_eq!(get(None), (400, -32020));
    // A method without a target has no such header, and one without its target has nothing to repeat.
    assert_eq!(site.json("com.example/timers/count", json!({}), &[]).0, 200);
    let (status, answer) = site.json("com.example/timers/get", json!({}), &[]);
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)));
}

#[test]
fn a_missing_extension_is_a_bad_request() {
    let mut site = Site::new();
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {
        "notifications": { "timers": ["egg"] }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        },
    } });
    let headers: &[(&str, &[u8])] = &[
        ("host", b"localhost"),
        ("content-type", b"application/json"),
        ("accept", b"application/json, text/event-stream"),
        ("mcp-protocol-version", b"2026-07-28"),
        ("mcp-method", b"subscriptions/listen"),
    ];
    let mut app = App::new(const { &SERVICE }, &mut site.kitchen);
    let mut out = LineSink::new(Vec::new());
    let head = RequestHead::new("POST", "/mcp", None, &headers);
    let response = site.endpoint.request(&mut app, &head, body.to_string().as_bytes(), 0, &mut |_| {}, &mut out);
    let answer: Value = serde_json::from_slice(out.pending()).unwrap();
    assert_eq!((response.status, &answer["error"]["code"]), (400, &json!(-32021)));
}

#[test]
fn each_stream_gets_the_topics_of_its_user() {
    let mut site = Site::new();
    let filter = json!({ "notifications": { "timers": ["egg", "cake"] } });
    let mut listen = |user| match site.post("subscriptions/listen", filter.clone(), &[("x-user", user)]) {
        Answer::Stream(id) => id,
        Answer::Json(status, error) => panic!("{status} {error}"),
    };
    let (anna, bert) = (listen("anna"), listen("bert"));
    assert!(site.pull(anna).contains(r#""notifications":{"timers":["egg","cake"]}"#));
    assert!(site.pull(bert).contains(r#""notifications":{"timers":["egg"]}"#));

    site.endpoint.publish(ServerChange::Topic { member: "timers", key: "cake" });
    assert!(site.pull(anna).contains(r#""timer":"cake""#));
    assert_eq!(site.pull(bert), "");
    site.endpoint.publish(ServerChange::Topic { member: "timers", key: "egg" });
    assert!(site.pull(anna).contains(r#""timer":"egg""#) && site.pull(bert).contains(r#""timer":"egg""#));
    let got =
        site.json("com.example/timers/get", json!({ "timer": "cake" }), &[("mcp-name", "cake"), ("x-user", "anna")]);
    assert_eq!(got.1["result"]["seconds"], 3600);
}

#[test]
fn the_client_of_this_project_over_sockets() {
    let server = HttpServer::<Kitchen>::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", server.local_addr().unwrap());
    let stopper = server.stopper();
    let serving = thread::spawn(move || {
        let mut kitchen = Kitchen::new();
        let server = server.tick(|app, endpoint, _| {
            if let Some(key) = app.state.changed.take() {
                endpoint.publish(ServerChange::Topic { member: "timers", key });
            }
            None
        });
        server.serve(const { &SERVICE }, &mut kitchen)
    });

    const PROFILE: ClientInfo<'static> = ClientInfo::new("cook", "1.0")
        .extensions(Raw::constant(r#"{"com.example/timers":{}}"#), &["com.example/timer"]);
    let options = HttpOptions::new().config(HttpClientConfig::DEFAULT.names(NAMES));
    let (heard, hear) = mpsc::channel();
    let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Listening(granted) => heard.send(format!("listening to {}", granted.topics)).unwrap(),
        ClientEvent::Notification { method, params } => heard.send(format!("{method} {}", params.unwrap())).unwrap(),
        _ => {}
    };
    let mut client = Client::new(Http::with(&url, const { &PROFILE }, options).unwrap(), handler);
    client.connect().unwrap();
    let get = Request::raw("com.example/timers/get", Some(Raw::constant(r#"{"timer":"egg"}"#)));
    assert!(client.request(&get).unwrap().raw().get("seconds").is_some());
    let topics: &[(&str, &[&str])] = &[("timers", &["egg"])];
    client.listen(&SubscriptionFilter::new().topics(topics)).unwrap();
    macro_rules! next {
        () => {
            loop {
                match hear.try_recv() {
                    Ok(told) => break told,
                    Err(_) => drop(client.turn(Duration::from_secs(5)).unwrap()),
                }
            }
        };
    }
    assert_eq!(next!(), "listening to 1");
    let boiled = client.request(&Request::call("boil")).unwrap();
    assert!(boiled.raw().get("resultType").unwrap().text().unwrap().eq_str("com.example/timer"));
    let told = next!();
    assert!(told.starts_with("notifications/com.example/timer {") && told.contains(r#""seconds":299"#), "{told}");

    // A client that was not given the names sends no header, and is refused.
    let mut nameless = Client::new(Http::new(&url, const { &PROFILE }).unwrap(), Ignore);
    nameless.connect().unwrap();
    assert_eq!(nameless.request(&get).unwrap_err().server().unwrap().code, -32020);
    client.close();
    nameless.close();
    stopper.stop();
    serving.join().unwrap().unwrap();
}
