//! Parameters of tools that go into headers of their own: `x-mcp-header` (2026-07-28, streamable-http, Custom Headers from
//! Tool Parameters).

use core::fmt;
use core::ops::Range;

use mcp_sansio::Full;
use mcp_sansio::json::{JsonKind, Raw, Scanner, Text, write};
use mcp_sansio::records::{NoRoom, Record, Records};
use mcp_sansio::rpc::Envelope;
use mcp_sansio::sink::Sink;
use mcp_sansio::store::Store;

use crate::mirror::{ANNOTATION, CLOSE, DEPTH, OPEN, PARAM};
use crate::wire::chunked::is_token;

/// Why a tool is excluded: its annotations cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BadAnnotation {
    /// The name of the header is no text, or empty.
    Empty,
    /// The name has characters that no header's name has.
    Name,
    /// Two parameters share a header, perhaps in different case.
    Duplicate,
    /// The parameter is no string, integer or boolean.
    Type,
    /// It is on something else than a parameter, or on one that is not reached by `properties` alone.
    Place,
    /// More than 64 of them, or nested too deeply to be looked at.
    TooMany,
}

impl fmt::Display for BadAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadAnnotation::Empty => "x-mcp-header is empty or no text",
            BadAnnotation::Name => "x-mcp-header is not a valid header name",
            BadAnnotation::Duplicate => "two parameters have the same x-mcp-header",
            BadAnnotation::Type => "x-mcp-header on a parameter that is not a string, an integer or a boolean",
            BadAnnotation::Place => "x-mcp-header outside of plain properties",
            BadAnnotation::TooMany => "too many x-mcp-header, or nested too deeply",
        })
    }
}

impl core::error::Error for BadAnnotation {}

const MOST: usize = 64;

/// Checks the annotations in a tool's `inputSchema`. Over HTTP, a tool with a wrong one must be left out of the list; how
/// many there are otherwise.
///
/// A parameter may be a string, an integer or a boolean. A list of such types, with or without `null`, is taken too: each
/// value of it can stand in a header, and for `null` there is none.
///
/// ```
/// use mcp_sansio_http::client::params::{BadAnnotation, check};
/// use mcp_sansio_http::mcp_sansio::json::Raw;
/// let schema = br#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Ok(1));
/// let schema = br#"{"type":"object","properties":{"ratio":{"type":"number","x-mcp-header":"Ratio"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Err(BadAnnotation::Type));
/// # Ok::<(), mcp_sansio_http::mcp_sansio::json::Fault>(())
/// ```
///
/// # Errors
/// The first thing that is wrong.
pub fn check(schema: Raw<'_>) -> Result<usize, BadAnnotation> {
    if !mentions(schema.as_bytes()) {
        return Ok(0);
    }
    let mut names = [None; MOST];
    walk(schema, &mut |name, _| note(&mut names, name))?;
    Ok(names.iter().flatten().count())
}

/// Whether there can be an annotation at all; an escaped name of one is told by its backslash.
fn mentions(schema: &[u8]) -> bool {
    memchr::memchr(b'\\', schema).is_some() || memchr::memmem::find(schema, ANNOTATION.as_bytes()).is_some()
}

fn note<'s>(names: &mut [Option<Text<'s>>], name: Text<'s>) -> Result<(), BadAnnotation> {
    for place in names {
        match place {
            Some(other) if same_name(*other, name) => return Err(BadAnnotation::Duplicate),
            Some(_) => {}
            None => {
                *place = Some(name);
                return Ok(());
            }
        }
    }
    Err(BadAnnotation::TooMany)
}

fn same_name(one: Text<'_>, other: Text<'_>) -> bool {
    let lower = |c: Result<char, _>| c.map(|c| c.to_ascii_lowercase());
    one.chars().map(lower).eq(other.chars().map(lower))
}

/// The properties that lead to a place in a schema.
#[derive(Clone, Copy)]
struct Path<'s> {
    steps: [Option<Text<'s>>; DEPTH],
    len: usize,
}

type Found<'f, 's> = &'f mut dyn FnMut(Text<'s>, &Path<'s>) -> Result<(), BadAnnotation>;

/// Looks through a tool's schema.
fn walk<'s>(schema: Raw<'s>, found: Found<'_, 's>) -> Result<(), BadAnnotation> {
    inside(schema, Way::Plain, DEPTH, found, &mut Path { steps: [None; DEPTH], len: 0 })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By `properties` alone.
    Plain,
    Astray,
}

