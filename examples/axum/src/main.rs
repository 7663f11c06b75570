//! An MCP server in an axum application, beside a page of its own: `cargo run -p mcp-sansio-axum-example -- 127.0.0.1:8932`.

use std::time::Duration;

use axum::{Router, routing::get};
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_tower::{Handle, Mcp, MountOptions};

struct Counter(Handle<Counter>);

static TOOLS: [Tool<Counter>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(counter: &mut Counter, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    let mcp = counter.0.clone();
    tokio::spawn(async move {
        for n in 1..=3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            mcp.progress(token, Progress::new(n).of(3));
        }
        mcp.answer(token, |_, call| call.text("three"));
    });
    outcome
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let service = Service::new("counter", "1.0").tools(&TOOLS);
    let mcp = Mcp::with_handle(service, MountOptions::new(tokio::time::sleep), Counter);
    let handle = mcp.handle();
    let app = Router::new().route("/", get("This is not all there is: see /mcp\n")).fallback_service(mcp);

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8932".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving at http://{}/mcp", listener.local_addr()?);
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        handle.shut_down(); // ends the event streams, for which axum waits
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}
