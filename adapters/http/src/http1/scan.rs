//! Searches the bytes of a head, eight at a time.

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// Marks the bytes of `word` that are `byte` or less than `least`, both of which are ASCII: the high bit of each. The first
/// mark, of the byte in the lowest place, is exact; those after it may be wrong.
pub(crate) const fn equal_or_below(word: u64, byte: u8, least: u8) -> u64 {
    let equal = (word ^ ONES.wrapping_mul(byte as u64)).wrapping_sub(ONES);
    (equal | word.wrapping_sub(ONES.wrapping_mul(least as u64))) & !word & HIGH
}

/// Marks the bytes of `word` that are less than `least`, which is at most 127, and those that are 127 or more, as
/// [`equal_or_below`] does.
pub(crate) const fn outside(word: u64, least: u8) -> u64 {
    (word.wrapping_sub(ONES.wrapping_mul(least as u64)) | word | word.wrapping_add(ONES)) & HIGH
}

/// Returns the place of the first byte that `marks` marks in its word. The words are
/// read as little-endian numbers, and letters follow the last byte.
#[inline(always)]
pub(crate) fn find(bytes: &[u8], mut marks: impl FnMut(u64) -> u64) -> Option<usize> {
    let mut rest = bytes;
    let marked = loop {
        let Some((word, behind)) = rest.split_first_chunk() else { break marks(last_word(rest)) };
        let marked = marks(u64::from_le_bytes(*word));
        if marked != 0 {
            break marked;
        }
        rest = behind;
    };
    (marked != 0).then(|| bytes.len() - rest.len() + marked.trailing_zeros() as usize / 8)
}

/// Returns fewer than eight bytes with letters after them.
// Most heads have a body behind them, or more bytes.
#[cold]
fn last_word(bytes: &[u8]) -> u64 {
    let mut word = [b'x'; 8];
    for (place, byte) in word.iter_mut().zip(bytes) {
        *place = *byte;
    }
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_found_at_each_place() {
        for len in 0..20 {
            for place in 0..len {
                for byte in 0..=255 {
                    let mut text = [b'a'; 20];
                    text[place] = byte;
                    let text = &text[..len];
                    let visible = text.iter().position(|byte| !matches!(byte, b' '..=b'~'));
                    assert_eq!(find(text, |word| outside(word, b' ')), visible, "{byte} at {place} of {len}");
                    let colon = text.iter().position(|byte| matches!(byte, b':' | ..=b' '));
                    let found = find(text, |word| equal_or_below(word, b':', b'!'));
                    assert_eq!(found, colon, "{byte} at {place} of {len}");
                }
            }
        }
    }
}
