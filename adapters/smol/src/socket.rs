//! Sockets, with or without TLS, and streams of bytes in their place.

use std::io::{self, ErrorKind, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_host::{HttpStream, NetSocket};

use crate::interrupted::retry;

/// The connection of a client or server.
#[derive(Debug)]
pub(crate) enum Socket {
    Net(HttpStream<AsyncSocket>),
    Stream(ByteStream),
}

/// A socket that is known to the reactor.
#[derive(Debug)]
pub(crate) struct AsyncSocket(Async<NetSocket>);

impl AsyncSocket {
    /// Takes over a socket.
    pub(crate) fn new(socket: NetSocket) -> io::Result<Self> {
        Async::new(socket).map(AsyncSocket)
    }

    pub(crate) fn get_ref(&self) -> &NetSocket {
        self.0.get_ref()
    }
}

impl Read for AsyncSocket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.0.get_ref().receive(space)
    }
}

impl Write for AsyncSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_ref().send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    /// Continues the handshake of TLS.
    #[cfg(feature = "client")]
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Socket::Net(stream) = self else { return Poll::Ready(Ok(())) };
        while !stream.handshake()? {
            if stream.wants_write() {
                ready!(stream.socket().0.poll_writable(cx))?;
            } else {
                ready!(stream.socket().0.poll_readable(cx))?;
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        let stream = match self {
            Socket::Net(stream) => stream,
            Socket::Stream(stream) => return stream.poll_read(cx, space),
        };
        loop {
            match stream.read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(stream.socket().0.poll_readable(cx))?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Waits for bytes behind those of the last read, which has taken all that there were: a read that finds nothing is a
    /// system call. Call it once after such a read, and when it has woken the task, read: a second call would wait for the
    /// bytes behind those that woke it. Ready if only a read can find out.
    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Socket::Net(HttpStream::Plain(socket)) = self else { return Poll::Ready(()) };
        // The first news may be of the bytes that were read; if there are others, the second registration reports them again.
        for _ in 0..2 {
            let _ = ready!(socket.0.poll_readable(cx));
        }
        Poll::Ready(())
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stream = match self {
            Socket::Net(stream) => stream,
            Socket::Stream(stream) => return stream.poll_write(cx, bytes),
        };
        loop {
            match stream.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(stream.socket().0.poll_writable(cx))?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return Poll::Ready(done),
            }
        }
    }

    /// Makes the written bytes leave the process.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = match self {
            Socket::Net(stream) => stream,
            Socket::Stream(stream) => return stream.poll_flush(cx),
        };
        loop {
            stream.flush()?;
            if !stream.wants_write() {
                return Poll::Ready(Ok(()));
            }
            ready!(stream.socket().0.poll_writable(cx))?;
        }
    }

    /// Ends the sending side.
    pub(crate) fn shut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self {
            Socket::Net(stream) => stream.socket().get_ref().shut(),
            // All bytes were flushed. A close that takes time goes on by itself.
            Socket::Stream(stream) => match stream.poll_close(cx) {
                Poll::Ready(closed) => closed,
                Poll::Pending => Ok(()),
            },
        }
    }

    /// Returns the socket of the network.
    pub(crate) fn net(&self) -> Option<&NetSocket> {
        match self {
            Socket::Net(stream) => Some(stream.socket().get_ref()),
            Socket::Stream(_) => None,
        }
    }
}

/// A stream of bytes that carries one HTTP connection: a reader and a writer.
pub(crate) struct ByteStream {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl ByteStream {
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        ByteStream { reader: Box::new(reader), writer: Box::new(writer) }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        retry(|| Pin::new(&mut self.reader).poll_read(cx, space))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        retry(|| Pin::new(&mut self.writer).poll_write(cx, bytes))
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        retry(|| Pin::new(&mut self.writer).poll_flush(cx))
    }

    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        retry(|| Pin::new(&mut self.writer).poll_close(cx))
    }
}

mcp_sansio::debug_fields!(impl for ByteStream {});

#[cfg(all(test, feature = "client"))]
mod tests {
    use super::*;
    use async_io::Timer;
    use futures_lite::FutureExt;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_behind_a_read_are_not_missed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let socket = AsyncSocket::new(NetSocket::Tcp(socket)).unwrap();
        let mut socket = Socket::Net(HttpStream::Plain(socket));
        let late = async |round: u32| {
            Timer::after(std::time::Duration::from_secs(10)).await;
            panic!("round {round}: they were missed");
        };
        async_io::block_on(async {
            let mut space = [0; 8];
            for round in 0..100 {
                peer.write_all(b"abc").unwrap();
                let n = std::future::poll_fn(|cx| socket.poll_read(cx, &mut space)).await.unwrap();
                assert_eq!(&space[..n], b"abc");
                if round % 2 == 0 {
                    // They come before it waits.
                    peer.write_all(b"de").unwrap();
                }
                let mut waits = 0;
                let more = std::future::poll_fn(|cx| {
                    waits += 1;
                    if waits == 1 && socket.poll_more(cx).is_pending() {
                        if round % 2 == 1 {
                            peer.write_all(b"de").unwrap();
                        }
                        return Poll::Pending;
                    }
                    socket.poll_read(cx, &mut space)
                });
                // The clock first: when it wakes the task, a read would find the bytes.
                let n = late(round).or(more).await.unwrap();
                assert_eq!(&space[..n], b"de");
                assert!(waits > 1, "round {round}: it has not waited");
            }
            drop(peer);
            let mut waits = 0;
            let end = std::future::poll_fn(|cx| {
                waits += 1;
                if waits == 1 && socket.poll_more(cx).is_pending() {
                    return Poll::Pending;
                }
                socket.poll_read(cx, &mut space)
            });
            assert_eq!(late(100).or(end).await.unwrap(), 0);
        });
    }
}

#[cfg(all(test, feature = "tls", feature = "client"))]
mod tls_tests {
    use super::*;
    use crate::client::rustls;
    use futures_lite::FutureExt;
    use mcp_sansio_host::TlsConnector;
    use std::future::{Future, poll_fn};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::task::Waker;

    /// Returns a client that trusts no certificate, and the socket of its server.
    fn pair(is_full: bool) -> (Socket, TcpStream, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut filled = 0;
        while is_full && let Ok(n) = near.write(&[0; 4096]) {
            filled += n;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let connector = TlsConnector::new("localhost", Some(Arc::new(config))).unwrap();
        let near = AsyncSocket::new(NetSocket::Tcp(near)).unwrap();
        (Socket::Net(HttpStream::new(near, Some(&connector)).unwrap()), far, filled)
    }

    fn wants_write(socket: &Socket) -> bool {
        matches!(socket, Socket::Net(stream) if stream.wants_write())
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
        assert!(!wants_write(&tls), "its first message was sent");
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
            assert!(wants_write(&tls));
        }
        let reading = std::thread::spawn(move || {
            far.read_exact(&mut vec![0; filled]).unwrap();
            let mut record = [0; 1];
            far.read_exact(&mut record).unwrap();
            (record, far)
        });
        wait(poll_fn(|cx| tls.poll_flush(cx))).unwrap();
        assert!(!wants_write(&tls));
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
        while tls.net().unwrap().send(b"x").is_ok() {
            std::thread::yield_now();
        }
        let error = wait(poll_fn(|cx| tls.poll_write(cx, b"hello"))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
    }
}
