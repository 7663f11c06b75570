//! Servers and clients for [`mcp_sansio`] as futures: over stdio, child processes, HTTP, or any async reader and writer.
//!
//! The futures run on any executor; they need no runtime but the I/O thread of [`async_io`]. [`serve_stdio`] and
//! [`serve`] are the whole of it where handlers answer at once:
//!
//! ```no_run
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//!
//! fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome {
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
//! A handler that has to wait calls [`later`](mcp_sansio::service::Handling::later), spawns a task and gives it the
//! token. The task tells its progress and answers through [`Answers`], one end of a [`channel`]; [`Serve`] has the
//! other. If the client cancels, [`on_cancel`](mcp_sansio::service::Service::on_cancel) hears of it: dropping the task
//! ends it.
//!
//! ```
//! use std::collections::HashMap;
//! use std::time::Duration;
//! use mcp_sansio::server::{Progress, Token};
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio_smol::{Answers, Ended, Serve, channel};
//!
//! struct State {
//!     answers: Answers<State>,
//!     tasks: HashMap<Token, smol::Task<Result<(), Ended>>>,
//! }
//!
//! fn brew(state: &mut State, call: &mut Call<'_>) -> Outcome {
//!     let (token, outcome) = call.later();
//!     state.tasks.insert(token, smol::spawn(brewing(state.answers.clone(), token)));
//!     outcome
//! }
//!
//! async fn brewing(answers: Answers<State>, token: Token) -> Result<(), Ended> {
//!     for cup in 1..=2 {
//!         smol::Timer::after(Duration::from_millis(1)).await;
//!         answers.progress(token, Progress::new(cup).of(2).message("brewing")).await?;
//!     }
//!     answers
//!         .answer(token, move |state, call| {
//!             state.tasks.remove(&token);
//!             call.text("Two cups are ready")
//!         })
//!         .await
//! }
//!
//! static TOOLS: [Tool<State>; 1] = [Tool::new("brew", "Brews two cups of coffee", brew)];
//!
//! let (answers, late) = channel();
//! let mut state = State { answers, tasks: HashMap::new() };
//! let service = Service::new("kitchen", "1.0").tools(&TOOLS).on_cancel(|state: &mut State, token| {
//!     state.tasks.remove(&token);
//! });
//! # let input: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew","_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! let mut output = Vec::new();
//! let served = Serve::new(&service).late(late).over(input, &mut output, &mut state); // or `.stdio(&mut state)`
//! smol::block_on(served)?;
//!
//! let lines: Vec<_> = std::str::from_utf8(&output).unwrap().lines().collect();
//! // The input has ended, and nothing but answers is written then; else the two reports of progress would come first.
//! assert!(lines.len() == 1 && lines[0].contains("Two cups are ready"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What it does for you
//!
//! - **Reads are cancel-safe.** Input is collected in the session, not in the future that reads.
//! - **Back pressure.** While more than [`Serve::backlog`] bytes wait for the writer, no input is read and no late answer
//!   is taken; senders wait.
//! - **The end of the input is not the end of the work.** What was asked is answered, also late, for as long as
//!   [`Serve::grace`] says; what is still open then is answered with an error.
//! - **Stdin and stdout are left as they are.** Blocking reads and writes run on threads of [`blocking`], so pipes, files and
//!   terminals all work, and no terminal is found in non-blocking mode by the next program.
//!
//! # HTTP
//!
//! With the feature `http`, `http::HttpServer` serves many clients on one port, with the same [`Answers`].
//!
//! # Clients
//!
//! With the feature `client`, `client::Client` speaks to servers that run as child processes, and with `http` also over HTTP;
//! `tls` adds https.

mod answers;
mod backlog;
#[cfg(feature = "client")]
pub mod client;
mod connection;
#[cfg(feature = "http")]
pub mod http;
mod interrupted;
mod serve;

pub use answers::{Answers, Ended, Late, channel};
pub use mcp_sansio;
pub use serve::{Serve, serve, serve_stdio};
