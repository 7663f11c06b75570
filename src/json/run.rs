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
/// `WIDE`, byte of a multibyte character; otherwise the end of `bytes`. For a string not yet known to be long, and
/// only as far as short strings go: ask [`next`] to go on if there is no end at the position given.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn first<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    for _ in 0..2 {
        let Some(word) = chunk(bytes, at) else { break };
        let marks = marks::<WIDE>(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += WORD;
    }
    at
}

/// As [`first`], for a string already known to be long: behind an escape or a multibyte character.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn next<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
    if cfg!(target_pointer_width = "64") { blocks::<WIDE>(bytes, at) } else { words::<WIDE>(bytes, at) }
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
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
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn dirty<const WIDE: bool>(block: &[u8; 16]) -> bool {
    let mut found = false;
    for &byte in block {
        // As signed bytes, those of multibyte characters are below zero.
        let low = if WIDE { (byte as i8) < 0x20 } else { byte < 0x20 };
        found |= (byte == b'"') | (byte == b'\\') | low;
    }
    found
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
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
pub(crate) fn has_backslash(bytes: &[u8]) -> bool {
    /// Beyond, a search is worth its call.
    const SHORT: usize = 64;
    if bytes.len() > SHORT {
        return memchr::memchr(b'\\', bytes).is_some();
    }
    // Whole blocks, the last of which overlaps the one before.
    match (bytes.last_chunk::<16>(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(last), ..) => {
            let (mut at, mut found) = (0, holds(last, b'\\'));
            while let Some(block) = chunk::<16>(bytes, at) {
                found |= holds(block, b'\\');
                at += 16;
            }
            found
        }
        (_, Some(first), Some(last)) => holds(first, b'\\') | holds(last, b'\\'),
        _ => bytes.contains(&b'\\'),
    }
}

/// The position of the first quote or backslash from `at` on, or the end of `bytes`.
pub(super) fn quote_or_backslash(bytes: &[u8], mut at: usize) -> usize {
    // Beyond, a search is worth its call.
    for _ in 0..8 {
        let Some(block) = chunk::<16>(bytes, at) else { break };
        if holds(block, b'"') | holds(block, b'\\') {
            break;
        }
        at += 16;
    }
    for _ in 0..16 / WORD {
        let Some(word) = chunk(bytes, at) else { break };
        let marks = marks::<false>(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += WORD;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
fn holds<const N: usize>(block: &[u8; N], byte: u8) -> bool {
    block.iter().fold(false, |found, &other| found | (other == byte))
}

/// The end of the decimal digits that start at `at`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn digits(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = chunk(bytes, at) {
        // Digits become 0 to 9, everything else more, and more than 9 carries into the high bit.
        let word = usize::from_le_bytes(*word) ^ (LOW * b'0' as usize);
        let others = (word.wrapping_add(LOW * (0x80 - 10)) | word) & HIGH;
        if others != 0 {
            return at + lowest(others);
        }
        at += WORD;
    }
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The high bit set in every byte that ends the run. Bits above the lowest one may be wrong: a borrow runs upwards.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn marks<const WIDE: bool>(word: &[u8; WORD]) -> usize {
    let word = usize::from_le_bytes(*word);
    let quote = word ^ (LOW * b'"' as usize);
    let quotes = quote.wrapping_sub(LOW) & !quote;
    let slash = word ^ (LOW * b'\\' as usize);
    let slashes = slash.wrapping_sub(LOW) & !slash;
    let controls = word.wrapping_sub(LOW * 0x20) & !word;
    let wide = if WIDE { word } else { 0 };
    (quotes | slashes | controls | wide) & HIGH
}

/// Which byte the lowest mark is in.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn lowest(marks: usize) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
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

    #[test]
    fn searches_as_bytewise() {
        for len in 0..80 {
            for byte in 0..=255u8 {
                for place in [0, 1, 7, 8, 15, 16, 40, 63, 64, 79] {
                    let mut text = vec![b'5'; len];
                    if let Some(b) = text.get_mut(place) {
                        *b = byte;
                    }
                    if let Some(b) = text.get_mut(place + 1) {
                        *b = byte ^ 1;
                    }
                    assert_eq!(super::has_backslash(&text), text.contains(&b'\\'));
                    let digits = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(len);
                    assert_eq!(super::digits(&text, 0), digits);
                }
            }
        }
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
                        let first = super::first::<true>(&text, at);
                        assert_eq!(super::next::<true>(&text, first), slow::<true>(&text, at));
                        assert_eq!(super::next::<true>(&text, at), slow::<true>(&text, at));
                        let first = super::first::<false>(&text, at);
                        assert_eq!(super::next::<false>(&text, first), slow::<false>(&text, at));
                        assert_eq!(super::next::<false>(&text, at), slow::<false>(&text, at));
                    }
                }
            }
        }
    }
}
