//! A sink over a blocking writer. It is never full, because it waits.

use std::io::{self, ErrorKind, IoSlice, Write};

use mcp_sansio::FullError;
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

/// The buffer, in bytes. A message that exceeds it is written in parts while it is made.
const BUFFER: usize = 64 * 1024;

/// Pieces of at least this size are written from where they are, if the buffer has no room for them.
const LARGE: usize = 4 * 1024;

/// Lines over a blocking writer. It never returns [`FullError`], and a message of any size needs no more memory than the
/// buffer. If a handler panics within a message that is larger, the line that has begun ends there, and is no JSON.
///
/// It keeps the first error and drops everything after it.
///
/// ```
/// use mcp_sansio::server::MessageLimits;
/// use mcp_sansio::service::Service;
/// use mcp_sansio::line_server::LineServer;
/// use mcp_sansio_blocking::WriterOut;
///
/// let (service, mut stdout) = (Service::<()>::new("demo", "1.0"), Vec::new());
/// let mut session = LineServer::growing(MessageLimits::default(), WriterOut::new(&mut stdout));
/// let received = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// session.space()[..received.len()].copy_from_slice(received);
/// session.filled(received.len());
/// session.run(&service, &mut ());
/// session.out.flush();
/// assert!(!session.out.failed());
/// ```
#[derive(Debug)]
pub struct WriterOut<W> {
    writer: W,
    buffer: Vec<u8>,
    error: Option<io::Error>,
    held: bool,
    /// The message in the making must not wait for the rest of the turn.
    prompt: bool,
    /// Only answers are written.
    only_answers: bool,
    /// The start of the message in the making, if it will be dropped.
    dropped: Option<usize>,
    /// The number of bytes that have left the buffer.
    gone: usize,
    /// The last byte that has left the buffer is within a line.
    torn: bool,
}

impl<W: Write> WriterOut<W> {
    /// Makes a sink over `writer`.
    pub const fn new(writer: W) -> Self {
        let buffer = Vec::new();
        WriterOut {
            writer,
            buffer,
            error: None,
            held: false,
            prompt: false,
            only_answers: false,
            dropped: None,
            gone: 0,
            torn: false,
        }
    }

    /// Drops all later notifications and requests to the client. Called at the end of the input, when the client
    /// waits only for answers.
    pub const fn only_answers(&mut self) {
        self.only_answers = true;
    }

    /// Writes the buffered bytes.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.spill();
            if self.error.is_none() {
                self.error = self.writer.flush().err();
            }
        }
    }

    /// Returns whether writing has failed.
    pub const fn failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the result of writing; an error only once. It is no error if the reader closes its end.
    ///
    /// # Errors
    /// The first error of the writer.
    pub fn result(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a piece that the buffer has no room for.
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

    /// Writes the buffer and then `bytes`, in one call if the writer can.
    fn write_both(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = write_all(&mut self.writer, &self.buffer, bytes).err();
        }
        self.gone = self.gone.wrapping_add(self.buffer.len() + bytes.len());
        self.torn = bytes.last().or(self.buffer.last()).is_some_and(|last| *last != b'\n');
        self.buffer.clear();
    }
}

