//! Limits of memory and times.

use mcp_sansio::server::Millis;

mcp_sansio::options! {
    /// The limits to which the memory of a [`Bridge`](crate::Bridge) grows, and its times. The most memory, besides that of the client behind:
    /// `backlog + kept + 2 * subscriptions + schemas + message + in_flight * 600 + questions * (message + 400)` bytes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BridgeLimits {
        /// The most bytes of one message of the host. Default: 16 MiB.
        message: usize = 16 << 20,
        /// The most bytes that wait to be sent to the host; a larger answer becomes an error. Default: 32 MiB.
        backlog: usize = 32 << 20,
        /// The most requests of the host that wait, are under way or are asked back. One more ends the oldest that is asked back, or is
        /// refused as overload. Default: 64.
        in_flight: usize = 64,
        /// The most bytes of requests that wait for a connection, or may be sent again. Beyond it a request that would wait is refused,
        /// and another one is not sent again. Default: 16 MiB.
        kept: usize = 16 << 20,
        /// The most questions of the server that the host has not answered; further ones are refused. Default: 64.
        questions: usize = 64,
        /// The most bytes of the subscriptions of the host. Default: 64 KiB.
        subscriptions: usize = 64 << 10,
        /// The most bytes of tools of several hosts whose input schemas name headers (`x-mcp-header`). What is beyond is not compared with
        /// the arguments of a call. Default: 1 MiB.
        schemas: usize = 1 << 20,
        /// The time that a request waits for a connection, in milliseconds. Default: 10,000.
        wait: Millis = 10_000,
        /// The silence after which a connection at rest is checked, in milliseconds: by `ping`, from 2026-07-28 on by `server/discover`.
        /// For wires that do not say that the server has gone or begun anew; `Millis::MAX`: never. Default: 30,000.
        check: Millis = 30_000,
        /// The time in which the host answers a question, or comes again with the answers, in milliseconds. Default: 600,000.
        question_time: Millis = 600_000,
        /// The pause before a connection is opened again, in milliseconds; it doubles with each failure. Default: 50.
        first_pause: Millis = 50,
        /// The longest pause. Default: 2,000.
        longest_pause: Millis = 2_000,
    }
}
