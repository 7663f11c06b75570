//! All of it: serde, formatting, large replies, resources, templates, subscriptions, prompts, log, progress, asks.

#![no_std]
#![no_main]

use footprint::{Device, Static, all, parts, tools};
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::SERDE
    .tools(&all::TOOLS)
    .resources(&parts::RESOURCES)
    .templates(&parts::TEMPLATES)
    .prompts(&parts::PROMPTS)
    .feature(ServerCapability::Subscribe)
    .feature(ServerCapability::Logging);

static SUBSCRIPTIONS: Static<[u8; 128]> = Static::new([0; 128]);
static ASKS: Static<[u8; 512]> = Static::new([0; 512]);

footprint::main!({
    if let (Some(subscriptions), Some(asks)) = (SUBSCRIPTIONS.take(), ASKS.take()) {
        footprint::serve(&SERVICE, footprint::server().subscriptions(subscriptions).asks(asks));
    }
});
