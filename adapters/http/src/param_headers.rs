//! Names and values of headers that client and server compare in the same way, mostly those that repeat parts of
//! the body
//! ([2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).

/// The member of a property's schema that names its header.
pub(crate) const ANNOTATION: &str = "x-mcp-header";
/// The prefix of such a header.
pub(crate) const PARAM: &str = "Mcp-Param-";
/// Largest depth to which schemas are read.
pub(crate) const DEPTH: usize = 24;
/// The prefix of a value in base64
/// ([value encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).
pub(crate) const OPEN: &str = "=?base64?";
pub(crate) const CLOSE: &str = "?=";
