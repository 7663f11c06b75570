//! JSON in one pass: scanner, writer, serde.
//!
//! - [`Scanner`] walks over one message and checks all of it: grammar, UTF-8, depth. No recursion, no allocation.
//! - [`Raw`] is one validated value, unchanged from the message; [`Text`] is one string between its quotes.
//! - [`mod@write`] writes JSON into a [`Sink`](crate::sink::Sink).
//! - [`constant`] checks JSON constants when the program is compiled.
//! - With the feature `serde`: `Raw::to` and `Raw::deserialize` read any `Deserialize`, `to_sink` writes any `Serialize`.

pub mod constant;
#[cfg(feature = "serde")]
pub mod de;
mod number;
pub(crate) mod object;
#[cfg(feature = "alloc")]
mod owned;
mod raw;
pub(crate) mod run;
mod scan;
pub mod schema;
#[cfg(feature = "serde")]
pub mod ser;
mod text;
mod utf8;
pub mod write;

pub use object::Object;
#[cfg(feature = "alloc")]
pub use owned::OwnedRaw;
pub use raw::{ArrayItems, JsonKind, ObjectMembers, Raw};
pub use scan::{DEPTH, ParseError, Scanner};
pub use text::{DecodeError, Text};
pub use write::Decimal;

/// Returns whether `bytes` are UTF-8, with the check that each reader of messages has: `core::str::from_utf8` and its table are 0.8 KB of
/// flash more.
#[must_use]
pub fn is_utf8(mut bytes: &[u8]) -> bool {
    while let Some((_, len)) = utf8::first(bytes) {
        bytes = bytes.get(len..).unwrap_or_default();
    }
    bytes.is_empty()
}

#[cfg(feature = "serde")]
pub use {
    de::DeserializeError,
    ser::{SerializeError, to_escaped, to_sink},
};
