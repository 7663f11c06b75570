//! The end of the program after a failure.

use core::panic::PanicInfo;

use crate::chip;

/// Ends the program after a failure: QEMU ends with status 1, a device restarts.
pub(crate) fn fail(text: &[u8]) -> ! {
    chip::log(text);
    chip::give_up()
}

// Not inlined, so that `tests/bare_metal/run.sh` finds its name in every image in
// which anything can panic.
#[inline(never)]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    fail(b"board: panic\n")
}
