//! Changes members of a JSON file that a person keeps, with comments or without: all other bytes stay as they are.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use mcp_sansio::json::{JsonKind, Raw, Text};
use mcp_sansio_host::plain_json as plain;
use mcp_sansio_host::schema::same;

use crate::json::{pretty, quote};
use crate::system;

/// The columns that a value may take on one line.
const COLUMNS: usize = 80;

/// Sets the member at `path` to the JSON `value`, and makes the objects on the way. Members that are there keep their place;
/// new ones come last. Comments and trailing commas are allowed, and stay. The error says why the text is not changed.
pub(crate) fn set(text: &str, path: &[&str], value: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return set("{}\n", path, value);
    }
    let plain = plain(text);
    let root = Raw::parse(plain.as_bytes()).map_err(|fault| format!("it is not JSON: {fault}"))?;
    let (mut object, mut left) = (root, path);
    loop {
        if object.kind() != JsonKind::Object {
            let at = &path[..path.len() - left.len()];
            return Err(format!("{} is not an object", if at.is_empty() { "it".into() } else { at.join(".") }));
        }
        let Some((&name, rest)) = left.split_first() else { return Err("there is no member to set".into()) };
        let mut found = object.members().filter(|(key, _)| key.eq_str(name));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => return Err(format!("it has {name:?} twice")),
            (Some((_, old)), None) if rest.is_empty() => {
                if Raw::parse(value.as_bytes()).is_ok_and(|value| same(old, value)) {
                    return Ok(text.to_owned());
                }
                let at = offset(&plain, old.as_bytes());
                let value = laid_out(value, &indent_of_line(text, at));
                return Ok(splice(text, at, old.as_bytes().len(), &value));
            }
            (Some((_, inner)), None) => (object, left) = (inner, rest),
            (None, _) => {
                let value =
                    rest.iter().rev().fold(value.to_owned(), |value, name| format!("{{{}:{value}}}", quote(name)));
                return Ok(insert(text, &plain, object, name, &value));
            }
        }
    }
}

/// Sets the members of an entry, an object at `path`. Those that are not in `own` are the user's, and stay. An entry of another kind,
/// with a member of `own` that the new one does not have, is replaced as a whole.
pub(crate) fn set_entry(text: &str, path: &[&str], entry: &str, own: &[&str]) -> Result<String, String> {
    let plain = plain(text);
    let new = Raw::parse(entry.as_bytes()).map_err(|fault| fault.to_string())?;
    let old = Raw::parse(plain.as_bytes()).ok();
    let old = old.and_then(|root| path.iter().try_fold(root, |value, name| value.get(name)));
    if !old.is_some_and(|old| is_same_kind(old, new, own)) {
        return set(text, path, entry);
    }
    new.members().try_fold(text.to_owned(), |text, (name, value)| {
        set(&text, &[path, &[name.to_string().as_str()]].concat(), value.as_str())
    })
}

pub(crate) fn is_same_kind(old: Raw<'_>, new: Raw<'_>, own: &[&str]) -> bool {
    old.kind() == JsonKind::Object && own.iter().all(|name| old.get(name).is_none() || new.get(name).is_some())
}

/// Adds a member at the end of an object of the text. Places are those of `plain`.
fn insert(text: &str, plain: &str, object: Raw<'_>, name: &str, value: &str) -> String {
    let begin = offset(plain, object.as_bytes());
    let end = begin + object.as_bytes().len() - 1;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some((first, _)) = object.members().next() else {
        let outer = indent_of_line(text, begin);
        let indent = format!("{outer}  ");
        let member = format!("\n{indent}{}: {}\n{outer}", quote(name), laid_out(value, &indent)).replace('\n', newline);
        let inner = text[begin + 1..end].trim_end();
        return splice(text, begin + 1, end - begin - 1, &format!("{inner}{member}"));
    };
    let last =
        object.members().last().map_or(begin, |(_, value)| offset(plain, value.as_bytes()) + value.as_bytes().len());
    // A trailing comma is blank in `plain`, and the only one outside of comments.
    let comma = (last..end)
        .find(|&at| text.as_bytes()[at] == b',' && plain.as_bytes()[at] == b' ' && !in_comment(&text[last..at]));
    let behind = comma.map_or(last, |at| at + 1);
    // A comment on the line of the last member stays with it.
    let rest = plain[behind..end].split('\n').next().unwrap_or_default().trim_end_matches('\r').len();
    let at = if text[behind..behind + rest].trim().is_empty() { behind } else { behind + rest };
    // The new member is laid out as the first one is.
    let member = match plain[begin + 1..key_offset(plain, first)].rsplit_once('\n') {
        Some((_, indent)) => format!("\n{indent}{}: {}", quote(name), laid_out(value, indent)).replace('\n', newline),
        None => format!(" {}: {value}", quote(name)),
    };
    let [before, after] = if comma.is_some() { ["", ","] } else { [",", ""] };
    [&text[..last], before, &text[last..at], &member, after, &text[at..]].concat()
}

