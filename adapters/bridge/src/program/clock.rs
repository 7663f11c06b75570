//! The clock of the program: the time of a sleep counts.

use std::time::Duration;

use mcp_sansio::server::Millis;
use rustix::time::{ClockId, clock_gettime};

/// A clock that begins with the program.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Millis);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(Clock(0).now())
    }

    pub(crate) fn now(self) -> Millis {
        let time = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX).saturating_sub(self.0)
    }
}
