//! SysTick: an interrupt each millisecond, and the cycles in between.

use cortex_m::peripheral::SYST;
use cortex_m_rt::exception;

use super::system;
use crate::mmio::Reg;

// SAFETY: registers of SysTick. Every Cortex-M has them at these addresses; SysTick only counts and interrupts.
const CSR: Reg = unsafe { Reg::at(0xE000_E010) };
// SAFETY: see above.
const RVR: Reg = unsafe { Reg::at(0xE000_E014) };
// SAFETY: see above.
const CVR: Reg = unsafe { Reg::at(0xE000_E018) };

const CSR_ON: u32 = 1;
const CSR_INTERRUPT: u32 = 1 << 1;
/// Selects the processor's clock.
const CSR_CORE: u32 = 1 << 2;

/// The cycles of a millisecond.
const RELOAD: u32 = system::CLOCK / 1000;

pub(crate) fn start() {
    RVR.write(RELOAD - 1);
    CVR.write(0);
    CSR.write(CSR_CORE | CSR_INTERRUPT | CSR_ON);
}

/// Returns the cycles within the present tick. After an event from outside, the low bits are hard to predict.
pub fn cycles() -> u32 {
    SYST::get_current()
}

/// Returns the cycles since [`cycles`] returned `before`, at most a millisecond ago.
pub(crate) fn cycles_since(before: u32) -> u32 {
    // The counter counts down, and restarts at the top.
    (before + RELOAD - SYST::get_current()) % RELOAD
}

#[exception]
fn SysTick() {
    crate::clock::tick();
    #[cfg(feature = "embassy")]
    super::embassy::tick();
}
