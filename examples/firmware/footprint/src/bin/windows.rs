//! Five tools, whose list and other replies may be larger than the output buffer.

#![no_std]
#![no_main]

footprint::main!(footprint::serve(&footprint::tools::RAW, footprint::server()));
