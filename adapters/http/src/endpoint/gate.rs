//! The headers of 2026-07-28 that repeat parts of the body: they must say the same.

use mcp_sansio::json::write::decode_base64;
use mcp_sansio::json::{JsonKind, Raw, Text, constant};
use mcp_sansio::protocol::{Method, code};
use mcp_sansio::revision::{Era, Revisions};
use mcp_sansio::rpc::Shape;
use mcp_sansio::server::{Failure, Gate, Request};

use super::head::{BadField, Head};
use crate::mirror::{ANNOTATION, CLOSE, DEPTH, OPEN, PARAM};

/// Compares headers with the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderGate<'h> {
    pub(crate) head: Head<'h>,
    /// The request is of the stateless era: headers are required.
    pub(crate) modern: bool,
}

const fn mismatch(message: &'static str) -> Failure<'static> {
    Failure::new(code::HEADER_MISMATCH, message).refusing()
}

const NO_VERSION_HEADER: &str = "MCP-Protocol-Version is missing";
/// What a refused version is told without any sign of the stateless era.
pub(crate) const NO_VERSION: &str = "MCP-Protocol-Version is not supported";

/// The header that tells the revision.
const VERSION: &str = "mcp-protocol-version";

/// What the version header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version<'h> {
    /// There is none.
    None,
    /// A revision with sessions that is served.
    Legacy,
    /// A stateless revision that is served.
    Modern,
    /// Anything else, a revision that is known but not served among it.
    Unsupported(&'h str),
    /// It has no value that all could agree on.
    Bad(BadField),
}

impl<'h> Version<'h> {
    pub(crate) fn of(head: &Head<'h>, served: Revisions) -> Self {
        match head.only(VERSION) {
            Ok(None) => Version::None,
            Err(bad) => Version::Bad(bad),
            Ok(Some(version)) => match served.iter().find(|revision| revision.date() == version) {
                Some(revision) if revision.is_modern() => Version::Modern,
                Some(_) => Version::Legacy,
                None => Version::Unsupported(version),
            },
        }
    }
}

/// What is wrong with the version that a head names, or does not name, before the body decides anything.
pub(crate) fn check_version<'e>(
    version: Version<'e>,
    served: Revisions,
    head: &Head<'_>,
    request: &Request<'e>,
    buffer: &'e mut VersionBuffer,
) -> Result<(), Failure<'e>> {
    let has_sessions = served.has_era(Era::Legacy);
    let by_itself = served.has_era(Era::Modern) && request.envelope().meta.is_modern();
    let in_session = has_sessions && head.headers.get("mcp-session-id").is_some();
    if !served.has_era(Era::Modern) || in_session && !by_itself {
        // Clients take -32020 and -32022 for signs of the stateless era.
        return match version {
            Version::Unsupported(_) | Version::Bad(_) => Err(Failure::invalid_request(NO_VERSION)),
            _ => Ok(()),
        };
    }
    let method = match request.envelope().shape() {
        Shape::Request { method, .. } => Some(Method::from_name(&method)),
        _ => None,
    };
    match version {
        Version::Bad(bad) => Err(mismatch(bad.words())),
        _ if method == Some(Method::Initialize) && !by_itself && !has_sessions => {
            let asked = request.members().protocol_version.and_then(|version| version.text());
            Err(Failure::no_handshake(asked, served))
        }
        // What a request says in `_meta` is compared with it later.
        Version::Unsupported(version) if !by_itself || method.is_none() => {
            Err(Failure::unsupported_version(quoted(version, buffer), served))
        }
        Version::None if method.is_some() && !by_itself && !has_sessions => Err(mismatch(NO_VERSION_HEADER)),
        _ => Ok(()),
    }
}

/// Room for the version of a header as a JSON string.
pub(crate) type VersionBuffer = [u8; 66];

