//! The scanner: one pass, no recursion, everything checked.
//!
//! Inlined by force where that pays, on machines of 64 bits; on small ones it would only cost flash, an eighth of a
//! whole firmware.

use super::{Raw, Text, run, utf8};
use core::fmt;

/// The deepest nesting of arrays and objects that is accepted.
pub const DEPTH: u8 = 128;

/// What is wrong with some JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
    /// It has been scanned before.
    checked: bool,
    /// No string so far had an escape.
    plain: bool,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `bytes`, with the depth limit [`DEPTH`].
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, depth: 0, max: DEPTH, checked: false, plain: true }
    }

    /// As [`new`](Self::new) with the depth limit `max`, which cannot be raised above [`DEPTH`].
    #[must_use]
    pub const fn with_depth(bytes: &'a [u8], max: u8) -> Self {
        let max = if max < DEPTH { max } else { DEPTH };
        Scanner { bytes, at: 0, depth: 0, max, checked: false, plain: true }
    }

    /// As [`new`](Self::new), for bytes that have been scanned before: strings are skipped, not checked again.
    pub(crate) const fn checked(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, depth: 0, max: DEPTH, checked: true, plain: true }
    }

    /// How many bytes lie behind the scanner.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Whether no string so far had an escape.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Skips white space.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn space(&mut self) {
        self.at = self.past_space(self.at);
    }

    /// The next byte, which stays where it is; `None` at the end.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    // Below, positions are passed on as values and stored once: what is in `self` lives in memory.

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn past_space(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte(at) {
            at += 1;
        }
        at
    }

    /// What it means that the byte at `at` is not the one expected; the scanner stays there.
    #[cold]
    fn stray(&mut self, at: usize) -> Fault {
        self.at = at;
        if at < self.bytes.len() { Fault::Syntax } else { Fault::End }
    }

    /// Takes a string, from its opening quote (white space is not skipped) to behind the closing one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn string(&mut self) -> Result<Text<'a>, Fault> {
        let (text, end) = self.string_at(self.at)?;
        self.at = end;
        Ok(text)
    }

    /// The string whose opening quote is at `at`, and the position behind it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn string_at(&mut self, at: usize) -> Result<(Text<'a>, usize), Fault> {
        if self.byte(at) != Some(b'"') {
            return Err(self.stray(at));
        }
        let from = at + 1;
        let mut end = run::first::<{ run::WIDE }>(self.bytes, from);
        let mut escaped = false;
        if self.byte(end) != Some(b'"') {
            escaped = self.string_on(end)?;
            end = self.at;
        }
        let raw = self.bytes.get(from..end).ok_or(Fault::End)?;
        Ok((Text::new(raw, escaped), end + 1))
    }

    /// The rest of a string that is not short and plain ASCII, up to its closing quote; whether it has escapes.
    #[inline(never)]
    fn string_on(&mut self, at: usize) -> Result<bool, Fault> {
        // Where room counts, the longer way serves as well.
        if self.checked && !crate::small::SMALL {
            return self.checked_string(at);
        }
        self.at = run::next::<{ run::WIDE }>(self.bytes, at);
        let mut escaped = false;
        loop {
            match self.peek().ok_or(Fault::End)? {
                b'"' => {
                    self.plain &= !escaped;
                    return Ok(escaped);
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                0x80.. => self.wide()?,
                _ => return Err(Fault::Syntax),
            }
            self.at = run::next::<{ run::WIDE }>(self.bytes, self.at);
        }
    }

    /// As [`string_on`](Self::string_on), of a string in which nothing can be wrong.
    #[inline(never)]
    fn checked_string(&mut self, mut at: usize) -> Result<bool, Fault> {
        let mut escaped = false;
        loop {
            at = run::end(self.bytes, at);
            match self.byte(at).ok_or(Fault::End)? {
                b'"' => {
                    self.at = at;
                    self.plain &= !escaped;
                    return Ok(escaped);
                }
                _ => escaped = true,
            }
            // The escaped character is a quote, a backslash or of no interest.
            at += 2;
        }
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
            self.at += utf8::len(rest).ok_or(Fault::Utf8)?;
        }
        Ok(())
    }

    /// Takes one number, from its first byte.
    pub(super) fn number(&mut self) -> Result<(), Fault> {
        let mut at = self.past(self.at, b'-');
        at = match self.byte(at) {
            Some(b'0') => at + 1,
            _ => self.digits(at)?,
        };
        if self.byte(at) == Some(b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.byte(at) {
            let sign = at + 1;
            let plus = self.past(sign, b'+');
            at = self.digits(if plus == sign { self.past(sign, b'-') } else { plus })?;
        }
        self.at = at;
        Ok(())
    }

    /// The position behind the digits at `at`, of which there must be one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn digits(&mut self, at: usize) -> Result<usize, Fault> {
        let end = run::digits(self.bytes, at);
        if end == at { Err(self.stray(at)) } else { Ok(end) }
    }

    /// The position behind `byte`, if that is at `at`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn past(&self, at: usize, byte: u8) -> usize {
        at + usize::from(self.byte(at) == Some(byte))
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

    /// The position behind the value at `at`, which is neither an array nor an object; `byte` is its first one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn scalar(&mut self, at: usize, byte: u8) -> Result<usize, Fault> {
        if byte == b'"' {
            return Ok(self.string_at(at)?.1);
        }
        self.at = at;
        match byte {
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => return Err(Fault::Syntax),
        }
        Ok(self.at)
    }

    /// Skips white space and one whole value, checking all of it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn value(&mut self) -> Result<Raw<'a>, Fault> {
        let from = self.past_space(self.at);
        self.at = match self.byte(from) {
            Some(b'{' | b'[') => self.nested(from)?,
            Some(byte) => self.scalar(from, byte)?,
            None => return Err(self.stray(from)),
        };
        self.since(from)
    }

    /// An array or object with all that is in it; the position behind it.
    fn nested(&mut self, mut at: usize) -> Result<usize, Fault> {
        let floor = self.depth;
        // One bit for each array or object entered here, the innermost lowest; set for an array.
        let mut arrays = 0u128;
        loop {
            // A value starts here.
            at = self.past_space(at);
            match self.byte(at) {
                Some(b'{') => {
                    self.enter(at)?;
                    at = self.past_space(at + 1);
                    if self.byte(at) != Some(b'}') {
                        arrays <<= 1;
                        at = self.member(at)?.1;
                        continue;
                    }
                    at += 1;
                    self.leave();
                }
                Some(b'[') => {
                    self.enter(at)?;
                    at = self.past_space(at + 1);
                    if self.byte(at) != Some(b']') {
                        arrays = arrays << 1 | 1;
                        continue;
                    }
                    at += 1;
                    self.leave();
                }
                Some(byte) => at = self.scalar(at, byte)?,
                None => return Err(self.stray(at)),
            }
            // A value has ended here; so may any number of those around it.
            loop {
                if self.depth == floor {
                    return Ok(at);
                }
                at = self.past_space(at);
                let array = arrays & 1 == 1;
                match (self.byte(at), array) {
                    (Some(b','), true) => {
                        at += 1;
                        break;
                    }
                    (Some(b','), false) => {
                        at = self.member(self.past_space(at + 1))?.1;
                        break;
                    }
                    (Some(b']'), true) | (Some(b'}'), false) => {
                        at += 1;
                        self.leave();
                        arrays >>= 1;
                    }
                    _ => return Err(self.stray(at)),
                }
            }
        }
    }

    /// The key at `at`, and the position behind its colon.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn member(&mut self, at: usize) -> Result<(Text<'a>, usize), Fault> {
        let (key, end) = self.string_at(at)?;
        let colon = self.past_space(end);
        if self.byte(colon) == Some(b':') { Ok((key, colon + 1)) } else { Err(self.stray(colon)) }
    }

    /// Enters an object, white space before it skipped. Call [`key`](Self::key) until it gives `None`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn open(&mut self) -> Result<(), Fault> {
        self.open_with(b'{')
    }

    /// The next key of the object, its colon taken too: the value is next and must be taken before the following
    /// call. `None` when the object ends, which is then behind the scanner. `first` is `true` before the first call.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Text<'a>>, Fault> {
        if self.has_key(first)? { self.any_key().map(Some) } else { Ok(None) }
    }

    /// The first half of [`key`](Self::key): whether there is another member. Its key is here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn has_key(&mut self, first: &mut bool) -> Result<bool, Fault> {
        let at = self.past_space(self.at);
        self.at = match self.byte(at) {
            Some(b',') if !*first => self.past_space(at + 1),
            Some(b'"') if *first => at,
            Some(b'}') => {
                self.at = at + 1;
                self.leave();
                return Ok(false);
            }
            _ => return Err(self.stray(at)),
        };
        *first = false;
        Ok(true)
    }

    /// The second half of [`key`](Self::key): whatever key is here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn any_key(&mut self) -> Result<Text<'a>, Fault> {
        let (key, end) = self.member(self.at)?;
        self.at = end;
        Ok(key)
    }

    /// In place of [`any_key`](Self::any_key): whether the bytes here are exactly these, which are then taken.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn took(&mut self, bytes: &[u8]) -> bool {
        let took = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(bytes));
        if took {
            self.at += bytes.len();
        }
        took
    }

    /// Enters an array, white space before it skipped. Call [`element`](Self::element) until it gives `false`.
    #[inline]
    pub fn open_array(&mut self) -> Result<(), Fault> {
        self.open_with(b'[')
    }

    /// Whether there is another element in the array: it is next and must be taken before the following call.
    /// `false` when the array ends, which is then behind the scanner. `first` is `true` before the first call.
    #[inline]
    pub fn element(&mut self, first: &mut bool) -> Result<bool, Fault> {
        let at = self.past_space(self.at);
        self.at = at;
        match self.byte(at) {
            Some(b']') => {
                self.at = at + 1;
                self.leave();
                return Ok(false);
            }
            Some(_) if *first => *first = false,
            Some(b',') => self.at = at + 1,
            _ => return Err(self.stray(at)),
        }
        Ok(true)
    }

    /// Checks that only white space is left, and skips it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.peek().is_none() { Ok(()) } else { Err(Fault::Trailing) }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn open_with(&mut self, bracket: u8) -> Result<(), Fault> {
        let at = self.past_space(self.at);
        if self.byte(at) != Some(bracket) {
            return Err(self.stray(at));
        }
        self.enter(at)?;
        self.at = at + 1;
        Ok(())
    }

    /// Goes one deeper, at an opening bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn enter(&mut self, at: usize) -> Result<(), Fault> {
        if self.depth >= self.max {
            self.at = at;
            return Err(Fault::Depth);
        }
        self.depth += 1;
        Ok(())
    }

    /// Goes up again, at a closing bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave(&mut self) {
        // A caller who leaves more often than it enters gets nonsense, but no panic.
        self.depth = self.depth.saturating_sub(1);
    }

    /// The value that lies between `from` and here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn since(&self, from: usize) -> Result<Raw<'a>, Fault> {
        self.bytes.get(from..self.at).map(Raw::trusted).ok_or(Fault::End)
    }
}
