//! Definitions: what a service offers, as constant tables.
//!
//! What follows is checked when the program is compiled, if the table, or the service, is a `static` or a `const`; if not,
//! when it is made, by a panic:
//!
//! - a tool's name has 1 to 128 letters, digits, `_`, `-` and `.`, and tools and prompts have a description;
//! - an input schema is a JSON object with `"type": "object"`, an output schema and `_meta` are JSON objects;
//! - a URI has something before a colon, and the braces of a URI template are balanced and name variables;
//! - no two tools, resources, templates or prompts of a table have the same name or URI, see
//!   [`Service::tools`](super::Service::tools).
//!
//! Schemas are of JSON Schema 2020-12, the protocol's default dialect, or of the one that their `$schema` names. The library
//! passes them on as they stand and validates nothing by them: handlers check the arguments they are called with.

use super::call::Outcome;
use super::content::{Annotations, write_meta};
use super::stream::Sourced;
use super::{Call, Complete, Get, Read};
use crate::json::{Raw, constant, object::Object};
use crate::revision::{Revision, Since};
use crate::server::{Caching, Icon, Icons};
use crate::sink::{Full, Writer};

/// Room in the sink that is kept for a handler's reply unless its definition says otherwise. A handler is not run
/// before there is so much room (or all the room there ever is); a reply that outgrows the sink all the same becomes
/// an error.
pub const DEFAULT_RESERVE: usize = 512;

/// A content source broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_structs, reason = "it has nothing inside")]
pub struct Broken;

/// Gives the bytes of large content from `at` on: as many as it likes, at most the slice; 0 at the end. It may be
/// asked for the same place twice. `key` is what the handler passed to `stream`.
pub type Source<S> = fn(state: &mut S, key: u32, at: u32, bytes: &mut [u8]) -> Result<usize, Broken>;

/// Hints on what a tool does, which clients must not rely on (from 2025-03-26 on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It talks to the world outside.
    pub open_world: Option<bool>,
}

impl Hints {
    /// No hints; add some.
    #[must_use]
    pub const fn new() -> Self {
        Hints { read_only: None, destructive: None, idempotent: None, open_world: None }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn read_only(self, yes: bool) -> Self {
        Hints { read_only: Some(yes), ..self }
    }

    /// Whether what it changes may be lost.
    #[must_use]
    pub const fn destructive(self, yes: bool) -> Self {
        Hints { destructive: Some(yes), ..self }
    }

    /// Whether calling it twice is the same as calling it once.
    #[must_use]
    pub const fn idempotent(self, yes: bool) -> Self {
        Hints { idempotent: Some(yes), ..self }
    }

    /// Whether it talks to the world outside.
    #[must_use]
    pub const fn open_world(self, yes: bool) -> Self {
        Hints { open_world: Some(yes), ..self }
    }

    fn write(&self, object: &mut Object<'_, '_>, title: Option<&str>) -> Result<(), Full> {
        if title.is_none() && *self == Hints::new() {
            return Ok(());
        }
        let mut inner = Object::open(object.key("annotations"));
        inner.text_if("title", title)?;
        inner.boolean_if("readOnlyHint", self.read_only)?;
        inner.boolean_if("destructiveHint", self.destructive)?;
        inner.boolean_if("idempotentHint", self.idempotent)?;
        inner.boolean_if("openWorldHint", self.open_world)?;
        inner.close()
    }
}

/// What is told of a tool in a list.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolInfo<'t> {
    /// Its name: 1 to 128 letters, digits, `_`, `-`, `.`.
    pub name: &'t str,
    /// What it does, for the model.
    pub description: &'t str,
    /// A name for people.
    pub title: Option<&'t str>,
    /// The JSON schema of its arguments.
    pub input: &'t str,
    /// The JSON schema of its structured result (from 2025-06-18 on).
    pub output: Option<&'t str>,
    /// Hints on what it does.
    pub hints: Hints,
    /// Icons (from 2025-11-25 on).
    pub icons: Icons<'t>,
    /// `_meta`, an object as it stands (from 2025-06-18 on).
    pub meta: Option<&'t str>,
    /// Room kept for its reply.
    pub reserve: usize,
    /// What writes all but name, description and input: a program of whose tools nothing else is told is linked without.
    pub(crate) details: Option<WriteDetails>,
}

