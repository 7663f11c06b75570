//! Parameters of tools that go into headers of their own: `x-mcp-header` (2026-07-28, streamable-http, Custom Headers from
//! Tool Parameters).

use core::fmt;

use mcp_sansio::Full;
use mcp_sansio::json::{JsonKind, Raw, Text, write};
use mcp_sansio::records::{NoRoom, Records};
use mcp_sansio::sink::Sink;

use crate::mirror::{ANNOTATION, CLOSE, DEPTH, OPEN, PARAM};
use crate::wire::chunked::is_token;

/// Why a tool is excluded: its annotations cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BadAnnotation {
    /// The name of the header is no text, or empty.
    Empty,
    /// The name has characters that no header's name has.
    Name,
    /// Two parameters share a header, perhaps in different case.
    Duplicate,
    /// The parameter is no string, integer or boolean.
    Type,
    /// It is on something else than a parameter, or on one that is not reached by `properties` alone.
    Place,
    /// More than 64 of them, or nested too deeply to be looked at.
    TooMany,
}

impl fmt::Display for BadAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadAnnotation::Empty => "x-mcp-header is empty or no text",
            BadAnnotation::Name => "x-mcp-header is not a valid header name",
            BadAnnotation::Duplicate => "two parameters have the same x-mcp-header",
            BadAnnotation::Type => "x-mcp-header on a parameter that is not a string, an integer or a boolean",
            BadAnnotation::Place => "x-mcp-header outside of plain properties",
            BadAnnotation::TooMany => "too many x-mcp-header, or nested too deeply",
        })
    }
}

impl core::error::Error for BadAnnotation {}

const MOST: usize = 64;

/// Checks the annotations in a tool's `inputSchema`. Over HTTP, a tool with a wrong one must be left out of the list; how
/// many there are otherwise.
///
/// ```
/// use mcp_sansio_http::client::params::{BadAnnotation, check};
/// use mcp_sansio_http::mcp_sansio::json::Raw;
/// let schema = br#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Ok(1));
/// let schema = br#"{"type":"object","properties":{"ratio":{"type":"number","x-mcp-header":"Ratio"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Err(BadAnnotation::Type));
/// # Ok::<(), mcp_sansio_http::mcp_sansio::json::Fault>(())
/// ```
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schema: Raw<'_>) -> Result<usize, BadAnnotation> {
    if !mentions(schema.as_bytes()) {
        return Ok(0);
    }
    let mut names = [None; MOST];
    walk(schema, &mut |name, _| note(&mut names, name))?;
    Ok(names.iter().flatten().count())
}

/// Whether there can be an annotation at all; an escaped name of one is told by its backslash.
fn mentions(schema: &[u8]) -> bool {
    memchr::memchr(b'\\', schema).is_some() || memchr::memmem::find(schema, ANNOTATION.as_bytes()).is_some()
}

fn note<'s>(names: &mut [Option<Text<'s>>], name: Text<'s>) -> Result<(), BadAnnotation> {
    for place in names {
        match place {
            Some(other) if same_name(*other, name) => return Err(BadAnnotation::Duplicate),
            Some(_) => {}
            None => {
                *place = Some(name);
                return Ok(());
            }
        }
    }
    Err(BadAnnotation::TooMany)
}

fn same_name(one: Text<'_>, other: Text<'_>) -> bool {
    let lower = |c: Result<char, _>| c.map(|c| c.to_ascii_lowercase());
    one.chars().map(lower).eq(other.chars().map(lower))
}

/// The properties that lead to a place in a schema.
#[derive(Clone, Copy)]
struct Path<'s> {
    steps: [Option<Text<'s>>; DEPTH],
    len: usize,
}

type Found<'f, 's> = &'f mut dyn FnMut(Text<'s>, &Path<'s>) -> Result<(), BadAnnotation>;

/// Looks through a tool's schema.
fn walk<'s>(schema: Raw<'s>, found: Found<'_, 's>) -> Result<(), BadAnnotation> {
    inside(schema, Way::Plain, DEPTH, found, &mut Path { steps: [None; DEPTH], len: 0 })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By `properties` alone.
    Plain,
    Astray,
}

