//! Checks a JSON value against a JSON Schema, as far as servers use it: the structured content of a tool against its
//! output schema.
//!
//! ```
//! use mcp_sansio::json::Raw;
//! use mcp_sansio_host::schema::{SchemaLimits, check};
//!
//! let schema = Raw::constant(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
//! let report = check(schema, Raw::constant(r#"{"n":"7"}"#), &SchemaLimits::DEFAULT);
//! assert_eq!(report.mismatches[0].to_string(), "n: a string, expected integer");
//! assert!(check(schema, Raw::constant(r#"{"n":7}"#), &SchemaLimits::DEFAULT).fits());
//! ```
//!
//! The dialect is JSON Schema 2020-12. A schema whose `$schema` names another one is compared by the same rules, and
//! [`SchemaReport::dialect`] names it. Nothing is fetched.
//!
//! These keywords are looked at: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `minProperties`,
//! `maxProperties`, `dependentRequired`, `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems`, `contains`, `minLength`,
//! `maxLength`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `allOf`, `anyOf`, `oneOf`, `not`, `if`,
//! `then`, `else`, and `$ref` to a place in the same document. The others that may refuse a value ([`IGNORED`]) are not:
//! [`SchemaReport::ignored`] names those that the schema has. There are no regular expressions here.
//!
//! Numbers are compared as they are written, by their first 19 digits. What is read of a schema and a value has a limit,
//! [`SchemaLimits::steps`]: both may come from a server that means harm.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mcp_sansio::json::{JsonKind, Raw};

/// The dialect of [`check`].
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that may refuse a value, and that [`check`] does not look at.
pub const IGNORED: [&str; 12] = [
    "$dynamicRef",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "dependentSchemas",
    "format",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The keywords that [`check`] looks at.
const KEYWORDS: [&str; 33] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependentRequired",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "then",
    "type",
    "uniqueItems",
];

/// The bytes that a step of [`SchemaLimits::steps`] reads.
const STEP: usize = 512;

mcp_sansio::options! {
    /// Limits of [`check`]. A schema may come from a server that means harm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SchemaLimits {
        /// Most mismatches in a report, at least 1. Default: 8.
        mismatches: usize = 8,
        /// Most steps. An application of a schema to a value takes one, and so does a comparison of two values, and one more for
        /// each 512 bytes that both have. Default: 100,000.
        steps: usize = 100_000,
        /// Deepest nesting of applications, references included. Default: 128.
        depth: usize = 128,
    }
}

/// A place where a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaMismatch {
    /// The place in the value, like `list[1].kind`; empty for the whole value.
    pub path: String,
    /// The value that is there, and the value that was expected.
    pub reason: String,
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

/// The result of [`check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaReport {
    /// The places where the value does not fit, at most [`SchemaLimits::mismatches`].
    pub mismatches: Vec<SchemaMismatch>,
    /// Keywords that were met and not looked at, each once, sorted. See [`IGNORED`].
    pub ignored: Vec<&'static str>,
    /// The `$schema` of the schema, if it is not JSON Schema 2020-12.
    pub dialect: Option<String>,
    /// A limit was reached, a `$ref` leads out of the document, or the schema is of another [dialect](Self::dialect): not
    /// everything was checked.
    pub is_incomplete: bool,
}

impl SchemaReport {
    /// Returns whether no mismatch was found.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.mismatches.is_empty()
    }
}

/// Checks `value` against `schema`. Both are whole documents.
#[must_use]
pub fn check(schema: Raw<'_>, value: Raw<'_>, limits: &SchemaLimits) -> SchemaReport {
    let limits = limits.mismatches(limits.mismatches.max(1));
    let mut check = Check {
        root: schema,
        limits,
        steps: 0,
        depth: 0,
        ignored: BTreeSet::new(),
        is_incomplete: false,
        targets: BTreeMap::new(),
    };
    let mut mismatches = Vec::new();
    check.apply(schema, value, &mut String::new(), &mut mismatches);
    mismatches.truncate(limits.mismatches);
    let dialect = dialect(schema);
    let is_incomplete = check.is_incomplete || dialect.is_some();
    SchemaReport { mismatches, ignored: check.ignored.into_iter().collect(), dialect, is_incomplete }
}

/// Compares two values as JSON Schema does: 1 is 1.0, and members have no order. Of members with one name, the last one counts.
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio_host::schema::same;
/// assert!(same(Raw::constant(r#"{"a":1,"b":[]}"#), Raw::constant(r#"{"b":[],"a":1.0}"#)));
/// assert!(!same(Raw::constant("[1,2]"), Raw::constant("[2,1]")));
/// ```
#[must_use]
pub fn same(a: Raw<'_>, b: Raw<'_>) -> bool {
    same_within(a, b, &mut |_| true)
}

/// Compares two values while `step` allows it, which takes the bytes that are read.
fn same_within(a: Raw<'_>, b: Raw<'_>, step: &mut dyn FnMut(usize) -> bool) -> bool {
    if !step(a.as_bytes().len().saturating_add(b.as_bytes().len())) || a.kind() != b.kind() {
        return false;
    }
    match a.kind() {
        JsonKind::String => a.text().zip(b.text()).is_some_and(|(a, b)| a.same(&b)),
        JsonKind::Number => a.compare(b) == Some(Ordering::Equal),
        JsonKind::Bool | JsonKind::Null => a.as_bytes() == b.as_bytes(),
        JsonKind::Array => {
            a.items().count() == b.items().count() && a.items().zip(b.items()).all(|(a, b)| same_within(a, b, step))
        }
        JsonKind::Object => {
            let (a, b): (BTreeMap<_, _>, BTreeMap<_, _>) = (members(a).collect(), members(b).collect());
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_within(*a, *b, step)))
        }
    }
}