type WriteDetails = fn(&ToolInfo<'_>, &mut Object<'_, '_>, Revision) -> Result<(), Full>;

/// The input schema of a tool without arguments. `properties` may be left out, but there are clients that look into it
/// without asking whether it is there.
pub(crate) const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

impl<'t> ToolInfo<'t> {
    /// A tool without arguments. Panics, when the program is compiled if it is a constant, on a name the protocol does
    /// not allow and without a description; see [`checked`](ToolInfo::checked) for words from elsewhere.
    #[must_use]
    pub const fn new(name: &'t str, description: &'t str) -> Self {
        assert!(is_tool_name(name), "a tool's name has 1 to 128 letters, digits, '_', '-' and '.'");
        assert!(!description.is_empty(), "a tool needs a description: models choose by it");
        ToolInfo::of(name, description)
    }

    /// As [`new`](ToolInfo::new), for words that came from elsewhere, such as another server's: `None` for a name that
    /// the protocol does not allow, see [`is_tool_name`]. The description may be empty.
    #[must_use]
    pub const fn checked(name: &'t str, description: &'t str) -> Option<Self> {
        if is_tool_name(name) { Some(ToolInfo::of(name, description)) } else { None }
    }

    const fn of(name: &'t str, description: &'t str) -> Self {
        ToolInfo {
            name,
            description,
            title: None,
            input: NO_ARGUMENTS,
            output: None,
            hints: Hints::new(),
            icons: Icons::NONE,
            meta: None,
            reserve: DEFAULT_RESERVE,
            details: Some(write_details),
        }
    }

    /// Whether it can be listed: its name is allowed, what stands in it as JSON is the JSON it must be, and clients do not
    /// leave it out for its `x-mcp-header`.
    pub(crate) fn is_sound(&self) -> bool {
        let is_object = |text: Option<&str>| text.is_none_or(constant::is_object);
        is_tool_name(self.name)
            && constant::is_object_schema(self.input)
            && constant::has_valid_headers(self.input)
            && is_object(self.output)
            && is_object(self.meta)
    }

    /// Writes it as an element of `tools/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        object.text("description", self.description)?;
        object.raw("inputSchema", Raw::trusted(self.input.as_bytes()))?;
        if let Some(write) = self.details {
            write(self, &mut object, revision)?;
        }
        object.close()
    }
}

fn write_details(info: &ToolInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
    if revision.has(Since::Title) {
        object.text_if("title", info.title)?;
    }
    info.icons.write(object, revision)?;
    if let Some(output) = info.output.filter(|output| can_carry(revision, output)) {
        object.raw("outputSchema", Raw::trusted(output.as_bytes()))?;
    }
    write_hints(info, object, revision)?;
    write_meta(object, revision, info.meta.map(|meta| Raw::trusted(meta.as_bytes())))
}

fn write_hints(info: &ToolInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) -> Result<(), Full> {
    if !revision.has(Since::ToolAnnotations) {
        return Ok(());
    }
    // Before tools had titles, their annotations had.
    info.hints.write(object, info.title.filter(|_| !revision.has(Since::Title)))
}

/// Whether a revision can carry an output schema.
fn can_carry(revision: Revision, schema: &str) -> bool {
    // It was checked when it was given; only its type is of interest.
    let is_object = || Raw::trusted(schema.as_bytes()).get("type").is_some_and(|kind| kind.as_bytes() == b"\"object\"");
    revision.has(Since::AnyStructured) || revision.has(Since::StructuredOutput) && is_object()
}

