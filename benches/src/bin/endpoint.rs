//! One HTTP endpoint with many sessions, without sockets, for callgrind. `endpoint SESSIONS N` sends
//! `initialize` N times to an endpoint without room for more sessions, so that each new session replaces
//! another. The first half of the sessions have an open event stream and stay.

use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::LineSink;
use mcp_sansio_blocking::http::{App, Endpoint, EndpointConfig, EndpointLimits, HttpEndpoint, RequestHead};

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let (Some(sessions), Some(n)) = (numbers.next(), numbers.next()) else { panic!("usage: endpoint SESSIONS N") };
    let limits = EndpointLimits::default().sessions(sessions);
    let mut endpoint: HttpEndpoint =
        Endpoint::growing(EndpointConfig::DEFAULT, Server::growing(MessageLimits::default()), limits);
    let (service, mut state) = (Service::new("bench", "1"), ());
    let mut app = App::new(&service, &mut state);
    let mut out = LineSink::new(Vec::new());
    let mut random = |bytes: &mut [u8]| bytes.fill(7);
    for turn in 0..sessions + n {
        let headers: &[(&str, &[u8])] = &[
            ("Host", b"localhost"),
            ("Content-Type", b"application/json"),
            ("Accept", b"application/json, text/event-stream"),
        ];
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let opened = endpoint.request(&mut app, &head, INITIALIZE, 0, &mut random, &mut out);
        let written = out.pending().len();
        out.sent(written);
        let id = opened.session.expect("there is room");
        if turn < sessions / 2 {
            let headers: &[(&str, &[u8])] =
                &[("Host", b"localhost"), ("Accept", b"text/event-stream"), ("Mcp-Session-Id", id.as_str().as_bytes())];
            let head = RequestHead::new("GET", "/mcp", None, &headers);
            assert_eq!(endpoint.request(&mut app, &head, b"", 0, &mut random, &mut out).status, 200);
            let stream = endpoint.ready().next().expect("it has something to say");
            let _ = endpoint.pull(stream, &mut app, 0, &mut out);
        }
    }
    assert_eq!(endpoint.load().1, sessions);
}
