//! The layers of the crates: which module may import which, and where revisions are compared.
//!
//! The sources are read as text. A name `crate::module` (at the top level also `super::module`) counts as an import;
//! unit tests and comments do not count.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A crate: the folder of its sources, and its layers from the lowest to the highest. Modules of one layer do not
/// import each other. `lib` stands for the items in `lib.rs`.
const CRATES: [(&str, &[&[&str]]); 12] = [
    (
        "src",
        &[
            &["sink", "revision", "search", "time"],
            &["memory"],
            &["json"],
            &["frame"],
            &["protocol"],
            &["rpc"],
            &["balance"],
            &["content", "error", "trace_context"],
            &["client", "server"],
            &["service"],
            &["line_server"],
            &["log"],
        ],
    ),
    (
        "adapters/http/src",
        &[
            &["names", "param_headers", "seal", "sse", "token"],
            &["endpoint"],
            &["http1"],
            &["client", "host"],
            &["lib"],
        ],
    ),
    (
        "adapters/auth/src",
        &[
            &["time"],
            &["buffer", "challenge", "config", "jose", "pkce", "url"],
            &["dpop", "error", "form", "store"],
            &["metadata", "steps"],
            &["demand", "registration"],
            &["state"],
            &["requests"],
            &["flow"],
            &["resource_server"],
            &["lib"],
        ],
    ),
    (
        "adapters/skills/src",
        &[
            &["capability", "digest", "front_matter", "sha256", "uri"],
            &["error"],
            &["contents", "entry"],
            &["active", "catalog", "server"],
            &["lib"],
        ],
    ),
    ("adapters/apps/src", &[&["capability", "constant"], &["meta", "page"], &["lib"]]),
    (
        "adapters/tasks/src",
        &[
            &["date", "machine", "waiters"],
            &["client", "store"],
            &["response"],
            &["last_state"],
            &["place"],
            &["legacy"],
            &["methods", "receiver"],
            &["lib"],
        ],
    ),
    ("adapters/blocking/src", &[&["pump", "sockets", "writer"], &["lib"], &["client", "http", "serve"]]),
    (
        "adapters/smol/src",
        &[&["answers", "backlog", "interrupted"], &["connection", "stream"], &["serve"], &["client", "http"], &["lib"]],
    ),
    (
        "adapters/tower/src",
        &[
            &["answer", "keeper", "options"],
            &["waits"],
            &["shared"],
            &["body", "handle", "request"],
            &["mount"],
            &["lib"],
        ],
    ),
    ("adapters/fleet/src", &[&["message", "options"], &["shared"], &["hearing", "sending", "tasks"], &["lib"]]),
    ("adapters/derive/src", &[&["attributes"], &["members"], &["arguments", "entry", "output"], &["lib"]]),
    ("adapters/embedded/src", &[&["error"], &["wire", "packet"], &["asynch", "client"], &["lib"]]),
];

/// Known imports upwards.
const UPWARDS: &[&str] = &[];

/// A file of a crate.
struct Source {
    /// The name of its module right below the crate's root; `lib` for `lib.rs`.
    module: String,
    /// `super` is the crate's root.
    is_top: bool,
    text: String,
}

#[test]
fn dependencies_run_downwards_only() {
    let mut wrong = BTreeSet::new();
    for (root, layers) in CRATES {
        let height = |module: &str| layers.iter().position(|layer| layer.contains(&module));
        for source in sources(root) {
            let own = height(&source.module);
            assert!(own.is_some() || source.module == "lib", "{root}: {} has no layer in this test", source.module);
            // A name that is no module is an item of `lib.rs`.
            let is_up = |import: &String| *import != source.module && height(import).or(height("lib")) >= own;
            let is_module = |import: &String| source.module != "lib" || height(import).is_some();
            let found =
                imports(&source).into_iter().filter(|import| own.is_some() && is_module(import) && is_up(import));
            wrong.extend(found.map(|import| format!("{root}: {} imports {import}", source.module)));
        }
    }
    assert_eq!(wrong, UPWARDS.iter().copied().map(String::from).collect(), "imports upwards, found and known");
}

