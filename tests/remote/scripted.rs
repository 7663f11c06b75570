//! A server over HTTP that answers as a script of the test says, right or wrong. The tests of all adapters include it
//! by its path.
#![allow(unreachable_pub, dead_code, reason = "shared by tests that need different parts")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The script of a server: it gets the number, head and body of a request, and the socket.
type Script = dyn Fn(usize, &str, &mut TcpStream) + Send + Sync;

/// A server that answers by a script. Each connection has a thread, serves one request and is closed, so an answer after
/// which the client goes on says `Connection: close`: what is sent on a connection that closes is lost.
#[derive(Clone)]
pub struct Scripted {
    pub address: SocketAddr,
    pub requests: Arc<Mutex<Vec<String>>>,
}

pub fn scripted(script: impl Fn(usize, &str, &mut TcpStream) + Send + Sync + 'static) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (script, seen): (Arc<Script>, _) = (Arc::new(script), requests.clone());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(mut socket), script, seen) = (socket, script.clone(), seen.clone()) else { return };
            thread::spawn(move || {
                let Some(request) = read_request(&mut socket) else { return };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                script(number, &request, &mut socket);
            });
        }
    });
    Scripted { address, requests }
}

impl Scripted {
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns whether a request was received.
    pub fn was_asked(&self, what: &str) -> bool {
        self.requests.lock().unwrap().iter().any(|request| request.contains(what))
    }
}

/// Reads a whole request.
fn read_request(socket: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        match socket.read(&mut chunk) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
}

/// The id of a request.
pub fn id(request: &str) -> &str {
    let rest = request.split("\"id\":").nth(1).unwrap_or("0");
    rest.split([',', '}']).next().unwrap()
}

pub fn answer(request: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"resultType":"complete"}}}}"#, id(request))
}

pub fn json(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// An answer without a body: its status and its other headers.
pub fn empty(head: &str) -> String {
    format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
}

pub fn stream(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}")
}

pub fn send(socket: &mut TcpStream, text: &str) {
    let _ = socket.write_all(text.as_bytes());
}

/// Waits until the other side closes the connection.
pub fn until_gone(socket: &mut TcpStream) {
    let mut waste = [0; 1024];
    while socket.read(&mut waste).is_ok_and(|n| n > 0) {}
}
