//! One string of a message, with its escapes.

use super::{run, utf8};
use crate::search::{SMALL, find};
use crate::sink::copy;
use core::fmt::{self, Write};

/// A string of a message: the bytes between its quotes, with the escapes of JSON.
///
/// Two are equal if they decode to the same characters.
///
/// ```
/// use mcp_sansio::json::Raw;
/// let name = Raw::parse(br#""caf\u00e9""#)?.text().expect("a string");
/// assert!(name.eq_str("café"));
/// assert_eq!(name.plain(), None); // it has an escape
/// assert_eq!(name.decode(&mut [0; 16]), Ok("café"));
/// # Ok::<(), mcp_sansio::json::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a [u8],
    /// Says that there is a backslash, if that is [stored](NOTED).
    escaped: [bool; NOTED],
}

/// Says whether a text stores that it has escapes, 1 or 0. Small machines search for a backslash again: without the
/// flag the text fits into two registers.
// Fork: 620 bytes of flash (uart, tools only), with all that looks at it.
const NOTED: usize = !SMALL as usize;

impl<'a> Text<'a> {
    /// The empty string.
    pub const EMPTY: Text<'static> = Text::new(b"", false);

    /// Makes a text of the bytes between the quotes of a scanned string; `escaped` means that they have a
    /// backslash.
    pub(crate) const fn new(raw: &'a [u8], escaped: bool) -> Self {
        Text { raw, escaped: [escaped; NOTED] }
    }

    /// Does the same as [`new`](Self::new), and looks for a backslash.
    pub(crate) fn from_raw(raw: &'a [u8]) -> Self {
        Text::new(raw, !SMALL && run::has_backslash(raw))
    }

    /// Returns the bytes between the quotes: UTF-8 with the escapes of JSON.
    #[inline]
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns whether it has escapes.
    #[inline]
    #[must_use]
    pub const fn is_escaped(&self) -> bool {
        match self.escaped.first() {
            Some(escaped) => *escaped,
            None => looks_escaped(self.raw),
        }
    }

    /// Returns whether it decodes to `other`.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[must_use]
    pub fn eq_str(&self, other: &str) -> bool {
        self.is_bytes(other.as_bytes())
    }

    /// Does the same as [`is`](Self::is) for the bytes of a `str`.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) fn is_bytes(&self, other: &[u8]) -> bool {
        if !SMALL {
            return if self.is_escaped() { self.is_decoded(other) } else { self.raw == other };
        }
        // Small machines always decode, but only after the bytes that are equal without it.
        let pairs = self.raw.iter().zip(other);
        let same = pairs.take_while(|(byte, other)| byte == other && **byte != b'\\').count();
        let behind = Text::new(self.raw.get(same..).unwrap_or_default(), true);
        behind.is_decoded(other.get(same..).unwrap_or_default())
    }

    #[cold]
    fn is_decoded(&self, other: &[u8]) -> bool {
        let (mut decode, mut rest) = (self.decoder(), other);
        while let Some(code) = decode.code() {
            match utf8::first(rest) {
                Some((character, len)) if u32::from(character) == code => rest = rest.get(len..).unwrap_or_default(),
                _ => return false,
            }
        }
        rest.is_empty()
    }

    /// Returns whether both decode to the same characters. Lone surrogates are equal only to themselves.
    #[must_use]
    pub fn same(&self, other: &Text<'_>) -> bool {
        let escaped = SMALL || self.is_escaped() || other.is_escaped();
        if escaped { self.decoder().codes().eq(other.decoder().codes()) } else { self.raw == other.raw }
    }

    /// Returns the string if it has no escapes.
    #[must_use]
    pub fn plain(&self) -> Option<&'a str> {
        if self.is_escaped() { None } else { core::str::from_utf8(self.raw).ok() }
    }

    /// Returns its characters, decoded one by one; [`DecodeError::Surrogate`] for a lone surrogate.
    pub fn chars(&self) -> impl Iterator<Item = Result<char, DecodeError>> + Clone + use<'a> {
        self.decoder()
    }

    const fn decoder(&self) -> Decode<'a> {
        Decode { raw: self.raw }
    }

    /// Returns its length when decoded, in bytes; `None` if it has a lone surrogate.
    #[must_use]
    pub fn decoded_len(&self) -> Option<usize> {
        if !SMALL && !self.is_escaped() {
            return Some(self.raw.len());
        }
        self.decoder().codes().try_fold(0, |sum, code| Some(sum + char::from_u32(code)?.len_utf8()))
    }

    /// Returns the decoded string. Text without escapes is borrowed; other text is written to `scratch`, for
    /// which the length of [`raw`](Self::raw) is always enough.
    ///
    /// # Errors
    /// [`DecodeError::Room`] if `scratch` is too small, [`DecodeError::Surrogate`] if there is a lone
    /// surrogate.
    pub fn decode<'s>(&self, scratch: &'s mut [u8]) -> Result<&'s str, DecodeError>
    where
        'a: 's,
    {
        let bytes = if self.is_escaped() {
            let len = self.decode_into(scratch)?;
            scratch.get(..len).unwrap_or_default()
        } else {
            self.raw
        };
        // The scanner has checked it.
        Ok(core::str::from_utf8(bytes).unwrap_or_default())
    }

    /// Decodes into the front of `scratch`. Returns the number of bytes.
    pub(super) fn decode_into(&self, scratch: &mut [u8]) -> Result<usize, DecodeError> {
        let mut rest = self.raw;
        let mut len = 0;
        loop {
            let plain = find(b'\\', rest).unwrap_or(rest.len());
            let (run, escape) = rest.split_at_checked(plain).unwrap_or_default();
            len += append(scratch, len, run)?;
            if escape.is_empty() {
                return Ok(len);
            }
            let mut decode = Decode { raw: escape };
            let Some(c) = decode.next() else { return Ok(len) };
            len += append(scratch, len, c?.encode_utf8(&mut [0; 4]).as_bytes())?;
            rest = decode.raw;
        }
    }
}

