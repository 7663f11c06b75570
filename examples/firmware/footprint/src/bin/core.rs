//! The core alone: messages are read and dispatched; there is nothing to serve but what the protocol answers itself.

#![no_std]
#![no_main]

use footprint::{Port, REQUESTS, Static};
use mcp_sansio::frame::{Line, LineBuffer};
use mcp_sansio::server::{About, Context, Event, Failure, Server};
use mcp_sansio::sink::{Lines, Slice};

static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);

static ABOUT: About<'static> = About::new("footprint", "1.0");

footprint::main!(serve());

fn serve() {
    let (Some(input), Some(output)) = (INPUT.take(), OUTPUT.take()) else { return };
    let mut lines = LineBuffer::new(input);
    let mut out = Lines::new(Slice::new(output));
    let mut server = Server::<REQUESTS>::new();
    let mut port = Port::open();
    while let Some(count) = port.read(lines.space()) {
        lines.filled(count);
        port.timed(|| {
            while let Some(line) = lines.peek() {
                let handled = match line {
                    Line::Message(message) => server.handle(&Context::new(&ABOUT), message, &mut out),
                    _ => server.refuse_too_long(&mut out).map(|()| None),
                };
                match handled {
                    Ok(Some(Event::Request { token, .. })) => {
                        let _ = server.fail(token, &Failure::method_not_found(), &mut out);
                    }
                    Err(mcp_sansio::Full::Now) => break,
                    _ => {}
                }
                lines.consume();
            }
        });
        let sent = port.write(out.pending());
        out.sent(sent);
    }
    port.close();
}
