//! Lines over a reader and a writer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::client::{ClientHandle, ClientHandler, ClientInfo, LineClient, TransportError};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
use mcp_sansio_host::LineTrace;

use super::alarm::Alarm;
use super::{ChildExit, ClientOptions, IN_FLIGHT, Trace, Transport};
use crate::backlog::Backlog;
use crate::interrupted::retry;

/// The limit of pending bytes: while more are pending, requests wait. The engine's own messages are always taken:
/// they are small, and limited by the requests.
const BACKLOG: usize = 1 << 20;

/// The limit of pending answers, in bytes: while more are pending, nothing is read. It stops a server that sends
/// requests and does not read the answers. Pending requests do not count, however large: a server may have to write
/// before it can read them.
pub(super) const OWED: usize = 16 << 20;

/// The time to read on after the writer has failed: the server's last messages may explain why.
const LAST_WORDS: Millis = 500;

/// A session between a reader and a writer. Dropping the future that polls it loses no bytes.
pub(super) struct Talk<R, W> {
    pub(super) session: LineClient<'static, Backlog>,
    pub(super) reader: Option<R>,
    pub(super) writer: Option<W>,
    /// Bytes were written but not flushed.
    dirty: bool,
    /// The time when the writer failed.
    pub(super) broke: Option<Millis>,
    /// The number of pending bytes that are answers.
    pub(super) owed: usize,
    tracing: Option<LineTrace<Trace>>,
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

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Talk<R, W> {
    pub(super) fn new(reader: R, writer: W, profile: &'static ClientInfo<'static>, options: &ClientOptions) -> Self {
        let input = LineBuffer::new(Store::growing(options.message_limit()));
        Talk {
            session: LineClient::new(input, options.engine(profile, IN_FLIGHT), Backlog::new(usize::MAX)),
            reader: Some(reader),
            writer: Some(writer),
            dirty: false,
            broke: None,
            owed: 0,
            tracing: None,
            alarm: Alarm::new(),
        }
    }

    /// Returns whether requests have to wait until more is written.
    pub(super) fn is_full(&mut self) -> bool {
        self.writer.is_some() && self.session.out().pending().len() >= BACKLOG
    }

    /// Returns whether reading has to wait until more answers are written.
    pub(super) fn is_owing(&mut self) -> bool {
        self.owed.min(self.session.out().pending().len()) >= OWED
    }

    /// Handles the bytes that were read.
    pub(super) fn run(&mut self, now: Millis, handler: &mut dyn ClientHandler) {
        let before = self.session.out().pending().len();
        // `NextStep::Write` needs no care here: the sink has no limit, so it is never full.
        let _ = self.session.run(now, handler);
        self.owed = self.owed.min(before) + self.session.out().pending().len().saturating_sub(before);
    }

    /// Writes as much as the writer takes.
    pub(super) fn poll_write(&mut self, now: Millis, cx: &mut Context<'_>) {
        let Some(writer) = &mut self.writer else { return self.drop_pending() };
        while !self.session.out().is_empty() {
            let pending = self.session.out().pending();
            if let Some(tracing) = &mut self.tracing {
                tracing.sent(pending);
            }
            match retry(|| Pin::new(&mut *writer).poll_write(cx, pending)) {
                Poll::Ready(Ok(n)) if n > 0 => {
                    self.session.out().sent(n);
                    self.dirty = true;
                    if let Some(tracing) = &mut self.tracing {
                        tracing.written(n);
                    }
                }
                Poll::Ready(_) => return self.lose_writer(now),
                Poll::Pending => return,
            }
        }
        if self.dirty {
            match retry(|| Pin::new(&mut *writer).poll_flush(cx)) {
                Poll::Ready(Ok(())) => self.dirty = false,
                Poll::Ready(Err(_)) => self.lose_writer(now),
                Poll::Pending => {}
            }
        }
    }

    /// Notes that the writer has failed.
    fn lose_writer(&mut self, now: Millis) {
        self.writer = None;
        self.broke = Some(now);
        self.drop_pending();
    }

    /// Forgets all that was under way, for another process. Returns the reader of the old one.
    pub(super) fn restart(&mut self) -> Option<R> {
        self.drop_pending();
        (self.dirty, self.broke, self.owed) = (false, None, 0);
        self.writer = None;
        self.alarm.ring();
        self.reader.take()
    }

    /// Drops the pending bytes: the writer has failed.
    fn drop_pending(&mut self) {
        let n = self.session.out().pending().len();
        self.session.out().sent(n);
        if let Some(tracing) = &mut self.tracing {
            tracing.written(n);
        }
    }

    /// Reads what there is, in two reads at most.
    pub(super) fn poll_read(&mut self, cx: &Context<'_>) -> Got {
        let mut got = Got::Nothing;
        // Twice: after a read that was not full the reader only has to wake the driver, in the same turn.
        for _ in 0..2 {
            let Some(reader) = &mut self.reader else { return Got::End };
            let space = self.session.space();
            match self.alarm.poll(cx, |cx| retry(|| Pin::new(&mut *reader).poll_read(cx, space))) {
                Poll::Ready(Ok(n)) if n > 0 => {
                    if let Some(tracing) = &mut self.tracing {
                        tracing.received(&space[..n]);
                    }
                    let full = n == space.len();
                    self.session.filled(n);
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

    /// Returns the time to stop reading after the writer has failed.
    pub(super) fn last_words(&self) -> Option<Millis> {
        self.broke.map(|at| at.saturating_add(LAST_WORDS))
    }

    pub(super) fn trace(&mut self, trace: Trace) {
        let shown = self.session.out().pending().len();
        self.tracing = Some(LineTrace::new(trace, shown));
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
    talk: Talk<R, W>,
    gone: Option<&'static str>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> StreamTransport<R, W> {
    /// Makes a client's end of this reader and writer.
    pub fn new(reader: R, writer: W, profile: &'static ClientInfo<'static>) -> Self {
        StreamTransport::with(reader, writer, profile, &ClientOptions::new())
    }

    /// Makes a client's end of this reader and writer, with other times and limits.
    pub fn with(reader: R, writer: W, profile: &'static ClientInfo<'static>, options: &ClientOptions) -> Self {
        StreamTransport { talk: Talk::new(reader, writer, profile, options), gone: None }
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Transport for StreamTransport<R, W> {
    fn link(&mut self) -> ClientHandle<'_, 'static> {
        self.talk.session.handle()
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn ClientHandler) -> bool {
        let owing = self.talk.is_owing();
        let got = if owing || self.gone.is_some() { Got::Nothing } else { self.talk.poll_read(cx) };
        if got == Got::End {
            self.gone = Some("it closed the connection");
        } else if got == Got::Nothing && self.talk.last_words().is_some_and(|at| at <= now) {
            self.gone.get_or_insert("it takes nothing any more");
        }
        if self.gone.is_some() {
            self.talk.session.end_of_input();
        }
        self.talk.run(now, handler);
        self.talk.poll_write(now, cx);
        got == Got::Bytes || owing && !self.talk.is_owing()
    }

    fn next_deadline(&self) -> Option<Millis> {
        let last = self.talk.last_words().filter(|_| self.gone.is_none());
        self.talk.session.engine().next_deadline().into_iter().chain(last).min()
    }

    fn is_full(&mut self) -> bool {
        self.talk.is_full()
    }

    fn explain(&self, why: TransportError) -> String {
        self.gone.filter(|_| why == TransportError::Closed).unwrap_or_default().to_owned()
    }

    fn trace(&mut self, trace: Trace) {
        self.talk.trace(trace);
    }

    fn begin_close(&mut self, _: Millis) {
        self.gone.get_or_insert("it was closed");
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<ChildExit>> {
        if let Some(writer) = &mut self.talk.writer {
            // The pending bytes were written as far as possible. A close that takes time is left to the system.
            let _ = Pin::new(writer).poll_close(cx);
        }
        Poll::Ready(None)
    }
}

impl<R, W> fmt::Debug for StreamTransport<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTransport").field("gone", &self.gone).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Direction, Ignore};
    use mcp_sansio::client::Request;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::sink::Sink;
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
        transport.link().client.connect_as(Revision::V2025_11_25);
        let cx = &mut Context::from_waker(Waker::noop());
        while transport.poll_run(0, cx, &mut Ignore) {
            assert!(transport.talk.session.out().pending().len() < 2 * OWED, "it is read without end");
        }
        let pending = transport.talk.session.out().pending().len();
        assert!((OWED..OWED + (1 << 20)).contains(&pending), "{pending} bytes");
        transport.talk.writer.as_mut().unwrap().is_open = true;
        assert!(transport.poll_run(0, cx, &mut Ignore), "it is read again");
    }

    #[test]
    fn what_is_written_is_flushed() {
        let gate = Gate { is_open: true, ..Gate::default() };
        let mut transport = StreamTransport::new(Flood { line: b"\n", at: 0 }, gate, &PROFILE);
        transport.link().client.connect();
        transport.poll_run(0, &mut Context::from_waker(Waker::noop()), &mut Ignore);
        let gate = transport.talk.writer.as_ref().unwrap();
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

    fn explained(transport: &Scripted) -> String {
        transport.explain(TransportError::Closed)
    }

    /// After a read that was not full the reader only has to wake the driver.
    #[test]
    fn a_turn_reads_twice_and_says_whether_there_may_be_more() {
        let cx = Context::from_waker(Waker::noop());
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
            assert_eq!([(); 2].map(|()| transport.talk.poll_read(&cx)), expected, "{reads:?}");
        }
        // One that has not woken the driver is not read again.
        let mut transport = reading(&[Some("a")]);
        let talk = &mut transport.talk;
        assert_eq!([(); 2].map(|()| talk.poll_read(&cx)), [Got::Last, Got::Nothing]);
        assert_eq!(talk.reader.as_ref().unwrap().read, 2);
        let mut talk = Talk::new(Flood { line: b"\n", at: 0 }, Gate::default(), &PROFILE, &ClientOptions::new());
        assert_eq!(talk.poll_read(&cx), Got::Bytes);
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
            transport.link().client.connect();
            assert_eq!(explained(&transport), "");
            run(&mut transport, 0);
            assert_eq!(explained(&transport), "it closed the connection");
            assert_eq!(transport.explain(TransportError::TimedOut), "");
            assert!(!transport.link().client.is_opening(), "the client knows it");
            transport.begin_close(0);
            assert_eq!(explained(&transport), "it closed the connection", "the first reason");
        }
        let mut transport = reading(&[Some("\n")]);
        transport.begin_close(0);
        assert_eq!(explained(&transport), "it was closed");
        run(&mut transport, 0);
        assert_eq!(transport.talk.reader.as_ref().unwrap().read, 0);
    }

    /// A server that takes no more bytes may still say why. After that time its connection is lost.
    #[test]
    fn a_writer_that_fails_leaves_time_for_the_last_words() {
        let writers: [Writes; 3] = [(&[None], &[]), (&[Some(3), Some(0)], &[]), (&[], &[Poll::Ready(false)])];
        for (writes, flushes) in writers {
            let mut transport = writing(writes, flushes);
            transport.link().client.connect();
            assert!(transport.next_deadline().is_none_or(|due| due > 510));
            run(&mut transport, 10);
            assert!(transport.talk.writer.is_none() && transport.talk.session.out().is_empty());
            assert_eq!((transport.next_deadline(), explained(&transport).as_str()), (Some(510), ""));
            run(&mut transport, 509);
            assert_eq!(explained(&transport), "");
            // Words that come in the last moment are heard.
            transport.talk.reader.as_mut().unwrap().reads = [Some("\n")].into();
            transport.talk.alarm.ring();
            run(&mut transport, 510);
            assert_eq!(explained(&transport), "");
            run(&mut transport, 510);
            assert_eq!(explained(&transport), "it takes nothing any more");
            assert!(transport.next_deadline().is_none_or(|due| due > 510));
            assert!(!transport.link().client.is_opening(), "the client knows it");
        }
    }

    #[test]
    fn bytes_are_flushed_once_and_again_if_that_takes_time() {
        let mut transport = writing(&[Some(3), Some(7)], &[Poll::Pending]);
        run(&mut transport, 0);
        assert_eq!(transport.talk.writer.as_ref().unwrap().flushed, 0, "there is nothing to flush");
        transport.link().client.connect();
        for _ in 0..3 {
            run(&mut transport, 0);
        }
        let writer = transport.talk.writer.as_ref().unwrap();
        assert_eq!((writer.flushed, writer.written.matches("server/discover").count()), (2, 1));
        assert!(writer.written.ends_with('\n'));
        let mut failed = writing(&[None], &[]);
        failed.link().client.connect();
        let mut cx = Context::from_waker(Waker::noop());
        failed.talk.run(0, &mut Ignore);
        failed.talk.dirty = true;
        failed.talk.poll_write(7, &mut cx);
        assert_eq!(failed.talk.last_words(), Some(7 + LAST_WORDS));
    }

    #[test]
    fn a_trace_shows_each_message_once_however_it_is_written() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut transport = writing(&[Some(1), Some(9), Some(30)], &[]);
        transport.talk.reader.as_mut().unwrap().reads =
            [Some("{\"jsonrpc\":\"2.0\""), Some(",\"method\":\"a\"}\n")].into();
        transport.trace(Box::new(move |way, text| {
            sink.lock().unwrap().push((way, String::from_utf8_lossy(text).into_owned()));
        }));
        transport.link().client.connect_as(Revision::V2026_07_28);
        for name in ["first", "second"] {
            transport.link().send(&Request::call(name)).unwrap();
            run(&mut transport, 0);
        }
        let seen = seen.lock().unwrap();
        let of = |wanted| seen.iter().filter(move |(way, _)| *way == wanted).map(|(_, text)| text.as_str());
        let sent: Vec<_> = of(Direction::Sent).collect();
        assert!(sent.len() == 2 && sent[0].contains("first") && sent[1].contains("second"), "{sent:?}");
        let received: Vec<_> = of(Direction::Received).collect();
        assert!(received.len() == 1 && received[0].contains("\"method\":\"a\""), "{received:?}");
    }

    #[test]
    fn requests_wait_while_much_is_pending_and_the_writer_lives() {
        let mut transport = reading(&[]);
        transport.talk.session.out().put(&vec![b' '; BACKLOG - 1]).unwrap();
        assert!(!transport.is_full());
        transport.talk.session.out().put(b" ").unwrap();
        assert!(transport.is_full());
        transport.talk.writer = None;
        assert!(!transport.is_full());
    }

    #[test]
    fn only_pending_answers_are_owed() {
        let mut transport = reading(&[Some("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")]);
        let talk = &mut transport.talk;
        talk.session.client().connect_as(Revision::V2025_11_25);
        talk.run(0, &mut Ignore);
        let asked = talk.session.out().pending().len();
        talk.session.out().sent(asked);
        talk.owed = 5;
        talk.session.out().put(b"   ").unwrap();
        talk.run(0, &mut Ignore);
        assert_eq!(talk.owed, 3, "the others were written");
        talk.poll_read(&Context::from_waker(Waker::noop()));
        talk.run(0, &mut Ignore);
        assert_eq!(talk.owed, talk.session.out().pending().len());
        assert!(talk.owed > 3, "an answer");
        talk.session.out().put(&vec![b' '; OWED]).unwrap();
        for (owed, is_owing) in [(OWED - 1, false), (OWED, true)] {
            talk.owed = owed;
            assert_eq!(talk.is_owing(), is_owing);
        }
    }

    /// A second process begins with nothing of the first.
    #[test]
    fn a_restart_forgets_all() {
        let mut transport = reading(&[]);
        let cx = Context::from_waker(Waker::noop());
        let talk = &mut transport.talk;
        assert_eq!(talk.poll_read(&cx), Got::Nothing);
        talk.session.out().put(b"rest").unwrap();
        (talk.dirty, talk.broke, talk.owed) = (true, Some(1), 4);
        assert!(talk.restart().is_some());
        assert!(talk.session.out().is_empty() && talk.writer.is_none() && talk.reader.is_none());
        assert_eq!((talk.dirty, talk.last_words(), talk.owed), (false, None, 0));
        talk.reader = Some(Steps { reads: [Some("a")].into(), ..Steps::default() });
        assert_eq!(talk.poll_read(&cx), Got::Last, "the new one is read at once");
    }

    /// The messages to another process are shown whole.
    #[test]
    fn a_trace_goes_on_after_a_restart() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut transport = StreamTransport::new(Flood { line: b"\n", at: 0 }, Gate::default(), &PROFILE);
        transport.trace(Box::new(move |way, text| {
            sink.lock().unwrap().push((way, String::from_utf8_lossy(text).into_owned()));
        }));
        let mut cx = Context::from_waker(Waker::noop());
        let talk = &mut transport.talk;
        let mut say = |talk: &mut Talk<_, _>, text: &str| {
            talk.session.out().put(text.as_bytes()).unwrap();
            talk.poll_write(0, &mut cx);
        };
        say(talk, "{\"to\":\"the first process\"}\n");
        talk.restart();
        talk.writer = Some(Gate { is_open: true, ..Gate::default() });
        say(talk, "{\"to\":\"the second\"}\n");
        let lines = ["{\"to\":\"the first process\"}", "{\"to\":\"the second\"}"];
        assert_eq!(*seen.lock().unwrap(), lines.map(|line| (Direction::Sent, line.to_owned())));
        assert_eq!(talk.writer.as_ref().unwrap().flushed, lines[1].len() + 1);
    }
}
