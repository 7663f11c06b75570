//! The commands for skills: lists them, shows one, and writes its files to a folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mcp_sansio::client::Request;
use mcp_sansio::json::Raw;
use mcp_sansio_blocking::client::OwnedResult;
use mcp_sansio_extensions::skills::front_matter::FrontMatter;
use mcp_sansio_extensions::skills::{
    ActiveSkill, Digest, Skill, SkillError, SkillLimits, SkillsCapability, SkillsPage, capability, front_matter,
};

use crate::args::Options;
use crate::arguments::{listed, meant};
use crate::commands::{Done, Run, Trouble};
use crate::json::{Members, array, compact, quote};
use crate::page::{Page, Spans, Style};
use crate::show::bytes;
use crate::terminal;
use crate::text::{clean, file_name, one_line};

const LIMITS: SkillLimits = SkillLimits::DEFAULT;

impl From<SkillError> for Trouble {
    fn from(error: SkillError) -> Self {
        Trouble::Over(format!("the skill is refused: {error}"))
    }
}

impl Run<'_, '_> {
    /// Lists the skills. An entry that breaks a rule is named on stderr, with the rule.
    pub(crate) fn skills(&mut self) -> Done {
        let skills = if self.serves_skills() { self.listed_skills()? } else { Vec::new() };
        if self.options.json {
            let entries: Vec<String> = skills.iter().map(|skill| json(skill).finish()).collect();
            return self.print_json(&format!("{{\"skills\":{}}}", array(&entries)));
        }
        let mut page = self.page();
        skills.iter().for_each(|skill| show(&mut page, skill));
        self.nothing_if_empty(page, skills.is_empty(), "skills")
    }

    /// Shows the `SKILL.md` of a skill, which is given by its name or its URI. With `--output` verifies all its files, and
    /// writes them to a new or empty folder.
    pub(crate) fn skill(&mut self, name: &str) -> Done {
        if !self.serves_skills() {
            return Err(Trouble::Usage("the server has no skills".into()));
        }
        let skill = if name.contains(':') { self.get_skill(name)? } else { self.skill_named(name)? };
        let mut active = self.activate(skill)?;
        let Some(folder) = self.options.output.clone() else { return self.show_skill(&active) };
        let folder = PathBuf::from(folder);
        check_folder(&folder)?;
        let mut files = Vec::new();
        for uri in active.skill().files().iter().map(|file| file.uri.clone()).collect::<Vec<_>>() {
            let path = active.skill().path_of(&uri).ok_or_else(|| SkillError::Outside(uri.clone()))?;
            if uri == active.skill().uri() {
                files.push((path, active.skill_md().as_bytes().to_vec()));
                continue;
            }
            let result = self.session.request(&Request::read(uri.as_str()))?;
            files.push((path, active.file(&uri, result.raw())?));
        }
        if active.skill().is_dynamic() {
            files.push(("SKILL.md".into(), active.skill_md().as_bytes().to_vec()));
            let words = "The skill is dynamic: the server lists no files, so only SKILL.md is written, and nothing verifies it.";
            self.around.live.borrow_mut().note(Style::Warn, words);
        }
        let mut page = self.page();
        for (path, content) in &files {
            let path = file_name(path);
            write_file(&folder, &path, content)?;
            let count = u64::try_from(content.len()).unwrap_or(u64::MAX);
            let shown = one_line(folder.join(path).display());
            page.spans(0, &Spans::of(Style::Plain, shown).and(Style::Dim, format_args!("  {}", bytes(count))));
        }
        if self.options.json { self.print_json(&json(active.skill()).finish()) } else { self.print(&page.finish()) }
    }

    fn serves_skills(&mut self) -> bool {
        let hello = self.session.client().server();
        hello.and_then(|hello| hello.capabilities()).and_then(SkillsCapability::of).is_some()
    }

    fn listed_skills(&mut self) -> Result<Vec<Skill>, Trouble> {
        let pages = self.session.list(Request::raw(capability::LIST, None))?;
        let mut skills = Vec::new();
        for page in &pages {
            for skill in SkillsPage::of(page.raw())?.skills(&LIMITS) {
                match skill {
                    Ok(skill) => skills.push(skill),
                    Err(error) => {
                        let words = format!("a skill is left out: {error}");
                        self.around.live.borrow_mut().note(Style::Warn, &words);
                    }
                }
            }
        }
        Ok(skills)
    }

