//! serde over a value that the scanner has already checked.
//!
//! Plain text is borrowed from the message. Text with escapes is decoded into scratch space that the caller lends,
//! and cut off it, so that any number of `&str` live next to each other; text that is copied anyway (`String`, names
//! of members and variants) only passes through. With `alloc`, what is owned can be longer than the scratch space.
//!
//! Internally tagged and untagged enums and `flatten` need `alloc`, which is a rule of serde.
//!
//! Floats: with the feature `std` as exact as core's own parser. Without it, exact for numbers of up to 2^53 (without
//! the point) and 22 places, otherwise within a few units of the last place; core's tables would cost a device 12 KB.

use super::number::Number;
use super::{DecodeError, Fault, Raw, Scanner, Text};
use core::fmt;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};

/// The newtype name by which [`Text`] asks for a string: with its quotes if it has escapes, else what is between them.
const TEXT: &str = "$mcp_sansio::Text";
/// The newtype name by which [`Raw`] asks for the bytes of a value.
const RAW: &str = "$mcp_sansio::Raw";
/// The name by which serde_json's `RawValue` asks for the text of a value, and by which it hands it over.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Why a value was not read into a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refused {
    /// The member of this name is missing.
    Missing(&'static str),
    /// The member of this name is not what it should be.
    Member(&'static str, Wrong),
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
    /// Not JSON; does not happen to a value that was scanned.
    Syntax,
}

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Wrong {
    /// It is of another type.
    Type,
    /// It is of the right type, but not one of the values allowed.
    Value,
    /// It is too large or too small a number, or too long a text.
    Range,
}

impl Refused {
    /// The same, with the name of the member that it is about.
    #[cold]
    fn named(self, fields: &'static [&'static str], key: Text<'_>) -> Self {
        let name = fields.iter().find(|field| key.is(field));
        name.map_or(self, |name| self.of(name))
    }

    /// The same, of the member of that name.
    #[cold]
    pub(crate) fn of(self, name: &'static str) -> Self {
        let wrong = match self {
            Refused::Type => Wrong::Type,
            Refused::Value | Refused::Unknown => Wrong::Value,
            Refused::Range | Refused::Room => Wrong::Range,
            _ => return self,
        };
        Refused::Member(name, wrong)
    }
}

impl Refused {
    /// Says it so that a model can correct itself: three pieces, so that a device need not format.
    pub(crate) const fn words(self) -> [&'static str; 3] {
        match self {
            Refused::Missing(name) => ["missing member `", name, "`"],
            Refused::Member(name, Wrong::Type) => ["member `", name, "` has the wrong type"],
            Refused::Member(name, Wrong::Value) => ["member `", name, "` is not one of the values allowed"],
            Refused::Member(name, Wrong::Range) => ["member `", name, "` is out of range or too long"],
            Refused::Unknown => ["unknown member or variant", "", ""],
            Refused::Type => ["a value has the wrong type", "", ""],
            Refused::Value => ["a value is not one of those allowed", "", ""],
            Refused::Range => ["a number is out of range", "", ""],
            Refused::Room => ["a text with escapes is too long", "", ""],
            Refused::Syntax => ["not valid JSON", "", ""],
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words().iter().try_for_each(|words| f.write_str(words))
    }
}

impl de::StdError for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Refused::Value
    }
    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Refused::Type
    }
    fn invalid_value(found: Unexpected<'_>, _: &dyn Expected) -> Self {
        match found {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => Refused::Range,
            _ => Refused::Value,
        }
    }
    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        Refused::Value
    }
    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Refused::Unknown
    }
    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Refused::Unknown
    }
    fn missing_field(name: &'static str) -> Self {
        Refused::Missing(name)
    }
    fn duplicate_field(_: &'static str) -> Self {
        Refused::Value
    }
}

impl From<Fault> for Refused {
    fn from(_: Fault) -> Self {
        Refused::Syntax
    }
}

impl From<DecodeError> for Refused {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Room => Refused::Room,
            DecodeError::Surrogate => Refused::Value,
        }
    }
}

type Result<T> = core::result::Result<T, Refused>;

