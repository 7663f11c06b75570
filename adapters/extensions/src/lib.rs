//! Extensions of the [Model Context Protocol](https://modelcontextprotocol.io), made with the contract for extensions of
//! `mcp-sansio` alone: without I/O, and for servers without an allocator. Each has a feature, and nothing of the others is compiled.
//!
//! | module | extension | features |
//! |---|---|---|
//! | `tasks` | `io.modelcontextprotocol/tasks`, and the tasks of 2025-11-25: answers that are fetched later | `tasks`, `tasks-client`, `alloc` |
//! | `skills` | `io.modelcontextprotocol/skills`: directories with instructions and files | `skills`, `skills-client`, `windows` |
//! | `apps` | `io.modelcontextprotocol/ui`: pages that a host shows beside the results of tools | `apps`, `windows` |
// Which feature an item needs: shown by docs.rs, which documents with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(feature = "apps")]
pub mod apps;
#[cfg(feature = "skills")]
pub mod skills;
#[cfg(feature = "tasks")]
pub mod tasks;

/// The programs of the README are tests too.
#[cfg(all(doctest, feature = "apps", feature = "skills-client", feature = "tasks"))]
#[doc = include_str!("../README.md")]
struct Readme;
