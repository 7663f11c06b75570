//! The sockets that a server listens on and talks over: TCP, Unix, or one stream of bytes.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_host::SpareDescriptors;
#[cfg(unix)]
use mcp_sansio_host::UnixSocketFile;
use mcp_sansio_http::host::{Broken, HttpSocket, Interest};

use super::descriptors::{has_gone, is_broken};
use super::wake::Bell;
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
    pub(super) fn tcp(listener: TcpListener) -> io::Result<Self> {
        Async::new(listener).map(Listener::Tcp)
    }

    #[cfg(unix)]
    pub(super) fn unix(file: UnixSocketFile, listener: UnixListener) -> io::Result<Self> {
        Ok(Listener::Unix(file, Async::new(listener)?))
    }

    pub(super) fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (socket, _) = listener.get_ref().accept()?;
                socket.set_nodelay(true)?;
                Async::new(socket).map(Accepted::Tcp)
            }
            #[cfg(unix)]
            Listener::Unix(_, listener) => {
                let (socket, _) = listener.get_ref().accept()?;
                Async::new(socket).map(Accepted::Unix)
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
    pub(super) fn take_stream(&mut self) -> Option<Accepted> {
        let Listener::Stream(stream) = self else { return None };
        stream.take().map(Accepted::Stream)
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

/// A connection that was accepted.
#[derive(Debug)]
pub(super) enum Accepted {
    Tcp(Async<TcpStream>),
    #[cfg(unix)]
    Unix(Async<UnixStream>),
    Stream(ByteStream),
}

impl Accepted {
    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Accepted::Tcp(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            #[cfg(unix)]
            Accepted::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            Accepted::Stream(stream) => stream.poll_read(cx, space),
        }
    }

    /// Returns the number of bytes that can be read at once; 0 if that is not known.
    fn waiting(&self) -> usize {
        #[cfg(unix)]
        let bytes = match self {
            Accepted::Tcp(socket) => rustix::io::ioctl_fionread(socket),
            Accepted::Unix(socket) => rustix::io::ioctl_fionread(socket),
            Accepted::Stream(_) => Ok(0),
        };
        #[cfg(not(unix))]
        let bytes: Result<u64, ()> = Ok(0);
        bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
    }

    /// Waits for bytes that were not there when it was read last. Ready if only a read can find out.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The first call may report the event before that read. The second one does not: it watches the socket anew.
        match self {
            Accepted::Tcp(socket) if socket.poll_readable(cx).is_ready() => socket.poll_readable(cx).map(drop),
            #[cfg(unix)]
            Accepted::Unix(socket) if socket.poll_readable(cx).is_ready() => socket.poll_readable(cx).map(drop),
            Accepted::Stream(_) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Accepted::Tcp(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            #[cfg(unix)]
            Accepted::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            Accepted::Stream(stream) => stream.poll_write(cx, bytes),
        }
    }

    /// Makes the written bytes leave the process. Sockets keep none.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Accepted::Stream(stream) => stream.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Ends the sending side.
    fn shut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self {
            Accepted::Tcp(socket) => socket.get_ref().shutdown(Shutdown::Write),
            #[cfg(unix)]
            Accepted::Unix(socket) => socket.get_ref().shutdown(Shutdown::Write),
            // All bytes were flushed. A close that takes time goes on by itself.
            Accepted::Stream(stream) => match stream.poll_close(cx) {
                Poll::Ready(closed) => closed,
                Poll::Pending => Ok(()),
            },
        }
    }

    /// Returns whether the peer has closed its side, even if bytes still wait to be read.
    fn has_gone(&self) -> bool {
        match self {
            Accepted::Tcp(socket) => has_gone(socket.get_ref()),
            #[cfg(unix)]
            Accepted::Unix(socket) => has_gone(socket.get_ref()),
            Accepted::Stream(_) => false,
        }
    }

    /// Returns whether the connection is broken. That of a peer that has only closed its side is not.
    fn is_broken(&self) -> bool {
        match self {
            Accepted::Tcp(socket) => is_broken(socket.get_ref()),
            #[cfg(unix)]
            Accepted::Unix(socket) => is_broken(socket.get_ref()),
            Accepted::Stream(_) => false,
        }
    }

    /// Returns whether the socket has a descriptor that is to be spared.
    pub(super) fn is_spare(&self, spare: SpareDescriptors) -> bool {
        match self {
            Accepted::Tcp(socket) => spare.has(socket.get_ref()),
            #[cfg(unix)]
            Accepted::Unix(socket) => spare.has(socket.get_ref()),
            Accepted::Stream(_) => false,
        }
    }
}

/// The socket of a connection. It wakes its [`Bell`].
#[derive(Debug)]
pub(super) struct Socket {
    socket: Accepted,
    bell: Arc<Bell>,
    waker: Waker,
    /// The last read took all bytes that were there, and the socket has not woken since.
    is_drained: bool,
    /// The events for which the connection waits.
    interest: Interest,
}

impl Socket {
    pub(super) fn new(socket: Accepted, bell: Arc<Bell>) -> Self {
        let waker = Waker::from(Arc::clone(&bell));
        Socket { socket, bell, waker, is_drained: false, interest: Interest::Read }
    }

    /// Notes that the socket has woken. Before the turn, so that wakes during the turn are kept.
    pub(super) fn set_woken(&mut self) {
        self.is_drained &= !self.bell.reset();
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
            Interest::Nothing => self.socket.is_broken(),
            Interest::End => self.socket.has_gone(),
            _ => false,
        }
    }
}

impl HttpSocket for Socket {
    fn is_readable(&mut self) -> bool {
        // Another read would only find that there is nothing: one system call for each request.
        !self.is_drained || self.socket.poll_readable(&mut Context::from_waker(&self.waker)).is_ready()
    }

    fn waiting(&self) -> usize {
        self.socket.waiting()
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
            self.bell.note_unread();
        }
        if again {
            self.waker.wake_by_ref();
        }
        Ok(())
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
        let Accepted::Tcp(socket) = listener.accept().unwrap() else { panic!("it is of TCP") };
        assert!(socket.get_ref().nodelay().unwrap());
    }
}
