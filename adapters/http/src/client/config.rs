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

mcp_sansio::options! {
    /// Options of the client's transport. Times are in milliseconds. The stores set the limits of messages.
    ///
    /// ```
    /// use mcp_sansio_http::client::{HttpClientConfig, TransportKind};
    /// let config = HttpClientConfig::DEFAULT.transport(TransportKind::Streamable).idle_time(1_000);
    /// assert_eq!((config.idle_time, config.redirects), (1_000, 3));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HttpClientConfig {
        /// The transport. Default: [`TransportKind::Detect`].
        transport: TransportKind = TransportKind::Detect,
        /// `true`: opens the stream for the server's own messages in a legacy session (GET). Default: `true`.
        listen: bool = true,
        /// Time to open a connection. Default: 10 seconds.
        connect_time: Millis = 10_000,
        /// Time that an idle connection is kept. Default: 3 seconds, since common servers close theirs after 5.
        idle_time: Millis = 3_000,
        /// Time during which the server may take no pending byte. Default: 30 seconds.
        write_time: Millis = 30_000,
        /// Time for the answer to a notification, a response, GET or DELETE, and for the head of the answer to `subscriptions/listen`;
        /// the engine keeps the deadlines of other requests. Default: 30 seconds.
        reply_time: Millis = 30_000,
        /// Time for the rest of a body, so that its connection can be used again. Default: 500 milliseconds.
        drain_time: Millis = 500,
        /// The least time before a stream is resumed. A server may ask for another time by `retry`, from a tenth of a second to an
        /// hour; for less than this only after a stream that brought a message. Default: 1 second.
        retry_time: Millis = 1_000,
        /// The longest time before a stream is resumed: each stream that brought no message doubles the time. Default: 48
        /// seconds, which is a minute with the [spread](mcp_sansio::time::jittered).
        retry_most: Millis = 48_000,
        /// Time without a byte after which a stream for changes (GET, `subscriptions/listen`) is taken for dead and opened again.
        /// Servers that keep their streams alive send a comment in less than a minute. Default: `Millis::MAX`, never.
        silence: Millis = Millis::MAX,
        /// Number of failed tries in a row to resume a stream. Default: 5.
        tries: u8 = 5,
        /// Number of redirects that a message follows, on the same origin. Default: 3.
        redirects: u8 = 3,
        /// Longest head of a response in bytes, if the store is larger. Default: 16 KiB.
        head: usize = 16 * 1024,
        /// Number of tools whose annotations (`x-mcp-header`) are kept. Calls of further tools lack `Mcp-Param-*`
        /// headers. Default: 1024.
        tools: u32 = 1024,
        /// The methods of extensions whose requests have the header `Mcp-Name`, each with the member of `params` that it repeats.
        /// Default: none.
        names: &'static [(&'static str, &'static str)] = &[],
    }
}
