//! The server's HTTP transport, without the bytes of HTTP: mount it in any HTTP server.
//!
//! 1. Call [`admit`](Endpoint::admit) with the head of each HTTP request before you read the body, so that you read no body of
//!    an unauthorized client.
//! 2. Give [`request`](Endpoint::request) the head, with the grant ([`RequestHead::admitted`]), and the body.
//! 3. Send its [`EndpointResponse`]: status, headers, and one JSON body or an event stream.
//! 4. Call [`pull`](Endpoint::pull) for a stream when [`ready`](Endpoint::ready) names it and its socket has room. Streams do not
//!    wait for each other. While [`must_wait_for`](Endpoint::must_wait_for) names a stream for a request, pull that stream first.
//! 5. Call [`expire`](Endpoint::expire) at [`next_deadline`](Endpoint::next_deadline), and [`detach`](Endpoint::detach) when
//!    the client of a stream is gone.
//!
//! The server around it:
//!
//! - takes the host from an absolute target (`POST http://name/mcp`), which replaces the `Host` header, and refuses HTTP/1.1
//!   requests without `Host` or with two (400);
//! - limits the memory of all bodies being read, of the input behind an open event stream, and of all unsent answers.
//!
//! It serves on one path:
//!
//! - 2024-11-05:
//!   [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse);
//! - 2025-03-26 to 2025-11-25: Streamable HTTP
//!   [with sessions](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http);
//! - 2026-07-28: Streamable HTTP
//!   [without sessions](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
//!
//! Sessions, streams and the log of events live in lent memory, or grow up to limits with the feature `alloc`.
//! The caller also gives the time and random bytes.
//!
//! # Refused requests
//!
//! | request | answer |
//! |---|---|
//! | `MCP-Protocol-Version` that is not served, in a session or with `GET` or `DELETE` | 400 |
//! | the same without a session; `initialize` to a server of 2026-07-28 only | 400, -32022 with `data.supported` |
//! | a request without `_meta` to such a server: without a version header; with the header of 2026-07-28 | 400, -32020; -32602 |
//! | `GET` or `DELETE` to such a server; `/sse` and `/messages` | 405; 404 |
//! | a header of 2026-07-28 that is missing, differs from the body or between two lines, or is not visible ASCII; a control character | 400, -32020 |
//! | `Mcp-Session-Id` is missing, or two lines differ; unknown or ended | 400; 404, -32001 `Session not found` |
//! | a notification or response that is not valid JSON-RPC | 400 without an id |
//! | `GET` at the path whose `Accept` does not name `text/event-stream` or `text/*` | 406 |
//! | a `POST` whose answer needs a stream and whose `Accept` excludes it | 406; without a stream, `application/json` alone is enough |
//! | an integer outside -(2^53-1) to 2^53-1 in a parameter with `x-mcp-header` | -32020, because programs on the way may round it |
//! | any other path | 404 |
//!
//! The endpoint decodes Base64 (`=?base64?…?=`) in a header before it compares it with the body, and compares
//! integers as numbers: `42`, `42.00` and `4.2e1` are equal.

mod answer;
#[cfg_attr(not(feature = "resource-server"), path = "no_authorize.rs")]
mod authorize;
mod config;
mod connection;
mod events;
mod exchange;
mod expiry;
#[cfg_attr(not(feature = "resource-server"), path = "no_extra_headers.rs")]
mod extra_headers;
mod fleet;
mod head;
mod header_check;
mod ids;
mod legacy;
mod list;
mod log;
mod media;
mod metadata;
mod notification;
mod pull;
mod refusal;
mod request;
#[cfg_attr(not(feature = "alloc"), path = "unsealed.rs")]
mod sealed;
mod session;
mod share;
mod stream;

#[cfg(feature = "resource-server")]
pub use authorize::{MessageAccess, Refusal};
#[cfg(feature = "alloc")]
pub use config::EndpointLimits;
pub use config::{EndpointConfig, StreamPolicy};
#[cfg(feature = "resource-server")]
pub use extra_headers::{ExtraHeaders, GRANT_HEADERS, REFUSAL_HEADERS};
pub use fleet::Fleet;
pub(crate) use head::Fields;
pub use head::{EndpointResponse, Grant, RequestHead, RequestHeaders, ResponseBody, STREAM_HEADERS};
pub use ids::{PRINCIPAL_MAX, SessionId, StreamId};
pub(crate) use media::Accept;
pub use pull::StreamStatus;
#[cfg(feature = "alloc")]
pub use sealed::SessionSeal;
pub use session::Session;
pub use stream::Stream;

use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::server::{Millis, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::Out;

use log::Log;
use session::Sessions;
use share::Requests;
use stream::Streams;

/// The decision of [`App::authorize`] about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "without an allocator there is no box; it is handed on at once")]
pub enum Access<'a> {
    /// The client may use the endpoint. Sessions, subscriptions and states belong to the principal that began
    /// them.
    Granted {
        /// The name of the client, if known: at most [`PRINCIPAL_MAX`] bytes. Give a digest of longer names.
        principal: Option<&'a str>,
    },
    /// The client may not use the endpoint.
    Denied {
        /// 401 without a valid token, 403 if the token does not suffice, 400 if it cannot be read.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<&'a str>,
    },
    /// The client may use the endpoint, as `Granted`. The grant owns its texts.
    #[cfg(feature = "resource-server")]
    GrantedTo(Grant),
    /// The client may not use the endpoint, as `Denied`. The refusal owns its texts.
    #[cfg(feature = "resource-server")]
    RefusedWith(Refusal),
    /// The application does not know yet: it asks another server. It is asked again about the same request, see
    /// [`Endpoint::admit`].
    #[cfg(feature = "resource-server")]
    Later,
}

