//! A skill of one file.

use mcp_sansio::service::{Extension, Resource, ResourceTemplate};
use mcp_sansio_extensions::skills::server::{self, ServeSkills, ServedSkill, SkillFile};

use crate::Device;

const TEXT: &[u8] = b"---\nname: led\ndescription: How to use the LED\n---\nTurn it off in the end: `set_led`.\n";

static FILES: [SkillFile; 1] = [SkillFile::markdown("SKILL.md", TEXT)];
static SKILLS: [ServedSkill; 1] = [ServedSkill::new("skill://led/SKILL.md", "How to use the LED", &FILES)];

impl ServeSkills for Device {
    const SKILLS: &'static [ServedSkill] = &SKILLS;
}

/// The extension.
pub static EXTENSIONS: [Extension<Device>; 1] = [server::extension()];

/// The `SKILL.md`.
pub static RESOURCES: [Resource<Device>; 1] = [server::resource(&SKILLS[0])];

/// The files of all skills.
pub static TEMPLATES: [ResourceTemplate<Device>; 1] = [server::template("skill://{+path}")];
