//! Five tools, both eras; arguments by serde.

#![no_std]
#![no_main]

footprint::main!(footprint::serve(&footprint::tools::SERDE, footprint::server()));
