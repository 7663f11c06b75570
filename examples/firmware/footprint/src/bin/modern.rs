//! Five tools, only the revision 2026-07-28.

#![no_std]
#![no_main]

use footprint::{Device, tools};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.revisions(Revisions::from(Revision::V2026_07_28));

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
