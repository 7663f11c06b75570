//! Events and actions of the client's transport.

use super::params::AnnotationError;

/// A socket operation for the driver. After `Connect`, the driver owns the slot's socket until `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use]
#[allow(clippy::exhaustive_enums, reason = "a connection is opened and closed")]
pub enum SocketAction {
    /// Connect the slot to the server, with TLS if its [URL](super::HttpTransport::url) demands it, then call
    /// [`connected`](super::HttpTransport::connected) or [`failed`](super::HttpTransport::failed).
    Connect(usize),
    /// Close the slot's connection, or stop connecting. Do not report this back.
    Close(usize),
}

/// An event of the transport. It borrows the transport until the next call.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum HttpClientEvent<'e> {
    /// A message arrived.
    Message {
        /// The request in whose exchange the message arrived; `None` on a stream for the server's own messages.
        /// For a response, it is the request that the response ends: with an HTTP status of 400 or more, the
        /// response may lack an `id`.
        request: Option<u64>,
        /// One JSON-RPC message: well-formed JSON.
        bytes: &'e mut [u8],
    },
    /// A request gets no answer, or the server did not accept a notification or response (`request` is `None`).
    Failed {
        /// The request that this ends.
        request: Option<u64>,
        /// The reason.
        why: FailureReason,
        /// Details from the server: the target of a redirect, or the start of an error's body. Often empty.
        detail: &'e str,
    },
    /// The server wants
    /// [authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization). The
    /// exchange waits: call [`set_header`](super::HttpTransport::set_header) and [`retry`](super::HttpTransport::retry), or
    /// [`give_up`](super::HttpTransport::give_up).
    Challenge {
        /// The slot of the exchange that waits.
        slot: usize,
        /// The request, if the message is one.
        request: Option<u64>,
        /// 401 or 403.
        status: u16,
        /// All challenges of the answer as one list: the values of all `WWW-Authenticate` headers, joined by commas.
        /// Empty if the server sent none, or more than the store takes.
        www_authenticate: &'e str,
    },
    /// An event of a stream was dropped: it is larger than the store, or not JSON. The stream continues.
    Skipped {
        /// The request of the stream.
        request: Option<u64>,
        /// [`FailureReason::TooLarge`] or [`FailureReason::Garbage`].
        why: FailureReason,
        /// The start of the event, as much as was kept.
        start: &'e [u8],
    },
    /// The session ended after [`end_session`](super::HttpTransport::end_session), or the server does not let clients
    /// end sessions.
    Ended,
}

mcp_sansio::error_enum! {
    /// The reason why an exchange failed.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    FailureReason {
        /// The connection could not be opened. The client sent no byte of the message.
        Refused => "no connection to the server",
        /// A time of [`HttpClientConfig`](super::HttpClientConfig) passed: to connect, to write, or for an answer to anything but a
        /// request.
        TimedOut => "the server did not react in time",
        /// The connection closed before the server answered. The server may have handled the request.
        Reset => "the connection was closed before an answer",
        /// The connection closed in the middle of the answer, and its stream could not be resumed.
        Broken => "the connection was closed in the middle of the answer",
        /// The server answered an HTTP status that means an error, without a JSON-RPC error in the body.
        Status {
            /// The HTTP status.
            code: u16,
            /// The seconds of `Retry-After`, if the server sent it.
            retry_after: Option<u32>,
        } => "HTTP status {code}",
        /// The redirect is not followed: another origin, one too many, or a status that does not keep the method.
        Redirect(code: u16) => "a redirect ({code}) that is not followed",
        /// The server does not know the session: initialize again.
        SessionLost => "the server does not know the session any more",
        /// The answer is not HTTP/1.1.
        NotHttp => "the answer is not HTTP/1.1",
        /// The body is not JSON, or answers another request.
        Garbage => "the answer is no JSON-RPC message",
        /// The `Content-Type` of the body is neither JSON nor an event stream.
        ContentType => "the answer is neither JSON nor an event stream",
        /// The body has a `Content-Encoding`. The client asks for none, and decodes none.
        ContentEncoding => "the answer is encoded (Content-Encoding), which this client does not read",
        /// The answer is larger than the store.
        TooLarge => "the answer is larger than the limit",
        /// The status means success, but the body or stream ended without an answer.
        Unanswered => "success without an answer",
        /// The `endpoint` event of HTTP with SSE is not a URL of the same origin.
        Endpoint => "the endpoint is no URL of the same origin",
        /// The caller gave up a challenge.
        GivenUp => "not authorized",
        /// The message with its head is larger than the store.
        NoRoom => "the message is larger than its store",
        /// The tool must not be called: its annotations are invalid (2026-07-28). The client sent no byte of the
        /// message.
        Excluded(why: AnnotationError) => "{why}",
    }
}

impl FailureReason {
    /// Returns `true` if to try again may help.
    pub(crate) const fn is_of_network(self) -> bool {
        matches!(self, FailureReason::Refused | FailureReason::TimedOut | FailureReason::Reset | FailureReason::Broken)
    }
}
