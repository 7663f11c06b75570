//! The floor over HTTP: `floor-http http PORT`. httparse reads the heads, floor.rs the bodies; it uses poll,
//! one thread and buffers that are kept. It checks nothing of HTTP: it accepts any path and any header, and
//! knows only `Content-Length`.

#[allow(dead_code)]
#[path = "floor.rs"]
mod floor;

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    end: usize,
}

/// Answers all whole requests. Returns the number of their bytes.
fn answers(input: &[u8], body: &mut Vec<u8>, out: &mut Vec<u8>) -> usize {
    let mut start = 0;
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(at)) = head.parse(&input[start..]) else { return start };
        let length = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok()).unwrap_or(0usize);
        let Some(content) = input.get(start + at..start + at + length) else { return start };
        body.clear();
        floor::answer(content, body);
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        let length = body.len();
        let _ = write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Type: application/json\r\n\r\n");
        out.extend_from_slice(body);
        start += at + content.len();
    }
}

impl Connection {
    /// Reads, answers, writes. Returns `false` when the connection is over.
    fn turn(&mut self, body: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        if self.end == self.input.len() {
            self.input.resize(self.end * 2, 0);
        }
        match self.socket.read(&mut self.input[self.end..]) {
            Ok(0) => return false,
            Ok(n) => self.end += n,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
        out.clear();
        let done = answers(&self.input[..self.end], body, out);
        self.input.copy_within(done..self.end, 0);
        self.end -= done;
        // The measured answers fit into the buffer of the socket.
        self.socket.write_all(out).is_ok()
    }
}

fn main() -> io::Result<()> {
    let port: u16 = std::env::args().nth(2).and_then(|port| port.parse().ok()).ok_or(ErrorKind::InvalidInput)?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let mut connections: Vec<Connection> = Vec::new();
    let (mut body, mut out, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let mut fds = Vec::with_capacity(connections.len() + 1);
        fds.push(PollFd::new(&listener, PollFlags::IN));
        fds.extend(connections.iter().map(|connection| PollFd::new(&connection.socket, PollFlags::IN)));
        poll(&mut fds, None)?;
        ready.clear();
        ready.extend(fds.iter().map(|fd| !fd.revents().is_empty()));
        let mut turns = ready[1..].iter();
        connections.retain_mut(|connection| turns.next() != Some(&true) || connection.turn(&mut body, &mut out));
        while let Ok((socket, _)) = listener.accept() {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            connections.push(Connection { socket, input: vec![0; 4096], end: 0 });
        }
    }
}
