//! How the program ends in bad.

use core::panic::PanicInfo;

use crate::chip;

/// Ends the program, after something that must not happen: QEMU ends, with
/// status 1. A device starts again.
pub(crate) fn fail(text: &[u8]) -> ! {
    chip::log(text);
    chip::give_up()
}

// Not inlined, so that `.ci/bare-metal.sh` finds its name in every image in
// which anything can panic.
#[inline(never)]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    fail(b"board: panic\n")
}
