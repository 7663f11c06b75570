//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::task::Poll;

use mcp_sansio_host::UnixSocketFile;
use mcp_sansio_http::host::{Broken, HttpSocket, Interest};

use super::sockets::Watcher;
use crate::pump::Pump;

/// The source of connections.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    /// The file is removed when this is dropped, while the socket still listens: another server that waits for the path must not
    /// have its own file removed.
    Unix(#[allow(dead_code, reason = "it acts when it is dropped")] UnixSocketFile, UnixListener),
    /// One connection; `None` when it was taken.
    Stream(Option<(UnixStream, Pump)>),
}

impl Listener {
    pub(super) fn tcp(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(listener))
    }

    pub(super) fn unix(file: UnixSocketFile, listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Unix(file, listener))
    }

    pub(super) fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(socket, _)| Accepted::Tcp(socket)),
            Listener::Unix(_, listener) => listener.accept().map(|(socket, _)| Accepted::Unix(socket)),
            Listener::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Takes the connection of a server that has only one.
    pub(super) const fn take_stream(&mut self) -> Option<(UnixStream, Pump)> {
        match self {
            Listener::Stream(stream) => stream.take(),
            _ => None,
        }
    }

    /// Returns the descriptor to wait for; `None` if no connection will come.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Listener::Tcp(listener) => Some(listener.as_fd()),
            Listener::Unix(_, listener) => Some(listener.as_fd()),
            Listener::Stream(_) => None,
        }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr(),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "only a TCP socket has an address of the network")),
        }
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Accepted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Accepted::Tcp(socket) => socket.as_fd(),
            Accepted::Unix(socket) => socket.as_fd(),
        }
    }
}

/// The socket of a connection. It does not block, and is watched until it is closed.
#[derive(Debug)]
pub(super) struct Socket {
    socket: Accepted,
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
    pub(super) fn new(socket: Accepted, watcher: &Watcher, number: usize) -> io::Result<Self> {
        match &socket {
            Accepted::Tcp(socket) => socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true)),
            Accepted::Unix(socket) => socket.set_nonblocking(true),
        }?;
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
        rustix::io::ioctl_fionread(&self.socket).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
    }

    fn read(&mut self, space: &mut [u8]) -> Poll<Result<usize, Broken>> {
        let result = match &mut self.socket {
            Accepted::Tcp(socket) => socket.read(space),
            Accepted::Unix(socket) => socket.read(space),
        };
        // Another read would only find that there is nothing.
        self.is_readable = matches!(result, Ok(n) if n == space.len());
        self.moved(result)
    }

    fn write(&mut self, bytes: &[u8]) -> Poll<Result<usize, Broken>> {
        let result = match &mut self.socket {
            Accepted::Tcp(socket) => socket.write(bytes),
            Accepted::Unix(socket) => socket.write(bytes),
        };
        self.moved(result)
    }

    fn shut(&mut self) -> Result<(), Broken> {
        match &self.socket {
            Accepted::Tcp(socket) => socket.shutdown(Shutdown::Write),
            Accepted::Unix(socket) => socket.shutdown(Shutdown::Write),
        }
        .map_err(|_| Broken)
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
