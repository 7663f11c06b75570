//! The client's description of itself: name, capabilities, revisions.

use super::layer::{Around, Layer};
use super::request_meta::MetaParts;
use crate::content::{Icon, Icons};
use crate::json::{Raw, object::Object};
use crate::protocol::{ClientCapabilities, ClientCapability, ELICITATION, SAMPLING, meta};
use crate::revision::{Revision, Revisions, Since};
use crate::sink::Writer;

/// The `clientInfo`, the `capabilities` and the revisions of a client ([capability
/// negotiation](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#capability-negotiation)).
///
/// ```
/// use mcp_sansio::client::ClientInfo;
/// use mcp_sansio::protocol::ClientCapability;
///
/// static EDITOR: ClientInfo<'static> = ClientInfo::new("editor", "2.1")
///     .title("The Editor")
///     .feature(ClientCapability::ElicitForm)
///     .feature(ClientCapability::Roots);
/// ```
///
/// The [duties](crate::duties::client) of the program around a client.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ClientInfo<'t> {
    /// The name of the client, its `name`.
    pub name: &'t str,
    /// The version of the client, its `version`.
    pub version: &'t str,
    title: Option<&'t str>,
    description: Option<&'t str>,
    website: Option<&'t str>,
    icons: Icons<'t>,
    pub(crate) features: ClientCapabilities,
    /// The capabilities whose requests may be tasks.
    tasks: ClientCapabilities,
    pub(super) roots_changed: bool,
    experimental: Option<Raw<'t>>,
    pub(super) extensions: Option<Raw<'t>>,
    pub(super) result_types: &'t [&'t str],
    pub(crate) revisions: Revisions,
    /// `clientInfo` and `capabilities` of `initialize`, if they are those of another client.
    raw: Option<(Raw<'t>, Raw<'t>)>,
    /// The layers.
    pub(super) around: Option<&'t dyn Around>,
}

impl<'t> ClientInfo<'t> {
    /// Returns a description with this `name` and `version`, without capabilities, for all revisions.
    pub const fn new(name: &'t str, version: &'t str) -> Self {
        ClientInfo {
            name,
            version,
            title: None,
            description: None,
            website: None,
            icons: Icons::NONE,
            features: ClientCapabilities::NONE,
            tasks: ClientCapabilities::NONE,
            roots_changed: false,
            experimental: None,
            extensions: None,
            result_types: &[],
            revisions: Revisions::ALL,
            raw: None,
            around: None,
        }
    }

