//! An MCP server on UART0: a thermometer with a history, and an LED.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[cfg(feature = "report")]
mod report;
mod service;

use board::{Input, Static};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
#[cfg(feature = "status")]
use mcp_sansio::server::ServerChange;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::sink::{LineSink, SliceStorage};

#[cfg(feature = "status")]
use crate::service::STATUS;
use crate::service::{Device, SERVICE};

struct Memory {
    /// Holds the longest message that the server reads, with its newline.
    input: [u8; 1024],
    /// Holds output. Longer replies go out in windows.
    output: [u8; 512],
    /// The subscriptions of clients, with the ids of their requests.
    #[cfg(feature = "status")]
    subscriptions: [u8; 128],
    /// For arguments and URIs with escapes.
    scratch: [u8; 64],
    /// Requests in flight.
    slots: [RequestSlot; 4],
}

static MEMORY: Static<Memory> = Static::new(Memory {
    input: [0; 1024],
    output: [0; 512],
    #[cfg(feature = "status")]
    subscriptions: [0; 128],
    scratch: [0; 64],
    slots: [RequestSlot::FREE; 4],
});

/// Longer than any turn of the loop. It is not shorter, because QEMU's watchdog also runs while the machine is
/// stopped, which happens while a client does not read.
const WATCHDOG_MILLIS: u32 = 60_000;

board::entry!(main);

fn main() -> ! {
    let mut board = board::start();
    let Some(memory) = MEMORY.take() else { board::exit() };
    let mut session = session(memory);
    let mut device = Device::new(board.led);

    board.watchdog.start(WATCHDOG_MILLIS);
    loop {
        board.watchdog.kick();
        let _ = board.clock.now();
        device.seconds = board.clock.seconds();
        let input = board.uart.read(session.space());
        match input {
            Input::Bytes(count) => session.filled(count),
            Input::Empty => {}
            Input::End => session.end_of_input(),
        }
        let _ = session.run(&SERVICE, &mut device);
        #[cfg(feature = "status")]
        if core::mem::take(&mut device.changed) {
            session.server.publish(ServerChange::Resource(STATUS));
            let _ = session.run(&SERVICE, &mut device);
        }
        let sent = board.uart.write(session.out.pending());
        session.out.sent(sent);
        let pending = !session.out.pending().is_empty();
        match input {
            Input::End if session.is_done() && !pending => break,
            Input::Empty if sent == 0 => board.uart.wait(pending),
            _ => {}
        }
    }
    while !board.uart.is_flushed() {}
    #[cfg(feature = "report")]
    report::report(&mut board.clock);
    board::exit()
}

/// Not inlined: otherwise its temporaries would stay in the frame of `main`.
#[inline(never)]
fn session(memory: &'static mut Memory) -> LineServer<'static, LineSink<SliceStorage<'static>>> {
    let server = Server::new(&mut memory.slots).reopening().scratch(&mut memory.scratch);
    #[cfg(feature = "status")]
    let server = server.subscriptions(&mut memory.subscriptions);
    LineServer::new(LineBuffer::new(&mut memory.input), server, LineSink::new(SliceStorage::new(&mut memory.output)))
}
