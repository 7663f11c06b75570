//! The lines that answer a request, read.

use std::fmt;

use mcp_sansio::client::ErrorObject;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Method;

use crate::{OwnedResult, ServerError};

/// The lines that came back for a request of a [`Conversation`](super::Conversation): the answer, and apart from it notifications and
/// requests of the server.
///
/// All methods that read the answer panic if there is no answer, or an error of JSON-RPC, with the lines that came: a test
/// fails there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    answer: Option<Result<OwnedResult, ServerError>>,
    /// The notifications that came with the answer or before it, each a line of JSON: progress, log messages, changes.
    pub notifications: Vec<String>,
    /// The requests of the server, each a line of JSON: up to 2025-11-25, questions of a handler.
    pub requests: Vec<String>,
}

impl Reply {
    /// Reads lines, such as those that [`Conversation::answer`](super::Conversation::answer) returns. The answer is the first
    /// line with a `result` or an `error`.
    #[must_use]
    pub fn of(lines: Vec<String>) -> Self {
        let mut reply = Reply { answer: None, notifications: Vec::new(), requests: Vec::new() };
        for line in lines {
            let raw = Raw::parse(line.as_bytes()).unwrap_or(Raw::constant("null"));
            let (has_method, has_id) = (raw.get("method").is_some(), raw.get("id").is_some());
            let answer = match (raw.get("result"), raw.get("error")) {
                (Some(result), _) => Some(Ok(OwnedResult::new(Method::Other, result))),
                (None, Some(error)) => Some(Err(ServerError::new(&ErrorObject::read(error)))),
                (None, None) => None,
            };
            match answer {
                Some(answer) if reply.answer.is_none() => reply.answer = Some(answer),
                _ if has_method && has_id => reply.requests.push(line),
                _ => reply.notifications.push(line),
            }
        }
        reply
    }

    /// Returns whether there is no answer yet: the handler has put it off, or asks the client.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns the result.
    ///
    /// # Panics
    /// If there is no answer, or an error.
    #[must_use]
    pub fn result(&self) -> Raw<'_> {
        match &self.answer {
            Some(Ok(result)) => result.raw(),
            Some(Err(error)) => panic!("the request was refused: {error}"),
            None => panic!("there is no answer yet; so far: {self}"),
        }
    }

    /// Returns the error of JSON-RPC, if the request was refused. For an error of a tool see [`is_error`](Self::is_error).
    ///
    /// # Panics
    /// If there is no answer.
    #[must_use]
    pub fn error(&self) -> Option<&ServerError> {
        match &self.answer {
            Some(answer) => answer.as_ref().err(),
            None => panic!("there is no answer yet; so far: {self}"),
        }
    }

    /// Returns whether a tool has failed: `isError` of its result.
    ///
    /// # Panics
    /// As [`result`](Self::result).
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.result().get("isError").and_then(|error| error.bool()) == Some(true)
    }

    /// Returns the texts of the result, each on lines of its own: of a tool's `content`, of a resource's `contents`, of a
    /// prompt's `messages`. Other content has none.
    ///
    /// # Panics
    /// As [`result`](Self::result).
    #[must_use]
    pub fn text(&self) -> String {
        let result = self.result();
        let lists = ["content", "contents", "messages"].into_iter().filter_map(|key| result.get(key));
        let texts = lists.flat_map(|list| list.items()).filter_map(|item| {
            let item = item.get("content").unwrap_or(item);
            Some(item.get("text")?.text()?.to_string())
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns `structuredContent`. `Raw::deserialize` reads it into a type.
    ///
    /// # Panics
    /// If there is no such member, and as [`result`](Self::result).
    #[must_use]
    pub fn structured(&self) -> Raw<'_> {
        let result = self.result();
        result.get("structuredContent").unwrap_or_else(|| panic!("the result has no structuredContent: {result}"))
    }
}

/// Shows all that came, a line each.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.answer {
            Some(Ok(result)) => writeln!(f, "result: {}", result.as_str())?,
            Some(Err(error)) => writeln!(f, "error: {error}")?,
            None => writeln!(f, "no answer")?,
        }
        self.notifications.iter().chain(&self.requests).try_for_each(|line| writeln!(f, "{line}"))
    }
}
