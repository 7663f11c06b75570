//! SysTick: an interrupt each millisecond, and the cycles in between.

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;

use super::system;

/// Cycles of a millisecond.
const RELOAD: u32 = system::CLOCK / 1000;

pub(crate) fn start(mut systick: SYST) {
    systick.set_clock_source(SystClkSource::Core);
    systick.set_reload(RELOAD - 1);
    systick.clear_current();
    systick.enable_interrupt();
    systick.enable_counter();
}

/// Where the processor is within the present tick, in cycles: its low bits are hard to foretell when something from
/// outside has just happened.
pub fn cycles() -> u32 {
    SYST::get_current()
}

/// Cycles since [`cycles`] was `before`, less than a millisecond ago.
pub(crate) fn cycles_since(before: u32) -> u32 {
    // It counts down, and begins again at the top.
    (before + RELOAD - SYST::get_current()) % RELOAD
}

#[exception]
fn SysTick() {
    crate::clock::tick();
    #[cfg(feature = "embassy")]
    super::embassy::tick();
}
