//! The hosts that start servers: which file has them, and how an entry says what to start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use mcp_sansio::json::Raw;
use mcp_sansio_host::{ServerEntry, plain_json};

use crate::args::{Options, Target};
use crate::arguments::{listed, meant};
use crate::json::{Members, array, quote};
use crate::{edit, toml};

/// A host that starts servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostKind {
    /// Its word on the command line.
    pub(crate) word: &'static str,
    pub(crate) name: &'static str,
    /// The member that has the servers.
    pub(crate) servers: &'static str,
    /// The member that has the URL of a server. Without, its file takes programs only.
    url: Option<&'static str>,
    /// The member that has the headers for a URL.
    headers: &'static str,
    /// Entries say their `type`.
    is_typed: bool,
}

const fn host(word: &'static str, name: &'static str, servers: &'static str, url: Option<&'static str>) -> HostKind {
    HostKind { word, name, servers, url, headers: "headers", is_typed: false }
}

/// Each as its own documentation has it.
pub(crate) const HOSTS: [HostKind; 8] = [
    // modelcontextprotocol.io/docs/develop/connect-local-servers
    host("claude", "Claude Desktop", "mcpServers", None),
    // code.claude.com/docs/en/mcp: the scope `user`.
    HostKind { is_typed: true, ..host("claude-code", "Claude Code", "mcpServers", Some("url")) },
    // developers.openai.com/codex/mcp
    HostKind { headers: "http_headers", ..host("codex", "Codex", "mcp_servers", Some("url")) },
    // cursor.com/docs/context/mcp
    host("cursor", "Cursor", "mcpServers", Some("url")),
    // geminicli.com/docs/tools/mcp-server: `url` is for HTTP+SSE.
    host("gemini", "Gemini CLI", "mcpServers", Some("httpUrl")),
    // code.visualstudio.com/docs/copilot/reference/mcp-configuration
    HostKind { is_typed: true, ..host("vscode", "VS Code", "servers", Some("url")) },
    // docs.windsurf.com/windsurf/cascade/mcp
    host("windsurf", "Windsurf", "mcpServers", Some("serverUrl")),
    // zed.dev/docs/ai/mcp. A `source` is of the past (zed-industries/zed#62818).
    host("zed", "Zed", "context_servers", Some("url")),
];

/// The folders that the files are in, and the operating system.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, `APPDATA`.
    config: Option<PathBuf>,
    /// `CODEX_HOME`.
    codex: Option<PathBuf>,
    system: &'static str,
}

impl Places {
    pub(crate) fn here() -> Self {
        let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" };
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let config = folder(config).filter(|path| path.is_absolute());
        Places { home, config, codex: folder("CODEX_HOME"), system: env::consts::OS }
    }
}

impl HostKind {
    pub(crate) fn named(word: &str) -> Result<Self, String> {
        let words = HOSTS.map(|host| host.word);
        let host = HOSTS.into_iter().find(|host| host.word == word);
        host.ok_or_else(|| format!("there is no host {word:?}{}; there are {}", meant(word, &words), words.join(", ")))
    }

    /// Returns the folder that shows that the host is here, and its file for all projects.
    pub(crate) fn file(&self, places: &Places) -> Option<(PathBuf, PathBuf)> {
        let home = places.home.as_ref();
        let config = || places.config.clone().or_else(|| Some(home?.join(".config")));
        let support = || match places.system {
            "macos" => Some(home?.join("Library/Application Support")),
            "windows" => places.config.clone(),
            _ => config(),
        };
        let (folder, file) = match self.word {
            "claude" => (support()?.join("Claude"), "claude_desktop_config.json"),
            "claude-code" => return Some((home?.join(".claude"), home?.join(".claude.json"))),
            "codex" => (places.codex.clone().or_else(|| Some(home?.join(".codex")))?, "config.toml"),
            "gemini" => (home?.join(".gemini"), "settings.json"),
            "vscode" => (support()?.join("Code/User"), "mcp.json"),
            "windsurf" => (home?.join(".codeium/windsurf"), "mcp_config.json"),
            "zed" if places.system == "windows" => (support()?.join("Zed"), "settings.json"),
            "zed" if places.system == "macos" => (home?.join(".config/zed"), "settings.json"),
            "zed" => (config()?.join("zed"), "settings.json"),
            _ => (home?.join(".cursor"), "mcp.json"),
        };
        let file = folder.join(file);
        Some((folder, file))
    }

