//! Runs the tests: by themselves, to see which mutants each reaches, and against one mutant.

use crate::Options;
use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A test program, and the folder that its tests run in.
pub struct Program {
    pub path: PathBuf,
    pub folder: PathBuf,
}

/// A test, with the mutants that it reaches and the time that it takes.
pub struct Test {
    program: usize,
    name: String,
    took: Duration,
    reached: HashSet<usize>,
}

/// All tests that pass without a mutant.
pub struct Tests {
    programs: Vec<Program>,
    tests: Vec<Test>,
}

impl Tests {
    pub fn len(&self) -> usize {
        self.tests.len()
    }
}

/// The outcome of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A test failed.
    Caught,
    /// A test did not end.
    TimedOut,
    /// All tests that reach it passed.
    Missed,
    /// No test reaches it.
    Unreached,
}

impl Verdict {
    pub const ALL: [Verdict; 4] = [Verdict::Caught, Verdict::TimedOut, Verdict::Missed, Verdict::Unreached];

    /// Returns whether no test has noticed the mutant.
    pub fn lived(self) -> bool {
        matches!(self, Verdict::Missed | Verdict::Unreached)
    }
}

/// The limit of a test program's address space in KiB: a mutant that allocates without end must not take the machine down.
const MEMORY: u32 = 4 << 20;

/// Runs each test by itself.
pub fn trace(copy: &Path, programs: Vec<Program>, options: &Options) -> Tests {
    let mut listed = Vec::new();
    for (program, at) in programs.iter().zip(0..) {
        let output =
            Command::new(&program.path).args(["--list", "--format", "terse"]).current_dir(&program.folder).output();
        let names = output.map(|output| output.stdout).unwrap_or_default();
        let names = String::from_utf8_lossy(&names).into_owned();
        listed.extend(names.lines().filter_map(|line| line.strip_suffix(": test")).map(|name| (at, name.to_owned())));
    }
    let traces = copy.with_file_name("traces");
    let _ = fs::remove_dir_all(&traces);
    fs::create_dir_all(&traces).expect("the folder of traces is made");
    let (next, tests) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let trace_next = || {
        while let Some((index, (program, name))) = next_of(&next, &listed) {
            let file = traces.join(index.to_string());
            let begun = Instant::now();
            let passed = run(&programs[*program], &[name], &[("MUTANT_TRACE", file.as_os_str())], options.slowest);
            let took = begun.elapsed();
            if passed != Some(true) {
                println!("left out, {}: {name}", if passed.is_none() { "slow" } else { "fails without a mutant" });
                continue;
            }
            let reached = fs::read_to_string(file).unwrap_or_default();
            let reached = reached.lines().filter_map(|id| id.parse().ok()).collect();
            let test = Test { program: *program, name: name.clone(), took, reached };
            tests.lock().expect("no thread panics").push(test);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(trace_next);
        }
    });
    let mut tests = tests.into_inner().expect("no thread panics");
    tests.sort_by_key(|test| test.took);
    Tests { programs, tests }
}

/// Returns the next element that no thread has taken, with its place.
fn next_of<'t, T>(next: &AtomicUsize, all: &'t [T]) -> Option<(usize, &'t T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, all.get(index)?))
}

/// Tries the chosen mutants, as many as there is time for. Calls `note` with each verdict; returns them by number of the mutant.
pub fn judge(
    tests: &Tests,
    chosen: &[usize],
    options: &Options,
    note: impl Fn(usize, Verdict) + Sync,
) -> Vec<(usize, Verdict)> {
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (begun, time) = (Instant::now(), Duration::from_secs(options.minutes.saturating_mul(60)));
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while begun.elapsed() < time
                    && let Some((_, &mutant)) = next_of(&next, chosen)
                {
                    let verdict = try_one(tests, mutant);
                    let mut verdicts = verdicts.lock().expect("no thread panics");
                    note(mutant, verdict);
                    verdicts.push((mutant, verdict));
                    if verdicts.len() % 100 == 0 {
                        println!("{} of {}", verdicts.len(), chosen.len());
                    }
                }
            });
        }
    });
    verdicts.into_inner().expect("no thread panics")
}

/// Runs the tests that reach a mutant: the quickest few of each program, then the others.
fn try_one(tests: &Tests, mutant: usize) -> Verdict {
    const FEW: usize = 12;
    let reaching: Vec<&Test> = tests.tests.iter().filter(|test| test.reached.contains(&mutant)).collect();
    if reaching.is_empty() {
        return Verdict::Unreached;
    }
    for chunk in reaching.chunks(FEW) {
        for program in 0..tests.programs.len() {
            let here: Vec<&Test> = chunk.iter().copied().filter(|test| test.program == program).collect();
            if here.is_empty() {
                continue;
            }
            let names: Vec<&String> = here.iter().map(|test| &test.name).collect();
            let usual: Duration = here.iter().map(|test| test.took).sum();
            let id = mutant.to_string();
            let limit = usual * 5 + Duration::from_secs(5);
            let once = |limit| run(&tests.programs[program], &names, &[("MUTANT", id.as_ref())], limit);
            // Twice: a test that fails once in fifty runs, or on a busy machine, is not what has noticed the mutant.
            if once(limit) != Some(true) {
                match once(limit * 2) {
                    Some(true) => {}
                    Some(false) => return Verdict::Caught,
                    None => return Verdict::TimedOut,
                }
            }
        }
    }
    Verdict::Missed
}

/// Runs tests of a program by name. Returns `None` if they did not end in time.
fn run(
    program: &Program,
    names: &[impl AsRef<std::ffi::OsStr>],
    set: &[(&str, &std::ffi::OsStr)],
    limit: Duration,
) -> Option<bool> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let run = format!("{}.{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
        .arg(&program.path)
        .args(["--exact", "--test-threads=1", "-q"])
        .args(names)
        .envs(set.iter().copied())
        .env("MUTANT_RUN", &run)
        .current_dir(&program.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the test program starts");
    let passed = wait(&mut child, limit);
    // Ends the processes that the tests have started, too.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    let _ = child.wait();
    if set.iter().any(|(name, _)| *name == "MUTANT") {
        end_those_left(&run);
    }
    passed
}

/// Ends the processes of a run that have a group of their own: with a mutant they may spin for ever. Where there is no `/proc`,
/// they stay.
fn end_those_left(run: &str) {
    let mark = format!("MUTANT_RUN={run}");
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let set = fs::read(process.path().join("environ")).unwrap_or_default();
        if set.split(|byte| *byte == 0).any(|set| set == mark.as_bytes()) {
            let _ = Command::new("kill").arg("-KILL").arg(process.file_name()).stderr(Stdio::null()).status();
        }
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<bool> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.success());
        }
        if begun.elapsed() > limit {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
