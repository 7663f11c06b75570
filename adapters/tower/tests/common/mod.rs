//! A mount with a clock and a timer of its own, and requests of all revisions. No runtime.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future::block_on;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::Full;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{RequestToken, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio_tower::{Body, HttpServerOptions, LateSender, Mcp, MountOptions, ResponseFuture, channel};
use serde_json::{Value, json};
use tower_service::Service as _;

/// The calls of the handlers so far.
#[derive(Default)]
pub struct Seen {
    pub calls: usize,
    pub cancelled: usize,
    pub tokens: Vec<RequestToken>,
    pub principals: Vec<Option<String>>,
}

pub struct State {
    pub late: LateSender<State>,
    pub seen: Arc<Mutex<Seen>>,
}

const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

static TOOLS: [Tool<State>; 7] = [
    Tool::new("echo", "Says its argument", |state: &mut State, call: &mut Call<'_>| {
        let mut seen = state.seen.lock().unwrap();
        seen.calls += 1;
        seen.principals.push(call.principal().map(String::from));
        drop(seen);
        let text = call.arguments().get("text").and_then(|text| text.text());
        let text = text.map(|text| text.to_string()).unwrap_or_default();
        call.text(text.as_str())
    }),
    Tool::new("later", "Answers later", |state: &mut State, call: &mut Call<'_>| {
        let (token, outcome) = call.later();
        state.seen.lock().unwrap().tokens.push(token);
        outcome
    }),
    Tool::new("ask", "Asks", ask),
    // A text that is made while it is sent.
    Tool::new("large", "Says much", |_, call: &mut Call<'_>| call.stream_text(0)).source(|_, _, at, bytes| {
        let len = bytes.len().min(640_000 - at as usize);
        bytes[..len].fill(b'x');
        Ok(len)
    }),
    Tool::new("change", "Changes the tools", |state: &mut State, call: &mut Call<'_>| {
        // From a handler, under the lock.
        state.late.publish(ServerChange::Tools).unwrap();
        call.text("changed")
    }),
    Tool::new("publish", "Changes the tools too", |_, call: &mut Call<'_>| {
        call.publish(ServerChange::Tools);
        call.text("published")
    }),
    Tool::new("panic", "Panics", |_, _| panic!("as it should")),
];

fn ask(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.seen.lock().unwrap().calls += 1;
    match call.answer("sure") {
        None => call.ask(&[InputRequest::elicit("sure", "Really?", SURE)], b""),
        Some(answer) => call.text(if answer.accepted() { "yes" } else { "no" }),
    }
}

pub const SERVICE: Service<'static, State> = Service::new("tower", "1.0")
    .tools(&TOOLS)
    .feature(ServerCapability::ToolsChanged)
    .on_cancel(|state, _| state.seen.lock().unwrap().cancelled += 1);

/// A clock that stands still, and its timers.
#[derive(Default)]
pub struct Time {
    now: AtomicU64,
    sleeps: Mutex<Vec<(u64, Waker)>>,
}

struct Sleep {
    time: Arc<Time>,
    until: u64,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.time.now.load(Ordering::SeqCst) >= self.until {
            return Poll::Ready(());
        }
        self.time.sleeps.lock().unwrap().push((self.until, cx.waker().clone()));
        Poll::Pending
    }
}

