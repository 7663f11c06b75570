//! The Model Context Protocol over HTTP, sans-IO and without an allocator.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod endpoint;
