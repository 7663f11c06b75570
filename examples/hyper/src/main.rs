//! An MCP server inside a hyper server on smol, which also has a page of its own beside `/mcp`:
//! `cargo run -p mcp-sansio-hyper-example -- 127.0.0.1:8931`.

mod connections;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use hyper::{Request, Response, body::Incoming};
use mcp_sansio::server::{Progress, RequestToken};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_tower::{Body, Handle, Mcp, MountOptions};
use smol::{Async, Timer};
use tower_service::Service as _;

/// The state of the handlers: tasks answer through it.
struct State(Handle<State>);

static TOOLS: [Tool<State>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    smol::spawn(counting(state.0.clone(), token)).detach();
    outcome
}

async fn counting(mcp: Handle<State>, token: RequestToken) {
    for n in 1..=3 {
        Timer::after(Duration::from_millis(100)).await;
        mcp.progress(token, Progress::new(n).of(3));
    }
    mcp.answer(token, |_, call| call.text("three"));
}

async fn handle(mut mcp: Mcp<State>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    match request.uri().path() {
        "/" => Ok(Response::new("This is not all there is: see /mcp\n".into())),
        _ => mcp.call(request).await,
    }
}

fn main() -> std::io::Result<()> {
    let address: SocketAddr = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).expect("usage: ADDRESS:PORT");
    let service = Service::new("counter", "1.0").tools(&TOOLS);
    let mcp = Mcp::with_handle(service, MountOptions::new(Timer::after), State);
    smol::block_on(async {
        let listener = Async::<TcpListener>::bind(address)?;
        eprintln!("serving at http://{}/mcp", listener.get_ref().local_addr()?);
        connections::serve(listener, move |request| handle(mcp.clone(), request)).await
    })
}
