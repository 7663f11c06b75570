//! A load on HTTP servers of any library: requests over kept connections, each with one under way, and the time of each
//! answer. Answers may be JSON or an event stream, with a length or in chunks; each is compared with the first one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::web::{MODERN, number, post_to, session_fields};
use crate::{Kind, OPENING, id, text};

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// One kept connection, with the requests of one kind.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
    request: Vec<u8>,
    id_in: usize,
    text_in: usize,
    /// The message of the first answer, and its places for the numbers.
    template: Vec<u8>,
    id_at: usize,
    text_at: usize,
    n: u64,
    sent: Instant,
}

/// The parts of a whole answer.
struct Answer {
    status: u16,
    session: Option<String>,
    message: Vec<u8>,
    len: usize,
}

impl Connection {
    /// Connects, opens a session if the kind needs one, and makes a first request.
    ///
    /// # Errors
    /// The reason why the server does not serve this kind.
    pub fn open(port: u16, kind: Kind) -> Result<Self, String> {
        let socket = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(PATIENCE))).expect("a TCP socket");
        let (received, request, template) = (Vec::new(), Vec::new(), Vec::new());
        let (id_in, text_in, id_at, text_at) = (0, 0, 0, 0);
        let sent = Instant::now();
        let mut it = Connection { socket, received, request, id_in, text_in, template, id_at, text_at, n: 0, sent };
        let host = format!("127.0.0.1:{port}");
        let fields = if kind.is_modern() {
            format!("{MODERN}Mcp-Method: tools/call\r\nMcp-Name: echo\r\n")
        } else {
            it.handshake(&host)?
        };
        it.request = post_to(&host, kind.line(0).trim_end(), &fields);
        let answer = it.ask(&it.request.clone())?;
        let found = |json: &serde_json::Value| json["result"]["content"][0]["text"] == *text(kind, 0);
        match serde_json::from_slice::<serde_json::Value>(&answer.message) {
            Ok(json) if answer.status == 200 && json["id"] == id(0) && found(&json) => {}
            _ => return Err(format!("{} {}", answer.status, shorten(&answer.message))),
        }
        let place =
            |bytes: &[u8], what: &str| memchr::memmem::find(bytes, what.as_bytes()).ok_or("no place for a number");
        (it.id_in, it.text_in) = (place(&it.request, &id(0).to_string())?, place(&it.request, "0000000000x")?);
        (it.id_at, it.text_at) = (place(&answer.message, &id(0).to_string())?, place(&answer.message, "0000000000x")?);
        it.template = answer.message;
        Ok(it)
    }

    /// Opens a session. Returns the header fields of its requests.
    fn handshake(&mut self, host: &str) -> Result<String, String> {
        let mut messages = OPENING.lines();
        let opened = self.ask(&post_to(host, messages.next().unwrap_or_default(), ""))?;
        if opened.status != 200 {
            return Err(format!("initialize: {} {}", opened.status, shorten(&opened.message)));
        }
        let mut fields = session_fields(opened.session.as_deref().unwrap_or_default());
        if opened.session.is_none() {
            fields.truncate(fields.find("Mcp-Session-Id").unwrap_or(fields.len()));
        }
        self.ask(&post_to(host, messages.next().unwrap_or_default(), &fields))?;
        Ok(fields)
    }

    fn ask(&mut self, request: &[u8]) -> Result<Answer, String> {
        self.socket.write_all(request).map_err(|error| error.to_string())?;
        loop {
            if let Some(answer) = answer(&self.received) {
                self.received.drain(..answer.len);
                return Ok(answer);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let from = self.received.len();
        self.received.resize(from + (256 << 10), 0);
        let n = self.socket.read(&mut self.received[from..]).map_err(|error| error.to_string());
        self.received.truncate(from + n.as_ref().map_or(0, |n| *n));
        if n? == 0 { Err("it closed the connection".to_owned()) } else { Ok(()) }
    }

    /// Sends the next request.
    fn send(&mut self) -> Result<(), String> {
        self.n += 1;
        number(&mut self.request[self.id_in..], id(self.n));
        number(&mut self.request[self.text_in..], self.n);
        self.sent = Instant::now();
        self.socket.write_all(&self.request).map_err(|error| error.to_string())
    }

    /// Reads what has come. Returns the time that the answer took, if it is whole.
    fn take(&mut self) -> Result<Option<Duration>, String> {
        self.read()?;
        let Some(answer) = answer(&self.received) else { return Ok(None) };
        let took = self.sent.elapsed();
        number(&mut self.template[self.id_at..], id(self.n));
        number(&mut self.template[self.text_at..], self.n);
        if answer.message != self.template {
            return Err(format!("something else came back: {}", shorten(&answer.message)));
        }
        self.received.drain(..answer.len);
        Ok(Some(took))
    }
}

fn shorten(message: &[u8]) -> String {
    String::from_utf8_lossy(message).chars().take(150).filter(|c| !c.is_control()).collect()
}

/// Takes a whole answer apart; `None` if it has not come yet.
fn answer(bytes: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(begin) = head.parse(bytes).expect("a head") else { return None };
    let field = |name: &str| {
        let field = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        field.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    let status = head.code.unwrap_or(0);
    let behind = &bytes[begin..];
    let (body, len) = if let Some(length) = field("content-length") {
        let length = length.trim().parse().expect("a length");
        (behind.get(..length)?.to_vec(), length)
    } else if field("transfer-encoding").is_some() {
        chunks(behind)?
    } else {
        (Vec::new(), 0)
    };
    let message = match body.first() {
        Some(b'{') | None => body,
        // The last event with data has the answer. Some servers begin with an empty one.
        _ => {
            let lines = body.split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
            lines.map(<[u8]>::trim_ascii).rfind(|data| !data.is_empty()).unwrap_or(&body).to_vec()
        }
    };
    Some(Answer { status, session: field("mcp-session-id"), message, len: begin + len })
}

/// Joins the chunks of a body. Returns it with the length of all of them; `None` if the last has not come yet.
fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let httparse::Status::Complete((head, size)) = httparse::parse_chunk_size(&bytes[at..]).expect("a chunk")
        else {
            return None;
        };
        let (from, size) = (at + head, usize::try_from(size).expect("a size"));
        at = from + size + 2;
        body.extend_from_slice(bytes.get(from..at)?.get(..size)?);
        if size == 0 {
            return Some((body, at));
        }
    }
}

