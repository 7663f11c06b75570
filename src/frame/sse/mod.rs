//! Server-sent events: what a `text/event-stream` is made of.

mod read;
mod write;

pub use read::{Decoder, Item, Received};
pub use write::{END, Event, comment};
