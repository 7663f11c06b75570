//! Writes JSON into a [`Sink`].
//!
//! Each function can fail with [`FullError`] after it has written a part. The caller takes that part back, as
//! [`whole`](crate::sink::whole) does.

use super::text::SHORT;
use super::{Raw, Text, run};
use crate::search::find_of_two;
use crate::sink::{FullError, Sink, Writer};
use core::fmt;

/// Writes `text` as the content of a string: with escapes, without quotes.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn escape<W: Sink + ?Sized>(out: &mut W, text: &str) -> Result<(), FullError> {
    escape_bytes(out, text.as_bytes())
}

/// Returns whether `text` needs no escape.
pub(crate) const fn is_plain(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
            return false;
        }
        rest = behind;
    }
    true
}

/// Does the same as [`escape`]. The bytes may be any part of UTF-8 text.
pub(crate) fn escape_bytes<W: Sink + ?Sized>(out: &mut W, bytes: &[u8]) -> Result<(), FullError> {
    let mut rest = bytes;
    loop {
        let stop = run::next::<{ run::CONTROLS }>(rest, 0);
        let (plain, behind) = rest.split_at_checked(stop).unwrap_or_default();
        if !plain.is_empty() {
            out.put(plain)?;
        }
        let Some((&byte, behind)) = behind.split_first() else { return Ok(()) };
        out.put(escape_of(byte, &mut [0; 6]))?;
        rest = behind;
    }
}

/// Returns the escape of a byte below 0x20, a quote or a backslash.
fn escape_of(byte: u8, space: &mut [u8; 6]) -> &[u8] {
    let half = byte & 15;
    let digit = if half < 10 { b'0' + half } else { b'a' + half - 10 };
    *space = [b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit];
    match SHORT.iter().find(|short| short[1] == byte) {
        Some([letter, _]) => {
            space[1] = *letter;
            &space[..2]
        }
        None => space,
    }
}

/// Returns the length of `bytes` with escapes.
fn escaped_len(bytes: &[u8]) -> usize {
    let mut len = bytes.len();
    let mut at = run::next::<{ run::CONTROLS }>(bytes, 0);
    while let Some(&byte) = bytes.get(at) {
        len += escape_of(byte, &mut [0; 6]).len() - 1;
        at = run::next::<{ run::CONTROLS }>(bytes, at + 1);
    }
    len
}

/// Writes `text` as a string, with quotes.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn string<W: Sink + ?Sized>(out: &mut W, text: &str) -> Result<(), FullError> {
    out.put(b"\"")?;
    escape(out, text)?;
    out.put(b"\"")
}

/// Formats `value` and writes it as the content of a string: with escapes, without quotes.
///
/// # Errors
/// [`FullError`] if it does not fit; [`FullError::Never`] if the `Display` fails for its own reason.
pub fn display<W: Sink + ?Sized>(out: &mut W, value: impl fmt::Display) -> Result<(), FullError> {
    let mut out = Escape::new(out);
    match fmt::write(&mut out, format_args!("{value}")) {
        Ok(()) => Ok(()),
        Err(fmt::Error) => Err(out.full().unwrap_or(FullError::Never)),
    }
}

/// Escapes everything that is written through it, as the content of a string. The caller writes the quotes.
///
/// It is a [`fmt::Write`], for `write!`: after a [`fmt::Error`], [`full`](Self::full) returns the [`FullError`] that
/// caused it. ([`display`] does both.) It is also a [`Sink`], for JSON inside a string.
#[derive(Debug)]
pub(crate) struct Escape<'w, W: ?Sized> {
    out: &'w mut W,
    full: Option<FullError>,
}

impl<'w, W: ?Sized> Escape<'w, W> {
    /// Makes an escaper over `out`.
    pub(crate) const fn new(out: &'w mut W) -> Self {
        Escape { out, full: None }
    }

    /// Returns the cause of the last [`fmt::Error`] if the sink was the cause.
    #[must_use]
    pub(crate) const fn full(&self) -> Option<FullError> {
        self.full
    }
}

impl<W: Sink + ?Sized> fmt::Write for Escape<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.out, text).map_err(|full| {
            self.full = Some(full);
            fmt::Error
        })
    }
}

/// The length of the longest escape of a byte.
const LONGEST: usize = 6;

impl<W: Sink + ?Sized> Sink for Escape<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        // All or nothing. The exact length is only counted if the bytes might not fit.
        let room = self.out.room();
        if bytes.len() > room / LONGEST && escaped_len(bytes) > room {
            return Err(FullError::Now);
        }
        escape_bytes(self.out, bytes)
    }

    fn room(&self) -> usize {
        match self.out.room() {
            usize::MAX => usize::MAX,
            room => room / LONGEST,
        }
    }
}

