//! The watchdog. The machine has none: this one does nothing.

/// A watchdog that does nothing.
pub struct Watchdog {
    _private: (),
}

impl Watchdog {
    pub(crate) const fn new() -> Self {
        Self { _private: () }
    }

    /// Does nothing.
    pub fn start(&mut self, _milliseconds: u32) {}

    /// Does nothing.
    pub fn kick(&mut self) {}
}
