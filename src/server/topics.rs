//! Topics: the members of the filter of `subscriptions/listen` that belong to extensions, and their notifications.
//!
//! The server keeps the records of a listen; the service knows the extensions and their state. The two types below connect
//! them for one call. Without the feature `extensions` there are none, see `no_topics.rs`.

use super::RpcError;
use crate::json::object::Object;

/// Listens can select topics.
pub(crate) const TOPICS: bool = true;

/// The topics of the extensions of a service, for a listen that opens.
pub(crate) trait ListenTopics {
    /// Returns the member of the filter of the topic at `index`; `None` after the last one.
    fn member(&self, index: usize) -> Option<&'static str>;

    /// Checks that the client declared the extension of the topic.
    fn check(&self, index: usize) -> Result<(), RpcError<'static>>;

    /// Returns whether the client may listen to `key`.
    fn agrees(&self, index: usize, key: &str) -> bool;
}

/// The topics of the extensions of a service, for notifications that are due.
pub(crate) trait TopicNews {
    /// Returns the method of the notifications of a topic.
    fn method(&self, member: &str) -> Option<&'static str>;

    /// Writes the members of the params of a notification.
    fn write(&self, member: &str, key: &str, params: &mut Object<'_, '_>);
}

pub(crate) type ListenTopicsRef<'t> = &'t dyn ListenTopics;
pub(crate) type TopicNewsRef<'t> = &'t dyn TopicNews;
pub(crate) const NO_TOPICS: ListenTopicsRef<'static> = &();
pub(crate) const NO_NEWS: TopicNewsRef<'static> = &();

impl ListenTopics for () {
    fn member(&self, _: usize) -> Option<&'static str> {
        None
    }
    fn check(&self, _: usize) -> Result<(), RpcError<'static>> {
        Ok(())
    }
    fn agrees(&self, _: usize, _: &str) -> bool {
        false
    }
}

impl TopicNews for () {
    fn method(&self, _: &str) -> Option<&'static str> {
        None
    }
    fn write(&self, _: &str, _: &str, _: &mut Object<'_, '_>) {}
}
