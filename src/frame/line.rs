//! Newline framing: one message a line, as on stdio and on serial lines.

use crate::sink::move_down;
use crate::small::find;
use crate::store::Store;

/// What [`LineBuffer::peek`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Line<'b> {
    /// A line without its newline, and without a carriage return before it.
    Message(&'b [u8]),
    /// A line longer than the buffer. It is skipped up to its newline; `start` is as much of it as was kept, and
    /// may not even begin a JSON value.
    TooLong {
        /// The first bytes of the line.
        start: &'b [u8],
    },
}

/// Collects bytes until a line is whole. Plain data: a read that is cancelled half way loses nothing.
///
/// Read into [`space`](LineBuffer::space), say with [`filled`](LineBuffer::filled) how much came, then handle what
/// [`peek`](LineBuffer::peek) gives and [`consume`](LineBuffer::consume) it. The same line comes back until it is
/// consumed, so that a full sink loses no message. Blank lines are skipped. The limit on a line is the store's size.
///
/// ```
/// use mcp_sansio::frame::{Line, LineBuffer};
/// let mut bytes = [0; 32];
/// let mut lines = LineBuffer::new(&mut bytes);
/// let input = b"{\"a\":1}\r\n{\"b\"";
/// lines.space()[..input.len()].copy_from_slice(input); // or a read of any size
/// lines.filled(input.len());
/// assert_eq!(lines.peek(), Some(Line::Message(b"{\"a\":1}")));
/// lines.consume();
/// assert_eq!(lines.peek(), None); // the rest has no newline yet
/// ```
#[derive(Debug)]
pub struct LineBuffer<'m> {
    store: Store<'m>,
    /// First byte that is not consumed.
    start: usize,
    /// End of what was read.
    end: usize,
    /// No newline before here: nothing is searched twice.
    searched: usize,
    /// Position of the newline of the line at `start`, if it was found.
    newline: Option<usize>,
    /// The rest of a line that was too long is being dropped.
    skipping: bool,
    /// Bytes at `start` kept of a line that is too long and has not been consumed.
    too_long: Option<usize>,
}

/// How much is read at once where the store grows; more where a long line shows that it is worth it.
const CHUNK: usize = 16 * 1024;

impl<'m> LineBuffer<'m> {
    /// An empty buffer over `store`.
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

    /// Where to read to. Empty only while lines wait to be consumed.
    pub fn space(&mut self) -> &mut [u8] {
        self.make_room();
        self.store.bytes_mut().get_mut(self.end..).unwrap_or(&mut [])
    }

    /// Says that `n` bytes were read into [`space`](LineBuffer::space).
    pub fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(self.store.bytes().len());
    }

    /// The line at hand, the same one until it is consumed; `None` if more bytes are needed.
    pub fn peek(&mut self) -> Option<Line<'_>> {
        let found = if self.too_long.is_some() { true } else { self.find() };
        if !found {
            return None;
        }
        Some(match self.too_long {
            Some(kept) => Line::TooLong { start: self.bytes(self.start, self.start + kept) },
            None => Line::Message(trim(self.bytes(self.start, self.newline?))),
        })
    }

    /// Drops the line that [`peek`](LineBuffer::peek) gave.
    pub fn consume(&mut self) {
        if let Some(kept) = self.too_long.take() {
            self.start += kept;
        } else if let Some(newline) = self.newline.take() {
            self.start = newline + 1;
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        // Not `clamp`, which can panic.
        self.searched = self.searched.max(self.start).min(self.end);
    }

    /// What is left without a newline, for the end of the input: some peers do not end their last line.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        if self.skipping { &[] } else { trim(self.bytes(self.start, self.end)) }
    }

    /// Whether everything that was read has been consumed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Forgets everything that was read.
    pub fn clear(&mut self) {
        (self.start, self.end, self.searched) = (0, 0, 0);
        (self.newline, self.skipping, self.too_long) = (None, false, None);
    }

    /// What was read from `from` up to `to`.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.store.bytes().get(from..to).unwrap_or(&[])
    }

    /// Looks for the next line that is not blank.
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
        self.searched = self.newline.map_or(self.end, |newline| newline + 1);
        self.newline.is_some()
    }

    /// A buffer that is full and has no newline holds the start of a line that is too long.
    fn overflows(&mut self) -> bool {
        let full = self.start == 0 && self.end == self.store.limit() && self.end > 0;
        if full && self.skipping {
            (self.start, self.end, self.searched) = (0, 0, 0);
        } else if full {
            self.too_long = Some(self.end);
            self.skipping = true;
            return true;
        }
        if self.skipping && self.newline.is_none() {
            // Nothing of the rest is needed.
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
        if self.end == self.store.bytes().len() && self.end < self.store.limit() {
            // Doubles up to the limit.
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

    /// Feeds `input` in pieces of `step` bytes and tells what came out.
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
                        Line::Message(line) => String::from_utf8_lossy(line).to_string(),
                        Line::TooLong { start } => std::format!("<{}", start.len()),
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

    #[test]
    fn the_same_line_until_consumed() {
        let mut bytes = [0; 16];
        let mut lines = LineBuffer::new(&mut bytes);
        lines.space()[..4].copy_from_slice(b"a\nb\n");
        lines.filled(4);
        assert_eq!(lines.peek(), Some(Line::Message(b"a")));
        assert_eq!(lines.peek(), Some(Line::Message(b"a")));
        // Reading on while a line waits does not disturb it.
        let n = lines.space().len();
        assert_eq!(n, 12);
        lines.filled(0);
        assert_eq!(lines.peek(), Some(Line::Message(b"a")));
        lines.consume();
        assert_eq!(lines.peek(), Some(Line::Message(b"b")));
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_growing_store_takes_long_lines_up_to_its_limit() {
        let mut lines = LineBuffer::new(Store::growing(100_000));
        let line = std::vec![b'x'; 99_999];
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
        assert!(matches!(lines.peek(), Some(Line::Message(line)) if line.len() == 99_999));
    }
}
