//! The end of the program, and log output, by semihosting.

use cortex_m_rt::exception;
#[cfg(feature = "qemu")]
use cortex_m_semihosting::{nr, syscall, syscall1};

use crate::end::fail;
use crate::mmio::Reg;

// SAFETY: the register that resets the chip. Every Cortex-M has it at this address.
const AIRCR: Reg = unsafe { Reg::at(0xE000_ED0C) };

/// Resets the chip. The upper half is a key: without it the chip ignores the write.
const AIRCR_RESET: u32 = 0x05FA << 16 | 1 << 2;

/// Semihosting's codes for the end of an application and for an error at run time.
const GOOD: usize = 0x2_0026;
const BAD: usize = 0x2_0023;

/// Writes text to QEMU's standard error. Without a debugger the text is lost.
#[cfg_attr(not(feature = "qemu"), expect(unused_variables, reason = "without a debugger there is no output"))]
pub fn log(text: &[u8]) {
    #[cfg(feature = "qemu")]
    for byte in text {
        // SAFETY: the debugger only reads the one byte.
        unsafe { syscall(nr::WRITEC, byte) };
    }
}

/// Ends the program: QEMU ends with status 0, a device restarts.
pub fn exit() -> ! {
    end(GOOD)
}

/// Ends the program after a failure, with status 1.
pub(crate) fn give_up() -> ! {
    end(BAD)
}

#[inline(never)]
#[cfg_attr(not(feature = "qemu"), expect(unused_variables, reason = "without a debugger there is no output"))]
fn end(how: usize) -> ! {
    #[cfg(feature = "qemu")]
    // SAFETY: the debugger only gets a number.
    unsafe {
        syscall1(nr::REPORT_EXCEPTION, how)
    };
    // Earlier writes must be complete before the reset.
    cortex_m::asm::dsb();
    AIRCR.write(AIRCR_RESET);
    loop {
        cortex_m::asm::nop();
    }
}

// SAFETY: HardFault and DefaultHandler may run at any point of the program. These two use none of its state, and do
// not return to it.
#[exception(trampoline = false)]
unsafe fn HardFault() -> ! {
    fail(b"board: hard fault\n")
}

// Not by the macro: its handler would first look up the interrupt's number.
// SAFETY: see above; cortex-m-rt calls this name for interrupts without a handler.
#[unsafe(export_name = "DefaultHandler")]
extern "C" fn unexpected() -> ! {
    fail(b"board: unexpected interrupt\n")
}
