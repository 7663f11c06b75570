//! Five tools and one with a page.

#![no_std]
#![no_main]

use footprint::{Device, apps, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> =
    tools::RAW.tools(&apps::TOOLS).resources(&apps::RESOURCES).extend(&apps::EXTENSIONS);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
