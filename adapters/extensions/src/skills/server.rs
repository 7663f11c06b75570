//! Serves skills from a constant table, without an allocator.
//!
//! The files are in the program (`include_bytes!`); their sizes and digests are computed when it is compiled. A program
//! implements [`ServeSkills`] for its state, and adds three things to its service: [`extension`], [`template`], and a
//! [`resource`] for each `SKILL.md`.
//!
//! ```
//! use mcp_sansio::service::{Extension, Resource, ResourceTemplate, Service};
//! use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};
//!
//! struct Pump;
//!
//! static MANUAL: [SkillFile; 2] = [
//!     SkillFile::markdown("SKILL.md", b"---\nname: pump\ndescription: How to run the pump\n---\nRead references/errors.md.\n"),
//!     SkillFile::markdown("references/errors.md", b"E1: no water\n"), // better: include_bytes!("..")
//! ];
//! static SKILLS: [ServedSkill; 1] = [ServedSkill::new("skill://pump/SKILL.md", "How to run the pump", &MANUAL)];
//!
//! impl ServeSkills for Pump {
//!     const SKILLS: &'static [ServedSkill] = &SKILLS;
//! }
//!
//! static EXTENSIONS: [Extension<Pump>; 1] = [server::extension()];
//! static RESOURCES: [Resource<Pump>; 1] = [server::resource(&SKILLS[0])];
//! static TEMPLATES: [ResourceTemplate<Pump>; 1] = [server::template("skill://{+path}")];
//! const SERVICE: Service<'static, Pump> =
//!     Service::new("pump", "1.0").extend(&EXTENSIONS).resources(&RESOURCES).templates(&TEMPLATES);
//! # let _ = SERVICE;
//! ```
//!
//! A test should call [`ServedSkill::check`] (with `skills-client`), which compares the front matter with the `SKILL.md`.
//!
//! Long files take the compiler some time. Over 50 KiB or so it stops with the lint `long_running_const_eval`: allow it
//! for the table.

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::server::{Caching, RpcError};
use mcp_sansio::service::{
    CustomRequest, Extension, ExtensionMethod, HandlerResult, ReadResource, Resource, ResourceContents,
    ResourceTemplate,
};
use mcp_sansio::sink::Writer;

use crate::shared::{Pages, array};
use crate::skills::capability::{DIRECTORY, EXTENSION, GET, LIST, MARKDOWN, READ_DIRECTORY};
use crate::skills::digest::Digest;
use crate::skills::sha256::sha256;
use crate::skills::uri::{SKILL_MD, is_name};

/// The most files of a skill.
const FILES: usize = 512;
/// The most bytes of all files of a skill.
const TOTAL_SIZE: usize = 16 << 20;
/// The room for the members of a result around an entry, `_meta` included.
const AROUND: usize = 256;

/// A file of a skill.
#[derive(Debug)]
#[must_use]
pub struct SkillFile {
    /// The path in the directory of the skill.
    pub path: &'static str,
    mime: &'static str,
    /// The bytes.
    pub bytes: &'static [u8],
    text: Option<&'static str>,
    /// The digest of the bytes.
    pub digest: Digest,
}

impl SkillFile {
    /// Makes a file with its path in the directory of the skill, such as `assets/logo.png`, and its `mimeType`. Panics if the
    /// path has an empty segment, `.`, `..`, or a character that needs percent-encoding; a constant does not compile then.
    pub const fn new(path: &'static str, mime: &'static str, bytes: &'static [u8]) -> Self {
        assert!(is_plain_path(path), "a path of a file has segments of A-Z, a-z, 0-9, `-`, `.`, `_` and `~`");
        let text = match core::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(_) => None,
        };
        SkillFile { path, mime, bytes, text, digest: Digest(sha256(bytes)) }
    }

    /// Makes a file in Markdown.
    pub const fn markdown(path: &'static str, bytes: &'static [u8]) -> Self {
        SkillFile::new(path, MARKDOWN, bytes)
    }

    const fn is_skill_md(&self) -> bool {
        same(self.path.as_bytes(), SKILL_MD.as_bytes())
    }
}

