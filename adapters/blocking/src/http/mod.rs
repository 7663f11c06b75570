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

use mcp_sansio::service::Service;
use mcp_sansio_host::NetSocket;
pub use mcp_sansio_host::{HttpEndpoint, HttpServerOptions, Stopper};
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, Fleet, RequestHead, StreamId, StreamPolicy,
};
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal, SessionSeal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;

use crate::pump::Pump;
use serving::{GRACE, Serving};
use socket::Listener;

mcp_sansio_host::http_server!(Listener);

impl<S> HttpServer<'_, S> {
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
        let Some((socket, pump)) = self.listener.take_stream() else {
            return self.checks.with(service, state, |app| Serving::new(self.listener, self.setup, app)?.run());
        };
        let served = self.checks.with(service, state, |app| {
            let mut serving = Serving::new(self.listener, self.setup, app)?;
            serving.carry(NetSocket::Unix(socket))?;
            serving.run()
        });
        // The socket is closed now, also after a stop.
        pump.finish(GRACE);
        served
    }
}
