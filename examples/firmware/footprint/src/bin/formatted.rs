//! Five tools and one that formats its text.

#![no_std]
#![no_main]

use footprint::{Device, parts, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.tools(&parts::FORMATS);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
