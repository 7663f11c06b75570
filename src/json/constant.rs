//! Checks of JSON constants in `const` code, where the [`Scanner`](super::Scanner) cannot run.
//!
//! All functions can also be called at run time, and do not panic.

use super::{DEPTH, ParseError};

/// `?` for `const` functions.
macro_rules! take {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(fault) => return Err(fault),
        }
    };
}
pub(super) use take;

/// Checks that `text` is one JSON value with at most white space around it.
///
/// # Errors
/// The [`ParseError`]: the text is not valid JSON, it is nested deeper than [`DEPTH`], or more text follows the
/// value.
pub const fn check(text: &str) -> Result<(), ParseError> {
    match first_fault(text) {
        None => Ok(()),
        Some(fault) => Err(fault.error),
    }
}

/// The offset of the first error, and what was expected there.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    /// The byte's position from 0.
    pub at: usize,
    pub expected: &'static str,
    pub error: ParseError,
}

/// Returns the first place where `text` is not one JSON value with at most white space around it.
pub(super) const fn first_fault(text: &str) -> Option<Fault> {
    let bytes = text.as_bytes();
    let end = match value(bytes, space(bytes, 0), DEPTH) {
        Ok(end) => space(bytes, end),
        Err(fault) => return Some(fault),
    };
    if end == bytes.len() {
        None
    } else {
        Some(Fault { at: end, expected: "the end of the text", error: ParseError::Trailing })
    }
}

/// Returns whether `text` is a JSON object.
#[must_use]
pub const fn is_object(text: &str) -> bool {
    let bytes = text.as_bytes();
    check(text).is_ok() && byte(bytes, space(bytes, 0)) == b'{'
}

/// Returns whether `text` is a JSON object with the member `"type":"object"` (written without escapes), as the
/// [`inputSchema`](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool) of a tool must
/// be.
///
/// ```
/// use mcp_sansio::json::constant::is_object_schema;
/// const _: () = assert!(is_object_schema(r#"{"type":"object","properties":{}}"#));
/// ```
#[must_use]
pub const fn is_object_schema(text: &str) -> bool {
    let bytes = text.as_bytes();
    match member(bytes, space(bytes, 0), b"\"type\"") {
        Some(kind) => is_object(text) && word(bytes, kind, b"\"object\"").is_ok(),
        None => false,
    }
}

/// Returns whether `text` is a JSON object whose names may be in
/// [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta), written without escapes:
///
/// - A name begins and ends with a letter or digit; `-`, `_` and `.` may be between. It may be empty.
/// - A prefix before it is labels with dots, and a slash. A label begins with a letter, ends with a letter or digit, and
///   has letters, digits and `-` between.
///
/// ```
/// use mcp_sansio::json::constant::is_meta;
/// const _: () = assert!(is_meta(r#"{"com.example/shelf":3,"traceparent":""}"#));
/// assert!(!is_meta(r#"{"com.3d-prints/shelf":3}"#) && !is_meta(r#"{"shelf.":3}"#));
/// ```
#[must_use]
pub const fn is_meta(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut comma = space(bytes, 0);
    while let Some(name) = next_entry(bytes, comma) {
        if byte(bytes, name) == b'"' && !is_meta_name(bytes, name + 1) {
            return false;
        }
        comma = end_of(bytes, skip_key(bytes, name));
    }
    is_object(text)
}

/// Returns whether a name of `_meta` is at `at`, up to its quotation mark.
const fn is_meta_name(bytes: &[u8], at: usize) -> bool {
    let (mut label, mut name, mut end) = (at, at, at);
    while !matches!(byte(bytes, end), b'/' | b'"' | 0) {
        end += 1;
    }
    if byte(bytes, end) == b'/' {
        while name <= end {
            match byte(bytes, name) {
                b'.' | b'/' if !byte(bytes, label).is_ascii_alphabetic() || byte(bytes, name - 1) == b'-' => {
                    return false;
                }
                b'.' | b'/' => label = name + 1,
                b'-' => {}
                other if !other.is_ascii_alphanumeric() => return false,
                _ => {}
            }
            name += 1;
        }
    }
    end = name;
    while matches!(byte(bytes, end), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.') {
        end += 1;
    }
    let is_whole =
        end == name || byte(bytes, name).is_ascii_alphanumeric() && byte(bytes, end - 1).is_ascii_alphanumeric();
    byte(bytes, end) == b'"' && is_whole
}