/// Returns `true` if a text of space and comments ends within one.
fn in_comment(text: &str) -> bool {
    plain(&format!("{text}x")).ends_with(' ')
}

/// Formats a value whose first line begins somewhere in a line with this indent.
fn laid_out(value: &str, indent: &str) -> String {
    let lines = Raw::parse(value.as_bytes()).map_or_else(|_| value.to_owned(), |raw| pretty(raw, COLUMNS));
    lines.replace('\n', &format!("\n{indent}"))
}

fn splice(text: &str, at: usize, len: usize, new: &str) -> String {
    [&text[..at], new, &text[at + len..]].concat()
}

/// Returns the place of a part of the text.
fn offset(text: &str, part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Returns the place of the opening quote of a key.
fn key_offset(text: &str, key: Text<'_>) -> usize {
    offset(text, key.raw()).saturating_sub(1)
}

fn indent_of_line(text: &str, at: usize) -> String {
    let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// The mode of a new file that may hold secrets.
const PRIVATE: u32 = 0o600;
/// The mode of a new file that all may read, if the umask allows it.
const PUBLIC: u32 = 0o666;

/// Replaces a file as a whole: its readers see the old text or the new one. A link stays a link, and the permissions
/// stay the same. A new file is for all to read.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = target(path)?;
    draft(&path, text, PUBLIC)?.becomes(&path)
}

/// The result of [`change`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// The text is as it was.
    No,
    /// There was no file.
    New,
    /// The old text is in this file.
    From(PathBuf),
}

/// Changes the text of a file that may hold secrets, with a copy of the old one beside it. A new file is for its user only.
/// Programs that change it at the same time wait for each other, and what others write meanwhile is not lost. If it fails, all
/// files are as they were. The error says why.
pub(crate) fn change(path: &Path, new: impl Fn(&str) -> Result<String, String>) -> Result<Changed, String> {
    /// The most times that another program may be faster.
    const TRIES: u32 = 10;
    let says = |error: io::Error| error.to_string();
    let file = target(path).map_err(says)?;
    let _lock = file.parent().map(system::lock).transpose().map_err(says)?;
    for _ in 0..TRIES {
        let old = read(&file)?;
        let text = new(old.as_deref().unwrap_or_default())?;
        if old.as_deref() == Some(text.as_str()) {
            return Ok(Changed::No);
        }
        let part = draft(&file, &text, PRIVATE).map_err(says)?;
        let copy = if old.is_some() { Some(back_up(path, &file).map_err(says)?) } else { None };
        // Some programs change their files without a lock.
        if read(&file)? == old {
            part.becomes(&file).map_err(says)?;
            return Ok(copy.map_or(Changed::New, |copy| Changed::From(copy.keep())));
        }
    }
    Err("another program changes it all the time".into())
}

/// Returns the file that a path leads to.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::other("it is a link to a file that is not there")),
            Err(_) => Ok(path.to_owned()),
        },
        found => found,
    }
}

fn read(file: &Path) -> Result<Option<String>, String> {
    // A read of a pipe would wait for its writer.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err("it is not a file".into());
    }
    match fs::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// A file that is removed again unless it is kept.
struct Draft(PathBuf, bool);

impl Draft {
    /// Makes a file that is not there yet. It has the mode and, where the system lets it, the owner of the file `like`, if
    /// there is one.
    fn create(path: PathBuf, like: &Path, mode: u32) -> io::Result<(Self, fs::File)> {
        let file = system::create(&path, mode)?;
        let draft = Draft(path, false);
        if let Ok(old) = fs::metadata(like) {
            system::give(&file, &old);
            file.set_permissions(old.permissions())?;
        }
        Ok((draft, file))
    }

