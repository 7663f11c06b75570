//! Writes serde types into a [`Sink`].
//!
//! Strings, numbers, arrays and objects are written as serde_json writes them. Floats have their shortest form;
//! those that are not finite become `null`. Bytes become an array of numbers. Keys of maps must be strings,
//! integers or unit variants.

use super::de::RAW_VALUE;
use super::write::{self, Escape};
use super::{Decimal, Raw, Text};
use crate::sink::{FullError, Sink};
use core::fmt::{self, Write};
use serde::ser::{self, Serialize};

/// The reason why a value was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SerializeError {
    /// It did not fit.
    Full(FullError),
    /// A key of a map is not a string, integer or unit variant.
    Key,
    /// `Serialize` returned an error of its own, or the value has no form in JSON.
    Unsupported,
}

impl SerializeError {
    /// Returns the error of the sink, if it was the reason.
    #[must_use]
    pub const fn full(self) -> Option<FullError> {
        match self {
            SerializeError::Full(full) => Some(full),
            _ => None,
        }
    }
}

impl fmt::Display for SerializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SerializeError::Full(full) => full.fmt(f),
            SerializeError::Key => f.write_str("the key of a map is no string"),
            SerializeError::Unsupported => f.write_str("the value cannot be written as JSON"),
        }
    }
}

impl ser::StdError for SerializeError {}

impl ser::Error for SerializeError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        SerializeError::Unsupported
    }
}

impl From<FullError> for SerializeError {
    fn from(full: FullError) -> Self {
        SerializeError::Full(full)
    }
}

type Result<T = ()> = core::result::Result<T, SerializeError>;

/// Writes `value` as JSON.
///
/// # Errors
/// A [`SerializeError`]. A part of the value may be written by then; the caller takes it back.
pub fn to_sink<W: Sink + ?Sized, T: Serialize + ?Sized>(out: &mut W, value: &T) -> Result {
    value.serialize(Writer { out, place: ValuePlace::Value })
}

/// Writes `value` as JSON inside a string: with escapes. The caller writes the quotes.
///
/// # Errors
/// The same as [`to_sink`].
pub fn to_escaped<W: Sink + ?Sized, T: Serialize + ?Sized>(out: &mut W, value: &T) -> Result {
    to_sink(&mut Escape::new(out), value)
}

/// Writes one value.
struct Writer<'w, W: ?Sized> {
    out: &'w mut W,
    place: ValuePlace,
}

/// The place of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePlace {
    /// Any place for a value.
    Value,
    /// The key of a map, which is a string.
    Key,
    /// The field of a `RawValue`: its text is JSON.
    Raw,
}

impl<'w, W: Sink + ?Sized> Writer<'w, W> {
    /// Returns the sink, for a value that neither a key nor a `RawValue` can have.
    fn value(self) -> Result<&'w mut W> {
        match self.place {
            ValuePlace::Value => Ok(self.out),
            ValuePlace::Key => Err(SerializeError::Key),
            ValuePlace::Raw => Err(SerializeError::Unsupported),
        }
    }

    fn number(self, write: impl FnOnce(&mut W) -> core::result::Result<(), FullError>) -> Result {
        if self.place != ValuePlace::Key {
            return Ok(write(self.out)?);
        }
        self.out.put(b"\"")?;
        write(self.out)?;
        Ok(self.out.put(b"\"")?)
    }
}

/// Writes `{"name":`, the start of a variant with content.
fn variant<W: Sink + ?Sized>(out: &mut W, name: &str) -> Result {
    out.put(b"{")?;
    write::string(out, name)?;
    Ok(out.put(b":")?)
}

macro_rules! integers {
    ($writer:ident, $($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result {
            self.number(|out| write::$writer(out, value.into()))
        })*
    };
}

impl<'w, W: Sink + ?Sized> ser::Serializer for Writer<'w, W> {
    type Ok = ();
    type Error = SerializeError;
    type SerializeSeq = Inside<'w, W>;
    type SerializeTuple = Inside<'w, W>;
    type SerializeTupleStruct = Inside<'w, W>;
    type SerializeTupleVariant = Inside<'w, W>;
    type SerializeMap = Inside<'w, W>;
    type SerializeStruct = Inside<'w, W>;
    type SerializeStructVariant = Inside<'w, W>;

    integers!(signed, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64);
    integers!(unsigned, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64);

    fn serialize_bool(self, value: bool) -> Result {
        Ok(self.value()?.put(if value { b"true" } else { b"false" })?)
    }

    fn serialize_f32(self, value: f32) -> Result {
        // `Debug` writes an exponent where `Display` would write hundreds of zeros.
        if value.is_finite() { show(self.value()?, format_args!("{value:?}")) } else { self.serialize_unit() }
    }

