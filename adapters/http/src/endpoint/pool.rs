//! A fixed or growing table of slots.

/// Slots that the caller lends, or that grow up to a limit where there is an allocator.
#[derive(Debug)]
pub struct Pool<'m, T>(Kind<'m, T>);

#[derive(Debug)]
enum Kind<'m, T> {
    Lent(&'m mut [T]),
    #[cfg(feature = "alloc")]
    Grown {
        slots: alloc::vec::Vec<T>,
        limit: usize,
    },
}

impl<'m, T> Pool<'m, T> {
    /// Slots that are lent.
    pub const fn lent(slots: &'m mut [T]) -> Self {
        Pool(Kind::Lent(slots))
    }

    /// Slots from the allocator, `limit` of them at the most.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub const fn growing(limit: usize) -> Self {
        Pool(Kind::Grown { slots: alloc::vec::Vec::new(), limit })
    }

    pub(crate) fn slots(&self) -> &[T] {
        match &self.0 {
            Kind::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, .. } => slots,
        }
    }

    pub(crate) fn slots_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Kind::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, .. } => slots,
        }
    }

    /// A slot that is free; one more is made where the table may grow.
    pub(crate) fn free(&mut self, is_free: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> Option<usize> {
        if let Some(found) = self.slots().iter().position(is_free) {
            return Some(found);
        }
        match &mut self.0 {
            Kind::Lent(_) => {
                let _ = new;
                None
            }
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, limit } => (slots.len() < *limit).then(|| {
                slots.push(new());
                slots.len() - 1
            }),
        }
    }
}

impl<'m, T> From<&'m mut [T]> for Pool<'m, T> {
    fn from(slots: &'m mut [T]) -> Self {
        Pool::lent(slots)
    }
}

impl<'m, T, const N: usize> From<&'m mut [T; N]> for Pool<'m, T> {
    fn from(slots: &'m mut [T; N]) -> Self {
        Pool::lent(slots)
    }
}
