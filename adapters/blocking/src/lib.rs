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
//! A handler [publishes](mcp_sansio::service::RequestContext::publish) its changes itself. [`Serve`] also takes answers that
//! come [later](mcp_sansio::service::RequestContext::later), progress and changes from other threads, and looks for changes
//! from time to time; over HTTP, `http::HttpServer` has the same methods. A program that has its own loop moves the
//! bytes itself: see [`LineServer`] and the example `event_loop`.
//!
//! A handler that has to ask the client after some wait [suspends](mcp_sansio::service::RequestContext::suspend) its
//! request; [`LateSender::resume`] runs it again.
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
#[cfg(all(feature = "http", unix))]
mod pump;
mod serve;
mod writer;

pub use mcp_sansio;
pub use mcp_sansio_host::layers;
pub use mcp_sansio_host::{
    Job, LateReceiver, LateSendError, LateSender, LogMessage, NewWork, Stopper, Work, WorkFuture, channel, channel_of,
};
#[cfg(any(feature = "client", feature = "http"))]
pub use mcp_sansio_host::{OwnedTool, OwnedTools};
pub use serve::Serve;
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
/// answers it; changes are those that handlers [publish](mcp_sansio::service::RequestContext::publish). [`Serve`] takes both
/// from other threads.
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
        let time = wait.and_then(|wait| Timespec::try_from(std::time::Duration::from_millis(wait)).ok());
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
        session.server.expire(millis_since(started));
        while session.run(service, state) == NextStep::Write {}
        session.out.flush();
        // Checked after flushing: if the writer has failed, the client may be gone and send nothing more.
        if session.out.failed() {
            break;
        }
        // At most an hour: every system's clock can count that.
        let deadline = session.server.next_deadline();
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
    session.out.only_answers();
    while session.run(service, state) == NextStep::Write {}
    let _ = session.abandon();
    session.out.flush();
    session.out.result()
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

// Without their locks, which cannot go to another thread.
#[cfg(not(unix))]
fn stdio() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
