//! Messages shown as they pass by.

use std::vec::Vec;

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there are two")]
pub enum Way {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// The most of a line that is shown at once.
const SHOWN: usize = 1 << 20;

/// Shows the lines of a connection.
#[derive(Debug)]
pub struct LineTrace<T> {
    trace: T,
    /// How much of what is pending was shown.
    shown: usize,
    /// The line that has not come to its end.
    line: Vec<u8>,
}

impl<T: FnMut(Way, &[u8])> LineTrace<T> {
    /// From now on: what is pending already, so many bytes, is not shown.
    pub const fn new(trace: T, pending: usize) -> Self {
        LineTrace { trace, shown: pending, line: Vec::new() }
    }

    /// All of this is about to be written; what of it was shown before is not shown again.
    pub fn sent(&mut self, pending: &[u8]) {
        for line in pending.get(self.shown..).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
            (self.trace)(Way::Sent, line.trim_ascii_end());
        }
        self.shown = pending.len();
    }

    /// So much of what was pending is not any more.
    pub fn written(&mut self, bytes: usize) {
        self.shown = self.shown.saturating_sub(bytes);
    }

    /// This has come.
    pub fn received(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= SHOWN {
                (self.trace)(Way::Received, self.line.trim_ascii_end());
                self.line.clear();
            }
        }
    }
}
