//! The common part of the images of the footprint table: a port, a loop, a device with a few tools.
//!
//! One row of the table is one program in `src/bin`; `tests/bare_metal/footprint.sh` builds them all.

#![no_std]

#[cfg(all(feature = "ask", feature = "windows"))]
pub mod all;
#[cfg(feature = "apps")]
pub mod apps;
#[cfg(feature = "ask")]
pub mod asks;
#[cfg(feature = "auth")]
pub mod bound;
#[cfg(feature = "auth")]
pub mod element;
#[cfg(feature = "events")]
pub mod events;
#[cfg(feature = "tokens")]
pub mod guard;
pub mod parts;
mod port;
#[cfg(feature = "skills")]
pub mod skills;
#[cfg(feature = "tasks")]
pub mod tasks;
pub mod tools;
pub mod web;

#[doc(hidden)]
pub use board;
pub use board::Static;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, SliceStorage};
pub use port::Port;

/// The state of all handlers.
#[derive(Default)]
pub struct Device {
    /// Seconds since the start.
    pub seconds: u32,
    /// The LED.
    pub led: bool,
    #[cfg(feature = "events")]
    ring: events::Ring,
    #[cfg(feature = "tasks")]
    flashing: tasks::Flashing,
}

/// The session of a client on the port.
#[cfg(any(feature = "events", feature = "tasks"))]
type Session = LineServer<'static, LineSink<SliceStorage<'static>>>;

/// Requests in flight.
static SLOTS: Static<[RequestSlot; 4]> = Static::new([RequestSlot::FREE; 4]);

/// Returns a server with these slots.
pub fn server() -> Server<'static> {
    let Some(slots) = SLOTS.take() else { board::exit() };
    Server::new(slots)
}

struct Memory {
    input: [u8; 1024],
    output: [u8; 512],
    scratch: [u8; 64],
}

static MEMORY: Static<Memory> = Static::new(Memory { input: [0; 1024], output: [0; 512], scratch: [0; 64] });

/// Runs a device's main loop until its input ends.
pub fn serve(service: &Service<'static, Device>, server: Server<'static>) -> ! {
    let Some(Memory { input, output, scratch }) = MEMORY.take() else { board::exit() };
    let mut session =
        LineServer::new(LineBuffer::new(input), server.scratch(scratch), LineSink::new(SliceStorage::new(output)));
    let mut device = Device::default();
    let mut port = Port::open();
    while let Some(count) = port.read(session.space()) {
        session.filled(count);
        port.timed(|| {
            let _ = session.run(service, &mut device);
            #[cfg(feature = "events")]
            events::work(service, &mut device, &mut session);
            #[cfg(feature = "tasks")]
            tasks::work(service, &mut device, &mut session);
        });
        let sent = port.write(session.out.pending());
        session.out.sent(sent);
    }
    port.close()
}
