//! An MCP server inside a hyper server on smol, which also has a page of its own beside `/mcp`:
//! `cargo run -p mcp-sansio-hyper-example -- 127.0.0.1:8931`.

mod connections;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use hyper::{Request, Response, body::Incoming};
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_tower::{Body, Mcp, MountOptions, Work, channel};
use smol::future::FutureExt as _;
use smol::{Async, Timer};
use tower_service::Service as _;

/// The state of the handlers: their tasks.
struct State(Work<State>);

static TOOLS: [Tool<State>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let counting = state.0.future(|job| async move {
        for n in 1..=3 {
            Timer::after(Duration::from_millis(100)).await;
            job.progress(Progress::new(n).of(3));
        }
        Ok::<_, Infallible>("three")
    });
    counting.answer(call)
}

async fn handle(mut mcp: Mcp<State>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    match request.uri().path() {
        "/" => Ok(Response::new("This is not all there is: see /mcp\n".into())),
        _ => mcp.call(request).await,
    }
}

fn main() -> std::io::Result<()> {
    let address: SocketAddr = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).expect("usage: ADDRESS:PORT");
    let service =
        Service::new("counter", "1.0").tools(&TOOLS).on_cancel(|state: &mut State, token| state.0.cancel(token));
    let (late, receiver) = channel();
    let state = State(Work::new(late, 100).spawner(|future| smol::spawn(future).detach()));
    let mcp = Mcp::new(service, state, MountOptions::new(Timer::after).late(receiver));
    smol::block_on(async {
        let listener = Async::<TcpListener>::bind(address)?;
        eprintln!("serving at http://{}/mcp", listener.get_ref().local_addr()?);
        let ended = connections::ended(mcp.handle());
        connections::serve(listener, move |request| handle(mcp.clone(), request)).or(ended).await
    })
}
