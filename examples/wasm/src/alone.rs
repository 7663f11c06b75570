//! Static memory for a program with one thread.

use core::cell::UnsafeCell;

/// A value in static memory.
pub(crate) struct Alone<T>(UnsafeCell<T>);

// SAFETY: a module without shared memory has one thread.
unsafe impl<T> Sync for Alone<T> {}

impl<T> Alone<T> {
    pub(crate) const fn new(value: T) -> Self {
        Alone(UnsafeCell::new(value))
    }

    /// Returns the value. Each value is borrowed in one place only: the module at the start of an exported
    /// function, which calls no other one; the buffers once, when the module is created.
    #[allow(clippy::mut_from_ref, reason = "see above")]
    pub(crate) fn get(&self) -> &mut T {
        // SAFETY: there is one thread, and by the rule above one reference at a time.
        unsafe { &mut *self.0.get() }
    }
}
