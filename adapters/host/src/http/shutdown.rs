//! The end of an HTTP server: when it ends its streams, and when what is left.

use std::time::{Duration, Instant};

/// The time to send what is left after that.
const SENDING: Duration = Duration::from_secs(5);

/// The way of an HTTP server to its end. It says what to do, and has no clock of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpShutdown {
    grace: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Requests in flight may finish.
    Draining {
        until: Instant,
    },
    /// The last errors are sent.
    Sending {
        until: Instant,
    },
    Over,
}

/// The next step of an [`HttpShutdown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStep {
    /// Close the listener, [drain](mcp_sansio_http::endpoint::Endpoint::drain) the endpoint, and
    /// [close](mcp_sansio_http::http1::Connection::close) each connection after its answer.
    Drain,
    /// [Shut the endpoint down](mcp_sansio_http::endpoint::Endpoint::shut_down), and write its streams.
    ShutDown,
    /// Return.
    End,
}

impl HttpShutdown {
    /// Returns one that gives requests in flight this time.
    #[must_use]
    pub(crate) const fn new(grace: Duration) -> Self {
        HttpShutdown { grace, phase: Phase::Serving }
    }

    /// Returns whether the server takes connections.
    #[must_use]
    pub(crate) const fn is_serving(&self) -> bool {
        matches!(self.phase, Phase::Serving)
    }

    /// Returns the time of the next step, if it is known.
    #[must_use]
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Draining { until } | Phase::Sending { until } => Some(until),
            Phase::Serving | Phase::Over => None,
        }
    }

    /// Returns the step to take now. `stops` is how often the server was stopped, `is_drained` whether no connection has
    /// anything left to send. Call it again after each step, when its work is done as far as sockets allow.
    pub(crate) fn step(&mut self, stops: u32, is_drained: bool, now: Instant) -> Option<ShutdownStep> {
        let after = |time: Duration| now.checked_add(time).unwrap_or(now);
        match self.phase {
            Phase::Serving if stops > 0 => {
                self.phase = Phase::Draining { until: after(self.grace) };
                Some(ShutdownStep::Drain)
            }
            Phase::Draining { until } if !is_drained && (stops > 1 || until <= now) => {
                let until = if stops > 1 { now } else { after(SENDING) };
                self.phase = Phase::Sending { until };
                Some(ShutdownStep::ShutDown)
            }
            Phase::Sending { until } if !is_drained && stops < 2 && now < until => None,
            Phase::Serving => None,
            Phase::Draining { .. } if !is_drained => None,
            Phase::Draining { .. } | Phase::Sending { .. } | Phase::Over => {
                self.phase = Phase::Over;
                Some(ShutdownStep::End)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_step_once_and_in_order() {
        let now = Instant::now();
        let mut end = HttpShutdown::new(SECOND);
        assert_eq!((end.step(0, true, now), end.is_serving(), end.deadline()), (None, true, None));
        assert_eq!(end.step(1, true, now), Some(ShutdownStep::Drain));
        assert_eq!((end.is_serving(), end.deadline()), (false, Some(now + SECOND)));
        assert_eq!(end.step(1, false, now), None);
        assert_eq!(end.step(1, false, now + SECOND), Some(ShutdownStep::ShutDown));
        assert_eq!(end.step(1, false, now + SECOND), None);
        assert_eq!(end.step(1, true, now + SECOND), Some(ShutdownStep::End));
    }

    #[test]
    fn all_answered_or_nothing_read_or_a_second_stop() {
        let now = Instant::now();
        let draining = |grace| {
            let mut end = HttpShutdown::new(grace);
            assert_eq!(end.step(1, false, now), Some(ShutdownStep::Drain));
            end
        };
        assert_eq!(draining(SECOND).step(1, true, now), Some(ShutdownStep::End));
        let mut unread = draining(Duration::ZERO);
        assert_eq!(unread.step(1, false, now), Some(ShutdownStep::ShutDown));
        assert_eq!(unread.step(1, false, now + SENDING), Some(ShutdownStep::End));
        let mut twice = draining(Duration::MAX);
        assert_eq!(twice.step(2, false, now), Some(ShutdownStep::ShutDown));
        assert_eq!(twice.step(2, false, now), Some(ShutdownStep::End));
    }

    #[test]
    fn the_end_waits_for_its_time_and_not_longer() {
        let now = Instant::now();
        let mut end = HttpShutdown::new(GRACE);
        let moment = Duration::from_nanos(1);
        assert_eq!(end.step(1, false, now), Some(ShutdownStep::Drain));
        assert_eq!(end.deadline(), Some(now + GRACE));
        assert_eq!(end.step(1, false, now + GRACE - moment), None);
        assert_eq!(end.step(1, false, now + GRACE), Some(ShutdownStep::ShutDown));
        assert_eq!((end.deadline(), end.is_serving()), (Some(now + GRACE + SENDING), false));
        assert_eq!(end.step(1, false, now + GRACE + SENDING - moment), None);
        let mut twice = end;
        assert_eq!(twice.step(2, false, now + GRACE), Some(ShutdownStep::End));
        assert_eq!(end.step(1, false, now + GRACE + SENDING), Some(ShutdownStep::End));
        assert_eq!((end.deadline(), end.is_serving()), (None, false));
        assert_eq!(end.step(1, false, now), Some(ShutdownStep::End));
        // Two stops at once.
        let mut end = HttpShutdown::new(GRACE);
        assert_eq!(end.step(2, false, now), Some(ShutdownStep::Drain));
        assert_eq!(end.step(2, false, now), Some(ShutdownStep::ShutDown));
        assert_eq!((end.deadline(), end.step(2, false, now)), (Some(now), Some(ShutdownStep::End)));
    }
}
