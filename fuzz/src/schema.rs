//! Schemas and values of servers, beside a model over `serde_json` that knows three answers: yes, no, and unknown.

use std::cmp::Ordering;

use arbitrary::{Result, Unstructured};
use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio_host::schema::{IGNORED, SchemaLimits, check, same};
use serde_json::{Map, Value, json};

use crate::form::is_simple;

const STEPS: usize = 2_000;
/// The deepest nesting that the model follows; less than what the library does.
const DEPTH: u32 = 100;

/// Reads documents, or makes them, by the first byte.
pub(crate) fn run(data: &[u8]) -> Option<()> {
    let (choice, rest) = data.split_first()?;
    if choice & 1 == 0 {
        let (schema, value) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'\n')?)?;
        return compare(Raw::parse(schema).ok()?, Raw::parse(value).ok()?, usize::from(*choice));
    }
    let mut u = Unstructured::new(rest);
    let schema = make_schema(&mut u, 4).ok()?.to_string();
    let value = make_value(&mut u, 3).ok()?.to_string();
    let (schema, value) = (Raw::parse(schema.as_bytes()), Raw::parse(value.as_bytes()));
    compare(schema.expect("a schema"), value.expect("a value"), usize::from(*choice))
}

fn compare(schema: Raw<'_>, raw: Raw<'_>, few: usize) -> Option<()> {
    let limits = SchemaLimits::DEFAULT.steps(STEPS);
    let report = check(schema, raw, &limits);
    assert!(report.mismatches.len() <= limits.mismatches && report.ignored.iter().all(|name| IGNORED.contains(name)));
    let fewer = check(schema, raw, &limits.steps(few).mismatches(few % 4));
    assert!(fewer.mismatches.len() <= (few % 4).max(1));
    // The two readers may take another one of two members with one name, and differ in the last digits.
    (is_simple(schema) && is_simple(raw) && is_exact(schema) && is_exact(raw)).then_some(())?;
    let root: Value = serde_json::from_str(schema.as_str()).ok()?;
    let value: Value = serde_json::from_str(raw.as_str()).ok()?;
    assert_eq!(same(schema, raw), is_same(&root, &value), "{root} {value}");
    let mut model = Model { root: &root, left: 4 * STEPS as u32, is_over: false };
    let expected = model.fits(&root, &value, 0);
    if model.is_over {
        return None;
    }
    for report in [report, fewer] {
        match report.is_incomplete {
            false => assert_eq!(Some(report.fits()), expected, "{root} {value}: {report:?}"),
            // What was told is true.
            true => assert!(report.fits() || expected == Some(false), "{root} {value}: {report:?}"),
        }
    }
    Some(())
}

/// Returns whether each number is one that an `f64` tells from all others with as many digits.
fn is_exact(raw: Raw<'_>) -> bool {
    match raw.kind() {
        JsonKind::Object => raw.members().all(|(_, value)| is_exact(value)),
        JsonKind::Array => raw.items().all(is_exact),
        JsonKind::Number => {
            let (digits, power) = raw.as_str().split_once(['e', 'E']).unwrap_or((raw.as_str(), ""));
            let is_small = raw.as_str().parse().is_ok_and(|number: f64| number.abs() < 9e15);
            raw.is_integer() && raw.i64().is_some() || is_small && digits.len() <= 15 && power.len() <= 3
        }
        _ => true,
    }
}

struct Model<'v> {
    root: &'v Value,
    left: u32,
    /// Something was not looked at, because it would take too long.
    is_over: bool,
}

/// Yes, no, or unknown.
type Answer = Option<bool>;

fn not(one: Answer) -> Answer {
    one.map(|one| !one)
}

/// No if one is no, else unknown if one is unknown.
fn all(answers: impl IntoIterator<Item = Answer>) -> Answer {
    let mut so_far = Some(true);
    for one in answers {
        so_far = match (so_far, one) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), one) => one,
            (None, _) => None,
        };
    }
    so_far
}

