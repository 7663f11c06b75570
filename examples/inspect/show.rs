//! Formats the server's lists and answers for the terminal.

use mcp_sansio::client::views::{
    Blob, CallToolResult, CompleteResult, ContentBlockKind, ContentBlockView, GetPromptResult, ImplementationView,
    PromptArgumentView, PromptMessageView, PromptView, ReadResourceResult, ResourceContentsView, ResourceTemplateView,
    ResourceView, ToolView, View, ViewError,
};
use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio::service::Role;
use mcp_sansio_host::schema::same;

use crate::json::{compact, show as show_json};
use crate::page::{Page, Rows, Spans, Style};
use crate::schema::Schema;
use crate::text::{cut, one_line};

use Style::{Bad, Dim, Head, Name, Plain, Type, Warn};

/// A list with its title and items.
#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) title: &'static str,
    pub(crate) items: Vec<Raw<'a>>,
}

/// The most lines of instructions to show.
const INSTRUCTIONS: usize = 12;

/// Shows the server's name and facts.
pub(crate) fn server(page: &mut Page, info: Option<Raw<'_>>, facts: &str) {
    let Some(info) = info.and_then(|info| ImplementationView::of(info).ok()) else {
        page.say(0, Head, "A server without a name");
        page.say(0, Dim, facts);
        return;
    };
    let mut head = Spans::of(Head, one_line(info.name())).and(Plain, format_args!(" {}", one_line(info.version())));
    if let Some(title) = info.title().filter(|title| !title.same(&info.name())) {
        head.item(" · ", Plain, one_line(title));
    }
    page.spans(0, &head);
    page.say(0, Dim, facts);
    for text in [info.description(), info.website()].into_iter().flatten() {
        page.say(0, Plain, text);
    }
}

/// Shows the capabilities with their members.
pub(crate) fn capabilities(page: &mut Page, capabilities: Raw<'_>) {
    let mut words = Spans::default();
    for (name, value) in capabilities.members() {
        words.item(", ", Plain, one_line(name));
        let yes = |(key, value): (Text<'_>, Raw<'_>)| match (value.bool(), value.kind()) {
            (Some(false), _) | (None, JsonKind::Null) => None,
            _ => Some(one_line(key)),
        };
        let more: Vec<String> = value.members().filter_map(yes).collect();
        if !more.is_empty() {
            words.add(Dim, format_args!(" ({})", more.join(", ")));
        }
    }
    if words.is_empty() {
        words.add(Dim, "none");
    }
    heading(page, "Capabilities", None);
    page.spans(2, &words);
}

pub(crate) fn instructions(page: &mut Page, text: Text<'_>) {
    heading(page, "Instructions", None);
    let text = text.to_string();
    let lines: Vec<&str> = text.trim().lines().collect();
    let shown = if lines.len() > INSTRUCTIONS + 2 { INSTRUCTIONS } else { lines.len() };
    page.say(2, Plain, lines[..shown].join("\n"));
    if shown < lines.len() {
        page.say(2, Dim, format_args!("… and {} more lines, which --json has", lines.len() - shown));
    }
}

fn heading(page: &mut Page, title: &str, count: Option<usize>) {
    page.gap();
    let mut head = Spans::of(Head, title);
    if let Some(count) = count {
        head.add(Dim, format_args!(" {count}"));
    }
    page.spans(0, &head);
}

/// Shows one line for each item of a list.
pub(crate) fn short_list(page: &mut Page, list: &List<'_>) {
    heading(page, list.title, Some(list.items.len()));
    let row = |item: &Raw<'_>| {
        let (name, about) = short(*item).unwrap_or_else(|flaw| (broken(*item), Spans::of(Bad, flaw)));
        vec![name, about]
    };
    page.table(2, &list.items.iter().map(row).collect());
}

