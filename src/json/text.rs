//! One string of a message, as it stands between its quotes.

use super::{run, utf8};
use crate::sink::copy;
use crate::small::{SMALL, find};
use core::fmt::{self, Write};

/// A string of a message: what stands between its quotes, escapes and all.
///
/// Two are equal if they decode to the same characters.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    raw: &'a [u8],
    /// Whether there is a backslash, if that was [noted](NOTED).
    escaped: [bool; NOTED],
}

/// Whether a text keeps in mind that it has escapes, 1 or 0. Small machines look again: without, it goes into two
/// registers instead of memory.
const NOTED: usize = !SMALL as usize;

impl<'a> Text<'a> {
    /// The empty string.
    pub const EMPTY: Text<'static> = Text::new(b"", false);

    /// What lies between the quotes of a string that was scanned; `escaped` says whether a backslash is in it.
    pub(crate) const fn new(raw: &'a [u8], escaped: bool) -> Self {
        Text { raw, escaped: [escaped; NOTED] }
    }

    /// As [`new`](Self::new), looking for a backslash.
    pub(crate) fn from_raw(raw: &'a [u8]) -> Self {
        Text::new(raw, !SMALL && run::has_backslash(raw))
    }

    /// The bytes between the quotes: UTF-8 with the escapes of JSON.
    #[inline]
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether it has escapes.
    #[inline]
    #[must_use]
    pub const fn is_escaped(&self) -> bool {
        match self.escaped.first() {
            Some(escaped) => *escaped,
            None => looks_escaped(self.raw),
        }
    }

    /// Whether it decodes to `other`.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[must_use]
    pub fn is(&self, other: &str) -> bool {
        self.is_bytes(other.as_bytes())
    }

    /// As [`is`](Self::is), for the bytes of a `str`.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) fn is_bytes(&self, other: &[u8]) -> bool {
        if !SMALL {
            return if self.is_escaped() { self.is_decoded(other) } else { self.raw == other };
        }
        // Where room counts, the longer way serves all, behind what is the same as it stands.
        let pairs = self.raw.iter().zip(other);
        let same = pairs.take_while(|(byte, other)| byte == other && **byte != b'\\').count();
        let behind = Text::new(self.raw.get(same..).unwrap_or_default(), true);
        behind.is_decoded(other.get(same..).unwrap_or_default())
    }

    #[cold]
    fn is_decoded(&self, other: &[u8]) -> bool {
        let (mut decode, mut rest) = (self.chars(), other);
        while let Some(code) = decode.code() {
            match utf8::first(rest) {
                Some((character, len)) if u32::from(character) == code => rest = rest.get(len..).unwrap_or_default(),
                _ => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether both decode to the same; lone surrogates are equal only to themselves.
    #[must_use]
    pub fn same(&self, other: &Text<'_>) -> bool {
        let escaped = SMALL || self.is_escaped() || other.is_escaped();
        if escaped { self.chars().codes().eq(other.chars().codes()) } else { self.raw == other.raw }
    }

    /// The string itself if it has no escapes.
    #[must_use]
    pub fn plain(&self) -> Option<&'a str> {
        if self.is_escaped() { None } else { core::str::from_utf8(self.raw).ok() }
    }

    /// Its characters, decoded one by one.
    #[must_use]
    pub const fn chars(&self) -> Decode<'a> {
        Decode { raw: self.raw }
    }

    /// How many bytes it has when decoded; `None` if there is a lone surrogate.
    #[must_use]
    pub fn decoded_len(&self) -> Option<usize> {
        if !SMALL && !self.is_escaped() {
            return Some(self.raw.len());
        }
        self.chars().codes().try_fold(0, |sum, code| Some(sum + char::from_u32(code)?.len_utf8()))
    }

    /// The string, decoded. Text without escapes is handed out as it stands; the other is written to `scratch`,
    /// for which the length of [`raw`](Self::raw) is always enough.
    ///
    /// # Errors
    /// [`DecodeError::Room`] if `scratch` is too small, [`DecodeError::Surrogate`] if half a character was escaped.
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
        // It was checked when it was scanned.
        Ok(core::str::from_utf8(bytes).unwrap_or_default())
    }

    /// Decodes into the front of `scratch`; how many bytes that took.
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
            let c = c.map_err(|_| DecodeError::Surrogate)?;
            len += append(scratch, len, c.encode_utf8(&mut [0; 4]).as_bytes())?;
            rest = decode.raw;
        }
    }
}

/// What is escaped by a backslash and a letter, each behind that letter; the frequent ones first.
pub(super) const SHORT: [[u8; 2]; 8] = [*b"\"\"", *b"\\\\", *b"n\n", *b"t\t", *b"r\r", *b"b\x08", *b"f\x0c", *b"//"];

