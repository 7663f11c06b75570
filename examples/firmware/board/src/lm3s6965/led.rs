//! The status LED, on PF0.

use crate::mmio::Reg;

// SAFETY: registers of GPIO port F, data sheet chapter 8; they are about pins.
// The address of a data register masks the pins: this one is PF0 alone.
const DATA: Reg = unsafe { Reg::at(0x4002_5004) };
// SAFETY: see above.
const DIR: Reg = unsafe { Reg::at(0x4002_5400) };
// SAFETY: see above.
const DEN: Reg = unsafe { Reg::at(0x4002_551C) };

const PF0: u32 = 1;

/// The status LED.
pub struct Led {
    _private: (),
}

impl Led {
    /// Off.
    pub(crate) fn start() -> Self {
        // No other pin of this port is used yet.
        DIR.write(PF0);
        DEN.write(PF0);
        DATA.write(0);
        Self { _private: () }
    }

    /// Turns it on or off.
    pub fn set(&mut self, on: bool) {
        DATA.write(u32::from(on));
    }

    /// Whether it is on, as its pin says.
    pub fn is_on(&self) -> bool {
        DATA.read() & PF0 != 0
    }
}
