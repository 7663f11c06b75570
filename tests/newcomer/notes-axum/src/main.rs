//! Program 4a: notes in an axum server, beside a page of its own: `notes-axum FILE ADDRESS`.

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mcp_sansio_tower::{Mcp, MountOptions, channel};
use notes_service::{Notes, SERVICE};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, file, address] = &args[..] else { return Err("usage: notes-axum FILE ADDRESS".into()) };
    let (late, receiver) = channel();
    let notes = Notes::open(file, late)?;
    let mcp = Mcp::new(SERVICE, notes, MountOptions::new(tokio::time::sleep).late(receiver));
    tokio::spawn(mcp.run());
    let handle = mcp.handle();
    let app = Router::new().route("/", get("see /mcp\n")).fallback_service(mcp);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving at http://{}/mcp", listener.local_addr()?);
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        tokio::spawn(handle.stop(Duration::from_secs(5)));
    };
    Ok(axum::serve(listener, app).with_graceful_shutdown(stop).await?)
}