fn inside<'s>(
    schema: Raw<'s>,
    way: Way,
    depth: usize,
    found: Found<'_, 's>,
    path: &mut Path<'s>,
) -> Result<(), BadAnnotation> {
    let Some(deeper) = depth.checked_sub(1) else {
        return if mentions(schema.as_bytes()) { Err(BadAnnotation::TooMany) } else { Ok(()) };
    };
    for item in schema.items() {
        inside(item, Way::Astray, deeper, found, path)?;
    }
    for (key, value) in schema.members() {
        if key.is(ANNOTATION) {
            if way != Way::Plain || path.len == 0 {
                return Err(BadAnnotation::Place);
            }
            found(name(schema, value)?, path)?;
        } else if key.is("properties") {
            properties(value, way, deeper, found, path)?;
        } else if ["patternProperties", "$defs", "definitions", "dependentSchemas"].iter().any(|map| key.is(map)) {
            for (_, value) in value.members() {
                inside(value, Way::Astray, deeper, found, path)?;
            }
        } else if !["default", "const", "enum", "examples", "required"].iter().any(|data| key.is(data)) {
            inside(value, Way::Astray, deeper, found, path)?;
        }
    }
    Ok(())
}

fn properties<'s>(
    map: Raw<'s>,
    way: Way,
    depth: usize,
    found: Found<'_, 's>,
    path: &mut Path<'s>,
) -> Result<(), BadAnnotation> {
    for (key, value) in map.members() {
        let len = path.len;
        if let Some(place) = path.steps.get_mut(len) {
            *place = Some(key);
            path.len += 1;
        }
        inside(value, way, depth, found, path)?;
        path.len = len;
    }
    Ok(())
}

/// The name that an annotation gives, if all is well with it.
fn name<'s>(property: Raw<'s>, annotation: Raw<'s>) -> Result<Text<'s>, BadAnnotation> {
    let name = annotation.text().filter(|name| !name.raw().is_empty()).ok_or(BadAnnotation::Empty)?;
    if !name.chars().all(|c| c.is_ok_and(|c| u8::try_from(c).is_ok_and(is_token))) {
        return Err(BadAnnotation::Name);
    }
    let is = |kind: Raw<'_>, names: &[&str]| kind.text().is_some_and(|kind| names.iter().any(|name| kind.is(name)));
    const TYPES: [&str; 4] = ["string", "integer", "boolean", "null"];
    let kind = property.get("type").ok_or(BadAnnotation::Type)?;
    // A list of types is how an optional value is described.
    let listed = kind.items().count() > 0
        && kind.items().all(|kind| is(kind, &TYPES))
        && kind.items().any(|kind| !is(kind, &["null"]));
    if listed || is(kind, &["string", "integer", "boolean"]) { Ok(name) } else { Err(BadAnnotation::Type) }
}

/// What is known of annotated tools: for each parameter a record that is a JSON array of the tool's name, the name of the
/// header, and the path to the value.
const KIND: u8 = 0;

/// Learns the annotations in the result of `tools/list`; `fresh` if it is its first page. How many tools did not fit.
pub(crate) fn learn(result: Raw<'_>, fresh: bool, known: &mut Records<'_>) -> u32 {
    if fresh {
        known.remove(|_| true);
    }
    let mut forgotten = 0;
    for tool in result.get("tools").iter().flat_map(|tools| tools.items()) {
        let Some(name) = tool.get("name").filter(|name| name.kind() == JsonKind::String) else { continue };
        if !fresh {
            forget(name, known);
        }
        let Some(schema) = tool.get("inputSchema").filter(|schema| mentions(schema.as_bytes())) else { continue };
        if check(schema).is_ok_and(|count| count > 0) && keep(name, schema, known).is_err() {
            forget(name, known);
            forgotten += 1;
        }
    }
    forgotten
}

fn forget(name: Raw<'_>, known: &mut Records<'_>) {
    let Some(name) = name.text() else { return };
    known.remove(|record| parts(record.data).next().is_some_and(|other| other.same(&name)));
}

/// The texts in a record.
fn parts(data: &[u8]) -> impl Iterator<Item = Text<'_>> {
    let array = Raw::parse(data).ok();
    array.into_iter().flat_map(|array| array.items()).filter_map(|item| item.text())
}

fn keep(tool: Raw<'_>, schema: Raw<'_>, known: &mut Records<'_>) -> Result<(), BadAnnotation> {
    walk(schema, &mut |name, path| keep_one(tool, name, path, known).map_err(|NoRoom| BadAnnotation::TooMany))
}

fn keep_one(tool: Raw<'_>, header: Text<'_>, path: &Path<'_>, known: &mut Records<'_>) -> Result<(), NoRoom> {
    let at = known.begin(0, KIND, 0)?;
    let written = write_record(tool, header, path, known, at);
    if written.is_err() {
        known.drop_last(at);
    }
    written
}

fn write_record(
    tool: Raw<'_>,
    header: Text<'_>,
    path: &Path<'_>,
    known: &mut Records<'_>,
    at: usize,
) -> Result<(), NoRoom> {
    known.extend(at, b"[")?;
    known.extend(at, tool.as_bytes())?;
    for text in core::iter::once(header).chain(path.steps.iter().take(path.len).copied().flatten()) {
        known.extend(at, b",\"")?;
        known.extend(at, text.raw())?;
        known.extend(at, b"\"")?;
    }
    known.extend(at, b"]")
}

