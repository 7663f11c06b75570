//! The configuration of hosts: which file starts a server, and how it says so.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use mcp_sansio::json::Raw;

use crate::args::{Options, Target};
use crate::arguments::meant;
use crate::commands::{Done, Run, Trouble};
use crate::edit;
use crate::json::{Members, array, pretty, quote};
use crate::text::clean;

/// A host that starts servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostKind {
    /// Its word on the command line.
    pub(crate) word: &'static str,
    name: &'static str,
    /// The member that has the servers.
    servers: &'static str,
    /// Its file takes URLs, and not only programs.
    takes_urls: bool,
    /// Entries say their `type`.
    is_typed: bool,
}

pub(crate) const HOSTS: [HostKind; 3] = [
    HostKind { word: "claude", name: "Claude Desktop", servers: "mcpServers", takes_urls: false, is_typed: false },
    HostKind { word: "vscode", name: "VS Code", servers: "servers", takes_urls: true, is_typed: true },
    HostKind { word: "cursor", name: "Cursor", servers: "mcpServers", takes_urls: true, is_typed: false },
];

/// The folders that the files are in, and the operating system.
#[derive(Clone, Debug)]
struct Places {
    home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, `APPDATA`.
    config: Option<PathBuf>,
    system: &'static str,
}

impl Places {
    fn here() -> Self {
        let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" };
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        Places { home, config: folder(config).filter(|path| path.is_absolute()), system: env::consts::OS }
    }
}

impl HostKind {
    pub(crate) fn named(word: &str) -> Result<Self, String> {
        let words = HOSTS.map(|host| host.word);
        let host = HOSTS.into_iter().find(|host| host.word == word);
        host.ok_or_else(|| format!("there is no host {word:?}{}; there are {}", meant(word, &words), words.join(", ")))
    }

    /// Returns the host's own folder, and its file for all projects.
    fn file(&self, places: &Places) -> Option<(PathBuf, PathBuf)> {
        let home = places.home.as_ref();
        let config = match places.system {
            "macos" => home?.join("Library/Application Support"),
            "windows" => places.config.clone()?,
            _ => places.config.clone().or_else(|| Some(home?.join(".config")))?,
        };
        let (folder, file) = match self.word {
            "claude" => (config.join("Claude"), "claude_desktop_config.json"),
            "vscode" => (config.join("Code/User"), "mcp.json"),
            _ => (home?.join(".cursor"), "mcp.json"),
        };
        let file = folder.join(file);
        Some((folder, file))
    }

    /// Returns the entry of a server, as JSON.
    fn entry(&self, target: &Target, options: &Options) -> Result<String, String> {
        let pairs = |pairs: &[(String, String)]| {
            let mut members = Members::default();
            pairs.iter().for_each(|(name, value)| members.add(name, &quote(value)));
            members.finish()
        };
        let mut entry = Members::default();
        match target {
            Target::Program(words) => {
                let mut words = words.iter();
                let program = words.next().ok_or("which program?")?;
                if self.is_typed {
                    entry.add("type", &quote("stdio"));
                }
                entry.add("command", &quote(utf8(&whole(program))?));
                let rest = words.map(|word| utf8(word).map(quote)).collect::<Result<Vec<_>, _>>()?;
                entry.add("args", &array(&rest));
                if !options.env.is_empty() {
                    entry.add("env", &pairs(&options.env));
                }
            }
            Target::Url(url) => {
                if !self.takes_urls {
                    return Err("its file takes programs only; add the URL in its settings, as a connector".into());
                }
                if self.is_typed {
                    entry.add("type", &quote("http"));
                }
                entry.add("url", &quote(url));
                if !options.headers.is_empty() {
                    entry.add("headers", &pairs(&options.headers));
                }
            }
        }
        Ok(entry.finish())
    }
}

fn utf8(word: &OsStr) -> Result<&str, String> {
    word.to_str().ok_or_else(|| format!("{} is not UTF-8", word.to_string_lossy()))
}

