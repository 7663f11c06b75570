//! Blocking servers and clients for [`mcp_sansio`], on one thread: over stdio, any reader and writer, or HTTP.
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
//!     mcp_sansio_blocking::serve_stdio(&Service::new("greeter", "1.0").tools(&TOOLS), &mut ())
//! }
//! ```
//!
//! Handlers run one after the other on the caller's thread. Progress and log messages of a handler are written at
//! once.
//!
//! # Late answers and changes
//!
//! A handler [publishes](mcp_sansio::service::RequestContext::publish) its changes itself. [`serve`] waits only for input. For
//! answers that come [later](mcp_sansio::service::RequestContext::later), and for
//! [changes](mcp_sansio::line_server::LineServer::publish) from elsewhere, write the loop yourself: in this example one thread reads, and a
//! channel brings its input and the results of other threads. (`http::HttpServer::serve_with` has a place for both;
//! `mcp_sansio_smol` waits for several things at once.)
//!
//! ```
//! use std::io::Read;
//! use std::sync::mpsc::{Sender, channel};
//! use mcp_sansio::server::{MessageLimits, RequestToken};
//! use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio::line_server::{NextStep, LineServer};
//! use mcp_sansio_blocking::WriterOut;
//!
//! enum ClientEvent {
//!     Input(Vec<u8>),
//!     Brewed(RequestToken),
//! }
//!
//! fn brew(events: &mut Sender<ClientEvent>, call: &mut Call<'_>) -> HandlerResult {
//!     let (token, outcome) = call.later();
//!     let events = events.clone();
//!     std::thread::spawn(move || events.send(ClientEvent::Brewed(token))); // as soon as it is ready
//!     outcome
//! }
//! static TOOLS: [Tool<Sender<ClientEvent>>; 1] = [Tool::new("brew", "Brews coffee", brew)];
//!
//! # let mut stdin = &br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#[..];
//! # let mut stdout = Vec::new();
//! let service = Service::new("kitchen", "1.0").tools(&TOOLS);
//! let (mut events, happened) = channel();
//! let read = events.clone();
//! std::thread::spawn(move || {
//!     let mut bytes = [0; 8192];
//!     loop {
//!         let n = stdin.read(&mut bytes).unwrap_or(0);
//!         if read.send(ClientEvent::Input(bytes[..n].to_vec())).is_err() || n == 0 {
//!             return;
//!         }
//!     }
//! });
//! let mut session = LineServer::growing(MessageLimits::default(), WriterOut::new(&mut stdout));
//! loop {
//!     while session.run(&service, &mut events) == NextStep::Write {}
//!     session.out().flush();
//!     if session.is_done() || session.out().failed() {
//!         break;
//!     }
//!     match happened.recv().expect("`events` is a sender") {
//!         ClientEvent::Input(bytes) if bytes.is_empty() => session.end_of_input(),
//!         ClientEvent::Input(bytes) => {
//!             let mut rest = &bytes[..];
//!             while !rest.is_empty() {
//!                 let space = session.space();
//!                 let n = space.len().min(rest.len());
//!                 space[..n].copy_from_slice(&rest[..n]);
//!                 session.filled(n);
//!                 rest = &rest[n..];
//!                 while session.run(&service, &mut events) == NextStep::Write {}
//!             }
//!         }
//!         // An error means that the client has cancelled.
//!         ClientEvent::Brewed(token) => drop(session.answer(&service, &mut events, token, |_, call| call.text("coffee"))),
//!     }
//!     // Here `session.publish(Change::Resource(uri))` announces a change.
//! }
//! # drop(session);
//! # assert!(String::from_utf8(stdout).unwrap().contains("coffee"));
//! ```
//!
//! The session's `answer_read`, `answer_prompt` and `answer_complete` answer the other requests. A handler that has
//! to ask the client after some wait [suspends](mcp_sansio::service::RequestContext::suspend) its request;
//! `session.resume(token)` runs it again.
//!
//! If handlers ask the client, also call [`expire`](mcp_sansio::line_server::LineServer::expire) with the time in each turn,
//! and wait with `recv_timeout`: this ends questions that the client does not answer.
//!
//! # Features
//!
//! - `http`: a server over HTTP; on Unix.
//! - `client`: clients of child processes. With `http` also over HTTP, with `tls` over HTTPS. The module `client` has
//!   examples.
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "http", not(unix)))]
compile_error!(
    "the feature `http` of mcp-sansio-blocking needs a Unix system. Elsewhere use mcp-sansio-smol with `http`, or \
     mcp-sansio-tower in an HTTP server"
);

