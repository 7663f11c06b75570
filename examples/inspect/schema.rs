//! Reads the parameters of a tool from its JSON Schema.

use std::cell::RefCell;
use std::collections::BTreeMap;

use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio_host::schema::target;

use crate::json::compact;
use crate::page::{Rows, Spans, Style};

/// The most levels of nested objects, and the most references to follow.
const DEPTH: usize = 4;
/// The most options of `anyOf`, `oneOf` and `allOf` that are looked at for one question. They can refer to themselves.
const OPTIONS: usize = 1_000;
/// The most rows of a table. Properties can refer to the object that has them.
const ROWS: usize = 400;

/// One property of an object.
#[derive(Clone, Debug)]
pub(crate) struct Param<'a> {
    pub(crate) name: String,
    /// The schema; a `$ref` in it is not resolved.
    schema: Raw<'a>,
    pub(crate) required: bool,
}

/// A schema's word about a member.
#[derive(Clone, Debug)]
pub(crate) enum Member<'a> {
    Known(Raw<'a>),
    /// It is not named, and the schema does not refuse it.
    Open,
    /// It is not named, but these are.
    Unknown(Vec<String>),
}

/// A schema and the document that its references point into. References out of the document are not followed.
#[derive(Clone, Debug)]
pub(crate) struct Schema<'a> {
    root: Raw<'a>,
    sends_headers: bool,
    /// The places that references lead to: each is looked for once.
    targets: RefCell<BTreeMap<String, Option<Raw<'a>>>>,
}

/// The results of a search for a member so far.
struct Search {
    /// The names of other members.
    known: Vec<String>,
    /// Members that are not named are allowed.
    is_open: bool,
    /// The options that may still be looked at.
    left: usize,
}

/// The properties that were found so far.
struct Found<'a> {
    params: Vec<Param<'a>>,
    /// Their places.
    names: BTreeMap<String, usize>,
    /// The options that may still be looked at.
    left: usize,
}

impl<'a> Found<'a> {
    /// Adds a property, or what is new of it. A name that is only required may have any value.
    fn add(&mut self, name: &Text<'_>, schema: Option<Raw<'a>>, required: bool) {
        let name = name.to_string();
        let any = const { Raw::constant("{}") };
        let is_full = self.params.len() > ROWS;
        match self.names.get(&name).and_then(|at| self.params.get_mut(*at)) {
            Some(known) => {
                known.required |= required;
                known.schema = if known.schema.as_str() == any.as_str() { schema.unwrap_or(any) } else { known.schema };
            }
            None if is_full => {}
            None => {
                self.names.insert(name.clone(), self.params.len());
                self.params.push(Param { name, schema: schema.unwrap_or(any), required });
            }
        }
    }
}

fn required<'a>(object: Raw<'a>) -> impl Iterator<Item = Text<'a>> {
    object.get("required").into_iter().flat_map(|names| names.items()).filter_map(|name| name.text())
}

fn properties<'a>(object: Raw<'a>) -> impl Iterator<Item = (Text<'a>, Raw<'a>)> {
    object.get("properties").into_iter().flat_map(|properties| properties.members())
}

impl<'a> Schema<'a> {
    pub(crate) const fn new(root: Raw<'a>) -> Self {
        Schema { root, sends_headers: false, targets: RefCell::new(BTreeMap::new()) }
    }

    /// Sets whether arguments with `x-mcp-header` are also sent as headers. Default: `false`.
    pub(crate) fn sends_headers(self, sends_headers: bool) -> Self {
        Schema { sends_headers, ..self }
    }

