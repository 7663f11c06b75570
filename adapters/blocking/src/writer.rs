//! A blocking writer as a sink: never full, because it waits.

use std::io::{self, ErrorKind, IoSlice, Write};

use mcp_sansio::Full;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

/// Bytes collected before they are written; a long message is written while it is being made, a notification at its end.
const BUFFER: usize = 64 * 1024;

/// A piece that is not copied into the buffer if there is no room for it.
const LARGE: usize = 4 * 1024;

/// Lines over a blocking writer. It never says [`Full`], so nothing is ever taken back from it, and a message of any
/// size needs no more memory than its buffer.
///
/// The first error is kept; what comes after it is dropped.
#[derive(Debug)]
pub struct WriterOut<W> {
    writer: W,
    buffer: Vec<u8>,
    error: Option<io::Error>,
    held: bool,
    /// What is being written is not to wait for the rest of the turn.
    prompt: bool,
    /// Only answers are written.
    only_answers: bool,
    /// Where the message begins that is being made and will be dropped.
    dropped: Option<usize>,
}

impl<W: Write> WriterOut<W> {
    /// A sink over `writer`.
    pub const fn new(writer: W) -> Self {
        let buffer = Vec::new();
        WriterOut { writer, buffer, error: None, held: false, prompt: false, only_answers: false, dropped: None }
    }

    /// From here on drops every notification and every request to the client: for after the end of the input, when the
    /// client only waits for what it is owed.
    pub const fn only_answers(&mut self) {
        self.only_answers = true;
    }

    /// Writes everything that has been collected.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.spill();
            if self.error.is_none() {
                self.error = self.writer.flush().err();
            }
        }
    }

    /// Whether writing has failed.
    pub const fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// What writing has failed with, once; a reader that has gone away is no error.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn result(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// What the buffer has no room for.
    #[cold]
    fn put_more(&mut self, bytes: &[u8]) {
        if let Some(start) = self.dropped {
            return self.buffer.truncate(start);
        }
        if self.buffer.len() + bytes.len() <= BUFFER {
            self.buffer.reserve_exact(BUFFER - self.buffer.len());
        } else if bytes.len() >= LARGE {
            return self.write_both(bytes);
        } else {
            self.spill();
        }
        self.buffer.extend_from_slice(bytes);
    }

    fn spill(&mut self) {
        self.write_both(&[]);
    }

    /// Writes the buffer and what comes behind it, in one call if the writer can.
    fn write_both(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = write_all(&mut self.writer, &self.buffer, bytes).err();
        }
        self.buffer.clear();
    }
}

/// Writes one piece after the other.
fn write_all(writer: &mut impl Write, mut first: &[u8], mut second: &[u8]) -> io::Result<()> {
    while !first.is_empty() && !second.is_empty() {
        match writer.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                let behind = n.saturating_sub(first.len());
                first = first.get(n..).unwrap_or_default();
                second = second.get(behind..).unwrap_or_default();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    writer.write_all(first)?;
    writer.write_all(second)
}

impl<W: Write> Sink for WriterOut<W> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.buffer.capacity() - self.buffer.len() {
            self.put_more(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

impl<W: Write> Out for WriterOut<W> {
    fn begin(&mut self, kind: Kind) -> Result<(), Full> {
        if self.held {
            return Err(Full::Now);
        }
        // The handler that tells its progress may go on for long.
        self.prompt = kind == Kind::Notification;
        let drops = self.only_answers && matches!(kind, Kind::Notification | Kind::Request);
        self.dropped = drops.then_some(self.buffer.len());
        Ok(())
    }

    fn end(&mut self) {
        if let Some(start) = self.dropped.take() {
            return self.buffer.truncate(start);
        }
        let _ = self.put(b"\n");
        if self.prompt {
            self.flush();
        }
    }

    fn mark(&self) -> Mark {
        Mark::new(self.buffer.len())
    }

    fn roll_back(&mut self, mark: Mark) {
        // Only ever asked for after `Full`, which this sink does not say unless it is held, and then before the first byte.
        self.buffer.truncate(mark.at());
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

/// Whether the other end has gone away: over a pipe the one, over a socket the other.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}
