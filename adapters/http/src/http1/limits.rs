//! Limits and times of a connection.

use mcp_sansio::server::Millis;

/// Limits and times of a connection. The sizes of its two stores are limits too.
///
/// ```
/// use mcp_sansio_http::http1::ConnectionLimits;
/// let limits = ConnectionLimits::default().body(64 * 1024).idle_time(5_000);
/// assert_eq!((limits.head, limits.body), (16 * 1024, 65_536));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Longest request line in bytes; beyond it the answer is 414. Default: 8 KiB.
    pub line: usize,
    /// Longest head in bytes; beyond it the answer is 431. At most 65,535. Default: 16 KiB. Chunk extensions and
    /// trailers together may take the same again.
    pub head: usize,
    /// Longest body in bytes; beyond it the answer is 413. Default: 16 MiB.
    pub body: usize,
    /// Number of bytes read and dropped after a refusal, so that the peer can read the answer. Default: 256 KiB.
    pub drain: usize,
    /// Milliseconds from the first byte of a head to its last; beyond it the answer is 408. Default: 10 seconds.
    pub head_time: Millis,
    /// Milliseconds from the end of a head to the end of its body; beyond it the answer is 408. Default: 60
    /// seconds.
    pub body_time: Millis,
    /// Milliseconds between requests; beyond it the connection is closed. Default: 60 seconds.
    pub idle_time: Millis,
    /// Milliseconds during which the peer may take no pending byte; beyond it the connection is closed. Default:
    /// 30 seconds.
    pub write_time: Millis,
    /// Lowest average rate, in bytes per second, at which the peer takes pending bytes, with
    /// [`write_time`](ConnectionLimits::write_time) as a reserve; below it the connection is closed. 0 sets no rate.
    /// Default: 4 KiB.
    pub write_rate: u32,
    /// Milliseconds that the peer has to close the connection after its last answer. Default: 2 seconds.
    pub linger_time: Millis,
}

impl ConnectionLimits {
    /// The defaults.
    pub const DEFAULT: ConnectionLimits = ConnectionLimits {
        line: 8 * 1024,
        head: 16 * 1024,
        body: 16 * 1024 * 1024,
        drain: 256 * 1024,
        head_time: 10_000,
        body_time: 60_000,
        idle_time: 60_000,
        write_time: 30_000,
        write_rate: 4 * 1024,
        linger_time: 2_000,
    };

    /// Sets the longest request line, in bytes.
    #[must_use]
    pub const fn line(self, bytes: usize) -> Self {
        ConnectionLimits { line: bytes, ..self }
    }

    /// Sets the longest head, in bytes.
    #[must_use]
    pub const fn head(self, bytes: usize) -> Self {
        ConnectionLimits { head: bytes, ..self }
    }

    /// Sets the longest body, in bytes.
    #[must_use]
    pub const fn body(self, bytes: usize) -> Self {
        ConnectionLimits { body: bytes, ..self }
    }

    /// Sets the number of bytes dropped after a refusal.
    #[must_use]
    pub const fn drain(self, bytes: usize) -> Self {
        ConnectionLimits { drain: bytes, ..self }
    }

    /// Sets the time for a head.
    #[must_use]
    pub const fn head_time(self, millis: Millis) -> Self {
        ConnectionLimits { head_time: millis, ..self }
    }

    /// Sets the time for a body.
    #[must_use]
    pub const fn body_time(self, millis: Millis) -> Self {
        ConnectionLimits { body_time: millis, ..self }
    }

    /// Sets the time between requests.
    #[must_use]
    pub const fn idle_time(self, millis: Millis) -> Self {
        ConnectionLimits { idle_time: millis, ..self }
    }

    /// Sets the time during which the peer may take no pending byte.
    #[must_use]
    pub const fn write_time(self, millis: Millis) -> Self {
        ConnectionLimits { write_time: millis, ..self }
    }

    /// Sets the lowest rate at which the peer takes pending bytes.
    #[must_use]
    pub const fn write_rate(self, bytes: u32) -> Self {
        ConnectionLimits { write_rate: bytes, ..self }
    }

    /// Sets the time that the peer has to close the connection.
    #[must_use]
    pub const fn linger_time(self, millis: Millis) -> Self {
        ConnectionLimits { linger_time: millis, ..self }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits::DEFAULT
    }
}
