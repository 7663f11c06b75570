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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::FutureExt;
    use std::future::{Future, poll_fn};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::task::Waker;

    /// Returns a client that trusts no certificate, and the socket of its server.
    fn pair(is_full: bool) -> (Tls, TcpStream, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = Async::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut filled = 0;
        while is_full && let Ok(n) = near.get_ref().write(&[0; 4096]) {
            filled += n;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let connector = TlsConnector::new("localhost", Some(Arc::new(config))).unwrap();
        (Tls::new(&connector, near).unwrap(), far, filled)
    }

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    /// Waits on the reactor. A test that hangs fails.
    fn wait<T>(future: impl Future<Output = T>) -> T {
        async_io::block_on(future.or(async {
            async_io::Timer::after(std::time::Duration::from_secs(20)).await;
            panic!("it hangs")
        }))
    }

    #[test]
    fn a_handshake_waits_for_the_server() {
        let (mut tls, mut far, _) = pair(false);
        assert!(tls.poll_handshake(&mut cx()).is_pending());
        assert!(!tls.0.wants_write(), "its first message was sent");
        far.write_all(b"SSH-2.0-nothing here\r\n").unwrap();
        let error = wait(poll_fn(|cx| tls.poll_handshake(cx))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }

    /// The first message does not fit into the socket: the client waits until the server reads.
    #[test]
    fn a_server_that_does_not_read_is_waited_for() {
        let (mut tls, mut far, filled) = pair(true);
        for _ in 0..2 {
            assert!(tls.poll_handshake(&mut cx()).is_pending());
            assert!(tls.poll_flush(&mut cx()).is_pending());
            assert!(tls.0.wants_write());
        }
        let reading = std::thread::spawn(move || {
            far.read_exact(&mut vec![0; filled]).unwrap();
            let mut record = [0; 1];
            far.read_exact(&mut record).unwrap();
            (record, far)
        });
        wait(poll_fn(|cx| tls.poll_flush(cx))).unwrap();
        assert!(!tls.0.wants_write());
        assert!(tls.poll_handshake(&mut cx()).is_pending());
        // The type of a record of the handshake.
        assert_eq!(reading.join().unwrap().0, [22]);
    }

    /// Before the handshake the session keeps a part of what is to be sent.
    #[test]
    fn bytes_that_cannot_be_read_or_written_yet_are_no_error() {
        let (mut tls, _far, _) = pair(true);
        assert!(tls.poll_read(&mut cx(), &mut [0; 8]).is_pending());
        let mut taken = 0;
        while let Poll::Ready(written) = tls.poll_write(&mut cx(), &[0; 4096]) {
            taken += written.unwrap();
            assert!(taken < 1 << 24, "without end");
        }
        assert!(taken > 0);
    }

    #[test]
    fn a_connection_that_is_gone_is_an_error() {
        let (mut tls, far, _) = pair(false);
        drop(far);
        let error = wait(poll_fn(|cx| tls.poll_read(cx, &mut [0; 8]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");

        let (mut tls, far, _) = pair(false);
        drop(far);
        // The first bytes lead to the answer that the peer is gone.
        while tls.0.socket().0.get_ref().write(b"x").is_ok() {
            std::thread::yield_now();
        }
        let error = wait(poll_fn(|cx| tls.poll_write(cx, b"hello"))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
}
