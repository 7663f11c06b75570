//! Files that are published with a server: `server.json`, the format of the MCP registry, and `manifest.json` of an MCPB bundle.
//!
//! Members that the server knows itself follow what it says, and `--check` finds where they do not. The others are written once,
//! and are the author's from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio_host::schema::same;

use crate::args::{Options, Target};
use crate::commands::{Done, Run, Trouble};
use crate::edit;
use crate::json::{Members, array, compact, pretty, quote};
use crate::page::Style;
use crate::text::{clean, one_line};

/// The schema of `server.json`.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// The version of MCPB's manifest.
const MCPB: &str = "0.3";

/// The longest description and title in the registry, in characters.
const LONGEST: usize = 100;

/// A member of a file.
struct Member {
    name: &'static str,
    json: String,
    /// The server says it: the file follows.
    follows: bool,
}

/// A file, as it would be made anew.
struct Document {
    file: &'static str,
    members: Vec<Member>,
    /// The parts that the author has to fill in or to add.
    open: Vec<&'static str>,
}

/// The facts that the server says of itself.
struct Facts {
    name: String,
    title: Option<String>,
    version: String,
    description: Option<String>,
    website: Option<String>,
    /// Objects with name and description.
    tools: Vec<String>,
    has_prompts: bool,
}

impl Facts {
    fn of(info: Raw<'_>, tools: &[Raw<'_>], has_prompts: bool) -> Self {
        let text = |key: &str| Some(one_line(info.get(key)?.text()?)).filter(|text| !text.is_empty());
        let tool = |tool: &Raw<'_>| {
            let mut members = Members::default();
            for key in ["name", "description"] {
                tool.get(key)
                    .and_then(|text| text.text())
                    .into_iter()
                    .for_each(|text| members.add(key, &quote(&text.to_string())));
            }
            members.finish()
        };
        Facts {
            name: text("name").unwrap_or_else(|| "server".into()),
            title: text("title"),
            version: text("version").unwrap_or_else(|| "0.0.0".into()),
            description: text("description"),
            website: text("websiteUrl"),
            tools: tools.iter().map(tool).collect(),
            has_prompts,
        }
    }

    /// The name with letters, digits, dots, underscores and hyphens only.
    fn plain_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        self.name.chars().map(plain).collect()
    }

    /// The name in the registry: a namespace, a slash, a name.
    fn registry_name(&self) -> (String, bool) {
        let is_plain = |part: &str, more: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c) || more.contains(c))
        };
        match self.name.split_once('/') {
            Some((space, name)) if is_plain(space, "") && is_plain(name, "_") => (self.name.clone(), true),
            _ => (format!("io.github.OWNER/{}", self.plain_name()), false),
        }
    }

    fn server(&self, target: &Target) -> Document {
        let (name, is_known) = self.registry_name();
        let mut open = Vec::new();
        if !is_known {
            open.push("`name` needs your namespace, like io.github.OWNER");
        }
        let mut members = vec![
            Member { name: "$schema", json: quote(SCHEMA), follows: false },
            Member { name: "name", json: quote(&name), follows: is_known },
        ];
        let mut add = |name, json, follows| members.push(Member { name, json, follows });
        if let Some(title) = &self.title {
            add("title", quote(&cut(title)), true);
        }
        match &self.description {
            Some(description) => add("description", quote(&cut(description)), true),
            None => {
                open.push("`description` is made up: the server has none");
                add("description", quote(&cut(&format!("The MCP server {}", self.name))), false);
            }
        }
        add("version", quote(&self.version), true);
        if let Some(website) = &self.website {
            add("websiteUrl", quote(website), true);
        }
        match target {
            Target::Url(url) => {
                let mut remote = Members::default();
                remote.add("type", &quote("streamable-http"));
                remote.add("url", &quote(url));
                add("remotes", array(&[remote.finish()]), false);
            }
            Target::Program(_) => open.push("`packages` is not there: only you know where the program is published"),
        }
        Document { file: "server.json", members, open }
    }

    fn bundle(&self, program: &[String], options: &Options) -> Document {
        let mut open = vec!["`author` needs your name"];
        let mut members = vec![
            Member { name: "manifest_version", json: quote(MCPB), follows: false },
            Member { name: "name", json: quote(&self.plain_name()), follows: false },
        ];
        let mut add = |name, json, follows| members.push(Member { name, json, follows });
        if let Some(title) = &self.title {
            add("display_name", quote(title), true);
        }
        add("version", quote(&self.version), true);
        match &self.description {
            Some(description) => add("description", quote(description), true),
            None => {
                open.push("`description` is made up: the server has none");
                add("description", quote(&format!("The MCP server {}", self.name)), false);
            }
        }
        add("author", format!("{{{}:{}}}", quote("name"), quote("AUTHOR")), false);
        add("server", start(program, options), false);
        add("tools", array(&self.tools), true);
        if self.has_prompts {
            add("prompts_generated", "true".into(), true);
        }
        if !options.env.is_empty() {
            add("user_config", settings(options), false);
        }
        Document { file: "manifest.json", members, open }
    }
}

