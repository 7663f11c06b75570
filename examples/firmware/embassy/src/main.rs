//! An MCP server on UART0, on embassy: one task serves, one measures, one looks after the watchdog.

#![no_std]
#![no_main]

mod measure;
mod service;

use board::{Led, Static, UartRx, UartTx, Watchdog};
use embassy_executor::Spawner;
use embassy_time::Timer;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Server;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};
use mcp_sansio_embedded::Error;
use mcp_sansio_embedded::asynch::{Ticks, serve_ticking};

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

/// What is read at once: a read goes on while measurements are told of.
const CHUNK: usize = 32;

const WATCHDOG_MILLIS: u32 = 60_000;

board::entry!(main);

fn main() -> ! {
    board::run(start)
}

fn start(spawner: Spawner) {
    let board = board::start();
    let (rx, tx) = board.uart.split();
    // There is one of each, so there is a place for each.
    let (Ok(serving), Ok(measuring), Ok(watching)) =
        (serving(rx, tx, board.led), measure::measuring(), watching(board.watchdog))
    else {
        board::exit()
    };
    spawner.spawn(serving);
    spawner.spawn(measuring);
    spawner.spawn(watching);
}

#[embassy_executor::task]
async fn serving(mut rx: UartRx, mut tx: UartTx, led: Led) {
    let Some(mut session) = session() else { board::exit() };
    let mut device = Device::new(led);
    let mut chunk = [0; CHUNK];
    let mut ticks = Ticks::new(&mut chunk, measure::news, service::tell);
    // A damaged byte costs its message; the next one is read again.
    while let Err(Error::Read(_)) =
        serve_ticking(&mut rx, &mut tx, &SERVICE, &mut device, &mut session, &mut ticks).await
    {}
    tx.drain();
    #[cfg(feature = "report")]
    board::log(if board::stack::used() <= 4096 {
        b"stack: at most 4096 bytes\n"
    } else {
        b"stack: more than 4096 bytes\n"
    });
    board::exit()
}

/// As long as tasks get their turn all is well.
#[embassy_executor::task]
async fn watching(mut watchdog: Watchdog) {
    watchdog.start(WATCHDOG_MILLIS);
    loop {
        watchdog.kick();
        Timer::after_millis(1_000).await;
    }
}

/// Not inlined: what is moved around here would keep its place in the frame of its caller.
#[inline(never)]
fn session() -> Option<Session<'static, Lines<Slice<'static>>, REQUESTS>> {
    let server = Server::new().reopening().scratch(SCRATCH.take()?).subscriptions(SUBSCRIPTIONS.take()?);
    Some(Session::new(LineBuffer::new(INPUT.take()?), server, Lines::new(Slice::new(OUTPUT.take()?))))
}
