//! Reads serde types from a value that the scanner has checked.
//!
//! Text without escapes is borrowed from the message. Text with escapes is decoded into scratch space that the
//! caller lends, and keeps its part of it: so any number of `&str` can exist together. Text that the type
//! copies (`String`, names of members and variants) uses the scratch space only for a moment. With `alloc`, a
//! `String` can be longer than the scratch space.
//!
//! Internally tagged and untagged enums and `flatten` need `alloc`; this is a rule of serde.
//!
//! Floats: with the feature `alloc` as exact as core's own parser, whose tables would cost a device 12 KB.
//! Without it, exact for numbers of up to 2^53 (without the point) and 22 places, otherwise within a few units
//! of the last place.

use super::number::Number;
use super::{DecodeError, ParseError, Raw, Scanner, Text};
use core::fmt;
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};

/// The newtype name with which [`Text`] asks for a string: with its quotes if it has escapes, else without
/// them.
const TEXT: &str = "$mcp_sansio::Text";
/// The newtype name with which [`Raw`] asks for the bytes of a value.
const RAW: &str = "$mcp_sansio::Raw";
/// The name with which serde_json's `RawValue` asks for the text of a value and passes it on.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// The reason why a value was not read into a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DeserializeError {
    /// The member of this name is missing.
    Missing(&'static str),
    /// The member of this name is of another type.
    MemberType(&'static str),
    /// The member of this name is of the right type, but not one of the values allowed.
    MemberValue(&'static str),
    /// The member of this name is too large or too small a number, or too long a text.
    MemberRange(&'static str),
    /// A member or variant has a name that the type does not have.
    Unknown,
    /// A value is of another type, for example text in place of a number.
    Type,
    /// A value is of the right type, but not one of those allowed.
    Value,
    /// A number is too large or too small.
    Range,
    /// Text with escapes is longer than the scratch space.
    Room,
    /// The text is not JSON. A value that was scanned never has this error.
    Syntax,
}

impl DeserializeError {
    /// Returns the same error with the name of its member.
    #[cold]
    fn named(self, fields: &'static [&'static str], key: Text<'_>) -> Self {
        let name = fields.iter().find(|field| key.eq_str(field));
        name.map_or(self, |name| self.of(name))
    }

    /// Returns the same error for the member of this name.
    #[cold]
    pub(crate) fn of(self, name: &'static str) -> Self {
        match self {
            DeserializeError::Type => DeserializeError::MemberType(name),
            DeserializeError::Value | DeserializeError::Unknown => DeserializeError::MemberValue(name),
            DeserializeError::Range | DeserializeError::Room => DeserializeError::MemberRange(name),
            _ => self,
        }
    }

    /// Returns a text with which a model can correct itself, in three pieces, so that a device needs no
    /// formatting.
    pub(crate) const fn words(self) -> [&'static str; 3] {
        match self {
            DeserializeError::Missing(name) => ["missing member `", name, "`"],
            DeserializeError::MemberType(name) => ["member `", name, "` has the wrong type"],
            DeserializeError::MemberValue(name) => ["member `", name, "` is not one of the values allowed"],
            DeserializeError::MemberRange(name) => ["member `", name, "` is out of range or too long"],
            DeserializeError::Unknown => ["unknown member or variant", "", ""],
            DeserializeError::Type => ["a value has the wrong type", "", ""],
            DeserializeError::Value => ["a value is not one of those allowed", "", ""],
            DeserializeError::Range => ["a number is out of range", "", ""],
            DeserializeError::Room => ["a text with escapes is too long", "", ""],
            DeserializeError::Syntax => ["not valid JSON", "", ""],
        }
    }
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().iter().try_for_each(|words| f.write_str(words))
    }
}

impl de::StdError for DeserializeError {}

impl de::Error for DeserializeError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        DeserializeError::Value
    }
    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        DeserializeError::Type
    }
    fn invalid_value(found: Unexpected<'_>, _: &dyn Expected) -> Self {
        match found {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => DeserializeError::Range,
            _ => DeserializeError::Value,
        }
    }
    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        DeserializeError::Value
    }
    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        DeserializeError::Unknown
    }
    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        DeserializeError::Unknown
    }
    fn missing_field(name: &'static str) -> Self {
        DeserializeError::Missing(name)
    }
    fn duplicate_field(_: &'static str) -> Self {
        DeserializeError::Value
    }
}

