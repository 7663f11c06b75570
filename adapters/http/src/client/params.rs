//! Parameters of tools that go into headers: `x-mcp-header` and `Mcp-Param-*` (2026-07-28,
//! [custom headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).

use core::ops::Range;

use mcp_sansio::FullError;
use mcp_sansio::json::{JsonKind, Raw, Scanner, Text, write};
use mcp_sansio::memory::Store;
use mcp_sansio::memory::records::{NoRoomError, Record, Records};
use mcp_sansio::rpc::Envelope;
use mcp_sansio::sink::Sink;

use crate::names::{ANNOTATION, CLOSE, DEPTH, OPEN, PARAM, is_token, write_base64};

mcp_sansio::error_enum! {
    /// The reason why a tool is excluded: its annotations are invalid.
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    AnnotationError {
        /// The name of the header is not a string, or empty.
        Empty => "x-mcp-header is empty or no text",
        /// The name has a character that header names must not have.
        Name => "x-mcp-header is not a valid header name",
        /// Two parameters have the same header, perhaps in different case.
        Duplicate => "two parameters have the same x-mcp-header",
        /// The parameter is not a string, integer or boolean.
        Type => "x-mcp-header on a parameter that is not a string, an integer or a boolean",
        /// The annotation is not on a parameter, or on one that is not reached by `properties` alone.
        SchemaPath => "x-mcp-header outside of plain properties",
        /// The schema has more than 64 annotations, or is nested too deeply to be read.
        TooMany => "too many x-mcp-header, or nested too deeply",
    }
}

const MOST: usize = 64;

/// Checks the annotations in a tool's `inputSchema` and returns their number. Over HTTP, a client must leave a
/// tool with an invalid annotation out of the list.
///
/// A parameter may be a string, an integer or a boolean, or a list of such types, with or without `null`. The
/// call of a tool writes no header for `null`.
///
/// ```
/// use mcp_sansio_http::client::params::{AnnotationError, check};
/// use mcp_sansio_http::mcp_sansio::json::Raw;
/// let schema = br#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Ok(1));
/// let schema = br#"{"type":"object","properties":{"ratio":{"type":"number","x-mcp-header":"Ratio"}}}"#;
/// assert_eq!(check(Raw::parse(schema)?), Err(AnnotationError::Type));
/// # Ok::<(), mcp_sansio_http::mcp_sansio::json::ParseError>(())
/// ```
///
/// # Errors
/// The reason, for the first invalid annotation.
pub fn check(schema: Raw<'_>) -> Result<usize, AnnotationError> {
    if !mentions(schema.as_bytes()) {
        return Ok(0);
    }
    let mut names = [None; MOST];
    walk(schema, &SchemaPath::Root, DEPTH, &mut |name, _| note(&mut names, name))?;
    Ok(names.iter().flatten().count())
}

/// Returns `true` if the schema can contain an annotation. A backslash counts, since it may escape the name.
fn mentions(schema: &[u8]) -> bool {
    memchr::memchr(b'\\', schema).is_some() || memchr::memmem::find(schema, ANNOTATION.as_bytes()).is_some()
}

fn note<'s>(names: &mut [Option<Text<'s>>], name: Text<'s>) -> Result<(), AnnotationError> {
    for place in names {
        match place {
            Some(other) if same_name(*other, name) => return Err(AnnotationError::Duplicate),
            Some(_) => {}
            None => {
                *place = Some(name);
                return Ok(());
            }
        }
    }
    Err(AnnotationError::TooMany)
}

fn same_name(one: Text<'_>, other: Text<'_>) -> bool {
    let lower = |c: Result<char, _>| c.map(|c| c.to_ascii_lowercase());
    one.chars().map(lower).eq(other.chars().map(lower))
}

/// The place of a schema in that of a tool.
enum SchemaPath<'p, 's> {
    Root,
    /// The schema of a property of another schema. The first of these is the root.
    Property(&'p SchemaPath<'p, 's>, Text<'s>),
    /// A schema not reached by `properties` alone.
    Elsewhere,
}

