//! Samples of the sensor, taken by an interrupt and read by handlers.

use core::cell::Cell;

use board::{Mutex, free};
use thermometer::sensor;

/// The interval between two samples.
pub(crate) const EVERY_MILLIS: u32 = 20;

/// The state that the interrupt and the main program share. It is copied as a whole with interrupts off, so both
/// sides always see complete values.
#[derive(Clone, Copy)]
pub(crate) struct Samples {
    /// The number of samples since the start.
    pub(crate) count: u32,
    /// Their sum. Both values wrap around; differences stay correct.
    pub(crate) sum: u32,
    pub(crate) last: u16,
}

static SAMPLES: Mutex<Cell<Samples>> = Mutex::new(Cell::new(Samples { count: 0, sum: 0, last: 540 }));

/// Handles the timer's interrupt: takes a sample.
pub(crate) fn take() {
    free(|cs| {
        let Samples { count, sum, .. } = SAMPLES.borrow(cs).get();
        let last = sensor::reading(count / (1000 / EVERY_MILLIS));
        SAMPLES.borrow(cs).set(Samples { count: count.wrapping_add(1), sum: sum.wrapping_add(last.into()), last });
    });
}

/// Returns the present values.
pub(crate) fn now() -> Samples {
    free(|cs| SAMPLES.borrow(cs).get())
}
