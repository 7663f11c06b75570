//! Checks of JSON constants for `const` code, where the [`Scanner`](super::Scanner) cannot go.
//!
//! All of them can also be called at run time and do not panic.

use super::{DEPTH, Fault};

/// `?` for `const` functions.
macro_rules! take {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(fault) => return Err(fault),
        }
    };
}

/// Whether `text` is one JSON value with at most white space around it.
pub const fn check(text: &str) -> Result<(), Fault> {
    let bytes = text.as_bytes();
    let end = take!(value(bytes, space(bytes, 0)));
    if space(bytes, end) == bytes.len() { Ok(()) } else { Err(Fault::Trailing) }
}

/// Whether `text` is a JSON object.
#[must_use]
pub const fn is_object(text: &str) -> bool {
    let bytes = text.as_bytes();
    check(text).is_ok() && byte(bytes, space(bytes, 0)) == b'{'
}

/// Whether `text` is a JSON object with the member `"type":"object"` (written without escapes), as the schema of a
/// tool's input must be.
///
/// ```
/// use mcp_sansio::json::constant::is_object_schema;
/// const _: () = assert!(is_object_schema(r#"{"type":"object","properties":{}}"#));
/// ```
#[must_use]
pub const fn is_object_schema(text: &str) -> bool {
    is_object(text) && last_type_is_object(text.as_bytes())
}

/// Of a valid object: whether its last member named `type` is `"object"`.
const fn last_type_is_object(bytes: &[u8]) -> bool {
    match member(bytes, space(bytes, 0), b"\"type\"") {
        Some(kind) => word(bytes, kind, b"\"object\"").is_ok(),
        None => false,
    }
}

/// Where the value of the last member of that name begins, in the object at `at`.
const fn member(bytes: &[u8], mut at: usize, name: &[u8]) -> Option<usize> {
    let mut found = None;
    // At the brace first, then at the comma behind each member.
    while matches!(byte(bytes, at), b'{' | b',') {
        let key = space(bytes, at + 1);
        let Ok(colon) = string(bytes, key) else { return found };
        let start = space(bytes, space(bytes, colon) + 1);
        let Ok(end) = value(bytes, start) else { return found };
        if word(bytes, key, name).is_ok() {
            found = Some(start);
        }
        at = space(bytes, end);
    }
    found
}

/// The longest name that an `x-mcp-header` may have here, in bytes.
pub const HEADER_NAME_MAX: usize = 100;

/// Whether clients can follow each `x-mcp-header` in the input schema of a tool; true if there is none. Such a name
/// has 1 to [`HEADER_NAME_MAX`] characters that the name of an HTTP header may have, written without escapes; no two are
/// the same, whatever their case; and each is on a string, an integer or a boolean that is reached through `properties`
/// alone. Clients leave out a tool for which this is not so (2026-07-28, Custom Headers from Tool Parameters).
///
/// ```
/// use mcp_sansio::json::constant::has_valid_headers;
/// const _: () = assert!(has_valid_headers(r#"{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}"#));
/// assert!(!has_valid_headers(r#"{"properties":{"a":{"type":"number","x-mcp-header":"Ratio"}}}"#));
/// ```
#[must_use]
pub const fn has_valid_headers(schema: &str) -> bool {
    let bytes = schema.as_bytes();
    check(schema).is_ok() && headers(bytes, space(bytes, 0), Place::Root, None).is_some()
}

