//! The end of the program, by the machine's device for it, and log output, by semihosting.

use core::arch::asm;

use crate::mmio::Reg;

// SAFETY: the only register of `sifive_test`, which ends the machine.
const TEST: Reg = unsafe { Reg::at(0x0010_0000) };

const PASS: u32 = 0x5555;
/// Ends the machine with status 1.
const FAIL: u32 = 1 << 16 | 0x3333;

/// Writes text to QEMU's standard error.
pub fn log(text: &[u8]) {
    text.iter().for_each(put);
}

/// Writes one byte by semihosting's SYS_WRITEC.
fn put(byte: &u8) {
    // SAFETY: a debugger recognises a request by these three instructions, which must be uncompressed and on one
    // page. It reads the byte, and puts its answer into a0.
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

/// Ends the program: QEMU ends with status 0.
pub fn exit() -> ! {
    end(PASS)
}

/// Ends the program after a failure, with status 1.
pub(crate) fn give_up() -> ! {
    end(FAIL)
}

fn end(how: u32) -> ! {
    TEST.write(how);
    loop {
        super::sleep();
    }
}
