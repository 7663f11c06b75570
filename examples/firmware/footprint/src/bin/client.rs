//! The client: connects in either era, calls a tool again and again, and checks the answers.

#![no_std]
#![no_main]

use footprint::{Port, Static};
use mcp_sansio::client::views::{CallToolResult, View};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo, LineClient, PendingRequest, Request};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::sink::{LineSink, SliceStorage};

static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);
static HELD: Static<[u8; 128]> = Static::new([0; 128]);
static SLOTS: Static<[PendingRequest; 2]> = Static::new([PendingRequest::FREE; 2]);

static PROFILE: ClientInfo<'static> = ClientInfo::new("footprint", "1.0");

const ARGUMENTS: Raw<'static> = Raw::constant(r#"{"a":40,"b":2}"#);

footprint::main!(ask());

fn ask() {
    let (Some(input), Some(output)) = (INPUT.take(), OUTPUT.take()) else { return };
    let (Some(held), Some(slots)) = (HELD.take(), SLOTS.take()) else { return };
    let client = Client::new(&PROFILE, slots).held(held).timeout(10_000);
    let mut session = LineClient::new(LineBuffer::new(input), client, LineSink::new(SliceStorage::new(output)));
    session.client.connect();
    let mut port = Port::open();
    let mut right = 0;
    while let Some(count) = port.read(session.space()) {
        session.filled(count);
        port.timed(|| {
            // There is no clock here. With a clock, pass its time to `run`.
            let _ = session.run(0, &mut |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
                on_event(event, handle, &mut right)
            });
        });
        // All output at once: the measurement has its answers prepared, and an answer before its call would be
        // ignored.
        while !session.out.pending().is_empty() {
            let sent = port.write(session.out.pending());
            session.out.sent(sent);
        }
    }
    core::hint::black_box(right);
    port.close();
}

fn on_event(event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>, right: &mut u32) {
    match event {
        ClientEvent::Connected(_) => call(handle),
        ClientEvent::Done { outcome: Ok(result), .. } => {
            let text = CallToolResult::of(result).ok().and_then(|result| result.text());
            *right += u32::from(text.is_some_and(|text| text.eq_str("42")));
            call(handle);
        }
        _ => {}
    }
}

fn call(handle: &mut ClientHandle<'_, '_>) {
    let _ = handle.send(&Request::call("add").arguments(&ARGUMENTS));
}
