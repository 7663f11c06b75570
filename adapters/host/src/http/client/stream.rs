//! The beginning of a connection.

use std::io::{self, Read, Write};

use crate::HttpStream;
use crate::http::tls::TlsConnector;

impl<S: Read + Write> HttpStream<S> {
    /// Begins a connection over `socket`, with TLS if there is a connector.
    ///
    /// # Errors
    /// If the configuration of TLS does not allow the connection.
    pub fn new(socket: S, secure: Option<&TlsConnector>) -> io::Result<Self> {
        match secure {
            Some(connector) => connector.secure(socket),
            None => Ok(HttpStream::Plain(socket)),
        }
    }
}

#[cfg(feature = "tls")]
impl TlsConnector {
    fn secure<S>(&self, socket: S) -> io::Result<HttpStream<S>> {
        self.wrap(socket).map(|tls| HttpStream::Secure(Box::new(tls)))
    }
}