/// Returns `$schema` if it names another dialect than [`DIALECT`].
fn dialect(schema: Raw<'_>) -> Option<String> {
    let named = schema.get("$schema")?;
    let named = named.text().map_or_else(|| named.to_string(), |text| text.to_string());
    // An empty fragment names the same.
    (named.strip_suffix('#').unwrap_or(&named) != DIALECT).then_some(named)
}

/// The keywords of a schema, read in one pass: it may be long, and is applied to many values.
struct Keywords<'s>([Option<Raw<'s>>; KEYWORDS.len()]);

impl<'s> Keywords<'s> {
    /// Reads a schema; notes its keywords of [`IGNORED`].
    fn read(schema: Raw<'s>, ignored: &mut BTreeSet<&'static str>) -> Self {
        let mut values = [None; KEYWORDS.len()];
        for (key, value) in schema.members() {
            if let Some((_, place)) = KEYWORDS.iter().zip(&mut values).find(|(name, _)| key.eq_str(name)) {
                *place = Some(value);
            }
            ignored.extend(IGNORED.iter().filter(|name| key.eq_str(name)));
        }
        Keywords(values)
    }

    fn get(&self, name: &str) -> Option<Raw<'s>> {
        KEYWORDS.iter().zip(self.0).find(|(keyword, _)| **keyword == name).and_then(|(_, value)| value)
    }

    /// Returns the limit that a keyword sets.
    fn bound(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|bound| bound.u64())
    }

    /// Returns the items of a keyword.
    fn list(&self, name: &str) -> impl Iterator<Item = Raw<'s>> + use<'s> {
        self.get(name).into_iter().flat_map(|items| items.items())
    }

    /// Returns the members of a keyword.
    fn members(&self, name: &str) -> impl Iterator<Item = (String, Raw<'s>)> + use<'s> {
        self.get(name).into_iter().flat_map(members)
    }
}

/// Returns the texts of an array.
fn texts(list: Raw<'_>) -> impl Iterator<Item = String> {
    list.items().filter_map(|name| name.text()).map(|name| name.to_string())
}

/// Returns the members of an object, with their names decoded.
fn members(object: Raw<'_>) -> impl Iterator<Item = (String, Raw<'_>)> {
    object.members().map(|(name, value)| (name.to_string(), value))
}

struct Check<'s> {
    root: Raw<'s>,
    limits: SchemaLimits,
    steps: usize,
    /// The number of applications that have begun and not ended.
    depth: usize,
    ignored: BTreeSet<&'static str>,
    is_incomplete: bool,
    /// The targets of references, by their text: to find one takes a pass over the document.
    targets: BTreeMap<&'s [u8], Option<Raw<'s>>>,
}

type Mismatches = Vec<SchemaMismatch>;

impl<'s> Check<'s> {
    /// Counts one step, and one more for each [`STEP`] bytes that it reads. `false` at the limit.
    fn step(&mut self, bytes: usize) -> bool {
        self.steps = self.steps.saturating_add(1 + bytes / STEP);
        let goes_on = self.has_steps();
        self.is_incomplete |= !goes_on;
        goes_on
    }

    /// Returns whether all steps until now were taken.
    const fn has_steps(&self) -> bool {
        self.steps <= self.limits.steps
    }

    /// Returns whether there are as many mismatches as are reported.
    const fn is_full(&self, found: &Mismatches) -> bool {
        found.len() >= self.limits.mismatches
    }

    fn apply(&mut self, schema: Raw<'s>, value: Raw<'_>, path: &mut String, found: &mut Mismatches) {
        if self.is_full(found) || !self.step(schema.as_bytes().len().saturating_add(value.as_bytes().len())) {
            return;
        }
        if self.depth > self.limits.depth {
            self.is_incomplete = true;
            return;
        }
        self.depth += 1;
        self.apply_keywords(schema, value, path, found);
        self.depth -= 1;
    }

    fn apply_keywords(&mut self, schema: Raw<'s>, value: Raw<'_>, path: &mut String, found: &mut Mismatches) {
        if schema.bool() == Some(false) {
            return tell(found, path, format!("{} where the schema allows none", kind_of(value)));
        }
        let schema = Keywords::read(schema, &mut self.ignored);
        if let Some(pointer) = schema.get("$ref").and_then(|pointer| pointer.text()) {
            let known = self.targets.get(pointer.raw()).copied();
            let place = known.unwrap_or_else(|| {
                let place = target_within(self.root, &pointer.to_string(), &mut |bytes| self.step(bytes));
                self.targets.insert(pointer.raw(), place);
                place
            });
            match place {
                Some(target) => self.apply(target, value, path, found),
                None => self.is_incomplete = true,
            }
        }
        if !types(&schema, value, path, found) {
            return;
        }
        self.values(&schema, value, path, found);
        match value.kind() {
            JsonKind::Object => self.object(&schema, value, path, found),
            JsonKind::Array => self.array(&schema, value, path, found),
            JsonKind::String => text(&schema, value, path, found),
            JsonKind::Number => number(&schema, value, path, found),
            JsonKind::Bool | JsonKind::Null => {}
        }
        self.combined(&schema, value, path, found);
    }

    /// `enum` and `const`.
    fn values(&mut self, schema: &Keywords<'s>, value: Raw<'_>, path: &str, found: &mut Mismatches) {
        if let Some(choices) = schema.get("enum") {
            let one = choices.items().any(|choice| self.same(choice, value));
            if !one && self.has_steps() {
                tell(found, path, format!("{}, expected one of {}", short(value), choices_of(choices)));
            }
        }
        if let Some(constant) = schema.get("const")
            && !self.same(constant, value)
            && self.has_steps()
        {
            tell(found, path, format!("{}, expected {}", short(value), short(constant)));
        }
    }

