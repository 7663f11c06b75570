//! The stderr of a server's process: it is always read, and a limited part is kept.

use std::fmt;
use std::process::Stdio;

use mcp_sansio::client::TransportError;

/// The use of the text that a server writes to its
/// [stderr](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio). A pipe is always read:
/// a server that writes much would block on a full pipe.
#[non_exhaustive]
pub enum Stderr<L> {
    /// The text goes to the stderr of this program.
    Inherit,
    /// The text is dropped.
    Null,
    /// The text is read; its last lines become part of errors.
    Keep,
    /// As [`Keep`](Stderr::Keep), and each line is given to this function, without its line end. Lines longer than 8
    /// KiB come in pieces.
    Lines(L),
}

impl<L> fmt::Debug for Stderr<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stderr::Inherit => "Inherit",
            Stderr::Null => "Null",
            Stderr::Keep => "Keep",
            Stderr::Lines(_) => "Lines",
        })
    }
}

/// The limit of a line, in bytes.
const LINE: usize = 8 * 1024;

/// The length of the end that is kept for errors, in bytes.
const TAIL: usize = 1024;

/// Takes the bytes that come through a pipe from a server's stderr.
pub struct StderrLog<L> {
    to: Stderr<L>,
    line: Vec<u8>,
    tail: Vec<u8>,
}

impl<L: FnMut(&[u8])> StderrLog<L> {
    /// Makes an empty log.
    pub const fn new(to: Stderr<L>) -> Self {
        StderrLog { to, line: Vec::new(), tail: Vec::new() }
    }

    /// Returns the setting to start the process with.
    pub fn stdio(&self) -> Stdio {
        match self.to {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Null => Stdio::null(),
            Stderr::Keep | Stderr::Lines(_) => Stdio::piped(),
        }
    }

    /// Takes bytes from the pipe.
    pub fn take(&mut self, bytes: &[u8]) {
        self.remember(bytes);
        if !matches!(self.to, Stderr::Lines(_)) {
            return;
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.add(end);
                    self.tell();
                }
                None => self.add(piece),
            }
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        let (_, last) = bytes.split_at(bytes.len().saturating_sub(TAIL));
        let kept = TAIL - last.len();
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        self.tail.extend_from_slice(last);
    }

    fn add(&mut self, mut piece: &[u8]) {
        while self.line.len() + piece.len() > LINE {
            let (now, later) = piece.split_at(LINE - self.line.len());
            self.line.extend_from_slice(now);
            self.tell();
            piece = later;
        }
        self.line.extend_from_slice(piece);
    }

    fn tell(&mut self) {
        if let Stderr::Lines(tell) = &mut self.to {
            tell(self.line.strip_suffix(b"\r").unwrap_or(&self.line));
        }
        self.line.clear();
    }

    /// Takes the end of the pipe: a line without its end is given out.
    pub fn end(&mut self) {
        if !self.line.is_empty() {
            self.tell();
        }
    }

    /// Forgets the last lines: another process begins.
    pub(crate) fn start_again(&mut self) {
        self.end();
        self.tail.clear();
    }

    /// Returns the last lines, for an error.
    #[must_use]
    pub fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim();
        // A line whose beginning was cut off does not help the reader.
        match (self.tail.len() == TAIL, text.split_once('\n')) {
            (true, Some((_, rest))) => rest.trim().to_owned(),
            _ => text.to_owned(),
        }
    }

    /// Adds the last lines to `known`, if they may explain the loss.
    pub(crate) fn explain(&self, why: TransportError, known: String) -> String {
        let words = self.last_words();
        if words.is_empty()
            || !matches!(why, TransportError::Closed | TransportError::Unsent | TransportError::TimedOut)
        {
            return known;
        }
        let comma = if known.is_empty() { "" } else { ", " };
        format!("{known}{comma}after it wrote to stderr: {words}")
    }
}

mcp_sansio::debug_fields!(impl<L> for StderrLog<L> { to });

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines and the kept end are the same for every way to cut the bytes.
    #[test]
    fn lines() {
        let text = format!("one\r\n\ntwo\n{}\n{}\nrest", "x".repeat(LINE + 1), "y".repeat(LINE));
        let whole = ["one", "", "two", &"x".repeat(LINE), "x", &"y".repeat(LINE), "rest"];
        for cut in [1, 2, 5, 8_192, 10_000] {
            let mut told = Vec::new();
            let mut log = StderrLog::new(Stderr::Lines(|line: &[u8]| told.push(line.to_vec())));
            text.as_bytes().chunks(cut).for_each(|piece| log.take(piece));
            log.end();
            assert!(told.iter().eq(whole.iter().map(|line| line.as_bytes())), "{cut}");
        }
    }

    #[test]
    fn last_words() {
        let mut log = StderrLog::new(Stderr::<fn(&[u8])>::Keep);
        log.take(b" hello\nthere \n");
        assert_eq!(log.last_words(), "hello\nthere");
        for piece in [700, 700] {
            log.take(&b"y".repeat(piece));
            log.take(b"\nin the end\n");
        }
        assert_eq!(log.last_words(), format!("in the end\n{}\nin the end", "y".repeat(700)));
        log.take(&b"z".repeat(5_000));
        assert_eq!(log.last_words(), "z".repeat(TAIL));
    }

    #[test]
    fn an_error_is_explained_by_the_last_words() {
        let mut log = StderrLog::new(Stderr::<fn(&[u8])>::Keep);
        assert_eq!(log.explain(TransportError::Closed, "it ended".into()), "it ended");
        log.take(b"no disk\n");
        let explained = |why, known: &str| log.explain(why, known.into());
        assert_eq!(explained(TransportError::Closed, "it ended"), "it ended, after it wrote to stderr: no disk");
        assert_eq!(explained(TransportError::TimedOut, ""), "after it wrote to stderr: no disk");
        assert_eq!(explained(TransportError::TooLarge, "it ended"), "it ended");
        assert_eq!(explained(TransportError::TooLarge, ""), "");
        log.start_again();
        assert_eq!(
            (log.last_words(), log.explain(TransportError::Closed, String::new())),
            (String::new(), String::new())
        );
    }

    #[test]
    fn the_beginning_of_a_line_that_was_cut_is_left_out() {
        for (size, last) in [(TAIL - 5, "yyyy"), (TAIL - 6, "x")] {
            let mut log = StderrLog::new(Stderr::<fn(&[u8])>::Keep);
            let x = "x".repeat(size);
            log.take(format!("{x}\nyyyy").as_bytes());
            let expected = if last == "x" { format!("{x}\nyyyy") } else { last.to_owned() };
            assert_eq!(log.last_words(), expected, "{size}");
        }
    }

    #[test]
    fn the_end_gives_out_the_rest_of_a_line_once() {
        let mut told = Vec::new();
        let mut log = StderrLog::new(Stderr::Lines(|line: &[u8]| told.push(line.to_vec())));
        log.end();
        log.take(b"one");
        log.start_again();
        log.take(b"two\n");
        log.end();
        drop(log);
        assert_eq!(told, [b"one", b"two"]);
    }
}
