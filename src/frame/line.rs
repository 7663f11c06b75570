//! Newline framing: one message a line, as on stdio and on serial lines. See
//! [stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio).

use crate::memory::Store;
use crate::search::find;
use crate::sink::move_down;

/// A line that [`LineBuffer::peek`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum LineStatus<'b> {
    /// A line without its newline, and without a carriage return before the newline.
    Message(&'b [u8]),
    /// A line that is longer than the buffer. The buffer skips the rest of it, up to its newline.
    TooLong {
        /// The first bytes of the line. They may not even begin a JSON value.
        start: &'b [u8],
    },
}

/// Collects bytes until a line is complete. If a read is cancelled, no bytes are lost.
///
/// 1. Read into [`space`](LineBuffer::space) and report the number of bytes with
///    [`filled`](LineBuffer::filled).
/// 2. Handle the line that [`peek`](LineBuffer::peek) returns, then call [`consume`](LineBuffer::consume).
///    `peek` returns the same line until then: so a full sink loses no message.
///
/// Blank lines are skipped. A line with its newline may be as long as the store.
///
/// ```
/// use mcp_sansio::frame::{LineStatus, LineBuffer};
/// let mut bytes = [0; 32];
/// let mut lines = LineBuffer::new(&mut bytes);
/// let input = b"{\"a\":1}\r\n{\"b\"";
/// lines.space()[..input.len()].copy_from_slice(input); // or a read of any size
/// lines.filled(input.len());
/// assert_eq!(lines.peek(), Some(LineStatus::Message(b"{\"a\":1}")));
/// lines.consume();
/// assert_eq!(lines.peek(), None); // the rest has no newline yet
/// ```
#[derive(Debug)]
pub struct LineBuffer<'m> {
    store: Store<'m>,
    /// The first byte that is not consumed.
    start: usize,
    /// The end of the bytes that were read.
    end: usize,
    /// There is no newline before this position: no byte is searched twice.
    searched: usize,
    /// The position of the newline of the line at `start`, if it was found.
    newline: Option<usize>,
    /// The rest of a line that was too long is being dropped.
    skipping: bool,
    /// The number of bytes kept of a line that is too long and not consumed; they are at `start`.
    too_long: Option<usize>,
}

/// The number of bytes to read at once into a store that grows.
const CHUNK: usize = 16 * 1024;

impl<'m> LineBuffer<'m> {
    /// Makes an empty buffer over `store`.
    #[must_use]
    pub fn new(store: impl Into<Store<'m>>) -> Self {
        LineBuffer {
            store: store.into(),
            start: 0,
            end: 0,
            searched: 0,
            newline: None,
            skipping: false,
            too_long: None,
        }
    }

