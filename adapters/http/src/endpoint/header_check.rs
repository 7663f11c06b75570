//! Checks the headers of 2026-07-28 that repeat parts of the body
//! ([server validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).

use mcp_sansio::FullError;
use mcp_sansio::json::write::decode_base64;
use mcp_sansio::json::{JsonKind, Raw, Text, constant};
use mcp_sansio::protocol::{Method, code};
use mcp_sansio::revision::{Era, Revision, Revisions};
use mcp_sansio::server::{IncomingRequest, RpcError, TransportChecks};
use mcp_sansio::sink::Sink;

use super::head::{BadField, Field, RequestHead};
use crate::names::{ANNOTATION, CLOSE, DEPTH, Known, OPEN, PARAM, write_base64};

/// Compares headers with the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderChecks<'h> {
    pub(crate) head: &'h RequestHead<'h>,
    /// The request is of the stateless era, so the headers are required.
    pub(crate) modern: bool,
}

const fn mismatch(message: &'static str) -> RpcError<'static> {
    RpcError::new(code::HEADER_MISMATCH, message).refusing()
}

const NO_VERSION_HEADER: &str = "MCP-Protocol-Version is missing";
/// The message for an unsupported version without another sign of the stateless era.
pub(crate) const NO_VERSION: &str = "MCP-Protocol-Version is not supported";

/// The value of the version header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version<'h> {
    /// No header.
    None,
    /// A revision with sessions that is served.
    Legacy,
    /// A stateless revision that is served.
    Modern,
    /// Any other value, also a known revision that is not served.
    Unsupported(&'h [u8]),
    /// The header has no single value.
    Bad(BadField),
}

impl<'h> Version<'h> {
    pub(crate) fn of(head: &RequestHead<'h>, served: Revisions) -> Self {
        match head.fields.get(Known::Version).only() {
            Ok(None) => Version::None,
            Err(bad) => Version::Bad(bad),
            Ok(Some(version)) => {
                let named = Revision::ALL.into_iter().find(|revision| revision.date().as_bytes() == version);
                match named.filter(|revision| served.contains(*revision)) {
                    Some(revision) if revision.is_modern() => Version::Modern,
                    Some(_) => Version::Legacy,
                    None => Version::Unsupported(version),
                }
            }
        }
    }
}

/// Returns the error for the version of a head, as far as it does not depend on the body. `method` is that of a request.
pub(crate) fn check_version<'e>(
    version: Version<'e>,
    served: Revisions,
    head: &RequestHead<'_>,
    (request, method): (&IncomingRequest<'e>, Option<Method>),
    buffer: &'e mut Option<VersionBuffer>,
) -> Result<(), RpcError<'e>> {
    let has_sessions = served.has_era(Era::Legacy);
    let by_itself = served.has_era(Era::Modern) && request.envelope.meta.is_modern();
    let in_session = has_sessions && head.fields.get(Known::Session).is_there();
    if !served.has_era(Era::Modern) || in_session && !by_itself {
        // Clients take -32020 and -32022 as signs of the stateless era.
        return match version {
            Version::Unsupported(_) | Version::Bad(_) => Err(RpcError::invalid_request(NO_VERSION)),
            _ => Ok(()),
        };
    }
    match version {
        Version::Bad(bad) => Err(mismatch(bad.words())),
        _ if method == Some(Method::Initialize) && !by_itself && !has_sessions => {
            let asked = request.envelope.members.protocol_version.and_then(|version| version.text());
            Err(RpcError::no_handshake(asked, served))
        }
        // The version in a request's `_meta` is compared with it later.
        Version::Unsupported(version) if !by_itself || method.is_none() => {
            Err(RpcError::unsupported_version(quoted(version, buffer.insert([0; 66])), served))
        }
        Version::None if method.is_some() && !by_itself && !has_sessions => Err(mismatch(NO_VERSION_HEADER)),
        _ => Ok(()),
    }
}

/// A buffer for the version of a header as a JSON string.
pub(crate) type VersionBuffer = [u8; 66];