/// A skill that a server has.
#[derive(Debug)]
#[must_use]
pub struct ServedSkill {
    /// The URI of the `SKILL.md`.
    pub uri: &'static str,
    description: &'static str,
    fields: Option<Raw<'static>>,
    /// The files.
    pub files: &'static [SkillFile],
    is_dynamic: bool,
    /// The room that a result with the entry needs at most, in bytes: the output of the server must be as large.
    pub room: usize,
}

impl ServedSkill {
    /// Makes a skill with the URI of its `SKILL.md`, such as `skill://acme/refunds/SKILL.md`, and all its files. The last
    /// segment of the directory is its name. `description` must be that of the front matter. Panics, so that a constant does
    /// not compile, if a rule is broken: no `SKILL.md` with front matter, an invalid name, two files of one path, more than
    /// 512 files or 16 MiB.
    #[allow(clippy::indexing_slicing, reason = "bounded by the loops; a const fn has no iterators")]
    pub const fn new(uri: &'static str, description: &'static str, files: &'static [SkillFile]) -> Self {
        let skill = ServedSkill { uri, description, fields: None, files, is_dynamic: false, room: 0 };
        assert!(same(skill.split().1.as_bytes(), b"/SKILL.md"), "the URI ends with the name and `/SKILL.md`");
        assert!(is_name(skill.name()), "the last segment of the directory is a name of a skill");
        let place = uri.split_at(uri.len() - skill.name().len() - SKILL_MD.len() - 1).0;
        assert!(has_scheme(place), "the URI has a scheme, `//` and segments that need no percent-encoding");
        assert!(!description.is_empty() && description.len() <= 1024, "a description has 1 to 1,024 bytes");
        assert!(files.len() <= FILES, "a skill has at most 512 files");
        let (mut at, mut total, mut has_front_matter) = (0, 0, false);
        let mut room = AROUND + 2 * uri.len() + 2 * description.len();
        while at < files.len() {
            let file = &files[at];
            total += file.bytes.len();
            room += uri.len() + file.path.len() + 128;
            if file.is_skill_md() {
                has_front_matter = matches!(file.bytes.first_chunk::<4>(), Some(b"---\n" | b"---\r"));
            }
            let mut other = 0;
            while other < at {
                assert!(!same(files[other].path.as_bytes(), file.path.as_bytes()), "a file is listed twice");
                other += 1;
            }
            at += 1;
        }
        assert!(has_front_matter, "the SKILL.md is listed and begins with front matter");
        assert!(total <= TOTAL_SIZE, "the files of a skill have at most 16 MiB");
        ServedSkill { room, ..skill }
    }

    /// Sets the fields of the front matter besides `name` and `description`, a JSON object. Default: none.
    pub const fn fields(mut self, object: &'static str) -> Self {
        self.fields = Some(Raw::constant(object));
        self.room += object.len();
        self
    }

    /// Makes the skill dynamic: its files have no digests in the entry, and those that are not in the table are read by
    /// [`ServeSkills::read_dynamic`].
    pub const fn dynamic(mut self) -> Self {
        self.is_dynamic = true;
        self
    }

