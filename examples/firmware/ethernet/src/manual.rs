//! The manual of the board as a skill: its files are constants in flash, with their digests.

use mcp_sansio::service::{Extension, Resource, ResourceTemplate};
use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};

use crate::device::State;
use crate::memory::BODY;

static FILES: [SkillFile; 2] = [
    SkillFile::markdown("SKILL.md", include_bytes!("../manual/SKILL.md")),
    // Larger than the output: it goes out in windows.
    SkillFile::markdown("references/faults.md", include_bytes!("../manual/references/faults.md")),
];

static SKILLS: [ServedSkill; 1] = [ServedSkill::new(
    "skill://thermometer/SKILL.md",
    "How to measure with this board, what its numbers mean, and what to do when it is too warm",
    &FILES,
)
.fields(r#"{"license":"MIT OR Apache-2.0"}"#)];

// An entry is never cut.
const _: () = assert!(SKILLS[0].room <= BODY);

impl ServeSkills for State {
    const SKILLS: &'static [ServedSkill] = &SKILLS;
}

pub(crate) const EXTENSION: Extension<State> = server::extension();
pub(crate) static TEMPLATES: [ResourceTemplate<State>; 1] = [server::template("skill://{+path}")];

/// The resource of the `SKILL.md`, for the list of resources.
pub(crate) const RESOURCE: Resource<State> = server::resource(&SKILLS[0]);
