//! Five tools, the revisions without batches: from 2025-06-18 on.

#![no_std]
#![no_main]

use footprint::{Device, tools};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::Service;

const SERVICE: Service<'static, Device> = tools::RAW.revisions(Revisions::from(Revision::V2025_06_18));

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
