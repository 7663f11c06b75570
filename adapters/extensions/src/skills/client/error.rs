//! The one error type of the client.

use alloc::string::String;
use core::fmt;

use crate::skills::client::front_matter::FrontMatterError;

/// The reason why a skill, or a file of it, is refused.
///
/// It is no error of the protocol: the server has answered, and the answer must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillError {
    /// A member of the entry or of the result is missing or has another type than it should.
    Member(&'static str),
    /// `uri` is not the URI of a `SKILL.md`.
    Uri(String),
    /// `frontmatter.name` breaks the rules for names.
    Name(String),
    /// The last segment of the directory is not `frontmatter.name`.
    NameInUri(String),
    /// `frontmatter.description` is empty or has more than 1,024 characters.
    Description,
    /// A digest is not `sha256:` and 64 lower-case hexadecimal digits.
    DigestFormat(String),
    /// `resources` has more files than the limit.
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// The files have more bytes than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// `resources` has a file that is not within the directory of the skill.
    Outside(String),
    /// A file is in `resources` twice, or a skill is in a list twice.
    ListedTwice(String),
    /// `resources` does not have the `SKILL.md`.
    NoSkillMd,
    /// The result of `skills/get` is the entry of another skill.
    OtherSkill(String),
    /// The host does not load skills whose files have no digests: `resources` is `"dynamic"`.
    Dynamic,
    /// The result of `resources/read` is not the content of exactly this file.
    Contents(String),
    /// A file has another size than its entry says.
    Size {
        /// The file.
        uri: String,
        /// `size` of its entry.
        expected: u64,
        /// The bytes that came.
        found: u64,
    },
    /// A file has another digest than its entry says.
    Digest(String),
    /// The `SKILL.md` has no front matter, or it cannot be read.
    FrontMatter(FrontMatterError),
    /// A field of the front matter is not the same in the `SKILL.md` and in the entry.
    FrontMatterDiffers(String),
    /// A file within the skill is not in `resources`.
    Unlisted(String),
    /// A reference does not lead to a file within the skill.
    Reference(String),
}

impl SkillError {
    /// Returns whether the entry may be older than the files: `skills/get` for the skill gives the current one. The
    /// content must not be used, and an approval for the old files does not hold for others.
    #[must_use]
    pub const fn is_stale(&self) -> bool {
        matches!(
            self,
            SkillError::Size { .. }
                | SkillError::Digest(_)
                | SkillError::FrontMatterDiffers(_)
                | SkillError::Unlisted(_)
        )
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkillError::Member(member) => write!(f, "`{member}` is missing or not as it should be"),
            SkillError::Uri(uri) => write!(f, "{} is not the URI of a SKILL.md", Shown(uri)),
            SkillError::Name(name) => write!(f, "{} is not a valid name of a skill", Shown(name)),
            SkillError::NameInUri(uri) => write!(f, "the directory of {} is not named as the skill", Shown(uri)),
            SkillError::Description => f.write_str("the description is empty or longer than 1,024 characters"),
            SkillError::DigestFormat(text) => write!(f, "{} is not a SHA-256 digest", Shown(text)),
            SkillError::TooManyFiles { limit } => write!(f, "the skill has more than {limit} files"),
            SkillError::TooLarge { limit } => write!(f, "the files of the skill have more than {limit} bytes"),
            SkillError::Outside(uri) => write!(f, "{} is not within the directory of the skill", Shown(uri)),
            SkillError::ListedTwice(uri) => write!(f, "{} is listed twice", Shown(uri)),
            SkillError::NoSkillMd => f.write_str("the SKILL.md is not listed in `resources`"),
            SkillError::OtherSkill(uri) => write!(f, "the server answered with another skill, {}", Shown(uri)),
            SkillError::Dynamic => f.write_str("the skill is dynamic: its files have no digests"),
            SkillError::Contents(uri) => write!(f, "the answer is not the content of {}", Shown(uri)),
            SkillError::Size { uri, expected, found } => {
                write!(f, "{} has {found} bytes, its entry says {expected}", Shown(uri))
            }
            SkillError::Digest(uri) => write!(f, "the digest of {} is not the one of its entry", Shown(uri)),
            SkillError::FrontMatter(error) => error.fmt(f),
            SkillError::FrontMatterDiffers(field) => {
                write!(f, "{} of the front matter is not the same in SKILL.md and in the entry", Shown(field))
            }
            SkillError::Unlisted(uri) => write!(f, "{} is not listed in the entry of the skill", Shown(uri)),
            SkillError::Reference(text) => write!(f, "{} does not lead to a file within the skill", Shown(text)),
        }
    }
}

impl core::error::Error for SkillError {}

impl From<FrontMatterError> for SkillError {
    fn from(error: FrontMatterError) -> Self {
        SkillError::FrontMatter(error)
    }
}

/// A text of the server in an error: without control characters, and not endless.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 200;
        self.0.chars().take(MOST).try_for_each(|char| write!(f, "{}", char.escape_debug()))?;
        if self.0.chars().nth(MOST).is_some() { f.write_str("…") } else { Ok(()) }
    }
}
