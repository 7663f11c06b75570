//! The status LED. The machine has no pins: the LED is a variable.

/// The status LED.
pub struct Led {
    on: bool,
}

impl Led {
    /// Starts with the LED off.
    pub(crate) fn start() -> Self {
        Self { on: false }
    }

    /// Turns the LED on or off.
    pub fn set(&mut self, on: bool) {
        self.on = on;
    }

    /// Returns `true` if the LED is on.
    pub fn is_on(&self) -> bool {
        self.on
    }
}
