//! The records of a client: their kinds, and how one is written.

use crate::memory::records::{NoRoomError, Records};
use crate::sink::{LineSink, Storage, Writer, part};

/// The kinds of records. The owner is the token of the request, or the number of the request of the server.
pub(crate) const PARAMS: u8 = 1;
pub(crate) const META: u8 = 2;
/// The `requestState`.
pub(crate) const STATE: u8 = 3;
/// The key of an input request; the tag is its index.
pub(crate) const KEY: u8 = 4;
/// The answer to an input request; the tag is its index.
pub(crate) const ANSWER: u8 = 5;
/// The id of a request of the server up to 2025-11-25; the tag is its kind.
pub(crate) const QUESTION: u8 = 6;
/// A resource of a subscription; the tag is its state.
pub(crate) const URI: u8 = 7;
/// The cursor of the next page of the tools that are listed for a call.
pub(crate) const CURSOR: u8 = 8;
/// The `elicitationId` of a URL elicitation.
pub(crate) const VISIT: u8 = 9;
/// A topic of a subscription: the length of the member of the filter, the member, the key.
#[cfg(feature = "extensions")]
pub(crate) const TOPIC: u8 = 10;
/// The `taskId` of the task to which a request of the server belongs.
pub(crate) const RELATED_TASK: u8 = 11;

/// Appends a record with the data that `write` writes. On [`NoRoomError`] nothing has changed.
pub(crate) fn push_written(
    records: &mut Records<'_>,
    (owner, kind, tag): (u32, u8, u8),
    write: impl FnOnce(&mut Writer<'_>),
) -> Result<(), NoRoomError> {
    let at = records.begin(owner, kind, tag)?;
    part(&mut LineSink::new(LastRecord { records, at }), write).map_err(|_| {
        records.drop_last(at);
        NoRoomError
    })
}

/// The data of the last record, which begins at `at`.
struct LastRecord<'h, 'm> {
    records: &'h mut Records<'m>,
    at: usize,
}

impl Storage for LastRecord<'_, '_> {
    fn bytes(&self) -> &[u8] {
        self.records.last(self.at)
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        self.records.extend(self.at, bytes).is_ok()
    }

    fn truncate(&mut self, len: usize) {
        self.records.shorten(self.at, len);
    }

    fn drop_front(&mut self, _: usize) {}

    fn limit(&self) -> usize {
        self.records.limit()
    }
}