/// Writes the headers of a call.
pub(crate) fn write_headers(
    tool: Text<'_>,
    arguments: Raw<'_>,
    known: &Records<'_>,
    out: &mut dyn Sink,
) -> Result<(), Full> {
    for record in known.iter() {
        let mut parts = parts(record.data);
        if !parts.next().is_some_and(|name| name.same(&tool)) {
            continue;
        }
        let Some(header) = parts.next() else { continue };
        let value = parts.try_fold(arguments, |object, key| {
            object.members().filter(|(name, _)| name.same(&key)).last().map(|(_, value)| value)
        });
        if let Some(value) = value {
            write_header(header, value, out)?;
        }
    }
    Ok(())
}

fn write_header(name: Text<'_>, value: Raw<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    if matches!(value.kind(), JsonKind::Null | JsonKind::Object | JsonKind::Array) {
        return Ok(());
    }
    out.put(PARAM.as_bytes())?;
    // It was checked to be made of such characters.
    for character in name.chars().flatten().filter_map(|c| u8::try_from(c).ok()).filter(|byte| is_token(*byte)) {
        out.put(&[character])?;
    }
    out.put(b": ")?;
    match (value.text(), value.i64()) {
        (Some(text), _) => write_value(text, out)?,
        (None, Some(integer)) => write::signed(out, integer)?,
        (None, None) => out.put(value.as_bytes())?,
    }
    out.put(b"\r\n")
}

/// Writes the value of `Mcp-Name` or `Mcp-Param-*`: as it is, or in base64 where it must be (Value Encoding).
pub(crate) fn write_value(text: Text<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    if is_safe(text) {
        return text.chars().flatten().try_for_each(|c| out.put(c.encode_utf8(&mut [0; 4]).as_bytes()));
    }
    out.put(OPEN.as_bytes())?;
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
    write::base64(out, group.get(..len).unwrap_or(&[]))?;
    out.put(CLOSE.as_bytes())
}

/// Whether a text can stand in a header as it is.
fn is_safe(text: Text<'_>) -> bool {
    let mut edges = (None, None);
    for character in text.chars() {
        let Ok(character) = character else { return false };
        if !matches!(character, ' '..='~') {
            return false;
        }
        edges = (edges.0.or(Some(character)), Some(character));
    }
    let padded = edges.0 == Some(' ') || edges.1 == Some(' ');
    !padded && !is_sentinel(text)
}

/// Whether it looks like one that is encoded.
fn is_sentinel(text: Text<'_>) -> bool {
    let mut start = text.chars();
    let opens = OPEN.chars().all(|c| start.next() == Some(Ok(c)));
    let mut last = [None; 2];
    for character in text.chars().flatten() {
        last = [last[1], Some(character)];
    }
    opens && last == [Some('?'), Some('=')]
}