    /// Returns the URI of the directory.
    #[must_use]
    pub const fn directory(&self) -> &'static str {
        self.split().0
    }

    /// Splits the URI into the directory and `/SKILL.md`. `new` checks the latter; nothing panics when it runs.
    const fn split(&self) -> (&'static str, &'static str) {
        match self.uri.split_at_checked(self.uri.len().saturating_sub(SKILL_MD.len() + 1)) {
            Some(parts) => parts,
            None => ("", self.uri),
        }
    }

    /// Returns the name: the last segment of the directory.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        let directory = self.directory();
        let mut before = directory.as_bytes();
        while let [rest @ .., byte] = before
            && *byte != b'/'
        {
            before = rest;
        }
        match directory.split_at_checked(before.len()) {
            Some((_, name)) => name,
            None => "",
        }
    }

    /// Writes the entry.
    fn write(&self, out: &mut Writer<'_>) {
        let mut entry = Object::open(out);
        entry.text("uri", self.uri);
        let mut frontmatter = Object::open(entry.key("frontmatter"));
        frontmatter.text("name", self.name());
        frontmatter.text("description", self.description);
        if let Some(fields) = self.fields {
            frontmatter.spread(fields);
        }
        frontmatter.close();
        if self.is_dynamic {
            entry.fixed("resources", "\"dynamic\"");
            return entry.close();
        }
        array(entry.key("resources"), self.files.iter(), |file, out| {
            let mut resource = Object::open(out);
            resource.shown("uri", &format_args!("{}/{}", self.directory(), file.path));
            resource.shown("digest", &file.digest);
            resource.number("size", file.bytes.len() as u64);
            resource.close()
        });
        entry.close()
    }

    /// Checks the table as a client would, for a test: the entry, and each field of the front matter in the `SKILL.md`.
    ///
    /// # Errors
    /// The reason why a client would refuse the skill.
    #[cfg(feature = "skills-client")]
    pub fn check(&self) -> Result<(), crate::skills::client::error::SkillError> {
        use crate::skills::client::entry::{Skill, SkillLimits};
        use crate::skills::client::error::SkillError;
        use crate::skills::client::front_matter::{FrontMatter, split};

        let entry = mcp_sansio::sink::to_vec(|out| self.write(out)).map_err(|_| SkillError::Member("frontmatter"))?;
        let entry = Raw::parse(&entry).map_err(|_| SkillError::Member("frontmatter"))?;
        let skill = Skill::of(entry, &SkillLimits::DEFAULT)?;
        let skill_md = self.files.iter().find(|file| file.is_skill_md()).ok_or(SkillError::NoSkillMd)?;
        match FrontMatter::read(split(skill_md.bytes)?.0)?.difference(skill.frontmatter()) {
            Some(field) => Err(SkillError::FrontMatterDiffers(field)),
            None => Ok(()),
        }
    }
}

/// A state whose program serves skills.
pub trait ServeSkills: Sized + 'static {
    /// The skills, in the order of the list.
    const SKILLS: &'static [ServedSkill];

    /// The most entries of a page of `skills/list`. A page also ends where the output is full. Default: all.
    const PAGE: usize = usize::MAX;

    /// `ttlMs` and `cacheScope` of `skills/list`, `skills/get` and `resources/directory/read`. Default: 0 milliseconds, private.
    const CACHING: Caching = Caching::NONE;

    /// Reads a file of a [dynamic](ServedSkill::dynamic) skill that is not in its table. `path` comes from the client: it may
    /// contain anything, `..` too. Default: there is no such file.
    ///
    /// # Errors
    /// As the methods of [`ReadResource`].
    fn read_dynamic(&mut self, skill: &ServedSkill, path: &str, read: &mut ReadResource<'_>) -> HandlerResult {
        let _ = (skill, path);
        read.not_found()
    }
}

/// The methods, as a constant for each state.
struct Methods<S>(core::marker::PhantomData<S>);

impl<S: ServeSkills> Methods<S> {
    /// The room of the largest entry.
    #[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
    const ROOM: usize = {
        let (mut at, mut most) = (0, AROUND);
        while at < S::SKILLS.len() {
            if S::SKILLS[at].room > most {
                most = S::SKILLS[at].room;
            }
            at += 1;
        }
        most
    };

    // Clients do not declare the extension: these methods are for all.
    const ALL: &'static [ExtensionMethod<S>] = &[
        ExtensionMethod::new(LIST, list::<S>).open().caching(S::CACHING).reserve(Self::ROOM),
        ExtensionMethod::new(GET, get::<S>).open().caching(S::CACHING).reserve(Self::ROOM),
        // Its result need not have caching hints, but client 2.4.0 of the TypeScript SDK refuses one without.
        ExtensionMethod::new(READ_DIRECTORY, read_directory::<S>).open().caching(S::CACHING),
    ];
}

