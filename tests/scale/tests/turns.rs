//! A change for many clients does not stop the requests of others: both servers write some streams in each turn.

use std::time::Duration;

use mcp_sansio_bench::web::{Client, MODERN, Server, post};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"turns","version":"1"}}"#;
const LISTENS: usize = 640;
const ROUNDS: usize = 50;

fn call(tool: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"-"}},{META}}}}}"#
    );
    post(&body, &format!("{MODERN}Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"))
}

fn listen() -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    post(&body, &format!("{MODERN}Mcp-Method: subscriptions/listen\r\n"))
}

fn answered(client: &mut Client, request: &[u8]) {
    client.send(request);
    client.answer();
    client.received.clear();
}

/// Returns whether a client has the change by now.
fn has_change(client: &mut Client) -> bool {
    client.socket.set_nonblocking(true).expect("a TCP socket");
    let peeked = client.socket.peek(&mut [0]);
    client.socket.set_nonblocking(false).expect("a TCP socket");
    peeked.is_ok()
}

fn wait_for_change(client: &mut Client) {
    client.received.clear();
    while memchr::memmem::find(&client.received, b"notifications/tools/list_changed").is_none() {
        client.read();
    }
}

/// With all streams written in the turn of the change, an answer never comes before the last client has it.
fn requests_between(driver: &str) {
    let server = Server::start(&format!("{} {driver} 0", env!("CARGO_BIN_EXE_scale-server")), 0);
    let mut listening: Vec<_> = (0..LISTENS).map(|_| Client::connect(server.port)).collect();
    for client in &mut listening {
        client.open_stream(&listen());
        // The acknowledgement.
        while memchr::memmem::find(&client.received, b"acknowledged").is_none() {
            client.read();
        }
        assert!(!has_change(client));
    }
    let (mut publisher, mut other) = (Client::connect(server.port), Client::connect(server.port));
    answered(&mut other, &call("echo"));
    for _ in 0..ROUNDS {
        answered(&mut publisher, &call("publish"));
        answered(&mut other, &call("echo"));
        if !listening.iter_mut().all(has_change) {
            return;
        }
        // This process may have waited so long that all have the change: once more.
        listening.iter_mut().for_each(wait_for_change);
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no answer came while a change was being sent");
}

#[test]
fn blocking() {
    requests_between("blocking");
}

#[test]
fn smol() {
    requests_between("smol");
}
