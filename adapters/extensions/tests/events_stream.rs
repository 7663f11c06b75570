//! `events/stream`: what a client hears on a request that stays open.

use mcp_sansio::server::{MessageLimits, RequestToken, RespondError, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventType, Events, FORBIDDEN, HasEvents, StreamSlot, deliver, emit, end_stream, extension, turn,
};
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody};
use serde_json::{Value, json};

struct Door {
    events: Events<'static>,
    closed: bool,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[
        EventType::new("bell.rung", "Somebody rings the bell")
            .check(|door: &Door, _| if door.closed { Err(FORBIDDEN) } else { Ok(()) })
            .matches(|_, subscription, data| {
                let door = subscription.arguments.get("door").and_then(|door| door.u64());
                door.is_none_or(|door| data.get("door").and_then(|at| at.u64()) == Some(door))
            }),
        EventType::new("door.opened", "The door is opened"),
    ];
    const STREAMS: bool = true;

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

static EXTENSIONS: [Extension<Door>; 1] = [extension()];
const SERVICE: Service<'static, Door> = Service::new("door", "1.0").extend(&EXTENSIONS).on_cancel(end_stream);

struct Desk {
    server: Server<'static>,
    door: Door,
    now: u64,
    user: Option<&'static str>,
    output: usize,
    /// The time of the next turn.
    next: Option<u64>,
}

impl Desk {
    fn new(occurrences: usize, streams: usize, share: usize) -> Self {
        let events = Events::new(vec![0; 4096].leak(), occurrences, 77);
        let slots = vec![StreamSlot::FREE; streams].leak();
        let events = events.streams(slots, vec![0; 128].leak(), share);
        let door = Door { events, closed: false };
        Desk { server: Server::growing(MessageLimits::default()), door, now: 1, user: None, output: 4096, next: None }
    }

    fn send(&mut self, message: Value) -> Vec<Value> {
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut bytes = vec![0; self.output];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let line = message.to_string();
        let _ = SERVICE.dispatch_from(&source, &mut self.door, line.as_bytes(), &mut self.server, &mut out).unwrap();
        read(out.pending())
    }

    fn stream(&mut self, id: u64, mut params: Value) -> Vec<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "events/stream", "params": params }))
    }

    fn ring(&mut self, door: u64) {
        let event = EventOccurrence::new("bell.rung");
        emit(&mut self.door, &event, self.now, &mut |data| data.number("door", door)).unwrap();
    }

    /// One turn of a loop.
    fn turn(&mut self) -> Vec<Value> {
        self.server.now = self.now;
        let mut heard = Vec::new();
        let Desk { server, door, now, output, next, .. } = self;
        *next = turn(door, *now, |door, token| {
            let mut bytes = vec![0; *output];
            let mut out = LineSink::new(SliceStorage::new(&mut bytes));
            let done = SERVICE.answer(door, token.as_custom(), server, &mut out, deliver);
            heard.extend(read(out.pending()));
            assert!(matches!(done, Ok(_) | Err(RespondError::Stale)), "{done:?}");
            done.map(drop)
        });
        heard
    }
}

fn read(bytes: &[u8]) -> Vec<Value> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The parts of notifications: the last word of the method, the door or the cursor, and the subscription.
fn short(heard: &[Value]) -> Vec<String> {
    let one = |message: &Value| {
        let params = &message["params"];
        let what = match message["method"].as_str() {
            Some(method) => method.rsplit('/').next().unwrap().to_owned(),
            None => return format!("result {}", message["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"]),
        };
        let about = match what.as_str() {
            "event" => format!("{} {}", params["data"]["door"], params["cursor"].as_str().unwrap()),
            "active" => format!("{} {}", params["cursor"].as_str().unwrap(), params["truncated"]),
            "heartbeat" => params["cursor"].as_str().unwrap().to_owned(),
            _ => params["error"]["code"].to_string(),
        };
        format!("{what} {about} #{}", params["_meta"]["io.modelcontextprotocol/subscriptionId"])
    };
    heard.iter().map(one).collect()
}

// spec: E050
#[test]
fn a_stream_from_its_beginning_to_its_cancellation() {
    let mut desk = Desk::new(8, 4, 4);
    desk.ring(1);
    let opened = desk.stream(5, json!({ "name": "bell.rung" }));
    assert_eq!(short(&opened), ["active 77.1 false #5"]);
    assert_eq!(desk.turn(), Vec::<Value>::new());
    desk.now = 1_000;
    desk.ring(2);
    desk.ring(3);
    let heard = desk.turn();
    assert_eq!(short(&heard), ["event 2 77.2 #5", "event 3 77.3 #5"]);
    assert_eq!(
        heard[0],
        json!({ "jsonrpc": "2.0", "method": "notifications/events/event", "params": {
            "eventId": "77.1", "name": "bell.rung", "timestamp": "1970-01-01T00:00:01.000Z", "data": { "door": 2 },
            "cursor": "77.2", "_meta": { "io.modelcontextprotocol/subscriptionId": 5 } } })
    );
    // Another event type does not concern it.
    emit(&mut desk.door, &EventOccurrence::new("door.opened"), 0, &mut |_| {}).unwrap();
    assert!(desk.turn().is_empty());
    desk.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } }));
    desk.ring(4);
    assert!(desk.turn().is_empty());
    assert_eq!(desk.next, None);
}

