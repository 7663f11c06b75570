//! Entries of skills: `Skill` and `SkillResource` of `skills/list` and `skills/get`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::json::{JsonKind, Raw, Text};

use crate::skills::client::error::SkillError;
use crate::skills::digest::Digest;
use crate::skills::uri::{SKILL_MD, SkillUri, decode, is_name};

/// The most characters of a `description`.
const DESCRIPTION: usize = 1024;

mcp_sansio::options! {
    /// The limits of a skill. Hosts must support skills up to the defaults.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SkillLimits {
        /// The most files of a skill, its `SKILL.md` included. Default: 512.
        files: usize = 512,
        /// The most bytes of all files of a skill together. Default: 16 MiB.
        total_size: u64 = 16 << 20,
        /// The most bytes of the front matter in a `SKILL.md`. Default: 64 KiB.
        front_matter: usize = 64 << 10,
        /// Skills are loaded whose files have no digests (`"resources": "dynamic"`). Default: `true`.
        dynamic: bool = true,
    }
}

/// A file of a skill, as an entry lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillResource {
    /// `uri`
    pub uri: String,
    /// `digest`: SHA-256 of the bytes of the file.
    pub digest: Digest,
    /// `size` in bytes.
    pub size: u64,
}

impl SkillResource {
    /// Checks the bytes of the file against `size` and `digest`.
    ///
    /// # Errors
    /// [`SkillError::Size`], [`SkillError::Digest`].
    pub fn verify(&self, bytes: &[u8]) -> Result<(), SkillError> {
        let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if found != self.size {
            return Err(SkillError::Size { uri: self.uri.clone(), expected: self.size, found });
        }
        if Digest::of(bytes) == self.digest { Ok(()) } else { Err(SkillError::Digest(self.uri.clone())) }
    }
}

/// `resources` of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "any other value is invalid")]
pub enum SkillResources {
    /// All files of the skill, each once.
    Listed(Vec<SkillResource>),
    /// `"dynamic"`: the files are generated and have no digests.
    Dynamic,
}

/// The entry of a skill. It keeps all rules for entries, and the limits.
///
/// A skill is the same as another one only if its server is the same too: see [`Catalog`](crate::skills::Catalog).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    uri: String,
    name: String,
    description: String,
    frontmatter: String,
    resources: SkillResources,
}

impl Skill {
    /// Reads an entry of `skills/list`.
    ///
    /// # Errors
    /// The rule that the entry breaks, or the limit. Such a skill must not be loaded; the other entries of a list may be
    /// good.
    pub fn of(entry: Raw<'_>, limits: &SkillLimits) -> Result<Self, SkillError> {
        let uri = text(entry, "uri")?;
        let Some(place) = SkillUri::of(&uri) else { return Err(SkillError::Uri(uri)) };
        let frontmatter = entry.get("frontmatter").filter(|value| value.kind() == JsonKind::Object);
        let frontmatter = frontmatter.ok_or(SkillError::Member("frontmatter"))?;
        let name = text(frontmatter, "name")?;
        if !is_name(&name) {
            return Err(SkillError::Name(name));
        }
        if place.name() != name {
            return Err(SkillError::NameInUri(uri));
        }
        let description = text(frontmatter, "description")?;
        if description.is_empty() || description.chars().nth(DESCRIPTION).is_some() {
            return Err(SkillError::Description);
        }
        let resources = entry.get("resources").ok_or(SkillError::Member("resources"))?;
        let resources = match (resources.kind(), resources.text()) {
            (JsonKind::Array, _) => SkillResources::Listed(manifest(resources, place, limits)?),
            (_, Some(text)) if text.eq_str("dynamic") => SkillResources::Dynamic,
            _ => return Err(SkillError::Member("resources")),
        };
        Ok(Skill { name, description, frontmatter: frontmatter.as_str().to_owned(), resources, uri })
    }

    /// Reads the result of `skills/get` for `uri`.
    ///
    /// # Errors
    /// As [`of`](Self::of); [`SkillError::OtherSkill`] if it is the entry of another skill.
    pub fn of_get(result: Raw<'_>, uri: &str, limits: &SkillLimits) -> Result<Self, SkillError> {
        let skill = Skill::of(result.get("skill").ok_or(SkillError::Member("skill"))?, limits)?;
        if skill.uri == uri { Ok(skill) } else { Err(SkillError::OtherSkill(skill.uri)) }
    }

