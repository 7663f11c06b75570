//! The types that arguments consist of.

use super::{Argument, ArgumentError, ArgumentReader, Limit, TypeSchema};
use crate::json::{Raw, Text};

/// Integers that fit into an `i64`.
macro_rules! integers {
    ($($type:ident $schema:expr;)*) => { $(
        impl<'a> Argument<'a> for $type {
            const ARGUMENT: TypeSchema = $schema;

            #[inline(always)]
            fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
                #[allow(clippy::cast_possible_truncation, reason = "the limits are those of the type or narrower")]
                let limit = |limit: Option<Limit>, own: i64| match limit {
                    Some(Limit::Integer(limit)) => limit as i64,
                    _ => own,
                };
                #[allow(clippy::cast_lossless, clippy::cast_possible_wrap, reason = "all types are narrower")]
                let (least, most) = (limit(schema.minimum, $type::MIN as i64), limit(schema.maximum, $type::MAX as i64));
                $type::try_from(reader.integer(value, least, most)?).ok()
            }
        }
    )* };
}

#[allow(clippy::cast_lossless, reason = "`from` is not const")]
const fn within(least: i64, most: i64) -> TypeSchema {
    TypeSchema::INTEGER.minimum(least as i128).maximum(most as i128)
}

integers! {
    i8 within(i8::MIN as i64, i8::MAX as i64);
    i16 within(i16::MIN as i64, i16::MAX as i64);
    i32 within(i32::MIN as i64, i32::MAX as i64);
    i64 TypeSchema::INTEGER;
    isize TypeSchema::INTEGER;
    u8 within(0, u8::MAX as i64);
    u16 within(0, u16::MAX as i64);
    u32 within(0, u32::MAX as i64);
}

/// Integers that do not.
macro_rules! unsigned {
    ($($type:ident)*) => { $(
        impl<'a> Argument<'a> for $type {
            const ARGUMENT: TypeSchema = TypeSchema::INTEGER.minimum(0);

            #[inline(always)]
            fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the limits are those of the type or narrower"
                )]
                let limit = |limit: Option<Limit>, own: u64| match limit {
                    Some(Limit::Integer(limit)) => limit as u64,
                    _ => own,
                };
                let (least, most) = (limit(schema.minimum, 0), limit(schema.maximum, $type::MAX as u64));
                $type::try_from(reader.unsigned(value, least, most)?).ok()
            }
        }
    )* };
}

unsigned!(u64 usize);

impl<'a> Argument<'a> for f64 {
    const ARGUMENT: TypeSchema = TypeSchema::NUMBER;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.number(value, schema)
    }
}

impl<'a> Argument<'a> for f32 {
    const ARGUMENT: TypeSchema = TypeSchema::NUMBER;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        #[allow(clippy::cast_possible_truncation, reason = "the nearest one is meant, infinity is refused")]
        let single = reader.number(value, schema)? as f32;
        if single.is_finite() {
            return Some(single);
        }
        reader.fail(ArgumentError::Range { what: "a number", least: None, most: None })
    }
}

impl<'a> Argument<'a> for bool {
    const ARGUMENT: TypeSchema = TypeSchema::BOOLEAN;

    #[inline(always)]
    fn read(value: Raw<'a>, _: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.boolean(value)
    }
}

impl<'a> Argument<'a> for Text<'a> {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        reader.text(value, schema)
    }
}

impl<'a> Argument<'a> for &'a str {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    #[inline(always)]
    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let text = reader.text(value, schema)?;
        reader.decoded(text)
    }
}

impl<'a> Argument<'a> for Raw<'a> {
    const ARGUMENT: TypeSchema = TypeSchema::ANY;

    #[inline(always)]
    fn read(value: Raw<'a>, _: &TypeSchema, _: &mut ArgumentReader<'a>) -> Option<Self> {
        Some(value)
    }
}

#[cfg(feature = "alloc")]
impl<'a> Argument<'a> for alloc::string::String {
    const ARGUMENT: TypeSchema = TypeSchema::STRING;

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        match reader.text(value, schema)?.chars().collect() {
            Ok(text) => Some(text),
            Err(_) => reader.fail(ArgumentError::Expected("text without lone surrogates")),
        }
    }
}

#[cfg(feature = "alloc")]
impl<'a, T: Argument<'a>> Argument<'a> for alloc::vec::Vec<T> {
    const ARGUMENT: TypeSchema = TypeSchema::array(const { &T::ARGUMENT });

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items = alloc::vec::Vec::new();
        reader.items(value, schema, |_, item| items.push(item))?;
        Some(items)
    }
}

/// Of a number or of another type that is `Copy`; not of length 0.
impl<'a, T: Argument<'a> + Copy, const N: usize> Argument<'a> for [T; N] {
    const ARGUMENT: TypeSchema = {
        assert!(N > 0, "an array without elements is no argument");
        let schema = TypeSchema::array(const { &T::ARGUMENT });
        TypeSchema { shortest: Some(N), longest: Some(N), ..schema }
    };

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items: Option<[T; N]> = None;
        // The schema has N items.
        reader.items(value, schema, |index, item: T| {
            if let Some(place) = items.get_or_insert([item; N]).get_mut(index) {
                *place = item;
            }
        })?;
        items
    }
}

#[cfg(feature = "heapless")]
impl<'a, const N: usize> Argument<'a> for heapless::String<N> {
    const ARGUMENT: TypeSchema = TypeSchema::STRING.max_length(N);

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut copy = heapless::String::new();
        for character in reader.text(value, schema)?.chars() {
            let Ok(character) = character else {
                return reader.fail(ArgumentError::Expected("text without lone surrogates"));
            };
            if copy.push(character).is_err() {
                return reader.fail(ArgumentError::Length { what: "text", least: 0, most: Some(N), unit: "bytes" });
            }
        }
        Some(copy)
    }
}

#[cfg(feature = "heapless")]
impl<'a, T: Argument<'a>, const N: usize> Argument<'a> for heapless::Vec<T, N> {
    const ARGUMENT: TypeSchema = TypeSchema::array(const { &T::ARGUMENT }).max_items(N);

    fn read(value: Raw<'a>, schema: &TypeSchema, reader: &mut ArgumentReader<'a>) -> Option<Self> {
        let mut items = heapless::Vec::new();
        // The schema has at most N items.
        reader.items(value, schema, |_, item| drop(items.push(item)))?;
        Some(items)
    }
}
