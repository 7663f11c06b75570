//! TLS over a socket of async-io.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::task::{Context, Poll, ready};

use async_io::Async;
use mcp_sansio_host::{TlsConnector, TlsStream};

/// A TLS connection.
#[derive(Debug)]
pub(super) struct Tls(TlsStream<Socket>);

/// The socket for reading and writing without waiting.
#[derive(Debug)]
struct Socket(Async<TcpStream>);

impl Read for Socket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.get_ref().read(space)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_ref().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_ref().flush()
    }
}

impl Tls {
    pub(super) fn new(connector: &TlsConnector, socket: Async<TcpStream>) -> io::Result<Self> {
        connector.wrap(Socket(socket)).map(Tls)
    }

    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.0.handshake()? {
            if self.0.wants_write() {
                ready!(self.0.socket().0.poll_writable(cx))?;
            } else {
                ready!(self.0.socket().0.poll_readable(cx))?;
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.0.read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(self.0.socket().0.poll_readable(cx))?,
                done => return Poll::Ready(done),
            }
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(self.0.socket().0.poll_writable(cx))?,
                done => return Poll::Ready(done),
            }
        }
    }

    /// Writes as much as the socket takes.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.0.flush()?;
            if !self.0.wants_write() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.0.socket().0.poll_writable(cx))?;
        }
    }
}
