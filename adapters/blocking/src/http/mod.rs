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
mod sockets;

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;

use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
pub use mcp_sansio_host::HttpServerOptions;
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, StreamId, StreamPolicy,
};
#[cfg(feature = "resource-server")]
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;
#[cfg(feature = "seal")]
pub use mcp_sansio_http::seal::HmacSeal;

use serving::Serving;

/// The endpoint of an [`HttpServer`].
pub type HttpEndpoint = Endpoint<'static>;

/// The function that is called after each turn of the loop with the time. It may answer and publish, and returns the
/// time when it wants to be called next.
type Tick<'t, S> = &'t mut dyn FnMut(&mut App<'_, S>, &mut HttpEndpoint, Millis) -> Option<Millis>;

/// An HTTP server that is bound but does not serve yet. By default it answers only requests whose `Host` is a name of
/// this machine; the [options](HttpServer::options) can allow others.
pub struct HttpServer {
    listener: TcpListener,
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
        let stop = UnixStream::pair()?;
        stop.0.set_nonblocking(true)?;
        Ok(HttpServer { listener, options: HttpServerOptions::new(), stop })
    }

    /// Returns the address that the server listens on.
    ///
    /// # Errors
    /// If the socket cannot be asked.
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
    pub fn serve_with<S>(self, app: App<'_, S>, tick: Tick<'_, S>) -> io::Result<()> {
        Serving::new(&self, app)?.run(tick)
    }
}
