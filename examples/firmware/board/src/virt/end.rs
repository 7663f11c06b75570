//! How the program ends, by the machine's own device for it, and what it says, by semihosting.

use core::arch::asm;

use crate::mmio::Reg;

// SAFETY: the one register of `sifive_test`, which ends the machine.
const TEST: Reg = unsafe { Reg::at(0x0010_0000) };

const PASS: u32 = 0x5555;
/// With status 1.
const FAIL: u32 = 1 << 16 | 0x3333;

/// Says something to whoever runs the machine, on QEMU's standard error.
pub fn log(text: &[u8]) {
    text.iter().for_each(put);
}

/// Semihosting's SYS_WRITEC.
fn put(byte: &u8) {
    // SAFETY: by these three instructions, none of them compressed and on one page, a debugger knows that it is asked;
    // it reads the byte, and a0 is its answer.
    unsafe {
        asm!(
            ".balign 16",
            ".option push",
            ".option norvc",
            "slli zero, zero, 0x1f",
            "ebreak",
            "srai zero, zero, 7",
            ".option pop",
            inout("a0") 3 => _,
            in("a1") byte,
        );
    }
}

/// Ends the program: QEMU ends, with status 0.
pub fn exit() -> ! {
    end(PASS)
}

/// The same, after something that must not happen: status 1.
pub(crate) fn give_up() -> ! {
    end(FAIL)
}

fn end(how: u32) -> ! {
    TEST.write(how);
    loop {
        super::sleep();
    }
}
