//! The watchdog timer.

use super::system;
use crate::mmio::Reg;

// SAFETY: registers of the watchdog, data sheet chapter 10; all it can do is
// reset the chip.
const LOAD: Reg = unsafe { Reg::at(0x4000_0000) };
// SAFETY: see above.
const CTL: Reg = unsafe { Reg::at(0x4000_0008) };
// SAFETY: see above.
const ICR: Reg = unsafe { Reg::at(0x4000_000C) };

const CTL_INTERRUPT: u32 = 1;
const CTL_RESET: u32 = 1 << 1;

/// Resets the device unless it is told in time that all is well.
///
/// Mind that QEMU's runs on while the machine stands still, say because nobody
/// reads its standard output.
pub struct Watchdog {
    _private: (),
}

impl Watchdog {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// From now on the device is reset if [`Self::kick`] is not called for
    /// `milliseconds` (85 seconds at most). There is no way back.
    pub fn start(&mut self, milliseconds: u32) {
        // The first time-out only sets a flag, the second one resets.
        LOAD.write((system::CLOCK / 1000 / 2).saturating_mul(milliseconds));
        CTL.write(CTL_RESET | CTL_INTERRUPT);
    }

    /// All is well.
    pub fn kick(&mut self) {
        // Clears the flag and starts the count again.
        ICR.write(0);
    }
}
