//! Five tools and one that asks before it does anything.

#![no_std]
#![no_main]

use footprint::{Device, Static, asks, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.tools(&asks::ASKS);

static ASKS: Static<[u8; 512]> = Static::new([0; 512]);

footprint::main!({
    if let Some(memory) = ASKS.take() {
        footprint::serve(&SERVICE, footprint::server().asks(memory));
    }
});
