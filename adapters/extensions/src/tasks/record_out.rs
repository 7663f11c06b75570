//! A message as the data of a record.

use mcp_sansio::FullError;
use mcp_sansio::memory::records::Records;
use mcp_sansio::sink::{Mark, MessageHead, Out, Sink};

/// A sink that appends to the last record, which is at `at`, after its first `from` bytes.
pub(crate) struct RecordOut<'r, 'm> {
    pub(crate) records: &'r mut Records<'m>,
    pub(crate) at: usize,
    pub(crate) from: usize,
    pub(crate) len: usize,
}

impl Sink for RecordOut<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.records.extend(self.at, bytes).map_err(|_| FullError::Never)?;
        self.len += bytes.len();
        Ok(())
    }

    fn room(&self) -> usize {
        self.records.limit().saturating_sub(self.records.used())
    }
}

impl Out for RecordOut<'_, '_> {
    fn begin(&mut self, _: MessageHead<'_>) -> Result<(), FullError> {
        Ok(())
    }
    fn end(&mut self) {}
    fn mark(&self) -> Mark {
        Mark::new(self.len)
    }
    fn roll_back(&mut self, mark: Mark) {
        self.len = mark.at();
        self.records.shorten(self.at, self.from + self.len);
    }
    fn hold(&mut self, _: bool) {}
    fn held(&self) -> bool {
        false
    }
    fn capacity(&self) -> usize {
        self.room() + self.len
    }
}
