//! The name and the capabilities of the server behind, kept for hosts that come while it is away.

use alloc::string::{String, ToString};

use mcp_sansio::json::{OwnedRaw, Raw, Text};
use mcp_sansio::protocol::{ServerCapabilities, ServerCapability as Cap};
use mcp_sansio::server::ServerInfo;

use crate::write::written;

/// The capabilities of a server that is not known yet: it may have any. Its lists change when it is.
const UNKNOWN: [Cap; 6] = [Cap::Tools, Cap::Resources, Cap::Prompts, Cap::Completions, Cap::Logging, Cap::Subscribe];

/// A server's name, capabilities and instructions.
#[derive(Clone, Debug, Default)]
pub struct Hello {
    /// There was a server, or the host was answered without one.
    pub(crate) is_known: bool,
    /// The `InitializeResult` or `DiscoverResult`, as it is.
    pub(crate) result: Option<OwnedRaw>,
    /// The server is one of 2026-07-28.
    pub(crate) is_modern: bool,
    name: String,
    version: String,
    title: Option<String>,
    description: Option<String>,
    website: Option<String>,
    instructions: Option<String>,
    pub(crate) offered: ServerCapabilities,
    experimental: Option<OwnedRaw>,
    extensions: Option<OwnedRaw>,
}

impl Hello {
    /// Reads an `InitializeResult`, or a `DiscoverResult`.
    pub(crate) fn of(result: Raw<'_>) -> Self {
        let is_modern = result.get("supportedVersions").is_some();
        let signed = || result.get("_meta")?.get("io.modelcontextprotocol/serverInfo");
        let server = result.get("serverInfo").or_else(signed);
        let capabilities = result.get("capabilities");
        let text = |key: &str| server.and_then(|server| server.get(key)?.text()).map(|text| text.to_string());
        let object = |key: &str| capabilities.and_then(|all| all.get(key)).map(OwnedRaw::new);
        Hello {
            is_known: true,
            result: Some(OwnedRaw::new(result)),
            is_modern,
            name: text("name").unwrap_or_else(|| "unknown".into()),
            version: text("version").unwrap_or_else(|| "0".into()),
            title: text("title"),
            description: text("description"),
            website: text("websiteUrl"),
            instructions: result.get("instructions").and_then(|words| words.text()).map(|words| words.to_string()),
            offered: capabilities.map_or(ServerCapabilities::NONE, ServerCapabilities::read),
            experimental: object("experimental"),
            extensions: object("extensions"),
        }
    }

    /// Returns `true` if another one describes the same server, of the same version.
    pub(crate) fn is_same(&self, other: &Hello) -> bool {
        let texts =
            (&self.name, &self.version, &self.instructions) == (&other.name, &other.version, &other.instructions);
        texts && self.offered == other.offered
    }

    /// Makes that of a server that has not come in time.
    pub(crate) fn unknown() -> Self {
        let offered = UNKNOWN.into_iter().fold(ServerCapabilities::NONE, ServerCapabilities::with);
        Hello { is_known: true, name: "mcp-bridge".into(), version: "0".into(), offered, ..Hello::default() }
    }

    /// Joins those of several servers: what one of them can, all can together. Instructions have the name of their server in front.
    pub(crate) fn joined<'n>(servers: impl Iterator<Item = (&'n str, Hello)>) -> Self {
        let mut all = Hello { offered: ServerCapabilities::NONE, ..Hello::unknown() };
        for (name, hello) in servers {
            let offered = UNKNOWN.into_iter().filter(|one| hello.offered.has(*one));
            all.offered = offered.fold(all.offered, ServerCapabilities::with);
            if let Some(words) = hello.instructions {
                let before = all.instructions.take().map(|before| before + "\n\n").unwrap_or_default();
                all.instructions = Some(before + name + ": " + &words);
            }
            all.experimental = union(all.experimental, hello.experimental);
            all.extensions = union(all.extensions, hello.extensions);
        }
        all
    }

    /// Returns the description for hosts. All lists may change: what comes back may be another server.
    pub fn info(&self) -> ServerInfo<'_> {
        let mut info = ServerInfo::new(&self.name, &self.version);
        for (part, changed) in [
            (Cap::Tools, Some(Cap::ToolsChanged)),
            (Cap::Resources, Some(Cap::ResourcesChanged)),
            (Cap::Prompts, Some(Cap::PromptsChanged)),
            (Cap::Subscribe, None),
            (Cap::Completions, None),
            (Cap::Logging, None),
        ] {
            if self.offered.has(part) {
                info = changed.into_iter().fold(info.feature(part), ServerInfo::feature);
            }
        }
        info = self.title.iter().fold(info, |info, title| info.title(title));
        info = self.description.iter().fold(info, |info, words| info.description(words));
        info = self.website.iter().fold(info, |info, url| info.website(url));
        info = self.instructions.iter().fold(info, |info, words| info.instructions(words));
        if let Some(result) = &self.result {
            return info.raw_members(result.raw());
        }
        let (experimental, extensions) = (raw(&self.experimental), raw(&self.extensions));
        info = experimental.into_iter().fold(info, ServerInfo::experimental);
        extensions.into_iter().fold(info, ServerInfo::extensions)
    }
}

/// Returns the members of two objects; of two with the same name the first.
fn union(one: Option<OwnedRaw>, other: Option<OwnedRaw>) -> Option<OwnedRaw> {
    let (Some(first), Some(second)) = (&one, &other) else { return one.or(other) };
    let all = written(|all| {
        all.spread(first.raw());
        let is_new = |key: &Text<'_>| !first.raw().members().any(|(known, _)| known.same(key));
        second.raw().members().filter(|(key, _)| is_new(key)).for_each(|(key, value)| all.member(key, value));
    });
    Raw::parse(&all).ok().map(OwnedRaw::new)
}

fn raw(kept: &Option<OwnedRaw>) -> Option<Raw<'_>> {
    kept.as_ref().map(OwnedRaw::raw)
}