type OnAnnotation<'f, 's> = &'f mut dyn FnMut(Text<'s>, &SchemaPath<'_, 's>) -> Result<(), AnnotationError>;

/// Reads a schema down to `depth` and reports the annotations to `found`.
fn walk<'s>(
    schema: Raw<'s>,
    place: &SchemaPath<'_, 's>,
    depth: usize,
    found: OnAnnotation<'_, 's>,
) -> Result<(), AnnotationError> {
    let Some(depth) = depth.checked_sub(1) else {
        return if mentions(schema.as_bytes()) { Err(AnnotationError::TooMany) } else { Ok(()) };
    };
    for item in schema.items() {
        walk(item, &SchemaPath::Elsewhere, depth, found)?;
    }
    for (key, value) in schema.members() {
        if key.eq_str(ANNOTATION) {
            if !matches!(place, SchemaPath::Property(..)) {
                return Err(AnnotationError::SchemaPath);
            }
            found(name(schema, value)?, place)?;
        } else if key.eq_str("properties") {
            for (property, schema) in value.members() {
                match place {
                    SchemaPath::Elsewhere => walk(schema, place, depth, found)?,
                    _ => walk(schema, &SchemaPath::Property(place, property), depth, found)?,
                }
            }
        } else if ["patternProperties", "$defs", "definitions", "dependentSchemas"].iter().any(|map| key.eq_str(map)) {
            for (_, value) in value.members() {
                walk(value, &SchemaPath::Elsewhere, depth, found)?;
            }
        } else if !["default", "const", "enum", "examples", "required"].iter().any(|data| key.eq_str(data)) {
            walk(value, &SchemaPath::Elsewhere, depth, found)?;
        }
    }
    Ok(())
}

/// Returns the header name of an annotation, if it is valid.
fn name<'s>(property: Raw<'s>, annotation: Raw<'s>) -> Result<Text<'s>, AnnotationError> {
    let name = annotation.text().filter(|name| !name.raw().is_empty()).ok_or(AnnotationError::Empty)?;
    if !name.chars().all(|c| c.is_ok_and(|c| u8::try_from(c).is_ok_and(is_token))) {
        return Err(AnnotationError::Name);
    }
    let is = |kind: Raw<'_>, names: &[&str]| kind.text().is_some_and(|kind| names.iter().any(|name| kind.eq_str(name)));
    const TYPES: [&str; 4] = ["string", "integer", "boolean", "null"];
    let kind = property.get("type").ok_or(AnnotationError::Type)?;
    // A list of types describes an optional value.
    let listed = kind.items().count() > 0
        && kind.items().all(|kind| is(kind, &TYPES))
        && kind.items().any(|kind| !is(kind, &["null"]));
    if listed || is(kind, &["string", "integer", "boolean"]) { Ok(name) } else { Err(AnnotationError::Type) }
}

/// The tag of an annotated parameter. A record's owner is the number of the tool, in the order of the lists. A
/// [`PARAMETER`] is a JSON array of the tool's name, the name of the header, and the path to the value. An
/// [`EXCLUDED`] is an array of the tool's name alone; its tag is the place of the reason among [`REASONS`]. Of
/// two tools with one name the later one counts.
const PARAMETER: u8 = 0;
const EXCLUDED: u8 = 1;

const REASONS: [AnnotationError; 6] = [
    AnnotationError::Empty,
    AnnotationError::Name,
    AnnotationError::Duplicate,
    AnnotationError::Type,
    AnnotationError::SchemaPath,
    AnnotationError::TooMany,
];

/// The annotations of the listed tools.
#[derive(Debug)]
pub(crate) struct Tools<'m> {
    known: Records<'m>,
    /// Number of tools in it, and their limit.
    count: u32,
    most: u32,
    /// Number of excluded tools.
    excluded: u32,
    /// Number of tools that did not fit.
    pub(crate) forgotten: u32,
}

impl<'m> Tools<'m> {
    pub(crate) const fn new(store: Store<'m>, most: u32) -> Self {
        Tools { known: Records::new(store), count: 0, most, excluded: 0, forgotten: 0 }
    }

