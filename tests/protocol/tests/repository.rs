//! What the pages and the sources must keep to: a program that compiles in seconds.

mod forks;
mod layers;
mod prose;
mod security_tables;
mod spec_map;
mod state_diagrams;
