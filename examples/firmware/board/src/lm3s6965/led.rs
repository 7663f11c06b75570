//! The status LED, on PF0.

use crate::mmio::Reg;

// SAFETY: registers of GPIO port F, data sheet chapter 8; they only control pins.
// The address of a data register masks the pins: this address selects PF0 only.
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
    /// Starts with the LED off.
    pub(crate) fn start() -> Self {
        // No other pin of this port is used yet.
        DIR.write(PF0);
        DEN.write(PF0);
        DATA.write(0);
        Self { _private: () }
    }

    /// Turns the LED on or off.
    pub fn set(&mut self, on: bool) {
        DATA.write(u32::from(on));
    }

    /// Reads the pin: `true` if the LED is on.
    pub fn is_on(&self) -> bool {
        DATA.read() & PF0 != 0
    }
}