impl From<ParseError> for DeserializeError {
    fn from(_: ParseError) -> Self {
        DeserializeError::Syntax
    }
}

impl From<DecodeError> for DeserializeError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Room => DeserializeError::Room,
            DecodeError::Surrogate => DeserializeError::Value,
        }
    }
}

type Result<T> = core::result::Result<T, DeserializeError>;

impl<'a> Raw<'a> {
    /// Reads the value into a type. Skips members that the type does not have. Whole numbers may be written as
    /// `2.0`.
    ///
    /// `scratch` takes borrowed text with escapes, decoded. The length of the value is always enough.
    ///
    /// # Errors
    /// A [`DeserializeError`].
    pub fn to<T: Deserialize<'a>>(self, mut scratch: &'a mut [u8]) -> core::result::Result<T, DeserializeError> {
        self.to_within(&mut scratch)
    }

    /// Does the same, and leaves the rest of the scratch space.
    pub(crate) fn to_within<T: Deserialize<'a>>(
        self,
        scratch: &mut &'a mut [u8],
    ) -> core::result::Result<T, DeserializeError> {
        let mut reader = Reader { scan: Scanner::checked(self.as_bytes()), scratch: core::mem::take(scratch) };
        let read = T::deserialize(&mut reader);
        *scratch = reader.scratch;
        read
    }

    /// Reads the value into a type that owns its texts, such as one of `String`s. Otherwise as [`to`](Raw::to).
    ///
    /// # Errors
    /// A [`DeserializeError`].
    #[cfg(feature = "alloc")]
    pub fn deserialize<T: serde::de::DeserializeOwned>(self) -> core::result::Result<T, DeserializeError> {
        let mut scratch = alloc::vec![0; self.as_bytes().len()];
        T::deserialize(&mut Reader { scan: Scanner::checked(self.as_bytes()), scratch: &mut scratch })
    }

    /// Reads one member of the object into a type; a missing one reads as `null`. Leaves the rest of the scratch space.
    pub(crate) fn member_to<T: Deserialize<'a>>(
        self,
        name: &'static str,
        scratch: &mut &'a mut [u8],
    ) -> core::result::Result<T, DeserializeError> {
        let mut reader = Reader { scan: Scanner::checked(self.as_bytes()), scratch: core::mem::take(scratch) };
        let (mut first, mut found) = (true, None);
        reader.expect(b'{')?;
        reader.scan.open()?;
        while let Some(key) = reader.scan.key(&mut first)? {
            if key.eq_str(name) {
                found = Some(T::deserialize(&mut reader).map_err(|refused| refused.of(name))?);
            } else {
                reader.scan.value()?;
            }
        }
        *scratch = reader.scratch;
        match found {
            Some(value) => Ok(value),
            None => Raw::trusted(b"null").to(&mut []).map_err(|_| DeserializeError::Missing(name)),
        }
    }
}

struct Reader<'de> {
    scan: Scanner<'de>,
    /// The rest of the scratch space.
    scratch: &'de mut [u8],
}

impl<'de> Reader<'de> {
    /// Returns the first byte of the next value.
    fn next(&mut self) -> u8 {
        self.scan.space();
        self.scan.peek().unwrap_or_default()
    }

