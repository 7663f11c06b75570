//! The map from the specification to tests and pages: each row of the tables in `docs/spec/` has a target, and each
//! target exists. `docs/spec/README.md` explains the columns.
use mcp_sansio::revision::Revision;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const ROLES: [&str; 5] = ["server", "client", "both", "host", "authorization server"];
const STRENGTHS: [&str; 4] = ["MUST", "SHOULD", "SHALL", "REQUIRED"];
/// The side of a test, by the first of these parts that its path has. All others are of the server's side.
const SIDES: [(&str, &str); 14] = [
    ("/both/", "both"),
    ("/http_remote.rs", "both"),
    ("src/trace_context.rs", "both"),
    ("src/tasks/machine.rs", "both"),
    ("/resource_server.rs", "server"),
    ("/client", "client"),
    ("/tasks_client.rs", "client"),
    ("/events_client.rs", "client"),
    ("/auth/", "client"),
    ("/host/", "client"),
    ("/inspect/", "client"),
    ("/child.rs", "client"),
    ("receiver.rs", "client"),
    ("/remote.rs", "client"),
];
/// Folders with tests that may carry a reference.
const SOURCES: [&str; 5] = ["src", "tests", "adapters", "examples", "fuzz"];

#[test]
fn every_rule_has_a_target_that_exists() {
    let map = Map::read();
    let mut wrong = map.wrong.clone();
    wrong.extend(map.rows.iter().flat_map(|row| map.check(row)));
    wrong.extend(map.unnamed_references());
    done(wrong);
}

#[test]
fn every_sentence_has_a_row() {
    let Some(sentences) = sentences() else { return };
    let ids: BTreeSet<String> = Map::read().rows.into_iter().map(|row| row.id).collect();
    let missing = sentences.difference(&ids).map(|id| format!("{id}: this sentence has no row"));
    // The sentences of the events extension, `E…`, stand in a text of their own.
    let unknown = ids
        .difference(&sentences)
        .filter(|id| !id.starts_with('E'))
        .map(|id| format!("{id}: this row has no sentence"));
    done(missing.chain(unknown).collect());
}

#[test]
fn the_counts_are_those_of_the_readmes() {
    let rows = Map::read().rows;
    let count = |kind: fn(&Target) -> bool| rows.iter().filter(|row| row.targets.first().is_some_and(kind)).count();
    let counts = format!(
        "{} rules: {} held by tests, {} the caller's duty, {} not applicable.",
        rows.len(),
        count(|target| matches!(target, Target::Test(..) | Target::Transcript(_))),
        count(|target| matches!(target, Target::Caller(..))),
        count(|target| matches!(target, Target::NotApplicable)),
    );
    say(format!("{counts}\n"));
    let read = |page: &str| fs::read_to_string(root().join(page)).unwrap();
    for page in ["README.md", "docs/spec/README.md"] {
        assert!(read(page).contains(&counts), "{page} does not say: {counts}");
    }
    let index = read("docs/spec/README.md");
    let unlisted = rows.iter().filter_map(|row| row.page.rsplit('/').next()).find(|page| !index.contains(*page));
    assert_eq!(unlisted, None, "docs/spec/README.md has no link to it");
}

struct Row {
    page: String,
    id: String,
    revisions: String,
    targets: Vec<Target>,
}

/// One part of the column `Held by`.
#[derive(Debug)]
enum Target {
    /// A file and a function.
    Test(String, String),
    /// A file; a `*` in it stands for each revision of the row.
    Transcript(String),
    /// A page and a heading.
    Caller(String, String),
    NotApplicable,
}

#[derive(Default)]
struct Map {
    rows: Vec<Row>,
    /// Ids by the test (`file:function`) or transcript (`file`) that carries them.
    references: BTreeMap<String, BTreeSet<String>>,
    wrong: Vec<String>,
}

impl Map {
    fn read() -> Map {
        let mut map = Map::default();
        let mut ids = BTreeSet::new();
        for path in files(&root().join("docs/spec"), "md") {
            for line in fs::read_to_string(&path).unwrap().lines() {
                match read_row(&name(&path), line) {
                    None => {}
                    Some(Ok(row)) if !ids.insert(row.id.clone()) => map.wrong.push(format!("{}: two rows", row.id)),
                    Some(Ok(row)) => map.rows.push(row),
                    Some(Err(wrong)) => map.wrong.push(format!("{}: {wrong}: {line}", name(&path))),
                }
            }
        }
        for path in SOURCES.iter().flat_map(|folder| files(&root().join(folder), "rs")) {
            map.read_tests(&path);
        }
        for path in files(&root().join("tests/protocol/transcripts"), "jsonl") {
            for line in fs::read_to_string(&path).unwrap().lines() {
                let Some(ids) = line.strip_prefix("# spec: ") else { continue };
                map.refer(name(&path), ids);
            }
        }
        map
    }

