//! Five tools, both eras; arguments are read by hand.

#![no_std]
#![no_main]

footprint::main!(footprint::serve(&footprint::tools::RAW, footprint::server()));