    fn becomes(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)?;
        self.keep();
        Ok(())
    }

    fn keep(mut self) -> PathBuf {
        self.1 = true;
        std::mem::take(&mut self.0)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.1 {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Writes the text that a file will have to a file beside it.
fn draft(path: &Path, text: &str, mode: u32) -> io::Result<Draft> {
    let part = beside(path, &format!(".{}.part", std::process::id()));
    // Of a process with the same id that was killed.
    let _ = fs::remove_file(&part);
    let (draft, mut file) = Draft::create(part, path, mode)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(draft)
}

/// Copies a file to the first free name `NAME.old`, `NAME.old2` and so on beside `path`.
fn back_up(path: &Path, file: &Path) -> io::Result<Draft> {
    /// The most copies.
    const COPIES: u32 = 100;
    for n in 1..=COPIES {
        let copy = beside(path, &if n == 1 { ".old".into() } else { format!(".old{n}") });
        match Draft::create(copy, file, PRIVATE) {
            Ok((draft, mut copy)) => {
                io::copy(&mut fs::File::open(file)?, &mut copy)?;
                copy.sync_all()?;
                return Ok(draft);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {COPIES} old copies already")))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const KEPT: &str = "{\n    \"theme\" : \"dark\",\n    \"mcpServers\": {\n        \"a\": {\"command\":\"x\"}\n    },\n    \"z\":[1,\n2]\n}\n";

    #[test]
    fn all_else_stays() {
        let new = set(KEPT, &["mcpServers", "b"], r#"{"command":"y","args":[]}"#).unwrap();
        let expected = KEPT.replace(
            "\"a\": {\"command\":\"x\"}",
            "\"a\": {\"command\":\"x\"},\n        \"b\": {\"command\": \"y\", \"args\": []}",
        );
        assert_eq!(new, expected);
        assert_eq!(set(&new, &["mcpServers", "b"], r#"{"command": "y", "args": []}"#).as_deref(), Ok(&*new));
        let replaced = set(KEPT, &["mcpServers", "a"], "1").unwrap();
        assert_eq!(replaced, KEPT.replace(r#"{"command":"x"}"#, "1"));
        assert_eq!(set(r#"{"a":1}"#, &["b"], "2").as_deref(), Ok(r#"{"a":1, "b": 2}"#));
        assert_eq!(set(r#"{ "a":1 }"#, &["b"], "2").as_deref(), Ok(r#"{ "a":1, "b": 2 }"#));
        for empty in ["", " \n", "{}\n"] {
            assert_eq!(set(empty, &["s", "b"], "2").as_deref(), Ok("{\n  \"s\": {\"b\": 2}\n}\n"), "{empty:?}");
        }
        let nested = set("{\n  \"s\": {}\n}\n", &["s", "b"], "2").unwrap();
        assert_eq!(nested, "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n");
        // Long values get lines of their own, indented from where they are.
        let long = format!("{{\"k\":[\"{}\",\"b\"]}}", "a".repeat(90));
        let new = set(KEPT, &["long"], &long).unwrap();
        assert!(
            new.contains("2],\n    \"long\": {\n      \"k\": [\n        \"aaa") && Raw::parse(new.as_bytes()).is_ok(),
            "{new}"
        );
    }

    #[test]
    fn comments_and_trailing_commas_stay() {
        for (old, new) in [
            ("{\n  // none, \"yet\"\n}\n", "{\n  // none, \"yet\"\n  \"b\": 2\n}\n"),
            ("{\n  \"a\": 1 // one, two\n}", "{\n  \"a\": 1, // one, two\n  \"b\": 2\n}"),
            ("{\n  \"a\": 1, // one\n  // end\n}", "{\n  \"a\": 1, // one\n  \"b\": 2,\n  // end\n}"),
            ("{\n  \"a\": 1 /* , */ ,\n}", "{\n  \"a\": 1 /* , */ ,\n  \"b\": 2,\n}"),
            ("{ /* x\n */ \"a\":\"//\", }", "{ /* x\n */ \"a\":\"//\", \"b\": 2, }"),
            (
                "{\r\n  // ä\r\n  \"a\": {\"x\":1,},\r\n}\r\n",
                "{\r\n  // ä\r\n  \"a\": {\"x\":1,},\r\n  \"b\": 2,\r\n}\r\n",
            ),
            ("{\"a\\\"/*\":[1,2,],\"b\":/* old */1}", "{\"a\\\"/*\":[1,2,],\"b\":/* old */2}"),
        ] {
            assert_eq!(set(old, &["b"], "2").as_deref(), Ok(new));
            assert_eq!(set(new, &["b"], "2").as_deref(), Ok(new));
        }
    }

    #[test]
    fn what_the_user_has_added_to_an_entry_stays() {
        let own = ["command", "args", "url"];
        let set = |old: &str, entry: &str| set_entry(old, &["s", "b"], entry, &own).unwrap();
        let old = "{\"s\": {\"b\": {\"command\": \"x\", /* mine */ \"trust\": true}}}";
        let new = set(old, r#"{"command":"y","args":[]}"#);
        assert_eq!(new, old.replace("\"x\"", "\"y\"").replace("true", "true, \"args\": []"));
        assert_eq!(set(&new, r#"{"url":"u"}"#), "{\"s\": {\"b\": {\"url\": \"u\"}}}");
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for (text, words) in [
            ("{ /* mine }", "it is not JSON: "),
            ("{\"a\":1,,}", "it is not JSON: "),
            ("// mine", "it is not JSON: "),
            ("[]", "it is not an object"),
            ("{\"s\":[]}", "s is not an object"),
            ("{\"s\":{},\"s\":{}}", "it has \"s\" twice"),
        ] {
            let error = set(text, &["s", "b"], "1").unwrap_err();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    /// A folder for one test, and a file in it.
    fn place(name: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("mcp-sansio-edit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        (folder.clone(), folder.join("f.json"))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn modes_and_links_stay() {
        let (folder, file) = place("modes");
        let add = |name: &'static str| move |old: &str| set(old, &[name], "1");
        assert_eq!(change(&file, add("a")), Ok(Changed::New));
        assert_eq!((mode(&file), change(&file, add("a"))), (0o600, Ok(Changed::No)));
        for kept in [0o644, 0o640, 0o400] {
            fs::set_permissions(&file, fs::Permissions::from_mode(kept)).unwrap();
            let name = format!("m{kept}");
            let Ok(Changed::From(old)) = change(&file, |old| set(old, &[&name], "1")) else { panic!("{kept:o}") };
            assert_eq!((mode(&file), mode(&old)), (kept, kept));
        }
        let link = folder.join("link");
        symlink("f.json", &link).unwrap();
        assert_eq!(change(&link, add("b")), Ok(Changed::From(folder.join("link.old"))));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&file).unwrap().contains("\"b\""));
        assert_eq!(names(&folder), ["f.json", "f.json.old", "f.json.old2", "f.json.old3", "link", "link.old"]);
        replace(&folder.join("public"), "x").unwrap();
        assert_ne!(mode(&folder.join("public")) & 0o044, 0, "unless the umask forbids it");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_there_already_does_no_harm() {
        let (folder, file) = place("there");
        let part = beside(&file, &format!(".{}.part", std::process::id()));
        fs::write(&part, "left behind").unwrap();
        assert_eq!(change(&file, |old| set(old, &["a"], "1")), Ok(Changed::New));
        assert_eq!(names(&folder), ["f.json"]);
        // To read a pipe would take for ever.
        for odd in ["pipe", "folder"] {
            let path = folder.join(odd);
            match odd {
                "folder" => fs::create_dir(&path).unwrap(),
                _ => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            }
            assert_eq!(change(&path, |old| set(old, &["a"], "1")), Err("it is not a file".into()));
        }
        assert_eq!(names(&folder), ["f.json", "folder", "pipe"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_that_lead_nowhere_are_left_alone() {
        let (folder, file) = place("links");
        for target in ["not/here.json", "f.json", "../nowhere"] {
            let _ = fs::remove_file(&file);
            symlink(target, &file).unwrap();
            assert!(change(&file, |old| set(old, &["a"], "1")).is_err(), "{target}");
            assert!(replace(&file, "{}").is_err(), "{target}");
            assert_eq!(fs::read_link(&file).unwrap(), Path::new(target));
            assert_eq!(names(&folder), ["f.json"]);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn no_change_is_lost() {
        let (folder, file) = place("lost");
        std::thread::scope(|scope| {
            for n in 0..16 {
                let file = &file;
                // All threads have one process id, so `.part` has one name: only the lock keeps them apart.
                scope.spawn(move || change(file, |old| set(old, &["s", &n.to_string()], "1")).unwrap());
            }
        });
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(Raw::parse(text.as_bytes()).unwrap().get("s").unwrap().members().count(), 16, "{text}");
        // A program without a lock writes between reading and writing.
        let writes = std::cell::Cell::new(3_u32);
        let changed = change(&file, |old| {
            if writes.replace(writes.get().saturating_sub(1)) > 0 {
                fs::write(&file, set(old, &[&format!("other{}", writes.get())], "1")?).unwrap();
            }
            set(old, &["mine"], "1")
        });
        assert!(matches!(changed, Ok(Changed::From(_))), "{changed:?}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(["other0", "other1", "other2", "mine"].iter().all(|name| text.contains(name)), "{text}");
        // Each of the copies belongs to a change that was made.
        assert_eq!(names(&folder).len(), 17);
        let before = names(&folder);
        let n = std::cell::Cell::new(0);
        let changed = change(&file, |old| {
            n.set(n.get() + 1);
            fs::write(&file, format!("{old} ")).unwrap();
            set(old, &["never"], &n.get().to_string())
        });
        assert_eq!(changed, Err("another program changes it all the time".into()));
        assert_eq!(names(&folder), before);
        fs::remove_dir_all(folder).unwrap();
    }
}
