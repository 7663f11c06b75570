//! Times and limits of clients.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use mcp_sansio::client::{Client, ClientInfo};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::Millis;

/// The limit of requests and subscriptions in flight; further requests wait.
pub const IN_FLIGHT: usize = 64;

/// Times and limits of a client, over any transport.
///
/// ```
/// use std::time::Duration;
/// use mcp_sansio_host::ClientOptions;
/// let options = ClientOptions::new().timeout(Duration::from_secs(10)).message(1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ClientOptions {
    timeout: Option<Duration>,
    longest: Duration,
    probe: Duration,
    rounds: u8,
    message: usize,
    held: usize,
}

impl ClientOptions {
    /// Returns the defaults.
    pub const fn new() -> Self {
        let (timeout, probe) = (Some(Duration::from_secs(60)), Duration::from_secs(5));
        ClientOptions {
            timeout,
            longest: Duration::from_secs(3600),
            probe,
            rounds: 16,
            message: 16 << 20,
            held: 16 << 20,
        }
    }

    mcp_sansio::const_setters! {
        /// Sets how long a request may take, unless the request sets its own time. Default: 1 minute.
        timeout(time: Duration) => timeout = Some(time);
        /// Sets how long a request may take in all if each `notifications/progress` begins its time again, unless the
        /// request sets its own limit. Default: 1 hour.
        total_timeout(time: Duration) => longest = time;
        /// Sets no time limit for requests.
        no_timeout() => timeout = None;
        /// Sets how long the client waits for the answer to its first message before it takes the server for one of the
        /// older revisions. Default: 5 seconds.
        probe_timeout(time: Duration) => probe = time;
        /// Sets how many times a server may answer one request with `input_required` (2026-07-28). Default: 16. See
        /// [`Client::max_input_rounds`].
        max_input_rounds(most: u8) => rounds = most;
        /// Sets the limit of an incoming message, in bytes. Default: 16 MiB.
        message(bytes: usize) => message = bytes;
        /// Sets the limit of the bytes that the client keeps in order to send them again: the params of calls that the
        /// server may answer with `input_required`, and the answers to its questions. Default: 16 MiB.
        held(bytes: usize) => held = bytes;
    }

    /// Returns the limit of an incoming message, in bytes.
    #[cfg(feature = "client")]
    pub(crate) const fn message_limit(&self) -> usize {
        self.message
    }

    /// Returns a client with these times and limits, and at most `in_flight` requests and subscriptions at a time.
    #[must_use]
    pub fn engine<'m>(&self, info: &'m ClientInfo<'m>, in_flight: usize) -> Client<'m> {
        let millis = |time: Duration| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 4);
        let client = Client::new(info, Slots::growing(in_flight))
            .held(Store::growing(self.held))
            .probe_timeout(Some(millis(self.probe)))
            .total_timeout(millis(self.longest))
            .max_input_rounds(self.rounds)
            .seed(RandomState::new().build_hasher().finish());
        match self.timeout {
            Some(time) => client.timeout(millis(time)),
            None => client,
        }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions::new()
    }
}