    /// Returns `uri`: the `SKILL.md`.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns `frontmatter.name`. It is a label: several skills may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `frontmatter.description`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns `frontmatter`, all fields. Fields such as `allowed-tools` grant nothing unless the user has approved just
    /// that.
    #[must_use]
    pub fn frontmatter(&self) -> Raw<'_> {
        Raw::parse(self.frontmatter.as_bytes()).unwrap_or(Raw::constant("{}"))
    }

    /// Returns `resources`.
    #[must_use]
    pub const fn resources(&self) -> &SkillResources {
        &self.resources
    }

    /// Returns the listed files; of a dynamic skill none.
    #[must_use]
    pub fn files(&self) -> &[SkillResource] {
        match &self.resources {
            SkillResources::Listed(files) => files,
            SkillResources::Dynamic => &[],
        }
    }

    /// Returns whether `resources` is `"dynamic"`.
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        matches!(self.resources, SkillResources::Dynamic)
    }

    /// Returns the path of a file within the directory of the skill, decoded, for example `references/my notes.md`. No
    /// segment is empty, `.` or `..`, or has a slash, a backslash or an ASCII control character. Others may be there, such as those that
    /// change the direction of text: show them, and write them to names of files, as escapes. `None` if the URI is not within the
    /// directory.
    #[must_use]
    pub fn path_of(&self, uri: &str) -> Option<String> {
        decoded(self.place()?.path_of(uri)?)
    }

    /// Returns a digest over the URI and the digest of each listed file, for an approval that holds only as long as the files
    /// are the same. `None` for a dynamic skill: it can not be approved by its content.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Digest> {
        use sha2::Digest as _;
        let SkillResources::Listed(files) = &self.resources else { return None };
        let files: BTreeSet<(&str, Digest)> = files.iter().map(|file| (file.uri.as_str(), file.digest)).collect();
        let mut sum = sha2::Sha256::new();
        for (uri, digest) in files {
            // The digests have one length, so no two sets are one text: URIs have no zero byte.
            sum.update(uri.as_bytes());
            sum.update([0]);
            sum.update(digest.0);
        }
        Some(Digest(sum.finalize().into()))
    }

    pub(crate) fn place(&self) -> Option<SkillUri<'_>> {
        SkillUri::of(&self.uri)
    }
}

/// Reads a member that is a string.
fn text(object: Raw<'_>, member: &'static str) -> Result<String, SkillError> {
    let text = object.get(member).and_then(|value| value.text()).filter(|text| text.decoded_len().is_some());
    text.map(|text| text.to_string()).ok_or(SkillError::Member(member))
}

/// Reads the files of an entry.
fn manifest(array: Raw<'_>, place: SkillUri<'_>, limits: &SkillLimits) -> Result<Vec<SkillResource>, SkillError> {
    let mut files = Vec::new();
    let mut paths = BTreeSet::new();
    let mut total = 0u64;
    for item in array.items() {
        if files.len() == limits.files {
            return Err(SkillError::TooManyFiles { limit: limits.files });
        }
        let uri = text(item, "uri")?;
        let Some(path) = place.path_of(&uri).and_then(decoded) else { return Err(SkillError::Outside(uri)) };
        let digest = text(item, "digest")?;
        let Some(digest) = Digest::parse(&digest) else { return Err(SkillError::DigestFormat(digest)) };
        let size = item.get("size").and_then(|size| size.u64()).ok_or(SkillError::Member("size"))?;
        total = total.saturating_add(size);
        if total > limits.total_size {
            return Err(SkillError::TooLarge { limit: limits.total_size });
        }
        // Two URIs that differ in their percent-encoding are one file.
        if !paths.insert(path) {
            return Err(SkillError::ListedTwice(uri));
        }
        files.push(SkillResource { uri, digest, size });
    }
    let skill_md = |file: &SkillResource| place.path_of(&file.uri) == Some(SKILL_MD);
    if files.iter().any(skill_md) { Ok(files) } else { Err(SkillError::NoSkillMd) }
}

/// Decodes the percent-encoding of a path; `None` if it is not UTF-8.
pub(crate) fn decoded(path: &str) -> Option<String> {
    String::from_utf8(decode(path.as_bytes()).collect::<Option<Vec<u8>>>()?).ok()
}

/// A page of `skills/list`.
///
/// ```
/// use mcp_sansio::json::Raw;
/// use mcp_sansio_extensions::skills::{SkillError, SkillLimits, SkillsPage};
///
/// let page = Raw::constant(
///     r#"{"skills":[{"uri":"skill://daily/SKILL.md","resources":"dynamic",
///             "frontmatter":{"name":"daily","description":"Assemble the report of today"}},
///         {"uri":"skill://broken/SKILL.md"}],
///         "nextCursor":"2","ttlMs":1000,"cacheScope":"public"}"#,
/// );
/// let page = SkillsPage::of(page)?;
/// let mut skills = page.skills(&SkillLimits::DEFAULT);
/// assert!(skills.next().expect("two entries")?.is_dynamic());
/// assert_eq!(skills.next(), Some(Err(SkillError::Member("frontmatter"))));
/// assert!(page.next_cursor.is_some_and(|cursor| cursor.eq_str("2")));
/// # Ok::<(), SkillError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SkillsPage<'a> {
    skills: Raw<'a>,
    /// `nextCursor`; `None` on the last page.
    pub next_cursor: Option<Text<'a>>,
}

impl<'a> SkillsPage<'a> {
    /// Reads the result of `skills/list`.
    ///
    /// # Errors
    /// [`SkillError::Member`] if `skills` is not an array.
    pub fn of(result: Raw<'a>) -> Result<Self, SkillError> {
        let skills = result.get("skills").filter(|skills| skills.kind() == JsonKind::Array);
        let next_cursor = result.get("nextCursor").and_then(|cursor| cursor.text());
        Ok(SkillsPage { skills: skills.ok_or(SkillError::Member("skills"))?, next_cursor })
    }

    /// Returns the entries of the page: each a skill, or the reason why it is refused. Report refused ones to the user.
    pub fn skills<'l>(&self, limits: &'l SkillLimits) -> impl Iterator<Item = Result<Skill, SkillError>> + use<'a, 'l> {
        self.skills.items().map(move |entry| Skill::of(entry, limits))
    }
}