/// The application that an endpoint serves.
pub struct App<'a, S: 'static> {
    /// The service with its tools, resources and prompts.
    pub service: &'a Service<'a, S>,
    /// The state of its handlers.
    pub state: &'a mut S,
    /// Decides about each request by its head. Default: allows all, without a principal.
    pub authorize: &'a dyn Fn(&RequestHead<'_>) -> Access<'a>,
    /// Decides about each message of an admitted request. Default: none, allows all.
    #[cfg(feature = "resource-server")]
    pub permit: Option<&'a dyn Fn(&MessageAccess<'_>) -> Access<'a>>,
}

impl<'a, S> App<'a, S> {
    /// Makes an application that all clients may use.
    pub fn new(service: &'a Service<'a, S>, state: &'a mut S) -> Self {
        App {
            service,
            state,
            authorize: &|_| Access::Granted { principal: None },
            #[cfg(feature = "resource-server")]
            permit: None,
        }
    }

    /// Sets the function that decides about each request
    /// ([authorization](https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization)).
    #[must_use]
    pub fn authorize(self, authorize: &'a dyn Fn(&RequestHead<'_>) -> Access<'a>) -> Self {
        App { authorize, ..self }
    }
}

mcp_sansio::debug_fields!(impl<S> for App<'_, S> { service });

/// The server's HTTP transport. It has at most as many requests in flight as its server has slots.
#[derive(Debug)]
pub struct Endpoint<'m> {
    config: EndpointConfig<'m>,
    requests: Requests<'m>,
    sessions: Sessions<'m>,
    /// The sessions with sealed ids.
    #[cfg(feature = "alloc")]
    sealed: Option<sealed::SealedSessions<'m>>,
    streams: Streams<'m>,
    /// The other processes that serve the same clients.
    fleet: Option<&'m mut dyn Fleet>,
    now: Millis,
    /// No further request is handled, see [`Endpoint::drain`].
    draining: bool,
}

/// The parts that one request needs.
pub(crate) struct Turn<'t, 'a, S: 'static> {
    pub(crate) app: &'t mut App<'a, S>,
    pub(crate) head: &'t RequestHead<'t>,
    /// The body of the request.
    pub(crate) content: &'t [u8],
    pub(crate) principal: Option<&'t str>,
    pub(crate) random: &'t mut dyn FnMut(&mut [u8]),
    /// The body of the response.
    pub(crate) body: &'t mut dyn Out,
}

impl<S> Turn<'_, '_, S> {
    /// Refuses the request.
    pub(crate) fn refuse(&mut self, status: u16, message: &str) -> EndpointResponse<'static> {
        refusal::refuse(self.body, status, message)
    }
}

/// Default number of events that a stream may have unsent.
const UNREAD: usize = 10_000;

impl<'m> Endpoint<'m> {
    /// Makes an endpoint over lent memory. `log` keeps the bytes that were not sent on event streams, and those
    /// that clients may ask for again. Each stream may use `log / streams` of it.
    pub fn new(
        config: EndpointConfig<'m>,
        server: Server<'m>,
        sessions: impl Into<Slots<'m, Session>>,
        streams: impl Into<Slots<'m, Stream>>,
        log: impl Into<Store<'m>>,
    ) -> Self {
        let (streams, log) = (streams.into(), log.into());
        let (keep, equal) = (log.limit(), log.limit() / streams.limit().max(1));
        let mut log = Log::new(log, equal, keep, UNREAD);
        log.equal = equal;
        Endpoint {
            config,
            requests: Requests::new(server),
            sessions: Sessions::new(sessions.into()),
            #[cfg(feature = "alloc")]
            sealed: None,
            streams: Streams::new(streams, log),
            fleet: None,
            now: 0,
            draining: false,
        }
    }

    /// Sets the bytes of the log that each stream may use, instead of an equal share, if others leave them. It
    /// suits many streams with few events. The more slow readers have of the log, the less each further stream may
    /// use, see `EndpointLimits::stream`.
    pub const fn set_share(&mut self, bytes: usize) {
        self.streams.log.share = bytes;
    }

    /// Sets the number of events that a stream may have unsent. Default: 10,000. See `EndpointLimits::unread`.
    pub const fn set_unread(&mut self, events: usize) {
        self.streams.log.unread = events;
    }

    /// Makes an endpoint whose memory grows up to limits.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(config: EndpointConfig<'m>, server: Server<'m>, limits: EndpointLimits) -> Self {
        let (sessions, streams) = (Slots::growing(limits.sessions), Slots::growing(limits.streams));
        let mut endpoint = Endpoint::new(config, server, sessions, streams, Store::growing(limits.log));
        let log = &mut endpoint.streams.log;
        (log.share, log.keep, log.unread) = (limits.stream.min(limits.log), limits.keep, limits.unread);
        endpoint
    }

    /// Returns the numbers of requests in flight, sessions and streams, for limits and statistics.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        (self.requests.server.in_flight(), self.sessions.live, self.streams.live)
    }
}