    fn is_toml(&self) -> bool {
        self.word == "codex"
    }

    /// Returns the entry of a server, as JSON.
    pub(crate) fn entry(&self, target: &Target, options: &Options) -> Result<String, String> {
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
                let member =
                    self.url.ok_or("its file takes programs only; add the URL in its settings, as a connector")?;
                if self.is_typed {
                    entry.add("type", &quote("http"));
                }
                entry.add(member, &quote(url));
                if !options.headers.is_empty() {
                    entry.add(self.headers, &pairs(&options.headers));
                }
            }
        }
        Ok(entry.finish())
    }

    /// Returns the text of the file with an entry set. What else is in it stays, also members of the entry that are not ours.
    pub(crate) fn set(&self, text: &str, name: &str, entry: &str) -> Result<String, String> {
        let own = ["type", "command", "args", "env", self.headers, self.url.unwrap_or("url")];
        match self.is_toml() {
            true => toml::set_entry(text, [self.servers, name], entry, &own),
            false => edit::set_entry(text, &[self.servers, name], entry, &own),
        }
    }

    /// Reads the file of the host: how it reaches the server of that name.
    pub(crate) fn find(&self, name: Option<&str>, places: &Places) -> Result<ServerEntry, String> {
        let (_, file) = self.file(places).ok_or("there is no home folder")?;
        let shown = file.display();
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{shown}: {error}"))?;
        let json = if self.is_toml() { toml::read(&text) } else { Ok(plain_json(&text)) };
        let json = json.map_err(|why| format!("{shown}: {why}"))?;
        let root = Raw::parse(json.as_bytes()).map_err(|fault| format!("{shown}: it is not JSON: {fault}"))?;
        let servers = root.get(self.servers);
        let names: Vec<String> =
            servers.into_iter().flat_map(|servers| servers.members()).map(|(name, _)| name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let there = listed("it has", "it has none", &names);
        let name = name.ok_or_else(|| format!("which server of {}? {there}", self.name))?;
        let entry = servers.and_then(|servers| servers.get(name));
        let entry = entry.ok_or_else(|| format!("{shown} has no server {name:?}{}; {there}", meant(name, &names)))?;
        ServerEntry::read(entry).map_err(|why| format!("{shown}: {name}: {why}"))
    }
}

fn utf8(word: &OsStr) -> Result<&str, String> {
    word.to_str().ok_or_else(|| format!("{} is not UTF-8", word.to_string_lossy()))
}

