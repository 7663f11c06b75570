//! A tiny HTTP/1.1 and server-sent events handler for [`mcp_sansio`], itself without I/O, clock or allocator.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(test)]
extern crate std;

pub use mcp_sansio;

pub mod wire;
