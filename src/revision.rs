//! All differences between the published revisions. A new one is a variant, its place in [`Revision::ALL`], its date
//! and its facts.
//!
//! A fact that came with a revision and stayed is a row of `Since`; a fact that a later revision removed is a method
//! of [`Revision`]. The table of [`Method`](crate::protocol::Method) has the methods of each era. No other
//! module compares or names revisions: `tests/protocol/tests/layers.rs` checks this.

use core::fmt;

/// A published revision of the Model Context Protocol. See
/// [versioning](https://modelcontextprotocol.io/specification/versioning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first revision.
    ///
    /// <https://modelcontextprotocol.io/specification/2024-11-05>
    V2024_11_05,
    /// 2025-03-26 added batches, audio, tool annotations and Streamable HTTP.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/changelog>
    V2025_03_26,
    /// 2025-06-18 added structured output, elicitation, resource links and titles.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/changelog>
    V2025_06_18,
    /// 2025-11-25 added icons, URL elicitation and tools in sampling.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/changelog>
    V2025_11_25,
    /// 2026-07-28 is stateless: each request carries its version and capabilities.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/changelog>
    V2026_07_28,
}

/// An era of the protocol: revisions with a handshake, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Era {
    /// The client sends `initialize` first; up to 2025-11-25.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>
    Legacy,
    /// The `_meta` of each request has the version and the capabilities; from 2026-07-28 on.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The revision to assume until the peer has named one: the first.
    pub(crate) const BEFORE_OPENING: Revision = Revision::V2024_11_05;

    /// The newest revision.
    pub const LATEST: Revision = Self::ALL[Self::ALL.len() - 1];

    /// The first revision without a handshake. All later ones have none either.
    const FIRST_MODERN: Revision = Revision::V2026_07_28;

    /// Returns its date, which is its name in messages.
    #[must_use]
    pub const fn date(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision with this date, if it is a published one.
    #[must_use]
    pub fn from_date(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.date() == date)
    }

    /// Returns its era.
    #[must_use]
    pub const fn era(self) -> Era {
        if self as u8 >= Self::FIRST_MODERN as u8 { Era::Modern } else { Era::Legacy }
    }

    /// Returns whether it has no handshake: from 2026-07-28 on.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Returns whether it has the fact.
    #[must_use]
    pub(crate) const fn has(self, fact: Since) -> bool {
        self as u8 >= fact as u8 >> FACT_BITS
    }

    /// Returns whether it has JSON-RPC batches: 2025-03-26 requires them, and 2024-11-05 allows them because it
    /// does not restrict JSON-RPC.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/basic>
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Revision::V2024_11_05 | Revision::V2025_03_26)
    }

    /// Returns whether an error response to a request whose id could not be read has `"id":null`, as JSON-RPC
    /// says. From 2025-11-25 on it has no `id`.
    #[must_use]
    pub(crate) const fn writes_null_id(self) -> bool {
        (self as u8) < Revision::V2025_11_25 as u8
    }

    /// Returns whether an unknown resource has the error code -32002.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/server/resources>
    #[must_use]
    pub(crate) const fn has_resource_not_found(self) -> bool {
        !self.is_modern()
    }

    /// Returns whether a required URL elicitation is the error -32042: only in 2025-11-25.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
    #[must_use]
    pub(crate) const fn has_url_elicitation_error(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Returns whether tasks are a part of the protocol itself: only in 2025-11-25. Later they are an extension.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks>
    #[must_use]
    pub const fn has_core_tasks(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Returns whether the server sends `notifications/elicitation/complete` after a visit to a URL: only in
    /// 2025-11-25.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
    #[must_use]
    pub(crate) const fn has_elicitation_complete(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Returns whether an HTTP stream begins with an event that has an id and no data, so that a client can
    /// resume it: only in 2025-11-25.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports>
    #[must_use]
    pub const fn primes_streams(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Returns whether elicitation schemas allow only strings, numbers, booleans and plain enums: only in
    /// 2025-06-18.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation>
    #[must_use]
    pub const fn has_plain_elicitation_only(self) -> bool {
        matches!(self, Revision::V2025_06_18)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.date())
    }
}

const FACT_BITS: u8 = 5;

// Facts and sets of revisions are bytes: beyond eight revisions both need a wider type.
const _: () = assert!(Revision::ALL.len() <= 8);

const fn since(revision: Revision, number: u8) -> u8 {
    (revision as u8) << FACT_BITS | number
}

/// A fact that came with a revision and stayed in all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u8)]
pub(crate) enum Since {
    /// Audio content in tool results and prompt messages.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/server/tools>
    Audio = since(Revision::V2025_03_26, 0),
    /// `annotations` of tools.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/server/tools>
    ToolAnnotations = since(Revision::V2025_03_26, 1),
    /// `message` of progress notifications.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/basic/utilities/progress>
    ProgressMessage = since(Revision::V2025_03_26, 2),
    /// The `completions` capability.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-03-26/server/utilities/completion>
    CompletionsCapability = since(Revision::V2025_03_26, 3),
    /// `resource_link` content.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/server/tools>
    ResourceLink = since(Revision::V2025_06_18, 0),
    /// `title` members.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/changelog>
    Title = since(Revision::V2025_06_18, 1),
    /// `_meta` of tools, prompts, resources, templates and contents.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/changelog>
    ObjectMeta = since(Revision::V2025_06_18, 2),
    /// `outputSchema` and `structuredContent`.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/server/tools>
    StructuredOutput = since(Revision::V2025_06_18, 3),
    /// `elicitation/create`.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/client/elicitation>
    Elicitation = since(Revision::V2025_06_18, 4),
    /// `lastModified` annotations.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/server/resources>
    LastModified = since(Revision::V2025_06_18, 5),
    /// `context` of a completion: the arguments that the user has filled in.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-06-18/server/utilities/completion>
    CompletionContext = since(Revision::V2025_06_18, 6),
    /// `icons` members.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/changelog>
    Icons = since(Revision::V2025_11_25, 0),
    /// `description` and `websiteUrl` of an implementation.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>
    ImplementationDetails = since(Revision::V2025_11_25, 1),
    /// Elicitation in URL mode, and the `mode` member.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation>
    ElicitationMode = since(Revision::V2025_11_25, 2),
    /// Tools in sampling.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/sampling>
    SamplingTools = since(Revision::V2025_11_25, 3),
    /// `includeContext` other than none needs the `sampling.context` capability.
    ///
    /// <https://modelcontextprotocol.io/specification/2025-11-25/client/sampling>
    SamplingContextGated = since(Revision::V2025_11_25, 4),
    /// The `extensions` capability. The changelog of 2026-07-28 names it first, but hosts of apps declare it in `initialize` too.
    ///
    /// <https://modelcontextprotocol.io/seps/2133-extensions#negotiation>
    Extensions = since(Revision::V2025_11_25, 5),
    /// Structured content that is not an object, output schemas of any type.
    ///
    /// <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>
    AnyStructured = since(Revision::V2026_07_28, 0),
}

/// A set of revisions.
///
/// ```
/// use mcp_sansio::revision::{Revision, Revisions};
/// let served = Revisions::from(Revision::V2025_06_18);
/// assert!(!served.contains(Revision::V2025_03_26));
/// assert_eq!(served.negotiate(Some(Revision::V2025_03_26)), Some(Revision::V2025_11_25));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Revisions(u8);

impl Revisions {
    /// All revisions.
    pub const ALL: Revisions = Revisions(u8::MAX >> (8 - Revision::ALL.len()));

    /// The empty set; add revisions with [`with`](Revisions::with).
    pub const NONE: Revisions = Revisions(0);

    /// Makes the set of all revisions from `oldest` on.
    #[must_use]
    pub const fn from(oldest: Revision) -> Self {
        Revisions(Self::ALL.0 & !((1 << oldest as u8) - 1))
    }

    /// Adds a revision.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Revisions(self.0 | 1 << revision as u8)
    }

    /// Returns whether the set has the revision.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & 1 << revision as u8 != 0
    }

    /// Returns whether the set has a revision of the era.
    #[must_use]
    pub const fn has_era(self, era: Era) -> bool {
        let modern = Self::from(Revision::FIRST_MODERN).0;
        match era {
            Era::Legacy => self.0 & !modern != 0,
            Era::Modern => self.0 & modern != 0,
        }
    }

    /// Returns whether the set has a revision with [batches](Revision::has_batches).
    pub(crate) const fn have_batches(self) -> bool {
        self.contains(Revision::V2024_11_05) || self.contains(Revision::V2025_03_26)
    }

    /// Returns the revisions of the set, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |&revision| self.contains(revision))
    }

    /// Returns the revisions of one era in the set, oldest first.
    pub fn of(self, era: Era) -> impl Iterator<Item = Revision> {
        self.iter().filter(move |revision| revision.era() == era)
    }

    /// Returns the revision for the answer to `initialize`: `asked` if it is in the set and has a handshake,
    /// else the newest revision of the set with a handshake. `None` if the set has no such revision. See
    /// [version
    /// negotiation](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation).
    #[must_use]
    pub fn negotiate(self, asked: Option<Revision>) -> Option<Revision> {
        let asked = asked.filter(|&asked| self.contains(asked) && !asked.is_modern());
        asked.or_else(|| self.of(Era::Legacy).last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_for_every_pair() {
        use Revision::*;
        for oldest in Revision::ALL {
            let set = Revisions::from(oldest);
            for asked in Revision::ALL {
                let expected = match asked {
                    _ if oldest.is_modern() => None,
                    _ if asked.is_modern() || asked < oldest => Some(V2025_11_25),
                    _ => Some(asked),
                };
                assert_eq!(set.negotiate(Some(asked)), expected, "{asked} of {oldest} and later");
            }
            assert_eq!(set.negotiate(None), (!oldest.is_modern()).then_some(V2025_11_25));
        }
        assert_eq!(Revisions::NONE.with(V2024_11_05).negotiate(Some(V2025_06_18)), Some(V2024_11_05));
    }

    #[test]
    fn facts_begin_where_they_should() {
        assert!(!Revision::V2024_11_05.has(Since::Audio) && Revision::V2025_03_26.has(Since::Audio));
        assert!(!Revision::V2025_03_26.has(Since::Title) && Revision::V2026_07_28.has(Since::Title));
        assert!(!Revision::V2025_06_18.has(Since::Icons) && Revision::V2025_11_25.has(Since::Icons));
        assert!(!Revision::V2025_11_25.has(Since::AnyStructured) && Revision::V2026_07_28.has(Since::AnyStructured));
        assert_eq!(Revision::from_date("2025-06-18"), Some(Revision::V2025_06_18));
        assert_eq!(Revision::from_date("2025-06-19"), None);
    }
}
