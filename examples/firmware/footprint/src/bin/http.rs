//! The five tools over HTTP: one connection at a time, both eras with their sessions and event streams.

#![no_std]
#![no_main]

use footprint::tools::RAW;
use footprint::{Device, Port, Static};
use mcp_sansio::sink::SliceStorage;
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, Session, Stream};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

static INPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static OUTPUT: Static<[u8; 1024]> = Static::new([0; 1024]);
static BODY: Static<[u8; 512]> = Static::new([0; 512]);
static SCRATCH: Static<[u8; 64]> = Static::new([0; 64]);
static SESSIONS: Static<[Session; 2]> = Static::new([Session::FREE; 2]);
static STREAMS: Static<[Stream; 2]> = Static::new([Stream::FREE; 2]);
static LOG: Static<[u8; 1024]> = Static::new([0; 1024]);

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT.line(256).head(768).body(1024);

footprint::main!(serve());

fn serve() {
    let (Some(input), Some(output), Some(body), Some(scratch)) =
        (INPUT.take(), OUTPUT.take(), BODY.take(), SCRATCH.take())
    else {
        return;
    };
    let (Some(sessions), Some(streams), Some(log)) = (SESSIONS.take(), STREAMS.take(), LOG.take()) else { return };
    let server = footprint::server().scratch(scratch);
    let mut endpoint =
        Endpoint::new(EndpointConfig::DEFAULT, server, &mut sessions[..], &mut streams[..], &mut log[..]);
    let mut http = HttpConnection::<16>::new(&mut input[..], &mut output[..], LIMITS);
    let mut body = BodyBuffer::new(SliceStorage::new(body));
    let mut device = Device::default();
    let mut app = App::new(&RAW, &mut device);
    let mut port = Port::open();
    while let Some(count) = port.read(http.space()) {
        http.connection.filled(count);
        let mut wait = WaitFor::Read;
        port.timed(|| {
            // There is no clock here. With a clock, pass its time in `now`.
            let mut host = ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 };
            wait = http.serve(&mut host, &mut |bytes| bytes.fill(7));
        });
        let sent = port.write(http.connection.pending());
        http.connection.sent(sent);
        if wait == WaitFor::Close && !http.connection.has_pending() {
            http.leave(&mut ServeContext { endpoint: &mut endpoint, app: &mut app, body: &mut body, now: 0 });
            http.reset();
        }
    }
    port.close();
}