fn inside<'s>(
    schema: Raw<'s>,
    way: Way,
    depth: usize,
    found: Found<'_, 's>,
    path: &mut Path<'s>,
) -> Result<(), BadAnnotation> {
    let Some(deeper) = depth.checked_sub(1) else {
        return if mentions(schema.as_bytes()) { Err(BadAnnotation::TooMany) } else { Ok(()) };
    };
    for item in schema.items() {
        inside(item, Way::Astray, deeper, found, path)?;
    }
    for (key, value) in schema.members() {
        if key.is(ANNOTATION) {
            if way != Way::Plain || path.len == 0 {
                return Err(BadAnnotation::Place);
            }
            found(name(schema, value)?, path)?;
        } else if key.is("properties") {
            properties(value, way, deeper, found, path)?;
        } else if ["patternProperties", "$defs", "definitions", "dependentSchemas"].iter().any(|map| key.is(map)) {
            for (_, value) in value.members() {
                inside(value, Way::Astray, deeper, found, path)?;
            }
        } else if !["default", "const", "enum", "examples", "required"].iter().any(|data| key.is(data)) {
            inside(value, Way::Astray, deeper, found, path)?;
        }
    }
    Ok(())
}

fn properties<'s>(
    map: Raw<'s>,
    way: Way,
    depth: usize,
    found: Found<'_, 's>,
    path: &mut Path<'s>,
) -> Result<(), BadAnnotation> {
    for (key, value) in map.members() {
        let len = path.len;
        if let Some(place) = path.steps.get_mut(len) {
            *place = Some(key);
            path.len += 1;
        }
        inside(value, way, depth, found, path)?;
        path.len = len;
    }
    Ok(())
}

/// The name that an annotation gives, if all is well with it.
fn name<'s>(property: Raw<'s>, annotation: Raw<'s>) -> Result<Text<'s>, BadAnnotation> {
    let name = annotation.text().filter(|name| !name.raw().is_empty()).ok_or(BadAnnotation::Empty)?;
    if !name.chars().all(|c| c.is_ok_and(|c| u8::try_from(c).is_ok_and(is_token))) {
        return Err(BadAnnotation::Name);
    }
    let is = |kind: Raw<'_>, names: &[&str]| kind.text().is_some_and(|kind| names.iter().any(|name| kind.is(name)));
    const TYPES: [&str; 4] = ["string", "integer", "boolean", "null"];
    let kind = property.get("type").ok_or(BadAnnotation::Type)?;
    // A list of types is how an optional value is described.
    let listed = kind.items().count() > 0
        && kind.items().all(|kind| is(kind, &TYPES))
        && kind.items().any(|kind| !is(kind, &["null"]));
    if listed || is(kind, &["string", "integer", "boolean"]) { Ok(name) } else { Err(BadAnnotation::Type) }
}

/// What is known of tools, in records whose owner is the number of the tool, in the order in which they were listed. For
/// each annotated parameter there is a [`PARAMETER`], a JSON array of the tool's name, the name of the header, and the path
/// to the value. For a tool that is excluded there is an [`EXCLUDED`], an array of its name alone, whose tag is the place of
/// the reason among [`REASONS`]. Of two tools with one name the later one counts.
const PARAMETER: u8 = 0;
const EXCLUDED: u8 = 1;

const REASONS: [BadAnnotation; 6] = [
    BadAnnotation::Empty,
    BadAnnotation::Name,
    BadAnnotation::Duplicate,
    BadAnnotation::Type,
    BadAnnotation::Place,
    BadAnnotation::TooMany,
];

/// What was learned of tools.
#[derive(Debug)]
pub(crate) struct Tools<'m> {
    known: Records<'m>,
    /// How many tools there are in it, and at the most.
    count: u32,
    most: u32,
    /// How many of them are excluded.
    excluded: u32,
    /// How many did not fit.
    pub(crate) forgotten: u32,
}

impl<'m> Tools<'m> {
    pub(crate) const fn new(store: Store<'m>, most: u32) -> Self {
        Tools { known: Records::new(store), count: 0, most, excluded: 0, forgotten: 0 }
    }

