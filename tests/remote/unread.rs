//! Requests of HTTP with SSE wait while the stream of their session is not read: the same for both adapters.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mcp_sansio::service::{Service, Tool};

static TOOLS: [Tool<()>; 1] = [Tool::new("large", "Twelve MiB", |_, call| call.text(&*"x".repeat(12 << 20)))];

pub(crate) const SERVICE: Service<'static, ()> = Service::new("unread", "1").tools(&TOOLS);

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let mut socket = connect(address);
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket
}

pub(crate) fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let (mut text, mut chunk) = (String::new(), vec![0; 64 * 1024]);
    let mut seen = 0;
    while !text[seen..].contains(end) {
        // The end may be in two pieces.
        seen = text.len().saturating_sub(end.len());
        let n = socket.read(&mut chunk).unwrap();
        assert!(n > 0, "the end, without {end}");
        text.push_str(std::str::from_utf8(&chunk[..n]).unwrap());
    }
    text
}

/// Opens a session, and calls for a large answer that is not read. Returns the stream, and the path for requests.
pub(crate) fn unread_session(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = connect(address);
    stream.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    let begun = read_until(&mut stream, "\n\n");
    let path = begun.split("data: ").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    assert!(read_until(&mut post(address, &path, hello), "\r\n\r\n").starts_with("HTTP/1.1 202"));
    read_until(&mut stream, "\"id\":0");
    let large = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}"#;
    assert!(read_until(&mut post(address, &path, large), "\r\n\r\n").starts_with("HTTP/1.1 202"));
    (stream, path)
}

pub(crate) const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// Checks that a request is not answered for some time.
pub(crate) fn waits(socket: &mut TcpStream) {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let waits = socket.read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(waits, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{waits:?}");
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
}

/// While a large answer is not read, the next request of its session waits. It could be refused, if its answer did not fit too.
pub(crate) fn a_request_waits_for_its_stream(address: SocketAddr) {
    let (mut stream, path) = unread_session(address);
    let mut second = post(address, &path, PING);
    waits(&mut second);
    // Others do not wait for it.
    let begun = Instant::now();
    assert!(read_until(&mut post(address, "/nowhere", "{}"), "\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let reader = std::thread::spawn(move || read_until(&mut stream, "\"id\":2"));
    assert!(read_until(&mut second, "\r\n\r\n").starts_with("HTTP/1.1 202"));
    reader.join().unwrap();
}
