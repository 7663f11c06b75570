//! An MCP server in axum, hyper and every other HTTP server with the types of [`http`]: a
//! [`tower_service::Service`] around the endpoint of [`mcp_sansio_http`]. It works on every runtime; the caller gives the
//! [timer](MountOptions::new).
//!
//! ```
//! use futures_lite::future::block_on;
//! use http_body_util::{BodyExt, Full};
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio_tower::{Mcp, MountOptions};
//! use tower_service::Service as _;
//!
//! fn count(counter: &mut u32, call: &mut Call<'_>) -> HandlerResult {
//!     *counter += 1;
//!     call.text(format_args!("{counter}"))
//! }
//! static TOOLS: [Tool<u32>; 1] = [Tool::new("count", "Counts its calls", count)];
//!
//! let service = Service::new("counter", "1.0").tools(&TOOLS);
//! let mut mcp = Mcp::new(service, 0, MountOptions::new(async_io::Timer::after)); // tokio: `tokio::time::sleep`
//!
//! // In axum: `Router::new().fallback_service(mcp)`. By hand:
//! let message = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"demo","version":"1.0"}}}"#;
//! let request = http::Request::post("/mcp")
//!     .header("Host", "localhost")
//!     .header("Content-Type", "application/json")
//!     .header("Accept", "application/json, text/event-stream")
//!     .body(Full::new(bytes::Bytes::from(message)))?;
//! let response = block_on(mcp.call(request))?;
//! assert_eq!(response.status(), 200);
//! let body = block_on(response.into_body().collect())?.to_bytes();
//! assert!(body.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it serves
//!
//! One mount serves all that the endpoint has, by the path of the request: `/mcp` (Streamable HTTP of all revisions), `/sse` and
//! `/messages` (clients of 2024-11-05), and `/.well-known/oauth-protected-resource` with the paths below it
//! ([`EndpointConfig::resource_metadata`]). So give it all paths without another route (`fallback_service` of axum), or a
//! route for each. Behind a router that removes a part of the path, see [`Mcp::nested`].
//!
//! Several processes serve the same sessions with [`HttpServerOptions::session_seal`]; with [`MountOptions::fleet`]
//! changes reach the clients of all.
//!
//! # Guarantees
//!
//! - **Cancellation.** A future that is dropped has done nothing yet. A body that is dropped before its end notifies the endpoint
//!   that its client is gone: under 2026-07-28 this cancels the request; an older client may come back for the answer.
//! - **Back pressure.** A stream is pulled when its body is polled, and not before. Unsent bytes are counted in the
//!   endpoint ([`EndpointLimits`]). A JSON answer is counted until it is sent or dropped, and given in pieces of at most 64 KiB;
//!   beyond [`HttpServerOptions::output_total`] requests get 503.
//! - **No polling.** An event wakes the body that waits for it.
//! - **The head first.** `Host`, `Origin`, path, method and authorization are checked before the body is read.
//! - **The time** needs no task: the timer is set by the futures and bodies of the mount, and wakes one body that waits.
//!   [`Mcp::run`] is for handlers that must learn in time that a client is gone while no stream is open.
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

mod body;
mod handle;
mod keeper;
mod mount;
mod options;
mod request;
mod shared;
mod waits;

pub use body::Body;
pub use handle::Handle;
pub use mcp_sansio;
pub use mcp_sansio_host::layers;
pub use mcp_sansio_host::{
    HttpServerOptions, Job, LateReceiver, LateSendError, LateSender, LogMessage, NewWork, Work, WorkFuture, channel,
    channel_of,
};
pub use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, StreamPolicy};
pub use mcp_sansio_http::endpoint::{Grant, MessageAccess, Refusal, SessionSeal};
pub use mount::{Mcp, ResponseFuture};
pub use options::MountOptions;

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
