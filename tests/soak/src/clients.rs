//! Rounds of our own HTTP clients against a server that breaks connections anywhere. Afterwards the clients must hold
//! no more resources than before.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcp_sansio_blocking::client as blocking;
use mcp_sansio_blocking::mcp_sansio::client::{ClientInfo, Request};
use mcp_sansio_blocking::mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio_smol::client as smol_client;

use crate::leaks::{Dice, Rounds};
use crate::server::Holds;

const PROFILE: ClientInfo<'static> =
    ClientInfo::new("soak", "1").revisions(Revisions::NONE.with(Revision::V2025_11_25));
/// The time for a request: the server breaks the connection rather than let the client wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// The limit of time for a round.
const HANGS: Duration = Duration::from_secs(20);

/// A round at a URL. Returns how many requests were answered.
type Round = fn(&str, &mut Dice) -> usize;

/// Runs rounds of each client. Returns the violations.
pub(crate) fn look(rounds: u32) -> Vec<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    let server = std::thread::spawn({
        let stop = stop.clone();
        move || serve(&listener, &stop)
    });
    let url = format!("http://{address}/mcp");
    let clients: [(&str, Round); 2] = [("blocking", with_blocking), ("smol", with_smol)];
    let mut wrong = Vec::new();
    for (name, round) in clients {
        let (mut dice, mut answers, mut slowest) = (Dice(7), 0, Duration::ZERO);
        let run = |_: u32| {
            let begun = Instant::now();
            let answered = round(&url, &mut dice);
            slowest = slowest.max(begun.elapsed());
            answers += answered;
            answered > 0
        };
        let found = Rounds { rounds, enough: rounds / 4 }.look(run, || Holds::of("self"));
        println!("{name}: {answers} requests were answered, the slowest round took {slowest:?}");
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        if slowest > HANGS {
            wrong.push(format!("{name}: a round took {slowest:?}"));
        }
    }
    stop.store(true, Ordering::Relaxed);
    let _ = TcpStream::connect(address);
    let _ = server.join();
    wrong
}

/// Returns times of connections for a near server.
fn config() -> blocking::HttpClientConfig {
    blocking::HttpClientConfig::DEFAULT.retry_time(1).retry_most(5).tries(2)
}

/// A client of a random revision, some requests, and the end. Returns how many were answered.
fn with_blocking(url: &str, dice: &mut Dice) -> usize {
    let options = blocking::ClientOptions::DEFAULT.timeout(PATIENCE);
    let options = blocking::HttpOptions::new().options(options).config(config()).settle_time(Duration::from_millis(20));
    let http = blocking::Http::with(url, &PROFILE, options).expect("it is a URL");
    let mut client = blocking::Client::new(http, blocking::Ignore);
    let connected = match dice.below(2) {
        0 => client.connect_as(Revision::V2026_07_28).is_ok(),
        _ => client.connect().is_ok(),
    };
    let calls = if connected { 1 + dice.below(4) } else { 0 };
    let answered = (0..calls).filter(|_| client.request(&Request::call("any")).is_ok()).count();
    if dice.below(2) == 0 {
        client.close();
    }
    answered
}

/// The same with futures.
fn with_smol(url: &str, dice: &mut Dice) -> usize {
    let options = smol_client::ClientOptions::DEFAULT.timeout(PATIENCE);
    let options = smol_client::HttpOptions::new().options(options).config(config());
    let http = smol_client::Http::with(url, &PROFILE, options.settle_time(Duration::from_millis(20)));
    let (client, driver) = smol_client::Client::new(http.expect("it is a URL"), smol_client::Ignore);
    let executor = smol::LocalExecutor::new();
    let driver = executor.spawn(driver);
    smol::block_on(executor.run(async {
        let connected = match dice.below(2) {
            0 => client.connect_as(Revision::V2026_07_28).await.is_ok(),
            _ => client.connect().await.is_ok(),
        };
        let calls = if connected { 1 + dice.below(4) } else { 0 };
        let mut answered = 0;
        for _ in 0..calls {
            answered += usize::from(client.request(Request::call("any")).await.is_ok());
        }
        match dice.below(3) {
            0 => drop(client.close().await),
            1 => {
                drop(client);
                let _ = driver.await;
            }
            _ => {} // both are dropped with the executor
        }
        answered
    }))
}

/// Serves connections, each on a thread of its own.
fn serve(listener: &TcpListener, stop: &AtomicBool) {
    for (index, socket) in listener.incoming().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(socket) = socket else { continue };
        std::thread::spawn(move || converse(socket, &mut Dice(index as u64)));
    }
}

/// Answers requests until the random break.
fn converse(mut socket: TcpStream, dice: &mut Dice) -> io::Result<()> {
    socket.set_read_timeout(Some(HANGS))?;
    socket.set_nodelay(true)?;
    loop {
        let Some(request) = read_request(&mut socket)? else { return Ok(()) };
        let answer = answer(&request, dice);
        if dice.below(3) > 0 {
            socket.write_all(answer.as_bytes())?;
            continue;
        }
        socket.write_all(&answer.as_bytes()[..dice.below(answer.len() + 1)])?;
        return match dice.below(3) {
            0 => socket.shutdown(Shutdown::Write).and_then(|()| socket.read(&mut [0]).map(drop)),
            _ => Ok(()),
        };
    }
}

/// Reads a request with its body; `None` at the end.
fn read_request(socket: &mut TcpStream) -> io::Result<Option<String>> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Ok(Some(text.into_owned()));
            }
        }
        match socket.read(&mut chunk)? {
            0 => return Ok(None),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// Returns a correct answer, as JSON or as a stream.
fn answer(request: &str, dice: &mut Dice) -> String {
    let stream = |events: &str| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{:x}\r\n{events}\r\n", events.len())
    };
    if request.contains("\r\nLast-Event-ID: 2\r\n") {
        return stream("retry: 1\n\n") + "0\r\n\r\n"; // what a request is owed is gone
    }
    if request.starts_with("GET") {
        return stream("id: 1\nretry: 1\ndata:\n\n");
    }
    let Some(id) = request.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next()) else {
        let status = if request.starts_with("POST") { "202 Accepted" } else { "204 No Content" };
        return format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    };
    let (result, session) = if request.contains("\"initialize\"") {
        let server = r#""serverInfo":{"name":"s","version":"1"}"#;
        let result = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},{server}}}"#);
        (result, "Mcp-Session-Id: s\r\n")
    } else {
        (r#"{"content":[],"resultType":"complete"}"#.to_owned(), "")
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    if session.is_empty() && dice.below(2) == 0 {
        return stream(&format!("id: 2\nretry: 1\ndata:\n\ndata: {body}\n\n")) + "0\r\n\r\n";
    }
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{session}Content-Length: {length}\r\n\r\n{body}")
}
