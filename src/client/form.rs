//! The form of an elicitation in form mode: its fields, and a check of the user's answers.
//!
//! A `requestedSchema` is an object with flat properties: strings, numbers, booleans, one choice, several choices
//! ([requested
//! schema](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema), from
//! 2025-06-18 on). [`Form`] gives them as fields in their order, which is the order to ask in. Check the answers
//! before you send them: the protocol asks clients to.
//!
//! ```
//! use mcp_sansio::client::form::{Form, FormError, FieldKind};
//! use mcp_sansio::client::views::{ViewError, View};
//! use mcp_sansio::json::Raw;
//!
//! let form = Form::of(Raw::constant(
//!     r#"{"type":"object","properties":{
//!         "mail":{"type":"string","format":"email","title":"Your address"},
//!         "color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"g"}
//!     },"required":["mail"]}"#,
//! ))?;
//! let mut fields = form.fields();
//! let (mail, color) = (fields.next().unwrap(), fields.next().unwrap());
//! assert!(mail.label().eq_str("Your address") && mail.is_required() && !color.is_required());
//! assert_eq!(mail.check(Raw::constant(r#""nobody""#)), Err(FormError::Format));
//!
//! assert!(matches!(color.kind(), FieldKind::One));
//! let (value, label) = color.choices().next().unwrap();
//! assert!(value.eq_str("r") && label.eq_str("Red"));
//! assert!(color.default().is_some_and(|default| default.as_str() == "\"g\""));
//!
//! assert!(form.check(Raw::constant(r#"{"mail":"a@example.com","color":"r"}"#)).is_ok());
//! let (field, error) = form.check(Raw::constant(r#"{"color":"r"}"#)).unwrap_err();
//! assert!(field.is_some_and(|field| field.name.eq_str("mail")) && error == FormError::Missing);
//! # Ok::<(), ViewError>(())
//! ```

use super::views::{View, ViewError, array, may, must, object, shape, text};
use crate::json::{JsonKind, Raw, Text};
use core::cmp::Ordering;

/// The most fields of a form. The time for a check grows with the square of their number.
pub const FIELDS: usize = 256;

/// The most bytes of the schema of a form.
pub const SCHEMA_BYTES: usize = 1 << 20;

/// The `requestedSchema` of an elicitation in form mode.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    raw: Raw<'a>,
    properties: Raw<'a>,
    required: Option<Raw<'a>>,
}

/// [`Form::of`](View::of) also fails with [`ViewError::Value`] for a schema of more than [`SCHEMA_BYTES`]
/// (`requestedSchema`), or more than [`FIELDS`] properties (`properties`) or names in `required`.
impl<'a> View<'a> for Form<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, ViewError> {
        shape(raw)?;
        if raw.as_bytes().len() > SCHEMA_BYTES {
            return Err(ViewError::Value("requestedSchema"));
        }
        if may(raw, "type", text)?.is_some_and(|kind| !kind.eq_str("object")) {
            return Err(ViewError::Value("type"));
        }
        let form = Form { raw, properties: must(raw, "properties", object)?, required: may(raw, "required", array)? };
        if form.fields().take(FIELDS + 1).count() > FIELDS {
            return Err(ViewError::Value("properties"));
        }
        if form.required.is_some_and(|names| names.items().take(FIELDS + 1).count() > FIELDS) {
            return Err(ViewError::Value("required"));
        }
        Ok(form)
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Checks that each property has a kind that the protocol allows, that each default fits, and that each name in `required`
    /// is a property.
    fn check(&self) -> Result<(), ViewError> {
        let odd = self.fields().any(|field| matches!(field.kind(), FieldKind::Other));
        let misfit = self.fields().any(|field| field.default().is_some_and(|value| field.check(value).is_err()));
        match () {
            () if odd || misfit => Err(ViewError::Value("properties")),
            () if self.has_unknown_required() => Err(ViewError::Value("required")),
            () => Ok(()),
        }
    }
}

