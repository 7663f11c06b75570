//! Finds what some clients refuse in the tools of a server, though the protocol allows it: their models' interfaces have rules of their
//! own for names and schemas.

use std::collections::BTreeSet;
use std::fmt;

use mcp_sansio::json::constant::is_meta;
use mcp_sansio::json::{JsonKind, Raw};

use crate::json::{Members, array, compact, quote};
use crate::text::one_line;

/// Something that some clients refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The tool; empty for the list.
    pub(crate) tool: String,
    /// The place in the tool, like `inputSchema.properties.a`.
    pub(crate) place: String,
    pub(crate) words: String,
}

/// The most levels of a schema to look into.
const DEPTH: usize = 32;

/// The most warnings.
const WARNINGS: usize = 200;

/// The most tools that some hosts offer to their model.
const TOOLS: usize = 128;

/// Looks at all tools of a server.
pub(crate) fn tools(tools: &[Raw<'_>]) -> Vec<Warning> {
    let mut lint = Lint { warnings: Vec::new(), tool: String::new() };
    if tools.len() > TOOLS {
        lint.warn("", format!("{} tools: some hosts offer their model at most {TOOLS}, others fewer", tools.len()));
    }
    let mut names = BTreeSet::new();
    for tool in tools {
        let name = tool.get("name").and_then(|name| name.text()).map(one_line).unwrap_or_default();
        lint.tool = name.clone();
        lint.name(&name, &names);
        lint.description(*tool);
        match tool.get("inputSchema") {
            Some(schema) => lint.root("inputSchema", schema),
            None => lint.warn("inputSchema", "is missing: the protocol demands it"),
        }
        if let Some(schema) = tool.get("outputSchema") {
            lint.root("outputSchema", schema);
        }
        if tool.get("_meta").is_some_and(|meta| !is_meta(meta.as_str())) {
            lint.warn("_meta", "is no object with names that the protocol allows, like com.example/thing");
        }
        names.insert(name);
    }
    lint.warnings.truncate(WARNINGS);
    lint.warnings
}

/// The cost of the list of tools, which hosts put before each conversation of their model.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Of all tools, as JSON without spaces.
    bytes: usize,
    /// The three largest, with their bytes.
    largest: Vec<(String, usize)>,
}

/// The bytes of a token, as models count English and JSON: an estimate.
const TOKEN: usize = 4;

