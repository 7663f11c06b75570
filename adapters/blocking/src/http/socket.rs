//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::task::Poll;

use mcp_sansio_host::{HttpListener, NetSocket, no_address};
use mcp_sansio_http::host::{Broken, HttpSocket, Interest};

use super::sockets::Watcher;
use crate::pump::Pump;

/// The source of connections.
#[derive(Debug)]
pub(super) enum Listener {
    Net(HttpListener),
    /// One connection; `None` when it was taken.
    Stream(Option<(UnixStream, Pump)>),
}

impl Listener {
    #[allow(clippy::unnecessary_wraps, reason = "other drivers have to register it")]
    pub(super) const fn new(listener: HttpListener) -> io::Result<Self> {
        Ok(Listener::Net(listener))
    }

    pub(super) fn accept(&self) -> io::Result<NetSocket> {
        self.net().map_or_else(|| Err(ErrorKind::WouldBlock.into()), HttpListener::accept)
    }

    /// Takes the connection of a server that has only one.
    pub(super) const fn take_stream(&mut self) -> Option<(UnixStream, Pump)> {
        match self {
            Listener::Stream(stream) => stream.take(),
            Listener::Net(_) => None,
        }
    }

    /// Returns the listener to wait for; `None` if no connection will come.
    pub(super) const fn net(&self) -> Option<&HttpListener> {
        match self {
            Listener::Net(listener) => Some(listener),
            Listener::Stream(_) => None,
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.net().map_or_else(|| Err(no_address()), HttpListener::local_addr)
    }
}

/// The socket of a connection. It does not block, and is watched until it is closed.
#[derive(Debug)]
pub(super) struct Socket {
    socket: NetSocket,
    watcher: Watcher,
    /// Its number there.
    number: usize,
    /// The events that it is watched for.
    pub(super) interest: Interest,
    is_readable: bool,
    /// Something was read or written since it was ready.
    pub(super) has_moved: bool,
}

impl Socket {
    /// Prepares a new connection, and watches it.
    pub(super) fn new(socket: NetSocket, watcher: &Watcher, number: usize) -> io::Result<Self> {
        socket.set_nonblocking()?;
        let (interest, is_readable) = (Interest::Read, true);
        watcher.add(&socket, interest, number)?;
        Ok(Socket { socket, watcher: watcher.clone(), number, interest, is_readable, has_moved: false })
    }

    /// Notes that the socket is ready.
    pub(super) const fn set_ready(&mut self) {
        (self.is_readable, self.has_moved) = (true, false);
    }

    /// Notes what a call has moved; nothing if it has to be called again later.
    fn moved(&mut self, result: io::Result<usize>) -> Poll<Result<usize, Broken>> {
        match result {
            Ok(n) => {
                self.has_moved |= n > 0;
                Poll::Ready(Ok(n))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Poll::Pending,
            Err(_) => Poll::Ready(Err(Broken)),
        }
    }
}

impl HttpSocket for Socket {
    fn is_readable(&mut self) -> bool {
        self.is_readable
    }

    fn waiting(&self) -> usize {
        self.socket.waiting()
    }

    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        let result = self.socket.receive(space);
        // Another read would only find that there is nothing.
        self.is_readable = matches!(result, Ok(n) if n == space.len());
        self.moved(result)
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        let result = self.socket.send(bytes);
        self.moved(result)
    }

    fn shut(&mut self) -> Result<(), Broken> {
        self.socket.shut().map_err(|_| Broken)
    }

    fn wait_for(&mut self, interest: Interest, _: bool) -> Result<(), Broken> {
        if interest == self.interest {
            return Ok(());
        }
        self.interest = interest;
        self.watcher.change(&self.socket, interest, self.number).map_err(|_| Broken)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