/// Only the module about revisions names revisions: it has a named function for each difference.
#[test]
fn revisions_are_compared_in_one_place() {
    let names_one = |line: &&str| line.match_indices("V20").any(|(at, _)| line[at + 3..].starts_with(char::is_numeric));
    let wrong: Vec<_> = sources("src")
        .iter()
        .filter(|source| source.module != "revision")
        .flat_map(|source| code(&source.text).filter(names_one).map(|line| format!("{}: {line}", source.module)))
        .collect();
    assert_eq!(wrong, [""; 0]);
}

/// What `Debug` prints is the name of the type, also after it was renamed.
#[test]
fn debug_prints_the_name_of_the_type() {
    let mut wrong = Vec::new();
    for source in CRATES.iter().flat_map(|(root, _)| sources(root)) {
        for written in source.text.split(" Debug for ").skip(1).chain(source.text.split("::Debug for ").skip(1)) {
            let name: String = written.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            let body = written.split("\n}").next().unwrap_or_default();
            let printed = body.split("f.debug_struct(\"").nth(1).and_then(|rest| rest.split('"').next());
            wrong.extend(
                printed.filter(|&printed| printed != name).map(|printed| format!("{name} is printed as {printed}")),
            );
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// Checks the search of the other tests.
#[test]
fn imports_are_found() {
    let text = "use crate::json::{self, Raw};\nuse crate::{sink, rpc::begin};\nuse super::frame;\n// crate::time\n\
                fn f() { crate::records::g() }\n#[cfg(test)]\nmod tests { use crate::testing; }\n";
    let source = Source { module: "session".into(), is_top: true, text: text.into() };
    assert_eq!(imports(&source).into_iter().collect::<Vec<_>>(), ["frame", "json", "records", "rpc", "sink"]);
    let text = "mod wire;\npub use client::Client;\nfn f() { wire::g(client) }\n";
    let lib = Source { module: "lib".into(), is_top: true, text: text.into() };
    assert_eq!(imports(&lib).into_iter().collect::<Vec<_>>(), ["wire"]);
}

/// All files of a crate but those of unit tests.
fn sources(root: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(root);
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is a folder") {
            let path = entry.expect("it can be read").path();
            let within = path.strip_prefix(&root).expect("it was found there").with_extension("");
            let names: Vec<_> = within.iter().map(|name| name.to_string_lossy()).collect();
            match &names[..] {
                [.., last] if last == "tests" => {}
                _ if path.is_dir() => folders.push(path),
                [module, behind @ ..] if path.extension().is_some_and(|end| end == "rs") => found.push(Source {
                    module: module.to_string(),
                    is_top: behind.is_empty() || behind == ["mod"],
                    text: fs::read_to_string(&path).expect("a source is text"),
                }),
                _ => {}
            }
        }
    }
    assert!(found.len() > 3, "{} has no sources", root.display());
    found
}

/// The lines of code: without comments, up to the unit tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_start).take_while(|line| *line != "#[cfg(test)]");
    lines.filter(|line| !line.starts_with("//"))
}

/// The modules and items of its own crate that a file names.
fn imports(source: &Source) -> BTreeSet<String> {
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned();
    let mut found = BTreeSet::new();
    for line in code(&source.text) {
        if source.module == "lib" {
            let paths = line.match_indices("::").filter(|_| !line.starts_with("pub use "));
            let names = paths.map(|(at, _)| line[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next());
            found.extend(names.flatten().map(String::from).filter(|name| line.contains(&format!("{name}::"))));
            continue;
        }
        let roots: &[&str] = if source.is_top { &["crate::", "super::"] } else { &["crate::"] };
        for (at, root) in roots.iter().flat_map(|root| line.match_indices(root)) {
            let behind = &line[at + root.len()..];
            match behind.strip_prefix('{').and_then(|list| list.split_once('}')) {
                Some((list, _)) => found.extend(list.split(", ").map(word)),
                None => found.extend([word(behind)]),
            }
        }
    }
    found.remove("");
    found
}
