//! The names and numbers of the protocol: methods, error codes, log levels, capabilities.

use crate::json::{JsonKind, Raw, Text};
use crate::revision::{Era, Revision, Since};
use crate::search::SMALL;
#[cfg(feature = "extensions")]
use crate::search::same;

// Fork: 460 bytes of flash (uart, tools only): the names packed, and the tables beside them.

/// A list of names, packed: the length of each, then its bytes. A slice of `&str` would take eight bytes more
/// for each.
#[derive(Clone, Copy)]
pub(crate) struct Names(pub(crate) &'static [u8]);

impl Names {
    /// Returns the index of the name that the decoded text equals.
    pub(crate) fn find(self, text: &Text<'_>) -> Option<usize> {
        let (mut number, mut rest) = (0, self.0);
        while let Some((&len, behind)) = rest.split_first() {
            let (name, behind) = behind.split_at_checked(len.into())?;
            if text.is_bytes(name) {
                return Some(number);
            }
            (number, rest) = (number + 1, behind);
        }
        None
    }

    /// Returns the packed length of `names`, in bytes.
    pub(crate) const fn len(mut names: &[&str]) -> usize {
        let mut len = 0;
        while let [name, behind @ ..] = names {
            len += 1 + name.len();
            names = behind;
        }
        len
    }

    /// Packs `names`.
    pub(crate) const fn pack<const LEN: usize>(mut names: &[&str]) -> [u8; LEN] {
        let (mut packed, mut at) = ([0; LEN], 0);
        while let [name, behind @ ..] = names {
            let mut letters = name.as_bytes();
            packed[at] = letters.len() as u8;
            while let [letter, behind @ ..] = letters {
                at += 1;
                packed[at] = *letter;
                letters = behind;
            }
            at += 1;
            names = behind;
        }
        packed
    }
}

/// The [`Names`] of a list of constants, packed when the program is compiled.
macro_rules! names {
    (@$names:expr) => {{
        const NAMES: &[&str] = &$names;
        const PACKED: &[u8] = &crate::protocol::Names::pack::<{ crate::protocol::Names::len(NAMES) }>(NAMES);
        crate::protocol::Names(PACKED)
    }};
    ($($name:expr),*) => { crate::protocol::names!(@[$($name),*]) };
}
pub(crate) use names;

/// A request method of the server side. See [the
/// schema](https://modelcontextprotocol.io/specification/2026-07-28/schema).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Method {
    /// `initialize`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>
    Initialize,
    /// `ping`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping>
    Ping,
    /// `server/discover`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/discover>
    Discover,
    /// `tools/list`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
    ToolsList,
    /// `tools/call`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
    ToolsCall,
    /// `resources/list`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    ResourcesList,
    /// `resources/templates/list`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    TemplatesList,
    /// `resources/read`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    ResourcesRead,
    /// `resources/subscribe`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/server/resources>
    Subscribe,
    /// `resources/unsubscribe`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/server/resources>
    Unsubscribe,
    /// `prompts/list`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
    PromptsList,
    /// `prompts/get`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
    PromptsGet,
    /// `completion/complete`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion>
    Complete,
    /// `logging/setLevel`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging>
    SetLevel,
    /// `subscriptions/listen`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions>
    Listen,
    /// A method that the protocol does not know.
    Other,
}

/// The eras that have a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eras {
    Both,
    LegacyOnly,
    ModernOnly,
}