#[cfg(feature = "client")]
pub mod client;
#[cfg(all(feature = "http", unix))]
pub mod http;
mod writer;

pub use mcp_sansio;
pub use writer::WriterOut;

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::{MessageLimits, Millis};
use mcp_sansio::service::Service;

/// Serves stdin and stdout ([stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio))
/// until stdin ends and every answer is written.
///
/// Nothing else may print to stdout. The limits are [`MessageLimits::default`]; see [`serve`] for others.
///
/// # Errors
/// If stdin cannot be read or stdout cannot be written. It is no error if the client closes its end.
pub fn serve_stdio<S>(service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
    let (input, output) = stdio()?;
    #[cfg(unix)]
    return serve_fd(input, output, service, state, MessageLimits::default());
    #[cfg(not(unix))]
    serve(input, output, service, state, MessageLimits::default())
}

/// Serves a blocking `reader` and `writer` until `reader` ends, on one thread. After the end of the input it writes
/// only answers: no progress, log messages or changes.
///
/// It blocks in `reader.read`, and does not look at the time meanwhile: a question that the client does not answer
/// ends after [`MessageLimits::ask_timeout`], but only when input comes. `serve_fd` and [`serve_stdio`], both on Unix, end
/// it in time.
///
/// Handlers run one after the other. A request that its handler puts off
/// ([`later`](mcp_sansio::service::RequestContext::later)) is answered with an error at the end, because nothing here
/// answers it; changes are those that handlers [publish](mcp_sansio::service::RequestContext::publish). The [crate's page](crate)
/// shows the loop for others.
///
/// # Errors
/// If `reader` or `writer` fails. It is no error if the client closes its end ([`ErrorKind::BrokenPipe`]).
pub fn serve<S>(
    reader: impl Read,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: MessageLimits,
) -> io::Result<()> {
    serve_when(reader, writer, service, state, limits, |_, _| Ok(true))
}

/// Serves like [`serve`], for a reader with a descriptor, such as a pipe or a socket. It waits for the descriptor
/// with a timeout, so a question that the client does not answer ends after [`MessageLimits::ask_timeout`]. The reader must
/// have no buffer of its own (no `BufReader`).
///
/// # Errors
/// As [`serve`]; also if it cannot wait for the descriptor.
#[cfg(unix)]
pub fn serve_fd<S>(
    reader: impl Read + std::os::fd::AsFd,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: MessageLimits,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    serve_when(reader, writer, service, state, limits, |reader, wait| {
        let time = wait.map(|wait| Timespec { tv_sec: (wait / 1000) as i64, tv_nsec: (wait % 1000 * 1_000_000) as _ });
        match poll(&mut [PollFd::new(reader, PollFlags::IN)], time.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

/// Serves; `is_ready` waits for input, at most that many milliseconds, and returns whether there is any.
fn serve_when<S, R: Read>(
    mut reader: R,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: MessageLimits,
    is_ready: impl Fn(&R, Option<Millis>) -> io::Result<bool>,
) -> io::Result<()> {
    let started = Instant::now();
    let mut session = LineServer::growing(limits, WriterOut::new(writer));
    loop {
        session.expire(millis_since(started));
        while session.run(service, state) == NextStep::Write {}
        session.out().flush();
        // Checked after flushing: if the writer has failed, the client may be gone and send nothing more.
        if session.out().failed() {
            break;
        }
        // At most an hour: every system's clock can count that.
        let deadline = session.server().next_deadline();
        let wait = deadline.map(|at| at.saturating_sub(millis_since(started)).min(3_600_000));
        if !is_ready(&reader, wait)? {
            continue;
        }
        match read(&mut reader, session.space())? {
            0 => break,
            n => session.filled(n),
        }
    }
    session.end_of_input();
    session.out().only_answers();
    while session.run(service, state) == NextStep::Write {}
    let _ = session.abandon();
    session.out().flush();
    session.out().result()
}

/// Reads again if a signal interrupts.
fn read(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(space) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn millis_since(start: Instant) -> Millis {
    start.elapsed().as_millis() as Millis
}

/// Returns stdin and stdout without the buffers of the standard library: the session has its own.
#[cfg(unix)]
fn stdio() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((std::fs::File::from(input), std::fs::File::from(output)))
}

#[cfg(not(unix))]
fn stdio() -> io::Result<(impl Read, impl Write)> {
    Ok((io::stdin().lock(), io::stdout().lock()))
}

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
