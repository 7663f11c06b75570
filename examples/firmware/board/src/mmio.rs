//! One 32-bit device register.

/// A device register at a fixed address.
#[derive(Clone, Copy)]
pub(crate) struct Reg(usize);

impl Reg {
    /// Names the register at `address`.
    ///
    /// # Safety
    ///
    /// `address` is that of a 32-bit register of this chip, and reading and
    /// writing it can do no harm to memory, whatever the value.
    pub(crate) const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    #[inline(always)]
    pub(crate) fn read(self) -> u32 {
        // SAFETY: `at` was promised a register of this chip: always there,
        // aligned, and harmless to memory.
        unsafe { (self.0 as *const u32).read_volatile() }
    }

    #[inline(always)]
    pub(crate) fn write(self, value: u32) {
        // SAFETY: as in `read`.
        unsafe { (self.0 as *mut u32).write_volatile(value) }
    }

    #[inline(always)]
    pub(crate) fn modify(self, change: impl FnOnce(u32) -> u32) {
        self.write(change(self.read()));
    }
}
