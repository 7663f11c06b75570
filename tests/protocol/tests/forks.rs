//! Each fork (a second implementation for some machines) states its gain as a number.

use std::fs;
use std::path::{Path, PathBuf};

/// A fork stays if it gains this many bytes of flash of `uart` with tools only, or this part of the instructions of a
/// `tools/call`.
const BYTES: u32 = 300;
const PER_CENT: u32 = 5;

/// Each file of the core with a fork for 32-bit machines states the gain, and the gain is large enough:
/// `// Fork: 412 bytes of flash ...` or `// Fork: 7 % of a tools/call ...`.
#[test]
fn forks_have_a_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    for file in files(&root) {
        let text = fs::read_to_string(&file).expect("a source is text");
        let stated: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("// Fork: ")).collect();
        let forks = text.lines().filter(|line| !line.trim().starts_with("use ")).any(|line| line.contains("SMALL"));
        assert_eq!(forks, !stated.is_empty(), "{}: forks and their numbers", file.display());
        for fork in stated {
            let (number, unit) = fork.split_once(' ').expect("a number and its unit");
            let least = if unit.starts_with("bytes of flash") { BYTES } else { PER_CENT };
            assert!(least == BYTES || unit.starts_with("% of a tools/call"), "{}: {fork}", file.display());
            assert!(number.parse::<u32>().is_ok_and(|number| number >= least), "{}: {fork}", file.display());
        }
    }
}

/// Inlining by hand is for 64-bit machines only, and its gain is stated once, for all functions together.
#[test]
fn inlining_has_a_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let marked =
        |file: &PathBuf| fs::read_to_string(file).expect("a source is text").contains("\"64\", inline(always)");
    let stated =
        fs::read_to_string(root.join("search.rs")).expect("a source is text").contains("\"64\", inline(always)");
    assert_eq!(files(&root).iter().any(|file| !file.ends_with("search.rs") && marked(file)), stated);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it can be read").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    folders.iter().flat_map(|folder| self::files(folder)).chain(files).collect()
}
