//! The names of the extension, and its declaration by a server.

use mcp_sansio::json::Raw;

/// The identifier of the extension in `capabilities.extensions`.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The method that lists the skills of a server. A client calls it only where the server has declared the extension.
pub const LIST: &str = "skills/list";
/// The method that returns the entry of one skill; its parameter is `uri`.
pub const GET: &str = "skills/get";
/// The method that lists the direct children of a directory, if [`SkillsCapability::directory_read`].
pub const READ_DIRECTORY: &str = "resources/directory/read";
/// The `mimeType` of a directory.
pub const DIRECTORY: &str = "inode/directory";
/// The `mimeType` of a `SKILL.md`.
pub const MARKDOWN: &str = "text/markdown";

/// The settings of the extension that a server declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SkillsCapability {
    /// `directoryRead`: the server has the method [`READ_DIRECTORY`]. Default: `false`. Clients must not call it otherwise.
    pub directory_read: bool,
}

impl SkillsCapability {
    /// Reads the `capabilities` of a server. `None` if it does not declare the extension.
    ///
    /// ```
    /// use mcp_sansio::json::Raw;
    /// use mcp_sansio_extensions::skills::SkillsCapability;
    ///
    /// let capabilities = Raw::constant(r#"{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}"#);
    /// assert!(SkillsCapability::of(capabilities).is_some_and(|skills| skills.directory_read));
    /// assert_eq!(SkillsCapability::of(Raw::constant("{}")), None);
    /// ```
    #[must_use]
    pub fn of(capabilities: Raw<'_>) -> Option<Self> {
        let settings = capabilities.get("extensions")?.get(EXTENSION)?;
        if settings.kind() != mcp_sansio::json::JsonKind::Object {
            return None;
        }
        Some(SkillsCapability {
            directory_read: settings.get("directoryRead").and_then(|flag| flag.bool()).unwrap_or(false),
        })
    }
}
