//! Five tools and a skill.

#![no_std]
#![no_main]

use footprint::{Device, skills, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> =
    tools::RAW.extend(&skills::EXTENSIONS).resources(&skills::RESOURCES).templates(&skills::TEMPLATES);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