impl<'a> Raw<'a> {
    /// Reads the value into a type. Members that the type does not know are skipped; whole numbers may be written as
    /// `2.0`.
    ///
    /// `scratch` takes the text that is borrowed and has escapes, decoded; the length of the value is always enough.
    ///
    /// # Errors
    /// What [`Refused`] tells.
    pub fn to<T: Deserialize<'a>>(self, scratch: &'a mut [u8]) -> core::result::Result<T, Refused> {
        T::deserialize(&mut Reader { scan: Scanner::checked(self.as_bytes()), scratch })
    }

    /// Reads one member of the object into a type; one that is missing reads as `null`. What is left of the scratch
    /// comes back, for the next one.
    pub(crate) fn member_to<T: Deserialize<'a>>(
        self,
        name: &'static str,
        scratch: &'a mut [u8],
    ) -> core::result::Result<(T, &'a mut [u8]), Refused> {
        let mut reader = Reader { scan: Scanner::checked(self.as_bytes()), scratch };
        let (mut first, mut found) = (true, None);
        reader.expect(b'{')?;
        reader.scan.open()?;
        while let Some(key) = reader.scan.key(&mut first)? {
            if key.is(name) {
                found = Some(T::deserialize(&mut reader).map_err(|refused| refused.of(name))?);
            } else {
                reader.scan.value()?;
            }
        }
        let missing = |_| Refused::Missing(name);
        let value = match found {
            Some(value) => value,
            None => {
                T::deserialize(&mut Reader { scan: Scanner::checked(b"null"), scratch: &mut [] }).map_err(missing)?
            }
        };
        Ok((value, reader.scratch))
    }
}

struct Reader<'de> {
    scan: Scanner<'de>,
    /// What is left of it.
    scratch: &'de mut [u8],
}

impl<'de> Reader<'de> {
    /// The first byte of the next value.
    fn next(&mut self) -> u8 {
        self.scan.space();
        self.scan.peek().unwrap_or_default()
    }

    /// Fails unless the next value begins with `byte`.
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.next() == byte { Ok(()) } else { Err(Refused::Type) }
    }

    fn text(&mut self) -> Result<Text<'de>> {
        self.expect(b'"')?;
        Ok(self.scan.string()?)
    }

    /// The text for as long as the message lives, in scratch space if it has to be.
    fn keep(&mut self, text: Text<'de>) -> Result<&'de str> {
        if let Some(plain) = text.plain() {
            return Ok(plain);
        }
        let len = text.decode_into(self.scratch)?;
        let (decoded, rest) = core::mem::take(&mut self.scratch).split_at_mut_checked(len).ok_or(Refused::Room)?;
        self.scratch = rest;
        core::str::from_utf8(decoded).map_err(|_| Refused::Syntax)
    }

    /// Text that the visitor may keep.
    fn give<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value> {
        match self.keep(text) {
            Ok(kept) => visitor.visit_borrowed_str(kept),
            Err(refused) => give_owned(refused, text, visitor),
        }
    }

    /// Text that the visitor will copy, if it is not plain.
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
            return Err(Refused::Type);
        }
        let from = self.scan.position();
        self.scan.number()?;
        Ok(self.scan.since(from).ok_or(Fault::End)?.as_bytes())
    }

    /// The next value must be exactly this.
    fn word(&mut self, word: &[u8]) -> Result<()> {
        if self.scan.value()?.as_bytes() == word { Ok(()) } else { Err(Refused::Type) }
    }
}

/// Text for which there is no room in the scratch space, for a visitor that takes a `String` too.
#[cfg(feature = "alloc")]
fn give_owned<'de, V: Visitor<'de>>(refused: Refused, text: Text<'_>, visitor: V) -> Result<V::Value> {
    if refused != Refused::Room {
        return Err(refused);
    }
    let owned = text.chars().collect::<core::result::Result<_, _>>().map_err(|_| DecodeError::Surrogate)?;
    // A visitor that wants borrowed text finds the type wrong; but the room is the reason.
    visitor.visit_string(owned).map_err(|error| if error == Refused::Type { Refused::Room } else { error })
}

#[cfg(not(feature = "alloc"))]
fn give_owned<'de, V: Visitor<'de>>(refused: Refused, _: Text<'_>, _: V) -> Result<V::Value> {
    Err(refused)
}

/// Hands over a whole number.
fn give_integer<'de, V: Visitor<'de>>(text: &[u8], visitor: V) -> Result<V::Value> {
    let number = Number::read(text);
    match number.whole() {
        Some(whole) if whole == 0 || !number.negative() => visitor.visit_u64(whole),
        Some(_) => visitor.visit_i64(number.signed().ok_or(Refused::Range)?),
        None if number.has_fraction() => Err(Refused::Type),
        None => Err(Refused::Range),
    }
}

#[cfg(feature = "std")]
fn float(text: &[u8]) -> Result<f64> {
    let float = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Refused::Syntax)?;
    finite(float)
}

#[cfg(not(feature = "std"))]
fn float(text: &[u8]) -> Result<f64> {
    finite(Number::read(text).float())
}

