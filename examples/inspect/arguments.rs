//! Arguments as the user types them: JSON, or `key=value` pairs with types from the schema.

use std::collections::BTreeMap;

use mcp_sansio::json::{JsonKind, Raw};

use crate::json::{Members, array, compact, quote};
use crate::schema::{Member, Schema};

/// Returns `true` if the arguments are pairs, whose types come from a schema.
pub(crate) fn are_pairs(args: &[String]) -> bool {
    !args.is_empty() && !is_object(args)
}

fn is_object(args: &[String]) -> bool {
    matches!(args, [one] if one.trim_start().starts_with('{'))
}

/// Builds a JSON object from the arguments. `schema` is the schema of the tool. Without one all values are strings and keys
/// have no parts, as for prompts. With one, dots reach into objects and arrays: `due.date=…`, `list.0=…`.
pub(crate) fn build(args: &[String], schema: Option<&Schema<'_>>) -> Result<String, String> {
    if is_object(args) {
        let json = args.first().map_or("{}", |json| json.trim());
        return match Raw::parse(json.as_bytes()) {
            Ok(_) => Ok(json.into()),
            Err(fault) => Err(format!("the arguments are no valid JSON: {fault}")),
        };
    }
    let mut object = Node::Object(Vec::new());
    for arg in args {
        let (key, value) = arg.split_once('=').ok_or_else(|| {
            format!("{arg:?} is no argument; write key=value, key:=JSON, or all of them as one JSON object")
        })?;
        let (key, given) = match key.strip_suffix(':') {
            Some(key) => (key, Given::Json(json(key, value)?)),
            None => (key, Given::Text(value)),
        };
        let parts = parts(key, schema)?;
        let place = place(key, &parts, schema, &given)?;
        let json = match given {
            Given::Json(json) => json,
            Given::Text(value) => typed(key, value, schema, place)?,
        };
        let many = schema.zip(place.schema()).is_some_and(|(schema, about)| is_array(&schema.types(about)));
        object.put(key, &parts, json, many)?;
    }
    object.finish("")
}

enum Given<'a> {
    Json(String),
    Text(&'a str),
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Member(String),
    Index(usize),
}

/// The schema's word about a key.
#[derive(Clone, Copy)]
enum Place<'a> {
    Known(Raw<'a>),
    /// The schema allows it without a word about it, or there is no schema.
    Open,
}

impl<'a> Place<'a> {
    const fn schema(self) -> Option<Raw<'a>> {
        match self {
            Place::Known(schema) => Some(schema),
            Place::Open => None,
        }
    }
}

fn is_array(types: &[String]) -> bool {
    types.iter().any(|kind| kind == "array")
}

/// Takes a key apart at its dots. A name of the schema that has dots itself stays whole.
fn parts(key: &str, schema: Option<&Schema<'_>>) -> Result<Vec<Part>, String> {
    let whole = || vec![Part::Member(key.into())];
    let Some(schema) = schema else { return Ok(whole()) };
    if !key.contains('.') || matches!(schema.member(schema.root(), key), Member::Known(_)) {
        return Ok(whole());
    }
    let (mut parts, mut at) = (Vec::new(), Some(schema.root()));
    for name in key.split('.') {
        if name.is_empty() {
            return Err(format!("{key:?} has a dot with no name beside it"));
        }
        let types = at.map(|at| schema.types(at)).unwrap_or_default();
        let index = name.parse::<usize>().ok().filter(|_| is_array(&types) || types.is_empty() && !parts.is_empty());
        parts.push(match index {
            Some(index) => Part::Index(index),
            None => Part::Member(name.into()),
        });
        at = at.and_then(|at| match index {
            Some(index) => schema.item(at, index),
            None => match schema.member(at, name) {
                Member::Known(found) => Some(found),
                Member::Open | Member::Unknown(_) => None,
            },
        });
    }
    Ok(parts)
}

/// Finds a key in the schema. The error names a member that the schema does not have.
fn place<'a>(key: &str, parts: &[Part], schema: Option<&Schema<'a>>, given: &Given<'_>) -> Result<Place<'a>, String> {
    let Some(schema) = schema else { return Ok(Place::Open) };
    let mut at = schema.root();
    for part in parts {
        let found = match part {
            Part::Index(index) => schema.item(at, *index),
            Part::Member(name) => match schema.member(at, name) {
                Member::Known(found) => Some(found),
                Member::Open => None,
                Member::Unknown(known) => match given {
                    // JSON is sent as it is.
                    Given::Json(_) => None,
                    Given::Text(value) => {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        return Err(format!(
                            "no member `{name}`{}; {}; to send it all the same, write {key}:={}",
                            meant(name, &known),
                            listed("there are", "there are none", &known),
                            guess(value)
                        ));
                    }
                },
            },
        };
        match found {
            Some(found) => at = found,
            None => return Ok(Place::Open),
        }
    }
    Ok(Place::Known(at))
}

