//! Checks of JSON Schema constants when the program is compiled: what a mistake in a schema is, and where.
//!
//! Only what is a mistake in every dialect is looked for. Whether values fit a schema is not checked here.

use super::constant::{self, SCHEMAS, byte, end_of, is_one_of, key, next_entry, skip_key, space, take, word};
use core::fmt;

/// A mistake in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaError {
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
    /// The values or tokens that are valid at this place, in words.
    pub expected: &'static str,
}

impl core::error::Error for SchemaError {}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: expected {}", self.line, self.column, self.expected)
    }
}

impl SchemaError {
    const fn new(bytes: &[u8], at: usize, expected: &'static str) -> SchemaError {
        let (mut line, mut column, mut n) = (1, 1, 0);
        while n < at {
            if byte(bytes, n) == b'\n' {
                line += 1;
                column = 1;
            } else {
                column += 1;
            }
            n += 1;
        }
        SchemaError { line, column, expected }
    }

    /// Panics with `what`, the place and what was expected: in a constant, the error of the compiler.
    pub(crate) const fn panic(self, what: &str) -> ! {
        let mut text = Pen { bytes: [0; 200], len: 0 };
        text.put(what);
        text.put(", line ");
        text.digits(self.line as u128);
        text.put(", column ");
        text.digits(self.column as u128);
        text.put(": expected ");
        text.put(self.expected);
        let (message, _) = text.bytes.split_at(if text.len < 200 { text.len } else { 200 });
        match core::str::from_utf8(message) {
            Ok(message) => panic!("{}", message),
            Err(_) => panic!("{}", self.expected),
        }
    }
}

/// Writes a text when the program is compiled; only counts what does not fit.
pub(crate) struct Pen<const N: usize> {
    pub(crate) bytes: [u8; N],
    pub(crate) len: usize,
}

impl<const N: usize> Pen<N> {
    pub(crate) const fn byte(&mut self, byte: u8) {
        #[allow(clippy::indexing_slicing, reason = "`get_mut` is not const; the index is checked")]
        if self.len < N {
            self.bytes[self.len] = byte;
        }
        self.len += 1;
    }

    pub(crate) const fn put(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let [byte, behind @ ..] = rest {
            self.byte(*byte);
            rest = behind;
        }
    }

    pub(crate) const fn digits(&mut self, value: u128) {
        if value >= 10 {
            self.digits(value / 10);
        }
        self.byte(b'0' + (value % 10) as u8);
    }
}

/// Checks that `text` is one JSON value that could be a schema:
///
/// - it is JSON;
/// - each schema in it is an object, `true` or `false`;
/// - each `type` is one of the seven names, or an array of them;
/// - each name in `required` is one of `properties`, where no `$ref`, `allOf`, `patternProperties` or the like stands beside
///   them that could have it.
///
/// In tables with very many names the last is not looked at: compilers limit the work in a constant.
///
/// # Errors
/// The first mistake.
///
/// ```
/// use mcp_sansio::json::schema::check_schema;
/// const _: () = assert!(check_schema(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#).is_ok());
/// let mistake = check_schema(r#"{"type":"object","properties":{"a":{"type":"integr"}}}"#).unwrap_err();
/// assert_eq!((mistake.line, mistake.column), (1, 44));
/// ```
pub const fn check_schema(text: &str) -> Result<(), SchemaError> {
    let bytes = text.as_bytes();
    if let Some(fault) = constant::first_fault(text) {
        return Err(SchemaError::new(bytes, fault.at, fault.expected));
    }
    match schema(bytes, space(bytes, 0)) {
        Ok(()) => Ok(()),
        Err((at, expected)) => Err(SchemaError::new(bytes, at, expected)),
    }
}

