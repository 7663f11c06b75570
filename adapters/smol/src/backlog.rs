//! What waits for the writer: a sink that grows with one message, but not with many.

use mcp_sansio::Full;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

/// Lines that have not been written yet.
///
/// A message is as long as it likes, but none is begun while `limit` bytes wait: so the session stops handling input,
/// and the memory for a client that does not read is bounded by the limit and one message.
#[derive(Debug)]
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    /// How many of them have been written.
    sent: usize,
    limit: usize,
    held: bool,
    /// Only answers are kept.
    only_answers: bool,
    /// Where the message begins that is being made and will be dropped, counted from the first byte to write.
    dropped: Option<usize>,
}

/// More than this is not kept when there is nothing to write.
const KEPT: usize = 64 * 1024;

impl Backlog {
    pub(crate) const fn new(limit: usize) -> Self {
        Backlog { bytes: Vec::new(), sent: 0, limit, held: false, only_answers: false, dropped: None }
    }

    /// From here on drops every notification and every request to the client.
    pub(crate) const fn only_answers(&mut self) {
        self.only_answers = true;
    }

    /// The bytes to write.
    pub(crate) fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or(&[])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    /// The first `n` pending bytes were written.
    pub(crate) fn sent(&mut self, n: usize) {
        self.sent += n;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            // Moves fewer bytes than have been written since the last time.
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Whether a whole message of any size may be begun.
    pub(crate) fn is_open(&self) -> bool {
        !self.held && self.pending().len() < self.limit
    }
}

impl Sink for Backlog {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        if self.pending().len() < self.limit { usize::MAX } else { 0 }
    }
}

impl Out for Backlog {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        if !self.is_open() {
            return Err(Full::Now);
        }
        let drops = self.only_answers && matches!(kind, Kind::Notification | Kind::Request);
        self.dropped = drops.then(|| self.pending().len());
        Ok(())
    }

    fn end(&mut self) {
        match self.dropped.take() {
            Some(start) => self.bytes.truncate(self.sent + start),
            None => self.bytes.push(b'\n'),
        }
    }

    fn mark(&self) -> Mark {
        Mark::new(self.pending().len())
    }

    fn roll_back(&mut self, mark: Mark) {
        self.bytes.truncate(self.sent + mark.at());
        self.dropped = None;
    }

    fn hold(&mut self, on: bool) {
        self.held = on;
    }

    fn held(&self) -> bool {
        self.held
    }

    fn capacity(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(out: &mut Backlog, text: &[u8]) -> Result<(), Full> {
        out.begin(Kind::Result)?;
        out.put(text)?;
        out.end();
        Ok(())
    }

    #[test]
    fn one_message_is_of_any_size_and_none_is_begun_over_the_limit() {
        let mut out = Backlog::new(8);
        line(&mut out, b"0123456789").unwrap();
        assert_eq!((line(&mut out, b"x"), out.room()), (Err(Full::Now), 0));
        out.sent(4);
        line(&mut out, b"x").unwrap();
        assert_eq!(out.pending(), b"456789\nx\n");
        out.sent(9);
        assert!(out.is_empty() && out.is_open());
    }

    #[test]
    fn rolling_back_takes_only_what_came_since() {
        let mut out = Backlog::new(100);
        line(&mut out, b"abcdef").unwrap();
        out.sent(2);
        let mark = out.mark();
        line(&mut out, b"gone").unwrap();
        out.roll_back(mark);
        assert_eq!(out.pending(), b"cdef\n");
    }
}
