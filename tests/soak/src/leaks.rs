//! Rounds of connections that end anywhere, after which the server holds what it held before.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use crate::attacks::{connect, post, read_some, session};
use crate::server::Server;

/// How many rounds come before the first look: what is kept for later, such as buffers and sessions up to their limit, is
/// there from then on.
const WARM_UP: u32 = 4;
/// How much more memory may be in use at the end, in KiB: what an allocator does not give back at once.
const MEMORY: u64 = 4 << 10;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no such tool","arguments":{}}}"#;

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// Runs a quarter of the rounds, looks, runs the rest, and looks again. Returns what did not hold.
pub(crate) fn look(server: &Server, rounds: u32) -> Vec<String> {
    let mut dice = Dice(1);
    let mut run = |rounds: u32| {
        // A server that closes early makes a round fail: that is a part of it.
        let whole = (0..rounds).filter(|_| round(server.address(), &mut dice).is_ok()).count();
        println!("{rounds} rounds, {whole} of them up to their own end");
        whole
    };
    let mut whole = run(rounds / WARM_UP);
    let before = crate::settled(server, 0, 0, Duration::from_secs(2));
    whole += run(rounds - rounds / WARM_UP);
    let after = crate::settled(server, before.descriptors, before.memory + MEMORY, crate::SETTLE);
    println!("held after a quarter of the rounds: {before}; at the end: {after}");

    let mut wrong = Vec::new();
    if whole < rounds as usize / 2 {
        wrong.push(format!("only {whole} of {rounds} rounds came to their own end: the server did not serve"));
    }
    if after.descriptors > before.descriptors {
        wrong.push(format!("{} descriptors before, {} at the end", before.descriptors, after.descriptors));
    }
    if after.memory > before.memory + MEMORY {
        wrong.push(format!("{} KiB before, {} KiB at the end", before.memory, after.memory));
    }
    wrong
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
        // In order: the session is ended, and the connection.
        0 if !headers.is_empty() => {
            stream.write_all(format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes())?;
            read_some(&mut stream, 4096).map(drop)
        }
        // A stream is opened, heard, and left.
        1 | 0 => {
            let path = if headers.is_empty() { "/sse" } else { "/mcp" };
            let open = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n");
            stream.write_all(open.as_bytes())?;
            read_some(&mut stream, 4096).map(drop)
        }
        // The body is cut, anywhere.
        2 => {
            let request = post("/mcp", &headers, CALL);
            stream.write_all(&request.as_bytes()[..dice.below(request.len())])
        }
        // One side is closed after half a request, and the answer is read.
        3 => {
            stream.write_all(&post("/mcp", &headers, LIST).as_bytes()[..30])?;
            stream.shutdown(Shutdown::Write)?;
            stream.read(&mut [0; 4096]).map(drop)
        }
        // An answer that is there and not read makes the close a reset.
        4 => {
            stream.write_all(post("/mcp", &headers, LIST).as_bytes())?;
            stream.peek(&mut [0]).map(drop)
        }
        // Requests are sent ahead, and nobody waits for their answers.
        _ => stream.write_all(post("/mcp", &headers, LIST).repeat(5).as_bytes()),
    }
}