    /// Learns the annotations in the result of `tools/list`; `fresh` if it is its first page. The work is linear in the
    /// page: nothing is looked for in what was learned before.
    pub(crate) fn learn(&mut self, result: Raw<'_>, fresh: bool) {
        if fresh {
            self.known.remove(|_| true);
            (self.count, self.excluded, self.forgotten) = (0, 0, 0);
        }
        for tool in result.get("tools").iter().flat_map(|tools| tools.items()) {
            let Some(name) = tool.get("name").filter(|name| name.kind() == JsonKind::String) else { continue };
            let Some(schema) = annotated(tool) else { continue };
            let learned = match check(schema) {
                Ok(0) => continue,
                _ if self.count >= self.most => Err(NoRoom),
                Ok(_) => self.keep(name, schema),
                Err(why) => self.keep_excluded(name, why),
            };
            match learned {
                Ok(()) => self.count += 1,
                Err(NoRoom) => self.forgotten = self.forgotten.saturating_add(1),
            }
        }
    }

    fn keep(&mut self, tool: Raw<'_>, schema: Raw<'_>) -> Result<(), NoRoom> {
        let (before, owner) = (self.known.used(), self.count);
        let known = &mut self.known;
        let kept = walk(schema, &mut |name, path| {
            keep_one(tool, name, path, owner, known).map_err(|NoRoom| BadAnnotation::TooMany)
        });
        // The headers of half a tool are of no use.
        kept.map_err(|_| {
            self.known.drop_last(before);
            NoRoom
        })
    }

    fn keep_excluded(&mut self, tool: Raw<'_>, why: BadAnnotation) -> Result<(), NoRoom> {
        let place = REASONS.iter().position(|reason| *reason == why).and_then(|place| u8::try_from(place).ok());
        self.known.push(self.count, EXCLUDED, place.unwrap_or(0), &[b"[", tool.as_bytes(), b"]"])?;
        self.excluded += 1;
        Ok(())
    }

