//! A server for the measurements of a fleet: `fleet-costs-server --port N --key HEX [--fleet URL]`, the words that
//! `processes.py` gives. Without `--fleet` the processes have sealed sessions alone.

use std::{env, io};

use mcp_sansio::json::{Raw, Text};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MessageLimits, Progress, RequestToken, RpcError, ServerChange};
use mcp_sansio::service::{
    Call, Extension, HandlerResult, InputRequest, ReadResource, ResourceTemplate, Service, Tool,
};
use mcp_sansio_blocking::http::fleet::Engine;
use mcp_sansio_blocking::http::{
    App, EndpointConfig, EndpointLimits, HmacSeal, HttpServer, HttpServerOptions, SessionSeal,
};
use mcp_sansio_fleet::{Fleet, FleetOptions};
use mcp_sansio_tasks::{HasTasks, TaskOptions, Tasks, begin, extension};

/// The most sessions, streams, requests in flight and tasks.
const MOST: usize = 4_000;

struct State {
    waiting: Vec<RequestToken>,
    tasks: Tasks<'static>,
}

impl HasTasks for State {
    const FLEET: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

const ONE_TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const SURE: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#);

fn echo(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

/// Answers on an event stream: progress, then the result.
fn stream(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    let _ = call.progress(Progress::new(1).of(1));
    call.text(text)
}

/// Opens an event stream with two events, and is not answered.
fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let _ = call.progress(Progress::new(1).of(3));
    let _ = call.progress(Progress::new(2).of(3));
    let (token, outcome) = call.later();
    state.waiting.push(token);
    outcome
}

/// Asks, and answers with what it was answered.
fn ask(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    match call.answer("sure") {
        Some(answer) => call.text(if answer.accepted() { "sure" } else { "not sure" }),
        None => call.ask(&[InputRequest::elicit("sure", "Are you sure?", SURE)], b""),
    }
}

/// Publishes that the resource `text` changed.
fn touch(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let uri: Text<'_> = call.arg("text")?;
    call.publish(ServerChange::Resource(&uri.to_string()));
    call.text("published")
}

/// Begins a task that does not end.
fn start(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| RpcError::internal("There are no random bytes"))?;
    let options = TaskOptions::new(random).ttl(600_000).poll_interval(1_000).message("The work goes on");
    let (_, done) = begin(state, call, &options)?;
    Ok(done)
}

fn read(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("nothing")
}

static TOOLS: [Tool<State>; 6] = [
    Tool::new("stream", "Gives a text back on an event stream", stream).input(ONE_TEXT),
    Tool::new("wait", "Waits for ever", wait),
    Tool::new("ask", "Asks the user", ask),
    Tool::new("touch", "Publishes that a resource changed", touch).input(ONE_TEXT),
    Tool::new("start", "Begins a task", start),
    Tool::new("echo", "Gives a text back", echo).input(ONE_TEXT),
];
static TEMPLATES: [ResourceTemplate<State>; 1] =
    [ResourceTemplate::new("scale://resource/{number}", "a resource to subscribe to", read)];
static EXTENSIONS: [Extension<State>; 1] = [extension()];

fn read_key(hex: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

fn options(seal: &'static HmacSeal) -> HttpServerOptions {
    let mut limits = EndpointLimits::default();
    (limits.sessions, limits.streams) = (MOST, MOST);
    let messages = MessageLimits { in_flight: MOST, ..MessageLimits::default() };
    HttpServerOptions::new()
        .connections(MOST)
        .endpoint_limits(limits)
        .limits(messages)
        // All are of one client without a name.
        .config(EndpointConfig::DEFAULT.request_share(MOST).session_share(MOST))
        .seal(seal)
        .session_seal(SessionSeal::new(seal))
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (port, key, url) = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--port", port, "--key", key] => (*port, *key, None),
        ["--port", port, "--key", key, "--fleet", url] => (*port, *key, Some(*url)),
        _ => return Err(io::Error::other("usage: fleet-costs-server --port N --key HEX [--fleet URL]")),
    };
    let key = read_key(key).ok_or_else(|| io::Error::other("a key has 64 hexadecimal digits"))?;
    let seal: &'static HmacSeal = Box::leak(Box::new(HmacSeal::new(&key)));
    let service = Service::new("costs", "1.0")
        .tools(&TOOLS)
        .templates(&TEMPLATES)
        .extend(&EXTENSIONS)
        .feature(ServerCapability::Subscribe);
    let port: u16 = port.parse().map_err(io::Error::other)?;
    let server = HttpServer::bind(("127.0.0.1", port))?.options(options(seal));
    let (server, process) = match url {
        Some(url) => {
            let news = |news| eprintln!("fleet: {news:?}");
            let fleet = Fleet::start(url, FleetOptions::new("costs"), news).map_err(io::Error::other)?;
            let process = fleet.tag().number();
            (server.fleet(fleet), process)
        }
        None => (server, 0),
    };
    let mut state = State { waiting: Vec::new(), tasks: Tasks::growing(MOST, MOST * 256).process(process) };
    let server = server.tick(|app: &mut App<'_, State>, endpoint, now| {
        app.state.tasks.expire(now);
        while let Some(id) = app.state.tasks.next_change() {
            endpoint.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
        }
        None
    });
    server.serve(&service, &mut state)
}
