//! HTTP/1.1 for servers: parses requests and writes responses, over storage that the caller lends.
//!
//! A [`Connection`] does no I/O and reads no clock. A response has one body, written whole or through [`BodyOut`]
//! or [`DraftOut`], or is an event stream, whose messages go through [`EventOut`].

mod answer;
pub(crate) mod chunked;
mod conn;
#[doc(hidden)]
pub mod exercise;
pub(crate) mod head;
mod input;
mod kept;
mod limits;
mod out;
mod scan;
mod status;
#[cfg(test)]
mod tests;

pub use crate::token::is_token;
pub use answer::{HeaderFields, ResponseBuffer};
pub use conn::{Connection, ConnectionStep, ExpireStatus, HttpRequest};
pub use head::{HttpHead, HttpVersion};
pub use limits::ConnectionLimits;
pub use out::{BodyOut, DraftOut, EventOut};
pub use status::Status;
