//! An MCP server as a WebAssembly module. It imports nothing, and exports its memory and two functions:
//!
//! - `input(filled)` takes in the bytes that were put where the call before said, and says where the next ones go;
//! - `output(taken)` drops the bytes that were taken from where the call before said, and says where the next ones are.
//!
//! Where: the address in the upper half of the result, how many bytes in the lower one. Messages are lines. Call `input(0)`
//! and `output(0)` first; then feed, and take until nothing is left. `test.mjs` does that.

#![no_std]

mod alone;
mod service;

use alone::Alone;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::server::Server;
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};

use crate::service::{SERVICE, State};

/// The longest message that comes in, with its newline.
const INPUT: usize = 4096;
/// Replies that are longer go out in windows.
const OUTPUT: usize = 1024;
/// For arguments with escapes in them.
const SCRATCH: usize = 1024;

struct Module {
    session: Session<'static, Lines<Slice<'static>>, 4>,
    state: State,
}

static MODULE: Alone<Option<Module>> = Alone::new(None);
static BUFFERS: Alone<([u8; INPUT], [u8; OUTPUT], [u8; SCRATCH])> = Alone::new(([0; INPUT], [0; OUTPUT], [0; SCRATCH]));

fn start() -> Module {
    let (input, output, scratch) = BUFFERS.get();
    let server = Server::new().scratch(scratch);
    let session = Session::new(LineBuffer::new(input), server, Lines::new(Slice::new(output)));
    Module { session, state: State::default() }
}

/// See the top.
#[unsafe(no_mangle)]
pub extern "C" fn input(filled: usize) -> u64 {
    let module = MODULE.get().get_or_insert_with(start);
    module.session.filled(filled);
    let _ = module.session.run(&SERVICE, &mut module.state);
    place(module.session.space())
}

/// See the top.
#[unsafe(no_mangle)]
pub extern "C" fn output(taken: usize) -> u64 {
    let module = MODULE.get().get_or_insert_with(start);
    module.session.sent(taken);
    // There is room now for what had to wait.
    let _ = module.session.run(&SERVICE, &mut module.state);
    place(module.session.pending())
}

fn place(bytes: &[u8]) -> u64 {
    (bytes.as_ptr().addr() as u64) << 32 | bytes.len() as u64
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
