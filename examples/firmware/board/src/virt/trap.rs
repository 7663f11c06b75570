//! Interrupts, and what must not happen.

use core::arch::{asm, global_asm};

use super::{tick, uart};
use crate::end::fail;
use crate::mmio::Reg;

/// The interrupt controller's priorities, one for each source.
const fn priority(source: u32) -> Reg {
    // SAFETY: registers of the interrupt controller; nothing of it touches memory.
    unsafe { Reg::at(0x0C00_0000 + 4 * source as usize) }
}

// SAFETY: see above.
const ENABLE: Reg = unsafe { Reg::at(0x0C00_2000) };
// SAFETY: see above.
const THRESHOLD: Reg = unsafe { Reg::at(0x0C20_0000) };
// SAFETY: see above.
const CLAIM: Reg = unsafe { Reg::at(0x0C20_0004) };

/// Sources of interrupts.
const UART: u32 = 10;
#[cfg(feature = "ethernet")]
pub(super) const NETWORK: u32 = 1;

/// mcause of interrupts.
const TIMER: u32 = 1 << 31 | 7;
const DEVICE: u32 = 1 << 31 | 11;

/// mie: the timer's, and those of devices.
const MIE: u32 = 1 << 7 | 1 << 11;
/// mstatus: interrupts at all.
const MSTATUS_MIE: u32 = 1 << 3;

// Where the processor goes when something interrupts it. Something that must not happen gets a new stack: what happened
// may be that there is no room on this one.
global_asm!(
    ".section .text.board_trap, \"ax\"",
    ".global board_trap_entry",
    ".balign 4",
    "board_trap_entry:",
    "csrw mscratch, t0",
    "csrr t0, mcause",
    "bltz t0, 1f",
    "la sp, _stack_start",
    "tail board_fault",
    "1: csrr t0, mscratch",
    "addi sp, sp, -64",
    ".irp n, 0,1,2,3,4,5,6,7",
    "sw a\\n, 4*\\n(sp)",
    ".endr",
    ".irp n, 0,1,2,3,4,5,6",
    "sw t\\n, 32+4*\\n(sp)",
    ".endr",
    "sw ra, 60(sp)",
    "csrr a0, mcause",
    "call board_interrupt",
    "lw ra, 60(sp)",
    ".irp n, 0,1,2,3,4,5,6",
    "lw t\\n, 32+4*\\n(sp)",
    ".endr",
    ".irp n, 0,1,2,3,4,5,6,7",
    "lw a\\n, 4*\\n(sp)",
    ".endr",
    "addi sp, sp, 64",
    "mret",
    ".text",
);

unsafe extern "C" {
    fn board_trap_entry();
}

// SAFETY: no other function is called so.
#[unsafe(no_mangle)]
extern "C" fn board_interrupt(cause: u32) {
    match cause {
        TIMER => tick::on_interrupt(),
        DEVICE => {
            let source = CLAIM.read();
            match source {
                UART => uart::on_interrupt(),
                #[cfg(feature = "ethernet")]
                NETWORK => super::ethernet::on_interrupt(),
                _ => {}
            }
            CLAIM.write(source);
        }
        _ => fail(b"board: unexpected interrupt\n"),
    }
}

// SAFETY: no other function is called so.
#[unsafe(no_mangle)]
extern "C" fn board_fault() -> ! {
    fail(b"board: fault\n")
}

/// Interrupts may come from now on.
pub(super) fn start() {
    unmask(UART);
    THRESHOLD.write(0);
    // SAFETY: the handlers are in place, and share nothing with the main program but atomics.
    unsafe {
        asm!("csrw mtvec, {}", in(reg) board_trap_entry as *const () as usize);
        asm!("csrw mie, {}", in(reg) MIE);
        asm!("csrs mstatus, {}", in(reg) MSTATUS_MIE);
    }
}

/// Lets a source of interrupts through, whose handler is in place.
pub(super) fn unmask(source: u32) {
    priority(source).write(1);
    ENABLE.modify(|enabled| enabled | 1 << source);
}

/// Does something that no interrupt gets in between.
pub(crate) fn alone<R>(work: impl FnOnce() -> R) -> R {
    let before: u32;
    // SAFETY: nothing relies on interrupts to come. No `nomem`: what is inside stays inside.
    unsafe { asm!("csrrc {}, mstatus, {}", out(reg) before, in(reg) MSTATUS_MIE, options(nostack)) };
    let result = work();
    // SAFETY: as it was before.
    unsafe { asm!("csrs mstatus, {}", in(reg) before & MSTATUS_MIE, options(nostack)) };
    result
}

/// Waits for an interrupt; with interrupts off, for one that would come.
pub(crate) fn sleep() {
    // SAFETY: does nothing but wait.
    unsafe { asm!("wfi", options(nomem, nostack)) };
}
