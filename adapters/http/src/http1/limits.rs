//! Limits and times of a connection.

use mcp_sansio::server::Millis;

mcp_sansio::options! {
    /// Limits and times of a connection. The sizes of its two stores are limits too.
    ///
    /// ```
    /// use mcp_sansio_http::http1::ConnectionLimits;
    /// let limits = ConnectionLimits::default().body(64 * 1024).idle_time(5_000);
    /// assert_eq!((limits.head, limits.body), (16 * 1024, 65_536));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct ConnectionLimits {
        /// Longest request line in bytes; beyond it the answer is 414. Default: 8 KiB.
        line: usize = 8 * 1024,
        /// Longest head in bytes; beyond it the answer is 431. At most 65,535. Default: 16 KiB. Chunk extensions and
        /// trailers together may take the same again.
        head: usize = 16 * 1024,
        /// Longest body in bytes; beyond it the answer is 413. Default: 16 MiB.
        body: usize = 16 * 1024 * 1024,
        /// Number of bytes read and dropped after a refusal, so that the peer can read the answer. Default: 256 KiB.
        drain: usize = 256 * 1024,
        /// Milliseconds from the first byte of a head to its last; beyond it the answer is 408. Default: 10 seconds.
        head_time: Millis = 10_000,
        /// Milliseconds from the end of a head to the end of its body; beyond it the answer is 408. Default: 60
        /// seconds.
        body_time: Millis = 60_000,
        /// Milliseconds between requests; beyond it the connection is closed. Default: 60 seconds.
        idle_time: Millis = 60_000,
        /// Milliseconds during which the peer may take no pending byte; beyond it the connection is closed. Default:
        /// 30 seconds.
        write_time: Millis = 30_000,
        /// Lowest average rate, in bytes per second, at which the peer takes pending bytes, with
        /// [`write_time`](ConnectionLimits::write_time) as a reserve; below it the connection is closed. 0 sets no rate.
        /// Default: 4 KiB.
        write_rate: u32 = 4 * 1024,
        /// Milliseconds that the peer has to close the connection after its last answer. Default: 2 seconds.
        linger_time: Millis = 2_000,
    }
}
