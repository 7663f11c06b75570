//! serde into a [`Sink`].
//!
//! Strings, numbers and the shapes are written as serde_json writes them. Floats in their shortest form, those that
//! are not finite as `null`; bytes as an array of numbers. Keys of maps must be strings, integers or unit variants.

use super::de::RAW_VALUE;
use super::{Decimal, Escape, Raw, Text, write};
use crate::sink::{Full, Sink};
use core::fmt::{self, Write};
use serde::ser::{self, Impossible, Serialize};

/// Why a value was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SerError {
    /// It did not fit.
    Full(Full),
    /// A map has a key that is no string, integer or unit variant.
    Key,
    /// The value refused to be serialized, or has something JSON has not.
    Unsupported,
}

impl SerError {
    /// The sink's word, if it was the sink's.
    #[must_use]
    pub const fn full(self) -> Option<Full> {
        match self {
            SerError::Full(full) => Some(full),
            _ => None,
        }
    }
}

impl fmt::Display for SerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SerError::Full(full) => full.fmt(f),
            SerError::Key => f.write_str("the key of a map is no string"),
            SerError::Unsupported => f.write_str("the value cannot be written as JSON"),
        }
    }
}

impl ser::StdError for SerError {}

impl ser::Error for SerError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        SerError::Unsupported
    }
}

impl From<Full> for SerError {
    fn from(full: Full) -> Self {
        SerError::Full(full)
    }
}

type Result<T = ()> = core::result::Result<T, SerError>;

/// Writes `value` as JSON.
///
/// # Errors
/// What [`SerError`] tells. What was put before is for the caller to take back.
pub fn to_sink<W: Sink + ?Sized, T: Serialize + ?Sized>(out: &mut W, value: &T) -> Result {
    value.serialize(Writer { out })
}

/// Writes `value` as JSON that stands inside a string: escaped, the quotes left to the caller.
///
/// # Errors
/// As [`to_sink`].
pub fn to_escaped<W: Sink + ?Sized, T: Serialize + ?Sized>(out: &mut W, value: &T) -> Result {
    to_sink(&mut Escape::new(out), value)
}

struct Writer<'w, W: ?Sized> {
    out: &'w mut W,
}

/// Writes `{"name":`, which is how a variant with content begins.
fn variant<W: Sink + ?Sized>(out: &mut W, name: &str) -> Result {
    out.put(b"{")?;
    write::string(out, name)?;
    Ok(out.put(b":")?)
}

macro_rules! integers {
    ($writer:ident, $($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result {
            Ok(write::$writer(self.out, value.into())?)
        })*
    };
}

