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
//! Handlers answer late, log and publish with [`LateSender`](crate::LateSender), as over stdio: give the other end of the
//! [`channel`](crate::channel) to [`HttpServer::late`].

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
use mcp_sansio::service::Service;
pub use mcp_sansio_host::HttpServerOptions;
pub use mcp_sansio_http::endpoint::{Access, Endpoint, EndpointConfig, EndpointLimits, RequestHead, StreamPolicy};
#[cfg(feature = "resource-server")]
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;
#[cfg(feature = "seal")]
pub use mcp_sansio_http::seal::HmacSeal;

use crate::answers::LateReceiver;
use serving::Serving;

/// The endpoint of an [`HttpServer`].
pub type HttpEndpoint = Endpoint<'static>;

/// The application's check of each request's head, before the protocol handles it.
type Authorize<'a> = &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync);

/// The application's check of each message.
#[cfg(feature = "resource-server")]
type Permit<'a> = &'a (dyn Fn(&MessageAccess<'_>) -> Access<'a> + Sync);

/// An HTTP server that is bound but does not serve yet. By default it answers only requests whose `Host` is a name of
/// this machine; the [options](HttpServer::options) can allow others.
#[must_use = "call `serve`"]
pub struct HttpServer<'a, S: 'static> {
    listener: Async<TcpListener>,
    options: HttpServerOptions,
    late: Option<LateReceiver<S>>,
    watch: Option<Watch<S>>,
    authorize: Option<Authorize<'a>>,
    #[cfg(feature = "resource-server")]
    permit: Option<Permit<'a>>,
    stop: (Sender<()>, Receiver<()>),
}

/// A function that looks for changes, and its period.
struct Watch<S> {
    period: Duration,
    look: fn(&mut S, &mut HttpEndpoint),
}

/// Stops an [`HttpServer`] from any task or thread. The server ends its streams, sends its pending answers (for 5
/// seconds at most) and returns.
#[derive(Clone, Debug)]
pub struct Stopper(Sender<()>);

impl Stopper {
    /// Stops the server. Does nothing if it has stopped already.
    pub fn stop(&self) {
        let _ = self.0.try_send(());
    }
}

impl<'a, S> HttpServer<'a, S> {
    /// Binds a socket to the address. Blocks while a name is resolved; an IP address does not block.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = Async::new(TcpListener::bind(address)?)?;
        Ok(HttpServer {
            listener,
            options: HttpServerOptions::new(),
            late: None,
            watch: None,
            authorize: None,
            #[cfg(feature = "resource-server")]
            permit: None,
            stop: async_channel::bounded(1),
        })
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    /// If the socket cannot be asked.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.get_ref().local_addr()
    }

    /// Sets limits and security.
    pub fn options(self, options: HttpServerOptions) -> Self {
        HttpServer { options, ..self }
    }

    /// Sets the channel of late answers, see [`channel`](crate::channel).
    pub fn late(self, late: LateReceiver<S>) -> Self {
        HttpServer { late: Some(late), ..self }
    }

    /// Calls `look` each `period` while an event stream is open; it can [`publish`](Endpoint::publish) changes.
    pub fn watch(self, period: Duration, look: fn(&mut S, &mut HttpEndpoint)) -> Self {
        HttpServer { watch: Some(Watch { period, look }), ..self }
    }

    /// Calls `authorize` for each request. It must not block: look up a token in memory, or check a signature. With the
    /// feature `resource-server` it may answer `Access::Later`, start a task, and be asked again after
    /// `LateSender::decided`.
    pub fn authorize(self, authorize: &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync)) -> Self {
        HttpServer { authorize: Some(authorize), ..self }
    }

    /// Calls `permit` for each message of an admitted request, see
    /// [`App::permit`](mcp_sansio_http::endpoint::App::permit). It must not block.
    #[cfg(feature = "resource-server")]
    pub fn permit(self, permit: &'a (dyn Fn(&MessageAccess<'_>) -> Access<'a> + Sync)) -> Self {
        HttpServer { permit: Some(permit), ..self }
    }

    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.0.clone())
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If the server cannot wait for its listener. An error of a connection ends only that connection.
    pub async fn serve(self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        let mut serving = Serving::new(self, service, state);
        poll_fn(|cx| serving.poll(cx)).await
    }
}

impl<S> fmt::Debug for HttpServer<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