impl<'a> Form<'a> {
    /// Returns the fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + Clone + use<'a> {
        let required = self.required;
        self.properties.members().map(move |(name, schema)| Field { name, schema, required })
    }

    /// Returns `true` if `required` has a name that is no property.
    fn has_unknown_required(&self) -> bool {
        let names = self.required.into_iter().flat_map(|required| required.items());
        let is_field = |name: Text<'_>| self.fields().any(|field| field.name.same(&name));
        names.into_iter().any(|name| !name.text().is_some_and(is_field))
    }

    /// Checks the `content` of an answer: all fields that are there, and that no required field is missing.
    /// Ignores members without a field. A form with a field of [`FieldKind::Other`] takes no answer, not even one without that
    /// field: what a user cannot be shown is not accepted.
    ///
    /// # Errors
    /// The first field that does not fit, and the reason. A `content` that is not an object gives [`FormError::Type`]
    /// without a field, and a name in `required` that is no property [`FormError::Missing`] without one.
    pub fn check(&self, content: Raw<'_>) -> Result<(), (Option<Field<'a>>, FormError)> {
        if content.kind() != JsonKind::Object {
            return Err((None, FormError::Type));
        }
        for field in self.fields() {
            let answer = content.members().filter(|(key, _)| key.same(&field.name)).last();
            let fits = match answer {
                Some((_, answer)) => field.check(answer),
                None if matches!(field.kind(), FieldKind::Other) => Err(FormError::Kind),
                None if field.is_required() => Err(FormError::Missing),
                None => Ok(()),
            };
            fits.map_err(|error| (Some(field), error))?;
        }
        if self.has_unknown_required() { Err((None, FormError::Missing)) } else { Ok(()) }
    }
}

/// A field of a form.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The name: the key in the answer.
    pub name: Text<'a>,
    /// The schema of the field.
    pub schema: Raw<'a>,
    required: Option<Raw<'a>>,
}

/// The kind of a field, with the limits of its value.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FieldKind<'a> {
    /// `string`.
    Text {
        /// `format`. [`Field::check`] checks `email`, `uri`, `date` (for example `2026-07-28`) and `date-time` (for
        /// example `2026-07-28T12:00:00Z`, of at most 64 bytes).
        format: Option<Text<'a>>,
        /// `minLength`, in characters.
        min: Option<u64>,
        /// `maxLength`, in characters.
        max: Option<u64>,
    },
    /// `integer`: a number without a fraction.
    Integer {
        /// `minimum`.
        min: Option<Raw<'a>>,
        /// `maximum`.
        max: Option<Raw<'a>>,
    },
    /// `number`.
    Number {
        /// `minimum`.
        min: Option<Raw<'a>>,
        /// `maximum`.
        max: Option<Raw<'a>>,
    },
    /// `boolean`.
    Boolean,
    /// One of the [choices](Field::choices): a string.
    One,
    /// Several of the [choices](Field::choices): an array of strings (from 2025-11-25 on).
    Many {
        /// `minItems`.
        min: Option<u64>,
        /// `maxItems`.
        max: Option<u64>,
    },
    /// A kind that the protocol does not allow: a list of types, an object, a `$ref`, choices without a string. Show
    /// [`Field::schema`] to the user, or [cancel](super::result::ClientResult::cancel); do not accept what the user did not see.
    Other,
}

