use crate::schema::spec_dir;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The definition that an example belongs to, its file, and its content.
pub type Example = (String, PathBuf, Value);

/// Returns the official examples of a revision, sorted by path:
/// `<spec>/<revision>/examples/<definition>/<name>.json`. Only 2026-07-28 has some. Without the specification
/// the list is empty.
pub fn spec_examples(revision: &str) -> Vec<Example> {
    if !spec_dir().is_dir() {
        crate::schema::require(&spec_dir());
    }
    let root = spec_dir().join(revision).join("examples");
    entries(&root).iter().flat_map(|definition| entries(definition)).map(example).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = listing.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.sort();
    paths
}

fn example(path: PathBuf) -> Example {
    let definition = path.parent().and_then(Path::file_name).expect("a directory per definition");
    let text = fs::read(&path).expect("a readable example");
    let value = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (definition.to_string_lossy().into_owned(), path, value)
}
