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
//! returns with [`later`](mcp_sansio::service::RequestContext::later); the `tick` of [`serve_with`](HttpServer::serve_with)
//! then sends its progress and its answer.

mod connection;
mod serving;
mod socket;
mod sockets;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;

use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
pub use mcp_sansio_host::HttpServerOptions;
use mcp_sansio_host::UnixSocketFile;
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, StreamId, StreamPolicy,
};
#[cfg(feature = "resource-server")]
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;
#[cfg(feature = "seal")]
pub use mcp_sansio_http::{endpoint::SessionSeal, seal::HmacSeal};

use crate::pump::Pump;
use serving::{GRACE, Serving};
use socket::Listener;

/// The endpoint of an [`HttpServer`].
pub type HttpEndpoint = Endpoint<'static>;

/// The function that is called after each turn of the loop with the time. It may answer and publish, and returns the
/// time when it wants to be called next.
type Tick<'t, S> = &'t mut dyn FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis>;

/// An HTTP server that is bound but does not serve yet. By default it answers only requests whose `Host` is a name of
/// this machine; the [options](HttpServer::options) can allow others.
pub struct HttpServer {
    listener: Listener,
    options: HttpServerOptions,
    stop: (UnixStream, UnixStream),
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Stops an [`HttpServer`] from any thread. The server ends its streams, sends its pending answers (for 5 seconds at
/// most) and returns.
#[derive(Debug)]
pub struct Stopper(UnixStream);

impl Stopper {
    /// Stops the server.
    pub fn stop(&self) {
        // It fails only if the server has stopped already.
        let _ = (&self.0).write(&[1]);
    }
}

impl HttpServer {
    /// Binds a socket to the address.
    ///
    /// # Errors
    /// If the address cannot be resolved or bound.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        HttpServer::new(Listener::Tcp(listener))
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
        HttpServer::new(Listener::Unix(listener, file))
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
        HttpServer::new(Listener::Stream(Some(Pump::start(reader, writer)?)))
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

    fn new(listener: Listener) -> io::Result<Self> {
        let stop = UnixStream::pair()?;
        stop.0.set_nonblocking(true)?;
        Ok(HttpServer { listener, options: HttpServerOptions::new(), stop })
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    /// If the socket cannot be asked, or is not one of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Sets limits and security.
    #[must_use]
    pub fn options(mut self, options: HttpServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns a handle that stops the server.
    ///
    /// # Errors
    /// If the socket cannot be duplicated.
    pub fn stopper(&self) -> io::Result<Stopper> {
        self.stop.1.try_clone().map(Stopper)
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If the server cannot wait for its sockets. An error of a connection ends only that connection.
    pub fn serve<S>(self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        self.serve_with(App::new(service, state), &mut |_, _, _| None)
    }

    /// Serves until it is stopped, with authorization if `app` has it. Calls `tick` after each turn of the loop, and
    /// at the time that the last call returned. With the feature `resource-server`, requests about which `authorize` has
    /// answered `Access::Later` are given to it again after each call.
    ///
    /// ```no_run
    /// use std::sync::mpsc::{Sender, channel};
    /// use mcp_sansio::server::{ServerChange, RequestToken};
    /// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
    /// use mcp_sansio_blocking::http::{App, HttpServer};
    ///
    /// fn brew(ready: &mut Sender<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    ///     let (token, outcome) = call.later();
    ///     let ready = ready.clone();
    ///     std::thread::spawn(move || ready.send(token)); // when it is
    ///     outcome
    /// }
    /// static TOOLS: [Tool<Sender<RequestToken>>; 1] = [Tool::new("brew", "Brews coffee", brew)];
    ///
    /// let service = Service::new("kitchen", "1.0").tools(&TOOLS);
    /// let (mut ready, brewed) = channel();
    /// let app = App::new(&service, &mut ready);
    /// HttpServer::bind("127.0.0.1:8931")?.serve_with(app, &mut |app, endpoint, now| {
    ///     for token in brewed.try_iter() {
    ///         // An error means that the client has cancelled. `answer_read` answers `resources/read`,
    ///         // `answer_prompt` answers `prompts/get`; `resume` runs the handler of a suspended request again.
    ///         let _ = endpoint.answer(app, token, |_, call| call.text("coffee"));
    ///         endpoint.publish(ServerChange::Resource("kitchen://pot"));
    ///     }
    ///     Some(now + 50) // looks again in 50 ms at the latest
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`serve`](HttpServer::serve).
    pub fn serve_with<S>(mut self, app: App<'_, S>, tick: Tick<'_, S>) -> io::Result<()> {
        let Some((socket, pump)) = self.listener.take_stream() else { return Serving::new(&self, app)?.run(tick) };
        let mut serving = Serving::new(&self, app)?;
        serving.carry(socket)?;
        let served = serving.run(tick);
        drop(serving);
        pump.finish(GRACE);
        served
    }
}
