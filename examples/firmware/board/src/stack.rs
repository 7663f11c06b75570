//! How much of the stack was ever used.
//!
//! The start-up code paints the stack (on a Cortex-M the feature `paint-stack`
//! of cortex-m-rt); what is no longer painted has been used.

use core::ptr::addr_of;

use crate::chip::STACK_PAINT_VALUE;

unsafe extern "C" {
    // Symbols of the linker script; only their addresses mean anything.
    static _stack_end: u32;
    static _stack_start: u32;
}

/// The size of the stack in bytes.
pub fn size() -> usize {
    addr_of!(_stack_start).addr() - addr_of!(_stack_end).addr()
}

/// The most bytes of the stack that were in use at any time since the start.
pub fn used() -> usize {
    let mut word = addr_of!(_stack_end);
    let top = addr_of!(_stack_start);
    while word < top {
        // SAFETY: a word of RAM, aligned as the linker script has both ends, and below
        // the top. It may lie in a live frame of some caller, whence the
        // volatile read, of which nothing but equality is asked.
        if unsafe { word.read_volatile() } != STACK_PAINT_VALUE {
            break;
        }
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}