/// A tool: what is told of it, and the function behind it.
///
/// ```
/// use mcp_sansio::service::{Call, Outcome, Tool};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome {
///     call.text("hello")
/// }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
/// ```
/// A wrong name or schema does not compile:
/// ```compile_fail
/// # use mcp_sansio::service::{Call, Outcome, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome { call.text("hello") }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello world", "Says hello", hello)];
/// ```
/// ```compile_fail
/// # use mcp_sansio::service::{Call, Outcome, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome { call.text("hello") }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello).input(r#"{"type":"object""#)];
/// ```
/// Nor does a constant service with two tools of one name:
/// ```compile_fail,E0080
/// # use mcp_sansio::service::{Call, Outcome, Service, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> Outcome { call.text("hello") }
/// static TOOLS: [Tool<()>; 2] = [Tool::new("hello", "Says hello", hello), Tool::new("hello", "Says it again", hello)];
/// const SERVICE: Service<'static, ()> = Service::new("greeter", "1.0").tools(&TOOLS);
/// # let _ = SERVICE;
/// ```
pub struct Tool<S: 'static> {
    pub(crate) info: ToolInfo<'static>,
    pub(crate) run: fn(&mut S, &mut Call<'_>) -> Outcome,
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> Tool<S> {
    /// A tool without arguments.
    pub const fn new(name: &'static str, description: &'static str, run: fn(&mut S, &mut Call<'_>) -> Outcome) -> Self {
        let info = ToolInfo { details: None, ..ToolInfo::new(name, description) };
        Tool { info, run, source: None }
    }

    const fn detailed(mut self) -> Self {
        self.info.details = Some(write_details);
        self
    }

    /// The JSON schema of its arguments: an object schema. White space and newlines are fine. Write `properties` even where
    /// it is empty: some clients look into it without asking whether it is there. Panics, when the program is
    /// compiled if it is a constant, on any other, and on an `x-mcp-header` for which clients leave the tool out, see
    /// [`has_valid_headers`](constant::has_valid_headers).
    #[must_use]
    pub const fn input(mut self, schema: &'static str) -> Self {
        assert!(constant::is_object_schema(schema), "an input schema is JSON with \"type\": \"object\"");
        assert!(
            constant::has_valid_headers(schema),
            "x-mcp-header: a name for headers, not twice, on a string, an integer or a boolean behind properties alone"
        );
        self.info.input = schema;
        self
    }

    /// The JSON schema of its structured result, told from 2025-06-18 on; before 2026-07-28 only object schemas are.
    #[must_use]
    pub const fn output(mut self, schema: &'static str) -> Self {
        assert!(constant::is_object(schema), "an output schema is a JSON object");
        self.info.output = Some(schema);
        self.detailed()
    }

    /// A name for people.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.info.title = Some(title);
        self.detailed()
    }

    /// Hints on what it does.
    #[must_use]
    pub const fn hints(mut self, hints: Hints) -> Self {
        self.info.hints = hints;
        if self.info.details.is_none() {
            self.info.details = Some(write_hints);
        }
        self
    }

    /// Icons.
    #[must_use]
    pub const fn icons(mut self, icons: &'static [Icon<'static>]) -> Self {
        self.info.icons = Icons::new(icons);
        self.detailed()
    }

    /// `_meta`, a JSON object.
    #[must_use]
    pub const fn meta(mut self, meta: &'static str) -> Self {
        assert!(constant::is_object(meta), "_meta is a JSON object");
        self.info.meta = Some(meta);
        self.detailed()
    }

    /// Room that its reply needs, in bytes.
    #[must_use]
    pub const fn reserve(mut self, bytes: usize) -> Self {
        self.info.reserve = bytes;
        self
    }

    /// Where its large content comes from, see [`Call::stream_text`](super::Call::stream_text).
    #[cfg(feature = "windows")]
    #[must_use]
    pub const fn source(mut self, source: Source<S>) -> Self {
        self.source = Some(Sourced::new(source));
        self
    }
}

/// What resources and templates have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceInfo {
    pub(crate) uri: &'static str,
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    pub(crate) mime: Option<&'static str>,
    pub(crate) size: Option<u64>,
    pub(crate) annotations: Annotations<'static>,
    pub(crate) icons: Icons<'static>,
    pub(crate) meta: Option<&'static str>,
    pub(crate) caching: Option<Caching>,
    pub(crate) reserve: usize,
}

impl ResourceInfo {
    const fn new(uri: &'static str, name: &'static str) -> Self {
        assert!(is_uri_like(uri), "a resource's URI has a scheme");
        ResourceInfo {
            uri,
            name,
            title: None,
            description: None,
            mime: None,
            size: None,
            annotations: Annotations::new(),
            icons: Icons::NONE,
            meta: None,
            caching: None,
            reserve: DEFAULT_RESERVE,
        }
    }

    /// Writes it as an element of `resources/list` or `resources/templates/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, uri_key: &str, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text(uri_key, self.uri)?;
        object.text("name", self.name)?;
        if revision.has(Since::Title) {
            object.text_if("title", self.title)?;
        }
        object.text_if("description", self.description)?;
        object.text_if("mimeType", self.mime)?;
        if let Some(size) = self.size {
            object.number("size", size)?;
        }
        self.annotations.write(&mut object, revision)?;
        self.icons.write(&mut object, revision)?;
        write_meta(&mut object, revision, self.meta.map(|meta| Raw::trusted(meta.as_bytes())))?;
        object.close()
    }
}