/// Returns whether `uri` begins with a scheme and a colon ([RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-3.1)).
pub(crate) const fn has_scheme(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    let mut at = 0;
    while matches!(byte(bytes, at), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'+' | b'.') {
        at += 1;
    }
    byte(bytes, 0).is_ascii_alphabetic() && byte(bytes, at) == b':'
}

/// Returns whether `uri` is a URI with a scheme, or with `braces` a template of one: without characters that must be escaped
/// with `%`, and `%` before two hexadecimal digits only.
pub(crate) const fn is_uri(uri: &str, braces: bool) -> bool {
    let mut rest = uri.as_bytes();
    while let [first, behind @ ..] = rest {
        let is_good = match (first, behind) {
            (b'%', [high, low, ..]) => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
            (b'%', _) => false,
            (b'{' | b'}', _) => braces,
            _ => is_uri_byte(*first),
        };
        if !is_good {
            return false;
        }
        rest = behind;
    }
    has_scheme(uri)
}

/// Returns whether the character may be in a URI.
pub(crate) const fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

/// Returns the start of the value of the last member with this name, in the object at `at`.
pub(super) const fn member(bytes: &[u8], at: usize, name: &[u8]) -> Option<usize> {
    let (mut found, mut comma) = (None, at);
    while let Some(key) = next_entry(bytes, comma) {
        let start = skip_key(bytes, key);
        if word(bytes, key, name).is_ok() {
            found = Some(start);
        }
        comma = end_of(bytes, start);
    }
    found
}

/// The most bytes in the name of an `x-mcp-header`.
pub const HEADER_NAME_MAX: usize = 100;

/// Returns whether clients can follow each `x-mcp-header` in the input schema of a tool; `true` if it has none.
/// Clients leave out a tool with a wrong one ([custom
/// headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)). The
/// rules:
///
/// - A name has 1 to [`HEADER_NAME_MAX`] characters that an HTTP header name may have, written without escapes.
/// - No two names are the same, compared without case.
/// - Each is on a string, an integer or a boolean that is reached through `properties` alone.
///
/// ```
/// use mcp_sansio::json::constant::has_valid_headers;
/// const _: () = assert!(has_valid_headers(r#"{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}"#));
/// assert!(!has_valid_headers(r#"{"properties":{"a":{"type":"number","x-mcp-header":"Ratio"}}}"#));
/// ```
#[must_use]
pub const fn has_valid_headers(schema: &str) -> bool {
    let bytes = schema.as_bytes();
    check(schema).is_ok() && headers(bytes, space(bytes, 0), SchemaPlace::Root, None).is_some()
}

/// The place of a value in a schema: it decides whether an annotation may be there.
#[derive(Clone, Copy)]
enum SchemaPlace {
    /// The schema itself.
    Root,
    /// A parameter that is reached through `properties` alone.
    Parameter,
    /// A schema that is reached in another way.
    Astray,
    /// An object whose values are parameters.
    Properties,
    /// An object whose values are schemas.
    Schemas,
}

/// The members of a schema that have schemas inside.
pub(super) const SCHEMAS: [&[u8]; 5] =
    [b"\"properties\"", b"\"patternProperties\"", b"\"$defs\"", b"\"definitions\"", b"\"dependentSchemas\""];
/// The members of a schema that have data inside, and no schemas.
const DATA: [&[u8]; 5] = [b"\"default\"", b"\"const\"", b"\"enum\"", b"\"examples\"", b"\"required\""];