    /// Finds a skill by its name. Several skills may have the same name.
    fn skill_named(&mut self, name: &str) -> Result<Skill, Trouble> {
        let skills = self.listed_skills()?;
        let found: Vec<&Skill> = skills.iter().filter(|skill| skill.name() == name).collect();
        match found.as_slice() {
            [skill] => Ok((*skill).clone()),
            [] => {
                let names: Vec<&str> = skills.iter().map(Skill::name).collect();
                let words = listed("there are", "there are none", &names);
                Err(Trouble::Usage(format!("there is no skill {name:?}{}; {words}", meant(name, &names))))
            }
            several => {
                let uris: Vec<&str> = several.iter().map(|skill| skill.uri()).collect();
                Err(Trouble::Usage(format!("there are several; give one of the URIs {}", clean(uris.join(", ")))))
            }
        }
    }

    fn get_skill(&mut self, uri: &str) -> Result<Skill, Trouble> {
        let params = format!("{{\"uri\":{}}}", quote(uri));
        let params = Raw::parse(params.as_bytes()).map_err(|fault| Trouble::Usage(fault.to_string()))?;
        let result: OwnedResult = self.session.request(&Request::raw(capability::GET, Some(params)))?;
        Ok(Skill::of_get(result.raw(), uri, &LIMITS)?)
    }

    /// Reads the `SKILL.md` and verifies it. If the entry may be too old, gets it again, once.
    fn activate(&mut self, skill: Skill) -> Result<ActiveSkill, Trouble> {
        let uri = skill.uri().to_owned();
        let result = self.session.request(&Request::read(uri.as_str()))?;
        match skill.activate(result.raw(), &LIMITS) {
            Err(error) if error.is_stale() => {
                let skill = self.get_skill(&uri)?;
                Ok(skill.activate(self.session.request(&Request::read(uri.as_str()))?.raw(), &LIMITS)?)
            }
            done => Ok(done?),
        }
    }

    fn show_skill(&self, active: &ActiveSkill) -> Done {
        if self.options.json {
            let mut json = json(active.skill());
            json.add("instructions", &quote(active.instructions()));
            return self.print_json(&json.finish());
        }
        let mut text = clean(active.skill_md());
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.print(&text)
    }
}

fn show(page: &mut Page, skill: &Skill) {
    page.gap();
    page.spans(0, &Spans::of(Style::Name, one_line(skill.name())).and(Style::Dim, format_args!("  {}", size(skill))));
    page.say(2, Style::Plain, one_line(skill.description()));
    page.say(2, Style::Dim, one_line(skill.uri()));
}

/// Shows the skills in a folder: each folder in it, or itself, with a `SKILL.md`. What breaks a rule of the protocol is named on stderr,
/// and makes the exit code 1.
pub(crate) fn in_folder(folder: &Path, options: &Options) -> ExitCode {
    let look = terminal::look(&io::stdout(), options.no_color);
    let mut folders = vec![folder.to_owned()];
    match fs::read_dir(folder) {
        Ok(entries) => folders.extend(entries.flatten().map(|entry| entry.path())),
        Err(error) => {
            crate::live::write(&format!("inspect: {}: {error}\n", clean(folder.display())));
            return ExitCode::from(2);
        }
    }
    folders.sort();
    let (mut page, mut entries, mut is_good) = (Page::new(look), Vec::new(), true);
    for folder in folders.iter().filter(|folder| folder.join("SKILL.md").is_file()) {
        match read_skill(folder) {
            Ok(skill) => {
                show(&mut page, &skill);
                entries.push(json(&skill).finish());
            }
            Err(why) => {
                is_good = false;
                crate::live::write(&format!("{}: {}\n", clean(folder.display()), clean(why)));
            }
        }
    }
    let out = if options.json { format!("{{\"skills\":{}}}\n", array(&entries)) } else { page.finish() };
    let is_printed = terminal::print(out.as_bytes()).is_ok();
    ExitCode::from(if !is_printed { 6 } else { u8::from(!is_good) })
}

