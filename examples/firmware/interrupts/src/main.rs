//! An MCP server on UART0 with plain interrupts: the UART's fills a ring, the timer's takes samples, and the main program
//! serves and sleeps.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod samples;
mod service;

use board::Static;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Server;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};
use mcp_sansio_embedded::{Error, serve_ticking};

use crate::service::{Device, SERVICE};

/// The longest message that is read, with its newline.
static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
/// Replies that are longer than this go out in windows.
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);
/// What clients are subscribed to, with the ids of their requests.
static SUBSCRIPTIONS: Static<[u8; 128]> = Static::new([0; 128]);
/// For arguments and URIs with escapes in them.
static SCRATCH: Static<[u8; 64]> = Static::new([0; 64]);

/// Requests in flight.
const REQUESTS: usize = 4;

const WATCHDOG_MILLIS: u32 = 60_000;

board::entry!(main);

fn main() -> ! {
    let mut board = board::start();
    let Some(mut session) = session() else { board::exit() };
    let mut device = Device::new(board.led);
    let (mut rx, mut tx) = board.uart.split();
    let (mut clock, mut watchdog) = (board.clock, board.watchdog);

    watchdog.start(WATCHDOG_MILLIS);
    board.timer.every(samples::EVERY_MILLIS, samples::take);
    // A damaged byte costs its message; the next one is read again.
    while let Err(Error::Read(_)) =
        serve_ticking(&mut rx, &mut tx, &SERVICE, &mut device, &mut session, |device, session| {
            board::idle();
            watchdog.kick();
            session.expire(clock.now());
            device.seconds = clock.seconds();
            service::go_on(device, session);
        })
    {}
    tx.drain();
    board::exit()
}

/// Not inlined: what is moved around here would keep its place on the stack of `main`.
#[inline(never)]
fn session() -> Option<Session<'static, Lines<Slice<'static>>, REQUESTS>> {
    let server = Server::new().reopening().scratch(SCRATCH.take()?).subscriptions(SUBSCRIPTIONS.take()?);
    Some(Session::new(LineBuffer::new(INPUT.take()?), server, Lines::new(Slice::new(OUTPUT.take()?))))
}
