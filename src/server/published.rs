//! Changes that borrow nothing, and those that handlers have published.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::ServerChange;

/// The changes that handlers have published, each once, until the server notes them.
#[derive(Debug, Default)]
#[allow(clippy::box_collection, reason = "one word in each server, and most publish nothing")]
pub(crate) struct PublishedChanges(Option<Box<Vec<OwnedServerChange>>>);

/// A [`ServerChange`] that borrows nothing, to be sent to the thread or the task of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedServerChange(OwnedChange);

impl From<ServerChange<'_>> for OwnedServerChange {
    fn from(change: ServerChange<'_>) -> Self {
        OwnedServerChange(match change {
            ServerChange::Tools => OwnedChange::List(ServerChange::Tools),
            ServerChange::Prompts => OwnedChange::List(ServerChange::Prompts),
            ServerChange::Resources => OwnedChange::List(ServerChange::Resources),
            ServerChange::Resource(uri) => OwnedChange::Resource(uri.into()),
            ServerChange::All => OwnedChange::List(ServerChange::All),
            #[cfg(feature = "extensions")]
            ServerChange::Topic { member, key } => OwnedChange::Topic(member.into(), key.into()),
        })
    }
}

impl OwnedServerChange {
    /// Returns the change, to be published.
    #[must_use]
    pub fn as_change(&self) -> ServerChange<'_> {
        match &self.0 {
            OwnedChange::List(list) => *list,
            OwnedChange::Resource(uri) => ServerChange::Resource(uri),
            #[cfg(feature = "extensions")]
            OwnedChange::Topic(member, key) => ServerChange::Topic { member, key },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedChange {
    List(ServerChange<'static>),
    Resource(String),
    #[cfg(feature = "extensions")]
    Topic(String, String),
}

impl PublishedChanges {
    pub(crate) const fn new() -> Self {
        PublishedChanges(None)
    }

    /// Adds a change that is not there yet.
    pub(crate) fn add(&mut self, change: ServerChange<'_>) {
        let owned = OwnedServerChange::from(change);
        let changes = self.0.get_or_insert_default();
        if !changes.contains(&owned) {
            changes.push(owned);
        }
    }

    /// Returns `true` if there is nothing to note.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Calls `note` with each change.
    pub(crate) fn each(self, mut note: impl FnMut(ServerChange<'_>)) {
        for change in self.0.into_iter().flat_map(|changes| *changes) {
            note(change.as_change());
        }
    }
}