    /// Returns the properties of the root.
    pub(crate) fn params(&self) -> Vec<Param<'a>> {
        self.params_of(self.root)
    }

    /// Returns the schema of the whole value.
    pub(crate) const fn root(&self) -> Raw<'a> {
        self.root
    }

    /// Finds a member of the objects that a schema describes, also in the options of `anyOf`, `oneOf` and `allOf`.
    pub(crate) fn member(&self, schema: Raw<'a>, name: &str) -> Member<'a> {
        let mut search = Search { known: Vec::new(), is_open: false, left: OPTIONS };
        match self.find_member(schema, name, DEPTH, &mut search) {
            Some(found) => Member::Known(found),
            None if search.is_open || search.known.is_empty() && !self.is_closed(schema) => Member::Open,
            None => Member::Unknown(search.known),
        }
    }

    fn is_closed(&self, schema: Raw<'a>) -> bool {
        self.resolve(schema).get("additionalProperties").and_then(|more| more.bool()) == Some(false)
    }

    fn find_member(&self, schema: Raw<'a>, name: &str, depth: usize, search: &mut Search) -> Option<Raw<'a>> {
        let schema = self.resolve(schema);
        for (found, member) in properties(schema) {
            if found.eq_str(name) {
                return Some(self.resolve(member));
            }
            if search.known.len() < ROWS {
                search.known.push(found.to_string());
            }
        }
        // Other members are allowed if the schema says so; where it says nothing, most servers ignore them.
        search.is_open |= schema.get("additionalProperties").is_some_and(|more| more.bool() != Some(false));
        search.is_open |= schema.get("patternProperties").is_some();
        search.is_open |= required(schema).any(|required| required.eq_str(name));
        let options = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key));
        options.flat_map(|options| options.items()).filter(|_| depth > 0).find_map(|option| {
            // An option that is not looked at may have the member.
            search.is_open |= search.left == 0;
            search.left = search.left.checked_sub(1)?;
            self.find_member(option, name, depth - 1, search)
        })
    }

    /// Finds the schema of an item of the arrays that a schema describes.
    pub(crate) fn item(&self, schema: Raw<'a>, index: usize) -> Option<Raw<'a>> {
        let options = ["anyOf", "oneOf"].into_iter().filter_map(|key| self.resolve(schema).get(key));
        let options = options.flat_map(|options| options.items()).map(|option| self.resolve(option));
        std::iter::once(self.resolve(schema)).chain(options).find_map(|schema| {
            let fixed = schema.get("prefixItems").and_then(|items| items.items().nth(index));
            fixed.or_else(|| schema.get("items")).map(|item| self.resolve(item))
        })
    }

    /// Returns the properties of an object, those in its `anyOf`, `oneOf` and `allOf` too, and the names that it requires.
    fn params_of(&self, object: Raw<'a>) -> Vec<Param<'a>> {
        let mut found = Found { params: Vec::new(), names: BTreeMap::new(), left: OPTIONS };
        self.find_params(object, DEPTH, true, &mut found);
        found.params
    }

    /// `must` is false where another option may be chosen.
    fn find_params(&self, object: Raw<'a>, depth: usize, must: bool, found: &mut Found<'a>) {
        let object = self.resolve(object);
        for (name, schema) in properties(object) {
            found.add(&name, Some(schema), false);
        }
        for name in required(object) {
            found.add(&name, None, must);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let options = object.get(key);
            let must = must && (key == "allOf" || options.is_some_and(|options| options.items().nth(1).is_none()));
            for option in options.into_iter().flat_map(|options| options.items()) {
                if depth > 0 && found.left > 0 {
                    found.left -= 1;
                    self.find_params(option, depth - 1, must, found);
                }
            }
        }
    }

    /// Returns `true` if an object of this schema has no members.
    pub(crate) fn is_empty(&self) -> bool {
        /// Members of a schema that name no member of its objects.
        const SILENT: [&str; 12] = [
            "$schema",
            "$id",
            "$comment",
            "$defs",
            "definitions",
            "title",
            "description",
            "default",
            "examples",
            "type",
            "properties",
            "required",
        ];
        let object = self.resolve(self.root);
        let is_silent = |(key, value): (Text<'_>, Raw<'_>)| {
            let is = |name: &&str| key.eq_str(name);
            SILENT.iter().any(is)
                || (is(&"additionalProperties") || is(&"unevaluatedProperties")) && value.bool() == Some(false)
                || is(&"maxProperties") && value.u64() == Some(0)
                || key.chars().next() == Some(Ok('x'))
        };
        object.get("maxProperties").and_then(|most| most.u64()) == Some(0)
            || object.members().all(is_silent) && self.params().is_empty()
    }

    /// Resolves a `$ref` into the same document.
    fn resolve(&self, schema: Raw<'a>) -> Raw<'a> {
        let mut found = schema;
        for _ in 0..DEPTH {
            let Some(pointer) = found.get("$ref").and_then(|reference| reference.text()) else { break };
            let pointer = pointer.to_string();
            let known = self.targets.borrow().get(&pointer).copied();
            let place = known.unwrap_or_else(|| target(self.root, &pointer));
            if known.is_none() {
                self.targets.borrow_mut().insert(pointer, place);
            }
            match place {
                Some(target) => found = target,
                None => break,
            }
        }
        found
    }

    /// Returns the allowed types by their names in the schema. Empty means any type.
    pub(crate) fn types(&self, schema: Raw<'a>) -> Vec<String> {
        let mut types = Vec::new();
        self.collect_types(schema, DEPTH, &mut { OPTIONS }, &mut types);
        types
    }

    fn collect_types(&self, schema: Raw<'a>, depth: usize, left: &mut usize, types: &mut Vec<String>) {
        let schema = self.resolve(schema);
        let mut add = |name: String| {
            if !types.contains(&name) {
                types.push(name);
            }
        };
        if let Some(named) = schema.get("type") {
            let one = named.text().into_iter();
            one.chain(named.items().filter_map(|name| name.text())).for_each(|name| add(name.to_string()));
            return;
        }
        let constant = schema.get("const").into_iter();
        for value in constant.chain(schema.get("enum").into_iter().flat_map(|values| values.items())) {
            add(kind_name(value).into());
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for option in schema.get(key).into_iter().flat_map(|options| options.items()) {
                if depth > 0 && *left > 0 {
                    *left -= 1;
                    self.collect_types(option, depth - 1, left, types);
                }
            }
        }
    }

    /// Names the types of a schema for the user.
    fn type_name(&self, schema: Raw<'a>) -> String {
        let types = self.types(schema);
        if types.is_empty() {
            return "any".into();
        }
        let name = |kind: &String| match (kind.as_str(), schema.get("items")) {
            ("array", Some(items)) => {
                let inner = self.type_name(items);
                if inner.contains('|') { format!("({inner})[]") } else { format!("{inner}[]") }
            }
            _ => kind.clone(),
        };
        types.iter().map(name).collect::<Vec<_>>().join("|")
    }

    /// Returns a table of the input: name, type, "required", and other facts.
    pub(crate) fn takes(&self) -> Rows {
        self.rows(&|required| if required { Spans::of(Style::Warn, "required") } else { Spans::default() })
    }

    /// Returns a table of the output, like [`takes`](Self::takes), but with a mark for optional properties.
    pub(crate) fn gives(&self) -> Rows {
        self.rows(&|required| if required { Spans::default() } else { Spans::of(Style::Dim, "optional") })
    }

    fn rows(&self, mark: &dyn Fn(bool) -> Spans) -> Rows {
        let mut rows = Rows::new();
        self.add_rows(self.root, 0, mark, &mut rows);
        if rows.len() > ROWS {
            rows.truncate(ROWS);
            let words = Spans::of(Style::Dim, "there are more; --json shows the schema");
            rows.push(vec![Spans::of(Style::Dim, "…"), Spans::default(), Spans::default(), words]);
        }
        rows
    }

    fn add_rows(&self, object: Raw<'a>, depth: usize, mark: &dyn Fn(bool) -> Spans, rows: &mut Rows) {
        for param in self.params_of(object) {
            if rows.len() > ROWS {
                return;
            }
            let name = Spans::of(Style::Name, format!("{}{}", "  ".repeat(depth), param.name));
            let schema = self.resolve(param.schema);
            let kind = Spans::of(Style::Type, self.type_name(schema));
            rows.push(vec![name, kind, mark(param.required), self.about(schema)]);
            let items = schema.get("items").map(|items| self.resolve(items));
            for inner in [Some(schema), items].into_iter().flatten() {
                if depth + 1 < DEPTH {
                    self.add_rows(inner, depth + 1, mark, rows);
                }
            }
        }
        // Names that are not said.
        let object = self.resolve(object);
        let patterns = object.get("patternProperties").into_iter().flat_map(|patterns| patterns.members());
        let patterns = patterns.map(|(pattern, schema)| (format!("/{pattern}/"), schema));
        let others = object.get("additionalProperties").filter(|others| others.kind() == JsonKind::Object);
        for (name, schema) in patterns.chain(others.map(|others| ("any other name".to_owned(), others))) {
            if rows.len() > ROWS {
                return;
            }
            let name = Spans::of(Style::Dim, format!("{}{name}", "  ".repeat(depth)));
            let schema = self.resolve(schema);
            rows.push(vec![name, Spans::of(Style::Type, self.type_name(schema)), Spans::default(), self.about(schema)]);
        }
    }

    /// Returns the description and the possible values.
    fn about(&self, schema: Raw<'a>) -> Spans {
        let mut about = Spans::default();
        let text = |key: &str| schema.get(key).and_then(|text| text.text());
        if let Some(words) = text("description").or_else(|| text("title")) {
            about.add(Style::Plain, words.to_string().trim());
        }
        let mut fact = |fact: String| about.item(if fact.is_empty() { "" } else { " · " }, Style::Dim, fact);
        for schema in [Some(schema), schema.get("items").map(|items| self.resolve(items))].into_iter().flatten() {
            choices(schema).into_iter().for_each(&mut fact);
        }
        facts(schema).into_iter().for_each(&mut fact);
        if let Some(name) = schema.get("x-mcp-header").filter(|_| self.sends_headers) {
            fact(format!("sent as header Mcp-Param-{}", crate::text::one_line(bare(name))));
        }
        about
    }
}

const fn kind_name(value: Raw<'_>) -> &'static str {
    match value.kind() {
        JsonKind::Object => "object",
        JsonKind::Array => "array",
        JsonKind::String => "string",
        JsonKind::Number => "number",
        JsonKind::Bool => "boolean",
        JsonKind::Null => "null",
    }
}

/// Formats a value the way a user types it.
fn bare(value: Raw<'_>) -> String {
    value.text().filter(|text| !text.eq_str("")).map_or_else(|| compact(value), |text| text.to_string())
}

/// Lists the allowed values.
fn choices(schema: Raw<'_>) -> Option<String> {
    let list = |key: &str| schema.get(key).into_iter().flat_map(|values| values.items());
    let mut values: Vec<String> = list("enum").map(bare).collect();
    for key in ["oneOf", "anyOf"] {
        values.extend(list(key).filter_map(|option| option.get("const")).map(bare));
    }
    let left = values.len().saturating_sub(40);
    values.truncate(40);
    if left > 0 {
        values.push(format!("{left} more"));
    }
    match (schema.get("const"), values.is_empty()) {
        (Some(value), _) => Some(format!("always {}", bare(value))),
        (None, false) => Some(format!("one of {}", values.join(", "))),
        (None, true) => None,
    }
}

/// Lists bounds, format and default.
fn facts(schema: Raw<'_>) -> Vec<String> {
    let mut facts = Vec::new();
    let get = |key: &str| schema.get(key).map(bare);
    for (low, high, unit) in
        [("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items")]
    {
        match (get(low), get(high)) {
            (Some(low), Some(high)) => facts.push(format!("{low} to {high}{unit}")),
            (Some(low), None) => facts.push(format!("at least {low}{unit}")),
            (None, Some(high)) => facts.push(format!("at most {high}{unit}")),
            (None, None) => {}
        }
    }
    for (key, words) in [
        ("exclusiveMinimum", "more than "),
        ("exclusiveMaximum", "less than "),
        ("multipleOf", "a multiple of "),
        ("format", ""),
        ("pattern", "like "),
        ("default", "default "),
    ] {
        facts.extend(get(key).map(|value| format!("{words}{}", crate::text::one_line(value))));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Look, Page};

    fn table(json: &str) -> String {
        let mut page = Page::new(Look { color: false, width: 90 });
        page.table(0, &Schema::new(Raw::parse(json.as_bytes()).unwrap()).takes());
        page.finish()
    }

    /// Properties and options that refer to all of the schema again.
    #[test]
    fn schemas_within_themselves_end() {
        let many = |item: &dyn Fn(u32) -> String| (0..100).map(item).collect::<Vec<_>>().join(",");
        let json = format!(r##"{{"properties":{{{}}}}}"##, many(&|n| format!("\"p{n}\":{{\"$ref\":\"#\"}}")));
        let shown = table(&json);
        assert_eq!(shown.lines().count(), ROWS + 1);
        assert!(shown.trim_end().ends_with("there are more; --json shows the schema"), "{shown}");
        let json = format!(r##"{{"anyOf":[{}]}}"##, many(&|_| "{\"$ref\":\"#\"}".to_owned()));
        let schema = Schema::new(Raw::parse(json.as_bytes()).unwrap());
        assert!(matches!(schema.member(schema.root(), "x"), Member::Open));
        assert_eq!(schema.types(schema.root()), [""; 0]);
    }

    #[test]
    fn all_there_is_to_know() {
        let shown = table(
            r##"{"type":"object","properties":{
                "path":{"type":"string","description":"A file or folder","minLength":1},
                "limit":{"type":"integer","minimum":1,"maximum":50,"default":10},
                "mode":{"enum":["fast","slow"],"default":"fast"},
                "tags":{"type":"array","items":{"type":"string","enum":["a","b"]}},
                "filter":{"$ref":"#/$defs/Filter"},
                "any":{},
                "maybe":{"anyOf":[{"type":"string"},{"type":"null"}],"title":"Perhaps"}
            },"required":["path"],"$defs":{"Filter":{"type":"object","properties":{"name":{"type":["string","null"]}},"required":["name"]}}}"##,
        );
        let expected = "\
path    string       required  A file or folder · at least 1 characters
limit   integer                1 to 50 · default 10
mode    string                 one of fast, slow · default fast
tags    string[]               one of a, b
filter  object
  name  string|null  required
any     any
maybe   string|null            Perhaps
";
        assert_eq!(shown, expected);
        assert_eq!(table("{}"), "");
    }

    /// Properties stand in options, too, and some have no name or no schema.
    #[test]
    fn what_has_no_properties_may_have_arguments() {
        for (schema, expected) in [
            (
                r#"{"anyOf":[{"properties":{"mail":{"type":"string"}},"required":["mail"]},{"properties":{"phone":{}}}]}"#,
                "mail   string\nphone  any\n",
            ),
            (r#"{"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}"#, "a  string  required\n"),
            (
                r#"{"allOf":[{"required":["b"]},{"properties":{"b":{"type":"integer"}}},{"anyOf":[{"required":["b","c"]},{}]}]}"#,
                "b  integer  required\nc  any\n",
            ),
            (r#"{"properties":{},"required":["zz",""]}"#, "zz  any  required\n    any  required\n"),
            (r#"{"additionalProperties":{"type":"integer"}}"#, "any other name  integer\n"),
            (
                r#"{"patternProperties":{"^x":{"description":"D"}},"properties":{"m":{"additionalProperties":{}}}}"#,
                "m                 any\n  any other name  any\n/^x/              any  D\n",
            ),
            (r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"properties":{"n":{}}}]}}}"##, "n  any\n"),
        ] {
            let schema_of = Schema::new(Raw::parse(schema.as_bytes()).unwrap());
            assert!(!schema_of.is_empty(), "{schema}");
            let shown = table(schema);
            let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(lines(&shown), lines(expected), "{schema}");
        }
        for (schema, is_empty) in [
            ("{}", true),
            (
                r#"{"type":"object","properties":{},"required":[],"title":"T","additionalProperties":false,"x-y":1}"#,
                true,
            ),
            (r#"{"maxProperties":0,"additionalProperties":true}"#, true),
            (r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}"##, true),
            (r#"{"additionalProperties":true}"#, false),
            (r#"{"minProperties":1}"#, false),
            (r#"{"propertyNames":{"pattern":"^a"}}"#, false),
            (r#"{"if":{"required":["a"]},"then":{"properties":{"b":{}}}}"#, false),
            (r#"{"$ref":"https://example.com/schema"}"#, false),
            (r##"{"$dynamicRef":"#a"}"##, false),
        ] {
            let schema_of = Schema::new(Raw::parse(schema.as_bytes()).unwrap());
            assert_eq!((schema_of.is_empty(), table(schema).as_str()), (is_empty, ""), "{schema}");
        }
    }

    #[test]
    fn references_lead_to_any_place_of_the_document() {
        let shown = table(
            r##"{"properties":{
                "item":{"$ref":"#/$defs/either/anyOf/1"},
                "coded":{"$ref":"#/%24defs/a%20b"},
                "anchor":{"$ref":"#either","title":"Not followed"}
            },"$defs":{"either":{"$anchor":"either","anyOf":[{"type":"null"},{"type":"integer"}]},"a b":{"type":"boolean"}}}"##,
        );
        assert_eq!(shown, "item    integer\ncoded   boolean\nanchor  any      Not followed\n");
    }

    #[test]
    fn endless_references_end() {
        let endless = r##"{"properties":{"a":{"$ref":"#/properties/a"},"b":{"$ref":"#"},"c":{"$ref":"http://x/y"}}}"##;
        assert!(table(endless).lines().count() < 200);
    }
}
