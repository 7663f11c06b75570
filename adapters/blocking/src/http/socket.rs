//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use mcp_sansio_host::UnixSocketFile;

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
    pub(super) fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(socket, _)| Socket::Tcp(socket)),
            Listener::Unix(_, listener) => listener.accept().map(|(socket, _)| Socket::Unix(socket)),
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

/// The socket of a connection.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Makes a new socket one that does not block.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true)),
            Socket::Unix(socket) => socket.set_nonblocking(true),
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.shutdown(how),
            Socket::Unix(socket) => socket.shutdown(how),
        }
    }

    /// Returns the number of bytes that can be read at once.
    pub(super) fn waiting(&self) -> usize {
        rustix::io::ioctl_fionread(self).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
    }

    pub(super) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(space),
            Socket::Unix(socket) => socket.read(space),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}
