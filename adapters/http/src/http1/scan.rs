//! Searches the bytes of a head, eight at a time.

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;

/// Marks the bytes of `word` that are less than `least`, which is at most 128: the high bit of each. The first mark, of
/// the byte in the lowest place, is exact; those after it may be wrong.
pub(crate) const fn below(word: u64, least: u8) -> u64 {
    word.wrapping_sub(ONES.wrapping_mul(least as u64)) & !word & HIGH
}

/// Marks the bytes of `word` that are `byte`, as [`below`] does.
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ ONES.wrapping_mul(byte as u64), 1)
}

/// Returns a word with a [`HIGH`] bit if one of the bytes of `word` is 127 or more.
pub(crate) const fn above(word: u64) -> u64 {
    word | (word & !HIGH).wrapping_add(ONES)
}

/// The high bit of each byte.
pub(crate) const fn high(word: u64) -> u64 {
    word & HIGH
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
                    let control = |word| below(word, b' ') | equal(word, 0x7f);
                    assert_eq!(find(text, control), text.iter().position(u8::is_ascii_control), "{byte} at {place}");
                    let colon = text.iter().position(|byte| *byte == b':');
                    assert_eq!(find(text, |word| equal(word, b':')), colon, "{byte} at {place} of {len}");
                    assert_eq!(high(above(u64::from_le_bytes([byte; 8]))) != 0, byte >= 127);
                }
            }
        }
    }
}
