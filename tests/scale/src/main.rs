//! Measures both HTTP servers at three sizes each: with 100, 1,000 and 10,000 event streams, with requests in flight,
//! subscriptions and tools; and the core with lists through a window of 1 KiB. Checks that everything arrives, and that
//! memory and sockets are given back.
//!
//! `scale SERVER [STREAMS]` prints one line for each value: curve, server, size, value. `SERVER` is the program
//! `scale-server`; without `STREAMS` there are 10,000 streams at most.

mod in_flight;
mod lists;
mod streams;
mod subscriptions;

use std::env;
use std::time::Duration;

use mcp_sansio_bench::web::{Client, MODERN, Server, post};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The drivers that are measured.
const DRIVERS: [&str; 2] = ["blocking", "smol"];

/// What measures processor time: short before, long while it counts.
const WARM: Duration = Duration::from_millis(200);
const MEASURE: Duration = Duration::from_millis(1500);

/// Prints a value of a curve.
fn report(curve: &str, server: &str, size: usize, value: f64) {
    println!("{curve}\t{server}\t{size}\t{value:.2}");
}

/// Returns a `tools/call` of 2026-07-28 with `"text"` as its argument.
fn call(tool: &str, text: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"scale","version":"1"}}}}}}}}"#
    );
    post(&body, &format!("{MODERN}Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"))
}

/// Sends a request and waits for its answer, which must be a result.
fn exchange(client: &mut Client, request: &[u8]) {
    client.send(request);
    let answer = client.answer();
    let text = String::from_utf8_lossy(&client.received[..answer.end]);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("\"result\""), "{text}");
    client.received.clear();
}

/// Sends requests, 16 at a time, and waits for their answers, which must be results.
fn exchange_all(client: &mut Client, requests: impl Iterator<Item = Vec<u8>>) {
    let requests: Vec<_> = requests.collect();
    for some in requests.chunks(16) {
        client.send(&some.concat());
        let results = wait_for(client, "\"result\"", some.len());
        let text = String::from_utf8_lossy(&client.received);
        assert!(results == some.len() && !text.contains("\"error\""), "{text}");
        client.received.clear();
    }
}

/// Waits until `text` has come `times` times. Returns the number of times that it has come.
fn wait_for(client: &mut Client, text: &str, times: usize) -> usize {
    loop {
        let found = memchr::memmem::find_iter(&client.received, text).count();
        if found >= times {
            return found;
        }
        client.read();
    }
}

/// Returns the processor time of `work` on the server, in microseconds.
fn spent(server: &Server, work: impl FnOnce()) -> f64 {
    let before = server.processor_time();
    work();
    (server.processor_time() - before) as f64 / 1e3
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let Some(program) = args.first() else { panic!("usage: scale SERVER [STREAMS]") };
    let streams = args.get(1).map_or(10_000, |n| n.parse().expect("a number of streams"));
    // One descriptor for each connection, here and in the server, which inherits the limit.
    let limit = getrlimit(Resource::Nofile);
    let wanted = streams as u64 + 1_000;
    assert!(limit.maximum.is_none_or(|most| most >= wanted), "the limit of open files is below {wanted}: ulimit -Hn");
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("below the maximum");

    lists::resources_through_a_window();
    for driver in DRIVERS {
        let program = |tools: usize| format!("{program} {driver} {tools}");
        for size in [streams / 100, streams / 10, streams] {
            streams::measure(driver, &program(0), size);
        }
        for size in [10, 100, 1000] {
            in_flight::measure(driver, &program(0), size);
            subscriptions::measure(driver, &program(0), size);
            lists::tools(driver, &program(size), size);
        }
    }
}
