//! TLS over a socket that does not block, with rustls.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::ClientError;

/// A configuration of TLS.
pub(crate) type TlsConfig = Arc<ClientConfig>;

/// Makes TLS connections to one server.
#[derive(Clone, Debug)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnector {
    /// Makes a connector for the server called `host`. Without `config` it trusts the certificates of the system.
    ///
    /// # Errors
    /// [`ClientError::Url`] if no certificate can have that name; [`ClientError::Io`] if the system has no certificates.
    pub fn new(host: &str, config: Option<Arc<ClientConfig>>) -> Result<Self, ClientError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| ClientError::Url(format!("{host} is no name that a certificate can have")))?;
        let config = match config {
            Some(config) => config,
            None => Arc::new(system()?),
        };
        Ok(TlsConnector { config, name })
    }

    /// Begins a connection over `socket`.
    pub(crate) fn wrap<S>(&self, socket: S) -> io::Result<TlsStream<S>> {
        let session = ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)?;
        Ok(TlsStream { session, socket, up: false })
    }
}

/// Returns the configuration that trusts the certificates of the system.
fn system() -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return Err(ClientError::Io(io::Error::other(format!(
            "no certificates of authorities were found on this system{why}"
        ))));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| ClientError::Io(io::Error::other(error)))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// A TLS connection over a socket that does not block. Like the socket, it returns [`ErrorKind::WouldBlock`] when it
/// has to wait.
pub struct TlsStream<S> {
    pub(super) session: ClientConnection,
    pub(super) socket: S,
    pub(super) up: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// Continues the handshake. Returns whether it is done.
    pub(super) fn handshake(&mut self) -> io::Result<bool> {
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

    /// Reads encrypted bytes from the socket.
    fn take(&mut self) -> io::Result<usize> {
        loop {
            match self.session.read_tls(&mut self.socket) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(n) => {
                    if let Err(error) = self.session.process_new_packets() {
                        // Sends the TLS alert that names the reason.
                        let _ = self.session.write_tls(&mut self.socket);
                        return Err(io::Error::new(ErrorKind::InvalidData, error));
                    }
                    return Ok(n);
                }
            }
        }
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(space) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A connection that ends without `close_notify` may have lost its end; HTTP decides by the length of
                // the body.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(ErrorKind::ConnectionReset.into()),
                done => return done,
            }
            self.take()?;
        }
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.session.writer().write(bytes)?;
        self.flush()?;
        if n == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(n) }
    }

    /// Writes as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

mcp_sansio::debug_fields!(impl<S: fmt::Debug> for TlsStream<S> { socket });

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::HttpStream;

    /// Makes a configuration that trusts no certificate.
    pub(in crate::http) fn config() -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
    }

    /// A socket whose calls are interrupted by a signal once, and whose peer hangs up.
    #[derive(Default)]
    struct Interrupted {
        reads: usize,
        writes: usize,
    }

    fn interrupt(calls: &mut usize, then: usize) -> io::Result<usize> {
        *calls += 1;
        if *calls == 1 { Err(ErrorKind::Interrupted.into()) } else { Ok(then) }
    }

    impl Read for Interrupted {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            interrupt(&mut self.reads, 0)
        }
    }

    impl Write for Interrupted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            interrupt(&mut self.writes, bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_signal_ends_no_handshake() {
        let connector = TlsConnector::new("example.com", Some(config())).unwrap();
        let mut stream = HttpStream::new(Interrupted::default(), Some(&connector)).unwrap();
        assert_eq!(stream.handshake().unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(stream.socket().reads == 2 && stream.socket().writes >= 2 && !stream.is_up());
    }

    /// A socket with bytes to read, and with room for some bytes to write.
    #[derive(Debug, Default)]
    struct Scripted {
        input: Vec<u8>,
        output: Vec<u8>,
        room: usize,
    }

    impl Read for Scripted {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            let n = self.input.len().min(space.len());
            if n == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            space[..n].copy_from_slice(&self.input[..n]);
            self.input.drain(..n);
            Ok(n)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            self.room -= n;
            self.output.extend_from_slice(&bytes[..n]);
            if n == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(n) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stream(socket: Scripted) -> HttpStream<Scripted> {
        let connector = TlsConnector::new("example.com", Some(config())).unwrap();
        HttpStream::new(socket, Some(&connector)).unwrap()
    }

    fn socket(stream: &mut HttpStream<Scripted>) -> &mut Scripted {
        let HttpStream::Secure(tls) = stream else { panic!("it has no TLS") };
        &mut tls.socket
    }

    #[test]
    fn a_handshake_waits_for_its_peer() {
        let mut stream = stream(Scripted { room: usize::MAX, ..Scripted::default() });
        assert!(!stream.handshake().unwrap() && !stream.is_up() && !stream.wants_write());
        assert_eq!(stream.socket().output[0], 22, "a handshake record");
        // Not TLS: the peer gets an alert.
        let sent = stream.socket().output.len();
        socket(&mut stream).input = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
        assert_eq!(stream.handshake().unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(stream.socket().output[sent], 21, "an alert record");
        assert!(!stream.is_up());
    }

    #[test]
    fn what_the_socket_does_not_take_waits() {
        let mut stream = stream(Scripted { room: 10, ..Scripted::default() });
        assert!(!stream.handshake().unwrap() && stream.wants_write());
        assert_eq!(stream.socket().output.len(), 10);
        // A write sends what waits, as far as there is room.
        socket(&mut stream).room = usize::MAX;
        assert_eq!(stream.write(b"hello").unwrap(), 5);
        assert!(!stream.wants_write() && stream.socket().output.len() > 10);
        // Without room for more, it has to wait.
        let mut taken = 5;
        let end = loop {
            match stream.write(&[0; 4096]) {
                Ok(n) => taken += n,
                Err(error) => break error.kind(),
            }
            assert!(taken < 10 << 20);
        };
        assert_eq!(end, ErrorKind::WouldBlock);
        assert_eq!(stream.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
