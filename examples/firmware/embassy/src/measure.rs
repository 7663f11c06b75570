//! The task that measures, and the channels to and from it.

use embassy_futures::select::{Either, select};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::channel::Channel;
use embassy_sync::signal::Signal;
use embassy_time::{Instant, Timer};
use mcp_sansio::server::RequestToken;
use thermometer::sensor;

/// A message to the task that serves.
pub(crate) enum News {
    /// The number of samples taken, and the number requested.
    Sampled(RequestToken, u32, u32),
    /// The mean of the samples, as a reading of the converter.
    Measured(RequestToken, u16),
    /// The LED was switched.
    Switched,
}

/// A requested measurement.
pub(crate) struct Job {
    pub(crate) token: RequestToken,
    pub(crate) samples: u32,
    pub(crate) every_millis: u64,
}

/// The measurements that wait for the current one.
pub(crate) static JOBS: Channel<CriticalSectionRawMutex, Job, 2> = Channel::new();
/// The measurement that a client has cancelled.
pub(crate) static CANCELLED: Signal<CriticalSectionRawMutex, RequestToken> = Signal::new();
pub(crate) static NEWS: Channel<CriticalSectionRawMutex, News, 4> = Channel::new();

/// Waits for news. The future may be dropped: the channel keeps news that are not taken.
pub(crate) async fn news() -> News {
    NEWS.receive().await
}

#[embassy_executor::task]
pub(crate) async fn measuring() {
    loop {
        let job = JOBS.receive().await;
        // A measurement that was cancelled while it waited runs anyway. Its token is stale, so its answer is dropped.
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

async fn cancelled(token: RequestToken) {
    while CANCELLED.wait().await != token {}
}

/// Returns the seconds since the start.
pub(crate) fn seconds() -> u32 {
    Instant::now().as_secs() as u32
}
