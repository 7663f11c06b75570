//! Time: the core has no clock, and the caller passes the time as an argument.

/// A time in milliseconds on the caller's clock. Only differences count, and the clock may wrap around.
pub type Millis = u64;
