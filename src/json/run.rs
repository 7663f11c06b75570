//! Runs: parts of a string without a byte that needs a decision.
//!
//! The scanner and the writer spend most of their time here. A word at a time is fastest for the short strings
//! of a protocol; blocks of 16 bytes, which the compiler turns into vector instructions, are fastest for long
//! ones. Small machines go byte by byte, which takes a fifth of the code.
//!
//! `STOPS` names the bytes that end a run: [`ENDS`], [`CONTROLS`] or [`WIDE`].

use crate::search::{SMALL, find};

// Fork: 340 bytes of flash (uart, tools only): there, all searches go byte by byte.

const WORD: usize = size_of::<usize>();
/// 0x01 in every byte.
const LOW: usize = usize::MAX / 255;
/// 0x80 in every byte.
const HIGH: usize = LOW << 7;

/// A run ends at a quote or a backslash. For strings that were scanned before.
pub(super) const ENDS: u8 = 0;
/// A run also ends at a control character. For writing the text of a `str`.
pub(super) const CONTROLS: u8 = 1;
/// A run also ends at a byte of a multibyte character. For scanning.
pub(super) const WIDE: u8 = 2;

/// Returns the end of the run that starts at `at`, for strings that are probably short. The search stops after
/// two words. If nothing ends the run at the returned position, continue with [`next`].
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn first<const STOPS: u8>(bytes: &[u8], at: usize) -> usize {
    if SMALL {
        return bytewise(bytes, at, STOPS);
    }
    let mut at = at;
    let mut rest = bytes.get(at..).unwrap_or_default();
    for _ in 0..2 {
        let Some((word, behind)) = rest.split_first_chunk() else { break };
        let marks = marks::<STOPS>(word);
        if marks != 0 {
            return at + lowest(marks);
        }
        at += WORD;
        rest = behind;
    }
    at
}

/// Returns the end of the run that starts at `at`, or of `bytes`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn next<const STOPS: u8>(bytes: &[u8], at: usize) -> usize {
    if SMALL {
        return bytewise(bytes, at, STOPS);
    }
    at + blocks::<STOPS>(bytes.get(at..).unwrap_or_default())
}

/// Does the same as [`next`] with few instructions, but slower.
#[inline(never)]
fn bytewise(bytes: &[u8], at: usize, stops: u8) -> usize {
    let goes_on = |byte: &u8| match *byte {
        b'"' | b'\\' => false,
        0..0x20 => stops < CONTROLS,
        0x80.. => stops < WIDE,
        _ => true,
    };
    at + bytes.get(at..).unwrap_or_default().iter().take_while(|byte| goes_on(byte)).count()
}

/// Does the same as [`next`] with [`ENDS`].
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn end(bytes: &[u8], at: usize) -> usize {
    /// After this many bytes a search by `memchr` is worth its call.
    const NEAR: usize = 128;
    if SMALL {
        return bytewise(bytes, at, ENDS);
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let near = next::<ENDS>(rest.get(..NEAR).unwrap_or(rest), 0);
    let far = rest.get(near..).unwrap_or_default();
    let found = near < NEAR || far.is_empty();
    at + near + if found { 0 } else { memchr::memchr2(b'"', b'\\', far).unwrap_or(far.len()) }
}

/// Returns the length of the run at the start of `bytes`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn blocks<const STOPS: u8>(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk::<16>() {
        if dirty::<STOPS>(block) {
            return bytes.len() - rest.len() + words::<STOPS>(block);
        }
        rest = behind;
    }
    bytes.len() - rest.len() + words::<STOPS>(rest)
}

/// Returns whether the block has a byte that ends the run.
///
/// One loop for each test, joined with `|`. With `||`, or with several tests in one loop, the compiler makes
/// code that costs up to five times as much. The counted benchmarks would show it.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn dirty<const STOPS: u8>(block: &[u8; 16]) -> bool {
    let ends = any(block, |byte| byte == b'"') | any(block, |byte| byte == b'\\');
    if STOPS == ENDS { ends } else { ends | any(block, low::<STOPS>) }
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
fn any<const N: usize>(block: &[u8; N], test: impl Fn(u8) -> bool) -> bool {
    let mut found = false;
    for &byte in block {
        found |= test(byte);
    }
    found
}

/// Bytes of multibyte characters are below zero as signed bytes.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn low<const STOPS: u8>(byte: u8) -> bool {
    match STOPS {
        ENDS => false,
        CONTROLS => byte < 0x20,
        _ => (byte as i8) < 0x20,
    }
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
fn words<const STOPS: u8>(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk() {
        let marks = marks::<STOPS>(word);
        if marks != 0 {
            return bytes.len() - rest.len() + lowest(marks);
        }
        rest = behind;
    }
    while let Some((&byte, behind)) = rest.split_first() {
        if byte == b'"' || byte == b'\\' || low::<STOPS>(byte) {
            break;
        }
        rest = behind;
    }
    bytes.len() - rest.len()
}

