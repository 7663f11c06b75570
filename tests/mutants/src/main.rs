//! Mutation testing of the core, the HTTP crate and both drivers.
//!
//! Every mutant is written into one copy of the project as `if on(ID) { mutant } else { original }`, and the environment
//! variable `MUTANT` switches one of them on. So the tests are compiled once, not once for each mutant:
//!
//! 1. [`tree::copy`] copies the project to `target/mutants/tree`;
//! 2. [`mutate::file`] finds the mutants of each source file and writes them in;
//! 3. [`cargo::build`] compiles the tests; mutants that do not compile are taken out, until all do;
//! 4. [`runner::trace`] runs each test by itself and records which mutants it reaches;
//! 5. [`runner::judge`] runs each mutant of the sample against the tests that reach it, the quickest first;
//! 6. [`report::write`] prints a table by file and the mutants that lived.
//!
//! ```text
//! tests/mutants/run.sh                        a sample of 400 from all files
//! tests/mutants/run.sh --sample 2000 --seed 7
//! tests/mutants/run.sh --files src/server     all mutants of these files (a part of the path)
//! tests/mutants/run.sh --shard 1/4            the first of four parts, for several machines
//! tests/mutants/run.sh --at-least 95          fails below 95 caught of 100 that are reached or should be
//! ```
//!
//! A mutant counts as caught when a test fails or runs out of its time. Without `--sample` and with `--files`, all count.

mod cargo;
mod mutate;
mod report;
mod runner;
mod tree;

use std::path::PathBuf;

/// One change of the source.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Path in the project.
    pub file: String,
    /// First line of the original expression or statement, from 1.
    pub line: usize,
    /// What is changed, for people: `== to !=`.
    pub change: String,
}

/// What the command line asks for.
pub struct Options {
    pub root: PathBuf,
    pub files: Option<String>,
    pub sample: Option<usize>,
    pub seed: u64,
    pub shard: (usize, usize),
    pub at_least: f64,
    pub jobs: usize,
}

fn main() {
    let options = options();
    let tree = tree::copy(&options.root);
    let (mutants, tests) = cargo::build(&options.root, &tree);
    println!("{} mutants compile", mutants.iter().flatten().count());
    let traced = runner::trace(&tree, tests);
    let chosen = choose(&mutants, &options);
    println!("{} mutants are tried against {} tests", chosen.len(), traced.len());
    let verdicts = runner::judge(&traced, &chosen, options.jobs);
    let rate = report::write(&options.root, &mutants, &verdicts);
    if rate < options.at_least {
        eprintln!("{rate:.1} of 100 are caught, fewer than {}", options.at_least);
        std::process::exit(1);
    }
}

/// The mutants to try: those of the named files, of the shard, and of these a sample that the seed decides.
fn choose(mutants: &[Option<Mutant>], options: &Options) -> Vec<usize> {
    let named = |mutant: &Mutant| options.files.as_ref().is_none_or(|part| mutant.file.contains(part.as_str()));
    let mut chosen: Vec<usize> = (0..mutants.len()).filter(|&id| mutants[id].as_ref().is_some_and(named)).collect();
    // In an order that is the same for a seed, whatever was added elsewhere in the source.
    chosen.sort_by_key(|&id| mutants[id].as_ref().map_or(0, |mutant| hash(mutant, options.seed)));
    if let Some(sample) = options.sample {
        chosen.truncate(sample);
    }
    let (part, parts) = options.shard;
    chosen.into_iter().skip(part - 1).step_by(parts).collect()
}

/// FNV-1a.
fn hash(mutant: &Mutant, seed: u64) -> u64 {
    let text = format!("{}:{}:{}", mutant.file, mutant.line, mutant.change);
    text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn options() -> Options {
    let mut options = Options {
        root: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project is there"),
        files: None,
        sample: None,
        seed: 1,
        shard: (1, 1),
        at_least: 0.0,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args.next().unwrap_or_else(|| usage(&format!("{flag} takes a value")));
        let number = || value.parse().unwrap_or_else(|_| usage(&format!("{value} is no number")));
        match flag.as_str() {
            "--files" => options.files = Some(value),
            "--sample" => options.sample = Some(number()),
            "--seed" => options.seed = number() as u64,
            "--jobs" => options.jobs = number().max(1),
            "--at-least" => options.at_least = number() as f64,
            "--shard" => {
                let parsed = value.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                options.shard = match parsed {
                    Some((part, parts)) if 0 < part && part <= parts => (part, parts),
                    _ => usage("--shard takes PART/PARTS, as 1/4"),
                };
            }
            _ => usage(&format!("unknown option {flag}")),
        }
    }
    if options.files.is_none() && options.sample.is_none() {
        options.sample = Some(400);
    }
    options
}

fn usage(problem: &str) -> ! {
    eprintln!("{problem}\nOptions: --files PART --sample N --seed N --shard PART/PARTS --at-least PERCENT --jobs N");
    std::process::exit(2);
}
