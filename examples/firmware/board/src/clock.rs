//! The clock: an interrupt counts milliseconds.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::chip;

/// The milliseconds that the clock adds per real millisecond.
const PACE: u32 = if cfg!(feature = "fast-clock") { 240 } else { 1 };

/// The clock's value at the start.
const START: u32 = if cfg!(feature = "fast-clock") { u32::MAX - 40 * 60_000 } else { 0 };

/// Milliseconds since the start, modulo 2^32.
static NOW: AtomicU32 = AtomicU32::new(START);

/// Milliseconds since the start.
#[derive(Default)]
pub struct Clock {
    last: u32,
    wraps: u32,
    seconds: u32,
    /// The milliseconds beyond the whole seconds.
    rest: u32,
}

impl Clock {
    /// Returns the milliseconds since the start. The value never goes back. Call this at least once in 49 days:
    /// otherwise a wrap of the 32-bit counter is missed.
    pub fn now(&mut self) -> u64 {
        let now = NOW.load(Ordering::Relaxed);
        if now < self.last {
            self.wraps = self.wraps.wrapping_add(1);
        }
        // Counted step by step, because a 64-bit division takes nearly a kilobyte of code.
        self.rest += now.wrapping_sub(self.last);
        self.seconds += self.rest / 1000;
        self.rest %= 1000;
        self.last = now;
        u64::from(self.wraps) << 32 | u64::from(now)
    }
}

impl Clock {
    /// Returns the whole seconds since the start, at the last call of [`now`](Self::now).
    pub fn seconds(&self) -> u32 {
        self.seconds
    }
}

/// Does some work, and returns its result and the ticks of the processor's clock it took. The work must take less
/// than a millisecond, without interrupts.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, u32) {
    chip::alone(|| {
        let before = chip::cycles();
        let result = work();
        (result, chip::cycles_since(before))
    })
}

/// Counts a millisecond. The interrupt handler calls this.
pub(crate) fn tick() {
    // This is the only writer, so no read-modify-write is needed.
    NOW.store(NOW.load(Ordering::Relaxed).wrapping_add(PACE), Ordering::Relaxed);
}
