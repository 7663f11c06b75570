//! An HTTP server over `std::net`: one thread, sockets that do not block, many connections.
//!
//! ```no_run
//! use mcp_sansio::service::Service;
//! use mcp_sansio_blocking::http::HttpServer;
//!
//! let service = Service::<()>::new("demo", "1.0");
//! HttpServer::bind("127.0.0.1:8931")?.serve(&service, &mut ())?; // at http://127.0.0.1:8931/mcp
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Handlers run one after the other. While a handler runs, nothing is sent, not even its progress. A slow handler
//! returns with [`later`](mcp_sansio::service::RequestContext::later); a thread then sends its progress and its answer with a
//! [`LateSender`](crate::LateSender), as over stdio: give the other end of the [`channel`](crate::channel) to
//! [`HttpServer::late`].

mod serving;
mod socket;
mod sockets;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
pub use mcp_sansio_host::{HttpEndpoint, HttpServerOptions, Stopper};
use mcp_sansio_host::{HttpSetup, LateReceiver, UnixSocketFile};
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, Fleet, RequestHead, StreamId, StreamPolicy,
};
#[cfg(feature = "resource-server")]
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;
#[cfg(feature = "seal")]
pub use mcp_sansio_http::{endpoint::SessionSeal, seal::HmacSeal};

use crate::pump::Pump;
use serving::{GRACE, Serving};
use socket::{Accepted, Listener};

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

impl<S> std::fmt::Debug for HttpServer<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("options", &self.setup.options)
            .finish_non_exhaustive()
    }
}

impl<'a, S> HttpServer<'a, S> {
    /// Binds a socket to the address.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(HttpServer::new(Listener::Tcp(listener)))
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
    /// use mcp_sansio_blocking::http::HttpServer;
    ///
    /// let service = Service::<()>::new("demo", "1.0");
    /// HttpServer::bind_unix("/run/user/1000/mcp.sock")?.serve(&service, &mut ())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`bind_unix_with`](HttpServer::bind_unix_with).
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
    pub fn bind_unix_with(path: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        let (listener, file) = UnixSocketFile::bind(path.as_ref(), mode)?;
        listener.set_nonblocking(true)?;
        Ok(HttpServer::new(Listener::Unix(file, listener)))
    }

    /// Makes a server of one connection over any stream of bytes: two pipes, a serial line, a connection that another
    /// program has encrypted. It serves until `reader` ends or HTTP closes the connection.
    ///
    /// Two threads copy the bytes, so `reader` and `writer` must block. Requests are answered one after the other. While an
    /// event stream is open, nothing else is answered: its end is the end of the request. So a server cannot ask the
    /// client within a call up to 2025-11-25 (from 2026-07-28 on it can), and HTTP+SSE does not work. The connection is not
    /// closed for being idle.
    ///
    /// After the end the thread that reads may stay until `reader` has its next byte: use `reader` for nothing else.
    ///
    /// ```no_run
    /// use mcp_sansio::service::Service;
    /// use mcp_sansio_blocking::http::HttpServer;
    ///
    /// let service = Service::<()>::new("demo", "1.0");
    /// let port = std::fs::File::options().read(true).write(true).open("/dev/ttyUSB0")?;
    /// HttpServer::over(port.try_clone()?, port)?.serve(&service, &mut ())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the system has no more sockets or threads.
    pub fn over(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> io::Result<Self> {
        Ok(HttpServer::new(Listener::Stream(Some(Pump::start(reader, writer)?))))
    }

    /// Makes a server of one connection over stdin and stdout, as [`over`](HttpServer::over) does. Nothing else may print to
    /// stdout.
    ///
    /// # Errors
    /// As [`over`](HttpServer::over).
    pub fn stdio() -> io::Result<Self> {
        let (input, output) = crate::stdio()?;
        HttpServer::over(input, output)
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
    /// With the feature `resource-server`, requests about which `authorize` has answered `Access::Later` are given to it again
    /// after each call.
    pub fn tick(
        mut self,
        tick: impl FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis> + Send + 'static,
    ) -> Self {
        self.setup.set_tick(tick);
        self
    }

    /// Calls `authorize` for each request. While it runs, nothing else does: look up a token in memory, or check a signature.
    /// With the feature `resource-server` it may answer `Access::Later`, start a thread, and be asked again after
    /// `LateSender::decided`.
    pub fn authorize(self, authorize: &'a (dyn Fn(&RequestHead<'_>) -> Access<'a> + Sync)) -> Self {
        HttpServer { authorize: Some(authorize), ..self }
    }

    /// Calls `permit` for each message of an admitted request, see
    /// [`App::permit`](mcp_sansio_http::endpoint::App::permit).
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
    /// ```no_run
    /// use mcp_sansio::server::ServerChange;
    /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    /// use mcp_sansio_blocking::http::HttpServer;
    /// use mcp_sansio_blocking::{LateSender, channel};
    ///
    /// struct Kitchen {
    ///     late: LateSender<Kitchen>,
    /// }
    ///
    /// fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    ///     let (token, outcome) = call.later();
    ///     let late = kitchen.late.clone();
    ///     std::thread::spawn(move || {
    ///         // What takes long is done here.
    ///         late.answer(token, |_, call| call.text("coffee"))?;
    ///         late.publish(ServerChange::Resource("kitchen://pot"))
    ///     });
    ///     outcome
    /// }
    /// static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews coffee", brew)];
    ///
    /// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
    /// let (late, receiver) = channel();
    /// HttpServer::bind("127.0.0.1:8931")?.late(receiver).serve(&service, &mut Kitchen { late })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the server cannot wait for its sockets. An error of a connection ends only that connection.
    pub fn serve(mut self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        let authorize = self.authorize;
        let asks = move |head: &RequestHead<'_>| {
            authorize.map_or(Access::Granted { principal: None }, |authorize| authorize(head))
        };
        let app = App::new(service, state).authorize(&asks);
        #[cfg(feature = "resource-server")]
        let permit = self.permit;
        #[cfg(feature = "resource-server")]
        let permits = move |message: &MessageAccess<'_>| {
            permit.map_or(Access::Granted { principal: None }, |permit| permit(message))
        };
        #[cfg(feature = "resource-server")]
        let app = if permit.is_some() { app.permit(&permits) } else { app };
        let Some((socket, pump)) = self.listener.take_stream() else {
            return Serving::new(self.listener, self.setup, app)?.run();
        };
        let served = {
            let mut serving = Serving::new(self.listener, self.setup, app)?;
            serving.carry(Accepted::Unix(socket))?;
            serving.run()
        };
        // The socket is closed now, also after a stop.
        pump.finish(GRACE);
        served
    }
}
