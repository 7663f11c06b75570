//! What an elicitation in form mode asks of the user, and whether an answer fits.
//!
//! A `requestedSchema` is a flat object of plain properties: strings, numbers, booleans, one choice, several choices (the
//! specification's page "Elicitation", section "Requested Schema", from 2025-06-18 on). [`Form`] walks over them in their
//! order, which is the order to ask in, and checks what the user entered before it is sent, as clients should.
//!
//! ```
//! use mcp_sansio::client::form::{Form, FormError, Kind};
//! use mcp_sansio::client::views::{Flaw, View};
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
//! assert!(mail.label().is("Your address") && mail.is_required() && !color.is_required());
//! assert_eq!(mail.check(Raw::constant(r#""nobody""#)), Err(FormError::Format));
//!
//! let Kind::One(choices) = color.kind() else { panic!() };
//! let red = choices.iter().next().unwrap();
//! assert!(red.value.is("r") && red.label().is("Red"));
//! assert!(color.default().is_some_and(|default| default.as_str() == "\"g\""));
//!
//! assert!(form.check(Raw::constant(r#"{"mail":"a@example.com","color":"r"}"#)).is_ok());
//! let misfit = form.check(Raw::constant(r#"{"color":"r"}"#)).unwrap_err();
//! assert_eq!(misfit.error, FormError::Missing);
//! # Ok::<(), Flaw>(())
//! ```

use super::views::{Flaw, View, array, may, must, object, text};
use crate::json::{Items, JsonKind, Members, Raw, Text};
use core::cmp::Ordering;
use core::fmt;

/// The most fields that a form may have: nobody fills in more, and checking takes the square of it.
pub const FIELDS: usize = 256;

/// The most bytes that the schema of a form may have.
pub const SCHEMA_BYTES: usize = 1 << 20;

/// The schema of an elicitation in form mode.
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    raw: Raw<'a>,
    properties: Raw<'a>,
    required: Option<Raw<'a>>,
}

/// A schema of more than [`SCHEMA_BYTES`] is a [`Flaw::Value`] of `requestedSchema`, one of more than [`FIELDS`] properties
/// one of `properties`.
impl<'a> View<'a> for Form<'a> {
    fn of(raw: Raw<'a>) -> Result<Self, Flaw> {
        object(raw).map_err(Flaw::Shape)?;
        if raw.as_bytes().len() > SCHEMA_BYTES {
            return Err(Flaw::Value("requestedSchema"));
        }
        if may(raw, "type", text)?.is_some_and(|kind| !kind.is("object")) {
            return Err(Flaw::Value("type"));
        }
        let form = Form { raw, properties: must(raw, "properties", object)?, required: may(raw, "required", array)? };
        if form.fields().take(FIELDS + 1).count() > FIELDS {
            return Err(Flaw::Value("properties"));
        }
        Ok(form)
    }

    fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Whether every property is of a kind that a form may have, and every default fits.
    fn check(&self) -> Result<(), Flaw> {
        let odd = self.fields().any(|field| matches!(field.kind(), Kind::Other));
        let misfit = self.fields().any(|field| field.default().is_some_and(|value| field.check(value).is_err()));
        if odd || misfit { Err(Flaw::Value("properties")) } else { Ok(()) }
    }
}

impl<'a> Form<'a> {
    /// The fields in their order.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        Fields { members: self.properties.members(), required: self.required }
    }

    /// Whether the whole of what the user entered fits: every field that is there, and no required one is missing. Members
    /// that are no fields are not looked at.
    ///
    /// # Errors
    /// The first field that does not fit.
    pub fn check(&self, content: Raw<'_>) -> Result<(), Misfit<'a>> {
        if content.kind() != JsonKind::Object {
            return Err(Misfit { field: None, error: FormError::Type });
        }
        for field in self.fields() {
            let answer = content.members().filter(|(key, _)| key.same(&field.name)).last();
            let fits = match answer {
                Some((_, answer)) => field.check(answer),
                None if field.is_required() => Err(FormError::Missing),
                None => Ok(()),
            };
            fits.map_err(|error| Misfit { field: Some(field), error })?;
        }
        Ok(())
    }
}

/// The fields of a [`Form`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    members: Members<'a>,
    required: Option<Raw<'a>>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (name, schema) = self.members.next()?;
        Some(Field { name, schema, required: self.required })
    }
}

impl core::iter::FusedIterator for Fields<'_> {}

/// One field of a form.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    name: Text<'a>,
    schema: Raw<'a>,
    required: Option<Raw<'a>>,
}

