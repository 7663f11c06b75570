//! The task that measures, and the channels to it and from it.

use embassy_futures::select::{Either, select};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use embassy_sync::signal::Signal;
use embassy_time::{Instant, Timer};
use mcp_sansio::server::Token;
use thermometer::sensor;

/// What the server is told.
pub(crate) enum News {
    /// So many samples were taken, of so many.
    Sampled(Token, u32, u32),
    /// Their mean, as the converter gives it.
    Measured(Token, u16),
    /// The LED was switched.
    Switched,
}

/// What is asked for.
pub(crate) struct Job {
    pub(crate) token: Token,
    pub(crate) samples: u32,
    pub(crate) every_millis: u64,
}

/// Measurements that wait for the one that is under way.
pub(crate) static JOBS: Channel<CriticalSectionRawMutex, Job, 2> = Channel::new();
/// Measurements that nobody wants any more.
pub(crate) static CANCELLED: Signal<CriticalSectionRawMutex, Token> = Signal::new();
pub(crate) static NEWS: Channel<CriticalSectionRawMutex, News, 4> = Channel::new();

/// What has happened. It may be dropped half way: a channel keeps what nobody has taken.
pub(crate) async fn news() -> News {
    NEWS.receive().await
}

#[embassy_executor::task]
pub(crate) async fn measuring() {
    loop {
        let job = JOBS.receive().await;
        // One that was cancelled while it waited is measured for nobody: its token is stale, and its answer goes nowhere.
        CANCELLED.reset();
        if let Either::First(mean) = select(measure(&job), cancelled(job.token)).await {
            NEWS.send(News::Measured(job.token, mean)).await;
        }
    }
}

async fn measure(job: &Job) -> u16 {
    let mut sum = 0;
    for taken in 1..=job.samples {
        Timer::after_millis(job.every_millis).await;
        sum += u32::from(sensor::reading(seconds()));
        NEWS.send(News::Sampled(job.token, taken, job.samples)).await;
    }
    (sum / job.samples.max(1)) as u16
}

async fn cancelled(token: Token) {
    while CANCELLED.wait().await != token {}
}

/// Since the start.
pub(crate) fn seconds() -> u32 {
    Instant::now().as_secs() as u32
}
