//! Schemas of tools from types that derive `schemars::JsonSchema`, in the form that all clients read.

use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The most bytes of a schema. A type that is used in many places is written in each of them.
const MOST: usize = 256 * 1024;

/// The most levels of a schema.
const DEPTH: usize = 64;

/// The reason why a type has no flat schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlatSchemaError {
    /// The type contains itself: `$ref` has this target. Give the member that closes the circle another type, such as
    /// `serde_json::Value`.
    Recursive(String),
    /// The schema is not of type `object`: arguments and structured content are objects. Put the type into a struct.
    NoObject,
    /// The schema has more than 256 KiB, or more than 64 levels.
    TooLarge,
}

impl fmt::Display for FlatSchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlatSchemaError::Recursive(target) => {
                write!(f, "the type contains itself, and many clients do not read `$ref`: {target}")
            }
            FlatSchemaError::NoObject => f.write_str("the schema is not of type `object`: put the type into a struct"),
            FlatSchemaError::TooLarge => f.write_str("the schema has more than 256 KiB or 64 levels"),
        }
    }
}

impl std::error::Error for FlatSchemaError {}

/// Returns the `inputSchema` for arguments of type `T`, which `RequestContext::args` reads.
///
/// The schema is that of `schemars` in a form which all clients read: without `$ref`, `$defs` and `$schema`, with one type
/// in each place (a member that may be left out or `null` may only be left out), with `properties` in each object, and without the
/// formats of integers and floats, which are no formats of JSON Schema.
///
/// A table that is a constant cannot have it, but one that is made at run time:
///
/// ```
/// use std::sync::OnceLock;
/// use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// use mcp_sansio_host::input_schema;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first summand
///     a: i64,
///     b: Option<i64>,
/// }
///
/// fn add(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     let Add { a, b } = call.args()?;
///     call.text(a.saturating_add(b.unwrap_or(1)))
/// }
///
/// static SCHEMA: OnceLock<String> = OnceLock::new();
/// let schema = input_schema::<Add>()?;
/// assert_eq!(
///     schema,
///     r#"{"properties":{"a":{"description":"The first summand","type":"integer"},"b":{"type":"integer"}},"required":["a"],"type":"object"}"#
/// );
/// let tools = [Tool::new("add", "Adds two integers", add).input(SCHEMA.get_or_init(|| schema))];
/// let service = Service::new("calc", "1.0").tools(&tools);
/// # let _ = service;
/// # Ok::<(), mcp_sansio_host::FlatSchemaError>(())
/// ```
///
/// # Errors
/// The type contains itself, is no object, or is too large.
pub fn input_schema<T: JsonSchema>() -> Result<String, FlatSchemaError> {
    written::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the `outputSchema` for structured content of type `T`, which `Call::json` writes; as
/// [`input_schema`]. An `Option` without `#[serde(skip_serializing_if = "Option::is_none")]` is always written, as `null`
/// too; its schema has a list of types then, which some clients do not read.
///
/// # Errors
/// As [`input_schema`].
pub fn output_schema<T: JsonSchema>() -> Result<String, FlatSchemaError> {
    written::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn written<T: JsonSchema>(settings: SchemaSettings) -> Result<String, FlatSchemaError> {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        // Only types that contain themselves have a `$ref` then.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        // The name of the type in the program.
        root.remove("title");
    }
    flatten(&mut schema, 0)?;
    if schema.get("type").is_none_or(|ty| ty != "object") {
        return Err(FlatSchemaError::NoObject);
    }
    let text = schema.to_string();
    if text.len() <= MOST { Ok(text) } else { Err(FlatSchemaError::TooLarge) }
}

/// The keywords whose value is a schema.
const ONE: [&str; 8] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "unevaluatedProperties"];

/// The keywords whose value is a list of schemas.
const MANY: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

