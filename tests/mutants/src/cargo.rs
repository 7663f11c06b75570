//! Compiles the mutated copy, and takes out the mutants that do not compile.

use crate::runner::Program;
use crate::{Mutant, mutate, tree};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More rounds mean that something else than a mutant does not compile.
const ROUNDS: usize = 60;

/// Returns the mutants by number, `None` for those that do not compile, and the test programs.
pub fn build(root: &Path, copy: &Path) -> (Vec<Option<Mutant>>, Vec<Program>) {
    let mut left_out = HashSet::new();
    for round in 1..=ROUNDS {
        let mutants = write(root, copy, &left_out);
        let crates = [
            "check",
            "-p",
            "mcp-sansio",
            "-p",
            "mcp-sansio-http",
            "-p",
            "mcp-sansio-blocking",
            "-p",
            "mcp-sansio-smol",
        ];
        let mut errors = errors(copy, &run(copy, &[&crates[..], &["--all-features"]].concat()));
        if errors.is_empty() {
            let messages = run(copy, &["test", "--workspace", "--no-run"]);
            errors = self::errors(copy, &messages);
            if errors.is_empty() {
                let kept =
                    mutants.into_iter().enumerate().map(|(id, mutant)| (!left_out.contains(&id)).then_some(mutant));
                return (kept.collect(), programs(&messages));
            }
        }
        println!("round {round}: {} mutants do not compile", errors.len());
        left_out.extend(errors);
    }
    panic!("the mutated project does not compile: see {}", copy.display());
}

fn write(root: &Path, copy: &Path, left_out: &HashSet<usize>) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for (file, switch) in tree::sources(root) {
        let text = fs::read_to_string(root.join(&file)).expect("the project's files are read");
        let mutated = mutate::file(&file, &text, switch, &mut mutants, left_out);
        tree::put(copy, &file, mutated);
    }
    mutants
}

/// Runs cargo in the copy. Returns its messages.
fn run(copy: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = Command::new("cargo")
        .args(arguments)
        .arg("--message-format=json")
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_file_name("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("cargo runs");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The mutants to blame for what does not compile.
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
            // The closest switch before the end of what is wrong, else the first one behind.
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
