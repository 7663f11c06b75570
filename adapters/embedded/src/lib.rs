//! Servers and clients for [`mcp_sansio`] over the traits of [`embedded_io`]: a UART, USB's serial class, a TCP socket.
//!
//! No allocator, no clock, no thread: memory is lent in a [`Session`], time is told by whoever has it.
//!
//! ```
//! use mcp_sansio_embedded::serve;
//! use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
//! use mcp_sansio_embedded::mcp_sansio::server::Server;
//! use mcp_sansio_embedded::mcp_sansio::service::{Call, Outcome, Service, Tool};
//! use mcp_sansio_embedded::mcp_sansio::session::Session;
//! use mcp_sansio_embedded::mcp_sansio::sink::{Lines, Slice};
//!
//! struct Board {
//!     led: bool,
//! }
//!
//! fn toggle(board: &mut Board, call: &mut Call<'_>) -> Outcome {
//!     board.led = !board.led;
//!     call.text(if board.led { "The LED is on" } else { "The LED is off" })
//! }
//! static TOOLS: [Tool<Board>; 1] = [Tool::new("toggle", "Toggles the LED", toggle)];
//! const SERVICE: Service<'static, Board> = Service::new("board", "1.0").tools(&TOOLS);
//!
//! // The longest message that comes in, and the window through which answers leave.
//! let (mut input, mut output) = ([0; 512], [0; 512]);
//! let mut session = Session::<_, 2>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
//! # let rx: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
//! # let mut tx = Vec::<u8>::new();
//! // `rx` and `tx`: the two halves of a UART, say; one driver that is both is lent twice where it can be split.
//! serve(rx, &mut tx, &SERVICE, &mut Board { led: false }, &mut session)?;
//! # assert_eq!(tx, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! # Ok::<(), mcp_sansio_embedded::Error<core::convert::Infallible>>(())
//! ```
//!
//! | | blocking | async (feature `async`) |
//! |---|---|---|
//! | handlers answer at once | [`serve`] | `asynch::serve` |
//! | they answer late, things change, time passes | [`serve_ticking`] | `asynch::serve_ticking` |
//! | the other side | [`client::drive`] | `asynch::drive` |
//!
//! # Errors
//!
//! An [`Error`] is handed out, and nothing is lost by it: a UART that has seen a damaged byte fails one read, the message
//! that the byte belonged to is answered as no JSON, and the next call goes on with the next line:
//!
//! ```
//! # use mcp_sansio_embedded::{Error, serve, mcp_sansio};
//! # use mcp_sansio::service::Service;
//! # use mcp_sansio::session::Session;
//! # use mcp_sansio::sink::{Lines, Slice};
//! # fn log<T>(_: T) {}
//! # fn forever<R: embedded_io::Read, W: embedded_io::Write>(rx: &mut R, tx: &mut W, service: &Service<'_, ()>, session: &mut Session<'_, Lines<Slice<'_>>, 4>) {
//! while let Err(Error::Read(error)) = serve(&mut *rx, &mut *tx, service, &mut (), session) {
//!     log(error); // an overrun, a framing error: there will be other bytes
//! }
//! # }
//! ```
//!
//! # Wires that tell when a client goes
//!
//! Where the wire tells (DTR of USB's serial class falls, the cable is unplugged), call [`Session::new_peer`] before the loop is
//! called again: half a line of the client before would swallow the first message of the next one. [`packet`] has what USB
//! needs besides.
//!
//! Features: `async`; `defmt`, a log format for [`Error`].
#![no_std]

#[cfg(feature = "async")]
pub mod asynch;
pub mod client;
mod error;
pub mod packet;
mod wire;

pub use embedded_io;
pub use error::Error;
pub use mcp_sansio;

use embedded_io::{Read, ReadReady, Write};
use mcp_sansio::service::Service;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Storage};

