//! HTTP/1.1 for servers: parses requests and writes responses, over storage that the caller lends.
//!
//! A [`Connection`] does no I/O and reads no clock. A response has one body, or is an event stream.

mod answer;
pub(crate) mod chunked;
mod conn;
pub(crate) mod head;
mod input;
#[cfg_attr(not(feature = "alloc"), path = "no_kept.rs")]
mod kept;
mod limits;
mod scan;
mod status;
#[cfg(test)]
mod tests;

pub use crate::names::is_token;
pub use answer::{HeaderFields, ResponseBuffer};
pub use conn::{Connection, ConnectionStep, ExpireStatus, HttpRequest};
pub use head::{HttpHead, HttpVersion};
pub use limits::ConnectionLimits;
pub use status::Status;
