//! The loop of the server: sockets, wakes and one timer around all connections.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Timer;
use futures_lite::FutureExt;
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
use mcp_sansio_host::HttpServing;
use mcp_sansio_http::endpoint::App;

use super::socket::{Listener, ServedSocket};
use super::wake::{ConnectionWaker, Woken};
use super::{Checks, HttpServer};
use crate::socket::Socket;

/// A server while it serves. It keeps the whole state: dropping a future that polls it loses nothing.
pub(crate) struct Serving<'s, 't, 'a, S: 'static> {
    service: &'s Service<'t, S>,
    state: &'s mut S,
    checks: Checks<'a>,
    driver: Driver<S>,
}

/// The connections, and what the server waits for.
struct Driver<S: 'static> {
    /// `None` when the server ends.
    listener: Option<Listener>,
    serving: HttpServing<S, ServedSocket>,
    woken: Arc<Woken>,
    /// The places of connections that have woken. Kept between turns for its allocation.
    slots: Vec<usize>,
    /// The time to look whether peers whose bytes are not read have gone.
    look_at: Option<Millis>,
    timer: Timer,
    /// The time when `timer` fires.
    due: Option<Millis>,
}

/// The limit of connections that are accepted in one turn.
const AT_ONCE: usize = 64;
/// The period of looking whether peers whose bytes are not read have gone.
const LOOK: Millis = 1_000;
/// The longest time of the timer: `Instant` cannot represent every deadline.
const DAY: Millis = 86_400_000;

impl<'s, 't, 'a, S> Serving<'s, 't, 'a, S> {
    pub(crate) fn new(server: HttpServer<'a, S>, service: &'s Service<'t, S>, state: &'s mut S) -> Self {
        let (checks, setup, is_single) = (server.checks, server.setup, server.listener.is_stream());
        // Never continues with a guessable session id.
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the system has random bytes");
        let serving = checks.with(service, state, |mut app| setup.serve(is_single, &mut app, random));
        let driver = Driver {
            listener: Some(server.listener),
            serving,
            woken: Arc::default(),
            slots: Vec::new(),
            look_at: None,
            timer: Timer::never(),
            due: None,
        };
        Serving { service, state, checks, driver }
    }

    /// Does all work that needs no waiting. Ready when the server has stopped.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Serving { service, state, checks, driver } = self;
        checks.with(service, state, |mut app| driver.poll(&mut app, cx))
    }
}

impl<S> Driver<S> {
    fn poll(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(accepted) = self.listener.as_mut().and_then(Listener::take_stream) {
            self.enter(app, accepted);
        }
        self.serve_woken(app, cx);
        let wake = self.serving.turn(app, cx);
        self.look(app);
        // After the closed connections have made room.
        let mut again = self.accept(app, cx)?;
        if self.serving.has_ended(app, cx.waker(), &mut self.listener) {
            return Poll::Ready(Ok(()));
        }
        again |= self.set_timer(wake, cx);
        if again {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Serves the connections whose sockets have woken.
    fn serve_woken(&mut self, app: &mut App<'_, S>, cx: &Context<'_>) {
        let Driver { serving, woken, slots, .. } = self;
        woken.take(cx, slots);
        for &slot in &*slots {
            if let Some(socket) = serving.host.socket(slot) {
                socket.set_woken();
                serving.serve(slot, app);
            }
        }
    }

    /// Closes connections whose peers have gone, among those whose bytes are not read: a read would report it.
    fn look(&mut self, app: &mut App<'_, S>) {
        let (now, host) = (self.serving.now(), &mut self.serving.host);
        let mut looks = self.woken.take_unread();
        if self.look_at.take_if(|at| *at <= now).is_some() {
            looks |= host.sockets().any(|(_, socket)| socket.is_unread());
            let gone = host.sockets().filter(|(_, socket)| socket.has_gone());
            for slot in gone.map(|(slot, _)| slot).collect::<Vec<_>>() {
                host.close(slot, app, now);
            }
        }
        if looks {
            self.look_at.get_or_insert(now + LOOK);
        }
    }

    /// Accepts connections. Returns whether there were any.
    fn accept(&mut self, app: &mut App<'_, S>, cx: &mut Context<'_>) -> io::Result<bool> {
        // To try without a sign would cost each request a system call.
        match self.open_listener().map(|listener| listener.poll_readable(cx)) {
            None | Some(Poll::Pending) => return Ok(false),
            Some(Poll::Ready(ready)) => ready?,
        }
        let mut any = false;
        for _ in 0..AT_ONCE {
            let Some(listener) = self.open_listener() else { break };
            match listener.accept() {
                Ok(accepted) => {
                    any = true;
                    self.enter(app, accepted);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => match listener.poll_readable(cx) {
                    Poll::Pending => break,
                    Poll::Ready(ready) => ready?,
                },
                Err(error) if self.serving.accept_failed(error.kind()) => {}
                Err(_) => break,
            }
        }
        Ok(any)
    }

    /// Returns the listener if there is room for another connection.
    fn open_listener(&self) -> Option<&Listener> {
        self.listener.as_ref().filter(|_| self.serving.accepts())
    }

    /// Takes a new connection.
    fn enter(&mut self, app: &mut App<'_, S>, accepted: Socket) {
        let is_spare = accepted.net().is_some_and(|socket| self.serving.spare.has(socket));
        let waker = ConnectionWaker::new(self.serving.host.vacant(), Arc::clone(&self.woken));
        self.serving.enter(ServedSocket::new(accepted, waker), is_spare, app);
    }

    /// Sets the timer to the next deadline. Returns whether that is now.
    fn set_timer(&mut self, wake: Option<Millis>, cx: &mut Context<'_>) -> bool {
        let now = self.serving.now();
        let next = self.serving.next(wake.into_iter().chain(self.look_at).min());
        if next.is_some_and(|next| next <= now) {
            return true;
        }
        // The timer is only ever set to an earlier time. Firing too early costs less than setting it for every
        // request.
        if let Some(next) = next.filter(|next| self.due.is_none_or(|due| *next < due)) {
            self.due = Some(next);
            // `now` is not after the time at which the timer is set, so `next` is over when it fires.
            self.timer = Timer::after(Duration::from_millis((next - now).min(DAY)));
        }
        let fired = self.due.is_some() && self.timer.poll(cx).is_ready();
        if fired {
            self.due = None;
        }
        fired
    }
}

#[cfg(all(test, unix))]
mod tests;
