//! A service, and wires in memory that cut, fail and wait as the test requires.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use mcp_sansio::frame::LineBuffer;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::server::{Progress, RequestSlot, RequestToken, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, ReadResource, Resource, Service, Tool};
use mcp_sansio::sink::{LineSink, SliceStorage};

pub type Connection<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

#[derive(Default)]
pub struct State {
    pub time: u64,
    pub late: Option<(RequestToken, u64)>,
    pub changed: bool,
}

fn hello(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text("hello")
}

fn large(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

fn source(_: &mut State, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, mcp_sansio::service::SourceError> {
    let n = bytes.len().min(3_000 - at as usize);
    bytes[..n].fill(b'x');
    Ok(n)
}

fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.late = Some((token, state.time + 3));
    outcome
}

fn touch(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.changed = true;
    call.text("touched")
}

fn status(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("fine")
}

static TOOLS: [Tool<State>; 4] = [
    Tool::new("hello", "Says hello", hello),
    Tool::new("large", "More than fits", large).source(source),
    Tool::new("wait", "Takes three ticks", wait),
    Tool::new("touch", "Changes the status", touch),
];
static RESOURCES: [Resource<State>; 1] = [Resource::new("test://status", "status", status)];
pub const SERVICE: Service<'static, State> = Service::new("test", "1.0")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .feature(mcp_sansio::protocol::ServerCapability::Subscribe);

pub struct Memory {
    pub input: [u8; 512],
    pub output: [u8; 512],
    pub subscriptions: [u8; 128],
    pub slots: [RequestSlot; 4],
}

impl Memory {
    pub fn new() -> Self {
        Memory { input: [0; 512], output: [0; 512], subscriptions: [0; 128], slots: [RequestSlot::FREE; 4] }
    }

    pub fn session(&mut self) -> Connection<'_> {
        let server = Server::new(&mut self.slots).subscriptions(&mut self.subscriptions);
        LineServer::new(LineBuffer::new(&mut self.input), server, LineSink::new(SliceStorage::new(&mut self.output)))
    }
}

/// Does the work of a turn of the loop: a clock, a late answer with its progress, a change.
pub fn tick(state: &mut State, session: &mut Connection<'_>) {
    state.time += 1;
    session.server.expire(state.time);
    if let Some((token, at)) = state.late {
        let _ = session.progress(token, Progress::new(state.time));
        if at <= state.time {
            state.late = None;
            session.answer(&SERVICE, state, token, |_, call| call.text("waited")).unwrap();
        }
    }
    if core::mem::take(&mut state.changed) {
        session.server.publish(ServerChange::Resource("test://status"));
    }
}

fn request(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#) + "\n"
}

pub fn opening() -> String {
    request(
        0,
        "initialize",
        r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#,
    ) + "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
}

pub fn call(id: u32, name: &str) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"{name}","_meta":{{"progressToken":{id}}}}}"#))
}

/// Returns lines that are all answered at once, including garbage and a line that is too long.
pub fn conversation() -> Vec<u8> {
    let mut all = opening() + &call(1, "hello") + "no json\n" + &call(2, "large") + &"y".repeat(700) + "\n";
    all += &call(3, "hello");
    let mut all = all.into_bytes();
    all.extend_from_slice(b"\xff\x00{\r\n\n");
    // The last line has no newline.
    all.extend_from_slice(call(4, "large").trim_end().as_bytes());
    all
}

pub fn ids(output: &[u8]) -> Vec<u64> {
    messages(output).iter().filter(|m| m["result"].is_object()).map(|m| m["id"].as_u64().unwrap()).collect()
}

pub fn messages(output: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(output).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl core::fmt::Display for Broken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("broken")
    }
}

impl core::error::Error for Broken {}

impl embedded_io::Error for Broken {
    fn kind(&self) -> embedded_io::ErrorKind {
        embedded_io::ErrorKind::Other
    }
}

/// A reader that returns at most a given number of bytes at a time, and fails once before a given byte.
pub struct Rx<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
    pub piece: usize,
    pub fails_at: Option<usize>,
    /// Every second check finds nothing.
    pub waits: bool,
    pub looks: usize,
}

impl<'b> Rx<'b> {
    pub fn new(bytes: &'b [u8], piece: usize) -> Self {
        Rx { bytes, at: 0, piece, fails_at: None, waits: false, looks: 0 }
    }

    pub fn next(&mut self, place: &mut [u8]) -> Result<usize, Broken> {
        assert!(!place.is_empty());
        if self.fails_at.take_if(|at| *at <= self.at).is_some() {
            return Err(Broken);
        }
        let n = self.piece.min(place.len()).min(self.bytes.len() - self.at);
        place[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl embedded_io::ErrorType for Rx<'_> {
    type Error = Broken;
}

impl embedded_io::Read for Rx<'_> {
    fn read(&mut self, place: &mut [u8]) -> Result<usize, Broken> {
        assert!(!self.waits || self.looks.is_multiple_of(2), "it reads although it was told that there is nothing");
        self.next(place)
    }
}

impl embedded_io::ReadReady for Rx<'_> {
    fn read_ready(&mut self) -> Result<bool, Broken> {
        self.looks += 1;
        Ok(!self.waits || self.looks.is_multiple_of(2))
    }
}

/// A writer that takes at most a given number of bytes at a time, and fails once before a given byte.
pub struct Tx {
    pub bytes: Vec<u8>,
    pub piece: usize,
    pub fails_at: Option<usize>,
    pub flushed: usize,
    pub flush_fails: bool,
    /// The flushes with nothing to flush.
    pub idle: usize,
}

impl Tx {
    pub fn new(piece: usize) -> Self {
        Tx { bytes: Vec::new(), piece, fails_at: None, flushed: 0, flush_fails: false, idle: 0 }
    }

    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        if self.fails_at.take_if(|at| *at <= self.bytes.len()).is_some() {
            return Err(Broken);
        }
        let n = self.piece.min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    pub fn flush_now(&mut self) -> Result<(), Broken> {
        if core::mem::take(&mut self.flush_fails) {
            return Err(Broken);
        }
        self.idle += usize::from(self.flushed == self.bytes.len());
        self.flushed = self.bytes.len();
        Ok(())
    }
}

impl embedded_io::ErrorType for Tx {
    type Error = Broken;
}

impl embedded_io::Write for Tx {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        self.take(bytes)
    }
    fn flush(&mut self) -> Result<(), Broken> {
        self.flush_now()
    }
}