    /// Returns the space to read into. It is empty only while lines wait to be consumed.
    pub fn space(&mut self) -> &mut [u8] {
        self.make_room();
        self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut [])
    }

    /// Reports that `n` bytes were read into [`space`](LineBuffer::space).
    pub fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(self.store.bytes().len());
    }

    /// Returns the current line, the same one until it is consumed; `None` if more bytes are needed.
    pub fn peek(&mut self) -> Option<LineStatus<'_>> {
        let found = if self.too_long.is_some() { true } else { self.find() };
        if !found {
            return None;
        }
        Some(match self.too_long {
            Some(kept) => LineStatus::TooLong { start: self.bytes(self.start, self.start + kept) },
            None => LineStatus::Message(trim(self.bytes(self.start, self.newline?))),
        })
    }

    /// Drops the line that [`peek`](LineBuffer::peek) returned.
    pub fn consume(&mut self) {
        if let Some(kept) = self.too_long.take() {
            self.start += kept;
        } else if let Some(newline) = self.newline.take() {
            self.start = newline + 1;
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        // `clamp` can panic.
        self.searched = self.searched.max(self.start).min(self.end);
    }

    /// Returns the bytes after the last newline. Use it at the end of the input, because some peers do not end
    /// their last line.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        if self.skipping { &[] } else { trim(self.bytes(self.start, self.end)) }
    }

    /// Returns whether all bytes that were read have been consumed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops all bytes that were read.
    pub fn clear(&mut self) {
        (self.start, self.end, self.searched) = (0, 0, 0);
        (self.newline, self.skipping, self.too_long) = (None, false, None);
    }

    /// Returns the bytes from `from` up to `to`.
    fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.store.bytes().get(from..to).unwrap_or(&[])
    }

    /// Finds the next line that is not blank.
    fn find(&mut self) -> bool {
        loop {
            if self.newline.is_none() && !self.search() {
                return self.overflows();
            }
            let Some(newline) = self.newline else { return false };
            let blank = self.bytes(self.start, newline).iter().all(u8::is_ascii_whitespace);
            if !blank && !self.skipping {
                return true;
            }
            self.skipping = false;
            self.consume();
        }
    }

    fn search(&mut self) -> bool {
        self.newline = find(b'\n', self.bytes(self.searched, self.end)).map(|at| self.searched + at);
        if self.newline.is_none() {
            self.searched = self.end;
        }
        self.newline.is_some()
    }

    /// Checks for a line that is too long: the buffer is full and has no newline.
    fn overflows(&mut self) -> bool {
        let full = self.start == 0 && self.end == self.store.limit() && self.end > 0;
        if full && !self.skipping {
            self.too_long = Some(self.end);
            self.skipping = true;
            return true;
        }
        if self.skipping && self.newline.is_none() {
            // The rest is not needed.
            (self.start, self.end, self.searched) = (0, 0, 0);
        }
        false
    }

    fn make_room(&mut self) {
        if self.start > 0 && (self.end == self.store.bytes().len() || self.end - self.start <= 64) {
            move_down(self.store.bytes_mut(), self.start, 0..self.end);
            self.newline = self.newline.map(|at| at - self.start);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.store.bytes().len() {
            // At its limit, the store stays as it is.
            let wanted = (self.end + CHUNK).min(self.store.limit());
            self.store.reach(wanted);
        }
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// Feeds `input` in pieces of `step` bytes and returns the lines found.
    fn run(size: usize, step: usize, input: &[u8]) -> Vec<String> {
        let mut bytes = std::vec![0; size];
        let mut lines = LineBuffer::new(&mut bytes[..]);
        let mut seen = Vec::new();
        for piece in input.chunks(step) {
            let mut rest = piece;
            while !rest.is_empty() {
                let space = lines.space();
                let n = space.len().min(rest.len());
                assert!(n > 0, "no space although every line was consumed");
                space[..n].copy_from_slice(&rest[..n]);
                lines.filled(n);
                rest = &rest[n..];
                while let Some(line) = lines.peek() {
                    seen.push(match line {
                        LineStatus::Message(line) => String::from_utf8_lossy(line).to_string(),
                        LineStatus::TooLong { start } => std::format!("<{}", start.len()),
                    });
                    lines.consume();
                }
            }
        }
        seen.push(std::format!("rest {}", String::from_utf8_lossy(lines.rest())));
        seen
    }

    #[test]
    fn equal_however_it_is_cut() {
        let input = b"one\r\n\n  \ntwo\nthis line is far too long for the buffer\nthree\nfo";
        for step in 1..=input.len() {
            let seen = run(16, step, input);
            assert_eq!(seen, ["one", "two", "<16", "three", "rest fo"], "step {step}");
        }
    }

    #[test]
    fn a_line_as_long_as_the_buffer_is_too_long_but_one_less_fits() {
        assert_eq!(run(4, 1, b"abc\nabcd\nx\n"), ["abc", "<4", "x", "rest "]);
    }

    /// A buffer without memory has no line, not even one that is too long: who reads on would never end.
    #[test]
    fn no_memory_holds_no_line() {
        let mut lines = LineBuffer::new(&mut [][..]);
        assert_eq!((lines.space().len(), lines.peek()), (0, None));
    }

    /// The rest of a line that is too long takes no room.
    #[test]
    fn the_rest_of_a_long_line_is_dropped() {
        let mut bytes = [0; 16];
        let mut lines = LineBuffer::new(&mut bytes);
        lines.space().fill(b'x');
        lines.filled(16);
        assert!(matches!(lines.peek(), Some(LineStatus::TooLong { .. })));
        lines.consume();
        lines.space()[..10].fill(b'y');
        lines.filled(10);
        assert_eq!(lines.peek(), None);
        assert_eq!(lines.space().len(), 16);
    }

    #[test]
    fn no_byte_is_searched_twice() {
        let mut bytes = [0; 64];
        let mut lines = LineBuffer::new(&mut bytes);
        for input in [&b"abc"[..], b"de\nfg", b"h", b"\ni"] {
            lines.space()[..input.len()].copy_from_slice(input);
            lines.filled(input.len());
            while lines.peek().is_some() {
                lines.consume();
                assert_eq!(lines.searched, lines.start);
            }
            assert_eq!(lines.searched, lines.end);
        }
        assert_eq!(lines.rest(), b"i");
    }

    /// Bytes move when there is no room behind them, or when they are few.
    #[test]
    fn bytes_are_moved_seldom() {
        for (first, second, moves) in
            [(10, 100, false), (100, 64, true), (100, 65, false), (10, 65, false), (100, 155, true)]
        {
            let mut bytes = [0; 256];
            let mut lines = LineBuffer::new(&mut bytes);
            lines.space()[..first + second].fill(b'x');
            lines.space()[first - 1] = b'\n';
            lines.filled(first + second);
            assert!(lines.peek().is_some());
            lines.consume();
            if first + second == 255 {
                lines.filled(1);
            }
            let room = lines.space().len();
            assert_eq!((lines.start, room), if moves { (0, 256 - lines.end) } else { (first, 256 - first - second) });
        }
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_store_grows_only_when_it_is_full() {
        let mut lines = LineBuffer::new(Store::growing(100_000));
        let first = lines.space().len();
        lines.filled(10);
        assert_eq!((lines.space().len(), first < 100_000), (first - 10, true));
        lines.filled(first - 10);
        assert!(lines.space().len() >= first);
    }

    #[test]
    fn the_same_line_until_consumed() {
        let mut bytes = [0; 16];
        let mut lines = LineBuffer::new(&mut bytes);
        lines.space()[..4].copy_from_slice(b"a\nb\n");
        lines.filled(4);
        assert_eq!(lines.peek(), Some(LineStatus::Message(b"a")));
        assert_eq!(lines.peek(), Some(LineStatus::Message(b"a")));
        // Reading more while a line waits does not change the line.
        let n = lines.space().len();
        assert_eq!(n, 12);
        lines.filled(0);
        assert_eq!(lines.peek(), Some(LineStatus::Message(b"a")));
        lines.consume();
        assert_eq!(lines.peek(), Some(LineStatus::Message(b"b")));
        // Nor does it when the line moves to the front.
        assert_eq!(lines.space().len(), 14);
        assert_eq!(lines.peek(), Some(LineStatus::Message(b"b")));
        lines.consume();
        assert!(lines.is_empty());
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_growing_store_takes_long_lines_up_to_its_limit() {
        const LIMIT: usize = if cfg!(miri) { 5_000 } else { 100_000 };
        let mut lines = LineBuffer::new(Store::growing(LIMIT));
        let line = std::vec![b'x'; LIMIT - 1];
        let mut fed = 0;
        while fed < line.len() {
            let space = lines.space();
            let n = space.len().min(line.len() - fed);
            space[..n].copy_from_slice(&line[fed..fed + n]);
            lines.filled(n);
            fed += n;
            assert_eq!(lines.peek(), None);
        }
        lines.space()[0] = b'\n';
        lines.filled(1);
        assert!(matches!(lines.peek(), Some(LineStatus::Message(line)) if line.len() == LIMIT - 1));
    }
}
