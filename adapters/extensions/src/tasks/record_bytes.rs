//! A message as the data of a record.

use mcp_sansio::memory::records::Records;
use mcp_sansio::sink::Storage;

/// The data of the last record, which is at `at`, after their first `from` bytes.
pub(crate) struct RecordBytes<'r, 'm> {
    pub(crate) records: &'r mut Records<'m>,
    pub(crate) at: usize,
    pub(crate) from: usize,
}

impl Storage for RecordBytes<'_, '_> {
    fn bytes(&self) -> &[u8] {
        self.records.get(self.at).and_then(|record| record.data.get(self.from..)).unwrap_or_default()
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        self.records.extend(self.at, bytes).is_ok()
    }

    fn truncate(&mut self, len: usize) {
        self.records.shorten(self.at, self.from + len);
    }

    // A record is not sent piece by piece.
    fn drop_front(&mut self, _: usize) {}

    fn limit(&self) -> usize {
        self.bytes().len() + self.records.limit().saturating_sub(self.records.used())
    }
}
