//! A shop in axum: its pages at `/`, and the same stock as MCP tools at `/mcp`.
mod mcp;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::{Router, routing::get};
use mcp_sansio_tower::{Mcp, MountOptions};
use tokio::signal::unix::{SignalKind, signal};

/// The state that pages and tools share.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Stock>>);

#[derive(Default)]
struct Stock {
    pots: u32,
}

impl Shop {
    /// Works on the stock. Pages and tools lock it for a moment only, and never across an `await`.
    fn with<T>(&self, work: impl FnOnce(&mut Stock) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn front(State(shop): State<Shop>) -> String {
    format!("{} pots in stock\n", shop.with(|stock| stock.pots))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let shop = Shop::default();
    let mcp = Mcp::new(mcp::SERVICE, shop.clone(), MountOptions::new(tokio::time::sleep));
    let handle = mcp.handle();
    let app = Router::new().route("/", get(front)).with_state(shop).fallback_service(mcp);

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8932".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving at http://{0}/ and http://{0}/mcp", listener.local_addr()?);
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminated.recv() => {} // as systemd and containers end a program
        }
        tokio::spawn(handle.stop(Duration::from_secs(5))); // axum waits for calls in flight, and they have 5 seconds
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}