/// A value under construction.
#[derive(Debug)]
enum Node {
    /// JSON, as often as it was given.
    Values(Vec<String>),
    Object(Vec<(String, Node)>),
    Array(BTreeMap<usize, Node>),
}

/// The most items of an array that is given item by item.
const ITEMS: usize = 10_000;

impl Node {
    /// Puts a value at its place. `many` means that it may be given several times.
    fn put(&mut self, key: &str, parts: &[Part], json: String, many: bool) -> Result<(), String> {
        let Some((part, rest)) = parts.split_first() else {
            return match self {
                Node::Values(values) if values.is_empty() || many => {
                    values.push(json);
                    Ok(())
                }
                _ => Err(format!("{key} is given twice")),
            };
        };
        if matches!(self, Node::Values(values) if values.is_empty()) {
            *self = match part {
                Part::Member(_) => Node::Object(Vec::new()),
                Part::Index(_) => Node::Array(BTreeMap::new()),
            };
        }
        let inner = match (self, part) {
            (Node::Object(members), Part::Member(name)) => {
                let at = members.iter().position(|(known, _)| known == name).unwrap_or(members.len());
                if at == members.len() {
                    members.push((name.clone(), Node::Values(Vec::new())));
                }
                members.get_mut(at).map(|(_, node)| node)
            }
            (Node::Array(items), Part::Index(index)) if *index < ITEMS => {
                Some(items.entry(*index).or_insert_with(|| Node::Values(Vec::new())))
            }
            _ => None,
        };
        inner.ok_or_else(|| format!("{key} does not go with what is given before it"))?.put(key, rest, json, many)
    }

    fn finish(self, path: &str) -> Result<String, String> {
        let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match self {
            Node::Values(values) if values.len() == 1 => Ok(values.into_iter().next().unwrap_or_default()),
            Node::Values(values) => Ok(array(&values.iter().map(|one| inside(one)).collect::<Vec<_>>())),
            Node::Object(members) => {
                let mut object = Members::default();
                for (name, node) in members {
                    object.add(&name, &node.finish(&within(&name))?);
                }
                Ok(object.finish())
            }
            Node::Array(items) => {
                let mut all = Vec::new();
                for (at, (index, node)) in items.into_iter().enumerate() {
                    if at != index {
                        return Err(format!(
                            "{} is given, but not {}",
                            within(&index.to_string()),
                            within(&at.to_string())
                        ));
                    }
                    all.push(node.finish(&within(&index.to_string()))?);
                }
                Ok(array(&all))
            }
        }
    }
}

/// Returns the items of an array without its brackets, to join arrays that were given one after the other.
fn inside(json: &str) -> &str {
    json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or(json)
}

fn json(key: &str, value: &str) -> Result<String, String> {
    let raw = Raw::parse(value.as_bytes()).map_err(|fault| format!("{key}: no valid JSON: {fault}"))?;
    Ok(compact(raw))
}

fn typed<'a>(key: &str, value: &str, schema: Option<&Schema<'a>>, place: Place<'a>) -> Result<String, String> {
    let Some(schema) = schema else { return Ok(quote(value)) };
    let Place::Known(about) = place else { return Ok(guess(value)) };
    let types = schema.types(about);
    let typed = if types.is_empty() { Some(guess(value)) } else { fit(value, &types, schema, about) };
    let typed = typed.ok_or_else(|| format!("{key} must be {}, not {value:?}", article(&types.join(" or "))))?;
    check_choice(key, &typed, about)?;
    Ok(typed)
}

/// Returns `some` with a list of names, or `none` if the list is empty.
pub(crate) fn listed(some: &str, none: &str, names: &[&str]) -> String {
    if names.is_empty() { none.into() } else { format!("{some} {}", names.join(", ")) }
}

/// Suggests the known name that is nearest to a wrong one. Returns an empty string if no name is near.
pub(crate) fn meant(typed: &str, names: &[&str]) -> String {
    let near = names.iter().map(|name| (distance(typed, name), name)).min_by_key(|(far, _)| *far);
    let near_enough = match typed.chars().count() {
        0 | 1 => return String::new(),
        2 | 3 => 1,
        n => 1 + n / 4,
    };
    match near {
        Some((far, name)) if *name != typed && far <= near_enough => format!(" (did you mean {name:?}?)"),
        _ => String::new(),
    }
}

