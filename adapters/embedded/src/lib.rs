//! Servers and clients for [`mcp_sansio`] over the traits of [`embedded_io`]: a UART, USB's serial class, a TCP
//! socket.
//!
//! Each message is a line, as over [stdio](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio).
//! The crate needs no allocator, no clock and no thread. The caller lends the memory in a [`LineServer`], and sets the
//! time.
//!
//! ```
//! use mcp_sansio_embedded::serve;
//! use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
//! use mcp_sansio_embedded::mcp_sansio::server::{Server, RequestSlot};
//! use mcp_sansio_embedded::mcp_sansio::service::{Call, HandlerResult, Service, Tool};
//! use mcp_sansio_embedded::mcp_sansio::line_server::LineServer;
//! use mcp_sansio_embedded::mcp_sansio::sink::{LineSink, SliceStorage};
//!
//! struct Board {
//!     led: bool,
//! }
//!
//! fn toggle(board: &mut Board, call: &mut Call<'_>) -> HandlerResult {
//!     board.led = !board.led;
//!     call.text(if board.led { "The LED is on" } else { "The LED is off" })
//! }
//! static TOOLS: [Tool<Board>; 1] = [Tool::new("toggle", "Toggles the LED", toggle)];
//! const SERVICE: Service<'static, Board> = Service::new("board", "1.0").tools(&TOOLS);
//!
//! // `input` holds the longest message that arrives. Answers leave through `output`.
//! let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 2]);
//! let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
//! # let rx: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
//! # let mut tx = Vec::<u8>::new();
//! // `rx` and `tx` are the two halves of a UART. If one driver is both and can be split, split it.
//! serve(rx, &mut tx, &SERVICE, &mut Board { led: false }, &mut session)?;
//! # assert_eq!(tx, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! # Ok::<(), mcp_sansio_embedded::IoError<core::convert::Infallible>>(())
//! ```
//!
//! | | blocking | async |
//! |---|---|---|
//! | handlers answer at once | [`serve`] | `asynch::serve` |
//! | handlers answer later, values change, the time matters | [`serve_ticking`] | `asynch::serve_ticking` |
//! | a client | [`client::drive`] | `asynch::drive` |
//!
//! # Errors
//!
//! The loops return each [`IoError`] to the caller, and keep the session valid. Example: a UART sees a damaged byte,
//! and one read fails. The server answers the message with that byte with a parse error. The next call reads on
//! with the next line:
//!
//! ```
//! # use mcp_sansio_embedded::{IoError, serve, mcp_sansio};
//! # use mcp_sansio::service::Service;
//! # use mcp_sansio::line_server::LineServer;
//! # use mcp_sansio::sink::{LineSink, SliceStorage};
//! # fn log<T>(_: T) {}
//! # fn forever<R: embedded_io::Read, W: embedded_io::Write>(rx: &mut R, tx: &mut W, service: &Service<'_, ()>, session: &mut LineServer<'_, LineSink<SliceStorage<'_>>>) {
//! while let Err(IoError::Read(error)) = serve(&mut *rx, &mut *tx, service, &mut (), session) {
//!     log(error); // an overrun or a framing error: more bytes will arrive
//! }
//! # }
//! ```
//!
//! # Wires that report when a client goes
//!
//! Some wires report it: DTR of USB's serial class falls, or the cable is unplugged. Then call
//! [`LineServer::new_peer`] before you call the loop again. Otherwise half a line of the old client would be joined to
//! the first message of the next one. The module [`packet`] has more for USB.
//!
//! Feature: `defmt`, a log format for [`IoError`].
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]

pub mod asynch;
pub mod client;
mod error;
pub mod packet;
mod wire;

pub use embedded_io;
pub use error::IoError;
pub use mcp_sansio;

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::line_server::LineServer;
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, Storage};

/// Serves `reader` and `writer` until `reader` ends and every answer is written. A UART never ends.
///
/// If the input of `session` has ended before, `serve` first prepares it for [another client](LineServer::new_peer).
///
/// Handlers run one after the other and answer at once. A handler that answers
/// [`later`](mcp_sansio::service::RequestContext::later) needs [`serve_ticking`]: this loop never gives that answer.
///
/// # Errors
/// Returns [`IoError::Read`] or [`IoError::Write`] with the error of `reader` or `writer`, [`IoError::Zero`] if `writer`
/// takes no byte, and [`IoError::TooSmall`] if a buffer of the session is too small. To go on after an error, call
/// `serve` again.
pub fn serve<S, R: Read, W: Write, B: Storage>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut LineServer<'_, LineSink<B>>,
) -> Result<(), IoError<R::Error, W::Error>> {
    // An earlier call may have written bytes and failed to flush them.
    writer.flush().map_err(IoError::Write)?;
    wire::begin(session);
    while !session.has_ended() {
        wire::settle(&mut writer, session, |session| session.run(service, state))?;
        if !wire::read(&mut reader, session)? {
            session.end_of_input();
        }
    }
    wire::settle(&mut writer, session, |session| session.run(service, state))?;
    wire::settle(&mut writer, session, LineServer::abandon)
}

