//! What the pages and the sources must keep to. It needs no other crate of ours, and compiles in seconds.

mod forks;
mod layers;
mod prose;
mod security_tables;
mod spec_map;
mod state_diagrams;
