//! The sizes of the types that applications hold: printed (`cargo test --test protocol sizes -- --nocapture`) and limited.

use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, RequestToken, Server, ServerEvent};
use mcp_sansio::sink::{LineSink, SliceStorage};
use std::mem::size_of;

#[test]
fn sizes() {
    let rows = [
        ("Token", size_of::<RequestToken>(), 8),
        ("Event", size_of::<ServerEvent<'static>>(), 640),
        ("Slot", size_of::<RequestSlot>(), 376),
        ("Server", size_of::<Server<'static>>(), 312),
        ("Session", size_of::<LineServer<'static, LineSink<SliceStorage<'static>>>>(), 480),
    ];
    for (name, size, bound) in rows {
        println!("{name:10} {size:5} of {bound}");
    }
    for (name, size, bound) in rows {
        assert!(size <= bound, "{name} has {size} bytes, more than {bound}");
    }
}
