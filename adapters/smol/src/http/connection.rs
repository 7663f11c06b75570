//! One HTTP connection: its socket, and the loop between the socket and the protocol.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcp_sansio::memory::Store;
use mcp_sansio::server::Millis;
use mcp_sansio_http::endpoint::StreamId;
use mcp_sansio_http::host::{Budget, HttpConnection, ServeContext, WaitFor};

use super::WireLimits;
use super::socket::Socket;
use super::wake::Bell;

pub(crate) struct Connection {
    socket: Socket,
    pub(crate) wired: HttpConnection<'static>,
    /// The stream that it carries, as registered in the server's table.
    pub(crate) stream: Option<StreamId>,
    bell: Arc<Bell>,
    waker: Waker,
    /// The socket takes no bytes now, and wakes the connection when it does.
    pub(crate) blocked: bool,
    shut: bool,
    abandoned: bool,
    /// The buffer behind an open stream has no room for input.
    full: bool,
    /// The request waits, for its stream or for the application. Nothing is read meanwhile.
    waits: bool,
    /// The time to look whether the peer has gone; `None` while the socket is read: then a read reports it.
    look_at: Option<Millis>,
    /// The last read took all bytes that were there, and the socket has not woken since.
    drained: bool,
    /// It is in the list of connections that wait for a stream.
    pub(crate) parked: bool,
    /// It is in the list of connections about which the application decides later.
    #[cfg(feature = "resource-server")]
    pub(crate) listed: bool,
}

/// The result of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The connection waits for its socket.
    Waits,
    /// There is more to do at once; other connections come first.
    Yields,
    /// The request waits until the stream of its session was read.
    Parked,
    /// The application has not decided about the request.
    #[cfg(feature = "resource-server")]
    Undecided,
    /// The connection is over.
    Over,
}

/// The period of looking whether peers whose bytes are not read have gone.
const LOOK: Millis = 1_000;
/// The limit of rounds (serve, write, read) in one turn.
const ROUNDS: usize = 4;

pub(crate) type Serve<'h, 'a, S> = ServeContext<'h, 'static, 'a, S, Vec<u8>>;

impl Connection {
    pub(super) fn new(socket: Socket, bell: Arc<Bell>, limits: WireLimits, message: usize) -> Self {
        let input = Store::growing(message.saturating_add(64 * 1024));
        let output = Store::growing(message.saturating_mul(2).saturating_add(64 * 1024));
        let waker = Waker::from(Arc::clone(&bell));
        let wired = HttpConnection::new(input, output, limits);
        Connection {
            socket,
            wired,
            stream: None,
            bell,
            waker,
            blocked: false,
            shut: false,
            abandoned: false,
            full: false,
            waits: false,
            look_at: None,
            drained: false,
            parked: false,
            #[cfg(feature = "resource-server")]
            listed: false,
        }
    }

    /// Returns the time of the next look or turn, after a turn or a look.
    pub(crate) fn next_deadline(&mut self, now: Millis) -> Millis {
        // Turns for other reasons do not put it off.
        self.look_at = (self.full || self.waits).then(|| self.look_at.unwrap_or(now + LOOK));
        self.wired.next_deadline().into_iter().chain(self.look_at).min().unwrap_or(Millis::MAX)
    }

    /// Makes the next turn the last if the peer has gone, when it is time to look. Returns whether there is such a turn.
    pub(crate) fn look(&mut self, now: Millis) -> bool {
        if self.look_at.take_if(|at| *at <= now).is_some() {
            // A client that has closed its side still gets the answer for which it waits.
            self.abandoned |= if self.waits { self.socket.is_broken() } else { self.socket.has_gone() };
        }
        self.abandoned
    }

    /// Serves the input, writes the output, and reads on.
    pub(crate) fn turn<S>(
        &mut self,
        host: &mut Serve<'_, '_, S>,
        random: &mut dyn FnMut(&mut [u8]),
        budget: &mut Budget,
    ) -> Turn {
        self.drained &= !self.bell.reset();
        (self.full, self.waits) = (false, false);
        if self.abandoned {
            return Turn::Over;
        }
        let waker = self.waker.clone();
        let cx = &mut Context::from_waker(&waker);
        for _ in 0..ROUNDS {
            let wait = self.wired.serve(host, random);
            let Ok(()) = self.write(cx) else { return Turn::Over };
            match wait {
                WaitFor::Write if self.blocked => return Turn::Waits,
                WaitFor::Write => continue,
                WaitFor::Close if self.blocked => return Turn::Waits,
                WaitFor::Close => return Turn::Over,
                WaitFor::Stream => {
                    self.waits = true;
                    return Turn::Parked;
                }
                #[cfg(feature = "resource-server")]
                WaitFor::Decision => {
                    self.waits = true;
                    return Turn::Undecided;
                }
                WaitFor::Shut if !self.blocked && !self.shut => {
                    self.shut = true;
                    if self.socket.shut(cx).is_err() {
                        return Turn::Over;
                    }
                }
                _ => {}
            }
            match self.read(cx, budget) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Turn::Over,
                Poll::Pending => return Turn::Waits,
            }
        }
        Turn::Yields
    }

    /// Takes the bytes that are there, and makes the connection close after its current answer.
    pub(crate) fn drain(&mut self, budget: &mut Budget) {
        let waker = self.waker.clone();
        self.drained = false;
        if let Poll::Ready(false) = self.read(&mut Context::from_waker(&waker), budget) {
            self.abandoned = true;
        }
        self.wired.connection().close();
    }

    /// Asks for another turn.
    pub(crate) fn ring(&self) {
        self.waker.wake_by_ref();
    }

    /// Makes the next turn the last.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// Reads once. Returns `false` if the connection is broken.
    fn read(&mut self, cx: &mut Context<'_>, budget: &mut Budget) -> Poll<bool> {
        if self.wired.connection().input_ended() {
            return Poll::Pending;
        }
        let streams = self.wired.stream().is_some();
        // The last read took as many bytes as there was room for: one more for all of the body that is there.
        if !self.drained && self.wired.reads_body() {
            self.wired.set_waiting(self.socket.waiting());
        }
        let space = self.wired.space_in(budget);
        if space.is_empty() {
            self.full = streams;
            // Without a stream, the request was refused because it has no room; the refusal is written next.
            return if streams { Poll::Pending } else { Poll::Ready(true) };
        }
        // Another read would only find that there is nothing: one system call for each request.
        if self.drained && self.socket.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let room = space.len();
        let read = self.socket.poll_read(cx, space);
        self.drained = matches!(read, Poll::Pending) || matches!(read, Poll::Ready(Ok(n)) if n < room);
        match std::task::ready!(read) {
            Ok(0) => self.wired.end_of_input(),
            Ok(n) => self.wired.filled(n),
            Err(_) => return Poll::Ready(false),
        }
        Poll::Ready(true)
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        loop {
            let pending = self.wired.pending();
            if pending.is_empty() {
                let flushed = self.socket.poll_flush(cx);
                self.blocked = flushed.is_pending();
                return if matches!(flushed, Poll::Ready(Err(_))) { Err(()) } else { Ok(()) };
            }
            match self.socket.poll_write(cx, pending) {
                Poll::Ready(Ok(0) | Err(_)) => return Err(()),
                Poll::Ready(Ok(n)) => self.wired.sent(n),
                Poll::Pending => {
                    self.blocked = true;
                    return Ok(());
                }
            }
        }
    }
}
