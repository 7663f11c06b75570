//! The headers of 2026-07-28 that repeat parts of the body: they must say the same.

use mcp_sansio::json::write::decode_base64;
use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::protocol::code;
use mcp_sansio::revision::{Era, Revision};
use mcp_sansio::server::{Failure, Gate};

use super::head::Head;
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

/// The header that tells the revision.
const VERSION: &str = "mcp-protocol-version";

/// What the version header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// There is none.
    None,
    /// A revision with sessions.
    Legacy,
    /// A date from the first stateless revision on, served or not.
    Modern,
    /// Neither.
    Unknown,
}

impl Version {
    pub(crate) fn of(head: &Head<'_>) -> Self {
        let Some(version) = head.value(VERSION) else { return Version::None };
        let mut known = Revision::ALL.into_iter();
        if let Some(revision) = known.find(|revision| revision.date().as_bytes() == version) {
            return if revision.era() == Era::Modern { Version::Modern } else { Version::Legacy };
        }
        let is_date = version.len() == 10 && version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        let first = Revision::ALL.into_iter().find(|revision| revision.era() == Era::Modern);
        match first {
            Some(first) if is_date && version > first.date().as_bytes() => Version::Modern,
            _ => Version::Unknown,
        }
    }
}

impl Gate for HeaderGate<'_> {
    fn is_modern(&self) -> bool {
        self.modern
    }

    fn version(&self, version: &Text<'_>) -> Result<(), Failure<'static>> {
        match self.head.text(VERSION) {
            Some(header) if version.is(header) => Ok(()),
            Some(_) => Err(mismatch("MCP-Protocol-Version differs from the version in _meta")),
            None => Err(mismatch("MCP-Protocol-Version is missing")),
        }
    }

    fn routing(&self, method: &Text<'_>, target: Option<&Text<'_>>) -> Result<(), Failure<'static>> {
        match self.head.text("mcp-method") {
            Some(header) if method.is(header) => {}
            Some(_) => return Err(mismatch("Mcp-Method differs from the method")),
            None => return Err(mismatch("Mcp-Method is missing")),
        }
        let Some(target) = target else { return Ok(()) };
        match self.head.text("mcp-name") {
            Some(header) if same(header, target) => Ok(()),
            Some(_) => Err(mismatch("Mcp-Name differs from what the request names")),
            None => Err(mismatch("Mcp-Name is missing")),
        }
    }

    fn arguments(&self, schema: Raw<'_>, arguments: Raw<'_>) -> Result<(), Failure<'static>> {
        if !self.modern { Ok(()) } else { self.check_properties(schema, arguments, 0) }
    }
}

impl HeaderGate<'_> {
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
        let header = self.param(suffix);
        match (header, value) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(mismatch("Mcp-Param: a header without an argument")),
            (None, Some(_)) => Err(mismatch("Mcp-Param: the header of an argument is missing")),
            (Some(header), Some(value)) if agrees(header, value) => Ok(()),
            (Some(_), Some(_)) => Err(mismatch("Mcp-Param: a header differs from its argument")),
        }
    }

    /// The value of `Mcp-Param-SUFFIX`.
    fn param(&self, suffix: Text<'_>) -> Option<&str> {
        let mut name = [0; 128];
        let prefix = PARAM.as_bytes();
        let suffix = suffix.plain()?.as_bytes();
        for (place, byte) in name.iter_mut().zip(prefix.iter().chain(suffix)) {
            *place = *byte;
        }
        let name = core::str::from_utf8(name.get(..prefix.len() + suffix.len())?).ok()?;
        self.head.text(name)
    }
}

/// Whether a header says what an argument says.
fn agrees(header: &str, value: Raw<'_>) -> bool {
    match value.kind() {
        JsonKind::String => value.text().is_some_and(|text| same(header, &text)),
        JsonKind::Number => same_number(header, value.as_str()),
        JsonKind::Bool => header == value.as_str(),
        _ => false,
    }
}

/// Integers are compared as numbers: `+`, leading zeros and `.0` do not count.
fn same_number(header: &str, value: &str) -> bool {
    fn integer(text: &str) -> Option<i64> {
        let text = text.strip_suffix(".0").unwrap_or(text);
        text.parse().ok()
    }
    match (integer(header), integer(value)) {
        (Some(header), Some(value)) => header == value,
        _ => header == value,
    }
}

/// Whether a header says a text: plainly, or in base64 between `=?base64?` and `?=`.
fn same(header: &str, text: &Text<'_>) -> bool {
    let encoded = header.strip_prefix(OPEN).and_then(|header| header.strip_suffix(CLOSE));
    match encoded {
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
        let raw = |json: &'static str| Raw::parse(json.as_bytes()).unwrap();
        let (schema, arguments) = (raw(schema.leak()), raw(arguments.leak()));
        for (value, right) in [("a", true), ("b", false)] {
            let headers: &[(&str, &[u8])] = &[("mcp-param-deep", value.as_bytes())];
            let gate = HeaderGate { head: Head::new("POST", "/mcp", None, &headers), modern: true };
            assert_eq!(gate.arguments(schema, arguments).is_ok(), right, "{value}");
        }
    }

    #[test]
    fn numbers() {
        assert!(same_number("5", "5") && same_number("5", "5.0") && same_number("05", "5"));
        assert!(!same_number("5", "6") && !same_number("x", "5"));
    }
}