    /// Keeps the annotations in the result of `tools/list`; `fresh` for its first page. The work is linear in the
    /// page: it searches no earlier records.
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
                _ if self.count >= self.most => Err(NoRoomError),
                Ok(_) => self.keep(name, schema),
                Err(why) => self.keep_excluded(name, why),
            };
            match learned {
                Ok(()) => self.count += 1,
                Err(NoRoomError) => self.forgotten = self.forgotten.saturating_add(1),
            }
        }
    }

    fn keep(&mut self, tool: Raw<'_>, schema: Raw<'_>) -> Result<(), NoRoomError> {
        let (before, owner, known) = (self.known.used(), self.count, &mut self.known);
        let kept = walk(schema, &SchemaPath::Root, DEPTH, &mut |header, place| {
            let mut keep = || {
                let at = known.begin(owner, PARAMETER, 0)?;
                known.extend(at, b"[")?;
                known.extend(at, tool.as_bytes())?;
                extend(known, at, header)?;
                extend_path(known, at, place)?;
                known.extend(at, b"]")
            };
            keep().map_err(|NoRoomError| AnnotationError::TooMany)
        });
        // The headers of a part of a tool's parameters are useless.
        kept.map_err(|_| {
            self.known.drop_last(before);
            NoRoomError
        })
    }

    fn keep_excluded(&mut self, tool: Raw<'_>, why: AnnotationError) -> Result<(), NoRoomError> {
        let place = REASONS.iter().position(|reason| *reason == why).and_then(|place| u8::try_from(place).ok());
        self.known.push(self.count, EXCLUDED, place.unwrap_or(0), &[b"[", tool.as_bytes(), b"]"])?;
        self.excluded += 1;
        Ok(())
    }

    /// Returns the latest record of the tool with that name.
    fn find(&self, tool: Text<'_>) -> Option<Record<'_>> {
        self.known.iter().filter(|record| parts(record.data).next().is_some_and(|name| name.same(&tool))).last()
    }

    /// Returns the reason why a tool must not be called.
    pub(crate) fn excludes(&self, tool: Text<'_>) -> Option<AnnotationError> {
        if self.excluded == 0 {
            return None;
        }
        self.find(tool).filter(|record| record.kind == EXCLUDED).and_then(|record| reason(&record))
    }

    /// Returns the tools that must not be called.
    pub(crate) fn excluded(&self) -> impl Iterator<Item = (Text<'_>, AnnotationError)> {
        let excluded = self.known.iter().filter(|record| record.kind == EXCLUDED);
        excluded.filter_map(|record| Some((parts(record.data).next()?, reason(&record)?)))
    }

    /// Writes the `Mcp-Param-*` headers of a call: for a tool with such parameters, of the arguments as they are written in
    /// `message`.
    pub(crate) fn write_headers(&self, tool: Text<'_>, message: &[u8], out: &mut dyn Sink) -> Result<(), FullError> {
        let Some(found) = self.find(tool).filter(|found| found.kind == PARAMETER) else { return Ok(()) };
        let params = Raw::parse(message).ok().and_then(|message| message.get("params"));
        let Some(arguments) = params.and_then(|params| params.get("arguments")) else { return Ok(()) };
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

fn reason(record: &Record<'_>) -> Option<AnnotationError> {
    REASONS.get(usize::from(record.tag)).copied()
}

/// Returns the schema of a tool, if it can contain annotations.
fn annotated(tool: Raw<'_>) -> Option<Raw<'_>> {
    tool.get("inputSchema").filter(|schema| mentions(schema.as_bytes()))
}

/// Removes the tools with invalid annotations from a response to `tools/list`, as clients over HTTP must
/// (2026-07-28). Spaces replace their bytes, so that no other byte moves. Returns the number of removed tools.
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
    // The comma of a removed tool is between this place and the tool.
    let (mut comma, mut any_left) = (0, false);
    while let Some(tool) = next_tool(tools, at) {
        at = tool.place.end;
        if tool.wrong {
            count += 1;
            let from = if any_left { comma } else { tool.place.start };
            blank(tools, from..at);
        } else if !any_left {
            // The comma after the last removed tool, if there is one.
            if count > 0 {
                blank(tools, comma..tool.place.start);
            }
            any_left = true;
        }
        if any_left {
            comma = at;
        }
    }
    if count > 0 && !any_left {
        tools.fill(b' ');
    }
    count
}

fn blank(bytes: &mut [u8], place: Range<usize>) {
    bytes.get_mut(place).unwrap_or(&mut []).fill(b' ');
}

/// Returns the range of the elements of `tools` in a response, without the brackets; `None` if none of them can
/// be invalid.
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

/// Returns the first tool after `at`.
fn next_tool(tools: &[u8], at: usize) -> Option<Listed> {
    let rest = tools.get(at..)?;
    let start = at + rest.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b',')?;
    let tool = Scanner::new(tools.get(start..)?).value().ok()?;
    let wrong = annotated(tool).is_some_and(|schema| check(schema).is_err());
    Some(Listed { place: start..start + tool.as_bytes().len(), wrong })
}

/// Returns the texts in a record.
fn parts(data: &[u8]) -> impl Iterator<Item = Text<'_>> {
    #[cfg(test)]
    tests::note_read();
    let array = Raw::parse(data).ok();
    array.into_iter().flat_map(|array| array.items()).filter_map(|item| item.text())
}