fn any(answers: impl IntoIterator<Item = Answer>) -> Answer {
    not(all(answers.into_iter().map(not)))
}

impl<'v> Model<'v> {
    fn fits(&mut self, schema: &'v Value, value: &Value, depth: u32) -> Answer {
        self.is_over |= self.left == 0 || depth > DEPTH;
        if self.is_over {
            return None;
        }
        self.left -= 1;
        let schema = match schema {
            Value::Bool(answer) => return Some(*answer),
            Value::Object(schema) => schema,
            _ => return Some(true),
        };
        let depth = depth + 1;
        let mut answers = vec![Some(self.plain(schema, value))];
        if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
            // What the model does not decode.
            self.is_over |= pointer.contains('%');
            let target = pointer.strip_prefix('#').and_then(|place| self.root.pointer(place));
            answers.push(target.and_then(|target| self.fits(target, value, depth)));
        }
        match value {
            Value::Object(members) => answers.push(self.members(schema, members, depth)),
            Value::Array(items) => answers.push(self.items(schema, items, depth)),
            _ => {}
        }
        let list = |name: &str| schema.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        answers.extend(list("allOf").iter().map(|part| self.fits(part, value, depth)));
        if !list("anyOf").is_empty() {
            answers.push(any(list("anyOf").iter().map(|part| self.fits(part, value, depth))));
        }
        if !list("oneOf").is_empty() {
            let each: Vec<_> = list("oneOf").iter().map(|part| self.fits(part, value, depth)).collect();
            let count = |answer| each.iter().filter(|one| **one == answer).count();
            answers.push(match (count(Some(true)), count(None)) {
                (2.., _) | (0, 0) => Some(false),
                (1, 0) => Some(true),
                _ => None,
            });
        }
        if let Some(part) = schema.get("not") {
            answers.push(not(self.fits(part, value, depth)));
        }
        if let Some(condition) = schema.get("if") {
            let condition = self.fits(condition, value, depth);
            let mut branch = |name| schema.get(name).map_or(Some(true), |part| self.fits(part, value, depth));
            let (then, or) = (branch("then"), branch("else"));
            answers.push(any([all([condition, then]), all([not(condition), or])]));
        }
        all(answers)
    }

    fn members(&mut self, schema: &'v Map<String, Value>, have: &Map<String, Value>, depth: u32) -> Answer {
        let has = |name: &Value| name.as_str().is_none_or(|name| have.contains_key(name));
        let each = |names: &Value| names.as_array().is_none_or(|names| names.iter().all(has));
        let mut answers = vec![Some(schema.get("required").is_none_or(each))];
        for (name, needs) in schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            answers.push(Some(!have.contains_key(name) || each(needs)));
        }
        answers.push(Some(is_between(have.len(), schema, "minProperties", "maxProperties")));
        let more = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
        for (name, member) in have {
            let of = schema.get("properties").and_then(|properties| properties.as_object()?.get(name)).or(more);
            answers.extend(of.map(|of| self.fits(of, member, depth)));
        }
        all(answers)
    }

    fn items(&mut self, schema: &'v Map<String, Value>, items: &[Value], depth: u32) -> Answer {
        let mut answers = vec![Some(is_between(items.len(), schema, "minItems", "maxItems"))];
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            let of = prefix.get(at).or(schema.get("items"));
            answers.extend(of.map(|of| self.fits(of, item, depth)));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let twice = |at: usize| items[..at].iter().any(|other| is_same(other, &items[at]));
            answers.push(Some(!(0..items.len()).any(twice)));
        }
        if let Some(contains) = schema.get("contains") {
            let each: Vec<_> = items.iter().map(|item| self.fits(contains, item, depth)).collect();
            let least = schema.get("minContains").and_then(limit).unwrap_or(1);
            let most = schema.get("maxContains").and_then(limit).unwrap_or(u64::MAX);
            let yes = each.iter().filter(|one| **one == Some(true)).count() as u64;
            let possible = each.iter().filter(|one| **one != Some(false)).count() as u64;
            answers.push(match () {
                () if yes > most || possible < least => Some(false),
                () if yes >= least && possible <= most => Some(true),
                () => None,
            });
        }
        all(answers)
    }

    /// Checks what does not apply a schema.
    fn plain(&mut self, schema: &Map<String, Value>, value: &Value) -> bool {
        let mut fits = has_type(schema, value);
        if let Some(choices) = schema.get("enum") {
            fits &= choices.as_array().is_some_and(|choices| choices.iter().any(|choice| is_same(choice, value)));
        }
        fits &= schema.get("const").is_none_or(|constant| is_same(constant, value));
        if let Some(text) = value.as_str() {
            fits &= is_between(text.chars().count(), schema, "minLength", "maxLength");
        }
        type Holds = fn(Ordering) -> bool;
        let rules: [(&str, Holds); 4] = [
            ("minimum", Ordering::is_ge),
            ("maximum", Ordering::is_le),
            ("exclusiveMinimum", Ordering::is_gt),
            ("exclusiveMaximum", Ordering::is_lt),
        ];
        for (name, holds) in rules {
            fits &= schema.get(name).and_then(|bound| order(value, bound)).is_none_or(holds);
        }
        if let Some(step) = schema.get("multipleOf").filter(|step| step.is_number() && value.is_number()) {
            match (whole(value), whole(step)) {
                (Some(value), Some(step)) => fits &= step == 0 || value % step == 0,
                // The library may take an error of the division for the rest.
                _ => self.is_over = true,
            }
        }
        fits
    }
}

