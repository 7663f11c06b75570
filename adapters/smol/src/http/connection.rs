//! One connection: its socket, and the loop between that and the protocol.

use std::net::{Shutdown, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::store::Store;
use mcp_sansio_http::endpoint::StreamId;
use mcp_sansio_http::host::{Budget, Host, Wait, Wired};

use super::descriptors::has_gone;
use super::wake::Bell;
use super::{IN_FLIGHT, WireLimits};
use crate::interrupted::retry;

pub(crate) struct Connection {
    socket: Async<TcpStream>,
    pub(crate) wired: Wired<'static>,
    /// The stream under which others know it.
    pub(crate) stream: Option<StreamId>,
    bell: Arc<Bell>,
    waker: Waker,
    /// The socket takes nothing at the moment, and will ring.
    pub(crate) blocked: bool,
    shut: bool,
    ended: bool,
    abandoned: bool,
    /// There is no room for input.
    full: bool,
}

/// What a turn has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The socket rings when there is something to do.
    Waits,
    /// There is more to do at once; others come first.
    Yields,
    /// The connection is over.
    Over,
}

/// Reads, or requests that were sent ahead, in one turn: times what is served at once.
const ROUNDS: usize = 4;

pub(crate) type Serve<'h, 'a, S> = Host<'h, 'static, 'a, S, Vec<u8>, IN_FLIGHT>;

impl Connection {
    pub(crate) fn new(socket: Async<TcpStream>, bell: Arc<Bell>, limits: WireLimits, message: usize) -> Self {
        let input = Store::growing(message.saturating_add(64 * 1024));
        let output = Store::growing(message.saturating_mul(2).saturating_add(64 * 1024));
        let waker = Waker::from(Arc::clone(&bell));
        let wired = Wired::new(input, output, limits);
        Connection {
            socket,
            wired,
            stream: None,
            bell,
            waker,
            blocked: false,
            shut: false,
            ended: false,
            abandoned: false,
            full: false,
        }
    }

    /// Whether nothing is read, because enough has come behind an open stream. Its socket does not ring then.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// Makes the next turn the last if the peer has gone.
    pub(crate) fn look(&mut self) {
        self.abandoned |= has_gone(self.socket.get_ref());
    }

    /// Serves what has come, writes what there is to say, and reads on.
    pub(crate) fn turn<S>(
        &mut self,
        host: &mut Serve<'_, '_, S>,
        random: &mut dyn FnMut(&mut [u8]),
        budget: &mut Budget,
    ) -> Turn {
        self.bell.reset();
        self.full = false;
        if self.abandoned {
            return Turn::Over;
        }
        let waker = self.waker.clone();
        let cx = &mut Context::from_waker(&waker);
        for _ in 0..ROUNDS {
            let wait = self.wired.serve(host, random);
            let Ok(()) = self.write(cx) else { return Turn::Over };
            match wait {
                Wait::Write if self.blocked => return Turn::Waits,
                Wait::Write => continue,
                Wait::Close if self.blocked => return Turn::Waits,
                Wait::Close => return Turn::Over,
                Wait::Shut if !self.blocked && !self.shut => {
                    self.shut = true;
                    if self.socket.get_ref().shutdown(Shutdown::Write).is_err() {
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

    /// Asks for another turn.
    pub(crate) fn ring(&self) {
        self.waker.wake_by_ref();
    }

    /// Makes the next turn the last.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
    }

    /// Reads once; `false` if the connection is broken.
    fn read(&mut self, cx: &mut Context<'_>, budget: &mut Budget) -> Poll<bool> {
        if self.ended {
            return Poll::Pending;
        }
        let streams = self.wired.stream().is_some();
        let space = self.wired.space_in(budget);
        if space.is_empty() {
            self.full = streams;
            // Otherwise it has been refused for lack of room, which is to be written.
            return if streams { Poll::Pending } else { Poll::Ready(true) };
        }
        let read = std::task::ready!(retry(|| Pin::new(&mut self.socket).poll_read(cx, space)));
        match read {
            Ok(0) => {
                self.ended = true;
                self.wired.end_of_input();
            }
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
                self.blocked = false;
                return Ok(());
            }
            match retry(|| Pin::new(&mut self.socket).poll_write(cx, pending)) {
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
