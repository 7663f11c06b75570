//! Times and limits of clients.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use mcp_sansio::client::{Client, ClientInfo};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::Millis;

/// The limit of requests and subscriptions in flight; further requests wait.
pub const IN_FLIGHT: usize = 64;

mcp_sansio::options! {
    /// Times and limits of a client, over any transport.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcp_sansio_host::ClientOptions;
    /// let options = ClientOptions::DEFAULT.timeout(Duration::from_secs(10)).message(1 << 20);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientOptions {
        /// The longest time of a request, unless the request sets its own. [`Duration::MAX`]: no limit. Default: 1 minute.
        timeout: Duration = Duration::from_secs(60),
        /// The longest time of a request in all if each `notifications/progress` begins its time again, unless the request sets its
        /// own limit. Default: 1 hour.
        total_timeout: Duration = Duration::from_secs(3600),
        /// The longest time that the client waits for the answer to its first message before it takes the server for one of the
        /// older revisions. Default: 5 seconds.
        probe_timeout: Duration = Duration::from_secs(5),
        /// Most times that a server may answer one request with `input_required` (2026-07-28). Default: 16. See
        /// [`Client::max_input_rounds`].
        max_input_rounds: u8 = 16,
        /// Most bytes of an incoming message. Default: 16 MiB.
        message: usize = 16 << 20,
        /// Most bytes that the client keeps in order to send them again: the params of calls that the server may answer with
        /// `input_required`, and the answers to its questions. Default: 16 MiB.
        held: usize = 16 << 20,
    }
}

impl ClientOptions {
    /// Returns a client with these times and limits, and at most `in_flight` requests and subscriptions at a time.
    #[must_use]
    pub fn engine<'m>(&self, info: &'m ClientInfo<'m>, in_flight: usize) -> Client<'m> {
        let millis = |time: Duration| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX / 4);
        let client = Client::new(info, Slots::growing(in_flight))
            .held(Store::growing(self.held))
            .probe_timeout(Some(millis(self.probe_timeout)))
            .total_timeout(millis(self.total_timeout))
            .max_input_rounds(self.max_input_rounds)
            .seed(RandomState::new().build_hasher().finish());
        match self.timeout {
            Duration::MAX => client,
            time => client.timeout(millis(time)),
        }
    }
}
