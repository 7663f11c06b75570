//! An MCP server as a WebAssembly module. It imports nothing. It exports its memory and two functions:
//!
//! - `input(filled)` takes in `filled` bytes from the place of the last `input`, and returns the place for the next
//!   ones.
//! - `output(taken)` drops `taken` bytes at the place of the last `output`, and returns the place of the next ones.
//!
//! A place is the address in the upper half of the result, and the number of bytes in the lower half. Each message
//! is a line. Call `input(0)` and `output(0)` first. Then write input, and take output until its length is 0.
//! `test.mjs` is a full example.

#![no_std]

mod alone;
mod service;

use alone::Alone;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::{Server, RequestSlot};
use mcp_sansio::line_server::LineServer;
use mcp_sansio::sink::{LineSink, SliceStorage};

use crate::service::{SERVICE, State};

/// Holds the longest message that arrives, with its newline.
const INPUT: usize = 4096;
/// Holds output. Longer replies go out in windows.
const OUTPUT: usize = 1024;
/// For arguments with escapes.
const SCRATCH: usize = 1024;

struct Module {
    session: LineServer<'static, LineSink<SliceStorage<'static>>>,
    state: State,
}

static MODULE: Alone<Option<Module>> = Alone::new(None);
static BUFFERS: Alone<([u8; INPUT], [u8; OUTPUT], [u8; SCRATCH])> = Alone::new(([0; INPUT], [0; OUTPUT], [0; SCRATCH]));
static SLOTS: Alone<[RequestSlot; 4]> = Alone::new([RequestSlot::FREE; 4]);

fn start() -> Module {
    let (input, output, scratch) = BUFFERS.get();
    let server = Server::new(SLOTS.get()).scratch(scratch);
    let session = LineServer::new(LineBuffer::new(input), server, LineSink::new(SliceStorage::new(output)));
    Module { session, state: State::default() }
}

/// Takes in bytes: see the documentation of the module.
#[unsafe(no_mangle)]
pub extern "C" fn input(filled: usize) -> u64 {
    let module = MODULE.get().get_or_insert_with(start);
    module.session.filled(filled);
    let _ = module.session.run(&SERVICE, &mut module.state);
    place(module.session.space())
}

/// Drops bytes that were taken: see the documentation of the module.
#[unsafe(no_mangle)]
pub extern "C" fn output(taken: usize) -> u64 {
    let module = MODULE.get().get_or_insert_with(start);
    module.session.out.sent(taken);
    // There is room now: let the server go on with output that waited.
    let _ = module.session.run(&SERVICE, &mut module.state);
    place(module.session.out.pending())
}

fn place(bytes: &[u8]) -> u64 {
    (bytes.as_ptr().addr() as u64) << 32 | bytes.len() as u64
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
