//! The definitions of tools, resources, templates and prompts: the entries of constant tables.
//!
//! These rules are checked when the program is compiled, if the table or the service is a `static` or a `const`. If not,
//! a definition that breaks one panics when it is made:
//!
//! - The name of a tool has 1 to 128 letters, digits, `_`, `-` and `.`; tools and prompts have a description.
//! - `inputSchema` is a JSON object with `"type": "object"`; `outputSchema` and `_meta` are JSON objects, and the names in
//!   `_meta` are [allowed](constant::is_meta).
//! - A URI has a scheme and the characters of RFC 3986. The braces of a URI template are balanced, and each pair has a name in it.
//! - Names and URIs are unique in their table, see [`Service::tools`](super::Service::tools).
//!
//! Schemas are of JSON Schema 2020-12, the default of the protocol, or of the dialect that their `$schema` names. They are
//! sent unchanged. Nothing is validated by them: the handler checks its arguments.

use super::requests::Completer;
use super::requests::HandlerResult;
#[cfg(feature = "windows")]
use super::source::{ContentSource, Sourced};
use super::{Call, Complete, GetPrompt, ReadResource, Visibility, template};
use crate::content::{Annotations, Icon, Icons, write_meta};
use crate::json::object::{Object, array};
use crate::json::{Raw, Text, constant, schema};
#[cfg(feature = "extensions")]
use crate::revision::Revisions;
use crate::revision::{Revision, Since};
use crate::search::same;
use crate::server::Caching;
use crate::sink::Writer;

/// The room in the sink that is kept for the reply of a handler, in bytes, if its definition has no
/// [`reserve`](Tool::reserve). The handler runs only when there is this much room, or the sink is empty. A reply that is
/// larger than the sink becomes an error.
pub const DEFAULT_RESERVE: usize = 512;

/// The `annotations` of a tool: hints about its behaviour. Written from 2025-03-26 on. See
/// [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[must_use]
pub struct ToolAnnotations {
    /// The `readOnlyHint`: the tool changes nothing.
    pub read_only: Option<bool>,
    /// The `destructiveHint`: the tool may delete or overwrite.
    pub destructive: Option<bool>,
    /// The `idempotentHint`: a second call with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// The `openWorldHint`: the tool uses systems outside of the server.
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// Makes annotations without any hint.
    pub const fn new() -> Self {
        ToolAnnotations { read_only: None, destructive: None, idempotent: None, open_world: None }
    }

    crate::const_setters! {
        /// Sets `readOnlyHint`: the tool changes nothing.
        read_only(yes: bool) => read_only = Some(yes);
        /// Sets `destructiveHint`: the tool may delete or overwrite.
        destructive(yes: bool) => destructive = Some(yes);
        /// Sets `idempotentHint`: a second call with the same arguments changes nothing more.
        idempotent(yes: bool) => idempotent = Some(yes);
        /// Sets `openWorldHint`: the tool uses systems outside of the server.
        open_world(yes: bool) => open_world = Some(yes);
    }

    fn write(&self, object: &mut Object<'_, '_>, title: Option<&str>) {
        if title.is_none() && *self == ToolAnnotations::new() {
            return;
        }
        let mut inner = Object::open(object.key("annotations"));
        inner.text_if("title", title);
        inner.boolean_if("readOnlyHint", self.read_only);
        inner.boolean_if("destructiveHint", self.destructive);
        inner.boolean_if("idempotentHint", self.idempotent);
        inner.boolean_if("openWorldHint", self.open_world);
        inner.close()
    }
}