/// Returns the value of a header as the text of a JSON string. Only its start, if it is longer than any version
/// or has characters that need an escape.
fn quoted<'b>(value: &[u8], buffer: &'b mut VersionBuffer) -> Text<'b> {
    let most = buffer.len() - 2;
    let plain =
        value.iter().copied().take(most).take_while(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte));
    let mut len = 1;
    for (place, byte) in buffer.iter_mut().zip(core::iter::once(b'"').chain(plain)) {
        *place = byte;
        len += 1;
    }
    if let Some(place) = buffer.get_mut(len - 1) {
        *place = b'"';
    }
    let text = buffer.get(..len).and_then(|json| Raw::parse(json).ok()).and_then(|raw| raw.text());
    text.unwrap_or(Text::EMPTY)
}
impl TransportChecks for HeaderChecks<'_> {
    fn is_modern(&self) -> bool {
        self.modern
    }

    fn version(&self, version: &Text<'_>) -> Result<(), RpcError<'static>> {
        match only(self.head.fields.get(Known::Version))? {
            Some(header) if is_text(header, version) => Ok(()),
            Some(_) => Err(mismatch("MCP-Protocol-Version differs from the version in _meta")),
            None => Err(mismatch(NO_VERSION_HEADER)),
        }
    }

    fn routing(&self, method: &Text<'_>, target: Option<&Text<'_>>) -> Result<(), RpcError<'static>> {
        match only(self.head.fields.get(Known::Method))? {
            Some(header) if is_text(header, method) => {}
            Some(_) => return Err(mismatch("Mcp-Method differs from the method")),
            None => return Err(mismatch("Mcp-Method is missing")),
        }
        let Some(target) = target else { return Ok(()) };
        match only(self.head.fields.get(Known::Name))? {
            Some(header) if same(header, target) => Ok(()),
            Some(_) => Err(mismatch("Mcp-Name differs from what the request names")),
            None => Err(mismatch("Mcp-Name is missing")),
        }
    }

    fn arguments(&self, schema: Raw<'_>, arguments: Raw<'_>) -> Result<(), RpcError<'static>> {
        // Most schemas name no header. `x-mcp-header` has a hyphen, or its escape.
        let names_headers = || memchr::memchr2(b'-', b'\\', schema.as_bytes()).is_some();
        if self.modern && names_headers() { self.check_properties(schema, arguments, 0) } else { Ok(()) }
    }
}

/// Returns the value of a header that repeats a part of the body.
fn only<'h>(field: Field<'h>) -> Result<Option<&'h [u8]>, RpcError<'static>> {
    field.only().map_err(|bad| mismatch(bad.words()))
}

impl<'h> HeaderChecks<'h> {
    /// Checks each property with an `x-mcp-header`, through chains of `properties` only.
    fn check_properties(&self, schema: Raw<'_>, arguments: Raw<'_>, depth: usize) -> Result<(), RpcError<'static>> {
        let Some(properties) = schema.get("properties").filter(|_| depth < DEPTH) else { return Ok(()) };
        for (name, property) in properties.members() {
            let value = arguments.members().filter(|(key, _)| key.same(&name)).last().map(|(_, value)| value);
            if let Some(suffix) = property.get(ANNOTATION).and_then(|suffix| suffix.text()) {
                self.check_param(suffix, value)?;
            } else {
                // A missing object has no members, so their headers must be missing too.
                self.check_properties(property, value.unwrap_or(const { Raw::constant("null") }), depth + 1)?;
            }
        }
        Ok(())
    }

    fn check_param(&self, suffix: Text<'_>, value: Option<Raw<'_>>) -> Result<(), RpcError<'static>> {
        let value = value.filter(|value| value.kind() != JsonKind::Null);
        match (self.param(suffix)?, value) {
            (_, Some(value)) if is_unsafe(value) => {
                Err(mismatch("Mcp-Param: an integer is outside of -(2^53-1) to 2^53-1"))
            }
            (None, None) => Ok(()),
            (Some(_), None) => Err(mismatch("Mcp-Param: a header without an argument")),
            (None, Some(_)) => Err(mismatch("Mcp-Param: the header of an argument is missing")),
            (Some(header), Some(value)) if agrees(header, value) => Ok(()),
            (Some(_), Some(_)) => Err(mismatch("Mcp-Param: a header differs from its argument")),
        }
    }

    /// Returns the value of `Mcp-Param-SUFFIX`.
    fn param(&self, suffix: Text<'_>) -> Result<Option<&'h [u8]>, RpcError<'static>> {
        let mut name = [0; PARAM.len() + constant::HEADER_NAME_MAX];
        let prefix = PARAM.as_bytes();
        let Some(suffix) = suffix.plain() else { return Ok(None) };
        for (place, byte) in name.iter_mut().zip(prefix.iter().chain(suffix.as_bytes())) {
            *place = *byte;
        }
        let name = name.get(..prefix.len() + suffix.len()).and_then(|name| core::str::from_utf8(name).ok());
        name.map_or(Ok(None), |name| only(self.head.field(name)))
    }
}

