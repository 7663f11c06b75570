//! Extensions of the [Model Context Protocol](https://modelcontextprotocol.io), made only with the public contract for extensions
//! of `mcp-sansio`: without I/O, and for servers without an allocator.
//!
//! | module | extension | features |
//! |---|---|---|
//! | `tasks` | `io.modelcontextprotocol/tasks`, and the tasks of 2025-11-25: answers that are fetched later | `tasks`, `alloc` |
//! | `events` | `io.modelcontextprotocol/events`: what happens at the server, for clients that subscribe | none for servers; `alloc`, `webhooks` |
//! | `skills` | `io.modelcontextprotocol/skills`: directories with instructions and files | none for servers; `skills-client` |
//! | `apps` | `io.modelcontextprotocol/ui`: pages that a host shows beside the results of tools | none |
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod apps;
pub mod events;
mod shared;
pub mod skills;
#[cfg(feature = "tasks")]
pub mod tasks;
