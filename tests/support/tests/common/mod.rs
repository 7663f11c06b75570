//! Common parts of the tests of messages.

#![allow(dead_code, reason = "each test program uses a part")]

use mcp_sansio_test_support::Oracle;

/// The five revisions, by the letters of the project's tables.
pub(crate) const A: &str = "2024-11-05";
pub(crate) const B: &str = "2025-03-26";
pub(crate) const C: &str = "2025-06-18";
pub(crate) const D: &str = "2025-11-25";
pub(crate) const E: &str = "2026-07-28";
pub(crate) const ALL: [&str; 5] = [A, B, C, D, E];
pub(crate) const LEGACY: [&str; 4] = [A, B, C, D];

/// A message of a server that answers nothing.
pub(crate) fn server(revision: &str, message: &str) -> Result<(), String> {
    Oracle::new().server_sends(revision, None, message.as_bytes())
}

/// A message of a client that answers nothing.
pub(crate) fn client(revision: &str, message: &str) -> Result<(), String> {
    Oracle::new().client_sends(revision, None, message.as_bytes())
}

/// A server's result for a method.
pub(crate) fn answer(revision: &str, method: &str, result: &str) -> Result<(), String> {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    Oracle::new().server_sends(revision, Some(method), message.as_bytes())
}

/// A client's result for a method.
pub(crate) fn client_answer(revision: &str, method: &str, result: &str) -> Result<(), String> {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    Oracle::new().client_sends(revision, Some(method), message.as_bytes())
}

/// A server's error, its `error` member given.
pub(crate) fn error(revision: &str, error: &str) -> Result<(), String> {
    Oracle::new().server_sends(revision, None, format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#).as_bytes())
}

/// Returns a modern client's request, with these members of `params` beside `_meta`.
pub(crate) fn modern(method: &str, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}"#;
    let comma = if params.is_empty() { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}{comma}{params}}}}}"#)
}

/// A modern result of that kind, given its other members.
pub(crate) fn result(kind: &str, members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(
        r#"{{"resultType":"{kind}","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}}}{comma}{members}}}"#
    )
}

/// Checks that the oracle accepts a message.
#[track_caller]
pub(crate) fn good(judgement: Result<(), String>) {
    if let Err(wrong) = judgement {
        panic!("refused: {wrong}");
    }
}

/// Checks that the oracle refuses a message with these words.
#[track_caller]
pub(crate) fn bad(judgement: Result<(), String>, words: &str) {
    match judgement {
        Ok(()) => panic!("taken, though {words:?} should be said"),
        Err(wrong) => assert!(wrong.contains(words), "{words:?} is not said: {wrong}"),
    }
}
