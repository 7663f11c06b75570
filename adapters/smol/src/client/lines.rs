//! Lines over a reader and a writer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::client::{ClientHandler, ClientInfo};
use mcp_sansio::server::Millis;

use super::alarm::Alarm;
use super::{ChildExit, ClientOptions, Trace, Transport, TransportState};
use crate::interrupted::retry;

/// The messages of a client.
type Lines = mcp_sansio_host::LineSession<'static, Trace>;

/// A reader and a writer. Dropping the future that polls them loses no bytes.
pub(super) struct LineLink<R, W> {
    pub(super) reader: Option<R>,
    pub(super) writer: Option<W>,
    /// Bytes were written but not flushed.
    dirty: bool,
    alarm: Alarm,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// There is nothing to read now.
    Nothing,
    /// There may be more.
    Bytes,
    /// Bytes, and the reader wakes the driver when there is more.
    Last,
    /// The reader is at its end.
    End,
}

impl Got {
    /// Returns the number of bytes for a session, which only asks whether there are any.
    pub(super) const fn read(self) -> Option<usize> {
        match self {
            Got::Nothing => None,
            Got::Bytes | Got::Last => Some(1),
            Got::End => Some(0),
        }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineLink<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        LineLink { reader: Some(reader), writer: Some(writer), dirty: false, alarm: Alarm::new() }
    }

    /// Writes as much as the writer takes.
    pub(super) fn poll_write(&mut self, lines: &mut Lines, cx: &mut Context<'_>) {
        let Some(writer) = &mut self.writer else { return lines.writer_failed() };
        while let Some(pending) = lines.pending() {
            match retry(|| Pin::new(&mut *writer).poll_write(cx, pending)) {
                Poll::Ready(Ok(n)) if n > 0 => {
                    lines.sent(n);
                    self.dirty = true;
                }
                Poll::Ready(_) => return self.lose_writer(lines),
                Poll::Pending => return,
            }
        }
        if self.dirty {
            match retry(|| Pin::new(&mut *writer).poll_flush(cx)) {
                Poll::Ready(Ok(())) => self.dirty = false,
                Poll::Ready(Err(_)) => self.lose_writer(lines),
                Poll::Pending => {}
            }
        }
    }

    fn lose_writer(&mut self, lines: &mut Lines) {
        self.writer = None;
        lines.writer_failed();
    }

    /// Notes that the reader may have something, even if it has not woken the driver.
    pub(super) fn look_again(&self) {
        self.alarm.ring();
    }

    /// Reads what there is, in two reads at most.
    pub(super) fn poll_read(&mut self, lines: &mut Lines, cx: &Context<'_>) -> Got {
        let mut got = Got::Nothing;
        // Twice: after a read that was not full the reader only has to wake the driver, in the same turn.
        for _ in 0..2 {
            let Some(reader) = &mut self.reader else { return Got::End };
            let space = lines.space();
            match self.alarm.poll(cx, |cx| retry(|| Pin::new(&mut *reader).poll_read(cx, space))) {
                Poll::Ready(Ok(n)) if n > 0 => {
                    let full = n == space.len();
                    lines.filled(n);
                    got = Got::Bytes;
                    if full {
                        break;
                    }
                }
                Poll::Ready(_) => self.reader = None,
                Poll::Pending if got == Got::Bytes => return Got::Last,
                Poll::Pending => return Got::Nothing,
            }
        }
        got
    }
}

