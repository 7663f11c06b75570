//! The future that does the input and output of a client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use async_io::Timer;
use mcp_sansio::client::ClientHandler;

use super::book::Tap;
use super::shared::Shared;
use super::state::State;

/// The limit of the transport's turns before other tasks run.
const TURNS: usize = 32;

/// The future that does the input and output of a [`Client`](super::Client) and calls the handler. Spawn it, or run
/// it beside the tasks that use the client. It ends when the client is [closed](super::Client::close) or its last
/// handle is dropped. If it is dropped before, all waiting requests end with
/// [`TransportError::Closed`](mcp_sansio::client::TransportError::Closed).
#[must_use = "spawn it, or nothing happens"]
pub struct Driver<H> {
    shared: Arc<Shared>,
    handler: H,
    timer: Timer,
    due: Option<Instant>,
    closing: bool,
}

impl<H> Driver<H> {
    pub(super) fn new(shared: Arc<Shared>, handler: H) -> Self {
        Driver { shared, handler, timer: Timer::never(), due: None, closing: false }
    }
}

impl<H: ClientHandler + Unpin> Driver<H> {
    fn turn(&mut self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        state.set_driver(cx);
        let mut soonest = 0;
        loop {
            let more = self.run(state, cx);
            let now = state.now();
            let Some(transport) = &mut state.transport else { return Poll::Ready(()) };
            if self.closing
                && let Poll::Ready(ended) = transport.poll_close(now, cx)
            {
                state.ended = ended;
                return Poll::Ready(());
            }
            if more {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let due = transport.next_deadline().into_iter().chain(state.line_due()).min();
            self.set_timer(due.map(|due| state.instant(due.max(soonest))));
            // A timer that has fired meanwhile leads to another turn.
            if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.due = None;
            // A deadline that is still due after a turn must not make a busy loop.
            soonest = now.saturating_add(1);
        }
    }

    /// Does all work that needs no waiting, for a limited number of turns. Returns whether there is more.
    fn run(&mut self, state: &mut State, cx: &mut Context<'_>) -> bool {
        for _ in 0..TURNS {
            state.cancel_again();
            let now = state.now();
            let Some(transport) = &mut state.transport else { return false };
            if state.closing && !self.closing {
                self.closing = true;
                transport.begin_close(now);
            }
            let mut tap = Tap { book: &mut state.book, handler: &mut self.handler, happened: false };
            let more = transport.poll_run(now, cx, &mut tap);
            if tap.happened {
                state.tell();
            }
            state.admit();
            if !more {
                return false;
            }
        }
        true
    }

    /// Sets the timer, but only to an earlier time: to fire too early costs less than a change for every request.
    fn set_timer(&mut self, due: Option<Option<Instant>>) {
        if let Some(at) = due.flatten().filter(|at| self.due.is_none_or(|due| *at < due)) {
            self.due = Some(at);
            self.timer.set_at(at);
        }
    }
}

impl<H: ClientHandler + Unpin> Future for Driver<H> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let polled = shared.with(|state| self.turn(state, cx));
        if polled.is_ready() {
            drop(shared.with(State::finish));
        }
        polled
    }
}

impl<H> Drop for Driver<H> {
    fn drop(&mut self) {
        drop(self.shared.with(State::finish));
    }
}

impl<H> fmt::Debug for Driver<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("closing", &self.closing).finish_non_exhaustive()
    }
}
