//! The front matter of a `SKILL.md`: YAML between two lines `---`, compared with the JSON of an entry.
//!
//! Values are those of the core schema of YAML 1.2: `yes` and a date are strings, `0o17` is 15. Refused is all that JSON
//! cannot have or that readers understand in different ways: anchors and aliases, tags, merge keys (`<<`), directives,
//! several documents, equal keys, keys that are not text, numbers that are not finite.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use granit_parser::{Event, Parser, ScalarStyle};
use mcp_sansio::json::{JsonKind, Raw};

/// The deepest nesting of the front matter.
const DEPTH: usize = 32;

mcp_sansio::error_enum! {
    /// The reason why there is no front matter.
    FrontMatterError {
        /// The file is not UTF-8.
        NotUtf8 => "the SKILL.md is not UTF-8",
        /// The file does not begin with a line `---`, or no other line `---` follows.
        Missing => "the SKILL.md does not begin with front matter between two lines `---`",
        /// The front matter has more bytes than the limit.
        TooLarge => "the front matter is too large",
        /// It is not valid YAML, or no mapping.
        Yaml => "the front matter is not a mapping in YAML",
        /// It uses a part of YAML that is refused.
        Unsupported => "the front matter uses a part of YAML that is not read",
    }
}

/// Splits a `SKILL.md` into the YAML of its front matter and the text behind it.
///
/// # Errors
/// [`FrontMatterError::NotUtf8`], [`FrontMatterError::Missing`].
pub fn split(file: &[u8]) -> Result<(&str, &str), FrontMatterError> {
    let text = core::str::from_utf8(file).map_err(|_| FrontMatterError::NotUtf8)?;
    let is_fence = |line: &str| line.trim_end_matches(['\r', '\n', ' ', '\t']) == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line)).ok_or(FrontMatterError::Missing)?;
    let mut end = first.len();
    for line in lines {
        let next = end + line.len();
        if is_fence(line) {
            return Ok((text.get(first.len()..end).unwrap_or_default(), text.get(next..).unwrap_or_default()));
        }
        end = next;
    }
    Err(FrontMatterError::Missing)
}

/// The front matter of a `SKILL.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontMatter {
    fields: BTreeMap<String, Value>,
}

/// A value of YAML.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    String(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

impl FrontMatter {
    /// Reads YAML, without the lines `---` around it.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio_extensions::skills::front_matter::FrontMatter;
    ///
    /// let yaml = FrontMatter::read("name: refunds\ndescription: >-\n  How to\n  refund\nmetadata: {version: 1.50}\n")?;
    /// let entry = r#"{"description":"How to refund","name":"refunds","metadata":{"version":1.5}}"#;
    /// assert_eq!(yaml.difference(Raw::constant(entry)), None);
    /// assert_eq!(yaml.difference(Raw::constant(r#"{"name":"refunds"}"#)).as_deref(), Some("description"));
    /// # Ok::<(), mcp_sansio_extensions::skills::front_matter::FrontMatterError>(())
    /// ```
    ///
    /// # Errors
    /// [`FrontMatterError::Yaml`], [`FrontMatterError::Unsupported`].
    pub fn read(yaml: &str) -> Result<Self, FrontMatterError> {
        let options = granit_parser::options! {
            strict_indentation: true,
            disallow_directives: true,
            emit_comments: false,
            flow_nesting_limit: DEPTH,
            block_nesting_limit: DEPTH,
        };
        let mut reader = Reader { events: Parser::new_from_str_with_options(yaml, options) };
        reader.expect(|event| matches!(event, Event::StreamStart))?;
        reader.expect(|event| matches!(event, Event::DocumentStart(..)))?;
        let first = reader.next()?;
        let Value::Object(fields) = reader.value(first, DEPTH)? else { return Err(FrontMatterError::Yaml) };
        reader.expect(|event| matches!(event, Event::DocumentEnd))?;
        reader.expect(|event| matches!(event, Event::StreamEnd))?;
        Ok(FrontMatter { fields })
    }

    /// Returns the first field that is not the same in `frontmatter` of an entry; `None` if all are.
    #[must_use]
    pub fn difference(&self, entry: Raw<'_>) -> Option<String> {
        difference(&self.fields, entry)
    }

    /// Returns the field if it is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.fields.get(name)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

/// Returns the first field that one side does not have, or has twice, or that is not the same.
fn difference(fields: &BTreeMap<String, Value>, json: Raw<'_>) -> Option<String> {
    let mut missing: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
    for (name, json) in json.members() {
        let name = name.to_string();
        if !missing.remove(name.as_str()) || !fields.get(&name).is_some_and(|value| value.is_json(json)) {
            return Some(name);
        }
    }
    missing.first().map(|&name| name.to_owned())
}

impl Value {
    fn is_json(&self, json: Raw<'_>) -> bool {
        match (self, json.kind()) {
            (Value::Null, JsonKind::Null) => true,
            (Value::Bool(value), JsonKind::Bool) => json.bool() == Some(*value),
            (Value::String(text), JsonKind::String) => json.text().is_some_and(|other| other.eq_str(text)),
            (Value::Integer(_) | Value::Number(_), JsonKind::Number) => self.is_number(json.as_str()),
            (Value::Array(items), JsonKind::Array) => {
                json.items().count() == items.len()
                    && items.iter().zip(json.items()).all(|(item, json)| item.is_json(json))
            }
            (Value::Object(fields), JsonKind::Object) => difference(fields, json).is_none(),
            _ => false,
        }
    }

