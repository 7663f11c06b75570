//! The future that does the input and output of a client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Timer;

use super::shared::Shared;
use super::state::State;

/// The future that does the input and output of a [`Client`](super::Client) and calls the handler. Spawn it, or run
/// it beside the tasks that use the client. It ends when the client is [closed](super::Client::close) or its last
/// handle is dropped. If it is dropped before, all waiting requests end with
/// [`TransportError::Closed`](mcp_sansio::client::TransportError::Closed).
#[must_use = "spawn it, or nothing happens"]
pub struct Driver {
    shared: Arc<Shared>,
    timer: Timer,
    closing: bool,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Driver { shared, timer: Timer::never(), closing: false }
    }

    fn turn(&mut self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        state.set_driver(cx);
        let mut soonest = 0;
        loop {
            self.begin_close(state);
            let more = state.run(cx);
            // A look at the clock takes some 80 instructions.
            let now = if self.closing { state.now() } else { 0 };
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
            if let Some(due) = state.sooner_than_alarm() {
                let due = due.max(soonest);
                state.alarm = Some(due);
                if let Some(at) = state.instant(due) {
                    self.timer.set_at(at);
                }
            }
            // A timer that has fired meanwhile leads to another turn.
            if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
            state.alarm = None;
            // A deadline that is still due after a turn must not make a busy loop.
            soonest = state.now().saturating_add(1);
        }
    }

    /// Does all work that needs no waiting, for a limited number of turns. Returns whether there is more.
    fn begin_close(&mut self, state: &mut State) {
        if !state.closing || self.closing {
            return;
        }
        let now = state.now();
        if let Some(transport) = &mut state.transport {
            self.closing = true;
            transport.begin_close(now);
        }
    }
}

impl Future for Driver {
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

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.shared.with(State::finish));
    }
}

mcp_sansio::debug_fields!(impl for Driver { closing });
