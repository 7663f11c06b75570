//! Limits of memory and times.

use mcp_sansio::server::Millis;

/// The limits to which the memory of a [`Bridge`](crate::Bridge) grows, and its times. The most memory, besides that of the client behind:
/// `backlog + kept + 2 * subscriptions + schemas + message + in_flight * 600 + questions * (message + 400)` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made with struct update syntax from its default")]
pub struct BridgeLimits {
    /// The most bytes of one message of the host. Default: 16 MiB.
    pub message: usize,
    /// The most bytes that wait to be sent to the host; a larger answer becomes an error. Default: 32 MiB.
    pub backlog: usize,
    /// The most requests of the host that wait, are under way or are asked back. One more ends the oldest that is asked back, or is
    /// refused as overload. Default: 64.
    pub in_flight: usize,
    /// The most bytes of requests that wait for a connection, or may be sent again. Beyond it a request that would wait is refused,
    /// and another one is not sent again. Default: 16 MiB.
    pub kept: usize,
    /// The most questions of the server that the host has not answered; further ones are refused. Default: 64.
    pub questions: usize,
    /// The most bytes of the subscriptions of the host. Default: 64 KiB.
    pub subscriptions: usize,
    /// The most bytes of tools of several hosts whose input schemas name headers (`x-mcp-header`). What is beyond is not compared with
    /// the arguments of a call. Default: 1 MiB.
    pub schemas: usize,
    /// The time that a request waits for a connection, in milliseconds. Default: 10,000.
    pub wait: Millis,
    /// The silence after which a connection at rest is checked, in milliseconds: by `ping`, from 2026-07-28 on by `server/discover`.
    /// For wires that do not say that the server has gone or begun anew; `Millis::MAX`: never. Default: 30,000.
    pub check: Millis,
    /// The time in which the host answers a question, or comes again with the answers, in milliseconds. Default: 600,000.
    pub question_time: Millis,
    /// The pause before a connection is opened again, in milliseconds; it doubles with each failure. Default: 50.
    pub first_pause: Millis,
    /// The longest pause. Default: 2,000.
    pub longest_pause: Millis,
}

impl Default for BridgeLimits {
    fn default() -> Self {
        BridgeLimits {
            message: 16 << 20,
            backlog: 32 << 20,
            in_flight: 64,
            kept: 16 << 20,
            questions: 64,
            subscriptions: 64 << 10,
            schemas: 1 << 20,
            wait: 10_000,
            check: 30_000,
            question_time: 600_000,
            first_pause: 50,
            longest_pause: 2_000,
        }
    }
}
