//! The scanner: one pass, no recursion, everything checked.
//!
//! Inlined by force where that pays, on machines of 64 bits; on small ones it would only cost flash, an eighth of a
//! whole firmware.

use super::{Raw, Text, run};
use core::fmt;

/// The deepest nesting of arrays and objects that is accepted.
pub const DEPTH: u8 = 128;

/// What is wrong with some JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Against the grammar.
    Syntax,
    /// A string is not UTF-8.
    Utf8,
    /// Nested too deeply.
    Depth,
    /// It ends too early.
    End,
    /// Something follows the value.
    Trailing,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Syntax => "not JSON",
            Fault::Utf8 => "a string is not UTF-8",
            Fault::Depth => "nested too deeply",
            Fault::End => "the JSON ends too early",
            Fault::Trailing => "something follows the JSON value",
        })
    }
}

impl core::error::Error for Fault {}

/// A walk over one JSON text.
///
/// The caller descends by hand into the objects and arrays it knows ([`open`](Self::open), [`key`](Self::key),
/// [`open_array`](Self::open_array), [`element`](Self::element)) and skips all others as a whole
/// ([`value`](Self::value)); either way every byte is checked exactly once. After a [`Fault`] the position is where
/// it was found and the scanner is of no further use.
///
/// Lone surrogates (`"\ud800"`) are within the grammar; they are refused when the text is decoded.
///
/// ```
/// use mcp_sansio::json::{Fault, Scanner};
/// let mut scan = Scanner::new(br#"{"id": 7, "method": "ping"}"#);
/// let mut method = None;
/// scan.open()?;
/// let mut first = true;
/// while let Some(key) = scan.key(&mut first)? {
///     scan.space();
///     if key.is("method") { method = Some(scan.string()?) } else { scan.value()?; }
/// }
/// scan.end()?;
/// assert!(method.is_some_and(|m| m.is("ping")));
/// # Ok::<(), Fault>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
    max: u8,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `bytes`, with the depth limit [`DEPTH`].
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, depth: 0, max: DEPTH }
    }

    /// As [`new`](Self::new) with the depth limit `max`, which cannot be raised above [`DEPTH`].
    #[must_use]
    pub const fn with_depth(bytes: &'a [u8], max: u8) -> Self {
        let max = if max < DEPTH { max } else { DEPTH };
        Scanner { bytes, at: 0, depth: 0, max }
    }

    /// How many bytes lie behind the scanner.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Skips white space.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte, which stays where it is; `None` at the end.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Takes a string, from its opening quote (white space is not skipped) to behind the closing one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn string(&mut self) -> Result<Text<'a>, Fault> {
        self.eat(b'"')?;
        let from = self.at;
        self.at = run::first::<true>(self.bytes, from);
        if self.peek() == Some(b'"') {
            return Ok(self.close(from, false));
        }
        self.string_on(from)
    }

    /// The rest of a string that is not plain ASCII, or is broken.
    #[inline(never)]
    fn string_on(&mut self, from: usize) -> Result<Text<'a>, Fault> {
        let mut escaped = false;
        loop {
            match self.peek().ok_or(Fault::End)? {
                b'"' => return Ok(self.close(from, escaped)),
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                0x80.. => self.wide()?,
                _ => return Err(Fault::Syntax),
            }
            self.at = run::next::<true>(self.bytes, self.at);
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn close(&mut self, from: usize, escaped: bool) -> Text<'a> {
        let raw = self.since(from);
        self.at += 1;
        Text::new(raw, escaped)
    }

    /// At a backslash.
    #[inline]
    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek().ok_or(Fault::End)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().ok_or(Fault::End)?.is_ascii_hexdigit() {
                        return Err(Fault::Syntax);
                    }
                    self.at += 1;
                }
            }
            _ => return Err(Fault::Syntax),
        }
        Ok(())
    }

    /// At the first byte of a multibyte character; takes it and all that follow it.
    fn wide(&mut self) -> Result<(), Fault> {
        while let Some(0x80..) = self.peek() {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += utf8_len(rest).ok_or(Fault::Utf8)?;
        }
        Ok(())
    }

    /// Takes one number, from its first byte.
    pub(super) fn number(&mut self) -> Result<(), Fault> {
        self.skip(b'-');
        if !self.skip(b'0') {
            self.digits()?;
        }
        if self.skip(b'.') {
            self.digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _ = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn digits(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'0'..=b'9') => self.at += 1,
            Some(_) => return Err(Fault::Syntax),
            None => return Err(Fault::End),
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(if word.starts_with(rest) { Fault::End } else { Fault::Syntax })
        }
    }

    /// A value that holds no other; `byte` is its first one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn scalar(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => Err(Fault::Syntax),
        }
    }

    /// Skips white space and one whole value, checking all of it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn value(&mut self) -> Result<Raw<'a>, Fault> {
        self.space();
        let from = self.at;
        match self.peek().ok_or(Fault::End)? {
            b'{' | b'[' => self.nested()?,
            byte => self.scalar(byte)?,
        }
        Ok(Raw::trusted(self.since(from)))
    }

    /// An array or object with all that is in it.
    fn nested(&mut self) -> Result<(), Fault> {
        let floor = self.depth;
        // One bit for each array or object entered here, the innermost lowest; set for an array.
        let mut arrays = 0u128;
        loop {
            // A value starts here.
            self.space();
            match self.peek().ok_or(Fault::End)? {
                b'{' => {
                    self.enter()?;
                    self.space();
                    if self.peek() != Some(b'}') {
                        arrays <<= 1;
                        self.member()?;
                        continue;
                    }
                    self.leave();
                }
                b'[' => {
                    self.enter()?;
                    self.space();
                    if self.peek() != Some(b']') {
                        arrays = arrays << 1 | 1;
                        continue;
                    }
                    self.leave();
                }
                byte => self.scalar(byte)?,
            }
            // A value has ended here; so may any number of those around it.
            loop {
                if self.depth == floor {
                    return Ok(());
                }
                self.space();
                let array = arrays & 1 == 1;
                match (self.peek().ok_or(Fault::End)?, array) {
                    (b',', true) => {
                        self.at += 1;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        self.space();
                        self.member()?;
                        break;
                    }
                    (b']', true) | (b'}', false) => {
                        self.leave();
                        arrays >>= 1;
                    }
                    _ => return Err(Fault::Syntax),
                }
            }
        }
    }

    /// A key and its colon.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn member(&mut self) -> Result<Text<'a>, Fault> {
        let key = self.string()?;
        self.space();
        self.eat(b':')?;
        Ok(key)
    }

    /// Enters an object, white space before it skipped. Call [`key`](Self::key) until it gives `None`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn open(&mut self) -> Result<(), Fault> {
        self.space();
        self.expect(b'{')?;
        self.enter()
    }

    /// The next key of the object, its colon taken too: the value is next and must be taken before the following
    /// call. `None` when the object ends, which is then behind the scanner. `first` is `true` before the first call.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Text<'a>>, Fault> {
        self.space();
        match self.peek().ok_or(Fault::End)? {
            b'}' => {
                self.leave();
                return Ok(None);
            }
            b',' if !*first => {
                self.at += 1;
                self.space();
            }
            b'"' if *first => *first = false,
            _ => return Err(Fault::Syntax),
        }
        self.member().map(Some)
    }

    /// Enters an array, white space before it skipped. Call [`element`](Self::element) until it gives `false`.
    #[inline]
    pub fn open_array(&mut self) -> Result<(), Fault> {
        self.space();
        self.expect(b'[')?;
        self.enter()
    }

    /// Whether there is another element in the array: it is next and must be taken before the following call.
    /// `false` when the array ends, which is then behind the scanner. `first` is `true` before the first call.
    #[inline]
    pub fn element(&mut self, first: &mut bool) -> Result<bool, Fault> {
        self.space();
        match self.peek().ok_or(Fault::End)? {
            b']' => {
                self.leave();
                return Ok(false);
            }
            _ if *first => *first = false,
            b',' => self.at += 1,
            _ => return Err(Fault::Syntax),
        }
        Ok(true)
    }

    /// Checks that only white space is left, and skips it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.peek().is_none() { Ok(()) } else { Err(Fault::Trailing) }
    }

    /// Takes an opening bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn enter(&mut self) -> Result<(), Fault> {
        if self.depth >= self.max {
            return Err(Fault::Depth);
        }
        self.at += 1;
        self.depth += 1;
        Ok(())
    }

    /// Takes a closing bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave(&mut self) {
        self.at += 1;
        // A caller who leaves more often than it enters gets nonsense, but no panic.
        self.depth = self.depth.saturating_sub(1);
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn expect(&self, byte: u8) -> Result<(), Fault> {
        match self.peek() {
            Some(found) if found == byte => Ok(()),
            Some(_) => Err(Fault::Syntax),
            None => Err(Fault::End),
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn eat(&mut self, byte: u8) -> Result<(), Fault> {
        self.expect(byte)?;
        self.at += 1;
        Ok(())
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// The bytes from `from` up to here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn since(&self, from: usize) -> &'a [u8] {
        self.bytes.get(from..self.at).unwrap_or_default()
    }
}

/// The length of the multibyte character that `bytes` starts with; `None` if that is not UTF-8.
#[inline]
fn utf8_len(bytes: &[u8]) -> Option<usize> {
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