/// Returns what all tools of a server cost.
pub(crate) fn cost(tools: &[Raw<'_>]) -> Cost {
    let name = |tool: Raw<'_>| one_line(text(tool, "name").unwrap_or_default());
    let mut largest: Vec<_> = tools.iter().map(|tool| (name(*tool), compact(*tool).len())).collect();
    let bytes = largest.iter().map(|(_, bytes)| bytes).sum();
    largest.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    largest.truncate(3);
    Cost { bytes, largest }
}

impl Cost {
    pub(crate) fn json(&self) -> String {
        let mut json = Members::default();
        json.add("bytes", &self.bytes.to_string());
        json.add("tokens", &self.bytes.div_ceil(TOKEN).to_string());
        let tool = |(name, bytes): &(String, usize)| format!("{{\"tool\":{},\"bytes\":{bytes}}}", quote(name));
        json.add("largest", &array(&self.largest.iter().map(tool).collect::<Vec<_>>()));
        json.finish()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.bytes.div_ceil(TOKEN);
        write!(f, "The list costs a model {} bytes, some {tokens} tokens.", self.bytes)?;
        let largest: Vec<String> = self.largest.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
        if largest.is_empty() { Ok(()) } else { write!(f, " Largest: {}", largest.join(", ")) }
    }
}

struct Lint {
    warnings: Vec<Warning>,
    tool: String,
}

fn text(value: Raw<'_>, key: &str) -> Option<String> {
    Some(value.get(key)?.text()?.to_string())
}

fn is_word(text: &str, more: &str, longest: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || more.contains(c);
    (1..=longest).contains(&text.len()) && text.chars().all(plain)
}

impl Lint {
    fn warn(&mut self, place: &str, words: impl Into<String>) {
        if self.warnings.len() < WARNINGS {
            let place = one_line(place);
            self.warnings.push(Warning { tool: self.tool.clone(), place, words: one_line(words.into()) });
        }
    }

    fn name(&mut self, name: &str, before: &BTreeSet<String>) {
        if before.contains(name) {
            self.warn("name", "is there twice: clients take one of the two, or neither");
        }
        if !is_word(name, "", 64) {
            self.warn(
                "name",
                "models' interfaces take letters, digits, _ and -, at most 64: hosts rename or drop the tool",
            );
        }
    }

    fn description(&mut self, tool: Raw<'_>) {
        match text(tool, "description") {
            None => self.warn("description", "is missing: a model has only the name to choose by"),
            Some(text) if text.trim().is_empty() => {
                self.warn("description", "is empty: a model has only the name to choose by");
            }
            Some(text) if text.chars().count() > 1024 => {
                self.warn("description", "has more than 1024 characters: some interfaces cut or refuse it");
            }
            Some(_) => {}
        }
    }

    fn root(&mut self, place: &str, schema: Raw<'_>) {
        if schema.kind() != JsonKind::Object {
            return self.warn(place, "is not a JSON object: no client can read it");
        }
        if text(schema, "type").as_deref() != Some("object") {
            self.warn(place, "has no \"type\": \"object\": official SDKs refuse the whole list of tools");
        }
        if place == "inputSchema" {
            for key in ["anyOf", "oneOf", "allOf", "enum", "not"] {
                if schema.get(key).is_some() {
                    self.warn(
                        place,
                        format!("has {key} at its top: some models' interfaces refuse it; put it into a member"),
                    );
                }
            }
        }
        self.schema(place, schema, 0);
    }

    fn schema(&mut self, place: &str, schema: Raw<'_>, depth: usize) {
        if depth > DEPTH {
            return self.warn(place, format!("is nested deeper than {DEPTH}: not looked at"));
        }
        match schema.kind() {
            JsonKind::Object => {}
            JsonKind::Bool => {
                return self.warn(place, "is true or false in place of an object: some clients cannot read it");
            }
            _ => return self.warn(place, "is not a schema"),
        }
        self.types(place, schema);
        if schema.get("$ref").is_some() {
            self.warn(place, "has $ref: some clients do not resolve it; write the schema where it is used");
        }
        self.object(place, schema);
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for (i, option) in schema.get(key).into_iter().flat_map(|options| options.items()).enumerate() {
                self.schema(&format!("{place}.{key}[{i}]"), option, depth + 1);
            }
        }
        for (name, member) in schema.get("properties").into_iter().flat_map(|members| members.members()) {
            let name = name.to_string();
            if !is_word(&name, ".", 64) {
                let words = format!("the name {name:?}: some interfaces take letters, digits, _, - and ., at most 64");
                self.warn(place, words);
            }
            self.schema(&format!("{place}.{name}"), member, depth + 1);
        }
        for (name, member) in schema.get("$defs").into_iter().flat_map(|members| members.members()) {
            self.schema(&format!("{place}.$defs.{name}"), member, depth + 1);
        }
        if let Some(items) = schema.get("items") {
            self.schema(&format!("{place}[]"), items, depth + 1);
        }
    }

    fn types(&mut self, place: &str, schema: Raw<'_>) {
        const KNOWN: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
        let texts =
            schema.get("enum").is_none_or(|choices| choices.items().all(|choice| choice.kind() == JsonKind::String));
        if !texts {
            self.warn(place, "has an enum of other values than strings: some clients take strings only");
        }
        let Some(named) = schema.get("type") else { return };
        let names: Vec<String> = named
            .text()
            .into_iter()
            .chain(named.items().filter_map(|name| name.text()))
            .map(|n| n.to_string())
            .collect();
        for name in names.iter().filter(|name| !KNOWN.contains(&name.as_str())) {
            self.warn(place, format!("there is no type {name:?}: validators refuse the schema"));
        }
        if named.kind() == JsonKind::Array {
            self.warn(
                place,
                "has a list of types: some clients know one type only; leave the member out in place of null",
            );
        }
        let is = |kind: &str| names.iter().any(|name| name == kind);
        if is("array") && schema.get("items").is_none() && schema.get("prefixItems").is_none() {
            self.warn(place, "is an array without items: some models' interfaces refuse it");
        }
        if is("object") && schema.get("properties").is_none() && schema.get("additionalProperties").is_none() {
            self.warn(place, "is an object without properties: some models' interfaces refuse it");
        }
    }

    fn object(&mut self, place: &str, schema: Raw<'_>) {
        let Some(properties) = schema.get("properties") else { return };
        let known: BTreeSet<String> = properties.members().map(|(name, _)| name.to_string()).collect();
        for name in schema.get("required").into_iter().flat_map(|names| names.items()).filter_map(|name| name.text()) {
            let name = name.to_string();
            if !known.contains(&name) {
                self.warn(place, format!("requires {name:?}, which properties does not have: no call can be right"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tool: &str) -> Vec<String> {
        let tool = Raw::parse(tool.as_bytes()).unwrap();
        tools(&[tool]).into_iter().map(|warning| format!("{} {}", warning.place, warning.words)).collect()
    }

    #[test]
    fn a_plain_tool_has_no_warnings() {
        let tool = r#"{"name":"add","description":"Adds","inputSchema":{"type":"object","properties":{
            "a":{"type":"integer"},"list":{"type":"array","items":{"type":"string","enum":["x"]}}},"required":["a"]},
            "outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;
        assert_eq!(found(tool), [""; 0]);
    }

    #[test]
    fn each_rule_warns() {
        let tool = |schema: &str| format!(r#"{{"name":"t","description":"d","inputSchema":{schema}}}"#);
        let root = |more: &str| tool(&format!(r#"{{"type":"object","properties":{{}},{more}}}"#));
        let member = |member: &str| tool(&format!(r#"{{"type":"object","properties":{{"m":{member}}}}}"#));
        for (tool, words) in [
            (
                r#"{"name":"a.b","description":"d","inputSchema":{"type":"object","properties":{}}}"#.into(),
                "name models'",
            ),
            (r#"{"name":"t","inputSchema":{"type":"object","properties":{}}}"#.into(), "description is missing"),
            (
                r#"{"name":"t","description":" ","inputSchema":{"type":"object","properties":{}}}"#.into(),
                "description is empty",
            ),
            (r#"{"name":"t","description":"d"}"#.into(), "inputSchema is missing"),
            (
                r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{}},"_meta":{"9.x/y":1}}"#
                    .into(),
                "_meta is no object with names",
            ),
            (tool(r#"{"properties":{}}"#), "inputSchema has no \"type\""),
            (tool("[]"), "inputSchema is not a JSON object"),
            (root(r#""anyOf":[{"type":"object","properties":{}}]"#), "inputSchema has anyOf at its top"),
            (root(r#""required":["z"]"#), "inputSchema requires \"z\""),
            (tool(r#"{"type":"object"}"#), "inputSchema is an object without properties"),
            (member(r##"{"$ref":"#"}"##), "inputSchema.m has $ref"),
            (member("true"), "inputSchema.m is true or false"),
            (member(r#"{"type":"integr"}"#), "inputSchema.m there is no type \"integr\""),
            (member(r#"{"type":["string","null"]}"#), "inputSchema.m has a list of types"),
            (member(r#"{"type":"array"}"#), "inputSchema.m is an array without items"),
            (member(r#"{"type":"array","items":{"type":"array"}}"#), "inputSchema.m[] is an array without items"),
            (member(r#"{"enum":[1]}"#), "inputSchema.m has an enum"),
            (tool(r#"{"type":"object","properties":{"a b":{}}}"#), "inputSchema the name \"a b\""),
        ] {
            let found = found(&tool);
            assert!(found.len() == 1 && found[0].starts_with(words), "{tool}: {found:?}");
        }
        let one = Raw::constant(r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{}}}"#);
        assert_eq!(tools(&[one, one]).len(), 1);
        assert_eq!(tools(&[one; 129]).len(), 129);
    }
}
