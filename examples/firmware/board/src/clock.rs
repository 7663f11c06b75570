//! Milliseconds, counted by an interrupt.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::chip;

/// How many milliseconds the clock counts in one.
const PACE: u32 = if cfg!(feature = "fast-clock") { 240 } else { 1 };

/// What the clock shows at the start.
const START: u32 = if cfg!(feature = "fast-clock") { u32::MAX - 40 * 60_000 } else { 0 };

/// Milliseconds since the start, modulo 2^32.
static NOW: AtomicU32 = AtomicU32::new(START);

/// Milliseconds since the start.
#[derive(Default)]
pub struct Clock {
    last: u32,
    wraps: u32,
    seconds: u32,
    /// Milliseconds beyond them.
    rest: u32,
}

impl Clock {
    /// Milliseconds since the start. Never goes back; it must be asked once in
    /// 49 days to notice that the 32 bits below it have wrapped.
    pub fn now(&mut self) -> u64 {
        let now = NOW.load(Ordering::Relaxed);
        if now < self.last {
            self.wraps = self.wraps.wrapping_add(1);
        }
        // Counted along: dividing 64 bits takes nearly a kilobyte of code.
        self.rest += now.wrapping_sub(self.last);
        self.seconds += self.rest / 1000;
        self.rest %= 1000;
        self.last = now;
        u64::from(self.wraps) << 32 | u64::from(now)
    }
}

impl Clock {
    /// Whole seconds since the start, when [`now`](Self::now) was asked last.
    pub fn seconds(&self) -> u32 {
        self.seconds
    }
}

/// Does some work that nothing interrupts, of less than a millisecond; how many ticks of the processor's clock it took.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, u32) {
    chip::alone(|| {
        let before = chip::cycles();
        let result = work();
        (result, chip::cycles_since(before))
    })
}

/// A millisecond has passed.
pub(crate) fn tick() {
    // The only writer, so no read-modify-write is needed.
    NOW.store(NOW.load(Ordering::Relaxed).wrapping_add(PACE), Ordering::Relaxed);
}
