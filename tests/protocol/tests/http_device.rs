//! Whole sessions, streams and resumption in lent storage, while nothing may be allocated: as on a device.

use mcp_sansio::FullError;
use mcp_sansio::server::{RequestSlot, RequestToken, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio::sink::{LineSink, Sink, SliceStorage};
use mcp_sansio_http::endpoint::{
    App, Endpoint, EndpointConfig, RequestHead, ResponseBody, Session, Stream, StreamId, StreamStatus,
};
use mcp_sansio_test_allocator::{Counting, count};

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Default)]
struct State {
    later: Option<RequestToken>,
}

fn now(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.text("now")
}

fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.later = Some(token);
    outcome
}

static TOOLS: [Tool<State>; 2] = [Tool::new("now", "At once", now), Tool::new("later", "Later", later)];

/// A socket with a small buffer, which keeps the end of its output.
struct Wire {
    bytes: [u8; 2048],
    len: usize,
}

impl Wire {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap()
    }
}

impl Sink for Wire {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FullError> {
        let place = self.bytes.get_mut(self.len..self.len + bytes.len()).ok_or(FullError::Now)?;
        place.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }
    fn room(&self) -> usize {
        self.bytes.len() - self.len
    }
}

struct Device<'d> {
    endpoint: Endpoint<'d>,
    service: Service<'d, State>,
    state: State,
    wire: Wire,
    session: [u8; 32],
    clock: u64,
}

impl Device<'_> {
    fn request(&mut self, method: &str, more: &[(&str, &[u8])], body: &[u8]) -> (u16, Option<StreamId>) {
        let mut headers: [(&str, &[u8]); 8] = [("x", b""); 8];
        headers[0] = ("Content-Type", b"application/json");
        headers[1] = ("Accept", b"application/json, text/event-stream");
        headers[2..2 + more.len()].copy_from_slice(more);
        let session = self.session;
        if session[0] != 0 {
            headers[7] = ("Mcp-Session-Id", &session);
        }
        let headers = &headers[..];
        let mut storage = [0; 2048];
        let mut out = LineSink::new(SliceStorage::new(&mut storage));
        let mut app = App::new(&self.service, &mut self.state);
        self.clock += 1;
        let mut random = |bytes: &mut [u8]| bytes.fill(7);
        let head = RequestHead::new(method, "/mcp", None, &headers);
        let response = self.endpoint.request(&mut app, &head, body, self.clock, &mut random, &mut out);
        if let Some(id) = response.session {
            self.session.copy_from_slice(id.as_str().as_bytes());
        }
        let stream = if let ResponseBody::Stream(id) = response.content { Some(id) } else { None };
        (response.status, stream)
    }

    fn pull(&mut self, id: StreamId) -> StreamStatus {
        self.wire.len = 0;
        self.endpoint.pull(id, &mut App::new(&self.service, &mut self.state), self.clock, &mut self.wire)
    }
}

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const NOW: &[u8] = br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"now"}}"#;
const LATER: &[u8] = br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"later"}}"#;
const LISTEN: &[u8] = br#"{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn session(device: &mut Device<'_>) {
    assert_eq!(device.request("POST", &[], INITIALIZE).0, 200);
    assert!(device.session[0] != 0);
    assert_eq!(device.request("POST", &[], NOW).0, 200);
    let stream = device.request("POST", &[], LATER).1.unwrap();
    assert_eq!(device.pull(stream), StreamStatus::Idle);
    let mut id = [0; 16];
    let len = event_id(device.wire.text(), &mut id);
    device.endpoint.detach(stream, &mut App::new(&device.service, &mut device.state), device.clock);
    let token = device.state.later.unwrap();
    let mut app = App::new(&device.service, &mut device.state);
    device.endpoint.answer(&mut app, token, |_, call| call.text("at last")).unwrap();
    let again = device.request("GET", &[("Last-Event-ID", &id[..len])], b"").1.unwrap();
    assert_eq!(device.pull(again), StreamStatus::End);
    assert!(device.wire.text().contains("at last"));
    let events = device.request("GET", &[], b"").1.unwrap();
    device.endpoint.publish(ServerChange::Tools);
    assert_eq!(device.pull(events), StreamStatus::Idle);
    assert!(device.wire.text().contains("tools/list_changed"));
    assert_eq!(device.request("DELETE", &[], b"").0, 204);
    assert_eq!(device.pull(events), StreamStatus::End);
    device.session[0] = 0;
}

fn event_id(text: &str, id: &mut [u8; 16]) -> usize {
    let found = text.strip_prefix("id: ").unwrap().split('\n').next().unwrap();
    id[..found.len()].copy_from_slice(found.as_bytes());
    found.len()
}

fn listen(device: &mut Device<'_>) {
    let headers: [(&str, &[u8]); 2] =
        [("MCP-Protocol-Version", b"2026-07-28"), ("Mcp-Method", b"subscriptions/listen")];
    let stream = device.request("POST", &headers, LISTEN).1.unwrap();
    assert_eq!(device.pull(stream), StreamStatus::Idle);
    device.endpoint.publish(ServerChange::Tools);
    assert_eq!(device.pull(stream), StreamStatus::Idle);
    assert!(device.wire.text().contains("subscriptionId"));
    device.endpoint.detach(stream, &mut App::new(&device.service, &mut device.state), device.clock);
    assert_eq!(device.pull(stream), StreamStatus::Stale);
}

#[test]
fn nothing_is_allocated() {
    let mut sessions = [Session::FREE; 2];
    let mut streams = [Stream::FREE; 4];
    let (mut log, mut subscriptions, mut scratch) = ([0; 4096], [0; 256], [0; 256]);
    let mut slots = [RequestSlot::FREE; 4];
    let before = count();
    let server = Server::new(&mut slots).subscriptions(&mut subscriptions[..]).scratch(&mut scratch[..]);
    let service =
        Service::new("device", "1").tools(&TOOLS).feature(mcp_sansio::protocol::ServerCapability::ToolsChanged);
    let endpoint = Endpoint::new(EndpointConfig::DEFAULT, server, &mut sessions, &mut streams, &mut log[..]);
    let wire = Wire { bytes: [0; 2048], len: 0 };
    let mut device = Device { endpoint, service, state: State::default(), wire, session: [0; 32], clock: 0 };
    for _ in 0..20 {
        session(&mut device);
        listen(&mut device);
    }
    assert_eq!((device.endpoint.load(), count()), ((0, 0, 0), before));
}