/// Returns `true` if a header has the value of an argument.
fn agrees(header: &[u8], value: Raw<'_>) -> bool {
    let mut buffer = [0; 64];
    match value.kind() {
        JsonKind::String => value.text().is_some_and(|text| same(header, &text)),
        JsonKind::Number => decoded(header, &mut buffer).is_some_and(|header| same_number(header, value)),
        JsonKind::Bool => decoded(header, &mut buffer) == Some(value.as_bytes()),
        _ => false,
    }
}

/// Returns a short header value, of a number or a boolean: plain, or decoded from base64.
fn decoded<'b>(header: &'b [u8], buffer: &'b mut [u8; 64]) -> Option<&'b [u8]> {
    let Some(encoded) = encoded(header) else { return Some(header) };
    let len = decode_base64(encoded, buffer)?;
    buffer.get(..len)
}

/// The greatest integer that JavaScript distinguishes from its neighbours.
const SAFE: u64 = (1 << 53) - 1;

/// Returns `true` for an integer that not every reader takes as the same number.
fn is_unsafe(value: Raw<'_>) -> bool {
    value.is_whole() && value.i64().is_none_or(|integer| integer.unsigned_abs() > SAFE)
}

/// Compares integers as numbers: `42`, `42.00`, `4.2e1`, `+42` and `042` are equal.
fn same_number(header: &[u8], value: Raw<'_>) -> bool {
    let Some(value_integer) = value.i64() else { return header == value.as_bytes() };
    let (negative, digits) = match header {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    // JSON allows no leading zeros except the one before a point.
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let behind = digits.get(zeros..).unwrap_or(&[]);
    let zeros = if behind.first().is_some_and(u8::is_ascii_digit) { zeros } else { zeros.saturating_sub(1) };
    let digits = digits.get(zeros..).filter(|digits| digits.first().is_some_and(u8::is_ascii_digit));
    let is_bare = |digits: &&[u8]| !digits.last().is_some_and(u8::is_ascii_whitespace);
    let digits = digits.filter(is_bare).and_then(|digits| Raw::parse(digits).ok());
    let integer = digits.and_then(|digits| digits.i64());
    integer.map(|integer| if negative { -integer } else { integer }) == Some(value_integer)
}

/// Returns the text between `=?base64?` and `?=`.
fn encoded(header: &[u8]) -> Option<&[u8]> {
    header.strip_prefix(OPEN.as_bytes()).and_then(|header| header.strip_suffix(CLOSE.as_bytes()))
}

/// Returns `true` if a header has this text: plain, or in base64 between `=?base64?` and `?=`.
fn same(header: &[u8], text: &Text<'_>) -> bool {
    let Some(encoded) = encoded(header) else { return is_text(header, text) };
    // A text has one form in strict base64, so nothing is decoded.
    let mut expected = Expected(encoded);
    text.chars().all(|character| character.is_ok())
        && write_base64(*text, &mut expected).is_ok()
        && expected.0.is_empty()
}

/// A sink that takes only these bytes.
struct Expected<'e>(&'e [u8]);

impl Sink for Expected<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        self.0 = self.0.strip_prefix(bytes).ok_or(FullError::Never)?;
        Ok(())
    }

    fn room(&self) -> usize {
        self.0.len()
    }
}

