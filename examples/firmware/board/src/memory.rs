//! Static memory that can be taken once.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value in static memory. The first caller of [`take`](Self::take) gets it for ever.
pub struct Static<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only `take` reaches the value, and gives it to one caller. `Send` allows any caller.
unsafe impl<T: Send> Sync for Static<T> {}

impl<T> Static<T> {
    /// Wraps a value that is not taken yet.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Returns the value at the first call, then `None`.
    #[expect(clippy::mut_from_ref, reason = "it is given away once")]
    pub fn take(&'static self) -> Option<&'static mut T> {
        // Not one atomic instruction: an ARMv6-M has none, nor has a RISC-V without its A extension.
        let taken = crate::chip::alone(|| {
            let taken = self.taken.load(Ordering::Relaxed);
            self.taken.store(true, Ordering::Relaxed);
            taken
        });
        // SAFETY: `taken` was false for exactly one caller, and there is no other reference to the value.
        (!taken).then(|| unsafe { &mut *self.value.get() })
    }
}
