//! Events: what a client may ask a server for, and what a server may answer a client.

use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::events::client::{EventFollower, EventStep, FollowedEvent, StreamNotification};
use mcp_sansio_extensions::events::webhook::{ReceivedDelivery, WebhookFollower, WebhookSecret, receive};
use mcp_sansio_extensions::events::{EventOccurrence, EventType, Events, HasEvents, emit, extension};
use serde_json::{Value, json};

/// The number of occurrences that are emitted, and of those that are kept.
const EMITTED: u64 = 12;
const KEPT: usize = 8;
/// The shortest time between two polls.
const FLOOR: u64 = 1_000;

struct State(Events<'static>);

impl HasEvents for State {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("a", "A")];

    fn events(&self) -> &Events<'static> {
        &self.0
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.0
    }
}

static EXTENSIONS: [Extension<State>; 1] = [extension()];
const SERVICE: Service<'static, State> = Service::new("events", "1").extend(&EXTENSIONS);

/// Sends a poll, and returns its answer.
fn poll(state: &mut State, params: &Value) -> Value {
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "events/poll", "params": params }).to_string();
    let (mut server, mut out) = (Server::growing(MessageLimits::default()), LineSink::new(Vec::new()));
    server.now = EMITTED;
    let done = SERVICE.dispatch_from(&MessageSource::LINE, state, line.as_bytes(), &mut server, &mut out);
    assert!(done.is_ok(), "{done:?}");
    serde_json::from_slice(out.pending()).expect("one answer")
}

/// Polls with these params, and goes on with the cursors of the answers.
pub(crate) fn server(data: &[u8]) -> Option<()> {
    let mut state = State(Events::new(mcp_sansio::memory::Store::growing(4096), KEPT, 7));
    for now in 0..EMITTED {
        emit(&mut state, &EventOccurrence::new("a"), now, &mut |data| data.number("n", now)).expect("it is small");
    }
    let mut params: Value = serde_json::from_slice(data).ok()?;
    params.as_object_mut()?.entry("name").or_insert(json!("a"));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let (mut before, mut is_first) = (None, true);
    for _ in 0..=KEPT {
        let answer = poll(&mut state, &params);
        let Some(result) = answer.get("result") else {
            // The cursor of an answer is always good.
            assert!(is_first && matches!(answer["error"]["code"].as_i64(), Some(-32602 | -32023)), "{answer}");
            return None;
        };
        // Nothing is emitted meanwhile, so only the first poll can have a gap.
        assert!(is_first || result["truncated"] == false || params.get("maxAgeMs").is_some(), "{answer}");
        for event in result["events"].as_array().expect("events") {
            let number = event["data"]["n"].as_u64().expect("what was emitted");
            assert!(before.is_none_or(|before| before < number) && number < EMITTED, "{answer}");
            before = Some(number);
        }
        params["cursor"] = result["cursor"].clone();
        is_first = false;
        if result["hasMore"] == false {
            assert_eq!(result["cursor"], format!("7.{EMITTED}"), "{answer}");
            return Some(());
        }
    }
    panic!("the polls have no end: {params}");
}

/// Takes all events: none comes twice.
fn take_all(follower: &mut EventFollower) {
    let mut known = Vec::new();
    while let Some(event) = follower.event() {
        if let FollowedEvent::Occurred(event) = event {
            assert!(!known.contains(&event.event_id), "{event:?} comes twice");
            known.push(event.event_id);
        }
    }
}

/// Gives a client these bytes as the result of a poll, as all notifications of a stream, and as the body of a webhook.
pub(crate) fn client(data: &[u8]) -> Option<()> {
    let result = Raw::parse(data).ok()?;
    let mut follower = EventFollower::new("a").poll_only().cursor_from(Some("before".into())).poll_floor(FLOOR);
    let taken = follower.answered(result, 0);
    take_all(&mut follower);
    let cursor = follower.cursor().map(str::to_owned);
    match follower.next(0) {
        // At once only if there is a way forward.
        EventStep::Send(_) => assert!(taken.is_ok() && cursor.is_some() && cursor.as_deref() != Some("before")),
        EventStep::Cancel => panic!("a poll has a time of its own"),
        EventStep::Wait(until) => {
            assert!((FLOOR..=3_600_000).contains(&until), "{until}");
            let EventStep::Send(_) = follower.next(3_600_000) else { panic!("it waits for longer than an hour") };
        }
    }
    let mut follower = EventFollower::new("a");
    let EventStep::Send(_) = follower.next(0) else { panic!("it waits for nothing") };
    for kind in [
        StreamNotification::Active,
        StreamNotification::Event,
        StreamNotification::Heartbeat,
        StreamNotification::Error,
        StreamNotification::Event,
        StreamNotification::Terminated,
    ] {
        let ended = follower.notified(kind, result, 0).is_err();
        assert_eq!(ended, kind == StreamNotification::Terminated);
        assert_eq!(follower.is_under_way(), !ended);
    }
    take_all(&mut follower);
    let EventStep::Send(_) = follower.next(3_600_000) else { panic!("it waits for longer than an hour") };
    let secret = WebhookSecret::new(&[7; 32]).expect("24 to 64 bytes");
    let mut hooks = [WebhookFollower::new(EventFollower::new("a"), "https://example.com", secret)];
    let id = result.get("eventId").and_then(|id| id.text()).map_or("id".into(), |id| id.to_string());
    for _ in 0..3 {
        let signature = secret.sign(&id, 1, data);
        let delivery = ReceivedDelivery { headers: [&id, "1", &signature], subscription: "s", body: data };
        let answer = receive(&mut hooks, &delivery, 1_000).0;
        assert!([200, 204, 400, 410, 413, 503].contains(&answer.status), "{answer:?}");
        let _ = hooks[0].subscribed(result, 0);
        let _ = hooks[0].subscribed(Raw::constant(r#"{"id":"s","refreshBefore":null}"#), 0);
    }
    take_all(&mut hooks[0].follower);
    Some(())
}
