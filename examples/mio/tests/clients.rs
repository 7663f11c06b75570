//! Our client talks to the example over sockets.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mcp_sansio::client::{ClientEvent, ClientHandle, ClientInfo, Request};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_blocking::client::{Client, Http};

const PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1");

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

impl Running {
    /// Starts the example; returns its address too.
    fn start() -> (Self, SocketAddr) {
        let program = env!("CARGO_BIN_EXE_mcp-sansio-mio-example");
        let mut child = Command::new(program).arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let running = Running(child);
        let address = said.trim().strip_prefix("serving at http://").and_then(|url| url.strip_suffix("/mcp")).unwrap();
        (running, address.parse().unwrap())
    }
}

/// Sends a request and returns the first line of the answer.
fn raw(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    line
}

#[test]
fn the_driver_serves_clients_of_all_revisions() {
    let (_running, address) = Running::start();
    for revision in Revision::ALL {
        let profile = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut steps = 0;
        let handler = |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
            steps += i32::from(matches!(event, ClientEvent::Progress { .. }));
        };
        let mut client = Client::new(Http::new(&format!("http://{address}/mcp"), &profile).unwrap(), handler);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let answer = client.request(&Request::call("count").with_progress()).unwrap();
        assert!(answer.as_str().contains("three"), "{answer:?}");
        client.close();
        assert_eq!(steps, 3, "{revision:?}");
    }
    let page = raw(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 404"), "{page}");
    // Refused before its body has come.
    let refused = raw(address, "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n{");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}
