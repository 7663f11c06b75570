//! Compiles the mutated copy, and takes out the mutants that do not compile.

use crate::runner::Program;
use crate::{Mutant, Options, choose, hash, mutate, tree};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// With more rounds than this, something other than a mutant does not compile.
const ROUNDS: usize = 60;

/// The packages that are mutated, with every feature: what a default leaves out compiles, too.
const MUTATED: &[&str] = &[
    "check",
    // All errors of a round, not only those of the first package that has some.
    "--keep-going",
    "--all-features",
    "-p",
    "mcp-sansio",
    "-p",
    "mcp-sansio-auth",
    "-p",
    "mcp-sansio-http",
    "-p",
    "mcp-sansio-host",
    "-p",
    "mcp-sansio-blocking",
    "-p",
    "mcp-sansio-smol",
    "-p",
    "mcp-sansio-embedded",
];

/// The features that the gate tests besides the default ones.
const FEATURES: &[&str] = &[
    "mcp-sansio/bytes",
    "mcp-sansio/heapless",
    "mcp-sansio-auth/es256",
    "mcp-sansio-host/schemars",
    "mcp-sansio-blocking/tls",
    "mcp-sansio-blocking/resource-server",
    "mcp-sansio-blocking/tasks",
    "mcp-sansio-smol/tls",
    "mcp-sansio-smol/resource-server",
    "mcp-sansio-smol/tasks",
];

/// Returns all mutants by number, which of them are to be tried, and the test programs.
pub fn build(options: &Options, copy: &Path) -> (Vec<Mutant>, Vec<usize>, Vec<Program>) {
    let root = &options.root;
    let sources: Vec<Source> = tree::sources(root)
        .into_iter()
        .map(|(file, switch)| {
            let text = fs::read_to_string(root.join(&file)).expect("the project's files are read");
            Source { file, switch, text }
        })
        .collect();
    let all = find(&sources);
    let mut chosen = choose(&all, options);
    let mut failing = recall(copy, &sources);
    let tests = tests(options);
    // Rounds are quicker without code, but all dependencies must be checked then: not worth it for a sample.
    let checks = failing.is_empty() && options.each.is_none() && options.sample.is_none();
    for round in 1..=ROUNDS {
        chosen.retain(|id| !failing.contains(id));
        write(copy, &sources, &chosen.iter().copied().collect());
        let mut errors = if checks { errors(copy, &run(copy, MUTATED)) } else { HashSet::new() };
        if errors.is_empty() {
            let messages = run(copy, &tests);
            errors = self::errors(copy, &messages);
            if errors.is_empty() {
                return (all, chosen, programs(&messages));
            }
        }
        println!("round {round}: {} mutants do not compile", errors.len());
        failing.extend(errors);
        remember(copy, &sources, &all, &failing);
    }
    panic!("the mutated project does not compile: see {}", copy.display());
}

/// The arguments of cargo that compile the tests: of all packages or of those that the options name, and the programs with
/// the named part in their names only.
fn tests(options: &Options) -> Vec<String> {
    let mut arguments = vec!["test".to_owned(), "--no-run".to_owned()];
    match &options.packages {
        None => arguments.push("--workspace".to_owned()),
        Some(names) => arguments.extend(names.split(',').map(|name| format!("--package={name}"))),
    }
    let compiles = |feature: &&str| {
        let package = feature.split('/').next();
        options.packages.as_ref().is_none_or(|names| names.split(',').any(|name| Some(name) == package))
    };
    let features: Vec<&str> = FEATURES.iter().copied().filter(compiles).collect();
    arguments.push(format!("--features={}", features.join(",")));
    if !options.tests.is_empty() {
        arguments.extend(["--lib".to_owned(), "--test".to_owned(), format!("*{}*", options.tests)]);
    }
    arguments
}

/// A file to mutate.
struct Source {
    file: String,
    switch: &'static str,
    text: String,
}

