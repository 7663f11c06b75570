//! Invents values that fit a schema.

use mcp_sansio::client::form::{FieldKind, Form};
use mcp_sansio::client::views::PromptView;
use mcp_sansio::json::{Raw, Text};

/// An invented JSON value.
pub(crate) struct Value(String);

impl Value {
    pub(crate) fn raw(&self) -> Raw<'_> {
        Raw::parse(self.0.as_bytes()).unwrap_or(Raw::constant("{}"))
    }
}

/// The limit of depth of invented arguments.
const DEPTH: usize = 8;

/// Returns a value for a schema; of an object, only the required members.
pub(crate) fn value(schema: Raw<'_>) -> Value {
    Value(write(schema, DEPTH))
}

fn write(schema: Raw<'_>, depth: usize) -> String {
    let first = |key: &str| schema.get(key).and_then(|list| list.items().next());
    if let Some(given) = schema.get("default").or(schema.get("const")).or(first("enum")).or(first("examples")) {
        return given.as_str().to_owned();
    }
    let kind = schema.get("type").map(|kind| kind.items().next().unwrap_or(kind)).and_then(|kind| kind.text());
    let is = |name: &str| kind.is_some_and(|kind| kind.eq_str(name));
    if is("string") {
        return r#""text""#.to_owned();
    }
    if is("integer") || is("number") {
        return schema.get("minimum").map_or("1", |least| least.as_str()).to_owned();
    }
    if is("boolean") {
        return "true".to_owned();
    }
    if is("array") {
        return "[]".to_owned();
    }
    if is("null") {
        return "null".to_owned();
    }
    let required = |name: &Text<'_>| {
        let names = schema.get("required").into_iter().flat_map(|names| names.items());
        names.filter_map(|name| name.text()).any(|other| other.same(name))
    };
    let members = schema.get("properties").into_iter().flat_map(|properties| properties.members());
    let members = members.filter(|(name, _)| depth > 0 && required(name));
    object(members.map(|(name, schema)| (name, write(schema, depth - 1))))
}

/// Returns the required fields of a form that have no default.
pub(crate) fn content(form: &Form<'_>) -> Value {
    let open = form.fields().filter(|field| field.is_required() && field.default().is_none());
    Value(object(open.map(|field| {
        let value = match field.kind() {
            FieldKind::One => field.choices().next().map_or("null".to_owned(), |(value, _)| quoted(value)),
            _ => write(field.schema, 0),
        };
        (field.name, value)
    })))
}

/// A text for each argument that a prompt must have.
pub(crate) fn prompt_arguments(prompt: &PromptView<'_>) -> Value {
    let required = prompt.arguments().flatten().filter(|argument| argument.is_required());
    Value(object(required.map(|argument| (argument.name(), r#""text""#.to_owned()))))
}

fn object<'a>(members: impl Iterator<Item = (Text<'a>, String)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns a text as JSON, with its quotes.
fn quoted(text: Text<'_>) -> String {
    format!("\"{}\"", String::from_utf8_lossy(text.raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::client::views::View;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn arguments() {
        let schema = r#"{"type":"object","required":["a","b","c","d","e","f","g\u0022"],"properties":{
            "a":{"type":"string"},"b":{"type":"integer","minimum":3},"c":{"type":["boolean","null"]},
            "d":{"enum":["x","y"]},"e":{"type":"object","required":["z"],"properties":{"z":{"type":"array"}}},
            "f":{"default":null},"g\"":{"type":"null"},"more":{"type":"string"}}}"#;
        let expected = r#"{"a":"text","b":3,"c":true,"d":"x","e":{"z":[]},"f":null,"g\"":null}"#;
        assert_eq!(value(raw(schema)).raw().as_str(), expected);
        for nothing in ["{}", "true", r#"{"type":"object","required":["a"]}"#] {
            assert_eq!(value(raw(nothing)).raw().as_str(), "{}");
        }
        // A schema without end leads to a value with an end.
        let deep = (0..20).fold(String::from("{}"), |inner, _| {
            format!(r#"{{"type":"object","required":["a"],"properties":{{"a":{inner}}}}}"#)
        });
        assert_eq!(value(raw(&deep)).raw().as_str().matches(':').count(), DEPTH);
    }

    #[test]
    fn forms() {
        let schema = raw(
            r#"{"type":"object","required":["a","b","c"],"properties":{"a":{"type":"string","default":"x"},
            "b":{"type":"string","oneOf":[{"const":"r","title":"Red"}]},"c":{"type":"boolean"},"d":{"type":"string"}}}"#,
        );
        let form = Form::of(schema).unwrap();
        assert_eq!(content(&form).raw().as_str(), r#"{"b":"r","c":true}"#);
    }
}