impl<'w, W: Sink + ?Sized> ser::Serializer for Writer<'w, W> {
    type Ok = ();
    type Error = SerError;
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
        Ok(self.out.put(if value { b"true" } else { b"false" })?)
    }

    fn serialize_f32(self, value: f32) -> Result {
        // `Debug` has an exponent where `Display` would write hundreds of zeros.
        if value.is_finite() { show(self.out, format_args!("{value:?}")) } else { self.serialize_unit() }
    }

    fn serialize_f64(self, value: f64) -> Result {
        if value.is_finite() { show(self.out, format_args!("{value:?}")) } else { self.serialize_unit() }
    }

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result {
        Ok(write::string(self.out, value)?)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result {
        Ok(self.out.put(b"null")?)
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
        variant(self.out, name)?;
        value.serialize(Writer { out: &mut *self.out })?;
        Ok(self.out.put(b"}")?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'w, W>> {
        Inside::open(self.out, b"[", b"]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'w, W>> {
        Inside::open(self.out, b"[", b"]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'w, W>> {
        Inside::open(self.out, b"[", b"]")
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        variant(self.out, name)?;
        Inside::open(self.out, b"[", b"]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'w, W>> {
        Inside::open(self.out, b"{", b"}")
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        if name == RAW_VALUE {
            return Ok(Inside { out: self.out, first: true, verbatim: true, close: b"" });
        }
        Inside::open(self.out, b"{", b"}")
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, name: &'static str, _: usize) -> Result<Inside<'w, W>> {
        variant(self.out, name)?;
        Inside::open(self.out, b"{", b"}}")
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        self.out.put(b"\"")?;
        write::display(self.out, value)?;
        Ok(self.out.put(b"\"")?)
    }
}

/// The inside of an array or object.
struct Inside<'w, W: ?Sized> {
    out: &'w mut W,
    first: bool,
    /// Not an object, but text that already is JSON, in a struct with one field.
    verbatim: bool,
    close: &'static [u8],
}

impl<'w, W: Sink + ?Sized> Inside<'w, W> {
    fn open(out: &'w mut W, open: &[u8], close: &'static [u8]) -> Result<Self> {
        out.put(open)?;
        Ok(Inside { out, first: true, verbatim: false, close })
    }

    fn separate(&mut self) -> Result {
        if core::mem::replace(&mut self.first, false) { Ok(()) } else { Ok(self.out.put(b",")?) }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.separate()?;
        value.serialize(Writer { out: &mut *self.out })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result {
        if self.verbatim {
            return value.serialize(Scalar { out: &mut *self.out, verbatim: true });
        }
        self.separate()?;
        write::string(self.out, name)?;
        self.out.put(b":")?;
        value.serialize(Writer { out: &mut *self.out })
    }

    fn close(self) -> Result {
        Ok(self.out.put(self.close)?)
    }
}

macro_rules! arrays {
    ($($trait:ident $method:ident),*) => {
        $(impl<W: Sink + ?Sized> ser::$trait for Inside<'_, W> {
            type Ok = ();
            type Error = SerError;

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
            type Error = SerError;

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
    type Error = SerError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.separate()?;
        key.serialize(Scalar { out: &mut *self.out, verbatim: false })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.out.put(b":")?;
        value.serialize(Writer { out: &mut *self.out })
    }

    fn end(self) -> Result {
        self.close()
    }
}

/// Takes the key of a map, which it writes as a string; or, `verbatim`, text that already is JSON.
struct Scalar<'w, W: ?Sized> {
    out: &'w mut W,
    verbatim: bool,
}

impl<W: Sink + ?Sized> Scalar<'_, W> {
    fn refuse<T>(self) -> Result<T> {
        Err(if self.verbatim { SerError::Unsupported } else { SerError::Key })
    }

    fn number(self, write: impl FnOnce(&mut W) -> core::result::Result<(), Full>) -> Result {
        self.out.put(b"\"")?;
        write(self.out)?;
        Ok(self.out.put(b"\"")?)
    }
}

macro_rules! integer_keys {
    ($writer:ident, $($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result {
            self.number(|out| write::$writer(out, value.into()))
        })*
    };
}

impl<W: Sink + ?Sized> ser::Serializer for Scalar<'_, W> {
    type Ok = ();
    type Error = SerError;
    type SerializeSeq = Impossible<(), SerError>;
    type SerializeTuple = Impossible<(), SerError>;
    type SerializeTupleStruct = Impossible<(), SerError>;
    type SerializeTupleVariant = Impossible<(), SerError>;
    type SerializeMap = Impossible<(), SerError>;
    type SerializeStruct = Impossible<(), SerError>;
    type SerializeStructVariant = Impossible<(), SerError>;

    integer_keys!(signed, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64);
    integer_keys!(unsigned, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64);

    fn serialize_str(self, value: &str) -> Result {
        let write = if self.verbatim { write::verbatim } else { write::string };
        Ok(write(self.out, value)?)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result {
        if self.verbatim {
            return show(self.out, value);
        }
        Writer { out: self.out }.collect_str(value)
    }

    fn serialize_char(self, value: char) -> Result {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_bool(self, _: bool) -> Result {
        self.refuse()
    }

    fn serialize_f32(self, _: f32) -> Result {
        self.refuse()
    }

    fn serialize_f64(self, _: f64) -> Result {
        self.refuse()
    }

    fn serialize_bytes(self, _: &[u8]) -> Result {
        self.refuse()
    }

    fn serialize_none(self) -> Result {
        self.refuse()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result {
        self.refuse()
    }

    fn serialize_unit(self) -> Result {
        self.refuse()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.refuse()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result {
        self.refuse()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
        self.refuse()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        self.refuse()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct> {
        self.refuse()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        self.refuse()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        self.refuse()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        self.refuse()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        self.refuse()
    }
}

/// Writes what `value` shows, which is JSON.
fn show<W: Sink + ?Sized>(out: &mut W, value: impl fmt::Display) -> Result {
    struct Shown<'w, W: ?Sized> {
        out: &'w mut W,
        full: Option<Full>,
    }
    impl<W: Sink + ?Sized> Write for Shown<'_, W> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            write::verbatim(self.out, text).map_err(|full| {
                self.full = Some(full);
                fmt::Error
            })
        }
    }
    let mut shown = Shown { out, full: None };
    match write!(shown, "{value}") {
        Ok(()) => Ok(()),
        Err(fmt::Error) => Err(shown.full.map_or(SerError::Unsupported, SerError::Full)),
    }
}

/// As it stands; by serde_json, only with its feature `raw_value`.
impl Serialize for Raw<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        ser::SerializeStruct::serialize_field(&mut raw, RAW_VALUE, self.as_str())?;
        ser::SerializeStruct::end(raw)
    }
}

/// A string; lone surrogates become U+FFFD.
impl Serialize for Text<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        match self.plain() {
            Some(plain) => serializer.serialize_str(plain),
            None => serializer.collect_str(self),
        }
    }
}

/// A number; by serde_json, only with its feature `raw_value`.
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