/// Returns `true` if a header, which is ASCII, has this text as it is.
fn is_text(header: &[u8], text: &Text<'_>) -> bool {
    if text.is_escaped() {
        core::str::from_utf8(header).is_ok_and(|header| text.eq_str(header))
    } else {
        text.raw() == header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::ToOwned;

    fn text(json: &str) -> Text<'_> {
        Raw::parse(json.as_bytes()).unwrap().text().unwrap()
    }

    #[test]
    fn texts_and_their_encodings() {
        let hello = text("\"Hello\"");
        for same_as in ["Hello", "=?base64?SGVsbG8=?="] {
            assert!(same(same_as.as_bytes(), &hello), "{same_as}");
        }
        for other in [
            "hello",
            "=?base64?SGVsbG8?=",
            "=?base64?SGV!!!sbG8=?=",
            "=?base64?SGVsbG9=?=",
            "=?base64?SGVsbG8=",
            "SGVsbG8=",
            // Equal up to the end of the text, and invalid after it.
            "=?base64?SGVsbG8=!!!!?=",
            "=?base64?SGVs=bG8=?=",
            "=?base64?SGVsbG8=SGVs?=",
        ] {
            assert!(!same(other.as_bytes(), &hello), "{other}");
        }
        assert!(same(b"SGVsbG8=", &text("\"SGVsbG8=\"")));
        assert!(same(b"=?base64?w6k=?=", &text(r#""\u00e9""#)));
        assert!(same(b"=?base64??=", &text("\"\"")));
    }

    #[test]
    fn deep_arguments_have_headers_too() {
        // As deep as a client reads.
        let (mut schema, mut arguments) =
            (r#"{"type":"string","x-mcp-header":"Deep"}"#.to_owned(), r#""a""#.to_owned());
        for _ in 1..DEPTH {
            schema = std::format!(r#"{{"properties":{{"p":{schema}}}}}"#);
            arguments = std::format!(r#"{{"p":{arguments}}}"#);
        }
        let deeper = |json: &str| std::format!(r#"{{"p":{json}}}"#);
        let deeper_schema = |schema: &str| std::format!(r#"{{"properties":{}}}"#, deeper(schema));
        let right = |schema: &str, arguments: &str, value: &str| {
            let headers: &[(&str, &[u8])] = &[("mcp-param-deep", value.as_bytes())];
            let checks = HeaderChecks { head: &RequestHead::new("POST", "/mcp", None, &headers), modern: true };
            let raw = |json| Raw::parse(json).unwrap();
            checks.arguments(raw(schema.as_bytes()), raw(arguments.as_bytes())).is_ok()
        };
        assert!(right(&schema, &arguments, "a") && !right(&schema, &arguments, "b"));
        // The server reads one level deeper, though clients leave out such a tool; it stops there.
        let (schema, arguments) = (deeper_schema(&schema), deeper(&arguments));
        assert!(right(&schema, &arguments, "a") && !right(&schema, &arguments, "b"));
        assert!(right(&deeper_schema(&schema), &deeper(&arguments), "b"));
    }

    // spec: S068
    #[test]
    fn numbers() {
        let agree = |header: &str, value: &str| agrees(header.as_bytes(), Raw::parse(value.as_bytes()).unwrap());
        for (header, value) in [
            ("5", "5"),
            ("5", "5.0"),
            ("05", "5"),
            ("+5", "5"),
            ("42.00", "42"),
            ("42", "42.00"),
            ("100", "1e2"),
            ("1e2", "100"),
            ("100", "100.00"),
            ("-7", "-7.0"),
            ("-07", "-7"),
            ("0", "-0"),
            ("0.0", "0"),
            ("000", "0"),
            ("9007199254740991", "9007199254740991"),
            ("1.5", "1.5"),
            ("=?base64?NDI=?=", "42"),
            ("=?base64?dHJ1ZQ==?=", "true"),
            ("true", "true"),
        ] {
            assert!(agree(header, value), "{header} {value}");
        }
        for (header, value) in [
            ("5", "6"),
            ("x", "5"),
            ("", "0"),
            ("-", "0"),
            ("--5", "5"),
            ("+-5", "-5"),
            ("5", "-5"),
            (".5", "0"),
            ("5 ", "5"),
            ("4.2", "42"),
            ("=?base64?NDI?=", "42"),
            ("=?base64?NDM=?=", "42"),
            ("=?base64?VHJ1ZQ==?=", "true"),
            ("false", "true"),
            ("42", "\"5\""),
            ("[]", "[]"),
        ] {
            assert!(!agree(header, value), "{header} {value}");
        }
        let long = std::format!("{OPEN}{}{CLOSE}", "MDAw".repeat(22));
        assert!(!agree(&long, "0"));
        for (value, is) in [
            ("9007199254740991", false),
            ("9007199254740992", true),
            ("-9007199254740992", true),
            ("1e300", true),
            ("1.5", false),
            ("9007199254740991.5", false),
            ("\"9007199254740993\"", false),
        ] {
            assert_eq!(is_unsafe(Raw::parse(value.as_bytes()).unwrap()), is, "{value}");
        }
    }

    #[test]
    fn a_version_as_json() {
        for (value, text) in [("2027-01-01", "2027-01-01"), ("", ""), ("a\"b", "a"), ("\\", ""), ("a\tb", "a")] {
            assert!(quoted(value.as_bytes(), &mut [0; 66]).eq_str(text), "{value:?}");
        }
        assert!(quoted("x".repeat(99).as_bytes(), &mut [0; 66]).eq_str(&"x".repeat(64)));
    }
}