fn finite(float: f64) -> Result<f64> {
    if float.is_finite() { Ok(float) } else { Err(Refused::Range) }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            give_integer(self.number()?, visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Reader<'de> {
    type Error = Refused;

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

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        match name {
            TEXT => {
                self.expect(b'"')?;
                let from = self.scan.position();
                let text = self.scan.string()?;
                let bytes =
                    if text.is_escaped() { self.scan.since(from).ok_or(Fault::End)?.as_bytes() } else { text.raw() };
                visitor.visit_borrowed_bytes(bytes)
            }
            RAW => visitor.visit_borrowed_bytes(self.scan.value()?.as_bytes()),
            RAW_VALUE => visitor.visit_map(RawValue { text: Some(self.scan.value()?.as_str()) }),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.expect(b'[')?;
        self.scan.open_array()?;
        let mut elements = Inside::new(self, &[]);
        let value = visitor.visit_seq(&mut elements)?;
        // An array or tuple stops at its last element and leaves the bracket behind.
        if elements.element()? { Err(Refused::Value) } else { Ok(value) }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
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
        if members.open && members.member()? { Err(Refused::Value) } else { Ok(value) }
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
        let name = self.scan.key(&mut true)?.ok_or(Refused::Value)?;
        let value = visitor.visit_enum(Variant { reader: self, name })?;
        // One member and no more.
        if self.scan.key(&mut false)?.is_some() { Err(Refused::Value) } else { Ok(value) }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_string(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.scan.value()?;
        visitor.visit_unit()
    }
}

/// The inside of an array or object.
struct Inside<'x, 'de> {
    reader: &'x mut Reader<'de>,
    first: bool,
    open: bool,
    /// The members that the type knows, and the one at hand: for saying which one is wrong.
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

    /// Whether there is another member, which is then at hand.
    #[inline]
    fn member(&mut self) -> Result<bool> {
        self.open = self.open
            && self.reader.scan.has_key(core::mem::take(&mut self.first)).ok_or_else(|| self.reader.scan.fault())?;
        if self.open {
            self.at = self.reader.scan.any_key().ok_or_else(|| self.reader.scan.fault())?;
        }
        Ok(self.open)
    }
}

impl<'de> de::SeqAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.element()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> de::MapAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Refused;

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

/// The key of a member: text, but a map may want numbers.
struct Key<'x, 'de> {
    reader: &'x mut Reader<'de>,
    text: Text<'de>,
    /// What the type knows.
    fields: &'static [&'static str],
}

impl<'de> Key<'_, 'de> {
    fn number(&self) -> Result<&'de [u8]> {
        // Nobody has looked yet at what stands between the quotes.
        let mut scan = Scanner::new(self.text.raw());
        scan.number().and_then(|()| if scan.peek().is_none() { Ok(()) } else { Err(Fault::Trailing) })?;
        Ok(self.text.raw())
    }
}

macro_rules! integer_keys {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            give_integer(self.number().map_err(|_| Refused::Type)?, visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Key<'_, 'de> {
    type Error = Refused;

    integer_keys!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    integer_keys!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.reader.give(self.text, visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.reader.give(self.text, visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.reader.give_passing(self.text, visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        // The first ones of a type are found faster than text is checked to be UTF-8, or decoded.
        match self.fields.iter().take(4).find(|field| self.text.is(field)) {
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
        bool i128 u128 f32 f64 bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
    }
}

/// The one member of an object that is an enum.
struct Variant<'x, 'de> {
    reader: &'x mut Reader<'de>,
    name: Text<'de>,
}

impl<'x, 'de> de::EnumAccess<'de> for Variant<'x, 'de> {
    type Error = Refused;
    type Variant = &'x mut Reader<'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant)> {
        let name = seed.deserialize(Key { reader: &mut *self.reader, text: self.name, fields: &[] })?;
        Ok((name, self.reader))
    }
}

impl<'de> de::VariantAccess<'de> for &mut Reader<'de> {
    type Error = Refused;

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

/// A value as serde_json's `RawValue` wants it: an object with one member of a magic name, which is its text.
struct RawValue<'de> {
    text: Option<&'de str>,
}

impl<'de> de::MapAccess<'de> for RawValue<'de> {
    type Error = Refused;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        match self.text {
            Some(_) => seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text.take().unwrap_or("null")))
    }
}

/// Only by [`Raw::to`]: the value as it stands.
impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Raw<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON by mcp_sansio")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> core::result::Result<Raw<'de>, E> {
                Ok(Raw::trusted(bytes))
            }
        }
        deserializer.deserialize_newtype_struct(RAW, Bytes)
    }
}

/// Only by [`Raw::to`]: the string as it stands, nothing decoded.
impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string by mcp_sansio")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> core::result::Result<Text<'de>, E> {
                Ok(match bytes {
                    // A quote that is not escaped is not of the text.
                    [b'"', escaped @ .., b'"'] => Text::new(escaped, true),
                    plain => Text::new(plain, false),
                })
            }
        }
        deserializer.deserialize_newtype_struct(TEXT, Bytes)
    }
}
