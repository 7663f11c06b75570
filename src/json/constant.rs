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
    let mut found = false;
    // At the brace first, then at the comma behind each member.
    let mut at = space(bytes, 0);
    while matches!(byte(bytes, at), b'{' | b',') {
        let key = space(bytes, at + 1);
        let Ok(colon) = string(bytes, key) else { return found };
        let start = space(bytes, space(bytes, colon) + 1);
        let Ok(end) = value(bytes, start) else { return found };
        if word(bytes, key, b"\"type\"").is_ok() {
            found = word(bytes, start, b"\"object\"").is_ok();
        }
        at = space(bytes, end);
    }
    found
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
}
