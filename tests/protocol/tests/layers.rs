//! The layers of the crates: which module may import which, that no files import each other, and where revisions are compared.
//!
//! The sources are read as text. A name `crate::module` (at the top level also `super::module`) counts as an import;
//! unit tests and comments do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules of a crate from the lowest to the highest layer. Modules of one layer do not import each other. `lib` stands
/// for the items in `lib.rs`.
const LAYERS: [(&str, &[&[&str]]); 2] = [
    (
        "src",
        &[
            &["debug", "machine", "options", "sink", "revision", "search", "time"],
            &["memory"],
            &["json"],
            &["frame"],
            &["protocol"],
            &["rpc"],
            &["around", "balance"],
            &["content", "error", "trace_context"],
            &["client", "server"],
            &["service"],
            &["line_server"],
            &["log"],
        ],
    ),
    ("adapters/http/src", &[&["names", "seal", "sse"], &["endpoint"], &["http1"], &["client", "host"], &["lib"]]),
];

/// The path of a module from the crate's root.
type Module = Vec<String>;

/// A file of a crate.
struct Source {
    /// The name of its module right below the crate's root; `lib` for `lib.rs`.
    module: String,
    /// `super` is the crate's root.
    is_top: bool,
    /// The path of its module; empty for `lib.rs`.
    path: Module,
    text: String,
}

