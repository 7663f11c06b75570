//! An MCP server inside a blocking HTTP server: `cargo run -p mcp-sansio-tiny-http-example -- 127.0.0.1:8933`.
//!
//! tiny_http has no futures: [`mount`] blocks a thread for each request. It learns that a client is gone when it writes to it,
//! at the next event or comment of the stream.

mod mount;

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_tower::{Mcp, MountOptions, Work, channel};

struct Counter(Work<Counter>);

static TOOLS: [Tool<Counter>; 1] = [Tool::new("count", "Counts to three, which takes a moment", count)];

fn count(counter: &mut Counter, call: &mut Call<'_>) -> HandlerResult {
    let counting = counter.0.thread(|job| {
        for n in 1..=3 {
            thread::sleep(Duration::from_millis(100));
            job.progress(Progress::new(n).of(3));
        }
        Ok::<_, Infallible>("three")
    });
    counting.answer(call)
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8933".into());
    let server = tiny_http::Server::http(address)?;
    eprintln!("serving at http://{}/mcp", server.server_addr());

    let service = Service::new("counter", "1.0").tools(&TOOLS);
    let (late, receiver) = channel();
    let counter = Counter(Work::new(late, 100));
    let mcp = Mcp::new(service, counter, MountOptions::new(smol::Timer::after).late(receiver));
    let threads = Arc::new(());
    for request in server.incoming_requests() {
        match request.url() {
            "/" => drop(request.respond(tiny_http::Response::from_string("This is not all there is: see /mcp\n"))),
            _ => mount::serve(&mcp, &threads, request),
        }
    }
    Ok(())
}
