//! Sockets and listeners of TCP and of Unix, and connections over them with or without TLS.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::{
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

/// A socket.
#[derive(Debug)]
#[non_exhaustive]
pub enum NetSocket {
    /// Of TCP.
    Tcp(TcpStream),
    /// Of Unix.
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Does the same with a socket of each kind.
macro_rules! each {
    ($kind:ident, $self:expr, $socket:ident => $act:expr) => {
        match $self {
            $kind::Tcp($socket) => $act,
            #[cfg(unix)]
            $kind::Unix(.., $socket) => $act,
        }
    };
}

impl NetSocket {
    /// Begins to connect to an address of the network: the socket can be written to when it is connected, or has an error.
    ///
    /// # Errors
    /// Those of the system.
    #[cfg(all(feature = "client", unix))]
    pub fn begin_to_connect(address: &SocketAddr) -> io::Result<Self> {
        super::unix::begin_to_connect(address).map(NetSocket::Tcp)
    }

    /// Makes it one that does not block.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        each!(NetSocket, self, socket => socket.set_nonblocking(true))
    }

    /// Reads once.
    ///
    /// # Errors
    /// Those of the system.
    pub fn receive(&self, space: &mut [u8]) -> io::Result<usize> {
        each!(NetSocket, self, socket => { let mut socket = socket; socket.read(space) })
    }

    /// Writes once.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        each!(NetSocket, self, socket => { let mut socket = socket; socket.write(bytes) })
    }

    /// Ends the sending.
    ///
    /// # Errors
    /// Those of the system.
    pub fn shut(&self) -> io::Result<()> {
        each!(NetSocket, self, socket => socket.shutdown(Shutdown::Write))
    }

    /// Returns how many bytes wait to be read; 0 where the system does not say.
    #[must_use]
    pub fn waiting(&self) -> usize {
        #[cfg(unix)]
        let bytes = rustix::io::ioctl_fionread(self);
        #[cfg(not(unix))]
        let bytes: Result<u64, ()> = Ok(0);
        bytes.map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
    }
}

impl Read for NetSocket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.receive(space)
    }
}

impl Write for NetSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A listener that does not block.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpListener {
    /// Of TCP.
    Tcp(TcpListener),
    /// Of Unix. The file is removed when this is dropped, while the socket still listens: another server that waits for the path
    /// must not have its own file removed.
    #[cfg(unix)]
    Unix(super::unix::UnixSocketFile, UnixListener),
}

impl HttpListener {
    /// Binds to an address of the network.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(HttpListener::Tcp(listener))
    }

    /// Binds to a Unix socket whose file has these permissions.
    ///
    /// # Errors
    /// Those of the system, with the path.
    #[cfg(unix)]
    pub fn bind_unix(path: &Path, mode: u32) -> io::Result<Self> {
        let (listener, file) = super::unix::UnixSocketFile::bind(path, mode)?;
        listener.set_nonblocking(true)?;
        Ok(HttpListener::Unix(file, listener))
    }

    /// Accepts a connection. It sends at once: a small answer would otherwise wait for the acknowledgement of the one before.
    ///
    /// # Errors
    /// Those of the system.
    pub fn accept(&self) -> io::Result<NetSocket> {
        match self {
            HttpListener::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                let _ = socket.set_nodelay(true);
                Ok(NetSocket::Tcp(socket))
            }
            #[cfg(unix)]
            HttpListener::Unix(_, listener) => Ok(NetSocket::Unix(listener.accept()?.0)),
        }
    }

    /// Returns the address of the network.
    ///
    /// # Errors
    /// Those of the system; [`Unsupported`](io::ErrorKind::Unsupported) for a Unix socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            HttpListener::Tcp(listener) => listener.local_addr(),
            #[cfg(unix)]
            HttpListener::Unix(..) => Err(no_address()),
        }
    }
}

/// Returns the error of a listener that has no address of the network.
#[must_use]
pub fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "only a TCP socket has an address of the network")
}

macro_rules! handles {
    ($($kind:ident),*) => {$(
        #[cfg(unix)]
        impl std::os::fd::AsFd for $kind {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                each!($kind, self, socket => socket.as_fd())
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $kind {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                each!($kind, self, socket => socket.as_socket())
            }
        }
    )*};
}

handles!(NetSocket, HttpListener);

/// A connection of a client over a socket that does not block, with or without TLS. Like the socket, it returns
/// [`WouldBlock`](io::ErrorKind::WouldBlock) when it has to wait.
#[non_exhaustive]
pub enum HttpStream<S> {
    /// Without TLS.
    Plain(S),
    /// With TLS.
    #[cfg(feature = "tls")]
    Secure(Box<super::tls::TlsStream<S>>),
}

/// Does something with a socket, or with the TLS over it.
macro_rules! over {
    ($self:expr, $socket:ident => $plain:expr, $tls:ident => $secure:expr) => {
        match $self {
            HttpStream::Plain($socket) => $plain,
            #[cfg(feature = "tls")]
            HttpStream::Secure($tls) => $secure,
        }
    };
}

impl<S> HttpStream<S> {
    /// Returns the socket.
    pub fn socket(&self) -> &S {
        over!(self, socket => socket, tls => &tls.socket)
    }

    /// Returns whether the handshake of TLS is done.
    #[must_use]
    pub fn is_up(&self) -> bool {
        over!(self, _socket => true, tls => tls.up)
    }

    /// Returns whether bytes of TLS wait until the socket takes them.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        over!(self, _socket => false, tls => tls.session.wants_write())
    }
}

impl<S: Read + Write> HttpStream<S> {
    /// Continues the handshake of TLS. Returns `true` when it is done; otherwise wait until the socket is readable, or writable
    /// if [`wants_write`](HttpStream::wants_write).
    ///
    /// # Errors
    /// If the socket fails, or the peer hangs up or has no trusted certificate.
    pub fn handshake(&mut self) -> io::Result<bool> {
        over!(self, _socket => Ok(true), tls => tls.handshake())
    }
}

impl<S: Read + Write> Read for HttpStream<S> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        over!(self, socket => socket.read(space), tls => tls.read(space))
    }
}

impl<S: Read + Write> Write for HttpStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        over!(self, socket => socket.write(bytes), tls => tls.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        over!(self, socket => socket.flush(), tls => tls.flush())
    }
}

impl<S: fmt::Debug> fmt::Debug for HttpStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStream").field("socket", self.socket()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_socket_sends_at_once() {
        let listener = HttpListener::bind(("127.0.0.1", 0)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = std::iter::repeat_with(|| listener.accept()).find_map(Result::ok).unwrap();
        let NetSocket::Tcp(socket) = accepted else { panic!("it is of TCP") };
        assert!(socket.nodelay().unwrap());
    }
}
