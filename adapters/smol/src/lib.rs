//! Servers and clients for [`mcp_sansio`] as futures: over stdio, child processes, HTTP, or any async reader and
//! writer.
//!
//! The futures run on any executor; they need no runtime except the I/O thread of [`async_io`]. For handlers that
//! answer at once, [`serve_stdio`] is enough:
//!
//! ```no_run
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//!
//! fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
//!     call.text("hello")
//! }
//! static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
//!
//! fn main() -> std::io::Result<()> {
//!     let service = Service::new("greeter", "1.0").tools(&TOOLS);
//!     smol::block_on(mcp_sansio_smol::serve_stdio(&service, &mut ()))
//! }
//! ```
//!
//! # Answers from tasks and timers
//!
//! A handler that has to wait gives a future to [`Work`], which runs it on the executor of the caller. It reports progress
//! and answers the call through a [`channel`], whose other end [`Serve`] has. If the client cancels,
//! [`on_cancel`](mcp_sansio::service::Service::on_cancel) is called, and the future is dropped. A [`LateSender`] does the same
//! step by step.
//!
//! ```
//! use std::time::Duration;
//! use mcp_sansio::server::Progress;
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio_smol::{Serve, Work, channel};
//!
//! struct Kitchen {
//!     work: Work<Kitchen>,
//! }
//!
//! fn brew(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
//!     let brewing = kitchen.work.future(|job| async move {
//!         for cup in 1..=2 {
//!             smol::Timer::after(Duration::from_millis(1)).await;
//!             job.progress(Progress::new(cup).of(2).message("brewing"));
//!         }
//!         Ok::<_, std::io::Error>("Two cups are ready")
//!     });
//!     brewing.answer(call)
//! }
//!
//! static TOOLS: [Tool<Kitchen>; 1] = [Tool::new("brew", "Brews two cups of coffee", brew)];
//!
//! let (late, receiver) = channel();
//! let work = Work::new(late, 100).spawner(|future| smol::spawn(future).detach());
//! let service =
//!     Service::new("kitchen", "1.0").tools(&TOOLS).on_cancel(|kitchen: &mut Kitchen, token| kitchen.work.cancel(token));
//! # let input: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew","_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! let mut output = Vec::new();
//! let mut kitchen = Kitchen { work };
//! let served = Serve::new(&service).late(receiver).over(input, &mut output, &mut kitchen); // or `.stdio(&mut kitchen)`
//! smol::block_on(served)?;
//!
//! let lines: Vec<_> = std::str::from_utf8(&output).unwrap().lines().collect();
//! // The input has ended, so only the answer is written. Before the end, two progress notifications would come too.
//! assert!(lines.len() == 1 && lines[0].contains("Two cups are ready"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Guarantees
//!
//! - **Reads are cancel-safe.** The session keeps the input, not the future that reads.
//! - **Back pressure.** While [`Serve::backlog`] bytes wait for the writer, no input is read and no late answer is
//!   taken.
//! - **Requests are answered after the end of the input.** The server waits for late answers for the time of
//!   [`Serve::grace`], and answers the remaining requests with an error.
//! - **Stdin and stdout keep their modes.** Blocking reads and writes run on threads of [`blocking`]. So pipes, files
//!   and terminals all work, and a terminal is not left in non-blocking mode.
//!
//! # HTTP
//!
//! With the feature `http`, `http::HttpServer` serves many clients on one port, with the same [`LateSender`].
//!
//! # Clients
//!
//! With the feature `client`, `client::Client` talks to servers that run as child processes, with `http` also over
//! HTTP, with `tls` over HTTPS.
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
pub mod client;
mod connection;
#[cfg(feature = "http")]
pub mod http;
mod interrupted;
mod serve;
#[cfg(feature = "http")]
mod socket;

pub use mcp_sansio;
pub use mcp_sansio_host::layers;
pub use mcp_sansio_host::{
    Job, LateReceiver, LateSendError, LateSender, LogMessage, NewWork, Stopper, Work, WorkFuture, channel, channel_of,
};
#[cfg(any(feature = "client", feature = "http"))]
pub use mcp_sansio_host::{OwnedTool, OwnedTools};
pub use serve::{Serve, serve_stdio};

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
