//! Framing: reads messages from a byte stream and writes them into one.

mod line;

pub use line::{LineBuffer, LineStatus};

/// The next step for the caller of a session over lines: a [`session::LineServer`](crate::line_server::LineServer) or a
/// [`client::LineClient`](crate::client::LineClient).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[non_exhaustive]
pub enum NextStep {
    /// Read more input. There may be pending output to send.
    Read,
    /// Send the pending output, then run again. The input waits; nothing is lost.
    Write,
}