/// Serves like [`serve`], for programs with other events than input: the loop calls `tick` at every turn. `tick`
/// may give a delayed answer ([`LineServer::answer`]), send [progress](LineServer::progress), [publish](mcp_sansio::server::Server::publish)
/// changes, set the [time](mcp_sansio::server::Server::expire), and kick a watchdog.
///
/// `tick` is also the place to sleep: if there is nothing to do, it may wait for an interrupt (`wfi`), provided
/// that received bytes and a timer raise one. If `tick` always returns at once, the loop keeps the processor busy.
///
/// After `reader` has ended, the loop goes on until every request is answered. To end it earlier, call
/// [`LineServer::abandon`] in `tick`.
///
/// ```
/// use mcp_sansio_embedded::mcp_sansio::server::RequestToken;
/// use mcp_sansio_embedded::mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_embedded::serve_ticking;
///
/// #[derive(Default)]
/// struct Oven {
///     time: u64,
///     hot: Option<(RequestToken, u64)>,
/// }
///
/// fn heat(oven: &mut Oven, call: &mut Call<'_>) -> HandlerResult {
///     let (token, outcome) = call.later();
///     oven.hot = Some((token, oven.time + 3));
///     outcome
/// }
/// static TOOLS: [Tool<Oven>; 1] = [Tool::new("heat", "Heats the oven, which takes a while", heat)];
/// const SERVICE: Service<'static, Oven> = Service::new("oven", "1.0").tools(&TOOLS);
/// # use mcp_sansio::{frame::LineBuffer, server::{Server, RequestSlot}, line_server::LineServer, sink::{LineSink, SliceStorage}};
/// # let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 2]);
/// # let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
/// # let rx = &br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"heat","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#[..];
/// # let mut tx = Vec::<u8>::new();
/// # let rx = std::io::BufReader::new(rx);
/// # let rx = mcp_sansio_embedded_doc::Ready(rx);
/// # mod mcp_sansio_embedded_doc {
/// #     pub struct Ready<R>(pub R);
/// #     impl<R> embedded_io::ErrorType for Ready<R> { type Error = std::io::Error; }
/// #     impl<R: std::io::Read> embedded_io::Read for Ready<R> { fn read(&mut self, b: &mut [u8]) -> std::io::Result<usize> { self.0.read(b) } }
/// #     impl<R> embedded_io::ReadReady for Ready<R> { fn read_ready(&mut self) -> std::io::Result<bool> { Ok(true) } }
/// # }
///
/// serve_ticking(rx, &mut tx, &SERVICE, &mut Oven::default(), &mut session, |oven, session| {
///     oven.time += 1; // in a real program: from a timer's interrupt
///     if let Some((token, _)) = oven.hot.take_if(|(_, at)| *at <= oven.time) {
///         // An error means that the client has cancelled the request. It can be ignored.
///         let _ = session.answer(&SERVICE, oven, token, |_, call| call.text("It is hot"));
///     }
/// })?;
/// # assert!(String::from_utf8(tx).unwrap().contains("It is hot"));
/// # Ok::<(), mcp_sansio_embedded::IoError<std::io::Error, core::convert::Infallible>>(())
/// ```
///
/// # Errors
/// Returns the errors of [`serve`].
pub fn serve_ticking<'m, S, R: Read + ReadReady, W: Write, B: Storage>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut LineServer<'m, LineSink<B>>,
    mut tick: impl FnMut(&mut S, &mut LineServer<'m, LineSink<B>>),
) -> Result<(), IoError<R::Error, W::Error>> {
    writer.flush().map_err(IoError::Write)?;
    wire::begin(session);
    loop {
        tick(state, session);
        wire::settle(&mut writer, session, |session| session.run(service, state))?;
        if session.is_done() {
            return Ok(());
        }
        if !session.has_ended() && reader.read_ready().map_err(IoError::Read)? && !wire::read(&mut reader, session)? {
            session.end_of_input();
        }
    }
}

/// The program of the README is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
