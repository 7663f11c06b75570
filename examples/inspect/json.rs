//! JSON as text: on one line, indented, coloured; and building JSON from parts.

use mcp_sansio::json::{JsonKind, Raw};

use crate::page::{Page, Spans, Style};
use crate::text::{is_hidden, width};

/// Writes a string as JSON. Characters that a terminal would not show are escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\n' => json.push_str("\\n"),
            '\0'..='\x1f' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    harmless(&json)
}

/// Escapes all characters that are not plain. The value stays the same.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\x7f' || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Formats on one line, without spaces.
pub(crate) fn compact(value: Raw<'_>) -> String {
    let mut out = String::new();
    write(value, [",", ":"], &mut out);
    out
}

/// Formats on several lines, indented by two. Values that fit into the columns stay on one line.
pub(crate) fn pretty(value: Raw<'_>, columns: usize) -> String {
    let mut out = String::new();
    write_lines(value, columns, 0, 0, &mut out);
    out
}

fn key(key: mcp_sansio::json::Text<'_>) -> String {
    harmless(&format!("\"{}\"", String::from_utf8_lossy(key.raw())))
}

/// Writes on one line. `between` has the text between items, and the text between a key and its value.
fn write(value: Raw<'_>, between: [&str; 2], out: &mut String) {
    let [comma, colon] = between;
    match value.kind() {
        JsonKind::Object => {
            out.push('{');
            for (i, (name, value)) in value.members().enumerate() {
                out.extend([if i > 0 { comma } else { "" }, &key(name), colon]);
                write(value, between, out);
            }
            out.push('}');
        }
        JsonKind::Array => {
            out.push('[');
            for (i, value) in value.items().enumerate() {
                out.push_str(if i > 0 { comma } else { "" });
                write(value, between, out);
            }
            out.push(']');
        }
        _ => out.push_str(&harmless(value.as_str())),
    }
}