    /// Compares whole numbers exactly, and others as most servers keep them: as the nearest `f64`.
    fn is_number(&self, json: &str) -> bool {
        match (self, json.parse::<i128>()) {
            (Value::Integer(value), Ok(other)) => *value == other,
            (Value::Integer(value), _) => json.parse() == Ok(*value as f64),
            (Value::Number(value), _) => json.parse() == Ok(*value),
            _ => false,
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, FrontMatterError> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            _ => Err(FrontMatterError::Yaml),
        }
    }

    fn expect(&mut self, is_expected: impl Fn(&Event<'a>) -> bool) -> Result<(), FrontMatterError> {
        if is_expected(&self.next()?) { Ok(()) } else { Err(FrontMatterError::Unsupported) }
    }

    /// Reads the value that begins with `event`. It may be nested `depth` deep.
    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, FrontMatterError> {
        let inner = depth.checked_sub(1).ok_or(FrontMatterError::Unsupported)?;
        match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) => plain(&text),
            Event::Scalar(text, _, 0, None) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(_, 0, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::Array(items)),
                        event => items.push(self.value(event, inner)?),
                    }
                }
            }
            Event::MappingStart(_, 0, None) => {
                let mut fields = BTreeMap::new();
                loop {
                    let name = match self.next()? {
                        Event::MappingEnd => return Ok(Value::Object(fields)),
                        event => key(event)?,
                    };
                    let event = self.next()?;
                    if fields.insert(name.into_owned(), self.value(event, inner)?).is_some() {
                        return Err(FrontMatterError::Unsupported);
                    }
                }
            }
            _ => Err(FrontMatterError::Unsupported),
        }
    }
}

/// Reads a key. Plain keys that are not text, such as `1` or `true`, have no form in JSON that all readers share.
fn key(event: Event<'_>) -> Result<Cow<'_, str>, FrontMatterError> {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, 0, None) => match plain(&text)? {
            Value::String(_) if text != "<<" => Ok(text),
            _ => Err(FrontMatterError::Unsupported),
        },
        Event::Scalar(text, _, 0, None) => Ok(text),
        _ => Err(FrontMatterError::Unsupported),
    }
}

/// Reads a plain scalar by the [core schema](https://yaml.org/spec/1.2.2/#103-core-schema).
fn plain(text: &str) -> Result<Value, FrontMatterError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Err(FrontMatterError::Unsupported),
        _ if matches!(unsigned, ".inf" | ".Inf" | ".INF") => return Err(FrontMatterError::Unsupported),
        _ => {
            let radix = match text.as_bytes() {
                [b'0', b'o', rest @ ..] if !rest.is_empty() => Some((8, rest)),
                [b'0', b'x', rest @ ..] if !rest.is_empty() => Some((16, rest)),
                _ => None,
            };
            if let Some((radix, digits)) = radix
                && digits.iter().all(|byte| char::from(*byte).is_digit(radix))
            {
                let digits = core::str::from_utf8(digits).unwrap_or_default();
                let value = i128::from_str_radix(digits, radix).map_err(|_| FrontMatterError::Unsupported)?;
                return Ok(Value::Integer(value));
            }
            if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                let value = text.parse().map_err(|_| FrontMatterError::Unsupported)?;
                return Ok(Value::Integer(value));
            }
            match is_float(unsigned).then(|| text.parse::<f64>()) {
                Some(Ok(value)) if value.is_finite() => Value::Number(value),
                Some(_) => return Err(FrontMatterError::Unsupported),
                None => Value::String(text.to_owned()),
            }
        }
    })
}

