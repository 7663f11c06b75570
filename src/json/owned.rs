//! One JSON value that owns its bytes.

use super::Raw;
use alloc::boxed::Box;
use core::fmt;

/// One valid JSON value that owns its bytes: a [`Raw`] that outlives its message. It is never parsed again.
///
/// A value of at most `SHORT` bytes (0 by default, 255 at most) is kept in place, a longer one in an allocation. Two are equal
/// if their bytes are.
///
/// ```
/// use mcp_sansio::json::{OwnedRaw, Raw};
///
/// let kept = {
///     let message = br#" {"answer": 42} "#.to_vec();
///     OwnedRaw::<64>::new(Raw::parse(&message)?)
/// };
/// assert_eq!(kept.raw().get("answer").and_then(|answer| answer.u64()), Some(42));
/// # Ok::<(), mcp_sansio::json::ParseError>(())
/// ```
#[derive(Clone)]
pub struct OwnedRaw<const SHORT: usize = 0>(Kept<SHORT>);

#[derive(Clone)]
enum Kept<const SHORT: usize> {
    Short([u8; SHORT], u8),
    Long(Box<[u8]>),
}

impl<const SHORT: usize> OwnedRaw<SHORT> {
    /// Keeps a copy of a value.
    #[must_use]
    pub fn new(raw: Raw<'_>) -> Self {
        const { assert!(SHORT <= u8::MAX as usize, "its length is one byte") }
        let bytes = raw.as_bytes();
        let mut short = [0; SHORT];
        OwnedRaw(match short.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Kept::Short(short, bytes.len() as u8)
            }
            None => Kept::Long(bytes.into()),
        })
    }

    /// Returns the value.
    #[must_use]
    pub fn raw(&self) -> Raw<'_> {
        Raw::trusted(match &self.0 {
            Kept::Short(bytes, len) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Kept::Long(bytes) => bytes,
        })
    }

    /// Returns the value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.raw().as_str()
    }
}

impl<const SHORT: usize> From<Raw<'_>> for OwnedRaw<SHORT> {
    fn from(raw: Raw<'_>) -> Self {
        OwnedRaw::new(raw)
    }
}

impl<const SHORT: usize> PartialEq for OwnedRaw<SHORT> {
    fn eq(&self, other: &Self) -> bool {
        self.raw().as_bytes() == other.raw().as_bytes()
    }
}

impl<const SHORT: usize> Eq for OwnedRaw<SHORT> {}

impl<const SHORT: usize> fmt::Debug for OwnedRaw<SHORT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedRaw").field(&self.as_str()).finish()
    }
}

impl<const SHORT: usize> fmt::Display for OwnedRaw<SHORT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn short_and_long_values_are_kept() {
        for len in [0, 19, 20, 21, 300, 5000] {
            let json = format!("\"{}\"", "x".repeat(len));
            let kept = OwnedRaw::<22>::new(Raw::parse(json.as_bytes()).unwrap());
            assert_eq!(kept.as_str(), json);
            assert_eq!(kept.raw().text().map(|text| text.raw().len()), Some(len));
            assert_eq!(kept.clone(), kept);
            assert_eq!(matches!(kept.0, Kept::Short(..)), json.len() <= 22);
        }
        assert_ne!(<OwnedRaw>::new(Raw::constant("1")), Raw::constant("1.0").into());
    }
}