/// A server at the other end of a reader and a writer: a socket, a serial line, a program that is running already.
///
/// ```no_run
/// use mcp_sansio::client::ClientInfo;
/// use mcp_sansio_smol::client::{Client, Ignore, StreamTransport};
///
/// static PROFILE: ClientInfo<'static> = ClientInfo::new("demo", "1.0");
///
/// # async fn example() -> std::io::Result<()> {
/// let socket = smol::net::unix::UnixStream::connect("/run/server.sock").await?;
/// let (client, driver) = Client::new(StreamTransport::new(socket.clone(), socket, &PROFILE), Ignore);
/// # let _ = (client, driver);
/// # Ok(())
/// # }
/// ```
pub struct StreamTransport<R, W> {
    lines: Lines,
    link: LineLink<R, W>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> StreamTransport<R, W> {
    /// Makes a client's end of this reader and writer.
    pub fn new(reader: R, writer: W, info: &'static ClientInfo<'static>) -> Self {
        StreamTransport::with(reader, writer, info, &ClientOptions::DEFAULT)
    }

    /// Makes a client's end of this reader and writer, with other times and limits.
    pub fn with(reader: R, writer: W, info: &'static ClientInfo<'static>, options: &ClientOptions) -> Self {
        StreamTransport { lines: Lines::new(info, options), link: LineLink::new(reader, writer) }
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Transport for StreamTransport<R, W> {
    fn state(&self) -> &dyn TransportState<'static, Trace> {
        &self.lines
    }

    fn state_mut(&mut self) -> &mut dyn TransportState<'static, Trace> {
        &mut self.lines
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        let (owing, mut more) = (self.lines.is_owing(), false);
        if self.lines.wants_input() {
            let got = self.link.poll_read(&mut self.lines, cx);
            self.lines.found(got.read(), now);
            more = got == Got::Bytes;
        }
        self.lines.run(now, handler);
        self.link.poll_write(&mut self.lines, cx);
        more || owing && !self.lines.is_owing()
    }

    fn begin_close(&mut self, _: Millis) {
        self.lines.close();
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        if let Some(writer) = &mut self.link.writer {
            // The pending bytes were written as far as possible. A close that takes time is left to the system.
            let _ = Pin::new(writer).poll_close(cx);
        }
        Poll::Ready(None)
    }
}

mcp_sansio::debug_fields!(impl<R, W> for StreamTransport<R, W> { lines });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Direction, Ignore};
    use mcp_sansio::client::{Request, TransportError};
    use mcp_sansio::revision::Revision;
    use std::collections::VecDeque;
    use std::io;
    use std::sync::{Arc, Mutex};
    use std::task::Waker;

    static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

    /// Sends the same line again and again.
    struct Flood {
        line: &'static [u8],
        at: usize,
    }

    impl AsyncRead for Flood {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
            for byte in space.iter_mut() {
                *byte = self.line[self.at];
                self.at = (self.at + 1) % self.line.len();
            }
            Poll::Ready(Ok(space.len()))
        }
    }

    /// Takes bytes while it is open.
    #[derive(Default)]
    struct Gate {
        is_open: bool,
        written: usize,
        flushed: usize,
    }

    impl AsyncWrite for Gate {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            if !self.is_open {
                return Poll::Pending;
            }
            self.written += bytes.len();
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushed = self.written;
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_flush(cx)
        }
    }

    /// Sends requests and reads no answers: at a limit it is not read any more, until it reads.
    #[test]
    fn a_server_that_does_not_take_its_answers_is_not_read() {
        let id = "x".repeat(1000);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n").leak();
        let mut transport = StreamTransport::new(Flood { line: line.as_bytes(), at: 0 }, Gate::default(), &PROFILE);
        transport.state_mut().handle().client.connect_as(Revision::V2025_11_25);
        let cx = &mut Context::from_waker(Waker::noop());
        while transport.poll_run(0, cx, &mut Ignore) {
            assert!(pending(&mut transport) < 100 << 20, "it is read without end");
        }
        assert!(transport.lines.is_owing());
        transport.link.writer.as_mut().unwrap().is_open = true;
        assert!(transport.poll_run(0, cx, &mut Ignore), "it is read again");
    }

    fn pending<R, W>(transport: &mut StreamTransport<R, W>) -> usize {
        transport.lines.pending().map_or(0, <[u8]>::len)
    }

    #[test]
    fn what_is_written_is_flushed() {
        let gate = Gate { is_open: true, ..Gate::default() };
        let mut transport = StreamTransport::new(Flood { line: b"\n", at: 0 }, gate, &PROFILE);
        transport.state_mut().handle().client.connect();
        transport.poll_run(0, &mut Context::from_waker(Waker::noop()), &mut Ignore);
        let gate = transport.link.writer.as_ref().unwrap();
        assert!(gate.written > 0 && gate.flushed == gate.written);
    }

    /// A reader and writer that does the steps of a test, one at each call, and then nothing.
    #[derive(Default)]
    struct Steps {
        /// Bytes to read: none is the end of the input; `None` is an error.
        reads: VecDeque<Option<&'static str>>,
        /// The number of bytes that are taken: `None` is an error. At the end, all are.
        writes: VecDeque<Option<usize>>,
        flushes: VecDeque<Poll<bool>>,
        read: usize,
        written: String,
        flushed: usize,
    }

    impl AsyncRead for Steps {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
            self.read += 1;
            match self.reads.pop_front() {
                Some(Some(text)) => {
                    space[..text.len()].copy_from_slice(text.as_bytes());
                    Poll::Ready(Ok(text.len()))
                }
                Some(None) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => Poll::Pending,
            }
        }
    }

    impl AsyncWrite for Steps {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let n = match self.writes.pop_front() {
                Some(Some(n)) => n.min(bytes.len()),
                Some(None) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                None => bytes.len(),
            };
            self.written.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
            Poll::Ready(Ok(n))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushed += 1;
            match self.flushes.pop_front() {
                Some(Poll::Pending) => Poll::Pending,
                Some(Poll::Ready(false)) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Some(Poll::Ready(true)) | None => Poll::Ready(Ok(())),
            }
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// The steps of a writer and of its flushes.
    type Writes = (&'static [Option<usize>], &'static [Poll<bool>]);

    type Scripted = StreamTransport<Steps, Steps>;

    fn reading(reads: &[Option<&'static str>]) -> Scripted {
        let reader = Steps { reads: reads.iter().copied().collect(), ..Steps::default() };
        StreamTransport::new(reader, Steps::default(), &PROFILE)
    }

    fn writing(writes: &[Option<usize>], flushes: &[Poll<bool>]) -> Scripted {
        let (writes, flushes) = (writes.iter().copied().collect(), flushes.iter().copied().collect());
        StreamTransport::new(Steps::default(), Steps { writes, flushes, ..Steps::default() }, &PROFILE)
    }

    fn run(transport: &mut Scripted, now: Millis) -> bool {
        transport.poll_run(now, &mut Context::from_waker(Waker::noop()), &mut Ignore)
    }

    fn read<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(transport: &mut StreamTransport<R, W>) -> Got {
        transport.link.poll_read(&mut transport.lines, &Context::from_waker(Waker::noop()))
    }

    fn explained(transport: &Scripted) -> String {
        transport.state().explain(TransportError::Closed)
    }

    /// After a read that was not full the reader only has to wake the driver.
    #[test]
    fn a_turn_reads_twice_and_says_whether_there_may_be_more() {
        let reads: [(&[Option<&'static str>], [Got; 2]); 6] = [
            (&[], [Got::Nothing, Got::Nothing]),
            (&[Some("a")], [Got::Last, Got::Nothing]),
            (&[Some("a"), Some("b")], [Got::Bytes, Got::Nothing]),
            (&[Some("a"), Some("")], [Got::Bytes, Got::End]),
            (&[Some("")], [Got::End, Got::End]),
            (&[None], [Got::End, Got::End]),
        ];
        for (reads, expected) in reads {
            let mut transport = reading(reads);
            assert_eq!([(); 2].map(|()| read(&mut transport)), expected, "{reads:?}");
        }
        // One that has not woken the driver is not read again.
        let mut transport = reading(&[Some("a")]);
        assert_eq!([(); 2].map(|()| read(&mut transport)), [Got::Last, Got::Nothing]);
        assert_eq!(transport.link.reader.as_ref().unwrap().read, 2);
        transport.link.look_again();
        assert_eq!((read(&mut transport), transport.link.reader.as_ref().unwrap().read), (Got::Nothing, 3));
        let mut flood = StreamTransport::new(Flood { line: b"\n", at: 0 }, Gate::default(), &PROFILE);
        assert_eq!(read(&mut flood), Got::Bytes);
    }

    #[test]
    fn a_turn_asks_for_another_one_if_there_may_be_more() {
        for (reads, more) in [(vec![], false), (vec![Some("\n")], false), (vec![Some("\n"), Some("\n")], true)] {
            assert_eq!(run(&mut reading(&reads), 0), more, "{reads:?}");
        }
    }

    #[test]
    fn the_end_of_a_stream_is_explained_and_it_is_not_read_again() {
        for end in [Some(""), None] {
            let mut transport = reading(&[end, Some("late")]);
            transport.state_mut().handle().client.connect();
            assert_eq!(explained(&transport), "");
            run(&mut transport, 0);
            assert_eq!(explained(&transport), "it closed the connection");
            assert_eq!(transport.state().explain(TransportError::TimedOut), "");
            assert!(!transport.state_mut().handle().client.is_opening(), "the client knows it");
            transport.begin_close(0);
            assert_eq!(explained(&transport), "it closed the connection", "the first reason");
        }
        let mut transport = reading(&[Some("\n")]);
        transport.begin_close(0);
        assert_eq!(explained(&transport), "it was closed");
        run(&mut transport, 0);
        assert_eq!(transport.link.reader.as_ref().unwrap().read, 0);
    }

    /// A server that takes no more bytes may still say why. After that time its connection is lost.
    #[test]
    fn a_writer_that_fails_leaves_time_for_the_last_words() {
        let writers: [Writes; 3] = [(&[None], &[]), (&[Some(3), Some(0)], &[]), (&[], &[Poll::Ready(false)])];
        for (writes, flushes) in writers {
            let mut transport = writing(writes, flushes);
            transport.state_mut().handle().client.connect();
            assert!(transport.state().next_deadline().is_none_or(|due| due > 510));
            run(&mut transport, 10);
            assert!(transport.link.writer.is_none() && transport.lines.pending().is_none());
            assert_eq!((transport.state().next_deadline(), explained(&transport).as_str()), (Some(510), ""));
            run(&mut transport, 509);
            assert_eq!(explained(&transport), "");
            // Words that come in the last moment are heard.
            transport.link.reader.as_mut().unwrap().reads = [Some("\n")].into();
            transport.link.look_again();
            run(&mut transport, 510);
            assert_eq!(explained(&transport), "");
            run(&mut transport, 510);
            assert_eq!(explained(&transport), "it takes nothing any more");
            assert!(transport.state().next_deadline().is_none_or(|due| due > 510));
            assert!(!transport.state_mut().handle().client.is_opening(), "the client knows it");
        }
    }

    #[test]
    fn bytes_are_flushed_once_and_again_if_that_takes_time() {
        let mut transport = writing(&[Some(3), Some(7)], &[Poll::Pending]);
        run(&mut transport, 0);
        assert_eq!(transport.link.writer.as_ref().unwrap().flushed, 0, "there is nothing to flush");
        transport.state_mut().handle().client.connect();
        for _ in 0..3 {
            run(&mut transport, 0);
        }
        let writer = transport.link.writer.as_ref().unwrap();
        assert_eq!((writer.flushed, writer.written.matches("server/discover").count()), (2, 1));
        assert!(writer.written.ends_with('\n'));
        let mut failed = writing(&[None], &[]);
        failed.state_mut().handle().client.connect();
        let mut cx = Context::from_waker(Waker::noop());
        failed.lines.run(7, &mut Ignore);
        failed.link.dirty = true;
        failed.link.poll_write(&mut failed.lines, &mut cx);
        assert_eq!(failed.state().next_deadline(), Some(507));
    }

    #[test]
    fn a_trace_shows_each_message_once_however_it_is_written() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut transport = writing(&[Some(1), Some(9), Some(30)], &[]);
        transport.link.reader.as_mut().unwrap().reads =
            [Some("{\"jsonrpc\":\"2.0\""), Some(",\"method\":\"a\"}\n")].into();
        transport.state_mut().trace(Box::new(move |way, text| {
            sink.lock().unwrap().push((way, String::from_utf8_lossy(text).into_owned()));
        }));
        transport.state_mut().handle().client.connect_as(Revision::V2026_07_28);
        for name in ["first", "second"] {
            transport.state_mut().handle().send(&Request::call(name)).unwrap();
            run(&mut transport, 0);
        }
        let seen = seen.lock().unwrap();
        let of = |wanted| seen.iter().filter(move |(way, _)| *way == wanted).map(|(_, text)| text.as_str());
        let sent: Vec<_> = of(Direction::Sent).collect();
        assert!(sent.len() == 2 && sent[0].contains("first") && sent[1].contains("second"), "{sent:?}");
        let received: Vec<_> = of(Direction::Received).collect();
        assert!(received.len() == 1 && received[0].contains("\"method\":\"a\""), "{received:?}");
    }
}
