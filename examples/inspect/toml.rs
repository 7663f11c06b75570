//! Changes and reads a TOML file that a person keeps: all other bytes stay as they are.

use mcp_sansio::json::{JsonKind, Raw};
use mcp_sansio_host::schema::same;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::edit::is_same_kind;
use crate::json::{Members, array, quote};

/// As [`set_entry`](crate::edit::set_entry), for an entry in a table of the file.
pub(crate) fn set_entry(text: &str, [servers, name]: [&str; 2], entry: &str, own: &[&str]) -> Result<String, String> {
    let mut text = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut file = parse(&text)?;
    // The library makes one kind of line ends, for instance.
    if file.to_string() != text {
        return Err("it would not stay the same but for the entry".into());
    }
    let new = Raw::parse(entry.as_bytes()).map_err(|fault| fault.to_string())?;
    let table = file.entry(servers).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let table = table.as_table_like_mut().ok_or_else(|| format!("{servers} is not a table"))?;
    let old = table.get(name).map(json);
    let old = old.as_ref().and_then(|old| Raw::parse(old.as_bytes()).ok());
    if old.is_some_and(|old| is_same_kind(old, new, own))
        && let Some(table) = table.get_mut(name).and_then(Item::as_table_like_mut)
    {
        for (name, value) in new.members() {
            let name = name.to_string();
            if old.and_then(|old| old.get(&name)).is_some_and(|old| same(old, value)) {
                continue;
            }
            let mut value = toml(value);
            if let Some(old) = table.get(&name).and_then(Item::as_value) {
                *value.decor_mut() = old.decor().clone();
            }
            table.insert(&name, Item::Value(value));
        }
    } else {
        let entry: Table = new.members().map(|(name, value)| (name.to_string(), toml(value))).collect();
        table.insert(name, Item::Table(entry));
    }
    Ok(file.to_string())
}

/// Returns the whole file as JSON.
pub(crate) fn read(text: &str) -> Result<String, String> {
    Ok(json(parse(text)?.as_item()))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| format!("it is not TOML: {}", error.message()))
}

fn json(item: &Item) -> String {
    if let Some(table) = item.as_table_like() {
        let mut members = Members::default();
        table.iter().for_each(|(name, item)| members.add(name, &json(item)));
        return members.finish();
    }
    match item.as_value() {
        Some(Value::String(text)) => quote(text.value()),
        Some(Value::Boolean(is_true)) => is_true.value().to_string(),
        Some(Value::Integer(number)) => number.value().to_string(),
        Some(Value::Array(items)) => array(&items.iter().map(|value| json(&value.clone().into())).collect::<Vec<_>>()),
        // Of no use for a server: the text of a number, a date.
        Some(other) => quote(other.to_string().trim()),
        None => "null".into(),
    }
}

/// Converts an entry: its values are strings, and arrays and objects of them.
fn toml(value: Raw<'_>) -> Value {
    match value.kind() {
        JsonKind::Object => Value::InlineTable(
            value.members().map(|(name, value)| (name.to_string(), toml(value))).collect::<InlineTable>(),
        ),
        JsonKind::Array => Value::Array(value.items().map(toml).collect::<Array>()),
        _ => value.text().map_or_else(|| value.as_str().to_owned(), |text| text.to_string()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [&str; 3] = ["command", "args", "url"];
    const FILE: &str = "# mine\nmodel = 'x'   # kept\n\n[mcp_servers.a] # first\ncommand = \"a\" # why\nstartup_timeout_sec = 20\n\n[mcp_servers.a.env]\nK = \"v\"\n\n[tui]\ntheme = { a = 1,b=2 }\n";

    fn set(text: &str, name: &str, entry: &str) -> String {
        set_entry(text, ["mcp_servers", name], entry, &OWN).unwrap()
    }

    #[test]
    fn all_else_stays() {
        let new = set(FILE, "b c", r#"{"command":"y","args":["-x"],"env":{"K":"v"}}"#);
        let added = "[mcp_servers.\"b c\"]\ncommand = \"y\"\nargs = [\"-x\"]\nenv = { K = \"v\" }\n";
        assert_eq!(new.replace(added, "").replace("\n\n\n", "\n\n"), FILE, "{new}");
        assert!(new.contains(added), "{new}");
        assert_eq!(set(&new, "b c", r#"{"args":["-x"],"command":"y"}"#), new);
        assert_eq!(set(FILE, "a", r#"{"command":"z"}"#), FILE.replace("command = \"a\"", "command = \"z\""));
        assert_eq!(set("", "b", r#"{"url":"u"}"#), "[mcp_servers.b]\nurl = \"u\"\n");
        assert_eq!(set("a = 1", "b", r#"{"url":"u"}"#), "a = 1\n\n[mcp_servers.b]\nurl = \"u\"\n");
        let inline = set("mcp_servers = { a = { url = \"x\" } }\n", "b", r#"{"url":"u"}"#);
        assert_eq!(read(&inline).unwrap(), r#"{"mcp_servers":{"a":{"url":"x"},"b":{"url":"u"}}}"#);
        let json = read(&new).unwrap();
        assert!(json.contains(r#""b c":{"command":"y","args":["-x"],"env":{"K":"v"}}"#), "{json}");
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for (text, words) in [
            ("[a", "it is not TOML: "),
            ("mcp_servers = 1\n", "mcp_servers is not a table"),
            ("a = 1\r\n", "it would not stay the same"),
        ] {
            let error = set_entry(text, ["mcp_servers", "b"], "{}", &OWN).unwrap_err();
            assert!(error.starts_with(words), "{text:?}: {error}");
        }
    }
}
