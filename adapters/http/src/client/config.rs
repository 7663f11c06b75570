//! How a client connects, and how long it waits.

use mcp_sansio::server::Millis;

/// Which transport the URL is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "it is known, or found out")]
pub enum Transport {
    /// Streamable HTTP; if `initialize` is answered 400, 404 or 405, the one of 2024-11-05 is tried on the same URL
    /// (2026-07-28, streamable-http, Backward Compatibility).
    Detect,
    /// Streamable HTTP and nothing else.
    Streamable,
    /// HTTP with SSE of 2024-11-05: the URL is that of the event stream.
    Sse,
}

/// How a client connects, and how long it waits. Sizes are those of the stores.
///
/// ```
/// use mcp_sansio_http::client::{Config, Transport};
/// let config = Config::DEFAULT.transport(Transport::Streamable).idle_time(1_000);
/// assert_eq!((config.idle_time, config.redirects), (1_000, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Which transport; [`Transport::Detect`].
    pub transport: Transport,
    /// Whether a legacy session gets its stream for messages of the server's own (GET); yes.
    pub listen: bool,
    /// Milliseconds until a connection is there; 10 seconds.
    pub connect_time: Millis,
    /// Milliseconds that an idle connection is kept; 3 seconds, since common servers close theirs after 5.
    pub idle_time: Millis,
    /// Milliseconds during which the server takes none of what is pending; 30 seconds.
    pub write_time: Millis,
    /// Milliseconds until anything but a request is answered: for requests, the deadline is the caller's; 30 seconds.
    pub reply_time: Millis,
    /// Milliseconds that the rest of an answer is waited for, so that its connection can be used again; half a second.
    pub drain_time: Millis,
    /// Milliseconds before a stream is resumed, if the server named none; 1 second.
    pub retry_time: Millis,
    /// The longest that such a wait grows to, doubled with each try in vain; 30 seconds.
    pub retry_most: Millis,
    /// How often in a row a stream is resumed in vain; 5 times.
    pub tries: u8,
    /// How many redirects a message follows, on the same origin; 3.
    pub redirects: u8,
    /// Bytes of a response's head, if the store is larger; 16 KiB.
    pub head: usize,
    /// How many tools with annotations of parameters (`x-mcp-header`) are remembered; 1024. Calls of further ones lack the
    /// headers.
    pub tools: u32,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Config = Config {
        transport: Transport::Detect,
        listen: true,
        connect_time: 10_000,
        idle_time: 3_000,
        write_time: 30_000,
        reply_time: 30_000,
        drain_time: 500,
        retry_time: 1_000,
        retry_most: 30_000,
        tries: 5,
        redirects: 3,
        head: 16 * 1024,
        tools: 1024,
    };

    /// Of a certain transport.
    #[must_use]
    pub const fn transport(self, transport: Transport) -> Self {
        Config { transport, ..self }
    }

    /// With or without a stream for messages of the server's own in legacy sessions.
    #[must_use]
    pub const fn listen(self, listen: bool) -> Self {
        Config { listen, ..self }
    }

    /// With another time to connect.
    #[must_use]
    pub const fn connect_time(self, millis: Millis) -> Self {
        Config { connect_time: millis, ..self }
    }

    /// With another time for idle connections.
    #[must_use]
    pub const fn idle_time(self, millis: Millis) -> Self {
        Config { idle_time: millis, ..self }
    }

    /// With another time for a server that reads nothing.
    #[must_use]
    pub const fn write_time(self, millis: Millis) -> Self {
        Config { write_time: millis, ..self }
    }

    /// With another time for the answer to what is no request.
    #[must_use]
    pub const fn reply_time(self, millis: Millis) -> Self {
        Config { reply_time: millis, ..self }
    }

    /// With another time for the rest of an answer.
    #[must_use]
    pub const fn drain_time(self, millis: Millis) -> Self {
        Config { drain_time: millis, ..self }
    }

    /// With other times between tries to resume a stream: the first one, unless the server names it, and the longest.
    #[must_use]
    pub const fn retry_times(self, first: Millis, most: Millis) -> Self {
        Config { retry_time: first, retry_most: most, ..self }
    }

    /// With another number of tries.
    #[must_use]
    pub const fn tries(self, tries: u8) -> Self {
        Config { tries, ..self }
    }

    /// With another number of redirects.
    #[must_use]
    pub const fn redirects(self, redirects: u8) -> Self {
        Config { redirects, ..self }
    }

    /// With another limit on the tools whose annotations are remembered.
    #[must_use]
    pub const fn tools(self, most: u32) -> Self {
        Config { tools: most, ..self }
    }

    /// With another limit on heads.
    #[must_use]
    pub const fn head(self, bytes: usize) -> Self {
        Config { head: bytes, ..self }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::DEFAULT
    }
}
