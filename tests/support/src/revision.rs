/// A protocol revision, by the letters which the project's tables use.
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
    /// 2026-07-28, the modern one
    E,
}

impl Revision {
    /// All five, oldest first.
    pub const ALL: [Revision; 5] = [Revision::A, Revision::B, Revision::C, Revision::D, Revision::E];

    /// As it is written on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Revision::A => "2024-11-05",
            Revision::B => "2025-03-26",
            Revision::C => "2025-06-18",
            Revision::D => "2025-11-25",
            Revision::E => "2026-07-28",
        }
    }

    /// The revision of that name; a test that asks for another one has a typo.
    pub fn parse(name: &str) -> Result<Revision, String> {
        Revision::ALL.into_iter().find(|r| r.name() == name).ok_or_else(|| format!("no such revision: {name:?}"))
    }

    /// Whether it is stateless; the others open with a handshake.
    pub fn is_modern(self) -> bool {
        self == Revision::E
    }

    /// Whether an array of messages may be sent.
    pub(crate) fn has_batches(self) -> bool {
        matches!(self, Revision::A | Revision::B)
    }
}
