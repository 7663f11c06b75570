//! A skill that is in use.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::json::Raw;

use crate::skills::client::contents::bytes_of;
use crate::skills::client::entry::{Skill, SkillLimits, decoded};
use crate::skills::client::error::SkillError;
use crate::skills::client::front_matter::{FrontMatter, FrontMatterError, split};

/// A skill whose `SKILL.md` is verified. Keep it for as long as the `SKILL.md` is in the context of a model: it holds the
/// entry, and only files of that entry are verified.
///
/// The content comes from a server: tag it with the server where it enters the context of a model, and let it start
/// nothing without approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSkill {
    skill: Skill,
    limits: SkillLimits,
    skill_md: String,
    /// The place in `skill_md` at which the instructions begin.
    body: usize,
    /// The bytes that a dynamic skill has sent.
    retrieved: u64,
}

/// The meaning of a new entry for a skill in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "either it is the same or not")]
pub enum Refreshed {
    /// The entry is the same: the skill stays in use.
    Same(ActiveSkill),
    /// The entry is another one. An approval of the content is revoked; the skill must be activated again.
    Changed(Skill),
}

impl Skill {
    /// Verifies the `SKILL.md`: its size, its digest, and each field of its front matter. Call it with the result of
    /// `resources/read` for [`uri`](Self::uri) when the skill is needed and the user has approved it, not earlier.
    ///
    /// # Errors
    /// The reason why the skill must not be loaded. After an error that [is stale](SkillError::is_stale) the result of
    /// `skills/get` may help.
    pub fn activate(self, result: Raw<'_>, limits: &SkillLimits) -> Result<ActiveSkill, SkillError> {
        ActiveSkill::new(self, result, *limits)
    }
}

impl ActiveSkill {
    fn new(skill: Skill, result: Raw<'_>, limits: SkillLimits) -> Result<Self, SkillError> {
        if skill.is_dynamic() && !limits.dynamic {
            return Err(SkillError::Dynamic);
        }
        let uri = skill.uri().to_owned();
        let mut active = ActiveSkill { skill, limits, skill_md: String::new(), body: 0, retrieved: 0 };
        let bytes = active.verified(&uri, result)?;
        let (yaml, body) = split(&bytes)?;
        if yaml.len() > limits.front_matter {
            return Err(FrontMatterError::TooLarge.into());
        }
        if let Some(field) = FrontMatter::read(yaml)?.difference(active.skill.frontmatter()) {
            return Err(SkillError::FrontMatterDiffers(field));
        }
        active.body = bytes.len() - body.len();
        active.skill_md = String::from_utf8(bytes).map_err(|_| FrontMatterError::NotUtf8)?;
        Ok(active)
    }

    /// Returns the entry that is held.
    #[must_use]
    pub const fn skill(&self) -> &Skill {
        &self.skill
    }

    /// Returns the whole `SKILL.md`.
    #[must_use]
    pub fn skill_md(&self) -> &str {
        &self.skill_md
    }

    /// Returns the text of the `SKILL.md` behind its front matter.
    #[must_use]
    pub fn instructions(&self) -> &str {
        self.skill_md.get(self.body..).unwrap_or_default()
    }

    /// Returns the URI of the file that a text of the skill refers to: a path relative to the directory of the skill, such
    /// as `references/forms.md`, or a URI. A fragment (`#part`) is left out.
    ///
    /// # Errors
    /// [`SkillError::Reference`] if it does not lead to a file within the skill, [`SkillError::Unlisted`] if the entry does
    /// not list that file: it must not be read.
    pub fn resolve(&self, reference: &str) -> Result<String, SkillError> {
        let wrong = || SkillError::Reference(reference.to_owned());
        let target = reference.split('#').next().unwrap_or_default();
        let place = self.skill.place().ok_or_else(wrong)?;
        let path = match place.path_of(target) {
            Some(path) => path.to_owned(),
            // A URI of another directory, of another server or of the web.
            None if target.contains(':') => return Err(wrong()),
            None => joined(target).ok_or_else(wrong)?,
        };
        let uri = alloc::format!("{}/{path}", place.directory());
        let path = self.skill.path_of(&uri).ok_or_else(wrong)?;
        if self.skill.is_dynamic() {
            return Ok(uri);
        }
        let mut files = self.skill.files().iter();
        let listed = files.find(|file| self.skill.path_of(&file.uri).is_some_and(|other| other == path));
        listed.map(|file| file.uri.clone()).ok_or(SkillError::Unlisted(uri))
    }

    /// Returns the verified bytes of a file out of the result of `resources/read` for `uri`, which
    /// [`resolve`](Self::resolve) has returned.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`] if the entry does not list the file; [`SkillError::Size`], [`SkillError::Digest`] and others
    /// if it is not the file of the entry. The content must not be used.
    pub fn file(&mut self, uri: &str, result: Raw<'_>) -> Result<Vec<u8>, SkillError> {
        self.verified(uri, result)
    }

    /// Compares the result of `skills/get` with the entry that is held. Call it after an error that
    /// [is stale](SkillError::is_stale).
    ///
    /// # Errors
    /// As [`Skill::of_get`]: the skill must not be used any more.
    pub fn refresh(self, result: Raw<'_>) -> Result<Refreshed, SkillError> {
        let skill = Skill::of_get(result, self.skill.uri(), &self.limits)?;
        // Without digests nothing shows that the files are the same.
        let same = skill == self.skill && !skill.is_dynamic();
        Ok(if same { Refreshed::Same(self) } else { Refreshed::Changed(skill) })
    }

    fn verified(&mut self, uri: &str, result: Raw<'_>) -> Result<Vec<u8>, SkillError> {
        if self.skill.is_dynamic() {
            if self.skill.path_of(uri).is_none() {
                return Err(SkillError::Outside(uri.to_owned()));
            }
            let limit = self.limits.total_size;
            let too_large = |error| match error {
                SkillError::Size { .. } => SkillError::TooLarge { limit },
                error => error,
            };
            let bytes = bytes_of(result, uri, limit.saturating_sub(self.retrieved)).map_err(too_large)?;
            self.retrieved = self.retrieved.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            return Ok(bytes);
        }
        let file = self.skill.files().iter().find(|file| file.uri == uri);
        let file = file.ok_or_else(|| SkillError::Unlisted(uri.to_owned()))?;
        let bytes = bytes_of(result, uri, file.size)?;
        file.verify(&bytes)?;
        Ok(bytes)
    }
}

/// Resolves `.` and `..` of a relative path; `None` if it leads out of the directory or to none of its files.
fn joined(path: &str) -> Option<String> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match decoded(segment)?.as_str() {
            "." => {}
            ".." => drop(segments.pop()?),
            _ => segments.push(segment),
        }
    }
    // Texts have paths with spaces as they are; a URI has them encoded.
    Some(segments.join("/").replace(' ', "%20"))
}
