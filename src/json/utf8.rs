//! Characters of UTF-8 in bytes.

/// Returns the character at the start of `bytes` and its length; `None` if it is not UTF-8.
#[inline]
pub(super) fn first(bytes: &[u8]) -> Option<(char, usize)> {
    match bytes.first() {
        Some(&ascii @ ..0x80) => Some((char::from(ascii), 1)),
        _ => wide(bytes),
    }
}

/// Returns the multibyte character at the start of `bytes` and its length; `None` if it is not UTF-8.
fn wide(bytes: &[u8]) -> Option<(char, usize)> {
    // Other bytes only follow a first byte, or begin a form that is longer than needed.
    let lead = *bytes.first().filter(|lead| (0xc2..0xf8).contains(*lead))?;
    let len = lead.leading_ones() as usize;
    let mut value = u32::from(lead) & 0x7f >> len;
    for &byte in bytes.get(1..len)? {
        if byte & 0xc0 != 0x80 {
            return None;
        }
        value = value << 6 | u32::from(byte & 0x3f);
    }
    // Refuses surrogates, values beyond the last character, and values that fit into fewer bytes.
    char::from_u32(value).filter(|_| value >> (5 * len - 4) != 0).map(|character| (character, len))
}

/// Returns the length of the multibyte character at the start of `bytes`; `None` if it is not UTF-8.
#[inline]
pub(super) fn len(bytes: &[u8]) -> Option<usize> {
    wide(bytes).map(|(_, len)| len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with core: each first byte with each second byte, and the borders of the bytes that may follow.
    #[test]
    fn as_core_does() {
        // Miri runs some thousand times slower: it sees a few of the bytes.
        let step = if cfg!(miri) { 21 } else { 1 };
        for lead in (0x80..=0xff).step_by(step) {
            for second in (0..=0xff).step_by(step) {
                for third in [0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff] {
                    for fourth in [0x7f, 0x80, 0xbf, 0xc0] {
                        compare(&[lead, second, third, fourth, b'x']);
                    }
                }
            }
        }
        for cut in ["é", "€", "😀"] {
            (0..=cut.len()).for_each(|end| compare(&cut.as_bytes()[..end]));
        }
    }

    fn compare(bytes: &[u8]) {
        let core = bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
        let here = first(bytes);
        assert_eq!(here.map(|(character, _)| character), core, "{bytes:x?}");
        let len_here = here.map(|(_, len)| len);
        assert_eq!(len_here, core.map(char::len_utf8), "{bytes:x?}");
        assert_eq!(len(bytes), len_here, "{bytes:x?}");
        assert_eq!(crate::json::is_utf8(bytes), core::str::from_utf8(bytes).is_ok(), "{bytes:x?}");
    }
}