// spec: E051 E052
#[test]
fn heartbeats_have_the_cursor() {
    let mut desk = Desk::new(8, 4, 4);
    desk.stream(5, json!({ "name": "bell.rung", "arguments": { "door": 2 } }));
    assert!(desk.turn().is_empty());
    assert_eq!(desk.next, Some(20_001));
    // What does not match moves the cursor too.
    desk.ring(1);
    desk.now = 20_000;
    assert!(desk.turn().is_empty());
    desk.now = 20_001;
    assert_eq!(short(&desk.turn()), ["heartbeat 77.1 #5"]);
    assert!(desk.turn().is_empty());
    // An occurrence is a sign of life.
    desk.now = 30_000;
    desk.ring(2);
    assert_eq!(short(&desk.turn()), ["event 2 77.2 #5"]);
    desk.now = 49_999;
    assert!(desk.turn().is_empty());
    desk.door.events.set_heartbeat(5);
    desk.now = 50_000;
    assert_eq!(short(&desk.turn()), ["heartbeat 77.2 #5"]);
    desk.now = 50_005;
    assert_eq!(short(&desk.turn()), ["heartbeat 77.2 #5"]);
}

#[test]
fn several_streams_have_their_own_arguments_and_positions() {
    let mut desk = Desk::new(8, 4, 4);
    desk.ring(1);
    desk.ring(2);
    desk.stream(5, json!({ "name": "bell.rung", "arguments": { "door": 2 }, "cursor": "77.0" }));
    assert_eq!(short(&desk.stream(6, json!({ "name": "bell.rung", "cursor": "77.1" }))), ["active 77.1 false #6"]);
    assert_eq!(short(&desk.turn()), ["event 2 77.2 #5", "event 2 77.2 #6"]);
    desk.ring(1);
    assert_eq!(short(&desk.turn()), ["event 1 77.3 #6"]);
}

// spec: E013
#[test]
fn gaps_in_between() {
    let mut desk = Desk::new(2, 4, 4);
    assert_eq!(short(&desk.stream(5, json!({ "name": "bell.rung", "cursor": "9.9" }))), ["active 77.0 true #5"]);
    (1..6).for_each(|n| desk.ring(n));
    assert_eq!(short(&desk.turn()), ["active 77.3 true #5", "event 4 77.4 #5", "event 5 77.5 #5"]);
    let old = desk.stream(6, json!({ "name": "bell.rung", "cursor": "77.3", "maxAgeMs": 0 }));
    assert_eq!(short(&old), ["active 77.3 false #6"]);
    desk.now = 5_000;
    let old = desk.stream(7, json!({ "name": "bell.rung", "cursor": "77.3", "maxAgeMs": 1 }));
    assert_eq!(short(&old), ["active 77.3 true #7"]);
    end_stream(&mut desk.door, RequestToken::from_bits(1));
    assert_eq!(short(&desk.turn()), ["event 4 77.4 #6", "event 5 77.5 #6"]);
}

#[test]
fn a_small_output_gets_them_one_after_the_other() {
    let mut desk = Desk::new(8, 4, 4);
    desk.stream(5, json!({ "name": "bell.rung" }));
    (1..5).for_each(|n| desk.ring(n));
    let long = "x".repeat(900);
    emit(&mut desk.door, &EventOccurrence::new("bell.rung"), 0, &mut |data| data.text("note", &long)).unwrap();
    desk.ring(6);
    desk.output = 600;
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.extend(short(&desk.turn()));
    }
    assert_eq!(
        heard,
        [
            "event 1 77.1 #5",
            "event 2 77.2 #5",
            "event 3 77.3 #5",
            "event 4 77.4 #5",
            "active 77.5 true #5",
            "event 6 77.6 #5"
        ]
    );
}

/// A turn ends also where nothing can be sent: the output is full, or the clock of the server is behind that of the loop.
#[test]
fn a_turn_ends() {
    let mut desk = Desk::new(9, 2, 2);
    desk.stream(5, json!({ "name": "bell.rung" }));
    desk.stream(6, json!({ "name": "bell.rung" }));
    desk.turn();
    (1..4).for_each(|door| desk.ring(door));
    let (mut bytes, mut turns) = (vec![0; 500], Vec::new());
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    let Desk { server, door, .. } = &mut desk;
    let mut turn_at = |now, out: &mut LineSink<SliceStorage<'_>>| {
        let mut answers = 0;
        turn(door, now, |door, token| {
            answers += 1;
            assert!(answers < 99, "the turn does not end");
            SERVICE.answer(door, token.as_custom(), server, out, deliver).map(drop)
        });
        answers
    };
    while turns.len() < 9 {
        let answers = turn_at(1, &mut out);
        turns.push((answers, read(out.pending()).len()));
        out = LineSink::new(SliceStorage::new(&mut bytes));
        if answers == 0 {
            break;
        }
    }
    assert_eq!(turns.iter().map(|(_, sent)| sent).sum::<usize>(), 6, "{turns:?}");
    // The server has not heard of this time.
    assert_eq!(turn_at(30_001, &mut out), 2);
    assert!(short(&read(out.pending())).iter().all(|line| line.starts_with("heartbeat 77.3")), "{out:?}");
}

