//! What a client is told.

use core::fmt;

use super::params::BadAnnotation;

/// What the driver does next with a connection. Between the two, the slot's socket is the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[allow(clippy::exhaustive_enums, reason = "a connection is opened and closed")]
pub enum Action {
    /// Connect the slot to the server (with TLS, if the URL says so), then call `connected` or `failed`.
    Connect(usize),
    /// Close the slot's connection, or stop connecting, and do not call back.
    Close(usize),
}

/// Something happened. Borrows the client until the next call; what it tells of is over then.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Event<'e> {
    /// A message came.
    Message {
        /// The request whose exchange it came on; `None` on a stream of the server's own. If the message is a response,
        /// this is the request that it ends; its own `id` may be missing where the HTTP status was an error.
        request: Option<u64>,
        /// One JSON-RPC message: well-formed JSON.
        bytes: &'e mut [u8],
    },
    /// A request will not be answered, or a notification or response was not taken (`request` is `None`).
    Failed {
        /// Which request this ends.
        request: Option<u64>,
        /// Why.
        why: Why,
        /// What the server said to it: where a redirect leads to, the start of an error's body; often empty.
        detail: &'e str,
    },
    /// The server wants authorization. Its exchange waits: [`set_header`](super::Remote::set_header), then
    /// [`retry`](super::Remote::retry), or [`give_up`](super::Remote::give_up).
    Challenge {
        /// Which exchange waits.
        slot: usize,
        /// Its request, if it has one.
        request: Option<u64>,
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`; empty if there was none.
        www_authenticate: &'e str,
    },
    /// An event of a stream was dropped: larger than its store, or not JSON. The stream goes on.
    Skipped {
        /// The request whose stream it came on.
        request: Option<u64>,
        /// [`Why::TooLarge`] or [`Why::Garbage`].
        why: Why,
        /// As much of it as was kept.
        start: &'e [u8],
    },
    /// The session has ended as [`end_session`](super::Remote::end_session) asked, or the server does not end sessions.
    Ended,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Why {
    /// No connection could be made. Nothing was sent.
    Refused,
    /// No connection in time, or the server stopped reading, or an exchange that is no request was not answered.
    TimedOut,
    /// The connection was gone before anything was answered; whether the request was handled is unknown.
    Reset,
    /// The connection was gone in the middle of the answer, and its stream could not be resumed.
    Broken,
    /// An HTTP status that means an error, without a JSON-RPC error that would say more.
    Status {
        /// The status.
        code: u16,
        /// Seconds after which to try again, if it said so (`Retry-After`).
        retry_after: Option<u32>,
    },
    /// A redirect that is not followed: to another origin, one too many, or of a kind that does not keep the method.
    Redirect(u16),
    /// The session is unknown to the server, or was: initialize anew.
    SessionLost,
    /// An answer that is not HTTP/1.1.
    NotHttp,
    /// A body that is not JSON, or an answer to another request.
    Garbage,
    /// A body of another type than JSON or an event stream.
    ContentType,
    /// The answer is larger than its store.
    TooLarge,
    /// Success, but no answer, or the stream ended before it.
    Unanswered,
    /// The `endpoint` of the old transport is no URL of the same origin.
    Endpoint,
    /// The challenge was given up.
    GivenUp,
    /// The message with its head is larger than its store.
    NoRoom,
    /// The tool must not be called: its annotations cannot be followed (2026-07-28). Nothing was sent.
    Excluded(BadAnnotation),
}

/// Whose matter a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Blame {
    /// The network's, or a server's that is down: trying again may help.
    Network,
    /// The server's: it broke the protocol or refused.
    Server,
    /// The caller's: limits, authorization.
    Caller,
}

impl Why {
    /// Whose matter it is.
    #[must_use]
    pub const fn blame(self) -> Blame {
        match self {
            Why::Refused | Why::TimedOut | Why::Reset | Why::Broken => Blame::Network,
            Why::GivenUp | Why::NoRoom | Why::TooLarge => Blame::Caller,
            _ => Blame::Server,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Refused => "no connection to the server",
            Why::TimedOut => "the server did not react in time",
            Why::Reset => "the connection was closed before an answer",
            Why::Broken => "the connection was closed in the middle of the answer",
            Why::Status { code, .. } => return write!(f, "HTTP status {code}"),
            Why::Redirect(code) => return write!(f, "a redirect ({code}) that is not followed"),
            Why::SessionLost => "the server does not know the session any more",
            Why::NotHttp => "the answer is not HTTP/1.1",
            Why::Garbage => "the answer is no JSON-RPC message",
            Why::ContentType => "the answer is neither JSON nor an event stream",
            Why::TooLarge => "the answer is larger than the limit",
            Why::Unanswered => "success without an answer",
            Why::Endpoint => "the endpoint is no URL of the same origin",
            Why::GivenUp => "not authorized",
            Why::NoRoom => "the message is larger than its store",
            Why::Excluded(why) => return why.fmt(f),
        })
    }
}

impl core::error::Error for Why {}
