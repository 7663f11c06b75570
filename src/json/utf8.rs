//! Multibyte characters of UTF-8.

use crate::small::SMALL;

/// The character that `bytes` begin with, and its length; `None` if that is not UTF-8.
#[inline]
pub(super) fn first(bytes: &[u8]) -> Option<(char, usize)> {
    match bytes.first() {
        Some(&ascii @ ..0x80) => Some((char::from(ascii), 1)),
        _ => wide(bytes),
    }
}

/// The multibyte character that `bytes` begin with, and its length; `None` if that is not UTF-8.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn wide(bytes: &[u8]) -> Option<(char, usize)> {
    // The others only follow one, or begin what is longer than need be.
    let lead = *bytes.first().filter(|lead| (0xc2..0xf8).contains(*lead))?;
    let len = lead.leading_ones() as usize;
    let mut value = u32::from(lead) & 0x7f >> len;
    for &byte in bytes.get(1..len)? {
        if byte & 0xc0 != 0x80 {
            return None;
        }
        value = value << 6 | u32::from(byte & 0x3f);
    }
    // Neither half characters nor what is beyond the last one, nor what could be written in fewer bytes.
    char::from_u32(value).filter(|_| value >> (5 * len - 4) != 0).map(|character| (character, len))
}

/// The length of the multibyte character that `bytes` begin with; `None` if that is not UTF-8.
#[inline]
pub(super) fn len(bytes: &[u8]) -> Option<usize> {
    if SMALL {
        return wide(bytes).map(|(_, len)| len);
    }
    // The table of the Unicode standard: what the second byte may be depends on the first.
    let (&lead, rest) = bytes.split_first()?;
    let (len, second) = match lead {
        0xc2..=0xdf => (2, 0x80..=0xbf),
        0xe0 => (3, 0xa0..=0xbf),
        0xed => (3, 0x80..=0x9f),
        0xe1..=0xef => (3, 0x80..=0xbf),
        0xf0 => (4, 0x90..=0xbf),
        0xf1..=0xf3 => (4, 0x80..=0xbf),
        0xf4 => (4, 0x80..=0x8f),
        _ => return None,
    };
    let (first, rest) = rest.split_first()?;
    let rest = rest.get(..len - 2)?;
    (second.contains(first) && rest.iter().all(|byte| byte & 0xc0 == 0x80)).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against core, every lead with every second byte, and the borders of what may follow.
    #[test]
    fn as_core_does() {
        for lead in 0x80..=0xff {
            for second in 0..=0xff {
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
    }
}
