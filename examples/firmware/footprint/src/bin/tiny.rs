//! One tool, two revisions, one request at a time, small buffers: the smallest server.

#![no_std]
#![no_main]

use footprint::{Device, Port, Static};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

static SLOTS: Static<[RequestSlot; 1]> = Static::new([RequestSlot::FREE]);
static INPUT: Static<[u8; 384]> = Static::new([0; 384]);
static OUTPUT: Static<[u8; 256]> = Static::new([0; 256]);

static TOOLS: [Tool<Device>; 1] = [Tool::new("set_led", "Turns the LED on or off", set_led)
    .input(r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#)];

const REVISIONS: Revisions = Revisions::NONE.with(Revision::V2025_06_18).with(Revision::V2025_11_25);

const SERVICE: Service<'static, Device> = Service::new("footprint", "1.0").tools(&TOOLS).revisions(REVISIONS);

fn set_led(device: &mut Device, call: &mut Call<'_>) -> HandlerResult {
    let Some(on) = call.arguments().get("on").and_then(|on| on.bool()) else { return call.error("`on` is a boolean") };
    device.led = on;
    call.text(if on { "The LED is on" } else { "The LED is off" })
}

footprint::main!(serve());

fn serve() {
    let (Some(slots), Some(input), Some(output)) = (SLOTS.take(), INPUT.take(), OUTPUT.take()) else { return };
    let mut session =
        LineServer::new(LineBuffer::new(input), Server::new(slots), LineSink::new(SliceStorage::new(output)));
    let mut device = Device::default();
    let mut port = Port::open();
    while let Some(count) = port.read(session.space()) {
        session.filled(count);
        port.timed(|| {
            let _ = session.run(&SERVICE, &mut device);
        });
        let sent = port.write(session.out.pending());
        session.out.sent(sent);
    }
    port.close();
}
