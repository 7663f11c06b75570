//! Starts the example and sends it requests over a socket.

#[path = "../../../tests/remote/ending.rs"]
mod ending;
#[path = "../../../tests/remote/running.rs"]
mod running;

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};

use running::{Running, raw};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
    "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count",
    "_meta":{"progressToken":1}}}"#;

/// Sends one request on a new connection, and returns the whole answer.
fn ask(address: SocketAddr, line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    raw(address, &request)
}

fn start() -> (Running, SocketAddr) {
    Running::start(env!("CARGO_BIN_EXE_mcp-sansio-hyper-example"))
}

/// A call of the example takes 0.3 s. A client that has sent half of a head is there too.
#[test]
fn a_half_closed_call_is_answered_while_the_program_ends() {
    let (mut running, address) = start();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"POST /mcp HT").unwrap();
    let opened = ask(address, "POST /mcp", "", INITIALIZE);
    let session = opened.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: ")).unwrap();
    let mut call = TcpStream::connect(address).unwrap();
    let head = "Content-Type: application/json\r\nAccept: application/json, text/event-stream";
    let length = COUNT.len();
    write!(
        call,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{session}\r\nContent-Length: {length}\r\n\r\n{COUNT}"
    )
    .unwrap();
    call.shutdown(Shutdown::Write).unwrap();
    ending::is_answered_to_its_end(call, &mut running.0);
}

#[test]
fn hyper_serves_pages_answers_and_streams() {
    let (_running, address) = start();
    assert!(ask(address, "GET /", "", "").contains("see /mcp"));
    let opened = ask(address, "POST /mcp", "", INITIALIZE);
    assert!(opened.starts_with("HTTP/1.1 200") && opened.contains("\"name\":\"counter\""), "{opened}");
    let session = opened.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: ")).unwrap();
    let counted = ask(address, "POST /mcp", &format!("{session}\r\n"), COUNT);
    assert!(counted.to_lowercase().contains("content-type: text/event-stream"), "{counted}");
    assert_eq!(counted.matches("notifications/progress").count(), 3, "{counted}");
    assert!(counted.contains("\"text\":\"three\"") && counted.ends_with("0\r\n\r\n"), "{counted}");
    assert!(ask(address, "POST /mcp", "Mcp-Session-Id: 1234\r\n", COUNT).starts_with("HTTP/1.1 404"));
    assert!(ask(address, "POST /mcp", "Origin: https://example.org\r\n", INITIALIZE).starts_with("HTTP/1.1 403"));

    // If the target names a host, it counts. There must be exactly one host.
    assert!(ask(address, "POST http://evil.example/mcp", "", INITIALIZE).starts_with("HTTP/1.1 403"));
    assert!(ask(address, "POST http://localhost/mcp", "", INITIALIZE).starts_with("HTTP/1.1 200"));
    assert!(ask(address, "POST /mcp", "Host: localhost\r\n", INITIALIZE).starts_with("HTTP/1.1 400"));
    assert!(
        raw(address, "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 400")
    );
    // The request is refused before its body has arrived.
    let refused = raw(address, "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n{");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}