/// The setters that resources and templates share.
macro_rules! resource_setters {
    () => {
        /// A name for people.
        #[must_use]
        pub const fn title(mut self, title: &'static str) -> Self {
            self.info.title = Some(title);
            self
        }

        /// What it is, for the model.
        #[must_use]
        pub const fn description(mut self, description: &'static str) -> Self {
            self.info.description = Some(description);
            self
        }

        /// Its MIME type, told in the list and put on what its handler answers.
        #[must_use]
        pub const fn mime(mut self, mime: &'static str) -> Self {
            self.info.mime = Some(mime);
            self
        }

        /// Hints for whom it is and how much it matters.
        #[must_use]
        pub const fn annotations(mut self, annotations: Annotations<'static>) -> Self {
            self.info.annotations = annotations;
            self
        }

        /// Icons.
        #[must_use]
        pub const fn icons(mut self, icons: &'static [Icon<'static>]) -> Self {
            self.info.icons = Icons::new(icons);
            self
        }

        /// `_meta`, a JSON object.
        #[must_use]
        pub const fn meta(mut self, meta: &'static str) -> Self {
            assert!(constant::is_object(meta), "_meta is a JSON object");
            self.info.meta = Some(meta);
            self
        }

        /// How long clients may keep what it answers (2026-07-28), if not as long as the service says.
        #[must_use]
        pub const fn caching(mut self, caching: Caching) -> Self {
            self.info.caching = Some(caching);
            self
        }

        /// Room that its reply needs, in bytes.
        #[must_use]
        pub const fn reserve(mut self, bytes: usize) -> Self {
            self.info.reserve = bytes;
            self
        }

        /// Where its large content comes from, see [`Read::stream_text`](super::Read::stream_text).
        #[cfg(feature = "windows")]
        #[must_use]
        pub const fn source(mut self, source: Source<S>) -> Self {
            self.source = Some(Sourced::new(source));
            self
        }
    };
}

