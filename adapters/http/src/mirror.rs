//! Headers that repeat parts of the body (2026-07-28, streamable-http): what the client that writes them and the server that
//! compares them must do alike.

/// The member of a property's schema that names its header.
pub(crate) const ANNOTATION: &str = "x-mcp-header";
/// What that name stands behind.
pub(crate) const PARAM: &str = "Mcp-Param-";
/// How deep schemas are looked into.
pub(crate) const DEPTH: usize = 24;
/// What stands around a value in base64 (Value Encoding).
pub(crate) const OPEN: &str = "=?base64?";
pub(crate) const CLOSE: &str = "?=";
