//! A host with skills. It loads a skill only when it is to use it, and only what it can verify.

use mcp_sansio_blocking::client::OwnedResult;
use mcp_sansio_extensions::skills::{ActiveSkill, Skill, SkillError, SkillLimits, SkillsPage};

/// The scenario in which no skill is asked for.
const UNUSED: &str = "sep-2640-client-no-prefetch";

/// Returns the listed skills that the scenario asks for: all or none.
pub(crate) fn to_load(pages: &[OwnedResult], scenario: &str) -> Vec<Skill> {
    let mut skills = Vec::new();
    for page in pages {
        match SkillsPage::of(page.raw()) {
            Ok(page) => skills.extend(
                page.skills(&SkillLimits::DEFAULT)
                    .filter_map(|skill| skill.inspect_err(|error| println!("a skill is left out: {error}")).ok()),
            ),
            Err(error) => println!("no skills: {error}"),
        }
    }
    if scenario == UNUSED { Vec::new() } else { skills }
}

/// Verifies a `SKILL.md`. `None`, with a message, if the skill is refused.
pub(crate) fn activate(skill: Skill, result: &OwnedResult) -> Option<ActiveSkill> {
    let name = skill.name().to_owned();
    let active = skill.activate(result.raw(), &SkillLimits::DEFAULT);
    active.inspect_err(|error| eprintln!("the skill {name} is refused: {error}")).ok()
}

/// Returns the files that the skill has besides its `SKILL.md`: the task of this host needs all.
pub(crate) fn needed(active: &ActiveSkill) -> Vec<String> {
    let files = active.skill().files().iter().map(|file| file.uri.clone());
    files.filter(|uri| uri != active.skill().uri()).collect()
}

/// Prints whether a file could be used.
pub(crate) fn show(uri: &str, file: &Result<Vec<u8>, SkillError>) {
    match file {
        Ok(bytes) => println!("{uri}: {} bytes", bytes.len()),
        Err(error) => println!("{uri} is refused: {error}"),
    }
}