    /// Returns an error unless the next value begins with `byte`.
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.next() == byte { Ok(()) } else { Err(DeserializeError::Type) }
    }

    fn text(&mut self) -> Result<Text<'de>> {
        self.expect(b'"')?;
        Ok(self.scan.string()?)
    }

    /// Returns the text with the lifetime of the message, in scratch space if it has escapes.
    fn keep(&mut self, text: Text<'de>) -> Result<&'de str> {
        if let Some(plain) = text.plain() {
            return Ok(plain);
        }
        let len = text.decode_into(self.scratch)?;
        let (decoded, rest) =
            core::mem::take(&mut self.scratch).split_at_mut_checked(len).ok_or(DeserializeError::Room)?;
        self.scratch = rest;
        core::str::from_utf8(decoded).map_err(|_| DeserializeError::Syntax)
    }

    /// Passes a text that the visitor may keep.
    fn give<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value> {
        match self.keep(text) {
            Ok(kept) => visitor.visit_borrowed_str(kept),
            Err(refused) => give_owned(refused, text, visitor),
        }
    }

    /// Passes a text that the visitor copies unless it has no escapes.
    fn give_passing<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value> {
        if let Some(plain) = text.plain() {
            return visitor.visit_borrowed_str(plain);
        }
        match text.decode(self.scratch) {
            Ok(decoded) => visitor.visit_str(decoded),
            Err(error) => give_owned(error.into(), text, visitor),
        }
    }

    fn number(&mut self) -> Result<&'de [u8]> {
        if !matches!(self.next(), b'-' | b'0'..=b'9') {
            return Err(DeserializeError::Type);
        }
        let from = self.scan.position();
        self.scan.number()?;
        Ok(self.scan.since(from).ok_or(ParseError::End)?.as_bytes())
    }

    /// Checks that the next value is exactly `word`.
    fn word(&mut self, word: &[u8]) -> Result<()> {
        if self.scan.value()?.as_bytes() == word { Ok(()) } else { Err(DeserializeError::Type) }
    }
}

/// Passes text that does not fit into the scratch space to a visitor that also takes a `String`.
#[cfg(feature = "alloc")]
fn give_owned<'de, V: Visitor<'de>>(refused: DeserializeError, text: Text<'_>, visitor: V) -> Result<V::Value> {
    if refused != DeserializeError::Room {
        return Err(refused);
    }
    let owned = text.chars().collect::<core::result::Result<_, _>>().map_err(|_| DecodeError::Surrogate)?;
    // A visitor for borrowed text reports a wrong type, but the missing room is the reason.
    visitor
        .visit_string(owned)
        .map_err(|error| if error == DeserializeError::Type { DeserializeError::Room } else { error })
}

#[cfg(not(feature = "alloc"))]
fn give_owned<'de, V: Visitor<'de>>(refused: DeserializeError, _: Text<'_>, _: V) -> Result<V::Value> {
    Err(refused)
}

/// Passes a whole number to the visitor.
fn give_integer<'de, V: Visitor<'de>>(text: &[u8], visitor: V) -> Result<V::Value> {
    let number = Number::read(text);
    match number.whole() {
        Some(whole) if whole == 0 || !number.negative() => visitor.visit_u64(whole),
        Some(_) => visitor.visit_i64(number.signed().ok_or(DeserializeError::Range)?),
        None if number.has_fraction() => Err(DeserializeError::Type),
        None => Err(DeserializeError::Range),
    }
}

#[cfg(feature = "alloc")]
fn float(text: &[u8]) -> Result<f64> {
    let float = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(DeserializeError::Syntax)?;
    finite(float)
}

#[cfg(not(feature = "alloc"))]
fn float(text: &[u8]) -> Result<f64> {
    finite(Number::read(text).float())
}

