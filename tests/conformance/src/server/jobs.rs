//! Calls that take their time: their handlers put the answer off, and the server's loop goes on with them step by step.

use mcp_sansio::protocol::Level;
use mcp_sansio::server::{Millis, Progress, SendError, Token};
use mcp_sansio::service::{Call, Outcome};
use mcp_sansio_blocking::http::{App, HttpEndpoint};

use crate::Fixture;

/// Between two steps.
const STEP: Millis = 50;

/// A call that is answered later.
pub(crate) struct Job {
    token: Token,
    work: Work,
    step: u64,
    due: Millis,
}

/// What it does at each step.
#[derive(Clone, Copy)]
enum Work {
    /// Logs, three times.
    Log,
    /// Tells how far it is, three times.
    Progress,
    /// Nothing for a while, in which its client is away.
    Reconnect,
}

const MESSAGES: [&str; 3] = ["Tool execution started", "Tool processing data", "Tool execution completed"];

/// `test_tool_with_logging`
pub(crate) fn log(fixture: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    begin(fixture, call, Work::Log)
}

/// `test_tool_with_progress`
pub(crate) fn progress(fixture: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    begin(fixture, call, Work::Progress)
}

/// `test_reconnection`
pub(crate) fn reconnect(fixture: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    call.release();
    begin(fixture, call, Work::Reconnect)
}

fn begin(fixture: &mut Fixture, call: &mut Call<'_>, work: Work) -> Outcome {
    let due = call.now();
    let (token, later) = call.later();
    fixture.jobs.push(Job { token, work, step: 0, due });
    later
}

/// Does what is due; when there is more to do.
pub(crate) fn go_on(app: &mut App<'_, Fixture>, endpoint: &mut HttpEndpoint, now: Millis) -> Option<Millis> {
    let mut jobs = std::mem::take(&mut app.state.jobs);
    jobs.retain_mut(|job| job.due > now || step(job, app, endpoint));
    app.state.jobs = jobs;
    app.state.jobs.iter().map(|job| job.due).min()
}

/// One step; whether there are more.
fn step(job: &mut Job, app: &mut App<'_, Fixture>, endpoint: &mut HttpEndpoint) -> bool {
    let step = job.step;
    job.step += 1;
    job.due += STEP;
    match (job.work, step) {
        (Work::Log, 0..3) => {
            endpoint.log(app, job.token, Level::Info, MESSAGES[step as usize]);
        }
        (Work::Progress, 0..3) => {
            endpoint.progress(job.token, Progress::new(step * 50).of(100));
        }
        (Work::Reconnect, 0..6) => {}
        _ => return !answer(job, app, endpoint),
    }
    true
}

/// Whether the job is through: a client that is gone needs no answer.
fn answer(job: &Job, app: &mut App<'_, Fixture>, endpoint: &mut HttpEndpoint) -> bool {
    let text = match job.work {
        Work::Log => "Tool with logging executed successfully",
        Work::Progress => "Tool with progress executed successfully",
        Work::Reconnect => "Reconnected and answered",
    };
    !matches!(endpoint.answer(app, job.token, |_, call| call.text(text)), Err(SendError::FullNow))
}

/// Nobody waits for the answer any more.
pub(crate) fn cancelled(fixture: &mut Fixture, token: Token) {
    fixture.jobs.retain(|job| job.token != token);
}
