//! Mutation testing of the core, of `auth`, `http`, `host` and `embedded`, and of both drivers.
//!
//! Every mutant is written into one copy of the project as `if on(ID) { mutant } else { original }`, and the environment
//! variable `MUTANT` switches one of them on. So the tests are compiled once, not once for each mutant:
//!
//! 1. [`tree::copy`] copies the project to `target/mutants/tree`;
//! 2. [`mutate::file`] finds the mutants of each source file and writes in those that are to be tried;
//! 3. [`cargo::build`] compiles the tests; mutants that do not compile are taken out, until all do;
//! 4. [`runner::trace`] runs each test by itself and records which mutants it reaches;
//! 5. [`runner::judge`] runs each mutant of the sample against the tests that reach it, the quickest first;
//! 6. [`report::write`] makes a table by file and by folder, and lists the mutants that lived.
//!
//! ```text
//! tests/mutants/run.sh                        a sample of 400 from all files
//! tests/mutants/run.sh --sample 2000 --seed 7
//! tests/mutants/run.sh --each 60              so many of each folder of each package
//! tests/mutants/run.sh --packages mcp-sansio,mcp-sansio-tests    compiles and runs the tests of these packages only
//! tests/mutants/run.sh --files src/server     all mutants of these files (a part of the path, or its beginning behind ^)
//! tests/mutants/run.sh --files http/src/endpoint --tests http    only test programs with `http` in their names
//! tests/mutants/run.sh --slowest 5            leaves out tests that take longer (30 seconds, if not given)
//! tests/mutants/run.sh --shard 1/4            the first of four parts, for several machines
//! tests/mutants/run.sh --at-least 95          fails below 95 caught of 100 that are reached or should be
//! tests/mutants/run.sh --again                after new tests, or when a run was stopped: tries what has not been caught
//! tests/mutants/run.sh --minutes 60           begins with no further mutant after an hour of trying
//! tests/mutants/run.sh --results FILE         writes the table to a file, too
//! ```
//!
//! A mutant counts as caught when tests fail or run out of time, twice in a row. Without `--sample` and with `--files`, all
//! mutants are tried. With `--again`, verdicts of earlier runs (`target/mutants/verdicts`) hold for what they caught, as long
//! as file, line and change are the same.

mod cargo;
mod mutate;
mod report;
mod runner;
mod tree;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use runner::{Program, Verdict};

/// A change of the source.
#[derive(Debug, Clone)]
pub struct Mutant {
    /// Path in the project.
    pub file: String,
    /// First line of the original expression or statement, from 1.
    pub line: usize,
    /// The change, for people: `== to !=`.
    pub change: String,
    /// The line's code.
    pub code: String,
}

/// The command line.
pub struct Options {
    pub root: PathBuf,
    pub files: Option<String>,
    pub tests: String,
    pub sample: Option<usize>,
    pub each: Option<usize>,
    pub packages: Option<String>,
    /// Tests that take longer without a mutant are left out.
    pub slowest: Duration,
    pub seed: u64,
    pub shard: (usize, usize),
    pub at_least: f64,
    pub jobs: usize,
    pub again: bool,
    pub minutes: u64,
    pub results: Option<PathBuf>,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.file, self.line, self.change)
    }
}

fn main() {
    let options = options();
    let tree = tree::copy(&options.root);
    let (mutants, chosen, tests) = cargo::build(&options, &tree);
    println!("{} mutants of {} are chosen and compile", chosen.len(), mutants.len());
    let named = |program: &Program| {
        program.path.file_name().is_some_and(|name| name.to_string_lossy().contains(&options.tests))
    };
    let traced = runner::trace(&tree, tests.into_iter().filter(named).collect(), &options);
    println!("{} mutants are tried against {} tests", chosen.len(), traced.len());
    let mut journal = Journal::open(&tree, &mutants, options.again);
    let (known, open): (Vec<usize>, Vec<usize>) =
        chosen.iter().partition(|id| journal.verdicts.get(id).is_some_and(|verdict| !verdict.lived()));
    println!("{} of them are known to be caught", known.len());
    let mut verdicts: Vec<_> = known.into_iter().map(|id| (id, journal.verdicts[&id])).collect();
    let file = Mutex::new(&mut journal.file);
    verdicts.extend(runner::judge(&traced, &open, &options, |id, verdict| {
        let mut file = file.lock().expect("no thread panics");
        writeln!(file, "{verdict:?} {}", journal.names[id]).expect("the verdict is written down");
    }));
    let (table, rate) = report::write(&mutants, &verdicts);
    println!("\n{table}");
    if let Some(results) = &options.results {
        std::fs::write(results, &table).expect("the results are written");
    }
    if rate < options.at_least {
        eprintln!("{rate:.1} of 100 are caught, fewer than {}", options.at_least);
        std::process::exit(1);
    }
}

