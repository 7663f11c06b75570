//! Files that are published with a server: `server.json`, the format of the MCP registry, and `manifest.json` of an MCPB bundle.
//!
//! Members that the server knows itself follow what it says, and `--check` finds where they do not. The others are written once,
//! and are the author's from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio_extensions::skills::Digest;
use mcp_sansio_host::schema::same;

use crate::args::{Options, Target};
use crate::commands::{Done, Run, Trouble};
use crate::hosts::whole;
use crate::json::{Members, array, compact, pretty, quote};
use crate::pack::{Entry, zip};
use crate::page::Style;
use crate::text::{clean, one_line};
use crate::{edit, toml};

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

    fn server(&self, target: &Target, packages: &[String]) -> Document {
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
            Target::Program(_) if packages.is_empty() => {
                open.push("`packages` is not there: --cargo and --pack write it for a crate and a bundle");
            }
            Target::Program(_) => {
                if packages.iter().any(|package| package.contains("OWNER/REPOSITORY")) {
                    open.push("the bundle's `identifier` needs the address of its release");
                }
                add("packages", array(packages), true);
            }
        }
        Document { file: "server.json", members, open }
    }

    /// Returns the name of the file of the bundle.
    fn bundle_name(&self) -> String {
        format!("{}-{}.mcpb", self.plain_name(), self.version)
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

/// Returns a package of `server.json`: a program over stdio, with its arguments and variables.
fn package(kind: &str, identifier: &str, more: &[(&str, &str)], args: &[String], options: &Options) -> String {
    let mut package = Members::default();
    package.add("registryType", &quote(kind));
    package.add("identifier", &quote(identifier));
    more.iter().for_each(|(name, text)| package.add(name, &quote(text)));
    package.add("transport", r#"{"type":"stdio"}"#);
    let argument = |arg: &String| format!("{{\"type\":\"positional\",\"value\":{}}}", quote(arg));
    if !args.is_empty() {
        package.add("packageArguments", &array(&args.iter().map(argument).collect::<Vec<_>>()));
    }
    let variable =
        |(name, _): &(String, String)| format!("{{\"name\":{},\"isRequired\":true,\"isSecret\":true}}", quote(name));
    if !options.env.is_empty() {
        package.add("environmentVariables", &array(&options.env.iter().map(variable).collect::<Vec<_>>()));
    }
    package.finish()
}

/// A crate as its `Cargo.toml` has it.
struct Crate {
    name: String,
    version: String,
    readme: String,
}

impl Crate {
    /// `version` is that of the server, for a crate that has it from its workspace.
    fn of(folder: &Path, version: &str) -> Result<Self, String> {
        let path = folder.join("Cargo.toml");
        let json = fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| toml::read(&text));
        let json = json.map_err(|why| format!("{}: {why}", clean(path.display())))?;
        let root = Raw::parse(json.as_bytes()).map_err(|fault| fault.to_string())?;
        let text = |key: &str| Some(root.get("package")?.get(key)?.text()?.to_string());
        let name = text("name").ok_or_else(|| format!("{}: it has no package", clean(path.display())))?;
        let readme = text("readme").unwrap_or_else(|| "README.md".into());
        Ok(Crate { name, version: text("version").unwrap_or_else(|| version.to_owned()), readme })
    }
}

/// Returns `true` if a README shows the line `mcp-name: NAME`. The page of a crate has no comments, and the registry reads the page.
fn shows_name(readme: &str, name: &str) -> bool {
    let mut shown = String::new();
    let mut rest = readme;
    while let Some((before, after)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let plain = |c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c));
    shown.split("mcp-name: ").skip(1).any(|rest| rest.split(plain).next() == Some(name))
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
        let has_prompts = self.session.client().engine().offered.has(ServerCapability::Prompts);
        let hello = self.session.client().server().cloned();
        let info = hello.as_ref().and_then(|hello| hello.server());
        let Some(info) = info else { return Err(Trouble::Over("the server does not say its name".into())) };
        let facts = Facts::of(info, &tools, has_prompts);
        let folder = Path::new(self.options.output.as_deref().unwrap_or("."));
        let words: Vec<String> = match self.target {
            Target::Program(words) => words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            Target::Url(_) => Vec::new(),
        };
        let bundle = (!words.is_empty()).then(|| facts.bundle(&words, self.options));
        let mut is_drift = false;
        // The bundle has the manifest in it, and `server.json` has the digest of the bundle.
        if let Some(bundle) = &bundle
            && !self.options.json
        {
            is_drift |= self.bring_up_to_date(bundle, &folder.join(bundle.file))?;
        }
        let packages = self.packages(&facts, folder, &words)?;
        let server = facts.server(self.target, &packages);
        if self.options.json {
            let mut all = Members::default();
            [Some(&server), bundle.as_ref()]
                .into_iter()
                .flatten()
                .for_each(|document| all.add(document.file, &document.json()));
            return self.print_json(&all.finish());
        }
        is_drift |= self.bring_up_to_date(&server, &folder.join(server.file))?;
        if self.options.cargo {
            is_drift |= self.check_readme(folder, &server)?;
        }
        if is_drift && self.options.check { Err(Trouble::Found) } else { Ok(()) }
    }

    /// Returns the packages of `server.json`: those of `--cargo` and `--pack`, and what is there of other kinds.
    fn packages(&mut self, facts: &Facts, folder: &Path, words: &[String]) -> Result<Vec<String>, Trouble> {
        let args = words.get(1..).unwrap_or_default();
        let old = fs::read_to_string(folder.join("server.json")).unwrap_or_default();
        let old = Raw::parse(old.as_bytes()).ok().and_then(|old| old.get("packages"));
        let kind = |package: &Raw<'_>| Some(package.get("registryType")?.text()?.to_string());
        let is_ours = |kind: &str| kind == "cargo" && self.options.cargo || kind == "mcpb" && self.options.pack;
        let others = old.into_iter().flat_map(|old| old.items());
        let others = others.filter(|package| !kind(package).is_some_and(|kind| is_ours(&kind)));
        let mut packages = Vec::new();
        if self.options.cargo {
            let named = Crate::of(folder, &facts.version).map_err(Trouble::Usage)?;
            packages.push(package("cargo", &named.name, &[("version", &named.version)], args, self.options));
        }
        if self.options.pack {
            let digest = self.pack(facts, folder, words)?;
            let is_bundle = |package: &Raw<'_>| kind(package).as_deref() == Some("mcpb");
            let old = old.and_then(|old| old.items().find(is_bundle)?.get("identifier")?.text());
            let made_up = "https://github.com/OWNER/REPOSITORY/releases/download/v";
            let place = format!("{made_up}{}/{}", facts.version, facts.bundle_name());
            // Only its last part follows the version.
            let place =
                old.map(|old| old.to_string()).filter(|old| old.ends_with(&facts.bundle_name())).unwrap_or(place);
            let more = [("version", facts.version.as_str()), ("fileSha256", digest.as_str())];
            packages.push(package("mcpb", &place, &more, args, self.options));
        }
        // Nothing is made of what is there without a word about it.
        if packages.is_empty() { Ok(packages) } else { Ok(packages.into_iter().chain(others.map(compact)).collect()) }
    }

    /// Writes the bundle, unless with `--check`. Returns its SHA-256 in hexadecimal.
    fn pack(&self, facts: &Facts, folder: &Path, words: &[String]) -> Result<String, Trouble> {
        let fails = |path: &Path, error: std::io::Error| Trouble::Usage(format!("{}: {error}", clean(path.display())));
        let read = |path: &Path| fs::read(path).map_err(|error| fails(path, error));
        let program = PathBuf::from(whole(words.first().map_or("", String::as_str).as_ref()));
        let manifest = read(&folder.join("manifest.json"))?;
        let is_binary = Raw::parse(&manifest).ok().and_then(|json| json.get("server")?.get("type")?.text());
        if !is_binary.is_some_and(|kind| kind.eq_str("binary")) {
            return Err(Trouble::Usage(
                "--pack is for a server that is one program; for others there is `mcpb pack`".into(),
            ));
        }
        let name = format!("server/{}", program.file_name().unwrap_or_default().to_string_lossy());
        let program = read(&program)?;
        let entries = [
            Entry { name: "manifest.json", bytes: &manifest, mode: 0o644 },
            Entry { name: &name, bytes: &program, mode: 0o755 },
        ];
        let bundle = zip(&entries);
        let digest = Digest::of(&bundle).to_string().trim_start_matches("sha256:").to_owned();
        let path = folder.join(facts.bundle_name());
        if !self.options.check && !self.options.json {
            fs::write(&path, &bundle).map_err(|error| fails(&path, error))?;
            self.print(&format!("{} written, SHA-256 {digest}\n", clean(path.display())))?;
        }
        Ok(digest)
    }

    /// Returns whether the README of the crate does not show the name of the server, as `server.json` has it now.
    fn check_readme(&mut self, folder: &Path, server: &Document) -> Result<bool, Trouble> {
        let written = fs::read_to_string(folder.join(server.file)).unwrap_or_else(|_| server.json());
        let name = Raw::parse(written.as_bytes()).ok().and_then(|json| json.get("name")?.text());
        let name = name.map(|name| name.to_string()).unwrap_or_default();
        let path = folder.join(Crate::of(folder, "").map_err(Trouble::Usage)?.readme);
        let shown = shows_name(&fs::read_to_string(&path).unwrap_or_default(), &name);
        let path = clean(path.display());
        match shown {
            true => self.print(&format!("{path} shows the name\n"))?,
            false => self.print(&format!(
                "{path}: no line `mcp-name: {name}` that its page shows; the registry looks for it there\n"
            ))?,
        }
        Ok(!shown)
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
        assert!(shows_name("# a\n\n`mcp-name: io.github.a/b`.", "io.github.a/b"));
        assert!(!shows_name("<!-- mcp-name: io.github.a/b -->\nmcp-name: io.github.a/b2", "io.github.a/b"));
        assert_eq!(named("com.example/calc"), ("com.example/calc".into(), true));
        assert_eq!(named("my calc"), ("io.github.OWNER/my-calc".into(), false));
        assert_eq!(named("a/b/c"), ("io.github.OWNER/a-b-c".into(), false));
        assert_eq!(cut(&"ä".repeat(101)).chars().count(), 100);
    }
}
