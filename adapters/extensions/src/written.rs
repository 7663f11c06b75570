//! JSON in memory of the allocator.

use alloc::vec::Vec;

use mcp_sansio::FullError;
use mcp_sansio::sink::{LineSink, MessageHead, Writer, whole};

/// Writes JSON into memory.
pub(crate) fn written(write: impl FnOnce(&mut Writer<'_>)) -> Result<Vec<u8>, FullError> {
    let mut out = LineSink::new(Vec::new());
    whole(&mut out, MessageHead::Result, write)?;
    let mut bytes = out.into_inner();
    // The sink ends each message with a newline.
    bytes.truncate(bytes.trim_ascii_end().len());
    Ok(bytes)
}
