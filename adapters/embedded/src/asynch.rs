//! The loops of the crate over [`embedded_io_async`], for any executor (feature `async`).
//!
//! ```
//! # use futures_lite::future::block_on;
//! use mcp_sansio_embedded::asynch::serve;
//! use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
//! use mcp_sansio_embedded::mcp_sansio::server::{Server, RequestSlot};
//! use mcp_sansio_embedded::mcp_sansio::service::Service;
//! use mcp_sansio_embedded::mcp_sansio::line_server::LineServer;
//! use mcp_sansio_embedded::mcp_sansio::sink::{LineSink, SliceStorage};
//!
//! const SERVICE: Service<'static, ()> = Service::new("board", "1.0");
//! let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 2]);
//! let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
//! # let rx: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
//! # let mut sent = [0; 64];
//! # let mut tx = &mut sent[..];
//! # block_on(async {
//! serve(rx, &mut tx, &SERVICE, &mut (), &mut session).await
//! # })?;
//! # assert!(sent.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
//! # Ok::<(), mcp_sansio_embedded::IoError<core::convert::Infallible, embedded_io::SliceWriteError>>(())
//! ```
//!
//! Drivers need not be cancel-safe (drivers over DMA often are not): while the loop runs, it drops no read and no
//! write half way. One exception: an error of the writer drops a read that is under way.
//!
//! To leave the loop when a client goes, drop its future. A write that no client reads ends with it. Then
//! [`LineServer::new_peer`] makes the session ready for the next client. `examples/firmware/pico` does so for USB:
//!
//! ```ignore
//! loop {
//!     // Bytes that arrive while the port is closed belong to the client before.
//!     select(dtr_is(true), rx.drain()).await;
//!     session.new_peer();
//!     rx.new_peer();
//!     tx.new_peer();
//!     select(dtr_is(false), serve(&mut rx, &mut tx, &SERVICE, &mut board, &mut session)).await;
//! }
//! ```

mod packet;

use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::{Pin, pin};
use core::task::Poll;

pub use embedded_io_async;
use embedded_io_async::{Read, Write};
use mcp_sansio::client::{self, ClientHandler};
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, Storage};

use crate::error::IoError;
use crate::wire::{Ends, begin};

/// Serves `reader` and `writer` until `reader` ends and every answer is written. A UART never ends.
///
/// If the input of `session` has ended before, `serve` first prepares it for
/// [another client](LineServer::new_peer).
///
/// Handlers run one after the other and answer at once; for other handlers see [`serve_ticking`].
///
/// # Errors
/// Returns [`IoError::Read`] or [`IoError::Write`] with the error of `reader` or `writer`, [`IoError::Zero`] if `writer`
/// takes no byte, and [`IoError::TooSmall`] if a buffer of the session is too small. To go on after an error, call
/// `serve` again.
pub async fn serve<S, R: Read, W: Write, B: Storage>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut LineServer<'_, LineSink<B>>,
) -> Result<(), IoError<R::Error, W::Error>> {
    // An earlier call may have written bytes and failed to flush them.
    writer.flush().await.map_err(IoError::Write)?;
    begin(session);
    while !session.has_ended() {
        settle(&mut writer, session, |session| session.run(service, state)).await?;
        let space = session.space();
        if space.is_empty() {
            return Err(IoError::TooSmall);
        }
        match reader.read(space).await.map_err(IoError::Read)? {
            0 => session.end_of_input(),
            n => session.filled(n),
        }
    }
    settle(&mut writer, session, |session| session.run(service, state)).await?;
    settle(&mut writer, session, LineServer::abandon).await
}

/// The events beside the input: how to wait for one, and the work to do then. See [`serve_ticking`] and [`drive`].
#[derive(Debug)]
pub struct DeadlineTicks<'c, A, F> {
    chunk: &'c mut [u8],
    /// The bytes of `chunk` that are read and not in the session yet. Bytes stay here only after an error.
    unread: Range<usize>,
    wait: A,
    tick: F,
}

impl<'c, A, F> DeadlineTicks<'c, A, F> {
    /// Makes a loop wait for each event with `wait`, and handle it with `tick`.
    ///
    /// `chunk` receives the bytes that are read, because a read goes on while `tick` uses the session. Its size is
    /// the most bytes of one read; 16 to 64 bytes are enough for a UART.
    ///
    /// When bytes arrive, the future of `wait` is dropped, and `wait` is called again later. It must lose nothing
    /// by that: channels, signals, timers with a fixed deadline, and `Ticker`s lose nothing.
    pub const fn new(chunk: &'c mut [u8], wait: A, tick: F) -> Self {
        DeadlineTicks { chunk, unread: 0..0, wait, tick }
    }

