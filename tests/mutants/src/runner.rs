//! Runs the tests: by themselves, to see which mutants each reaches, and against one mutant.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A test program, and where its tests expect to be run.
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

/// What became of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// A test that takes longer without a mutant is left out.
const SLOWEST: Duration = Duration::from_secs(20);

/// Runs each test by itself.
pub fn trace(copy: &Path, programs: Vec<Program>) -> Tests {
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
    let mut tests = Vec::new();
    // One at a time: others would make it look slow, and some count what the process does.
    for (index, (program, name)) in listed.iter().enumerate() {
        let file = traces.join(index.to_string());
        let begun = Instant::now();
        let passed = run(&programs[*program], &[name], &[("MUTANT_TRACE", file.as_os_str())], SLOWEST);
        let took = begun.elapsed();
        if passed != Some(true) {
            println!("left out, {}: {name}", if passed.is_none() { "slow" } else { "fails without a mutant" });
            continue;
        }
        let reached = fs::read_to_string(file).unwrap_or_default();
        let reached = reached.lines().filter_map(|id| id.parse().ok()).collect();
        tests.push(Test { program: *program, name: name.clone(), took, reached });
    }
    tests.sort_by_key(|test| test.took);
    Tests { programs, tests }
}

/// Tries each of the chosen mutants; verdicts by number of the mutant.
pub fn judge(tests: &Tests, chosen: &[usize], jobs: usize) -> Vec<(usize, Verdict)> {
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(&mutant) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = try_one(tests, mutant);
                    let mut verdicts = verdicts.lock().expect("no thread panics");
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
            match run(&tests.programs[program], &names, &[("MUTANT", id.as_ref())], usual * 5 + Duration::from_secs(5))
            {
                Some(true) => {}
                Some(false) => return Verdict::Caught,
                None => return Verdict::TimedOut,
            }
        }
    }
    Verdict::Missed
}

/// Runs tests of a program by name. `None`: they did not end in time.
fn run(
    program: &Program,
    names: &[impl AsRef<std::ffi::OsStr>],
    set: &[(&str, &std::ffi::OsStr)],
    limit: Duration,
) -> Option<bool> {
    let mut child = Command::new(&program.path)
        .args(["--exact", "--test-threads=1", "-q"])
        .args(names)
        .envs(set.iter().copied())
        .current_dir(&program.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("the test program starts");
    let passed = wait(&mut child, limit);
    // What the tests have started, too.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    let _ = child.wait();
    passed
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
