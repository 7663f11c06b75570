//! Five tools, both eras; arguments by types that are the schema.

#![no_std]
#![no_main]

footprint::main!(footprint::serve(&footprint::tools::DERIVED, footprint::server()));
