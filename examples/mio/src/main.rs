//! An MCP server with a driver of its own: `cargo run -p mcp-sansio-mio-example -- 127.0.0.1:8933`.
//!
//! The driver, `driver.rs`, is sockets and events of mio. The rest is in `mcp_sansio_host::HttpServing`: HTTP, the protocol,
//! limits of memory, deadlines, late answers and the end. A driver for another runtime is made in the same way.

mod driver;

use std::convert::Infallible;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_host::{HttpSetup, Work, channel};
use mcp_sansio_http::endpoint::App;

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

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8933".into());
    let listener = TcpListener::bind(address)?;
    eprintln!("serving at http://{}/mcp", listener.local_addr()?);

    let service = Service::new("counter", "1.0").tools(&TOOLS);
    let (late, receiver) = channel();
    let mut setup = HttpSetup::new();
    setup.late = Some(receiver);
    let mut counter = Counter(Work::new(late, 100));
    driver::serve(listener, setup, App::new(&service, &mut counter))
}
