//! Arguments as the user types them: JSON, or `key=value` pairs with types from the schema.

use mcp_sansio::json::{JsonKind, Raw};

use crate::json::{Members, array, compact, quote};
use crate::schema::{Param, Schema};

/// Returns `true` if the arguments are pairs, whose types come from a schema.
pub(crate) fn are_pairs(args: &[String]) -> bool {
    !args.is_empty() && !is_object(args)
}

fn is_object(args: &[String]) -> bool {
    matches!(args, [one] if one.trim_start().starts_with('{'))
}

/// Builds a JSON object from the arguments. `schema` is the schema of the tool. Without one all values are strings,
/// as for prompts.
pub(crate) fn build(args: &[String], schema: Option<Schema<'_>>) -> Result<String, String> {
    if is_object(args) {
        let json = args.first().map_or("{}", |json| json.trim());
        return match Raw::parse(json.as_bytes()) {
            Ok(_) => Ok(json.into()),
            Err(fault) => Err(format!("the arguments are no valid JSON: {fault}")),
        };
    }
    let params = schema.map(|schema| schema.params()).unwrap_or_default();
    let mut values: Vec<(String, Vec<String>)> = Vec::new();
    for arg in args {
        let (key, value) = arg.split_once('=').ok_or_else(|| {
            format!("{arg:?} is no argument; write key=value, key:=JSON, or all of them as one JSON object")
        })?;
        let (key, json) = match key.strip_suffix(':') {
            Some(key) => (key, json(key, value)?),
            None => (key, typed(key, value, schema, &params)?),
        };
        match values.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(json),
            None => values.push((key.into(), vec![json])),
        }
    }
    let mut object = Members::default();
    for (key, mut given) in values {
        let value = match given.len() {
            1 => given.remove(0),
            _ if takes_many(&key, schema, &params) => array(&given.iter().map(|one| inside(one)).collect::<Vec<_>>()),
            _ => return Err(format!("{key} is given twice")),
        };
        object.add(&key, &value);
    }
    Ok(object.finish())
}

/// Returns the items of an array without its brackets, to join arrays that were given one after the other.
fn inside(json: &str) -> &str {
    json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or(json)
}

fn takes_many(key: &str, schema: Option<Schema<'_>>, params: &[Param<'_>]) -> bool {
    let param = params.iter().find(|param| param.name == key);
    schema.zip(param).is_some_and(|(schema, param)| schema.types(param.schema).iter().any(|kind| kind == "array"))
}

fn json(key: &str, value: &str) -> Result<String, String> {
    let raw = Raw::parse(value.as_bytes()).map_err(|fault| format!("{key}: no valid JSON: {fault}"))?;
    Ok(compact(raw))
}

fn typed(key: &str, value: &str, schema: Option<Schema<'_>>, params: &[Param<'_>]) -> Result<String, String> {
    let Some(schema) = schema else { return Ok(quote(value)) };
    let Some(param) = params.iter().find(|param| param.name == key) else {
        if schema.is_closed() {
            let names: Vec<_> = params.iter().map(|param| param.name.as_str()).collect();
            let meant = meant(key, &names);
            return Err(format!("there is no argument {key}{meant}; {}", listed("it takes", "it takes none", &names)));
        }
        return Ok(guess(value));
    };
    let types = schema.types(param.schema);
    let typed = if types.is_empty() { Some(guess(value)) } else { fit(value, &types, schema, param.schema) };
    let typed = typed.ok_or_else(|| format!("{key} must be {}, not {value:?}", article(&types.join(" or "))))?;
    check_choice(key, &typed, param.schema)?;
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
fn fit<'a>(value: &str, types: &[String], schema: Schema<'a>, about: Raw<'a>) -> Option<String> {
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
fn items<'a>(value: &str, schema: Schema<'a>, about: Raw<'a>) -> Option<String> {
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
            "mode":{"type":"string","enum":["fast","slow"]},"id":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}"#,
    );

    fn built(args: &[&str]) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
        build(&args, Some(Schema::new(SCHEMA)))
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
            ("new=1", r#"{"new":1}"#),
        ] {
            assert_eq!(built(&[arg]).as_deref(), Ok(json), "{arg}");
        }
        assert_eq!(built(&[]).as_deref(), Ok("{}"));
        assert_eq!(built(&["n=1", "words=a", "words=b,c"]).as_deref(), Ok(r#"{"n":1,"words":["a","b","c"]}"#));
        assert_eq!(built(&[" {\"n\": 1} "]).as_deref(), Ok("{\"n\": 1}"));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let wrong = |args: &[&str]| built(args).unwrap_err();
        assert_eq!(wrong(&["n=a"]), "n must be an integer, not \"a\"");
        assert_eq!(wrong(&["n=1.5"]), "n must be an integer, not \"1.5\"");
        assert_eq!(wrong(&["n=1", "n=2"]), "n is given twice");
        assert_eq!(wrong(&["mode=fats"]), "mode is one of fast, slow; to send something else, write mode:=\"fats\"");
        assert!(wrong(&["n"]).contains("key=value"));
        assert!(wrong(&["{n:1}"]).contains("no valid JSON"));
        let closed = Schema::new(Raw::constant(r#"{"properties":{"a":{},"b":{}},"additionalProperties":false}"#));
        let wrong = build(&["c=1".into()], Some(closed)).unwrap_err();
        assert_eq!(wrong, "there is no argument c; it takes a, b");
        assert_eq!(build(&["c=1".into()], None).as_deref(), Ok(r#"{"c":"1"}"#));
    }
}
