//! TLS around a socket that does not block, through rustls.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::Error;

/// What connections are made with.
#[derive(Debug)]
pub(super) struct Secure {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// A connection inside TLS.
pub(super) struct Tls {
    session: ClientConnection,
    socket: TcpStream,
    up: bool,
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

    pub(super) fn wrap(&self, socket: TcpStream) -> io::Result<Tls> {
        let session = ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)?;
        Ok(Tls { session, socket, up: false })
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
    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Goes on with the handshake. Whether it is done.
    pub(super) fn shake_hands(&mut self) -> io::Result<bool> {
        loop {
            self.flush()?;
            if !self.session.is_handshaking() {
                self.up = true;
                return Ok(true);
            }
            match self.take() {
                Ok(0) => return Err(io::Error::new(ErrorKind::ConnectionReset, "closed during the TLS handshake")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes what has come through the socket.
    fn take(&mut self) -> io::Result<usize> {
        let n = self.session.read_tls(&mut self.socket)?;
        if let Err(error) = self.session.process_new_packets() {
            // The other side is told why.
            let _ = self.session.write_tls(&mut self.socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(n)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What it waits for by itself.
    pub(super) fn wants(&self) -> PollFlags {
        let read = if self.up { PollFlags::empty() } else { PollFlags::IN };
        if self.session.wants_write() { read | PollFlags::OUT } else { read }
    }
}

impl Read for Tls {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Cut off without a word: whether that is an end or a break, HTTP knows.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(ErrorKind::ConnectionReset.into()),
                done => return done,
            }
            self.take()?;
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.session.writer().write(bytes)?;
        self.flush()?;
        if n == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(n) }
    }

    /// Sends as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
