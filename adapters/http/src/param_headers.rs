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

/// Returns `true` if two header names are equal except for case. It ignores bit 5, the difference between upper
/// and lower case. Of the other bytes of names, this makes only `^` and `~` equal.
pub(crate) fn same_name(one: &[u8], other: &[u8]) -> bool {
    const CASE: u8 = 0x20;
    const CASES: u64 = u64::from_ne_bytes([CASE; 8]);
    if one.len() != other.len() {
        return false;
    }
    let (mut one, mut other) = (one, other);
    while let (Some((a, one_rest)), Some((b, other_rest))) = (one.split_first_chunk(), other.split_first_chunk()) {
        if (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)) | CASES != CASES {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.iter().zip(other).all(|(a, b)| (a ^ b) | CASE == CASE)
}
