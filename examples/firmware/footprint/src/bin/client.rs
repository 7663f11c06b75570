//! The other role: it connects, in either era, calls a tool again and again, and looks at what comes back.

#![no_std]
#![no_main]

use footprint::{Port, Static};
use mcp_sansio::client::views::{CallResult, View};
use mcp_sansio::client::{Client, Event, Link, Profile, Request, Session};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::sink::{Lines, Slice};

static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);
static HELD: Static<[u8; 128]> = Static::new([0; 128]);

static PROFILE: Profile<'static> = Profile::new("footprint", "1.0");

footprint::main!(ask());

fn ask() {
    let (Some(input), Some(output), Some(held)) = (INPUT.take(), OUTPUT.take(), HELD.take()) else { return };
    let client = Client::<2>::new(&PROFILE).held(held).timeout(10_000);
    let mut session = Session::new(LineBuffer::new(input), client, Lines::new(Slice::new(output)));
    session.client().connect();
    let mut port = Port::open();
    let mut right = 0;
    while let Some(count) = port.read(session.space()) {
        session.filled(count);
        port.timed(|| {
            // There is no clock here; where there is one, its time goes to `run`.
            let _ = session.run(0, &mut |event: Event<'_>, link: &mut Link<'_, '_>| on_event(event, link, &mut right));
        });
        // All of it: what measures this has its answers ready, and one to a call not yet made would be ignored.
        while !session.pending().is_empty() {
            let sent = port.write(session.pending());
            session.sent(sent);
        }
    }
    core::hint::black_box(right);
    port.close();
}

fn on_event(event: Event<'_>, link: &mut Link<'_, '_>, right: &mut u32) {
    match event {
        Event::Connected(_) => call(link),
        Event::Done { outcome: Ok(result), .. } => {
            let text = CallResult::of(result).ok().and_then(|result| result.text());
            *right += u32::from(text.is_some_and(|text| text.is("42")));
            call(link);
        }
        _ => {}
    }
}

fn call(link: &mut Link<'_, '_>) {
    let _ = link.send(&Request::call("add").arguments(&Raw::constant(r#"{"a":40,"b":2}"#)));
}
