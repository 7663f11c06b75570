//! Memory that the caller lends, or that grows up to a limit with an allocator.

/// Bytes for an input buffer, pending requests, subscriptions or scratch.
///
/// ```
/// use mcp_sansio::memory::Store;
/// let mut bytes = [0; 64];
/// let mut store = Store::from(&mut bytes);
/// assert!(store.reach(64) && !store.reach(65));
/// ```
///
/// `Store::from(&mut bytes)` takes a slice that the caller lends. With the feature `alloc`, [`Store::growing`]
/// takes memory when it is first needed, keeps it, and never exceeds its limit.
#[derive(Debug)]
pub struct Store<'m>(Block<'m, u8>);

impl<'m> Store<'m> {
    /// Makes a store without memory.
    #[must_use]
    pub const fn none() -> Self {
        Store(Block::Lent(&mut []))
    }

    /// Makes a store that takes memory from the allocator when it is needed, at most `limit` bytes.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub const fn growing(limit: usize) -> Self {
        Store(Block::growing(limit))
    }

    /// Returns the bytes that exist now.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.get()
    }

    /// Returns the bytes that exist now, to change them.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.get_mut()
    }

    /// Returns the largest number of bytes that it can have.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit()
    }

    /// Makes sure that there are at least `size` bytes. If the limit is smaller, changes nothing and returns
    /// `false`.
    #[inline]
    pub fn reach(&mut self, size: usize) -> bool {
        self.bytes().len() >= size || self.grow(size)
    }

    #[cold]
    fn grow(&mut self, size: usize) -> bool {
        match &mut self.0 {
            Block::Lent(bytes) => bytes.len() >= size,
            #[cfg(feature = "alloc")]
            Block::Grown { places: bytes, limit } => {
                if size > *limit {
                    return false;
                }
                // A quarter more: growing then costs a constant per byte, and little memory is idle. At least a
                // page.
                let wanted = size.max(bytes.len() + bytes.len() / 4).max(4096).min(*limit);
                bytes.reserve_exact(wanted - bytes.len());
                bytes.resize(wanted, 0);
                true
            }
        }
    }

    /// Gives the memory after the first `size` bytes back to the allocator. Lent memory does not change.
    pub fn shrink(&mut self, size: usize) {
        let _ = size;
        match &mut self.0 {
            Block::Lent(_) => {}
            #[cfg(feature = "alloc")]
            Block::Grown { places: bytes, .. } => {
                bytes.truncate(size);
                bytes.shrink_to_fit();
            }
        }
    }
}

impl<'m> From<&'m mut [u8]> for Store<'m> {
    fn from(bytes: &'m mut [u8]) -> Self {
        Store(Block::Lent(bytes))
    }
}

impl<'m, const N: usize> From<&'m mut [u8; N]> for Store<'m> {
    fn from(bytes: &'m mut [u8; N]) -> Self {
        Store(Block::Lent(bytes))
    }
}

/// The memory of a [`Store`] or of [`Slots`](super::Slots).
#[derive(Debug)]
pub(super) enum Block<'m, T> {
    Lent(&'m mut [T]),
    /// Memory of the allocator, at most `limit` places.
    #[cfg(feature = "alloc")]
    Grown {
        places: alloc::vec::Vec<T>,
        limit: usize,
    },
}

impl<T> Block<'_, T> {
    #[cfg(feature = "alloc")]
    pub(super) const fn growing(limit: usize) -> Self {
        Block::Grown { places: alloc::vec::Vec::new(), limit }
    }

    /// Returns the memory that exists now.
    #[inline]
    pub(super) fn get(&self) -> &[T] {
        match self {
            Block::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Block::Grown { places, .. } => places,
        }
    }

    /// Returns the memory that exists now, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut [T] {
        match self {
            Block::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Block::Grown { places, .. } => places,
        }
    }

    /// Returns the largest number of places that can exist.
    pub(super) fn limit(&self) -> usize {
        match self {
            Block::Lent(places) => places.len(),
            #[cfg(feature = "alloc")]
            Block::Grown { limit, .. } => *limit,
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn it_grows_when_it_must_and_shrinks_when_it_may() {
        let mut store = Store::growing(10_000);
        assert!(store.reach(100));
        let len = store.bytes().len();
        assert!(store.reach(len) && store.bytes().len() == len);
        assert!(store.reach(len + 1) && store.bytes().len() > len);
        assert!(!store.reach(10_001) && store.reach(10_000) && store.bytes().len() == 10_000);
        store.shrink(50);
        let Block::Grown { places: bytes, limit } = &store.0 else { panic!("it does not grow") };
        assert_eq!((bytes.len(), bytes.capacity(), *limit), (50, 50, 10_000));
    }
}