/// Returns the decimal digits of `value`, written into `space`.
pub fn digits(mut value: u64, space: &mut [u8; 20]) -> &[u8] {
    let mut start = space.len();
    for place in space.iter_mut().rev() {
        let (tenth, digit) = super::number::tenth(value);
        *place = b'0' + digit;
        value = tenth;
        start -= 1;
        if value == 0 {
            break;
        }
    }
    space.get(start..).unwrap_or_default()
}

/// Writes an unsigned number.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn unsigned<W: Sink + ?Sized>(out: &mut W, value: u64) -> Result<(), FullError> {
    out.put(digits(value, &mut [0; 20]))
}

/// Writes a signed number.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn signed<W: Sink + ?Sized>(out: &mut W, value: i64) -> Result<(), FullError> {
    if value < 0 {
        out.put(b"-")?;
    }
    unsigned(out, value.unsigned_abs())
}

/// Writes a value unchanged, except that newlines between its tokens become spaces. With a newline, a value
/// from a message could end a line, or forge the fields of a server-sent event.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn raw<W: Sink + ?Sized>(out: &mut W, value: Raw<'_>) -> Result<(), FullError> {
    one_line(out, value.as_bytes())
}

/// Does the same as [`raw()`] for the inside of an object.
pub(crate) fn one_line<W: Sink + ?Sized>(out: &mut W, json: &[u8]) -> Result<(), FullError> {
    let mut rest = json;
    while let Some(newline) = find_of_two(b'\n', b'\r', rest) {
        let (line, behind) = rest.split_at_checked(newline).unwrap_or_default();
        out.put(line)?;
        out.put(b" ")?;
        rest = behind.get(1..).unwrap_or_default();
    }
    out.put(rest)
}

/// Writes a string of a message with the escapes that it has, in quotes.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn text<W: Sink + ?Sized>(out: &mut W, text: Text<'_>) -> Result<(), FullError> {
    out.put(b"\"")?;
    out.put(text.raw())?;
    out.put(b"\"")
}

/// These writers into a message under way: [`whole`](crate::sink::whole) reports what did not fit.
impl Writer<'_> {
    /// Writes a string with escapes and without quotes, see [`escape`].
    pub(crate) fn escape(&mut self, text: &str) {
        self.write(|out| escape(out, text));
    }

    /// Writes a string with escapes and quotes, see [`string`].
    pub fn string(&mut self, text: &str) {
        self.write(|out| string(out, text));
    }

    /// Writes the text of a value with escapes and without quotes, see [`display`].
    pub(crate) fn display(&mut self, value: impl fmt::Display) {
        self.write(|out| display(out, value));
    }

    /// Writes a value unchanged, on one line, see [`raw()`].
    pub(crate) fn raw(&mut self, value: Raw<'_>) {
        self.write(|out| raw(out, value));
    }

    /// Writes an unsigned number.
    pub(crate) fn unsigned(&mut self, value: u64) {
        self.write(|out| unsigned(out, value));
    }

    /// Writes a signed number.
    pub(crate) fn signed(&mut self, value: i64) {
        self.write(|out| signed(out, value));
    }

    /// Writes a number with decimal places.
    pub(crate) fn decimal(&mut self, value: Decimal) {
        self.write(|out| decimal(out, value));
    }

    /// Writes bytes as base64 without quotes, see [`base64`].
    pub(crate) fn base64(&mut self, bytes: &[u8]) {
        self.write(|out| base64(out, bytes));
    }
}

/// Decodes strict base64 into `bytes`: the standard alphabet, padded, no other characters. Returns the number
/// of decoded bytes; `None` if `text` is not base64 or does not fit.
#[must_use]
pub fn decode_base64(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let (mut len, mut groups) = (0, text.chunks(4).peekable());
    while let Some(group) = groups.next() {
        let padding = group.iter().rev().take_while(|&&byte| byte == b'=').count();
        if padding > 2 || (padding > 0 && groups.peek().is_some()) {
            return None;
        }
        let digits = group.get(..4 - padding)?;
        let bits = digits.iter().try_fold(0u32, |bits, &digit| Some(bits << 6 | digit_value(digit)?))? << (6 * padding);
        let [_, group @ ..] = bits.to_be_bytes();
        let given = group.get(..3 - padding)?;
        if group.iter().skip(given.len()).any(|&byte| byte != 0) {
            return None;
        }
        crate::sink::copy(bytes.get_mut(len..)?.get_mut(..given.len())?, given);
        len += given.len();
    }
    Some(len)
}