/// Appends a text to a record.
fn extend(known: &mut Records<'_>, at: usize, text: Text<'_>) -> Result<(), NoRoomError> {
    known.extend(at, b",\"")?;
    known.extend(at, text.raw())?;
    known.extend(at, b"\"")
}

/// Appends the properties that lead to a place.
fn extend_path(known: &mut Records<'_>, at: usize, place: &SchemaPath<'_, '_>) -> Result<(), NoRoomError> {
    let SchemaPath::Property(parent, name) = place else { return Ok(()) };
    extend_path(known, at, parent)?;
    extend(known, at, *name)
}

fn write_header(name: Text<'_>, value: Raw<'_>, out: &mut dyn Sink) -> Result<(), FullError> {
    if matches!(value.kind(), JsonKind::Null | JsonKind::Object | JsonKind::Array) {
        return Ok(());
    }
    out.put(PARAM.as_bytes())?;
    // The name was checked to have only such characters.
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

/// Writes the value of `Mcp-Name` or `Mcp-Param-*`: plain, or in base64 where it must be
/// ([value encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).
pub(crate) fn write_value(text: Text<'_>, out: &mut dyn Sink) -> Result<(), FullError> {
    if is_safe(text) {
        return text.chars().flatten().try_for_each(|c| out.put(c.encode_utf8(&mut [0; 4]).as_bytes()));
    }
    out.put(OPEN.as_bytes())?;
    write_base64(text, out)?;
    out.put(CLOSE.as_bytes())
}

/// Returns `true` if a text can be in a header without encoding.
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

/// Returns `true` if a text looks like an encoded one.
fn is_sentinel(text: Text<'_>) -> bool {
    let mut start = text.chars();
    let opens = OPEN.chars().all(|c| start.next() == Some(Ok(c)));
    let mut last = [None; 2];
    for character in text.chars().flatten() {
        last = [last[1], Some(character)];
    }
    opens && last == [Some('?'), Some('=')]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_sansio::memory::Store;
    use mcp_sansio::sink::{LineSink, SliceStorage};
    use std::format;
    use std::string::String;

    fn checked(properties: &str) -> Result<usize, AnnotationError> {
        let schema = format!("{{\"type\":\"object\",\"properties\":{properties}}}");
        check(Raw::parse(schema.as_bytes()).unwrap())
    }

    std::thread_local! {
        static READ: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    /// Counts the reads of records.
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

    /// Returns the headers of a call, with the same arguments for all tools.
    fn headers(tools: &Tools<'_>, name: &str) -> String {
        written(tools, name, r#"{"a":"x"}"#).trim().into()
    }

    fn written(tools: &Tools<'_>, name: &str, arguments: &str) -> String {
        let mut bytes = [0; 256];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let name = format!("\"{name}\"");
        let name = Raw::parse(name.as_bytes()).unwrap().text().unwrap();
        let message = format!("{{\"params\":{{\"arguments\":{arguments}}}}}");
        tools.write_headers(name, message.as_bytes(), &mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    /// The cost of a page does not depend on earlier pages.
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

    /// The later one counts, valid or not.
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
        assert_eq!((headers(&tools, "t1").as_str(), tools.excludes(name)), ("", Some(AnnotationError::Name)));
        assert_eq!(tools.excluded().count(), 2);
        learn(&mut tools, "R", false);
        assert_eq!((headers(&tools, "t1").as_str(), tools.excludes(name)), ("Mcp-Param-R: x", None));
        learn(&mut tools, "R", true);
        assert_eq!(tools.excluded().count(), 0);
    }

    /// In each combination of invalid tools, the others are left, in their order.
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
        for other in [
            "",
            "{",
            "[]",
            r#"{"id":1,"result":{"tools":"x-mcp-header"}}"#,
            r#"{"result":{"tools":["x-mcp-header"]}}"#,
            "{\"id\":1,\"result\":{\"tools\":[\r\n],\"x\\u0041\":1}}",
            "{\"id\":1,\"result\":{\"tools\":[\r\n{\"name\":\"x-mcp-header\"}]}}",
        ] {
            let mut bytes = other.as_bytes().to_vec();
            assert_eq!((leave_out(&mut bytes), bytes.as_slice()), (0, other.as_bytes()));
        }
    }

    // spec: T123
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
            assert_eq!(one("\"R\"", kind), Err(AnnotationError::Type), "{kind}");
        }
        for header in ["\"\"", "3", "null", "{}"] {
            assert_eq!(one(header, "\"string\""), Err(AnnotationError::Empty), "{header}");
        }
        for header in ["\"a b\"", "\"a:b\"", "\"é\"", "\"a\\r\\nb\"", "\"\\u0001\""] {
            assert_eq!(one(header, "\"string\""), Err(AnnotationError::Name), "{header}");
        }
        let two = |first: &str, second: &str| {
            let property = |name: &str| format!("{{\"type\":\"string\",\"x-mcp-header\":\"{name}\"}}");
            checked(&format!("{{\"a\":{},\"b\":{{\"properties\":{{\"c\":{}}}}}}}", property(first), property(second)))
        };
        assert_eq!(two("X", "Y"), Ok(2));
        assert_eq!(two("X", "x"), Err(AnnotationError::Duplicate));
        assert_eq!(two("X", "\\u0058"), Err(AnnotationError::Duplicate));
    }

    // spec: S069 T123
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
            assert_eq!(found, Err(AnnotationError::SchemaPath), "{way}");
        }
        assert_eq!(check(Raw::parse(annotated.as_bytes()).unwrap()), Err(AnnotationError::SchemaPath));
        // Inside data, and as the name of a property, the word is no annotation.
        assert_eq!(checked(&format!("{{\"a\":{{\"default\":{annotated},\"enum\":[{annotated}]}}}}")), Ok(0));
        assert_eq!(checked(r#"{"x-mcp-header":{"type":"string"}}"#), Ok(0));
        let deep = |inner: &str| (0..40).fold(String::from(inner), |inner, _| format!("{{\"items\":{inner}}}"));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep("{}"))), Ok(0));
        assert_eq!(checked(&format!("{{\"a\":{}}}", deep(annotated))), Err(AnnotationError::TooMany));
    }

    fn value(json: &str) -> String {
        let mut bytes = [0; 128];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        write_value(Raw::parse(json.as_bytes()).unwrap().text().unwrap(), &mut out).unwrap();
        String::from_utf8(out.pending().to_vec()).unwrap()
    }

    /// Values and their headers, the specification's examples among them.
    // spec: T098 T160 T161 T163 T166
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

    // spec: S058 T097 T147 T148 T149
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
        assert_eq!(written("bad", all) + &written("u", all) + &written("T", all), "");
        let mut bytes = [0; 60];
        let mut small = Tools::new(Store::from(&mut bytes), 10);
        small.learn(list, true);
        // The name of the second one fits.
        assert_eq!((small.forgotten, small.known.iter().count()), (1, 1));
    }
}
