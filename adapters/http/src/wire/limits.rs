//! How much a connection takes and how long it waits.

use mcp_sansio::server::Millis;

/// How much a connection takes and how long it waits. The sizes of its two stores are limits too.
///
/// ```
/// use mcp_sansio_http::wire::Limits;
/// let limits = Limits::default().body(64 * 1024).idle_time(5_000);
/// assert_eq!((limits.head, limits.body), (16 * 1024, 65_536));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the request line, otherwise 414; 8 KiB.
    pub line: usize,
    /// Bytes of the whole head, otherwise 431; 16 KiB, and never more than 64 KiB less one. Chunk extensions and
    /// trailers together may take as much again.
    pub head: usize,
    /// Bytes of a body, otherwise 413; 16 MiB.
    pub body: usize,
    /// Bytes that are read and dropped after a refusal, so that the peer gets to read it; 256 KiB.
    pub drain: usize,
    /// Milliseconds from the first byte of a head to its last, otherwise 408; 10 seconds.
    pub head_time: Millis,
    /// Milliseconds from the end of a head to the end of its body, otherwise 408; 60 seconds.
    pub body_time: Millis,
    /// Milliseconds between requests, then the connection is closed; 60 seconds.
    pub idle_time: Millis,
    /// Milliseconds during which the peer takes none of what is pending, then the connection is closed; 30 seconds.
    pub write_time: Millis,
    /// Bytes per second at which the peer takes what is pending on average, beside [`write_time`](Limits::write_time) as a
    /// reserve, otherwise the connection is closed; 4 KiB, 0 for no such limit.
    pub write_rate: u32,
    /// Milliseconds to wait for the peer to close after a last answer; 2 seconds.
    pub linger_time: Millis,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Limits = Limits {
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

    /// With another limit on the request line.
    #[must_use]
    pub const fn line(self, bytes: usize) -> Self {
        Limits { line: bytes, ..self }
    }

    /// With another limit on heads.
    #[must_use]
    pub const fn head(self, bytes: usize) -> Self {
        Limits { head: bytes, ..self }
    }

    /// With another limit on bodies.
    #[must_use]
    pub const fn body(self, bytes: usize) -> Self {
        Limits { body: bytes, ..self }
    }

    /// With another limit on what is dropped after a refusal.
    #[must_use]
    pub const fn drain(self, bytes: usize) -> Self {
        Limits { drain: bytes, ..self }
    }

    /// With another time for a head.
    #[must_use]
    pub const fn head_time(self, millis: Millis) -> Self {
        Limits { head_time: millis, ..self }
    }

    /// With another time for a body.
    #[must_use]
    pub const fn body_time(self, millis: Millis) -> Self {
        Limits { body_time: millis, ..self }
    }

    /// With another time between requests.
    #[must_use]
    pub const fn idle_time(self, millis: Millis) -> Self {
        Limits { idle_time: millis, ..self }
    }

    /// With another time for a peer that reads nothing.
    #[must_use]
    pub const fn write_time(self, millis: Millis) -> Self {
        Limits { write_time: millis, ..self }
    }

    /// With another rate for a peer that reads slowly.
    #[must_use]
    pub const fn write_rate(self, bytes: u32) -> Self {
        Limits { write_rate: bytes, ..self }
    }

    /// With another time to wait for the peer to close.
    #[must_use]
    pub const fn linger_time(self, millis: Millis) -> Self {
        Limits { linger_time: millis, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}
