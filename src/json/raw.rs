//! One JSON value of a message, unchanged.

use super::number::{Number, is_whole};
use super::{ParseError, Scanner, Text, constant, run};
use core::fmt;
use core::mem::take;

/// The text of exactly one valid JSON value, without white space around it.
///
/// Each method scans the text again; nothing is stored.
///
/// ```
/// use mcp_sansio::json::Raw;
/// let value = Raw::parse(br#"{"id": 7, "tags": ["a", "b"]}"#)?;
/// assert_eq!(value.get("id").and_then(|id| id.i64()), Some(7));
/// assert_eq!(value.get("tags").map(|tags| tags.items().count()), Some(2));
/// # Ok::<(), mcp_sansio::json::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Raw<'a>(&'a [u8]);

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "JSON has no others")]
pub enum JsonKind {
    /// `{}`
    Object,
    /// `[]`
    Array,
    /// `""`
    String,
    /// `0`
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

impl<'a> Raw<'a> {
    /// Checks that `bytes` is one JSON value with at most white space around it.
    ///
    /// # Errors
    /// The [`ParseError`]: the text is not valid JSON, it is nested deeper than [`DEPTH`](super::DEPTH), or more
    /// text follows the value.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut scan = Scanner::new(bytes);
        let raw = scan.value()?;
        scan.end()?;
        Ok(raw)
    }

    /// Makes a value from a constant. In a `const`, the compiler checks it.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// const SCHEMA: Raw<'_> = Raw::constant(r#"{"type":"object"}"#);
    /// assert_eq!(SCHEMA.as_bytes().len(), 17);
    /// ```
    /// ```compile_fail
    /// # use mcp_sansio::json::Raw;
    /// const SCHEMA: Raw<'_> = Raw::constant("{type:object}");
    /// # let _ = SCHEMA;
    /// ```
    ///
    /// # Panics
    /// If `text` is not JSON. In a `const` the compiler then reports an error. Newlines between tokens are
    /// allowed: [`write::raw`](super::write::raw) writes them as spaces.
    #[must_use]
    pub const fn constant(text: &'static str) -> Raw<'static> {
        assert!(constant::check(text).is_ok(), "this constant is not valid JSON");
        Raw(text.as_bytes().trim_ascii())
    }

    /// Takes the bytes of a value that was scanned before, from its first to its last.
    pub(crate) const fn trusted(bytes: &'a [u8]) -> Self {
        Raw(bytes)
    }

    /// Returns the bytes, from the first to the last of the value.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns the text of the value. This takes a pass over it.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        // The scanner has checked it.
        core::str::from_utf8(self.0).unwrap_or("null")
    }

