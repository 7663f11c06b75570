//! The same over [`embedded_io_async`], for any executor (feature `async`).
//!
//! ```
//! # use futures_lite::future::block_on;
//! use mcp_sansio_embedded::asynch::serve;
//! use mcp_sansio_embedded::mcp_sansio::frame::LineBuffer;
//! use mcp_sansio_embedded::mcp_sansio::server::Server;
//! use mcp_sansio_embedded::mcp_sansio::service::Service;
//! use mcp_sansio_embedded::mcp_sansio::session::Session;
//! use mcp_sansio_embedded::mcp_sansio::sink::{Lines, Slice};
//!
//! const SERVICE: Service<'static, ()> = Service::new("board", "1.0");
//! let (mut input, mut output) = ([0; 512], [0; 512]);
//! let mut session = Session::<_, 2>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
//! # let rx: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
//! # let mut sent = [0; 64];
//! # let mut tx = &mut sent[..];
//! # block_on(async {
//! serve(rx, &mut tx, &SERVICE, &mut (), &mut session).await
//! # })?;
//! # assert!(sent.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
//! # Ok::<(), mcp_sansio_embedded::Error<core::convert::Infallible, embedded_io::SliceWriteError>>(())
//! ```
//!
//! While all goes well no read and no write is given up half way, so that drivers need not be cancel-safe (those over DMA
//! often are not). An error of the writer ends a read that is under way.
//!
//! Drop a loop's future to leave it when the wire tells that the client has gone, also in the middle of a write that nobody
//! takes; then [`Session::new_peer`] makes the session ready for the next client. `examples/firmware/pico` does so for USB:
//!
//! ```ignore
//! loop {
//!     // What comes while nobody has the port open is of the client before.
//!     select(dtr_is(true), rx.drain()).await;
//!     session.new_peer();
//!     rx.new_peer();
//!     tx.new_peer();
//!     select(dtr_is(false), serve(&mut rx, &mut tx, &SERVICE, &mut board, &mut session)).await;
//! }
//! ```

use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::{Pin, pin};
use core::task::Poll;

pub use embedded_io_async;
use embedded_io_async::{Read, Write};
use mcp_sansio::client::{self, Handler};
use mcp_sansio::server::Millis;
use mcp_sansio::service::Service;
use mcp_sansio::session::{Next, Session};
use mcp_sansio::sink::{Lines, Storage};

use crate::Error;
use crate::wire::{Ends, begin};

/// Serves `reader` and `writer` until `reader` ends; then everything that is owed has been written. A UART never ends.
///
/// On a session whose input has ended it begins anew, as for [another client](Session::new_peer).
///
/// Handlers run one after the other and answer at once; see [`serve_ticking`] for others.
///
/// # Errors
/// What `reader` or `writer` fails with. Call it again to go on.
pub async fn serve<S, R: Read, W: Write, B: Storage, const N: usize>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut Session<'_, Lines<B>, N>,
) -> Result<(), Error<R::Error, W::Error>> {
    // What an earlier call has written and could not flush.
    writer.flush().await.map_err(Error::Write)?;
    begin(session);
    while !session.has_ended() {
        settle(&mut writer, session, |session| session.run(service, state)).await?;
        let space = session.space();
        if space.is_empty() {
            return Err(Error::TooSmall);
        }
        match reader.read(space).await.map_err(Error::Read)? {
            0 => session.end_of_input(),
            n => session.filled(n),
        }
    }
    settle(&mut writer, session, |session| session.run(service, state)).await?;
    settle(&mut writer, session, Session::abandon).await
}

/// What happens beside the input, see [`serve_ticking`] and [`drive`].
#[derive(Debug)]
pub struct Ticks<'c, A, F> {
    chunk: &'c mut [u8],
    /// What was read and is not in the session yet: something is left only by an error.
    unread: Range<usize>,
    wait: A,
    tick: F,
}

impl<'c, A, F> Ticks<'c, A, F> {
    /// `wait` waits for whatever may happen, `tick` does what is to be done about it.
    ///
    /// `chunk` is where bytes are read to, since a read goes on while `tick` uses the session: as many as come at once;
    /// 16 to 64 bytes do for a UART.
    ///
    /// What `wait` gives is dropped half way when bytes come, and asked for again: it should lose nothing by that, as
    /// channels, signals, timers that fire at a time, and `Ticker`s do not.
    pub const fn new(chunk: &'c mut [u8], wait: A, tick: F) -> Self {
        Ticks { chunk, unread: 0..0, wait, tick }
    }

    /// Drops what was read and is not in the session yet: call it with [`Session::new_peer`] where a loop was left by an error or
    /// by dropping its future.
    pub const fn new_peer(&mut self) {
        self.unread = 0..0;
    }
}

impl<A, F> Ticks<'_, A, F> {
    /// Puts bytes that were read into the session, as many as it has room for; `false` when there are none.
    fn feed<R, W>(&mut self, session: &mut impl Ends) -> Result<bool, Error<R, W>> {
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
        if n > 0 { Ok(true) } else { Err(Error::TooSmall) }
    }
}

