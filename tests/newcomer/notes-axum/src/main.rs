//! Program 4a: notes in an axum server, beside a page of its own: `notes-axum FILE ADDRESS`.

use std::error::Error;
use std::sync::mpsc::channel;

use axum::Router;
use axum::routing::get;
use mcp_sansio::server::{Progress, ServerChange};
use mcp_sansio_tower::{Mcp, MountOptions};
use notes_service::{Late, Notes, SERVICE};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, file, address] = &args[..] else { return Err("usage: notes-axum FILE ADDRESS".into()) };
    let (late, events) = channel();
    let notes = Notes::open(file, move |token, what| drop(late.send((token, what))))?;
    let mcp = Mcp::new(SERVICE, notes, MountOptions::new(tokio::time::sleep));
    tokio::spawn(mcp.run());
    let (handle, stop) = (mcp.handle(), mcp.handle());
    std::thread::spawn(move || {
        for (token, what) in events {
            match what {
                Late::Progress { done, total } => handle.progress(token, Progress::new(done).of(total)),
                Late::Imported(result) => {
                    handle.answer(token, move |notes, call| notes.imported(token, result, call));
                    handle.publish(ServerChange::Resources); // cancelled, some lines are notes nevertheless
                }
            }
        }
    });
    let app = Router::new().route("/", get("see /mcp\n")).fallback_service(mcp);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving at http://{}/mcp", listener.local_addr()?);
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.shut_down();
    };
    Ok(axum::serve(listener, app).with_graceful_shutdown(stop).await?)
}
