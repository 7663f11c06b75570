//! The Model Context Protocol over HTTP, sans-IO and without an allocator.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub use mcp_sansio;

pub mod endpoint;
pub mod wire;
