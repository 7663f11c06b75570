//! A late answer without a runtime: a thread works, the blocking HTTP server answers when it is ready. Ctrl-C ends it in order.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http>.
//! Try it: `cargo run --example late`, then `cargo run --example inspect -- call slow http://127.0.0.1:8932/mcp`.
use std::thread;
use std::time::Duration;

use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::HttpServer;
use mcp_sansio_blocking::{Work, channel};
use signal_hook::{consts::SIGINT, iterator::Signals};

struct State {
    work: Work<State>,
}

/// Starts a thread and returns: the answer comes later. Other requests are served meanwhile.
fn slow(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let sleeping = state.work.thread(|_| {
        thread::sleep(Duration::from_secs(1));
        Ok::<_, std::io::Error>("One second has passed")
    });
    sleeping.answer(call)
}

static TOOLS: [Tool<State>; 1] = [Tool::new("slow", "Answers after one second", slow)];

fn main() -> std::io::Result<()> {
    let service =
        Service::new("late", "1.0").tools(&TOOLS).on_cancel(|state: &mut State, token| state.work.cancel(token));
    let (late, receiver) = channel();
    let server = HttpServer::bind("127.0.0.1:8932")?.late(receiver).grace(Duration::from_secs(10));
    let (stopper, mut signals) = (server.stopper(), Signals::new([SIGINT])?);
    // The first one lets calls finish, the second ends it at once.
    thread::spawn(move || signals.forever().for_each(|_| stopper.stop()));
    server.serve(&service, &mut State { work: Work::new(late, 8) }) // at most 8 threads at once
}
