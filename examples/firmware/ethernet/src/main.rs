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
#[cfg(feature = "report")]
mod report;

use mcp_sansio::server::Millis;
use mcp_sansio::sink::Slice;
use mcp_sansio_http::{endpoint, host};

use crate::connection::{Connection, Shared};
#[cfg(not(feature = "fixture"))]
use crate::device as offer;
#[cfg(feature = "fixture")]
use crate::fixture as offer;
use crate::memory::Memory;
use crate::net::Net;
use crate::offer::State;

/// Requests in flight: those whose answer is put off, that ask the client, that go out in windows.
const IN_FLIGHT: usize = 8;

type Endpoint = endpoint::Endpoint<'static, IN_FLIGHT>;
type App<'a> = endpoint::App<'a, State>;
type Body = host::Body<Slice<'static>>;

/// Where fewer sockets than this wait, connections are not kept for another request: clients come in bursts.
const SPARE: usize = 3;

/// How long a connection is left alone at least: its client may be about to use it.
const IDLE_MILLIS: Millis = 100;

/// How long somebody waits for a socket before another one's event stream is ended.
const PATIENCE_MILLIS: Millis = 500;

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

    #[cfg(feature = "report")]
    let mut report = report::Report::new();
    // Since when somebody has been waiting for a socket.
    let mut wanted = None;
    watchdog.start(WATCHDOG_MILLIS);
    loop {
        watchdog.kick();
        let now = clock.now();
        let mut busy = net.poll(now);
        let mut shared = Shared { endpoint, app: &mut app, body, now };
        for at in 0..connections.len() {
            let scarce = waiting(connections, net) < SPARE;
            if let Some(Some(connection)) = connections.get_mut(at) {
                busy |= connection.turn(net, &mut shared, scarce);
            }
        }
        make_room(connections, net, endpoint, &mut wanted, now);
        net.port.accept(waiting(connections, net));
        offer::go_on(&mut app, endpoint, now);
        if endpoint.next_deadline().is_some_and(|deadline| deadline <= now) {
            endpoint.expire(&mut app, now);
        }
        busy |= net.poll(now);
        #[cfg(feature = "report")]
        report.tell(now, endpoint, waiting(connections, net));
        if !busy {
            net.port.wait();
        }
    }
}

/// Sockets that wait for somebody to connect.
fn waiting(connections: &[Option<Connection>], net: &Net) -> usize {
    connections.iter().flatten().filter(|connection| connection.is_waiting(net)).count()
}

/// Lets somebody connect who has to wait because all sockets are taken: the connection that has been idle for longest is
/// let go. If none is idle and no answer ends soon, it is the one that has had the least to tell to somebody who only
/// listens.
fn make_room(
    connections: &mut [Option<Connection>],
    net: &Net,
    endpoint: &Endpoint,
    wanted: &mut Option<Millis>,
    now: Millis,
) {
    if !net.port.is_wanted() || connections.iter().flatten().any(|connection| connection.is_waiting(net)) {
        *wanted = None;
        return;
    }
    let since = *wanted.get_or_insert(now);
    if connections.iter().flatten().any(Connection::is_closing) {
        return;
    }
    let oldest = connections.iter_mut().flatten().filter_map(|connection| Some((connection.idle_since()?, connection)));
    let oldest = oldest.filter(|(since, _)| now.saturating_sub(*since) >= IDLE_MILLIS);
    if let Some((_, connection)) = oldest.min_by_key(|(since, _)| *since) {
        return connection.let_go();
    }
    if now.saturating_sub(since) < PATIENCE_MILLIS {
        return;
    }
    let quiet = connections
        .iter_mut()
        .flatten()
        .filter_map(|connection| Some((connection.listens_since(endpoint)?, connection)));
    if let Some((_, connection)) = quiet.min_by_key(|(since, _)| *since) {
        connection.cut();
    }
}
