//! What a server says on stderr.

use mcp_sansio::client::owned;

/// What is given each line of a server's stderr.
pub type OnLine = Box<dyn FnMut(&[u8])>;

/// What becomes of what a server writes to its stderr.
pub type Stderr = owned::Stderr<OnLine>;

/// Takes what comes.
pub(super) type Log = owned::StderrLog<OnLine>;