/// The verdicts of this and of earlier runs.
struct Journal {
    file: File,
    /// Of each mutant: file, line, change, and which one it is of several like it.
    names: Vec<String>,
    verdicts: HashMap<usize, Verdict>,
}

impl Journal {
    /// Opens the journal beside the copy; empties it, unless the run is to go on from earlier ones.
    fn open(tree: &Path, mutants: &[Mutant], again: bool) -> Self {
        let path = tree.with_file_name("verdicts");
        let mut seen = HashMap::new();
        let mut name = |mutant: &Mutant| {
            let name = mutant.to_string();
            let nth = seen.entry(name.clone()).or_insert(0);
            *nth += 1;
            format!("{name} #{nth}")
        };
        let names: Vec<String> = mutants.iter().map(&mut name).collect();
        let earlier = if again { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let ids: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let verdict = |line: &str| {
            let (verdict, name) = line.split_once(' ')?;
            let verdict = Verdict::ALL.into_iter().find(|known| format!("{known:?}") == verdict)?;
            Some((*ids.get(name)?, verdict))
        };
        let verdicts = earlier.lines().filter_map(verdict).collect();
        let file = File::options().create(true).write(true).append(again).truncate(!again).open(path);
        Journal { file: file.expect("the journal is opened"), names, verdicts }
    }
}

/// The mutants to try: those of the named files, of these so many of each folder, a sample that the seed decides, and the
/// shard's part. Those that do not compile fall out of it later.
fn choose(mutants: &[Mutant], options: &Options) -> Vec<usize> {
    let is_named = |file: &str, part: &str| match part.strip_prefix('^') {
        Some(beginning) => file.starts_with(beginning),
        None => file.contains(part),
    };
    let named = |mutant: &Mutant| options.files.as_ref().is_none_or(|part| is_named(&mutant.file, part));
    let mut chosen: Vec<usize> = (0..mutants.len()).filter(|&id| named(&mutants[id])).collect();
    // In an order that depends only on the seed, not on changes elsewhere in the source.
    chosen.sort_by_key(|&id| hash(&mutants[id].to_string(), options.seed));
    if let Some(each) = options.each {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        chosen.retain(|&id| {
            let count = taken.entry(tree::folder(&mutants[id].file)).or_default();
            *count += 1;
            *count <= each
        });
    }
    if let Some(sample) = options.sample {
        chosen.truncate(sample);
    }
    let (part, parts) = options.shard;
    chosen.into_iter().skip(part - 1).step_by(parts).collect()
}

/// FNV-1a.
fn hash(text: &str, seed: u64) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn options() -> Options {
    let mut options = Options {
        root: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project is there"),
        files: None,
        tests: String::new(),
        sample: None,
        each: None,
        packages: None,
        slowest: Duration::from_secs(30),
        seed: 1,
        shard: (1, 1),
        at_least: 0.0,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        again: false,
        minutes: u64::MAX,
        results: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        if flag == "--again" {
            options.again = true;
            continue;
        }
        let value = args.next().unwrap_or_else(|| usage(&format!("{flag} takes a value")));
        let number = || value.parse().unwrap_or_else(|_| usage(&format!("{value} is no number")));
        match flag.as_str() {
            "--files" => options.files = Some(value),
            "--tests" => options.tests = value,
            "--results" => options.results = Some(value.into()),
            "--packages" => options.packages = Some(value),
            "--each" => options.each = Some(number()),
            "--slowest" => options.slowest = Duration::from_secs(number() as u64),
            "--sample" => options.sample = Some(number()),
            "--minutes" => options.minutes = number() as u64,
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
    if options.files.is_none() && options.sample.is_none() && options.each.is_none() {
        options.sample = Some(400);
    }
    options
}

fn usage(problem: &str) -> ! {
    eprintln!(
        "{problem}\nOptions: --files PART --tests PART --sample N --each N --packages NAME,NAME --slowest SECONDS --seed N --shard PART/PARTS --at-least PERCENT --jobs N --again --minutes N --results FILE"
    );
    std::process::exit(2);
}