/// Returns the whole path of a program: a host has another working directory, and often another `PATH`. A program that is not
/// found stays as it is.
pub(crate) fn whole(program: &OsStr) -> OsString {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return std::path::absolute(path).map_or_else(|_| program.to_owned(), PathBuf::into_os_string);
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
    found.and_then(|path| std::path::absolute(path).ok()).map_or_else(|| program.to_owned(), PathBuf::into_os_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(word: &str) -> HostKind {
        HostKind::named(word).unwrap()
    }

    #[test]
    fn files_of_hosts() {
        let at = |word: &str, system, config: Option<&str>| {
            let places = Places { home: Some("/h".into()), config: config.map(Into::into), codex: None, system };
            named(word).file(&places).map(|(_, file)| file.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        for (word, file) in [
            ("claude", "/h/.config/Claude/claude_desktop_config.json"),
            ("claude-code", "/h/.claude.json"),
            ("codex", "/h/.codex/config.toml"),
            ("cursor", "/h/.cursor/mcp.json"),
            ("gemini", "/h/.gemini/settings.json"),
            ("vscode", "/h/.config/Code/User/mcp.json"),
            ("windsurf", "/h/.codeium/windsurf/mcp_config.json"),
            ("zed", "/h/.config/zed/settings.json"),
        ] {
            assert_eq!(at(word, "linux", None), file);
        }
        assert_eq!(at("vscode", "linux", Some("/c")), "/c/Code/User/mcp.json");
        assert_eq!(at("zed", "macos", Some("/c")), "/h/.config/zed/settings.json");
        assert_eq!(at("claude", "macos", None), "/h/Library/Application Support/Claude/claude_desktop_config.json");
        assert_eq!(at("vscode", "windows", Some("/r")), "/r/Code/User/mcp.json");
        assert_eq!(at("zed", "windows", Some("/r")), "/r/Zed/settings.json");
        assert_eq!(at("vscode", "windows", None), "");
    }

    #[test]
    fn entries() {
        let options = Options {
            env: vec![("K".into(), "v".into())],
            headers: vec![("A".into(), "b".into())],
            ..Options::default()
        };
        let program = Target::Program(vec!["/bin/sh".into(), "-c".into(), "x y".into()]);
        let url = Target::Url("https://h/mcp".into());
        let of = |word: &str, target: &Target| named(word).entry(target, &options).unwrap_or_else(|why| why);
        let stdio = r#""command":"/bin/sh","args":["-c","x y"],"env":{"K":"v"}}"#;
        for host in HOSTS {
            let is_typed = ["claude-code", "vscode"].contains(&host.word);
            let begin = if is_typed { r#"{"type":"stdio","# } else { "{" };
            assert_eq!(of(host.word, &program), format!("{begin}{stdio}"));
        }
        assert!(of("claude", &url).starts_with("its file takes programs only"));
        for (word, entry) in [
            ("claude-code", r#"{"type":"http","url":"https://h/mcp","headers":{"A":"b"}}"#),
            ("codex", r#"{"url":"https://h/mcp","http_headers":{"A":"b"}}"#),
            ("cursor", r#"{"url":"https://h/mcp","headers":{"A":"b"}}"#),
            ("gemini", r#"{"httpUrl":"https://h/mcp","headers":{"A":"b"}}"#),
            ("vscode", r#"{"type":"http","url":"https://h/mcp","headers":{"A":"b"}}"#),
            ("windsurf", r#"{"serverUrl":"https://h/mcp","headers":{"A":"b"}}"#),
            ("zed", r#"{"url":"https://h/mcp","headers":{"A":"b"}}"#),
        ] {
            assert_eq!(of(word, &url), entry);
            // What is written is read again.
            let found = ServerEntry::read(Raw::constant(entry)).unwrap();
            assert_eq!((found.url.as_str(), found.headers), ("https://h/mcp", options.headers.clone()));
        }
        assert_eq!(whole(OsStr::new("sh")).to_str().map(|path| path.ends_with("/sh")), Some(true));
        assert!(Path::new(&whole(OsStr::new("./sh"))).is_absolute());
    }

    #[test]
    fn entries_of_others() {
        let found = |entry: &'static str| ServerEntry::read(Raw::constant(entry));
        let program = found(r#"{"command":"a","args":["${NO_SUCH}","$x}"],"cwd":"/c","timeout":1}"#).unwrap();
        assert_eq!(program.program, ["a", "${NO_SUCH}", "$x}"]);
        assert_eq!(program.folder.as_deref(), Some("/c"));
        let path = env::var("PATH").unwrap();
        let token = found(r#"{"url":"u","bearer_token_env_var":"PATH","env_http_headers":{"X":"PATH"}}"#);
        let headers = [("X".into(), path.clone()), ("Authorization".into(), format!("Bearer {path}"))];
        assert_eq!(token.unwrap().headers, headers);
        let old = found(r#"{"url":"u","headers":{"A":"${env:PATH}"}}"#).unwrap();
        assert_eq!((old.url.as_str(), old.headers), ("u", vec![("A".into(), path)]));
        let path = found(r#"{"command":null,"args":null,"url":"u","env":null}"#);
        assert_eq!(path.map(|entry| entry.url).as_deref(), Ok("u"));
        for (entry, why) in [
            (r#"{"settings":{}}"#, "it has neither a program nor a URL"),
            (r#"{"command":["a"]}"#, "command is not a string"),
            (r#"{"command":"a","args":"b c"}"#, "args is not an array"),
            (r#"{"command":"a","args":["b",1]}"#, "a word of args is not a string"),
            (r#"{"command":"a","env":["B=c"]}"#, "env is not an object"),
            (r#"{"command":"a","env":{"B":1}}"#, "env.B is not a string"),
            (r#"{"command":"a","cwd":1}"#, "cwd is not a string"),
            (r#"{"url":1}"#, "url is not a string"),
            (r#"{"url":"u","headers":{"A":true}}"#, "headers.A is not a string"),
            (
                r#"{"command":"a","env":{"KEY":"x${input:key}"}}"#,
                "env.KEY has ${input:key}, for which only VS Code asks: use a variable, ${NAME}",
            ),
        ] {
            assert_eq!(found(entry), Err(why.into()));
        }
    }
}
