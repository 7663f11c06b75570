//! A tool that takes seconds: it reports progress from a task, answers later, and stops when the client cancels.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress> and
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation>.
//! Try it: `cargo run --example inspect -- call brew -- cargo run --quiet --example progress`.
use std::collections::HashMap;
use std::time::Duration;

use mcp_sansio::server::{Progress, RequestToken};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_smol::{LateSender, Serve, ServerEndedError, channel};

struct Kitchen {
    answers: LateSender<Kitchen>,
    tasks: HashMap<RequestToken, smol::Task<Result<(), ServerEndedError>>>,
}

/// Starts a task and returns: the answer comes later. Other requests are served meanwhile.
fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    kitchen.tasks.insert(token, smol::spawn(brewing(kitchen.answers.clone(), token)));
    outcome
}

async fn brewing(answers: LateSender<Kitchen>, token: RequestToken) -> Result<(), ServerEndedError> {
    for cup in 1..=5 {
        smol::Timer::after(Duration::from_millis(500)).await;
        // Sent only if the request has a `progressToken`.
        answers.progress(token, Progress::new(cup).of(5).message("brewing")).await?;
    }
    let finish = move |kitchen: &mut Kitchen, call: &mut Call<'_>| {
        kitchen.tasks.remove(&token);
        call.text("Five cups are ready")
    };
    answers.answer(token, finish).await
}

static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews five cups of coffee", brew)];

fn main() -> std::io::Result<()> {
    // Called for `notifications/cancelled`: to drop a task is to end it.
    let cancel = |kitchen: &mut Kitchen, token| drop(kitchen.tasks.remove(&token));
    let service = Service::new("kitchen", "1.0").tools(&TOOLS).on_cancel(cancel);
    let (answers, late) = channel();
    let mut kitchen = Kitchen { answers, tasks: HashMap::new() };
    smol::block_on(Serve::new(&service).late(late).stdio(&mut kitchen))
}