/// Keeps a request under way on each connection for this time. Returns the seconds that it took, and the microseconds of each
/// answer.
///
/// # Errors
/// The reason why the server failed.
pub fn run(connections: &mut [Connection], time: Duration) -> Result<(f64, Vec<f64>), String> {
    let (began, mut took) = (Instant::now(), Vec::new());
    let mut under_way = vec![true; connections.len()];
    connections.iter_mut().try_for_each(Connection::send)?;
    while under_way.contains(&true) {
        let ready: Vec<bool> = {
            let fds = connections.iter().map(|connection| PollFd::new(&connection.socket, PollFlags::IN));
            let mut fds: Vec<_> = fds.collect();
            let patience = Timespec::try_from(PATIENCE).expect("some seconds");
            if poll(&mut fds, Some(&patience)).map_err(|error| error.to_string())? == 0 {
                return Err("no answer in 10 s".to_owned());
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let over = began.elapsed() > time;
        for (place, connection) in connections.iter_mut().enumerate() {
            if !ready[place] || !under_way[place] {
                continue;
            }
            if let Some(one) = connection.take()? {
                took.push(one.as_secs_f64() * 1e6);
                under_way[place] = !over;
                if !over {
                    connection.send()?;
                }
            }
        }
    }
    Ok((began.elapsed().as_secs_f64(), took))
}