fn finite(float: f64) -> Result<f64> {
    if float.is_finite() { Ok(float) } else { Err(DeserializeError::Range) }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            give_integer(self.number()?, visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = DeserializeError;

    integers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    integers!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.next() {
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b'"' => self.deserialize_str(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => self.deserialize_unit(visitor),
            _ => {
                let text = self.number()?;
                let integer = text != b"-0" && text.iter().all(|&byte| byte == b'-' || byte.is_ascii_digit());
                let number = Number::read(text);
                match number.whole().filter(|_| integer) {
                    Some(whole) if !number.negative() => visitor.visit_u64(whole),
                    Some(_) if number.signed().is_some() => visitor.visit_i64(number.signed().unwrap_or_default()),
                    _ => visitor.visit_f64(float(text)?),
                }
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = self.next() == b't';
        self.word(if value { b"true" } else { b"false" })?;
        visitor.visit_bool(value)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        #[allow(clippy::cast_possible_truncation, reason = "the nearest one is meant, infinity is refused")]
        let single = float(self.number()?)? as f32;
        finite(single.into())?;
        visitor.visit_f32(single)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_f64(float(self.number()?)?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_string(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let text = self.text()?;
        self.give(text, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let text = self.text()?;
        self.give_passing(text, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.next() == b'[' {
            return self.deserialize_seq(visitor);
        }
        let text = self.text()?;
        visitor.visit_borrowed_bytes(self.keep(text)?.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.next() == b'n' {
            self.word(b"null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.word(b"null")?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        match name {
            TEXT => {
                self.expect(b'"')?;
                let from = self.scan.position();
                let text = self.scan.string()?;
                let bytes = if text.is_escaped() {
                    self.scan.since(from).ok_or(ParseError::End)?.as_bytes()
                } else {
                    text.raw()
                };
                visitor.visit_borrowed_bytes(bytes)
            }
            RAW => visitor.visit_borrowed_bytes(self.scan.value()?.as_bytes()),
            RAW_VALUE => {
                // An object with one member of a special name, which is the text.
                let (key, text) = (BorrowedStrDeserializer::new(RAW_VALUE), self.scan.value()?.as_str());
                let member = core::iter::once((key, BorrowedStrDeserializer::new(text)));
                visitor.visit_map(MapDeserializer::<_, DeserializeError>::new(member))
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.expect(b'[')?;
        self.scan.open_array()?;
        let mut elements = Inside::new(self, &[]);
        let value = visitor.visit_seq(&mut elements)?;
        // An array or tuple stops after its last element and leaves the bracket.
        if elements.element()? { Err(DeserializeError::Value) } else { Ok(value) }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_struct("", &[], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.expect(b'{')?;
        self.scan.open()?;
        let mut members = Inside::new(self, fields);
        let value = visitor.visit_map(&mut members)?;
        if members.open && members.member()? { Err(DeserializeError::Value) } else { Ok(value) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.next() == b'"' {
            let name = self.text()?.decode(self.scratch)?;
            return visitor.visit_enum(name.into_deserializer());
        }
        self.expect(b'{')?;
        self.scan.open()?;
        let name = self.scan.key(&mut true)?.ok_or(DeserializeError::Value)?;
        let value = visitor.visit_enum(Variant { reader: self, name })?;
        // Exactly one member.
        if self.scan.key(&mut false)?.is_some() { Err(DeserializeError::Value) } else { Ok(value) }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_string(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.scan.value()?;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 unit_struct tuple tuple_struct }
}

/// The inside of an array or object.
struct Inside<'x, 'de> {
    reader: &'x mut Reader<'de>,
    first: bool,
    open: bool,
    /// The members that the type has, and the current one: for an error that names it.
    fields: &'static [&'static str],
    at: Text<'de>,
}

impl<'x, 'de> Inside<'x, 'de> {
    fn new(reader: &'x mut Reader<'de>, fields: &'static [&'static str]) -> Self {
        Inside { reader, first: true, open: true, fields, at: Text::new(b"", false) }
    }

    fn element(&mut self) -> Result<bool> {
        self.open = self.open && self.reader.scan.element(&mut self.first)?;
        Ok(self.open)
    }

    /// Goes to the next member. Returns whether there is one.
    #[inline]
    fn member(&mut self) -> Result<bool> {
        self.open = self.open
            && self.reader.scan.has_key(core::mem::take(&mut self.first)).ok_or_else(|| self.reader.scan.fault())?;
        if self.open {
            self.at = self.reader.scan.read_key().ok_or_else(|| self.reader.scan.fault())?;
        }
        Ok(self.open)
    }
}

impl<'de> de::SeqAccess<'de> for &mut Inside<'_, 'de> {
    type Error = DeserializeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.element()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> de::MapAccess<'de> for &mut Inside<'_, 'de> {
    type Error = DeserializeError;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.member()? {
            true => {
                let key = Key { reader: &mut *self.reader, text: self.at, fields: self.fields };
                seed.deserialize(key).map(Some)
            }
            false => Ok(None),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        seed.deserialize(&mut *self.reader).map_err(|refused| refused.named(self.fields, self.at))
    }
}

/// The key of a member: a text, or a number for a map that has such keys.
struct Key<'x, 'de> {
    reader: &'x mut Reader<'de>,
    text: Text<'de>,
    /// The members that the type has.
    fields: &'static [&'static str],
}

impl<'de> Key<'_, 'de> {
    fn number(&self) -> Result<&'de [u8]> {
        // The text between the quotes has not been scanned as a number yet.
        let mut scan = Scanner::new(self.text.raw());
        scan.number().and_then(|()| if scan.peek().is_none() { Ok(()) } else { Err(ParseError::Trailing) })?;
        Ok(self.text.raw())
    }
}

macro_rules! integer_keys {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            give_integer(self.number().map_err(|_| DeserializeError::Type)?, visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Key<'_, 'de> {
    type Error = DeserializeError;

    integer_keys!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    integer_keys!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.reader.give(self.text, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.reader.give_passing(self.text, visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        // To compare with the first names of a type is faster than to check the text for UTF-8 or to decode it.
        match self.fields.iter().take(4).find(|field| self.text.eq_str(field)) {
            Some(field) => visitor.visit_borrowed_str(field),
            None => self.deserialize_string(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(self.text.decode(self.reader.scratch)?.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 str bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
    }
}

/// The one member of an object that is an enum.
struct Variant<'x, 'de> {
    reader: &'x mut Reader<'de>,
    name: Text<'de>,
}

impl<'x, 'de> de::EnumAccess<'de> for Variant<'x, 'de> {
    type Error = DeserializeError;
    type Variant = &'x mut Reader<'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant)> {
        let name = seed.deserialize(Key { reader: &mut *self.reader, text: self.name, fields: &[] })?;
        Ok((name, self.reader))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Reader<'de> {
    type Error = DeserializeError;

    fn unit_variant(self) -> Result<()> {
        self.word(b"null")
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_seq(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        de::Deserializer::deserialize_map(self, visitor)
    }
}

/// A visitor for the bytes that the [`Reader`] passes for [`TEXT`] and [`RAW`].
struct Bytes<F>(F);

impl<'de, T, F: FnOnce(&'de [u8]) -> T> Visitor<'de> for Bytes<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value read by mcp_sansio")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> core::result::Result<T, E> {
        Ok(self.0(bytes))
    }
}

/// Works only with [`Raw::to`]: the value unchanged.
impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, Bytes(Raw::trusted))
    }
}

/// Works only with [`Raw::to`]: the string with its escapes.
impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        let text = |bytes: &'de [u8]| match bytes {
            // A quote without an escape is not part of the text.
            [b'"', escaped @ .., b'"'] => Text::new(escaped, true),
            plain => Text::new(plain, false),
        };
        deserializer.deserialize_newtype_struct(TEXT, Bytes(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_what_is_no_object() {
        for (value, expected) in
            [("[1]", Err(DeserializeError::Type)), ("1", Err(DeserializeError::Type)), (r#"{"a":1}"#, Ok(1))]
        {
            let read = Raw::constant(value).member_to::<u8>("a", &mut &mut [][..]);
            assert_eq!(read, expected, "{value}");
        }
    }
}