impl<'a> Field<'a> {
    /// Returns `title`, a name for people.
    #[must_use]
    pub fn title(&self) -> Option<Text<'a>> {
        self.schema.get("title")?.text()
    }

    /// Returns the name to show to people: `title`, or the key.
    #[must_use]
    pub fn label(&self) -> Text<'a> {
        self.title().unwrap_or(self.name)
    }

    /// Returns `description`.
    #[must_use]
    pub fn description(&self) -> Option<Text<'a>> {
        self.schema.get("description")?.text()
    }

    /// Returns `true` if the answer must have this field.
    #[must_use]
    pub fn is_required(&self) -> bool {
        let required = self.required.map(|required| required.items());
        required.into_iter().flatten().any(|name| name.text().is_some_and(|name| name.same(&self.name)))
    }

    /// Returns `default` (booleans in 2025-06-18, all kinds from 2025-11-25 on). It may not fit: see
    /// [`check`](Self::check).
    #[must_use]
    pub fn default(&self) -> Option<Raw<'a>> {
        self.schema.get("default")
    }

    /// Returns the kind with its limits.
    #[must_use]
    pub fn kind(&self) -> FieldKind<'a> {
        let get = |key: &str| self.schema.get(key);
        let count = |key| get(key)?.u64();
        let is = |name: &str| get("type").and_then(|kind| kind.text()).is_some_and(|kind| kind.eq_str(name));
        match () {
            () if choices_of(self.schema).is_some() => FieldKind::One,
            () if is("string") => FieldKind::Text {
                format: get("format").and_then(|format| format.text()),
                min: count("minLength"),
                max: count("maxLength"),
            },
            () if is("integer") => FieldKind::Integer { min: get("minimum"), max: get("maximum") },
            () if is("number") => FieldKind::Number { min: get("minimum"), max: get("maximum") },
            () if is("boolean") => FieldKind::Boolean,
            () if is("array") && get("items").and_then(choices_of).is_some() => {
                FieldKind::Many { min: count("minItems"), max: count("maxItems") }
            }
            () => FieldKind::Other,
        }
    }

    /// Returns the choices of [`FieldKind::One`] and [`FieldKind::Many`] in their order: the value to answer with, and
    /// the text to show to people, which is `title`, the name in `enumNames`, or the value. Skips values that are not
    /// strings.
    pub fn choices(&self) -> impl Iterator<Item = (Text<'a>, Text<'a>)> + Clone + use<'a> {
        let none = const { Raw::constant("[]") };
        let place = match self.kind() {
            FieldKind::Many { .. } => self.schema.get("items"),
            _ => Some(self.schema),
        };
        let (list, names) = place.and_then(choices_of).unwrap_or((none, none));
        let mut names = names.items();
        list.items().filter_map(move |item| {
            let name = names.next();
            let label = if item.kind() == JsonKind::Object { item.get("title") } else { name };
            let value = choice_of(item)?;
            Some((value, label.and_then(|label| label.text()).unwrap_or(value)))
        })
    }

    /// Checks an answer. No answer fits a field of [`FieldKind::Other`].
    ///
    /// # Errors
    /// The reason why the answer does not fit.
    pub fn check(&self, answer: Raw<'_>) -> Result<(), FormError> {
        match self.kind() {
            FieldKind::Text { format, min, max } => {
                let text = answer.text().ok_or(FormError::Type)?;
                within(text.chars().count(), min, max, FormError::Short, FormError::Long)?;
                if format.is_none_or(|format| has_format(text, format)) { Ok(()) } else { Err(FormError::Format) }
            }
            FieldKind::Integer { .. } if !answer.is_whole() => Err(FormError::Type),
            FieldKind::Integer { .. } | FieldKind::Number { .. } if answer.kind() != JsonKind::Number => {
                Err(FormError::Type)
            }
            FieldKind::Integer { min, max } | FieldKind::Number { min, max } => {
                let beyond = |limit: Option<Raw<'_>>, side| limit.and_then(|limit| answer.compare(limit)) == Some(side);
                match () {
                    () if beyond(min, Ordering::Less) => Err(FormError::Small),
                    () if beyond(max, Ordering::Greater) => Err(FormError::Large),
                    () => Ok(()),
                }
            }
            FieldKind::Boolean => answer.bool().map(|_| ()).ok_or(FormError::Type),
            FieldKind::One => self.check_choice(answer),
            FieldKind::Many { min, max } => {
                let items = array(answer, "").map_err(|_| FormError::Type)?.items();
                items.clone().try_for_each(|item| self.check_choice(item))?;
                within(items.count(), min, max, FormError::Few, FormError::Many)
            }
            FieldKind::Other => Err(FormError::Kind),
        }
    }

    fn check_choice(&self, answer: Raw<'_>) -> Result<(), FormError> {
        let text = answer.text().ok_or(FormError::Type)?;
        if self.choices().any(|(value, _)| value.same(&text)) { Ok(()) } else { Err(FormError::Choice) }
    }
}

