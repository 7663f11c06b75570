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

mod descriptors;
mod serving;
mod socket;
mod wake;

use core::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
#[cfg(unix)]
use mcp_sansio_host::UnixSocketFile;
pub use mcp_sansio_host::{HttpEndpoint, HttpServerOptions, Stopper};
use mcp_sansio_host::{HttpSetup, LateReceiver};
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, Fleet, RequestHead, StreamPolicy,
};
#[cfg(feature = "resource-server")]
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;
#[cfg(feature = "seal")]
pub use mcp_sansio_http::{endpoint::SessionSeal, seal::HmacSeal};

use crate::stream::ByteStream;
use serving::Serving;
use socket::Listener;

/// The application's check of each request's head, before the protocol handles it.
type Authorize<'a> = &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync);

/// The application's check of each message.
#[cfg(feature = "resource-server")]
type Permit<'a> = &'a (dyn Fn(&MessageAccess<'_>) -> Access<'a> + Sync);

/// An HTTP server that is bound but does not serve yet. By default it answers only requests whose `Host` is a name of
/// this machine; the [options](HttpServer::options) can allow others.
#[must_use = "call `serve`"]
pub struct HttpServer<'a, S: 'static> {
    listener: Listener,
    setup: HttpSetup<S>,
    authorize: Option<Authorize<'a>>,
    #[cfg(feature = "resource-server")]
    permit: Option<Permit<'a>>,
}

impl<'a, S> HttpServer<'a, S> {
    /// Binds a socket to the address. Blocks while a name is resolved; an IP address does not block.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(HttpServer::new(Listener::Tcp(Async::new(TcpListener::bind(address)?)?)))
    }

    /// Binds a Unix socket at `path`, a file that only its owner may use: its mode is `0o600`. Clients of this project
    /// reach it as `unix:/run/mcp.sock`, others with `Host: localhost`, such as
    /// `curl --unix-socket /run/mcp.sock http://localhost/mcp`.
    ///
    /// A socket on which no process listens any more is replaced. When the server has stopped, the file is removed.
    /// `Host` and `Origin` are checked as over TCP. There is no TLS: the bytes do not leave this machine.
    ///
    /// ```no_run
    /// use mcp_sansio::service::Service;
    /// use mcp_sansio_smol::http::HttpServer;
    ///
    /// let service = Service::<()>::new("demo", "1.0");
    /// smol::block_on(HttpServer::bind_unix("/run/user/1000/mcp.sock")?.serve(&service, &mut ()))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`bind_unix_with`](HttpServer::bind_unix_with).
    #[cfg(unix)]
    pub fn bind_unix(path: impl AsRef<Path>) -> io::Result<Self> {
        HttpServer::bind_unix_with(path, 0o600)
    }

    /// Binds a Unix socket as [`bind_unix`](HttpServer::bind_unix) does, with another mode of its file: `0o660` lets the
    /// group connect too. The file has this mode before the first client can connect.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) if a process listens there; [`AlreadyExists`](io::ErrorKind::AlreadyExists)
    /// if the file is no socket; [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is too long (107 bytes on Linux);
    /// otherwise the error of the system. Each names the path.
    #[cfg(unix)]
    pub fn bind_unix_with(path: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        let (listener, file) = UnixSocketFile::bind(path.as_ref(), mode)?;
        Ok(HttpServer::new(Listener::Unix(file, Async::new(listener)?)))
    }

    /// Makes a server of one connection over any stream of bytes: two pipes, a serial line, a connection that another
    /// crate has encrypted. It serves until `reader` ends or HTTP closes the connection.
    ///
    /// Requests are answered one after the other. While an event stream is open, nothing else is answered: its end is the
    /// end of the request. So a server cannot ask the client within a call up to 2025-11-25 (from 2026-07-28 on it can), and
    /// HTTP+SSE does not work. The connection is not closed for being idle.
    ///
    /// ```no_run
    /// use mcp_sansio::service::Service;
    /// use mcp_sansio_smol::http::HttpServer;
    ///
    /// # async fn example(secured: impl smol::io::AsyncRead + smol::io::AsyncWrite + Send + Unpin + 'static) -> std::io::Result<()> {
    /// let service = Service::<()>::new("demo", "1.0");
    /// let (reader, writer) = smol::io::split(secured);
    /// HttpServer::over(reader, writer).serve(&service, &mut ()).await
    /// # }
    /// ```
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        HttpServer::new(Listener::Stream(Some(ByteStream::new(reader, writer))))
    }

    /// Makes a server of one connection over stdin and stdout, as [`over`](HttpServer::over) does. Nothing else may print to
    /// stdout.
    ///
    /// # Errors
    /// If the descriptors cannot be duplicated.
    pub fn stdio() -> io::Result<Self> {
        let (input, output) = crate::serve::stdio()?;
        Ok(HttpServer::over(input, output))
    }

    fn new(listener: Listener) -> Self {
        HttpServer {
            listener,
            setup: HttpSetup::new(),
            authorize: None,
            #[cfg(feature = "resource-server")]
            permit: None,
        }
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    /// If the socket cannot be asked, or is not one of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Sets limits and security.
    pub fn options(mut self, options: HttpServerOptions) -> Self {
        self.setup.options = options;
        self
    }

    /// Sets the channel of late answers, see [`channel`](crate::channel).
    pub fn late(mut self, late: LateReceiver<S>) -> Self {
        self.setup.late = Some(late);
        self
    }

    /// Calls `look` each `period` while an event stream is open; it can [`publish`](Endpoint::publish) changes.
    pub fn watch(mut self, period: Duration, look: fn(&mut S, &mut HttpEndpoint)) -> Self {
        self.setup.set_watch(period, look);
        self
    }

    /// Calls `tick` after each turn of the server with the time in milliseconds, and at the time that the last call returned.
    /// It may answer and publish. For work that [`late`](HttpServer::late) and [`watch`](HttpServer::watch) do not cover.
    pub fn tick(
        mut self,
        tick: impl FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis> + Send + 'static,
    ) -> Self {
        self.setup.set_tick(tick);
        self
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

    /// Makes the server one of several processes that serve the same clients: the `link()` of `mcp_sansio_fleet::RedisFleet`, which
    /// needs the server's [`late`](HttpServer::late) too. See [`Endpoint::fleet`].
    pub fn fleet(mut self, fleet: &'static mut dyn Fleet) -> Self {
        self.setup.fleet = Some(fleet);
        self
    }

    /// Sets how long requests in flight may take to finish when the server is stopped. Default: 5 seconds. Meanwhile the
    /// listener is closed, listens and event streams without a request are ended, connections are closed after their
    /// answers, and further requests on them get 503. Requests that are left then get an error, and 5 seconds more to be
    /// sent. A server that has nothing left to send ends at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.setup.shutdown = self.setup.shutdown.grace(grace);
        self
    }

    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.setup.stopper.clone()
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
            .field("options", &self.setup.options)
            .finish_non_exhaustive()
    }
}
