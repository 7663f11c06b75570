//! An MCP server over TCP/IP: a thermometer with LEDs and a memory.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[cfg(not(feature = "fixture"))]
mod button;
mod connection;
#[cfg(not(feature = "fixture"))]
mod device;
#[cfg(feature = "fixture")]
mod fixture;
#[cfg(not(feature = "fixture"))]
mod manual;
mod memory;
mod net;
mod random;
#[cfg(feature = "report")]
mod report;
mod room;

use mcp_sansio::sink::SliceStorage;
use mcp_sansio_http::{endpoint, host};

use crate::connection::Shared;
#[cfg(not(feature = "fixture"))]
use crate::device as offer;
#[cfg(feature = "fixture")]
use crate::fixture as offer;
use crate::memory::Memory;
use crate::offer::State;
use crate::room::Room;

/// The most requests in flight: with a late answer, with a question to the client, or with output in windows.
const IN_FLIGHT: usize = 8;

type Endpoint = endpoint::Endpoint<'static>;
type App<'a> = endpoint::App<'a, State>;
type Body = host::BodyBuffer<SliceStorage<'static>>;

/// Longer than any turn of the loop.
const WATCHDOG_MILLIS: u32 = 4_000;

board::entry!(main);

fn main() -> ! {
    let board = board::start();
    let mut clock = board.clock;
    let mut watchdog = board.watchdog;
    let now = clock.now();
    let Some(Memory { net, endpoint, connections, body }) = Memory::take(board.ethernet, now) else { board::exit() };
    let Some(mut state) = offer::state(board.led, board.button, board.adc, now, &mut net.port.random) else {
        board::exit()
    };
    let mut app = App::new(&offer::SERVICE, &mut state);

    #[cfg(feature = "report")]
    let mut report = report::Report::new();
    let mut room = Room::new();
    watchdog.start(WATCHDOG_MILLIS);
    loop {
        watchdog.kick();
        let now = clock.now();
        let mut busy = net.poll(now);
        let mut shared = Shared { endpoint, app: &mut app, body, now };
        for at in 0..connections.len() {
            let scarce = room::is_scarce(connections, net);
            if let Some(Some(connection)) = connections.get_mut(at) {
                busy |= connection.turn(net, &mut shared, scarce);
            }
        }
        room.make(connections, net, endpoint, now);
        net.port.accept(room::free(connections, net));
        offer::go_on(&mut app, endpoint, now);
        if endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
            endpoint.expire(&mut app, now);
        }
        busy |= net.poll(now);
        #[cfg(feature = "report")]
        report.tell(now, endpoint, room::free(connections, net));
        #[cfg(feature = "hang")]
        while now >= 5_000 {}
        if !busy {
            net.port.wait();
        }
    }
}
