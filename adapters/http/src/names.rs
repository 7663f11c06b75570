//! The names of headers: those that a server reads, and those that repeat parts of the body
//! ([2026-07-28](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).

use mcp_sansio::FullError;
use mcp_sansio::json::{Text, write};
use mcp_sansio::sink::Sink;

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

/// Writes a text in base64.
pub(crate) fn write_base64(text: Text<'_>, out: &mut dyn Sink) -> Result<(), FullError> {
    let (mut group, mut len) = ([0; 3], 0usize);
    for character in text.chars() {
        for &byte in character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]).as_bytes() {
            if let Some(place) = group.get_mut(len) {
                *place = byte;
            }
            len += 1;
            if len == group.len() {
                write::base64(out, &group)?;
                len = 0;
            }
        }
    }
    write::base64(out, group.get(..len).unwrap_or(&[]))
}

/// A header that the endpoint or the connection reads. The first [`READ`](Known::READ) are for the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// `Host`, or `:authority` of a server of HTTP/2 that gives the pseudo-headers too.
    Host,
    Origin,
    /// `Sec-Fetch-Site`.
    Site,
    ContentType,
    ContentEncoding,
    Accept,
    /// `Mcp-Session-Id`.
    Session,
    /// `MCP-Protocol-Version`.
    Version,
    /// `Mcp-Method`.
    Method,
    /// `Mcp-Name`.
    Name,
    LastEventId,
    Expect,
    Connection,
    ContentLength,
    TransferEncoding,
}

impl Known {
    /// The number of headers that the endpoint reads.
    pub(crate) const READ: usize = Known::LastEventId as usize + 1;
    /// Returns the header with a name, in any case.
    #[inline]
    pub(crate) fn of(name: &[u8]) -> Option<Known> {
        // Few headers have a name of these lengths.
        let (known, spelled): (_, &[u8]) = match (name.len(), name.first().map_or(0, |byte| byte | 0x20)) {
            (4, _) => (Known::Host, b"host"),
            (6, b'a') => (Known::Accept, b"accept"),
            (6, b'o') => (Known::Origin, b"origin"),
            (6, _) => (Known::Expect, b"expect"),
            (8, _) => (Known::Name, b"mcp-name"),
            (10, b'm') => (Known::Method, b"mcp-method"),
            (10, b':') => (Known::Host, b":authority"),
            (10, _) => (Known::Connection, b"connection"),
            (12, _) => (Known::ContentType, b"content-type"),
            (13, _) => (Known::LastEventId, b"last-event-id"),
            (14, b'm') => (Known::Session, b"mcp-session-id"),
            (14, b'c') => (Known::ContentLength, b"content-length"),
            (14, _) => (Known::Site, b"sec-fetch-site"),
            (16, _) => (Known::ContentEncoding, b"content-encoding"),
            (17, _) => (Known::TransferEncoding, b"transfer-encoding"),
            (20, _) => (Known::Version, b"mcp-protocol-version"),
            _ => return None,
        };
        same_name(name, spelled).then_some(known)
    }
}

/// Returns `true` for a byte that may be in the name of a header, or in any other token of HTTP
/// ([RFC 9110, section 5.6.2](https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2)).
#[must_use]
pub const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

/// Returns `true` if two header names are equal except for case. It ignores bit 5, the difference between upper
/// and lower case. Of the other bytes of names, this makes only `^` and `~` equal.
pub(crate) fn same_name(one: &[u8], other: &[u8]) -> bool {
    const CASE: u8 = 0x20;
    let long = |a: &[u8; 8], b: &[u8; 8]| {
        (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)) | u64::from_ne_bytes([CASE; 8])
            == u64::from_ne_bytes([CASE; 8])
    };
    let short = |a: &[u8; 4], b: &[u8; 4]| {
        (u32::from_ne_bytes(*a) ^ u32::from_ne_bytes(*b)) | u32::from_ne_bytes([CASE; 4])
            == u32::from_ne_bytes([CASE; 4])
    };
    if one.len() != other.len() {
        return false;
    }
    // The last word overlaps the one before it.
    match (one.last_chunk(), other.last_chunk()) {
        (Some(a), Some(b)) => {
            let words = one.as_chunks().0.iter().zip(other.as_chunks().0);
            long(a, b) && words.into_iter().all(|(a, b)| long(a, b))
        }
        _ => match (one.split_first_chunk(), other.split_first_chunk()) {
            (Some((a, _)), Some((b, _))) => {
                short(a, b) && one.last_chunk().zip(other.last_chunk()).is_some_and(|(a, b)| short(a, b))
            }
            _ => one.iter().zip(other).all(|(a, b)| (a ^ b) | CASE == CASE),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of each length, equal but for case, and with one other byte at each place.
    #[test]
    fn names_are_the_same_in_any_case() {
        let whole = *b"Mcp-Protocol-Version-and-more-of-it";
        for len in 0..=whole.len() {
            let (name, upper) = (&whole[..len], whole[..len].to_ascii_uppercase());
            assert!(same_name(name, &upper) && same_name(&upper, name), "{len}");
            assert!(same_name(name, name));
            for place in 0..len {
                let mut other = upper.clone();
                other[place] ^= 1;
                assert!(!same_name(name, &other) && !same_name(&other, name), "{len} {place}");
                assert!(!same_name(name, &upper[..place]) && !same_name(&upper[..place], name));
            }
        }
    }

    #[test]
    fn each_known_header_is_found() {
        for (name, known) in [
            ("Host", Known::Host),
            (":authority", Known::Host),
            ("ORIGIN", Known::Origin),
            ("sec-fetch-site", Known::Site),
            ("Content-Type", Known::ContentType),
            ("Content-Encoding", Known::ContentEncoding),
            ("Accept", Known::Accept),
            ("MCP-Session-ID", Known::Session),
            ("mcp-protocol-version", Known::Version),
            ("Mcp-Method", Known::Method),
            ("mcp-name", Known::Name),
            ("Last-Event-Id", Known::LastEventId),
            ("expect", Known::Expect),
            ("Connection", Known::Connection),
            ("content-length", Known::ContentLength),
            ("Transfer-Encoding", Known::TransferEncoding),
        ] {
            assert_eq!(Known::of(name.as_bytes()), Some(known), "{name}");
            // Another name of the same length.
            let other = name.replace(['e', 'E', 'o', 'O'], "x");
            assert_eq!(Known::of(other.as_bytes()), if other == name { Some(known) } else { None }, "{other}");
            assert_eq!(Known::of(&name.as_bytes()[1..]), None);
        }
        assert_eq!(Known::of(b""), None);
    }
}
