//! A tool that takes seconds: it reports progress from a task, answers later, and stops when the client cancels.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress> and
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation>.
//! Try it: `cargo run --example inspect -- call brew -- cargo run --quiet --example progress`.
use std::time::Duration;

use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_smol::{Serve, Work, channel};

struct Kitchen {
    work: Work<Kitchen>,
}

/// Starts a task and returns: the answer comes later. Other requests are served meanwhile.
fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    let brewing = kitchen.work.future(|job| async move {
        for cup in 1..=5 {
            smol::Timer::after(Duration::from_millis(500)).await;
            // Sent only if the request has a `progressToken`.
            job.progress(Progress::new(cup).of(5).message("brewing"));
        }
        Ok::<_, std::io::Error>("Five cups are ready")
    });
    brewing.answer(call)
}

static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews five cups of coffee", brew)];

fn main() -> std::io::Result<()> {
    // Called for `notifications/cancelled`: the future is dropped.
    let cancel = |kitchen: &mut Kitchen, token| kitchen.work.cancel(token);
    let service = Service::new("kitchen", "1.0").tools(&TOOLS).on_cancel(cancel);
    let (late, receiver) = channel();
    let work = Work::new(late, 100).spawner(|future| smol::spawn(future).detach());
    smol::block_on(Serve::new(&service).late(receiver).stdio(&mut Kitchen { work }))
}
