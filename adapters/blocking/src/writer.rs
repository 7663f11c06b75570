//! A blocking writer as a sink: never full, because it waits.

use std::io::{self, ErrorKind, Write};

use mcp_sansio::Full;
use mcp_sansio::sink::{Kind, Mark, Out, Sink};

/// Bytes collected before they are written; a long message is written while it is being made.
const BUFFER: usize = 64 * 1024;

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
}

impl<W: Write> WriterOut<W> {
    /// A sink over `writer`.
    pub const fn new(writer: W) -> Self {
        WriterOut { writer, buffer: Vec::new(), error: None, held: false }
    }

    /// Writes everything that has been collected.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.spill();
            self.note(|writer, _| writer.flush());
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
            Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    fn spill(&mut self) {
        self.note(|writer, buffer| writer.write_all(buffer));
        self.buffer.clear();
    }

    fn note(&mut self, write: impl FnOnce(&mut W, &[u8]) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut self.writer, &self.buffer).err();
        }
    }
}

impl<W: Write> Sink for WriterOut<W> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.spill();
            if bytes.len() > BUFFER {
                self.note(|writer, _| writer.write_all(bytes));
                return Ok(());
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}

impl<W: Write> Out for WriterOut<W> {
    fn begin(&mut self, _: Kind) -> Result<(), Full> {
        if self.held { Err(Full::Now) } else { Ok(()) }
    }

    fn end(&mut self) {
        self.buffer.push(b'\n');
    }

    fn mark(&self) -> Mark {
        Mark::new(self.buffer.len())
    }

    fn roll_back(&mut self, mark: Mark) {
        // Only ever asked for after `Full`, which this sink does not say unless it is held, and then before the first byte.
        self.buffer.truncate(mark.at());
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
