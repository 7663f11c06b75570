//! Lists of many entries.

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{RequestSlot, Server as Engine};
use mcp_sansio::service::{HandlerResult, ReadResource, Resource, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_bench::web::{Client, Load, Server, post, rate, session_fields};
use mcp_sansio_bench::{Kind, OPENING};
use rustix::time::{ClockId, clock_gettime};

use crate::{MEASURE, WARM, report, spent};

/// Measures a server with `size` tools: a call of the last one, and the list.
pub(crate) fn tools(driver: &str, program: &str, size: usize) {
    let server = Server::start(program, 1);
    let mut loads: Vec<_> = (0..16).map(|_| Load::new(server.port, Kind::Modern32)).collect();
    rate(&server, &mut loads, WARM);
    let (_, us) = rate(&server, &mut loads, MEASURE);
    report("last-tool-us", driver, size, us);
    let mut client = Client::connect(server.port);
    let session = client.open_session();
    let request = post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, &session_fields(&session));
    let rounds = 20_000 / size;
    let us = spent(&server, || {
        for _ in 0..rounds {
            client.send(&request);
            let answer = client.answer();
            let json: serde_json::Value =
                serde_json::from_slice(&client.received[answer.head..answer.end]).expect("an answer is JSON");
            let listed = json["result"]["tools"].as_array().map_or(0, Vec::len);
            assert_eq!(listed, size + 5, "all tools are listed");
            client.received.clear();
        }
    });
    report("list-us-each-tool", driver, size, us / (rounds * (size + 5)) as f64);
}

fn read(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("nothing")
}

/// Returns the processor time of this thread in microseconds.
fn own_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Measures `resources/list` of the core, whose output is a window of 1 KiB.
pub(crate) fn resources_through_a_window() {
    for size in [100, 1_000, 10_000] {
        let table: Vec<Resource<()>> = (0..size)
            .map(|n| {
                let uri: &'static str = format!("scale://resource/{n:05}").leak();
                Resource::new(uri, "a resource", read).mime("text/plain")
            })
            .collect();
        // Two resources with one URI are refused; to compare them all takes the square of their number, once.
        let service = Service::new("scale", "1.0").resources(&table);
        let (mut line, mut scratch, mut window) = ([0; 1024], [0; 1024], [0; 1024]);
        let mut slots = [RequestSlot::FREE; 2];
        let server = Engine::new(&mut slots).scratch(&mut scratch);
        let mut session =
            LineServer::new(LineBuffer::new(&mut line), server, LineSink::new(SliceStorage::new(&mut window)));
        exchange(&mut session, &service, OPENING);
        let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}\n";
        let rounds = 100_000 / size;
        let began = own_time();
        for _ in 0..rounds {
            let out = exchange(&mut session, &service, list);
            assert_eq!(memchr::memmem::find_iter(&out, "scale://resource/").count(), size, "all are listed");
        }
        let each = (own_time() - began) / (rounds * size) as f64;
        report("window-us-each-resource", "core", size, each);
        let out = exchange(&mut session, &service, list);
        let json: serde_json::Value = serde_json::from_slice(&out).expect("an answer is JSON");
        assert_eq!(json["result"]["resources"].as_array().map_or(0, Vec::len), size, "an answer is whole");
    }
}

/// Gives lines to the server, and returns its output, which is taken a window at a time.
fn exchange(
    session: &mut LineServer<'_, LineSink<SliceStorage<'_>>>,
    service: &Service<'_, ()>,
    lines: &str,
) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines.split_inclusive('\n') {
        session.space()[..line.len()].copy_from_slice(line.as_bytes());
        session.filled(line.len());
        loop {
            let _ = session.run(service, &mut ()); // read or write: the output says which
            let pending = session.out.pending().len();
            if pending == 0 {
                break;
            }
            out.extend_from_slice(session.out.pending());
            session.out.sent(pending);
        }
    }
    out
}
