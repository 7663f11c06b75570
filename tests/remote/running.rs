//! An example that is a program of its own: started, asked over a socket, ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// An example that runs. It is killed when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts an example, which says at what address it serves. Returns the address too.
    pub(crate) fn start(program: &str) -> (Self, SocketAddr) {
        let mut child = Command::new(program).arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let running = Running(child);
        let address = said.trim().strip_prefix("serving at http://").and_then(|url| url.strip_suffix("/mcp")).unwrap();
        (running, address.parse().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Sends bytes on a new connection. Returns all that comes until it is closed.
pub(crate) fn raw(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}
