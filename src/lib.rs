//! The Model Context Protocol as a sans-IO state machine: no runtime, no sockets, no clock, no allocator needed.
//!
//! ```text
//!   bytes in ──► LineBuffer ──► Service ──► handlers: plain functions over your state
//!                               │   ▲            │
//!                               ▼   │            │ text, json, content, progress, log, ask, later, stream
//!                              Server (state)    ▼
//!   bytes out ◄──────────── a sink of yours ◄────┘
//! ```
//!
//! ```
//! use mcp_sansio::frame::LineBuffer;
//! use mcp_sansio::server::Server;
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio::session::{Next, Session};
//! use mcp_sansio::sink::{Lines, Slice};
//!
//! fn count(counter: &mut u32, call: &mut Call<'_>) -> Outcome {
//!     *counter += 1;
//!     call.text(format_args!("called {counter} times"))
//! }
//! static TOOLS: [Tool<u32>; 1] = [Tool::new("count", "Counts its calls", count)];
//!
//! let service = Service::new("counter", "1.0").tools(&TOOLS);
//! let (mut input, mut output, mut counter) = ([0; 1024], [0; 512], 0);
//! let mut session = Session::<_, 4>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
//!
//! // What has come over a pipe, a serial line, a socket: pieces of any size.
//! let received = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
//!     \"capabilities\":{},\"clientInfo\":{\"name\":\"demo\",\"version\":\"1.0\"}}}\n\
//!     {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"count\"}}\n";
//! let mut sent = Vec::new();
//! for piece in received.chunks(100) {
//!     session.space()[..piece.len()].copy_from_slice(piece);
//!     session.filled(piece.len());
//!     loop {
//!         let next = session.run(&service, &mut counter);
//!         sent.extend_from_slice(session.pending()); // a real connection takes what it can
//!         session.sent(session.pending().len());
//!         if next == Next::Read {
//!             break;
//!         }
//!     }
//! }
//! assert!(String::from_utf8(sent).unwrap().contains("called 1 times"));
//! ```
//!
//! Most programs need a [`Service`](service::Service) (what is offered), a [`Session`](session::Session) (a connection in
//! one value) and a loop of their own, or one of the adapters: `mcp-sansio-blocking`, `mcp-sansio-smol`,
//! `mcp-sansio-embedded`, `mcp-sansio-http`. Those who would rather dispatch themselves use [`Server::handle`](server::ServerOf::handle).
//!
//! The other side is [`client`]: a [`Profile`](client::Profile) (what the program says of itself), a
//! [`client::Session`], and the same adapters.
//!
//! From the top, each layer knowing only those below it:
//!
//! - [`session`]: line buffer, server and sink together;
//! - [`service`]: constant tables of tools, resources and prompts;
//! - [`server`] and [`client`]: the two state machines, each of both eras;
//! - [`revision`] and [`protocol`]: what differs between the revisions, and the protocol's names;
//! - [`rpc`] and [`json`]: envelopes, scanning, writing, serde;
//! - [`testing`] (with `alloc`): a service tried out in memory;
//! - [`frame`]: lines; [`records`] and [`store`]: lent memory; [`sink`]: where bytes go.
//!
//! Six rules hold everywhere:
//!
//! 1. The caller owns memory, time and randomness: they are arguments, and so are all limits.
//! 2. An event borrows the message it came from, never the server and never the sink.
//! 3. Bytes go out only during a call that was given the sink, a whole message at a time.
//! 4. A call that fails with [`Full::Now`] has changed nothing: make room and call again. [`Full::Never`] says that waiting
//!    cannot help. No handler runs twice because its reply did not fit.
//! 5. "Need more bytes", "handled inside" and "here is an event" are three different values.
//! 6. A peer's mistake is an answer or an event, never a dead engine.
//!
//! Features, all additive: none (no allocator at all); by default `ask` (handlers may ask the client) and `windows` (replies
//! larger than the sink; without, lists are cut into pages that fit); `alloc` (growing
//! buffers, sinks over `Vec`, tools made at run time), `std` (exact floats), `serde` (typed arguments and results), `defmt` (log formats for devices), `heapless` and `bytes`
//! (their buffers as sinks).
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "ask", feature = "windows")),
    allow(dead_code, reason = "what only asking or windows need stays where it is")
)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod balance;
pub mod client;
pub mod frame;
pub mod json;
#[cfg(feature = "defmt")]
mod log;
pub mod protocol;
pub mod records;
pub mod revision;
pub mod rpc;
pub mod server;
pub mod service;
pub mod session;
pub mod sink;
mod small;
pub mod store;
#[cfg(feature = "alloc")]
pub mod testing;

pub use sink::Full;

/// The README's programs are tests.
#[cfg(all(doctest, feature = "std", feature = "serde", feature = "ask"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the page about clients.
#[cfg(all(doctest, feature = "std", feature = "serde"))]
#[doc = include_str!("../docs/clients.md")]
struct ClientsPage;

/// And those of the page about devices.
#[cfg(all(doctest, feature = "std", feature = "serde"))]
#[doc = include_str!("../docs/devices.md")]
struct DevicesPage;