/// The setters of descriptions that are made at run time: those that all have, and those that are given.
macro_rules! info_setters {
    ($($(#[$doc:meta])* $member:ident($value:ident: $type:ty) => $set:expr;)*) => {
        $(
            $(#[$doc])*
            pub const fn $member(mut self, $value: $type) -> Self {
                self.$member = $set;
                self
            }
        )*

        /// Sets `title`, a name for people; written from 2025-06-18 on.
        pub const fn title(mut self, title: &'t str) -> Self {
            self.title = Some(title);
            self
        }

        /// Sets `icons`; written from 2025-11-25 on.
        pub const fn icons(mut self, icons: &'t [Icon<'t>]) -> Self {
            self.icons = Icons::new(icons);
            self
        }

        /// Sets `_meta`, a JSON object; written from 2025-06-18 on. An entry with anything else is left out of lists.
        pub const fn meta(mut self, meta: &'t str) -> Self {
            self.meta = Some(meta);
            self
        }

        /// Sets the room that is kept for the reply, in bytes. Default: [`DEFAULT_RESERVE`].
        pub const fn reserve(mut self, bytes: usize) -> Self {
            self.reserve = bytes;
            self
        }
    };
}

/// The description of a tool in `tools/list`, as a [`DynamicList`](super::DynamicList) lists it. See
/// [tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool).
#[doc(alias = "Tool")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct ToolInfo<'t> {
    /// The `name`: 1 to 128 letters, digits, `_`, `-`, `.`.
    pub name: &'t str,
    /// The `description`, for the model.
    pub description: &'t str,
    /// The `title`, a name for people.
    pub title: Option<&'t str>,
    /// The `inputSchema`.
    pub input: &'t str,
    /// The `outputSchema`; written from 2025-06-18 on.
    pub output: Option<&'t str>,
    /// The `annotations`.
    pub hints: ToolAnnotations,
    pub(crate) icons: Icons<'t>,
    /// The `_meta`, a JSON object; written from 2025-06-18 on.
    pub meta: Option<&'t str>,
    /// Members of an extension, and the revisions that have them.
    #[cfg(feature = "extensions")]
    pub(crate) entry: Option<(&'t str, Revisions)>,
    /// The room that is kept for the reply, in bytes.
    pub reserve: usize,
    /// Writes all but `name`, `description` and `inputSchema`. A program whose tools have no more is linked without.
    pub(crate) details: Option<WriteDetails>,
}

type WriteDetails = fn(&ToolInfo<'_>, &mut Object<'_, '_>, Revision);

impl<'t> ToolInfo<'t> {
    /// Makes the description of a tool without arguments. The description may be empty. A tool whose name
    /// [`is_tool_name`] refuses is left out of lists.
    pub const fn new(name: &'t str, description: &'t str) -> Self {
        ToolInfo {
            name,
            description,
            title: None,
            // Without `properties`, some clients fail: they read it without a check.
            input: r#"{"type":"object","properties":{}}"#,
            output: None,
            hints: ToolAnnotations::new(),
            icons: Icons::NONE,
            meta: None,
            #[cfg(feature = "extensions")]
            entry: None,
            reserve: DEFAULT_RESERVE,
            details: Some(write_details),
        }
    }

    info_setters! {
        /// Sets `inputSchema`: a JSON object with `"type": "object"`. A tool with anything else, or with an `x-mcp-header` for
        /// which clients exclude it, is left out of lists.
        #[doc(alias = "inputSchema")]
        input(schema: &'t str) => schema;
        /// Sets `outputSchema`, a JSON object; written from 2025-06-18 on, and before 2026-07-28 only if its type is `object`. A
        /// tool with anything else is left out of lists.
        #[doc(alias = "outputSchema")]
        output(schema: &'t str) => Some(schema);
        /// Sets `annotations`.
        #[doc(alias = "annotations")]
        hints(hints: ToolAnnotations) => hints;
    }

    /// Sets members of the entry that belong to an extension, a JSON object; see [`Tool::entry`].
    #[cfg(feature = "extensions")]
    pub const fn entry(self, members: &'t str, revisions: Revisions) -> Self {
        ToolInfo { entry: Some((members, revisions)), ..self }
    }

    /// Returns whether it can be listed: the name is allowed, the schemas and `_meta` are JSON of the right type, and no
    /// `x-mcp-header` makes clients exclude the tool.
    pub(crate) fn is_sound(&self) -> bool {
        let is_object = |text: Option<&str>| text.is_none_or(constant::is_object);
        #[cfg(feature = "extensions")]
        let entry = self.entry.map(|(members, _)| members);
        #[cfg(not(feature = "extensions"))]
        let entry = None;
        is_tool_name(self.name)
            && constant::is_object_schema(self.input)
            && constant::has_valid_headers(self.input)
            && is_object(self.output)
            && is_object(self.meta)
            && is_object(entry)
    }

    /// Writes it as an element of `tools/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        object.text("name", self.name);
        object.text("description", self.description);
        object.raw("inputSchema", Raw::trusted(self.input.as_bytes()));
        if let Some(write) = self.details {
            write(self, &mut object, revision);
        }
        object.close()
    }
}

fn write_details(info: &ToolInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    if revision.has(Since::Title) {
        object.text_if("title", info.title);
    }
    info.icons.write(object, revision);
    if let Some(output) = info.output.filter(|output| can_carry(revision, output)) {
        object.raw("outputSchema", Raw::trusted(output.as_bytes()));
    }
    write_hints(info, object, revision);
    #[cfg(feature = "extensions")]
    if let Some((members, _)) = info.entry.filter(|(_, revisions)| revisions.contains(revision)) {
        object.spread(Raw::trusted(members.as_bytes()));
    }
    write_meta(object, revision, info.meta.map(|meta| Raw::trusted(meta.as_bytes())))
}

fn write_hints(info: &ToolInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    if !revision.has(Since::ToolAnnotations) {
        return;
    }
    // Before 2025-06-18 a tool had its title in `annotations`.
    info.hints.write(object, info.title.filter(|_| !revision.has(Since::Title)))
}

/// Returns whether the revision has this output schema: before 2026-07-28 it must be that of an object.
fn can_carry(revision: Revision, schema: &str) -> bool {
    let is_object = || Raw::trusted(schema.as_bytes()).get("type").is_some_and(|kind| kind.as_bytes() == b"\"object\"");
    revision.has(Since::AnyStructured) || revision.has(Since::StructuredOutput) && is_object()
}

/// The setters that tools, resources, templates and prompts share.
macro_rules! shared_setters {
    ($($details:ident: $write:expr)?) => {
        /// Sets `title`, a name for people; written from 2025-06-18 on.
        pub const fn title(mut self, title: &'static str) -> Self {
            self.info.title = Some(title);
            $(self.info.$details = $write;)?
            self
        }

        /// Sets `icons`; written from 2025-11-25 on.
        pub const fn icons(mut self, icons: &'static [Icon<'static>]) -> Self {
            self.info.icons = Icons::new(icons);
            $(self.info.$details = $write;)?
            self
        }

        /// Sets `_meta`, a JSON object with names that are [allowed](constant::is_meta); written from 2025-06-18 on.
        /// Panics on anything else.
        pub const fn meta(mut self, meta: &'static str) -> Self {
            assert!(constant::is_meta(meta), "_meta is a JSON object with names like \"com.example/thing\" (see constant::is_meta)");
            self.info.meta = Some(meta);
            $(self.info.$details = $write;)?
            self
        }

        /// Sets the room that is kept for the reply, in bytes. Default: [`DEFAULT_RESERVE`].
        pub const fn reserve(mut self, bytes: usize) -> Self {
            self.info.reserve = bytes;
            self
        }
    };
}

/// The setter of the visibility; `$info` is a description with caching hints, which are private then.
macro_rules! visible_setter {
    ($($info:ident)?) => {
        /// Sets what it demands of its [caller](super::Caller). Default: everybody sees it and may use it.
        pub const fn visible(mut self, visibility: &'static Visibility<S>) -> Self {
            self.visible = Some(visibility);
            $(self.$info.caching = Some(match self.$info.caching {
                Some(caching) => Caching::private(caching.ttl_ms),
                None => Caching::NONE,
            });)?
            self
        }
    };
}

/// A [tool](https://modelcontextprotocol.io/specification/2025-11-25/server/tools): its description, and the function
/// that runs it.
///
/// ```
/// use mcp_sansio::service::{Call, HandlerResult, Tool};
///
/// fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
///     call.text("hello")
/// }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello)];
/// ```
/// A wrong name or schema does not compile:
/// ```compile_fail
/// # use mcp_sansio::service::{Call, HandlerResult, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult { call.text("hello") }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello world", "Says hello", hello)];
/// ```
/// ```compile_fail
/// # use mcp_sansio::service::{Call, HandlerResult, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult { call.text("hello") }
/// static TOOLS: [Tool<()>; 1] = [Tool::new("hello", "Says hello", hello).input(r#"{"type":"object""#)];
/// ```
/// Nor does a constant service with two tools of one name:
/// ```compile_fail,E0080
/// # use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
/// # fn hello(_: &mut (), call: &mut Call<'_>) -> HandlerResult { call.text("hello") }
/// static TOOLS: [Tool<()>; 2] = [Tool::new("hello", "Says hello", hello), Tool::new("hello", "Says it again", hello)];
/// const SERVICE: Service<'static, ()> = Service::new("greeter", "1.0").tools(&TOOLS);
/// # let _ = SERVICE;
/// ```
///
/// The handler checks the caller and the arguments: see [Access control](crate::duties::server#access-control) and [Input](crate::duties::server#input).
#[must_use]
pub struct Tool<S: 'static> {
    pub(crate) info: ToolInfo<'static>,
    pub(crate) run: fn(&mut S, &mut Call<'_>) -> HandlerResult,
    pub(crate) visible: Option<&'static Visibility<S>>,
    #[cfg(feature = "windows")]
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> Tool<S> {
    /// Makes a tool without arguments, with its `name` and `description`. Panics if the name is not allowed, see
    /// [`is_tool_name`], or the description is empty.
    pub const fn new(
        name: &'static str,
        description: &'static str,
        run: fn(&mut S, &mut Call<'_>) -> HandlerResult,
    ) -> Self {
        assert!(!description.is_empty(), "a tool needs a description: models choose by it");
        assert!(is_tool_name(name), "a tool's name has 1 to 128 letters, digits, '_', '-' and '.'");
        Tool::of(ToolInfo { details: None, ..ToolInfo::new(name, description) }, run)
    }

    /// Makes a tool whose description was checked.
    pub(crate) const fn of(info: ToolInfo<'static>, run: fn(&mut S, &mut Call<'_>) -> HandlerResult) -> Self {
        Tool {
            info,
            run,
            visible: None,
            #[cfg(feature = "windows")]
            source: None,
        }
    }

    /// Sets `inputSchema`, a JSON object with `"type": "object"`. Write `properties` even if it is empty: some clients fail
    /// without it. Panics with the line and the column if [`check_schema`](schema::check_schema) finds a mistake; and if the schema is of another
    /// type, or has an `x-mcp-header` for which clients exclude the tool, see
    /// [`has_valid_headers`](constant::has_valid_headers).
    #[doc(alias = "inputSchema")]
    pub const fn input(mut self, schema: &'static str) -> Self {
        if let Err(error) = schema::check_schema(schema) {
            error.panic("an input schema");
        }
        assert!(constant::is_object_schema(schema), "an input schema is JSON with \"type\": \"object\"");
        assert!(
            constant::has_valid_headers(schema),
            "x-mcp-header: a name for headers, not twice, on a string, an integer or a boolean behind properties alone"
        );
        self.info.input = schema;
        self
    }

    /// Sets `outputSchema`, a JSON object; written from 2025-06-18 on, and before 2026-07-28 only if its type is `object`.
    /// Panics with the line and the column if [`check_schema`](schema::check_schema) finds a mistake, and if it is not a JSON object.
    #[doc(alias = "outputSchema")]
    pub const fn output(mut self, schema: &'static str) -> Self {
        if let Err(error) = schema::check_schema(schema) {
            error.panic("an output schema");
        }
        assert!(constant::is_object(schema), "an output schema is a JSON object");
        self.info.output = Some(schema);
        self.info.details = Some(write_details);
        self
    }

    /// Sets `annotations`.
    #[doc(alias = "annotations")]
    pub const fn hints(mut self, hints: ToolAnnotations) -> Self {
        self.info.hints = hints;
        if self.info.details.is_none() {
            self.info.details = Some(write_hints);
        }
        self
    }

    shared_setters!(details: Some(write_details));
    visible_setter!();

    /// Sets members of the entry in `tools/list` that belong to an extension: a JSON object, whose members are written
    /// unchanged in these revisions. Default: none. Panics if it is not a JSON object.
    #[cfg(feature = "extensions")]
    pub const fn entry(mut self, members: &'static str, revisions: Revisions) -> Self {
        assert!(constant::is_object(members), "the members of an entry are those of a JSON object");
        self.info.entry = Some((members, revisions));
        self.info.details = Some(write_details);
        self
    }

    /// Sets the source of large content, see [`Call::stream_text`](super::Call::stream_text). It is called with the state, the
    /// `key` that the handler gave to `stream_text`, and a position; it reads from there into the slice, and returns the
    /// number of bytes, 0 at the end. It may be called twice for the same position.
    #[cfg(feature = "windows")]
    pub const fn source(mut self, source: ContentSource<S>) -> Self {
        self.source = Some(Sourced::new(source));
        self
    }
}

/// The description of a resource in `resources/list`, or of a template in `resources/templates/list`, as a
/// [`DynamicList`](super::DynamicList) lists it. See
/// [resources](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#data-types).
#[doc(alias = "Resource")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct ResourceInfo<'t> {
    /// The `uri`, or the `uriTemplate` of a template. It has a scheme.
    #[doc(alias = "uriTemplate")]
    pub uri: &'t str,
    /// The `name`.
    pub name: &'t str,
    /// The `title`, a name for people; written from 2025-06-18 on.
    pub title: Option<&'t str>,
    /// The `description`, for the model.
    pub description: Option<&'t str>,
    /// The `mimeType`, of the entry in the list. Contents have the one that the handler gives them.
    #[doc(alias = "mimeType")]
    pub mime: Option<&'t str>,
    /// The `size`, in bytes; of resources alone.
    pub size: Option<u64>,
    /// The `annotations`.
    pub annotations: Annotations<'t>,
    pub(crate) icons: Icons<'t>,
    /// The `_meta`, a JSON object; written from 2025-06-18 on.
    pub meta: Option<&'t str>,
    /// The `ttlMs` and `cacheScope` of its contents (2026-07-28), in tables alone: other contents have those that the handler sets.
    pub(crate) caching: Option<Caching>,
    /// The room that is kept for the reply, in bytes. Default: [`DEFAULT_RESERVE`].
    pub reserve: usize,
}

impl<'t> ResourceInfo<'t> {
    /// Makes the description of a resource with its `uri` and `name`, or of a template with its `uriTemplate` and `name`. One
    /// whose URI has no scheme is left out of lists, as is a template without a variable.
    pub const fn new(uri: &'t str, name: &'t str) -> Self {
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

    info_setters! {
        /// Sets `description`, for the model.
        description(description: &'t str) => Some(description);
        /// Sets `mimeType`, of the entry in the list. Contents have the one that the handler gives them.
        #[doc(alias = "mimeType")]
        mime(mime: &'t str) => Some(mime);
        /// Sets `size`, in bytes; of resources alone.
        size(bytes: u64) => Some(bytes);
        /// Sets `annotations`.
        annotations(annotations: Annotations<'t>) => annotations;
    }

    /// Returns whether it can be listed as a resource: the URI has a scheme, and `_meta` is a JSON object.
    pub(crate) fn is_sound(&self) -> bool {
        constant::has_scheme(self.uri) && self.meta.is_none_or(constant::is_object)
    }

    /// Returns whether it can be listed as a template.
    pub(crate) fn is_sound_template(&self) -> bool {
        self.is_sound() && template::is_valid(self.uri)
    }

    /// Writes it as an element of `resources/list` or `resources/templates/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, uri_key: &str, revision: Revision) {
        let mut object = Object::open(out);
        object.text(uri_key, self.uri);
        object.text("name", self.name);
        if revision.has(Since::Title) {
            object.text_if("title", self.title);
        }
        object.text_if("description", self.description);
        object.text_if("mimeType", self.mime);
        if let Some(size) = self.size {
            object.number("size", size);
        }
        self.annotations.write(&mut object, revision);
        self.icons.write(&mut object, revision);
        write_meta(&mut object, revision, self.meta.map(|meta| Raw::trusted(meta.as_bytes())));
        object.close()
    }
}

/// The setters that resources and templates share.
macro_rules! resource_setters {
    () => {
        shared_setters!();
        visible_setter!(info);

        /// Sets `description`, for the model.
        pub const fn description(mut self, description: &'static str) -> Self {
            self.info.description = Some(description);
            self
        }

        /// Sets `mimeType`, of the entry in the list and of the contents.
        #[doc(alias = "mimeType")]
        pub const fn mime(mut self, mime: &'static str) -> Self {
            self.info.mime = Some(mime);
            self
        }

        /// Sets `annotations`.
        pub const fn annotations(mut self, annotations: Annotations<'static>) -> Self {
            self.info.annotations = annotations;
            self
        }

        /// Sets `ttlMs` and `cacheScope` of its contents
        /// ([caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching), 2026-07-28).
        /// Default: [those of the service](super::Service::caching). With a [visibility](Self::visible) they are private, and by
        /// default 0 milliseconds.
        #[doc(alias = "ttlMs")]
        pub const fn caching(mut self, caching: Caching) -> Self {
            self.info.caching = Some(Caching { public: caching.public && self.visible.is_none(), ..caching });
            self
        }

        /// Sets the source of large content, see [`ReadResource::stream_text`](super::ReadResource::stream_text) and
        /// [`Tool::source`].
        #[cfg(feature = "windows")]
        pub const fn source(mut self, source: ContentSource<S>) -> Self {
            self.source = Some(Sourced::new(source));
            self
        }
    };
}

/// A [resource](https://modelcontextprotocol.io/specification/2025-11-25/server/resources): its description, and the
/// function that reads it.
///
/// ```
/// use mcp_sansio::service::{HandlerResult, ReadResource, Resource};
///
/// fn read(motto: &mut String, read: &mut ReadResource<'_>) -> HandlerResult {
///     read.text(motto.as_str())
/// }
/// static RESOURCES: [Resource<String>; 1] = [Resource::new("note://motto", "motto", read).mime("text/plain")];
/// ```
///
/// The handler checks who reads it: see [Access control](crate::duties::server#access-control).
#[must_use]
pub struct Resource<S: 'static> {
    pub(crate) info: ResourceInfo<'static>,
    pub(crate) read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    pub(crate) visible: Option<&'static Visibility<S>>,
    #[cfg(feature = "windows")]
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> Resource<S> {
    /// Makes a resource with its `uri` and `name`. Panics if it is no URI of RFC 3986.
    pub const fn new(
        uri: &'static str,
        name: &'static str,
        read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    ) -> Self {
        match Resource::checked(ResourceInfo::new(uri, name), read) {
            Ok(resource) => resource,
            Err(error) => panic!("{}", error.message()),
        }
    }

    /// Sets `size`, in bytes.
    pub const fn size(mut self, bytes: u64) -> Self {
        self.info.size = Some(bytes);
        self
    }

    resource_setters!();
}

/// A [resource template](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#resource-templates):
/// many resources with one URI template. `{name}` stands for one or more characters up to the next `/`, `{+name}` for one
/// or more characters of any kind. [`ReadResource::var`](super::ReadResource::var) returns them.
///
/// ```
/// use mcp_sansio::service::{Complete, HandlerResult, ReadResource, ResourceTemplate};
///
/// const CITIES: [&str; 2] = ["Lisbon", "London"];
///
/// fn read(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
///     match read.var("city").filter(|city| CITIES.contains(city)) {
///         Some(city) => read.text(city),
///         None => read.not_found(),
///     }
/// }
/// fn complete(_: &mut (), complete: &mut Complete<'_>) -> HandlerResult {
///     complete.matching(CITIES)
/// }
/// static TEMPLATES: [ResourceTemplate<()>; 1] =
///     [ResourceTemplate::new("city://{city}", "city", read).complete(complete)];
/// ```
///
/// A variable may contain anything, `..` too: see [Paths](crate::duties::server#paths).
#[must_use]
pub struct ResourceTemplate<S: 'static> {
    pub(crate) info: ResourceInfo<'static>,
    pub(crate) read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    pub(crate) visible: Option<&'static Visibility<S>>,
    pub(crate) complete: Option<Completer<S>>,
    #[cfg(feature = "windows")]
    pub(crate) source: Option<Sourced<S>>,
}

impl<S> ResourceTemplate<S> {
    /// Makes a template with its `uriTemplate` and `name`. Panics if it has no scheme, no variable, or characters that RFC 3986 escapes, or if its
    /// braces are not balanced.
    pub const fn new(
        uri_template: &'static str,
        name: &'static str,
        read: fn(&mut S, &mut ReadResource<'_>) -> HandlerResult,
    ) -> Self {
        match ResourceTemplate::checked(ResourceInfo::new(uri_template, name), read) {
            Ok(template) => template,
            Err(error) => panic!("{}", error.message()),
        }
    }

    /// Sets the function that completes the variables.
    pub const fn complete(mut self, complete: fn(&mut S, &mut Complete<'_>) -> HandlerResult) -> Self {
        self.complete = Some(complete);
        self
    }

    resource_setters!();
}

/// An argument of a prompt. Its value is a string. See
/// [prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#prompt).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct PromptArgument<'t> {
    /// The `name`.
    pub name: &'t str,
    /// The `title`, a name for people; written from 2025-06-18 on.
    pub title: Option<&'t str>,
    /// The `description`.
    pub description: Option<&'t str>,
    /// The `required`: requests without it are refused with error -32602.
    pub required: bool,
}

impl<'t> PromptArgument<'t> {
    /// Makes an argument that is required.
    pub const fn required(name: &'t str) -> Self {
        PromptArgument { name, title: None, description: None, required: true }
    }

    /// Makes an argument that may be absent.
    pub const fn optional(name: &'t str) -> Self {
        PromptArgument { name, title: None, description: None, required: false }
    }

    crate::const_setters! {
        /// Sets `description`.
        description(description: &'t str) => description = Some(description);
        /// Sets `title`, a name for people.
        title(title: &'t str) => title = Some(title);
    }

    fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        object.text("name", self.name);
        if revision.has(Since::Title) {
            object.text_if("title", self.title);
        }
        object.text_if("description", self.description);
        object.boolean("required", self.required);
        object.close()
    }
}

/// A [prompt](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts): its description, and the
/// function that makes its messages.
///
/// ```
/// use mcp_sansio::service::{GetPrompt, HandlerResult, Prompt, PromptArgument};
///
/// fn review(_: &mut (), get: &mut GetPrompt<'_>) -> HandlerResult {
///     let Some(code) = get.arg("code") else { return get.user("Review my code.") };
///     get.user(&["Review this code: ".into(), code.into()])
/// }
/// static PROMPTS: [Prompt<()>; 1] =
///     [Prompt::new("review", "Reviews code", review).arguments(&[PromptArgument::required("code")])];
/// ```
///
/// The handler checks the arguments: see [Input](crate::duties::server#input).
#[must_use]
pub struct Prompt<S: 'static> {
    pub(crate) info: PromptInfo<'static>,
    pub(crate) get: fn(&mut S, &mut GetPrompt<'_>) -> HandlerResult,
    pub(crate) visible: Option<&'static Visibility<S>>,
    pub(crate) complete: Option<Completer<S>>,
}

/// The description of a prompt in `prompts/list`, as a [`DynamicList`](super::DynamicList) lists it. See
/// [prompts](https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#prompt).
#[doc(alias = "Prompt")]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use]
pub struct PromptInfo<'t> {
    /// The `name`. A prompt without one is left out of lists.
    pub name: &'t str,
    /// The `title`, a name for people; written from 2025-06-18 on.
    pub title: Option<&'t str>,
    /// The `description`.
    pub description: &'t str,
    /// The `arguments`. Requests without one that is required are refused with error -32602.
    pub arguments: &'t [PromptArgument<'t>],
    pub(crate) icons: Icons<'t>,
    /// The `_meta`, a JSON object; written from 2025-06-18 on.
    pub meta: Option<&'t str>,
    /// The room that is kept for the reply, in bytes. Default: [`DEFAULT_RESERVE`].
    pub reserve: usize,
}

impl<S> Prompt<S> {
    /// Makes a prompt without arguments, with its `name` and `description`. Panics if one of them is empty.
    pub const fn new(
        name: &'static str,
        description: &'static str,
        get: fn(&mut S, &mut GetPrompt<'_>) -> HandlerResult,
    ) -> Self {
        assert!(!name.is_empty(), "a prompt needs a name");
        assert!(!description.is_empty(), "a prompt needs a description");
        Prompt { info: PromptInfo::new(name, description), get, visible: None, complete: None }
    }

    crate::const_setters! {
        /// Sets `arguments`.
        arguments(arguments: &'static [PromptArgument<'static>]) => info.arguments = arguments;
        /// Sets the function that completes the arguments.
        complete(complete: fn(&mut S, &mut Complete<'_>) -> HandlerResult) => complete = Some(complete);
    }

    shared_setters!();
    visible_setter!();
}

impl<'t> PromptInfo<'t> {
    /// Makes the description of a prompt without arguments. The description may be empty.
    pub const fn new(name: &'t str, description: &'t str) -> Self {
        PromptInfo {
            name,
            title: None,
            description,
            arguments: &[],
            icons: Icons::NONE,
            meta: None,
            reserve: DEFAULT_RESERVE,
        }
    }

    info_setters! {
        /// Sets `arguments`. Requests without one that is required are refused with error -32602.
        arguments(arguments: &'t [PromptArgument<'t>]) => arguments;
    }

    /// Returns whether it can be listed: it has a name, and `_meta` is a JSON object.
    pub(crate) fn is_sound(&self) -> bool {
        !self.name.is_empty() && self.meta.is_none_or(constant::is_object)
    }

    /// Writes it as an element of `prompts/list`.
    pub(crate) fn write(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        object.text("name", self.name);
        if revision.has(Since::Title) {
            object.text_if("title", self.title);
        }
        object.text("description", self.description);
        if !self.arguments.is_empty() {
            array(object.key("arguments"), self.arguments, |out, argument| argument.write(out, revision));
        }
        self.icons.write(&mut object, revision);
        write_meta(&mut object, revision, self.meta.map(|meta| Raw::trusted(meta.as_bytes())));
        object.close()
    }
}

/// Returns whether a tool may have this `name`: 1 to 128 letters, digits, `_`, `-` and `.`.
#[must_use]
pub const fn is_tool_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let [byte, behind @ ..] = rest {
        if !matches!(*byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.') {
            return false;
        }
        rest = behind;
    }
    !name.is_empty() && name.len() <= 128
}

/// An entry of a list: a [`Tool`], [`Resource`], [`ResourceTemplate`] or [`Prompt`]. A
/// [`DynamicList`](super::DynamicList) has entries of one of these kinds.
pub trait ListEntry: sealed::Sealed + Sized + 'static {
    /// The state of the handlers.
    type State: 'static;

    /// The description of an entry.
    type Info<'i>;

    /// The context of the handler of an entry.
    type Request<'r>;

    /// Returns the description.
    #[doc(hidden)]
    fn info(&self) -> &Self::Info<'static>;

    /// Returns what the entry demands of its caller.
    #[doc(hidden)]
    fn visibility(&self) -> Option<&'static Visibility<Self::State>>;

    /// Returns whether a request with this name or URI means the entry.
    #[doc(hidden)]
    fn is_meant(info: &Self::Info<'_>, wanted: &Text<'_>) -> bool;

    /// Returns whether it can be listed.
    #[doc(hidden)]
    fn is_sound(info: &Self::Info<'_>) -> bool;

    /// Writes it as an element of its list.
    #[doc(hidden)]
    fn write(info: &Self::Info<'_>, out: &mut Writer<'_>, revision: Revision);
}

mod sealed {
    pub trait Sealed {}
}

/// The kinds of entries, with the functions of their descriptions; and constant functions that say whether all of a table are
/// unique.
macro_rules! entries {
    ($($type:ident: $info:ident, $request:ident, $name:ident, $unique:ident, |$it:ident, $wanted:ident| $meant:expr, $sound:ident, $write:ident($($key:literal)?);)*) => { $(
        #[allow(clippy::indexing_slicing, reason = "bounded by the loops; a const fn has no iterators")]
        pub(crate) const fn $unique<S>(table: &[$type<S>]) -> bool {
            let mut one = 0;
            while one < table.len() {
                let mut other = 0;
                while other < one {
                    if same(table[one].info.$name, table[other].info.$name) {
                        return false;
                    }
                    other += 1;
                }
                one += 1;
            }
            true
        }

        impl<S> sealed::Sealed for $type<S> {}

        impl<S> ListEntry for $type<S> {
            type State = S;
            type Info<'i> = $info<'i>;
            type Request<'r> = $request<'r>;

            fn info(&self) -> &$info<'static> {
                &self.info
            }

            fn visibility(&self) -> Option<&'static Visibility<S>> {
                self.visible
            }

            fn is_meant($it: &$info<'_>, $wanted: &Text<'_>) -> bool {
                $meant
            }

            fn is_sound(info: &$info<'_>) -> bool {
                info.$sound()
            }

            fn write(info: &$info<'_>, out: &mut Writer<'_>, revision: Revision) {
                info.$write(out, $($key,)? revision)
            }
        }

        impl<S> core::fmt::Debug for $type<S> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($type)).field(&self.info.$name).finish()
            }
        }
    )* };
}
entries! {
    Tool: ToolInfo, Call, name, unique_tools, |info, name| name.eq_str(info.name), is_sound, write();
    Resource: ResourceInfo, ReadResource, uri, unique_resources, |info, uri| uri.eq_str(info.uri), is_sound, write("uri");
    ResourceTemplate: ResourceInfo, ReadResource, uri, unique_templates,
        |info, uri| info.is_sound_template() && template::matches_any(info.uri, uri), is_sound_template, write("uriTemplate");
    Prompt: PromptInfo, GetPrompt, name, unique_prompts, |info, name| name.eq_str(info.name), is_sound, write();
}

/// Functions that return whether an entry of a table has a member.
macro_rules! any_has {
    ($($function:ident: $type:ident, $member:ident;)*) => { $(
        #[allow(clippy::indexing_slicing, reason = "bounded by the loop; a const fn has no iterators")]
        pub(crate) const fn $function<S>(table: &[$type<S>]) -> bool {
            let mut i = 0;
            while i < table.len() {
                if table[i].$member.is_some() {
                    return true;
                }
                i += 1;
            }
            false
        }
    )* };
}
any_has! {
    any_template_completes: ResourceTemplate, complete;
    any_prompt_completes: Prompt, complete;
    any_tool_hides: Tool, visible;
    any_resource_hides: Resource, visible;
    any_template_hides: ResourceTemplate, visible;
    any_prompt_hides: Prompt, visible;
}