/// What goes into a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Kind<'a> {
    /// A string.
    Text {
        /// What it must look like.
        format: Option<Format>,
        /// The fewest characters.
        min: Option<u64>,
        /// The most characters.
        max: Option<u64>,
    },
    /// A number without a fraction.
    Integer {
        /// The least.
        min: Option<Raw<'a>>,
        /// The greatest.
        max: Option<Raw<'a>>,
    },
    /// A number.
    Number {
        /// The least.
        min: Option<Raw<'a>>,
        /// The greatest.
        max: Option<Raw<'a>>,
    },
    /// Yes or no.
    Boolean,
    /// One of several.
    One(Choices<'a>),
    /// Any of several (from 2025-11-25 on): an array of strings.
    Many {
        /// What there is to choose from.
        choices: Choices<'a>,
        /// The fewest that must be chosen.
        min: Option<u64>,
        /// The most that may be chosen.
        max: Option<u64>,
    },
    /// Nothing that a form may have; look at [`Field::schema`], or decline.
    Other,
}

/// What a string must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Format {
    /// `email`
    Email,
    /// `uri`
    Uri,
    /// `date`: `2026-07-28`
    Date,
    /// `date-time`: `2026-07-28T12:00:00Z`
    DateTime,
}

impl<'a> Field<'a> {
    /// Its name: the key of the answer.
    #[must_use]
    pub const fn name(&self) -> Text<'a> {
        self.name
    }

    /// Its name for people.
    #[must_use]
    pub fn title(&self) -> Option<Text<'a>> {
        self.schema.get("title")?.text()
    }

    /// What to show to people: its title, or its name.
    #[must_use]
    pub fn label(&self) -> Text<'a> {
        self.title().unwrap_or(self.name)
    }

    /// What it means.
    #[must_use]
    pub fn description(&self) -> Option<Text<'a>> {
        self.schema.get("description")?.text()
    }

    /// Whether it must be filled in.
    #[must_use]
    pub fn is_required(&self) -> bool {
        let required = self.required.map(|required| required.items());
        required.into_iter().flatten().any(|name| name.text().is_some_and(|name| name.same(&self.name)))
    }

    /// What to fill in beforehand (booleans in 2025-06-18, all kinds from 2025-11-25 on). May not fit: see
    /// [`check`](Self::check).
    #[must_use]
    pub fn default(&self) -> Option<Raw<'a>> {
        self.schema.get("default")
    }

    /// The schema of the field as it stands.
    #[must_use]
    pub const fn schema(&self) -> Raw<'a> {
        self.schema
    }

    /// What goes into it.
    #[must_use]
    pub fn kind(&self) -> Kind<'a> {
        if let Some(choices) = Choices::of(self.schema, &["oneOf", "anyOf"]) {
            return Kind::One(choices);
        }
        let is = |name: &str| self.schema.get("type").and_then(|kind| kind.text()).is_some_and(|kind| kind.is(name));
        match () {
            () if is("string") => Kind::Text {
                format: self.schema.get("format").and_then(|format| Format::of(format.text()?)),
                min: self.count("minLength"),
                max: self.count("maxLength"),
            },
            () if is("integer") => Kind::Integer { min: self.schema.get("minimum"), max: self.schema.get("maximum") },
            () if is("number") => Kind::Number { min: self.schema.get("minimum"), max: self.schema.get("maximum") },
            () if is("boolean") => Kind::Boolean,
            () if is("array") => self.many().unwrap_or(Kind::Other),
            () => Kind::Other,
        }
    }

    fn many(&self) -> Option<Kind<'a>> {
        let choices = Choices::of(self.schema.get("items")?, &["anyOf", "oneOf"])?;
        Some(Kind::Many { choices, min: self.count("minItems"), max: self.count("maxItems") })
    }

    fn count(&self, key: &str) -> Option<u64> {
        self.schema.get(key)?.u64()
    }

    /// Whether an answer fits. Anything fits into a field of [`Kind::Other`].
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, answer: Raw<'_>) -> Result<(), FormError> {
        match self.kind() {
            Kind::Text { format, min, max } => check_text(answer, format, min, max),
            Kind::Integer { .. } if !answer.is_whole() => Err(FormError::Type),
            Kind::Integer { min, max } | Kind::Number { min, max } => check_range(answer, min, max),
            Kind::Boolean => answer.bool().map(|_| ()).ok_or(FormError::Type),
            Kind::One(choices) => check_choice(answer, choices),
            Kind::Many { choices, min, max } => check_choices(answer, choices, min, max),
            Kind::Other => Ok(()),
        }
    }
}

