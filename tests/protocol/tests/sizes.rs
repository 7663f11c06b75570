//! Sizes of the types that everybody holds: printed (`cargo test --test sizes -- --nocapture`) and bounded.

use mcp_sansio::server::{Engine, Event, Server, Slot, Token};
use mcp_sansio::session::Session;
use mcp_sansio::sink::{Lines, Slice};
use std::mem::size_of;

#[test]
fn sizes() {
    let rows = [
        ("Token", size_of::<Token>(), 8),
        ("Event", size_of::<Event<'static>>(), 640),
        ("Slot", size_of::<Slot>(), 240),
        ("Server<0>", size_of::<Server<'static, 0>>(), 260),
        ("Server<4>", size_of::<Server<'static, 4>>(), 1216),
        ("Session<4>", size_of::<Session<'static, Lines<Slice<'static>>, 4>>(), 1400),
        ("&Engine", size_of::<&Engine<'static>>(), 16),
    ];
    for (name, size, bound) in rows {
        println!("{name:10} {size:5} of {bound}");
    }
    for (name, size, bound) in rows {
        assert!(size <= bound, "{name} has {size} bytes, more than {bound}");
    }
}
