//! Five tools and a prompt.

#![no_std]
#![no_main]

use footprint::{Device, parts, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.prompts(&parts::PROMPTS);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
