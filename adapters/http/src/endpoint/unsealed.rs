//! Session ids that carry nothing: those that do need an allocator.

use super::ids::SessionId;
use super::legacy::NoSession;
use super::{Endpoint, Turn};

#[allow(clippy::unused_self, reason = "the same as with sealed ids")]
impl Endpoint<'_> {
    pub(crate) const fn end_elsewhere(&self, _: u16) {}

    pub(crate) const fn close_sealed(&self, _: u16, _: bool) {}

    pub(crate) const fn sealed_id<S>(&self, _: u16, _: &Turn<'_, '_, S>) -> Option<SessionId> {
        None
    }

    pub(crate) const fn sealed_session<S>(&self, _: &Turn<'_, '_, S>, _: &[u8]) -> Option<Result<u16, NoSession>> {
        None
    }
}
