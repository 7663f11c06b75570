//! The memory of the blocking client over HTTP, and of the blocking server: no allocation for a call in the steady state. One
//! test, in a program of its own.

use mcp_sansio::client::views::CallToolResult;
use mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::client::{Client, Http, Ignore};
use mcp_sansio_blocking::http::HttpServer;
use mcp_sansio_test_allocator::{Counting, count};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of the server's thread at the last call.
static SERVER: AtomicUsize = AtomicUsize::new(0);

fn echo(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    SERVER.store(count(), Relaxed);
    let text: Text<'_> = call.arg("text")?;
    call.text(text)
}

static TOOLS: [Tool<()>; 1] = [Tool::new("echo", "Gives a text back", echo)];
static LEGACY: ClientInfo<'static> =
    ClientInfo::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));
static MODERN: ClientInfo<'static> =
    ClientInfo::new("bench", "1").revisions(Revisions::NONE.with(Revision::V2026_07_28));

const CALLS: usize = 100;

#[test]
fn a_call_over_http_allocates_nothing() {
    let server = HttpServer::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", server.local_addr().unwrap().port());
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.serve(&Service::new("count", "1").tools(&TOOLS), &mut ()));
    for (era, info) in [("legacy", &LEGACY), ("modern", &MODERN)] {
        let mut client = Client::new(Http::new(&url, info).unwrap(), Ignore);
        client.connect().unwrap();
        let arguments = Raw::parse(br#"{"text":"0123456789abcdef"}"#).unwrap();
        let mut calls = || {
            for _ in 0..CALLS {
                let result = client.request(&Request::call("echo").arguments(&arguments)).unwrap();
                let result: CallToolResult<'_> = result.view().unwrap();
                assert!(result.text().is_some_and(|text| text.eq_str("0123456789abcdef")));
            }
            (count(), SERVER.load(Relaxed))
        };
        // Buffers grow, and the client's stream of the session opens, with the first calls.
        let before = calls();
        assert_eq!(calls(), before, "{CALLS} {era} calls have allocated, in the client or in the server");
        client.close();
    }
    stopper.stop();
    serving.join().unwrap().unwrap();
}
