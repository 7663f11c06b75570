//! Five tools, both eras; arguments are read by hand.

#![no_std]
#![no_main]

use mcp_sansio::server::Server;

footprint::main!(footprint::serve(&footprint::tools::RAW, Server::new()));
