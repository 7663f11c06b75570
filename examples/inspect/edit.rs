//! Changes members of a JSON file that a person keeps: all other bytes stay as they are.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio_host::schema::same;

use crate::json::{pretty, quote};

/// The columns that a value may take on one line.
const COLUMNS: usize = 80;

/// Sets the member at `path` to the JSON `value`, and makes the objects on the way. Members that are there keep their place;
/// new ones come last. The error says why the text is not changed.
pub(crate) fn set(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return set("{}\n", path, value);
    }
    let root = Raw::parse(text.as_bytes()).map_err(|fault| format!("it is not plain JSON: {fault}"))?;
    let (mut object, mut left) = (root, path);
    loop {
        if object.kind() != JsonKind::Object {
            let at = &path[..path.len() - left.len()];
            return Err(format!("{} is not an object", if at.is_empty() { "it".into() } else { at.join(".") }));
        }
        let Some((&name, rest)) = left.split_first() else { return Err("there is no member to set".into()) };
        let mut found = object.members().filter(|(key, _)| key.eq_str(name));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => return Err(format!("it has {name:?} twice")),
            (Some((_, old)), None) if rest.is_empty() => {
                if Raw::parse(value.as_bytes()).is_ok_and(|value| same(old, value)) {
                    return Ok(text.to_owned());
                }
                let at = offset(text, old.as_bytes());
                let value = laid_out(value, &indent_of_line(text, at));
                return Ok(splice(text, at, old.as_bytes().len(), &value));
            }
            (Some((_, inner)), None) => (object, left) = (inner, rest),
            (None, _) => {
                let value =
                    rest.iter().rev().fold(value.to_owned(), |value, name| format!("{{{}:{value}}}", quote(name)));
                return Ok(insert(text, object, name, &value));
            }
        }
    }
}

/// Adds a member at the end of an object of the text.
fn insert(text: &str, object: Raw<'_>, name: &str, value: &str) -> String {
    let begin = offset(text, object.as_bytes());
    let Some((first, _)) = object.members().next() else {
        let outer = indent_of_line(text, begin);
        let indent = format!("{outer}  ");
        let member = format!("{}: {}", quote(name), laid_out(value, &indent));
        return splice(text, begin, object.as_bytes().len(), &format!("{{\n{indent}{member}\n{outer}}}"));
    };
    // The new member is laid out as the first one is.
    let between = &text[begin + 1..key_offset(text, first)];
    let last =
        object.members().last().map_or(begin, |(_, value)| offset(text, value.as_bytes()) + value.as_bytes().len());
    let value = match between.rsplit_once('\n') {
        Some((_, indent)) => laid_out(value, indent),
        None => value.to_owned(),
    };
    let space = if between.is_empty() { " " } else { between };
    splice(text, last, 0, &format!(",{space}{}: {value}", quote(name)))
}

/// Formats a value whose first line begins somewhere in a line with this indent.
fn laid_out(value: &str, indent: &str) -> String {
    let lines = Raw::parse(value.as_bytes()).map_or_else(|_| value.to_owned(), |raw| pretty(raw, COLUMNS));
    lines.replace('\n', &format!("\n{indent}"))
}

fn splice(text: &str, at: usize, len: usize, new: &str) -> String {
    [&text[..at], new, &text[at + len..]].concat()
}

/// Returns the place of a part of the text.
fn offset(text: &str, part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Returns the place of the opening quote of a key.
fn key_offset(text: &str, key: Text<'_>) -> usize {
    offset(text, key.raw()).saturating_sub(1)
}

fn indent_of_line(text: &str, at: usize) -> String {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// Replaces a file as a whole: its readers see the old text or the new one. A link stays a link, and the permissions
/// stay the same.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let part = beside(&path, &format!(".{}.part", std::process::id()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&part)?;
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Copies a file to the first free name `NAME.old`, `NAME.old2` and so on. Returns that name.
pub(crate) fn back_up(path: &Path) -> io::Result<PathBuf> {
    /// The most copies.
    const COPIES: u32 = 100;
    for n in 1..=COPIES {
        let copy = beside(path, &if n == 1 { ".old".into() } else { format!(".old{n}") });
        match fs::OpenOptions::new().write(true).create_new(true).open(&copy) {
            Ok(mut file) => {
                let old = fs::File::open(path)?;
                file.set_permissions(old.metadata()?.permissions())?;
                io::copy(&mut &old, &mut file)?;
                file.sync_all()?;
                return Ok(copy);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {COPIES} old copies already")))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "{\n    \"theme\" : \"dark\",\n    \"mcpServers\": {\n        \"a\": {\"command\":\"x\"}\n    },\n    \"z\":[1,\n2]\n}\n";

    #[test]
    fn all_else_stays() {
        let new = set(KEPT, &["mcpServers", "b"], r#"{"command":"y","args":[]}"#).unwrap();
        let expected = KEPT.replace(
            "\"a\": {\"command\":\"x\"}",
            "\"a\": {\"command\":\"x\"},\n        \"b\": {\"command\": \"y\", \"args\": []}",
        );
        assert_eq!(new, expected);
        assert_eq!(set(&new, &["mcpServers", "b"], r#"{"command": "y", "args": []}"#).as_deref(), Ok(&*new));
        let replaced = set(KEPT, &["mcpServers", "a"], "1").unwrap();
        assert_eq!(replaced, KEPT.replace(r#"{"command":"x"}"#, "1"));
        assert_eq!(set(r#"{"a":1}"#, &["b"], "2").as_deref(), Ok(r#"{"a":1, "b": 2}"#));
        assert_eq!(set(r#"{ "a":1 }"#, &["b"], "2").as_deref(), Ok(r#"{ "a":1, "b": 2 }"#));
        for empty in ["", " \n", "{}\n"] {
            assert_eq!(set(empty, &["s", "b"], "2").as_deref(), Ok("{\n  \"s\": {\"b\": 2}\n}\n"), "{empty:?}");
        }
        let nested = set("{\n  \"s\": {}\n}\n", &["s", "b"], "2").unwrap();
        assert_eq!(nested, "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n");
        // Long values get lines of their own, indented from where they are.
        let long = format!("{{\"k\":[\"{}\",\"b\"]}}", "a".repeat(90));
        let new = set(KEPT, &["long"], &long).unwrap();
        assert!(
            new.contains("2],\n    \"long\": {\n      \"k\": [\n        \"aaa") && Raw::parse(new.as_bytes()).is_ok(),
            "{new}"
        );
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for (text, words) in [
            ("{ // mine\n}", "it is not plain JSON: "),
            ("{\"a\":1,}", "it is not plain JSON: "),
            ("[]", "it is not an object"),
            ("{\"s\":[]}", "s is not an object"),
            ("{\"s\":{},\"s\":{}}", "it has \"s\" twice"),
        ] {
            let error = set(text, &["s", "b"], "1").unwrap_err();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }
}
