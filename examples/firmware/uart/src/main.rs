//! An MCP server on UART0: a thermometer with a memory, and an LED.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[cfg(feature = "report")]
mod report;
mod service;

use board::{Input, Static};
use mcp_sansio::frame::LineBuffer;
#[cfg(feature = "status")]
use mcp_sansio::server::Change;
use mcp_sansio::server::Server;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};

#[cfg(feature = "status")]
use crate::service::STATUS;
use crate::service::{Device, SERVICE};

struct Memory {
    /// The longest message that is read, with its newline.
    input: [u8; 1024],
    /// Replies that are longer than this go out in windows.
    output: [u8; 512],
    /// What clients are subscribed to, with the ids of their requests.
    #[cfg(feature = "status")]
    subscriptions: [u8; 128],
    /// For arguments and URIs with escapes in them.
    scratch: [u8; 64],
}

static MEMORY: Static<Memory> = Static::new(Memory {
    input: [0; 1024],
    output: [0; 512],
    #[cfg(feature = "status")]
    subscriptions: [0; 128],
    scratch: [0; 64],
});

/// Requests in flight.
const REQUESTS: usize = 4;

/// Longer than any turn of the loop takes. Not much shorter, for QEMU's watchdog
/// also runs while a client does not read, which stops the machine.
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
            session.publish(Change::Resource(STATUS));
            let _ = session.run(&SERVICE, &mut device);
        }
        let sent = board.uart.write(session.pending());
        session.sent(sent);
        let pending = !session.pending().is_empty();
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

/// Not inlined: what is moved around here would keep its place on the stack of `main`.
#[inline(never)]
fn session(memory: &'static mut Memory) -> Session<'static, Lines<Slice<'static>>, REQUESTS> {
    let server = Server::new().reopening().scratch(&mut memory.scratch);
    #[cfg(feature = "status")]
    let server = server.subscriptions(&mut memory.subscriptions);
    Session::new(LineBuffer::new(&mut memory.input), server, Lines::new(Slice::new(&mut memory.output)))
}
