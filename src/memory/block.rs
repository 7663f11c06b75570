//! Memory that is lent, or that grows up to a limit.

/// The memory of a [`Store`](super::Store) or of [`Slots`](super::Slots).
#[derive(Debug)]
pub(super) enum Block<'m, T> {
    Lent(&'m mut [T]),
    #[cfg(feature = "alloc")]
    Grown(Grown<T>),
}

/// Memory of the allocator, at most `limit` places.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub(super) struct Grown<T> {
    pub(super) places: alloc::vec::Vec<T>,
    pub(super) limit: usize,
}

impl<T> Block<'_, T> {
    #[cfg(feature = "alloc")]
    pub(super) const fn growing(limit: usize) -> Self {
        Block::Grown(Grown { places: alloc::vec::Vec::new(), limit })
    }

    /// Returns the memory that exists now.
    #[inline]
    pub(super) fn get(&self) -> &[T] {
        match self {
            Block::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Block::Grown(grown) => &grown.places,
        }
    }

    /// Returns the memory that exists now, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut [T] {
        match self {
            Block::Lent(places) => places,
            #[cfg(feature = "alloc")]
            Block::Grown(grown) => &mut grown.places,
        }
    }

    /// Returns the largest number of places that can exist.
    pub(super) fn limit(&self) -> usize {
        match self {
            Block::Lent(places) => places.len(),
            #[cfg(feature = "alloc")]
            Block::Grown(grown) => grown.limit,
        }
    }
}
