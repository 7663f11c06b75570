//! The tables of limits in SECURITY.md: each row names a test, and each test that is named exists where the row says.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with tests.
const SOURCES: [&str; 3] = ["src", "tests", "adapters"];
/// The tables of the page, and a number that they have in any case: a table that is not found must not pass.
const ROWS: usize = 50;

#[test]
fn every_row_names_a_test_that_exists() {
    let tests = tests();
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() > ROWS, "{} rows", rows.len());
    let wrong: Vec<_> = rows.iter().filter_map(|cell| check(cell, &tests).err()).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks the check of the other test.
#[test]
fn names_that_are_wrong_are_found() {
    let tests = [
        ("adapters/smol/tests/http.rs", "slow"),
        ("adapters/blocking/tests/http.rs", "slow"),
        ("adapters/smol/tests/http.rs", "fast"),
        ("tests/remote/unread.rs", "both"),
        ("tests/protocol/tests/shares.rs", "one"),
    ]
    .map(|(file, name)| Test { file: file.into(), name: name.into() });
    let good = [
        "`shares::one`",
        "`http::slow`, `shares::one`",
        "smol `http::fast`",
        "`http::slow` of both adapters",
        "`unread::both` of both adapters; `shares::one`",
        "`http::*`",
        "`shares::one`, `slow`",
        "`tests/protocol/Cargo.toml`",
    ];
    for cell in good {
        assert_eq!(check(cell, &tests), Ok(()), "{cell}");
    }
    let bad = [
        "",
        "http adapters",
        "`shares::two`",
        "`http::one`",
        "`share::one`",
        "`none::*`",
        "`shares::one`, `two`",
        "blocking `http::fast`",
        "`http::fast` of both adapters",
        "`tests/protocol/none.sh`",
    ];
    for cell in bad {
        assert!(check(cell, &tests).is_err(), "{cell}");
    }
    let page =
        "## Limits\n| resource | test |\n|---|---|\n| a | `b::c` |\n\n| other | column |\n|---|---|\n| d | e |\n";
    assert_eq!(rows(page), ["`b::c`"]);
}

struct Test {
    /// From the root of the repository.
    file: String,
    name: String,
}

/// Returns the last cells of the tables whose last column is `test`.
fn rows(page: &str) -> Vec<&str> {
    let (mut cells, mut inside) = (Vec::new(), false);
    for line in page.lines() {
        let cell = line.strip_suffix('|').and_then(|line| line.rsplit_once('|'));
        match cell.map(|(_, cell)| cell.trim()) {
            None => inside = false,
            Some("test") => inside = true,
            Some(cell) if inside && !cell.starts_with("---") => cells.push(cell),
            Some(_) => {}
        }
    }
    cells
}

/// Checks a cell: code spans with commas or semicolons between them. `PACKAGE` before the span is the folder of an adapter,
/// `of both adapters` behind it means tests of each.
fn check(cell: &str, tests: &[Test]) -> Result<(), String> {
    let mut named = 0;
    for part in cell.split('`').collect::<Vec<_>>().windows(3).step_by(2) {
        let (before, span, after) = (part[0], part[1], part[2]);
        named += 1;
        if span.contains('/') {
            root().join(span).exists().then_some(()).ok_or_else(|| format!("{span} does not exist"))?;
            continue;
        }
        let (module, name) = span.rsplit_once("::").unwrap_or(("", span));
        let package = before.split_whitespace().last().filter(|word| word.chars().all(char::is_alphanumeric));
        let folders: Vec<String> = match (package, after.trim_start().starts_with("of both adapters")) {
            (Some(package), _) => vec![format!("adapters/{package}/")],
            (None, true) => ["blocking", "smol"].map(|adapter| format!("adapters/{adapter}/")).into(),
            (None, false) => vec![String::new()],
        };
        let is_meant = |test: &Test, folder: &str| {
            let shared = folder.starts_with("adapters/") && test.file.starts_with("tests/remote/");
            let modules = test.file.trim_end_matches(".rs").split('/');
            (test.file.starts_with(folder) || shared)
                && (name == "*" || test.name == name)
                && module.split("::").all(|wanted| wanted.is_empty() || modules.clone().any(|module| module == wanted))
        };
        let missing = folders.iter().find(|folder| !tests.iter().any(|test| is_meant(test, folder)));
        if let Some(folder) = missing {
            return Err(format!("{cell}: no test {span} in {folder}"));
        }
    }
    if named == 0 { Err(format!("{cell:?} names no test")) } else { Ok(()) }
}

/// Returns all tests of the repository: functions below `#[test]`.
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for path in SOURCES.iter().flat_map(|folder| files(&root().join(folder))) {
        let text = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            is_test |= line.starts_with("#[test]");
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next()) {
                tests.extend(is_test.then(|| Test { file: file.clone(), name: name.to_owned() }));
                is_test = false;
            }
        }
    }
    tests
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the Rust files below a folder, except build output.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(if path.ends_with("target") { Vec::new() } else { files(&path) });
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
