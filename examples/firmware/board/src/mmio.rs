//! One device register.

use core::marker::PhantomData;

/// A device register at a fixed address, of 32 bits or of eight.
pub(crate) struct Reg<T = u32>(usize, PhantomData<T>);

impl<T: Copy> Reg<T> {
    /// Names the register at `address`.
    ///
    /// # Safety
    ///
    /// `address` must be the address of a register of this chip and of this width. Reading and writing it must not
    /// endanger memory, for any value.
    pub(crate) const unsafe fn at(address: usize) -> Self {
        Self(address, PhantomData)
    }

    #[inline(always)]
    pub(crate) fn read(&self) -> T {
        // SAFETY: the caller of `at` has promised a register of this chip: always present, aligned, and harmless to
        // memory.
        unsafe { (self.0 as *const T).read_volatile() }
    }

    #[inline(always)]
    pub(crate) fn write(&self, value: T) {
        // SAFETY: as in `read`.
        unsafe { (self.0 as *mut T).write_volatile(value) }
    }

    #[inline(always)]
    pub(crate) fn modify(&self, change: impl FnOnce(T) -> T) {
        self.write(change(self.read()));
    }
}
