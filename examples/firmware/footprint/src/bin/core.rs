//! The core alone: reads and dispatches messages, and answers only the protocol's own requests.

#![no_std]
#![no_main]

use footprint::{Port, Static};
use mcp_sansio::frame::{LineBuffer, LineStatus};
use mcp_sansio::server::{IncomingRequest, RpcError, ServerEvent, ServerInfo, ServerOptions};
use mcp_sansio::sink::{LineSink, SliceStorage};

static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static OUTPUT: Static<[u8; 512]> = Static::new([0; 512]);

static ABOUT: ServerInfo<'static> = ServerInfo::new("footprint", "1.0");

footprint::main!(serve());

fn serve() {
    let (Some(input), Some(output)) = (INPUT.take(), OUTPUT.take()) else { return };
    let mut lines = LineBuffer::new(input);
    let mut out = LineSink::new(SliceStorage::new(output));
    let mut server = footprint::server();
    let mut port = Port::open();
    while let Some(count) = port.read(lines.space()) {
        lines.filled(count);
        port.timed(|| {
            while let Some(line) = lines.peek() {
                let handled = match line {
                    LineStatus::Message(message) => {
                        server.handle(&ServerOptions::new(&ABOUT), message, &mut IncomingRequest::empty(), &mut out)
                    }
                    _ => server.refuse_too_long(&mut out).map(|()| None),
                };
                match handled {
                    Ok(Some(ServerEvent::Request { token, .. })) => {
                        let _ = server.fail(token, &RpcError::method_not_found(), &mut out);
                    }
                    Err(mcp_sansio::FullError::Now) => break,
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
