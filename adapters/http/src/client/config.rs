//! Options of the client's transport.

use mcp_sansio::server::Millis;

/// A choice of transport for the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "it is known, or found out")]
pub enum TransportKind {
    /// Uses Streamable HTTP. If the server answers `initialize` with 400, 404 or 405, tries HTTP with SSE
    /// (2024-11-05) on the same URL ([backward
    /// compatibility](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports)).
    Detect,
    /// Uses Streamable HTTP only.
    Streamable,
    /// Uses HTTP with SSE (2024-11-05). The URL is that of the event stream.
    Sse,
}

/// Options of the client's transport. Times are in milliseconds. The stores set the limits of messages.
///
/// ```
/// use mcp_sansio_http::client::{HttpClientConfig, TransportKind};
/// let config = HttpClientConfig::DEFAULT.transport(TransportKind::Streamable).idle_time(1_000);
/// assert_eq!((config.idle_time, config.redirects), (1_000, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpClientConfig {
    /// The transport. Default: [`TransportKind::Detect`].
    pub transport: TransportKind,
    /// `true`: opens the stream for the server's own messages in a legacy session (GET). Default: `true`.
    pub listen: bool,
    /// Time to open a connection. Default: 10 seconds.
    pub connect_time: Millis,
    /// Time that an idle connection is kept. Default: 3 seconds, since common servers close theirs after 5.
    pub idle_time: Millis,
    /// Time during which the server may take no pending byte. Default: 30 seconds.
    pub write_time: Millis,
    /// Time for the answer to a notification, a response, GET or DELETE; the engine keeps the deadlines of
    /// requests. Default: 30 seconds.
    pub reply_time: Millis,
    /// Time for the rest of a body, so that its connection can be used again. Default: 500 milliseconds.
    pub drain_time: Millis,
    /// The least time before a stream is resumed. A server may ask for another time by `retry`, from a tenth of a second to an
    /// hour; for less than this only after a stream that brought a message. Default: 1 second.
    pub retry_time: Millis,
    /// The longest time before a stream is resumed: each stream that brought no message doubles the time. Default: 48
    /// seconds, which is a minute with the [spread](mcp_sansio::time::jittered).
    pub retry_most: Millis,
    /// Number of failed tries in a row to resume a stream. Default: 5.
    pub tries: u8,
    /// Number of redirects that a message follows, on the same origin. Default: 3.
    pub redirects: u8,
    /// Longest head of a response in bytes, if the store is larger. Default: 16 KiB.
    pub head: usize,
    /// Number of tools whose annotations (`x-mcp-header`) are kept. Calls of further tools lack `Mcp-Param-*`
    /// headers. Default: 1024.
    pub tools: u32,
    /// The methods of extensions whose requests have the header `Mcp-Name`, each with the member of `params` that it repeats.
    /// Default: none.
    pub names: &'static [(&'static str, &'static str)],
}

impl HttpClientConfig {
    /// The defaults.
    pub const DEFAULT: HttpClientConfig = HttpClientConfig {
        transport: TransportKind::Detect,
        listen: true,
        connect_time: 10_000,
        idle_time: 3_000,
        write_time: 30_000,
        reply_time: 30_000,
        drain_time: 500,
        retry_time: 1_000,
        retry_most: 48_000,
        tries: 5,
        redirects: 3,
        head: 16 * 1024,
        tools: 1024,
        names: &[],
    };

    /// Sets the transport.
    #[must_use]
    pub const fn transport(self, transport: TransportKind) -> Self {
        HttpClientConfig { transport, ..self }
    }

    /// Sets whether a legacy session opens a stream for the server's own messages.
    #[must_use]
    pub const fn listen(self, listen: bool) -> Self {
        HttpClientConfig { listen, ..self }
    }

    /// Sets the time to open a connection.
    #[must_use]
    pub const fn connect_time(self, millis: Millis) -> Self {
        HttpClientConfig { connect_time: millis, ..self }
    }

    /// Sets the time that an idle connection is kept.
    #[must_use]
    pub const fn idle_time(self, millis: Millis) -> Self {
        HttpClientConfig { idle_time: millis, ..self }
    }

    /// Sets the time during which the server may take no pending byte.
    #[must_use]
    pub const fn write_time(self, millis: Millis) -> Self {
        HttpClientConfig { write_time: millis, ..self }
    }

    /// Sets the time for an answer to anything but a request.
    #[must_use]
    pub const fn reply_time(self, millis: Millis) -> Self {
        HttpClientConfig { reply_time: millis, ..self }
    }

    /// Sets the time for the rest of a body.
    #[must_use]
    pub const fn drain_time(self, millis: Millis) -> Self {
        HttpClientConfig { drain_time: millis, ..self }
    }

    /// Sets the first time before a stream is resumed, for servers that send no `retry`, and the longest.
    #[must_use]
    pub const fn retry_times(self, first: Millis, most: Millis) -> Self {
        HttpClientConfig { retry_time: first, retry_most: most, ..self }
    }

    /// Sets the number of failed tries to resume a stream.
    #[must_use]
    pub const fn tries(self, tries: u8) -> Self {
        HttpClientConfig { tries, ..self }
    }

    /// Sets the number of redirects that a message follows.
    #[must_use]
    pub const fn redirects(self, redirects: u8) -> Self {
        HttpClientConfig { redirects, ..self }
    }

    /// Sets the number of tools whose annotations are kept.
    #[must_use]
    pub const fn tools(self, most: u32) -> Self {
        HttpClientConfig { tools: most, ..self }
    }

    /// Sets the methods of extensions whose requests have the header `Mcp-Name` (from 2026-07-28 on), each with the string
    /// member of `params` that the header repeats
    /// ([headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).
    #[must_use]
    pub const fn names(self, names: &'static [(&'static str, &'static str)]) -> Self {
        HttpClientConfig { names, ..self }
    }

    /// Sets the longest head of a response, in bytes.
    #[must_use]
    pub const fn head(self, bytes: usize) -> Self {
        HttpClientConfig { head: bytes, ..self }
    }
}

impl Default for HttpClientConfig {
    fn default() -> Self {
        HttpClientConfig::DEFAULT
    }
}