/// The table of all methods: name, eras, and the capability that the method needs.
const METHODS: [(Method, &str, Eras, Option<ServerCapability>); 15] = [
    (Method::ToolsCall, "tools/call", Eras::Both, Some(ServerCapability::Tools)),
    (Method::ToolsList, "tools/list", Eras::Both, Some(ServerCapability::Tools)),
    (Method::Initialize, "initialize", Eras::LegacyOnly, None),
    (Method::Ping, "ping", Eras::LegacyOnly, None),
    (Method::Discover, "server/discover", Eras::ModernOnly, None),
    (Method::ResourcesList, "resources/list", Eras::Both, Some(ServerCapability::Resources)),
    (Method::TemplatesList, "resources/templates/list", Eras::Both, Some(ServerCapability::Resources)),
    (Method::ResourcesRead, "resources/read", Eras::Both, Some(ServerCapability::Resources)),
    (Method::Subscribe, "resources/subscribe", Eras::LegacyOnly, Some(ServerCapability::Subscribe)),
    (Method::Unsubscribe, "resources/unsubscribe", Eras::LegacyOnly, Some(ServerCapability::Subscribe)),
    (Method::PromptsList, "prompts/list", Eras::Both, Some(ServerCapability::Prompts)),
    (Method::PromptsGet, "prompts/get", Eras::Both, Some(ServerCapability::Prompts)),
    (Method::Complete, "completion/complete", Eras::Both, Some(ServerCapability::Completions)),
    (Method::SetLevel, "logging/setLevel", Eras::LegacyOnly, Some(ServerCapability::Logging)),
    (Method::Listen, "subscriptions/listen", Eras::ModernOnly, None),
];

/// The columns of [`METHODS`] without the names.
const FACTS: [(Method, Eras, Option<ServerCapability>); METHODS.len()] = {
    let mut facts = [(Method::Other, Eras::Both, None); METHODS.len()];
    let mut n = 0;
    while n < METHODS.len() {
        let (method, _, eras, gate) = METHODS[n];
        facts[n] = (method, eras, gate);
        n += 1;
    }
    facts
};

/// The names of [`METHODS`].
const METHOD_NAMES: [&str; METHODS.len()] = {
    let mut names = [""; METHODS.len()];
    let mut n = 0;
    while n < METHODS.len() {
        names[n] = METHODS[n].1;
        n += 1;
    }
    names
};

impl Method {
    /// Returns the method with this name, or [`Method::Other`].
    #[must_use]
    pub fn from_name(name: &Text<'_>) -> Self {
        if !SMALL {
            return METHODS.iter().find(|(_, known, ..)| name.eq_str(known)).map_or(Method::Other, |entry| entry.0);
        }
        let known = names!(@METHOD_NAMES).find(name).and_then(|known| FACTS.get(known));
        known.map_or(Method::Other, |facts| facts.0)
    }

    /// Returns whether the protocol has a method with this name.
    #[cfg(feature = "extensions")]
    pub(crate) const fn has_name(name: &str) -> bool {
        let mut rest: &[&str] = &METHOD_NAMES;
        while let [known, behind @ ..] = rest {
            if same(known, name) {
                return true;
            }
            rest = behind;
        }
        false
    }

    /// Returns its name in messages; empty for [`Method::Other`].
    #[must_use]
    pub fn name(self) -> &'static str {
        METHODS.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// Returns whether it asks for a list of tools, resources, templates or prompts.
    #[must_use]
    pub(crate) const fn is_list(self) -> bool {
        matches!(self, Method::ToolsList | Method::ResourcesList | Method::TemplatesList | Method::PromptsList)
    }

    /// Returns whether a [`Server`](crate::server::Server) answers it without the application.
    #[must_use]
    pub const fn is_answered_by_server(self) -> bool {
        use Method::{Discover, Initialize, Listen, Ping, SetLevel, Subscribe, Unsubscribe};
        matches!(self, Initialize | Discover | Ping | SetLevel | Subscribe | Unsubscribe | Listen)
    }

    /// Returns whether it sets something for its client alone, `resources/subscribe`, `resources/unsubscribe` or `logging/setLevel`: a
    /// program may answer it in place of the server, see [`Server::admit_own`](crate::server::Server::admit_own).
    #[must_use]
    pub const fn is_setting(self) -> bool {
        matches!(self, Method::Subscribe | Method::Unsubscribe | Method::SetLevel)
    }

    /// Returns whether the era has the method.
    #[must_use]
    pub fn is_of(self, era: Era) -> bool {
        match self.facts().map(|facts| facts.1) {
            Some(Eras::Both) => true,
            Some(Eras::LegacyOnly) => era == Era::Legacy,
            Some(Eras::ModernOnly) => era == Era::Modern,
            None => false,
        }
    }

