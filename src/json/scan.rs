//! The scanner: one pass over a JSON text, without recursion, that checks all of it.
//!
//! Machines of 64 bits inline these functions by force where it pays. On small machines that would cost an
//! eighth of a firmware's flash.

use super::{Text, run, text, utf8};
use crate::search::SMALL;

/// The deepest nesting of arrays and objects that is accepted.
pub const DEPTH: u8 = 128;

crate::error_enum! {
    /// The reason why a text is not valid JSON.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    ParseError {
        /// The text breaks the grammar.
        Syntax => "not JSON",
        /// A string is not UTF-8.
        Utf8 => "a string is not UTF-8",
        /// It is nested deeper than the limit, see [`DEPTH`].
        Depth => "nested too deeply",
        /// The text ends too early.
        End => "the JSON ends too early",
        /// More text follows the value.
        Trailing => "something follows the JSON value",
    }
}

// Fork: 620 bytes of flash (uart, tools only): whether text is escaped is noted on large machines alone, as in
// `Text`.

/// A walk over one JSON text.
///
/// The caller enters the objects and arrays that it knows ([`open`](Self::open), [`key`](Self::key),
/// [`open_array`](Self::open_array), [`element`](Self::element)) and skips all others as a whole
/// ([`value`](Self::value)). In both cases every byte is checked exactly once. After a [`ParseError`] the position
/// is at the fault, and the scanner cannot continue.
///
/// Lone surrogates (`"\ud800"`) are valid in the grammar; decoding the text refuses them.
///
/// ```
/// use mcp_sansio::json::{ParseError, Scanner};
/// let mut scan = Scanner::new(br#"{"id": 7, "method": "ping"}"#);
/// let mut method = None;
/// scan.open()?;
/// let mut first = true;
/// while let Some(key) = scan.key(&mut first)? {
///     scan.space();
///     if key.eq_str("method") { method = Some(scan.string()?) } else { scan.value()?; }
/// }
/// scan.end()?;
/// assert!(method.is_some_and(|m| m.eq_str("ping")));
/// # Ok::<(), ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// The number of levels that the text may still go deeper.
    left: u8,
    /// The bytes have been scanned before.
    checked: bool,
    /// No string so far had an escape.
    plain: bool,
    /// The fault; `None` if the byte at the position is the fault.
    fault: Option<ParseError>,
}

