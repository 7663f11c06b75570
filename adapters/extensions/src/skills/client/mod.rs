//! Skills of a host: entries that keep the rules, verified files. They need an allocator.

pub mod active;
pub mod catalog;
mod contents;
pub mod entry;
pub mod error;
pub mod front_matter;
