//! The names and numbers of the protocol: methods, error codes, log levels, capabilities.

use crate::json::{JsonKind, Raw, Text};
use crate::revision::{Era, Revision};
use crate::small::SMALL;

/// Names of which a text may be one, packed: each behind its length. A slice of them would take eight bytes more for each.
#[derive(Clone, Copy)]
pub(crate) struct Names(pub(crate) &'static [u8]);

impl Names {
    /// The number of the name that a text decodes to.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
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

    /// How many bytes `names` take.
    pub(crate) const fn len(mut names: &[&str]) -> usize {
        let mut len = 0;
        while let [name, behind @ ..] = names {
            len += 1 + name.len();
            names = behind;
        }
        len
    }

    /// The bytes of `names`.
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

/// A request method of the server side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    TemplatesList,
    /// `resources/read`
    ResourcesRead,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `prompts/list`
    PromptsList,
    /// `prompts/get`
    PromptsGet,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `subscriptions/listen`
    Listen,
    /// One that the protocol does not know.
    Other,
}

/// Which eras have a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eras {
    Both,
    LegacyOnly,
    ModernOnly,
}

/// Name, eras and gate of each method: the one table.
const METHODS: [(Method, &str, Eras, Option<Feature>); 15] = [
    (Method::ToolsCall, "tools/call", Eras::Both, Some(Feature::Tools)),
    (Method::ToolsList, "tools/list", Eras::Both, Some(Feature::Tools)),
    (Method::Initialize, "initialize", Eras::LegacyOnly, None),
    (Method::Ping, "ping", Eras::LegacyOnly, None),
    (Method::Discover, "server/discover", Eras::ModernOnly, None),
    (Method::ResourcesList, "resources/list", Eras::Both, Some(Feature::Resources)),
    (Method::TemplatesList, "resources/templates/list", Eras::Both, Some(Feature::Resources)),
    (Method::ResourcesRead, "resources/read", Eras::Both, Some(Feature::Resources)),
    (Method::Subscribe, "resources/subscribe", Eras::LegacyOnly, Some(Feature::Subscribe)),
    (Method::Unsubscribe, "resources/unsubscribe", Eras::LegacyOnly, Some(Feature::Subscribe)),
    (Method::PromptsList, "prompts/list", Eras::Both, Some(Feature::Prompts)),
    (Method::PromptsGet, "prompts/get", Eras::Both, Some(Feature::Prompts)),
    (Method::Complete, "completion/complete", Eras::Both, Some(Feature::Completions)),
    (Method::SetLevel, "logging/setLevel", Eras::LegacyOnly, Some(Feature::Logging)),
    (Method::Listen, "subscriptions/listen", Eras::ModernOnly, None),
];

/// What is looked up of [`METHODS`]: all but the names.
const FACTS: [(Method, Eras, Option<Feature>); METHODS.len()] = {
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
    /// The method of that name; [`Method::Other`] if the protocol has none.
    #[must_use]
    pub fn from_name(name: &Text<'_>) -> Self {
        if !SMALL {
            return METHODS.iter().find(|(_, known, ..)| name.is(known)).map_or(Method::Other, |entry| entry.0);
        }
        let known = names!(@METHOD_NAMES).find(name).and_then(|known| FACTS.get(known));
        known.map_or(Method::Other, |facts| facts.0)
    }

    /// Its name on the wire; empty for [`Method::Other`].
    #[must_use]
    pub fn name(self) -> &'static str {
        METHODS.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// Whether an era has it.
    #[must_use]
    pub fn is_of(self, era: Era) -> bool {
        match self.facts().map(|facts| facts.1) {
            Some(Eras::Both) => true,
            Some(Eras::LegacyOnly) => era == Era::Legacy,
            Some(Eras::ModernOnly) => era == Era::Modern,
            None => false,
        }
    }

    /// The server capability that it needs under a revision.
    #[must_use]
    pub fn gate(self, revision: Revision) -> Option<Feature> {
        // 2024-11-05 has completion but no capability for it.
        let ungated = self == Method::Complete && revision == Revision::V2024_11_05;
        if ungated { None } else { self.facts().and_then(|facts| facts.2) }
    }

    /// Whether its handler may ask the client.
    #[must_use]
    pub const fn may_ask(self) -> bool {
        matches!(self, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead)
    }

    /// Whether its results say how long they may be kept (2026-07-28).
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

    fn facts(self) -> Option<&'static (Method, Eras, Option<Feature>)> {
        FACTS.iter().find(|facts| facts.0 == self)
    }
}

