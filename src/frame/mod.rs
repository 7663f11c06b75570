//! How messages are cut out of a byte stream, and put into one.

mod line;
pub mod sse;

pub use line::{Line, LineBuffer};
pub use sse::Event;
