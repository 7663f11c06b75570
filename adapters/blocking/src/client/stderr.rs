//! The stderr of a server.

/// A function that gets each line of a server's stderr.
pub type OnLine = Box<dyn FnMut(&[u8])>;

/// The use of the text that a server writes to its stderr.
pub type Stderr = mcp_sansio_host::Stderr<OnLine>;

/// Takes the bytes of the pipe.
pub(super) type Log = mcp_sansio_host::StderrLog<OnLine>;
