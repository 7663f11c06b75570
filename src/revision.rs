//! Everything that differs between the five published revisions, in one place.
//!
//! A fact that came with a revision and stayed is a [`Since`]; the few that also went away again are in
//! [`Method`](crate::protocol::Method)'s table. Nothing else in the crate compares revisions.

use core::fmt;

/// A published revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05: the first one.
    V2024_11_05,
    /// 2025-03-26: batches, audio, tool annotations, Streamable HTTP.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, resource links, titles.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, tools in sampling.
    V2025_11_25,
    /// 2026-07-28: stateless; every request says its version and capabilities.
    V2026_07_28,
}

/// The two ways of opening: a handshake, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[allow(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum Era {
    /// `initialize` first; up to 2025-11-25.
    Legacy,
    /// Version and capabilities in every request's `_meta`; from 2026-07-28.
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

    /// The date that names it on the wire.
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

    /// The revision of that date, if it is a published one.
    #[must_use]
    pub fn from_date(date: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.date() == date)
    }

    /// How it opens.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Revision::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether it is of the stateless era.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }

    /// Whether it knows something.
    #[must_use]
    pub const fn has(self, fact: Since) -> bool {
        self as u8 >= fact as u8 >> FACT_BITS
    }

    /// Whether it accepts JSON-RPC batches: a MUST in 2025-03-26; 2024-11-05 is JSON-RPC unrestricted.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Revision::V2024_11_05 | Revision::V2025_03_26)
    }

    /// Whether an error whose request id could not be read says `"id":null` (as JSON-RPC has it) or has no `id`.
    #[must_use]
    pub const fn writes_null_id(self) -> bool {
        (self as u8) < Revision::V2025_11_25 as u8
    }

    /// Whether the error code for an unknown resource is the older -32002.
    #[must_use]
    pub const fn has_resource_not_found(self) -> bool {
        !self.is_modern()
    }

    /// Whether a required URL elicitation is an error of its own (-32042): 2025-11-25 only.
    #[must_use]
    pub const fn has_url_elicitation_error(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Whether elicitation schemas are limited to strings, numbers, booleans and plain enums: 2025-06-18 only.
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

const fn since(revision: Revision, number: u8) -> u8 {
    (revision as u8) << FACT_BITS | number
}

/// What a revision brought and all later ones kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
#[repr(u8)]
pub enum Since {
    /// Audio content in tool results and prompt messages.
    Audio = since(Revision::V2025_03_26, 0),
    /// `annotations` of tools.
    ToolAnnotations = since(Revision::V2025_03_26, 1),
    /// `message` of progress notifications.
    ProgressMessage = since(Revision::V2025_03_26, 2),
    /// The `completions` capability.
    CompletionsCapability = since(Revision::V2025_03_26, 3),
    /// `resource_link` content.
    ResourceLink = since(Revision::V2025_06_18, 0),
    /// `title` members.
    Title = since(Revision::V2025_06_18, 1),
    /// `_meta` of tools, prompts, resources, templates and contents.
    ObjectMeta = since(Revision::V2025_06_18, 2),
    /// `outputSchema` and `structuredContent`.
    StructuredOutput = since(Revision::V2025_06_18, 3),
    /// `elicitation/create`.
    Elicitation = since(Revision::V2025_06_18, 4),
    /// `lastModified` annotations.
    LastModified = since(Revision::V2025_06_18, 5),
    /// `context` of a completion: the arguments that are known already.
    CompletionContext = since(Revision::V2025_06_18, 6),
    /// `icons` members.
    Icons = since(Revision::V2025_11_25, 0),
    /// `description` and `websiteUrl` of an implementation.
    ImplementationDetails = since(Revision::V2025_11_25, 1),
    /// Elicitation in URL mode, and the `mode` member.
    ElicitationMode = since(Revision::V2025_11_25, 2),
    /// Tools in sampling.
    SamplingTools = since(Revision::V2025_11_25, 3),
    /// `includeContext` other than none needs the `sampling.context` capability.
    SamplingContextGated = since(Revision::V2025_11_25, 4),
    /// Structured content that is not an object, output schemas of any type.
    AnyStructured = since(Revision::V2026_07_28, 0),
    /// The `extensions` capability.
    Extensions = since(Revision::V2026_07_28, 1),
}

/// A set of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Revisions(u8);

impl Revisions {
    /// All five.
    pub const ALL: Revisions = Revisions(0b1_1111);

    /// None; add with [`with`](Revisions::with).
    pub const NONE: Revisions = Revisions(0);

    /// Those from `oldest` on.
    #[must_use]
    pub const fn from(oldest: Revision) -> Self {
        Revisions(Self::ALL.0 & !((1 << oldest as u8) - 1))
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Revisions(self.0 | 1 << revision as u8)
    }

    /// Whether a revision is in it.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & 1 << revision as u8 != 0
    }

    /// Whether there is one of an era.
    #[must_use]
    pub const fn has_era(self, era: Era) -> bool {
        let modern = 1 << Revision::V2026_07_28 as u8;
        match era {
            Era::Legacy => self.0 & !modern != 0,
            Era::Modern => self.0 & modern != 0,
        }
    }

    /// Whether there is one with [batches](Revision::has_batches).
    pub(crate) const fn have_batches(self) -> bool {
        self.contains(Revision::V2024_11_05) || self.contains(Revision::V2025_03_26)
    }

    /// Its members, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |&revision| self.contains(revision))
    }

    /// Its members of one era, oldest first.
    pub fn of(self, era: Era) -> impl Iterator<Item = Revision> {
        self.iter().filter(move |revision| revision.era() == era)
    }

    /// What `initialize` is answered with: the revision asked for if it is legacy and in the set, else the newest
    /// legacy one of the set; `None` if the set has no legacy revision.
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
                let expected = match oldest {
                    V2026_07_28 => None,
                    _ if asked.is_modern() || asked < oldest => Some(V2025_11_25),
                    _ => Some(asked),
                };
                assert_eq!(set.negotiate(Some(asked)), expected, "{asked} of {oldest} and later");
            }
            assert_eq!(set.negotiate(None), (oldest != V2026_07_28).then_some(V2025_11_25));
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