    /// Returns the server capability that the method needs in this revision, if any.
    #[must_use]
    pub fn gate(self, revision: Revision) -> Option<ServerCapability> {
        // 2024-11-05 has completion but no capability for it.
        let ungated = self == Method::Complete && !revision.has(Since::CompletionsCapability);
        if ungated { None } else { self.facts().and_then(|facts| facts.2) }
    }

    /// Returns whether the handler of the method may ask the client.
    #[must_use]
    pub(crate) const fn may_ask(self) -> bool {
        matches!(self, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
    }

    /// Returns whether its results have `ttlMs` and `cacheScope`. See
    /// [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    pub(crate) const fn is_cached(self) -> bool {
        matches!(
            self,
            Method::ToolsList
                | Method::ResourcesList
                | Method::TemplatesList
                | Method::PromptsList
                | Method::ResourcesRead
                | Method::Discover
        )
    }

    fn facts(self) -> Option<&'static (Method, Eras, Option<ServerCapability>)> {
        FACTS.iter().find(|facts| facts.0 == self)
    }
}

/// A server capability, or a part of one such as `tools.listChanged`. See
/// [capabilities](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#capability-negotiation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u16)]
pub enum ServerCapability {
    /// `tools`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
    Tools = 1,
    /// `tools.listChanged`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
    ToolsChanged = 1 << 1,
    /// `resources`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    Resources = 1 << 2,
    /// `resources.listChanged`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    ResourcesChanged = 1 << 3,
    /// `resources.subscribe`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/resources>
    Subscribe = 1 << 4,
    /// `prompts`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
    Prompts = 1 << 5,
    /// `prompts.listChanged`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/prompts>
    PromptsChanged = 1 << 6,
    /// `completions`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion>
    Completions = 1 << 7,
    /// `logging`
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging>
    ///
    /// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from
    /// 2026-07-28 on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
    Logging = 1 << 8,
}

impl ServerCapability {
    /// Returns the capability that it is a part of, or itself.
    pub(crate) const fn whole(self) -> Self {
        match self {
            ServerCapability::ToolsChanged => ServerCapability::Tools,
            ServerCapability::ResourcesChanged | ServerCapability::Subscribe => ServerCapability::Resources,
            ServerCapability::PromptsChanged => ServerCapability::Prompts,
            _ => self,
        }
    }
}

/// A set of server capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ServerCapabilities(u16);

impl ServerCapabilities {
    /// The empty set.
    pub const NONE: ServerCapabilities = ServerCapabilities(0);

    /// All capabilities.
    pub const ALL: ServerCapabilities = ServerCapabilities(0x1ff);

    /// Adds a capability. A part such as `tools.listChanged` also adds its whole.
    #[must_use]
    pub const fn with(self, feature: ServerCapability) -> Self {
        ServerCapabilities(self.0 | feature as u16 | feature.whole() as u16)
    }

    /// Returns whether the set has the capability.
    #[must_use]
    pub const fn has(self, feature: ServerCapability) -> bool {
        self.0 & feature as u16 != 0
    }

    /// Reads the `capabilities` object of a server. Ignores unknown members, and parts such as `listChanged`
    /// that are not `true`.
    #[must_use]
    pub fn read(capabilities: Raw<'_>) -> Self {
        let mut set = ServerCapabilities::NONE;
        for (key, value) in capabilities.members() {
            // Some peers write an absent capability as `null`.
            if value.kind() == JsonKind::Null {
                continue;
            }
            for (name, feature, parts) in CAPABILITIES {
                if key.eq_str(name) {
                    set = parts
                        .iter()
                        .filter(|part| is_true(value, part.0))
                        .fold(set.with(feature), |set, p| set.with(p.1));
                }
            }
        }
        set
    }
}

/// The bits of the lists whose changes a server reports.
pub(crate) const TOOLS: u8 = 1;
pub(crate) const PROMPTS: u8 = 1 << 1;
pub(crate) const RESOURCES: u8 = 1 << 2;

