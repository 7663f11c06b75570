//! Events from outside: each line of a server with a ring of occurrences.

use mcp_sansio::error::RpcError;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_extensions::events::{
    EmitError, EventOccurrence, EventType, Events, FORBIDDEN, HasEvents, ID, NOT_FOUND, emit, extension,
};
use serde_json::{Value, json};

/// 2026-07-28T09:30:00Z
const EPOCH: u64 = 1_785_231_000_000;

struct World {
    events: Events<'static>,
    secret: bool,
}

impl HasEvents for World {
    const EVENTS: &'static [EventType<Self>] = &[
        EventType::new("button.pressed", "A button is pressed")
            .payload_schema(r#"{"type":"object","properties":{"button":{"type":"integer"}}}"#),
        EventType::new("incident.created", "An incident is created")
            .input_schema(r#"{"type":"object","properties":{"severity":{"type":"string","enum":["P1","P2"]}}}"#)
            .check(|_, subscription| match subscription.arguments.get("severity").map(|severity| severity.text()) {
                Some(None) => Err(RpcError::invalid_params("Invalid params: severity is not a string")),
                _ => Ok(()),
            })
            .matches(|_, subscription, data| {
                let severity = |object: Raw<'_>| {
                    object
                        .get("severity")
                        .and_then(|severity| severity.text().and_then(|text: Text<'_>| text.plain().map(str::to_owned)))
                };
                severity(subscription.arguments).is_none_or(|wanted| severity(data) == Some(wanted))
            })
            .transform(|_, subscription, data, out| {
                out.raw_if("severity", data.get("severity"));
                if subscription.principal == Some("admin") {
                    out.raw_if("reporter", data.get("reporter"));
                }
            })
            .meta(Raw::constant(r#"{"com.example/source":"pager"}"#)),
        EventType::new("vault.opened", "The vault is opened").check(|world: &World, subscription| {
            match (world.secret, subscription.principal) {
                (true, _) => Err(NOT_FOUND),
                (false, Some("admin")) => Ok(()),
                (false, _) => Err(FORBIDDEN),
            }
        }),
    ];

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("world", "1.0").extend(&EXTENSIONS);

/// A server, its state and its clients.
struct Desk {
    server: Server<'static>,
    world: World,
    now: u64,
    user: Option<&'static str>,
    revision: Revision,
    /// The size of the output in bytes.
    output: usize,
}

impl Desk {
    fn new(bytes: usize, occurrences: usize) -> Self {
        let events = Events::new(vec![0; bytes].leak(), occurrences, 77).epoch(EPOCH);
        Desk {
            server: Server::growing(MessageLimits::default()),
            world: World { events, secret: false },
            now: 0,
            user: None,
            revision: Revision::LATEST,
            output: 4096,
        }
    }

    /// Sends a request of a client that does not declare the extension.
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": self.revision.date(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut bytes = vec![0; self.output];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let done = SERVICE.dispatch_from(&source, &mut self.world, line.as_bytes(), &mut self.server, &mut out);
        let _ = done.unwrap();
        serde_json::from_slice(out.pending()).unwrap()
    }

    fn poll(&mut self, name: &str, cursor: Value, more: Value) -> Value {
        let mut params = json!({ "name": name, "cursor": cursor });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.ask("events/poll", params);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"].clone()
    }

    fn error(&mut self, method: &str, params: Value) -> (i64, Value) {
        let answer = self.ask(method, params);
        (answer["error"]["code"].as_i64().unwrap(), answer["error"]["data"].clone())
    }

    fn press(&mut self, button: u64) {
        let event = EventOccurrence::new("button.pressed");
        emit(&mut self.world, &event, self.now, &mut |data| data.number("button", button)).unwrap();
    }
}

/// Returns the buttons of the occurrences of a poll.
fn buttons(polled: &Value) -> Vec<u64> {
    polled["events"].as_array().unwrap().iter().map(|event| event["data"]["button"].as_u64().unwrap()).collect()
}

#[test]
fn the_list_of_event_types() {
    let mut desk = Desk::new(1024, 8);
    let listed = desk.ask("events/list", json!({}));
    assert_eq!(
        listed["result"]["events"][1],
        json!({
            "name": "incident.created",
            "description": "An incident is created",
            "delivery": ["poll"],
            "inputSchema": { "type": "object", "properties": { "severity": { "type": "string", "enum": ["P1", "P2"] } } },
            "payloadSchema": { "type": "object" },
            "_meta": { "com.example/source": "pager" },
        })
    );
    assert_eq!(listed["result"]["resultType"], "complete");
    let discovered = desk.ask("server/discover", json!({}));
    assert_eq!(discovered["result"]["capabilities"]["extensions"][ID], json!({}));
}

#[test]
fn the_list_in_pages() {
    let mut desk = Desk::new(1024, 8);
    let whole = desk.ask("events/list", json!({}))["result"]["events"].clone();
    desk.output = 500;
    let (mut events, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = desk.ask("events/list", params)["result"].clone();
        events.extend(page["events"].as_array().unwrap().clone());
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((Value::from(events), pages), (whole, 3));
    for cursor in [json!("3"), json!("x"), json!(1)] {
        assert_eq!(desk.error("events/list", json!({ "cursor": cursor })).0, -32602);
    }
}

// spec: E010 E011
#[test]
fn a_poll_loop() {
    let mut desk = Desk::new(1024, 8);
    desk.press(1);
    let first = desk.poll("button.pressed", Value::Null, json!({}));
    assert_eq!(
        first,
        json!({ "resultType": "complete", "events": [], "cursor": "77.1", "truncated": false, "hasMore": false,
            "nextPollMs": 5000, "_meta": first["_meta"] })
    );
    // An absent cursor is `null`.
    let absent = desk.ask("events/poll", json!({ "name": "button.pressed" }));
    assert_eq!(absent["result"]["cursor"], "77.1");
    desk.now = 1_500;
    desk.press(2);
    desk.world.events.set_poll_interval(250);
    let second = desk.poll("button.pressed", first["cursor"].clone(), json!({}));
    assert_eq!(
        second["events"],
        json!([{ "eventId": "77.1", "name": "button.pressed", "timestamp": "2026-07-28T09:30:01.500Z",
            "data": { "button": 2 } }])
    );
    assert_eq!((&second["cursor"], &second["nextPollMs"]), (&json!("77.2"), &json!(250)));
    // The same cursor gives the same again: the server has kept nothing of the client.
    assert_eq!(desk.poll("button.pressed", first["cursor"].clone(), json!({}))["events"], second["events"]);
    // The cursor advances although nothing happens to this event type.
    let quiet = desk.poll("incident.created", json!("77.0"), json!({}));
    assert_eq!((&quiet["events"], &quiet["cursor"]), (&json!([]), &json!("77.2")));
}

#[test]
fn batches() {
    let mut desk = Desk::new(4096, 64);
    (0..40).for_each(|n| desk.press(n));
    let batch = desk.poll("button.pressed", json!("77.0"), json!({ "maxEvents": 15 }));
    assert_eq!(buttons(&batch), (0..15).collect::<Vec<_>>());
    assert_eq!((&batch["hasMore"], &batch["cursor"]), (&json!(true), &json!("77.15")));
    let rest = desk.poll("button.pressed", batch["cursor"].clone(), json!({ "maxEvents": 25 }));
    assert_eq!(buttons(&rest), (15..40).collect::<Vec<_>>());
    assert_eq!((&rest["hasMore"], &rest["cursor"]), (&json!(false), &json!("77.40")));
    // A small output makes smaller batches, and none is lost.
    desk.output = 700;
    let (mut all, mut cursor) = (Vec::new(), json!("77.0"));
    loop {
        let batch = desk.poll("button.pressed", cursor, json!({}));
        assert!(!buttons(&batch).is_empty());
        all.extend(buttons(&batch));
        cursor = batch["cursor"].clone();
        if batch["hasMore"] == false {
            break;
        }
    }
    assert_eq!(all, (0..40).collect::<Vec<_>>());
}

// spec: E013
#[test]
fn an_occurrence_larger_than_the_output_is_a_gap() {
    let mut desk = Desk::new(4096, 64);
    desk.press(1);
    let long = "x".repeat(900);
    let event = EventOccurrence::new("button.pressed");
    emit(&mut desk.world, &event, 0, &mut |data| data.text("note", &long)).unwrap();
    desk.press(3);
    desk.output = 600;
    let first = desk.poll("button.pressed", json!("77.0"), json!({}));
    assert_eq!((buttons(&first), &first["hasMore"], &first["truncated"]), (vec![1], &json!(true), &json!(false)));
    let second = desk.poll("button.pressed", first["cursor"].clone(), json!({}));
    assert_eq!((buttons(&second), &second["hasMore"], &second["truncated"]), (vec![], &json!(true), &json!(true)));
    let third = desk.poll("button.pressed", second["cursor"].clone(), json!({}));
    assert_eq!((buttons(&third), &third["hasMore"], &third["truncated"]), (vec![3], &json!(false), &json!(false)));
}

// spec: E013
#[test]
fn a_ring_that_has_turned() {
    for mut desk in [Desk::new(4096, 3), Desk::new(3 * 32, 100)] {
        desk.press(0);
        let cursor = desk.poll("button.pressed", Value::Null, json!({}))["cursor"].clone();
        (1..4).for_each(|n| desk.press(n));
        // The first is dropped, and the cursor is behind it.
        let polled = desk.poll("button.pressed", cursor.clone(), json!({}));
        assert_eq!((buttons(&polled), &polled["truncated"]), (vec![1, 2, 3], &json!(false)));
        desk.press(4);
        let polled = desk.poll("button.pressed", cursor, json!({}));
        assert_eq!((buttons(&polled), &polled["truncated"]), (vec![2, 3, 4], &json!(true)));
        assert_eq!(polled["cursor"], "77.5");
        assert_eq!(desk.world.events.count(), 3);
    }
}

// spec: E013
#[test]
fn cursors_of_another_ring() {
    let mut desk = Desk::new(1024, 8);
    desk.press(1);
    for cursor in ["76.0", "77.2", "77.", ".", "", "77", "77.0.0", "\u{e9}", "99999999999999999999999.1", "77.-1"] {
        let polled = desk.poll("button.pressed", json!(cursor), json!({}));
        assert_eq!((buttons(&polled), &polled["truncated"]), (vec![1], &json!(true)), "{cursor}");
        assert_eq!(polled["cursor"], "77.1");
    }
}

// spec: E012
#[test]
fn old_occurrences_are_left_out() {
    let mut desk = Desk::new(1024, 8);
    desk.press(1);
    desk.now = 10_000;
    desk.press(2);
    desk.now = 11_000;
    let polled = desk.poll("button.pressed", json!("77.0"), json!({ "maxAgeMs": 5_000 }));
    assert_eq!((buttons(&polled), &polled["truncated"]), (vec![2], &json!(true)));
    let polled = desk.poll("button.pressed", json!("77.1"), json!({ "maxAgeMs": 5_000 }));
    assert_eq!((buttons(&polled), &polled["truncated"]), (vec![2], &json!(false)));
    let polled = desk.poll("button.pressed", json!("77.0"), json!({ "maxAgeMs": 60_000 }));
    assert_eq!((buttons(&polled), &polled["truncated"]), (vec![1, 2], &json!(false)));
    // Without a cursor it is ignored.
    let polled = desk.poll("button.pressed", Value::Null, json!({ "maxAgeMs": 60_000 }));
    assert_eq!((buttons(&polled), &polled["truncated"]), (vec![], &json!(false)));
}

#[test]
fn arguments_select_and_users_see_less() {
    let mut desk = Desk::new(1024, 8);
    for severity in ["P1", "P2", "P1"] {
        let event = EventOccurrence::new("incident.created");
        let mut data = |data: &mut mcp_sansio::json::Object<'_, '_>| {
            data.text("severity", severity);
            data.text("reporter", "alice")
        };
        emit(&mut desk.world, &event, 0, &mut data).unwrap();
    }
    let arguments = json!({ "arguments": { "severity": "P1" } });
    let polled = desk.poll("incident.created", json!("77.0"), arguments.clone());
    assert_eq!(polled["events"].as_array().unwrap().len(), 2);
    assert_eq!(polled["events"][1]["data"], json!({ "severity": "P1" }));
    desk.user = Some("admin");
    let polled = desk.poll("incident.created", json!("77.0"), arguments);
    assert_eq!(polled["events"][1]["data"], json!({ "severity": "P1", "reporter": "alice" }));
}

// spec: E005
#[test]
fn occurrences_keep_the_id_and_time_of_their_source() {
    let mut desk = Desk::new(1024, 8);
    let event = EventOccurrence::new("button.pressed").id("evt_\"1\"").timestamp(0);
    emit(&mut desk.world, &event, 5, &mut |data| data.number("button", 1)).unwrap();
    let polled = desk.poll("button.pressed", json!("77.0"), json!({}));
    assert_eq!(polled["events"][0]["eventId"], "evt_\"1\"");
    assert_eq!(polled["events"][0]["timestamp"], "1970-01-01T00:00:00.000Z");
}

// spec: E030 E031 E032
#[test]
fn errors() {
    let mut desk = Desk::new(1024, 8);
    for method in ["events/poll", "events/stream"] {
        assert_eq!(desk.error(method, json!({ "name": "nothing" })), (-32023, json!({ "kind": "event" })));
        assert_eq!(desk.error(method, json!({})).0, -32602);
    }
    for params in [
        json!({ "arguments": [] }),
        json!({ "cursor": 5 }),
        json!({ "maxEvents": 0 }),
        json!({ "maxEvents": "5" }),
        json!({ "maxAgeMs": -1 }),
    ] {
        let mut all = json!({ "name": "button.pressed" });
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        assert_eq!(desk.error("events/poll", all).0, -32602, "{params}");
    }
    let wrong = json!({ "name": "incident.created", "arguments": { "severity": 1 } });
    assert_eq!(desk.error("events/poll", wrong).0, -32602);
    assert_eq!(desk.error("events/poll", json!({ "name": "vault.opened" })).0, -32024);
    desk.world.secret = true;
    assert_eq!(desk.error("events/poll", json!({ "name": "vault.opened" })).0, -32023);
    let push = json!({ "feature": "deliveryMode", "value": "push" });
    assert_eq!(desk.error("events/stream", json!({ "name": "button.pressed" })), (-32026, push));
    // Webhooks need an authenticated user.
    for method in ["events/subscribe", "events/unsubscribe"] {
        assert_eq!(desk.error(method, json!({ "name": "button.pressed" })).0, -32024);
    }
    desk.user = Some("alice");
    let webhook = json!({ "feature": "deliveryMode", "value": "webhook" });
    assert_eq!(desk.error("events/subscribe", json!({ "name": "button.pressed" })), (-32026, webhook));
    let none = json!({ "kind": "subscription" });
    assert_eq!(desk.error("events/unsubscribe", json!({ "name": "button.pressed" })), (-32023, none));
}

#[test]
fn what_cannot_be_emitted() {
    let mut desk = Desk::new(64, 8);
    let mut emit =
        |event: EventOccurrence<'_>, text: &str| emit(&mut desk.world, &event, 0, &mut |data| data.text("a", text));
    assert_eq!(emit(EventOccurrence::new("nothing"), ""), Err(EmitError::UnknownEvent));
    assert_eq!(emit(EventOccurrence::new("button.pressed"), &"x".repeat(40)), Err(EmitError::TooLarge));
    assert_eq!(emit(EventOccurrence::new("button.pressed").id(&"x".repeat(256)), ""), Err(EmitError::TooLarge));
    assert_eq!(emit(EventOccurrence::new("button.pressed"), &"x".repeat(37)), Ok(()));
    assert_eq!(desk.world.events.count(), 1);
    let event = EventOccurrence::new("button.pressed");
    let gave_up = mcp_sansio_extensions::events::emit(&mut desk.world, &event, 0, &mut |data| data.fail());
    assert_eq!((gave_up, desk.world.events.count()), (Err(EmitError::NotWritten), 1));
    let mut none = Desk::new(64, 0);
    let none = mcp_sansio_extensions::events::emit(&mut none.world, &event, 0, &mut |_| {});
    assert_eq!(none, Err(EmitError::TooLarge));
}
