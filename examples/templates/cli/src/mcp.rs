//! The MCP mode: the functions of `tally` as tools.
use std::path::{Path, PathBuf};
use std::{fs, io};

use mcp_sansio::service::{Output, Service, tool};

use crate::tally::{self, Counts, Word};

/// The folder whose files a model may read.
struct Folder(PathBuf);

impl Folder {
    fn open(folder: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Folder(fs::canonicalize(folder)?))
    }

    /// Reads a file. The path comes from the model: `..` and symbolic links must not lead out of the folder.
    fn read(&self, path: &str) -> Result<String, String> {
        let read = || match fs::canonicalize(self.0.join(path))? {
            file if file.starts_with(&self.0) => fs::read_to_string(file),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        };
        read().map_err(|error| format!("{path}: {error}")) // the model reads this, and can try another path
    }
}

/// Counts the lines, words and bytes of a file
#[tool(read_only, open_world = false)]
fn count(folder: &mut Folder, #[arguments(min_length = 1)] path: &str) -> Result<Counts, String> {
    Ok(tally::count(&folder.read(path)?))
}

#[derive(Output)]
struct Words {
    words: Vec<Word>,
}

/// Lists the most frequent words of a file
#[tool(read_only, open_world = false)]
fn top(
    folder: &mut Folder,
    #[arguments(min_length = 1)] path: &str,
    /// The number of words
    #[arguments(default = 10, minimum = 1, maximum = 100)]
    most: usize,
) -> Result<Words, String> {
    Ok(Words { words: tally::top(&folder.read(path)?, most) })
}

const SERVICE: Service<'static, Folder> = Service::new("tally", env!("CARGO_PKG_VERSION")).tools(&[COUNT, TOP]);

/// Serves stdio until the host closes it. Nothing else may print to standard output meanwhile.
pub fn serve(folder: &str) -> io::Result<()> {
    mcp_sansio_blocking::serve_stdio(&SERVICE, &mut Folder::open(folder)?)
}

#[cfg(test)]
mod tests {
    use mcp_sansio::revision::Revision;
    use mcp_sansio_host::testing::Conversation;
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_in_all_revisions() {
        for revision in Revision::ALL {
            let folder = Folder::open(env!("CARGO_MANIFEST_DIR")).expect("the folder of this package");
            let mut conversation = Conversation::new(const { &SERVICE }, folder);
            conversation.open(revision);

            let reply = conversation.call("count", &json!({ "path": "src/../src/mcp.rs" }));
            assert!(reply.text().contains(&format!(r#""bytes":{}"#, include_str!("mcp.rs").len())), "{reply}");
            let reply = conversation.call("top", &json!({ "path": "src/mcp.rs", "most": 1 }));
            assert!(reply.text().starts_with(r#"{"words":[{"word":""#), "{reply}");
            let reply = conversation.call("top", &json!({ "path": "src/mcp.rs", "most": 101 }));
            assert!(reply.is_error() && reply.text().contains("`most`"), "{reply}");
        }
    }

    #[test]
    fn the_folder_is_not_left() {
        let folder = Folder::open(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).expect("the folder of the sources");
        let mut conversation = Conversation::new(const { &SERVICE }, folder);
        conversation.open(Revision::V2026_07_28);
        for path in ["../Cargo.toml", "/etc/passwd", "nothing"] {
            assert!(conversation.call("count", &json!({ "path": path })).is_error(), "{path}");
        }
    }
}
