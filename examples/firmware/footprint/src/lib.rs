//! What the images of the footprint table have in common: a port, a loop, a device with a few tools.
//!
//! One row of the table is one program in `src/bin`; `.ci/footprint.sh` builds them all.

#![no_std]

#[cfg(all(feature = "ask", feature = "windows"))]
pub mod all;
#[cfg(feature = "ask")]
pub mod asks;
pub mod parts;
mod port;
pub mod tools;

#[doc(hidden)]
pub use board;
pub use board::Static;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Server;
use mcp_sansio::service::Service;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};
pub use port::Port;

/// The state of all handlers.
#[derive(Default)]
pub struct Device {
    /// Seconds since the start.
    pub seconds: u32,
    /// The LED.
    pub led: bool,
}

/// Requests in flight.
pub const REQUESTS: usize = 4;

struct Memory {
    input: [u8; 1024],
    output: [u8; 512],
    scratch: [u8; 64],
}

static MEMORY: Static<Memory> = Static::new(Memory { input: [0; 1024], output: [0; 512], scratch: [0; 64] });

/// What a device's main loop does, until its input ends.
pub fn serve(service: &Service<'static, Device>, server: Server<'static, REQUESTS>) -> ! {
    let Some(Memory { input, output, scratch }) = MEMORY.take() else { board::exit() };
    let mut session = Session::new(LineBuffer::new(input), server.scratch(scratch), Lines::new(Slice::new(output)));
    let mut device = Device::default();
    let mut port = Port::open();
    while let Some(count) = port.read(session.space()) {
        session.filled(count);
        port.timed(|| {
            let _ = session.run(service, &mut device);
        });
        let sent = port.write(session.pending());
        session.sent(sent);
    }
    port.close()
}
