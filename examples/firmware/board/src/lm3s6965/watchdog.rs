//! The watchdog timer.

use super::system;
use crate::mmio::Reg;

// SAFETY: registers of the watchdog, data sheet chapter 10; it can only reset the chip.
const LOAD: Reg = unsafe { Reg::at(0x4000_0000) };
// SAFETY: see above.
const CTL: Reg = unsafe { Reg::at(0x4000_0008) };
// SAFETY: see above.
const ICR: Reg = unsafe { Reg::at(0x4000_000C) };

const CTL_INTERRUPT: u32 = 1;
const CTL_RESET: u32 = 1 << 1;

/// Resets the device unless [`kick`](Self::kick) is called in time.
///
/// QEMU's watchdog goes on while the machine is stopped, for example because its standard output is not read.
pub struct Watchdog {
    _private: (),
}

impl Watchdog {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Starts the watchdog: from now on it resets the device if [`Self::kick`] is not called for `milliseconds` (at
    /// most 85 seconds). It cannot be stopped.
    pub fn start(&mut self, milliseconds: u32) {
        // The first time-out only sets a flag; the second one resets the device.
        LOAD.write((system::CLOCK / 1000 / 2).saturating_mul(milliseconds));
        CTL.write(CTL_RESET | CTL_INTERRUPT);
    }

    /// Restarts the count.
    pub fn kick(&mut self) {
        // Clears the flag, and restarts the count.
        ICR.write(0);
    }
}
