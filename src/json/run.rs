//! Runs: how far a string goes on without anything that needs a decision.
//!
//! Both the scanner and the writer spend their time here. A word at a time is best for the short strings of a
//! protocol; blocks of 16, which the compiler turns into vector instructions, are best for long ones. Machines of
//! 32 bits have no vectors to gain from and use words throughout.
//!
//! `WIDE` says whether a byte of a multibyte character also ends the run: the scanner has to check those, while
//! the writer starts from a `str`.

const WORD: usize = size_of::<usize>();
/// 0x01 in every byte.
const LOW: usize = usize::MAX / 255;
/// 0x80 in every byte.
const HIGH: usize = LOW << 7;

/// The end of the run that starts at `at`: the position of the first quote, backslash, control character or, if
/// `WIDE`, byte of a multibyte character; otherwise the end of `bytes`. For a string not yet known to be long.
#[inline(always)]
pub(super) fn first<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
    if !cfg!(target_pointer_width = "64") {
        return words::<WIDE>(bytes, at);
    }
    let mut at = at;
    let mut rest = bytes.get(at..).unwrap_or_default();
    for _ in 0..2 {
        let Some((word, behind)) = rest.split_first_chunk() else { break };
        let marks = marks::<WIDE>(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += WORD;
        rest = behind;
    }
    long::<WIDE>(bytes, at)
}

/// Kept apart: [`first`] is inlined in many places, and only short strings profit from that.
#[inline(never)]
fn long<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
    blocks::<WIDE>(bytes, at)
}

/// As [`first`], for a string already known to be long: behind an escape or a multibyte character.
#[inline(always)]
pub(super) fn next<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
    if cfg!(target_pointer_width = "64") { blocks::<WIDE>(bytes, at) } else { words::<WIDE>(bytes, at) }
}

#[inline(always)]
fn blocks<const WIDE: bool>(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = chunk::<16>(bytes, at) {
        if dirty::<WIDE>(block) {
            break;
        }
        at += 16;
    }
    words::<WIDE>(bytes, at)
}

/// Whether the block holds anything that ends the run.
///
/// The tests must be joined with `|`: with `||` the compiler does not vectorise, and a long string costs five times
/// as much without any other sign.
#[inline(always)]
fn dirty<const WIDE: bool>(block: &[u8; 16]) -> bool {
    let mut found = false;
    for &byte in block {
        // As signed bytes, those of multibyte characters are below zero.
        let low = if WIDE { (byte as i8) < 0x20 } else { byte < 0x20 };
        found |= (byte == b'"') | (byte == b'\\') | low;
    }
    found
}

#[inline(always)]
fn words<const WIDE: bool>(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = chunk(bytes, at) {
        let marks = marks::<WIDE>(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += WORD;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x20 || byte == b'"' || byte == b'\\' || (WIDE && byte >= 0x80) {
            break;
        }
        at += 1;
    }
    at
}

/// Whether there is a backslash.
pub(super) fn has_backslash(bytes: &[u8]) -> bool {
    /// Beyond, a search with vectors is worth its call.
    const SHORT: usize = 8 * WORD;
    if bytes.len() > SHORT {
        return memchr::memchr(b'\\', bytes).is_some();
    }
    let Some(last) = bytes.last_chunk() else { return bytes.contains(&b'\\') };
    let (mut at, mut found) = (0, slashes(usize::from_le_bytes(*last)));
    // The last word overlaps the one before.
    while let Some(word) = chunk(bytes, at) {
        found |= slashes(usize::from_le_bytes(*word));
        at += WORD;
    }
    found & HIGH != 0
}

/// The high bit set in every byte that is a backslash, and maybe in some above the lowest of these.
#[inline(always)]
fn slashes(word: usize) -> usize {
    let slash = word ^ (LOW * b'\\' as usize);
    slash.wrapping_sub(LOW) & !slash
}

/// The high bit set in every byte that ends the run. Bits above the lowest one may be wrong: a borrow runs upwards.
#[inline(always)]
fn marks<const WIDE: bool>(word: &[u8; WORD]) -> usize {
    let word = usize::from_le_bytes(*word);
    let quote = word ^ (LOW * b'"' as usize);
    let quotes = quote.wrapping_sub(LOW) & !quote;
    let slashes = slashes(word);
    let controls = word.wrapping_sub(LOW * 0x20) & !word;
    let wide = if WIDE { word } else { 0 };
    (quotes | slashes | controls | wide) & HIGH
}

/// Which byte the lowest mark is in.
#[inline(always)]
fn lowest(marks: usize) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[inline(always)]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    fn slow<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
        let stops = |&b: &u8| b < 0x20 || b == b'"' || b == b'\\' || (WIDE && b >= 0x80);
        bytes.iter().skip(at).position(stops).map_or(bytes.len(), |n| at + n)
    }

    /// Every byte at every place of texts shorter and longer than a block gives what a plain search gives.
    #[test]
    fn as_bytewise() {
        for len in [0, 1, 7, 8, 15, 16, 17, 31, 33, 70] {
            for place in 0..len {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; len];
                    if let Some(b) = text.get_mut(place) {
                        *b = byte;
                    }
                    // A second byte above it must not disturb the lowest mark.
                    if let Some(b) = text.get_mut(place + 1) {
                        *b = byte ^ 1;
                    }
                    for at in [0, 1, place] {
                        assert_eq!(super::first::<true>(&text, at), slow::<true>(&text, at));
                        assert_eq!(super::next::<true>(&text, at), slow::<true>(&text, at));
                        assert_eq!(super::first::<false>(&text, at), slow::<false>(&text, at));
                        assert_eq!(super::next::<false>(&text, at), slow::<false>(&text, at));
                    }
                }
            }
        }
    }
}