fn flatten(schema: &mut Value, depth: usize) -> Result<(), FlatSchemaError> {
    if depth > DEPTH {
        return Err(FlatSchemaError::TooLarge);
    }
    if *schema == Value::Bool(true) {
        // Any value, as an object: some clients cannot read the other form.
        *schema = Value::Object(Map::new());
    }
    let Value::Object(object) = schema else { return Ok(()) };
    if let Some(target) = object.get("$ref") {
        return Err(FlatSchemaError::Recursive(target.as_str().unwrap_or_default().to_owned()));
    }
    object.remove("$defs");
    let is_number = |format: &Value| {
        let format = format.as_str().unwrap_or_default();
        ["int", "uint", "float", "double"].iter().any(|number| {
            format.strip_prefix(number).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    if object.get("format").is_some_and(is_number) {
        object.remove("format");
    }
    let is_bare =
        |object: &Map<_, _>| ["properties", "additionalProperties"].iter().all(|key| !object.contains_key(*key));
    if object.get("type").is_some_and(|ty| ty == "object") && is_bare(object) {
        object.insert("properties".into(), Value::Object(Map::new()));
    }
    for key in ONE {
        match object.get_mut(key) {
            // `false` and `true` are usual here.
            Some(Value::Bool(_)) | None => {}
            Some(inner) => flatten(inner, depth + 1)?,
        }
    }
    for key in MANY {
        for inner in object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            flatten(inner, depth + 1)?;
        }
    }
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    for (name, member) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let (false, Value::Object(member)) = (is_required(name), &mut *member) {
            take_null(member);
        }
        flatten(member, depth + 1)?;
    }
    for (_, inner) in object.get_mut("patternProperties").and_then(Value::as_object_mut).into_iter().flatten() {
        flatten(inner, depth + 1)?;
    }
    Ok(())
}

/// Takes `null` out of the types of a member: it may be left out.
fn take_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|ty| ty != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(options)) = object.get_mut(key) else { continue };
        options.retain(|option| option.get("type").is_none_or(|ty| ty != "null"));
        if let [Value::Object(_)] = options.as_slice()
            && let Some(Value::Object(inner)) = options.pop()
        {
            object.remove(key);
            for (key, value) in inner {
                // The description of the member says more than that of its type.
                object.entry(key).or_insert(value);
            }
            // Its own null, if it has one.
            take_null(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{self, SchemaLimits};
    use crate::testing::Conversation;
    use crate::{OwnedTool, OwnedTools};
    use mcp_sansio::json::Raw;
    use mcp_sansio::revision::Revision;
    use mcp_sansio::service::Service;
    use serde::{Deserialize, Serialize};
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Idea,
        Todo,
    }

    /// When it is due
    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Due {
        date: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        remind_days: Option<u8>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Always {
        nothing: Option<u8>,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(tag = "is")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f32 },
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Unit {}

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Note {
        /// A title
        title: String,
        kind: Kind,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        other: Option<Kind>,
        /// The last day
        #[serde(skip_serializing_if = "Option::is_none")]
        due: Option<Due>,
        first: Due,
        shapes: Vec<Shape>,
        any: Option<Value>,
        more: BTreeMap<String, u32>,
        unit: Unit,
        count: u64,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "for its schema")]
    struct Tree {
        branches: Vec<Tree>,
    }

    /// The rules of `inspect lint` for schemas.
    fn lint(place: &str, schema: &Value) {
        assert!(schema.is_object(), "{place}: {schema}");
        for key in ["$ref", "$defs", "$schema"] {
            assert!(schema.get(key).is_none(), "{place}: {schema}");
        }
        assert!(schema.get("type").is_none_or(Value::is_string), "{place}: {schema}");
        if schema.get("type").is_some_and(|ty| ty == "object") {
            assert!(schema.get("properties").or(schema.get("additionalProperties")).is_some(), "{place}: {schema}");
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            assert!(!place.is_empty() || schema.get(key).is_none(), "{schema}");
            schema.get(key).into_iter().flat_map(|all| all.as_array().unwrap()).for_each(|one| lint(key, one));
        }
        let members = schema.get("properties").into_iter().flat_map(|members| members.as_object().unwrap());
        members.for_each(|(name, member)| lint(name, member));
        schema.get("items").into_iter().for_each(|items| lint("items", items));
    }

    fn note() -> Value {
        json!({"title": "Milk", "kind": "todo", "due": {"date": "2026-11-24"}, "first": {"date": "", "remind_days": 1},
            "shapes": [{"is": "Circle", "radius": 1.5}], "any": [1], "more": {"a": 1}, "unit": {}, "count": 3})
    }

    #[test]
    fn a_schema_is_flat_and_passes_the_lint() {
        for text in [input_schema::<Note>().unwrap(), output_schema::<Note>().unwrap()] {
            let schema: Value = serde_json::from_str(&text).unwrap();
            lint("", &schema);
            assert_eq!(schema["properties"]["due"]["description"], "The last day");
            assert_eq!(schema["properties"]["first"]["properties"]["remind_days"]["type"], "integer");
            assert_eq!(schema["properties"]["other"]["enum"], json!(["idea", "todo"]));
            assert!(!text.contains("uint") && !text.contains("null"), "{text}");
        }
        // What is always written may be `null`.
        assert!(output_schema::<Always>().unwrap().contains(r#""type":["integer","null"]"#));
        assert!(input_schema::<Unit>().unwrap().contains(r#""properties":{}"#));
    }

    #[test]
    fn what_has_no_flat_schema_says_why() {
        assert!(matches!(input_schema::<Tree>(), Err(FlatSchemaError::Recursive(target)) if target.contains('#')));
        assert_eq!(input_schema::<Kind>(), Err(FlatSchemaError::NoObject));
        assert_eq!(input_schema::<Vec<u8>>(), Err(FlatSchemaError::NoObject));
        assert_eq!(input_schema::<Shape>(), Err(FlatSchemaError::NoObject));
    }

    #[test]
    fn a_tool_reads_what_its_schema_takes() {
        let tool = OwnedTool::new("note", "Returns a note", |_: &mut (), call| {
            let note: Note = call.args()?;
            call.json(&note)
        });
        let tools = OwnedTools::new();
        let tool = tool.unwrap().input(input_schema::<Note>().unwrap()).unwrap();
        tools.push(tool.output(output_schema::<Note>().unwrap()).unwrap());
        let service = Service::new("notes", "1.0").dynamic_tools(&tools);
        for revision in Revision::ALL {
            let mut notes = Conversation::new(&service, ());
            notes.open(revision);
            assert!(!notes.call("note", &note()).is_error());
            let mut wrong = note();
            wrong["kind"] = json!("todoo");
            assert!(notes.call("note", &wrong).is_error());
            let text = input_schema::<Note>().unwrap();
            let raw = Raw::parse(text.as_bytes()).unwrap();
            let check = |value: &Value| {
                let value = value.to_string();
                let report = schema::check(raw, Raw::parse(value.as_bytes()).unwrap(), &SchemaLimits::DEFAULT);
                report.mismatches.is_empty()
            };
            assert!(check(&note()) && !check(&wrong));
        }
    }

    fn flat(mut schema: Value) -> Result<Value, FlatSchemaError> {
        flatten(&mut schema, 0).map(|()| schema)
    }

    #[test]
    fn the_schema_of_a_type_is_written_without_what_clients_do_not_need() {
        #[derive(Serialize, Deserialize, JsonSchema)]
        struct Small {
            n: Option<i64>,
            due: Due,
        }
        let expected = json!({"type": "object", "required": ["due"], "properties": {
            "n": {"type": "integer"},
            "due": {"type": "object", "description": "When it is due", "required": ["date"],
                "properties": {"date": {"type": "string"}, "remind_days": {"type": "integer", "minimum": 0, "maximum": 255}}},
        }});
        assert_eq!(serde_json::from_str::<Value>(&input_schema::<Small>().unwrap()).unwrap(), expected);
    }

    #[test]
    fn schemas_are_flat_at_each_place_where_they_may_be() {
        let before = json!({"type": "integer", "format": "uint8", "$defs": {}});
        let after = json!({"type": "integer"});
        for key in ONE {
            assert_eq!(flat(json!({key: before})), Ok(json!({key: after})), "{key}");
            assert_eq!(flat(json!({key: true})), Ok(json!({key: true})), "{key}");
            assert_eq!(flat(json!({key: false})), Ok(json!({key: false})), "{key}");
        }
        for key in MANY {
            assert_eq!(flat(json!({key: [before, true, before]})), Ok(json!({key: [after, {}, after]})), "{key}");
        }
        for key in ["properties", "patternProperties"] {
            assert_eq!(flat(json!({key: {"a": before, "b": true}})), Ok(json!({key: {"a": after, "b": {}}})), "{key}");
        }
        let circle = FlatSchemaError::Recursive("#/x".into());
        assert_eq!(flat(json!({"items": {"anyOf": [{"$ref": "#/x"}]}})), Err(circle.clone()));
        assert_eq!(flat(json!({"properties": {"a": {"$ref": "#/x"}}})), Err(circle.clone()));
        assert_eq!(flat(json!({"patternProperties": {"a": {"$ref": "#/x"}}})), Err(circle));
    }

    #[test]
    fn formats_of_numbers_are_left_out() {
        for format in ["int", "int8", "int64", "uint", "uint32", "float", "double"] {
            assert_eq!(flat(json!({"format": format})), Ok(json!({})), "{format}");
        }
        for format in ["date-time", "interval", "doubles", "int8x", "uri"] {
            assert_eq!(flat(json!({"format": format})), Ok(json!({"format": format})), "{format}");
        }
    }

    #[test]
    fn objects_have_properties() {
        assert_eq!(flat(json!({"type": "object"})), Ok(json!({"type": "object", "properties": {}})));
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        assert_eq!(flat(map.clone()), Ok(map));
        assert_eq!(flat(json!({"type": "string"})), Ok(json!({"type": "string"})));
        assert_eq!(flat(json!({})), Ok(json!({})));
    }

    #[test]
    fn members_that_may_be_left_out_have_no_null() {
        for (before, after) in [
            (json!({"type": ["integer", "null"]}), json!({"type": "integer"})),
            (json!({"type": ["integer", "null", "string"]}), json!({"type": ["integer", "string"]})),
            (json!({"type": "null"}), json!({"type": "null"})),
            (json!({"enum": ["a", null, "b"]}), json!({"enum": ["a", "b"]})),
            (json!({"default": null}), json!({})),
            (json!({"default": 1}), json!({"default": 1})),
            (
                json!({"anyOf": [{"type": "string", "description": "of the type", "minLength": 1}, {"type": "null"}], "description": "of the member"}),
                json!({"type": "string", "minLength": 1, "description": "of the member"}),
            ),
            (
                json!({"oneOf": [{"type": "null"}, {"type": ["string", "null"], "enum": ["a", null]}]}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
        ] {
            assert_eq!(flat(json!({"properties": {"a": before}})), Ok(json!({"properties": {"a": after}})));
            // What is required may be `null`.
            let required = |member: &Value| json!({"required": ["b", "a"], "properties": {"a": member}});
            assert_eq!(flat(required(&before)), Ok(required(&before)));
        }
    }

    #[test]
    fn schemas_have_at_most_64_levels() {
        let nest =
            |levels: u32, wrap: fn(Value) -> Value| (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner));
        let wraps: [fn(Value) -> Value; 4] = [
            |inner| json!({"items": inner}),
            |inner| json!({"anyOf": [inner]}),
            |inner| json!({"properties": {"a": inner}, "required": ["a"]}),
            |inner| json!({"patternProperties": {"a": inner}}),
        ];
        for wrap in wraps {
            assert!(flat(nest(64, wrap)).is_ok(), "{}", wrap(json!(0)));
            assert_eq!(flat(nest(65, wrap)), Err(FlatSchemaError::TooLarge), "{}", wrap(json!(0)));
        }
    }

    #[test]
    fn schemas_have_at_most_256_kib() {
        struct Large<const DESCRIPTION: usize>;
        impl<const DESCRIPTION: usize> JsonSchema for Large<DESCRIPTION> {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Large".into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "object", "properties": {}, "description": "x".repeat(DESCRIPTION)})
            }
        }
        const REST: usize = r#"{"description":"","properties":{},"type":"object"}"#.len();
        assert_eq!(input_schema::<Large<{ MOST - REST }>>().unwrap().len(), MOST);
        assert_eq!(output_schema::<Large<{ MOST - REST + 1 }>>(), Err(FlatSchemaError::TooLarge));
    }
}