fn digit_value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Writes `bytes` as base64: the standard alphabet, padded, without quotes.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn base64<W: Sink + ?Sized>(out: &mut W, bytes: &[u8]) -> Result<(), FullError> {
    const GROUPS: usize = 16;
    for chunk in bytes.chunks(3 * GROUPS) {
        let mut space = [0; 4 * GROUPS];
        let mut len = 0;
        // No zip of chunks: built for size, the compiler keeps a division for their count, which can panic.
        for triple in chunk.chunks(3) {
            if let Some(place) = space.get_mut(len..) {
                crate::sink::copy(place, &base64_group(triple));
            }
            len += 4;
        }
        out.put(space.get(..len).unwrap_or_default())?;
    }
    Ok(())
}

/// Writes `bytes` as base64url ([RFC 4648, section 5](https://www.rfc-editor.org/rfc/rfc4648#section-5)): the
/// alphabet for URLs, without padding and without quotes.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn base64url<W: Sink + ?Sized>(out: &mut W, bytes: &[u8]) -> Result<(), FullError> {
    for triple in bytes.chunks(3) {
        let group = base64_group(triple).map(|digit| match digit {
            b'+' => b'-',
            b'/' => b'_',
            digit => digit,
        });
        out.put(group.get(..=triple.len()).unwrap_or_default())?;
    }
    Ok(())
}

/// Decodes strict base64url into `bytes`: the alphabet for URLs, no padding, no other characters, and only one text
/// for the same bytes. Returns the number of decoded bytes; `None` if `text` is not base64url or does not fit.
#[must_use]
pub fn decode_base64url(text: &[u8], bytes: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    for group in text.chunks(4) {
        let bits = group.iter().try_fold(0u32, |bits, &digit| {
            let standard = match digit {
                b'-' => b'+',
                b'_' => b'/',
                b'+' | b'/' => return None,
                digit => digit,
            };
            Some(bits << 6 | digit_value(standard)?)
        })? << (6 * (4 - group.len()));
        let [_, decoded @ ..] = bits.to_be_bytes();
        // One character alone has no whole byte.
        let given = decoded.get(..group.len() - 1).filter(|given| !given.is_empty())?;
        if decoded.iter().skip(given.len()).any(|&byte| byte != 0) {
            return None;
        }
        crate::sink::copy(bytes.get_mut(len..)?.get_mut(..given.len())?, given);
        len += given.len();
    }
    Some(len)
}

/// Returns the four characters for one to three bytes.
fn base64_group(bytes: &[u8]) -> [u8; 4] {
    let byte = |n: usize| u32::from(bytes.get(n).copied().unwrap_or_default());
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let digit = |n: usize, shift: u32| if n <= bytes.len() { base64_digit((bits >> shift & 63) as u8) } else { b'=' };
    [digit(0, 18), digit(1, 12), digit(2, 6), digit(3, 0)]
}

fn base64_digit(value: u8) -> u8 {
    match value {
        0..26 => b'A' + value,
        26..52 => b'a' + (value - 26),
        52..62 => b'0' + (value - 52),
        62 => b'+',
        _ => b'/',
    }
}

/// A number with decimal places, written without floating point: `Decimal::new(215, 1)` is `21.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Decimal {
    value: i64,
    places: u8,
}

impl Decimal {
    /// Makes `value` divided by ten to the power of `places`.
    #[must_use]
    pub const fn new(value: i64, places: u8) -> Self {
        Decimal { value, places }
    }

    /// Passes its text to `put`, in pieces.
    fn pieces<E>(&self, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut space = [0; 20];
        let digits = digits(self.value.unsigned_abs(), &mut space);
        let places = usize::from(self.places);
        let (whole, fraction) = digits.split_at_checked(digits.len().saturating_sub(places)).unwrap_or_default();
        if self.value < 0 {
            put(b"-")?;
        }
        put(if whole.is_empty() { b"0" } else { whole })?;
        if places > 0 {
            put(b".")?;
            for _ in fraction.len()..places {
                put(b"0")?;
            }
            put(fraction)?;
        }
        Ok(())
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces(|piece| f.write_str(core::str::from_utf8(piece).unwrap_or_default()))
    }
}

