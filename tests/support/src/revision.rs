/// A protocol revision, by the letter that the project's tables use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05
    A,
    /// 2025-03-26
    B,
    /// 2025-06-18
    C,
    /// 2025-11-25
    D,
    /// 2026-07-28, the first modern one
    E,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [Revision::A, Revision::B, Revision::C, Revision::D, Revision::E];

    pub(crate) const NEWEST: Revision = Self::ALL[Self::ALL.len() - 1];

    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Revision::A => "2024-11-05",
            Revision::B => "2025-03-26",
            Revision::C => "2025-06-18",
            Revision::D => "2025-11-25",
            Revision::E => "2026-07-28",
        }
    }

    /// Returns the revision with this name, or an error: a test that names another one is wrong.
    pub fn parse(name: &str) -> Result<Revision, String> {
        Revision::ALL.into_iter().find(|r| r.name() == name).ok_or_else(|| format!("no such revision: {name:?}"))
    }

    /// Returns whether it is stateless; the others have a handshake.
    pub fn is_modern(self) -> bool {
        self >= Revision::E
    }

    /// Returns whether arrays of messages are allowed.
    pub(crate) fn has_batches(self) -> bool {
        matches!(self, Revision::A | Revision::B)
    }
}
