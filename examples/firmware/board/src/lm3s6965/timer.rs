//! Timer 1: a periodic interrupt.

use core::cell::Cell;

use cortex_m::interrupt::Mutex;

use super::system;
use super::vectors::Interrupt;
use crate::mmio::Reg;

// SAFETY: registers of timer 1, data sheet chapter 9; the timer never accesses memory.
const CFG: Reg = unsafe { Reg::at(0x4003_1000) };
// SAFETY: see above.
const TAMR: Reg = unsafe { Reg::at(0x4003_1004) };
// SAFETY: see above.
const CTL: Reg = unsafe { Reg::at(0x4003_100C) };
// SAFETY: see above.
const IMR: Reg = unsafe { Reg::at(0x4003_1018) };
// SAFETY: see above.
const ICR: Reg = unsafe { Reg::at(0x4003_1024) };
// SAFETY: see above.
const TAILR: Reg = unsafe { Reg::at(0x4003_1028) };

const PERIODIC: u32 = 2;
const TIMEOUT: u32 = 1;
const ON: u32 = 1;

static HANDLER: Mutex<Cell<fn()>> = Mutex::new(Cell::new(nothing));

fn nothing() {}

/// Timer 1.
pub struct Timer {
    _private: (),
}

impl Timer {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Calls `handler` in an interrupt every `milliseconds` (at most 85,899).
    pub fn every(&mut self, milliseconds: u32, handler: fn()) {
        cortex_m::interrupt::free(|cs| HANDLER.borrow(cs).set(handler));
        system::start_timer();
        CTL.write(0);
        CFG.write(0);
        TAMR.write(PERIODIC);
        TAILR.write((system::CLOCK / 1000).saturating_mul(milliseconds));
        IMR.write(TIMEOUT);
        CTL.write(ON);
        // SAFETY: the handler is in place. It can share state with the main program only by safe means.
        unsafe { cortex_m::peripheral::NVIC::unmask(Interrupt::Timer1A) };
    }
}

/// Handles timer 1's interrupt.
pub(crate) unsafe extern "C" fn on_interrupt() {
    ICR.write(TIMEOUT);
    cortex_m::interrupt::free(|cs| HANDLER.borrow(cs).get())();
}
