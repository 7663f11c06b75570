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
/// assert_eq!((text.data.as_str(), facts.data.as_str()), (r#""the connection is lost""#, r#"{"table":"notes","rows":3}"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct LogMessage {
    /// `logger`: the name of the part of the program that logs.
    pub logger: Option<String>,
    /// `data`, as JSON.
    pub data: OwnedRaw<32>,
}

impl LogMessage {
    /// Sets `logger`.
    pub fn logger(self, name: impl Into<String>) -> Self {
        LogMessage { logger: Some(name.into()), ..self }
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
