//! The description of a server: name, capabilities, instructions, and the revisions that it serves. Beside it, what the
//! transport and the application add for each message: [`ServerOptions`].

use super::around::Around;
use super::request::{IncomingRequest, Negotiated};
use super::topics::{NO_TOPICS, TopicsRef};
use super::{RpcError, Server, ServerEvent};
use crate::content::{Icon, Icons};
use crate::json::write::is_plain;
use crate::json::{Raw, Text, object::Object};
use crate::protocol::{ClientCapabilities, LoggingLevel, ServerCapabilities, ServerCapability};
use crate::revision::{Era, Revision, Revisions, Since};
use crate::sink::{FullError, Out, Writer};

/// The [caching hints](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching) of a list,
/// a resource or the description of the server (2026-07-28).
///
/// A result that not every user may see is not public: see [Caching hints](crate::duties::server#caching-hints).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[must_use]
pub struct Caching {
    /// `ttlMs`: the time that a client may keep the result, in milliseconds; 0 means not at all.
    pub ttl_ms: u64,
    /// `cacheScope` is `public`: a cache may serve the result to other users.
    pub public: bool,
}

impl Caching {
    /// The default: 0 milliseconds, private.
    pub const NONE: Caching = Caching { ttl_ms: 0, public: false };

    /// Lets a client keep the result for `ttl_ms` milliseconds, for this user only.
    pub const fn private(ttl_ms: u64) -> Self {
        Caching { ttl_ms, public: false }
    }

    /// Lets a client keep the result for `ttl_ms` milliseconds, for any user.
    pub const fn public(ttl_ms: u64) -> Self {
        Caching { ttl_ms, public: true }
    }

    /// Returns whether the member of a result is a hint.
    pub(crate) fn is_hint(key: &Text<'_>) -> bool {
        key.eq_str("ttlMs") || key.eq_str("cacheScope")
    }

    /// Returns the valid hints of a result, and these for the others.
    pub(crate) fn or_of(self, result: Raw<'_>) -> Self {
        let ttl_ms = result.get("ttlMs").and_then(|ttl| ttl.u64()).unwrap_or(self.ttl_ms);
        let public = match result.get("cacheScope").and_then(|scope| scope.text()) {
            Some(scope) if scope.eq_str("public") => true,
            Some(scope) if scope.eq_str("private") => false,
            _ => self.public,
        };
        Caching { ttl_ms, public }
    }

    pub(crate) fn write(self, object: &mut Object<'_, '_>) {
        object.number("ttlMs", self.ttl_ms);
        object.fixed("cacheScope", if self.public { "\"public\"" } else { "\"private\"" })
    }
}

/// The description of a server. `Service` makes it from its tables; programs without a service make it with
/// [`new`](ServerInfo::new).
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ServerInfo<'t> {
    pub(crate) name: &'t str,
    pub(crate) version: &'t str,
    pub(crate) title: Option<&'t str>,
    pub(crate) description: Option<&'t str>,
    pub(crate) website: Option<&'t str>,
    pub(crate) icons: Icons<'t>,
    pub(crate) instructions: Option<&'t str>,
    pub(crate) features: ServerCapabilities,
    pub(crate) experimental: Option<Raw<'t>>,
    pub(crate) extensions: Option<Raw<'t>>,
    /// The extensions of the tables of a service.
    #[cfg(feature = "extensions")]
    pub(crate) declared: Option<&'t (dyn DeclareExtensions + Sync)>,
    /// The layers of a service.
    pub(crate) around: Option<&'t dyn Around>,
    pub(crate) caching: Caching,
    pub(crate) revisions: Revisions,
    /// The functions of each era, if the server has a revision of it.
    pub(crate) legacy: Option<&'static Legacy>,
    pub(crate) modern: Option<&'static Modern>,
    /// The functions that read levels, if the server logs.
    pub(crate) logging: Option<&'static Logging>,
    pub(crate) signs_results: bool,
    /// The name and the version need no escapes.
    plain: bool,
    /// The functions that write members which only some servers have. Other programs do not link them.
    details: Option<WritePart>,
    capabilities: Option<WritePart>,
    /// The function that writes the trace context of a request into the params of its questions.
    #[cfg(feature = "ask")]
    pub(crate) trace_questions: Option<WriteQuestionMeta>,
}

