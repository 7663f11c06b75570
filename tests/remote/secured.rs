//! TLS around a server, and clients that trust it or do not. The tests of all adapters include it by its path; it
//! uses the `rustls` of the module that includes it.
#![allow(unreachable_pub, reason = "shared by tests of different crates")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::rustls;
use super::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use super::rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

pub const CERTIFICATE: &[u8] = include_bytes!("localhost.cert.der");
const KEY: &[u8] = include_bytes!("localhost.key.der");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub fn trusting(certificate: Option<&'static [u8]>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(certificate) = certificate {
        roots.add(CertificateDer::from(certificate)).unwrap();
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// Puts TLS around a correct server: one request after the other, each on its own connection.
pub fn secured(inner: SocketAddr) -> SocketAddr {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key);
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Clients with much to send have to wait.
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16 * 1024).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, config) = (socket.unwrap(), config.clone());
            thread::spawn(move || forward(StreamOwned::new(ServerConnection::new(config).unwrap(), socket), inner));
        }
    });
    address
}

/// Carries bytes in both directions.
fn forward(mut outer: StreamOwned<ServerConnection, TcpStream>, inner: SocketAddr) {
    let mut inner = TcpStream::connect(inner).unwrap();
    while outer.conn.is_handshaking() {
        if outer.conn.complete_io(&mut outer.sock).is_err() {
            return;
        }
    }
    // So do those that are faster than their server.
    thread::sleep(Duration::from_millis(50));
    for socket in [&outer.sock, &inner] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    }
    let mut chunk = [0; 16_384];
    loop {
        // Several pieces, for each wait costs a millisecond.
        for _ in 0..64 {
            match outer.read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => inner.write_all(&chunk[..n]).unwrap(),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
        for _ in 0..64 {
            match inner.read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => outer.write_all(&chunk[..n]).unwrap(),
                Err(_) => break,
            }
        }
    }
}