/// Counts the annotations in the value at `at` that have the name at `wanted`; `None` if one of the annotations
/// is wrong.
const fn headers(bytes: &[u8], at: usize, place: SchemaPlace, wanted: Option<usize>) -> Option<usize> {
    let is_array = byte(bytes, at) == b'[';
    let (mut count, mut comma) = (0, at);
    while let Some(key) = next_entry(bytes, comma) {
        let start = if is_array { key } else { skip_key(bytes, key) };
        let inner = match place {
            SchemaPlace::Properties => Some(SchemaPlace::Parameter),
            SchemaPlace::Schemas => Some(SchemaPlace::Astray),
            _ if is_array => Some(SchemaPlace::Astray),
            _ if word(bytes, key, b"\"x-mcp-header\"").is_ok() => {
                if !matches!(place, SchemaPlace::Parameter)
                    || !is_header_name(bytes, start)
                    || !has_header_type(bytes, at)
                {
                    return None;
                }
                match wanted {
                    Some(wanted) => count += is_same_name(bytes, wanted, start) as usize,
                    None => match headers(bytes, space(bytes, 0), SchemaPlace::Root, Some(start)) {
                        Some(1) => {}
                        _ => return None,
                    },
                }
                None
            }
            SchemaPlace::Root | SchemaPlace::Parameter if word(bytes, key, b"\"properties\"").is_ok() => {
                Some(SchemaPlace::Properties)
            }
            _ if is_one_of(bytes, key, &SCHEMAS) => Some(SchemaPlace::Schemas),
            _ if is_one_of(bytes, key, &DATA) => None,
            _ => Some(SchemaPlace::Astray),
        };
        if let Some(inner) = inner {
            match headers(bytes, start, inner, wanted) {
                Some(more) => count += more,
                None => return None,
            }
        }
        comma = end_of(bytes, start);
    }
    Some(count)
}

/// Returns whether one of these words is at `at`.
pub(super) const fn is_one_of(bytes: &[u8], at: usize, words: &[&[u8]]) -> bool {
    let mut rest = words;
    while let [first, others @ ..] = rest {
        if word(bytes, at, first).is_ok() {
            return true;
        }
        rest = others;
    }
    false
}

