//! The Model Context Protocol as a sans-IO state machine.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod json;
pub mod sink;

pub use sink::Full;
