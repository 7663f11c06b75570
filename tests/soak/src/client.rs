//! A well-behaved client: sessions of 2025-11-25 and requests of 2026-07-28, at its own pace.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The time between two calls of a client.
const PACE: Duration = Duration::from_millis(4);
/// The limit of time for a call.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of calls over one connection and in one session.
const CALLS: usize = 200;

/// The outcomes of a client's calls.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) times: Vec<Duration>,
    pub(crate) wrong: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, all] = [50, 99, 100].map(|percent| self.percentile(percent));
        write!(f, "p50 {half:.1?}, p99 {most:.1?}, slowest {all:.1?}")
    }
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.times.extend(other.times);
        self.times.sort_unstable();
        self.wrong.extend(other.wrong);
    }

    /// The time in which `percent` of 100 calls were answered.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get((self.times.len() * percent / 100).min(last)).copied().unwrap_or_default()
    }
}

/// Makes calls until `end`, over one connection after another.
pub(crate) fn work(address: SocketAddr, index: usize, end: Instant) -> Tally {
    let mut tally = Tally::default();
    let mut round = index;
    while Instant::now() < end {
        round += 1;
        let worked =
            if round.is_multiple_of(2) { legacy(address, end, &mut tally) } else { modern(address, end, &mut tally) };
        if let Err(error) = worked {
            tally.wrong.push(error.to_string());
            std::thread::sleep(PACE * 10);
        }
    }
    tally
}

fn legacy(address: SocketAddr, end: Instant, tally: &mut Tally) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}"#;
    let opened = connection.post("", initialize, tally)?;
    let session = opened.header("mcp-session-id").ok_or_else(|| wrong(&opened))?;
    let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
    connection.post(&headers, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, tally)?;
    for id in 1..=CALLS {
        if Instant::now() >= end {
            break;
        }
        let list = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let answer = connection.post(&headers, &list, tally)?;
        if !answer.body.contains(&format!(r#""id":{id},"result":{{"tools":[{{"name":"#)) {
            return Err(wrong(&answer));
        }
        std::thread::sleep(PACE);
    }
    connection.request("DELETE", &headers, "", tally)?;
    Ok(())
}

fn modern(address: SocketAddr, end: Instant, tally: &mut Tally) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
    for id in 1..=CALLS {
        if Instant::now() >= end {
            break;
        }
        let list = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"soak","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let answer = connection.post(headers, &list, tally)?;
        if !answer.body.contains(&format!(r#""id":{id},"#)) || !answer.body.contains(r#""tools":[{"name":"#) {
            return Err(wrong(&answer));
        }
        std::thread::sleep(PACE);
    }
    Ok(())
}

fn wrong(answer: &Answer) -> io::Error {
    io::Error::other(format!("{} {}", answer.head.lines().next().unwrap_or_default(), answer.body))
}

struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    fn post(&mut self, headers: &str, message: &str, tally: &mut Tally) -> io::Result<Answer> {
        self.request("POST", headers, message, tally)
    }

    /// Sends a request, reads its answer, and counts the time of both.
    fn request(&mut self, method: &str, headers: &str, body: &str, tally: &mut Tally) -> io::Result<Answer> {
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let begun = Instant::now();
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(io::Error::other("the server closed the connection"));
            }
        }
        let mut answer = Answer { head, body: String::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        tally.times.push(begun.elapsed());
        answer.body = String::from_utf8(body).map_err(io::Error::other)?;
        if answer.head.starts_with("HTTP/1.1 2") { Ok(answer) } else { Err(wrong(&answer)) }
    }
}
