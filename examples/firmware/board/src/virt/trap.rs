//! Interrupts and faults.

use core::arch::{asm, global_asm};

use super::{tick, uart};
use crate::end::fail;
use crate::mmio::Reg;

/// Names the interrupt controller's priority register of a source.
const fn priority(source: u32) -> Reg {
    // SAFETY: registers of the interrupt controller, which never accesses memory.
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

/// Values of `mcause` for interrupts.
const TIMER: u32 = 1 << 31 | 7;
const DEVICE: u32 = 1 << 31 | 11;

/// Bits of `mie`: the timer's interrupt, and the devices' interrupts.
const MIE: u32 = 1 << 7 | 1 << 11;
/// The bit of `mstatus` that enables interrupts.
const MSTATUS_MIE: u32 = 1 << 3;

// The processor jumps here at interrupts and faults. A fault gets a new stack: its cause may be that the old one is
// full.
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

// SAFETY: no other function has this name.
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

// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
extern "C" fn board_fault() -> ! {
    fail(b"board: fault\n")
}

/// Enables interrupts.
pub(super) fn start() {
    unmask(UART);
    THRESHOLD.write(0);
    // SAFETY: the handlers are in place, and share only atomics with the main program.
    unsafe {
        asm!("csrw mtvec, {}", in(reg) board_trap_entry as *const () as usize);
        asm!("csrw mie, {}", in(reg) MIE);
        asm!("csrs mstatus, {}", in(reg) MSTATUS_MIE);
    }
}

/// Enables a source of interrupts, whose handler must be in place.
pub(super) fn unmask(source: u32) {
    priority(source).write(1);
    ENABLE.modify(|enabled| enabled | 1 << source);
}

/// Does some work with interrupts off.
pub(crate) fn alone<R>(work: impl FnOnce() -> R) -> R {
    let before: u32;
    // SAFETY: no code relies on an interrupt. Without `nomem`, the compiler keeps the work between the two
    // instructions.
    unsafe { asm!("csrrc {}, mstatus, {}", out(reg) before, in(reg) MSTATUS_MIE, options(nostack)) };
    let result = work();
    // SAFETY: restores the state from before.
    unsafe { asm!("csrs mstatus, {}", in(reg) before & MSTATUS_MIE, options(nostack)) };
    result
}

/// Sleeps until an interrupt. With interrupts off, a pending interrupt ends the sleep too.
pub(crate) fn sleep() {
    // SAFETY: only waits.
    unsafe { asm!("wfi", options(nomem, nostack)) };
}