/// Counts the characters to insert, delete, change or swap with the next one.
fn distance(from: &str, to: &str) -> usize {
    let lower = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (from, to) = (lower(from), lower(to));
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i - 1] == *b && to[j - 1] == *a {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

/// Converts a value without a known type: valid JSON stays JSON, other text becomes a string.
fn guess(value: &str) -> String {
    Raw::parse(value.as_bytes()).map_or_else(|_| quote(value), compact)
}

/// Converts a value to the first of its types that fits.
fn fit<'a>(value: &str, types: &[String], schema: &Schema<'a>, about: Raw<'a>) -> Option<String> {
    let may = |kind: &str| types.iter().any(|name| name == kind);
    let parsed = Raw::parse(value.as_bytes()).ok();
    let whole = |raw: &Raw<'_>| raw.is_integer() || raw.i64().is_some();
    let fits = parsed.filter(|raw| match raw.kind() {
        JsonKind::Null => may("null"),
        JsonKind::Bool => may("boolean"),
        JsonKind::Number => may("number") || may("integer") && whole(raw),
        JsonKind::Array => may("array"),
        JsonKind::Object => may("object"),
        JsonKind::String => false,
    });
    match fits {
        Some(raw) => Some(compact(raw)),
        None if may("boolean") && matches!(value, "yes" | "on") => Some("true".into()),
        None if may("boolean") && matches!(value, "no" | "off") => Some("false".into()),
        None if may("string") => Some(quote(value)),
        None if may("array") => items(value, schema, about),
        None => None,
    }
}

/// Converts `a,b,c` to an array.
fn items<'a>(value: &str, schema: &Schema<'a>, about: Raw<'a>) -> Option<String> {
    let types = about.get("items").map(|items| schema.types(items)).unwrap_or_default();
    let item = |value: &str| if types.is_empty() { Some(guess(value)) } else { fit(value, &types, schema, about) };
    let items: Option<Vec<_>> = value.split(',').filter(|item| !item.is_empty()).map(|v| item(v.trim())).collect();
    Some(array(&items?))
}

fn check_choice(key: &str, json: &str, about: Raw<'_>) -> Result<(), String> {
    let Some(choices) = about.get("enum") else { return Ok(()) };
    let Ok(value) = Raw::parse(json.as_bytes()) else { return Ok(()) };
    let same = |choice: Raw<'_>| match (choice.text(), value.text()) {
        (Some(choice), Some(value)) => choice.same(&value),
        _ => compact(choice) == json,
    };
    if choices.items().any(same) {
        return Ok(());
    }
    let names: Vec<String> =
        choices.items().map(|choice| choice.text().map_or_else(|| compact(choice), |t| t.to_string())).collect();
    Err(format!("{key} is one of {}; to send something else, write {key}:={json}", names.join(", ")))
}