/// Writes on several lines. `used` columns of the first line are already taken.
fn write_lines(value: Raw<'_>, columns: usize, indent: usize, used: usize, out: &mut String) {
    if value.as_bytes().len() <= columns || is_flat(value) {
        let mut line = String::new();
        write(value, [", ", ": "], &mut line);
        // One column for a comma.
        if is_flat(value) || used + width(&line) < columns {
            return out.push_str(&line);
        }
    }
    let [open, close] = if value.kind() == JsonKind::Object { ['{', '}'] } else { ['[', ']'] };
    out.push(open);
    let start = |out: &mut String, first: bool| {
        out.push_str(if first { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', indent + 2));
    };
    for (i, (name, value)) in value.members().enumerate() {
        start(out, i == 0);
        let name = key(name);
        out.extend([&name, ": "]);
        write_lines(value, columns, indent + 2, indent + 4 + width(&name), out);
    }
    for (i, value) in value.items().enumerate() {
        start(out, i == 0);
        write_lines(value, columns, indent + 2, indent + 2, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(close);
}

/// Builds an object member by member.
#[derive(Debug, Default)]
pub(crate) struct Members(String);

impl Members {
    /// Adds a member with the value `json`.
    pub(crate) fn add(&mut self, key: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(key));
        self.0.push(':');
        self.0.push_str(json);
    }

    /// Returns the object.
    pub(crate) fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// Builds an array of JSON values.
pub(crate) fn array<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<_> = items.iter().map(AsRef::as_ref).collect();
    format!("[{}]", items.join(","))
}

/// Shows a value: objects as tables of their members, arrays of flat objects as tables with columns.
pub(crate) fn show(page: &mut Page, indent: usize, value: Raw<'_>) {
    match value.kind() {
        JsonKind::Object if value.members().next().is_some() => show_members(page, indent, value),
        JsonKind::Array if value.items().next().is_some() => show_items(page, indent, value),
        _ => page.spans(indent, &scalar(value)),
    }
}

fn is_flat(value: Raw<'_>) -> bool {
    let empty = value.members().next().is_none() && value.items().next().is_none();
    !matches!(value.kind(), JsonKind::Object | JsonKind::Array) || empty
}

/// Returns `true` if the value is short enough for one line: it has no objects.
fn is_short(value: Raw<'_>) -> bool {
    is_flat(value) || value.kind() == JsonKind::Array && value.items().all(is_flat) && value.as_bytes().len() <= 60
}

fn show_members(page: &mut Page, indent: usize, object: Raw<'_>) {
    let row = |(key, value): (mcp_sansio::json::Text<'_>, Raw<'_>)| vec![Spans::of(Style::Name, key), scalar(value)];
    let short: Vec<_> = object.members().filter(|(_, value)| is_short(*value)).map(row).collect();
    page.table(indent, &short);
    for (key, value) in object.members().filter(|(_, value)| !is_short(*value)) {
        page.say(indent, Style::Name, key);
        show(page, indent + 2, value);
    }
}

fn show_items(page: &mut Page, indent: usize, array: Raw<'_>) {
    if let Some(columns) = columns(array) {
        return show_columns(page, indent, array, &columns);
    }
    for item in array.items() {
        if is_short(item) {
            page.hanging(indent, 2, &Spans::of(Style::Dim, "- ").join(scalar(item)));
        } else {
            page.say(indent, Style::Dim, "-");
            show(page, indent + 2, item);
        }
    }
}

/// Returns the keys of the objects in an array, if all objects are flat and have the same keys.
fn columns(array: Raw<'_>) -> Option<Vec<String>> {
    let keys: Vec<String> = array.items().next()?.members().map(|(key, _)| key.to_string()).collect();
    let alike = |item: Raw<'_>| {
        item.members().count() == keys.len()
            && keys.iter().all(|key| item.get(key).is_some_and(|value| is_flat(value) && value.as_bytes().len() < 80))
    };
    ((2..=12).contains(&keys.len()) && array.items().all(alike)).then_some(keys)
}

fn show_columns(page: &mut Page, indent: usize, array: Raw<'_>, keys: &[String]) {
    let mut rows = vec![keys.iter().map(|key| Spans::of(Style::Dim, key)).collect::<Vec<_>>()];
    for item in array.items() {
        rows.push(keys.iter().filter_map(|key| item.get(key)).map(scalar).collect());
    }
    // Numbers are aligned to the right.
    for (column, key) in keys.iter().enumerate() {
        if array.items().all(|item| item.get(key).is_some_and(|value| value.kind() == JsonKind::Number)) {
            let width = rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
            rows.iter_mut().for_each(|row| row[column].pad_left(width));
        }
    }
    let wide: usize = (0..keys.len()).map(|i| rows.iter().map(|row| row[i].width() + 2).max().unwrap_or(0)).sum();
    if indent + wide <= page.look().width + 2 {
        return page.columns_of(indent, &rows);
    }
    for item in array.items() {
        page.say(indent, Style::Dim, "-");
        show_members(page, indent + 2, item);
    }
}

/// Formats a value on one line. Strings have no quotes.
fn scalar(value: Raw<'_>) -> Spans {
    match (value.kind(), value.text()) {
        (_, Some(text)) => Spans::of(Style::Plain, text),
        (JsonKind::Null, _) => Spans::of(Style::Dim, "null"),
        (JsonKind::Array, _) if value.items().next().is_some() => {
            let mut spans = Spans::default();
            value
                .items()
                .for_each(|item| spans.item(", ", Style::Plain, item.text().map_or(compact(item), clean_text)));
            spans
        }
        _ => Spans::of(Style::Plain, compact(value)),
    }
}

fn clean_text(text: mcp_sansio::json::Text<'_>) -> String {
    crate::text::one_line(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Look;

    fn raw(json: &str) -> Raw<'_> {
        Raw::parse(json.as_bytes()).unwrap()
    }

    fn shown(json: &str, width: usize) -> String {
        let mut page = Page::new(Look { color: false, width });
        show(&mut page, 0, raw(json));
        page.finish()
    }

    #[test]
    fn writes() {
        let json = "{ \"a\" : [1, 2.50,{}], \"b\\u0041\":\"x\u{9b}\u{7f}\", \"c\":[] }";
        assert_eq!(compact(raw(json)), r#"{"a":[1,2.50,{}],"b\u0041":"x\u009b\u007f","c":[]}"#);
        let lines = "{\n  \"a\": [1, 2.50, {}],\n  \"b\\u0041\": \"x\\u009b\\u007f\",\n  \"c\": []\n}";
        assert_eq!(pretty(raw(json), 30), lines);
        assert_eq!(pretty(raw("[1,[2,[3]]]"), 12), "[\n  1,\n  [2, [3]]\n]");
        assert_eq!(pretty(raw("[1,[2,[3]]]"), 40), "[1, [2, [3]]]");
        assert_eq!(quote("a\"\n\x1b"), "\"a\\\"\\n\\u001b\"");
        let mut members = Members::default();
        members.add("k", "1");
        members.add("l", &array(&["2", "3"]));
        assert_eq!(members.finish(), r#"{"k":1,"l":[2,3]}"#);
        assert_eq!(Members::default().finish(), "{}");
    }

    #[test]
    fn shows() {
        let json = r#"{"seconds":12.5,"words":"a while","tags":["a","b"],"deep":{"x":{"y":null}},"list":[
            {"pid":1,"name":"init"},{"pid":1234,"name":"a"}],"odd":[1,{"z":true}],"none":{}}"#;
        let expected = "\
seconds  12.5
words    a while
tags     a, b
none     {}
deep
  x
    y  null
list
   pid  name
     1  init
  1234  a
odd
  - 1
  -
    z  true
";
        assert_eq!(shown(json, 60), expected);
        assert_eq!(
            shown(r#"[{"pid":1,"name":"a long, long name"}]"#, 20),
            "-\n  pid   1\n  name  a long, long\n        name\n"
        );
        assert_eq!(shown("3", 20), "3\n");
        assert_eq!(shown("\"\\u001b[2J\"", 20), "␛[2J\n");
    }
}