#[test]
fn dependencies_run_downwards_only() {
    let mut wrong = BTreeSet::new();
    for (root, layers) in LAYERS {
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
    assert_eq!(wrong, BTreeSet::new(), "imports upwards");
}

/// No file of a package imports another one that, through others or not, imports it. A file may import its folder's `mod.rs`.
#[test]
fn files_have_no_circles() {
    let mut wrong = BTreeSet::new();
    for root in packages() {
        let graph = graph(&sources(&root));
        let reached: BTreeMap<_, _> = graph.keys().map(|from| (from, reach(&graph, from))).collect();
        for (from, imports) in &graph {
            let back = imports.iter().filter(|to| reached.get(to).is_some_and(|files| files.contains(from)));
            wrong.extend(back.map(|to| format!("{root}: {} imports {}", from.join("/"), to.join("/"))));
        }
    }
    assert_eq!(wrong, BTreeSet::new(), "circles");
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
    for source in packages().iter().flat_map(|root| sources(root)) {
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
fn circles_are_found() {
    let source = |path: &str, text: &str| Source {
        module: String::new(),
        is_top: false,
        path: path.split('/').filter(|name| !name.is_empty()).map(String::from).collect(),
        text: text.into(),
    };
    let graph = graph(&[
        source("", "pub mod a;\npub use a::{One, b::Two};\n"),
        source("a", "mod b;\nmod c;\npub use self::c::{self, Three as Four};\npub struct One;\n"),
        source("a/b", "use super::{\n    One, Four,\n};\n// use crate::d;\nfn f() { crate::Two }\n"),
        source("a/c", "fn f() { super::b::Two::new() }\n"),
        source("d", "use crate::Two;\n#[cfg(test)]\nmod tests { use crate::One; }\n"),
    ]);
    let found = |from: &[&str]| {
        let from: Vec<_> = from.iter().copied().map(String::from).collect();
        graph[&from].iter().map(|to| to.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(
        (found(&["a", "b"]), found(&["a", "c"]), found(&["d"])),
        (vec!["a/c".into()], vec!["a/b".into()], vec!["a/b".into()])
    );
    let circle = reach(&graph, &vec!["a".into(), "b".into()]);
    assert!(
        circle.contains(&vec!["a".into(), "b".into()]) && !reach(&graph, &vec!["d".into()]).contains(&vec!["d".into()])
    );
}

/// Checks the search of the other tests.
#[test]
fn imports_are_found() {
    let text = "use crate::json::{self, Raw};\nuse crate::{sink, rpc::begin};\nuse super::frame;\n// crate::time\n\
                fn f() { crate::records::g() }\n#[cfg(test)]\nmod tests { use crate::testing; }\n";
    let source = Source { module: "session".into(), is_top: true, path: Vec::new(), text: text.into() };
    assert_eq!(imports(&source).into_iter().collect::<Vec<_>>(), ["frame", "json", "records", "rpc", "sink"]);
    let text = "mod wire;\npub use client::Client;\nfn f() { wire::g(client) }\n";
    let lib = Source { module: "lib".into(), is_top: true, path: Vec::new(), text: text.into() };
    assert_eq!(imports(&lib).into_iter().collect::<Vec<_>>(), ["wire"]);
}

/// The folders with the sources of all published packages.
fn packages() -> Vec<String> {
    let adapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters");
    let names = fs::read_dir(adapters).expect("it is a folder").map(|entry| entry.expect("it can be read").file_name());
    let found: Vec<_> = names.map(|name| format!("adapters/{}/src", name.display())).chain(["src".into()]).collect();
    assert!(found.len() > 5);
    found
}

/// The files that each file imports. A name that a `mod.rs` imports from a file below it counts as that file.
fn graph(sources: &[Source]) -> BTreeMap<Module, BTreeSet<Module>> {
    let files: BTreeSet<_> = sources.iter().map(|source| source.path.clone()).collect();
    let split = |path: &[String]| {
        let len = (0..=path.len()).rev().find(|len| files.contains(&path[..*len])).unwrap_or(0);
        (path[..len].to_vec(), path.get(len).cloned())
    };
    let mut below = BTreeMap::new();
    for source in sources {
        for (path, name) in paths(&source.text, "use ") {
            let own = path.iter().filter(|part| *part != "self").cloned();
            let (file, _) = split(&source.path.iter().cloned().chain(own).collect::<Vec<_>>());
            if file.len() > source.path.len() {
                below.insert((source.path.clone(), name), file);
            }
        }
    }
    let mut graph = BTreeMap::new();
    for source in sources {
        let found = ["crate::", "super::", "self::"].iter().flat_map(|root| paths(&source.text, root).into_iter());
        let imports: &mut BTreeSet<_> = graph.entry(source.path.clone()).or_default();
        for (path, _) in found {
            let up = path.iter().take_while(|part| *part == "super").count();
            let base = match path[0].as_str() {
                "crate" => &[],
                _ => &source.path[..source.path.len().saturating_sub(up)],
            };
            let (mut file, mut name) = split(&[base, &path[up.max(1)..]].concat());
            while let Some(lower) = name.take().and_then(|name| below.get(&(file.clone(), name))) {
                file.clone_from(lower);
            }
            if !source.path.starts_with(&file) {
                imports.insert(file);
            }
        }
    }
    graph
}

/// The files that a file imports, through others or not.
fn reach(graph: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(file) = left.pop() {
        left.extend(graph.get(file).into_iter().flatten().filter(|file| found.insert((*file).clone())));
    }
    found
}

/// The paths in the code of a file that begin with `root`, or behind it if it is `use `, each with the name that it gets.
fn paths(text: &str, root: &str) -> Vec<(Vec<String>, String)> {
    let text: Vec<_> = code(text).collect();
    let text = text.join(" ");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(root) {
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            let from = if root == "use " { at + root.len() } else { at };
            tree(&mut &text[from..], Vec::new(), &mut found);
        }
    }
    found
}

/// Reads a path, and all paths of one with braces.
fn tree(rest: &mut &str, mut path: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let word = |rest: &mut &str| {
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(len);
        *rest = behind;
        word.to_owned()
    };
    loop {
        *rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('{') {
            *rest = behind;
            loop {
                tree(rest, path.clone(), found);
                *rest = rest.trim_start();
                match rest.strip_prefix(',') {
                    Some(behind) => *rest = behind.trim_start(),
                    None => break,
                }
                if rest.starts_with('}') {
                    break;
                }
            }
            *rest = rest.strip_prefix('}').unwrap_or(rest);
            return;
        }
        match word(rest) {
            name if name.is_empty() => break,
            name => path.push(name),
        }
        match rest.strip_prefix("::") {
            Some(behind) => *rest = behind,
            None => break,
        }
    }
    let name = match rest.strip_prefix(" as ") {
        Some(behind) => {
            *rest = behind;
            word(rest)
        }
        None => path.last().cloned().unwrap_or_default(),
    };
    if !path.is_empty() {
        found.push((path, name));
    }
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
                    path: names
                        .iter()
                        .map(|name| name.to_string())
                        .filter(|name| name != "mod" && name != "lib")
                        .collect(),
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
