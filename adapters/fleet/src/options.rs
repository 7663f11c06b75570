//! The settings.

use std::time::Duration;

/// The settings of a [`Fleet`](crate::Fleet).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetOptions {
    /// See [`key`](FleetOptions::key).
    pub key: String,
    /// See [`keep`](FleetOptions::keep).
    pub keep: usize,
    /// See [`queue`](FleetOptions::queue).
    pub queue: usize,
    /// See [`timeout`](FleetOptions::timeout).
    pub timeout: Duration,
}

impl FleetOptions {
    /// Makes the settings of a server with this name. All its processes have the same, and no other server of the same Redis.
    pub fn new(name: &str) -> Self {
        FleetOptions { key: format!("mcp:{name}:changes"), keep: 10_000, queue: 1_000, timeout: Duration::from_secs(2) }
    }

    /// Sets the key of the stream in Redis. Default: `mcp:NAME:changes`.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        FleetOptions { key: key.into(), ..self }
    }

    /// Sets how many changes Redis keeps, about, for processes that are away. Default: 10,000, some hundred bytes each.
    #[must_use]
    pub fn keep(self, changes: usize) -> Self {
        FleetOptions { keep: changes.max(1), ..self }
    }

    /// Sets how many changes of this process may wait to be sent. Default: 1,000.
    #[must_use]
    pub fn queue(self, changes: usize) -> Self {
        FleetOptions { queue: changes.max(1), ..self }
    }

    /// Sets how long Redis may take to accept a connection or to answer. Default: 2 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        FleetOptions { timeout, ..self }
    }
}
