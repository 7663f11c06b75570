//! The copy of the project that is mutated.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source folders that are mutated, and how their code names the switch.
pub const MUTATED: [(&str, &str); 7] = [
    ("src", "crate::mutant_switch::on"),
    ("adapters/auth/src", "mcp_sansio::mutant_switch::on"),
    ("adapters/http/src", "mcp_sansio::mutant_switch::on"),
    ("adapters/host/src", "mcp_sansio::mutant_switch::on"),
    ("adapters/blocking/src", "mcp_sansio::mutant_switch::on"),
    ("adapters/smol/src", "mcp_sansio::mutant_switch::on"),
    ("adapters/embedded/src", "mcp_sansio::mutant_switch::on"),
];

/// The switch, added to the core. `MUTANT` is the number of the mutant that is on. Where `MUTANT_TRACE` names a file, each
/// number that is reached is written to it once, and no mutant is on.
const SWITCH: &str = r#"
/// Added by tests/mutants.
#[doc(hidden)]
#[allow(missing_docs, clippy::all)]
pub mod mutant_switch {
    extern crate std;
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, OnceLock};

    static ACTIVE: OnceLock<u32> = OnceLock::new();
    static TRACE: OnceLock<Option<Mutex<std::fs::File>>> = OnceLock::new();
    // A bit for each number, so that a test that reaches a mutant a million times takes little longer.
    static SEEN: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

    pub fn on(id: u32) -> bool {
        let active = *ACTIVE.get_or_init(|| std::env::var("MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(u32::MAX));
        if active == u32::MAX {
            trace(id);
        }
        active == id
    }

    fn trace(id: u32) {
        let (word, bit) = (&SEEN[id as usize / 64], 1 << (id % 64));
        if word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            write(id);
        }
    }

    #[cold]
    fn write(id: u32) {
        let trace = TRACE.get_or_init(|| {
            let path = std::env::var_os("MUTANT_TRACE")?;
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path).ok()?;
            Some(Mutex::new(file))
        });
        if let Some(Ok(mut file)) = trace.as_ref().map(Mutex::lock) {
            let _ = writeln!(file, "{id}");
        }
    }
}
"#;

/// Copies the files that git knows, with uncommitted changes, except the sources that are mutated. Returns the copy's
/// root.
pub fn copy(root: &Path) -> PathBuf {
    let tree = root.join("target/mutants/tree");
    let mutated: HashSet<String> = sources(root).into_iter().map(|(file, _)| file).collect();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .expect("git runs");
    let listed = String::from_utf8_lossy(&listed.stdout);
    let listed: HashSet<&str> = listed.split('\0').filter(|file| root.join(file).is_file()).collect();
    for file in listed.iter().filter(|file| !mutated.contains(**file)) {
        write_changed(&tree.join(file), &fs::read(root.join(file)).expect("the project's files are read"));
    }
    // Files of an earlier run that the project has no more, such as a renamed test.
    walk(&tree, &mut |path| {
        let name = path.strip_prefix(&tree).expect("it is in the copy").to_string_lossy();
        if !listed.contains(&*name) {
            fs::remove_file(path).expect("an old file is removed");
        }
    });
    link_shared(root);
    tree
}

/// Puts the official schemas and examples beside the copy, where they are beside the project: tests use them if they are there.
fn link_shared(root: &Path) {
    let (shared, link) = (root.join("../shared"), root.join("target/mutants/shared"));
    #[cfg(unix)]
    if let Ok(shared) = shared.canonicalize()
        && !link.exists()
    {
        std::os::unix::fs::symlink(shared, link).expect("the link is made");
    }
}

/// The source files to mutate: their paths in the project, with the name of their switch.
pub fn sources(root: &Path) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for (folder, switch) in MUTATED {
        walk(&root.join(folder), &mut |path| {
            let name = path.strip_prefix(root).expect("it is in the project").to_string_lossy().into_owned();
            let is_test = name.contains("/tests/") || name.ends_with("/tests.rs") || name.ends_with("/testing.rs");
            if name.ends_with(".rs") && !is_test {
                found.push((name, switch));
            }
        });
    }
    found.sort();
    found
}

/// The folder that a file's mutants are counted under: `src`, `src/json`, `adapters/http/src/endpoint`.
pub fn folder(file: &str) -> &str {
    let top = MUTATED.iter().map(|(folder, _)| *folder).find(|folder| file.starts_with(&format!("{folder}/")));
    let top = top.unwrap_or_default().len();
    let end = file[top..].match_indices('/').nth(1).map_or(top, |(at, _)| top + at);
    &file[..end]
}

/// Writes a mutated file; adds the switch to the root of the core.
pub fn put(tree: &Path, file: &str, mut text: String) {
    if file == "src/lib.rs" {
        text.push_str(SWITCH);
    }
    write_changed(&tree.join(file), text.as_bytes());
}

/// Writes only if the content has changed, so that cargo compiles less.
fn write_changed(path: &Path, bytes: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the copy's folder is made");
        fs::write(path, bytes).expect("the copy is written");
    }
}

fn walk(folder: &Path, seen: &mut impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { walk(&path, seen) } else { seen(&path) }
    }
}
