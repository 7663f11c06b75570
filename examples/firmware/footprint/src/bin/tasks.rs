//! Five tools and one that becomes a task, asks while it runs, and can be cancelled.

#![no_std]
#![no_main]

use footprint::{Device, tasks, tools};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.tools(&tasks::TOOLS).extend(&tasks::EXTENSIONS);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