/// Returns the extension, with `directoryRead`, for [`Service::extend`](mcp_sansio::service::Service::extend).
pub const fn extension<S: ServeSkills>() -> Extension<S> {
    Extension::new(EXTENSION).settings(Raw::constant(r#"{"directoryRead":true}"#)).methods(Methods::<S>::ALL)
}

/// Returns the resource of a `SKILL.md`, for `resources/list`. The other files need none.
pub const fn resource<S: ServeSkills>(skill: &ServedSkill) -> Resource<S> {
    let resource = Resource::new(skill.uri, skill.name(), read_file::<S>).description(skill.description).mime(MARKDOWN);
    mcp_sansio::with_windows! { let resource = resource.source(file_source::<S>); }
    resource
}

/// Returns the template that reads all files, for a URI template such as `skill://{+path}`.
pub const fn template<S: ServeSkills>(uri_template: &'static str) -> ResourceTemplate<S> {
    let template = ResourceTemplate::new(uri_template, "skills", read_file::<S>).description("The files of skills");
    mcp_sansio::with_windows! { let template = template.source(file_source::<S>); }
    template
}

/// `skills/list`
fn list<S: ServeSkills>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let write = |index: usize, out: &mut Writer<'_>| {
        if let Some(skill) = S::SKILLS.get(index) {
            skill.write(out);
        }
    };
    let most = S::PAGE;
    Pages { member: "skills", places: S::SKILLS.len(), most, is_item: &|_| true, write: &write }.answer(request)
}

/// `skills/get`
fn get<S: ServeSkills>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let uri = request.params().and_then(|params| params.get("uri")?.text());
    match S::SKILLS.iter().find(|skill| uri.is_some_and(|uri| uri.eq_str(skill.uri))) {
        Some(skill) => request.result_as("complete", &mut |result| skill.write(result.key("skill"))),
        None => Err(RpcError::invalid_params("Invalid params: no skill has this URI").into()),
    }
}

/// `resources/directory/read`
fn read_directory<S: ServeSkills>(_: &mut S, request: &mut CustomRequest<'_>) -> HandlerResult {
    let uri = request.params().and_then(|params| params.get("uri")?.text()?.plain());
    let directory = uri.and_then(|uri| S::SKILLS.iter().find_map(|skill| Directory::of(skill, uri)));
    let Some(directory) = directory else {
        return Err(RpcError::invalid_params("Invalid params: no directory has this URI").into());
    };
    let is_child = |index: usize| directory.child(index).is_some();
    let (places, write) =
        (directory.skill.files.len(), |index: usize, out: &mut Writer<'_>| directory.write_child(index, out));
    Pages { member: "resources", places, most: usize::MAX, is_item: &is_child, write: &write }.answer(request)
}

/// A directory of a skill.
#[derive(Clone, Copy)]
struct Directory<'a> {
    skill: &'static ServedSkill,
    /// The path in the directory of the skill; empty for the directory itself.
    path: &'a str,
}

impl<'a> Directory<'a> {
    fn of(skill: &'static ServedSkill, uri: &'a str) -> Option<Self> {
        let path = match uri.strip_prefix(skill.directory())? {
            "" => "",
            behind => behind.strip_prefix('/').filter(|path| !path.is_empty())?,
        };
        let directory = Directory { skill, path };
        skill.files.iter().any(|file| directory.within(file).is_some()).then_some(directory)
    }

    /// Returns the path of a file in the directory, if it is there or in a directory below.
    fn within(&self, file: &SkillFile) -> Option<&'static str> {
        if self.path.is_empty() { Some(file.path) } else { file.path.strip_prefix(self.path)?.strip_prefix('/') }
    }

    /// Returns the direct child that the file at `index` is, or the directory with it if no file before it is in there.
    /// `true` means a directory.
    fn child(&self, index: usize) -> Option<(&'static SkillFile, &'static str, bool)> {
        let file = self.skill.files.get(index)?;
        let path = self.within(file)?;
        let Some((name, _)) = path.split_once('/') else { return Some((file, path, false)) };
        let mut before = self.skill.files.iter().take(index).filter_map(|file| self.within(file)?.split_once('/'));
        (!before.any(|(other, _)| other == name)).then_some((file, name, true))
    }

    fn write_child(&self, index: usize, out: &mut Writer<'_>) {
        let Some((file, name, is_directory)) = self.child(index) else { return };
        let mut child = Object::open(out);
        let slash = if self.path.is_empty() { "" } else { "/" };
        child.shown("uri", &format_args!("{}{slash}{}/{name}", self.skill.directory(), self.path));
        if file.is_skill_md() {
            child.text("name", self.skill.name());
            child.text("description", self.skill.description);
        } else {
            child.text("name", name);
        }
        child.text("mimeType", if is_directory { DIRECTORY } else { file.mime });
        if !is_directory {
            child.number("size", file.bytes.len() as u64);
        }
        child.close()
    }
}

