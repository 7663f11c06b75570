//! As much HTTP/1.1 as the mock needs.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the path.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("")
    }

    /// Returns the values of all headers called `name`.
    pub fn headers<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r str> {
        self.headers
            .iter()
            .filter(move |(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the first header called `name`, or the empty text.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// Returns the parameters of the query.
    pub fn query(&self) -> Vec<(String, String)> {
        form(self.target.split_once('?').map_or("", |(_, query)| query))
    }

    /// Returns the parameters of a form.
    pub fn form(&self) -> Vec<(String, String)> {
        form(std::str::from_utf8(&self.body).unwrap_or(""))
    }

    /// Returns a parameter of the query or the form, or the empty text.
    pub fn param(&self, name: &str) -> String {
        let all = self.query().into_iter().chain(self.form());
        all.into_iter().find(|(key, _)| key == name).map(|(_, value)| value).unwrap_or_default()
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// All headers but the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The body goes on without end: this is sent again and again.
    pub endless: bool,
}

impl Response {
    /// Makes a response.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Response { status, headers, body: body.into(), endless: false }
    }

    /// Makes a response with JSON.
    pub fn json(status: u16, value: &Value) -> Self {
        Response::new(status, "application/json", value.to_string())
    }

    /// Makes a redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        Response::new(status, "text/plain", "").with("Location", location)
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }
}

/// Reads `application/x-www-form-urlencoded`.
pub fn form(text: &str) -> Vec<(String, String)> {
    let plain = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let hex = |byte: Option<u8>| char::from(byte.unwrap_or(b'0')).to_digit(16).unwrap_or(0) as u8;
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => hex(rest.next()) * 16 + hex(rest.next()),
                byte => byte,
            });
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (plain(key), plain(value)))
        .collect()
}

/// Escapes a value of a form.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            byte => write!(out, "%{byte:02X}").unwrap(),
        }
    }
    out
}

pub(crate) fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    (listener, origin)
}

pub(crate) fn serve(listener: TcpListener, handle: impl Fn(&Request) -> Response + Send + Sync + 'static) {
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let handle = handle.clone();
            thread::spawn(move || converse(socket, &*handle));
        }
    });
}

/// Answers the requests of one connection.
fn converse(socket: TcpStream, handle: &dyn Fn(&Request) -> Response) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut writer = socket;
    loop {
        let request = read(&mut reader)?;
        let response = handle(&request);
        let mut head = format!("HTTP/1.1 {} Status\r\n", response.status);
        for (name, value) in &response.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if response.endless {
            writer.write_all(format!("{head}\r\n").as_bytes()).ok()?;
            loop {
                writer.write_all(&response.body).ok()?;
            }
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", response.body.len());
        writer.write_all(&[head.into_bytes(), response.body].concat()).ok()?;
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { method, target, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
