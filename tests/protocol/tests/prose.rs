//! The comments of the sources: words that make a reader stop, and first words that hide the subject. CONTRIBUTING.md
//! ("Taste, in one page") says how to write instead. And the links of the pages, by which each claim has its test.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose Rust files are read.
const ROOTS: [&str; 3] = ["src", "adapters", "examples"];

/// Words and phrases that comments do without: name the actor, and use the term of the field.
const AVOIDED: [&str; 14] = [
    "told",
    "tells",
    "whoever",
    "nobody",
    "somebody",
    "as it stands",
    "as they stand",
    "own accord",
    "is none",
    "so many",
    "so much",
    "lest",
    "thereof",
    "therein",
];

/// First words that hide the subject of a doc comment: begin with a verb, or with a noun for a type.
const OPENINGS: [&str; 6] = ["What", "Whether", "How", "Where", "Who", "Whose"];

#[test]
fn comments_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for file in ROOTS.iter().flat_map(|folder| files(&root.join(folder))) {
        let text = fs::read_to_string(&file).expect("a source is text");
        found.extend(offences(&text).into_iter().map(|offence| format!("{}:{offence}", file.display())));
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

/// Checks the search of the other test.
#[test]
fn offences_are_found() {
    let text = "/// What a tool does.\n// The peer is told `twice`.\nlet told = 1; // Whoever\n/// `nobody` writes it: a member.\n\
                ///     let told = 1;\n/// ```\n/// let told = 1;\n/// ```\n//! Nobody reads it.\n";
    let lines: Vec<_> = offences(text).iter().map(|line| line.split(':').next().map(String::from)).collect();
    assert_eq!(lines, [Some("1".into()), Some("2".into()), Some("9".into())]);
}

/// Returns the lines whose comment offends, with their numbers. Code spans and examples are left out, and comments
/// behind code.
fn offences(text: &str) -> Vec<String> {
    let (mut found, mut example, mut begins) = (Vec::new(), false, true);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(comment) = doc.or_else(|| line.strip_prefix("//")) else {
            (example, begins) = (false, true);
            continue;
        };
        let fence = comment.trim_start().starts_with("```");
        example ^= fence;
        if !example && !fence && !comment.starts_with("     ") {
            // Every second piece is a code span.
            let plain = comment.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
            let words: Vec<&str> =
                plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
            let spaced = format!(" {} ", words.join(" "));
            let first = comment.split_whitespace().next().unwrap_or("");
            let avoided = AVOIDED.iter().any(|phrase| spaced.contains(&format!(" {phrase} ")));
            if avoided || (doc.is_some() && begins && OPENINGS.contains(&first)) {
                found.push(format!("{}: {line}", number + 1));
            }
        }
        begins = comment.is_empty() && !example;
    }
    found
}

#[test]
fn links_of_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = pages(&root);
    assert!(pages.len() > 50, "{} pages", pages.len());
    let mut wrong = Vec::new();
    for page in pages {
        let text = prose(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { page.with_file_name(path) };
            let leads = link.starts_with("http")
                || target.exists()
                    && (anchor.is_empty() || target.extension().is_none_or(|end| end != "md") || has(&target, anchor));
            if !leads {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} links:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns whether a page has a heading with this anchor.
fn has(page: &Path, anchor: &str) -> bool {
    prose(page).lines().filter_map(|line| line.strip_prefix('#')).any(|heading| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).eq(anchor.chars())
    })
}

/// Returns the text of a page without its programs.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page is text");
    // Every second piece is a program.
    text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Returns the pages in a folder and below, without those of others and those that tests serve.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        if path.is_dir()
            && !path.is_symlink()
            && !name.starts_with('.')
            && !["assets", "node_modules", "target"].contains(&name)
        {
            found.extend(pages(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// Returns the Rust files in a folder and below, without build products.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it can be read").path());
    let wanted = entries.filter(|path| !path.ends_with("target"));
    let (folders, files): (Vec<_>, Vec<_>) = wanted.partition(|path| path.is_dir());
    let sources = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    folders.iter().flat_map(|folder| self::files(folder)).chain(sources).collect()
}
