//! Texts that are written piece by piece.

use alloc::string::String;

use mcp_sansio::sink::{Writer, to_vec};

/// Returns the text that `write` writes.
pub(crate) fn text_of(write: impl FnOnce(&mut Writer<'_>)) -> String {
    // Memory for any text is there.
    String::from_utf8(to_vec(write).unwrap_or_default()).unwrap_or_default()
}
