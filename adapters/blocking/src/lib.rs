//! Blocking, single-threaded servers and clients for [`mcp_sansio`]: over stdio, or over any reader and writer.
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
//!     mcp_sansio_blocking::serve_stdio(&Service::new("greeter", "1.0").tools(&TOOLS), &mut ())
//! }
//! ```
//!
//! Handlers run one after the other on the caller's thread. What one tells meanwhile, its progress and log messages, is
//! written at once.
//!
//! # Late answers and changes
//!
//! [`serve`] waits for input and for nothing else. Where answers come [later](mcp_sansio::service::Handling::later), or
//! subscribers hear of [changes](mcp_sansio::session::Session::publish), the loop is yours: here a thread reads, and a
//! channel brings what it has read and what others have found out. (`http::HttpServer::serve_with` has a place for both, and
//! `mcp_sansio_smol` waits for anything.)
//!
//! ```
//! use std::io::Read;
//! use std::sync::mpsc::{Sender, channel};
//! use mcp_sansio::server::{Limits, Token};
//! use mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio::session::{Next, Session};
//! use mcp_sansio_blocking::WriterOut;
//!
//! enum Event {
//!     Input(Vec<u8>),
//!     Brewed(Token),
//! }
//!
//! fn brew(events: &mut Sender<Event>, call: &mut Call<'_>) -> Outcome {
//!     let (token, outcome) = call.later();
//!     let events = events.clone();
//!     std::thread::spawn(move || events.send(Event::Brewed(token))); // as soon as it is ready
//!     outcome
//! }
//! static TOOLS: [Tool<Sender<Event>>; 1] = [Tool::new("brew", "Brews coffee", brew)];
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
//!         if read.send(Event::Input(bytes[..n].to_vec())).is_err() || n == 0 {
//!             return;
//!         }
//!     }
//! });
//! let mut session = Session::<_, 32>::growing(Limits::default(), WriterOut::new(&mut stdout));
//! loop {
//!     while session.run(&service, &mut events) == Next::Write {}
//!     session.out().flush();
//!     if session.is_done() || session.out().failed() {
//!         break;
//!     }
//!     match happened.recv().expect("`events` is a sender") {
//!         Event::Input(bytes) if bytes.is_empty() => session.end_of_input(),
//!         Event::Input(bytes) => {
//!             let mut rest = &bytes[..];
//!             while !rest.is_empty() {
//!                 let space = session.space();
//!                 let n = space.len().min(rest.len());
//!                 space[..n].copy_from_slice(&rest[..n]);
//!                 session.filled(n);
//!                 rest = &rest[n..];
//!                 while session.run(&service, &mut events) == Next::Write {}
//!             }
//!         }
//!         // It fails if the client has cancelled: then there is nobody to tell.
//!         Event::Brewed(token) => drop(session.answer(&service, &mut events, token, |_, call| call.text("coffee"))),
//!     }
//!     // And `session.publish(Change::Resource(uri))` for what has changed meanwhile.
//! }
//! # drop(session);
//! # assert!(String::from_utf8(stdout).unwrap().contains("coffee"));
//! ```
//!
//! Reads, prompts and completions are answered by the session's `answer_read`, `answer_prompt` and `answer_complete`. A
//! handler that has to ask the client after it has waited [suspends](mcp_sansio::service::Handling::suspend) its request, and
//! `session.resume(token)` runs it again.
//!
//! If handlers ask the client, also call [`expire`](mcp_sansio::session::Session::expire) with the time in each turn, and wait
//! with `recv_timeout`: a question that nobody answers then ends.
//!
//! # Features
//!
//! `http`, a server over HTTP; `client`, clients of child processes, with `http` over HTTP too, with `tls` over
//! HTTPS. `client` (the module) shows how they are used.

#[cfg(feature = "client")]
pub mod client;
#[cfg(all(feature = "http", unix))]
pub mod http;
#[cfg(all(feature = "http", unix))]
mod sockets;
mod writer;

pub use mcp_sansio;
pub use writer::WriterOut;

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use mcp_sansio::server::{Limits, Millis};
use mcp_sansio::service::Service;
use mcp_sansio::session::{Next, Session};

/// How many requests can be in flight: only those that ask the client stay open while others are handled.
const IN_FLIGHT: usize = 32;

/// Serves stdin and stdout until stdin ends; then everything that is owed has been written.
///
/// Nothing else may print to stdout. Limits are [`Limits::default`]; see [`serve`] for others.
///
/// # Errors
/// What reading stdin or writing stdout fails with; a client that has gone away is no error.
pub fn serve_stdio<S>(service: &Service<'_, S>, state: &mut S) -> io::Result<()> {
    let (input, output) = stdio()?;
    #[cfg(unix)]
    return serve_fd(input, output, service, state, Limits::default());
    #[cfg(not(unix))]
    serve(input, output, service, state, Limits::default())
}

/// Serves `reader` and `writer`, which may be anything that blocks, until `reader` ends. One thread, no busy loop. After
/// the end of the input only what is owed is written: answers, but no progress, log messages or changes.
///
/// It waits in `reader.read`, and does not look at the time meanwhile: a question that nobody answers ends after
/// [`Limits::ask_timeout`] only when something comes in. `serve_fd` wakes up for it, and so does [`serve_stdio`], both on
/// Unix.
///
/// Handlers run one after the other. One that puts its answer off ([`later`](mcp_sansio::service::Handling::later)) has
/// nobody here to give it: it is answered with an error at the end. Nor is there anybody to publish changes. The
/// [crate's page](crate) shows the loop for both.
///
/// # Errors
/// What `reader` or `writer` fails with; a reader that has gone away ([`ErrorKind::BrokenPipe`]) is no error.
pub fn serve<S>(
    reader: impl Read,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: Limits,
) -> io::Result<()> {
    serve_when(reader, writer, service, state, limits, |_, _| Ok(true))
}

/// As [`serve`], for a reader with a descriptor, such as a pipe or a socket: it waits for that with a time, and a question
/// that nobody answers ends after [`Limits::ask_timeout`]. The reader must not keep what it has read (no `BufReader`).
///
/// # Errors
/// As [`serve`], and what waiting for the descriptor fails with.
#[cfg(unix)]
pub fn serve_fd<S>(
    reader: impl Read + std::os::fd::AsFd,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: Limits,
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

/// Serves; `is_ready` waits for input, for so many milliseconds at most, and tells whether there is any.
fn serve_when<S, R: Read>(
    mut reader: R,
    writer: impl Write,
    service: &Service<'_, S>,
    state: &mut S,
    limits: Limits,
    is_ready: impl Fn(&R, Option<Millis>) -> io::Result<bool>,
) -> io::Result<()> {
    let started = Instant::now();
    let mut session = Session::<_, IN_FLIGHT>::growing(limits, WriterOut::new(writer));
    loop {
        session.expire(millis_since(started));
        while session.run(service, state) == Next::Write {}
        session.out().flush();
        // Looked at only after flushing: a writer that fails now must not leave this waiting for input that may never come.
        if session.out().failed() {
            break;
        }
        // An hour is as good as for ever, and fits every system's clock.
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
    while session.run(service, state) == Next::Write {}
    let _ = session.abandon();
    session.out().flush();
    session.out().result()
}

/// Reads, whatever signals come.
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

/// Stdin and stdout without the buffers of the standard library: the session has its own.
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