    /// Finds `// spec: …` above `#[test]`, and the name of the function below.
    fn read_tests(&mut self, path: &Path) {
        let (mut carried, mut is_test) = (Vec::new(), false);
        for line in fs::read_to_string(path).unwrap().lines() {
            let line = line.trim_start();
            if let Some(ids) = line.strip_prefix("// spec: ") {
                carried.push(ids.to_owned());
            } else if line.starts_with("#[test]") {
                is_test = true;
            } else if let Some(function) = line.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next()) {
                if !carried.is_empty() && !is_test {
                    self.wrong.push(format!("{}: {function} carries a reference and is no test", name(path)));
                }
                for ids in carried.drain(..) {
                    self.refer(format!("{}:{function}", name(path)), &ids);
                }
                is_test = false;
            }
        }
    }

    fn refer(&mut self, place: String, ids: &str) {
        self.references.entry(place).or_default().extend(ids.split_whitespace().map(str::to_owned));
    }

    fn check(&self, row: &Row) -> Vec<String> {
        let targets = row.targets.iter().flat_map(|target| match target {
            Target::Test(file, function) => vec![self.carries(&row.id, &format!("{file}:{function}"))],
            Target::Transcript(file) => transcripts(row, file).iter().map(|file| self.carries(&row.id, file)).collect(),
            Target::Caller(page, heading) => vec![has_heading(page, heading)],
            Target::NotApplicable => Vec::new(),
        });
        targets.filter_map(Result::err).map(|wrong| format!("{}, {}: {wrong}", row.page, row.id)).collect()
    }

    fn carries(&self, id: &str, place: &str) -> Result<(), String> {
        match self.references.get(place) {
            Some(ids) if ids.contains(id) => Ok(()),
            Some(_) => Err(format!("{place} does not carry {id}")),
            None => Err(format!("{place} carries no reference, or does not exist")),
        }
    }

    /// Returns the references that no row names.
    fn unnamed_references(&self) -> Vec<String> {
        let named = |target: &Target, row: &Row| match target {
            Target::Test(file, function) => vec![format!("{file}:{function}")],
            Target::Transcript(file) => transcripts(row, file),
            Target::Caller(..) | Target::NotApplicable => Vec::new(),
        };
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.rows {
            places.insert(&row.id, row.targets.iter().flat_map(|target| named(target, row)).collect());
        }
        let carried = self.references.iter().flat_map(|(place, ids)| ids.iter().map(move |id| (place, id)));
        carried
            .filter(|(place, id)| !places.get(id.as_str()).is_some_and(|named| named.contains(place)))
            .map(|(place, id)| format!("{place} carries {id}, and the row of {id} does not name it"))
            .collect()
    }
}

/// Returns the files of a transcript's name; with a `*`, one for each revision of the row.
fn transcripts(row: &Row, file: &str) -> Vec<String> {
    match file.contains('*') {
        true => row.revisions.split(", ").map(|revision| file.replace('*', revision)).collect(),
        false => vec![file.to_owned()],
    }
}

/// A row of a table; `None` for every other line.
fn read_row(page: &str, line: &str) -> Option<Result<Row, String>> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [id, revisions, place, role, rule, held] = cells[..] else {
        return Some(Err(format!("{} cells and not 6", cells.len())));
    };
    if id == "Id" || id.starts_with("--") {
        return None;
    }
    let mut wrong = Vec::new();
    let mut need = |right: bool, why: &str| wrong.extend((!right).then(|| why.to_owned()));
    need(is_id(id), "the id is no letter with three digits");
    need(revisions == "all" || revisions.split(", ").all(is_revision), "the revisions are none");
    need(place.starts_with('[') && place.contains("](https://modelcontextprotocol.io/"), "no link to the page");
    need(ROLES.contains(&role), "no such role");
    need(
        rule.starts_with("part of ") || STRENGTHS.iter().any(|word| rule.contains(word)),
        "a rule says MUST or SHOULD",
    );
    let targets = held.split("; ").map(read_target).collect::<Result<Vec<_>, _>>();
    let targets = match (targets, wrong.first()) {
        (Ok(targets), None) => targets,
        (Err(wrong), _) => return Some(Err(wrong)),
        (_, Some(wrong)) => return Some(Err(wrong.clone())),
    };
    let revisions =
        if revisions == "all" { Revision::ALL.map(Revision::date).join(", ") } else { revisions.to_owned() };
    let missing = missing_side(role, &targets);
    let row = Row { page: page.to_owned(), id: id.to_owned(), revisions, targets };
    Some(missing.map_or(Ok(row), |side| Err(format!("nothing is named of the {side}'s side"))))
}