/// Finds all mutants.
fn find(sources: &[Source]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for Source { file, switch, text } in sources {
        mutate::file(file, text, switch, &mut mutants, &HashSet::new());
    }
    mutants
}

/// Writes the chosen mutants in: code with all of them takes a multiple of the time to compile.
fn write(copy: &Path, sources: &[Source], chosen: &HashSet<usize>) {
    let mut mutants = Vec::new();
    for Source { file, switch, text } in sources {
        let mutated = mutate::file(file, text, switch, &mut mutants, chosen);
        tree::put(copy, file, mutated);
    }
}

/// Writes down, for each file, which of its mutants do not compile: the next run needs fewer rounds.
fn remember(copy: &Path, sources: &[Source], mutants: &[Mutant], left_out: &HashSet<usize>) {
    let mut lines = String::new();
    for source in sources {
        let first = mutants.iter().position(|mutant| mutant.file == source.file).unwrap_or(0);
        let here = left_out.iter().filter(|id| mutants[**id].file == source.file);
        let numbers: Vec<String> = here.map(|id| (id - first).to_string()).collect();
        lines += &format!("{} {} {}\n", hash(&source.text, 0), source.file, numbers.join(" "));
    }
    fs::write(copy.with_file_name("left_out"), lines).expect("the list is written");
}

/// Reads what [`remember`] wrote, for the files that have not changed since.
fn recall(copy: &Path, sources: &[Source]) -> HashSet<usize> {
    let known = fs::read_to_string(copy.with_file_name("left_out")).unwrap_or_default();
    let (mut mutants, mut left_out) = (Vec::new(), HashSet::new());
    for Source { file, switch, text } in sources {
        let first = mutants.len();
        mutate::file(file, text, switch, &mut mutants, &HashSet::new());
        let unchanged = format!("{} {file} ", hash(text, 0));
        let numbers = known.lines().find_map(|line| line.strip_prefix(&unchanged)).unwrap_or_default();
        left_out.extend(numbers.split(' ').filter_map(|number| number.parse::<usize>().ok()).map(|id| first + id));
    }
    left_out
}

/// Runs cargo in the copy. Returns its messages.
fn run(copy: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Vec<Value> {
    let output = Command::new("cargo")
        .args(arguments)
        .arg("--message-format=json")
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_file_name("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("cargo runs");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the mutants that cause these compiler errors.
///
/// # Panics
///
/// If no mutant stands where the compiler points at.
fn errors(copy: &Path, messages: &[Value]) -> HashSet<usize> {
    let mut blamed = HashSet::new();
    for message in messages.iter().map(|message| &message["message"]).filter(|message| message["level"] == "error") {
        let spans = message["spans"].as_array().into_iter().flatten().filter(|span| span["is_primary"] == true);
        for span in spans {
            let file = span["file_name"].as_str().unwrap_or_default();
            let end = span["byte_end"].as_u64().unwrap_or(0) as usize;
            let text = fs::read_to_string(copy.join(file)).unwrap_or_default();
            // The last switch before the end of the error, or else the first one after it.
            let (before, behind) = text.split_at_checked(end).unwrap_or((&text, ""));
            let id = before.rfind("mutant_switch::on(").map(|at| &before[at..]).into_iter();
            let id = id.chain(behind.find("mutant_switch::on(").map(|at| &behind[at..])).next();
            let id = id.and_then(|text| text.split_once('(')?.1.split_once("u32")?.0.parse().ok());
            blamed.insert(id.unwrap_or_else(|| panic!("{}", message["rendered"].as_str().unwrap_or_default())));
        }
    }
    blamed
}

fn programs(messages: &[Value]) -> Vec<Program> {
    let tests = messages
        .iter()
        .filter(|message| message["reason"] == "compiler-artifact" && message["profile"]["test"] == true);
    let program = |message: &Value| {
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        Some(Program { path: message["executable"].as_str()?.into(), folder: manifest.parent()?.into() })
    };
    tests.filter_map(program).collect()
}
