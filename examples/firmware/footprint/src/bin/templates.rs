//! Five tools and a family of resources, with completion.

#![no_std]
#![no_main]

use footprint::{Device, parts, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.templates(&parts::TEMPLATES);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