/// The characters with an escape of a backslash and a letter, each after its letter; frequent ones first.
pub(super) const SHORT: [[u8; 2]; 8] = [*b"\"\"", *b"\\\\", *b"n\n", *b"t\t", *b"r\r", *b"b\x08", *b"f\x0c", *b"//"];

/// Returns the character for a letter after a backslash; 0 if the letter has no meaning alone.
#[cfg_attr(target_pointer_width = "64", inline)]
pub(super) fn meaning(letter: u8) -> u8 {
    SHORT.iter().find(|short| short[0] == letter).map_or(0, |short| short[1])
}

/// Returns whether there is a backslash. This is a `const fn`, and only small machines call it at run time.
const fn looks_escaped(mut raw: &[u8]) -> bool {
    while let [byte, behind @ ..] = raw {
        if *byte == b'\\' {
            return true;
        }
        raw = behind;
    }
    false
}

fn append(to: &mut [u8], at: usize, from: &[u8]) -> Result<usize, DecodeError> {
    let place = to.get_mut(at..).and_then(|free| free.get_mut(..from.len())).ok_or(DecodeError::Room)?;
    copy(place, from);
    Ok(from.len())
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for Text<'_> {}

/// Writes the text decoded; a lone surrogate becomes U+FFFD.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.plain() {
            Some(plain) => f.write_str(plain),
            None => self.chars().try_for_each(|c| f.write_char(c.unwrap_or(char::REPLACEMENT_CHARACTER))),
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&core::str::from_utf8(self.raw).unwrap_or("not UTF-8")).finish()
    }
}

crate::error_enum! {
    /// The reason why a [`Text`] was not decoded.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    DecodeError {
        /// The scratch space is too small.
        Room => "the text is larger than the space to decode it",
        /// The text has a lone surrogate, which no `str` can hold.
        Surrogate => "the text has a lone surrogate",
    }
}

/// The characters of a [`Text`], see [`Text::chars`].
#[derive(Clone, Debug)]
struct Decode<'a> {
    raw: &'a [u8],
}

impl Iterator for Decode<'_> {
    type Item = Result<char, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let code = self.code()?;
        // A number that is no character is a surrogate.
        Some(char::from_u32(code).ok_or(DecodeError::Surrogate))
    }
}

