//! The Model Context Protocol as a sans-IO state machine.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod frame;
pub mod json;
pub mod protocol;
pub mod records;
pub mod revision;
pub mod rpc;
pub mod server;
pub mod service;
pub mod session;
pub mod sink;
pub mod store;

pub use sink::Full;