/// Returns whether the value at `at` is a string that can be part of a header name.
const fn is_header_name(bytes: &[u8], at: usize) -> bool {
    let mut end = at + 1;
    // RFC 9110: a token.
    while matches!(byte(bytes, end), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
    {
        end += 1;
    }
    let len = end - at - 1;
    byte(bytes, at) == b'"' && byte(bytes, end) == b'"' && len > 0 && len <= HEADER_NAME_MAX
}

/// Returns whether the parameter with the schema at `at` is a string, an integer or a boolean; `null` may be
/// allowed too.
const fn has_header_type(bytes: &[u8], at: usize) -> bool {
    let Some(at) = member(bytes, at, b"\"type\"") else { return false };
    const TYPES: [&[u8]; 3] = [b"\"string\"", b"\"integer\"", b"\"boolean\""];
    if byte(bytes, at) != b'[' {
        return is_one_of(bytes, at, &TYPES);
    }
    let (mut found, mut comma) = (false, at);
    while let Some(start) = next_entry(bytes, comma) {
        let is_type = is_one_of(bytes, start, &TYPES);
        if !is_type && word(bytes, start, b"\"null\"").is_err() {
            return false;
        }
        found |= is_type;
        comma = end_of(bytes, start);
    }
    found
}

/// Returns whether two header names, checked by [`is_header_name`], are the same without case.
const fn is_same_name(bytes: &[u8], mut one: usize, mut other: usize) -> bool {
    loop {
        one += 1;
        other += 1;
        if !byte(bytes, one).eq_ignore_ascii_case(&byte(bytes, other)) {
            return false;
        }
        if byte(bytes, one) == b'"' {
            return true;
        }
    }
}

/// Returns the start of the entry behind the bracket or the comma at `at`; `None` at the closing bracket.
pub(super) const fn next_entry(bytes: &[u8], at: usize) -> Option<usize> {
    let entry = space(bytes, at + 1);
    match (byte(bytes, at), byte(bytes, entry)) {
        (b'{' | b'[' | b',', b'}' | b']' | 0) => None,
        (b'{' | b'[' | b',', _) => Some(entry),
        _ => None,
    }
}

/// Returns the start of the value of the member whose name is at `at`.
pub(super) const fn skip_key(bytes: &[u8], at: usize) -> usize {
    match key(bytes, at) {
        Ok(start) => start,
        Err(_) => bytes.len(),
    }
}

/// Returns the place behind the value at `at` and the white space after it.
pub(super) const fn end_of(bytes: &[u8], at: usize) -> usize {
    match value(bytes, at, DEPTH) {
        Ok(end) => space(bytes, end),
        Err(_) => bytes.len(),
    }
}

/// Returns the end of `word`, which must be at `at`.
pub(super) const fn word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, Fault> {
    let mut n = 0;
    while n < word.len() {
        if byte(bytes, at + n) != byte(word, n) {
            return fault(bytes, at + n, "a value");
        }
        n += 1;
    }
    Ok(at + n)
}

/// Returns the byte at `at`, or zero after the end; no JSON has a zero byte.
pub(super) const fn byte(bytes: &[u8], at: usize) -> u8 {
    #[allow(clippy::indexing_slicing, reason = "`get` is not const; the index is checked")]
    if at < bytes.len() { bytes[at] } else { 0 }
}

pub(super) const fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(byte(bytes, at), b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// Returns the fault if the byte at `at` is not the expected one.
const fn fault<T>(bytes: &[u8], at: usize, expected: &'static str) -> Result<T, Fault> {
    let error = if at < bytes.len() { ParseError::Syntax } else { ParseError::End };
    Err(Fault { at, expected, error })
}

/// Returns the end of the value that starts at `at`, which may be nested `left` levels deep.
pub(super) const fn value(bytes: &[u8], at: usize, left: u8) -> Result<usize, Fault> {
    let open = byte(bytes, at);
    match open {
        b'"' => return string(bytes, at),
        b'-' | b'0'..=b'9' => return number(bytes, at),
        b't' => return word(bytes, at, b"true"),
        b'f' => return word(bytes, at, b"false"),
        b'n' => return word(bytes, at, b"null"),
        b'{' | b'[' if left == 0 => {
            return Err(Fault { at, expected: "a value that is nested less deep", error: ParseError::Depth });
        }
        b'{' | b'[' => {}
        _ => return fault(bytes, at, "a value"),
    }
    // The codes of `}` and `]` are those of the opening ones plus 2.
    let close = open + 2;
    let mut at = space(bytes, at + 1);
    if byte(bytes, at) == close {
        return Ok(at + 1);
    }
    loop {
        if open == b'{' {
            at = take!(key(bytes, at));
        }
        at = space(bytes, take!(value(bytes, at, left - 1)));
        if byte(bytes, at) == close {
            return Ok(at + 1);
        }
        if byte(bytes, at) != b',' {
            return fault(bytes, at, if open == b'{' { "`,` or `}`" } else { "`,` or `]`" });
        }
        at = space(bytes, at + 1);
    }
}

/// Returns the start of the value after the key at `at`.
pub(super) const fn key(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let colon = space(bytes, take!(string(bytes, at)));
    if byte(bytes, colon) == b':' { Ok(space(bytes, colon + 1)) } else { fault(bytes, colon, "`:`") }
}

pub(super) const fn string(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if byte(bytes, at) != b'"' {
        return fault(bytes, at, "a name in quotation marks");
    }
    at += 1;
    loop {
        match byte(bytes, at) {
            b'"' => return Ok(at + 1),
            b'\\' => at = take!(escape(bytes, at + 1)),
            0..0x20 => return fault(bytes, at, "the end of the string"),
            // A `str` is UTF-8 already.
            _ => at += 1,
        }
    }
}

const fn escape(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let digits = match byte(bytes, at) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
        b'u' => 4,
        _ => return fault(bytes, at, "an escape that JSON has"),
    };
    let end = at + 1 + digits;
    let mut at = at + 1;
    while at < end {
        if !byte(bytes, at).is_ascii_hexdigit() {
            return fault(bytes, at, "a hexadecimal digit");
        }
        at += 1;
    }
    Ok(end)
}

const fn number(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if byte(bytes, at) == b'-' {
        at += 1;
    }
    at = if byte(bytes, at) == b'0' { at + 1 } else { take!(digits(bytes, at)) };
    if byte(bytes, at) == b'.' {
        at = take!(digits(bytes, at + 1));
    }
    if matches!(byte(bytes, at), b'e' | b'E') {
        at += 1;
        if matches!(byte(bytes, at), b'+' | b'-') {
            at += 1;
        }
        at = take!(digits(bytes, at));
    }
    Ok(at)
}

/// Reads one digit or more.
const fn digits(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if !byte(bytes, at).is_ascii_digit() {
        return fault(bytes, at, "a digit");
    }
    while byte(bytes, at).is_ascii_digit() {
        at += 1;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: B076 S055
    #[test]
    fn object_schemas() {
        for text in [
            r#"{"type":"object"}"#,
            r#" { "a" : [ ] , "type" : "object" , "b" : { "type" : "string" } } "#,
            r#"{"type":"string","type":"object"}"#,
        ] {
            assert!(is_object_schema(text), "{text}");
        }
        for text in [
            "{}",
            r#"["type","object"]"#,
            r#"{"type":"string"}"#,
            r#"{"type":"object","type":"string"}"#,
            r#"{"a":{"type":"object"}}"#,
            r#"{"type":["object"]}"#,
            r#"{"type":"objects"}"#,
            r#"{"types":"object"}"#,
            r#"{"type":"object""#,
            r#""type""#,
        ] {
            assert!(!is_object_schema(text), "{text}");
        }
        assert!(is_object(" {} ") && !is_object("[]") && !is_object("{") && !is_object(""));
    }

    // spec: B042 B043 B044
    #[test]
    fn names_in_meta() {
        for name in ["", "a", "0", "a-b_c.d", "a/", "com.example/a", "a-1.b2/0", "A.B/C"] {
            assert!(is_meta(&std::format!(r#" {{ "x" : 1 , "{name}" : [ ] }} "#)), "{name}");
            assert!(is_meta(&std::format!(r#"{{"{name}":{{".":1}}}}"#)), "{name}");
        }
        for name in [
            "-a", "a-", "_", ".", "a.", "a b", "é", "a:b", r"\u0061", "/a", "./a", "a./b", ".a/b", "a..b/c", "1a/b",
            "a.1/b", "a-/b", "-a/b", "a_b/c", "a/b/c", "a/-", "a/b.", "a /b",
        ] {
            assert!(!is_meta(&std::format!(r#"{{"x":1,"{name}":1}}"#)), "{name}");
        }
        assert!(is_meta("{}") && !is_meta("[]") && !is_meta("") && !is_meta(r#"{"a":1"#) && !is_meta(r#"{"a":1,}"#));
    }

    // spec: S022
    #[test]
    fn uris() {
        for uri in ["a:", "a+b-c.1:x", "FILE:///a%20B?c=[d]#e~!$&'()*,;=@"] {
            assert!(is_uri(uri, false) && is_uri(uri, true), "{uri}");
        }
        for uri in ["", ":", "a", "1a:x", "1 a:x", "a b:x", "+a:x", "a_b:x", "é:x", "a/b:c"] {
            assert!(!has_scheme(uri) && !is_uri(uri, false), "{uri}");
        }
        for uri in ["a:b c", "a:\u{e9}", "a:%", "a:%2", "a:%2g", "a:<b>", "a:\"", "a:\\", "a:^", "a:`", "a:|", "a:\n"] {
            assert!(has_scheme(uri) && !is_uri(uri, true), "{uri}");
        }
        assert!(is_uri("a:{b}", true) && !is_uri("a:{b}", false));
    }

    // spec: S069 T118 T119 T120 T121 T122 T127 T128
    #[test]
    fn annotations() {
        let in_property = |property: &str| {
            let schema = std::format!(r#" {{ "type" : "object" , "properties" : {{ "p" : {property} }} }} "#);
            has_valid_headers(&schema)
        };
        let named = |name: &str| in_property(&std::format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
        let typed = |kind: &str| in_property(&std::format!(r#"{{"x-mcp-header":"R","type":{kind}}}"#));
        let long = "x".repeat(HEADER_NAME_MAX - 1);
        for name in [r#""Region-1""#, r##""!#$%&'*+.^_`|~""##, "\"0\"", &std::format!("\"{long}x\"")] {
            assert!(named(name), "{name}");
        }
        for name in [
            "\"\"",
            "3",
            "null",
            "{}",
            "\"a b\"",
            "\"a:b\"",
            "\"\u{e9}\"",
            r#""a\r\nb""#,
            r#""\u0041""#,
            &std::format!("\"{long}xx\""),
        ] {
            assert!(!named(name), "{name}");
        }
        for kind in ["\"string\"", "\"integer\"", "\"boolean\"", "[ \"string\" , \"null\" ]", "[\"integer\"]"] {
            assert!(typed(kind), "{kind}");
        }
        for kind in [
            "\"number\"",
            "\"object\"",
            "\"array\"",
            "\"null\"",
            "[\"null\"]",
            "[\"string\",\"number\"]",
            "3",
            "[]",
            "{}",
        ] {
            assert!(!typed(kind), "{kind}");
        }
        assert!(!in_property(r#"{"x-mcp-header":"R"}"#));
        let annotated = r#"{"type":"string","x-mcp-header":"R"}"#;
        for way in ["items", "not", "if", "then", "else", "additionalProperties", "anything"] {
            assert!(!in_property(&std::format!(r#"{{"{way}":{annotated}}}"#)), "{way}");
        }
        for way in ["oneOf", "anyOf", "allOf", "prefixItems"] {
            assert!(!in_property(&std::format!(r#"{{"{way}":[{{}},{annotated}]}}"#)), "{way}");
        }
        for way in ["patternProperties", "$defs", "definitions", "dependentSchemas"] {
            assert!(!in_property(&std::format!(r#"{{"{way}":{{"x":{annotated}}}}}"#)), "{way}");
        }
        assert!(!in_property(&std::format!(r#"{{"items":{{"properties":{{"x":{annotated}}}}}}}"#)));
        assert!(!has_valid_headers(annotated));
        for data in ["default", "const", "examples", "enum"] {
            assert!(in_property(&std::format!(r#"{{"{data}":{annotated}}}"#)), "{data}");
        }
        assert!(in_property(&std::format!(r#"{{"properties":{{"x-mcp-header":{annotated},"default":{{}}}}}}"#)));
        assert!(!in_property(r#"{"properties":{"default":{"x-mcp-header":"R"}}}"#));
        let two = |one: &str, other: &str| {
            in_property(&std::format!(
                r#"{{"type":"string","x-mcp-header":"{one}","properties":{{"q":{{"type":"string","x-mcp-header":"{other}"}}}}}}"#
            ))
        };
        assert!(two("X", "Y") && two("X", "XX") && !two("X", "x") && !two("Xy", "xY"));
        assert!(has_valid_headers("{}") && has_valid_headers("3") && !has_valid_headers("{"));
    }
}
