//! Short texts in memory of a fixed size.

use core::fmt;

use crate::sink::copy;

/// Text of at most `N` bytes in an array. `N` is at most 65,534.
///
/// ```
/// use mcp_sansio::memory::FixedText;
/// let mut text = FixedText::<4>::EMPTY;
/// text.push(b"abcdef");
/// assert_eq!((text.as_str(), text.is_whole()), ("abcd", false));
/// ```
#[derive(Clone, Copy)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    /// The length that the text would have with enough room; at most `u16::MAX`.
    len: u16,
}

impl<const N: usize> FixedText<N> {
    /// The empty text.
    pub const EMPTY: Self = FixedText { bytes: [0; N], len: 0 };

    /// Appends `text`. Leaves out the bytes that do not fit; the text is then no longer
    /// [whole](Self::is_whole).
    pub fn push(&mut self, text: &[u8]) {
        copy(self.bytes.get_mut(usize::from(self.len)..).unwrap_or(&mut []), text);
        self.len = self.len.saturating_add(u16::try_from(text.len()).unwrap_or(u16::MAX));
    }

    /// Replaces the text. Returns `false`, and changes nothing, if `text` is longer than `N` bytes.
    #[must_use]
    pub fn set(&mut self, text: &[u8]) -> bool {
        let Some(place) = self.bytes.get_mut(..text.len()) else { return false };
        copy(place, text);
        self.len = text.len() as u16;
        true
    }

    /// Returns whether everything that was pushed fitted.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.len as usize <= N
    }

    /// Returns the bytes that fitted.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// Returns the characters that fitted, up to the first byte that is not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.as_bytes().utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::FixedText;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut text = FixedText::<4>::EMPTY;
        text.push(b"ab");
        assert!(text.is_whole() && text.as_str() == "ab");
        text.push("cé".as_bytes());
        assert_eq!((text.is_whole(), text.as_str(), text.as_bytes()), (false, "abc", &b"abc\xc3"[..]));
        assert!(!text.set(b"12345") && text.as_str() == "abc");
        assert!(text.set(b"1234") && text.is_whole() && text.as_str() == "1234");
        text.push(&[b'x'; 70_000]);
        assert_eq!((text.is_whole(), text.as_str()), (false, "1234"));
    }
}
