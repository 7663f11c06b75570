//! Log messages that are sent from tasks and threads.

use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::sink::to_vec;

/// The content of a `notifications/message`: a text, or any JSON, and perhaps the part of the program that logs
/// ([logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging)).
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio_host::LogMessage;
///
/// let text: LogMessage = "the connection is lost".into();
/// let facts = LogMessage::from(Raw::constant(r#"{"table":"notes","rows":3}"#)).logger("db");
/// assert_eq!((text.data().as_str(), facts.data().as_str()), (r#""the connection is lost""#, r#"{"table":"notes","rows":3}"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct LogMessage {
    logger: Option<String>,
    data: OwnedRaw<32>,
}

impl LogMessage {
    /// Sets `logger`: the name of the part of the program that logs.
    pub fn logger(self, name: impl Into<String>) -> Self {
        LogMessage { logger: Some(name.into()), ..self }
    }

    /// Returns `data`, as JSON.
    #[must_use]
    pub fn data(&self) -> Raw<'_> {
        self.data.raw()
    }

    /// Returns `logger`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.logger.as_deref()
    }
}

/// Makes a message with this JSON as its `data`, unchanged.
impl From<Raw<'_>> for LogMessage {
    fn from(data: Raw<'_>) -> Self {
        LogMessage { logger: None, data: data.into() }
    }
}

/// Makes a message with this text as its `data`, a string.
impl From<&str> for LogMessage {
    fn from(text: &str) -> Self {
        let json = to_vec(|out| out.string(text)).unwrap_or_default();
        Raw::parse(&json).unwrap_or(Raw::constant("\"\"")).into()
    }
}

/// Makes a message with this text as its `data`, a string.
impl From<String> for LogMessage {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}
