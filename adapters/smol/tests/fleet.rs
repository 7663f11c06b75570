//! Two servers of one fleet: what comes from the other one wakes the loop.
#![cfg(feature = "fleet")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Service, Tool};
use mcp_sansio_smol::http::fleet::{MemoryHub, ProcessTag};
use mcp_sansio_smol::http::{HttpServer, Stopper};

static TOOLS: [Tool<()>; 1] = [Tool::new("change", "Changes the tools", |(), call| {
    call.publish(ServerChange::Tools);
    call.text("changed")
})];

fn start(hub: &MemoryHub, tag: u32) -> (SocketAddr, Stopper, thread::JoinHandle<std::io::Result<()>>) {
    let server = HttpServer::bind("127.0.0.1:0").unwrap().fleet(hub.join(ProcessTag::new(tag)));
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let serve = move || {
        let service = Service::new("test", "1").tools(&TOOLS).feature(ServerCapability::ToolsChanged);
        smol::block_on(server.serve(&service, &mut ()))
    };
    (address, stopper, thread::spawn(serve))
}

/// Posts a request of 2026-07-28. Returns the socket.
fn post(address: SocketAddr, method: &str, name: &str, params: &str) -> TcpStream {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{meta}}}}}"#);
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(
        socket,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket
}

fn read_to(socket: &mut TcpStream, words: &str) {
    let mut text = String::new();
    while !text.contains(words) {
        let mut bytes = [0; 1024];
        let n = socket.read(&mut bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(n > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
}

#[test]
fn a_change_of_another_server_is_sent_at_once() {
    let hub = MemoryHub::new();
    let (one, two) = (start(&hub, 1), start(&hub, 2));
    let listen = r#""notifications":{"toolsListChanged":true}"#;
    let mut heard = post(one.0, "subscriptions/listen", "", listen);
    read_to(&mut heard, "acknowledged");
    let began = Instant::now();
    read_to(&mut post(two.0, "tools/call", "change", r#""name":"change","arguments":{}"#), "changed");
    read_to(&mut heard, "notifications/tools/list_changed");
    // Not when the next keep-alive is due, after 15 s.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    for (_, stopper, thread) in [one, two] {
        stopper.stop();
        thread.join().unwrap().unwrap();
    }
}
