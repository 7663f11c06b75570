//! Lines that were read before the end of the input are answered.

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server};
use mcp_sansio::service::Service;
use mcp_sansio::sink::{LineSink, SliceStorage};

/// The loop of a device: one run, one write, and the end when the session is done.
#[test]
fn done_only_when_every_line_is_answered() {
    let service = Service::<()>::new("test", "1");
    let (mut input, mut output, mut slots) = ([0; 4096], [0; 64], [RequestSlot::FREE; 1]);
    let mut session = LineServer::new(
        LineBuffer::new(&mut input),
        Server::new(&mut slots),
        LineSink::new(SliceStorage::new(&mut output)),
    );
    let mut written = Vec::new();
    let mut read = 0;
    for id in 0..20 {
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}{}", if id < 19 { "\n" } else { "" });
        session.space()[..line.len()].copy_from_slice(line.as_bytes());
        session.filled(line.len());
        read += 1;
    }
    session.end_of_input();
    loop {
        let _ = session.run(&service, &mut ());
        let pending = session.out.pending().len();
        written.extend_from_slice(session.out.pending());
        session.out.sent(pending);
        if session.is_done() && session.out.pending().is_empty() {
            break;
        }
    }
    assert_eq!(written.iter().filter(|byte| **byte == b'\n').count(), read);
}
