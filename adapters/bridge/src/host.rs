//! The name and the capabilities of the host, for the server behind.

use alloc::string::{String, ToString};

use mcp_sansio::client::ClientInfo;
use mcp_sansio::json::{OwnedRaw, Raw};
use mcp_sansio::protocol::{ClientCapabilities, ClientCapability as Cap};
use mcp_sansio::server::IncomingRequest;

/// The types of results that extensions have.
const RESULT_TYPES: &[&str] = &["task"];

/// The name and the capabilities of the host: of its `initialize`, or of its first request of 2026-07-28.
#[derive(Clone, Debug)]
pub struct Host {
    is_modern: bool,
    name: String,
    version: String,
    title: Option<String>,
    features: ClientCapabilities,
    sampling_tasks: bool,
    elicitation_tasks: bool,
    roots_changed: bool,
    experimental: Option<OwnedRaw>,
    extensions: Option<OwnedRaw>,
    /// `clientInfo` and `capabilities` of an `initialize`.
    raw: Option<(OwnedRaw, OwnedRaw)>,
}

impl Host {
    pub(crate) fn of(request: &IncomingRequest<'_>) -> Self {
        let (meta, members) = (&request.envelope.meta, &request.envelope.members);
        let (info, capabilities) = match meta.is_modern() {
            true => (meta.client_info, meta.capabilities),
            false => (members.client_info, members.capabilities),
        };
        let text = |key: &str| info.and_then(|info| info.get(key)?.text()).map(|text| text.to_string());
        let object = |key: &str| capabilities.and_then(|all| all.get(key));
        let tasks = object("tasks").and_then(|tasks| tasks.get("requests"));
        Host {
            is_modern: meta.is_modern(),
            name: text("name").unwrap_or_else(|| "unknown".into()),
            version: text("version").unwrap_or_else(|| "0".into()),
            title: text("title"),
            features: capabilities.map_or(ClientCapabilities::NONE, ClientCapabilities::read),
            sampling_tasks: tasks.is_some_and(|of| of.get("sampling").is_some()),
            elicitation_tasks: tasks.is_some_and(|of| of.get("elicitation").is_some()),
            roots_changed: object("roots").and_then(|roots| roots.get("listChanged")?.bool()) == Some(true),
            experimental: object("experimental").map(OwnedRaw::new),
            extensions: object("extensions").map(OwnedRaw::new),
            raw: info.zip(capabilities).filter(|_| !meta.is_modern()).map(|(info, all)| (info.into(), all.into())),
        }
    }

    /// Reads the first message of a host.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let mut request = IncomingRequest::empty();
        request.read(message).is_ok().then(|| Host::of(&request))
    }

    /// Returns `true` for a host of 2026-07-28 or later.
    pub(crate) const fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Returns the name of the host, untrusted.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description for the client behind: the server asks for no more than the host can answer.
    pub fn client_info(&self) -> ClientInfo<'_> {
        let mut info = ClientInfo::new(&self.name, &self.version);
        info = self.title.iter().fold(info, |info, title| info.title(title));
        let known = Cap::ALL.into_iter().filter(|&one| self.features.has(one));
        for one in known {
            let tasks = match one {
                Cap::ElicitForm | Cap::ElicitUrl => self.elicitation_tasks,
                Cap::Roots => false,
                _ => self.sampling_tasks,
            };
            info = if tasks { info.tasks(one) } else { info.feature(one) };
        }
        if self.roots_changed {
            info = info.roots_changed();
        }
        let experimental = self.experimental.as_ref().map(OwnedRaw::raw);
        info = experimental.into_iter().fold(info, ClientInfo::experimental);
        let extensions: Option<Raw<'_>> = self.extensions.as_ref().map(OwnedRaw::raw);
        let info = extensions.into_iter().fold(info, |info, all| info.extensions(all, RESULT_TYPES));
        self.raw.iter().fold(info, |info, (own, all)| info.raw(own.raw(), all.raw()))
    }
}
