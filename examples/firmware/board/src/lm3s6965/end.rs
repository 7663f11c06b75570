//! How the program ends, and what it says, by semihosting.

use cortex_m_rt::exception;
#[cfg(feature = "qemu")]
use cortex_m_semihosting::{nr, syscall, syscall1};

use crate::end::fail;
use crate::mmio::Reg;

// SAFETY: the register that resets the chip, which every Cortex-M has there.
const AIRCR: Reg = unsafe { Reg::at(0xE000_ED0C) };

/// Resets; the upper half is the key without which it is not heard.
const AIRCR_RESET: u32 = 0x05FA << 16 | 1 << 2;

/// What semihosting calls the end of an application, and an error at run time.
const GOOD: usize = 0x2_0026;
const BAD: usize = 0x2_0023;

/// Says something to whoever runs the device: under QEMU on its standard error.
/// Nobody listens elsewhere.
#[cfg_attr(not(feature = "qemu"), expect(unused_variables, reason = "nobody listens"))]
pub fn log(text: &[u8]) {
    #[cfg(feature = "qemu")]
    for byte in text {
        // SAFETY: the debugger is asked to read the one byte.
        unsafe { syscall(nr::WRITEC, byte) };
    }
}

/// Ends the program: QEMU ends, with status 0. A device starts again.
pub fn exit() -> ! {
    end(GOOD)
}

/// The same, after something that must not happen: status 1.
pub(crate) fn give_up() -> ! {
    end(BAD)
}

#[inline(never)]
#[cfg_attr(not(feature = "qemu"), expect(unused_variables, reason = "nobody listens"))]
fn end(how: usize) -> ! {
    #[cfg(feature = "qemu")]
    // SAFETY: the debugger is given a number.
    unsafe {
        syscall1(nr::REPORT_EXCEPTION, how)
    };
    // What was written before is to arrive.
    cortex_m::asm::dsb();
    AIRCR.write(AIRCR_RESET);
    loop {
        cortex_m::asm::nop();
    }
}

// SAFETY: HardFault and DefaultHandler may run at any point of the program;
// these touch none of its state, and do not return to it.
#[exception(trampoline = false)]
unsafe fn HardFault() -> ! {
    fail(b"board: hard fault\n")
}

// Not by the macro, which has it look up which interrupt it was.
// SAFETY: see above; cortex-m-rt's vectors have this name for what nobody handles.
#[unsafe(export_name = "DefaultHandler")]
extern "C" fn unexpected() -> ! {
    fail(b"board: unexpected interrupt\n")
}
