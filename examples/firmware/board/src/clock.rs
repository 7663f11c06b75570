//! Milliseconds, by SysTick.

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;

use crate::system;

/// Milliseconds between two interrupts, and so the clock's resolution.
const TICK: u32 = 1;

/// How many milliseconds the clock counts in one.
const PACE: u32 = if cfg!(feature = "fast-clock") { 240 } else { 1 };

/// What the clock shows at the start.
const START: u32 = if cfg!(feature = "fast-clock") { u32::MAX - 40 * 60_000 } else { 0 };

/// Milliseconds since the start, modulo 2^32.
static NOW: AtomicU32 = AtomicU32::new(START);

/// Where the processor is within the present tick, in cycles: its low bits are hard to foretell when something from
/// outside has just happened.
pub fn cycles() -> u32 {
    SYST::get_current()
}

/// Milliseconds since the start.
pub struct Clock {
    _systick: SYST,
    last: u32,
    wraps: u32,
    seconds: u32,
    /// Milliseconds beyond them.
    rest: u32,
}

impl Clock {
    pub(crate) fn start(mut systick: SYST) -> Self {
        systick.set_clock_source(SystClkSource::Core);
        systick.set_reload(system::CLOCK / 1000 * TICK - 1);
        systick.clear_current();
        systick.enable_interrupt();
        systick.enable_counter();
        Self { _systick: systick, last: 0, wraps: 0, seconds: 0, rest: 0 }
    }

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
    const RELOAD: u32 = system::CLOCK / 1000 * TICK;
    cortex_m::interrupt::free(|_| {
        let before = SYST::get_current();
        let result = work();
        // It counts down, and begins again at the top.
        (result, (before + RELOAD - SYST::get_current()) % RELOAD)
    })
}

#[exception]
fn SysTick() {
    // The only writer, so no read-modify-write is needed.
    NOW.store(NOW.load(Ordering::Relaxed).wrapping_add(TICK * PACE), Ordering::Relaxed);
    #[cfg(feature = "embassy")]
    crate::embassy::tick();
}
