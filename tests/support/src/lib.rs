//! The oracles of mcp-sansio: they judge every message that the engine emits in any test.
//!
//! A message passes only if all of these accept it:
//!
//! 1. **Framing**: one line of valid UTF-8 JSON, no object with a key twice ([`strict_json`]).
//! 2. **Rules** that no schema contains: the envelope, the sender of each message, the places of `resultType`,
//!    caching members and error codes, and that no message has a member that its revision does not have (`shapes.rs`,
//!    the project's table of revisions as code).
//! 3. **The official JSON schema** of the revision, where the specification is there: in
//!    `<workspace>/../shared/spec`, or in the directory that `MCP_SPEC_DIR` names. Where it is missing, the check is
//!    skipped, with one line on stderr, and counted ([`Oracle::skipped`]); with `MCP_SPEC_REQUIRED=1` it panics.
//! 4. **Foreign types**: it decodes as the type which `rust-mcp-schema` has for it.
//!
//! ```
//! use mcp_sansio_test_support::Oracle;
//!
//! let oracle = Oracle::new();
//! let pong = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
//! oracle.server_sends("2025-06-18", Some("ping"), pong).unwrap();
//! oracle.server_sends("2026-07-28", Some("ping"), pong).unwrap_err();
//! ```
//!
//! # Exceptions from the official schema
//!
//! `exceptions.rs` rewrites these parts before the schema and the foreign types judge the message; the rules judge
//! them:
//!
//! - a fractional number in elicitation `content` (the schemas say integer, the pages do not);
//! - an error reply whose `id` could not be read (`null` or, in an HTTP body, absent in A to C);
//! - batches in 2024-11-05 (each element is judged by itself, as in 2025-03-26);
//! - `null` and fractions in sampling `metadata` and in the settings of experimental capabilities and extensions of
//!   2026-07-28: the definition `JSONValue` has neither.
//!
//! Exceptions from the types of `rust-mcp-schema` alone:
//!
//! - ids beyond an `i64`;
//! - fractional `minimum` and `maximum` of elicitation in 2025-06-18 (wrong in its version 0.10).
//!
//! Revisions are called A to E in the source: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.

mod cuts;
mod envelope;
mod examples;
mod exceptions;
mod json;
mod methods;
mod oracle;
mod revision;
mod rules;
mod schema;
mod shape;
mod shapes;
#[cfg(test)]
mod shapes_test;
mod transcript;
mod types;

pub use cuts::cuts;
pub use examples::{Example, spec_examples};
pub use json::strict_json;
pub use oracle::Oracle;
pub use revision::Revision;
pub use schema::spec_dir;
pub use transcript::{Line, Transcript, golden_client, golden_server};