/// The lists whose changes a server reports: bit, member of the filter of `subscriptions/listen`, capability,
/// notification. See
/// [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
pub(crate) const LISTS: [(u8, &str, ServerCapability, &str); 3] = [
    (TOOLS, "toolsListChanged", ServerCapability::ToolsChanged, "notifications/tools/list_changed"),
    (PROMPTS, "promptsListChanged", ServerCapability::PromptsChanged, "notifications/prompts/list_changed"),
    (RESOURCES, "resourcesListChanged", ServerCapability::ResourcesChanged, "notifications/resources/list_changed"),
];

/// Returns whether the protocol has a member with this name in the filter of `subscriptions/listen`.
#[cfg(feature = "extensions")]
pub(crate) const fn is_filter_member(name: &str) -> bool {
    let [tools, prompts, resources] = LISTS;
    let is_list = same(tools.1, name) || same(prompts.1, name) || same(resources.1, name);
    is_list || same("resourceSubscriptions", name)
}

/// A member name and the capability that it declares.
type Named = (&'static str, ServerCapability);

/// The server capabilities by name, each with its parts.
const CAPABILITIES: [(&str, ServerCapability, &[Named]); 5] = [
    ("tools", ServerCapability::Tools, &[("listChanged", ServerCapability::ToolsChanged)]),
    (
        "resources",
        ServerCapability::Resources,
        &[("listChanged", ServerCapability::ResourcesChanged), ("subscribe", ServerCapability::Subscribe)],
    ),
    ("prompts", ServerCapability::Prompts, &[("listChanged", ServerCapability::PromptsChanged)]),
    ("completions", ServerCapability::Completions, &[]),
    ("logging", ServerCapability::Logging, &[]),
];

fn is_true(object: Raw<'_>, key: &str) -> bool {
    object.get(key).and_then(|value| value.bool()).unwrap_or(false)
}

/// A client capability that a handler may need. See
/// [capabilities](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#capability-negotiation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u8)]
pub enum ClientCapability {
    /// `sampling`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/sampling>
    ///
    /// Sampling is [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
    /// on (SEP-2577): it still works; a new program calls a model's provider itself.
    Sampling = 1,
    /// `sampling.tools`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/sampling>
    ///
    /// Sampling is [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
    /// on (SEP-2577): it still works; a new program calls a model's provider itself.
    SamplingTools = 1 << 1,
    /// `sampling.context`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/sampling>
    ///
    /// Sampling is [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
    /// on (SEP-2577): it still works; a new program calls a model's provider itself.
    SamplingContext = 1 << 2,
    /// `elicitation` in form mode
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
    ElicitForm = 1 << 3,
    /// `elicitation.url`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
    ElicitUrl = 1 << 4,
    /// `roots`
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/roots>
    ///
    /// Roots are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28 on
    /// (SEP-2577): they still work; a new program takes folders as arguments of tools, as URIs of resources, or from
    /// its configuration.
    Roots = 1 << 5,
}

impl ClientCapability {
    /// All of them.
    pub const ALL: [ClientCapability; 6] = [
        ClientCapability::Sampling,
        ClientCapability::SamplingTools,
        ClientCapability::SamplingContext,
        ClientCapability::ElicitForm,
        ClientCapability::ElicitUrl,
        ClientCapability::Roots,
    ];

    /// Returns the `capabilities` object that declares it, for the error about a missing capability.
    #[must_use]
    pub const fn declaration(self) -> &'static str {
        match self {
            ClientCapability::Sampling => r#"{"sampling":{}}"#,
            ClientCapability::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            ClientCapability::SamplingContext => r#"{"sampling":{"context":{}}}"#,
            ClientCapability::ElicitForm => r#"{"elicitation":{"form":{}}}"#,
            ClientCapability::ElicitUrl => r#"{"elicitation":{"url":{}}}"#,
            ClientCapability::Roots => r#"{"roots":{}}"#,
        }
    }

    /// Returns its name for an error message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ClientCapability::Sampling => "sampling",
            ClientCapability::SamplingTools => "sampling with tools",
            ClientCapability::SamplingContext => "sampling with context",
            ClientCapability::ElicitForm => "elicitation",
            ClientCapability::ElicitUrl => "elicitation by URL",
            ClientCapability::Roots => "roots",
        }
    }
}