    fn serialize_f64(self, value: f64) -> Result {
        if value.is_finite() { show(self.value()?, format_args!("{value:?}")) } else { self.serialize_unit() }
    }

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result {
        match self.place {
            ValuePlace::Raw => write::one_line(self.out, value.as_bytes())?,
            _ => write::string(self.out, value)?,
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        to_sink(self.value()?, value)
    }

    fn serialize_unit(self) -> Result {
        Ok(self.value()?.put(b"null")?)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result {
        let out = self.value()?;
        variant(out, name)?;
        to_sink(out, value)?;
        Ok(out.put(b"}")?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'w, W>> {
        Inside::open(self.value()?, b"[", b"]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'w, W>> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'w, W>> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        let out = self.value()?;
        variant(out, name)?;
        Inside::open(out, b"[", b"]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'w, W>> {
        Inside::open(self.value()?, b"{", b"}")
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        match name {
            RAW_VALUE => Ok(Inside { out: self.value()?, first: true, is_raw: true, close: b"" }),
            _ => self.serialize_map(None),
        }
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        let out = self.value()?;
        variant(out, name)?;
        Inside::open(out, b"{", b"}}")
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        if self.place == ValuePlace::Raw {
            return show(self.out, value);
        }
        self.out.put(b"\"")?;
        write::display(self.out, value)?;
        Ok(self.out.put(b"\"")?)
    }
}

/// The inside of an array or object.
struct Inside<'w, W: ?Sized> {
    out: &'w mut W,
    first: bool,
    /// This is a `RawValue`: a struct with one field, whose text is JSON.
    is_raw: bool,
    close: &'static [u8],
}

impl<'w, W: Sink + ?Sized> Inside<'w, W> {
    fn open(out: &'w mut W, open: &[u8], close: &'static [u8]) -> Result<Self> {
        out.put(open)?;
        Ok(Inside { out, first: true, is_raw: false, close })
    }

    fn separate(&mut self) -> Result {
        if core::mem::replace(&mut self.first, false) { Ok(()) } else { Ok(self.out.put(b",")?) }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.separate()?;
        to_sink(self.out, value)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result {
        if self.is_raw {
            return value.serialize(Writer { out: &mut *self.out, place: ValuePlace::Raw });
        }
        self.separate()?;
        write::string(self.out, name)?;
        self.out.put(b":")?;
        to_sink(self.out, value)
    }

    fn close(self) -> Result {
        Ok(self.out.put(self.close)?)
    }
}

macro_rules! arrays {
    ($($trait:ident $method:ident),*) => {
        $(impl<W: Sink + ?Sized> ser::$trait for Inside<'_, W> {
            type Ok = ();
            type Error = SerializeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.element(value)
            }

            fn end(self) -> Result {
                self.close()
            }
        })*
    };
}

arrays!(SerializeSeq serialize_element, SerializeTuple serialize_element);
arrays!(SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

macro_rules! objects {
    ($($trait:ident),*) => {
        $(impl<W: Sink + ?Sized> ser::$trait for Inside<'_, W> {
            type Ok = ();
            type Error = SerializeError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
                self.field(name, value)
            }

            fn end(self) -> Result {
                self.close()
            }
        })*
    };
}

objects!(SerializeStruct, SerializeStructVariant);

impl<W: Sink + ?Sized> ser::SerializeMap for Inside<'_, W> {
    type Ok = ();
    type Error = SerializeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.separate()?;
        key.serialize(Writer { out: &mut *self.out, place: ValuePlace::Key })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.out.put(b":")?;
        to_sink(self.out, value)
    }

    fn end(self) -> Result {
        self.close()
    }
}

/// Writes the text of `value`, which is JSON.
fn show<W: Sink + ?Sized>(out: &mut W, value: impl fmt::Display) -> Result {
    struct Shown<'w, W: ?Sized> {
        out: &'w mut W,
        full: Option<FullError>,
    }
    impl<W: Sink + ?Sized> Write for Shown<'_, W> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            write::one_line(self.out, text.as_bytes()).map_err(|full| {
                self.full = Some(full);
                fmt::Error
            })
        }
    }
    let mut shown = Shown { out, full: None };
    match write!(shown, "{value}") {
        Ok(()) => Ok(()),
        Err(fmt::Error) => Err(shown.full.map_or(SerializeError::Unsupported, SerializeError::Full)),
    }
}

/// Writes the JSON unchanged; with serde_json only if its feature `raw_value` is on.
impl Serialize for Raw<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        ser::SerializeStruct::serialize_field(&mut raw, RAW_VALUE, self.as_str())?;
        ser::SerializeStruct::end(raw)
    }
}

/// Writes a string; lone surrogates become U+FFFD.
impl Serialize for Text<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        match self.plain() {
            Some(plain) => serializer.serialize_str(plain),
            None => serializer.collect_str(self),
        }
    }
}

/// Writes a number; with serde_json only if its feature `raw_value` is on.
impl Serialize for Decimal {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        struct Digits<'d>(&'d Decimal);
        impl Serialize for Digits<'_> {
            fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self.0)
            }
        }
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        ser::SerializeStruct::serialize_field(&mut raw, RAW_VALUE, &Digits(self))?;
        ser::SerializeStruct::end(raw)
    }
}
