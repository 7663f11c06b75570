//! A sink that grows.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::sink::Sink;

/// Bytes that are written here. Everything that is written is text.
#[derive(Default)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn after(text: &str) -> Self {
        Buffer(text.into())
    }

    pub(crate) fn into_string(self) -> String {
        String::from_utf8(self.0).unwrap_or_default()
    }
}

impl Sink for Buffer {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn room(&self) -> usize {
        usize::MAX
    }
}