fn cut(text: &str) -> String {
    match text.chars().count() {
        0..=LONGEST => text.to_owned(),
        _ => text.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// Returns `server` of a bundle: the program, in the bundle's folder `server`.
fn start(program: &[String], options: &Options) -> String {
    let file = |path: &str| {
        Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let command = program.first().map(|program| file(program)).unwrap_or_default();
    let mut args = program.get(1..).unwrap_or_default().to_vec();
    let kind = match command.as_str() {
        "node" => "node",
        name if name.starts_with("python") => "python",
        _ => "binary",
    };
    // Of an interpreter, the first argument that is no option is the program.
    let script = args.iter_mut().find(|arg| !arg.starts_with('-')).filter(|_| kind != "binary");
    let (entry, run) = match script {
        Some(script) => {
            let entry = format!("server/{}", file(script));
            *script = format!("${{__dirname}}/{entry}");
            (entry, command)
        }
        None => (format!("server/{command}"), format!("${{__dirname}}/server/{command}")),
    };
    let mut config = Members::default();
    config.add("command", &quote(&run));
    config.add("args", &array(&args.iter().map(|arg| quote(arg)).collect::<Vec<_>>()));
    if !options.env.is_empty() {
        // Their values may be secrets: each user gives his own.
        let mut env = Members::default();
        options
            .env
            .iter()
            .for_each(|(name, _)| env.add(name, &quote(&format!("${{user_config.{}}}", name.to_lowercase()))));
        config.add("env", &env.finish());
    }
    let mut server = Members::default();
    server.add("type", &quote(kind));
    server.add("entry_point", &quote(&entry));
    server.add("mcp_config", &config.finish());
    server.finish()
}

fn settings(options: &Options) -> String {
    let mut settings = Members::default();
    for (name, _) in &options.env {
        let mut setting = Members::default();
        setting.add("type", &quote("string"));
        setting.add("title", &quote(name));
        setting.add("description", &quote(&format!("The variable {name} of the server")));
        setting.add("required", "true");
        setting.add("sensitive", "true");
        settings.add(&name.to_lowercase(), &setting.finish());
    }
    settings.finish()
}

impl Document {
    fn json(&self) -> String {
        let mut json = Members::default();
        self.members.iter().for_each(|member| json.add(member.name, &member.json));
        json.finish()
    }

    /// Compares a file with what the server says: each difference in words.
    fn drift(&self, old: Raw<'_>) -> Vec<(&Member, String)> {
        let mut drift = Vec::new();
        for member in self.members.iter().filter(|member| member.follows) {
            let Ok(new) = Raw::parse(member.json.as_bytes()) else { continue };
            let words = match old.get(member.name) {
                None => format!("no `{}`; the server says {}", member.name, short(new)),
                Some(old) if same(old, new) => continue,
                Some(old) if member.name == "tools" => tools_drift(old, new),
                Some(old) => format!("`{}` is {}; the server says {}", member.name, short(old), short(new)),
            };
            drift.push((member, words));
        }
        drift
    }
}

fn short(value: Raw<'_>) -> String {
    /// The longest value that is shown whole.
    const SHORT: usize = 80;
    let text = compact(value);
    if text.chars().count() <= SHORT { text } else { text.chars().take(SHORT).chain(['…']).collect() }
}

fn tools_drift(old: Raw<'_>, new: Raw<'_>) -> String {
    let name =
        |tool: &Raw<'_>| tool.get("name").and_then(|name| name.text()).map(|name| name.to_string()).unwrap_or_default();
    let was: BTreeMap<String, Raw<'_>> = old.items().map(|tool| (name(&tool), tool)).collect();
    let is: BTreeSet<String> = new.items().map(|tool| name(&tool)).collect();
    let mut words = Vec::new();
    for tool in new.items().filter(|tool| !was.contains_key(&name(tool))) {
        words.push(format!("`{}` is missing", name(&tool)));
    }
    for tool in old.items().filter(|tool| !is.contains(&name(tool))) {
        words.push(format!("the server has no `{}`", name(&tool)));
    }
    for tool in new.items() {
        if was.get(&name(&tool)).is_some_and(|other| !same(*other, tool)) {
            words.push(format!("`{}` has another description", name(&tool)));
        }
    }
    if words.is_empty() { "`tools` has another order".into() } else { format!("`tools`: {}", words.join(", ")) }
}

impl Run<'_, '_> {
    /// Writes the files, brings them up to date, or compares them with what the server says.
    pub(crate) fn manifest(&mut self) -> Done {
        let pages = self.list("tools", ServerCapability::Tools)?;
        let tools: Vec<Raw<'_>> =
            pages.iter().filter_map(|page| page.raw().get("tools")).flat_map(|tools| tools.items()).collect();
        let has_prompts = self.session.client().engine().offered().has(ServerCapability::Prompts);
        let hello = self.session.client().server().cloned();
        let info = hello.as_ref().and_then(|hello| hello.server());
        let Some(info) = info else { return Err(Trouble::Over("the server does not say its name".into())) };
        let facts = Facts::of(info, &tools, has_prompts);
        let mut documents = vec![facts.server(self.target)];
        if let Target::Program(words) = self.target {
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            documents.push(facts.bundle(&words, self.options));
        }
        if self.options.json {
            let mut all = Members::default();
            documents.iter().for_each(|document| all.add(document.file, &document.json()));
            return self.print_json(&all.finish());
        }
        let folder = Path::new(self.options.output.as_deref().unwrap_or("."));
        let mut is_drift = false;
        for document in &documents {
            is_drift |= self.bring_up_to_date(document, &folder.join(document.file))?;
        }
        if is_drift && self.options.check { Err(Trouble::Found) } else { Ok(()) }
    }

    /// Returns whether the file was not as the server says.
    fn bring_up_to_date(&mut self, document: &Document, path: &Path) -> Result<bool, Trouble> {
        let shown = clean(path.display());
        let fails = |why: String| Trouble::Usage(format!("{shown} is not changed: {why}"));
        let old = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound && self.options.check => {
                self.print(&format!("{shown} is not there\n"))?;
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let json = document.json();
                let text = Raw::parse(json.as_bytes()).map_or(json.clone(), |raw| pretty(raw, 80)) + "\n";
                edit::replace(path, &text).map_err(|error| fails(error.to_string()))?;
                self.print(&format!("{shown} written\n"))?;
                for words in &document.open {
                    self.around.live.borrow_mut().note(Style::Warn, &format!("{shown}: {words}"));
                }
                return Ok(true);
            }
            Err(error) => return Err(fails(error.to_string())),
        };
        let root = Raw::parse(old.as_bytes()).map_err(|fault| fails(format!("it is not JSON: {fault}")))?;
        let drift = document.drift(root);
        let mut text = String::new();
        for (_, words) in &drift {
            text.push_str(&format!("{shown}: {}\n", clean(words)));
        }
        if drift.is_empty() {
            text = format!("{shown} is up to date\n");
        } else if !self.options.check {
            let mut new = old.clone();
            for (member, _) in &drift {
                new = edit::set(&new, &[member.name], &member.json).map_err(fails)?;
            }
            edit::replace(path, &new).map_err(|error| fails(error.to_string()))?;
            text.push_str(&format!("{shown} brought up to date\n"));
        }
        self.print(&text)?;
        Ok(!drift.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_programs() {
        let of = |line: &str| start(&line.split(' ').map(String::from).collect::<Vec<_>>(), &Options::default());
        assert_eq!(
            of("target/release/calc -v"),
            r#"{"type":"binary","entry_point":"server/calc","mcp_config":{"command":"${__dirname}/server/calc","args":["-v"]}}"#
        );
        assert_eq!(
            of("node dist/main.js x"),
            r#"{"type":"node","entry_point":"server/main.js","mcp_config":{"command":"node","args":["${__dirname}/server/main.js","x"]}}"#
        );
        let options = Options { env: vec![("API_KEY".into(), "secret".into())], ..Options::default() };
        let json = start(&["a".into()], &options) + &settings(&options);
        assert!(json.contains(r#""env":{"API_KEY":"${user_config.api_key}"}"#) && !json.contains("secret"), "{json}");
    }

    #[test]
    fn names() {
        let named = |name: &str| {
            let info = format!("{{\"name\":{},\"version\":\"1\"}}", quote(name));
            Facts::of(Raw::parse(info.as_bytes()).unwrap(), &[], false).registry_name()
        };
        assert_eq!(named("com.example/calc"), ("com.example/calc".into(), true));
        assert_eq!(named("my calc"), ("io.github.OWNER/my-calc".into(), false));
        assert_eq!(named("a/b/c"), ("io.github.OWNER/a-b-c".into(), false));
        assert_eq!(cut(&"ä".repeat(101)).chars().count(), 100);
    }
}