/// Reads a file of any skill.
fn read_file<S: ServeSkills>(state: &mut S, read: &mut ReadResource<'_>) -> HandlerResult {
    let uri = read.uri;
    for skill in S::SKILLS {
        let behind = uri.strip_prefix(skill.directory());
        let Some(path) = behind.and_then(|behind| behind.strip_prefix('/')) else { continue };
        if let Some(file) = skill.files.iter().find(|file| file.path == path) {
            let sent = send_file(file, read);
            // It is larger than the room; nothing was written.
            mcp_sansio::with_windows! { let sent = sent.or_else(|_| stream_file::<S>(file, read)); }
            return sent;
        }
        if skill.is_dynamic {
            return state.read_dynamic(skill, path, read);
        }
    }
    read.not_found()
}

fn send_file(file: &'static SkillFile, read: &mut ReadResource<'_>) -> HandlerResult {
    let contents = match file.text {
        Some(text) => ResourceContents::text(read.uri, text),
        None => ResourceContents::blob(read.uri, file.bytes),
    };
    read.contents(&[contents.mime(file.mime)])
}

mcp_sansio::with_windows! {
    /// Sends a file in windows, from [`file_source`].
    fn stream_file<S: ServeSkills>(file: &'static SkillFile, read: &mut ReadResource<'_>) -> HandlerResult {
        let number = files::<S>().position(|other| core::ptr::eq(other, file));
        let number = number.and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX);
        if file.text.is_some() { read.stream_text(number) } else { read.stream_blob(number) }
    }

    fn files<S: ServeSkills>() -> impl Iterator<Item = &'static SkillFile> {
        S::SKILLS.iter().flat_map(|skill| skill.files)
    }

    /// Copies the bytes of a file from the position `at` on.
    fn file_source<S: ServeSkills>(
        _: &mut S,
        number: u32,
        at: u32,
        to: &mut [u8],
    ) -> Result<usize, mcp_sansio::service::SourceError> {
        let file = files::<S>().nth(number as usize);
        let rest = file.and_then(|file| file.bytes.get(at as usize..)).unwrap_or_default();
        let piece = rest.get(..to.len()).unwrap_or(rest);
        if let Some(place) = to.get_mut(..piece.len()) {
            place.copy_from_slice(piece);
        }
        Ok(piece.len())
    }
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let (mut one, mut other) = (one, other);
    while let ([first, behind @ ..], [second, after @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (behind, after);
    }
    one.is_empty() && other.is_empty()
}

/// Returns whether the path has only segments that are neither empty nor `.` or `..` and need no percent-encoding.
const fn is_plain_path(path: &str) -> bool {
    let mut rest = path.as_bytes();
    let (mut len, mut dots) = (0, 0);
    while let [byte, behind @ ..] = rest {
        match *byte {
            b'/' if len == 0 || (len == dots && len <= 2) => return false,
            b'/' => (len, dots) = (0, 0),
            b'.' => (len, dots) = (len + 1, dots + 1),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => len += 1,
            _ => return false,
        }
        rest = behind;
    }
    len > 0 && (len != dots || len > 2)
}

/// Returns whether this is a scheme, `://`, and segments that each end with a slash.
const fn has_scheme(place: &str) -> bool {
    let mut rest = place.as_bytes();
    let mut len = 0;
    while let [b'a'..=b'z', behind @ ..] = rest {
        rest = behind;
        len += 1;
    }
    match rest {
        [b':', b'/', b'/'] => len > 0,
        [b':', b'/', b'/', .., b'/'] => {
            len > 0 && is_plain_path(place.split_at(len + 3).1.split_at(place.len() - len - 4).0)
        }
        _ => false,
    }
}