/// Writes both pieces completely.
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
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
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
    fn begin(&mut self, head: MessageHead<'_>) -> Result<(), FullError> {
        if self.held {
            return Err(FullError::Now);
        }
        // The handler may continue for long after this notification.
        self.prompt = matches!(head, MessageHead::Notification | MessageHead::Initialized);
        let drops = self.only_answers && head.is_unasked();
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
        Mark::new(self.gone.wrapping_add(self.buffer.len()))
    }

    fn roll_back(&mut self, mark: Mark) {
        let kept = mark.at().wrapping_sub(self.gone);
        if kept <= self.buffer.len() {
            self.buffer.truncate(kept);
        } else {
            // What is written stays written: whole messages, and the beginning of a large one.
            self.buffer.clear();
            self.buffer.extend(self.torn.then_some(b'\n'));
        }
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

/// Returns whether the other end was closed: pipes and sockets report it with different errors.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::sink::RequestInfo;

    /// A writer that takes `at_once` bytes at most; if they are few, every other call is interrupted.
    struct Slow {
        written: Vec<u8>,
        at_once: usize,
        calls: usize,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }
        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            self.calls += 1;
            if self.at_once < BUFFER && self.calls % 2 == 1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let before = self.written.len();
            for piece in pieces {
                let left = self.at_once - (self.written.len() - before);
                self.written.extend_from_slice(&piece[..piece.len().min(left)]);
            }
            Ok(self.written.len() - before)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn out(at_once: usize) -> WriterOut<Slow> {
        WriterOut::new(Slow { written: Vec::new(), at_once, calls: 0 })
    }

    #[test]
    fn a_buffer_that_is_just_full_is_not_written() {
        let mut out = out(usize::MAX);
        out.put(&[b'a'; BUFFER]).unwrap();
        assert_eq!(out.writer.calls, 0);
        out.put(b"b").unwrap();
        assert_eq!((out.writer.calls, out.writer.written.len(), &out.buffer[..]), (1, BUFFER, &b"b"[..]));
    }

    #[test]
    fn a_large_piece_goes_with_what_waits_in_one_call() {
        let large = [b'x'; BUFFER];
        for (at_once, calls) in [(usize::MAX, 1), (40_000, 4), (1, 2 * (BUFFER + 2))] {
            let mut out = out(at_once);
            out.put(b"ab").unwrap();
            out.put(&large).unwrap();
            assert_eq!((out.writer.calls, out.failed()), (calls, false));
            assert_eq!(out.writer.written, [b"ab", &large[..]].concat());
        }
    }

    /// Small pieces are collected in one allocation; those of some size are not copied when the buffer is full.
    #[test]
    fn pieces_of_some_size_go_around_a_full_buffer() {
        for (size, buffered) in [(LARGE - 1, LARGE - 1), (LARGE, 0), (LARGE + 1, 0)] {
            let mut out = out(usize::MAX);
            assert_eq!((out.room(), out.capacity()), (usize::MAX, usize::MAX));
            for _ in 0..BUFFER - 1 {
                out.put(b"a").unwrap();
            }
            assert_eq!((out.writer.calls, out.buffer.capacity()), (0, BUFFER));
            out.put(&vec![b'b'; size]).unwrap();
            assert_eq!((out.writer.calls, out.buffer.len()), (1, buffered), "{size}");
            assert_eq!(out.writer.written.len(), BUFFER - 1 + size - buffered, "{size}");
            out.flush();
            assert_eq!(out.writer.written, [vec![b'a'; BUFFER - 1], vec![b'b'; size]].concat());
        }
    }

    /// Also after a line that was torn before any of it was in the buffer.
    #[test]
    fn the_buffer_has_its_size_from_the_first_piece_on() {
        for torn in [false, true] {
            let mut out = out(usize::MAX);
            if torn {
                let mark = out.mark();
                out.put(&[b'x'; BUFFER + 1]).unwrap();
                assert_eq!(out.buffer.capacity(), 0);
                out.roll_back(mark);
            }
            out.put(&[b'y'; 100]).unwrap();
            assert_eq!((out.buffer.len(), out.buffer.capacity()), (100 + usize::from(torn), BUFFER));
        }
    }

    /// A writer need not be able to write two pieces at once.
    #[test]
    fn one_piece_is_written_without_a_list() {
        struct Plain(usize);
        impl Write for Plain {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }
            fn write_vectored(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
                panic!("there is one piece")
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = WriterOut::new(Plain(0));
        out.put(b"ab").unwrap();
        out.flush();
        out.put(&[b'x'; BUFFER + 1]).unwrap();
        assert_eq!((out.writer.0, out.failed()), (BUFFER + 3, false));
    }

    /// The writer may have a buffer of its own.
    #[test]
    fn a_writer_is_flushed_after_something_was_written() {
        struct Flushing {
            written: usize,
            flushes: usize,
            fails: [bool; 2],
        }
        impl Write for Flushing {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.written += bytes.len();
                if self.fails[0] { Err(ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                self.flushes += 1;
                if self.fails[1] { Err(ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
            }
        }
        let (none, full, quota) = (Ok(()), Err(ErrorKind::StorageFull), Err(ErrorKind::QuotaExceeded));
        for (fails, flushes, result) in
            [([false, false], 1, none), ([false, true], 1, quota), ([true, false], 0, full), ([true, true], 0, full)]
        {
            let mut out = WriterOut::new(Flushing { written: 0, flushes: 0, fails });
            out.flush();
            assert_eq!(out.writer.flushes, 0);
            for kind in [MessageHead::Result, MessageHead::Request(&RequestInfo::new(0, "ping"))] {
                out.begin(kind).unwrap();
                out.put(b"{}").unwrap();
                out.end();
                assert_eq!((out.writer.written, out.writer.flushes), (0, 0));
            }
            // A notification is not left to wait.
            out.begin(MessageHead::Notification).unwrap();
            out.put(b"{}").unwrap();
            out.end();
            assert_eq!((out.writer.written, out.writer.flushes, out.failed()), (9, flushes, result.is_err()));
            assert_eq!(out.result().map_err(|error| error.kind()), result);
            assert!(out.result().is_ok() && !out.failed(), "an error is reported once");
        }
    }

    #[test]
    fn only_answers_are_written_after_the_end_of_the_input() {
        let kinds = [
            MessageHead::Notification,
            MessageHead::Request(&RequestInfo::new(0, "ping")),
            MessageHead::Result,
            MessageHead::Error(1),
        ];
        for (only_answers, lines) in [(false, "ab\nab\nab\nab\n"), (true, "ab\nab\n")] {
            let mut out = out(usize::MAX);
            if only_answers {
                out.only_answers();
            }
            for kind in kinds {
                out.begin(kind).unwrap();
                out.put(b"a").unwrap();
                out.put(b"b").unwrap();
                out.end();
            }
            out.flush();
            assert_eq!(out.writer.written, lines.as_bytes());
        }
    }

    #[test]
    fn a_writer_that_fails_or_takes_nothing_has_failed() {
        for (at_once, kind) in [(0, ErrorKind::WriteZero), (1, ErrorKind::StorageFull)] {
            struct Broken(usize, ErrorKind);
            impl Write for Broken {
                fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                    if self.0 == 0 { Ok(0) } else { Err(self.1.into()) }
                }
                fn flush(&mut self) -> io::Result<()> {
                    Ok(())
                }
            }
            let mut out = WriterOut::new(Broken(at_once, kind));
            out.put(b"ab").unwrap();
            out.put(&[b'x'; BUFFER]).unwrap();
            assert_eq!(out.result().map_err(|error| error.kind()), Err(kind));
        }
    }

    /// The next line begins at its beginning, whatever of those before it was written.
    #[test]
    fn rolling_back_leaves_whole_lines() {
        for (size, line) in
            [(10, true), (10, false), (BUFFER, true), (BUFFER, false), (2 * BUFFER, true), (2 * BUFFER, false)]
        {
            let mut out = out(usize::MAX);
            let mark = out.mark();
            out.roll_back(mark);
            out.begin(MessageHead::Request(&RequestInfo::new(0, "ping"))).unwrap();
            out.put(b"{").unwrap();
            out.put(&vec![b'x'; size]).unwrap();
            if line {
                out.end();
            }
            out.roll_back(mark);
            out.begin(MessageHead::Result).unwrap();
            out.put(b"next").unwrap();
            out.end();
            out.flush();
            let text = String::from_utf8(out.writer.written).unwrap();
            let begun = if size < BUFFER { String::new() } else { format!("{{{}\n", "x".repeat(size)) };
            assert_eq!(text, begun + "next\n", "{size} {line}");
        }
    }

    #[test]
    fn rolling_back_leaves_the_lines_before() {
        let mut out = out(usize::MAX);
        out.put(b"first\n").unwrap();
        for dropped in [&b""[..], b"second"] {
            let mark = out.mark();
            out.put(dropped).unwrap();
            out.roll_back(mark);
            assert_eq!(out.buffer, b"first\n");
        }
    }

    #[test]
    fn nothing_begins_while_it_is_held() {
        let mut out = out(usize::MAX);
        out.hold(true);
        assert_eq!((out.held(), out.begin(MessageHead::Result)), (true, Err(FullError::Now)));
        out.hold(false);
        assert_eq!((out.held(), out.begin(MessageHead::Result)), (false, Ok(())));
    }
}
