//! What a server's process says on stderr: always read, kept within bounds.

use std::borrow::ToOwned;
use std::fmt;
use std::format;
use std::process::Stdio;
use std::string::String;
use std::vec::Vec;

use crate::client::Lost;

/// What becomes of what a server writes to its stderr. It is always read, so that a talkative server does not hang.
#[non_exhaustive]
pub enum Stderr<L> {
    /// It goes where this program's stderr goes.
    Inherit,
    /// It is thrown away.
    Null,
    /// It is read; the end of it becomes part of errors.
    Keep,
    /// As [`Keep`](Stderr::Keep), and each line is given to this, without its end. Lines longer than 8 KiB come in
    /// pieces.
    Lines(L),
}

impl<L> Stderr<L> {
    /// What the process is started with.
    pub fn stdio(&self) -> Stdio {
        match self {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Null => Stdio::null(),
            Stderr::Keep | Stderr::Lines(_) => Stdio::piped(),
        }
    }
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

/// The most of a line that is kept.
const LINE: usize = 8 * 1024;

/// How much of the end is kept for errors.
const TAIL: usize = 1024;

/// Takes what comes through a pipe from a server's stderr.
pub struct StderrLog<L> {
    to: Stderr<L>,
    line: Vec<u8>,
    tail: Vec<u8>,
}

impl<L: FnMut(&[u8])> StderrLog<L> {
    /// Nothing has come.
    pub const fn new(to: Stderr<L>) -> Self {
        StderrLog { to, line: Vec::new(), tail: Vec::new() }
    }

    /// This has come.
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

    /// Nothing more comes.
    pub fn end(&mut self) {
        if !self.line.is_empty() {
            self.tell();
        }
    }

    /// The last lines, for an error.
    #[must_use]
    pub fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim();
        // A line that was cut off at its beginning says little.
        match (self.tail.len() == TAIL, text.split_once('\n')) {
            (true, Some((_, rest))) => rest.trim().to_owned(),
            _ => text.to_owned(),
        }
    }

    /// Adds the last words to what is known about a loss, if they may say why.
    #[must_use]
    pub fn explain(&self, why: Lost, known: String) -> String {
        let words = self.last_words();
        if words.is_empty() || !matches!(why, Lost::Closed | Lost::TimedOut) {
            return known;
        }
        let comma = if known.is_empty() { "" } else { ", " };
        format!("{known}{comma}after it wrote to stderr: {words}")
    }
}

impl<L> fmt::Debug for StderrLog<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrLog").field("to", &self.to).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of it, however it is cut.
    #[test]
    fn lines() {
        let text = format!("one\r\n\ntwo\n{}\nrest", "x".repeat(LINE + 1));
        let whole = ["one", "", "two", &"x".repeat(LINE), "x", "rest"];
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
}
