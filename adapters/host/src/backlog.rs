//! The lines that wait for the writer.

use mcp_sansio::FullError;
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

/// The lines that wait for the writer.
///
/// A message may have any length, but none is begun while `limit` bytes wait. The session then handles no input, so a
/// client that does not read costs at most the limit and one message.
#[derive(Debug)]
pub struct Backlog {
    bytes: Vec<u8>,
    /// The number of bytes that were written.
    sent: usize,
    limit: usize,
    held: bool,
    /// Only answers are kept.
    only_answers: bool,
    /// The start of the message in the making, if it will be dropped; counted from the first unwritten byte.
    dropped: Option<usize>,
}

/// The allocation that is kept while nothing waits, in bytes.
const KEPT: usize = 64 * 1024;

impl Backlog {
    /// Makes an empty backlog. No message is begun while `limit` bytes wait.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Backlog { bytes: Vec::new(), sent: 0, limit, held: false, only_answers: false, dropped: None }
    }

    /// Drops all later notifications and requests to the client.
    pub const fn only_answers(&mut self) {
        self.only_answers = true;
    }

    /// Returns the bytes to write.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or(&[])
    }

    /// Returns the lines that wait, but for the rest of one that was begun.
    #[cfg_attr(not(feature = "client"), allow(dead_code, reason = "for clients"))]
    pub(crate) fn whole_lines(&self) -> impl Iterator<Item = &[u8]> {
        let begun = self.sent.checked_sub(1).is_some_and(|last| self.bytes.get(last) != Some(&b'\n'));
        self.pending().split(|byte| *byte == b'\n').skip(usize::from(begun))
    }

    /// Returns whether all bytes were written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    /// Removes the first `n` pending bytes: they were written.
    pub fn sent(&mut self, n: usize) {
        self.sent += n;
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            // Moves fewer bytes than were written since the last move. The last of them shows whether a line was begun.
            self.bytes.drain(..self.sent - 1);
            self.sent = 1;
        }
    }

    /// Returns whether a message may be begun.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.held && self.pending().len() < self.limit
    }
}

impl Sink for Backlog {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        if self.pending().len() < self.limit { usize::MAX } else { 0 }
    }
}

impl Out for Backlog {
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        if !self.is_open() {
            return Err(FullError::Now);
        }
        let drops = self.only_answers && head.is_unasked();
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
    use mcp_sansio::sink::RequestInfo;

    fn line(out: &mut Backlog, text: &[u8]) -> Result<(), FullError> {
        out.begin(MessageHead::Result)?;
        out.put(text)?;
        out.end();
        Ok(())
    }

    #[test]
    fn one_message_is_of_any_size_and_none_is_begun_over_the_limit() {
        let mut out = Backlog::new(8);
        line(&mut out, b"0123456789").unwrap();
        assert_eq!((line(&mut out, b"x"), out.room()), (Err(FullError::Now), 0));
        assert_eq!(out.capacity(), usize::MAX);
        out.sent(4);
        line(&mut out, b"x").unwrap();
        assert_eq!(out.pending(), b"456789\nx\n");
        out.sent(9);
        assert!(out.is_empty() && out.is_open());
    }

    #[test]
    fn the_memory_of_a_large_message_is_given_back() {
        let mut out = Backlog::new(8);
        line(&mut out, &[b'x'; 8 * KEPT]).unwrap();
        out.sent(8 * KEPT + 1);
        assert!(out.bytes.capacity() <= 2 * KEPT, "{}", out.bytes.capacity());
    }

    #[test]
    fn at_its_limit_it_is_closed() {
        let mut out = Backlog::new(8);
        line(&mut out, b"012345").unwrap();
        assert_eq!((out.room(), out.is_open()), (usize::MAX, true));
        line(&mut out, b"").unwrap();
        assert_eq!((out.pending().len(), out.room(), out.is_open()), (8, 0, false));
    }

    #[test]
    fn nothing_begins_while_it_is_held() {
        let mut out = Backlog::new(8);
        out.hold(true);
        assert_eq!((out.held(), out.is_open(), line(&mut out, b"x")), (true, false, Err(FullError::Now)));
        out.hold(false);
        assert_eq!((out.held(), out.is_open(), line(&mut out, b"x")), (false, true, Ok(())));
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

    /// After the end of the input, a message that is no answer leaves nothing behind.
    #[test]
    fn only_answers_are_kept_in_the_end() {
        let mut out = Backlog::new(100);
        let say = |out: &mut Backlog, kind: MessageHead<'_>| {
            out.begin(kind).unwrap();
            out.put(b"message").unwrap();
            out.end();
        };
        say(&mut out, MessageHead::Notification);
        out.only_answers();
        out.sent(3);
        for (kind, is_kept) in [
            (MessageHead::Notification, false),
            (MessageHead::Result, true),
            (MessageHead::Request(&RequestInfo::new(0, "ping")), false),
            (MessageHead::Error(-32603), true),
        ] {
            let before = out.pending().len();
            say(&mut out, kind);
            assert_eq!(out.pending().len() - before, if is_kept { 8 } else { 0 });
        }
        assert_eq!(out.pending(), b"sage\nmessage\nmessage\n");
        // A message that is taken back is not dropped a second time.
        let mark = out.mark();
        out.begin(MessageHead::Notification).unwrap();
        out.put(b"gone").unwrap();
        out.roll_back(mark);
        say(&mut out, MessageHead::Result);
        assert_eq!(out.pending(), b"sage\nmessage\nmessage\nmessage\n");
    }

    /// Bytes that were written are moved out of the way when they are more than half.
    #[test]
    fn written_bytes_take_little_memory() {
        let mut out = Backlog::new(100);
        line(&mut out, b"0123456789").unwrap();
        out.sent(5);
        assert_eq!((out.sent, out.bytes.len(), out.pending()), (5, 11, &b"56789\n"[..]));
        out.sent(1);
        assert_eq!((out.sent, out.bytes.len(), out.pending()), (1, 6, &b"6789\n"[..]));
        assert_eq!(out.whole_lines().next(), Some(&b""[..]));
        out.sent(5);
        assert_eq!((out.sent, out.bytes.len(), out.is_empty()), (0, 0, true));
    }
}