fn check_text(answer: Raw<'_>, format: Option<Format>, min: Option<u64>, max: Option<u64>) -> Result<(), FormError> {
    let text = answer.text().ok_or(FormError::Type)?;
    if min.is_some() || max.is_some() {
        let length = text.chars().count();
        within(length, min, max, FormError::Short, FormError::Long)?;
    }
    if format.is_none_or(|format| format.fits(text)) { Ok(()) } else { Err(FormError::Format) }
}

fn check_range(answer: Raw<'_>, min: Option<Raw<'_>>, max: Option<Raw<'_>>) -> Result<(), FormError> {
    if answer.kind() != JsonKind::Number {
        return Err(FormError::Type);
    }
    let beyond = |limit: Option<Raw<'_>>, side| limit.and_then(|limit| answer.compare(limit)) == Some(side);
    match () {
        () if beyond(min, Ordering::Less) => Err(FormError::Small),
        () if beyond(max, Ordering::Greater) => Err(FormError::Large),
        () => Ok(()),
    }
}

fn check_choice(answer: Raw<'_>, choices: Choices<'_>) -> Result<(), FormError> {
    let text = answer.text().ok_or(FormError::Type)?;
    if choices.has(text) { Ok(()) } else { Err(FormError::Choice) }
}

fn check_choices(answer: Raw<'_>, choices: Choices<'_>, min: Option<u64>, max: Option<u64>) -> Result<(), FormError> {
    array(answer).map_err(|_| FormError::Type)?;
    answer.items().try_for_each(|item| check_choice(item, choices))?;
    within(answer.items().count(), min, max, FormError::Few, FormError::Many)
}

fn within(count: usize, min: Option<u64>, max: Option<u64>, few: FormError, many: FormError) -> Result<(), FormError> {
    let count = count as u64;
    match () {
        () if min.is_some_and(|min| count < min) => Err(few),
        () if max.is_some_and(|max| count > max) => Err(many),
        () => Ok(()),
    }
}

/// What there is to choose from: `enum` with or without `enumNames`, or `const` and `title` pairs.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    values: Raw<'a>,
    names: Option<Raw<'a>>,
}

/// One choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice<'a> {
    /// What is answered.
    pub value: Text<'a>,
    /// Its name for people.
    pub title: Option<Text<'a>>,
}

impl<'a> Choice<'a> {
    /// What to show to people: its title, or its value.
    #[must_use]
    pub fn label(&self) -> Text<'a> {
        self.title.unwrap_or(self.value)
    }
}

impl<'a> Choices<'a> {
    /// Those of a schema, with the keys under which pairs may be.
    fn of(schema: Raw<'a>, pairs: &[&str]) -> Option<Self> {
        let list = |key: &str| schema.get(key).filter(|value| value.kind() == JsonKind::Array);
        if let Some(values) = list("enum") {
            return Some(Choices { values, names: list("enumNames") });
        }
        pairs.iter().find_map(|key| list(key)).map(|values| Choices { values, names: None })
    }

    /// The choices in their order. What is no string is passed over.
    pub fn iter(&self) -> impl Iterator<Item = Choice<'a>> + use<'a> {
        let mut names: Option<Items<'a>> = self.names.map(|names| names.items());
        self.values.items().filter_map(move |item| {
            let name = names.as_mut().and_then(|names| names.next()).and_then(|name| name.text());
            match item.text() {
                Some(value) => Some(Choice { value, title: name }),
                None => {
                    Some(Choice { value: item.get("const")?.text()?, title: item.get("title").and_then(|t| t.text()) })
                }
            }
        })
    }

    /// Whether a value is among them.
    #[must_use]
    pub fn has(&self, value: Text<'_>) -> bool {
        self.iter().any(|choice| choice.value.same(&value))
    }
}

/// What does not fit into a form.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Misfit<'a> {
    /// The field; `None` if the content is no object at all.
    pub field: Option<Field<'a>>,
    /// Why.
    pub error: FormError,
}

/// With the name of the field, for people.
impl fmt::Display for Misfit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{}: {}", field.label(), self.error),
            None => self.error.fmt(f),
        }
    }
}

impl core::error::Error for Misfit<'_> {}

/// Why an answer does not fit into a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum FormError {
    /// It is required and not there.
    Missing,
    /// It is of another type.
    Type,
    /// A text is too short.
    Short,
    /// A text is too long.
    Long,
    /// A number is too small.
    Small,
    /// A number is too large.
    Large,
    /// A text does not look as it should.
    Format,
    /// It is not one of the choices.
    Choice,
    /// Too few are chosen.
    Few,
    /// Too many are chosen.
    Many,
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormError::Missing => "required",
            FormError::Type => "of the wrong type",
            FormError::Short => "too short",
            FormError::Long => "too long",
            FormError::Small => "too small",
            FormError::Large => "too large",
            FormError::Format => "not in the right format",
            FormError::Choice => "not one of the choices",
            FormError::Few => "too few chosen",
            FormError::Many => "too many chosen",
        })
    }
}

