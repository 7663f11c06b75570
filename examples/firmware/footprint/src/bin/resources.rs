//! Five tools and a resource.

#![no_std]
#![no_main]

use footprint::{Device, parts, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.resources(&parts::RESOURCES);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
