//! Topics: the members of the filter of `subscriptions/listen` that belong to extensions, and their notifications.
//!
//! The server keeps the records of a listen; the service knows the extensions and their state. [`Topics`] connects them for
//! one call. Without the feature `extensions` the reference to it has no size, and no code is behind it.

use core::marker::PhantomData;

use super::RpcError;
use crate::json::object::Object;

/// Listens can select topics.
pub(crate) const TOPICS: bool = cfg!(feature = "extensions");

/// The topics of the extensions of a service.
pub(crate) trait Topics {
    /// Returns the member of the filter of the topic at `index`; `None` after the last one.
    fn member(&self, index: usize) -> Option<&'static str>;

    /// Checks that the client declared the extension of the topic.
    fn check(&self, index: usize) -> Result<(), RpcError<'static>>;

    /// Returns whether the client may listen to `key`.
    fn agrees(&self, index: usize, key: &str) -> bool;

    /// Returns the method of the notifications of the topic with this member.
    fn method(&self, member: &str) -> Option<&'static str>;

    /// Writes the members of the params of a notification.
    fn write(&self, member: &str, key: &str, params: &mut Object<'_, '_>);
}

#[cfg(feature = "extensions")]
pub(crate) type TopicsRef<'t> = &'t dyn Topics;
#[cfg(feature = "extensions")]
pub(crate) const NO_TOPICS: TopicsRef<'static> = &NoTopics(PhantomData);

#[cfg(not(feature = "extensions"))]
pub(crate) type TopicsRef<'t> = NoTopics<'t>;
#[cfg(not(feature = "extensions"))]
pub(crate) const NO_TOPICS: TopicsRef<'static> = NoTopics(PhantomData);

/// A service without topics.
#[derive(Clone, Copy)]
pub(crate) struct NoTopics<'t>(PhantomData<&'t ()>);

impl Topics for NoTopics<'_> {
    fn member(&self, _: usize) -> Option<&'static str> {
        None
    }
    fn check(&self, _: usize) -> Result<(), RpcError<'static>> {
        Ok(())
    }
    fn agrees(&self, _: usize, _: &str) -> bool {
        false
    }
    fn method(&self, _: &str) -> Option<&'static str> {
        None
    }
    fn write(&self, _: &str, _: &str, _: &mut Object<'_, '_>) {}
}
