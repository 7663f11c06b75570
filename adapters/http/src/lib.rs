//! The Model Context Protocol over HTTP, sans-IO: no runtime, no sockets, no allocator needed.
//!
//! Two parts that can be used apart, and one that joins them:
//!
//! - [`endpoint`]: the protocol over HTTP without HTTP's bytes. Mount it in any HTTP server.
//! - [`wire`]: HTTP/1.1 as bytes, in and out, over lent storage.
//! - [`host`]: a connection of the second served by the first; drivers are loops around it.
//! - [`client`]: the other side: a server that is reached over HTTP, as an engine and a driver see it.
//!
//! A server with one connection, over lent memory. Drivers are loops around this:
//!
//! ```
//! use mcp_sansio_http::endpoint::{App, Config, Endpoint, Session, Stream};
//! use mcp_sansio_http::host::{Body, Host, Wait, Wired};
//! use mcp_sansio_http::mcp_sansio::{server::Server, service::Service, sink::Slice};
//! use mcp_sansio_http::wire::Limits;
//!
//! let (service, mut state) = (Service::<()>::new("demo", "1.0"), ());
//! let mut app = App::new(&service, &mut state);
//! // Sessions up to 2025-11-25, event streams, and what these have not sent yet.
//! let (mut sessions, mut streams, mut log) = ([Session::FREE; 4], [Stream::FREE; 2], [0; 1024]);
//! let mut endpoint = Endpoint::<4>::new(Config::DEFAULT, Server::new(), &mut sessions, &mut streams, &mut log[..]);
//! // The longest request and a window for answers of each connection; the longest JSON answer of all.
//! let (mut input, mut output, mut json) = ([0; 4096], [0; 1024], [0; 1024]);
//! let mut wired: Wired<'_> = Wired::new(&mut input[..], &mut output[..], Limits::default());
//! let mut body = Body::new(Slice::new(&mut json));
//!
//! let message = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"demo","version":"1.0"}}}"#;
//! let request = format!(
//!     "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
//!      Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{message}",
//!     message.len()
//! );
//! wired.space()[..request.len()].copy_from_slice(request.as_bytes()); // what a socket gave
//! wired.filled(request.len());
//! let mut host = Host { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 };
//! let wait = wired.serve(&mut host, &mut |bytes| bytes.fill(7)); // here: random bytes for the session's id
//! assert_eq!(wait, Wait::Read);
//! assert!(wired.pending().starts_with(b"HTTP/1.1 200 OK\r\n")); // to the socket, then `sent`
//! ```
//!
//! And with the feature `seal`, what protects the state of questions that travels through clients: `seal::HmacSeal`.
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
mod mirror;
#[cfg(feature = "seal")]
pub mod seal;
pub mod wire;

/// What an application may want to log. Checked by the compiler.
#[cfg(feature = "defmt")]
const _: () = {
    const fn formats<T: defmt::Format>() {}
    formats::<wire::Step>();
    formats::<wire::Expired>();
    formats::<wire::Status>();
    formats::<endpoint::Pull>();
    formats::<endpoint::StreamId>();
    formats::<endpoint::Access<'_>>();
    formats::<host::Wait>();
    formats::<client::Action>();
    formats::<client::Event<'_>>();
    formats::<client::Why>();
    formats::<client::Blame>();
    formats::<client::Challenge<'_>>();
    formats::<client::Verdict>();
    formats::<client::Fault<'_>>();
    formats::<client::Listening>();
    formats::<client::Transport>();
    formats::<client::UrlError>();
    formats::<client::BadHeader>();
    formats::<client::params::BadAnnotation>();
};
