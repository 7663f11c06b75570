//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_io::Async;
use mcp_sansio_host::{HttpListener, HttpStream, NetSocket, no_address};
use mcp_sansio_http::host::{Broken, HttpSocket, Interest};

use super::descriptors::{has_gone, is_broken};
use super::wake::ConnectionWaker;
use crate::socket::{AsyncSocket, ByteStream, Socket};

/// The source of connections.
#[derive(Debug)]
pub(super) enum Listener {
    Net(Async<HttpListener>),
    /// One connection; `None` when it was taken.
    Stream(Option<ByteStream>),
}

impl Listener {
    pub(super) fn new(listener: HttpListener) -> io::Result<Self> {
        Async::new_nonblocking(listener).map(Listener::Net)
    }

    pub(super) fn accept(&self) -> io::Result<Socket> {
        let Listener::Net(listener) = self else { return Err(io::ErrorKind::WouldBlock.into()) };
        let socket = AsyncSocket::new(listener.get_ref().accept()?)?;
        Ok(Socket::Net(HttpStream::Plain(socket)))
    }

    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Listener::Net(listener) => listener.poll_readable(cx),
            Listener::Stream(_) => Poll::Pending,
        }
    }

    /// Takes the connection of a server that has only one.
    pub(super) fn take_stream(&mut self) -> Option<Socket> {
        let Listener::Stream(stream) = self else { return None };
        stream.take().map(Socket::Stream)
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self, Listener::Stream(_))
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Net(listener) => listener.get_ref().local_addr(),
            Listener::Stream(_) => Err(no_address()),
        }
    }
}

/// The socket of a connection. It wakes its [`ConnectionWaker`].
#[derive(Debug)]
pub(super) struct ServedSocket {
    socket: Socket,
    source: Arc<ConnectionWaker>,
    waker: Waker,
    /// The last read took all bytes that were there, and the socket has not woken since.
    is_drained: bool,
    /// The events for which the connection waits.
    interest: Interest,
}

impl ServedSocket {
    pub(super) fn new(socket: Socket, source: Arc<ConnectionWaker>) -> Self {
        let waker = Waker::from(Arc::clone(&source));
        ServedSocket { socket, source, waker, is_drained: false, interest: Interest::Read }
    }

    /// Notes that the socket has woken. Before the turn, so that wakes during the turn are kept.
    pub(super) fn set_woken(&mut self) {
        self.is_drained &= !self.source.reset();
    }

    #[cfg(all(test, unix))]
    pub(super) fn ring(&self) {
        self.waker.wake_by_ref();
    }

    /// Returns whether nothing is read, so that no read reports the end of the connection.
    pub(super) const fn is_unread(&self) -> bool {
        matches!(self.interest, Interest::Nothing | Interest::End)
    }

    /// Returns whether the peer has gone while nothing is read.
    pub(super) fn has_gone(&self) -> bool {
        match self.interest {
            // A client that has closed its side still gets the answer for which it waits.
            Interest::Nothing => self.socket.net().is_some_and(is_broken),
            Interest::End => self.socket.net().is_some_and(has_gone),
            _ => false,
        }
    }
}

impl HttpSocket for ServedSocket {
    fn is_readable(&mut self) -> bool {
        // Another read would only find that there is nothing: one system call for each request.
        !self.is_drained || self.socket.poll_more(&mut Context::from_waker(&self.waker)).is_ready()
    }

    fn waiting(&self) -> usize {
        self.socket.net().map_or(0, NetSocket::waiting)
    }

    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        let read = self.socket.poll_read(&mut Context::from_waker(&self.waker), space);
        self.is_drained = read.is_pending() || matches!(read, Poll::Ready(Ok(n)) if n < space.len());
        read.map_err(|_| Broken)
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        self.socket.poll_write(&mut Context::from_waker(&self.waker), bytes).map_err(|_| Broken)
    }

    fn flush(&mut self) -> Poll<Result<(), Broken>> {
        self.socket.poll_flush(&mut Context::from_waker(&self.waker)).map_err(|_| Broken)
    }

    fn shut(&mut self) -> Result<(), Broken> {
        self.socket.shut(&mut Context::from_waker(&self.waker)).map_err(|_| Broken)
    }

    fn wait_for(&mut self, interest: Interest, again: bool) -> Result<(), Broken> {
        self.interest = interest;
        if self.is_unread() {
            self.source.note_unread();
        }
        if again {
            self.waker.wake_by_ref();
        }
        Ok(())
    }
}
