//! The Model Context Protocol as a sans-IO state machine: no runtime, no sockets, no clock, no allocator needed.
//!
//! ```text
//!   bytes in ──► LineBuffer ──► Service ──► handlers: plain functions over your state
//!                               │   ▲            │
//!                               ▼   │            │ text, json, content, progress, log, ask, later, stream
//!                              Server (state)    ▼
//!   bytes out ◄────────────── your sink ◄────────┘
//! ```
//!
//! ```
//! use mcp_sansio::frame::LineBuffer;
//! use mcp_sansio::server::{Server, RequestSlot};
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio::line_server::{NextStep, LineServer};
//! use mcp_sansio::sink::{LineSink, SliceStorage};
//!
//! fn count(counter: &mut u32, call: &mut Call<'_>) -> HandlerResult {
//!     *counter += 1;
//!     call.text(format_args!("called {counter} times"))
//! }
//! static TOOLS: [Tool<u32>; 1] = [Tool::new("count", "Counts its calls", count)];
//!
//! let service = Service::new("counter", "1.0").tools(&TOOLS);
//! let (mut input, mut output, mut counter) = ([0; 1024], [0; 512], 0);
//! let mut slots = [RequestSlot::FREE; 4]; // requests in flight
//! let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
//!
//! // The input from a pipe, a serial line or a socket comes in pieces of any size.
//! let received = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
//!     \"capabilities\":{},\"clientInfo\":{\"name\":\"demo\",\"version\":\"1.0\"}}}\n\
//!     {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}\n";
//! let mut sent = Vec::new();
//! for piece in received.chunks(100) {
//!     session.space()[..piece.len()].copy_from_slice(piece);
//!     session.filled(piece.len());
//!     loop {
//!         let next = session.run(&service, &mut counter);
//!         sent.extend_from_slice(session.out.pending()); // a real connection takes what it can
//!         session.out.sent(session.out.pending().len());
//!         if next == NextStep::Read {
//!             break;
//!         }
//!     }
//! }
//! assert!(String::from_utf8(sent).unwrap().contains("called 1 times"));
//! ```
//!
//! Most programs need three parts: a [`Service`](service::Service), which says what the server offers; a
//! [`LineServer`](line_server::LineServer), which is one connection; and a loop, either their own or one of an adapter:
//! `mcp-sansio-blocking`, `mcp-sansio-smol`, `mcp-sansio-embedded`, `mcp-sansio-http`. Programs that dispatch
//! requests themselves use [`Server::handle`](server::Server::handle).
//!
//! For the other role see [`client`]: a [`ClientInfo`](client::ClientInfo) names the program and its capabilities, a
//! [`client::LineClient`] is one connection, and the adapters are the same.
//!
//! The layers from the top; each uses only layers below it (`tests/protocol/tests/layers.rs` checks this):
//!
//! - [`line_server`]: line buffer, server and sink together;
//! - [`service`]: constant tables of tools, resources and prompts;
//! - [`server`] and [`client`]: the two state machines, each for both eras;
//! - [`content`], [`error`] and [`trace_context`]: content that both roles write (text, images, resources, icons),
//!   error responses, and the trace that a request belongs to;
//! - [`rpc`]: the envelope of a message;
//! - [`protocol`]: methods, capabilities, error codes;
//! - [`json`]: scanning, writing, serde; [`frame`]: lines and events;
//! - [`memory`]: lent or growing memory; [`revision`]: the differences between the revisions; [`sink`]: the
//!   places that take bytes; [`time`].
//!
//! Six rules hold everywhere:
//!
//! 1. The caller owns memory, time and randomness: they are arguments, and so are all limits.
//! 2. An event borrows the message it came from, never the server and never the sink.
//! 3. Bytes go out only during a call that gets the sink as an argument, and messages never mix.
//! 4. A call that fails with [`FullError::Now`] has no effect: free some space and call again. After [`FullError::Never`]
//!    waiting does not help. No handler runs twice because its reply did not fit.
//! 5. "Need more bytes", "handled inside" and "here is an event" are three different values.
//! 6. A mistake of the peer becomes an answer or an event; the engine keeps working.
//!
//! Cargo features, all additive but `terse`:
//!
//! - by default `ask` (handlers may ask the client) and `windows` (replies may be larger than the sink; without
//!   it, the server cuts lists into pages that fit);
//! - `extensions`: extensions of the protocol, see [`service`]'s module `extension`;
//! - `client`, `server`: the two roles, both by default;
//! - `alloc`: growing buffers, sinks over `Vec`, panics of handlers contained, numbers read as the nearest `f64`; without it
//!   the crate uses no allocator;
//! - `serde`: typed arguments and results;
//! - `derive`: the same without serde, with schemas from the types, see [`service`]'s module `schema`;
//! - `defmt`: log formats for devices;
//! - `terse`, for devices: the core's errors have their code and an empty `message`;
//! - `heapless` and `bytes`: their buffers as sinks.
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
// What both roles share has parts that one of them uses alone.
#![cfg_attr(not(all(feature = "client", feature = "server")), allow(dead_code, unused_imports, unused_macros))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod around;
mod balance;
#[cfg(feature = "client")]
pub mod client;
pub mod content;
mod debug;
pub mod error;
pub mod frame;
pub mod json;
#[cfg(feature = "server")]
pub mod line_server;
#[cfg(feature = "defmt")]
mod log;
mod machine;
pub mod memory;
mod options;
pub mod protocol;
pub mod revision;
pub mod rpc;
mod search;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod service;
pub mod sink;
pub mod time;
pub mod trace_context;

pub use sink::FullError;

/// The README's programs are tests.
#[cfg(all(doctest, feature = "alloc", feature = "serde", feature = "ask"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs of the page about servers are tests too.
#[cfg(all(doctest, feature = "alloc", feature = "serde", feature = "derive"))]
#[doc = include_str!("../docs/servers.md")]
struct ServersPage;

/// The program of the page for users of rmcp is a test too.
#[cfg(all(doctest, feature = "alloc", feature = "derive"))]
#[doc = include_str!("../docs/coming-from-rmcp.md")]
struct ComingFromRmcpPage;

/// The duties of your program: the rules of the specification that no library can keep for it. Documentation only.
#[cfg(all(doc, feature = "alloc"))]
pub mod duties {
    #[doc = include_str!("../docs/duties-client.md")]
    pub mod client {}
    #[doc = include_str!("../docs/duties-server.md")]
    pub mod server {}
}

/// The programs of the page about clients are tests too.
#[cfg(all(doctest, feature = "alloc", feature = "serde"))]
#[doc = include_str!("../docs/clients.md")]
struct ClientsPage;

/// The programs of the page about devices are tests too.
#[cfg(all(doctest, feature = "alloc", feature = "serde"))]
#[doc = include_str!("../docs/devices.md")]
struct DevicesPage;