/// The capabilities whose requests are `sampling/createMessage`.
pub(crate) const SAMPLING: [ClientCapability; 3] =
    [ClientCapability::Sampling, ClientCapability::SamplingTools, ClientCapability::SamplingContext];
/// The capabilities whose requests are `elicitation/create`.
pub(crate) const ELICITATION: [ClientCapability; 2] = [ClientCapability::ElicitForm, ClientCapability::ElicitUrl];

/// The capabilities that a client declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClientCapabilities {
    features: u8,
    /// A bit for each extension of the server's table that the client declared, with settings that the server accepts.
    #[cfg(feature = "extensions")]
    pub(crate) extensions: u8,
}

impl ClientCapabilities {
    /// The empty set.
    pub const NONE: ClientCapabilities = ClientCapabilities {
        features: 0,
        #[cfg(feature = "extensions")]
        extensions: 0,
    };

    /// Adds a capability.
    #[must_use]
    pub const fn with(mut self, feature: ClientCapability) -> Self {
        self.features |= feature as u8;
        self
    }

    /// Reads the `capabilities` object of a client. Ignores unknown members, and members that are not objects:
    /// some peers write an absent capability as `null` or `false`.
    #[must_use]
    pub fn read(capabilities: Raw<'_>) -> Self {
        let mut set = ClientCapabilities::NONE;
        for (key, value) in capabilities.members() {
            if !is_object(value) {
                continue;
            }
            if key.eq_str("roots") {
                set.add(ClientCapability::Roots);
            } else if key.eq_str("sampling") {
                set.add(ClientCapability::Sampling);
                set.add_if(value.get("tools"), ClientCapability::SamplingTools);
                set.add_if(value.get("context"), ClientCapability::SamplingContext);
            } else if key.eq_str("elicitation") {
                set.add_if(value.get("form"), ClientCapability::ElicitForm);
                set.add_if(value.get("url"), ClientCapability::ElicitUrl);
                // An empty object has always meant form mode, also since the URL mode exists.
                if !set.has(ClientCapability::ElicitUrl) {
                    set.add(ClientCapability::ElicitForm);
                }
            }
        }
        set
    }

    /// Returns the set as a number, to be read by [`from_bits`](ClientCapabilities::from_bits) in a process of the same program:
    /// bits of extensions are those of the service's table.
    #[must_use]
    pub const fn to_bits(self) -> u16 {
        #[cfg(feature = "extensions")]
        return (self.extensions as u16) << 8 | self.features as u16;
        #[cfg(not(feature = "extensions"))]
        return self.features as u16;
    }

    /// Returns the set of a number from [`to_bits`](ClientCapabilities::to_bits).
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        let [_extensions, features] = bits.to_be_bytes();
        ClientCapabilities {
            features,
            #[cfg(feature = "extensions")]
            extensions: _extensions,
        }
    }

    /// Returns whether the client declared the capability.
    #[must_use]
    pub const fn has(self, feature: ClientCapability) -> bool {
        self.features & feature as u8 != 0
    }

    fn add(&mut self, feature: ClientCapability) {
        self.features |= feature as u8;
    }

    fn add_if(&mut self, member: Option<Raw<'_>>, feature: ClientCapability) {
        if member.is_some_and(is_object) {
            self.add(feature);
        }
    }
}

/// Looks at the first byte only, because this runs for each request.
fn is_object(value: Raw<'_>) -> bool {
    value.as_bytes().first() == Some(&b'{')
}

