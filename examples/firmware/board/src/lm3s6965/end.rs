//! How the program ends, and what it says, by semihosting.

use cortex_m_rt::{ExceptionFrame, exception};

use crate::end::fail;

/// Says something to whoever runs the device: under QEMU on its standard error.
/// Nobody listens elsewhere.
#[cfg_attr(not(feature = "qemu"), expect(unused_variables, reason = "nobody listens"))]
pub fn log(text: &[u8]) {
    #[cfg(feature = "qemu")]
    if let Ok(mut stream) = cortex_m_semihosting::hio::hstderr() {
        // There is nowhere to complain to.
        let _ = stream.write_all(text);
    }
}

/// Ends the program: QEMU ends, with status 0. A device starts again.
pub fn exit() -> ! {
    #[cfg(feature = "qemu")]
    cortex_m_semihosting::debug::exit(cortex_m_semihosting::debug::EXIT_SUCCESS);
    cortex_m::peripheral::SCB::sys_reset()
}

/// The same, after something that must not happen: status 1.
pub(crate) fn give_up() -> ! {
    #[cfg(feature = "qemu")]
    cortex_m_semihosting::debug::exit(cortex_m_semihosting::debug::EXIT_FAILURE);
    cortex_m::peripheral::SCB::sys_reset()
}

// SAFETY: HardFault and DefaultHandler may run at any point of the program;
// these touch none of its state, and do not return to it.
#[exception]
unsafe fn HardFault(_: &ExceptionFrame) -> ! {
    fail(b"board: hard fault\n")
}

// SAFETY: see above.
#[exception]
unsafe fn DefaultHandler(_: i16) -> ! {
    fail(b"board: unexpected interrupt\n")
}
