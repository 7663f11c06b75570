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

#[cfg_attr(not(unix), path = "http/no_descriptors.rs")]
mod descriptors;
mod serving;
mod socket;
mod wake;

use std::future::poll_fn;
use std::io;

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio::service::Service;
pub use mcp_sansio_host::{HttpEndpoint, HttpServerOptions, Stopper};
pub use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, Fleet, RequestHead, StreamPolicy,
};
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal, SessionSeal};
pub use mcp_sansio_http::http1::ConnectionLimits as WireLimits;

use crate::socket::ByteStream;
use serving::Serving;
use socket::Listener;

mcp_sansio_host::http_server!(Listener);

impl<S> HttpServer<'_, S> {
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

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If the server cannot wait for its listener. An error of a connection ends only that connection.
    pub async fn serve(self, service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
        let mut serving = Serving::new(self, service, state);
        poll_fn(|cx| serving.poll(cx)).await
    }
}
