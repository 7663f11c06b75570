//! Forms of servers that may send any schema, with any answers, beside a model over `serde_json`.

use std::collections::BTreeSet;

use mcp_sansio::client::form::{FIELDS, FieldKind, Form};
use mcp_sansio::client::views::View;
use mcp_sansio::json::{JsonKind, Raw};
use serde_json::Value;

/// Reads a line as a schema, and the rest as the `content` of an answer.
pub(crate) fn run(data: &[u8]) -> Option<()> {
    let (schema, content) = data.split_at_checked(data.iter().position(|byte| *byte == b'\n')?)?;
    let (raw, content) = (Raw::parse(schema).ok()?, Raw::parse(content).ok()?);
    let form = Form::of(raw).ok()?;
    let mut is_whole = true;
    assert!(form.fields().count() <= FIELDS);
    for field in form.fields() {
        let (kind, label) = (field.kind(), field.label());
        let _ = (label.to_string(), field.description(), field.default(), kind);
        for (value, _) in field.choices() {
            assert!(matches!(kind, FieldKind::One | FieldKind::Many { .. } | FieldKind::Other));
            if matches!(kind, FieldKind::One) {
                // Each choice can be chosen.
                let text = format!("\"{}\"", std::str::from_utf8(value.raw()).expect("UTF-8"));
                assert_eq!(field.check(Raw::parse(text.as_bytes()).expect("a string")), Ok(()), "{text}");
            }
        }
        is_whole &= !matches!(kind, FieldKind::Other);
    }
    if View::check(&form).is_ok() {
        assert!(is_whole, "a field of another kind is accepted");
    }
    // The two readers may take another one of two members with one name.
    (is_simple(raw) && is_simple(content)).then_some(())?;
    let schema: Value = serde_json::from_str(raw.as_str()).ok()?;
    let answer: Value = serde_json::from_str(content.as_str()).ok()?;
    let fits = fits(&schema, &answer)?;
    let found = form.check(content);
    assert_eq!(found.is_ok(), fits, "{found:?}");
    Some(())
}

/// Returns whether no object within has two members of one name.
pub(crate) fn is_simple(raw: Raw<'_>) -> bool {
    match raw.kind() {
        JsonKind::Object => {
            let mut names = BTreeSet::new();
            raw.members().all(|(name, value)| names.insert(name.to_string()) && is_simple(value))
        }
        JsonKind::Array => raw.items().all(is_simple),
        _ => true,
    }
}

/// Returns whether an answer fits; `None` where the model does not know.
fn fits(schema: &Value, answer: &Value) -> Option<bool> {
    let Some(answer) = answer.as_object() else { return Some(false) };
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let properties = schema["properties"].as_object()?;
    let names = schema["required"].as_array().into_iter().flatten();
    let mut all = names.into_iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    for (name, field) in properties {
        all &= match answer.get(name) {
            Some(value) => field_fits(field, value)?,
            None => !required(name) && has_kind(field),
        };
    }
    Some(all)
}

/// Returns whether a field can be shown to a person. A form with another one takes no answer.
fn has_kind(field: &Value) -> bool {
    let is = |names: &[&str]| names.iter().any(|name| field["type"] == *name);
    choices(field).is_some()
        || is(&["string", "integer", "number", "boolean"])
        || is(&["array"]) && field.get("items").and_then(choices).is_some()
}

