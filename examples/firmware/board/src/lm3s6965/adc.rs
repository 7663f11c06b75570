//! The chip's temperature sensor. The analogue-to-digital converter reads it ten times a second: timer 0 triggers
//! sample sequencer 3.
//!
//! QEMU has no sensor; its converter gives 0x200 and a little noise.

use super::system;
use crate::mmio::Reg;

// SAFETY: registers of the converter, data sheet chapter 11; the converter never accesses memory.
const ACTSS: Reg = unsafe { Reg::at(0x4003_8000) };
// SAFETY: see above.
const EMUX: Reg = unsafe { Reg::at(0x4003_8014) };
// SAFETY: see above.
const SSCTL3: Reg = unsafe { Reg::at(0x4003_80A4) };
// SAFETY: see above.
const SSFIFO3: Reg = unsafe { Reg::at(0x4003_80A8) };
// SAFETY: see above.
const SSFSTAT3: Reg = unsafe { Reg::at(0x4003_80AC) };

// SAFETY: registers of timer 0, data sheet chapter 9; the timer never accesses memory.
const TIMER_CFG: Reg = unsafe { Reg::at(0x4003_0000) };
// SAFETY: see above.
const TIMER_TAMR: Reg = unsafe { Reg::at(0x4003_0004) };
// SAFETY: see above.
const TIMER_CTL: Reg = unsafe { Reg::at(0x4003_000C) };
// SAFETY: see above.
const TIMER_TAILR: Reg = unsafe { Reg::at(0x4003_0028) };

const SEQUENCER_3: u32 = 1 << 3;
const EMUX_TIMER: u32 = 5 << 12;
/// The last sample of the sequence, taken from the temperature sensor.
const SSCTL_TEMPERATURE: u32 = 1 << 3 | 1 << 1;
const SSFSTAT_EMPTY: u32 = 1 << 8;

const TIMER_ON: u32 = 1;
const TIMER_TRIGGERS: u32 = 1 << 5;
const TIMER_PERIODIC: u32 = 2;

/// The converter, measuring the chip's temperature.
pub struct Adc {
    last: u16,
}

impl Adc {
    pub(crate) fn start() -> Self {
        system::start_adc();
        ACTSS.write(0);
        EMUX.write(EMUX_TIMER);
        SSCTL3.write(SSCTL_TEMPERATURE);
        ACTSS.write(SEQUENCER_3);
        TIMER_CTL.write(0);
        TIMER_CFG.write(0);
        TIMER_TAMR.write(TIMER_PERIODIC);
        TIMER_TAILR.write(system::CLOCK / 10);
        TIMER_CTL.write(TIMER_TRIGGERS | TIMER_ON);
        Self { last: 0x200 }
    }

    /// Returns the newest reading, of 10 bits.
    pub fn reading(&mut self) -> u16 {
        // The FIFO holds eight readings.
        for _ in 0..16 {
            if SSFSTAT3.read() & SSFSTAT_EMPTY != 0 {
                break;
            }
            self.last = (SSFIFO3.read() & 0x3FF) as u16;
        }
        self.last
    }
}
