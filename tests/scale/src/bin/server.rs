//! A server for the measurements of `scale`: `scale-server blocking|smol TOOLS http PORT`. `TOOLS` is the number of tools that
//! are listed beside its own five, of which `echo` comes last.

use std::{env, io};

use futures_lite::future::block_on;
use mcp_sansio::json::Text;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{MessageLimits, RequestToken, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, ReadResource, ResourceTemplate, Service, Tool};
use mcp_sansio_blocking::http::{EndpointConfig, EndpointLimits, HttpServer, HttpServerOptions};
use mcp_sansio_blocking::{LateSender, channel};

/// Requests that wait for `release`.
struct State {
    waiting: Vec<RequestToken>,
    late: LateSender<State>,
}

const ONE_TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

fn echo(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

/// Publishes that the list of tools changed.
fn publish(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.publish(ServerChange::Tools);
    call.text("published")
}

/// Publishes that the resource `text` changed.
fn touch(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let uri: Text<'_> = call.arg("text")?;
    call.publish(ServerChange::Resource(&uri.to_string()));
    call.text("published")
}

/// Waits for `release`.
fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.waiting.push(token);
    outcome
}

/// Answers all that wait, after itself.
fn release(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    for token in std::mem::take(&mut state.waiting) {
        // An error means that the server has ended.
        let _ = state.late.answer(token, |_, call| call.text("released"));
    }
    call.text("they are answered")
}

fn read(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("nothing")
}

static TEMPLATES: [ResourceTemplate<State>; 1] =
    [ResourceTemplate::new("scale://resource/{number}", "a resource to subscribe to", read)];

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [driver, tools, _, port] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err(io::Error::other("usage: scale-server blocking|smol TOOLS http PORT"));
    };
    let mut table = vec![
        Tool::new("publish", "Publishes that the list of tools changed", publish),
        Tool::new("touch", "Publishes that a resource changed", touch).input(ONE_TEXT),
        Tool::new("wait", "Waits for release", wait),
        Tool::new("release", "Answers all that wait", release),
    ];
    for n in 0..tools.parse().map_err(io::Error::other)? {
        let name: &'static str = format!("tool_{n:05}").leak();
        table.push(Tool::new(name, "Gives a text back, as many other tools do", echo).input(ONE_TEXT));
    }
    table.push(Tool::new("echo", "Gives a text back", echo).input(ONE_TEXT));
    let service = Service::new("scale", "1.0")
        .tools(&table)
        .templates(&TEMPLATES)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Subscribe);
    // As docs/http.md tells: some more than the ten thousand, and all of them may be of one client without a name.
    let most = 11_000;
    let mut limits = EndpointLimits::default();
    (limits.sessions, limits.streams) = (most, most);
    let messages = MessageLimits {
        in_flight: 2 * most,
        subscriptions: 16 << 20,
        subscription_share: 1 << 20,
        subscription_uris: most,
        ..MessageLimits::default()
    };
    let options = HttpServerOptions::new()
        .connections(2 * most)
        .endpoint_limits(limits)
        .limits(messages)
        .config(EndpointConfig::DEFAULT.request_share(most));
    let address = format!("127.0.0.1:{port}");
    let (late, receiver) = channel();
    let mut state = State { waiting: Vec::new(), late };
    if driver == "blocking" {
        return HttpServer::bind(address)?.options(options).late(receiver).serve(&service, &mut state);
    }
    let server = mcp_sansio_smol::http::HttpServer::bind(address)?.options(options).late(receiver);
    block_on(server.serve(&service, &mut state))
}