/// The severity of a log message (RFC 5424), lowest first. See
/// [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
///
/// Log messages are [deprecated](https://modelcontextprotocol.io/specification/2026-07-28/deprecated) from 2026-07-28
/// on (SEP-2577): they still work; a new program logs to standard error or by OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "syslog has these eight")]
#[allow(missing_docs, reason = "syslog's own names")]
pub enum LoggingLevel {
    // Not 0: so a free slot of the server is all zeros and takes no place in the flash.
    Debug = 1,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LoggingLevel {
    /// All levels, lowest first.
    pub const ALL: [LoggingLevel; 8] = [
        LoggingLevel::Debug,
        LoggingLevel::Info,
        LoggingLevel::Notice,
        LoggingLevel::Warning,
        LoggingLevel::Error,
        LoggingLevel::Critical,
        LoggingLevel::Alert,
        LoggingLevel::Emergency,
    ];

    /// Returns its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoggingLevel::Debug => "debug",
            LoggingLevel::Info => "info",
            LoggingLevel::Notice => "notice",
            LoggingLevel::Warning => "warning",
            LoggingLevel::Error => "error",
            LoggingLevel::Critical => "critical",
            LoggingLevel::Alert => "alert",
            LoggingLevel::Emergency => "emergency",
        }
    }

    /// Reads a level; `None` if the value is not the name of one.
    #[must_use]
    pub fn read(value: Raw<'_>) -> Option<Self> {
        let known = names!["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        Self::ALL.get(known.find(&value.text()?)?).copied()
    }
}

/// The error codes of [JSON-RPC](https://www.jsonrpc.org/specification#error_object) and of the protocol.
pub mod code {
    /// The message is not JSON.
    pub const PARSE: i32 = -32700;
    /// The message is not a request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// There is no such method, or its capability is not declared.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The params are wrong, or the tool, prompt or cursor is unknown.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The server failed, or is overloaded.
    pub const INTERNAL: i32 = -32603;
    /// There is no such resource; up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The HTTP headers and the body differ; from 2026-07-28 on.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client did not declare a capability that the request needs; from 2026-07-28 on.
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The revision is not served; from 2026-07-28 on.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
    /// The user must visit a URL first; only in 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// The user refused a request of the server.
    pub const USER_REFUSED: i32 = -1;

    /// Returns the code of an error of the program's own. In a constant it does not compile if it is one of -32768 to -32000,
    /// which are [reserved](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes).
    ///
    /// ```
    /// use mcp_sansio::protocol::code;
    /// const OUT_OF_INK: i32 = code::own(1001);
    /// ```
    ///
    /// # Panics
    /// At run time, for a reserved code.
    #[must_use]
    pub const fn own(code: i32) -> i32 {
        assert!(code < -32768 || code > -32000, "codes of -32768 to -32000 are reserved");
        code
    }
}

/// The keys of `_meta` that the protocol
/// [reserves](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta).
pub mod meta {
    /// In requests: the revision.
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// In requests: the capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// In requests: the name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// In requests: the lowest level of log messages that the client wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// In results: the name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// In messages of a [task](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks) of 2025-11-25:
    /// an object with its `taskId`.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// In notifications of a subscription and in its result: the id of its request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: B013
    #[test]
    fn codes_of_ones_own() {
        for code in [i32::MIN, -32_769, -31_999, -1, 0, i32::MAX] {
            assert_eq!(code::own(code), code);
        }
        for code in [-32_768, -32_603, -32_050, -32_002, -32_000] {
            assert!(std::panic::catch_unwind(|| code::own(code)).is_err(), "{code}");
        }
    }

    #[test]
    fn features_of_a_server() {
        let read = |json: &'static str| ServerCapabilities::read(Raw::constant(json));
        let all = read(
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},
            "completions":{},"logging":{},"experimental":{"x":{}},"tasks":{}}"#,
        );
        assert_eq!(all, ServerCapabilities(0x1ff));
        let some =
            read(r#"{"tools":{"listChanged":false},"resources":{"subscribe":"yes"},"prompts":null,"logging":true}"#);
        assert_eq!(
            some,
            ServerCapabilities::NONE
                .with(ServerCapability::Tools)
                .with(ServerCapability::Resources)
                .with(ServerCapability::Logging)
        );
        assert_eq!(read("[]"), ServerCapabilities::NONE);
    }
}