impl<'a> Scanner<'a> {
    /// Makes a scanner at the start of `bytes`, with the depth limit [`DEPTH`].
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, left: DEPTH, checked: false, plain: !SMALL, fault: None }
    }

    /// Makes a scanner with the depth limit `max`; more than [`DEPTH`] counts as [`DEPTH`].
    #[must_use]
    pub const fn with_depth(bytes: &'a [u8], max: u8) -> Self {
        let left = if max < DEPTH { max } else { DEPTH };
        Scanner { bytes, at: 0, left, checked: false, plain: !SMALL, fault: None }
    }

    /// Makes a scanner for bytes that were scanned before: it skips strings without checking them.
    pub(crate) const fn checked(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0, left: DEPTH, checked: true, plain: !SMALL, fault: None }
    }

    /// Returns the number of bytes that were read.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the fault, after a function that returns an `Option` has returned `None`.
    ///
    /// The crate uses those functions: a [`ParseError`] in their results would move each result through memory.
    #[cold]
    pub(crate) fn fault(&self) -> ParseError {
        // Without a stored fault, the byte at the position is not the expected one.
        self.fault.unwrap_or(if self.at < self.bytes.len() { ParseError::Syntax } else { ParseError::End })
    }

    /// Returns `true` if no string so far had an escape; `false` means that it is not known.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Skips white space.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn space(&mut self) {
        self.at = self.past_space(self.at);
    }

    /// Returns the next byte without taking it; `None` at the end.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    // Below, positions are passed as values and stored once, because the fields of `self` are in memory.

    /// Returns the byte at `at`, or 0 after the end; no JSON has a 0.
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

    /// Returns the position of the next token from `at` on, and its first byte.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(super) fn token(&self, at: usize) -> (usize, u8) {
        let at = self.past_space(at);
        (at, self.byte(at))
    }

    /// Stops at `at`, where the byte is not the expected one.
    #[cold]
    fn unexpected<T>(&mut self, at: usize) -> Option<T> {
        self.at = at;
        None
    }

    /// Stops at `at` with this fault.
    #[cold]
    fn error_at<T>(&mut self, at: usize, fault: ParseError) -> Option<T> {
        self.fault = Some(fault);
        self.unexpected(at)
    }

    /// Skips white space. Returns the position and the byte there.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn peek_token(&mut self) -> (usize, u8) {
        let (at, byte) = self.token(self.at);
        self.at = at;
        (at, byte)
    }

    /// Takes a string, from its opening quote to its closing one. Does not skip white space before it.
    ///
    /// # Errors
    /// The [`ParseError`] in the string.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn string(&mut self) -> Result<Text<'a>, ParseError> {
        self.read_string().ok_or_else(|| self.fault())
    }

    /// Does the same as [`string`](Self::string).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn read_string(&mut self) -> Option<Text<'a>> {
        let from = self.at + 1;
        let (quote, escaped) = self.string_at(self.at)?;
        self.at = quote + 1;
        self.bytes.get(from..quote).map(|raw| Text::new(raw, escaped))
    }

    /// Finds the end of the string whose opening quote is at `at`. Returns the position of the closing quote,
    /// and whether the string has escapes.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn string_at(&mut self, at: usize) -> Option<(usize, bool)> {
        if self.byte(at) != b'"' {
            return self.unexpected(at);
        }
        let end = run::first::<{ run::WIDE }>(self.bytes, at + 1);
        if self.byte(end) == b'"' { Some((end, false)) } else { self.string_on(end) }
    }

    /// Does the same as [`string_at`](Self::string_at) from within a string.
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn string_on(&mut self, mut at: usize) -> Option<(usize, bool)> {
        // Small machines use the loop below for checked strings too.
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
                _ => return self.unexpected(at),
            }
        }
    }

    /// Does the same as [`string_on`](Self::string_on) for a string that was checked before.
    #[inline(never)]
    fn checked_string(&mut self, mut at: usize) -> Option<(usize, bool)> {
        let mut escaped = false;
        loop {
            at = run::end(self.bytes, at);
            match self.byte(at) {
                b'"' => return Some(self.note(at, escaped)),
                b'\\' => escaped = true,
                _ => return self.unexpected(at),
            }
            // The escaped character does not matter, even if it is a quote or a backslash.
            at += 2;
        }
    }

    /// Stores whether a string had escapes. Small machines search for a backslash where it matters.
    #[inline]
    fn note(&mut self, quote: usize, escaped: bool) -> (usize, bool) {
        if !SMALL {
            self.plain &= !escaped;
        }
        (quote, escaped && !SMALL)
    }

    /// Returns the position after the escape; `at` is after its backslash.
    #[inline]
    fn escape(&mut self, mut at: usize) -> Option<usize> {
        let kind = self.byte(at);
        if kind == b'u' {
            for _ in 0..4 {
                at += 1;
                if !self.byte(at).is_ascii_hexdigit() {
                    return self.unexpected(at);
                }
            }
        } else if text::meaning(kind) == 0 {
            return self.unexpected(at);
        }
        Some(at + 1)
    }

    /// Returns the position after the multibyte characters at `at`.
    fn wide(&mut self, mut at: usize) -> Option<usize> {
        while let Some(rest @ [0x80..=0xff, ..]) = self.bytes.get(at..) {
            match utf8::len(rest) {
                Some(len) => at += len,
                None => return self.error_at(at, ParseError::Utf8),
            }
        }
        Some(at)
    }

    /// Takes one number, from its first byte.
    #[cfg(feature = "serde")]
    pub(super) fn number(&mut self) -> Result<(), ParseError> {
        self.at = self.number_at(self.at).ok_or_else(|| self.fault())?;
        Ok(())
    }

    /// Returns the position after the number at `at`.
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

    /// Returns the position after the digits at `at`; there must be one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn digits(&mut self, at: usize) -> Option<usize> {
        let end = run::digits(self.bytes, at);
        if end == at { self.unexpected(at) } else { Some(end) }
    }

    /// Returns the position after `byte` if it is at `at`, else `at`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn past(&self, at: usize, byte: u8) -> usize {
        at + usize::from(self.byte(at) == byte)
    }

    /// Returns the position after the word that must be at `at`.
    fn word(&mut self, mut at: usize, word: &[u8]) -> Option<usize> {
        for letter in word {
            if self.byte(at) != *letter {
                return self.unexpected(at);
            }
            at += 1;
        }
        Some(at)
    }

    /// Returns the position after the value at `at`, which is not an array or object; `byte` is its first byte.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(super) fn scalar(&mut self, at: usize, byte: u8) -> Option<usize> {
        match byte {
            b'"' => Some(self.string_at(at)?.0 + 1),
            b'-' | b'0'..=b'9' => self.number_at(at),
            b't' => self.word(at, b"true"),
            b'f' => self.word(at, b"false"),
            b'n' => self.word(at, b"null"),
            _ => self.unexpected(at),
        }
    }

    /// Returns the position after the value at `at` with all of its content.
    pub(super) fn nested(&mut self, mut at: usize) -> Option<usize> {
        let mut left = self.left;
        let mut around = Brackets(0);
        // The closing bracket of the innermost array or object that was entered here.
        let mut closing = 0;
        loop {
            // A value starts here.
            let (start, byte) = self.token(at);
            let mut fresh = false;
            at = match byte {
                b'{' | b'[' => {
                    if left == 0 {
                        return self.error_at(start, ParseError::Depth);
                    }
                    left -= 1;
                    closing = byte + 2;
                    around.push(closing);
                    fresh = true;
                    start + 1
                }
                _ => self.scalar(start, byte)?,
            };
            // The value has ended, or is still empty. The arrays and objects around it may end here too.
            loop {
                if left == self.left {
                    return Some(at);
                }
                let (next, byte) = self.token(at);
                if byte == closing {
                    left += 1;
                    closing = around.pop();
                    at = next + 1;
                } else if fresh {
                    at = next;
                    break;
                } else if byte == b',' {
                    at = next + 1;
                    break;
                } else {
                    return self.unexpected(next);
                }
                fresh = false;
            }
            if closing == b'}' {
                at = self.string_at(self.past_space(at))?.0 + 1;
                at = self.colon(at)?;
            }
        }
    }

    /// Returns the position after the colon that must follow the key that ends at `at`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn colon(&mut self, at: usize) -> Option<usize> {
        let (colon, byte) = self.token(at);
        if byte == b':' { Some(colon + 1) } else { self.unexpected(colon) }
    }

    /// Skips white space and enters an object. Then call [`key`](Self::key) until it returns `None`.
    ///
    /// # Errors
    /// The [`ParseError`] if there is no object, or if it is nested too deeply.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn open(&mut self) -> Result<(), ParseError> {
        self.opens(b'{').ok_or_else(|| self.fault())
    }

    /// Takes the next key of the object and its colon. Take the value before the next call. Returns `None`
    /// after the end of the object. `first` must be `true` before the first call.
    ///
    /// # Errors
    /// The [`ParseError`] in the key or around it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Text<'a>>, ParseError> {
        match self.has_key(*first) {
            Some(true) => {
                *first = false;
                self.read_key().map(Some).ok_or_else(|| self.fault())
            }
            Some(false) => Ok(None),
            None => Err(self.fault()),
        }
    }

    /// Does the first half of [`key`](Self::key): returns whether there is another member, and stops at its
    /// key.
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
            _ => return self.unexpected(at),
        };
        Some(true)
    }

    /// Does the second half of [`key`](Self::key): takes the key at the position.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn read_key(&mut self) -> Option<Text<'a>> {
        let key = self.read_string()?;
        self.at = self.colon(self.at)?;
        Some(key)
    }

    /// Takes `bytes` if they are at the position, and returns whether they were. Used in place of
    /// [`any_key`](Self::any_key).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn eat(&mut self, bytes: &[u8]) -> bool {
        let took = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(bytes));
        if took {
            self.at += bytes.len();
        }
        took
    }

    /// Skips white space and enters an array. Then call [`element`](Self::element) until it returns `false`.
    ///
    /// # Errors
    /// The [`ParseError`] if there is no array, or if it is nested too deeply.
    #[inline]
    pub fn open_array(&mut self) -> Result<(), ParseError> {
        self.opens(b'[').ok_or_else(|| self.fault())
    }

    /// Returns whether the array has another element. Take the element before the next call. Returns `false`
    /// after the end of the array. `first` must be `true` before the first call.
    ///
    /// # Errors
    /// The [`ParseError`] if there is neither an element nor the end.
    #[inline]
    pub fn element(&mut self, first: &mut bool) -> Result<bool, ParseError> {
        let more = self.has_element(*first).ok_or_else(|| self.fault())?;
        *first &= !more;
        Ok(more)
    }

    /// Does the same as [`element`](Self::element).
    #[inline]
    pub(crate) fn has_element(&mut self, first: bool) -> Option<bool> {
        let (at, byte) = self.token(self.at);
        self.at = match byte {
            b']' => {
                self.at = at + 1;
                self.leave();
                return Some(false);
            }
            0 => return self.unexpected(at),
            _ if first => at,
            b',' => at + 1,
            _ => return self.unexpected(at),
        };
        Some(true)
    }

    /// Skips white space and checks that nothing follows.
    ///
    /// # Errors
    /// [`ParseError::Trailing`] if something follows.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn end(&mut self) -> Result<(), ParseError> {
        self.space();
        if self.at >= self.bytes.len() { Ok(()) } else { Err(ParseError::Trailing) }
    }

    /// Skips white space and enters the array or object that begins with `bracket`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn opens(&mut self, bracket: u8) -> Option<()> {
        let (at, byte) = self.token(self.at);
        if byte != bracket {
            return self.unexpected(at);
        }
        if self.left == 0 {
            return self.error_at(at, ParseError::Depth);
        }
        self.left -= 1;
        self.at = at + 1;
        Some(())
    }

    /// Goes up one level, after a closing bracket.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave(&mut self) {
        // A caller that leaves more often than it enters gets wrong results, but no panic.
        self.left = self.left.wrapping_add(1);
    }
}

/// The closing brackets of all open arrays and objects: one bit for each, the innermost lowest; set for an
/// array.
struct Brackets(u128);

impl Brackets {
    /// Stores the closing bracket of the array or object that is entered.
    fn push(&mut self, closing: u8) {
        self.0 = self.0 << 1 | u128::from(closing == b']');
    }

    /// Returns the closing bracket of the next outer array or object.
    fn pop(&mut self) -> u8 {
        self.0 >>= 1;
        if self.0 & 1 == 1 { b']' } else { b'}' }
    }
}