/// What a value in a schema is, for the annotations in it.
#[derive(Clone, Copy)]
enum Place {
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

/// How many annotations in the value at `at` have the name at `wanted`; `None` if one of them is wrong.
const fn headers(bytes: &[u8], mut at: usize, place: Place, wanted: Option<usize>) -> Option<usize> {
    let (this, is_array) = (at, byte(bytes, at) == b'[');
    let mut count = 0;
    // At the bracket first, then at the comma behind each member.
    while matches!(byte(bytes, at), b'{' | b'[' | b',') {
        let key = space(bytes, at + 1);
        let Ok(start) = (if is_array { Ok(key) } else { self::key(bytes, key) }) else { return Some(count) };
        let Ok(end) = value(bytes, start) else { return Some(count) };
        let inner = match place {
            Place::Properties => Some(Place::Parameter),
            Place::Schemas => Some(Place::Astray),
            _ if is_array => Some(Place::Astray),
            _ if word(bytes, key, b"\"x-mcp-header\"").is_ok() => {
                if !matches!(place, Place::Parameter) || !is_header_name(bytes, start) || !has_header_type(bytes, this)
                {
                    return None;
                }
                match wanted {
                    Some(wanted) => count += is_same_name(bytes, wanted, start) as usize,
                    None => match headers(bytes, space(bytes, 0), Place::Root, Some(start)) {
                        Some(1) => {}
                        _ => return None,
                    },
                }
                None
            }
            Place::Root | Place::Parameter if word(bytes, key, b"\"properties\"").is_ok() => Some(Place::Properties),
            _ if is_one_of(
                bytes,
                key,
                &[b"\"properties\"", b"\"patternProperties\"", b"\"$defs\"", b"\"definitions\""],
            ) || word(bytes, key, b"\"dependentSchemas\"").is_ok() =>
            {
                Some(Place::Schemas)
            }
            // These are data.
            _ if is_one_of(
                bytes,
                key,
                &[b"\"default\"", b"\"const\"", b"\"enum\"", b"\"examples\"", b"\"required\""],
            ) =>
            {
                None
            }
            _ => Some(Place::Astray),
        };
        if let Some(inner) = inner {
            match headers(bytes, start, inner, wanted) {
                Some(more) => count += more,
                None => return None,
            }
        }
        at = space(bytes, end);
    }
    Some(count)
}

/// Whether one of these words is at `at`.
const fn is_one_of(bytes: &[u8], at: usize, words: &[&[u8]]) -> bool {
    let mut rest = words;
    while let [first, others @ ..] = rest {
        if word(bytes, at, first).is_ok() {
            return true;
        }
        rest = others;
    }
    false
}

/// Whether the value at `at` is a string that can stand in the name of a header.
const fn is_header_name(bytes: &[u8], at: usize) -> bool {
    let mut end = at + 1;
    while byte(bytes, end).is_ascii_alphanumeric()
        || matches!(
            byte(bytes, end),
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
    {
        end += 1;
    }
    let len = end - at - 1;
    byte(bytes, at) == b'"' && byte(bytes, end) == b'"' && len > 0 && len <= HEADER_NAME_MAX
}

/// Whether the parameter whose schema is at `at` is a string, an integer or a boolean, or one of them or `null`.
const fn has_header_type(bytes: &[u8], at: usize) -> bool {
    let Some(mut at) = member(bytes, at, b"\"type\"") else { return false };
    const TYPES: [&[u8]; 3] = [b"\"string\"", b"\"integer\"", b"\"boolean\""];
    if byte(bytes, at) != b'[' {
        return is_one_of(bytes, at, &TYPES);
    }
    let mut found = false;
    while matches!(byte(bytes, at), b'[' | b',') {
        let start = space(bytes, at + 1);
        let is_type = is_one_of(bytes, start, &TYPES);
        if !is_type && word(bytes, start, b"\"null\"").is_err() {
            return false;
        }
        found |= is_type;
        let Ok(end) = value(bytes, start) else { return false };
        at = space(bytes, end);
    }
    found
}

/// Whether two names of headers, as [`is_header_name`] knows them, are the same but for their case.
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

/// The end of `word`, which must be at `at`.
const fn word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, Fault> {
    let mut n = 0;
    while n < word.len() {
        if byte(bytes, at + n) != byte(word, n) {
            return Err(fault(bytes, at + n));
        }
        n += 1;
    }
    Ok(at + n)
}

/// The byte at `at`; behind the end, zero, which JSON has nowhere.
const fn byte(bytes: &[u8], at: usize) -> u8 {
    #[allow(clippy::indexing_slicing, reason = "`get` is not const; the index is checked")]
    if at < bytes.len() { bytes[at] } else { 0 }
}

const fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(byte(bytes, at), b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// What it means that the byte at `at` is not the one expected.
const fn fault(bytes: &[u8], at: usize) -> Fault {
    if at < bytes.len() { Fault::Syntax } else { Fault::End }
}

/// The end of the value that starts at `at`. The same walk as that of the scanner.
const fn value(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    let mut depth = 0;
    let mut arrays = 0u128;
    loop {
        let open = byte(bytes, at);
        if matches!(open, b'{' | b'[') {
            if depth == DEPTH {
                return Err(Fault::Depth);
            }
            depth += 1;
            arrays = arrays << 1 | (open == b'[') as u128;
            at = space(bytes, at + 1);
            // `}` and `]` are two behind their opening ones.
            if byte(bytes, at) != open + 2 {
                if open == b'{' {
                    at = take!(key(bytes, at));
                }
                continue;
            }
        } else {
            at = take!(scalar(bytes, at));
        }
        // A value ends here, unless it is empty: then it is at its closing bracket.
        loop {
            if depth == 0 {
                return Ok(at);
            }
            at = space(bytes, at);
            let array = arrays & 1 == 1;
            match byte(bytes, at) {
                b',' => {
                    at = space(bytes, at + 1);
                    if !array {
                        at = take!(key(bytes, at));
                    }
                    break;
                }
                b']' if array => {}
                b'}' if !array => {}
                _ => return Err(fault(bytes, at)),
            }
            at += 1;
            depth -= 1;
            arrays >>= 1;
        }
    }
}

/// The start of the value behind the key at `at`.
const fn key(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let colon = space(bytes, take!(string(bytes, at)));
    if byte(bytes, colon) == b':' { Ok(space(bytes, colon + 1)) } else { Err(fault(bytes, colon)) }
}

const fn scalar(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    match byte(bytes, at) {
        b'"' => string(bytes, at),
        b'-' | b'0'..=b'9' => number(bytes, at),
        b't' => word(bytes, at, b"true"),
        b'f' => word(bytes, at, b"false"),
        b'n' => word(bytes, at, b"null"),
        _ => Err(fault(bytes, at)),
    }
}

const fn string(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if byte(bytes, at) != b'"' {
        return Err(fault(bytes, at));
    }
    at += 1;
    loop {
        match byte(bytes, at) {
            b'"' => return Ok(at + 1),
            b'\\' => at = take!(escape(bytes, at + 1)),
            0..0x20 => return Err(fault(bytes, at)),
            // A `str` is UTF-8 already.
            _ => at += 1,
        }
    }
}

const fn escape(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let digits = match byte(bytes, at) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
        b'u' => 4,
        _ => return Err(fault(bytes, at)),
    };
    let end = at + 1 + digits;
    let mut at = at + 1;
    while at < end {
        if !byte(bytes, at).is_ascii_hexdigit() {
            return Err(fault(bytes, at));
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

/// One digit or more.
const fn digits(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if !byte(bytes, at).is_ascii_digit() {
        return Err(fault(bytes, at));
    }
    while byte(bytes, at).is_ascii_digit() {
        at += 1;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

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