fn has_type(schema: &Map<String, Value>, value: &Value) -> bool {
    let is = |name: &str| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(_) => name == "number" || (name == "integer" && whole(value).is_some()),
    };
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.is_empty() || names.iter().any(|name| is(name))
}

/// Returns a number without a fraction.
fn whole(value: &Value) -> Option<i128> {
    let small =
        || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e30).map(|number| number as i128);
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).or_else(small)
}

/// Compares numbers.
fn order(one: &Value, two: &Value) -> Option<Ordering> {
    match (whole(one), whole(two)) {
        (Some(one), Some(two)) => Some(one.cmp(&two)),
        _ => one.as_f64()?.partial_cmp(&two.as_f64()?),
    }
}

fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(_), Value::Number(_)) => order(one, two) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len() && one.iter().all(|(name, one)| two.get(name).is_some_and(|two| is_same(one, two)))
        }
        _ => one == two,
    }
}

fn is_between(count: usize, schema: &Map<String, Value>, least: &str, most: &str) -> bool {
    let bound = |name: &str| schema.get(name).and_then(limit);
    let count = count as u64;
    bound(least).is_none_or(|least| count >= least) && bound(most).is_none_or(|most| count <= most)
}

fn limit(value: &Value) -> Option<u64> {
    whole(value)?.try_into().ok()
}

const NAMES: [&str; 5] = ["a", "b", "", "\u{e9}~/", "c d"];
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "-1", "1.0", "1.5", "0.1", "2e1", "9007199254740993", "9007199254740992", "-0"];

fn make_value(u: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    Ok(match u.int_in_range(0..=if depth == 0 { 4 } else { 8 })? {
        0 => Value::Null,
        1 => json!(u.arbitrary::<bool>()?),
        2 | 3 => serde_json::from_str(u.choose(&NUMBERS)?).expect("a number"),
        4 => json!(u.choose(&NAMES)?),
        5 | 6 => (0..u.int_in_range(0..=3)?).map(|_| make_value(u, depth - 1)).collect::<Result<Vec<_>>>()?.into(),
        _ => {
            let count = u.int_in_range(0..=3)?;
            let members = (0..count).map(|_| Ok(((*u.choose(&NAMES)?).to_owned(), make_value(u, depth - 1)?)));
            Value::Object(members.collect::<Result<_>>()?)
        }
    })
}