/// Writes a number with decimal places.
///
/// # Errors
/// [`FullError`] if it does not fit.
pub fn decimal<W: Sink + ?Sized>(out: &mut W, value: Decimal) -> Result<(), FullError> {
    value.pieces(|piece| out.put(piece))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::fmt::Write;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// A sink that grows up to a limit.
    struct Limited(Vec<u8>, usize);

    impl Sink for Limited {
        fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
            if bytes.len() > self.room() {
                return Err(FullError::Now);
            }
            self.0.extend(bytes);
            Ok(())
        }
        fn room(&self) -> usize {
            self.1 - self.0.len()
        }
    }

    fn written(write: impl FnOnce(&mut dyn Sink) -> Result<(), FullError>) -> String {
        let mut out = Limited(Vec::new(), 1 << 20);
        write(&mut out).unwrap();
        String::from_utf8(out.0).unwrap()
    }

    #[test]
    fn strings_as_serde_json() {
        let mut all: String = (0..0x300).filter_map(char::from_u32).collect();
        all.push_str(
            "😀 and a long plain run of text behind it, \"quoted\" and \\ more than two blocks \u{7f}\u{2028}",
        );
        for text in ["", "a", "\"", "\n", "plain text of more than sixteen bytes", all.as_str()] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(written(|out| string(out, text)), json);
            let body = json.get(1..json.len() - 1).unwrap();
            assert_eq!(written(|out| escape(out, text)), body);
            assert_eq!(written(|out| display(out, text)), body);
            assert_eq!(written(|out| write!(Escape::new(out), "{text}").map_err(|_| FullError::Now)), body);
            assert_eq!(written(|out| Escape::new(out).put(text.as_bytes())), body);
            assert_eq!(escaped_len(text.as_bytes()), body.len());
        }
    }

    #[test]
    fn a_full_sink_is_remembered() {
        let mut out = Limited(Vec::new(), 3);
        assert_eq!(display(&mut out, "abcd"), Err(FullError::Now));
        let mut escape = Escape::new(&mut out);
        assert_eq!(escape.room(), 0);
        assert_eq!(escape.put(b"\n\n"), Err(FullError::Now));
        assert_eq!(escape.put(b"\na"), Ok(()));
        assert_eq!(out.0, b"\\na");
        struct Fails;
        impl fmt::Display for Fails {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                Err(fmt::Error)
            }
        }
        assert_eq!(display(&mut out, Fails), Err(FullError::Never));
    }

    #[test]
    fn numbers() {
        for value in [0, 1, 9, 10, 12345, u64::MAX] {
            assert_eq!(written(|out| unsigned(out, value)), value.to_string());
        }
        for value in [0, -1, 99, i64::MIN, i64::MAX] {
            assert_eq!(written(|out| signed(out, value)), value.to_string());
        }
    }

    #[test]
    fn decimals() {
        let cases = [
            (215, 1, "21.5"),
            (-215, 1, "-21.5"),
            (5, 0, "5"),
            (0, 2, "0.00"),
            (5, 3, "0.005"),
            (-5, 1, "-0.5"),
            (100, 2, "1.00"),
            (i64::MIN, 19, "-0.9223372036854775808"),
        ];
        for (value, places, text) in cases {
            assert_eq!(Decimal::new(value, places).to_string(), text);
            assert_eq!(written(|out| decimal(out, Decimal::new(value, places))), text);
        }
        assert_eq!(Decimal::new(1, 255).to_string().len(), 257);
    }

    #[test]
    fn raw_stays_on_its_line() {
        let clean = Raw::parse(b"{\"a\\n\": 1}").unwrap();
        assert_eq!(written(|out| raw(out, clean)), "{\"a\\n\": 1}");
        let pretty = Raw::parse(b"{\r\n\t\"a\": 1\n}").unwrap();
        assert_eq!(written(|out| raw(out, pretty)), "{  \t\"a\": 1 }");
        assert_eq!(written(|out| text(out, Text::from_raw(b"a\\n"))), "\"a\\n\"");
    }

    #[test]
    fn base64_vectors() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (bytes, text) in cases {
            assert_eq!(written(|out| base64(out, bytes.as_bytes())), text);
        }
        assert_eq!(written(|out| base64(out, &[0xfb, 0xff, 0xfe])), "+//+");
        // More than one chunk, with each length.
        let bytes: Vec<u8> = (0..200).map(|n| (n * 7) as u8).collect();
        for len in (0..bytes.len()).step_by(if cfg!(miri) { 41 } else { 1 }) {
            let whole = written(|out| base64(out, bytes.get(..len).unwrap()));
            let parts = bytes.get(..len).unwrap().chunks(3).map(|part| written(|out| base64(out, part)));
            assert_eq!(whole, parts.collect::<String>());
        }
    }

    #[test]
    fn base64url_vectors() {
        let cases: [(&[u8], &str); 7] = [
            (b"", ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
            // RFC 7515, appendix C.
            (&[3, 236, 255, 224, 193], "A-z_4ME"),
        ];
        for (bytes, text) in cases {
            assert_eq!(written(|out| base64url(out, bytes)), text);
            let mut space = [0; 8];
            let len = decode_base64url(text.as_bytes(), &mut space).unwrap();
            assert_eq!(space.get(..len), Some(bytes));
        }
        for bad in ["Z", "Zg==", "Zh", "Zm9", "+__+", "/___", "Zm 9", "Zm9vZ", "\u{e9}"] {
            assert_eq!(decode_base64url(bad.as_bytes(), &mut [0; 8]), None, "{bad}");
        }
        assert_eq!(decode_base64url(b"Zm9v", &mut [0; 2]), None);
    }
}