    /// What was learned last of the tool with that name.
    fn find(&self, tool: Text<'_>) -> Option<Record<'_>> {
        self.known.iter().filter(|record| parts(record.data).next().is_some_and(|name| name.same(&tool))).last()
    }

    pub(crate) const fn excludes_any(&self) -> bool {
        self.excluded > 0
    }

    /// Why a tool must not be called.
    pub(crate) fn excludes(&self, tool: Text<'_>) -> Option<BadAnnotation> {
        self.find(tool).filter(|record| record.kind == EXCLUDED).and_then(|record| reason(&record))
    }

    /// The tools that must not be called.
    pub(crate) fn excluded(&self) -> impl Iterator<Item = (Text<'_>, BadAnnotation)> {
        let excluded = self.known.iter().filter(|record| record.kind == EXCLUDED);
        excluded.filter_map(|record| Some((parts(record.data).next()?, reason(&record)?)))
    }

    /// Writes the headers of a call.
    pub(crate) fn write_headers(&self, tool: Text<'_>, arguments: Raw<'_>, out: &mut dyn Sink) -> Result<(), Full> {
        let Some(found) = self.find(tool) else { return Ok(()) };
        for record in self.known.iter().filter(|record| record.owner == found.owner && record.kind == PARAMETER) {
            let mut parts = parts(record.data).skip(1);
            let Some(header) = parts.next() else { continue };
            let value = parts.try_fold(arguments, |object, key| {
                object.members().filter(|(name, _)| name.same(&key)).last().map(|(_, value)| value)
            });
            if let Some(value) = value {
                write_header(header, value, out)?;
            }
        }
        Ok(())
    }
}

fn reason(record: &Record<'_>) -> Option<BadAnnotation> {
    REASONS.get(usize::from(record.tag)).copied()
}

/// The schema of a tool, if there may be annotations in it.
fn annotated(tool: Raw<'_>) -> Option<Raw<'_>> {
    tool.get("inputSchema").filter(|schema| mentions(schema.as_bytes()))
}

/// Leaves the tools with wrong annotations out of a response to `tools/list`, as clients over HTTP must (2026-07-28):
/// their bytes become spaces, so that nothing is moved. How many there were.
///
/// ```
/// use mcp_sansio_http::client::params::leave_out;
/// let mut response = *br#"{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"x-mcp-header":""}},{"name":"b"}]}}"#;
/// assert_eq!(leave_out(&mut response), 1);
/// let left: String = String::from_utf8_lossy(&response).split_whitespace().collect();
/// assert_eq!(left, r#"{"id":1,"result":{"tools":[{"name":"b"}]}}"#);
/// ```
pub fn leave_out(response: &mut [u8]) -> usize {
    let Some(tools) = tools_in(response).and_then(|place| response.get_mut(place)) else { return 0 };
    let (mut at, mut count) = (0, 0);
    // The comma that goes with a tool that is left out stands between this place and the tool.
    let (mut comma, mut any_left) = (0, false);
    while let Some(tool) = next_tool(tools, at) {
        at = tool.place.end;
        if tool.wrong {
            count += 1;
            let from = if any_left { comma } else { tool.place.start };
            blank(tools, from..at);
        } else if !any_left {
            blank(tools, comma..tool.place.start);
            any_left = true;
        }
        if any_left {
            comma = at;
        }
    }
    if !any_left {
        tools.fill(b' ');
    }
    count
}

fn blank(bytes: &mut [u8], place: Range<usize>) {
    bytes.get_mut(place).unwrap_or(&mut []).fill(b' ');
}

/// Where the elements of `tools` stand in a response, without the brackets; `None` if none of them can be wrong.
fn tools_in(response: &[u8]) -> Option<Range<usize>> {
    if !mentions(response) {
        return None;
    }
    let tools = Envelope::parse(response).ok()?.result?.get("tools").filter(|tools| tools.kind() == JsonKind::Array)?;
    let start = tools.as_bytes().as_ptr().addr().checked_sub(response.as_ptr().addr())?;
    Some(start + 1..(start + tools.as_bytes().len()).checked_sub(1)?)
}

struct Listed {
    place: Range<usize>,
    wrong: bool,
}

/// The first tool behind `at`.
fn next_tool(tools: &[u8], at: usize) -> Option<Listed> {
    let rest = tools.get(at..)?;
    let start = at + rest.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b',')?;
    let tool = Scanner::new(tools.get(start..)?).value().ok()?;
    let wrong = annotated(tool).is_some_and(|schema| check(schema).is_err());
    Some(Listed { place: start..start + tool.as_bytes().len(), wrong })
}

/// The texts in a record.
fn parts(data: &[u8]) -> impl Iterator<Item = Text<'_>> {
    #[cfg(test)]
    tests::note_read();
    let array = Raw::parse(data).ok();
    array.into_iter().flat_map(|array| array.items()).filter_map(|item| item.text())
}

fn keep_one(
    tool: Raw<'_>,
    header: Text<'_>,
    path: &Path<'_>,
    owner: u32,
    known: &mut Records<'_>,
) -> Result<(), NoRoom> {
    let at = known.begin(owner, PARAMETER, 0)?;
    let written = write_record(tool, header, path, known, at);
    if written.is_err() {
        known.drop_last(at);
    }
    written
}

fn write_record(
    tool: Raw<'_>,
    header: Text<'_>,
    path: &Path<'_>,
    known: &mut Records<'_>,
    at: usize,
) -> Result<(), NoRoom> {
    known.extend(at, b"[")?;
    known.extend(at, tool.as_bytes())?;
    for text in core::iter::once(header).chain(path.steps.iter().take(path.len).copied().flatten()) {
        known.extend(at, b",\"")?;
        known.extend(at, text.raw())?;
        known.extend(at, b"\"")?;
    }
    known.extend(at, b"]")
}

fn write_header(name: Text<'_>, value: Raw<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    if matches!(value.kind(), JsonKind::Null | JsonKind::Object | JsonKind::Array) {
        return Ok(());
    }
    out.put(PARAM.as_bytes())?;
    // It was checked to be made of such characters.
    for character in name.chars().flatten().filter_map(|c| u8::try_from(c).ok()).filter(|byte| is_token(*byte)) {
        out.put(&[character])?;
    }
    out.put(b": ")?;
    match (value.text(), value.i64()) {
        (Some(text), _) => write_value(text, out)?,
        (None, Some(integer)) => write::signed(out, integer)?,
        (None, None) => out.put(value.as_bytes())?,
    }
    out.put(b"\r\n")
}

