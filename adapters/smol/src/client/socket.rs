//! Sockets, and how they connect: one address after the other.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_io::{Async, Timer};
use futures_lite::{AsyncRead, AsyncWrite, FutureExt};
#[cfg(feature = "tls")]
use mcp_sansio_host::TlsConnector;
use mcp_sansio_host::{HttpPlace, HttpSession, connect_error, stream_over};

#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::interrupted::retry;
use crate::stream::ByteStream;

/// The server's address and the way to connect.
pub(super) struct Place {
    http: HttpPlace,
    #[cfg(feature = "tls")]
    secure: Option<TlsConnector>,
}

#[derive(Debug)]
pub(super) enum Socket {
    Plain(Async<TcpStream>),
    #[cfg(unix)]
    Unix(Async<UnixStream>),
    Stream(ByteStream),
    #[cfg(feature = "tls")]
    Secure(Box<Tls>),
}

/// A connection, and the address that it was made to, which is tried first next time.
pub(super) struct Dialed {
    pub(super) socket: Socket,
    pub(super) http: HttpPlace,
    /// `None` at a Unix socket.
    #[cfg(feature = "auth")]
    pub(super) address: Option<std::net::IpAddr>,
}

pub(super) type Dialing = Pin<Box<dyn Future<Output = io::Result<Dialed>> + Send>>;

impl Place {
    pub(super) fn of<A, T>(session: &HttpSession<'_, A, T>) -> Self {
        Place {
            http: session.place.clone(),
            #[cfg(feature = "tls")]
            secure: session.secure.clone(),
        }
    }

    /// Connects.
    pub(super) async fn dial(self) -> io::Result<Dialed> {
        let mut origin = match self.http.clone() {
            HttpPlace::Tcp(origin) => origin,
            #[cfg(unix)]
            HttpPlace::Unix(path) => return self.dial_unix(&path),
            _ => return Err(stream_over()),
        };
        let (mut origin, (addresses, each)) = blocking::unblock(move || {
            let found = origin.addresses()?;
            Ok::<_, io::Error>((origin, found))
        })
        .await?;
        let mut failed = io::Error::other("the name has no address");
        for address in addresses {
            let late = async {
                Timer::after(each).await;
                Err(ErrorKind::TimedOut.into())
            };
            match Async::<TcpStream>::connect(address).or(late).await {
                Ok(socket) => {
                    origin.works(address);
                    // Each request goes out in one write, so waiting for more bytes (Nagle) only delays it.
                    let _ = socket.get_ref().set_nodelay(true);
                    return Ok(Dialed {
                        socket: self.secured(socket).await?,
                        http: HttpPlace::Tcp(origin),
                        #[cfg(feature = "auth")]
                        address: Some(address.ip()),
                    });
                }
                Err(error) => failed = connect_error(address, &error),
            }
        }
        Err(failed)
    }

    #[cfg(unix)]
    fn dial_unix(self, path: &std::path::Path) -> io::Result<Dialed> {
        let socket = Async::new(mcp_sansio_host::connect_unix(path)?)?;
        Ok(Dialed {
            socket: Socket::Unix(socket),
            http: self.http,
            #[cfg(feature = "auth")]
            address: None,
        })
    }

    #[cfg(feature = "tls")]
    async fn secured(&self, socket: Async<TcpStream>) -> io::Result<Socket> {
        let Some(secure) = &self.secure else { return Ok(Socket::Plain(socket)) };
        let mut tls = Box::new(Tls::new(secure, socket)?);
        std::future::poll_fn(|cx| tls.poll_handshake(cx)).await?;
        Ok(Socket::Secure(tls))
    }

    #[cfg(not(feature = "tls"))]
    async fn secured(&self, socket: Async<TcpStream>) -> io::Result<Socket> {
        Ok(Socket::Plain(socket))
    }
}

impl Socket {
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            #[cfg(unix)]
            Socket::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_read(cx, space)),
            Socket::Stream(stream) => stream.poll_read(cx, space),
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_read(cx, space),
        }
    }

    /// Waits for bytes behind those of the last read, which has taken all that there were: a read that finds nothing is a
    /// system call. Call it once after such a read, and when it has woken the task, read: a second call would wait for the
    /// bytes behind those that woke it.
    pub(super) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Socket::Plain(socket) => poll_news(|| socket.poll_readable(cx)),
            #[cfg(unix)]
            Socket::Unix(socket) => poll_news(|| socket.poll_readable(cx)),
            Socket::Stream(_) => Poll::Ready(()),
            #[cfg(feature = "tls")]
            Socket::Secure(_) => Poll::Ready(()),
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            #[cfg(unix)]
            Socket::Unix(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            Socket::Stream(stream) => stream.poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_write(cx, bytes),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            #[cfg(unix)]
            Socket::Unix(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Stream(stream) => stream.poll_flush(cx),
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_flush(cx),
        }
    }
}

/// Waits for news of the reactor. The first may be of the bytes that were read; if there are others, the second registration
/// reports them again.
fn poll_news(mut poll: impl FnMut() -> Poll<io::Result<()>>) -> Poll<()> {
    for _ in 0..2 {
        if poll().is_pending() {
            return Poll::Pending;
        }
    }
    Poll::Ready(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn bytes_behind_a_read_are_not_missed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut socket = Socket::Plain(Async::new(socket).unwrap());
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

    /// `localhost` has two addresses, and the server is at the last one.
    #[test]
    fn the_address_that_works_is_tried_first_next_time() {
        let each = std::time::Duration::from_secs(20);
        let last = mcp_sansio_host::HttpOrigin::new("localhost", 1, each).addresses().unwrap().0.pop().unwrap();
        // Without IPv6 there is no other address.
        let Ok(listener) = TcpListener::bind((last.ip(), 0)) else { return };
        let address = listener.local_addr().unwrap();
        let place = Place {
            http: HttpPlace::Tcp(mcp_sansio_host::HttpOrigin::new("localhost", address.port(), each)),
            #[cfg(feature = "tls")]
            secure: None,
        };
        let dialed = async_io::block_on(place.dial()).unwrap();
        let Socket::Plain(socket) = &dialed.socket else { panic!("{:?}", dialed.socket) };
        let HttpPlace::Tcp(mut origin) = dialed.http else { panic!("a network") };
        assert_eq!(origin.addresses().unwrap().0[0], socket.get_ref().peer_addr().unwrap());
    }
}