impl core::error::Error for FormError {}

impl Format {
    fn of(name: Text<'_>) -> Option<Self> {
        let all = [Format::Email, Format::Uri, Format::Date, Format::DateTime];
        all.into_iter().find(|format| name.is(format.name()))
    }

    /// Its name in a schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Email => "email",
            Format::Uri => "uri",
            Format::Date => "date",
            Format::DateTime => "date-time",
        }
    }

    /// Whether a text looks like it.
    #[must_use]
    pub fn fits(self, text: Text<'_>) -> bool {
        match self {
            Format::Email => is_email(text),
            Format::Uri => is_uri(text),
            // None of these is longer with all its escapes decoded.
            Format::Date => text.decode(&mut [0; 10]).is_ok_and(is_date),
            Format::DateTime => text.decode(&mut [0; 64]).is_ok_and(is_date_time),
        }
    }
}

/// Something, one `@`, a domain; no white space.
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

/// A scheme, a colon, and what may stand in a URI (RFC 3986).
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

/// A full date of RFC 3339 that the calendar has.
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

/// A date-time of RFC 3339.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, true),
        None => time.rsplit_once(['+', '-']).map_or((time, false), |(clock, zone)| (clock, is_clock(zone, false))),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock(clock, true) && fraction && offset
}

/// `hh:mm`, and `:ss` where there are seconds; a leap second is one.
fn is_clock(text: &str, seconds: bool) -> bool {
    let mut parts = text.split(':');
    let mut part = |most| parts.next().and_then(|part| number(part, 2)).is_some_and(|value| value <= most);
    part(23) && part(59) && (!seconds || part(60)) && parts.next().is_none()
}

/// A number of so many digits.
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

    /// What a field of a schema says to answers.
    fn check(schema: &str, answer: &str) -> Result<(), FormError> {
        let field = Field { name: Text::new(b"f", false), schema: raw(schema), required: None };
        field.check(raw(answer))
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
        let choices = Choices::of(schema, &[]).unwrap();
        let mut labels = choices.iter().map(|choice| choice.label());
        assert!(labels.next().is_some_and(|label| label.is("Red")));
        assert!(labels.next().is_some_and(|label| label.is("Blue")));
        assert!(labels.next().is_some_and(|label| label.is("w")) && labels.next().is_none());
    }

    #[test]
    fn whole_forms() {
        let form = Form::of(raw(
            r#"{"properties":{"n\u0061me":{"type":"string"},"age":{"type":"integer","default":"old"}},"required":["name"]}"#,
        ))
        .unwrap();
        assert!(form.check(raw(r#"{"name":"x","other":{}}"#)).is_ok());
        let misfit = form.check(raw(r#"{"age":3}"#)).unwrap_err();
        assert_eq!(format!("{misfit}"), "name: required");
        let misfit = form.check(raw(r#"{"name":"x","age":"3"}"#)).unwrap_err();
        assert!(misfit.field.is_some_and(|field| field.name().is("age")) && misfit.error == FormError::Type);
        assert!(form.check(raw("[]")).unwrap_err().field.is_none());
        assert_eq!(View::check(&form), Err(Flaw::Value("properties")));
    }

    #[test]
    fn schemas_that_are_none() {
        let flaw = |json: &str| Form::of(raw(json)).unwrap_err();
        assert_eq!(flaw("[]"), Flaw::Shape(JsonKind::Object));
        assert_eq!(flaw(r#"{"type":"object"}"#), Flaw::Missing("properties"));
        assert_eq!(flaw(r#"{"type":"array","properties":{}}"#), Flaw::Value("type"));
        assert_eq!(flaw(r#"{"properties":{},"required":"a"}"#), Flaw::Type("required", JsonKind::Array));
        let nested = Form::of(raw(r#"{"properties":{"a":{"type":"object"},"b":3,"c":{"type":"array"}}}"#)).unwrap();
        assert!(nested.fields().all(|field| matches!(field.kind(), Kind::Other)));
        let fields: String = (0..=FIELDS).map(|n| format!(r#","{n}":{{}}"#)).collect();
        let huge = format!(r#"{{"properties":{{{}}}}}"#, fields.trim_start_matches(','));
        assert_eq!(flaw(&huge), Flaw::Value("properties"));
        let long = format!(r#"{{"properties":{{}},"x":"{}"}}"#, "x".repeat(SCHEMA_BYTES));
        assert_eq!(flaw(&long), Flaw::Value("requestedSchema"));
    }
}
