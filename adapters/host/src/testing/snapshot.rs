//! The lists of a server as text: what changes for its clients shows in a diff.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use mcp_sansio::json::{JsonKind, Raw};

/// Writes the members of a value, one on each line, after `path`. Arrays without objects stay on one line.
pub(super) fn flatten(path: &str, value: Raw<'_>, out: &mut String) {
    let is_flat = |value: Raw<'_>| !matches!(value.kind(), JsonKind::Object | JsonKind::Array);
    match value.kind() {
        JsonKind::Object if value.members().next().is_some() => {
            for (name, member) in value.members() {
                flatten(&format!("{path}/{name}"), member, out);
            }
        }
        JsonKind::Array if !value.items().all(is_flat) => {
            for (i, item) in value.items().enumerate() {
                flatten(&format!("{path}/{i}"), item, out);
            }
        }
        // JSON of the server has no newlines.
        _ => drop(writeln!(out, "{path}: {}", value.as_str().replace('\n', " "))),
    }
}

/// Compares a [snapshot](super::Conversation::snapshot) with the one in a file, which belongs to the repository. With the
/// environment variable `UPDATE_SNAPSHOTS=1` it writes the file instead.
///
/// A relative path begins at the folder of the package, where `cargo test` runs tests.
///
/// # Panics
/// If they differ, with the lines that are gone (`-`) and those that are new (`+`); if the file cannot be read or written.
pub fn assert_snapshot(file: impl AsRef<Path>, snapshot: &str) {
    let file = file.as_ref();
    let shown = file.display();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some_and(|value| value == "1") {
        let written = std::fs::write(file, snapshot);
        return written.unwrap_or_else(|error| panic!("{shown} cannot be written: {error}"));
    }
    let old = std::fs::read_to_string(file).unwrap_or_else(|error| {
        panic!("{shown} cannot be read: {error}; UPDATE_SNAPSHOTS=1 cargo test writes it");
    });
    let changes = changes(&old.replace("\r\n", "\n"), snapshot);
    assert!(
        changes.is_empty(),
        "what clients see has changed; UPDATE_SNAPSHOTS=1 cargo test writes {shown} anew if that is meant:\n{changes}"
    );
}

/// Lists the lines that only one of the texts has. Each line has the whole path of its value, so their order says little.
fn changes(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), new.lines().collect());
    let gone = old.lines().filter(|line| !after.contains(line)).map(|line| format!("- {line}\n"));
    let come = new.lines().filter(|line| !before.contains(line)).map(|line| format!("+ {line}\n"));
    let changes: String = gone.chain(come).collect();
    if changes.is_empty() { "the same lines in another order\n".into() } else { changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_line() {
        let mut out = String::new();
        let tool = Raw::constant(
            r#"{"name":"a","inputSchema":{"type":"object","required":["x","y"],"anyOf":[{"a":1}],"o":{}}}"#,
        );
        flatten("tools/a", tool, &mut out);
        let expected = "tools/a/name: \"a\"\ntools/a/inputSchema/type: \"object\"\ntools/a/inputSchema/required: [\"x\",\"y\"]\n\
            tools/a/inputSchema/anyOf/0/a: 1\ntools/a/inputSchema/o: {}\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn changes_are_lines() {
        assert_eq!(changes("a\nb\n", "a\nb\n"), "");
        assert_eq!(changes("a\nb\n", "a\nc\n"), "- b\n+ c\n");
        assert_eq!(changes("a\nb\n", "b\na\n"), "the same lines in another order\n");
    }

    #[test]
    #[should_panic(expected = "- tools/a/name: \"a\"\n+ tools/a/name: \"b\"")]
    fn a_difference_fails() {
        let file = std::env::temp_dir().join(format!("mcp-snapshot-{}", std::process::id()));
        std::fs::write(&file, "tools/a/name: \"a\"\n").unwrap();
        assert_snapshot(&file, "tools/a/name: \"a\"\n");
        let done = std::panic::catch_unwind(|| assert_snapshot(&file, "tools/a/name: \"b\"\n"));
        std::fs::remove_file(&file).unwrap();
        std::panic::resume_unwind(done.unwrap_err());
    }
}