impl Time {
    /// Lets time pass, and timers fire.
    pub fn pass(&self, millis: u64) {
        let now = self.now.fetch_add(millis, Ordering::SeqCst) + millis;
        let due: Vec<_> = self.sleeps.lock().unwrap().extract_if(.., |(until, _)| *until <= now).collect();
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// A waker that counts.
#[derive(Default)]
pub struct Count(AtomicUsize);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A mount and what its handlers have seen.
pub struct Web {
    pub mcp: Mcp<State>,
    pub late: LateSender<State>,
    pub seen: Arc<Mutex<Seen>>,
    pub time: Arc<Time>,
}

pub fn options(time: &Arc<Time>) -> MountOptions<State> {
    let (timer, clock) = (Arc::clone(time), Arc::clone(time));
    let sleep = move |after: Duration| {
        let until = timer.now.load(Ordering::SeqCst) + after.as_millis() as u64;
        Sleep { time: Arc::clone(&timer), until }
    };
    MountOptions::new(sleep).clock(move || clock.now.load(Ordering::SeqCst))
}

impl Web {
    pub fn new() -> Self {
        Web::with(|options| options)
    }

    pub fn over(http: HttpServerOptions) -> Self {
        Web::with(|options| options.options(http))
    }

    pub fn with(set: impl FnOnce(MountOptions<State>) -> MountOptions<State>) -> Self {
        let (seen, time) = (Arc::<Mutex<Seen>>::default(), Arc::<Time>::default());
        time.now.store(1_000, Ordering::SeqCst);
        let seen_by = Arc::clone(&seen);
        let (late, receiver) = channel();
        let state = State { late: late.clone(), seen: seen_by };
        let mcp = Mcp::new(SERVICE, state, set(options(&time).late(receiver)));
        Web { mcp, late, seen, time }
    }

    pub fn call<B>(&self, request: Request<B>) -> ResponseFuture
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
    {
        self.mcp.clone().call(request)
    }

    pub fn send(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        block_on(self.call(request)).unwrap()
    }

    /// Sends a message of 2026-07-28.
    pub fn modern(&self, method: &str, params: Value) -> Response<Body> {
        self.send(modern(method, params))
    }

    /// Opens a session, and returns its id.
    pub fn open(&self, revision: &str) -> String {
        let response = self.send(post("/mcp", &initialize(revision)));
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(json_of(response)["result"]["protocolVersion"], revision);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.send(in_session(&session, &note)).status(), StatusCode::ACCEPTED);
        session
    }

    /// Opens a stream of 2024-11-05, and returns it with the path to which its client posts.
    pub fn open_old(&self, path: &str) -> (Body, String) {
        let mut stream = self.send(get(path)).into_body();
        let begin = String::from_utf8(next(&mut stream).unwrap().to_vec()).unwrap();
        let to = begin.strip_prefix("event: endpoint\ndata: ").unwrap().trim_end().to_owned();
        assert_eq!(self.send(post(&to, &initialize("2024-11-05"))).status(), StatusCode::ACCEPTED);
        assert_eq!(event(&mut stream)["result"]["protocolVersion"], "2024-11-05");
        (stream, to)
    }
}

pub fn initialize(revision: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

pub fn tool(id: u64, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub fn builder(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
}

pub fn post(path: &str, message: &Value) -> Request<Full<Bytes>> {
    builder("POST", path).body(message.to_string().into()).unwrap()
}

pub fn get(path: &str) -> Request<Full<Bytes>> {
    builder("GET", path).body(Full::default()).unwrap()
}

pub fn in_session(session: &str, message: &Value) -> Request<Full<Bytes>> {
    builder("POST", "/mcp").header("Mcp-Session-Id", session).body(message.to_string().into()).unwrap()
}

pub fn modern(method: &str, mut params: Value) -> Request<Full<Bytes>> {
    params["_meta"] = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let builder = builder("POST", "/mcp").header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", method);
    let builder = match params["name"].as_str() {
        Some(name) => builder.header("Mcp-Name", name),
        None => builder,
    };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    builder.body(message.to_string().into()).unwrap()
}

/// Polls a body once, with a waker that counts.
pub fn poll(body: &mut Body, count: &Arc<Count>) -> Poll<Option<Bytes>> {
    let waker = Waker::from(Arc::clone(count));
    let frame = Pin::new(body).poll_frame(&mut Context::from_waker(&waker));
    frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap()))
}

/// Waits for the next bytes of a body.
pub fn next(body: &mut Body) -> Option<Bytes> {
    let frame = block_on(std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)))?;
    Some(frame.unwrap().into_data().unwrap())
}

/// Waits for the end of a body.
pub fn all(mut body: Body) -> String {
    let mut bytes = Vec::new();
    while let Some(more) = next(&mut body) {
        bytes.extend_from_slice(&more);
    }
    String::from_utf8(bytes).unwrap()
}

pub fn json_of(response: Response<Body>) -> Value {
    serde_json::from_str(&all(response.into_body())).unwrap()
}

/// The messages in the text of an event stream.
pub fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Waits for the next message of a stream.
pub fn event(body: &mut Body) -> Value {
    loop {
        let bytes = next(body).expect("the stream goes on");
        if let Some(event) = events(std::str::from_utf8(&bytes).unwrap()).into_iter().next() {
            return event;
        }
    }
}

/// The text of the result of a tool.
pub fn text_of(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"))
}
