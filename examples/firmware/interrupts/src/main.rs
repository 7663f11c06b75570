//! An MCP server on UART0 with plain interrupts. The UART's interrupt fills a ring, the timer's interrupt takes
//! samples, and the main program serves, emits the event of the button, and sleeps.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod button;
mod samples;
mod service;

use board::Static;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_embedded::embedded_io::ReadReady;
use mcp_sansio_embedded::{IoError, serve_ticking};

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
static SLOTS: Static<[RequestSlot; 8]> = Static::new([RequestSlot::FREE; 8]);

const WATCHDOG_MILLIS: u32 = 60_000;

board::entry!(main);

fn main() -> ! {
    let mut board = board::start();
    let Some(mut session) = session() else { board::exit() };
    let (mut rx, mut tx) = board.uart.split();
    let (mut clock, mut watchdog) = (board.clock, board.watchdog);
    let mut button = board.button;

    watchdog.start(WATCHDOG_MILLIS);
    button.start();
    // The number of this start is another one each time: the first byte comes at any time. A product counts its starts in flash.
    while !rx.read_ready().unwrap_or(true) {
        board::idle();
        watchdog.kick();
        clock.now();
    }
    let Some(events) = button::events(clock.now() << 16 | u64::from(board::cycles())) else { board::exit() };
    let mut device = Device::new(board.led, events);
    board.timer.every(samples::EVERY_MILLIS, samples::take);
    // A damaged byte damages only its message; the next message is read as usual.
    while let Err(IoError::Read(_)) =
        serve_ticking(&mut rx, &mut tx, &SERVICE, &mut device, &mut session, |device, session| {
            board::idle();
            watchdog.kick();
            let now = clock.now();
            session.server.expire(now);
            device.seconds = clock.seconds();
            if button.was_pressed(now) {
                button::pressed(device, now);
            }
            service::go_on(device, session, now);
        })
    {}
    tx.drain();
    board::exit()
}

/// Not inlined: otherwise its temporaries would stay in the frame of `main`.
#[inline(never)]
fn session() -> Option<LineServer<'static, LineSink<SliceStorage<'static>>>> {
    let server = Server::new(SLOTS.take()?).reopening().scratch(SCRATCH.take()?).subscriptions(SUBSCRIPTIONS.take()?);
    Some(LineServer::new(LineBuffer::new(INPUT.take()?), server, LineSink::new(SliceStorage::new(OUTPUT.take()?))))
}