/// As [`serve`], for programs in which more happens than input: a task has come to a result, a timer fires, something has
/// changed. `tick` may answer what was put off ([`Session::answer`]), tell [progress](Session::progress),
/// [publish](Session::publish) changes, tell the [time](Session::expire).
///
/// When `reader` has ended this goes on until everything is answered; [`Session::abandon`] in `tick` cuts it short.
///
/// ```
/// # use futures_lite::future::{block_on, yield_now};
/// use mcp_sansio_embedded::asynch::{Ticks, serve_ticking};
/// use mcp_sansio_embedded::mcp_sansio::server::Token;
/// use mcp_sansio_embedded::mcp_sansio::service::{Call, Outcome, Service, Tool};
///
/// #[derive(Default)]
/// struct Oven {
///     heating: Option<Token>,
/// }
///
/// fn heat(oven: &mut Oven, call: &mut Call<'_>) -> Outcome {
///     let (token, outcome) = call.later();
///     oven.heating = Some(token);
///     outcome
/// }
/// static TOOLS: [Tool<Oven>; 1] = [Tool::new("heat", "Heats the oven, which takes a while", heat)];
/// const SERVICE: Service<'static, Oven> = Service::new("oven", "1.0").tools(&TOOLS);
/// # use mcp_sansio::{frame::LineBuffer, server::Server, session::Session, sink::{Lines, Slice}};
/// # let (mut input, mut output) = ([0; 512], [0; 512]);
/// # let mut session = Session::<_, 2>::new(LineBuffer::new(&mut input), Server::new(), Lines::new(Slice::new(&mut output)));
/// # let rx = &br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"heat","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#[..];
/// # let mut sent = [0; 256];
/// # let mut tx = &mut sent[..];
///
/// let mut chunk = [0; 32];
/// let mut temperature = 20;
/// let mut ticks = Ticks::new(
///     &mut chunk,
///     async || {
///         yield_now().await; // a channel's receiver, in life
///         temperature += 80;
///         temperature
///     },
///     |temperature, oven: &mut Oven, session: &mut Session<_, 2>| {
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
/// # Ok::<(), mcp_sansio_embedded::Error<core::convert::Infallible, embedded_io::SliceWriteError>>(())
/// ```
///
/// # Errors
/// As [`serve`].
pub async fn serve_ticking<'m, S, R, W, B, const N: usize, A, T, F>(
    mut reader: R,
    mut writer: W,
    service: &Service<'_, S>,
    state: &mut S,
    session: &mut Session<'m, Lines<B>, N>,
    ticks: &mut Ticks<'_, A, F>,
) -> Result<(), Error<R::Error, W::Error>>
where
    R: Read,
    W: Write,
    B: Storage,
    A: AsyncFnMut() -> T,
    F: FnMut(T, &mut S, &mut Session<'m, Lines<B>, N>),
{
    writer.flush().await.map_err(Error::Write)?;
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

/// Drives a client over `reader` and `writer` until `tick` says so or `reader` ends, as
/// [`client::drive`](crate::client::drive) does.
///
/// `ticks` tell the time: its `wait` is given the next deadline (a time on the clock below) and comes back then at the
/// latest, or when there is something to do; its `tick` says what time it is, in milliseconds, and may send requests;
/// `None` ends the loop.
///
/// # Errors
/// As [`client::drive`](crate::client::drive).
pub async fn drive<'m, R, W, B, const N: usize, A, T, F>(
    mut reader: R,
    mut writer: W,
    session: &mut client::Session<'m, Lines<B>, N>,
    handler: &mut dyn Handler,
    ticks: &mut Ticks<'_, A, F>,
) -> Result<(), Error<R::Error, W::Error>>
where
    R: Read,
    W: Write,
    B: Storage,
    A: AsyncFnMut(Option<Millis>) -> T,
    F: FnMut(Option<T>, &mut client::Session<'m, Lines<B>, N>) -> Option<Millis>,
{
    writer.flush().await.map_err(Error::Write)?;
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
                let deadline = session.engine().next_deadline();
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

/// Reads once.
async fn fill<R: Read, W>(reader: &mut R, chunk: &mut [u8]) -> Result<usize, Error<R::Error, W>> {
    if chunk.is_empty() {
        return Err(Error::TooSmall);
    }
    reader.read(chunk).await.map_err(Error::Read)
}

/// Lets a session work, and writes all it has to say, until it needs more input.
async fn settle<R, W: Write, E: Ends>(
    writer: &mut W,
    session: &mut E,
    mut run: impl FnMut(&mut E) -> Next,
) -> Result<(), Error<R, W::Error>> {
    let mut written = false;
    loop {
        let next = run(session);
        let mut wrote = false;
        while !session.pending().is_empty() {
            match writer.write(session.pending()).await.map_err(Error::Write)? {
                0 => return Err(Error::Zero),
                n => session.sent(n),
            }
            wrote = true;
        }
        written |= wrote;
        match next {
            Next::Write if wrote => {}
            Next::Write => return Err(Error::TooSmall),
            _ if written => return writer.flush().await.map_err(Error::Write),
            _ => return Ok(()),
        }
    }
}

/// Which of two came first.
enum First<A, B> {
    Read(A),
    Other(B),
}

/// Waits for two futures; the reader has precedence.
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
