//! A late answer without a runtime: threads work, the blocking HTTP server answers when they are ready.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>.
//! Try it: `cargo run --example late`, then `cargo run --example inspect -- call slow http://127.0.0.1:8932/mcp`.
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::{App, HttpServer};

/// Ends the request without an answer for now: the token stands for it.
fn slow(ready: &mut Sender<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    let ready = ready.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        ready.send(token)
    });
    outcome
}

static TOOLS: [Tool<Sender<RequestToken>>; 1] = [Tool::new("slow", "Answers after one second", slow)];

fn main() -> std::io::Result<()> {
    let service = Service::new("late", "1.0").tools(&TOOLS);
    let (mut sender, ready) = channel();
    // Called after each turn of the loop, with the time in milliseconds; returns when to be called next at the latest.
    let server = HttpServer::bind("127.0.0.1:8932")?;
    server.serve_with(App::new(&service, &mut sender), &mut |app, endpoint, now| {
        for token in ready.try_iter() {
            // An error means that the client has cancelled the request, or is gone.
            let _ = endpoint.answer(app, token, |_, call| call.text("One second has passed"));
        }
        Some(now + 100)
    })
}
