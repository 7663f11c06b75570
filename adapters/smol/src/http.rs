//! An HTTP server as one future on async-io: many connections, no tasks.
//!
//! ```no_run
//! use mcp_sansio::service::Service;
//! use mcp_sansio_smol::http::HttpServer;
//!
//! let service = Service::<()>::new("demo", "1.0");
//! let server = HttpServer::bind("127.0.0.1:8931")?; // at http://127.0.0.1:8931/mcp
//! smol::block_on(server.serve(&service, &mut ()))?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Tools that answer late, log and publish do so with the [`Answers`](crate::Answers) that they have over stdio: give the
//! other end of the [`channel`](crate::channel) to [`HttpServer::late`].

mod connection;
mod descriptors;
mod serving;
mod wake;

use core::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_io::Async;
use mcp_sansio::server::{Limits, Seal};
use mcp_sansio::service::Service;
pub use mcp_sansio_http::endpoint::{Access, Config, Endpoint, EndpointLimits, Head, Streams};
#[cfg(feature = "seal")]
pub use mcp_sansio_http::seal::HmacSeal;
pub use mcp_sansio_http::wire::Limits as WireLimits;

use crate::answers::Late;
use serving::Serving;

/// Requests in flight at the most: those whose answer is put off, or that ask the client.
pub const IN_FLIGHT: usize = 256;

/// The endpoint of an [`HttpServer`].
pub type HttpEndpoint = Endpoint<'static, IN_FLIGHT>;

/// Looks at the head of each request before the protocol does.
type Authorize<'a> = &'a (dyn Fn(&Head<'_>) -> Access<'a> + Sync);

/// An HTTP server that is bound and not serving yet. Only requests for this machine's own names are answered unless
/// [`config`](HttpServer::config) says otherwise.
#[must_use = "call `serve`"]
pub struct HttpServer<'a, S: 'static> {
    listener: Async<TcpListener>,
    config: Config<'static>,
    limits: Limits,
    endpoint_limits: EndpointLimits,
    wire_limits: WireLimits,
    connections: usize,
    input_total: usize,
    spare_descriptors: usize,
    late: Option<Late<S>>,
    watch: Option<Watch<S>>,
    authorize: Option<Authorize<'a>>,
    seal: Option<&'static (dyn Seal + Sync)>,
    stop: (Sender<()>, Receiver<()>),
}

/// What looks for changes, and how often.
struct Watch<S> {
    period: Duration,
    look: fn(&mut S, &mut HttpEndpoint),
}

/// Stops an [`HttpServer`] from anywhere: streams are ended, what is pending is sent.
#[derive(Clone, Debug)]
pub struct Stopper(Sender<()>);

impl Stopper {
    /// Stops it. To do so again, or when it is gone, does nothing.
    pub fn stop(&self) {
        let _ = self.0.try_send(());
    }
}

impl<'a, S> HttpServer<'a, S> {
    /// Binds a socket. A name is looked up at once: give an address where that must not block.
    ///
    /// # Errors
    /// What binding fails with.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = Async::new(TcpListener::bind(address)?)?;
        let limits = Limits::default();
        Ok(HttpServer {
            listener,
            config: Config::DEFAULT,
            limits,
            endpoint_limits: EndpointLimits::default(),
            wire_limits: WireLimits::default().body(limits.message),
            connections: 10_000,
            input_total: 256 << 20,
            spare_descriptors: 32,
            late: None,
            watch: None,
            authorize: None,
            seal: None,
            stop: async_channel::bounded(1),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What asking the socket fails with.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.get_ref().local_addr()
    }

    /// Paths, hosts, times.
    pub fn config(self, config: Config<'static>) -> Self {
        HttpServer { config, ..self }
    }

    /// Limits of messages, questions and subscriptions.
    pub fn limits(self, limits: Limits) -> Self {
        HttpServer { limits, wire_limits: self.wire_limits.body(limits.message), ..self }
    }

    /// What protects the state of questions that travels through clients of 2026-07-28: `HmacSeal`, with the feature
    /// `seal`, or one of your own. The time that it is told is that of the system, in milliseconds since 1970.
    pub fn seal(self, seal: &'static (dyn Seal + Sync)) -> Self {
        HttpServer { seal: Some(seal), ..self }
    }

    /// Limits of sessions and streams.
    pub fn endpoint_limits(self, limits: EndpointLimits) -> Self {
        HttpServer { endpoint_limits: limits, ..self }
    }

    /// Limits of connections: sizes of heads, times without a byte.
    pub fn wire_limits(self, limits: WireLimits) -> Self {
        HttpServer { wire_limits: limits, ..self }
    }

    /// Connections at the most, 10,000; further ones wait in the listener's queue.
    pub fn connections(self, most: usize) -> Self {
        HttpServer { connections: most.max(1), ..self }
    }

    /// Bytes that the requests of all connections take while they come in, 256 MiB. A request for which there is no more
    /// room gets 503; one of up to [`WireLimits::head`] bytes, with its body, always has room.
    pub fn input_total(self, bytes: usize) -> Self {
        HttpServer { input_total: bytes, ..self }
    }

    /// Descriptors that are left to everything else in the process, such as handlers that open files, 32. While fewer are
    /// free, further connections wait in the listener's queue. Counted from the soft limit (`RLIMIT_NOFILE`) when it
    /// begins to serve, of which at most half is spared; without effect elsewhere than on Unix.
    pub fn spare_descriptors(self, spare: usize) -> Self {
        HttpServer { spare_descriptors: spare, ..self }
    }

    /// Where late answers come from, see [`channel`](crate::channel).
    pub fn late(self, late: Late<S>) -> Self {
        HttpServer { late: Some(late), ..self }
    }

    /// Calls `look` every `period` while an event stream is open, so that it can [`publish`](Endpoint::publish) what has
    /// changed.
    pub fn watch(self, period: Duration, look: fn(&mut S, &mut HttpEndpoint)) -> Self {
        HttpServer { watch: Some(Watch { period, look }), ..self }
    }

    /// Asks `authorize` about each request. It may block nobody: look a token up in memory, or check a signature.
    pub fn authorize(self, authorize: &'a (dyn Fn(&Head<'_>) -> Access<'a> + Sync)) -> Self {
        HttpServer { authorize: Some(authorize), ..self }
    }

    /// What stops it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.0.clone())
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// What waiting for the listener fails with; a connection's own failure only ends that connection.
    pub async fn serve(self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        let mut serving = Serving::new(self, service, state);
        poll_fn(|cx| serving.poll(cx)).await
    }
}

impl<S> fmt::Debug for HttpServer<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("config", &self.config)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
