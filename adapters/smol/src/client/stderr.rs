//! What a server says on stderr: always read, kept within bounds.

use std::fmt;
use std::process::Stdio;

/// What becomes of what a server writes to its stderr. It is always read, so that a talkative server does not hang.
#[non_exhaustive]
pub enum Stderr {
    /// It goes where this program's stderr goes.
    Inherit,
    /// It is thrown away.
    Null,
    /// It is read; the end of it becomes part of errors.
    Keep,
    /// As [`Keep`](Stderr::Keep), and each line is given to this, without its end. Lines longer than 8 KiB come in
    /// pieces. It is called by the driver and must not wait.
    Lines(OnLine),
}

/// What is given each line of a server's stderr.
pub type OnLine = Box<dyn FnMut(&[u8]) + Send>;

impl Stderr {
    pub(super) fn stdio(&self) -> Stdio {
        match self {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Null => Stdio::null(),
            Stderr::Keep | Stderr::Lines(_) => Stdio::piped(),
        }
    }
}

impl fmt::Debug for Stderr {
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

/// Takes what comes.
#[derive(Debug)]
pub(super) struct Log {
    to: Stderr,
    line: Vec<u8>,
    tail: Vec<u8>,
}

impl Log {
    pub(super) const fn new(to: Stderr) -> Self {
        Log { to, line: Vec::new(), tail: Vec::new() }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        let kept = TAIL - last.len();
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        self.tail.extend_from_slice(last);
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
    pub(super) fn end(&mut self) {
        if !self.line.is_empty() {
            self.tell();
        }
    }

    /// The last lines, for an error.
    pub(super) fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim();
        // A line that was cut off at its beginning says little.
        match (self.tail.len() == TAIL, text.split_once('\n')) {
            (true, Some((_, rest))) => rest.trim().to_owned(),
            _ => text.to_owned(),
        }
    }
}