    /// Returns the kind of the value, by its first byte.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub const fn kind(&self) -> JsonKind {
        match self.0.first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'-' | b'0'..=b'9') => JsonKind::Number,
            _ => JsonKind::Null,
        }
    }

    /// Returns the member of this object with the key `key`; both are compared decoded. Returns the last one if
    /// there are several, and `None` if there is no such member or the value is not an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.members().filter(|(found, _)| found.eq_str(key)).last().map(|(_, value)| value)
    }

    /// Returns the members with these names, found in one pass; `None` in place of one that is missing. If a member exists
    /// twice, the last one counts.
    pub(crate) fn pick<const N: usize>(&self, names: [&str; N]) -> [Option<Raw<'a>>; N] {
        let mut picked = [None; N];
        if N > 0 {
            self.pick_into(&names, &mut picked);
        }
        picked
    }

    // Once for all numbers of names: 1,300 bytes of a device's client.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn pick_into(&self, names: &[&str], picked: &mut [Option<Raw<'a>>]) {
        for (key, value) in self.members() {
            let place = picked.iter_mut().zip(names).find(|(_, name)| key.eq_str(name));
            place.into_iter().for_each(|(place, _)| *place = Some(value));
        }
    }

    /// Returns the members of this object in their order; no members if it is not an object.
    #[must_use]
    pub fn members(&self) -> ObjectMembers<'a> {
        let mut scan = Scanner::checked(self.0);
        let open = scan.opens(b'{').is_some();
        ObjectMembers { scan, first: true, open }
    }

    /// Returns the elements of this array in their order; no elements if it is not an array.
    #[must_use]
    pub fn items(&self) -> ArrayItems<'a> {
        let mut scan = Scanner::checked(self.0);
        let open = scan.opens(b'[').is_some();
        ArrayItems { scan, first: true, open }
    }

    /// Returns the string between its quotes; `None` if the value is not a string.
    #[must_use]
    pub fn text(&self) -> Option<Text<'a>> {
        match self.0 {
            [b'"', text @ .., b'"'] => Some(Text::from_raw(text)),
            _ => None,
        }
    }

    /// Does the same as [`text`](Self::text); `plain` means that the string has no escapes.
    #[inline]
    pub(crate) fn text_of(&self, plain: bool) -> Option<Text<'a>> {
        match self.0 {
            [b'"', text @ .., b'"'] if plain => Some(Text::new(text, false)),
            _ => self.text(),
        }
    }

    /// Returns an integer from 0 to 2^64 - 1, also one written as `2.0` or `1e3`: some clients send whole
    /// numbers so.
    #[must_use]
    pub fn u64(&self) -> Option<u64> {
        let number = self.number()?;
        number.whole().filter(|_| !number.negative()).or_else(|| (number.whole()? == 0).then_some(0))
    }

    /// Returns an integer from -2^63 to 2^63 - 1, also one written as `2.0` or `1e3`.
    #[must_use]
    pub fn i64(&self) -> Option<i64> {
        self.number()?.signed()
    }

    /// Returns a number, read as the feature `serde` reads it; infinite if it is out of range.
    #[cfg(feature = "derive")]
    pub(crate) fn f64(&self) -> Option<f64> {
        #[cfg(feature = "alloc")]
        return self.as_str().parse().ok().filter(|_| self.kind() == JsonKind::Number);
        #[cfg(not(feature = "alloc"))]
        return Some(self.number()?.float());
    }

    /// Returns the value of `true` or `false`.
    #[must_use]
    pub fn bool(&self) -> Option<bool> {
        match self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Returns whether this is a number without a fraction and an exponent.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        // The first byte is a digit or a minus.
        self.kind() == JsonKind::Number && run::digits(self.0, 1) == self.0.len()
    }

    /// Returns whether this is a number whose value has no fraction: `2`, `2.0`, `1e30`.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.kind() == JsonKind::Number && is_whole(self.0)
    }

    /// Compares two numbers as they are written, without a rounding to binary: by their first 19 digits, which is more than
    /// an `f64` has. `None` if one of them is not a number.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use mcp_sansio::json::Raw;
    /// let compare = |a, b| Raw::constant(a).compare(Raw::constant(b));
    /// assert_eq!(compare("9007199254740993", "9007199254740992"), Some(Ordering::Greater));
    /// assert_eq!(compare("1.0", "10e-1"), Some(Ordering::Equal));
    /// assert_eq!(compare("1", "\"1\""), None);
    /// ```
    #[must_use]
    pub fn compare(&self, other: Raw<'_>) -> Option<core::cmp::Ordering> {
        Some(self.number()?.compare(&other.number()?))
    }

    fn number(&self) -> Option<Number> {
        (self.kind() == JsonKind::Number).then(|| Number::read(self.0))
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Raw").field(&self.as_str()).finish()
    }
}

/// Writes the JSON unchanged.
impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The members of an object, see [`Raw::members`].
#[derive(Clone, Debug)]
pub struct ObjectMembers<'a> {
    scan: Scanner<'a>,
    first: bool,
    open: bool,
}

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = (Text<'a>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if !take(&mut self.open) || !self.scan.has_key(take(&mut self.first))? {
            return None;
        }
        let next = (self.scan.read_key()?, self.scan.read_value()?);
        self.open = true;
        Some(next)
    }
}

impl core::iter::FusedIterator for ObjectMembers<'_> {}

/// The elements of an array, see [`Raw::items`].
#[derive(Clone, Debug)]
pub struct ArrayItems<'a> {
    scan: Scanner<'a>,
    first: bool,
    open: bool,
}

impl<'a> Iterator for ArrayItems<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if !take(&mut self.open) || !self.scan.has_element(take(&mut self.first))? {
            return None;
        }
        let next = self.scan.read_value()?;
        self.open = true;
        Some(next)
    }
}

impl core::iter::FusedIterator for ArrayItems<'_> {}

