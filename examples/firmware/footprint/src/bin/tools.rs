//! Five tools, both eras; arguments by serde.

#![no_std]
#![no_main]

use mcp_sansio::server::Server;

footprint::main!(footprint::serve(&footprint::tools::SERDE, Server::new()));
