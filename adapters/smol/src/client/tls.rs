//! TLS around a socket, through rustls.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_io::Async;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::Error;

/// What connections are made with.
#[derive(Clone, Debug)]
pub(super) struct Secure {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A connection inside TLS.
pub(super) struct Tls {
    session: ClientConnection,
    socket: Async<TcpStream>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Secure {
    pub(super) fn new(host: &str, config: Option<Arc<ClientConfig>>) -> Result<Self, Error> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| Error::Url(format!("{host} is no name that a certificate can have")))?;
        let config = match config {
            Some(config) => config,
            None => Arc::new(system()?),
        };
        Ok(Secure { config, name })
    }

    pub(super) fn wrap(&self, socket: Async<TcpStream>) -> io::Result<Tls> {
        let session = ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)?;
        Ok(Tls { session, socket })
    }
}

/// Trusts whom the system trusts.
fn system() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(Error::Io(io::Error::other(format!(
            "no certificates of authorities were found on this system{why}"
        ))));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Error::Io(io::Error::other(error)))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

impl Tls {
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(cx))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_take(cx))? == 0 {
                let closed = io::Error::new(ErrorKind::ConnectionReset, "closed during the TLS handshake");
                return Poll::Ready(Err(closed));
            }
        }
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.session.reader().read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Cut off without a word: whether that is an end or a break, HTTP knows.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
                }
                done => return Poll::Ready(done),
            }
            ready!(self.poll_take(cx))?;
        }
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let n = self.session.writer().write(bytes)?;
            let flushed = self.poll_flush(cx)?;
            if n > 0 {
                return Poll::Ready(Ok(n));
            }
            ready!(flushed);
        }
    }

    /// Sends as much as the socket takes.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket.get_ref()) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(self.socket.poll_writable(cx))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes what has come through the socket.
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            match self.session.read_tls(&mut self.socket.get_ref()) {
                Ok(n) => {
                    if let Err(error) = self.session.process_new_packets() {
                        // The other side is told why.
                        let _ = self.session.write_tls(&mut self.socket.get_ref());
                        return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
                    }
                    return Poll::Ready(Ok(n));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(self.socket.poll_readable(cx))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