/// Sets the high bit of each byte that ends the run. Bits above the lowest one may be wrong, because a borrow
/// runs upwards.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn marks<const STOPS: u8>(word: &[u8; WORD]) -> usize {
    let word = usize::from_le_bytes(*word);
    let quote = word ^ (LOW * b'"' as usize);
    let slash = word ^ (LOW * b'\\' as usize);
    let quotes = quote.wrapping_sub(LOW) & !quote;
    let slashes = slash.wrapping_sub(LOW) & !slash;
    let controls = if STOPS >= CONTROLS { word.wrapping_sub(LOW * 0x20) & !word } else { 0 };
    let wide = if STOPS >= WIDE { word } else { 0 };
    (quotes | slashes | controls | wide) & HIGH
}

/// Returns the index of the byte with the lowest mark.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn lowest(marks: usize) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// Returns whether there is a backslash.
pub(crate) fn has_backslash(bytes: &[u8]) -> bool {
    find(b'\\', bytes).is_some()
}

/// Returns the end of the decimal digits that start at `at`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(super) fn digits(bytes: &[u8], at: usize) -> usize {
    if SMALL {
        return at + bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((word, behind)) = rest.split_first_chunk() {
        // Digits become 0 to 9, all other bytes more; more than 9 carries into the high bit.
        let word = usize::from_le_bytes(*word) ^ (LOW * b'0' as usize);
        let others = (word.wrapping_add(LOW * (0x80 - 10)) | word) & HIGH;
        if others != 0 {
            return bytes.len() - rest.len() + lowest(others);
        }
        rest = behind;
    }
    while let Some((b'0'..=b'9', behind)) = rest.split_first() {
        rest = behind;
    }
    bytes.len() - rest.len()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    /// Miri runs some thousand times slower: it sees a few of the bytes.
    const STEP: usize = if cfg!(miri) { 61 } else { 1 };

    fn slow<const WIDE: bool>(bytes: &[u8], at: usize) -> usize {
        let stops = |&b: &u8| b < 0x20 || b == b'"' || b == b'\\' || (WIDE && b >= 0x80);
        bytes.iter().skip(at).position(stops).map_or(bytes.len(), |n| at + n)
    }

    #[test]
    fn searches_as_bytewise() {
        for len in (0..80).step_by(if cfg!(miri) { 13 } else { 1 }) {
            for byte in (0..=255u8).step_by(STEP) {
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

    /// Compares with a plain search: every byte at every position of texts shorter and longer than a block.
    #[test]
    fn as_bytewise() {
        let lens: &[usize] = if cfg!(miri) { &[7, 17, 33] } else { &[0, 1, 7, 8, 15, 16, 17, 31, 33, 70, 150] };
        for &len in lens {
            for place in (0..len).step_by(if cfg!(miri) { 9 } else { 1 }) {
                for byte in (0..=255u8).step_by(STEP) {
                    let mut text = vec![b'x'; len];
                    if let Some(b) = text.get_mut(place) {
                        *b = byte;
                    }
                    // A second byte after it must not change the lowest mark.
                    if let Some(b) = text.get_mut(place + 1) {
                        *b = byte ^ 1;
                    }
                    for at in [0, 1, place] {
                        let ends = |&b: &u8| b == b'"' || b == b'\\';
                        let end = text.iter().skip(at).position(ends).map_or(len.max(at), |n| at + n);
                        assert_eq!(super::end(&text, at), end);
                        // The way of small machines, on all machines.
                        assert_eq!(super::bytewise(&text, at, super::ENDS), end);
                        assert_eq!(super::bytewise(&text, at, super::WIDE), slow::<true>(&text, at));
                        assert_eq!(super::bytewise(&text, at, super::CONTROLS), slow::<false>(&text, at));
                        let first = super::first::<{ super::WIDE }>(&text, at);
                        assert_eq!(super::next::<{ super::WIDE }>(&text, first), slow::<true>(&text, at));
                        assert_eq!(super::next::<{ super::WIDE }>(&text, at), slow::<true>(&text, at));
                        let first = super::first::<{ super::CONTROLS }>(&text, at);
                        assert_eq!(super::next::<{ super::CONTROLS }>(&text, first), slow::<false>(&text, at));
                        assert_eq!(super::next::<{ super::CONTROLS }>(&text, at), slow::<false>(&text, at));
                    }
                }
            }
        }
    }
}