fn article(kind: &str) -> String {
    if kind.starts_with(['a', 'i', 'o']) { format!("an {kind}") } else { format!("a {kind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        let names = ["processes", "disk", "load", "add"];
        for (typed, name) in [("proceses", "processes"), ("Disk", "disk"), ("laod", "load"), ("ad", "add")] {
            assert_eq!(meant(typed, &names), format!(" (did you mean {name:?}?)"));
        }
        for typed in ["a", "uptime", "processes", ""] {
            assert_eq!(meant(typed, &names), "", "{typed}");
        }
        assert_eq!(meant("x", &[]), "");
    }

    const SCHEMA: Raw<'_> = Raw::constant(
        r#"{"type":"object","properties":{
            "n":{"type":"integer"},"x":{"type":"number"},"s":{"type":"string"},"b":{"type":"boolean"},
            "list":{"type":"array","items":{"type":"integer"}},"words":{"type":"array","items":{"type":"string"}},
            "o":{"type":"object"},"maybe":{"type":["string","null"]},"any":{},
            "mode":{"type":"string","enum":["fast","slow"]},"id":{"anyOf":[{"type":"integer"},{"type":"string"}]},
            "due":{"anyOf":[{"type":"object","properties":{"date":{"type":"string"},"days":{"type":"integer"}}},{"type":"null"}]},
            "rows":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}},"a.b":{"type":"string"}}}"#,
    );

    fn built(args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
        build(&args, Some(&Schema::new(SCHEMA)))
    }

    #[test]
    fn types_come_from_the_schema() {
        for (arg, json) in [
            ("n=12", r#"{"n":12}"#),
            ("n=2.0", r#"{"n":2.0}"#),
            ("x=-1.5e3", r#"{"x":-1.5e3}"#),
            ("s=12", r#"{"s":"12"}"#),
            ("s=a=b \"c\"", r#"{"s":"a=b \"c\""}"#),
            ("s=", r#"{"s":""}"#),
            ("b=yes", r#"{"b":true}"#),
            ("b=false", r#"{"b":false}"#),
            ("list=1, 2", r#"{"list":[1,2]}"#),
            ("list=[ 3 ]", r#"{"list":[3]}"#),
            ("words=a,2", r#"{"words":["a","2"]}"#),
            ("o={\"k\": 1}", r#"{"o":{"k":1}}"#),
            ("maybe=null", r#"{"maybe":null}"#),
            ("maybe=nil", r#"{"maybe":"nil"}"#),
            ("any=[1]", r#"{"any":[1]}"#),
            ("any=word", r#"{"any":"word"}"#),
            ("id=7", r#"{"id":7}"#),
            ("id=a7", r#"{"id":"a7"}"#),
            ("mode=fast", r#"{"mode":"fast"}"#),
            ("mode:=\"fats\"", r#"{"mode":"fats"}"#),
            ("s:=12", r#"{"s":12}"#),
            ("new:=1", r#"{"new":1}"#),
            ("o.k=1", r#"{"o":{"k":1}}"#),
            ("o.k.l=x", r#"{"o":{"k":{"l":"x"}}}"#),
            ("due.date=2026-01-02", r#"{"due":{"date":"2026-01-02"}}"#),
            ("due.days=3", r#"{"due":{"days":3}}"#),
            ("list.0=4", r#"{"list":[4]}"#),
            ("rows.0.n=4", r#"{"rows":[{"n":4}]}"#),
            ("any.x=4", r#"{"any":{"x":4}}"#),
            ("any.0=4", r#"{"any":[4]}"#),
            ("a.b=4", r#"{"a.b":"4"}"#),
        ] {
            assert_eq!(built(&[arg]).as_deref(), Ok(json), "{arg}");
        }
        assert_eq!(built(&[]).as_deref(), Ok("{}"));
        assert_eq!(built(&["n=1", "words=a", "words=b,c"]).as_deref(), Ok(r#"{"n":1,"words":["a","b","c"]}"#));
        let nested = built(&["rows.1.n=2", "due.date=d", "rows.0.n=1", "due.days=4", "list=1", "list=2"]);
        let expected = r#"{"rows":[{"n":1},{"n":2}],"due":{"date":"d","days":4},"list":[1,2]}"#;
        assert_eq!(nested.as_deref(), Ok(expected));
        assert_eq!(built(&[" {\"n\": 1} "]).as_deref(), Ok("{\"n\": 1}"));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let wrong = |args: &[&str]| built(args).unwrap_err();
        assert_eq!(wrong(&["n=a"]), "n must be an integer, not \"a\"");
        assert_eq!(wrong(&["n=1.5"]), "n must be an integer, not \"1.5\"");
        assert_eq!(wrong(&["n=1", "n=2"]), "n is given twice");
        assert_eq!(wrong(&["mode=fats"]), "mode is one of fast, slow; to send something else, write mode:=\"fats\"");
        assert_eq!(
            wrong(&["lits=2"]),
            "no member `lits` (did you mean \"list\"?); there are n, x, s, b, list, words, o, maybe, any, mode, id, due, rows, a.b; \
             to send it all the same, write lits:=2"
        );
        assert_eq!(
            wrong(&["due.dat=x"]),
            "no member `dat` (did you mean \"date\"?); there are date, days; to send it all the same, write due.dat:=\"x\""
        );
        assert_eq!(wrong(&["due.days=x"]), "due.days must be an integer, not \"x\"");
        assert_eq!(wrong(&["rows.1.n=1"]), "rows.1 is given, but not rows.0");
        assert_eq!(wrong(&["list=1", "list.0=1"]), "list.0 does not go with what is given before it");
        assert_eq!(wrong(&["due.date=a", "due.date=b"]), "due.date is given twice");
        assert_eq!(wrong(&["o..k=1"]), "\"o..k\" has a dot with no name beside it");
        assert!(wrong(&["list.10001=1"]).contains("does not go"));
        assert!(wrong(&["n"]).contains("key=value"));
        assert!(wrong(&["{n:1}"]).contains("no valid JSON"));
        let closed = Schema::new(Raw::constant(r#"{"properties":{"a":{},"b":{}},"additionalProperties":false}"#));
        let wrong = build(&["c=1".into()], Some(&closed)).unwrap_err();
        assert_eq!(wrong, "no member `c`; there are a, b; to send it all the same, write c:=1");
        let none = Schema::new(Raw::constant(r#"{"type":"object","additionalProperties":false}"#));
        let wrong = build(&["c=1".into()], Some(&none)).unwrap_err();
        assert_eq!(wrong, "no member `c`; there are none; to send it all the same, write c:=1");
        assert_eq!(build(&["c=1".into()], None).as_deref(), Ok(r#"{"c":"1"}"#));
    }
}
