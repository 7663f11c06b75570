//! The Model Context Protocol over HTTP, sans-IO: no runtime, no sockets, no allocator needed.
//!
//! - [`endpoint`]: a server of the MCP transport, without the bytes of HTTP. Mount it in any HTTP server.
//! - [`http1`]: HTTP/1.1 for servers, over lent storage.
//! - [`host`]: joins both: an endpoint serves a connection. Drivers are loops around it.
//! - [`sse`]: reads server-sent events.
//! - [`client`]: the transport of a client, for an engine and a driver.
//!
//! A server with one connection, over lent memory:
//!
//! ```
//! use mcp_sansio_http::endpoint::{App, EndpointConfig, Endpoint, Session, Stream};
//! use mcp_sansio_http::host::{BodyBuffer, ServeContext, WaitFor, HttpConnection};
//! use mcp_sansio_http::mcp_sansio::{server::{Server, RequestSlot}, service::Service, sink::SliceStorage};
//! use mcp_sansio_http::http1::ConnectionLimits;
//!
//! let (service, mut state) = (Service::<()>::new("demo", "1.0"), ());
//! let mut app = App::new(&service, &mut state);
//! // Sessions up to 2025-11-25, event streams, and what these have not sent yet.
//! let (mut sessions, mut streams, mut log) = ([Session::FREE; 4], [Stream::FREE; 2], [0; 1024]);
//! let mut slots = [RequestSlot::FREE; 4]; // requests in flight
//! let mut endpoint = Endpoint::new(EndpointConfig::DEFAULT, Server::new(&mut slots), &mut sessions, &mut streams, &mut log[..]);
//! // The longest request and a window for answers of each connection; the longest JSON answer of all.
//! let (mut input, mut output, mut json) = ([0; 4096], [0; 1024], [0; 1024]);
//! let mut http: HttpConnection<'_> = HttpConnection::new(&mut input[..], &mut output[..], ConnectionLimits::default());
//! let mut body = BodyBuffer::new(SliceStorage::new(&mut json));
//!
//! let message = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"demo","version":"1.0"}}}"#;
//! let request = format!(
//!     "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
//!      Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{message}",
//!     message.len()
//! );
//! http.space()[..request.len()].copy_from_slice(request.as_bytes()); // what a socket gave
//! http.connection.filled(request.len());
//! let mut host = ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 };
//! let wait = http.serve(&mut host, &mut |bytes| bytes.fill(7)); // here: random bytes for the session's id
//! assert_eq!(wait, WaitFor::Read);
//! assert!(http.connection.pending().starts_with(b"HTTP/1.1 200 OK\r\n")); // to the socket, then `sent`
//! ```
//!
//! The feature `seal` adds `seal::HmacSeal`, which protects `requestState` while clients keep it, and seals session ids. The feature
//! `resource-server` lets a server decide about tokens: with texts of its own, later, and by message.
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub use mcp_sansio;

pub mod client;
pub mod endpoint;
pub mod host;
pub mod http1;
mod names;
#[cfg(feature = "seal")]
pub mod seal;
pub mod sse;

/// The types that an application may want to log have `defmt::Format`. The compiler checks it.
#[cfg(feature = "defmt")]
const _: () = {
    const fn formats<T: defmt::Format>() {}
    formats::<sse::SseItem<'_>>();
    formats::<http1::ConnectionStep>();
    formats::<http1::ExpireStatus>();
    formats::<http1::Status>();
    formats::<endpoint::StreamStatus>();
    formats::<endpoint::StreamId>();
    formats::<endpoint::Access<'_>>();
    #[cfg(feature = "resource-server")]
    formats::<endpoint::Refusal>();
    formats::<host::WaitFor>();
    formats::<client::SocketAction>();
    formats::<client::HttpClientEvent<'_>>();
    formats::<client::FailureReason>();
    formats::<client::ChallengedRequest<'_>>();
    formats::<client::ChallengeAnswer>();
    formats::<client::LastError<'_>>();
    formats::<client::ListenState>();
    formats::<client::TransportKind>();
    formats::<client::UrlError>();
    formats::<client::HeaderError>();
    formats::<client::params::AnnotationError>();
};

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