/// Returns the whole path of a program: a host has another working directory, and often another `PATH`. A program that is not
/// found stays as it is.
fn whole(program: &OsStr) -> OsString {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return std::path::absolute(path).map_or_else(|_| program.to_owned(), PathBuf::into_os_string);
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
    found.and_then(|path| std::path::absolute(path).ok()).map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

impl Run<'_, '_> {
    /// Prints the configuration, or writes it. The server has answered before: an entry that cannot work is of no use.
    pub(crate) fn install(&mut self, name: &str, hosts: &[HostKind]) -> Done {
        if name.trim().is_empty() {
            return Err(Trouble::Usage("the name is empty: hosts show it, and tell servers apart by it".into()));
        }
        let places = Places::here();
        let chosen = if hosts.is_empty() { &HOSTS[..] } else { hosts };
        let (mut out, mut written, mut failed) = (String::new(), 0, Vec::new());
        for host in chosen {
            let Some((folder, file)) = host.file(&places) else {
                failed.push(format!("{}: there is no home folder", host.name));
                continue;
            };
            let shown = clean(file.display());
            let entry = match host.entry(self.target, self.options) {
                Ok(entry) => entry,
                Err(why) => {
                    failed.push(format!("{}: {why}", host.name));
                    continue;
                }
            };
            if !self.options.write {
                let mut servers = Members::default();
                servers.add(name, &entry);
                let whole = format!("{{{}:{}}}", quote(host.servers), servers.finish());
                let whole = Raw::parse(whole.as_bytes()).map_or(whole.clone(), |raw| pretty(raw, self.look.width));
                out.push_str(&format!("{}: {shown}\n{whole}\n\n", host.name));
                continue;
            }
            // Without a word about it, no folders are made for hosts that are not here.
            if hosts.is_empty() && !folder.is_dir() {
                continue;
            }
            match write(&folder, &file, &[host.servers, name], &entry) {
                Ok(Some(old)) => out.push_str(&format!("{}: {shown} written{old}\n", host.name)),
                Ok(None) => out.push_str(&format!("{}: {shown} has it already\n", host.name)),
                Err(why) => {
                    failed.push(format!("{}: {shown} is not changed: {why}", host.name));
                    continue;
                }
            }
            written += 1;
        }
        if !self.options.write {
            out.push_str("Nothing is written: --write adds it to the files of the hosts that are here.\n");
        } else if written == 0 && failed.is_empty() {
            failed.push(
                "none of these hosts is here; name one to write its file all the same: claude, vscode, cursor".into(),
            );
        }
        self.print(&out)?;
        // A host that cannot take it is a failure only if it was asked for, or should have been written.
        let is_failure = !failed.is_empty() && (!hosts.is_empty() || self.options.write && written == 0);
        let words = failed.join("\n");
        match is_failure {
            true => Err(Trouble::Usage(words)),
            false => {
                failed.iter().for_each(|line| self.around.live.borrow_mut().note(crate::page::Style::Warn, line));
                Ok(())
            }
        }
    }
}

/// Sets an entry in a file. Returns what to say of the old file; `None` if nothing had to be changed.
fn write(folder: &Path, file: &Path, path: &[&str], entry: &str) -> Result<Option<String>, String> {
    let is_new = !folder.is_dir();
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let changed = edit::change(file, |old| edit::set(old, path, entry)).inspect_err(|_| {
        if is_new {
            // Not if another program has put something there.
            let _ = std::fs::remove_dir(folder);
        }
    })?;
    Ok(match changed {
        edit::Changed::No => None,
        edit::Changed::New => Some(String::new()),
        edit::Changed::From(old) => Some(format!("; the old one is {}", clean(old.display()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_hosts() {
        let at = |system, config: Option<&str>| {
            let places = Places { home: Some("/h".into()), config: config.map(Into::into), system };
            HOSTS.map(|host| host.file(&places).map(|(_, file)| file.to_str().unwrap().to_owned()).unwrap_or_default())
        };
        let linux =
            ["/h/.config/Claude/claude_desktop_config.json", "/h/.config/Code/User/mcp.json", "/h/.cursor/mcp.json"];
        assert_eq!(at("linux", None), linux);
        assert_eq!(at("linux", Some("/c"))[1], "/c/Code/User/mcp.json");
        assert_eq!(at("macos", None)[0], "/h/Library/Application Support/Claude/claude_desktop_config.json");
        assert_eq!(at("windows", Some("/r"))[1], "/r/Code/User/mcp.json");
        assert_eq!(at("windows", None)[1], "");
    }

    #[test]
    fn entries() {
        let options = Options {
            env: vec![("K".into(), "v".into())],
            headers: vec![("A".into(), "b".into())],
            ..Options::default()
        };
        let program = Target::Program(vec!["/bin/sh".into(), "-c".into(), "x y".into()]);
        let of = |target: &Target| HOSTS.map(|host| host.entry(target, &options).unwrap_or_else(|why| why));
        let stdio = r#""command":"/bin/sh","args":["-c","x y"],"env":{"K":"v"}}"#;
        assert_eq!(of(&program), [format!("{{{stdio}"), format!("{{\"type\":\"stdio\",{stdio}"), format!("{{{stdio}")]);
        let [claude, vscode, cursor] = of(&Target::Url("https://h/mcp".into()));
        assert!(claude.starts_with("its file takes programs only"), "{claude}");
        assert_eq!(vscode, r#"{"type":"http","url":"https://h/mcp","headers":{"A":"b"}}"#);
        assert_eq!(cursor, r#"{"url":"https://h/mcp","headers":{"A":"b"}}"#);
        assert_eq!(whole(OsStr::new("sh")).to_str().map(|path| path.ends_with("/sh")), Some(true));
        assert!(Path::new(&whole(OsStr::new("./sh"))).is_absolute());
    }
}
