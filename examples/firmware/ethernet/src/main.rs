//! An MCP server over TCP/IP: a thermometer with LEDs and a memory.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod connection;
#[cfg(not(feature = "fixture"))]
mod device;
#[cfg(feature = "fixture")]
mod fixture;
mod memory;
mod net;
mod random;

use mcp_sansio::sink::Slice;
use mcp_sansio_http::{endpoint, host};

use crate::connection::{Connection, Shared};
#[cfg(not(feature = "fixture"))]
use crate::device as offer;
#[cfg(feature = "fixture")]
use crate::fixture as offer;
use crate::memory::Memory;
use crate::offer::State;

/// Requests in flight: those whose answer is put off, that ask the client, that go out in windows.
const IN_FLIGHT: usize = 8;

type Endpoint = endpoint::Endpoint<'static, IN_FLIGHT>;
type App<'a> = endpoint::App<'a, State>;
type Body = host::Body<Slice<'static>>;

/// Where fewer sockets than this wait, connections are not kept for another request: clients come in bursts.
const SPARE: usize = 3;

/// Longer than any turn of the loop takes.
const WATCHDOG_MILLIS: u32 = 4_000;

#[board::entry]
fn main() -> ! {
    let board = board::start();
    let mut clock = board.clock;
    let mut watchdog = board.watchdog;
    let now = clock.now();
    let Some(Memory { net, endpoint, connections, body }) = Memory::take(board.ethernet, now) else { board::exit() };
    let mut state = offer::state(board.led, board.adc, now);
    let mut app = App::new(&offer::SERVICE, &mut state);

    watchdog.start(WATCHDOG_MILLIS);
    loop {
        watchdog.kick();
        let now = clock.now();
        let mut busy = net.poll(now);
        let mut shared = Shared { endpoint, app: &mut app, body, now };
        for at in 0..connections.len() {
            let scarce = waiting(connections) < SPARE;
            if let Some(connection) = connections.get_mut(at) {
                busy |= connection.turn(net, &mut shared, scarce);
            }
        }
        make_room(connections, endpoint);
        net.port.accept(waiting(connections));
        offer::go_on(&mut app, endpoint, now);
        if endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
            endpoint.expire(&mut app, now);
        }
        busy |= net.poll(now);
        if !busy {
            net.port.wait();
        }
    }
}

/// Sockets that wait for somebody to connect.
fn waiting(connections: &[Connection]) -> usize {
    connections.iter().filter(|connection| connection.is_waiting()).count()
}

/// Sees to it that somebody can connect: when all sockets are taken, the one that has been idle for longest is let go; if
/// none is idle, the one that has had the least to tell to somebody who only listens.
fn make_room(connections: &mut [Connection], endpoint: &Endpoint) {
    if connections.iter().any(|connection| connection.is_waiting() || connection.is_closing()) {
        return;
    }
    let oldest = connections.iter_mut().filter_map(|connection| Some((connection.idle_since()?, connection)));
    if let Some((_, connection)) = oldest.min_by_key(|(since, _)| *since) {
        return connection.let_go();
    }
    let quiet = connections.iter_mut().filter_map(|connection| Some((connection.listens_since(endpoint)?, connection)));
    if let Some((_, connection)) = quiet.min_by_key(|(since, _)| *since) {
        connection.cut();
    }
}
