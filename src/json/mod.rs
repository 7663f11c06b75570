//! JSON in one pass: scanner, writer, serde.
//!
//! - [`Scanner`] walks over one message and checks all of it: grammar, UTF-8, depth. No recursion, no allocation.
//! - [`Raw`] is one validated value as it stands in the message, [`Text`] one string between its quotes.
//! - [`mod@write`] puts JSON into a [`Sink`](crate::sink::Sink).
//! - [`constant`] checks JSON constants when the program is compiled.
//! - With the feature `serde`: `Raw::to` reads any `Deserialize`, `to_sink` writes any `Serialize`.

pub mod constant;
#[cfg(feature = "serde")]
pub mod de;
mod number;
pub(crate) mod object;
mod raw;
pub(crate) mod run;
mod scan;
#[cfg(feature = "serde")]
pub mod ser;
mod text;
mod utf8;
pub mod write;

#[cfg(feature = "serde")]
pub use de::{Refused, Wrong};
pub use raw::{Items, JsonKind, Members, Raw};
pub use scan::{DEPTH, Fault, Scanner};
#[cfg(feature = "serde")]
pub use ser::{SerError, to_escaped, to_sink};
pub use text::{Decode, DecodeError, LoneSurrogate, Text};
pub use write::{Decimal, Escape};
