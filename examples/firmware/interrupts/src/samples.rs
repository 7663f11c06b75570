//! Samples of the sensor, taken by an interrupt and read by handlers.

use core::cell::Cell;

use board::{Mutex, free};
use thermometer::sensor;

/// How often the timer takes one.
pub(crate) const EVERY_MILLIS: u32 = 20;

/// What the interrupt and the main program share. It is copied as a whole, with interrupts off: nobody sees half of it,
/// and there is nothing to be borrowed twice.
#[derive(Clone, Copy)]
pub(crate) struct Samples {
    /// How many were taken since the start.
    pub(crate) count: u32,
    /// Their sum; both wrap around, which differences do not mind.
    pub(crate) sum: u32,
    pub(crate) last: u16,
}

static SAMPLES: Mutex<Cell<Samples>> = Mutex::new(Cell::new(Samples { count: 0, sum: 0, last: 540 }));

/// The timer's interrupt.
pub(crate) fn take() {
    free(|cs| {
        let Samples { count, sum, .. } = SAMPLES.borrow(cs).get();
        let last = sensor::reading(count / (1000 / EVERY_MILLIS));
        SAMPLES.borrow(cs).set(Samples { count: count.wrapping_add(1), sum: sum.wrapping_add(last.into()), last });
    });
}

/// As they are now.
pub(crate) fn now() -> Samples {
    free(|cs| SAMPLES.borrow(cs).get())
}
