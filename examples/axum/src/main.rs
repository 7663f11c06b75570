//! An MCP server in an axum application, beside a page of its own: `cargo run -p mcp-sansio-axum-example -- 127.0.0.1:8932`.

mod connections;

use std::convert::Infallible;
use std::time::Duration;

use axum::{Router, routing::get};
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_tower::{Mcp, MountOptions, Work, channel};

struct Counter(Work<Counter>);

static TOOLS: [Tool<Counter>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(counter: &mut Counter, call: &mut Call<'_>) -> HandlerResult {
    let counting = counter.0.future(|job| async move {
        for n in 1..=3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            job.progress(Progress::new(n).of(3));
        }
        Ok::<_, Infallible>("three")
    });
    counting.answer(call)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let cancel = |counter: &mut Counter, token| counter.0.cancel(token);
    let service = Service::new("counter", "1.0").tools(&TOOLS).on_cancel(cancel);
    let (late, receiver) = channel();
    let counter = Counter(Work::new(late, 100).spawner(|future| drop(tokio::spawn(future))));
    let mcp = Mcp::new(service, counter, MountOptions::new(tokio::time::sleep).late(receiver));
    let handle = mcp.handle();
    let app = Router::new().route("/", get("This is not all there is: see /mcp\n")).fallback_service(mcp);

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8932".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving at http://{}/mcp", listener.local_addr()?);
    let last = async move { handle.stop(Duration::from_secs(5)).await }; // calls in flight have 5 seconds
    connections::serve(listener, app, connections::signalled(), last).await
}
