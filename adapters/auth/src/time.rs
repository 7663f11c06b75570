//! The time of tokens.

/// A time in seconds since 1970-01-01, UTC, without leap seconds: `NumericDate` of
/// [RFC 7519](https://www.rfc-editor.org/rfc/rfc7519#section-2).
pub type UnixSeconds = u64;