/// The methods that take whole values.
impl<'a> Scanner<'a> {
    /// Skips white space and takes one whole value.
    ///
    /// # Errors
    /// The [`ParseError`] in the value.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn value(&mut self) -> Result<Raw<'a>, ParseError> {
        self.read_value().ok_or_else(|| self.fault())
    }

    /// Does the same as [`value`](Self::value).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn read_value(&mut self) -> Option<Raw<'a>> {
        let (from, byte) = self.token(self.at);
        self.at = match byte {
            b'{' | b'[' => self.nested(from)?,
            _ => self.scalar(from, byte)?,
        };
        self.since(from)
    }

    /// Returns the value from `from` to the position.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn since(&self, from: usize) -> Option<Raw<'a>> {
        self.bytes.get(from..self.at).map(Raw::trusted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn trims_and_tells_kinds() {
        let kinds = [
            (" {} ", "{}", JsonKind::Object),
            ("\t[1, 2]\n", "[1, 2]", JsonKind::Array),
            ("\r\"a\"", "\"a\"", JsonKind::String),
            ("-1", "-1", JsonKind::Number),
            ("true ", "true", JsonKind::Bool),
            (" null", "null", JsonKind::Null),
        ];
        for (json, trimmed, kind) in kinds {
            assert_eq!(raw(json).as_str(), trimmed);
            assert_eq!(raw(json).kind(), kind);
        }
        assert_eq!(Raw::parse(b"1 2").unwrap_err(), ParseError::Trailing);
        assert_eq!(Raw::parse(b" ").unwrap_err(), ParseError::End);
    }

    #[test]
    fn members_and_items() {
        let object = raw(r#"{"a":1, "b\n":[true,{"x":null}], "a":"two"}"#);
        assert_eq!(object.members().count(), 3);
        assert!(object.get("a").and_then(|a| a.text()).is_some_and(|a| a.eq_str("two")));
        let b = object.get("b\n").unwrap();
        let mut items = b.items();
        assert_eq!(items.next().and_then(|i| i.bool()), Some(true));
        assert_eq!(items.next().and_then(|i| i.get("x")).map(|x| x.kind()), Some(JsonKind::Null));
        assert!(items.next().is_none() && items.next().is_none());
        assert!(object.get("c").is_none());
        let [c, b_too, a] = object.pick(["c", "b\n", "a"]);
        assert_eq!(b_too.map(|b| b.as_str()), Some(b.as_str()));
        assert!(c.is_none() && a.is_some_and(|a| a.as_str() == "\"two\""), "the last one counts");
        assert_eq!(object.items().count(), 0);
        assert_eq!(b.members().count(), 0);
        assert_eq!(raw("{}").members().count() + raw("[]").items().count(), 0);
    }

    #[test]
    fn integers() {
        assert_eq!(raw("18446744073709551615").u64(), Some(u64::MAX));
        assert_eq!(raw("18446744073709551616").u64(), None);
        assert_eq!(raw("-9223372036854775808").i64(), Some(i64::MIN));
        assert_eq!(raw("9223372036854775808").i64(), None);
        assert_eq!(raw("-1").u64(), None);
        assert_eq!(raw("-0").u64(), Some(0));
        assert_eq!(raw("2.0").u64(), Some(2));
        assert_eq!(raw("1e3").i64(), Some(1000));
        assert_eq!(raw("2.5").u64(), None);
        assert_eq!(raw("\"2\"").u64(), None);
        assert!(
            raw("-12").is_integer()
                && !raw("1.0").is_integer()
                && !raw("1e1").is_integer()
                && !raw("true").is_integer()
        );
    }

    #[test]
    fn constants() {
        const PADDED: Raw<'_> = Raw::constant(" {\"type\": \"object\"}\n");
        assert_eq!(PADDED.as_str(), "{\"type\": \"object\"}");
    }

    /// Constants may have several lines, but are written on one.
    #[test]
    fn constants_are_written_on_one_line() {
        let mut bytes = [0; 8];
        let mut out = crate::sink::LineSink::new(crate::sink::SliceStorage::new(&mut bytes));
        crate::json::write::raw(&mut out, Raw::constant("{\r\n}")).unwrap();
        assert_eq!(out.pending(), b"{  }");
    }

    #[test]
    #[should_panic(expected = "not valid JSON")]
    fn constants_are_json() {
        let _ = Raw::constant("{]");
    }

    /// Bytes that no scanner accepts end the iteration.
    #[test]
    fn impossible_bytes_do_no_harm() {
        for bytes in [&b""[..], b"{", b"{\"a\"", b"{\"a\":", b"[1", b"[1 2]", b"\"a", b"-", b"{1:2}", b"\xff"] {
            let raw = Raw::trusted(bytes);
            assert!(raw.members().count() <= 1 && raw.items().count() <= 1);
            assert!(raw.get("b").is_none());
            let _ = (raw.kind(), raw.text(), raw.u64(), raw.i64(), raw.bool(), raw.is_integer());
        }
    }
}
