//! A fixed or growing table of slots.

/// Slots that the caller lends, or that grow up to a limit where there is an allocator.
#[derive(Debug)]
pub struct Pool<'m, T> {
    kind: Kind<'m, T>,
    /// The slot that was given away last: those before it are probably in use.
    last: usize,
}

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
        Pool { kind: Kind::Lent(slots), last: 0 }
    }

    /// Slots from the allocator, `limit` of them at the most.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub const fn growing(limit: usize) -> Self {
        Pool { kind: Kind::Grown { slots: alloc::vec::Vec::new(), limit }, last: 0 }
    }

    pub(crate) fn slots(&self) -> &[T] {
        match &self.kind {
            Kind::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, .. } => slots,
        }
    }

    pub(crate) fn slots_mut(&mut self) -> &mut [T] {
        match &mut self.kind {
            Kind::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, .. } => slots,
        }
    }

    /// A slot that is free; one more is made where the table may grow.
    pub(crate) fn free(&mut self, is_free: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> Option<usize> {
        let (before, from) = self.slots().split_at_checked(self.last).unwrap_or((&[], self.slots()));
        let found = from.iter().position(&is_free).map(|at| at + before.len());
        if let Some(found) = found.or_else(|| before.iter().position(&is_free)) {
            self.last = found;
            return Some(found);
        }
        match &mut self.kind {
            Kind::Lent(_) => {
                let _ = new;
                None
            }
            #[cfg(feature = "alloc")]
            Kind::Grown { slots, limit } => (slots.len() < *limit).then(|| {
                slots.push(new());
                self.last = slots.len() - 1;
                self.last
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
