//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_host::SpareDescriptors;
#[cfg(unix)]
use mcp_sansio_host::UnixSocketFile;

use super::descriptors::{has_gone, is_broken};
use crate::interrupted::retry;
use crate::stream::ByteStream;

/// The source of connections.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(Async<TcpListener>),
    /// The file is removed when this is dropped, while the socket still listens: another server that waits for the path must not
    /// have its own file removed.
    #[cfg(unix)]
    Unix(#[allow(dead_code, reason = "it acts when it is dropped")] UnixSocketFile, Async<UnixListener>),
    /// One connection; `None` when it was taken.
    Stream(Option<ByteStream>),
}

impl Listener {
    pub(super) fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener) => {
                let (socket, _) = listener.get_ref().accept()?;
                socket.set_nodelay(true)?;
                Async::new(socket).map(Socket::Tcp)
            }
            #[cfg(unix)]
            Listener::Unix(_, listener) => {
                let (socket, _) = listener.get_ref().accept()?;
                Async::new(socket).map(Socket::Unix)
            }
            Listener::Stream(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Listener::Tcp(listener) => listener.poll_readable(cx),
            #[cfg(unix)]
            Listener::Unix(_, listener) => listener.poll_readable(cx),
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
            Listener::Tcp(listener) => listener.get_ref().local_addr(),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "only a TCP socket has an address of the network")),
        }
    }
}

/// The socket of a connection.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(Async<TcpStream>),
    #[cfg(unix)]
    Unix(Async<UnixStream>),
    Stream(ByteStream),
}

impl Socket {
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            #[cfg(unix)]
            Socket::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            Socket::Stream(stream) => stream.poll_read(cx, space),
        }
    }

    /// Returns the number of bytes that can be read at once; 0 if that is not known.
    pub(super) fn waiting(&self) -> usize {
        #[cfg(unix)]
        let bytes = match self {
            Socket::Tcp(socket) => rustix::io::ioctl_fionread(socket),
            Socket::Unix(socket) => rustix::io::ioctl_fionread(socket),
            Socket::Stream(_) => Ok(0),
        };
        #[cfg(not(unix))]
        let bytes: Result<u64, ()> = Ok(0);
        bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
    }

    /// Waits for bytes that were not there when it was read last. Ready if only a read can find out.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The first call may report the event before that read. The second one does not: it watches the socket anew.
        match self {
            Socket::Tcp(socket) if socket.poll_readable(cx).is_ready() => socket.poll_readable(cx).map(drop),
            #[cfg(unix)]
            Socket::Unix(socket) if socket.poll_readable(cx).is_ready() => socket.poll_readable(cx).map(drop),
            Socket::Stream(_) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Tcp(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            #[cfg(unix)]
            Socket::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            Socket::Stream(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Makes the written bytes leave the process. Sockets keep none.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Stream(stream) => stream.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ends the sending side.
    pub(super) fn shut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.get_ref().shutdown(Shutdown::Write),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.get_ref().shutdown(Shutdown::Write),
            // All bytes were flushed. A close that takes time goes on by itself.
            Socket::Stream(stream) => match stream.poll_close(cx) {
                Poll::Ready(closed) => closed,
                Poll::Pending => Ok(()),
            },
        }
    }

    /// Returns whether the peer has closed its side, even if bytes still wait to be read.
    pub(super) fn has_gone(&self) -> bool {
        match self {
            Socket::Tcp(socket) => has_gone(socket.get_ref()),
            #[cfg(unix)]
            Socket::Unix(socket) => has_gone(socket.get_ref()),
            Socket::Stream(_) => false,
        }
    }

    /// Returns whether the connection is broken. That of a peer that has only closed its side is not.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Socket::Tcp(socket) => is_broken(socket.get_ref()),
            #[cfg(unix)]
            Socket::Unix(socket) => is_broken(socket.get_ref()),
            Socket::Stream(_) => false,
        }
    }

    /// Returns whether the socket has a descriptor that is to be spared.
    pub(super) fn is_spare(&self, spare: SpareDescriptors) -> bool {
        match self {
            Socket::Tcp(socket) => spare.has(socket.get_ref()),
            #[cfg(unix)]
            Socket::Unix(socket) => spare.has(socket.get_ref()),
            Socket::Stream(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small answers would otherwise wait for the acknowledgement of those before.
    #[test]
    fn a_tcp_socket_sends_at_once() {
        let listener = Listener::Tcp(Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap());
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        futures_lite::future::block_on(std::future::poll_fn(|cx| listener.poll_readable(cx))).unwrap();
        let Socket::Tcp(socket) = listener.accept().unwrap() else { panic!("it is of TCP") };
        assert!(socket.get_ref().nodelay().unwrap());
    }
}