    crate::const_setters! {
        /// Sets `title`, a name for people (from 2025-06-18 on).
        title(title: &'t str) => title = Some(title);
        /// Sets `description` (from 2025-11-25 on).
        description(description: &'t str) => description = Some(description);
        /// Sets `websiteUrl` (from 2025-11-25 on).
        website(url: &'t str) => website = Some(url);
        /// Sets `icons` (from 2025-11-25 on).
        icons(icons: &'t [Icon<'t>]) => icons = Icons::new(icons);
    }

    /// Declares a capability. The application must then answer these requests in
    /// [`ClientEvent::Asked`](super::ClientEvent::Asked). The client refuses all others itself.
    pub const fn feature(self, feature: ClientCapability) -> Self {
        ClientInfo { features: self.features.with(feature), ..self }
    }

    /// Declares that requests of a capability may be [tasks] (`tasks.requests`, 2025-11-25): sampling, or elicitation in both
    /// modes. Also declares the capability. The application then answers these requests at once with a task
    /// if they [have `task`](super::Client::task_of), and the requests about its tasks:
    /// [`GetTask`](super::ServerRequestKind::GetTask) and the following kinds. `mcp_sansio_extensions::tasks::receiver` does so.
    ///
    /// [tasks]: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#client-capabilities
    pub const fn tasks(self, of: ClientCapability) -> Self {
        ClientInfo { features: self.features.with(of), tasks: self.tasks.with(of), ..self }
    }

    /// Sets `roots.listChanged`: the application calls [`Client::roots_changed`](super::Client::roots_changed)
    /// when its roots change. Also declares roots.
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    pub const fn roots_changed(self) -> Self {
        let features = self.features.with(ClientCapability::Roots);
        ClientInfo { roots_changed: true, features, ..self }
    }

    crate::const_setters! {
        /// Sets `experimental` capabilities, a JSON object.
        experimental(object: Raw<'t>) => experimental = Some(object);
        /// Sets `extensions`, a JSON object with the settings of each extension (from 2025-11-25 on), and the types of results that
        /// these extensions have (`resultType`). Such results go to the application as they are; any other type but `complete`
        /// and `input_required` ends its request with [`TransportError::ResultType`]. Default: none.
        ///
        /// [`TransportError::ResultType`]: super::TransportError::ResultType
        extensions(object: Raw<'t>, result_types: &'t [&'t str]) => extensions = Some(object), result_types = result_types;
        /// Sets the revisions that the client supports. Default: all.
        revisions(revisions: Revisions) => revisions = revisions;
        /// Writes `clientInfo` and `capabilities` of `initialize` as they are, JSON objects: for a program that passes the messages of
        /// another client on. The capabilities that this description declares have to be the same. From 2026-07-28 on each request has
        /// its own, see [`Request::own_client`](super::Request::own_client).
        raw(info: Raw<'t>, capabilities: Raw<'t>) => raw = Some((info, capabilities));
    }

    /// Sets the [layers](Layer) around all messages. A request goes through them in this order, and its outcome in the reverse
    /// one. Default: none.
    pub const fn layers<const N: usize>(self, layers: &'t [&'t dyn Layer; N]) -> Self {
        ClientInfo { around: Some(layers), ..self }
    }

    /// Returns `true` if the client declares the capability.
    #[must_use]
    pub const fn has(&self, feature: ClientCapability) -> bool {
        self.features.has(feature)
    }

    /// Returns the capabilities that this revision has.
    pub(crate) fn declared(&self, revision: Revision) -> ClientCapabilities {
        let known = |feature| match feature {
            ClientCapability::ElicitForm => revision.has(Since::Elicitation),
            ClientCapability::ElicitUrl => revision.has(Since::ElicitationMode),
            ClientCapability::SamplingTools => revision.has(Since::SamplingTools),
            ClientCapability::SamplingContext => revision.has(Since::SamplingContextGated),
            ClientCapability::Sampling | ClientCapability::Roots => true,
        };
        // Sampling with tools includes sampling.
        let has = |feature| {
            self.has(feature) || feature == ClientCapability::Sampling && self.has(ClientCapability::SamplingTools)
        };
        let declared = ClientCapability::ALL.into_iter().filter(|&feature| has(feature) && known(feature));
        declared.fold(ClientCapabilities::NONE, ClientCapabilities::with)
    }

    /// Returns whether requests of one of the capabilities may be tasks in this revision.
    pub(super) fn has_tasks(&self, of: &[ClientCapability], revision: Revision) -> bool {
        revision.has_core_tasks() && of.iter().any(|&feature| self.tasks.has(feature))
    }

    /// Writes the `clientInfo` object.
    pub(crate) fn write_info(&self, out: &mut Writer<'_>, revision: Revision) {
        if let Some((info, _)) = self.raw.filter(|_| !revision.is_modern()) {
            return out.raw(info);
        }
        let mut object = Object::open(out);
        object.text("name", self.name);
        if revision.has(Since::Title) {
            object.text_if("title", self.title);
        }
        object.text("version", self.version);
        if revision.has(Since::ImplementationDetails) {
            object.text_if("description", self.description);
            object.text_if("websiteUrl", self.website);
        }
        self.icons.write(&mut object, revision);
        object.close()
    }

    /// Writes the `capabilities` object with the members that this revision has.
    pub(crate) fn write_capabilities(&self, out: &mut Writer<'_>, revision: Revision) {
        if let Some((_, capabilities)) = self.raw.filter(|_| !revision.is_modern()) {
            return out.raw(capabilities);
        }
        let declared = self.declared(revision);
        let mut object = Object::open(out);
        object.raw_if("experimental", self.experimental);
        if revision.has(Since::Extensions) {
            object.raw_if("extensions", self.extensions);
        }
        if declared.has(ClientCapability::Roots) {
            // 2026-07-28 has no `notifications/roots/list_changed`.
            let changed = self.roots_changed && !revision.is_modern();
            object.fixed("roots", if changed { r#"{"listChanged":true}"# } else { "{}" });
        }
        let mut parts = |capability: &str, parts: [(&str, bool); 2]| {
            let mut object = Object::open(object.key(capability));
            parts.iter().filter(|part| part.1).for_each(|part| object.fixed(part.0, "{}"));
            object.close()
        };
        if declared.has(ClientCapability::Sampling) {
            let (tools, context) = (ClientCapability::SamplingTools, ClientCapability::SamplingContext);
            parts("sampling", [("tools", declared.has(tools)), ("context", declared.has(context))]);
        }
        let (form, url) = (declared.has(ClientCapability::ElicitForm), declared.has(ClientCapability::ElicitUrl));
        if form || url {
            parts("elicitation", [("form", form && revision.has(Since::ElicitationMode)), ("url", url)]);
        }
        let (sampling, elicitation) = (self.has_tasks(&SAMPLING, revision), self.has_tasks(&ELICITATION, revision));
        if sampling || elicitation {
            let mut tasks = Object::open(object.key("tasks"));
            tasks.fixed("list", "{}");
            tasks.fixed("cancel", "{}");
            let mut requests = Object::open(tasks.key("requests"));
            if sampling {
                requests.fixed("sampling", r#"{"createMessage":{}}"#);
            }
            if elicitation {
                requests.fixed("elicitation", r#"{"create":{}}"#);
            }
            requests.close();
            tasks.close();
        }
        object.close()
    }
}

impl ClientInfo<'_> {
    /// Writes `_meta` of a request if it has members.
    pub(crate) fn write_meta(&self, params: &mut Object<'_, '_>, revision: Revision, parts: MetaParts<'_>) {
        if !revision.is_modern() && parts.progress.is_none() && parts.own.is_none() && parts.trace.is_none() {
            return;
        }
        let mut object = Object::open(params.key("_meta"));
        if revision.is_modern() {
            object.text(meta::VERSION, revision.date());
            match parts.own_client(meta::CLIENT_INFO) {
                Some(info) => object.raw(meta::CLIENT_INFO, info),
                None => self.write_info(object.key(meta::CLIENT_INFO), revision),
            }
            match parts.own_client(meta::CLIENT_CAPABILITIES) {
                Some(capabilities) => object.raw(meta::CLIENT_CAPABILITIES, capabilities),
                None => self.write_capabilities(object.key(meta::CLIENT_CAPABILITIES), revision),
            }
            if let Some(level) = parts.level {
                object.text(meta::LOG_LEVEL, level.name());
            }
        }
        if let Some(token) = parts.progress {
            object.key("progressToken").unsigned(token.into());
        }
        for (key, value) in parts.own.iter().flat_map(Raw::members) {
            if !parts.writes(&key, revision) {
                object.member(key, value);
            }
        }
        if let Some(trace) = parts.trace {
            trace.write(&mut object);
        }
        object.close()
    }
}