    fn same(&mut self, a: Raw<'_>, b: Raw<'_>) -> bool {
        same_within(a, b, &mut |bytes| self.step(bytes))
    }

    fn object(&mut self, schema: &Keywords<'s>, value: Raw<'_>, path: &mut String, found: &mut Mismatches) {
        let have: BTreeMap<String, Raw<'_>> = members(value).collect();
        self.required(schema, &have, path, found);
        count(schema, "minProperties", "maxProperties", have.len(), "members", path, found);
        let properties: BTreeMap<String, Raw<'s>> = schema.members("properties").collect();
        // A pattern may allow a name that `properties` does not have.
        let more = schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
        for (name, member) in members(value) {
            let of = properties.get(&name).copied();
            if self.is_full(found) {
                return;
            } else if of.is_none() && more.is_some_and(|more| more.bool() == Some(false)) {
                let known = names_of(schema.members("properties").map(|(name, _)| name));
                tell(found, path, format!("unknown member `{name}`, expected {known}"));
            } else if let Some(schema) = of.or(more) {
                let end = path.len();
                path.push_str(if end == 0 { "" } else { "." });
                path.push_str(&name);
                self.apply(schema, member, path, found);
                path.truncate(end);
            }
        }
    }

    /// `required` and `dependentRequired`.
    fn required(&self, schema: &Keywords<'_>, have: &BTreeMap<String, Raw<'_>>, path: &str, found: &mut Mismatches) {
        for name in schema.get("required").into_iter().flat_map(texts).filter(|name| !have.contains_key(name)) {
            if self.is_full(found) {
                return;
            }
            tell(found, path, format!("no member `{name}`, which is required"));
        }
        for (name, needs) in schema.members("dependentRequired").filter(|(name, _)| have.contains_key(name)) {
            for other in texts(needs).filter(|other| !have.contains_key(other)) {
                if self.is_full(found) {
                    return;
                }
                tell(found, path, format!("no member `{other}`, which is required with `{name}`"));
            }
        }
    }

    fn array(&mut self, schema: &Keywords<'s>, value: Raw<'_>, path: &mut String, found: &mut Mismatches) {
        count(schema, "minItems", "maxItems", value.items().count(), "items", path, found);
        let mut prefix = schema.list("prefixItems");
        for (i, item) in value.items().enumerate() {
            let Some(schema) = prefix.next().or_else(|| schema.get("items")) else { break };
            let end = path.len();
            path.push_str(&format!("[{i}]"));
            self.apply(schema, item, path, found);
            path.truncate(end);
        }
        if schema.get("uniqueItems").and_then(|unique| unique.bool()) == Some(true) {
            self.unique(value, path, found);
        }
        if let Some(contains) = schema.get("contains") {
            let hits = value.items().filter(|item| self.fits(contains, *item)).count();
            if !self.is_incomplete {
                let bounds = (schema.bound("minContains").or(Some(1)), schema.bound("maxContains"));
                between(hits, bounds, "items are as `contains` says", path, found);
            }
        }
    }

    /// `uniqueItems`.
    fn unique(&mut self, value: Raw<'_>, path: &str, found: &mut Mismatches) {
        let items: Vec<Raw<'_>> = value.items().collect();
        for (second, item) in items.iter().enumerate() {
            if !self.has_steps() {
                return;
            }
            if let Some(first) = items.iter().take(second).position(|other| self.same(*other, *item)) {
                return tell(found, path, format!("items {first} and {second} are the same, expected all to differ"));
            }
        }
    }

    /// Returns whether a value fits a schema of a combination.
    fn fits(&mut self, schema: Raw<'s>, value: Raw<'_>) -> bool {
        let mut found = Vec::new();
        self.apply(schema, value, &mut String::new(), &mut found);
        found.is_empty()
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`, `if`.
    fn combined(&mut self, schema: &Keywords<'s>, value: Raw<'_>, path: &mut String, found: &mut Mismatches) {
        for part in schema.list("allOf") {
            self.apply(part, value, path, found);
        }
        for key in ["anyOf", "oneOf"] {
            let options: Vec<Raw<'s>> = schema.list(key).collect();
            let fit = options.iter().filter(|option| self.fits(**option, value)).count();
            if self.is_incomplete || options.is_empty() {
                continue;
            }
            let has_type = |option: &&Raw<'s>| {
                types(&Keywords::read(**option, &mut BTreeSet::new()), value, path, &mut Vec::new())
            };
            match fit {
                // The option of the same type says best what is wrong.
                0 => match options.iter().find(has_type) {
                    Some(option) => self.apply(*option, value, path, found),
                    None => tell(found, path, format!("{} fits none of `{key}`", kind_of(value))),
                },
                2.. if key == "oneOf" => tell(found, path, format!("fits {fit} schemas of `oneOf`, expected one")),
                _ => {}
            }
        }
        if let Some(not) = schema.get("not")
            && self.fits(not, value)
            && !self.is_incomplete
        {
            tell(found, path, format!("{} is what `not` excludes", short(value)));
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.fits(condition, value) { "then" } else { "else" };
            if let Some(branch) = schema.get(branch).filter(|_| !self.is_incomplete) {
                self.apply(branch, value, path, found);
            }
        }
    }
}

/// Follows the `$ref` of a schema into its own document, `root`. `None` if it does not lead to a value there: it names another
/// document, or an anchor.
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio_host::schema::target;
/// let root = Raw::constant(r#"{"$defs":{"a b":{"anyOf":[{"type":"null"}]}}}"#);
/// assert_eq!(target(root, "#/$defs/a%20b/anyOf/0").map(|found| found.to_string()).as_deref(), Some(r#"{"type":"null"}"#));
/// assert!(target(root, "https://example.com/schema").is_none());
/// ```
#[must_use]
pub fn target<'s>(root: Raw<'s>, reference: &str) -> Option<Raw<'s>> {
    target_within(root, reference, &mut |_| true)
}

