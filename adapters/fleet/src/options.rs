//! The settings.

use std::time::Duration;

/// The settings of a [`RedisFleet`](crate::RedisFleet).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct FleetOptions {
    /// See [`prefix`](FleetOptions::prefix).
    pub prefix: String,
    /// See [`keep`](FleetOptions::keep).
    pub keep: usize,
    /// See [`queue`](FleetOptions::queue).
    pub queue: usize,
    /// See [`queue_bytes`](FleetOptions::queue_bytes).
    pub queue_bytes: usize,
    /// See [`timeout`](FleetOptions::timeout).
    pub timeout: Duration,
    /// See [`silence`](FleetOptions::silence).
    pub silence: Duration,
}

impl FleetOptions {
    /// Makes the settings of a server with this name. All its processes have the same, and no other server of the same Redis.
    pub fn new(name: &str) -> Self {
        FleetOptions {
            prefix: format!("mcp:{name}:"),
            keep: 10_000,
            queue: 10_000,
            queue_bytes: 64 << 20,
            timeout: Duration::from_secs(2),
            silence: Duration::from_secs(4),
        }
    }

    mcp_sansio::setters! {
        /// Sets the beginning of the keys in Redis. Default: `mcp:NAME:`.
        prefix(prefix: impl Into<String>) => prefix = prefix.into();
        /// Sets how many messages Redis keeps, about, for processes that are away. Default: 10,000, mostly some hundred bytes each.
        keep(messages: usize) => keep = messages.max(1);
        /// Sets how much of this process may wait to be sent: changes, ends of sessions, states of tasks. Beyond it changes become one,
        /// and the others are left out. Default: 10,000.
        queue(messages: usize) => queue = messages.max(1);
        /// Sets how many bytes this may have. Default: 64 MiB.
        queue_bytes(bytes: usize) => queue_bytes = bytes;
        /// Sets how long Redis may take to accept a connection or to answer. Default: 2 s.
        timeout(timeout: Duration) => timeout = timeout;
        /// Sets after how long a process that is not heard counts as ended. Each says something once a second. Default: 4 s.
        silence(silence: Duration) => silence = silence.max(2 * BEAT);
    }

    /// Returns a key.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// The time that a read waits for messages.
pub(crate) const BLOCK: Duration = Duration::from_secs(1);

/// The period in which a process says that it is alive.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