/// Returns whether an unsigned text is a number with a point or an exponent.
fn is_float(text: &str) -> bool {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits
        && are_digits(whole)
        && are_digits(fraction)
        && exponent.is_none_or(|text| !text.is_empty() && are_digits(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn difference(yaml: &str, json: &str) -> Option<String> {
        FrontMatter::read(yaml).unwrap().difference(Raw::parse(json.as_bytes()).unwrap())
    }

    #[test]
    fn splitting() {
        assert_eq!(split(b"---\na: 1\n---\nbody\n---\n"), Ok(("a: 1\n", "body\n---\n")));
        assert_eq!(split(b"---\r\na: 1\r\n--- \r\nbody"), Ok(("a: 1\r\n", "body")));
        assert_eq!(split(b"---\n---"), Ok(("", "")));
        for bad in [
            "",
            "a: 1\n",
            " ---\na\n---\n",
            "\n---\na\n---\n",
            "---\na: 1\n",
            "----\na\n----\n",
            "\u{feff}---\na\n---\n",
        ] {
            assert_eq!(split(bad.as_bytes()), Err(FrontMatterError::Missing), "{bad:?}");
        }
        assert_eq!(split(b"---\n\xff\n---\n"), Err(FrontMatterError::NotUtf8));
    }

    #[test]
    fn values_as_in_json() {
        for (yaml, json) in [
            ("x", r#""x""#),
            ("'it''s'", r#""it's""#),
            (r#""a\tb\u00e9""#, r#""a\tb\u00e9""#),
            ("a: b", r#"{"a":"b"}"#),
            ("|\n  one\n   two\n\n  three\n", r#""one\n two\n\nthree\n""#),
            (">-\n  one\n  two\n\n  three\n", r#""one two\nthree""#),
            ("one\n  two", r#""one two""#),
            ("[a, 'b', 3]", r#"["a","b",3]"#),
            ("\n- a\n- b: c\n  d: e\n", r#"["a",{"b":"c","d":"e"}]"#),
            ("{a: [], b: {}}", r#"{"b":{},"a":[]}"#),
            ("null", "null"),
            ("~", "null"),
            ("", "null"),
            ("true", "true"),
            ("'true'", r#""true""#),
            ("yes", r#""yes""#),
            ("2024-01-31", r#""2024-01-31""#),
            ("1.2.3", r#""1.2.3""#),
            ("-x", r#""-x""#),
            ("+", r#""+""#),
            (".", r#"".""#),
            ("e5", r#""e5""#),
            ("12", "12"),
            ("12", "1.2e1"),
            ("-007", "-7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.50", "1.5"),
            ("+.5e-1", "0.05"),
            ("1.", "1"),
            ("1e3", "1000"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            let yaml = format!("k: {}\n", if yaml.starts_with("a:") { "{a: b}" } else { yaml });
            assert_eq!(difference(&yaml, &format!(r#"{{"k":{json}}}"#)), None, "{yaml}");
        }
    }

    #[test]
    fn differences_are_found() {
        for (yaml, json) in [
            ("x", r#""y""#),
            ("'1'", "1"),
            ("1", r#""1""#),
            ("1", "2"),
            ("9007199254740993", "9007199254740992"),
            ("1.5", "1.25"),
            ("null", r#""null""#),
            ("null", "false"),
            ("[a, b]", r#"["b","a"]"#),
            ("[a]", r#"["a","b"]"#),
            ("[a, b]", r#"["a"]"#),
            ("{a: 1}", r#"{"a":1,"b":2}"#),
            ("{a: 1, b: 2}", r#"{"a":1}"#),
            ("{a: 1, b: 2}", r#"{"a":1,"b":3}"#),
            ("|\n  x\n", r#""x""#),
        ] {
            let yaml = format!("k: {yaml}\n");
            assert_eq!(difference(&yaml, &format!(r#"{{"k":{json}}}"#)).as_deref(), Some("k"), "{yaml}");
        }
        assert_eq!(difference("a: 1\n", r#"{"a":1,"b":null}"#).as_deref(), Some("b"));
        assert_eq!(difference("a: 1\nb: null\n", r#"{"a":1}"#).as_deref(), Some("b"));
        // Other readers may take the first of equal keys.
        assert!(difference("a: 1\n", r#"{"a":2,"a":1}"#).is_some());
        assert!(difference("k: {a: 1}\n", r#"{"k":{"a":2,"a":1}}"#).is_some());
    }

    #[test]
    fn refused() {
        let unsupported = [
            "a: &x 1\nb: *x\n",
            "a: &x [1]\n",
            "a: !!str 1\n",
            "a: !t {b: c}\n",
            "a: 1\na: 2\n",
            "1: a\n",
            "true: a\n",
            "~: a\n",
            "? [a]\n: b\n",
            "a: .nan\n",
            "a: -.inf\n",
            "a: 1e999\n",
            "<<: {a: b}\n",
            "a: b\n--- \nc: d\n",
        ];
        for yaml in unsupported {
            assert!(FrontMatter::read(yaml).is_err(), "{yaml}");
        }
        for yaml in [
            "",
            "x\n",
            "- a\n",
            "a: [\n",
            "a: 'b\n",
            "a:\n\t- b\n",
            "%YAML 1.2\n---\na: b\n",
            "a: b: c\n",
            "a: b\n c: d\n",
        ] {
            assert!(FrontMatter::read(yaml).is_err(), "{yaml}");
        }
        let deep = |n: usize| format!("a: {}{}\n", "[".repeat(n), "]".repeat(n));
        assert!(FrontMatter::read(&deep(20)).is_ok());
        assert!(FrontMatter::read(&deep(40)).is_err() && FrontMatter::read(&deep(100_000)).is_err());
    }
}
