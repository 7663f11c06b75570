//! In place of TLS, in a program without the feature `tls`.

use crate::ClientError;

/// No configuration of TLS.
#[derive(Clone, Debug)]
pub enum TlsConfig {}

/// Makes no TLS connections.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "there is none")]
pub enum TlsConnector {}

impl TlsConnector {
    /// Refuses every host.
    ///
    /// # Errors
    /// [`ClientError::Url`].
    pub fn new(host: &str, _: Option<TlsConfig>) -> Result<Self, ClientError> {
        Err(ClientError::Url(format!("{host}: this program was built without TLS (the feature `tls`)")))
    }

    #[cfg(feature = "client")]
    pub(crate) fn secure<S>(&self, _: S) -> std::io::Result<super::HttpStream<S>> {
        match *self {}
    }
}
