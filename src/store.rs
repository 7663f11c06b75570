//! Memory that the caller lends, or that grows up to a limit where there is an allocator.

/// Bytes for an input buffer, for pending questions, for subscriptions, for scratch.
///
/// A slice of any lifetime is lent with `Store::from(&mut bytes)`; with the feature `alloc`, [`Store::growing`] takes
/// memory when it is first needed, keeps it, and never exceeds its limit.
#[derive(Debug)]
pub struct Store<'m>(Kind<'m>);

#[derive(Debug)]
enum Kind<'m> {
    Lent(&'m mut [u8]),
    #[cfg(feature = "alloc")]
    Grown {
        bytes: alloc::vec::Vec<u8>,
        limit: usize,
    },
}

impl<'m> Store<'m> {
    /// No memory at all.
    #[must_use]
    pub const fn none() -> Self {
        Store(Kind::Lent(&mut []))
    }

    /// Memory from the allocator, `limit` bytes at the most. Takes none until it is needed.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub const fn growing(limit: usize) -> Self {
        Store(Kind::Grown { bytes: alloc::vec::Vec::new(), limit })
    }

    /// The bytes there are now.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Kind::Lent(bytes) => bytes,
            #[cfg(feature = "alloc")]
            Kind::Grown { bytes, .. } => bytes,
        }
    }

    /// The bytes there are now, to change.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Lent(bytes) => bytes,
            #[cfg(feature = "alloc")]
            Kind::Grown { bytes, .. } => bytes,
        }
    }

    /// The most bytes it can ever have.
    #[must_use]
    pub fn limit(&self) -> usize {
        match &self.0 {
            Kind::Lent(bytes) => bytes.len(),
            #[cfg(feature = "alloc")]
            Kind::Grown { limit, .. } => *limit,
        }
    }

    /// Makes sure that there are at least `size` bytes; `false`, and nothing changed, if the limit forbids it.
    #[inline]
    pub fn reach(&mut self, size: usize) -> bool {
        self.bytes().len() >= size || self.grow(size)
    }

    #[cold]
    fn grow(&mut self, size: usize) -> bool {
        match &mut self.0 {
            Kind::Lent(bytes) => bytes.len() >= size,
            #[cfg(feature = "alloc")]
            Kind::Grown { bytes, limit } => {
                if size > *limit {
                    return false;
                }
                // A quarter more, so that growing costs a constant per byte and little is idle; at least a page.
                let wanted = size.max(bytes.len() + bytes.len() / 4).max(4096).min(*limit);
                bytes.reserve_exact(wanted - bytes.len());
                bytes.resize(wanted, 0);
                true
            }
        }
    }

    /// Gives memory behind the first `size` bytes back to the allocator. Lent memory stays as it is.
    #[cfg(feature = "alloc")]
    pub fn shrink(&mut self, size: usize) {
        if let Kind::Grown { bytes, .. } = &mut self.0 {
            bytes.truncate(size);
            bytes.shrink_to_fit();
        }
    }
}

impl<'m> From<&'m mut [u8]> for Store<'m> {
    fn from(bytes: &'m mut [u8]) -> Self {
        Store(Kind::Lent(bytes))
    }
}

impl<'m, const N: usize> From<&'m mut [u8; N]> for Store<'m> {
    fn from(bytes: &'m mut [u8; N]) -> Self {
        Store(Kind::Lent(bytes))
    }
}
