//! Five tools and a button that clients hear of.

#![no_std]
#![no_main]

use footprint::{Device, events, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = events::with(tools::RAW);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