/// Serves `reader` and `writer` until `reader` ends; then everything that is owed has been written. A UART never ends.
///
/// On a session whose input has ended it begins anew, as for [another client](Session::new_peer).
///
/// Handlers run one after the other and answer at once. One that puts its answer off
/// ([`later`](mcp_sansio::service::Handling::later)) has nobody here to give it: see [`serve_ticking`].
///
/// # Errors
/// What `reader` or `writer` fails with. Call it again to go on.
pub fn serve<S, R: Read, W: Write, B: Storage, const N: usize>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut Session<'_, Lines<B>, N>,
) -> Result<(), Error<R::Error, W::Error>> {
    // What an earlier call has written and could not flush.
    writer.flush().map_err(Error::Write)?;
    wire::begin(session);
    while !session.has_ended() {
        wire::settle(&mut writer, session, |session| session.run(service, state))?;
        if !wire::read(&mut reader, session)? {
            session.end_of_input();
        }
    }
    wire::settle(&mut writer, session, |session| session.run(service, state))?;
    wire::settle(&mut writer, session, Session::abandon)
}

/// As [`serve`], for programs in which more happens than input: `tick` is called at every turn. It may answer what was put
/// off ([`Session::answer`]), tell [progress](Session::progress), [publish](Session::publish) changes, tell the
/// [time](Session::expire), kick a watchdog.
///
/// It is also the place to sleep: where there is nothing to do it may wait for an interrupt (`wfi`), if received bytes
/// and a timer raise one. Where it returns at once, this loop is a busy one.
///
/// When `reader` has ended this goes on until everything is answered; [`Session::abandon`] in `tick` cuts it short.
///
/// ```
/// use mcp_sansio_embedded::mcp_sansio::server::Token;
/// use mcp_sansio_embedded::mcp_sansio::service::{Call, Outcome, Service, Tool};
/// use mcp_sansio_embedded::serve_ticking;
///
/// #[derive(Default)]
/// struct Oven {
///     time: u64,
///     hot: Option<(Token, u64)>,
/// }
///
/// fn heat(oven: &mut Oven, call: &mut Call<'_>) -> Outcome {
///     let (token, outcome) = call.later();
///     oven.hot = Some((token, oven.time + 3));
///     outcome
/// }
/// static TOOLS: [Tool<Oven>; 1] = [Tool::new("heat", "Heats the oven, which takes a while", heat)];
/// const SERVICE: Service<'static, Oven> = Service::new("oven", "1.0").tools(&TOOLS);
/// # use mcp_sansio::{frame::LineBuffer, server::Server, session::Session, sink::{Lines, Slice}};
/// # let (mut input, mut output) = ([0; 512], [0; 512]);
/// # let mut session = Session::<_, 2>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
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
///     oven.time += 1; // from a timer's interrupt, in life
///     if let Some((token, _)) = oven.hot.take_if(|(_, at)| *at <= oven.time) {
///         // Refused as stale if the client has cancelled meanwhile, which is all right.
///         let _ = session.answer(&SERVICE, oven, token, |_, call| call.text("It is hot"));
///     }
/// })?;
/// # assert!(String::from_utf8(tx).unwrap().contains("It is hot"));
/// # Ok::<(), mcp_sansio_embedded::Error<std::io::Error, core::convert::Infallible>>(())
/// ```
///
/// # Errors
/// As [`serve`].
pub fn serve_ticking<'m, S, R: Read + ReadReady, W: Write, B: Storage, const N: usize>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut Session<'m, Lines<B>, N>,
    mut tick: impl FnMut(&mut S, &mut Session<'m, Lines<B>, N>),
) -> Result<(), Error<R::Error, W::Error>> {
    writer.flush().map_err(Error::Write)?;
    wire::begin(session);
    loop {
        tick(state, session);
        wire::settle(&mut writer, session, |session| session.run(service, state))?;
        if session.is_done() {
            return Ok(());
        }
        if !session.has_ended() && reader.read_ready().map_err(Error::Read)? && !wire::read(&mut reader, session)? {
            session.end_of_input();
        }
    }
}