/// A server capability, or one of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u16)]
pub enum Feature {
    /// `tools`
    Tools = 1,
    /// `tools.listChanged`
    ToolsChanged = 1 << 1,
    /// `resources`
    Resources = 1 << 2,
    /// `resources.listChanged`
    ResourcesChanged = 1 << 3,
    /// `resources.subscribe`
    Subscribe = 1 << 4,
    /// `prompts`
    Prompts = 1 << 5,
    /// `prompts.listChanged`
    PromptsChanged = 1 << 6,
    /// `completions`
    Completions = 1 << 7,
    /// `logging`
    Logging = 1 << 8,
}

impl Feature {
    /// The capability that it is a part of; itself if it is no part.
    pub(crate) const fn whole(self) -> Self {
        match self {
            Feature::ToolsChanged => Feature::Tools,
            Feature::ResourcesChanged | Feature::Subscribe => Feature::Resources,
            Feature::PromptsChanged => Feature::Prompts,
            _ => self,
        }
    }
}

/// A set of server capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Features(u16);

impl Features {
    /// No capability.
    pub const NONE: Features = Features(0);

    /// Every capability.
    pub const ALL: Features = Features(0x1ff);

    /// This set and one more; a part like `tools.listChanged` declares its whole with it.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Features(self.0 | feature as u16 | feature.whole() as u16)
    }

    /// Whether a capability is declared.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature as u16 != 0
    }

    /// Reads a server's `capabilities` object. Unknown members are ignored, and so is a part like `listChanged` that is
    /// not `true`.
    #[must_use]
    pub fn read(capabilities: Raw<'_>) -> Self {
        let mut set = Features::NONE;
        for (key, value) in capabilities.members() {
            // `null` is how some writers say that there is none.
            if value.kind() == JsonKind::Null {
                continue;
            }
            for (name, feature, parts) in CAPABILITIES {
                if key.is(name) {
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

/// A name on the wire and what it declares.
type Named = (&'static str, Feature);

/// The server capabilities by name, each with its parts.
const CAPABILITIES: [(&str, Feature, &[Named]); 5] = [
    ("tools", Feature::Tools, &[("listChanged", Feature::ToolsChanged)]),
    ("resources", Feature::Resources, &[("listChanged", Feature::ResourcesChanged), ("subscribe", Feature::Subscribe)]),
    ("prompts", Feature::Prompts, &[("listChanged", Feature::PromptsChanged)]),
    ("completions", Feature::Completions, &[]),
    ("logging", Feature::Logging, &[]),
];

fn is_true(object: Raw<'_>, key: &str) -> bool {
    object.get(key).and_then(|value| value.bool()).unwrap_or(false)
}

/// A client capability that a handler may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u8)]
pub enum ClientFeature {
    /// `sampling`
    Sampling = 1,
    /// `sampling.tools`
    SamplingTools = 1 << 1,
    /// `sampling.context`
    SamplingContext = 1 << 2,
    /// `elicitation` in form mode
    ElicitForm = 1 << 3,
    /// `elicitation.url`
    ElicitUrl = 1 << 4,
    /// `roots`
    Roots = 1 << 5,
}

impl ClientFeature {
    pub(crate) const ALL: [ClientFeature; 6] = [
        ClientFeature::Sampling,
        ClientFeature::SamplingTools,
        ClientFeature::SamplingContext,
        ClientFeature::ElicitForm,
        ClientFeature::ElicitUrl,
        ClientFeature::Roots,
    ];

    /// The capability object that would declare it, for the error that names what is missing.
    #[must_use]
    pub const fn declaration(self) -> &'static str {
        match self {
            ClientFeature::Sampling => r#"{"sampling":{}}"#,
            ClientFeature::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            ClientFeature::SamplingContext => r#"{"sampling":{"context":{}}}"#,
            ClientFeature::ElicitForm => r#"{"elicitation":{"form":{}}}"#,
            ClientFeature::ElicitUrl => r#"{"elicitation":{"url":{}}}"#,
            ClientFeature::Roots => r#"{"roots":{}}"#,
        }
    }

    /// Its name in an error message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ClientFeature::Sampling => "sampling",
            ClientFeature::SamplingTools => "sampling with tools",
            ClientFeature::SamplingContext => "sampling with context",
            ClientFeature::ElicitForm => "elicitation",
            ClientFeature::ElicitUrl => "elicitation by URL",
            ClientFeature::Roots => "roots",
        }
    }
}

/// What a client declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClientFeatures(u8);

impl ClientFeatures {
    /// Nothing.
    pub const NONE: ClientFeatures = ClientFeatures(0);

    /// This set and one more.
    #[must_use]
    pub const fn with(self, feature: ClientFeature) -> Self {
        ClientFeatures(self.0 | feature as u8)
    }

    /// Reads a `capabilities` object. Unknown members are ignored, and so is what is no object: `null` and `false` are how
    /// some writers say that there is none.
    #[must_use]
    pub fn read(capabilities: Raw<'_>) -> Self {
        let mut set = ClientFeatures(0);
        if !SMALL && capabilities.as_bytes() == b"{}" {
            return set;
        }
        for (key, value) in capabilities.members() {
            if !is_object(value) {
                continue;
            }
            if key.is("roots") {
                set.add(ClientFeature::Roots);
            } else if key.is("sampling") {
                set.add(ClientFeature::Sampling);
                set.add_if(value.get("tools"), ClientFeature::SamplingTools);
                set.add_if(value.get("context"), ClientFeature::SamplingContext);
            } else if key.is("elicitation") {
                set.add_if(value.get("form"), ClientFeature::ElicitForm);
                set.add_if(value.get("url"), ClientFeature::ElicitUrl);
                // An empty object has meant form since the capability exists.
                if !set.has(ClientFeature::ElicitUrl) {
                    set.add(ClientFeature::ElicitForm);
                }
            }
        }
        set
    }

    /// Whether the client declared it.
    #[must_use]
    pub const fn has(self, feature: ClientFeature) -> bool {
        self.0 & feature as u8 != 0
    }

    fn add(&mut self, feature: ClientFeature) {
        self.0 |= feature as u8;
    }

    fn add_if(&mut self, member: Option<Raw<'_>>, feature: ClientFeature) {
        if member.is_some_and(is_object) {
            self.add(feature);
        }
    }
}

/// In few bytes of code: this is read of each request.
fn is_object(value: Raw<'_>) -> bool {
    value.as_bytes().first() == Some(&b'{')
}

/// The severity of a log message (RFC 5424), lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "syslog has these eight")]
#[allow(missing_docs, reason = "syslog's own names")]
pub enum Level {
    // Not 0: a free slot of the server is then nothing but zeros, which take no room.
    Debug = 1,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 8] = [
        Level::Debug,
        Level::Info,
        Level::Notice,
        Level::Warning,
        Level::Error,
        Level::Critical,
        Level::Alert,
        Level::Emergency,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Error => "error",
            Level::Critical => "critical",
            Level::Alert => "alert",
            Level::Emergency => "emergency",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn read(value: Raw<'_>) -> Option<Self> {
        let known = names!["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        Self::ALL.get(known.find(&value.text()?)?).copied()
    }
}

/// The error codes of JSON-RPC and of the protocol.
pub mod code {
    /// Not JSON.
    pub const PARSE: i32 = -32700;
    /// Not a request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method, or its capability is not declared.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// Wrong params; unknown tool, prompt, cursor.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The server failed, or is overloaded.
    pub const INTERNAL: i32 = -32603;
    /// No such resource, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// HTTP headers and body differ, from 2026-07-28.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// A client capability is missing, from 2026-07-28.
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The revision is not served, from 2026-07-28.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
    /// The user must visit a URL first, 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// The user refused.
    pub const USER_REFUSED: i32 = -1;
}

/// The `_meta` keys that the protocol reserves.
pub mod meta {
    /// On requests: the revision.
    pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// On requests: what the client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// On requests: who the client is.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// On requests: which log messages it wants.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// On results: who the server is.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// On notifications of a subscription, and on its result: the id of its request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_a_server() {
        let read = |json: &'static str| Features::read(Raw::constant(json));
        let all = read(
            r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},
            "completions":{},"logging":{},"experimental":{"x":{}},"tasks":{}}"#,
        );
        assert_eq!(all, Features(0x1ff));
        let some =
            read(r#"{"tools":{"listChanged":false},"resources":{"subscribe":"yes"},"prompts":null,"logging":true}"#);
        assert_eq!(some, Features::NONE.with(Feature::Tools).with(Feature::Resources).with(Feature::Logging));
        assert_eq!(read("[]"), Features::NONE);
    }
}