    /// Drops the bytes that are read and not in the session yet. Call it together with [`LineServer::new_peer`], after
    /// the loop ended by an error or its future was dropped.
    pub const fn new_peer(&mut self) {
        self.unread = 0..0;
    }
}

impl<A, F> DeadlineTicks<'_, A, F> {
    /// Moves unread bytes into the session, as many as it has room for. Returns `false` if there are none.
    fn feed<R, W>(&mut self, session: &mut impl Ends) -> Result<bool, IoError<R, W>> {
        let bytes = self.chunk.get(self.unread.clone()).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(false);
        }
        let mut n = 0;
        for (place, byte) in session.space().iter_mut().zip(bytes) {
            *place = *byte;
            n += 1;
        }
        session.filled(n);
        self.unread.start += n;
        if n > 0 { Ok(true) } else { Err(IoError::TooSmall) }
    }
}

/// Serves like [`serve`], for programs with other events than input: a task has a result, a timer fires, a value
/// changes. `tick` may give a delayed answer ([`LineServer::answer`]), send [progress](LineServer::progress),
/// [publish](mcp_sansio::server::Server::publish) changes, and set the [time](mcp_sansio::server::Server::expire).
///
/// After `reader` has ended, the loop goes on until every request is answered. To end it earlier, call
/// [`LineServer::abandon`] in `tick`.
///
/// ```
/// # use futures_lite::future::{block_on, yield_now};
/// use mcp_sansio_embedded::asynch::{DeadlineTicks, serve_ticking};
/// use mcp_sansio_embedded::mcp_sansio::server::RequestToken;
/// use mcp_sansio_embedded::mcp_sansio::service::{Call, HandlerResult, Service, Tool};
///
/// #[derive(Default)]
/// struct Oven {
///     heating: Option<RequestToken>,
/// }
///
/// fn heat(oven: &mut Oven, call: &mut Call<'_>) -> HandlerResult {
///     let (token, outcome) = call.later();
///     oven.heating = Some(token);
///     outcome
/// }
/// static TOOLS: [Tool<Oven>; 1] = [Tool::new("heat", "Heats the oven, which takes a while", heat)];
/// const SERVICE: Service<'static, Oven> = Service::new("oven", "1.0").tools(&TOOLS);
/// # use mcp_sansio::{frame::LineBuffer, server::{Server, RequestSlot}, line_server::LineServer, sink::{LineSink, SliceStorage}};
/// # let (mut input, mut output, mut slots) = ([0; 512], [0; 512], [RequestSlot::FREE; 2]);
/// # let mut session = LineServer::new(LineBuffer::new(&mut input), Server::new(&mut slots), LineSink::new(SliceStorage::new(&mut output)));
/// # let rx = &br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"heat","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#[..];
/// # let mut sent = [0; 256];
/// # let mut tx = &mut sent[..];
///
/// let mut chunk = [0; 32];
/// let mut temperature = 20;
/// let mut ticks = DeadlineTicks::new(
///     &mut chunk,
///     async || {
///         yield_now().await; // in a real program: receive from a channel
///         temperature += 80;
///         temperature
///     },
///     |temperature, oven: &mut Oven, session: &mut LineServer<_>| {
///         if temperature >= 200
///             && let Some(token) = oven.heating.take()
///         {
///             let _ = session.answer(&SERVICE, oven, token, |_, call| call.text("It is hot"));
///         }
///     },
/// );
/// # block_on(async {
/// serve_ticking(rx, &mut tx, &SERVICE, &mut Oven::default(), &mut session, &mut ticks).await
/// # })?;
/// # assert!(std::str::from_utf8(&sent).unwrap().contains("It is hot"));
/// # Ok::<(), mcp_sansio_embedded::IoError<core::convert::Infallible, embedded_io::SliceWriteError>>(())
/// ```
///
/// # Errors
/// Returns the errors of [`serve`].
pub async fn serve_ticking<'m, S, R, W, B, A, T, F>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut LineServer<'m, LineSink<B>>,
    ticks: &mut DeadlineTicks<'_, A, F>,
) -> Result<(), IoError<R::Error, W::Error>>
where
    R: Read,
    W: Write,
    B: Storage,
    A: AsyncFnMut() -> T,
    F: FnMut(T, &mut S, &mut LineServer<'m, LineSink<B>>),
{
    writer.flush().await.map_err(IoError::Write)?;
    begin(session);
    while !session.has_ended() {
        loop {
            settle(&mut writer, session, |session| session.run(service, state)).await?;
            if !ticks.feed(session)? {
                break;
            }
        }
        let read = {
            let mut reading = pin!(fill(&mut reader, ticks.chunk));
            loop {
                settle(&mut writer, session, |session| session.run(service, state)).await?;
                match first(reading.as_mut(), pin!((ticks.wait)())).await {
                    First::Read(read) => break read?,
                    First::Other(happened) => (ticks.tick)(happened, state, session),
                }
            }
        };
        ticks.unread = 0..read;
        if read == 0 {
            session.end_of_input();
        }
    }
    loop {
        settle(&mut writer, session, |session| session.run(service, state)).await?;
        if session.is_done() {
            return Ok(());
        }
        let happened = (ticks.wait)().await;
        (ticks.tick)(happened, state, session);
    }
}

/// Drives a client over `reader` and `writer`, as [`client::drive`](crate::client::drive) does, until `reader` ends
/// or `tick` returns `None`.
///
/// `ticks` gives the time. Its `wait` gets the next deadline in milliseconds, and returns at that time at the latest,
/// or earlier if there is work to do. Its `tick` returns the time in milliseconds on the same clock, and may send
/// requests.
///
/// # Errors
/// Returns the errors of [`client::drive`](crate::client::drive).
pub async fn drive<'m, R, W, B, A, T, F>(
    mut reader: R,
    mut writer: W,
    session: &mut client::LineClient<'m, LineSink<B>>,
    handler: &mut dyn ClientHandler,
    ticks: &mut DeadlineTicks<'_, A, F>,
) -> Result<(), IoError<R::Error, W::Error>>
where
    R: Read,
    W: Write,
    B: Storage,
    A: AsyncFnMut(Option<Millis>) -> T,
    F: FnMut(Option<T>, &mut client::LineClient<'m, LineSink<B>>) -> Option<Millis>,
{
    writer.flush().await.map_err(IoError::Write)?;
    let mut happened = None;
    loop {
        loop {
            let Some(now) = (ticks.tick)(None, session) else { return Ok(()) };
            settle(&mut writer, session, |session| session.run(now, handler)).await?;
            if !ticks.feed(session)? {
                break;
            }
        }
        let read = {
            let mut reading = pin!(fill(&mut reader, ticks.chunk));
            loop {
                let Some(now) = (ticks.tick)(happened.take(), session) else { return Ok(()) };
                settle(&mut writer, session, |session| session.run(now, handler)).await?;
                let deadline = session.client.next_deadline();
                match first(reading.as_mut(), pin!((ticks.wait)(deadline))).await {
                    First::Read(read) => break read?,
                    First::Other(other) => happened = Some(other),
                }
            }
        };
        ticks.unread = 0..read;
        if read == 0 {
            session.end_of_input();
            if let Some(now) = (ticks.tick)(None, session) {
                let _ = session.run(now, handler);
            }
            return Ok(());
        }
    }
}

/// Reads once into `chunk`.
async fn fill<R: Read, W>(reader: &mut R, chunk: &mut [u8]) -> Result<usize, IoError<R::Error, W>> {
    if chunk.is_empty() {
        return Err(IoError::TooSmall);
    }
    reader.read(chunk).await.map_err(IoError::Read)
}

/// Runs the session and writes its output, until it needs more input.
async fn settle<R, W: Write, E: Ends>(
    writer: &mut W,
    session: &mut E,
    mut run: impl FnMut(&mut E) -> NextStep,
) -> Result<(), IoError<R, W::Error>> {
    let mut written = false;
    loop {
        let next = run(session);
        let mut wrote = false;
        while !session.pending().is_empty() {
            match writer.write(session.pending()).await.map_err(IoError::Write)? {
                0 => return Err(IoError::Zero),
                n => session.sent(n),
            }
            wrote = true;
        }
        written |= wrote;
        match next {
            NextStep::Write if wrote => {}
            NextStep::Write => return Err(IoError::TooSmall),
            _ if written => return writer.flush().await.map_err(IoError::Write),
            _ => return Ok(()),
        }
    }
}

/// The first of two futures to finish, with its value.
enum First<A, B> {
    Read(A),
    Other(B),
}

/// Waits for the first of two futures. If both are ready, the reader wins.
async fn first<A, B>(
    mut read: Pin<&mut impl Future<Output = A>>,
    mut other: Pin<&mut impl Future<Output = B>>,
) -> First<A, B> {
    poll_fn(|cx| {
        if let Poll::Ready(read) = read.as_mut().poll(cx) {
            return Poll::Ready(First::Read(read));
        }
        other.as_mut().poll(cx).map(First::Other)
    })
    .await
}