/// A resource: what is told of it, and the function that reads it.
pub struct Resource<S: 'static> {
    pub(crate) info: ResourceInfo,
    pub(crate) read: fn(&mut S, &mut Read<'_>) -> Outcome,
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> Resource<S> {
    /// A resource at `uri`, called `name`.
    pub const fn new(uri: &'static str, name: &'static str, read: fn(&mut S, &mut Read<'_>) -> Outcome) -> Self {
        Resource { info: ResourceInfo::new(uri, name), read, source: None }
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.info.size = Some(bytes);
        self
    }

    resource_setters!();
}

/// A family of resources under a URI template: `{name}` stands for one or more characters up to the next `/`, `{+name}`
/// for any characters. What it stood for is [`Read::var`](super::Read::var).
pub struct Template<S: 'static> {
    pub(crate) info: ResourceInfo,
    pub(crate) read: fn(&mut S, &mut Read<'_>) -> Outcome,
    pub(crate) complete: Option<fn(&mut S, &mut Complete<'_>) -> Outcome>,
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> Template<S> {
    /// Resources at URIs of the form `uri_template`, called `name`.
    pub const fn new(
        uri_template: &'static str,
        name: &'static str,
        read: fn(&mut S, &mut Read<'_>) -> Outcome,
    ) -> Self {
        assert!(super::template::is_valid(uri_template), "a URI template's braces are balanced and name variables");
        Template { info: ResourceInfo::new(uri_template, name), read, complete: None, source: None }
    }

    /// What completes its variables.
    #[must_use]
    pub const fn complete(mut self, complete: fn(&mut S, &mut Complete<'_>) -> Outcome) -> Self {
        self.complete = Some(complete);
        self
    }

    resource_setters!();
}

/// An argument of a prompt: always a string.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// A name for people.
    pub title: Option<&'static str>,
    /// What it is.
    pub description: Option<&'static str>,
    /// Whether it must be given; the service refuses requests without it.
    pub required: bool,
}

impl Argument {
    /// One that must be given.
    #[must_use]
    pub const fn required(name: &'static str) -> Self {
        Argument { name, title: None, description: None, required: true }
    }

    /// One that may be left out.
    #[must_use]
    pub const fn optional(name: &'static str) -> Self {
        Argument { name, title: None, description: None, required: false }
    }

    /// What it is.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// A name for people.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        if revision.has(Since::Title) {
            object.text_if("title", self.title)?;
        }
        object.text_if("description", self.description)?;
        object.boolean("required", self.required)?;
        object.close()
    }
}

/// A prompt: what is told of it, and the function that fills it in.
pub struct Prompt<S: 'static> {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: &'static str,
    pub(crate) arguments: &'static [Argument],
    pub(crate) icons: Icons<'static>,
    pub(crate) meta: Option<&'static str>,
    pub(crate) reserve: usize,
    pub(crate) get: fn(&mut S, &mut Get<'_>) -> Outcome,
    pub(crate) complete: Option<fn(&mut S, &mut Complete<'_>) -> Outcome>,
}

impl<S> Prompt<S> {
    /// A prompt without arguments.
    pub const fn new(name: &'static str, description: &'static str, get: fn(&mut S, &mut Get<'_>) -> Outcome) -> Self {
        assert!(!name.is_empty(), "a prompt needs a name");
        assert!(!description.is_empty(), "a prompt needs a description");
        Prompt {
            name,
            title: None,
            description,
            arguments: &[],
            icons: Icons::NONE,
            meta: None,
            reserve: DEFAULT_RESERVE,
            get,
            complete: None,
        }
    }

    /// Its arguments.
    #[must_use]
    pub const fn arguments(mut self, arguments: &'static [Argument]) -> Self {
        self.arguments = arguments;
        self
    }

    /// A name for people.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Icons.
    #[must_use]
    pub const fn icons(mut self, icons: &'static [Icon<'static>]) -> Self {
        self.icons = Icons::new(icons);
        self
    }

    /// `_meta`, a JSON object.
    #[must_use]
    pub const fn meta(mut self, meta: &'static str) -> Self {
        assert!(constant::is_object(meta), "_meta is a JSON object");
        self.meta = Some(meta);
        self
    }

    /// Room that its reply needs, in bytes.
    #[must_use]
    pub const fn reserve(mut self, bytes: usize) -> Self {
        self.reserve = bytes;
        self
    }

    /// What completes its arguments.
    #[must_use]
    pub const fn complete(mut self, complete: fn(&mut S, &mut Complete<'_>) -> Outcome) -> Self {
        self.complete = Some(complete);
        self
    }

    /// Writes it as an element of `prompts/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) -> Result<(), Full> {
        let mut object = Object::open(out);
        object.text("name", self.name)?;
        if revision.has(Since::Title) {
            object.text_if("title", self.title)?;
        }
        object.text("description", self.description)?;
        if !self.arguments.is_empty() {
            let out = object.key("arguments");
            for (i, argument) in self.arguments.iter().enumerate() {
                out.put(if i == 0 { b"[" } else { b"," })?;
                argument.write(out, revision)?;
            }
            out.put(b"]")?;
        }
        self.icons.write(&mut object, revision)?;
        write_meta(&mut object, revision, self.meta.map(|meta| Raw::trusted(meta.as_bytes())))?;
        object.close()
    }
}

macro_rules! debug_by_name {
    ($($type:ident: $($field:ident).+),*) => { $(
        impl<S> core::fmt::Debug for $type<S> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($type)).field(&self.$($field).+).finish()
            }
        }
    )* };
}
debug_by_name!(Tool: info.name, Resource: info.uri, Template: info.uri, Prompt: name);

/// Whether a tool may have this name: 1 to 128 letters, digits, `_`, `-` and `.`.
#[must_use]
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
pub const fn is_tool_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if !matches!(bytes[i], b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.') {
            return false;
        }
        i += 1;
    }
    !bytes.is_empty() && bytes.len() <= 128
}

/// Whether two texts are the same. From the end on: names that differ often begin alike.
#[allow(clippy::indexing_slicing, reason = "bounded by the length; a const fn has no iterators")]
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut left = if a.len() == b.len() { a.len() } else { return false };
    while left > 0 && a[left - 1] == b[left - 1] {
        left -= 1;
    }
    left == 0
}

/// `const fn`s that say whether all entries of a table have names, or URIs, of their own.
macro_rules! are_unique {
    ($($function:ident($type:ident: $($field:ident).+)),*) => { $(
        #[allow(clippy::indexing_slicing, reason = "bounded by the loops; a const fn has no iterators")]
        pub(crate) const fn $function<S>(table: &[$type<S>]) -> bool {
            let mut one = 0;
            while one < table.len() {
                let mut other = 0;
                while other < one {
                    if same(table[one].$($field).+, table[other].$($field).+) {
                        return false;
                    }
                    other += 1;
                }
                one += 1;
            }
            true
        }
    )* };
}
are_unique!(
    unique_tools(Tool: info.name),
    unique_resources(Resource: info.uri),
    unique_templates(Template: info.uri),
    unique_prompts(Prompt: name)
);

/// Something before a colon.
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
const fn is_uri_like(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    let mut i = 0;
    while i < bytes.len() && bytes[i] != b':' {
        i += 1;
    }
    i > 0 && i < bytes.len()
}
