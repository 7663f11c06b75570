//! The flow of a client to its token. It needs an allocator.

pub mod config;
mod demand;
pub mod error;
pub mod flow;
mod metadata;
mod registration;
mod requests;
mod state;
pub mod steps;
pub mod store;
mod text;
pub mod well_known;
