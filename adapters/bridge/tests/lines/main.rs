//! The bridge between a host and a server that the tests play, line by line; and between several hosts and a server.

mod bytes;
mod hosts;
mod hub;
mod limits;
mod losses;
mod questions;
mod rig;
mod settings;
mod streams;