impl Decode<'_> {
    /// Returns all characters and lone surrogates as numbers, which fit into registers.
    fn codes(mut self) -> impl Iterator<Item = u32> {
        core::iter::from_fn(move || self.code())
    }

    /// Returns the next character or lone surrogate as a number.
    fn code(&mut self) -> Option<u32> {
        let (character, len) = utf8::first(self.raw)?;
        self.raw = self.raw.get(len..).unwrap_or_default();
        if character == '\\' { self.escape() } else { Some(character.into()) }
    }

    /// Reads the rest of an escape, after its backslash.
    fn escape(&mut self) -> Option<u32> {
        let (&kind, rest) = self.raw.split_first()?;
        self.raw = rest;
        match meaning(kind) {
            0 if kind == b'u' => self.unicode(),
            0 => None,
            byte => Some(byte.into()),
        }
    }

    /// Reads the rest of an escape, after `\u`.
    fn unicode(&mut self) -> Option<u32> {
        let unit = self.hex()?;
        let mut behind = Decode { raw: self.raw };
        let Some(pair) = behind.low(unit) else { return Some(unit) };
        self.raw = behind.raw;
        Some(pair)
    }

    /// Returns the character with the first half `high` if its second half is next.
    fn low(&mut self, high: u32) -> Option<u32> {
        self.raw = self.raw.strip_prefix(b"\\u")?;
        let low = self.hex()?;
        // Each half has ten bits. Two numbers that are not both halves make no character.
        let halves = high >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10;
        halves.then_some(0x10000 + ((high & 0x3ff) << 10 | low & 0x3ff))
    }

    fn hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.raw.split_at_checked(4)?;
        self.raw = rest;
        digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Scanner;

    fn text(json: &str) -> Text<'_> {
        Scanner::new(json.as_bytes()).string().unwrap()
    }

    #[test]
    fn decodes_every_escape() {
        let t = text(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0041€😀""#);
        let expected = "a\"\\/\u{8}\u{c}\n\r\té😀A€😀";
        assert!(t.eq_str(expected));
        assert!(!t.eq_str("a"));
        assert_eq!(t.plain(), None);
        assert_eq!(t.decoded_len(), Some(expected.len()));
        let mut scratch = [0; 64];
        assert_eq!(t.decode(&mut scratch), Ok(expected));
        assert_eq!(t.decode(scratch.get_mut(..expected.len()).unwrap()), Ok(expected));
        assert_eq!(t.decode(scratch.get_mut(..expected.len() - 1).unwrap()), Err(DecodeError::Room));
    }

    #[test]
    fn plain_text_needs_no_scratch() {
        let t = text(r#""plain é""#);
        assert_eq!(t.plain(), Some("plain é"));
        assert_eq!(t.decode(&mut []), Ok("plain é"));
        assert_eq!(t.decoded_len(), Some(8));
        assert!(t.eq_str("plain é") && !t.eq_str("plain"));
    }

    #[test]
    fn lone_surrogates() {
        for json in
            [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800x""#, r#""\ud800\n""#, r#""x\ud800\u0041""#]
        {
            let t = text(json);
            assert_eq!(t.decoded_len(), None, "{json}");
            assert_eq!(t.decode(&mut [0; 32]), Err(DecodeError::Surrogate), "{json}");
            assert!(t.same(&t));
        }
        let mut chars = text(r#""\ud800\ud83d\ude00\udc00a""#).chars();
        assert_eq!(chars.next(), Some(Err(DecodeError::Surrogate)));
        assert_eq!(chars.next(), Some(Ok('😀')));
        assert_eq!(chars.next(), Some(Err(DecodeError::Surrogate)));
        assert_eq!(chars.next(), Some(Ok('a')));
        assert_eq!(chars.next(), None);
        assert!(!text(r#""\ud800""#).same(&text(r#""\ud801""#)));
    }

    #[test]
    fn equal_when_decoded() {
        assert_eq!(text(r#""m\u0065thod""#), text(r#""method""#));
        assert_eq!(text(r#""\u0065\/""#), text(r#""e/""#));
        assert_ne!(text(r#""e\n""#), text(r#""e""#));
        assert!(Text::from_raw(br"\n").eq_str("\n"));
        assert!(Text::from_raw(b"n").eq_str("n"));
    }

    /// The texts differ at different places: within a character, at an escape, at the end of one of them.
    #[test]
    fn unequal_wherever_they_part() {
        let texts = ["", "é", "è", "日本", "日木", "日", "a\\nb", "a\nb", "a", "ab", "\\", "\"", "\u{e9}e"];
        for one in texts {
            let plain = std::format!("\"{}\"", one.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
            let escaped: std::string::String = one.encode_utf16().map(|unit| std::format!("\\u{unit:04x}")).collect();
            let escaped = std::format!("\"{escaped}\"");
            for other in texts {
                assert_eq!(text(&plain).eq_str(other), one == other, "{plain} {other:?}");
                assert_eq!(text(&escaped).eq_str(other), one == other, "{escaped} {other:?}");
            }
        }
    }

    /// Bytes that no scanner accepts end the iteration.
    #[test]
    fn impossible_bytes_do_no_harm() {
        for raw in [&b"\\"[..], b"\\u12", b"\\uzzzz", b"\xff", b"\xe2\x82", b"\x80\x80\x80\x80", b"\\ud800\\u1"] {
            let t = Text::from_raw(raw);
            assert!(t.chars().count() <= raw.len());
            let _ = t.decode(&mut [0; 16]);
            let _ = t.decoded_len();
        }
    }
}
