//! An MCP server on UART0, on embassy: one task serves, one measures, one kicks the watchdog.

#![no_std]
#![no_main]

mod measure;
mod service;

use board::{Led, Static, UartRx, UartTx, Watchdog};
use embassy_executor::Spawner;
use embassy_time::Timer;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_embedded::IoError;
use mcp_sansio_embedded::asynch::{DeadlineTicks, serve_ticking};

use crate::service::{Device, SERVICE};

/// Holds the longest message that the server reads, with its newline.
static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
/// Holds output. Longer replies go out in windows.
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);
/// The subscriptions of clients, with the ids of their requests.
static SUBSCRIPTIONS: Static<[u8; 128]> = Static::new([0; 128]);
/// For arguments and URIs with escapes.
static SCRATCH: Static<[u8; 64]> = Static::new([0; 64]);

/// Requests in flight.
static SLOTS: Static<[RequestSlot; 4]> = Static::new([RequestSlot::FREE; 4]);

/// The most bytes of one read: a read goes on while news are sent.
const CHUNK: usize = 32;

const WATCHDOG_MILLIS: u32 = 60_000;

board::entry!(main);

fn main() -> ! {
    board::run(start)
}

fn start(spawner: Spawner) {
    let board = board::start();
    let (rx, tx) = board.uart.split();
    // Each task is spawned once, so there is room for each.
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
    let mut ticks = DeadlineTicks::new(&mut chunk, measure::news, service::tell);
    // A damaged byte damages only its message; the next message is read as usual.
    while let Err(IoError::Read(_)) =
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

/// Kicks the watchdog. This task runs as long as the executor reaches all tasks.
#[embassy_executor::task]
async fn watching(mut watchdog: Watchdog) {
    watchdog.start(WATCHDOG_MILLIS);
    loop {
        watchdog.kick();
        Timer::after_millis(1_000).await;
    }
}

/// Not inlined: otherwise its temporaries would stay in the caller's frame.
#[inline(never)]
fn session() -> Option<LineServer<'static, LineSink<SliceStorage<'static>>>> {
    let server = Server::new(SLOTS.take()?).reopening().scratch(SCRATCH.take()?).subscriptions(SUBSCRIPTIONS.take()?);
    Some(LineServer::new(LineBuffer::new(INPUT.take()?), server, LineSink::new(SliceStorage::new(OUTPUT.take()?))))
}
