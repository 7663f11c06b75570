//! The status LED, which nobody sees: the machine has no pins.

/// The status LED.
pub struct Led {
    on: bool,
}

impl Led {
    /// Off.
    pub(crate) fn start() -> Self {
        Self { on: false }
    }

    /// Turns it on or off.
    pub fn set(&mut self, on: bool) {
        self.on = on;
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.on
    }
}
