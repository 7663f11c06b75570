//! Attacks of hostile clients. Each round has limits of count, bytes and time; rounds repeat until the phase ends.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An attack: one round of it, and the time between two rounds.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) run: fn(SocketAddr, &AtomicBool) -> io::Result<()>,
    pub(crate) pause: Duration,
}

/// Makes an attack with the name of its function.
macro_rules! every {
    ($milliseconds:literal, $run:ident) => {
        Attack { name: stringify!($run), run: $run, pause: Duration::from_millis($milliseconds) }
    };
}

pub(crate) const ALL: &[Attack] = &[
    every!(200, unread_stream),
    every!(500, flood_behind_a_stream),
    every!(200, body_for_a_foreign_host),
    every!(300, sessions),
    every!(100, requests_of_a_client_that_leaves),
    every!(100, questions_without_answers),
    every!(300, many_uris),
    every!(50, resets),
    every!(200, halves),
    every!(100, noise),
    every!(500, answers_not_read),
];

const HOST: &str = "Host: localhost\r\n";
const STREAM: &str = "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{},"sampling":{}},"clientInfo":{"name":"hostile","version":"1"}}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hostile","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Waits, but not longer than the phase.
pub(crate) fn rest(stop: &AtomicBool, time: Duration) {
    let end = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    Ok(stream)
}

pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads the bytes that are there, up to a limit.
pub(crate) fn read_some(stream: &mut TcpStream, most: usize) -> io::Result<String> {
    let mut bytes = vec![0; most];
    let n = stream.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..n]).into_owned())
}

/// Opens a session. Returns the headers of its requests.
pub(crate) fn session(stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(post("/mcp", "", INITIALIZE).as_bytes())?;
    let answer = read_some(stream, 4096)?;
    let id = answer
        .lines()
        .find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")));
    let (_, id) = id.ok_or_else(|| io::Error::other("no session"))?;
    Ok(format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n"))
}

/// Lets answers pile up on a stream of 2024-11-05, and then reads it.
fn unread_stream(address: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(STREAM.as_bytes())?;
    let opened = read_some(&mut stream, 4096)?;
    let path = opened
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .ok_or_else(|| io::Error::other("no endpoint"))?
        .to_owned();
    let mut posts = connect(address)?;
    let ping = post(&path, "", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).repeat(50);
    posts.write_all(post(&path, "", INITIALIZE).as_bytes())?;
    for _ in 0..400 {
        if stop.load(Ordering::Relaxed) || posts.write_all(ping.as_bytes()).is_err() {
            break;
        }
        read_some(&mut posts, 1 << 16)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..64 {
        if stream.read(&mut bytes)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Sends many bytes behind an open stream, then resets the connection.
fn flood_behind_a_stream(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(STREAM.as_bytes())?;
    read_some(&mut stream, 4096)?;
    let much = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        if stream.write_all(&much).is_err() {
            break;
        }
    }
    Ok(())
}

/// Sends a large body that must be refused, at the latest when it is complete.
fn body_for_a_foreign_host(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\n\r\n")?;
    let much = vec![b' '; 1 << 20];
    for _ in 0..15 {
        stream.write_all(&much)?;
    }
    read_some(&mut stream, 4096).map(drop)
}

/// Opens sessions and does not use them.
fn sessions(address: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    let request = post("/mcp", "", INITIALIZE).repeat(20);
    for _ in 0..50 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        stream.write_all(request.as_bytes())?;
        read_some(&mut stream, 1 << 16)?;
    }
    Ok(())
}

/// Makes slow calls and does not wait for the answers.
fn requests_of_a_client_that_leaves(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    call_and_leave(address, r#""name":"watch","arguments":{"seconds":60}"#)
}

/// Makes calls that ask the user, and does not answer.
fn questions_without_answers(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    call_and_leave(address, r#""name":"kill_hint","arguments":{"pid":1}"#)
}

/// Calls a tool 40 times in one session; each connection is closed at once.
fn call_and_leave(address: SocketAddr, params: &str) -> io::Result<()> {
    let headers = session(&mut connect(address)?)?;
    for id in 0..40 {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#);
        connect(address)?.write_all(post("/mcp", &headers, &call).as_bytes())?;
    }
    Ok(())
}

/// A listen with thousands of URIs.
fn many_uris(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    let uris: Vec<String> = (0..20_000).map(|index| format!(r#""sys://process/{index}""#)).collect();
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{{META},"notifications":{{"resourceSubscriptions":[{}]}}}}}}"#,
        uris.join(",")
    );
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    stream.write_all(post("/mcp", headers, &listen).as_bytes())?;
    read_some(&mut stream, 4096).map(drop)
}

/// Resets connections in the middle of a request.
fn resets(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    let request = post("/mcp", "", INITIALIZE);
    for cut in (0..request.len()).step_by(23) {
        let mut stream = connect(address)?;
        stream.write_all(&request.as_bytes()[..cut])?;
        // Unread bytes on either side make the close a reset.
    }
    Ok(())
}

/// Sends heads and bodies without an end.
fn halves(address: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut held = Vec::new();
    for part in 0..40 {
        let mut stream = connect(address)?;
        let half: &[u8] = if part % 2 == 0 {
            b"POST /mcp HTT"
        } else {
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
        };
        stream.write_all(half)?;
        held.push(stream);
    }
    rest(stop, Duration::from_secs(1));
    Ok(())
}

/// Sends bytes that are not HTTP, or not JSON.
fn noise(address: SocketAddr, _: &AtomicBool) -> io::Result<()> {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64 ^ u64::from(address.port());
    let mut bytes: Vec<u8> = (0..4096)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .collect();
    connect(address)?.write_all(&bytes)?;
    bytes.iter_mut().for_each(|byte| *byte = b'[' | (*byte & 32));
    let body = String::from_utf8_lossy(&bytes).into_owned();
    let mut stream = connect(address)?;
    stream.write_all(post("/mcp", "", &body).as_bytes())?;
    read_some(&mut stream, 4096).map(drop)
}

/// Sends many requests over one connection, and reads no answer.
fn answers_not_read(address: SocketAddr, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = connect(address)?;
    let headers = session(&mut stream)?;
    let list = post("/mcp", &headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).repeat(20);
    for _ in 0..100 {
        if stop.load(Ordering::Relaxed) || stream.write_all(list.as_bytes()).is_err() {
            break;
        }
    }
    rest(stop, Duration::from_secs(1));
    Ok(())
}
