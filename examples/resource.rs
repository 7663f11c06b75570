//! A resource with updates: clients read `counter://count` and subscribe to its changes.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2025-11-25/server/resources>.
//! Try it: `cargo run --example inspect -- watch -- cargo run --quiet --example resource`.
use std::time::Duration;

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Annotations, HandlerResult, ReadResource, Resource, Service};
use mcp_sansio_smol::Serve;

const URI: &str = "counter://count";

/// Answers `resources/read` for `counter://count` with the number of reads so far.
fn read_count(count: &mut u64, read: &mut ReadResource<'_>) -> HandlerResult {
    *count += 1;
    read.text(format_args!("{count}"))
}

static RESOURCES: [Resource<u64>; 1] = [Resource::new(URI, "count", read_count)
    .title("Counter")
    .description("How often this resource was read")
    .mime("text/plain")
    .annotations(Annotations::new().user())];

fn main() -> std::io::Result<()> {
    // `ServerCapability::Subscribe` declares the capability `resources.subscribe`.
    let service = Service::new("resource", "1.0").resources(&RESOURCES).feature(ServerCapability::Subscribe);
    // Every second: sends `notifications/resources/updated` to the clients that subscribed, to no others.
    let server =
        Serve::new(&service).watch(Duration::from_secs(1), |_, server| server.publish(ServerChange::Resource(URI)));
    smol::block_on(server.stdio(&mut 0))
}
