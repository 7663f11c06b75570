//! Sockets, and how they are connected: one address after the other.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::{Async, Timer};
use futures_lite::{AsyncRead, AsyncWrite, FutureExt};

#[cfg(feature = "tls")]
use super::tls::{Secure, Tls};
use crate::interrupted::retry;

/// A name may have many addresses, of which some lead nowhere: each has at least this time.
const LEAST: Duration = Duration::from_millis(250);

/// Where to connect to. Names are looked up once, and again when no address works any more.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) addresses: Vec<SocketAddr>,
    /// For all addresses together.
    pub(super) time: Duration,
    #[cfg(feature = "tls")]
    pub(super) secure: Option<Secure>,
}

#[derive(Debug)]
pub(super) enum Socket {
    Plain(Async<TcpStream>),
    #[cfg(feature = "tls")]
    Secure(Box<Tls>),
}

/// A connection, with the addresses of its place: the one that works is the first.
pub(super) struct Dialed {
    pub(super) socket: Socket,
    pub(super) addresses: Vec<SocketAddr>,
}

pub(super) type Dialing = Pin<Box<dyn Future<Output = io::Result<Dialed>> + Send>>;

impl Place {
    /// Connects.
    pub(super) async fn dial(self) -> io::Result<Dialed> {
        let mut addresses = self.addresses.clone();
        if addresses.is_empty() {
            addresses = self.look_up().await?;
        }
        let each = (self.time / addresses.len().max(1) as u32).max(LEAST);
        let mut failed = io::Error::other("the name has no address");
        for at in 0..addresses.len() {
            let address = addresses[at];
            let late = async {
                Timer::after(each).await;
                Err(ErrorKind::TimedOut.into())
            };
            match Async::<TcpStream>::connect(address).or(late).await {
                Ok(socket) => {
                    addresses[..=at].rotate_right(1);
                    // Requests are small and written whole.
                    let _ = socket.get_ref().set_nodelay(true);
                    return Ok(Dialed { socket: self.secured(socket).await?, addresses });
                }
                Err(error) => failed = io::Error::new(error.kind(), format!("{address}: {error}")),
            }
        }
        Err(failed)
    }

    async fn look_up(&self) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = (self.host.clone(), self.port);
        let found = blocking::unblock(move || (host.as_str(), port).to_socket_addrs()).await;
        let found = found.map_err(|error| io::Error::other(format!("no address for {}: {error}", self.host)))?;
        let mut addresses = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }

    #[cfg(feature = "tls")]
    async fn secured(&self, socket: Async<TcpStream>) -> io::Result<Socket> {
        let Some(secure) = &self.secure else { return Ok(Socket::Plain(socket)) };
        let mut tls = Box::new(secure.wrap(socket)?);
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
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_read(cx, space),
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(socket) => retry(|| Pin::new(&mut *socket).poll_write(cx, bytes)),
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_write(cx, bytes),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            #[cfg(feature = "tls")]
            Socket::Secure(tls) => tls.poll_flush(cx),
        }
    }
}