fn field_fits(field: &Value, value: &Value) -> Option<bool> {
    if !has_kind(field) {
        return Some(false);
    }
    let is = |name: &str| field["type"] == name;
    if let Some(choices) = choices(field) {
        return Some(value.is_string() && choices.contains(&value));
    }
    match () {
        () if is("string") => {
            let Some(text) = value.as_str() else { return Some(false) };
            if let Some(format) = field.get("format").and_then(Value::as_str)
                && !has_format(text, format)
            {
                return Some(false);
            }
            is_between(text.chars().count(), field.get("minLength"), field.get("maxLength"))
        }
        () if is("integer") || is("number") => {
            if !value.is_number() {
                return Some(false);
            }
            // Others need the decimal numbers themselves.
            let value = value.as_i64()?;
            let limit = |name| field.get(name).map(Value::as_i64);
            let (min, max) = (limit("minimum"), limit("maximum"));
            Some(
                min.is_none_or(|min| min.is_none_or(|min| value >= min))
                    && max.is_none_or(|max| max.is_none_or(|max| value <= max)),
            )
            .filter(|_| min != Some(None) && max != Some(None))
        }
        () if is("boolean") => Some(value.is_boolean()),
        () if is("array") => {
            let Some(choices) = field.get("items").and_then(choices) else { return Some(false) };
            let Some(chosen) = value.as_array() else { return Some(false) };
            let are = chosen.iter().all(|one| one.is_string() && choices.contains(&one));
            Some(is_between(chosen.len(), field.get("minItems"), field.get("maxItems"))? && are)
        }
        () => Some(false),
    }
}

/// Returns whether a text has a format; one that is not known is not checked.
fn has_format(text: &str, format: &str) -> bool {
    match format {
        "email" => text.split_once('@').is_some_and(|(local, domain)| {
            let is_plain = |c: char| c != '@' && !c.is_whitespace() && !c.is_control();
            !local.is_empty()
                && !domain.is_empty()
                && local.chars().chain(domain.chars()).all(is_plain)
                && !domain.starts_with('.')
                && !domain.ends_with('.')
        }),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
                && rest.bytes().all(|byte| (33..127).contains(&byte) && !b"\"<>\\^`{|}".contains(&byte))
        }),
        "date" => is_date(text),
        "date-time" => is_date_time(text),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, "dddd-dd-dd") else { return false };
    let is_leap = if year % 100 == 0 { year % 400 == 0 } else { year % 4 == 0 };
    let days = [31, 28 + u16::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = usize::from(month).checked_sub(1).and_then(|month| days.get(month));
    days.is_some_and(|days| (1..=*days).contains(&day))
}

/// At most 64 bytes are read.
fn is_date_time(text: &str) -> bool {
    let (Some(date), Some(time), Some(mut rest)) = (text.get(..10), text.get(10..19), text.get(19..)) else {
        return false;
    };
    let is_time = time
        .strip_prefix(['T', 't'])
        .and_then(|clock| numbers(clock, "dd:dd:dd"))
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == behind.len() {
            return false;
        }
    }
    let is_zone = matches!(rest, "Z" | "z")
        || rest
            .strip_prefix(['+', '-'])
            .and_then(|zone| numbers(zone, "dd:dd"))
            .is_some_and(|[hour, minute]| hour < 24 && minute < 60);
    text.len() <= 64 && is_date(date) && is_time && is_zone
}

/// Reads the numbers of a text with digits at each `d` of a pattern, and its other characters elsewhere.
fn numbers<const N: usize>(text: &str, pattern: &str) -> Option<[u16; N]> {
    let fits = |(byte, place): (u8, u8)| if place == b'd' { byte.is_ascii_digit() } else { byte == place };
    (text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)).then_some(())?;
    let mut parts = text.split(['-', ':']);
    let mut all = [0; N];
    for number in &mut all {
        *number = parts.next()?.parse().ok()?;
    }
    Some(all)
}

/// Returns the values of the choices of a schema.
fn choices(schema: &Value) -> Option<Vec<&Value>> {
    ["enum", "oneOf", "anyOf"].iter().find_map(|name| {
        let list = schema.get(name)?.as_array()?.iter();
        let texts = list.map(|one| if one.is_string() { one } else { &one["const"] }).filter(|one| one.is_string());
        Some(texts.collect::<Vec<_>>()).filter(|texts| !texts.is_empty())
    })
}

fn is_between(count: usize, min: Option<&Value>, max: Option<&Value>) -> Option<bool> {
    let limit = |limit: Option<&Value>| match limit {
        None => Some(None),
        Some(limit) => limit.as_u64().map(Some),
    };
    let count = count as u64;
    Some(limit(min)?.is_none_or(|min| count >= min) & limit(max)?.is_none_or(|max| count <= max))
}
