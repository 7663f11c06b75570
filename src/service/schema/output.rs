//! The types that outputs consist of, and the writer of objects.

use super::{Argument, Output, OutputValue, TypeSchema};
use crate::json::write::{self, Escape};
use crate::json::{Decimal, Raw, Text};
use crate::service::Call;
use crate::service::context::HandlerResult;
use crate::sink::{FullError, Sink, Writer};

impl Call<'_> {
    /// Answers with `structuredContent` if the revision has it, and with the same JSON as text; as
    /// [`json`](Call::json), without serde.
    ///
    /// # Errors
    /// The handler has answered already, or the result does not fit.
    #[doc(alias = "structuredContent")]
    pub fn output<T: Output + ?Sized>(&mut self, value: &T) -> HandlerResult {
        let (text, json) =
            (|out: &mut Writer<'_>| value.write(&mut Escape::new(out)), |out: &mut Writer<'_>| value.write(out));
        self.structured(true, &|out| out.write(text), &|out| out.write(json))
    }
}

/// Writes the members of an object, with the commas.
pub struct ObjectWriter<'o> {
    out: &'o mut dyn Sink,
    before: &'static [u8],
}

crate::debug_fields!(impl for ObjectWriter<'_> {});

impl<'o> ObjectWriter<'o> {
    /// Begins an object.
    pub const fn new(out: &'o mut dyn Sink) -> Self {
        ObjectWriter { out, before: b"{" }
    }

    /// Writes members that are JSON already.
    ///
    /// # Errors
    /// [`FullError`] if they do not fit; so do all below.
    pub fn literal(&mut self, members: &str) -> Result<(), FullError> {
        self.out.put(self.before)?;
        self.before = b",";
        self.out.put(members.as_bytes())
    }

    /// Writes a member. The key has its quotes and the colon.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit.
    #[inline]
    pub fn member<T: OutputValue + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), FullError> {
        self.literal(key)?;
        value.write(self.out)
    }

    /// Writes the closing brace.
    ///
    /// # Errors
    /// [`FullError`] if it does not fit.
    pub fn close(self) -> Result<(), FullError> {
        self.out.put(if self.before == b"{" { b"{}" } else { b"}" })
    }
}

macro_rules! written {
    ($($type:ty: $schema:expr, |$value:ident, $out:ident| $write:expr;)*) => { $(
        impl OutputValue for $type {
            const OUTPUT: TypeSchema = $schema;

            fn write(&self, $out: &mut dyn Sink) -> Result<(), FullError> {
                let $value = self;
                $write
            }
        }
    )* };
}

written! {
    bool: TypeSchema::BOOLEAN, |value, out| out.put(if *value { b"true" } else { b"false" });
    i8: <i8 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i16: <i16 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i32: <i32 as Argument<'static>>::ARGUMENT, |value, out| write::signed(out, (*value).into());
    i64: TypeSchema::INTEGER, |value, out| write::signed(out, *value);
    isize: TypeSchema::INTEGER, |value, out| write::signed(out, i64::try_from(*value).unwrap_or_default());
    u8: <u8 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u16: <u16 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u32: <u32 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, (*value).into());
    u64: <u64 as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, *value);
    usize: <usize as Argument<'static>>::ARGUMENT, |value, out| write::unsigned(out, u64::try_from(*value).unwrap_or_default());
    f64: TypeSchema::NUMBER, |value, out| float(out, value.is_finite(), format_args!("{value:?}"));
    f32: TypeSchema::NUMBER, |value, out| float(out, value.is_finite(), format_args!("{value:?}"));
    Decimal: TypeSchema::NUMBER, |value, out| write::decimal(out, *value);
    str: TypeSchema::STRING, |value, out| write::string(out, value);
    Text<'_>: TypeSchema::STRING, |value, out| write::text(out, *value);
    Raw<'_>: TypeSchema::ANY, |value, out| write::raw(out, *value);
}

fn float(out: &mut dyn Sink, is_finite: bool, text: core::fmt::Arguments<'_>) -> Result<(), FullError> {
    if is_finite { write::display(out, text) } else { out.put(b"null") }
}

/// Writes an array.
fn array<T: OutputValue>(items: &[T], out: &mut dyn Sink) -> Result<(), FullError> {
    let mut before: &[u8] = b"[";
    for item in items {
        out.put(before)?;
        item.write(out)?;
        before = b",";
    }
    out.put(if before == b"[" { b"[]" } else { b"]" })
}

impl<T: OutputValue + ?Sized> OutputValue for &T {
    const OUTPUT: TypeSchema = T::OUTPUT;

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        T::write(self, out)
    }
}

impl<T: OutputValue> OutputValue for [T] {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT });

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

impl<T: OutputValue, const N: usize> OutputValue for [T; N] {
    const OUTPUT: TypeSchema =
        TypeSchema { shortest: Some(N), longest: Some(N), ..TypeSchema::array(const { &T::OUTPUT }) };

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

#[cfg(feature = "alloc")]
impl OutputValue for alloc::string::String {
    const OUTPUT: TypeSchema = TypeSchema::STRING;

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        write::string(out, self)
    }
}

#[cfg(feature = "alloc")]
impl<T: OutputValue> OutputValue for alloc::vec::Vec<T> {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT });

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> OutputValue for heapless::String<N> {
    const OUTPUT: TypeSchema = TypeSchema::STRING.max_length(N);

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        write::string(out, self)
    }
}

#[cfg(feature = "heapless")]
impl<T: OutputValue, const N: usize> OutputValue for heapless::Vec<T, N> {
    const OUTPUT: TypeSchema = TypeSchema::array(const { &T::OUTPUT }).max_items(N);

    fn write(&self, out: &mut dyn Sink) -> Result<(), FullError> {
        array(self, out)
    }
}
