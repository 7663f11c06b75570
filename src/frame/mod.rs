//! How messages are cut out of a byte stream.

mod line;

pub use line::{Line, LineBuffer};
