//! Rounds of connections that end anywhere. Afterwards the server must hold no more resources than before.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use crate::attacks::{connect, post, read_some, session};
use crate::server::{Holds, Server};

/// The part of the rounds before the first look (one in this many): they fill everything that is kept, such as
/// buffers and sessions.
const WARM_UP: u32 = 4;
/// The limit of additional memory at the end, in KiB: an allocator does not return all memory at once.
const MEMORY: u64 = 4 << 10;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no such tool","arguments":{}}}"#;

/// Random numbers, the same in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// The number of rounds, and how many of them must reach their own end.
pub(crate) struct Rounds {
    pub(crate) rounds: u32,
    pub(crate) enough: u32,
}

impl Rounds {
    /// Runs the first part of the rounds, looks, runs the rest, and looks again. Returns the violations.
    pub(crate) fn look(&self, mut round: impl FnMut(u32) -> bool, holds: impl Fn() -> Holds) -> Vec<String> {
        let first = self.rounds / WARM_UP;
        let mut whole = (0..first).filter(|&index| round(index)).count();
        let before = crate::settled(&holds, 0, 0, Duration::from_secs(2));
        whole += (first..self.rounds).filter(|&index| round(index)).count();
        let after = crate::settled(&holds, before.descriptors, before.memory + MEMORY, crate::SETTLE);
        println!("{} rounds, {whole} of them up to their own end", self.rounds);
        println!("held after a quarter of the rounds: {before}; at the end: {after}");

        let mut wrong = Vec::new();
        if whole < self.enough as usize {
            wrong.push(format!("only {whole} of {} rounds came to their own end", self.rounds));
        }
        if after.descriptors > before.descriptors {
            wrong.push(format!("{} descriptors before, {} at the end", before.descriptors, after.descriptors));
        }
        if after.memory > before.memory + MEMORY {
            wrong.push(format!("{} KiB before, {} KiB at the end", before.memory, after.memory));
        }
        wrong
    }
}

/// Runs rounds against a server. Returns the violations.
pub(crate) fn look(server: &Server, rounds: u32) -> Vec<String> {
    let mut dice = Dice(1);
    // If the server closes early, the round fails: that is allowed.
    Rounds { rounds, enough: rounds / 2 }.look(|_| round(server.address(), &mut dice).is_ok(), || server.holds())
}

/// One connection, or two, with a random part of a conversation and a random end.
fn round(address: SocketAddr, dice: &mut Dice) -> io::Result<()> {
    let mut stream = connect(address)?;
    let headers = if dice.below(2) == 0 { session(&mut stream)? } else { String::new() };
    for _ in 0..dice.below(4) {
        let message = [PING, LIST, CALL][dice.below(3)];
        stream.write_all(post("/mcp", &headers, message).as_bytes())?;
        read_some(&mut stream, 1 << 16)?;
    }
    match dice.below(6) {
        // In order: ends the session, then the connection.
        0 if !headers.is_empty() => {
            stream.write_all(format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes())?;
            read_some(&mut stream, 4096).map(drop)
        }
        // Opens a stream, reads it, and leaves.
        1 | 0 => {
            let path = if headers.is_empty() { "/sse" } else { "/mcp" };
            let open = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n");
            stream.write_all(open.as_bytes())?;
            read_some(&mut stream, 4096).map(drop)
        }
        // Cuts the body anywhere.
        2 => {
            let request = post("/mcp", &headers, CALL);
            stream.write_all(&request.as_bytes()[..dice.below(request.len())])
        }
        // Closes one side after half a request, and reads the answer.
        3 => {
            stream.write_all(&post("/mcp", &headers, LIST).as_bytes()[..30])?;
            stream.shutdown(Shutdown::Write)?;
            stream.read(&mut [0; 4096]).map(drop)
        }
        // Closes with an unread answer, which makes a reset.
        4 => {
            stream.write_all(post("/mcp", &headers, LIST).as_bytes())?;
            stream.peek(&mut [0]).map(drop)
        }
        // Sends requests ahead, and does not wait for their answers.
        _ => stream.write_all(post("/mcp", &headers, LIST).repeat(5).as_bytes()),
    }
}
