//! Connects a client: one address after the other.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;

use async_io::{Async, Timer};
use futures_lite::FutureExt;
use mcp_sansio_host::{HttpPlace, HttpStream, NetSocket, TlsConnector, connect_error};

use crate::socket::{AsyncSocket, Socket};

/// A connection, and the address that it was made to.
pub(super) struct Dialed {
    pub(super) socket: Socket,
    /// The place with the addresses that it has.
    pub(super) http: HttpPlace,
    /// `None` at a Unix socket.
    pub(super) address: Option<SocketAddr>,
}

pub(super) type Dialing = Pin<Box<dyn Future<Output = io::Result<Dialed>> + Send>>;

/// Connects to a server.
pub(super) async fn dial(http: HttpPlace, secure: Option<TlsConnector>) -> io::Result<Dialed> {
    let HttpPlace::Tcp(mut origin) = http.clone() else {
        let socket = secured(http.connect()?, secure.as_ref()).await?;
        return Ok(Dialed { socket, http, address: None });
    };
    let (origin, (addresses, each)) = blocking::unblock(move || {
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
                // Each request goes out in one write, so waiting for more bytes (Nagle) only delays it.
                let _ = socket.get_ref().set_nodelay(true);
                let socket = secured(NetSocket::Tcp(socket.into_inner()?), secure.as_ref()).await?;
                return Ok(Dialed { socket, http: HttpPlace::Tcp(origin), address: Some(address) });
            }
            Err(error) => failed = connect_error(address, &error),
        }
    }
    Err(failed)
}

/// Does the handshake of TLS, if there is one.
async fn secured(socket: NetSocket, secure: Option<&TlsConnector>) -> io::Result<Socket> {
    let mut socket = Socket::Net(HttpStream::new(AsyncSocket::new(socket)?, secure)?);
    std::future::poll_fn(|cx| socket.poll_handshake(cx)).await?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// `localhost` has two addresses, and the server is at the last one.
    #[test]
    fn the_address_that_works_is_tried_first_next_time() {
        let each = std::time::Duration::from_secs(20);
        let last = mcp_sansio_host::HttpOrigin::new("localhost", 1, each).addresses().unwrap().0.pop().unwrap();
        // Without IPv6 there is no other address.
        let Ok(listener) = TcpListener::bind((last.ip(), 0)) else { return };
        let address = listener.local_addr().unwrap();
        let place = HttpPlace::Tcp(mcp_sansio_host::HttpOrigin::new("localhost", address.port(), each));
        let dialed = async_io::block_on(dial(place, None)).unwrap();
        let Some(NetSocket::Tcp(socket)) = dialed.socket.net() else { panic!("{:?}", dialed.socket) };
        let HttpPlace::Tcp(mut origin) = dialed.http else { panic!("a network") };
        origin.works(dialed.address.unwrap());
        assert_eq!(origin.addresses().unwrap().0[0], socket.peer_addr().unwrap());
    }
}
