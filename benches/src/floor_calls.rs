//! The lines that the floors of the clients write: programs without a library, which look at no answer.

use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::calls::Asked;

/// Opens the session.
pub const INITIALIZE: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"1"}}}"#,
    "\n"
)
.as_bytes();

/// Follows the answer to the first line.
pub const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// The call, whose answer fits one read.
pub const CALL: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","#,
    r#""arguments":{"text":"0123456789abcdef0123456789abcdef"}}}"#,
    "\n"
)
.as_bytes();

/// Starts the server.
///
/// # Panics
/// If it cannot be started.
pub fn start(asked: &Asked) -> (Child, ChildStdin, ChildStdout) {
    let mut server = asked.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        unreachable!("both are pipes")
    };
    (server, input, output)
}

/// Panics if an answer is none, or not whole.
pub fn check(answer: &[u8]) {
    assert_eq!(answer.last(), Some(&b'\n'), "the server has ended, or the answer is too long");
}
