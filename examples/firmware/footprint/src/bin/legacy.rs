//! Five tools, only the revisions up to 2025-11-25.

#![no_std]
#![no_main]

use footprint::{Device, tools};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::Service;

const LEGACY: Revisions = Revisions::NONE
    .with(Revision::V2024_11_05)
    .with(Revision::V2025_03_26)
    .with(Revision::V2025_06_18)
    .with(Revision::V2025_11_25);
const SERVICE: Service<'static, Device> = tools::RAW.revisions(LEGACY);

footprint::main!(footprint::serve(&SERVICE, footprint::server()));