/// Whether a text can stand in a header without any encoding: visible ASCII.
pub(crate) fn is_visible(text: Text<'_>) -> bool {
    !text.raw().is_empty() && text.chars().all(|c| c.is_ok_and(|c| matches!(c, '!'..='~')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::sink::{Lines, Slice};
    use mcp_sansio::store::Store;
    use std::format;
    use std::string::String;

    fn checked(properties: &str) -> Result<usize, BadAnnotation> {
        let schema = format!("{{\"type\":\"object\",\"properties\":{properties}}}");
        check(Raw::parse(schema.as_bytes()).unwrap())
    }

    #[test]
    fn annotations() {
        let one =
            |header: &str, kind: &str| checked(&format!("{{\"a\":{{\"type\":{kind},\"x-mcp-header\":{header}}}}}"));
        for kind in ["\"string\"", "\"integer\"", "\"boolean\"", "[\"string\",\"null\"]"] {
            assert_eq!(one("\"Region-1\"", kind), Ok(1), "{kind}");
        }
        for kind in
            ["\"number\"", "\"object\"", "\"array\"", "\"null\"", "[\"null\"]", "[\"string\",\"number\"]", "3", "[]"]
        {
            assert_eq!(one("\"R\"", kind), Err(BadAnnotation::Type), "{kind}");
        }
        for header in ["\"\"", "3", "null", "{}"] {
            assert_eq!(one(header, "\"string\""), Err(BadAnnotation::Empty), "{header}");
        }
        for header in ["\"a b\"", "\"a:b\"", "\"é\"", "\"a\\r\\nb\"", "\"\\u0001\""] {
            assert_eq!(one(header, "\"string\""), Err(BadAnnotation::Name), "{header}");
        }
        let two = |first: &str, second: &str| {
            let property = |name: &str| format!("{{\"type\":\"string\",\"x-mcp-header\":\"{name}\"}}");
            checked(&format!("{{\"a\":{},\"b\":{{\"properties\":{{\"c\":{}}}}}}}", property(first), property(second)))
        };
        assert_eq!(two("X", "Y"), Ok(2));
        assert_eq!(two("X", "x"), Err(BadAnnotation::Duplicate));
        assert_eq!(two("X", "\\u0058"), Err(BadAnnotation::Duplicate));
    }

    #[test]
    fn places() {
        let annotated = r#"{"type":"string","x-mcp-header":"R"}"#;
        for way in ["items", "oneOf", "allOf", "not", "if", "$defs", "additionalProperties", "patternProperties"] {
            let inner = match way {
                "oneOf" | "allOf" => format!("[{annotated}]"),
                "$defs" | "patternProperties" => format!("{{\"x\":{annotated}}}"),
                _ => annotated.into(),
            };
            let found = checked(&format!("{{\"a\":{{\"{way}\":{inner}}}}}"));
            assert_eq!(found, Err(BadAnnotation::Place), "{way}");
        }
        assert_eq!(check(Raw::parse(annotated.as_bytes()).unwrap()), Err(BadAnnotation::Place));
        // Data, and a property of that name, are no annotations.
        assert_eq!(checked(&format!("{{\"a\":{{\"default\":{annotated},\"enum\":[{annotated}]}}}}")), Ok(0));
        assert_eq!(checked(r#"{"x-mcp-header":{"type":"string"}}"#), Ok(0));
        let deep = |inner: &str| (0..40).fold(String::from(inner), |inner, _| format!("{{\"items\":{inner}}}"));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep("{}"))), Ok(0));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep(annotated))), Err(BadAnnotation::TooMany));
    }

    fn value(json: &str) -> String {
        let mut bytes = [0; 128];
        let mut out = Lines::new(Slice::new(&mut bytes));
        write_value(Raw::parse(json.as_bytes()).unwrap().text().unwrap(), &mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    /// The specification's examples among them.
    #[test]
    fn values() {
        for (json, header) in [
            (r#""us-west1""#, "us-west1"),
            (r#""Hello, 世界""#, "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (r#"" padded ""#, "=?base64?IHBhZGRlZCA=?="),
            (r#""line1\nline2""#, "=?base64?bGluZTEKbGluZTI=?="),
            (r#""=?base64?literal?=""#, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            (r#""=?base64?open""#, "=?base64?open"),
            (r#""a\tb""#, "=?base64?YQli?="),
            (r#""in the middle""#, "in the middle"),
            (r#""""#, ""),
            (r#""\u0041\/""#, "A/"),
        ] {
            assert_eq!(value(json), header, "{json}");
        }
    }

    #[test]
    fn learned_and_written() {
        let mut bytes = [0; 512];
        let mut known = Records::new(Store::from(&mut bytes));
        let list = Raw::constant(
            r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{
            "a":{"type":"string","x-mcp-header":"A"},"n":{"type":"integer","x-mcp-header":"N"},
            "o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"Method"}}},"c":{"type":"string"}}}},
            {"name":"bad","inputSchema":{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}}]}"#,
        );
        assert_eq!(learn(list, true, &mut known), 0);
        assert_eq!(learn(list, false, &mut known), 0);
        assert_eq!(known.iter().count(), 3);
        let written = |tool: &str, arguments: &'static str| {
            let mut bytes = [0; 256];
            let mut out = Lines::new(Slice::new(&mut bytes));
            let tool = format!("\"{tool}\"");
            let tool = Raw::parse(tool.as_bytes()).unwrap().text().unwrap();
            write_headers(tool, Raw::constant(arguments), &known, &mut out).unwrap();
            String::from_utf8(out.pending().to_vec()).unwrap()
        };
        let all = r#"{"a":"x","n":42.0,"o":{"b":true},"c":"d"}"#;
        assert_eq!(written("t", all), "Mcp-Param-A: x\r\nMcp-Param-N: 42\r\nMcp-Param-Method: true\r\n");
        assert_eq!(written("t", r#"{"a":null,"n":-7,"o":3}"#), "Mcp-Param-N: -7\r\n");
        assert_eq!(written("bad", all) + &written("u", all), "");
        let mut bytes = [0; 60];
        let mut small = Records::new(Store::from(&mut bytes));
        assert_eq!((learn(list, true, &mut small), small.iter().count()), (1, 0));
    }
}