/// The value of a header as the text of a JSON string; only its beginning, if it is longer than any version or has
/// characters that would need an escape.
fn quoted<'b>(value: &str, buffer: &'b mut VersionBuffer) -> Text<'b> {
    let most = buffer.len() - 2;
    let plain = value.bytes().take(most).take_while(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte));
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
impl Gate for HeaderGate<'_> {
    fn is_modern(&self) -> bool {
        self.modern
    }

    fn version(&self, version: &Text<'_>) -> Result<(), Failure<'static>> {
        match self.header(VERSION)? {
            Some(header) if version.is(header) => Ok(()),
            Some(_) => Err(mismatch("MCP-Protocol-Version differs from the version in _meta")),
            None => Err(mismatch(NO_VERSION_HEADER)),
        }
    }

    fn routing(&self, method: &Text<'_>, target: Option<&Text<'_>>) -> Result<(), Failure<'static>> {
        match self.header("mcp-method")? {
            Some(header) if method.is(header) => {}
            Some(_) => return Err(mismatch("Mcp-Method differs from the method")),
            None => return Err(mismatch("Mcp-Method is missing")),
        }
        let Some(target) = target else { return Ok(()) };
        match self.header("mcp-name")? {
            Some(header) if same(header, target) => Ok(()),
            Some(_) => Err(mismatch("Mcp-Name differs from what the request names")),
            None => Err(mismatch("Mcp-Name is missing")),
        }
    }

    fn arguments(&self, schema: Raw<'_>, arguments: Raw<'_>) -> Result<(), Failure<'static>> {
        if !self.modern { Ok(()) } else { self.check_properties(schema, arguments, 0) }
    }
}

impl<'h> HeaderGate<'h> {
    /// A header that repeats a part of the body.
    fn header(&self, name: &str) -> Result<Option<&'h str>, Failure<'static>> {
        self.head.only(name).map_err(|bad| mismatch(bad.words()))
    }

    /// Checks each property with an `x-mcp-header`, through chains of `properties` only.
    fn check_properties(&self, schema: Raw<'_>, arguments: Raw<'_>, depth: usize) -> Result<(), Failure<'static>> {
        let Some(properties) = schema.get("properties").filter(|_| depth < DEPTH) else { return Ok(()) };
        for (name, property) in properties.members() {
            let value = arguments.members().filter(|(key, _)| key.same(&name)).last().map(|(_, value)| value);
            if let Some(suffix) = property.get(ANNOTATION).and_then(|suffix| suffix.text()) {
                self.check_param(suffix, value)?;
            } else {
                // What is not there has no members; their headers must not be there either.
                self.check_properties(property, value.unwrap_or(const { Raw::constant("null") }), depth + 1)?;
            }
        }
        Ok(())
    }

    fn check_param(&self, suffix: Text<'_>, value: Option<Raw<'_>>) -> Result<(), Failure<'static>> {
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

    /// The value of `Mcp-Param-SUFFIX`.
    fn param(&self, suffix: Text<'_>) -> Result<Option<&'h str>, Failure<'static>> {
        let mut name = [0; PARAM.len() + constant::HEADER_NAME_MAX];
        let prefix = PARAM.as_bytes();
        let Some(suffix) = suffix.plain() else { return Ok(None) };
        for (place, byte) in name.iter_mut().zip(prefix.iter().chain(suffix.as_bytes())) {
            *place = *byte;
        }
        let name = name.get(..prefix.len() + suffix.len()).and_then(|name| core::str::from_utf8(name).ok());
        name.map_or(Ok(None), |name| self.header(name))
    }
}

/// Whether a header says what an argument says.
fn agrees(header: &str, value: Raw<'_>) -> bool {
    let mut buffer = [0; 64];
    match value.kind() {
        JsonKind::String => value.text().is_some_and(|text| same(header, &text)),
        JsonKind::Number => decoded(header, &mut buffer).is_some_and(|header| same_number(header, value)),
        JsonKind::Bool => decoded(header, &mut buffer) == Some(value.as_str()),
        _ => false,
    }
}

/// What a header says that is short, as numbers and booleans are: as it stands, or out of its base64.
fn decoded<'b>(header: &'b str, buffer: &'b mut [u8; 64]) -> Option<&'b str> {
    let Some(encoded) = encoded(header) else { return Some(header) };
    let len = decode_base64(encoded.as_bytes(), buffer)?;
    core::str::from_utf8(buffer.get(..len)?).ok()
}

/// The greatest integer that a reader of JavaScript keeps apart from its neighbours.
const SAFE: u64 = (1 << 53) - 1;

/// Whether this is an integer that not every reader takes for the same.
fn is_unsafe(value: Raw<'_>) -> bool {
    value.is_whole() && value.i64().is_none_or(|integer| integer.unsigned_abs() > SAFE)
}

