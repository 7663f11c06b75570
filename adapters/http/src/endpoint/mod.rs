//! The protocol over HTTP, without HTTP's bytes: mount it in any HTTP server.
//!
//! An [`Endpoint`] takes a request's head and body and gives status, headers and either one JSON body or an event
//! stream. A stream is [pulled](Endpoint::pull) whenever its socket has room; streams do not wait for each other. It
//! serves Streamable HTTP of 2025-03-26 to 2026-07-28 and the HTTP+SSE transport of 2024-11-05 on one path.
//!
//! Sessions, streams and the log of events live in memory that the caller lends, or that grows up to limits with the
//! feature `alloc`. The caller also brings the time and random bytes.

mod answer;
mod config;
mod connection;
mod exchange;
mod expiry;
mod gate;
mod head;
mod legacy;
mod log;
mod media;
mod metadata;
mod modern;
mod notification;
mod pool;
mod pull;
mod refusal;
mod request;
mod session;
mod share;
mod stream;

#[cfg(feature = "alloc")]
pub use config::EndpointLimits;
pub use config::{Config, Streams};
pub use head::{Admission, Content, Head, Headers, Response, STREAM_HEADERS, SessionId};
pub use pool::Pool;
pub use pull::Pull;
pub use session::{PRINCIPAL_MAX, Session};
pub use stream::{Stream, StreamId};

use core::cell::Cell;

use mcp_sansio::server::{Millis, Scope, Server};
use mcp_sansio::service::Service;
use mcp_sansio::store::Store;

use log::Log;
use share::Place;

/// Whether somebody may use the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Access<'a> {
    /// Yes; and who it is, if that is known. Sessions, subscriptions and states belong to whoever began them. At most
    /// [`PRINCIPAL_MAX`] bytes: give a digest of longer names.
    Granted {
        /// Who it is.
        principal: Option<&'a str>,
    },
    /// No.
    Denied {
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<&'a str>,
    },
}

/// The application around an endpoint.
pub struct App<'a, S: 'static> {
    /// What it offers.
    pub service: &'a Service<'a, S>,
    /// The state of its handlers.
    pub state: &'a mut S,
    /// Looks at the head of each request before the protocol does.
    pub authorize: &'a dyn Fn(&Head<'_>) -> Access<'a>,
}

impl<'a, S> App<'a, S> {
    /// An application that anybody may use.
    pub fn new(service: &'a Service<'a, S>, state: &'a mut S) -> Self {
        App { service, state, authorize: &|_| Access::Granted { principal: None } }
    }

    /// With authorization.
    #[must_use]
    pub fn authorize(self, authorize: &'a dyn Fn(&Head<'_>) -> Access<'a>) -> Self {
        App { authorize, ..self }
    }
}

impl<S> core::fmt::Debug for App<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("App").field("service", self.service).finish_non_exhaustive()
    }
}

/// The endpoint, with at most `N` requests in flight.
#[derive(Debug)]
pub struct Endpoint<'m, const N: usize> {
    config: Config<'m>,
    server: Server<'m, N>,
    sessions: Pool<'m, Session>,
    streams: Pool<'m, Stream>,
    log: Log<'m>,
    /// The number of the last stream that was sent.
    streams_sent: u64,
    /// Whose the requests in flight are.
    places: [Place; N],
    /// Keeps principals from being chosen so that they share; 0 until there is one.
    hash_key: u64,
    /// The last exchange's number.
    exchanges: u32,
    /// The last scope that was given away; 0 is nobody's.
    scopes: u32,
    now: Millis,
    /// No session and no stream has a deadline before this.
    soonest: Millis,
    /// Some stream may be ready.
    stirred: Cell<bool>,
}

/// Events that one stream may have unsent, where nothing else is said.
const UNREAD: usize = 10_000;

/// What a request is answered for: who asks, and how its stream would be.
pub(crate) struct Asker {
    pub(crate) scope: Scope,
    pub(crate) session: Option<u16>,
    pub(crate) resumable: bool,
    pub(crate) primed: bool,
    pub(crate) modern: bool,
}

impl<'m, const N: usize> Endpoint<'m, N> {
    /// An endpoint over lent memory. `log` holds what has not been sent on event streams, and what clients may come back
    /// for; each stream may use `log / streams` of it.
    pub fn new(
        config: Config<'m>,
        server: Server<'m, N>,
        sessions: impl Into<Pool<'m, Session>>,
        streams: impl Into<Pool<'m, Stream>>,
        log: impl Into<Store<'m>>,
    ) -> Self {
        let (streams, log) = (streams.into(), log.into());
        let share = log.limit() / streams.slots().len().max(1);
        let keep = log.limit();
        Endpoint::build(config, server, sessions.into(), streams, Log::new(log, share, keep, UNREAD))
    }

    /// Lets each stream use so many bytes of the log rather than an equal share, as far as others leave them: for many
    /// streams that say little. Slow readers can then take the log from others, until their connections are given up.
    pub const fn set_share(&mut self, bytes: usize) {
        self.log.share = bytes;
    }

    /// Sets how many events one stream may have unsent; 10,000 by default. See `EndpointLimits::unread`.
    pub const fn set_unread(&mut self, events: usize) {
        self.log.unread = events;
    }

    /// An endpoint whose memory grows, up to limits.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn growing(config: Config<'m>, server: Server<'m, N>, limits: EndpointLimits) -> Self {
        let log = Store::growing(limits.log);
        let log = Log::new(log, limits.stream.min(limits.log), limits.keep, limits.unread);
        Endpoint::build(config, server, Pool::growing(limits.sessions), Pool::growing(limits.streams), log)
    }

    fn build(
        config: Config<'m>,
        mut server: Server<'m, N>,
        sessions: Pool<'m, Session>,
        streams: Pool<'m, Stream>,
        log: Log<'m>,
    ) -> Self {
        server.set_over_http();
        Endpoint {
            config,
            server,
            sessions,
            streams,
            log,
            streams_sent: 0,
            places: [Place::FREE; N],
            hash_key: 0,
            exchanges: 0,
            scopes: 0,
            now: 0,
            soonest: Millis::MAX,
            stirred: Cell::new(true),
        }
    }

    /// Requests in flight, sessions, streams: for limits and statistics.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        let sessions = self.sessions.slots().iter().filter(|session| session.live).count();
        let streams = self.streams.slots().iter().filter(|stream| !stream.is_free()).count();
        (self.server.in_flight(), sessions, streams)
    }

    fn new_scope(&mut self) -> Scope {
        self.scopes = self.scopes.wrapping_add(1).max(1);
        Scope(self.scopes)
    }
}
