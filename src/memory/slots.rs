//! A table of slots of one size.

use super::store::Block;

/// Slots for requests, sessions or streams. The caller lends them, or they grow up to a limit with an
/// allocator.
///
/// ```
/// use mcp_sansio::memory::Slots;
///
/// let mut lent = [0; 2];
/// let mut slots = Slots::from(&mut lent);
/// let at = slots.find_free(|slot| *slot == 0, || 0).unwrap();
/// slots.as_mut_slice()[at] = 7;
/// assert_eq!(slots.as_slice(), [7, 0]);
/// ```
#[derive(Debug)]
pub struct Slots<'m, T> {
    block: Block<'m, T>,
    /// The slot that was found last; those before it are probably in use.
    last: usize,
}

impl<'m, T> Slots<'m, T> {
    /// Takes slots that the caller lends.
    pub const fn lent(slots: &'m mut [T]) -> Self {
        Slots { block: Block::Lent(slots), last: 0 }
    }

    /// Takes slots from the allocator when they are needed, at most `limit`. Keeps them until the table is
    /// dropped.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub const fn growing(limit: usize) -> Self {
        Slots { block: Block::growing(limit), last: 0 }
    }

    /// Returns the slots that exist now.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        self.block.get()
    }

    /// Returns the slots that exist now, to change them.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.block.get_mut()
    }

    /// Returns the largest number of slots that can exist.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.block.limit()
    }

    /// Finds a slot for which `is_free` returns `true`, and returns its index. The search starts at the slot
    /// that was found last. If all slots are in use, appends `new()` where the table may grow. Returns `None`
    /// if it may not.
    pub fn find_free(&mut self, is_free: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> Option<usize> {
        let (before, from) = self.as_slice().split_at_checked(self.last).unwrap_or((&[], self.as_slice()));
        let found = from.iter().position(&is_free).map(|at| at + before.len());
        if let Some(found) = found.or_else(|| before.iter().position(&is_free)) {
            self.last = found;
            return Some(found);
        }
        self.last = self.push(new())?;
        Some(self.last)
    }

    /// Appends a slot if the table may grow. Returns its index, or `None`.
    pub fn push(&mut self, slot: T) -> Option<usize> {
        match &mut self.block {
            Block::Lent(_) => {
                let _ = slot;
                None
            }
            #[cfg(feature = "alloc")]
            Block::Grown { places: slots, limit } => (slots.len() < *limit).then(|| {
                if slots.len() == slots.capacity() {
                    // Twice as many, as a vector does, but not beyond the limit.
                    slots.reserve_exact(slots.len().max(4).min(*limit - slots.len()));
                }
                slots.push(slot);
                slots.len() - 1
            }),
        }
    }
}

impl<T> core::ops::Deref for Slots<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> core::ops::DerefMut for Slots<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<'m, T> From<&'m mut [T]> for Slots<'m, T> {
    fn from(slots: &'m mut [T]) -> Self {
        Slots::lent(slots)
    }
}

impl<'m, T, const N: usize> From<&'m mut [T; N]> for Slots<'m, T> {
    fn from(slots: &'m mut [T; N]) -> Self {
        Slots::lent(slots)
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    /// The memory of a table that is full is that of its slots: a vector would have doubled beyond the limit.
    #[test]
    fn it_takes_no_memory_beyond_its_limit() {
        for limit in [0, 1, 3, 10_000] {
            let mut table = Slots::growing(limit);
            for at in 0..limit {
                assert_eq!(table.push(at), Some(at));
            }
            assert_eq!((table.push(0), table.len()), (None, limit));
            let Block::Grown { places: slots, .. } = &table.block else { panic!("it does not grow") };
            assert_eq!(slots.capacity(), limit);
        }
    }
}
