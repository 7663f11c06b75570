//! Five tools and one whose text is 20 KB, sent through a window of 512 bytes.

#![no_std]
#![no_main]

use footprint::{Device, parts, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.tools(&parts::STREAMS);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