/// What a letter behind a backslash stands for; 0 for one that stands for nothing by itself.
#[cfg_attr(target_pointer_width = "64", inline)]
pub(super) fn meaning(letter: u8) -> u8 {
    SHORT.iter().find(|short| short[0] == letter).map_or(0, |short| short[1])
}

/// Whether there is a backslash. In a `const fn`, and no faster than small machines need it.
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

/// Decoded; a lone surrogate as U+FFFD.
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

/// Why a [`Text`] was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DecodeError {
    /// The scratch space is too small.
    Room,
    /// It has a lone surrogate, which no string can hold.
    Surrogate,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Room => "the text is larger than the space to decode it",
            DecodeError::Surrogate => "the text has a lone surrogate",
        })
    }
}

impl core::error::Error for DecodeError {}

/// Half a character, escaped without its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "there is no more to it")]
pub struct LoneSurrogate(pub u16);

/// The characters of a [`Text`], see [`Text::chars`].
#[derive(Clone, Debug)]
pub struct Decode<'a> {
    raw: &'a [u8],
}

impl Iterator for Decode<'_> {
    type Item = Result<char, LoneSurrogate>;

    fn next(&mut self) -> Option<Self::Item> {
        let code = self.code()?;
        // What is no character is half a one.
        Some(char::from_u32(code).ok_or(LoneSurrogate(code as u16)))
    }
}

impl Decode<'_> {
    /// All characters and lone surrogates, as numbers: those go through registers.
    fn codes(mut self) -> impl Iterator<Item = u32> {
        core::iter::from_fn(move || self.code())
    }

    /// The next character or lone surrogate, as its number.
    fn code(&mut self) -> Option<u32> {
        let (character, len) = utf8::first(self.raw)?;
        self.raw = self.raw.get(len..).unwrap_or_default();
        if character == '\\' { self.escape() } else { Some(character.into()) }
    }

    /// Behind a backslash.
    fn escape(&mut self) -> Option<u32> {
        let (&kind, rest) = self.raw.split_first()?;
        self.raw = rest;
        match meaning(kind) {
            0 if kind == b'u' => self.unicode(),
            0 => None,
            byte => Some(byte.into()),
        }
    }

    /// Behind `\u`.
    fn unicode(&mut self) -> Option<u32> {
        let unit = self.hex()?;
        let mut behind = Decode { raw: self.raw };
        let Some(pair) = behind.low(unit) else { return Some(unit) };
        self.raw = behind.raw;
        Some(pair)
    }

    /// The character of which `high` is the first half, if the second half is next.
    fn low(&mut self, high: u32) -> Option<u32> {
        self.raw = self.raw.strip_prefix(b"\\u")?;
        let low = self.hex()?;
        // Each half has ten bits; what is not a half makes no character.
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
        assert!(t.is(expected));
        assert!(!t.is("a"));
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
        assert!(t.is("plain é") && !t.is("plain"));
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
        assert_eq!(chars.next(), Some(Err(LoneSurrogate(0xd800))));
        assert_eq!(chars.next(), Some(Ok('😀')));
        assert_eq!(chars.next(), Some(Err(LoneSurrogate(0xdc00))));
        assert_eq!(chars.next(), Some(Ok('a')));
        assert_eq!(chars.next(), None);
        assert!(!text(r#""\ud800""#).same(&text(r#""\ud801""#)));
    }

    #[test]
    fn equal_when_decoded() {
        assert_eq!(text(r#""m\u0065thod""#), text(r#""method""#));
        assert_eq!(text(r#""\u0065\/""#), text(r#""e/""#));
        assert_ne!(text(r#""e\n""#), text(r#""e""#));
        assert!(Text::from_raw(br"\n").is("\n"));
        assert!(Text::from_raw(b"n").is("n"));
    }

    /// Wherever two part: within a character, at an escape, at the end of one of them.
    #[test]
    fn unequal_wherever_they_part() {
        let texts = ["", "é", "è", "日本", "日木", "日", "a\\nb", "a\nb", "a", "ab", "\\", "\"", "\u{e9}e"];
        for one in texts {
            let plain = std::format!("\"{}\"", one.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
            let escaped: std::string::String = one.encode_utf16().map(|unit| std::format!("\\u{unit:04x}")).collect();
            let escaped = std::format!("\"{escaped}\"");
            for other in texts {
                assert_eq!(text(&plain).is(other), one == other, "{plain} {other:?}");
                assert_eq!(text(&escaped).is(other), one == other, "{escaped} {other:?}");
            }
        }
    }

    /// Bytes that no scanner would let through end the iteration.
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