/// Writes the value of `Mcp-Name` or `Mcp-Param-*`: as it is, or in base64 where it must be (Value Encoding).
pub(crate) fn write_value(text: Text<'_>, out: &mut dyn Sink) -> Result<(), Full> {
    if is_safe(text) {
        return text.chars().flatten().try_for_each(|c| out.put(c.encode_utf8(&mut [0; 4]).as_bytes()));
    }
    out.put(OPEN.as_bytes())?;
    let (mut group, mut len) = ([0; 3], 0usize);
    for character in text.chars() {
        for &byte in character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]).as_bytes() {
            if let Some(place) = group.get_mut(len) {
                *place = byte;
            }
            len += 1;
            if len == group.len() {
                write::base64(out, &group)?;
                len = 0;
            }
        }
    }
    write::base64(out, group.get(..len).unwrap_or(&[]))?;
    out.put(CLOSE.as_bytes())
}

/// Whether a text can stand in a header as it is.
fn is_safe(text: Text<'_>) -> bool {
    let mut edges = (None, None);
    for character in text.chars() {
        let Ok(character) = character else { return false };
        if !matches!(character, ' '..='~') {
            return false;
        }
        edges = (edges.0.or(Some(character)), Some(character));
    }
    let padded = edges.0 == Some(' ') || edges.1 == Some(' ');
    !padded && !is_sentinel(text)
}

/// Whether it looks like one that is encoded.
fn is_sentinel(text: Text<'_>) -> bool {
    let mut start = text.chars();
    let opens = OPEN.chars().all(|c| start.next() == Some(Ok(c)));
    let mut last = [None; 2];
    for character in text.chars().flatten() {
        last = [last[1], Some(character)];
    }
    opens && last == [Some('?'), Some('=')]
}

