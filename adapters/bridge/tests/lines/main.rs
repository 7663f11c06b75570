//! The bridge between a host and a server that the tests play, line by line.

mod bytes;
mod limits;
mod losses;
mod questions;
mod rig;
