//! The machine's timer: an interrupt each millisecond. And the processor's cycles.

use core::arch::asm;

use crate::mmio::Reg;

// SAFETY: registers of the timer, of 64 bits; nothing of it touches memory.
const TIME: Reg = unsafe { Reg::at(0x0200_BFF8) };
// SAFETY: see above.
const TIME_HIGH: Reg = unsafe { Reg::at(0x0200_BFFC) };
// SAFETY: see above.
const COMPARE: Reg = unsafe { Reg::at(0x0200_4000) };
// SAFETY: see above.
const COMPARE_HIGH: Reg = unsafe { Reg::at(0x0200_4004) };

/// The timer's own ticks in a millisecond: 10 MHz.
const MILLISECOND: u64 = 10_000;

/// From now on it interrupts.
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
    // Never less than both on the way.
    COMPARE.write(u32::MAX);
    COMPARE_HIGH.write((time >> 32) as u32);
    COMPARE.write(time as u32);
}

/// The timer's interrupt.
pub(super) fn on_interrupt() {
    // From when it was due, not from now: so none is lost by being late.
    due_at((u64::from(COMPARE_HIGH.read()) << 32 | u64::from(COMPARE.read())).wrapping_add(MILLISECOND));
    crate::clock::tick();
}

/// Cycles of the processor: their low bits are hard to foretell when something from outside has just happened.
pub fn cycles() -> u32 {
    let cycles;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {}, mcycle", out(reg) cycles, options(nomem, nostack)) };
    cycles
}

/// Cycles since [`cycles`] was `before`.
pub(crate) fn cycles_since(before: u32) -> u32 {
    cycles().wrapping_sub(before)
}
