//! In place of the head of an earlier request, without an allocator: memory is short then.

use super::head::{HeadFacts, Repeatable};

/// Remembers nothing.
#[derive(Debug)]
pub(crate) struct Kept;

#[allow(clippy::unused_self, reason = "the same as with an allocator")]
impl Kept {
    pub(crate) const NONE: Kept = Kept;

    pub(crate) const fn front(&self) -> usize {
        0
    }

    pub(crate) const fn forget(&self) {}

    pub(crate) const fn note(&self, _: Option<Repeatable>) {}

    pub(crate) const fn find(&self, _: &[u8], _: &[u8], _: usize) -> Option<(usize, HeadFacts)> {
        None
    }

    pub(crate) const fn keep(&self, _: &mut [u8], _: usize, _: usize) {}
}
