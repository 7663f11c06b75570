//! Lines over a reader and a writer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::client::owned::LineTrace;
use mcp_sansio::client::{Handler, Link, Lost, Profile, Session};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Millis;
use mcp_sansio::store::Store;

use super::{Ended, IN_FLIGHT, Options, Trace, Transport};
use crate::backlog::Backlog;
use crate::interrupted::retry;

/// What may wait to be written before requests have to wait. What the engine itself has to say is small and bounded by the
/// requests; so it always goes.
const BACKLOG: usize = 1 << 20;

/// How much of what the server's own messages led to may wait before no more is read: a server that asks and asks and does
/// not read the answers. Requests do not count, however large: a server may have something to say before it reads them.
const OWED: usize = 16 << 20;

/// How long the rest is waited for when the writer has broken: what a server says last may still come.
const LAST_WORDS: Millis = 500;

/// A session between a reader and a writer. Dropping the future that polls it loses nothing.
pub(super) struct Talk<R, W> {
    pub(super) session: Session<'static, Backlog, IN_FLIGHT>,
    pub(super) reader: Option<R>,
    pub(super) writer: Option<W>,
    /// Something was written and not flushed.
    dirty: bool,
    /// When the writer broke.
    broke: Option<Millis>,
    /// So much of what waits to be written is answers.
    owed: usize,
    tracing: Option<LineTrace<Trace>>,
}

/// What came of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// Nothing for now.
    Nothing,
    Bytes,
    /// Nothing more will come.
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Talk<R, W> {
    pub(super) fn new(reader: R, writer: W, profile: &'static Profile<'static>, options: &Options) -> Self {
        let input = LineBuffer::new(Store::growing(options.message_limit()));
        Talk {
            session: Session::new(input, options.engine(profile), Backlog::new(usize::MAX)),
            reader: Some(reader),
            writer: Some(writer),
            dirty: false,
            broke: None,
            owed: 0,
            tracing: None,
        }
    }

    /// Whether so much waits for the writer that nothing more is taken.
    pub(super) fn is_full(&mut self) -> bool {
        self.writer.is_some() && self.session.out().pending().len() >= BACKLOG
    }

    /// Whether so many answers wait for the writer that no more is read.
    pub(super) fn is_owing(&mut self) -> bool {
        self.owed.min(self.session.out().pending().len()) >= OWED
    }

    /// Takes what has come.
    pub(super) fn run(&mut self, now: Millis, handler: &mut dyn Handler) {
        let before = self.session.out().pending().len();
        // Its output is never full.
        let _ = self.session.run(now, handler);
        self.owed = self.owed.min(before) + self.session.out().pending().len().saturating_sub(before);
    }

    /// Writes as much as is taken.
    pub(super) fn poll_write(&mut self, now: Millis, cx: &mut Context<'_>) {
        let Some(writer) = &mut self.writer else { return self.drop_pending() };
        let mut broke = false;
        while !broke && !self.session.out().is_empty() {
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
                Poll::Ready(_) => broke = true,
                Poll::Pending => return,
            }
        }
        if self.dirty && !broke {
            match retry(|| Pin::new(&mut *writer).poll_flush(cx)) {
                Poll::Ready(Ok(())) => self.dirty = false,
                Poll::Ready(Err(_)) => broke = true,
                Poll::Pending => {}
            }
        }
        if broke {
            self.writer = None;
            self.broke = Some(now);
            self.drop_pending();
        }
    }

    /// Nobody will read what waits to be written.
    fn drop_pending(&mut self) {
        let n = self.session.out().pending().len();
        self.session.out().sent(n);
        if let Some(tracing) = &mut self.tracing {
            tracing.written(n);
        }
    }

    /// Reads once.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Got {
        let Some(reader) = &mut self.reader else { return Got::End };
        let space = self.session.space();
        match retry(|| Pin::new(&mut *reader).poll_read(cx, space)) {
            Poll::Ready(Ok(n)) if n > 0 => {
                if let Some(tracing) = &mut self.tracing {
                    tracing.received(&space[..n]);
                }
                self.session.filled(n);
                Got::Bytes
            }
            Poll::Ready(_) => {
                self.reader = None;
                Got::End
            }
            Poll::Pending => Got::Nothing,
        }
    }

    /// When nothing more is waited for although the reader has not ended.
    pub(super) fn last_words(&self) -> Option<Millis> {
        self.broke.map(|at| at.saturating_add(LAST_WORDS))
    }

    pub(super) fn trace(&mut self, trace: Trace) {
        let shown = self.session.out().pending().len();
        self.tracing = Some(LineTrace::new(trace, shown));
    }
}

/// A server at the other end of a reader and a writer: a socket, a serial line, a program that somebody else runs.
///
/// ```no_run
/// use mcp_sansio::client::Profile;
/// use mcp_sansio_smol::client::{Client, Ignore, Over};
///
/// static PROFILE: Profile<'static> = Profile::new("demo", "1.0");
///
/// # async fn example() -> std::io::Result<()> {
/// let socket = smol::net::unix::UnixStream::connect("/run/server.sock").await?;
/// let (client, driver) = Client::new(Over::new(socket.clone(), socket, &PROFILE), Ignore);
/// # let _ = (client, driver);
/// # Ok(())
/// # }
/// ```
pub struct Over<R, W> {
    talk: Talk<R, W>,
    gone: Option<&'static str>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Over<R, W> {
    /// A server that is read from `reader` and written to `writer`.
    pub fn new(reader: R, writer: W, profile: &'static Profile<'static>) -> Self {
        Over::with(reader, writer, profile, &Options::new())
    }

    /// The same with other times and limits.
    pub fn with(reader: R, writer: W, profile: &'static Profile<'static>, options: &Options) -> Self {
        Over { talk: Talk::new(reader, writer, profile, options), gone: None }
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send> Transport for Over<R, W> {
    fn link(&mut self) -> Link<'_, 'static> {
        self.talk.session.link()
    }

    fn poll_run(&mut self, now: Millis, cx: &mut Context<'_>, handler: &mut dyn Handler) -> bool {
        self.talk.poll_write(now, cx);
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

    fn explain(&self, why: Lost) -> String {
        self.gone.filter(|_| why == Lost::Closed).unwrap_or_default().to_owned()
    }

    fn trace(&mut self, trace: Trace) {
        self.talk.trace(trace);
    }

    fn begin_close(&mut self, _: Millis) {
        self.gone.get_or_insert("it was closed");
    }

    fn poll_close(&mut self, _: Millis, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        if let Some(writer) = &mut self.talk.writer {
            // What is pending was tried to be written. A close that takes time is left to the other end.
            let _ = Pin::new(writer).poll_close(cx);
        }
        Poll::Ready(None)
    }
}

impl<R, W> fmt::Debug for Over<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Over").field("gone", &self.gone).finish_non_exhaustive()
    }
}