/// Reads a skill as a server would offer it.
fn read_skill(folder: &Path) -> Result<Skill, String> {
    let folder = fs::canonicalize(folder).map_err(|error| error.to_string())?;
    let directory = format!("skill://{}", folder.file_name().unwrap_or_default().to_string_lossy());
    let mut resources = Vec::new();
    let mut files = files_in(&folder, 0).map_err(|error| error.to_string())?;
    files.sort();
    for file in &files {
        let bytes = fs::read(file).map_err(|error| error.to_string())?;
        let path = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let mut resource = Members::default();
        resource.add("uri", &quote(&format!("{directory}/{path}")));
        resource.add("digest", &quote(&Digest::of(&bytes).to_string()));
        resource.add("size", &bytes.len().to_string());
        resources.push(resource.finish());
    }
    let skill_md = fs::read(folder.join("SKILL.md")).map_err(|error| error.to_string())?;
    let (yaml, _) = front_matter::split(&skill_md).map_err(|error| error.to_string())?;
    let yaml = FrontMatter::read(yaml).map_err(|error| error.to_string())?;
    let mut fields = Members::default();
    for name in ["name", "description"] {
        yaml.text(name).into_iter().for_each(|text| fields.add(name, &quote(text)));
    }
    let mut entry = Members::default();
    entry.add("uri", &quote(&format!("{directory}/SKILL.md")));
    entry.add("frontmatter", &fields.finish());
    entry.add("resources", &array(&resources));
    let entry = entry.finish();
    let entry = Raw::parse(entry.as_bytes()).map_err(|fault| fault.to_string())?;
    Skill::of(entry, &LIMITS).map_err(|error| error.to_string())
}

/// Returns the files in a folder and its folders. Links may lead elsewhere, and are left out.
fn files_in(folder: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    /// The most folders within each other.
    const DEPTH: usize = 16;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_file() => files.push(entry.path()),
            kind if kind.is_dir() && depth < DEPTH => files.extend(files_in(&entry.path(), depth + 1)?),
            _ => {}
        }
    }
    Ok(files)
}

/// Returns the number of files and their size.
fn size(skill: &Skill) -> String {
    let files = skill.files();
    let total = bytes(files.iter().map(|file| file.size).sum());
    match files.len() {
        0 => "dynamic".into(),
        1 => format!("1 file, {total}"),
        count => format!("{count} files, {total}"),
    }
}

fn json(skill: &Skill) -> Members {
    let mut json = Members::default();
    json.add("uri", &quote(skill.uri()));
    json.add("frontmatter", &compact(skill.frontmatter()));
    if skill.is_dynamic() {
        json.add("resources", "\"dynamic\"");
        return json;
    }
    let files = skill.files().iter().map(|file| {
        let mut json = Members::default();
        json.add("uri", &quote(&file.uri));
        json.add("digest", &quote(&file.digest.to_string()));
        json.add("size", &file.size.to_string());
        json.finish()
    });
    json.add("resources", &array(&files.collect::<Vec<_>>()));
    json
}

/// Checks that a folder is empty or not there yet. Nothing in it can then lead elsewhere, and nothing is overwritten.
fn check_folder(folder: &Path) -> Done {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Trouble::Usage(format!("{} is not empty", folder.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Trouble::Usage(format!("{}: {error}", folder.display()))),
    }
}

/// Writes a file that is not there yet. `path` has no segment `..`, and its folders are those that this program has made.
fn write_file(folder: &Path, path: &str, content: &[u8]) -> Done {
    let target = folder.join(path);
    let wrong =
        |error: std::io::Error| Trouble::Usage(format!("{} cannot be written: {error}", clean(target.display())));
    // On Windows a colon separates drives and streams.
    if cfg!(windows) && path.contains(':') {
        return Err(wrong(ErrorKind::InvalidInput.into()));
    }
    if let Some(parent) = target.parent() {
        DirBuilder::new().recursive(true).create(parent).map_err(wrong)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(&target).map_err(wrong)?;
    file.write_all(content).map_err(wrong)
}