fn make_schema(u: &mut Unstructured<'_>, depth: u32) -> Result<Value> {
    if depth == 0 || u.ratio(1, 10)? {
        return Ok(json!(u.arbitrary::<bool>()?));
    }
    let mut schema = Map::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let (name, value) = make_keyword(u, depth - 1)?;
        schema.insert(name.to_owned(), value);
    }
    Ok(schema.into())
}

fn make_keyword(u: &mut Unstructured<'_>, depth: u32) -> Result<(&'static str, Value)> {
    const TYPES: [&str; 8] = ["null", "boolean", "integer", "number", "string", "array", "object", "x"];
    const POINTERS: [&str; 12] = [
        "#",
        "#/$defs/a",
        "#/$defs/\u{e9}~0~1",
        "#/properties/a",
        "#/items",
        "#/allOf/0",
        "#/anyOf/1",
        "#/allOf/00",
        "#/",
        "#a",
        "x",
        "#/$defs/c%20d",
    ];
    const OF_SCHEMA: [&str; 7] = ["additionalProperties", "items", "contains", "not", "if", "then", "else"];
    const OF_SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
    const OF_NAMES: [&str; 3] = ["properties", "$defs", "patternProperties"];
    const COUNTS: [&str; 8] = [
        "minProperties",
        "maxProperties",
        "minItems",
        "maxItems",
        "minContains",
        "maxContains",
        "minLength",
        "maxLength",
    ];
    const BOUNDS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    let names = |u: &mut Unstructured<'_>| -> Result<Value> {
        let count = u.int_in_range(0..=2)?;
        Ok((0..count).map(|_| Ok(json!(u.choose(&NAMES)?))).collect::<Result<Vec<_>>>()?.into())
    };
    let kind = u.int_in_range(0..=15)?;
    Ok(match kind {
        0 if u.arbitrary()? => {
            ("type", (0..2).map(|_| Ok(json!(u.choose(&TYPES)?))).collect::<Result<Vec<_>>>()?.into())
        }
        0 | 1 => ("type", json!(u.choose(&TYPES)?)),
        2 => ("enum", (0..3).map(|_| make_value(u, 1)).collect::<Result<Vec<_>>>()?.into()),
        3 => ("const", make_value(u, 2)?),
        4 | 5 => {
            let count = u.int_in_range(0..=3)?;
            let of = (0..count).map(|_| Ok(((*u.choose(&NAMES)?).to_owned(), make_schema(u, depth)?)));
            let of = of.collect::<Result<Map<_, _>>>()?;
            (*u.choose(&OF_NAMES)?, of.into())
        }
        6 => ("required", names(u)?),
        7 => ("dependentRequired", json!({(*u.choose(&NAMES)?): names(u)?})),
        8 | 9 => (*u.choose(&OF_SCHEMA)?, make_schema(u, depth)?),
        10 | 11 => {
            let count = u.int_in_range(0..=3)?;
            let of = (0..count).map(|_| make_schema(u, depth)).collect::<Result<Vec<_>>>()?;
            (*u.choose(&OF_SCHEMAS)?, of.into())
        }
        12 => (*u.choose(&COUNTS)?, serde_json::from_str(u.choose(&NUMBERS)?).expect("a number")),
        13 => (*u.choose(&BOUNDS)?, serde_json::from_str(u.choose(&NUMBERS)?).expect("a number")),
        14 => ("$ref", json!(u.choose(&POINTERS)?)),
        _ => match u.int_in_range(0..=3)? {
            0 => (*u.choose(&IGNORED)?, make_value(u, 1)?),
            1 => ("$schema", json!("https://json-schema.org/draft/2020-12/schema")),
            // Values that a keyword does not have.
            2 => (
                *u.choose(&[
                    "type",
                    "enum",
                    "required",
                    "properties",
                    "allOf",
                    "items",
                    "minItems",
                    "$ref",
                    "minimum",
                ])?,
                make_value(u, 1)?,
            ),
            _ => ("uniqueItems", json!(u.arbitrary::<bool>()?)),
        },
    })
}
