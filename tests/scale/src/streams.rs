//! Event streams: half of them of sessions, the others listens of 2026-07-28.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio_bench::Kind;
use mcp_sansio_bench::web::{Client, Load, MODERN, Server, post, rate, session_fields};

use crate::{MEASURE, WARM, call, exchange, report, spent, wait_for};

const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"scale","version":"1"}}}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

const CHANGED: &str = "notifications/tools/list_changed";

/// Returns the request for the event stream of a session.
pub(crate) fn get(session: &str) -> Vec<u8> {
    let fields = session_fields(session);
    format!("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n{fields}\r\n").into_bytes()
}

/// Opens `size` event streams, each with its connection.
fn open(server: &Server, size: usize) -> Vec<Client> {
    let listen = post(LISTEN, &format!("{MODERN}Mcp-Method: subscriptions/listen\r\n"));
    let open_one = |n: usize| {
        let mut client = Client::connect(server.port);
        let request = if n.is_multiple_of(2) {
            let session = client.open_session();
            // Before it, the server sends no notification.
            client.send(&post(INITIALIZED, &session_fields(&session)));
            client.head();
            client.received.clear();
            get(&session)
        } else {
            listen.clone()
        };
        client.open_stream(&request);
        client
    };
    (0..size).map(open_one).collect()
}

/// Waits until the server has at most `sockets` sockets. Returns their number.
fn settle(server: &Server, sockets: usize) -> usize {
    let began = Instant::now();
    while server.sockets() > sockets && began.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(20));
    }
    server.sockets()
}

/// Measures `size` streams: their memory, requests among them, a change that all of them get, and their end.
pub(crate) fn measure(driver: &str, program: &str, size: usize) {
    let server = Server::start(program, 1);
    let sockets = settle(&server, 3);
    let mut loads: Vec<_> = (0..16).map(|_| Load::new(server.port, Kind::Modern32)).collect();
    rate(&server, &mut loads, WARM);
    let (_, alone) = rate(&server, &mut loads, MEASURE);
    let before = server.memory();
    let mut clients = open(&server, size);
    rate(&server, &mut loads, WARM);
    report("stream-kib", driver, size, (server.memory() - before) as f64 / size as f64);
    let (_, among) = rate(&server, &mut loads, MEASURE);
    report("request-us-alone", driver, size, alone);
    report("request-us-among", driver, size, among);

    publish(driver, &server, &mut clients, &mut loads[0]);

    drop(clients);
    let left = settle(&server, sockets + loads.len());
    assert!(left <= sockets + loads.len(), "{left} sockets after the clients have gone");
    // The second time takes no more memory than the first.
    rate(&server, &mut loads, WARM);
    let after = server.memory();
    drop(open(&server, size));
    settle(&server, sockets + loads.len());
    rate(&server, &mut loads, WARM);
    let grown = server.memory() - after;
    report("kept-kib", driver, size, (after - before) as f64);
    assert!(grown < 1024, "{grown} KiB have grown");
}

/// Publishes a change to all clients, first for its processor time, then for what another client's requests wait.
fn publish(driver: &str, server: &Server, clients: &mut [Client], load: &mut Load) {
    let size = clients.len();
    let mut publisher = Client::connect(server.port);
    let change = call("publish", "");
    let mut publish = |heard: usize, clients: &mut [Client]| {
        exchange(&mut publisher, &change);
        for client in clients {
            assert_eq!(wait_for(client, CHANGED, heard), heard, "a change is heard once");
        }
    };
    let us = spent(server, || publish(1, clients));
    report("publish-us-each", driver, size, us / size as f64);

    let (quiet, _) = waits(load, || thread::sleep(Duration::from_millis(500)));
    let (waited, took) = waits(load, || publish(2, clients));
    report("publish-ms", driver, size, took.as_secs_f64() * 1e3);
    report("wait-ms-quiet", driver, size, quiet.as_secs_f64() * 1e3);
    report("wait-ms-publish", driver, size, waited.as_secs_f64() * 1e3);
}

/// Sends requests while `work` runs. Returns the longest time that one took, and the time that `work` took.
fn waits(load: &mut Load, work: impl FnOnce()) -> (Duration, Duration) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let began = Instant::now();
                load.send();
                load.check();
                longest = longest.max(began.elapsed());
            }
            longest
        });
        let began = Instant::now();
        work();
        let took = began.elapsed();
        done.store(true, Ordering::Relaxed);
        (sending.join().expect("every answer is right"), took)
    })
}