/// Follows a reference while `step` allows it, which takes the bytes that are read.
fn target_within<'s>(root: Raw<'s>, reference: &str, step: &mut dyn FnMut(usize) -> bool) -> Option<Raw<'s>> {
    let pointer = decoded(reference.strip_prefix('#')?)?;
    let mut at = root;
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        step(at.as_bytes().len()).then_some(())?;
        at = match at.kind() {
            JsonKind::Array => at.items().nth(index_of(&key)?)?,
            _ => at.get(&key)?,
        };
    }
    (pointer.is_empty() || pointer.starts_with('/')).then_some(at)
}

/// Reads a place in an array: digits without zeros before them.
fn index_of(key: &str) -> Option<usize> {
    key.parse().ok().filter(|index: &usize| index.to_string() == key)
}

/// Decodes `%41` in a fragment; a `%` without two hexadecimal digits stays. `None` if the result is not UTF-8.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = byte.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    String::from_utf8(bytes).ok()
}

fn tell(found: &mut Mismatches, path: &str, reason: String) {
    found.push(SchemaMismatch { path: path.into(), reason });
}

/// `type`. Returns `false` if the value has another one.
fn types(schema: &Keywords<'_>, value: Raw<'_>, path: &str, found: &mut Mismatches) -> bool {
    let Some(named) = schema.get("type") else { return true };
    let names: Vec<String> = named.text().map(|name| name.to_string()).into_iter().chain(texts(named)).collect();
    let is = |name: &String| match (name.as_str(), value.kind()) {
        ("integer", JsonKind::Number) => value.is_whole(),
        (name, kind) => name == name_of(kind),
    };
    if names.is_empty() || names.iter().any(is) {
        return true;
    }
    let shown = names.get(..NAMES).unwrap_or(&names).join(" or ");
    tell(found, path, format!("{}, expected {shown}", kind_of(value)));
    false
}

fn text(schema: &Keywords<'_>, value: Raw<'_>, path: &str, found: &mut Mismatches) {
    if schema.get("minLength").is_some() || schema.get("maxLength").is_some() {
        let length = value.text().map_or(0, |text| text.chars().count());
        count(schema, "minLength", "maxLength", length, "characters", path, found);
    }
}

fn number(schema: &Keywords<'_>, value: Raw<'_>, path: &str, found: &mut Mismatches) {
    type Holds = fn(Ordering) -> bool;
    let rules: [(&str, &str, Holds); 4] = [
        ("minimum", "at least", Ordering::is_ge),
        ("maximum", "at most", Ordering::is_le),
        ("exclusiveMinimum", "more than", Ordering::is_gt),
        ("exclusiveMaximum", "less than", Ordering::is_lt),
    ];
    for (key, words, holds) in rules {
        if let Some(bound) = schema.get(key)
            && value.compare(bound).is_some_and(|order| !holds(order))
        {
            tell(found, path, format!("{}, expected {words} {}", short(value), short(bound)));
        }
    }
    if let Some(step) = schema.get("multipleOf").filter(|step| step.kind() == JsonKind::Number) {
        let is_multiple = match value.i64().zip(step.i64()) {
            Some((value, step)) => value.checked_rem(step).is_none_or(|rest| rest == 0),
            None => {
                let parts = as_f64(value) / as_f64(step);
                // 0.3 is a multiple of 0.1, though their quotient is not whole in binary.
                !parts.is_finite() || (parts - parts.round()).abs() <= 1e-9 * parts.abs().max(1.0)
            }
        };
        if !is_multiple {
            tell(found, path, format!("{}, expected a multiple of {}", short(value), short(step)));
        }
    }
}

/// Compares a number with the limits of two keywords.
fn count(schema: &Keywords<'_>, least: &str, most: &str, have: usize, unit: &str, path: &str, found: &mut Mismatches) {
    between(have, (schema.bound(least), schema.bound(most)), unit, path, found);
}

/// Notes a mismatch if `have` is less than the first or more than the second of `bounds`.
fn between(have: usize, bounds: (Option<u64>, Option<u64>), unit: &str, path: &str, found: &mut Mismatches) {
    let (least, most) = bounds;
    if let Some(least) = least.filter(|least| (have as u64) < *least) {
        tell(found, path, format!("{have} {unit}, expected at least {least}"));
    }
    if let Some(most) = most.filter(|most| have as u64 > *most) {
        tell(found, path, format!("{have} {unit}, expected at most {most}"));
    }
}

fn as_f64(value: Raw<'_>) -> f64 {
    value.as_str().parse().unwrap_or(f64::NAN)
}

const fn name_of(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "object",
        JsonKind::Array => "array",
        JsonKind::String => "string",
        JsonKind::Number => "number",
        JsonKind::Bool => "boolean",
        JsonKind::Null => "null",
    }
}

