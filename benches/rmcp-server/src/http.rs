//! The tools of examples/calc.rs on rmcp over HTTP, in axum, as rmcp's own examples do it: `bench-rmcp-http http PORT`. One
//! thread, like calc.

mod calc;

use std::sync::Arc;

use axum::serve::ListenerExt;
use calc::Calc;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(2).ok_or("http PORT")?.parse()?;
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Calc), sessions, StreamableHttpServerConfig::default());
    // Else each answer waits 40 ms for an acknowledgement of its head.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    Ok(axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?)
}
