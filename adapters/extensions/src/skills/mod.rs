//! Skills over the Model Context Protocol: the extension
//! [`io.modelcontextprotocol/skills`](https://github.com/modelcontextprotocol/ext-skills). No I/O, no runtime.
//!
//! A skill is a directory with a `SKILL.md` and further files. A server lists its skills with `skills/list`: an entry
//! has the front matter of `SKILL.md`, and the size and SHA-256 digest of each file. The files are resources.
//!
//! - [`capability`]: the names of the extension, and what a server declares.
//! - [`uri`] and [`digest`]: the rules for names, URIs and paths of files; digests.
//! - [`entry`] (with `skills-client`): [`Skill`], an entry that keeps the rules and the limits.
//! - [`active`] (with `skills-client`): [`ActiveSkill`], a skill whose `SKILL.md` is verified; it verifies each further file.
//! - [`catalog`] (with `skills-client`): the skills of several servers, apart from each other.
//! - [`front_matter`] (with `skills-client`): reads the YAML of a `SKILL.md`.
//! - [`server`]: serves skills from a constant table, without an allocator.
//!
//! Nothing here fetches: the application sends the requests when it needs a file, and gives the results to these types.
//!
//! ```
//! # #[cfg(feature = "skills-client")]
//! # fn main() -> Result<(), mcp_sansio_extensions::skills::SkillError> {
//! use mcp_sansio::json::Raw;
//! use mcp_sansio_extensions::skills::{Skill, SkillLimits};
//!
//! // An entry of `skills/list`.
//! let entry = Raw::constant(
//!     r#"{"uri":"skill://greet/SKILL.md","frontmatter":{"name":"greet","description":"How to greet"},"resources":[
//!         {"uri":"skill://greet/SKILL.md","size":57,
//!          "digest":"sha256:c3d97b1cd1f452aea9b897ba74ddfa2d7b21ce69996e52a7844902b27cd41714"}]}"#,
//! );
//! let skill = Skill::of(entry, &SkillLimits::DEFAULT)?;
//! // The result of `resources/read` for its URI.
//! let result = Raw::constant(
//!     r#"{"contents":[{"uri":"skill://greet/SKILL.md",
//!         "text":"---\nname: greet\ndescription: How to greet\n---\nSay hello.\n"}]}"#,
//! );
//! let active = skill.activate(result, &SkillLimits::DEFAULT)?;
//! assert_eq!(active.instructions(), "Say hello.\n");
//! assert!(active.resolve("references/more.md").is_err()); // not listed
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "skills-client"))]
//! # fn main() {}
//! ```

pub mod capability;
#[cfg(feature = "skills-client")]
mod client;
pub mod digest;
pub mod server;
mod sha256;
pub mod uri;

pub use capability::SkillsCapability;
#[cfg(feature = "skills-client")]
pub use client::{
    active::{self, ActiveSkill, Refreshed},
    catalog::{self, Catalog, SkillId},
    entry::{self, Skill, SkillLimits, SkillResource, SkillResources, SkillsPage},
    error::{self, SkillError},
    front_matter,
};
pub use digest::Digest;

/// The programs of the page about skills are tests too.
#[cfg(all(doctest, feature = "skills-client"))]
#[doc = include_str!("../../../../docs/skills.md")]
struct SkillsDocument;