fn kind_of(value: Raw<'_>) -> &'static str {
    match value.kind() {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "a string",
        JsonKind::Number if !value.is_whole() => "a number with a fraction",
        JsonKind::Number => "a number",
        JsonKind::Bool => "a boolean",
        JsonKind::Null => "null",
    }
}

/// The longest value that is shown whole, in bytes.
const SHORT: usize = 60;

/// Shows a value, or its kind if it is long.
fn short(value: Raw<'_>) -> String {
    if value.as_bytes().len() <= SHORT { value.as_str().to_owned() } else { kind_of(value).to_owned() }
}

/// The most names in a message.
const NAMES: usize = 12;

fn names_of(mut names: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = names.by_ref().take(NAMES).map(|name| format!("`{name}`")).collect();
    let left = names.count();
    if left > 0 {
        shown.push(format!("{left} more"));
    }
    if shown.is_empty() { "no members".into() } else { format!("one of {}", shown.join(", ")) }
}

fn choices_of(choices: Raw<'_>) -> String {
    let mut shown: Vec<String> = choices.items().take(NAMES).map(short).collect();
    let left = choices.items().skip(NAMES).count();
    if left > 0 {
        shown.push(format!("{left} more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn told(schema: &str, value: &str) -> Vec<String> {
        let report = check(raw(schema), raw(value), &SchemaLimits::DEFAULT);
        assert!(!report.is_incomplete, "{schema} {value}");
        report.mismatches.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_keyword_refuses_and_takes() {
        for (schema, good, bad, words) in [
            (r#"{"type":"integer"}"#, "2.0", "2.5", "a number with a fraction, expected integer"),
            (r#"{"type":["string","null"]}"#, "null", "1", "a number, expected string or null"),
            (r#"{"enum":["a",1]}"#, "1.0", "\"b\"", "\"b\", expected one of \"a\", 1"),
            (r#"{"const":{"a":1,"b":[]}}"#, r#"{"b":[],"a":1}"#, "{}", "{}, expected {\"a\":1,\"b\":[]}"),
            (r#"{"required":["a"]}"#, r#"{"\u0061":1}"#, "{}", "no member `a`, which is required"),
            (
                r#"{"dependentRequired":{"a":["b"]}}"#,
                r#"{"b":1}"#,
                r#"{"a":1}"#,
                "no member `b`, which is required with `a`",
            ),
            (
                r#"{"properties":{"a":{}},"additionalProperties":false}"#,
                r#"{"a":1}"#,
                r#"{"b":1}"#,
                "unknown member `b`, expected one of `a`",
            ),
            (
                r#"{"properties":{"a":{"items":{"properties":{"b":{"type":"string"}}}}}}"#,
                r#"{"a":[{"b":""}]}"#,
                r#"{"a":[{},{"b":1}]}"#,
                "a[1].b: a number, expected string",
            ),
            (
                r#"{"additionalProperties":{"type":"null"}}"#,
                r#"{"a":null}"#,
                r#"{"a":1}"#,
                "a: a number, expected null",
            ),
            (r#"{"minProperties":1}"#, r#"{"a":1}"#, "{}", "0 members, expected at least 1"),
            (r#"{"maxProperties":0}"#, "{}", r#"{"a":1}"#, "1 members, expected at most 0"),
            (
                r#"{"prefixItems":[{"type":"null"}],"items":{"type":"string"}}"#,
                r#"[null,""]"#,
                "[null,1]",
                "[1]: a number, expected string",
            ),
            (r#"{"minItems":1}"#, "[1]", "[]", "0 items, expected at least 1"),
            (r#"{"maxItems":1}"#, "[1]", "[1,2]", "2 items, expected at most 1"),
            (r#"{"uniqueItems":true}"#, "[1,2]", "[1,2,1.0]", "items 0 and 2 are the same, expected all to differ"),
            (r#"{"contains":{"const":1}}"#, "[2,1]", "[2]", "0 items are as `contains` says, expected at least 1"),
            (r#"{"minLength":2}"#, r#""äö""#, r#""ä""#, "1 characters, expected at least 2"),
            (r#"{"maxLength":1}"#, r#""\u00e4""#, r#""ab""#, "2 characters, expected at most 1"),
            (r#"{"minimum":1}"#, "1", "0", "0, expected at least 1"),
            (r#"{"maximum":1}"#, "1", "1.5", "1.5, expected at most 1"),
            (r#"{"exclusiveMinimum":1}"#, "1.1", "1", "1, expected more than 1"),
            (r#"{"exclusiveMaximum":1}"#, "0", "1", "1, expected less than 1"),
            (r#"{"multipleOf":0.1}"#, "0.3", "0.35", "0.35, expected a multiple of 0.1"),
            (r#"{"allOf":[{"minimum":1},{"maximum":2}]}"#, "2", "3", "3, expected at most 2"),
            (r#"{"anyOf":[{"type":"string"},{"type":"number","minimum":1}]}"#, "1", "0", "0, expected at least 1"),
            (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "null", "0", "a number fits none of `anyOf`"),
            (r#"{"oneOf":[{"minimum":1},{"maximum":5}]}"#, "6", "3", "fits 2 schemas of `oneOf`, expected one"),
            (r#"{"not":{"const":1}}"#, "2", "1", "1 is what `not` excludes"),
            (
                r#"{"if":{"type":"number"},"then":{"minimum":1},"else":{"type":"string"}}"#,
                "\"\"",
                "0",
                "0, expected at least 1",
            ),
            (
                r##"{"$defs":{"a/b":{"type":"null"}},"properties":{"x":{"$ref":"#/$defs/a~1b"}}}"##,
                r#"{"x":null}"#,
                r#"{"x":1}"#,
                "x: a number, expected null",
            ),
            (
                r##"{"properties":{"next":{"$ref":"#"}},"required":["n"]}"##,
                r#"{"n":1,"next":{"n":2}}"#,
                r#"{"n":1,"next":{}}"#,
                "next: no member `n`, which is required",
            ),
            (r#"{"properties":{"a":false}}"#, "{}", r#"{"a":1}"#, "a: a number where the schema allows none"),
        ] {
            assert_eq!(told(schema, good), [""; 0], "{schema} {good}");
            assert_eq!(told(schema, bad), [words], "{schema} {bad}");
        }
        assert_eq!(told("true", "1"), [""; 0]);
    }

    #[test]
    fn what_is_not_looked_at_is_named() {
        let schema = r#"{"properties":{"a":{"pattern":"^x","format":"date"}},"patternProperties":{"^b":{}},"additionalProperties":false}"#;
        let report = check(raw(schema), raw(r#"{"a":"y","b":1}"#), &SchemaLimits::DEFAULT);
        assert!(report.fits() && !report.is_incomplete, "{report:?}");
        assert_eq!(report.ignored, ["format", "pattern", "patternProperties"]);
    }

    /// The way to a place behind 64 KiB takes 128 steps, the first time.
    #[test]
    fn references_are_followed_once() {
        let schema = format!(
            r##"{{"items":{{"$ref":"#/$defs/n"}},"$defs":{{"far":{{"title":"{}"}},"n":{{"type":"integer"}}}}}}"##,
            "x".repeat(64 << 10)
        );
        let value = format!("[{}\"a\"]", "1,".repeat(3_000));
        let (schema, value) = (Raw::parse(schema.as_bytes()).unwrap(), Raw::parse(value.as_bytes()).unwrap());
        let report = check(schema, value, &SchemaLimits::DEFAULT.steps(20_000));
        assert!(!report.is_incomplete);
        assert_eq!(report.mismatches.len(), 1);
        assert_eq!(report.mismatches[0].path, "[3000]");
    }

    // spec: B058 B060
    #[test]
    fn references_out_of_the_document_are_reported() {
        for reference in ["http://x/y", "y", "#y", "#/$defs/y", "#/allOf/00", "#/allOf/+0", "#/allOf/1", "#/%C3"] {
            let schema = format!(r#"{{"properties":{{"a":{{"$ref":"{reference}"}}}},"allOf":[true]}}"#);
            let report = check(raw(&schema), raw(r#"{"a":1}"#), &SchemaLimits::DEFAULT);
            assert!(report.fits() && report.is_incomplete, "{reference}: {report:?}");
        }
    }

    // spec: B038
    #[test]
    fn another_dialect_is_reported() {
        let dialect = |dialect: &str| {
            let schema = format!(r#"{{{dialect}"type":"string"}}"#);
            let report = check(raw(&schema), raw("1"), &SchemaLimits::DEFAULT);
            assert_eq!(report.mismatches.len(), 1, "{dialect}");
            assert_eq!(report.is_incomplete, report.dialect.is_some(), "{dialect}");
            report.dialect
        };
        assert_eq!(dialect(""), None);
        assert_eq!(dialect(r#""$schema":"https://json-schema.org/draft/2020-12/schema","#), None);
        assert_eq!(dialect(r#""$schema":"https:\/\/json-schema.org/draft/2020-12/schema#","#), None);
        for other in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", ""] {
            assert_eq!(dialect(&format!(r#""$schema":"{other}","#)).as_deref(), Some(other));
        }
        assert_eq!(dialect(r#""$schema":7,"#).as_deref(), Some("7"));
    }

    // spec: B005
    #[test]
    fn hostile_schemas_end() {
        let endless = r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##;
        let report = check(raw(endless), raw("1"), &SchemaLimits::DEFAULT);
        assert!(report.is_incomplete, "{report:?}");
        let many = format!("[{}1]", "1,".repeat(5_000));
        let report =
            check(raw(r#"{"uniqueItems":true,"items":{"type":"string"}}"#), raw(&many), &SchemaLimits::DEFAULT);
        assert_eq!(report.mismatches.len(), 8);
        let limits = SchemaLimits::DEFAULT.steps(3).mismatches(1);
        let report = check(raw(r#"{"items":{"type":"string"}}"#), raw("[1,2,3,4]"), &limits);
        assert_eq!((report.mismatches.len(), report.is_incomplete), (1, false));
        assert!(check(raw(r#"{"items":{}}"#), raw("[1,2,3,4]"), &limits).is_incomplete);
        let (two, three) = (r#"{"items":{"type":"string"}}"#, r#"{"items":{"items":{}}}"#);
        let limits = SchemaLimits { depth: 1, ..SchemaLimits::DEFAULT };
        assert!(!check(raw(two), raw("[[1]]"), &limits).is_incomplete);
        assert!(check(raw(three), raw("[[1]]"), &limits).is_incomplete);
    }

    /// Takes no more than its steps for a schema that is long for each of many values, for many names, and for values that must differ.
    #[test]
    fn long_schemas_and_values_end() {
        let many = |item: &dyn Fn(u32) -> String, count: u32| (0..count).map(item).collect::<Vec<_>>().join(",");
        let comment = "x".repeat(1 << 20);
        let values = format!("[{}]", many(&|_| "[]".to_owned(), 100_000));
        for pointer in ["#".to_owned(), format!("#{}", "/items".repeat(9))] {
            let schema = format!(r#"{{"$comment":"{comment}","items":{{"$ref":"{pointer}"}}}}"#);
            assert!(check(raw(&schema), raw(&values), &SchemaLimits::DEFAULT).is_incomplete);
        }
        let numbers = format!("[{}]", many(&|n| n.to_string(), 200_000));
        let report = check(raw(r#"{"uniqueItems":true}"#), raw(&numbers), &SchemaLimits::DEFAULT);
        assert!(report.fits() && report.is_incomplete);
        // Each name is looked up once.
        let names = many(&|n| format!("\"{n}\""), 100_000);
        let members = many(&|n| format!("\"{n}\":{{}}"), 100_000);
        let schema = format!(
            r#"{{"required":[{names}],"dependentRequired":{{"0":[{names}]}},"properties":{{{members}}},"additionalProperties":false}}"#
        );
        let limits = SchemaLimits::DEFAULT.steps(1_000_000);
        let (schema, value) = (raw(&schema), format!("{{{members}}}"));
        let report = check(schema, raw(&value), &limits);
        assert!(report.fits() && !report.is_incomplete);
        let others = format!("{{{}}}", many(&|n| format!("\"x{n}\":{{}}"), 100_000));
        assert_eq!(check(schema, raw(&others), &limits).mismatches.len(), 8);
        let constant = format!(r#"{{"const":{value}}}"#);
        let report = check(raw(&constant), raw(&value), &limits);
        assert!(report.fits() && !report.is_incomplete);
        // At least one mismatch is looked for.
        assert!(!check(raw("false"), raw("1"), &SchemaLimits::DEFAULT.mismatches(0)).fits());
    }

    /// No step is taken after the last mismatch that is reported.
    #[test]
    fn it_ends_at_the_last_mismatch() {
        let (schema, value) = (raw(r#"{"items":{"type":"string"}}"#), raw("[1,2,3,4]"));
        // One step for the array, and one for each item that is looked at.
        for told in 1..4 {
            let limits = SchemaLimits::DEFAULT.steps(1 + told).mismatches(told);
            let report = check(schema, value, &limits);
            assert_eq!((report.mismatches.len(), report.is_incomplete), (told, false));
        }
    }

    #[test]
    fn values_are_the_same_as_json_not_as_text() {
        for (constant, same, others) in [
            (
                r#"{"a":1,"b":[1,2]}"#,
                r#"{"b":[1.0,2],"a":1}"#,
                &[r#"{"a":1,"b":[1,3]}"#, r#"{"a":1}"#, r#"{"a":1,"b":[1,2],"c":1}"#, r#"{"a":1,"c":[1,2]}"#][..],
            ),
            ("[1,2]", "[1,2.0]", &["[1]", "[1,2,3]", "[2,1]", "[1,3]", "{}"]),
            ("[]", "[ ]", &["{}", "0", "null", "\"\"", "false"]),
            ("{}", "{ }", &["[]", "0", "null", "\"\"", "false"]),
            ("true", "true", &["false", "null", "1", "\"true\""]),
            ("null", "null", &["false", "0", "\"null\"", "[]"]),
            ("1", "1.0", &["2", "-1", "true", "\"1\""]),
            // Some numbers are one in binary.
            ("9007199254740993", "9007199254740993.0", &["9007199254740992", "9007199254740993.1"]),
            (r#""a""#, r#""\u0061""#, &[r#""b""#, r#""aa""#, "1", "[]"]),
        ] {
            let schemas = [format!(r#"{{"const":{constant}}}"#), format!(r#"{{"enum":[{constant}]}}"#)];
            for schema in schemas {
                assert_eq!(told(&schema, same), [""; 0], "{schema} {same}");
                for other in others {
                    assert_eq!(told(&schema, other).len(), 1, "{schema} {other}");
                }
            }
        }
    }

    #[test]
    fn what_a_keyword_does_not_forbid_fits() {
        for (schema, value) in [
            (r#"{"dependentRequired":{"a":["b"]}}"#, "{}"),
            (r#"{"dependentRequired":{"a":["b"]}}"#, r#"{"a":1,"b":1}"#),
            (r#"{"uniqueItems":false}"#, "[1,1]"),
            ("{}", "[1,1]"),
            (r#"{"anyOf":[{"minimum":1},{"maximum":5}]}"#, "3"),
            (r#"{"anyOf":[]}"#, "3"),
            (r#"{"contains":{"const":1},"minContains":2,"maxContains":2}"#, "[1,2,1]"),
            (r#"{"contains":{"const":1},"minContains":0}"#, "[]"),
            (r#"{"additionalProperties":true}"#, r#"{"a":1}"#),
            (r#"{"type":[]}"#, "1"),
            (r#"{"minimum":"2","multipleOf":"2"}"#, "1"),
            (r#"{"minLength":2,"minItems":2,"minProperties":2,"minimum":2}"#, "null"),
            // The quotient is too large for a number.
            (r#"{"multipleOf":1e-300}"#, "1e300"),
            // A billionth may be the error of the division.
            (r#"{"multipleOf":1}"#, "1e-9"),
            (r#"{"if":{"type":"number"},"then":false}"#, "\"\""),
            (r#"{"if":{"type":"number"},"else":false}"#, "1"),
        ] {
            assert_eq!(told(schema, value), [""; 0], "{schema} {value}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        for (schema, value, words) in [
            (
                r#"{"additionalProperties":{"additionalProperties":{"type":"null"}}}"#,
                r#"{"a":{"b":1,"c":2},"d":{"e":3}}"#,
                &["a.b: a number, expected null", "a.c: a number, expected null", "d.e: a number, expected null"][..],
            ),
            (
                r#"{"items":{"items":{"type":"null"}}}"#,
                "[[1,null,2],[3]]",
                &[
                    "[0][0]: a number, expected null",
                    "[0][2]: a number, expected null",
                    "[1][0]: a number, expected null",
                ],
            ),
            (
                r#"{"contains":{"const":1},"maxContains":1}"#,
                "[1,1]",
                &["2 items are as `contains` says, expected at most 1"],
            ),
            (
                r#"{"contains":{"const":1},"minContains":2}"#,
                "[1]",
                &["1 items are as `contains` says, expected at least 2"],
            ),
            (r#"{"minimum":2,"multipleOf":3}"#, "1", &["1, expected at least 2", "1, expected a multiple of 3"]),
            (r#"{"multipleOf":1}"#, "2e-9", &["2e-9, expected a multiple of 1"]),
            (r#"{"multipleOf":10}"#, "15", &["15, expected a multiple of 10"]),
            (r#"{"multipleOf":2}"#, "9007199254740993", &["9007199254740993, expected a multiple of 2"]),
            (r#"{"if":{"type":"number"},"else":{"maxLength":0}}"#, "\"a\"", &["1 characters, expected at most 0"]),
            (r#"{"oneOf":[{"type":"null"},{"minimum":2}]}"#, "1", &["1, expected at least 2"]),
            (
                r##"{"$defs":{"n":{"type":"null"}},"$ref":"#/$defs/n","minimum":2}"##,
                "1",
                &["a number, expected null", "1, expected at least 2"],
            ),
            (
                r##"{"prefixItems":[true,{"type":"null"}],"items":{"$ref":"#/prefixItems/1"}}"##,
                "[1,null,2]",
                &["[2]: a number, expected null"],
            ),
            (r##"{"$defs":{"~1":{"type":"null"}},"$ref":"#/$defs/~01"}"##, "1", &["a number, expected null"]),
            (r##"{"$defs":{"\u00e9%":{"type":"null"}},"$ref":"#/$defs/%C3%A9%"}"##, "1", &["a number, expected null"]),
            // A sign is no hexadecimal digit.
            (r##"{"$defs":{"%+1":{"type":"null"}},"$ref":"#/$defs/%+1"}"##, "1", &["a number, expected null"]),
            (
                r#"{"minimum":9007199254740993}"#,
                "9007199254740992",
                &["9007199254740992, expected at least 9007199254740993"],
            ),
        ] {
            assert_eq!(told(schema, value), words, "{schema} {value}");
        }
        let report = check(
            raw(r##"{"prefixItems":[true],"items":{"$ref":"#/prefixItems/1"}}"##),
            raw("[1,2]"),
            &SchemaLimits::DEFAULT,
        );
        assert!(report.fits() && report.is_incomplete);
    }

    #[test]
    fn long_values_and_lists_are_cut() {
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        assert_eq!(told(r#"{"const":1}"#, &text(60)), [format!("{}, expected 1", text(60))]);
        assert_eq!(told(r#"{"const":1}"#, &text(61)), ["a string, expected 1"]);
        let names = |to: u32| (1..=to).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let known = |to: u32| {
            let properties: Vec<_> = (1..=to).map(|n| format!("\"{n}\":{{}}")).collect();
            let schema = format!(r#"{{"properties":{{{}}},"additionalProperties":false}}"#, properties.join(","));
            told(&schema, r#"{"a":1}"#)
        };
        assert_eq!(known(0), ["unknown member `a`, expected no members"]);
        assert_eq!(known(12), [format!("unknown member `a`, expected one of {}", names(12))]);
        assert_eq!(known(15), [format!("unknown member `a`, expected one of {}, 3 more", names(12))]);
        let choice = |to: u32| {
            let choices: Vec<_> = (1..=to).map(|n| n.to_string()).collect();
            told(&format!(r#"{{"enum":[{}]}}"#, choices.join(",")), "0")
        };
        let shown = names(12).replace('`', "");
        assert_eq!(choice(12), [format!("0, expected one of {shown}")]);
        assert_eq!(choice(15), [format!("0, expected one of {shown}, 3 more")]);
    }

    /// A keyword that needs more steps than there are, or a schema that is not there, is no mismatch.
    #[test]
    fn what_was_not_checked_is_no_mismatch() {
        for (schema, value) in [
            (r#"{"const":[1,2,3,4]}"#, "[1,2,3,4]"),
            (r#"{"enum":[[1,2,3,4]]}"#, "[1,2,3,4]"),
            (r#"{"not":{"items":{"type":"string"}}}"#, "[\"\",\"\",\"\",1]"),
            (r#"{"contains":{"type":"null"},"maxContains":0}"#, "[1,2,3,4]"),
            (r#"{"if":{"items":{"type":"string"}},"then":{"maxItems":0}}"#, "[\"\",\"\",\"\",1]"),
        ] {
            let report = check(raw(schema), raw(value), &SchemaLimits::DEFAULT.steps(4));
            assert!(report.fits() && report.is_incomplete, "{schema}: {report:?}");
            assert!(!check(raw(schema), raw(value), &SchemaLimits::DEFAULT).is_incomplete, "{schema}");
        }
        for schema in [
            r#"{"not":{"$ref":"x"}}"#,
            r#"{"if":{"$ref":"x"},"then":{"minimum":2}}"#,
            r#"{"anyOf":[{"$ref":"x","minimum":2}]}"#,
        ] {
            let report = check(raw(schema), raw("1"), &SchemaLimits::DEFAULT);
            assert!(report.fits() && report.is_incomplete, "{schema}: {report:?}");
        }
        // A value that is compared to its end differs, whatever was not checked before.
        let schema = r#"{"$ref":"x","const":2,"enum":[3]}"#;
        let report = check(raw(schema), raw("1"), &SchemaLimits::DEFAULT);
        assert_eq!((report.mismatches.len(), report.is_incomplete), (2, true));
    }
}
