//! Static memory, to be had once.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value in static memory that whoever asks first may keep.
pub struct Static<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `take` alone, which gives it to one
// place only; `Send` says that it does not matter to which.
unsafe impl<T: Send> Sync for Static<T> {}

impl<T> Static<T> {
    /// A value that nobody has taken.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, the first time; nothing after that.
    #[expect(clippy::mut_from_ref, reason = "it is given away once")]
    pub fn take(&'static self) -> Option<&'static mut T> {
        // Not by one atomic instruction: an ARMv6-M has none, nor has a RISC-V without its A.
        let taken = crate::chip::alone(|| {
            let taken = self.taken.load(Ordering::Relaxed);
            self.taken.store(true, Ordering::Relaxed);
            taken
        });
        // SAFETY: `taken` was false for one caller only, ever, and nothing else
        // refers to the value.
        (!taken).then(|| unsafe { &mut *self.value.get() })
    }
}
