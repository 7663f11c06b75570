//! The select button, on PF1, which it pulls low.

use crate::mmio::Reg;

// SAFETY: registers of GPIO port F, data sheet chapter 8; they only control pins.
const IEV: Reg = unsafe { Reg::at(0x4002_540C) };
// SAFETY: see above.
const RIS: Reg = unsafe { Reg::at(0x4002_5414) };
// SAFETY: see above.
const ICR: Reg = unsafe { Reg::at(0x4002_541C) };
// SAFETY: see above.
const PUR: Reg = unsafe { Reg::at(0x4002_5510) };
// SAFETY: see above.
const DEN: Reg = unsafe { Reg::at(0x4002_551C) };

const PF1: u32 = 1 << 1;

/// A button bounces: edges this close, in milliseconds, are of one press.
const BOUNCE: u64 = 20;

/// The select button. In QEMU, `sendkey ctrl` in its monitor presses it.
pub struct Button {
    quiet_until: u64,
}

impl Button {
    pub(crate) const fn new() -> Self {
        Self { quiet_until: 0 }
    }

    /// Starts to notice when the button is pressed.
    pub fn start(&mut self) {
        PUR.modify(|pins| pins | PF1);
        DEN.modify(|pins| pins | PF1);
        // The rising edge, when it is let go: after a reset, QEMU has the pin low until then.
        IEV.modify(|pins| pins | PF1);
        ICR.write(PF1);
    }

    /// Returns `true` if the button was pressed and let go since the last call. The port remembers the edge: call it at each turn of the
    /// loop, with the milliseconds since the start.
    pub fn was_pressed(&mut self, now: u64) -> bool {
        if RIS.read() & PF1 == 0 {
            return false;
        }
        ICR.write(PF1);
        let is_new = now >= self.quiet_until;
        self.quiet_until = now + BOUNCE;
        is_new
    }
}