/// Returns the name of an item, and its summary.
fn short(item: Raw<'_>) -> Result<(Spans, Spans), ViewError> {
    if item.get("uriTemplate").is_some() {
        let template = ResourceTemplateView::of(item)?;
        let name = Spans::of(Name, name(template.uri_template()));
        return Ok((name, label(template.label(), template.description(), &facts(template.mime(), None))));
    }
    if item.get("uri").is_some() {
        let resource = ResourceView::of(item)?;
        let name = Spans::of(Name, name(resource.uri()));
        let facts = facts(resource.mime(), resource.size());
        return Ok((name, label(resource.label(), resource.description(), &facts)));
    }
    if item.get("inputSchema").is_some() {
        let tool = ToolView::of(item)?;
        let params = Schema::new(tool.input_schema()).params();
        let params = params.iter().map(|param| (param.name.as_str(), param.required));
        return Ok((signature(tool.name(), params), summary(tool.description().unwrap_or(tool.label()))));
    }
    let prompt = PromptView::of(item)?;
    let arguments: Vec<_> = prompt.arguments().flatten().map(|arg| (name(arg.name()), arg.is_required())).collect();
    let arguments = arguments.iter().map(|(name, required)| (name.as_str(), *required));
    Ok((signature(prompt.name(), arguments), summary(prompt.description().unwrap_or(prompt.label()))))
}

fn signature<'n>(name: Text<'_>, params: impl Iterator<Item = (&'n str, bool)>) -> Spans {
    let mut spans = Spans::of(Name, self::name(name));
    for (name, required) in params {
        spans.add(Dim, if required { format!(" {name}") } else { format!(" [{name}]") });
    }
    spans
}

/// Shortens a description to its beginning.
fn summary(text: Text<'_>) -> Spans {
    let text = text.to_string();
    let first = text.trim().split("\n\n").next().unwrap_or_default();
    Spans::of(Plain, cut(&one_line(first), 200))
}

fn label(label: Text<'_>, description: Option<Text<'_>>, facts: &str) -> Spans {
    let mut spans = Spans::of(Plain, one_line(label));
    if let Some(description) = description {
        let text = one_line(description);
        spans.item(": ", Plain, cut(if facts.is_empty() { &text } else { text.trim_end_matches('.') }, 200));
    }
    if !facts.is_empty() {
        spans.item(" · ", Dim, facts);
    }
    spans
}

fn facts(mime: Option<Text<'_>>, size: Option<u64>) -> String {
    let facts = mime.map(one_line).into_iter().chain(size.map(bytes));
    facts.collect::<Vec<_>>().join(" · ")
}

/// Formats a number of bytes for the user.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let power = ((63 - count.leading_zeros()) / 10).min(4);
    let value = count as f64 / f64::powi(1024.0, power as i32);
    format!("{value:.1} {}", UNITS[power as usize - 1])
}

/// Returns a name as it is shown: an empty one has quotes.
fn name(text: Text<'_>) -> String {
    Some(one_line(text)).filter(|name| !name.is_empty()).unwrap_or_else(|| "\"\"".into())
}

/// Names an invalid item of a list, if it has a name.
fn broken(item: Raw<'_>) -> Spans {
    let name = ["name", "uri", "uriTemplate"].iter().find_map(|key| item.get(key)?.text());
    Spans::of(Bad, name.map_or_else(|| cut(&compact(item), 24), one_line))
}