/// Writes `_meta` of a question, from the `_meta` of the request that asks it.
#[cfg(feature = "ask")]
pub(crate) type WriteQuestionMeta = fn(Option<Raw<'_>>, &mut Object<'_, '_>);

/// Writes some members.
type WritePart = fn(&ServerInfo<'_>, &mut Object<'_, '_>, Revision);

impl<'t> ServerInfo<'t> {
    /// Makes the description of a server of all revisions, without capabilities.
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        ServerInfo {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Icons::NONE,
            instructions: None,
            features: ServerCapabilities::NONE,
            experimental: None,
            extensions: None,
            #[cfg(feature = "extensions")]
            declared: None,
            around: None,
            caching: Caching::NONE,
            revisions: Revisions::ALL,
            legacy: Some(&Legacy::VTABLE),
            modern: Some(&Modern::VTABLE),
            logging: None,
            signs_results: true,
            plain: is_plain(name) && is_plain(version),
            details: None,
            capabilities: None,
            #[cfg(feature = "ask")]
            trace_questions: None,
        }
    }

    crate::const_setters! {
        /// Sets `title`: the name for people (from 2025-06-18 on). Default: absent.
        title(title: &'t str) => title = Some(title), details = Some(write_details);
        /// Sets `description`: one sentence about the server (from 2025-11-25 on). Default: absent.
        description(description: &'t str) => description = Some(description), details = Some(write_details);
        /// Sets `websiteUrl` (from 2025-11-25 on). Default: absent.
        website(url: &'t str) => website = Some(url), details = Some(write_details);
        /// Sets `icons` (from 2025-11-25 on). Default: absent.
        icons(icons: &'t [Icon<'t>]) => icons = Icons::new(icons), details = Some(write_details);
        /// Sets `instructions`: a text for the model. Default: absent.
        instructions(text: &'t str) => instructions = Some(text);
    }

    /// Adds a capability.
    pub const fn feature(self, feature: ServerCapability) -> Self {
        let capabilities = match feature {
            ServerCapability::Tools | ServerCapability::ToolsChanged => self.capabilities,
            _ => Some(write_capabilities as WritePart),
        };
        let logging = if let ServerCapability::Logging = feature { Some(&Logging::VTABLE) } else { self.logging };
        ServerInfo { features: self.features.with(feature), capabilities, logging, ..self }
    }

    crate::const_setters! {
        /// Sets `capabilities.experimental`, an object. Default: absent.
        experimental(object: Raw<'t>) => experimental = Some(object), capabilities = Some(write_capabilities);
        /// Sets `capabilities.extensions`, an object (from 2025-11-25 on). Default: absent.
        extensions(object: Raw<'t>) => extensions = Some(object), capabilities = Some(write_capabilities);
        /// Adds what this library does not know of another server's `InitializeResult` or `DiscoverResult`: members of `capabilities`,
        /// with `experimental` and `extensions`, and of its `serverInfo`, for clients of the same era. For a program that passes the
        /// messages of that server on. Call it last.
        raw_members(hello: Raw<'t>) => experimental = Some(hello), details = Some(pass_details), capabilities = Some(pass_capabilities);
    }

    /// Sets the extensions of the tables of a service.
    #[cfg(feature = "extensions")]
    pub(crate) const fn declare(self, declared: &'t (dyn DeclareExtensions + Sync)) -> Self {
        ServerInfo { declared: Some(declared), capabilities: Some(write_capabilities), ..self }
    }

    /// Sets the caching hints of lists, resources and this description (2026-07-28). Default: [`Caching::NONE`].
    pub const fn caching(self, caching: Caching) -> Self {
        ServerInfo { caching, ..self }
    }

    /// Returns the revisions that the server has.
    #[must_use]
    pub const fn served(&self) -> Revisions {
        self.revisions
    }

    /// Sets the revisions. A server of 2026-07-28 alone has no handshake: it answers `initialize` with -32022, whose
    /// `data.supported` names the revisions, and other requests without `_meta` with -32602. Default: all.
    pub const fn revisions(self, revisions: Revisions) -> Self {
        let (legacy, modern) = match (revisions.has_era(Era::Legacy), revisions.has_era(Era::Modern)) {
            (true, true) => (Some(&Legacy::VTABLE), Some(&Modern::VTABLE)),
            (true, false) => (Some(&Legacy::VTABLE), None),
            (false, true) => (None, Some(&Modern::ALONE)),
            (false, false) => (None, None),
        };
        ServerInfo { revisions, legacy, modern, ..self }
    }

    /// Leaves the name and the version out of the results of 2026-07-28, where they SHOULD be.
    pub const fn without_server_info(self) -> Self {
        ServerInfo { signs_results: false, ..self }
    }

    /// Returns whether the server declares a capability.
    #[must_use]
    pub const fn has(&self, feature: ServerCapability) -> bool {
        self.features.has(feature)
    }

    /// Reads the `capabilities` object of a client, with the extensions that the server has too.
    #[inline]
    pub(crate) fn read_client(&self, capabilities: Raw<'_>) -> ClientCapabilities {
        #[cfg_attr(not(feature = "extensions"), allow(unused_mut, reason = "there are no extensions"))]
        // Without questions to the client nothing needs them: 340 bytes of flash (uart, tools only).
        let mut client =
            if cfg!(feature = "ask") { ClientCapabilities::read(capabilities) } else { ClientCapabilities::NONE };
        #[cfg(feature = "extensions")]
        if let Some(declared) = self.declared
            && let Some(extensions) = capabilities.get("extensions")
        {
            client.extensions = declared.accepted(extensions);
        }
        client
    }

    pub(crate) fn write_implementation(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        object.text("name", self.name);
        object.text("version", self.version);
        if let Some(write) = self.details {
            write(self, &mut object, revision);
        }
        object.close()
    }

    /// Writes the name and the version, for the `_meta` of each result of 2026-07-28.
    pub(crate) fn write_signature(&self, out: &mut Writer<'_>) {
        let mut object = Object::open(out);
        object.text("name", self.name);
        object.text("version", self.version);
        object.close()
    }

    /// Writes the end of a result whose `_meta` has the name and the version alone.
    pub(crate) fn sign(&self, mut result: Object<'_, '_>) {
        // Each result of 2026-07-28 has them: in more pieces a `tools/call` takes 12 % more instructions.
        let out = result.literal(",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"");
        let write = |out: &mut Writer<'_>, text: &str| match self.plain {
            true => out.put(text.as_bytes()),
            false => out.escape(text),
        };
        write(out, self.name);
        out.put(b"\",\"version\":\"");
        write(out, self.version);
        out.put(b"\"}}}}")
    }

    pub(crate) fn write_capabilities(&self, out: &mut Writer<'_>, revision: Revision) {
        let mut object = Object::open(out);
        if let Some(write) = self.capabilities {
            write(self, &mut object, revision);
        }
        if self.has(ServerCapability::Tools) {
            object.fixed("tools", changed(self.has(ServerCapability::ToolsChanged)));
        }
        object.close()
    }
}

fn write_details(about: &ServerInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    if revision.has(Since::Title) {
        object.text_if("title", about.title);
    }
    if revision.has(Since::ImplementationDetails) {
        object.text_if("description", about.description);
        object.text_if("websiteUrl", about.website);
    }
    about.icons.write(object, revision)
}

fn write_capabilities(about: &ServerInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    if revision.has(Since::CompletionsCapability) && about.has(ServerCapability::Completions) {
        object.fixed("completions", "{}");
    }
    object.raw_if("experimental", about.experimental);
    #[cfg(feature = "extensions")]
    write_extensions(about, object, revision);
    #[cfg(not(feature = "extensions"))]
    if revision.has(Since::Extensions) {
        object.raw_if("extensions", about.extensions);
    }
    if about.has(ServerCapability::Logging) {
        object.fixed("logging", "{}");
    }
    if about.has(ServerCapability::Prompts) {
        object.fixed("prompts", changed(about.has(ServerCapability::PromptsChanged)));
    }
    if about.has(ServerCapability::Resources) {
        let resources = match (about.has(ServerCapability::Subscribe), about.has(ServerCapability::ResourcesChanged)) {
            (true, true) => r#"{"subscribe":true,"listChanged":true}"#,
            (true, false) => r#"{"subscribe":true}"#,
            (false, listed) => changed(listed),
        };
        object.fixed("resources", resources);
    }
}

/// Writes the details of the server of [`ServerInfo::raw_members`], whose description is in place of `experimental`.
fn pass_details(about: &ServerInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    write_details(about, object, revision);
    let hello = about.experimental;
    let signed = || hello?.get("_meta")?.get("io.modelcontextprotocol/serverInfo");
    let server = hello.and_then(|hello| hello.get("serverInfo")).or_else(signed);
    pass_others(about, server, &["name", "version", "title", "description", "websiteUrl"], object, revision);
}

fn pass_capabilities(about: &ServerInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    let all = about.experimental.and_then(|hello| hello.get("capabilities"));
    let [experimental, extensions] = ["experimental", "extensions"].map(|key| all?.get(key));
    write_capabilities(&ServerInfo { experimental, extensions, ..*about }, object, revision);
    let known = ["experimental", "extensions", "completions", "logging", "prompts", "resources", "tools"];
    pass_others(about, all, &known, object, revision);
}

/// Writes the members that are not known, if they are of the era of the revision.
fn pass_others(
    about: &ServerInfo<'_>,
    of: Option<Raw<'_>>,
    known: &[&str],
    object: &mut Object<'_, '_>,
    revision: Revision,
) {
    let is_modern = about.experimental.is_some_and(|hello| hello.get("supportedVersions").is_some());
    for (key, value) in of.iter().filter(|_| is_modern == revision.is_modern()).flat_map(Raw::members) {
        if !known.iter().any(|known| key.eq_str(known)) {
            object.member(key, value);
        }
    }
}

const fn changed(declared: bool) -> &'static str {
    if declared { r#"{"listChanged":true}"# } else { "{}" }
}

/// The extensions of a service, as its description declares them.
#[cfg(feature = "extensions")]
pub(crate) trait DeclareExtensions {
    /// Writes the settings of each extension: the members of `capabilities.extensions`.
    fn write_settings(&self, extensions: &mut Object<'_, '_>);

    /// Returns the bit of the extension with this identifier; 0 if it is not among the first eight.
    fn bit(&self, id: &str) -> u8;

    /// Returns the bits of the extensions that `capabilities.extensions` of a client declares with settings that they
    /// accept.
    fn accepted(&self, extensions: Raw<'_>) -> u8;

    /// Writes their other members of `capabilities`.
    fn write_capabilities(&self, capabilities: &mut Object<'_, '_>, revision: Revision);
}

// As a supertrait, `Debug` would link the formatting of all tables into each firmware.
#[cfg(feature = "extensions")]
impl core::fmt::Debug for dyn DeclareExtensions + Sync + '_ {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("DeclareExtensions")
    }
}

/// Writes `extensions`, and what the declared ones write beside it.
#[cfg(feature = "extensions")]
fn write_extensions(about: &ServerInfo<'_>, object: &mut Object<'_, '_>, revision: Revision) {
    let own = about.extensions.filter(|_| revision.has(Since::Extensions));
    // Their methods are served from 2026-07-28 on.
    match about.declared.filter(|_| revision.is_modern()) {
        Some(declared) => {
            let mut extensions = Object::open(object.key("extensions"));
            own.into_iter().for_each(|own| extensions.spread(own));
            declared.write_settings(&mut extensions);
            extensions.close();
        }
        None => object.raw_if("extensions", own),
    }
    if let Some(declared) = about.declared {
        declared.write_capabilities(object, revision);
    }
}

/// The description of the server and the checks of the transport and the application, for [`Server::handle`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ServerOptions<'c> {
    /// The description of the server: name, capabilities, revisions.
    pub about: &'c ServerInfo<'c>,
    /// The checks of the transport, see [`TransportChecks`]. Default: none.
    pub checks: &'c dyn TransportChecks,
    /// Returns whether a resource exists, before it is subscribed to. Default: every resource exists.
    pub has_resource: &'c dyn Fn(&Text<'_>) -> bool,
    /// The topics of extensions.
    pub(crate) topics: TopicsRef<'c>,
}

impl<'c> ServerOptions<'c> {
    /// Makes options without checks: any resource can be subscribed to.
    #[must_use]
    pub const fn new(about: &'c ServerInfo<'c>) -> Self {
        ServerOptions { about, checks: &(), has_resource: &|_| true, topics: NO_TOPICS }
    }
}

crate::debug_fields!(impl for ServerOptions<'_> { about });

/// Checks of a transport that repeats parts of a request outside of it, as the [headers of
/// HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http) do. The server
/// calls them at the places that the protocol's order of checks gives them.
pub trait TransportChecks {
    /// Returns whether the transport says that the request is of 2026-07-28 or later. Default: `false`.
    fn is_modern(&self) -> bool {
        false
    }

    /// Checks that the transport names the same protocol version as the request.
    ///
    /// # Errors
    /// The error that answers the request.
    fn version(&self, version: &Text<'_>) -> Result<(), RpcError<'static>> {
        let _ = version;
        Ok(())
    }

    /// Checks that the transport names the same `method` as the request, and the same `target`: the tool, prompt or
    /// resource.
    ///
    /// # Errors
    /// The error that answers the request.
    fn routing(&self, method: &Text<'_>, target: Option<&Text<'_>>) -> Result<(), RpcError<'static>> {
        let _ = (method, target);
        Ok(())
    }

    /// Checks that the transport has the same arguments, as far as the tool's input schema says that it repeats them.
    ///
    /// # Errors
    /// The error that answers the request.
    fn arguments(&self, schema: Raw<'_>, arguments: Raw<'_>) -> Result<(), RpcError<'static>> {
        let _ = (schema, arguments);
        Ok(())
    }
}

impl TransportChecks for () {}

/// The outcome of a request; `None` if it is refused.
pub(super) type Served<'a> = Option<Result<Option<ServerEvent<'a>>, FullError>>;

/// The functions that only the legacy revisions need. [`ServerInfo`] refers to them if it serves such a revision;
/// other programs do not link them.
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
#[derive(Debug)]
pub(crate) struct Legacy {
    pub(super) initialize: for<'a> fn(
        &mut Server<'_>,
        &ServerOptions<'_>,
        &IncomingRequest<'a>,
        &mut RpcError<'a>,
        &mut dyn Out,
    ) -> Served<'a>,
}

/// The functions of a server that logs, as in [`Legacy`].
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
#[derive(Debug)]
pub(crate) struct Logging {
    /// Answers `logging/setLevel`.
    pub(super) set_level:
        for<'a> fn(&mut Server<'_>, &IncomingRequest<'a>, &mut RpcError<'a>, &mut dyn Out) -> Served<'a>,
    /// Reads the level of a request of 2026-07-28, or refuses it.
    pub(super) level: fn(Raw<'_>, &mut RpcError<'_>) -> Option<LoggingLevel>,
}

/// The functions that only 2026-07-28 and later need, as in [`Legacy`].
#[allow(clippy::type_complexity, reason = "a table of functions is read best with their types in it")]
#[derive(Debug)]
pub(crate) struct Modern {
    pub(super) terms: for<'a> fn(&ServerOptions<'_>, &IncomingRequest<'a>, &mut RpcError<'a>) -> Option<Negotiated>,
    pub(super) discover: for<'a> fn(
        &mut Server<'_>,
        &ServerOptions<'_>,
        &IncomingRequest<'a>,
        &Negotiated,
        &mut RpcError<'a>,
        &mut dyn Out,
    ) -> Served<'a>,
}
