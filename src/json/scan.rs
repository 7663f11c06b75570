//! The scanner: one pass, no recursion, everything checked.
//!
//! Inlined by force where that pays, on machines of 64 bits; on small ones it would only cost flash, an eighth of a
//! whole firmware.

use super::{Raw, Text, run, text, utf8};
use crate::small::SMALL;
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
    /// How much deeper it may go.
    left: u8,
    /// It has been scanned before.
    checked: bool,
    /// No string so far had an escape.
    plain: bool,
    /// What was found wrong, unless it is the byte at hand.
    fault: Option<Fault>,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `bytes`, with the depth limit [`DEPTH`].
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, left: DEPTH, checked: false, plain: !SMALL, fault: None }
    }

    /// As [`new`](Self::new) with the depth limit `max`, which cannot be raised above [`DEPTH`].
    #[must_use]
    pub const fn with_depth(bytes: &'a [u8], max: u8) -> Self {
        let left = if max < DEPTH { max } else { DEPTH };
        Scanner { bytes, at: 0, left, checked: false, plain: !SMALL, fault: None }
    }

    /// As [`new`](Self::new), for bytes that have been scanned before: strings are skipped, not checked again.
    pub(crate) const fn checked(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, left: DEPTH, checked: true, plain: !SMALL, fault: None }
    }

    /// How many bytes lie behind the scanner.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// What is wrong, once one of the functions that answer an `Option` has given `None`.
    ///
    /// Those are the ones to use in here: a [`Fault`] beside what they give would take every answer through memory.
    #[cold]
    pub(crate) fn fault(&self) -> Fault {
        // If not noted, the byte at hand is not the one expected.
        self.fault.unwrap_or(if self.at < self.bytes.len() { Fault::Syntax } else { Fault::End })
    }

    /// Whether it is known that no string so far had an escape.
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
        self.bytes.get(self.at).copied()
    }

    // Below, positions are passed on as values and stored once: what is in `self` lives in memory.

    /// The byte at `at`; 0, which stands nowhere in JSON, behind the end.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn past_space(&self, mut at: usize) -> usize {
        while let b' ' | b'\t' | b'\n' | b'\r' = self.byte(at) {
            at += 1;
        }
        at
    }

    /// Where the next token is that is not before `at`, and its first byte.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn token(&self, at: usize) -> (usize, u8) {
        let at = self.past_space(at);
        (at, self.byte(at))
    }

    /// The byte at `at` is not the one expected; the scanner stays there.
    #[cold]
    fn stray<T>(&mut self, at: usize) -> Option<T> {
        self.at = at;
        None
    }

    /// Something else is wrong at `at`.
    #[cold]
    fn wrong<T>(&mut self, at: usize, fault: Fault) -> Option<T> {
        self.fault = Some(fault);
        self.stray(at)
    }

    /// Skips white space; where the scanner is then, and the byte there.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn ahead(&mut self) -> (usize, u8) {
        let (at, byte) = self.token(self.at);
        self.at = at;
        (at, byte)
    }

    /// Takes a string, from its opening quote (white space is not skipped) to behind the closing one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn string(&mut self) -> Result<Text<'a>, Fault> {
        self.any_string().ok_or_else(|| self.fault())
    }

    /// As [`string`](Self::string).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn any_string(&mut self) -> Option<Text<'a>> {
        let from = self.at + 1;
        let (quote, escaped) = self.string_at(self.at)?;
        self.at = quote + 1;
        self.bytes.get(from..quote).map(|raw| Text::new(raw, escaped))
    }

    /// Where the string ends whose opening quote is at `at`: its closing quote; and whether it has escapes.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn string_at(&mut self, at: usize) -> Option<(usize, bool)> {
        if self.byte(at) != b'"' {
            return self.stray(at);
        }
        if SMALL {
            return self.string_on(at + 1);
        }
        let end = run::first::<{ run::WIDE }>(self.bytes, at + 1);
        if self.byte(end) == b'"' { Some((end, false)) } else { self.string_on(end) }
    }

    /// As [`string_at`](Self::string_at), from within a string; at its beginning only where room counts.
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn string_on(&mut self, mut at: usize) -> Option<(usize, bool)> {
        // Where room counts, the longer way serves as well.
        if self.checked && !SMALL {
            return self.checked_string(at);
        }
        let mut escaped = false;
        loop {
            at = run::next::<{ run::WIDE }>(self.bytes, at);
            match self.byte(at) {
                b'"' => return Some(self.note(at, escaped)),
                b'\\' => {
                    escaped = true;
                    at = self.escape(at + 1)?;
                }
                0x80.. => at = self.wide(at)?,
                _ => return self.stray(at),
            }
        }
    }

    /// As [`string_on`](Self::string_on), of a string in which nothing can be wrong.
    #[inline(never)]
    fn checked_string(&mut self, mut at: usize) -> Option<(usize, bool)> {
        let mut escaped = false;
        loop {
            at = run::end(self.bytes, at);
            match self.byte(at) {
                b'"' => return Some(self.note(at, escaped)),
                b'\\' => escaped = true,
                _ => return self.stray(at),
            }
            // The escaped character is a quote, a backslash or of no interest.
            at += 2;
        }
    }

    /// Notes whether a string had escapes. Small machines look at each string that matters.
    #[inline]
    fn note(&mut self, quote: usize, escaped: bool) -> (usize, bool) {
        if !SMALL {
            self.plain &= !escaped;
        }
        (quote, escaped && !SMALL)
    }

    /// The position behind the escape whose backslash is in front of `at`.
    #[inline]
    fn escape(&mut self, mut at: usize) -> Option<usize> {
        let kind = self.byte(at);
        if kind == b'u' {
            for _ in 0..4 {
                at += 1;
                if !self.byte(at).is_ascii_hexdigit() {
                    return self.stray(at);
                }
            }
        } else if text::meaning(kind) == 0 {
            return self.stray(at);
        }
        Some(at + 1)
    }

    /// The position behind the multibyte characters at `at`.
    fn wide(&mut self, mut at: usize) -> Option<usize> {
        while let Some(rest @ [0x80..=0xff, ..]) = self.bytes.get(at..) {
            match utf8::len(rest) {
                Some(len) => at += len,
                None => return self.wrong(at, Fault::Utf8),
            }
        }
        Some(at)
    }

    /// Takes one number, from its first byte.
    #[cfg(feature = "serde")]
    pub(super) fn number(&mut self) -> Result<(), Fault> {
        self.at = self.number_at(self.at).ok_or_else(|| self.fault())?;
        Ok(())
    }

    /// The position behind the number at `at`.
    fn number_at(&mut self, at: usize) -> Option<usize> {
        let mut at = self.past(at, b'-');
        at = match self.byte(at) {
            b'0' => at + 1,
            _ => self.digits(at)?,
        };
        if self.byte(at) == b'.' {
            at = self.digits(at + 1)?;
        }
        if let b'e' | b'E' = self.byte(at) {
            let sign = at + 1;
            let plus = self.past(sign, b'+');
            at = self.digits(if plus == sign { self.past(sign, b'-') } else { plus })?;
        }
        Some(at)
    }

    /// The position behind the digits at `at`, of which there must be one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn digits(&mut self, at: usize) -> Option<usize> {
        let end = run::digits(self.bytes, at);
        if end == at { self.stray(at) } else { Some(end) }
    }

    /// The position behind `byte`, if that is at `at`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn past(&self, at: usize, byte: u8) -> usize {
        at + usize::from(self.byte(at) == byte)
    }

    /// The position behind the word that must be at `at`.
    fn word(&mut self, mut at: usize, word: &[u8]) -> Option<usize> {
        if !SMALL && self.bytes.get(at..).is_some_and(|rest| rest.starts_with(word)) {
            return Some(at + word.len());
        }
        for letter in word {
            if self.byte(at) != *letter {
                return self.stray(at);
            }
            at += 1;
        }
        Some(at)
    }

    /// The position behind the value at `at`, which is neither an array nor an object; `byte` is its first one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn scalar(&mut self, at: usize, byte: u8) -> Option<usize> {
        match byte {
            b'"' => Some(self.string_at(at)?.0 + 1),
            b'-' | b'0'..=b'9' => self.number_at(at),
            b't' => self.word(at, b"true"),
            b'f' => self.word(at, b"false"),
            b'n' => self.word(at, b"null"),
            _ => self.stray(at),
        }
    }

    /// Skips white space and one whole value, checking all of it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn value(&mut self) -> Result<Raw<'a>, Fault> {
        self.any_value().ok_or_else(|| self.fault())
    }

    /// As [`value`](Self::value).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn any_value(&mut self) -> Option<Raw<'a>> {
        let (from, byte) = self.token(self.at);
        self.at = match byte {
            b'{' | b'[' => self.nested(from)?,
            // Where room counts, the longer way serves as well.
            _ => if SMALL { self.nested(from) } else { self.scalar(from, byte) }?,
        };
        self.since(from)
    }

    /// A value with all that is in it; the position behind it.
    fn nested(&mut self, mut at: usize) -> Option<usize> {
        let mut left = self.left;
        let mut around = Brackets::NONE;
        // What closes the innermost array or object that was entered here.
        let mut closing = 0;
        loop {
            // A value starts here.
            let (start, byte) = self.token(at);
            let mut fresh = false;
            at = match byte {
                b'{' | b'[' => {
                    if left == 0 {
                        return self.wrong(start, Fault::Depth);
                    }
                    left -= 1;
                    closing = byte + 2;
                    around.push(left, closing);
                    fresh = true;
                    start + 1
                }
                _ => self.scalar(start, byte)?,
            };
            // It has ended here, or has nothing in it yet. So may have any number of those around it.
            loop {
                if left == self.left {
                    return Some(at);
                }
                let (next, byte) = self.token(at);
                if byte == closing {
                    left += 1;
                    closing = around.pop(left);
                    at = next + 1;
                } else if fresh {
                    at = next;
                    break;
                } else if byte == b',' {
                    at = next + 1;
                    break;
                } else {
                    return self.stray(next);
                }
                fresh = false;
            }
            if closing == b'}' {
                at = self.string_at(self.past_space(at))?.0 + 1;
                at = self.colon(at)?;
            }
        }
    }

    /// The position behind the colon that must follow the key that ends at `at`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn colon(&mut self, at: usize) -> Option<usize> {
        let (colon, byte) = self.token(at);
        if byte == b':' { Some(colon + 1) } else { self.stray(colon) }
    }

    /// Enters an object, white space before it skipped. Call [`key`](Self::key) until it gives `None`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn open(&mut self) -> Result<(), Fault> {
        self.opens(b'{').ok_or_else(|| self.fault())
    }

    /// The next key of the object, its colon taken too: the value is next and must be taken before the following
    /// call. `None` when the object ends, which is then behind the scanner. `first` is `true` before the first call.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Text<'a>>, Fault> {
        match self.has_key(*first) {
            Some(true) => {
                *first = false;
                self.any_key().map(Some).ok_or_else(|| self.fault())
            }
            Some(false) => Ok(None),
            None => Err(self.fault()),
        }
    }

    /// The first half of [`key`](Self::key): whether there is another member. Its key is here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn has_key(&mut self, first: bool) -> Option<bool> {
        let (at, byte) = self.token(self.at);
        self.at = match byte {
            b',' if !first => self.past_space(at + 1),
            b'"' if first => at,
            b'}' => {
                self.at = at + 1;
                self.leave();
                return Some(false);
            }
            _ => return self.stray(at),
        };
        Some(true)
    }

    /// The second half of [`key`](Self::key): whatever key is here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn any_key(&mut self) -> Option<Text<'a>> {
        let key = self.any_string()?;
        self.at = self.colon(self.at)?;
        Some(key)
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
        self.opens(b'[').ok_or_else(|| self.fault())
    }

    /// Whether there is another element in the array: it is next and must be taken before the following call.
    /// `false` when the array ends, which is then behind the scanner. `first` is `true` before the first call.
    #[inline]
    pub fn element(&mut self, first: &mut bool) -> Result<bool, Fault> {
        let more = self.has_element(*first).ok_or_else(|| self.fault())?;
        *first &= !more;
        Ok(more)
    }

    /// As [`element`](Self::element).
    #[inline]
    pub(crate) fn has_element(&mut self, first: bool) -> Option<bool> {
        let (at, byte) = self.token(self.at);
        self.at = match byte {
            b']' => {
                self.at = at + 1;
                self.leave();
                return Some(false);
            }
            0 => return self.stray(at),
            _ if first => at,
            b',' => at + 1,
            _ => return self.stray(at),
        };
        Some(true)
    }

    /// Checks that only white space is left, and skips it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.at >= self.bytes.len() { Ok(()) } else { Err(Fault::Trailing) }
    }

    /// Enters what this bracket opens, white space before it skipped.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn opens(&mut self, bracket: u8) -> Option<()> {
        let (at, byte) = self.token(self.at);
        if byte != bracket {
            return self.stray(at);
        }
        if self.left == 0 {
            return self.wrong(at, Fault::Depth);
        }
        self.left -= 1;
        self.at = at + 1;
        Some(())
    }

    /// Goes up again, at a closing bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave(&mut self) {
        // A caller who leaves more often than it enters gets nonsense, but no panic.
        self.left = self.left.wrapping_add(1);
    }

    /// The value that lies between `from` and here.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn since(&self, from: usize) -> Option<Raw<'a>> {
        self.bytes.get(from..self.at).map(Raw::trusted)
    }
}

/// The closing brackets of all arrays and objects that are open.
struct Brackets {
    /// One bit for each, the innermost lowest; set for an array.
    arrays: u128,
    /// In place of that a byte for each, where a wide word takes many instructions.
    bytes: [u8; if SMALL { DEPTH as usize } else { 0 }],
}

impl Brackets {
    const NONE: Brackets = Brackets { arrays: 0, bytes: [0; if SMALL { DEPTH as usize } else { 0 }] };

    /// Notes what closes the one within which it goes `left` deeper.
    #[inline]
    fn push(&mut self, left: u8, closing: u8) {
        if !SMALL {
            self.arrays = self.arrays << 1 | u128::from(closing == b']');
        } else if let Some(place) = self.bytes.get_mut(usize::from(left % DEPTH)) {
            *place = closing;
        }
    }

    /// What closes the one within which it goes `left` deeper, after the one in it was closed.
    #[inline]
    fn pop(&mut self, left: u8) -> u8 {
        if SMALL {
            return self.bytes.get(usize::from(left % DEPTH)).copied().unwrap_or_default();
        }
        self.arrays >>= 1;
        if self.arrays & 1 == 1 { b']' } else { b'}' }
    }
}
