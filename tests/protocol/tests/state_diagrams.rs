//! The diagrams in `docs/internals/state-machines.md` show the transitions that the code checks: for each source with a table
//! `TRANSITIONS` there is a Mermaid diagram, after a line with the name of its file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The sources that are searched for tables.
const SOURCES: [&str; 2] = ["src", "adapters"];

/// A machine as lines `From --> To: cause`, in the order of the table or diagram.
type Machine = Vec<String>;

#[test]
fn diagrams_show_the_tables() {
    let (tables, diagrams) = (tables(), diagrams(&read(&root().join("docs/internals/state-machines.md"))));
    for (file, table) in &tables {
        let block = table.iter().map(|line| format!("    {line}\n")).collect::<String>();
        let diagram = diagrams.get(file).unwrap_or_else(|| panic!("`{file}` has no diagram:\n{block}"));
        assert_eq!(diagram, table, "the diagram of `{file}` is not its table:\n{block}");
    }
    assert_eq!(diagrams.keys().collect::<Vec<_>>(), tables.keys().collect::<Vec<_>>(), "diagrams without a table");
}

/// Checks the search of the other test.
#[test]
fn tables_and_diagrams_are_found() {
    let source = "const X: &str = \"no\";\npub(crate) const TRANSITIONS: &[(&str, &str, &str)] = &[\n    (\"A\", \"B\", \"go\"),\n    \
                  (\n        \"B\",\n        \"A\",\n        \"back, or on\",\n    ),\n];\nconst Y: &str = \"no\";\n";
    let machine = vec!["A --> B: go".to_owned(), "B --> A: back, or on".to_owned()];
    assert_eq!(table(source), Some(machine.clone()));
    assert_eq!(table("fn f() { TRANSITIONS.iter() }"), None);
    let text = "## Lights\n\nIn `src/light.rs`:\n\n```mermaid\nstateDiagram-v2\n    [*] --> A\n    A --> B: go\n\n    \
                B --> A: back, or on\n```\n";
    assert_eq!(diagrams(text), BTreeMap::from([("src/light.rs".to_owned(), machine)]));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The tables of all sources, by file.
fn tables() -> BTreeMap<String, Machine> {
    let root = root();
    let mut folders: Vec<_> = SOURCES.iter().map(|source| root.join(source)).collect();
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(&root).expect("it was found there").display().to_string();
                found.extend(table(&read(&path)).map(|table| (name, table)));
            }
        }
    }
    found
}

/// The table of a source: three strings for each row.
fn table(source: &str) -> Option<Machine> {
    let (_, behind) = source.split_once("const TRANSITIONS:")?;
    let (_, rows) = behind.split_once('=').expect("a table has a value");
    let (rows, _) = rows.split_once("];").expect("a table has an end");
    let strings: Vec<_> = rows.split('"').skip(1).step_by(2).collect();
    Some(strings.chunks(3).map(|row| format!("{} --> {}: {}", row[0], row[1], row[2])).collect())
}

/// The diagrams of a text, by the file that is named before each. Where a machine begins (`[*]`) is not compared.
fn diagrams(text: &str) -> BTreeMap<String, Machine> {
    let mut parts = text.split("```mermaid\nstateDiagram-v2\n");
    let mut before = parts.next().unwrap_or("");
    let mut found = BTreeMap::new();
    for part in parts {
        let file = before.rsplit('`').find(|word| word.ends_with(".rs")).expect("a file is named before a diagram");
        let (diagram, behind) = part.split_once("```").expect("a diagram has an end");
        let lines = diagram.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("[*]"));
        let other = found.insert(file.to_owned(), lines.map(String::from).collect());
        assert_eq!(other, None, "`{file}` has two diagrams");
        before = behind;
    }
    found
}
