//! HTTP/1.1 as bytes: requests in, answers out, over storage that the caller lends.
//!
//! A [`Connection`] does no I/O and reads no clock. Its answer is one body, whole or through [`BodyOut`] or
//! [`DraftOut`], or an event
//! stream, whose messages go through [`EventOut`].

mod answer;
pub(crate) mod chunked;
mod conn;
#[doc(hidden)]
pub mod exercise;
mod head;
mod input;
mod limits;
mod out;
mod status;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Fields};
pub use conn::{Connection, Expired, Request, Step};
pub use head::{Head, Version};
pub use limits::Limits;
pub use out::{BodyOut, DraftOut, EventOut};
pub use status::Status;