/// The place of a mistake, and what was expected.
type Mistake = (usize, &'static str);

/// The names of types. `number` has `integer` in it.
const TYPES: [&[u8]; 7] =
    [b"\"string\"", b"\"integer\"", b"\"number\"", b"\"boolean\"", b"\"object\"", b"\"array\"", b"\"null\""];
/// The members whose value is one schema; `items` was an array, too, up to 2019-09.
const ONE: [&[u8]; 11] = [
    b"\"items\"",
    b"\"additionalProperties\"",
    b"\"additionalItems\"",
    b"\"unevaluatedProperties\"",
    b"\"unevaluatedItems\"",
    b"\"propertyNames\"",
    b"\"contains\"",
    b"\"not\"",
    b"\"if\"",
    b"\"then\"",
    b"\"else\"",
];
/// The members whose value is an array of schemas.
const SEVERAL: [&[u8]; 4] = [b"\"allOf\"", b"\"anyOf\"", b"\"oneOf\"", b"\"prefixItems\""];
/// The members that may bring properties from elsewhere.
const ELSEWHERE: [&[u8]; 8] = [
    b"\"$ref\"",
    b"\"$dynamicRef\"",
    b"\"allOf\"",
    b"\"anyOf\"",
    b"\"oneOf\"",
    b"\"if\"",
    b"\"patternProperties\"",
    b"\"dependentSchemas\"",
];
/// The most bytes that are compared for one `required`.
const COMPARED_MAX: usize = 1 << 16;

/// Checks the schema at `at` in valid JSON, with all that are in it.
const fn schema(bytes: &[u8], at: usize) -> Result<(), Mistake> {
    match byte(bytes, at) {
        b'{' => {}
        b't' | b'f' => return Ok(()),
        _ => return Err((at, "a schema: an object, `true` or `false`")),
    }
    let (mut properties, mut required, mut elsewhere) = (None, None, false);
    let mut comma = at;
    while let Some(name) = next_entry(bytes, comma) {
        let Ok(start) = key(bytes, name) else { return Ok(()) };
        elsewhere |= is_one_of(bytes, name, &ELSEWHERE);
        if word(bytes, name, b"\"type\"").is_ok() {
            take!(kind(bytes, start));
        } else if word(bytes, name, b"\"required\"").is_ok() {
            required = Some(start);
        } else if is_one_of(bytes, name, &SCHEMAS) {
            if word(bytes, name, b"\"properties\"").is_ok() {
                properties = Some(start);
            }
            take!(each(bytes, start, b'{', "an object with schemas"));
        } else if is_one_of(bytes, name, &SEVERAL) {
            take!(each(bytes, start, b'[', "an array of schemas"));
        } else if is_one_of(bytes, name, &ONE) {
            if byte(bytes, start) == b'[' {
                take!(each(bytes, start, b'[', "an array of schemas"));
            } else {
                take!(schema(bytes, start));
            }
        }
        comma = end_of(bytes, start);
    }
    match required {
        Some(required) => names(bytes, required, properties, elsewhere),
        None => Ok(()),
    }
}

/// Checks the value of `type`.
const fn kind(bytes: &[u8], at: usize) -> Result<(), Mistake> {
    const EXPECTED: &str = "`string`, `integer`, `number`, `boolean`, `object`, `array` or `null`";
    if byte(bytes, at) != b'[' {
        return if is_one_of(bytes, at, &TYPES) { Ok(()) } else { Err((at, EXPECTED)) };
    }
    let mut comma = at;
    while let Some(start) = next_entry(bytes, comma) {
        if !is_one_of(bytes, start, &TYPES) {
            return Err((start, EXPECTED));
        }
        comma = end_of(bytes, start);
    }
    if comma == at { Err((at, EXPECTED)) } else { Ok(()) }
}

/// Checks the schemas in an object or an array, whichever `open` says.
const fn each(bytes: &[u8], at: usize, open: u8, expected: &'static str) -> Result<(), Mistake> {
    if byte(bytes, at) != open {
        return Err((at, expected));
    }
    let mut comma = at;
    while let Some(entry) = next_entry(bytes, comma) {
        let start = if open == b'{' { skip_key(bytes, entry) } else { entry };
        take!(schema(bytes, start));
        comma = end_of(bytes, start);
    }
    Ok(())
}

/// Checks the names in `required`: strings, and names of `properties`.
const fn names(bytes: &[u8], at: usize, properties: Option<usize>, elsewhere: bool) -> Result<(), Mistake> {
    if byte(bytes, at) != b'[' {
        return Err((at, "an array of names"));
    }
    let mut compared = 0;
    let mut comma = at;
    while let Some(start) = next_entry(bytes, comma) {
        if byte(bytes, start) != b'"' {
            return Err((start, "a name in quotation marks"));
        }
        comma = end_of(bytes, start);
        let found = match properties {
            Some(properties) => {
                compared += end_of(bytes, properties) - properties;
                has(bytes, properties, start)
            }
            // A part of another schema may say what is required of the whole.
            None => return Ok(()),
        };
        if !found && !elsewhere {
            return Err((start, "the name of one of the `properties`"));
        }
        if compared > COMPARED_MAX {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns whether the object at `at` has a member with the name at `name`; also if an escape leaves it open.
const fn has(bytes: &[u8], at: usize, name: usize) -> bool {
    let mut comma = at;
    while let Some(entry) = next_entry(bytes, comma) {
        let mut n = 0;
        loop {
            let (one, other) = (byte(bytes, entry + n), byte(bytes, name + n));
            if one == b'\\' || other == b'\\' || (n > 0 && one == b'"' && other == b'"') {
                return true;
            }
            if one != other {
                break;
            }
            n += 1;
        }
        comma = end_of(bytes, skip_key(bytes, entry));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[track_caller]
    fn refused(text: &str, at: &str, expected: &str) {
        let mistake = check_schema(text).expect_err(text);
        let before = text.find(at).unwrap_or(text.len());
        let line_start = text[..before].rfind('\n').map_or(0, |at| at + 1);
        let place = (1 + text[..before].matches('\n').count() as u32, 1 + (before - line_start) as u32);
        assert_eq!((mistake.line, mistake.column), place, "{text}");
        assert!(mistake.to_string().ends_with(expected), "{mistake}");
    }

    #[test]
    fn schemas_are_taken() {
        for text in [
            "{}",
            "true",
            r#"{"type":["integer","null"]}"#,
            r#" { "type" : "object" , "properties" : { "a" : { "type" : "string" } , "b" : true } , "required" : [ "b" , "a" ] } "#,
            r#"{"type":"object","properties":{},"required":[]}"#,
            // The names come from elsewhere, or may.
            r#"{"required":["a"]}"#,
            r#"{"properties":{"a":{}},"anyOf":[{"required":["a"]}]}"#,
            r#"{"properties":{},"required":["a"],"$ref":"x"}"#,
            r#"{"properties":{"\u0061":{}},"required":["a"]}"#,
            // Names of properties and data are not keywords.
            r#"{"properties":{"type":{"type":"string"},"required":{"type":"array","items":{}}}}"#,
            r#"{"default":{"type":"slider"},"enum":[{"type":3}],"const":{"required":3},"examples":[{"properties":3}]}"#,
            r#"{"x-view":{"type":"slider"}}"#,
            r#"{"items":[{},{"type":"null"}]}"#,
        ] {
            assert_eq!(check_schema(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        refused("{\"type\":\"object\",\n \"properties\":{\n  \"a\":{},\n }}", "}}", "a name in quotation marks");
        refused("{\n\"a\":1 \"b\":2}", "\"b\"", "`,` or `}`");
        refused(r#"[1,2"#, "nowhere", "`,` or `]`");
        refused("{\"a\"=1}", "=", "`:`");
        refused("{} x", "x", "the end of the text");
        refused(r#"{"type":"integr"}"#, "\"integr\"", "`array` or `null`");
        refused(r#"{"type":[]}"#, "[]", "`array` or `null`");
        refused(r#"{"type":["string",3]}"#, "3", "`array` or `null`");
        refused(r#"{"properties":{"a":{"items":{"type":"int"}}}}"#, "\"int\"", "`array` or `null`");
        refused(r#"{"anyOf":[{"type":"int"}]}"#, "\"int\"", "`array` or `null`");
        refused(r#"{"$defs":{"x":{"not":{"type":"int"}}}}"#, "\"int\"", "`array` or `null`");
        refused(r#"{"properties":{"a":"string"}}"#, "\"string\"", "`true` or `false`");
        refused(r#"{"properties":["a"]}"#, "[", "an object with schemas");
        refused(r#"{"allOf":{}}"#, "{}", "an array of schemas");
        refused(r#"{"properties":{"a":{}},"required":"a"}"#, "\"a\"}", "an array of names");
        refused(r#"{"properties":{"a":{}},"required":[1]}"#, "1", "a name in quotation marks");
        refused(r#"{"properties":{"ab":{},"b":{}},"required":["b","a"]}"#, "\"a\"]", "one of the `properties`");
        refused(r#"{"properties":{"a":{}},"required":["ab"]}"#, "\"ab\"", "one of the `properties`");
    }

    #[test]
    fn many_names_end() {
        let many = if cfg!(miri) { 100 } else { 3000 };
        let names: std::vec::Vec<_> = (0..many).map(|n| std::format!("\"name{n}\"")).collect();
        let properties: std::vec::Vec<_> = names.iter().map(|name| std::format!("{name}:{{}}")).collect();
        let text = std::format!(r#"{{"properties":{{{}}},"required":[{}]}}"#, properties.join(","), names.join(","));
        assert_eq!(check_schema(&text), Ok(()));
    }

    #[test]
    #[should_panic = "an input schema, line 12, column 3: expected `:`"]
    fn the_panic_has_the_place() {
        SchemaError { line: 12, column: 3, expected: "`:`" }.panic("an input schema");
    }
}
