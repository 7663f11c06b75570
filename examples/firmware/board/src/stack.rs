//! Measures how much of the stack was used.
//!
//! The start-up code paints the stack (on a Cortex-M by the feature `paint-stack` of cortex-m-rt). Words that have
//! lost the paint were used.

use core::ptr::addr_of;

use crate::chip::STACK_PAINT_VALUE;

unsafe extern "C" {
    // Symbols of the linker script; only their addresses are meaningful.
    static _stack_end: u32;
    static _stack_start: u32;
}

/// Returns the size of the stack in bytes.
pub fn size() -> usize {
    addr_of!(_stack_start).addr() - addr_of!(_stack_end).addr()
}

/// Returns the largest use of the stack since the start, in bytes.
pub fn used() -> usize {
    let mut word = addr_of!(_stack_end);
    let top = addr_of!(_stack_start);
    while word < top {
        // SAFETY: a word of RAM below the top; it is aligned, because the linker script aligns both ends. It may
        // lie in a live frame of a caller, so the read is volatile, and the value is only compared.
        if unsafe { word.read_volatile() } != STACK_PAINT_VALUE {
            break;
        }
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}