/// Returns the array of the choices of a schema: `enum`, or pairs of `const` and `title`, with at least one that is a string;
/// with the array `enumNames`, which may be empty.
fn choices_of<'a>(schema: Raw<'a>) -> Option<(Raw<'a>, Raw<'a>)> {
    let list = |key: &&str| schema.get(key).filter(|list| list.kind() == JsonKind::Array);
    let has_text = |list: &Raw<'_>| list.items().any(|item| choice_of(item).is_some());
    let choices = ["enum", "oneOf", "anyOf"].iter().filter_map(list).find(has_text)?;
    Some((choices, list(&"enumNames").unwrap_or(const { Raw::constant("[]") })))
}

/// Returns the value of a choice, if it is a string.
fn choice_of(item: Raw<'_>) -> Option<Text<'_>> {
    item.text().or_else(|| item.get("const")?.text())
}

fn within(count: usize, min: Option<u64>, max: Option<u64>, few: FormError, many: FormError) -> Result<(), FormError> {
    let count = count as u64;
    match () {
        () if min.is_some_and(|min| count < min) => Err(few),
        () if max.is_some_and(|max| count > max) => Err(many),
        () => Ok(()),
    }
}

crate::error_enum! {
    /// The reason why an answer does not fit a field.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    FormError {
        /// The field is required, and the answer is missing.
        Missing => "required",
        /// The field is of a kind that forms cannot have: [`FieldKind::Other`].
        Kind => "of a kind that forms cannot have",
        /// The answer has another JSON type.
        Type => "of the wrong type",
        /// The text is shorter than `minLength`.
        Short => "too short",
        /// The text is longer than `maxLength`.
        Long => "too long",
        /// The number is less than `minimum`.
        Small => "too small",
        /// The number is greater than `maximum`.
        Large => "too large",
        /// The text does not match `format`.
        Format => "not in the right format",
        /// The answer is not one of the choices.
        Choice => "not one of the choices",
        /// The answer has fewer choices than `minItems`.
        Few => "too few chosen",
        /// The answer has more choices than `maxItems`.
        Many => "too many chosen",
    }
}

/// Returns `true` if the text has this `format`. All texts have an unknown one.
fn has_format(text: Text<'_>, format: Text<'_>) -> bool {
    match () {
        () if format.eq_str("email") => is_email(text),
        () if format.eq_str("uri") => is_uri(text),
        () if format.eq_str("date") => text.decode(&mut [0; 10]).is_ok_and(is_date),
        () if format.eq_str("date-time") => text.decode(&mut [0; DATE_TIME]).is_ok_and(is_date_time),
        () => true,
    }
}

/// Checks for some characters, one `@`, and a domain, without white space.
fn is_email(text: Text<'_>) -> bool {
    let (mut local, mut domain, mut at, mut last) = (0, 0, 0, '.');
    for c in text.chars() {
        match c {
            Ok('@') => at += 1,
            Ok(c) if c.is_whitespace() || c.is_control() => return false,
            Ok('.') if at == 1 && last == '@' => return false,
            Ok(_) if at == 0 => local += 1,
            Ok(_) => domain += 1,
            Err(_) => return false,
        }
        last = c.unwrap_or_default();
    }
    at == 1 && local > 0 && domain > 0 && last != '.'
}

/// Checks for a scheme, a colon, and only the characters of a URI (RFC 3986).
fn is_uri(text: Text<'_>) -> bool {
    let mut chars = text.chars();
    if !matches!(chars.next(), Some(Ok(c)) if c.is_ascii_alphabetic()) {
        return false;
    }
    let in_scheme = |c: &Result<char, _>| matches!(c, Ok(c) if c.is_ascii_alphanumeric() || "+-.".contains(*c));
    let colon = chars.by_ref().find(|c| !in_scheme(c));
    let in_uri = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    colon == Some(Ok(':')) && chars.all(|c| c.is_ok_and(in_uri))
}

/// Checks for a full date of RFC 3339 that exists.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |digits| parts.next().and_then(|part| number(part, digits));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day) && parts.next().is_none()
}

/// The longest date-time, in bytes. A fraction of a second may have any number of digits.
const DATE_TIME: usize = 64;

/// Checks for a date-time of RFC 3339 of at most [`DATE_TIME`] bytes.
fn is_date_time(text: &str) -> bool {
    // A text without escapes comes here in any length: it is not decoded into a buffer.
    if text.len() > DATE_TIME {
        return false;
    }
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, true),
        None => time.rsplit_once(['+', '-']).map_or((time, false), |(clock, zone)| (clock, is_clock(zone, false))),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock(clock, true) && fraction && offset
}

