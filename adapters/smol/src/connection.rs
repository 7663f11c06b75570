//! The loop of a connection: a session between a reader, a writer, late answers and timers.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_io::Timer;
use futures_lite::{AsyncRead, AsyncWrite, FutureExt};
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, Millis, Server};
use mcp_sansio::service::Service;
use mcp_sansio_host::{Backlog, LateReceiver, Stopper};

use crate::interrupted::retry;

/// The settings of a connection.
pub(crate) struct Settings<S: 'static> {
    pub(crate) limits: MessageLimits,
    pub(crate) backlog: usize,
    pub(crate) grace: Duration,
    pub(crate) late: Option<LateReceiver<S>>,
    pub(crate) watch: Option<Watch<S>>,
    pub(crate) stopper: Stopper,
}

/// A function that looks for changes, and its period.
pub(crate) struct Watch<S> {
    pub(crate) period: Duration,
    pub(crate) look: fn(&mut S, &mut Server<'_>),
}

/// One connection. It keeps the whole state: dropping a future that waits loses nothing.
pub(crate) struct Connection<'c, 't, S: 'static, R, W> {
    service: &'c Service<'t, S>,
    state: &'c mut S,
    session: LineServer<'static, Backlog>,
    reader: R,
    writer: W,
    late: Option<LateReceiver<S>>,
    watch: Option<Watch<S>>,
    stopper: Stopper,
    grace: Duration,
    input: Input,
    /// Bytes were written but not flushed.
    dirty: bool,
    started: Instant,
    /// The time to look for changes next; `None` while no client is subscribed.
    look_at: Option<Instant>,
    /// The time when `timer` fires.
    due: Option<Instant>,
    timer: Timer,
}

/// The state of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// The input has ended. The connection waits for late answers until this time.
    Ended {
        patience: Instant,
    },
    /// The connection waits no more for late answers.
    Abandoned,
}

/// An event that a connection has waited for.
enum Event {
    Read(usize),
    Wrote(usize),
    /// There are late messages, and room for one.
    Late,
    Time,
    Stopped,
    /// The writer was flushed.
    Flushed,
}

impl<'c, 't, S, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Connection<'c, 't, S, R, W> {
    pub(crate) fn new(
        service: &'c Service<'t, S>,
        settings: Settings<S>,
        reader: R,
        writer: W,
        state: &'c mut S,
    ) -> Self {
        let Settings { limits, backlog, grace, late, watch, stopper } = settings;
        Connection {
            service,
            state,
            session: LineServer::growing(limits, Backlog::new(backlog)),
            reader,
            writer,
            late,
            watch,
            stopper,
            grace,
            input: Input::Open,
            dirty: false,
            started: Instant::now(),
            look_at: None,
            due: None,
            timer: Timer::never(),
        }
    }

    /// Runs until the input has ended and every answer is written.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        loop {
            self.session.expire(self.millis());
            let next = self.session.run(self.service, self.state);
            if self.input == Input::Abandoned {
                let _ = self.session.abandon();
            }
            if self.is_through() {
                return Ok(());
            }
            self.set_timer();
            match poll_fn(|cx| self.poll(next, cx)).await? {
                Event::Read(0) => self.end_input(),
                Event::Read(n) => self.session.filled(n),
                Event::Wrote(n) => self.session.out().sent(n),
                Event::Late => self.give_late(),
                Event::Time => self.look(),
                Event::Stopped => self.stop(),
                Event::Flushed => {}
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
        // How often it has to be stopped before something changes.
        let stops = match self.input {
            Input::Open => 1,
            Input::Ended { .. } => 2,
            Input::Abandoned => u32::MAX,
        };
        if self.stopper.count(cx) >= stops {
            return Poll::Ready(Ok(Event::Stopped));
        }
        if next == NextStep::Read
            && self.input == Input::Open
            && self.session.out().is_open()
            && let Poll::Ready(read) = retry(|| Pin::new(&mut self.reader).poll_read(cx, self.session.space()))
        {
            return Poll::Ready(read.map(Event::Read));
        }
        self.timer.poll(cx).map(|_| Ok(Event::Time))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        let mut writer = Pin::new(&mut self.writer);
        let pending = self.session.out().pending();
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
        Poll::Ready(Ok(Event::Flushed))
    }

    /// Waits for late messages, while there is room for one.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.late {
            Some(late) if self.session.out().is_open() => late.poll_ready(cx),
            _ => Poll::Pending,
        }
    }

    fn give_late(&mut self) {
        let Connection { session, service, state, late, .. } = self;
        if let Some(late) = late {
            late.give(session, service, state);
        }
    }

    /// The first stop is like an end of the input; the second ends the time for late answers.
    fn stop(&mut self) {
        match self.input {
            Input::Open => self.end_input(),
            _ => self.input = Input::Abandoned,
        }
    }

    fn end_input(&mut self) {
        self.session.end_of_input();
        // A client that has closed its side only waits for its answers, and some fail on any other message.
        self.session.out().only_answers();
        self.input = Input::Ended { patience: Instant::now() + self.grace };
    }

    fn is_through(&mut self) -> bool {
        self.session.is_done() && !self.dirty && self.session.out().is_empty()
    }

    /// Does the work that is due. (Deadlines of the session are handled by `expire`.)
    fn look(&mut self) {
        self.due = None;
        let now = Instant::now();
        if matches!(self.input, Input::Ended { patience } if patience <= now) {
            self.input = Input::Abandoned;
        }
        if let (Some(watch), Some(_)) = (&self.watch, self.look_at.take_if(|at| *at <= now)) {
            (watch.look)(self.state, self.session.server());
        }
    }

    /// Sets the timer to the next deadline.
    fn set_timer(&mut self) {
        let server = self.session.server();
        let deadline = server.next_deadline().map(|at| self.started + Duration::from_millis(at));
        let watch = self.watch.as_ref().filter(|_| server.has_subscribers());
        self.look_at = watch.map(|watch| self.look_at.unwrap_or_else(|| Instant::now() + watch.period));
        let patience = match self.input {
            Input::Ended { patience } => Some(patience),
            _ => None,
        };
        let due = [deadline, self.look_at, patience].into_iter().flatten().min();
        if due != self.due {
            self.due = due;
            self.timer = due.map_or_else(Timer::never, Timer::at);
        }
    }

    fn millis(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }
}
