//! The loop of a connection: a session between a reader, a writer, late answers and timers.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use async_io::Timer;
use futures_lite::{AsyncRead, AsyncWrite, FutureExt};
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::service::Service;
use mcp_sansio_host::{Backlog, LineServing};

use crate::interrupted::retry;

/// One connection. It keeps the whole state: dropping a future that waits loses nothing.
pub(crate) struct Connection<'c, 't, S: 'static, R, W> {
    service: &'c Service<'t, S>,
    state: &'c mut S,
    session: LineServer<'static, Backlog>,
    reader: R,
    writer: W,
    serving: LineServing<S>,
    /// Bytes were written but not flushed.
    dirty: bool,
    /// The time when `timer` fires.
    due: Option<Instant>,
    timer: Timer,
}

/// An event that a connection has waited for.
enum Event {
    Read(usize),
    Wrote(usize),
    /// There are late messages, and room for one.
    Late,
    Time,
    /// The writer was flushed, or the server is stopped.
    Other,
}

impl<'c, 't, S, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<'c, 't, S, R, W> {
    pub(crate) fn new(
        service: &'c Service<'t, S>,
        serving: LineServing<S>,
        reader: R,
        writer: W,
        state: &'c mut S,
    ) -> Self {
        let session = LineServer::growing(serving.limits, Backlog::new(serving.backlog));
        Connection { service, state, session, reader, writer, serving, dirty: false, due: None, timer: Timer::never() }
    }

    /// Runs until the input has ended and every answer is written.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        loop {
            self.serving.turn(&mut self.session, self.state);
            if self.serving.is_ending() {
                // A client that has closed its side only waits for its answers, and some fail on any other message.
                self.session.out.only_answers();
            }
            let next = self.session.run(self.service, self.state);
            self.serving.tick(self.service, &mut self.session, self.state);
            if self.serving.is_abandoned() {
                let _ = self.session.abandon();
            }
            if self.is_through() {
                return Ok(());
            }
            self.set_timer();
            match poll_fn(|cx| self.poll(next, cx)).await? {
                Event::Read(0) => self.serving.end_input(&mut self.session),
                Event::Read(n) => self.session.filled(n),
                Event::Wrote(n) => self.session.out.sent(n),
                Event::Late => self.give_late(),
                Event::Time => self.due = None,
                Event::Other => {}
            }
        }
    }

    /// Waits for the first event. Writes before it reads, so that there is room for answers.
    fn poll(&mut self, next: NextStep, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        if let Poll::Ready(event) = self.poll_write(cx) {
            return Poll::Ready(event);
        }
        if self.poll_late(cx).is_ready() {
            return Poll::Ready(Ok(Event::Late));
        }
        if self.serving.stop(&mut self.session, cx) {
            return Poll::Ready(Ok(Event::Other));
        }
        if next == NextStep::Read
            && !self.serving.is_ending()
            && self.session.out.is_open()
            && let Poll::Ready(read) = retry(|| Pin::new(&mut self.reader).poll_read(cx, self.session.space()))
        {
            return Poll::Ready(read.map(Event::Read));
        }
        self.timer.poll(cx).map(|_| Ok(Event::Time))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        let mut writer = Pin::new(&mut self.writer);
        let pending = self.session.out.pending();
        if !pending.is_empty() {
            return match ready!(retry(|| writer.as_mut().poll_write(cx, pending)))? {
                0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => {
                    self.dirty = true;
                    Poll::Ready(Ok(Event::Wrote(n)))
                }
            };
        }
        if !self.dirty {
            return Poll::Pending;
        }
        ready!(retry(|| writer.as_mut().poll_flush(cx)))?;
        self.dirty = false;
        Poll::Ready(Ok(Event::Other))
    }

    /// Waits for late messages, while there is room for one.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.serving.late {
            Some(late) if self.session.out.is_open() => late.poll_ready(cx),
            _ => Poll::Pending,
        }
    }

    fn give_late(&mut self) {
        if let Some(late) = &mut self.serving.late {
            late.give(&mut self.session, self.service, self.state);
        }
    }

    fn is_through(&mut self) -> bool {
        self.session.is_done() && !self.dirty && self.session.out.is_empty()
    }

    /// Sets the timer to the next deadline.
    fn set_timer(&mut self) {
        let due = self.serving.next_deadline(&mut self.session);
        if due != self.due {
            self.due = due;
            self.timer = due.map_or_else(Timer::never, Timer::at);
        }
    }
}
