//! The bytes of a file out of the result of `resources/read`.

use alloc::borrow::ToOwned;
use alloc::vec;
use alloc::vec::Vec;

use mcp_sansio::client::views::{ReadResourceResult, View};
use mcp_sansio::json::Raw;

use crate::skills::client::error::SkillError;

/// Returns the bytes of the file, which must be the only one of the result. `most` is the limit in bytes.
pub(crate) fn bytes_of(result: Raw<'_>, uri: &str, most: u64) -> Result<Vec<u8>, SkillError> {
    let wrong = || SkillError::Contents(uri.to_owned());
    let result = ReadResourceResult::of(result).map_err(|_| wrong())?;
    let mut contents = result.contents();
    let (Some(Ok(content)), None) = (contents.next(), contents.next()) else { return Err(wrong()) };
    if !content.uri().eq_str(uri) {
        return Err(wrong());
    }
    match (content.text(), content.blob()) {
        (Some(text), None) => {
            // It has no bytes if it has a lone surrogate.
            let len = text.decoded_len().ok_or_else(wrong)?;
            fits(uri, len, most)?;
            let mut space = vec![0; text.raw().len()];
            Ok(text.decode(&mut space).map_err(|_| wrong())?.as_bytes().to_vec())
        }
        (None, Some(blob)) => {
            let len = blob.decoded_len();
            fits(uri, len, most)?;
            let mut bytes = vec![0; len];
            let len = blob.decode(&mut bytes).map_err(|_| wrong())?.len();
            bytes.truncate(len);
            Ok(bytes)
        }
        _ => Err(wrong()),
    }
}

fn fits(uri: &str, len: usize, most: u64) -> Result<(), SkillError> {
    let found = u64::try_from(len).unwrap_or(u64::MAX);
    if found <= most { Ok(()) } else { Err(SkillError::Size { uri: uri.to_owned(), expected: most, found }) }
}
