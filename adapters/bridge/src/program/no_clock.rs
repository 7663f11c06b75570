//! The same on other systems, with the clock of the standard library: the time of a sleep may not count.

use std::time::Instant;

use mcp_sansio::server::Millis;

#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Millis {
        Millis::try_from(self.0.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }
}
