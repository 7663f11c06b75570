//! Errors of clients.

use std::fmt;
use std::io;

use mcp_sansio::FullError;
use mcp_sansio::client::views::ViewError;
use mcp_sansio::client::{ErrorObject, RequestError, SendError, TransportError, printable_line, printable_lines};

/// A JSON-RPC error that the server answered with. It owns its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerError {
    /// The member `code`, see [`code`](mcp_sansio::protocol::code); 0 if the server sent none.
    pub code: i32,
    /// The member `message`, as the server wrote it; empty if it sent none.
    pub message: String,
    /// The member `data`, as JSON.
    pub data: Option<String>,
}

impl ServerError {
    pub(crate) fn new(error: &ErrorObject<'_>) -> Self {
        let data = error.data.map(|data| data.as_str().to_owned());
        ServerError { code: error.code, message: error.message.to_string(), data }
    }
}

/// Writes the error without control characters, on one line. [`message`](ServerError::message) is as the server wrote
/// it.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = printable_line(&self.message);
        match (self.message.is_empty(), self.code) {
            (true, 0) => f.write_str("the server answered with an error that has neither code nor message"),
            (true, code) => write!(f, "the server answered with error {code}, without a message"),
            (false, 0) => write!(f, "the server answered with an error without a code: {message}"),
            (false, code) => write!(f, "the server answered with error {code}: {message}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// A tool that a client over HTTP has left out of the server's list, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcludedTool {
    /// The tool's name.
    pub tool: String,
    /// The reason.
    pub why: String,
}

impl ExcludedTool {
    /// Makes the report for one tool.
    pub fn new(tool: impl Into<String>, why: impl Into<String>) -> Self {
        ExcludedTool { tool: tool.into(), why: why.into() }
    }
}

/// Writes the report without control characters.
impl fmt::Display for ExcludedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool {} is left out: {}", printable_line(&self.tool), self.why)
    }
}

/// An error of a client. Its text names the problem and a way to mend it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with an error.
    Server(ServerError),
    /// The request has no answer, or none that can be used.
    Lost {
        /// The reason.
        why: TransportError,
        /// Facts from the transport: how the server's process ended and the last lines of its stderr, or the HTTP
        /// status and the beginning of the body. May be empty.
        detail: String,
    },
    /// The request was not sent.
    NotSent(SendError),
    /// Client and server have no revision in common.
    NoCommonRevision,
    /// The server's program could not be started.
    Start {
        /// The program.
        program: String,
        /// The operating system's error.
        error: io::Error,
    },
    /// The URL or a header cannot be used; the text says why.
    Url(String),
    /// The operating system refused something that the client needs.
    Io(io::Error),
    /// The server's answer is not as the protocol has it: found by a [view](mcp_sansio::client::views).
    View(ViewError),
    /// A list had more pages than [`crate::PageLimits::pages`] allows.
    TooManyPages,
    /// The pages of a list had more bytes than [`crate::PageLimits::bytes`] allows.
    ListTooLarge,
    /// The pages of a list took more time than [`crate::PageLimits::time`] allows.
    ListTooSlow,
}

impl ClientError {
    /// Returns the error that the server answered with; `None` for any other error.
    #[must_use]
    pub const fn server(&self) -> Option<&ServerError> {
        match self {
            ClientError::Server(error) => Some(error),
            _ => None,
        }
    }

    /// Returns `true` if there is no connection: the server's process has ended or was not started, or the server cannot be
    /// reached. `restart` of the client makes a new one. Requests that fail for another reason, such as
    /// [`TransportError::TimedOut`], leave the connection as it is.
    #[must_use]
    pub const fn is_disconnected(&self) -> bool {
        matches!(
            self,
            ClientError::Lost {
                why: TransportError::Closed | TransportError::Unsent | TransportError::Unreachable,
                ..
            } | ClientError::NotSent(SendError::NotConnected)
                | ClientError::Start { .. }
        )
    }

    /// Returns why a request has no answer, [`TransportError::TimedOut`] too; `None` for any other error.
    #[must_use]
    pub const fn lost(&self) -> Option<TransportError> {
        match self {
            ClientError::Lost { why, .. } => Some(*why),
            _ => None,
        }
    }

    /// Keeps a copy of the reason why a request or the opening of the connection failed.
    #[must_use]
    pub fn failed(failure: &RequestError<'_>) -> Self {
        match failure {
            RequestError::Error(error) => ClientError::Server(ServerError::new(error)),
            RequestError::Lost(TransportError::NoCommonRevision) => ClientError::NoCommonRevision,
            RequestError::Lost(why) => ClientError::lost_by(*why),
        }
    }

    /// Makes the error of a request without an answer when nothing more is known.
    #[must_use]
    pub const fn lost_by(why: TransportError) -> Self {
        ClientError::Lost { why, detail: String::new() }
    }

