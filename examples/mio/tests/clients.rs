//! Our client talks to the example over sockets.

#[path = "../../../tests/remote/revisions.rs"]
mod revisions;
#[path = "../../../tests/remote/running.rs"]
mod running;

use running::{Running, raw};

#[test]
fn the_driver_serves_clients_of_all_revisions() {
    let (_running, address) = Running::start(env!("CARGO_BIN_EXE_mcp-sansio-mio-example"));
    revisions::are_served(address);
    let page = raw(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 404"), "{page}");
    // Refused before its body has come.
    let refused = raw(address, "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n{");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}