/// Whether a text can stand in a header without any encoding: visible ASCII.
pub(crate) fn is_visible(text: Text<'_>) -> bool {
    !text.raw().is_empty() && text.chars().all(|c| c.is_ok_and(|c| matches!(c, '!'..='~')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::sink::{Lines, Slice};
    use mcp_sansio::store::Store;
    use std::format;
    use std::string::String;

    fn checked(properties: &str) -> Result<usize, BadAnnotation> {
        let schema = format!("{{\"type\":\"object\",\"properties\":{properties}}}");
        check(Raw::parse(schema.as_bytes()).unwrap())
    }

    std::thread_local! {
        static READ: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    /// Counts how often a record was read.
    pub(super) fn note_read() {
        READ.set(READ.get() + 1);
    }

    fn page(from: usize, count: usize, header: &str) -> String {
        let tool = |n: usize| {
            format!(
                r#"{{"name":"t{n}","inputSchema":{{"properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
            )
        };
        format!("{{\"tools\":[{}]}}", (from..from + count).map(tool).collect::<std::vec::Vec<_>>().join(","))
    }

    /// The headers of a call, with the same arguments for all tools.
    fn headers(tools: &Tools<'_>, name: &str) -> String {
        written(tools, name, r#"{"a":"x"}"#).trim().into()
    }

    fn written(tools: &Tools<'_>, name: &str, arguments: &'static str) -> String {
        let mut bytes = [0; 256];
        let mut out = Lines::new(Slice::new(&mut bytes));
        let name = format!("\"{name}\"");
        let name = Raw::parse(name.as_bytes()).unwrap().text().unwrap();
        tools.write_headers(name, Raw::constant(arguments), &mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    /// What a page costs does not depend on what was learned before.
    #[test]
    fn learning_is_linear() {
        let mut memory = std::vec![0; 1 << 20];
        let mut tools = Tools::new(Store::from(memory.as_mut_slice()), 10_000);
        READ.set(0);
        for from in [0, 1_000, 2_000, 1_000] {
            let page = page(from, 1_000, "R");
            tools.learn(Raw::parse(page.as_bytes()).unwrap(), from == 0);
        }
        assert_eq!((READ.get(), tools.count, tools.forgotten), (0, 4_000, 0));
        assert_eq!(headers(&tools, "t2999"), "Mcp-Param-R: x");
    }

    #[test]
    fn only_so_many_are_learned() {
        for (room, most) in [(1 << 20, 5), (5 * (10 + 14), 1_000)] {
            let mut memory = std::vec![0; room];
            let mut tools = Tools::new(Store::from(memory.as_mut_slice()), most);
            let page = page(0, 8, "R");
            tools.learn(Raw::parse(page.as_bytes()).unwrap(), true);
            assert_eq!((tools.count, tools.forgotten), (5, 3));
            assert_eq!((headers(&tools, "t4").as_str(), headers(&tools, "t5").as_str()), ("Mcp-Param-R: x", ""));
        }
    }

    /// The later one counts, whatever it is.
    #[test]
    fn a_tool_that_is_listed_again() {
        let mut memory = [0; 1000];
        let mut tools = Tools::new(Store::from(&mut memory), 10);
        let learn = |tools: &mut Tools<'_>, header: &str, fresh| {
            let page = page(1, 2, header);
            tools.learn(Raw::parse(page.as_bytes()).unwrap(), fresh);
        };
        let name = Raw::constant("\"t1\"").text().unwrap();
        learn(&mut tools, "R", true);
        learn(&mut tools, "S", false);
        assert_eq!(headers(&tools, "t1"), "Mcp-Param-S: x");
        learn(&mut tools, "no header", false);
        assert_eq!((headers(&tools, "t1").as_str(), tools.excludes(name)), ("", Some(BadAnnotation::Name)));
        assert_eq!(tools.excluded().count(), 2);
        learn(&mut tools, "R", false);
        assert_eq!((headers(&tools, "t1").as_str(), tools.excludes(name)), ("Mcp-Param-R: x", None));
        learn(&mut tools, "R", true);
        assert_eq!(tools.excluded().count(), 0);
    }

    /// Whichever of the tools are wrong, the others are left, in their order.
    #[test]
    fn wrong_tools_are_left_out() {
        for wrong in 0..32u32 {
            let is_wrong = |n: u32| wrong & 1 << n != 0;
            let tool = |n: u32| {
                let header = if is_wrong(n) { "a b" } else { "R" };
                format!(
                    r#"{{"name":"t{n}","inputSchema":{{"properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
                )
            };
            for between in [",", " ,\n "] {
                let list = |which: &dyn Fn(u32) -> bool, between: &str| {
                    (0..5).filter(|&n| which(n)).map(tool).collect::<std::vec::Vec<_>>().join(between)
                };
                let response = |tools: String| {
                    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}],"nextCursor":"c"}}}}"#)
                };
                let mut bytes = response(list(&|_| true, between)).into_bytes();
                let size = bytes.len();
                assert_eq!(leave_out(&mut bytes), wrong.count_ones() as usize);
                assert_eq!(bytes.len(), size);
                let left = String::from_utf8(bytes).unwrap();
                let squeezed = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(squeezed(&left), squeezed(&response(list(&|n| !is_wrong(n), between))), "{left}");
            }
        }
        for other in
            ["", "{", "[]", r#"{"id":1,"result":{"tools":"x-mcp-header"}}"#, r#"{"result":{"tools":["x-mcp-header"]}}"#]
        {
            let mut bytes = other.as_bytes().to_vec();
            assert_eq!((leave_out(&mut bytes), bytes.as_slice()), (0, other.as_bytes()));
        }
    }

    #[test]
    fn annotations() {
        let one =
            |header: &str, kind: &str| checked(&format!("{{\"a\":{{\"type\":{kind},\"x-mcp-header\":{header}}}}}"));
        for kind in ["\"string\"", "\"integer\"", "\"boolean\"", "[\"string\",\"null\"]"] {
            assert_eq!(one("\"Region-1\"", kind), Ok(1), "{kind}");
        }
        for kind in
            ["\"number\"", "\"object\"", "\"array\"", "\"null\"", "[\"null\"]", "[\"string\",\"number\"]", "3", "[]"]
        {
            assert_eq!(one("\"R\"", kind), Err(BadAnnotation::Type), "{kind}");
        }
        for header in ["\"\"", "3", "null", "{}"] {
            assert_eq!(one(header, "\"string\""), Err(BadAnnotation::Empty), "{header}");
        }
        for header in ["\"a b\"", "\"a:b\"", "\"é\"", "\"a\\r\\nb\"", "\"\\u0001\""] {
            assert_eq!(one(header, "\"string\""), Err(BadAnnotation::Name), "{header}");
        }
        let two = |first: &str, second: &str| {
            let property = |name: &str| format!("{{\"type\":\"string\",\"x-mcp-header\":\"{name}\"}}");
            checked(&format!("{{\"a\":{},\"b\":{{\"properties\":{{\"c\":{}}}}}}}", property(first), property(second)))
        };
        assert_eq!(two("X", "Y"), Ok(2));
        assert_eq!(two("X", "x"), Err(BadAnnotation::Duplicate));
        assert_eq!(two("X", "\\u0058"), Err(BadAnnotation::Duplicate));
    }

    #[test]
    fn places() {
        let annotated = r#"{"type":"string","x-mcp-header":"R"}"#;
        for way in [
            "items",
            "prefixItems",
            "oneOf",
            "anyOf",
            "allOf",
            "not",
            "if",
            "then",
            "else",
            "$ref",
            "$defs",
            "additionalProperties",
            "patternProperties",
        ] {
            let inner = match way {
                "oneOf" | "anyOf" | "allOf" | "prefixItems" => format!("[{annotated}]"),
                "$defs" | "patternProperties" => format!("{{\"x\":{annotated}}}"),
                _ => annotated.into(),
            };
            let found = checked(&format!("{{\"a\":{{\"{way}\":{inner}}}}}"));
            assert_eq!(found, Err(BadAnnotation::Place), "{way}");
        }
        assert_eq!(check(Raw::parse(annotated.as_bytes()).unwrap()), Err(BadAnnotation::Place));
        // Data, and a property of that name, are no annotations.
        assert_eq!(checked(&format!("{{\"a\":{{\"default\":{annotated},\"enum\":[{annotated}]}}}}")), Ok(0));
        assert_eq!(checked(r#"{"x-mcp-header":{"type":"string"}}"#), Ok(0));
        let deep = |inner: &str| (0..40).fold(String::from(inner), |inner, _| format!("{{\"items\":{inner}}}"));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep("{}"))), Ok(0));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep(annotated))), Err(BadAnnotation::TooMany));
    }

    fn value(json: &str) -> String {
        let mut bytes = [0; 128];
        let mut out = Lines::new(Slice::new(&mut bytes));
        write_value(Raw::parse(json.as_bytes()).unwrap().text().unwrap(), &mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    /// The specification's examples among them.
    #[test]
    fn values() {
        for (json, header) in [
            (r#""us-west1""#, "us-west1"),
            (r#""Hello, 世界""#, "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (r#"" padded ""#, "=?base64?IHBhZGRlZCA=?="),
            (r#""line1\nline2""#, "=?base64?bGluZTEKbGluZTI=?="),
            (r#""=?base64?literal?=""#, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            (r#""=?base64?open""#, "=?base64?open"),
            (r#""a\tb""#, "=?base64?YQli?="),
            (r#""in the middle""#, "in the middle"),
            (r#""""#, ""),
            (r#""\u0041\/""#, "A/"),
        ] {
            assert_eq!(value(json), header, "{json}");
        }
    }

    #[test]
    fn learned_and_written() {
        let mut bytes = [0; 512];
        let mut known = Tools::new(Store::from(&mut bytes), 10);
        let list = Raw::constant(
            r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{
            "a":{"type":"string","x-mcp-header":"A"},"n":{"type":"integer","x-mcp-header":"N"},
            "o":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"Method"}}},"c":{"type":"string"}}}},
            {"name":"bad","inputSchema":{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}}]}"#,
        );
        known.learn(list, true);
        known.learn(list, true);
        // Three parameters of one tool, and one tool that is excluded.
        assert_eq!((known.known.iter().count(), known.count, known.forgotten), (4, 2, 0));
        let written = |tool: &str, arguments| written(&known, tool, arguments);
        let all = r#"{"a":"x","n":42.0,"o":{"b":true},"c":"d"}"#;
        assert_eq!(written("t", all), "Mcp-Param-A: x\r\nMcp-Param-N: 42\r\nMcp-Param-Method: true\r\n");
        assert_eq!(written("t", r#"{"a":null,"n":-7,"o":3}"#), "Mcp-Param-N: -7\r\n");
        assert_eq!(written("bad", all) + &written("u", all), "");
        let mut bytes = [0; 60];
        let mut small = Tools::new(Store::from(&mut bytes), 10);
        small.learn(list, true);
        // The name of the second one fits.
        assert_eq!((small.forgotten, small.known.iter().count()), (1, 1));
    }
}
