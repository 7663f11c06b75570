//! The machine's timer, with an interrupt each millisecond, and the processor's cycle counter.

use core::arch::asm;

use crate::mmio::Reg;

// SAFETY: registers of the timer, of 64 bits; the timer never accesses memory.
const TIME: Reg = unsafe { Reg::at(0x0200_BFF8) };
// SAFETY: see above.
const TIME_HIGH: Reg = unsafe { Reg::at(0x0200_BFFC) };
// SAFETY: see above.
const COMPARE: Reg = unsafe { Reg::at(0x0200_4000) };
// SAFETY: see above.
const COMPARE_HIGH: Reg = unsafe { Reg::at(0x0200_4004) };

/// The timer's ticks per millisecond, at 10 MHz.
const MILLISECOND: u64 = 10_000;

/// Starts the timer's interrupts.
pub(super) fn start() {
    let now = loop {
        let high = TIME_HIGH.read();
        let low = TIME.read();
        if high == TIME_HIGH.read() {
            break u64::from(high) << 32 | u64::from(low);
        }
    };
    due_at(now.wrapping_add(MILLISECOND));
}

fn due_at(time: u64) {
    // The high word is written while the low word is at its maximum: in between, the value is never too early.
    COMPARE.write(u32::MAX);
    COMPARE_HIGH.write((time >> 32) as u32);
    COMPARE.write(time as u32);
}

/// Handles the timer's interrupt.
pub(super) fn on_interrupt() {
    // Counted from the time when it was due, not from now: a late interrupt loses no millisecond.
    due_at((u64::from(COMPARE_HIGH.read()) << 32 | u64::from(COMPARE.read())).wrapping_add(MILLISECOND));
    crate::clock::tick();
}

/// Returns the processor's cycles. After an event from outside, the low bits are hard to predict.
pub fn cycles() -> u32 {
    let cycles;
    // SAFETY: only reads a counter.
    unsafe { asm!("csrr {}, mcycle", out(reg) cycles, options(nomem, nostack)) };
    cycles
}

/// Returns the cycles since [`cycles`] returned `before`.
pub(crate) fn cycles_since(before: u32) -> u32 {
    cycles().wrapping_sub(before)
}
