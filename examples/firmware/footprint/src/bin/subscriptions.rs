//! Five tools and a resource that clients subscribe to.

#![no_std]
#![no_main]

use footprint::{Device, Static, parts, tools};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.resources(&parts::RESOURCES).feature(ServerCapability::Subscribe);

static SUBSCRIPTIONS: Static<[u8; 128]> = Static::new([0; 128]);

footprint::main!({
    if let Some(memory) = SUBSCRIPTIONS.take() {
        footprint::serve(&SERVICE, footprint::server().subscriptions(memory));
    }
});