// spec: E031
#[test]
fn who_may_not_hear_it_any_more_is_told() {
    let mut desk = Desk::new(8, 4, 4);
    desk.stream(5, json!({ "name": "bell.rung" }));
    desk.turn();
    desk.door.closed = true;
    desk.ring(1);
    let heard = desk.turn();
    assert_eq!(short(&heard), ["terminated -32024 #5", "result 5"]);
    assert_eq!(heard[0]["params"]["error"], json!({ "code": -32024, "message": "Forbidden" }));
    assert_eq!(heard[1]["result"]["resultType"], "complete");
    assert!(desk.turn().is_empty() && desk.next.is_none());
    let refused = desk.stream(6, json!({ "name": "bell.rung" }));
    assert_eq!(refused[0]["error"]["code"], -32024);
}

#[test]
fn streams_have_a_limit_and_a_share() {
    let mut desk = Desk::new(8, 3, 2);
    let code = |opened: &[Value]| opened[0]["error"]["code"].as_i64().unwrap_or(0);
    let bell = || json!({ "name": "bell.rung" });
    assert_eq!(code(&desk.stream(1, bell())), 0);
    assert_eq!(code(&desk.stream(2, bell())), 0);
    let third = desk.stream(3, bell());
    assert_eq!(third[0]["error"]["data"], json!({ "limit": "subscriptions" }));
    desk.user = Some("alice");
    assert_eq!(code(&desk.stream(4, bell())), 0);
    assert_eq!(code(&desk.stream(5, bell())), -32025);
    desk.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert_eq!(code(&desk.stream(6, bell())), 0);
    desk.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6 } }));
    // The memory for arguments is full.
    let long = json!({ "name": "bell.rung", "arguments": { "a": "x".repeat(200) } });
    assert_eq!(code(&desk.stream(7, long)), -32025);
    assert_eq!(code(&desk.stream(8, bell())), 0);
    let listed = desk.send(json!({ "jsonrpc": "2.0", "id": 9, "method": "events/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } }));
    assert_eq!(listed[0]["result"]["events"][0]["delivery"], json!(["push", "poll"]));
}

/// Over HTTP the notifications come on the stream of the POST, and its end is the end of the subscription.
#[test]
fn over_http() {
    let mut desk = Desk::new(8, 4, 4);
    let server = Server::growing(MessageLimits::default());
    let mut endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default());
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "events/stream", "params": { "name": "bell.rung", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } });
    let headers: &[(&str, &[u8])] = &[
        ("host", b"localhost"),
        ("content-type", b"application/json"),
        ("accept", b"application/json, text/event-stream"),
        ("mcp-protocol-version", b"2026-07-28"),
        ("mcp-method", b"events/stream"),
    ];
    let head = RequestHead::new("POST", "/mcp", None, &headers);
    let mut app = App::new(const { &SERVICE }, &mut desk.door);
    let mut out = LineSink::new(Vec::new());
    let response =
        endpoint.request(&mut app, &head, body.to_string().as_bytes(), 0, &mut |bytes| bytes.fill(7), &mut out);
    let ResponseBody::Stream(stream) = response.content else { panic!("{}", String::from_utf8_lossy(out.pending())) };
    let pull = |endpoint: &mut Endpoint<'_>, door: &mut Door| {
        turn(door, 1, |door, token| {
            endpoint.answer(&mut App::new(const { &SERVICE }, door), token.as_custom(), deliver)
        });
        let mut app = App::new(const { &SERVICE }, door);
        let mut out = LineSink::new(Vec::new());
        let _ = endpoint.pull(stream, &mut app, 1, &mut out);
        let text = String::from_utf8(out.pending().to_vec()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter(|data| data.contains('{')).map(|data| serde_json::from_str(data).unwrap()).collect::<Vec<Value>>()
    };
    assert_eq!(short(&pull(&mut endpoint, &mut desk.door)), ["active 77.0 false #5"]);
    desk.ring(3);
    assert_eq!(short(&pull(&mut endpoint, &mut desk.door)), ["event 3 77.1 #5"]);
    let mut app = App::new(const { &SERVICE }, &mut desk.door);
    endpoint.detach(stream, &mut app, 1);
    assert_eq!(turn(&mut desk.door, 1, |_, _| unreachable!()), None);
}