/// Returns a side that has to keep the rule and has no target. A reason why a rule does not apply is of
/// the side that nothing else is of.
fn missing_side(role: &str, targets: &[Target]) -> Option<&'static str> {
    let needed: &[&str] = match role {
        "both" => &["server", "client"],
        "server" => &["server"],
        "client" | "host" => &["client"],
        _ => &[],
    };
    let sides: Vec<&str> = targets.iter().map(side).collect();
    let mut missing = needed.iter().filter(|side| !sides.contains(side) && !sides.contains(&"both"));
    match sides.iter().filter(|side| **side == "any").count() {
        reasons if reasons == sides.len() => None,
        reasons => missing.nth(reasons).copied(),
    }
}

fn side(target: &Target) -> &'static str {
    match target {
        Target::Test(file, _) => SIDES.iter().find(|(part, _)| file.contains(part)).map_or("server", |(_, side)| side),
        Target::Transcript(_) => "server",
        Target::Caller(page, _) if page.ends_with("duties-client.md") => "client",
        Target::Caller(..) => "server",
        Target::NotApplicable => "any",
    }
}

fn is_revision(text: &str) -> bool {
    Revision::from_date(text).is_some()
}

fn is_id(text: &str) -> bool {
    text.len() == 4
        && text[..1].chars().all(|c| c.is_ascii_uppercase())
        && text[1..].chars().all(|c| c.is_ascii_digit())
}

fn read_target(text: &str) -> Result<Target, String> {
    let plain = text.trim_matches('`');
    if let Some(place) = plain.strip_prefix("caller: ") {
        let (page, heading) =
            place.trim_matches('`').split_once('#').ok_or("a caller's duty has a page and a heading")?;
        return Ok(Target::Caller(page.to_owned(), heading.to_owned()));
    }
    if plain.starts_with("n/a: ") {
        return Ok(Target::NotApplicable);
    }
    match plain.split_once(".rs:") {
        Some((file, function)) => Ok(Target::Test(format!("{file}.rs"), function.to_owned())),
        None if plain.ends_with(".jsonl") => Ok(Target::Transcript(plain.to_owned())),
        None => Err(format!("no target: {text:?}")),
    }
}

/// Checks that a page has the heading of an anchor.
fn has_heading(page: &str, anchor: &str) -> Result<(), String> {
    let text = fs::read_to_string(root().join(page)).map_err(|error| format!("{page}: {error}"))?;
    let mut headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    match headings.any(|heading| slug(heading) == anchor) {
        true => Ok(()),
        false => Err(format!("{page} has no heading for #{anchor}")),
    }
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Returns the ids of all sentences; `None`, with a line on stderr, where the specification is not there.
fn sentences() -> Option<BTreeSet<String>> {
    let path = mcp_sansio_test_support::spec_dir().join("requirements.tsv");
    match fs::read_to_string(&path) {
        Ok(text) => {
            let ids = text.lines().filter_map(|line| line.split('\t').next()).filter(|id| is_id(id));
            Some(ids.map(str::to_owned).collect())
        }
        Err(_) => {
            let required = std::env::var_os("MCP_SPEC_REQUIRED").is_some_and(|value| value == "1");
            assert!(!required, "no sentences at {}, and MCP_SPEC_REQUIRED is 1 (set MCP_SPEC_DIR)", path.display());
            say(format!("skipped: no sentences at {} (set MCP_SPEC_DIR)\n", path.display()));
            None
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the files with this extension below a folder, except build output.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            let skipped = ["target", "node_modules", ".venv"].iter().any(|name| path.ends_with(name));
            found.extend(if skipped { Vec::new() } else { files(&path, extension) });
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A path from the root of the repository.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

fn done(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Writes to stderr directly: the test harness hides the output of a test that passes.
fn say(text: String) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