    /// Makes the error of a connection that is closed; `why` may be empty.
    #[must_use]
    pub fn closed(why: &str) -> Self {
        ClientError::Lost { why: TransportError::Closed, detail: why.to_owned() }
    }

    /// Adds facts from the transport, if the error has no detail yet.
    pub fn explain(&mut self, with: impl FnOnce(TransportError) -> String) {
        if let ClientError::Lost { why, detail } = self
            && detail.is_empty()
        {
            *detail = with(*why);
        }
    }
}

/// Returns advice for the user.
const fn advice(why: TransportError) -> &'static str {
    match why {
        TransportError::TimedOut => "give it more time, or see whether the server hangs",
        TransportError::Unreachable => "is it running, and are host and port right?",
        TransportError::Unauthorized => "give credentials that the server accepts",
        TransportError::TooLarge => "raise the limit on messages, or ask for less",
        TransportError::Undeclared => "declare the capability in the info, and answer the question",
        TransportError::NoRoom => "raise the limit on what is held",
        _ => "",
    }
}

/// Writes the error without control characters. Text from the stderr of a process may have several lines.
impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Server(error) => error.fmt(f),
            ClientError::Lost { why, detail } => {
                why.fmt(f)?;
                for more in [detail.as_str(), advice(*why)] {
                    if !more.is_empty() {
                        write!(f, "; {}", printable_lines(more))?;
                    }
                }
                Ok(())
            }
            ClientError::NotSent(error) => write!(f, "not sent: {error}"),
            ClientError::NoCommonRevision => {
                f.write_str("the server speaks none of the revisions that this client may speak")
            }
            ClientError::Start { program, error } => {
                let advice = match error.kind() {
                    std::io::ErrorKind::PermissionDenied => "is it a program, and may it be executed?",
                    _ => "is it installed, and in PATH?",
                };
                write!(f, "cannot start {program:?}: {error}; {advice}")
            }
            ClientError::Url(why) => printable_line(why).fmt(f),
            ClientError::Io(error) => error.fmt(f),
            ClientError::View(error) => write!(f, "the server's answer cannot be used: {error}"),
            ClientError::TooManyPages => f.write_str("the list does not end: the server gives cursor after cursor"),
            ClientError::ListTooLarge => {
                f.write_str("the list is larger than the limit; raise it, or take fewer pages")
            }
            ClientError::ListTooSlow => f.write_str("the list took too long; give it more time, or take fewer pages"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Server(error) => Some(error),
            ClientError::Lost { why, .. } => Some(why),
            ClientError::NotSent(error) => Some(error),
            ClientError::Start { error, .. } | ClientError::Io(error) => Some(error),
            ClientError::View(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SendError> for ClientError {
    fn from(error: SendError) -> Self {
        ClientError::NotSent(error)
    }
}

/// Of a request that was [kept](mcp_sansio::client::Request::keep).
impl From<FullError> for ClientError {
    fn from(error: FullError) -> Self {
        ClientError::NotSent(error.into())
    }
}

impl From<ViewError> for ClientError {
    fn from(error: ViewError) -> Self {
        ClientError::View(error)
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn only_a_missing_connection_needs_another_one() {
        let start = ClientError::Start { program: "p".into(), error: io::Error::other("no") };
        let lost =
            [TransportError::Closed, TransportError::Unsent, TransportError::Unreachable].map(ClientError::lost_by);
        for error in lost.into_iter().chain([SendError::NotConnected.into(), start]) {
            assert!(error.is_disconnected(), "{error}");
        }
        let lost = [TransportError::TimedOut, TransportError::Broken, TransportError::SessionLost];
        let sent = [SendError::FullNow, SendError::Stale].map(ClientError::from);
        for error in lost.map(ClientError::lost_by).into_iter().chain(sent).chain([ClientError::NoCommonRevision]) {
            assert!(!error.is_disconnected(), "{error}");
        }
    }

    #[test]
    fn errors_have_their_sources() {
        let server = ServerError { code: -32603, message: "no".into(), data: None };
        let start = || io::Error::other("the system says no");
        for (error, source) in [
            (ClientError::Server(server.clone()), Some(server.to_string())),
            (ClientError::lost_by(TransportError::Closed), Some(TransportError::Closed.to_string())),
            (ClientError::NotSent(SendError::Stale), Some(SendError::Stale.to_string())),
            (ClientError::Start { program: "p".into(), error: start() }, Some(start().to_string())),
            (ClientError::Io(start()), Some(start().to_string())),
            (ViewError::Missing("content").into(), Some(ViewError::Missing("content").to_string())),
            (FullError::Never.into(), Some(SendError::FullNever.to_string())),
            (ClientError::TooManyPages, None),
        ] {
            assert_eq!(error.source().map(ToString::to_string), source, "{error:?}");
        }
    }
}