/// Shows the tools with all details. `sends_headers` is that of [`Schema`].
pub(crate) fn tools(page: &mut Page, items: &[Raw<'_>], full: bool, sends_headers: bool) {
    for &item in items {
        page.gap();
        match ToolView::of(item) {
            Ok(tool) => show_tool(page, tool, full, sends_headers),
            Err(flaw) => page.spans(0, &broken(item).and(Plain, format_args!(": {flaw}"))),
        }
    }
}

fn show_tool(page: &mut Page, tool: ToolView<'_>, full: bool, sends_headers: bool) {
    let mut head = Spans::of(Name, name(tool.name()));
    if !tool.label().same(&tool.name()) {
        head.item("  ", Head, one_line(tool.label()));
    }
    let hints = tool.hints();
    let said = [
        (hints.read_only_hint(), true, "read-only"),
        (hints.destructive_hint(), true, "destructive"),
        (hints.idempotent_hint(), true, "idempotent"),
        (hints.open_world_hint(), false, "closed world"),
    ];
    for (hint, value, word) in said {
        if hint == Some(value) && (word != "destructive" || !hints.read_only()) {
            head.item(" · ", if word == "destructive" { Warn } else { Dim }, word);
        }
    }
    page.hanging(0, 2, &head);
    describe(page, tool.description());
    let input = Schema::new(tool.input_schema()).sends_headers(sends_headers);
    let rows = input.takes();
    if rows.is_empty() && input.is_empty() {
        page.say(2, Dim, "takes no arguments");
    } else if rows.is_empty() {
        page.say(2, Dim, "takes arguments whose names are not listed; --json shows the schema");
    }
    page.table(2, &rows);
    let Some(output) = tool.output_schema() else { return };
    let rows = Schema::new(output).gives();
    if full && !rows.is_empty() {
        page.gap();
        page.say(2, Dim, "answers with");
        page.table(2, &rows);
    } else if !rows.is_empty() {
        let names: Vec<String> = Schema::new(output).params().into_iter().map(|param| param.name).collect();
        page.hanging(2, 2, &Spans::of(Dim, format_args!("→ {}", names.join(", "))));
    }
}

fn describe(page: &mut Page, text: Option<Text<'_>>) {
    if let Some(text) = text {
        page.say(2, Plain, text.to_string().trim());
    }
}

/// Shows the prompts with all details.
pub(crate) fn prompts(page: &mut Page, items: &[Raw<'_>]) {
    for &item in items {
        page.gap();
        let prompt = match PromptView::of(item) {
            Ok(prompt) => prompt,
            Err(flaw) => {
                page.spans(0, &broken(item).and(Plain, format_args!(": {flaw}")));
                continue;
            }
        };
        let mut head = Spans::of(Name, name(prompt.name()));
        if !prompt.label().same(&prompt.name()) {
            head.item("  ", Head, one_line(prompt.label()));
        }
        page.spans(0, &head);
        describe(page, prompt.description());
        let rows: Rows = prompt.arguments().map(argument).collect();
        page.table(2, &rows);
    }
}

fn argument(argument: Result<PromptArgumentView<'_>, ViewError>) -> Vec<Spans> {
    let argument = match argument {
        Ok(argument) => argument,
        Err(flaw) => return vec![Spans::of(Bad, "?"), Spans::default(), Spans::of(Bad, flaw)],
    };
    let required = if argument.is_required() { Spans::of(Warn, "required") } else { Spans::default() };
    let about = argument.description().or(argument.title());
    vec![Spans::of(Name, name(argument.name())), required, about.map_or_else(Spans::default, |a| Spans::of(Plain, a))]
}

/// Shows the result of a tool.
pub(crate) fn call(page: &mut Page, result: CallToolResult<'_>) {
    if result.is_error {
        page.say(0, Bad, "The tool failed:");
    }
    let structured = result.structured;
    let mut is_told = false;
    for piece in result.content() {
        let text = piece.as_ref().ok().and_then(ContentBlockView::text).map(|text| text.to_string());
        match (text, structured) {
            // The structured content is shown instead: it has a better layout.
            (Some(text), Some(structured)) if is_json_of(&text, structured) => {}
            (Some(text), Some(structured)) => {
                is_told |= is_wrapped(&text, structured);
                content(page, 0, piece);
            }
            _ => content(page, 0, piece),
        }
    }
    if let Some(structured) = structured.filter(|_| !is_told) {
        show_json(page, 0, structured);
    }
    if structured.is_none() && result.content().next().is_none() {
        let words = if result.is_error { "It says no more." } else { "The tool answered nothing, and did not fail." };
        page.say(0, Dim, words);
    }
}

/// Returns `true` if the text is the structured content as JSON.
fn is_json_of(text: &str, structured: Raw<'_>) -> bool {
    Raw::parse(text.as_bytes()).is_ok_and(|json| same(json, structured))
}

/// Returns `true` if the structured content only wraps the text in a member `result`. The Python SDKs do so with
/// the value of a function.
fn is_wrapped(text: &str, structured: Raw<'_>) -> bool {
    let mut members = structured.members();
    match (members.next(), members.next()) {
        (Some((name, value)), None) if name.eq_str("result") => {
            value.text().is_some_and(|value| value.eq_str(text)) || is_json_of(text, value)
        }
        _ => false,
    }
}

/// Shows a list that the server refuses.
pub(crate) fn refused(page: &mut Page, title: &str, code: i32, message: &str) {
    page.gap();
    let why = format_args!(" refused ({code} {})", one_line(message)).to_string();
    page.spans(0, &Spans::of(Head, title).and(Bad, why));
}

fn content(page: &mut Page, indent: usize, piece: Result<ContentBlockView<'_>, ViewError>) {
    let piece = match piece {
        Ok(piece) => piece,
        Err(flaw) => return page.spans(indent, &Spans::of(Bad, "Content that is not whole: ").and(Plain, flaw)),
    };
    match piece.kind {
        ContentBlockKind::Text(quote) => text(page, indent, quote),
        ContentBlockKind::Image { data, mime } => media(page, indent, "image", data, mime),
        ContentBlockKind::Audio { data, mime } => media(page, indent, "audio", data, mime),
        ContentBlockKind::Resource(contents) => show_contents(page, indent, contents, true),
        ContentBlockKind::Link(link) => {
            let about = label(link.label(), link.description(), &facts(link.mime(), link.size()));
            page.hanging(indent, 2, &Spans::of(Dim, "→ ").and(Name, one_line(link.uri())).and(Plain, "  ").join(about));
        }
        ContentBlockKind::ToolUse { name, input, .. } => {
            page.spans(indent, &Spans::of(Dim, "wants to call ").and(Name, one_line(name)));
            show_json(page, indent + 2, input);
        }
        ContentBlockKind::ToolResult(result) => {
            page.spans(indent, &Spans::of(Dim, "answer to ").and(Name, one_line(result.tool_use_id())));
            result.content().for_each(|piece| content(page, indent + 2, piece));
        }
        _ => {
            page.say(indent, Warn, "Content of a type that the protocol does not know:");
            show_json(page, indent + 2, piece.raw());
        }
    }
}

/// Shows text without changes, and JSON as structure.
fn text(page: &mut Page, indent: usize, text: Text<'_>) {
    let text = text.to_string();
    match Raw::parse(text.as_bytes()) {
        Ok(json) if matches!(json.kind(), JsonKind::Object | JsonKind::Array) => show_json(page, indent, json),
        // Not wrapped, so that the user can copy it.
        _ if indent == 0 => page.verbatim(0, &Spans::of(Plain, text.trim_end_matches('\n'))),
        _ => page.say(indent, Plain, text.trim_end_matches('\n')),
    }
}

fn media(page: &mut Page, indent: usize, kind: &str, data: Blob<'_>, mime: Text<'_>) {
    let mut facts = vec![one_line(mime), bytes(data.decoded_len() as u64)];
    facts.extend(size(data));
    page.spans(indent, &Spans::of(Type, kind).and(Plain, format_args!(" {}", facts.join(" · "))));
}

/// Returns the size of a picture, for formats that state it near the beginning.
fn size(data: Blob<'_>) -> Option<String> {
    let mut start = vec![0; data.decoded_len()];
    let start = data.decode(&mut start).ok()?;
    let (width, height) = match start {
        [0x89, b'P', b'N', b'G', ..] => {
            let at = |i: usize| start.get(i..i + 4)?.try_into().ok().map(u32::from_be_bytes);
            (at(16)?, at(20)?)
        }
        [b'G', b'I', b'F', _, _, _, w1, w2, h1, h2, ..] => {
            (u16::from_le_bytes([*w1, *w2]).into(), u16::from_le_bytes([*h1, *h2]).into())
        }
        _ => return None,
    };
    Some(format!("{width} × {height}"))
}

fn show_contents(page: &mut Page, indent: usize, contents: ResourceContentsView<'_>, named: bool) {
    let mut head = Spans::of(Name, one_line(contents.uri()));
    let mime = contents.mime().map(one_line);
    mime.into_iter().for_each(|mime| head.item("  ", Dim, mime));
    if let Some(body) = contents.text() {
        if named {
            page.spans(indent, &head);
        }
        text(page, indent + if named { 2 } else { 0 }, body);
    } else if let Some(blob) = contents.blob() {
        let is_text = contents.mime().is_some_and(|mime| one_line(mime).starts_with("text/"));
        let decoded = decoded(blob).filter(|_| is_text).and_then(|bytes| String::from_utf8(bytes).ok());
        head.item(" · ", Dim, bytes(blob.decoded_len() as u64));
        size(blob).into_iter().for_each(|size| head.item(" · ", Dim, size));
        page.spans(indent, &head);
        decoded.into_iter().for_each(|text| page.say(indent + 2, Plain, text.trim_end()));
    }
}

/// Shows the contents of a resource.
pub(crate) fn read(page: &mut Page, result: ReadResourceResult<'_>) {
    let many = result.contents().count() != 1;
    for contents in result.contents() {
        match contents {
            Ok(contents) => show_contents(page, 0, contents, many),
            Err(flaw) => page.spans(0, &Spans::of(Bad, "Contents that are not whole: ").and(Plain, flaw)),
        }
    }
}

/// Shows a prompt with its arguments filled in.
pub(crate) fn prompt(page: &mut Page, result: GetPromptResult<'_>) {
    if let Some(description) = result.description() {
        page.say(0, Dim, description);
    }
    for message in result.messages() {
        page.gap();
        match message {
            Ok(found) => self::message(page, 0, found),
            Err(flaw) => page.spans(0, &Spans::of(Bad, "A message that is not whole: ").and(Plain, flaw)),
        }
    }
}

pub(crate) fn message(page: &mut Page, indent: usize, message: PromptMessageView<'_>) {
    let role = if message.role() == Role::User { "user" } else { "assistant" };
    page.say(indent, Head, role);
    message.content().for_each(|piece| content(page, indent + 2, piece));
}

/// Shows the suggestions for an argument.
pub(crate) fn completion(page: &mut Page, completion: CompleteResult<'_>) {
    let mut count = 0;
    for value in completion.values() {
        page.say(0, Plain, one_line(value));
        count += 1;
    }
    match completion.total() {
        Some(total) if total > count => page.say(0, Dim, format_args!("and {} more", total - count)),
        _ if completion.has_more() => page.say(0, Dim, "and more"),
        _ if count == 0 => page.say(0, Dim, "Nothing that it could be."),
        _ => {}
    }
}

/// A text or bytes of a result.
type Body<'a> = (Option<Text<'a>>, Option<Blob<'a>>);

/// Returns the bytes of a result that is a single thing. Texts around one image do not count.
pub(crate) fn one_body(result: Raw<'_>) -> Option<Vec<u8>> {
    fn of<'a>(contents: ResourceContentsView<'a>) -> Body<'a> {
        (contents.text(), contents.blob())
    }
    let mut bodies: Vec<Body<'_>> = Vec::new();
    if let Ok(read) = ReadResourceResult::of(result) {
        bodies.extend(read.contents().flatten().map(of));
    } else if let Ok(call) = CallToolResult::of(result) {
        bodies.extend(call.content().flatten().filter_map(|piece| match piece.kind {
            ContentBlockKind::Text(text) => Some((Some(text), None)),
            ContentBlockKind::Image { data, .. } | ContentBlockKind::Audio { data, .. } => Some((None, Some(data))),
            ContentBlockKind::Resource(contents) => Some(of(contents)),
            _ => None,
        }));
    }
    let is_blob = |body: &&Body<'_>| body.0.is_none();
    let read = ReadResourceResult::of(result).is_ok();
    let one = match bodies.iter().filter(is_blob).count() {
        0 if bodies.len() == 1 => bodies.first(),
        // In the answer of a tool, texts around an image describe it.
        1 if !read || bodies.len() == 1 => bodies.iter().find(is_blob),
        _ => None,
    };
    match *one? {
        (Some(text), _) => Some(text.to_string().into_bytes()),
        (None, blob) => decoded(blob?),
    }
}

fn decoded(blob: Blob<'_>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; blob.decoded_len()];
    blob.decode(&mut buffer).ok().map(<[u8]>::to_vec)
}