/// Checks for `hh:mm`, with `:ss` if `seconds`. A leap second, `:60`, is valid.
fn is_clock(text: &str, seconds: bool) -> bool {
    let mut parts = text.split(':');
    let mut part = |most| parts.next().and_then(|part| number(part, 2)).is_some_and(|value| value <= most);
    part(23) && part(59) && (!seconds || part(60)) && parts.next().is_none()
}

/// Reads a number with exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u16> {
    let all = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::string::String;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    /// Checks an answer against the schema of one field.
    fn check(schema: &str, answer: &str) -> Result<(), FormError> {
        let field = Field { name: Text::new(b"f", false), schema: raw(schema), required: None };
        field.check(raw(answer))
    }

    #[test]
    fn texts_for_a_person() {
        let field = |schema: &'static str| Field { name: Text::new(b"f", false), schema: raw(schema), required: None };
        let named = field(r#"{"type":"string","title":"T","description":"D"}"#);
        assert!(named.label().eq_str("T") && named.description().is_some_and(|text| text.eq_str("D")));
        let bare = field(r#"{"type":"string"}"#);
        assert!(bare.label().eq_str("f") && bare.description().is_none());
        // A number has no choices, whatever else its schema has.
        let number = field(r#"{"type":"number","items":{"enum":["a"]}}"#);
        assert!(number.choices().next().is_none() && matches!(number.kind(), FieldKind::Number { .. }));
    }

    #[test]
    fn strings() {
        let short = r#"{"type":"string","minLength":2,"maxLength":3}"#;
        for (answer, expected) in [
            (r#""ab""#, Ok(())),
            (r#""\u00e9é\n""#, Ok(())),
            (r#""é""#, Err(FormError::Short)),
            (r#""abcd""#, Err(FormError::Long)),
            ("12", Err(FormError::Type)),
            ("null", Err(FormError::Type)),
        ] {
            assert_eq!(check(short, answer), expected, "{answer}");
        }
        assert_eq!(check(r#"{"type":"string","format":"unheard-of"}"#, r#""x""#), Ok(()));
    }

    fn formatted(format: &str, good: &[&str], bad: &[&str]) {
        let schema = format!(r#"{{"type":"string","format":"{format}"}}"#);
        for text in good {
            assert_eq!(check(&schema, &format!("\"{text}\"")), Ok(()), "{text}");
        }
        for text in bad {
            assert_eq!(check(&schema, &format!("\"{text}\"")), Err(FormError::Format), "{text}");
        }
    }

    #[test]
    fn formats() {
        formatted(
            "email",
            &["a@b", "a.b+c@example.com", r"a\u0040b.c", "ü@exämple.de"],
            &["", "a", "@b", "a@", "a b@c", "a@b@c", "a@.b", "a@b.", r"a@b\n", r"\ud800@b"],
        );
        formatted(
            "uri",
            &["a:", "https://example.com/a?b#c", r"https:\/\/x", "urn:isbn:1"],
            &["", "a", "//x", "1a:b", ":x", "a:b c", "a:{b}", "a:é", r"a:\\b"],
        );
        formatted(
            "date",
            &["2024-02-29", "2000-02-29", "2026-12-31", r"2026\u002d07-28"],
            &["2023-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-1-1", "2026-00-10", "2026-01-00"],
        );
        formatted("date", &[], &["", "2026-01-01-", "2026-01-01T", "+026-01-01", "20260101"]);
        formatted(
            "date-time",
            &["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123z", "2026-07-28T12:00:00-05:30"],
            &["2026-07-28", "2026-07-28T12:00Z", "2026-07-28T12:00:00", "2026-07-28T24:00:00Z", "2026-07-28 12:00:00Z"],
        );
        formatted("date-time", &[], &["2026-07-28T12:00:00.Z", "2026-07-28T12:00:00+5", "2026-02-30T12:00:00Z", "TZ"]);
    }

    /// A text has a format or not, whichever way JSON writes it.
    #[test]
    fn escapes_do_not_change_what_has_a_format() {
        for (digits, fits) in [(43, true), (44, false), (1000, false)] {
            for text in ["2026-07-28T12:00:00.DIGITSZ", r"2026-07-28\u005412:00:00.DIGITSZ"] {
                let text = text.replace("DIGITS", &"4".repeat(digits));
                let texts: &[&str] = &[&text];
                formatted("date-time", if fits { texts } else { &[] }, if fits { &[] } else { texts });
            }
        }
    }

    #[test]
    fn numbers() {
        let integer = r#"{"type":"integer","minimum":-1,"maximum":1e2}"#;
        for (answer, expected) in [
            ("100", Ok(())),
            ("2.0", Ok(())),
            ("101", Err(FormError::Large)),
            ("-2", Err(FormError::Small)),
            ("1.5", Err(FormError::Type)),
            ("\"1\"", Err(FormError::Type)),
        ] {
            assert_eq!(check(integer, answer), expected, "{answer}");
        }
        let number = r#"{"type":"number","minimum":0.5,"maximum":95.5}"#;
        assert_eq!(check(number, "95.5"), Ok(()));
        assert_eq!(check(number, "95.50000001"), Err(FormError::Large));
        assert_eq!(check(number, "0.49"), Err(FormError::Small));
        assert_eq!(check(number, "true"), Err(FormError::Type));
        assert_eq!(check(r#"{"type":"boolean"}"#, "true"), Ok(()));
        assert_eq!(check(r#"{"type":"boolean"}"#, "1"), Err(FormError::Type));
    }

    #[test]
    fn choices() {
        for one in [
            r#"{"type":"string","enum":["r","g"]}"#,
            r#"{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}"#,
            r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#,
        ] {
            assert_eq!(check(one, r#""\u0067""#), Ok(()), "{one}");
            assert_eq!(check(one, r#""Red""#), Err(FormError::Choice), "{one}");
            assert_eq!(check(one, r#"["r"]"#), Err(FormError::Type), "{one}");
        }
        for many in [
            r#"{"type":"array","items":{"type":"string","enum":["r","g","b"]},"minItems":1,"maxItems":2}"#,
            r#"{"type":"array","items":{"anyOf":[{"const":"r","title":"R"},{"const":"g"},{"const":"b"}]},"minItems":1,"maxItems":2}"#,
        ] {
            assert_eq!(check(many, r#"["r","b"]"#), Ok(()), "{many}");
            assert_eq!(check(many, r#"["r","x"]"#), Err(FormError::Choice), "{many}");
            assert_eq!(check(many, "[]"), Err(FormError::Few), "{many}");
            assert_eq!(check(many, r#"["r","g","b"]"#), Err(FormError::Many), "{many}");
            assert_eq!(check(many, r#""r""#), Err(FormError::Type), "{many}");
        }
    }

    #[test]
    fn names_of_choices_stay_with_their_values() {
        let schema = raw(r#"{"enum":["r",3,"b","w"],"enumNames":["Red","Three","Blue"]}"#);
        let field = Field { name: Text::new(b"f", false), schema, required: None };
        let mut labels = field.choices().map(|(_, label)| label);
        assert!(labels.next().is_some_and(|label| label.eq_str("Red")));
        assert!(labels.next().is_some_and(|label| label.eq_str("Blue")));
        assert!(labels.next().is_some_and(|label| label.eq_str("w")) && labels.next().is_none());
    }

    /// A field that no user can be shown is not accepted: no answer fits it, and no default.
    #[test]
    fn fields_of_no_kind_take_no_answer() {
        for schema in [
            r#"{"type":["boolean","null"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
            r##"{"$ref":"#/$defs/x"}"##,
            r#"{"title":"T"}"#,
            r#"{"type":""}"#,
            r#"{"type":"Boolean"}"#,
            r#"{"type":"null"}"#,
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"{"enum":[1,2]}"#,
            r#"{"enum":[]}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
            r#"{"oneOf":[{"const":1,"title":"One"}]}"#,
            "true",
            "null",
        ] {
            for answer in ["true", "{}", "null", "1", "\"a\"", "[]"] {
                assert_eq!(check(schema, answer), Err(FormError::Kind), "{schema} {answer}");
            }
            let whole = format!(r#"{{"properties":{{"o":{schema}}}}}"#);
            let form = Form::of(raw(&whole)).unwrap();
            for content in ["{}", r#"{"o":true}"#] {
                let (field, error) = form.check(raw(content)).unwrap_err();
                assert!(field.is_some() && error == FormError::Kind, "{whole} {content}");
            }
            assert_eq!(View::check(&form), Err(ViewError::Value("properties")), "{whole}");
        }
        // A choice beside others that are no strings can be shown.
        assert_eq!(check(r#"{"enum":[1,"a"]}"#, r#""a""#), Ok(()));
        assert_eq!(check(r#"{"type":"string","anyOf":[{"minLength":1}]}"#, r#""a""#), Ok(()));
        for required in [r#"["a","zz"]"#, "[3]", r#"[""]"#] {
            let whole = format!(r#"{{"properties":{{"a":{{"type":"boolean"}}}},"required":{required}}}"#);
            let form = Form::of(raw(&whole)).unwrap();
            let content = raw(r#"{"a":true,"zz":1}"#);
            assert!(matches!(form.check(content), Err((None, FormError::Missing))), "{whole}");
            assert_eq!(View::check(&form), Err(ViewError::Value("required")), "{whole}");
        }
    }

    // spec: C019 C042
    #[test]
    fn whole_forms() {
        let form = Form::of(raw(
            r#"{"properties":{"n\u0061me":{"type":"string"},"age":{"type":"integer","default":"old"}},"required":["name"]}"#,
        ))
        .unwrap();
        assert!(form.check(raw(r#"{"name":"x","other":{}}"#)).is_ok());
        let (field, error) = form.check(raw(r#"{"age":3}"#)).unwrap_err();
        assert_eq!(format!("{}: {error}", field.unwrap().label()), "name: required");
        let (field, error) = form.check(raw(r#"{"name":"x","age":"3"}"#)).unwrap_err();
        assert!(field.is_some_and(|field| field.name.eq_str("age")) && error == FormError::Type);
        assert!(form.check(raw("[]")).unwrap_err().0.is_none());
        assert_eq!(View::check(&form), Err(ViewError::Value("properties")));
    }

    #[test]
    fn schemas_that_are_none() {
        let flaw = |json: &str| Form::of(raw(json)).unwrap_err();
        assert_eq!(flaw("[]"), ViewError::Shape(JsonKind::Object));
        assert_eq!(flaw(r#"{"type":"object"}"#), ViewError::Missing("properties"));
        assert_eq!(flaw(r#"{"type":"array","properties":{}}"#), ViewError::Value("type"));
        assert_eq!(flaw(r#"{"properties":{},"required":"a"}"#), ViewError::Type("required", JsonKind::Array));
        let nested = Form::of(raw(r#"{"properties":{"a":{"type":"object"},"b":3,"c":{"type":"array"}}}"#)).unwrap();
        assert!(nested.fields().all(|field| matches!(field.kind(), FieldKind::Other)));
        let with = |count: usize| {
            let fields: String = (0..count).map(|n| format!(r#","{n}":{{}}"#)).collect();
            format!(r#"{{"properties":{{{}}}}}"#, fields.trim_start_matches(','))
        };
        assert_eq!(Form::of(raw(&with(FIELDS))).map(|form| form.fields().count()), Ok(FIELDS));
        assert_eq!(flaw(&with(FIELDS + 1)), ViewError::Value("properties"));
        let required = format!(r#"{{"properties":{{}},"required":[{}""]}}"#, r#""","#.repeat(FIELDS));
        assert_eq!(flaw(&required), ViewError::Value("required"));
        // Miri would read a megabyte for minutes.
        if !cfg!(miri) {
            let of_length = |len: usize| format!(r#"{{"properties":{{}},"x":"{}"}}"#, "x".repeat(len - 24));
            let longest = of_length(SCHEMA_BYTES);
            assert_eq!(longest.len(), SCHEMA_BYTES);
            assert!(Form::of(raw(&longest)).is_ok());
            assert_eq!(flaw(&of_length(SCHEMA_BYTES + 1)), ViewError::Value("requestedSchema"));
        }
    }
}