/// Integers are compared as numbers: `42`, `42.00`, `4.2e1`, `+42` and `042` are one.
fn same_number(header: &str, value: Raw<'_>) -> bool {
    let Some(value_integer) = value.i64() else { return header == value.as_str() };
    let (negative, digits) = match header.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    // JSON has no zeros in front of a number, but for the one in front of a point.
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let behind = digits.get(zeros..).unwrap_or(&[]);
    let zeros = if behind.first().is_some_and(u8::is_ascii_digit) { zeros } else { zeros.saturating_sub(1) };
    let digits = digits.get(zeros..).filter(|digits| digits.first().is_some_and(u8::is_ascii_digit));
    let is_bare = |digits: &&[u8]| !digits.last().is_some_and(u8::is_ascii_whitespace);
    let digits = digits.filter(is_bare).and_then(|digits| Raw::parse(digits).ok());
    let integer = digits.and_then(|digits| digits.i64());
    integer.map(|integer| if negative { -integer } else { integer }) == Some(value_integer)
}

/// What stands between `=?base64?` and `?=`.
fn encoded(header: &str) -> Option<&str> {
    header.strip_prefix(OPEN).and_then(|header| header.strip_suffix(CLOSE))
}

/// Whether a header says a text: plainly, or in base64 between `=?base64?` and `?=`.
fn same(header: &str, text: &Text<'_>) -> bool {
    match encoded(header) {
        None => text.is(header),
        Some(encoded) => same_base64(encoded.as_bytes(), text),
    }
}

/// Compares without a buffer: the text's bytes one by one with those of each group of four digits.
fn same_base64(encoded: &[u8], text: &Text<'_>) -> bool {
    let mut bytes = Base64 { groups: encoded, group: [0; 3], left: 0, at: 0, broken: !encoded.len().is_multiple_of(4) };
    for character in text.chars() {
        let Ok(character) = character else { return false };
        for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
            if bytes.next() != Some(byte) {
                return false;
            }
        }
    }
    bytes.next().is_none() && !bytes.broken
}

/// Decodes base64 strictly, byte by byte.
struct Base64<'e> {
    groups: &'e [u8],
    group: [u8; 3],
    left: u8,
    at: u8,
    broken: bool,
}

impl Base64<'_> {
    fn refill(&mut self) -> Option<()> {
        let (group, rest) = self.groups.split_first_chunk::<4>()?;
        self.groups = rest;
        let decoded = decode_base64(group, &mut self.group);
        // Only the last group is padded.
        self.broken |= decoded.is_none_or(|len| len < 3 && !rest.is_empty());
        self.left = decoded.unwrap_or(0) as u8;
        self.at = 0;
        (!self.broken).then_some(())
    }
}

impl Iterator for Base64<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while self.left == 0 {
            self.refill()?;
        }
        let byte = self.group.get(usize::from(self.at)).copied();
        self.at += 1;
        self.left -= 1;
        byte
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
            assert!(same(same_as, &hello), "{same_as}");
        }
        for other in [
            "hello",
            "=?base64?SGVsbG8?=",
            "=?base64?SGV!!!sbG8=?=",
            "=?base64?SGVsbG9=?=",
            "=?base64?SGVsbG8=",
            "SGVsbG8=",
            // Right up to the end of the text, and broken behind it.
            "=?base64?SGVsbG8=!!!!?=",
            "=?base64?SGVs=bG8=?=",
            "=?base64?SGVsbG8=SGVs?=",
        ] {
            assert!(!same(other, &hello), "{other}");
        }
        assert!(same("SGVsbG8=", &text("\"SGVsbG8=\"")));
        assert!(same("=?base64?w6k=?=", &text(r#""\u00e9""#)));
        assert!(same("=?base64??=", &text("\"\"")));
    }

    #[test]
    fn deep_arguments_have_headers_too() {
        // As deep as a client looks.
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
            let gate = HeaderGate { head: Head::new("POST", "/mcp", None, &headers), modern: true };
            let raw = |json| Raw::parse(json).unwrap();
            gate.arguments(raw(schema.as_bytes()), raw(arguments.as_bytes())).is_ok()
        };
        assert!(right(&schema, &arguments, "a") && !right(&schema, &arguments, "b"));
        // One deeper is looked at as well, though clients leave out a tool that has it; then it ends.
        let (schema, arguments) = (deeper_schema(&schema), deeper(&arguments));
        assert!(right(&schema, &arguments, "a") && !right(&schema, &arguments, "b"));
        assert!(right(&deeper_schema(&schema), &deeper(&arguments), "b"));
    }

    #[test]
    fn numbers() {
        let agree = |header: &str, value: &str| agrees(header, Raw::parse(value.as_bytes()).unwrap());
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
            assert!(quoted(value, &mut [0; 66]).is(text), "{value:?}");
        }
        assert!(quoted(&"x".repeat(99), &mut [0; 66]).is(&"x".repeat(64)));
    }
}
