//! What every client can be told: times and limits.

use std::time::Duration;

use mcp_sansio::client::{Client, Profile};
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;

use super::IN_FLIGHT;

/// Times and limits of a client, whatever its transport.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_blocking::client::Options;
/// let options = Options::new().timeout(Duration::from_secs(10)).message(1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Options {
    timeout: Option<Duration>,
    probe: Duration,
    rounds: u8,
    message: usize,
    held: usize,
}

impl Options {
    /// The defaults.
    pub const fn new() -> Self {
        let (timeout, probe) = (Some(Duration::from_secs(60)), Duration::from_secs(5));
        Options { timeout, probe, rounds: 16, message: 16 << 20, held: 16 << 20 }
    }

    /// How long a request may take that does not say otherwise; a minute.
    pub const fn timeout(self, time: Duration) -> Self {
        Options { timeout: Some(time), ..self }
    }

    /// Requests may take for ever.
    pub const fn patient(self) -> Self {
        Options { timeout: None, ..self }
    }

    /// How long to wait for an answer to the first message before the server counts as one of the older revisions; 5
    /// seconds.
    pub const fn probe_timeout(self, time: Duration) -> Self {
        Options { probe: time, ..self }
    }

    /// How many times a server may ask back for one request; 16.
    pub const fn rounds(self, most: u8) -> Self {
        Options { rounds: most, ..self }
    }

    /// Bytes of the longest message that is taken; 16 MiB.
    pub const fn message(self, bytes: usize) -> Self {
        Options { message: bytes, ..self }
    }

    /// Bytes of what is held to be sent again: params of calls that may be asked back for, answers; 16 MiB.
    pub const fn held(self, bytes: usize) -> Self {
        Options { held: bytes, ..self }
    }

    pub(super) const fn message_limit(&self) -> usize {
        self.message
    }

    pub(super) fn engine<'m>(&self, profile: &'m Profile<'m>) -> Client<'m, IN_FLIGHT> {
        let millis = |time: Duration| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 4);
        let client = Client::new(profile)
            .held(Store::growing(self.held))
            .probe_timeout(Some(millis(self.probe)))
            .rounds(self.rounds);
        match self.timeout {
            Some(time) => client.timeout(millis(time)),
            None => client,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}
