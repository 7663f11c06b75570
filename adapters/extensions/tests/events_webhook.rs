//! Events by webhook, without sockets: what a server posts, and what it answers.
#![cfg(feature = "webhooks")]

use std::cell::Cell;

use mcp_sansio::server::{MessageLimits, RespondError, Server};
use mcp_sansio::service::{Extension, MessageSource, Service};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::events::webhook::{
    DeliveryFailure, HasWebhooks, WebhookDelivery, WebhookLimits, WebhookSecret, Webhooks, complete, methods, turn,
};
use mcp_sansio_extensions::events::{
    EventOccurrence, EventType, Events, FORBIDDEN, HasEvents, WebhookMethods, emit, extension,
};
use serde_json::{Value, json};

/// 2026-07-28T09:30:00Z
const EPOCH: u64 = 1_785_231_000_000;
const URL: &str = "https://proxy.example.com/hooks/1";

thread_local! {
    /// The number of comparisons of occurrences with subscriptions.
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

struct Door {
    events: Events<'static>,
    webhooks: Webhooks,
    is_closed: bool,
    heard: Vec<&'static str>,
}

impl HasEvents for Door {
    const EVENTS: &'static [EventType<Self>] = &[EventType::new("bell.rung", "Somebody rings the bell")
        .check(|door: &Door, _| if door.is_closed { Err(FORBIDDEN) } else { Ok(()) })
        .matches(|_, subscription, data| {
            LOOKS.set(LOOKS.get() + 1);
            assert!(subscription.arguments.get("panics").is_none(), "a test panics");
            let door = subscription.arguments.get("door").and_then(|door| door.u64());
            door.is_none_or(|door| data.get("door").and_then(|at| at.u64()) == Some(door))
        })
        .on_subscribe(|door, _| door.heard.push("begin"), |door, _| door.heard.push("end"))];
    const WEBHOOKS: Option<WebhookMethods<Self>> = Some(methods());

    fn events(&self) -> &Events<'static> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut Events<'static> {
        &mut self.events
    }
}

impl HasWebhooks for Door {
    fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }
    fn webhooks_mut(&mut self) -> &mut Webhooks {
        &mut self.webhooks
    }
}

static EXTENSIONS: [Extension<Door>; 1] = [extension()];
const SERVICE: Service<'static, Door> = Service::new("door", "1.0")
    .extend(&EXTENSIONS)
    .contain_panics(|run| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok());

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::new(&[byte; 32]).unwrap()
}

struct Desk {
    server: Server<'static>,
    door: Door,
    now: u64,
    user: Option<&'static str>,
    id: u64,
}

impl Desk {
    fn new() -> Self {
        let events = Events::new(vec![0; 1024].leak(), 4, 77).epoch(EPOCH);
        let limits = WebhookLimits { most: 3, share: 2, shortest: 60_000, longest: 1_800_000 };
        let mut random = 0;
        let webhooks = Webhooks::new(limits, move |bytes| {
            random += 1;
            bytes.fill(random);
        });
        let door = Door { events, webhooks, is_closed: false, heard: Vec::new() };
        Desk { server: Server::growing(MessageLimits::default()), door, now: 1, user: Some("alice"), id: 0 }
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Option<Value> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }).to_string();
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.dispatch_from(&source, &mut self.door, line.as_bytes(), &mut self.server, &mut out).unwrap();
        (!out.pending().is_empty()).then(|| serde_json::from_slice(out.pending()).unwrap())
    }

    /// Subscribes with more members of the params, and the secret with this byte.
    fn subscribe(&mut self, more: Value, byte: u8) -> Option<Value> {
        let mut params = json!({ "name": "bell.rung", "delivery": { "mode": "webhook", "url": URL, "secret": secret(byte).to_text() } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("events/subscribe", params)
    }

    /// A turn of the loop: the answers to requests that have waited.
    fn turn(&mut self) -> Vec<Value> {
        self.server.now = self.now;
        let (mut answers, Desk { server, door, now, .. }) = (Vec::new(), self);
        turn(&SERVICE, door, *now, |door, token| {
            let mut out = LineSink::new(Vec::new());
            let done = SERVICE.answer(door, token.as_custom(), server, &mut out, complete);
            answers.extend(serde_json::from_slice::<Value>(out.pending()));
            assert!(matches!(done, Ok(_) | Err(RespondError::Stale)), "{done:?}");
            done.map(drop)
        });
        answers
    }

    fn post(&mut self) -> Option<WebhookDelivery> {
        self.turn();
        self.door.webhooks.next_delivery(self.now, EPOCH + self.now)
    }

    /// Answers a delivery.
    fn reply(&mut self, delivery: &WebhookDelivery, status: u16, body: &[u8]) {
        self.door.webhooks.delivered(delivery.number, Ok((status, body)), self.now);
    }

    /// Subscribes, and repeats the challenge as the endpoint. The answer to the request.
    fn subscribed(&mut self, more: Value) -> Value {
        assert_eq!(self.subscribe(more, 1), None);
        let challenge = self.post().unwrap();
        let nonce = body(&challenge)["challenge"].clone();
        self.reply(&challenge, 200, json!({ "challenge": nonce }).to_string().as_bytes());
        self.turn().remove(0)
    }

    fn ring(&mut self, door: u64) {
        let event = EventOccurrence::new("bell.rung");
        emit(&mut self.door, &event, self.now, &mut |data| data.number("door", door)).unwrap();
    }
}

fn body(delivery: &WebhookDelivery) -> Value {
    serde_json::from_slice(&delivery.body).unwrap()
}

fn is_signed(delivery: &WebhookDelivery, byte: u8, now: u64) -> bool {
    let header = |name| delivery.headers.iter().find(|(own, _)| *own == name).unwrap().1.as_str();
    let headers = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
    secret(byte).verify(headers, &delivery.body, (EPOCH + now) / 1000).is_ok()
}

// spec: E090 E091
#[test]
fn from_the_challenge_to_the_end() {
    let mut desk = Desk::new();
    assert_eq!(desk.subscribe(json!({ "arguments": { "door": 2 }, "ttlMs": 600_000 }), 1), None);
    // Nothing is delivered before the endpoint has agreed.
    desk.ring(2);
    let challenge = desk.post().unwrap();
    assert_eq!((challenge.url.as_str(), &body(&challenge)["type"]), (URL, &json!("verification")));
    assert!(challenge.headers[1].1.starts_with("msg_verification_") && is_signed(&challenge, 1, desk.now));
    assert!(desk.post().is_none() && desk.door.heard.is_empty());
    let nonce = body(&challenge)["challenge"].clone();
    desk.reply(&challenge, 200, json!({ "challenge": nonce }).to_string().as_bytes());
    let answer = desk.turn().remove(0)["result"].clone();
    assert_eq!(
        (&answer["refreshBefore"], &answer["cursor"], &answer["truncated"]),
        (&json!("2026-07-28T09:40:00.001Z"), &json!("77.0"), &json!(false))
    );
    assert_eq!(desk.door.heard, ["begin"]);
    // An occurrence, with the id of the subscription.
    let first = desk.post().unwrap();
    assert_eq!(
        body(&first),
        json!({ "eventId": "77.0", "name": "bell.rung", "timestamp": "2026-07-28T09:30:00.001Z", "data": { "door": 2 }, "cursor": "77.1" })
    );
    assert_eq!((&first.headers[1].1, &json!(first.headers[4].1)), (&"77.0".to_owned(), &answer["id"]));
    // One after the other, and what does not match is left out.
    desk.ring(1);
    desk.ring(2);
    assert!(desk.post().is_none());
    desk.reply(&first, 204, b"");
    let second = desk.post().unwrap();
    assert_eq!((&body(&second)["eventId"], &body(&second)["cursor"]), (&json!("77.2"), &json!("77.3")));
    // The end: without another subscription nothing is delivered.
    let key = json!({ "name": "bell.rung", "arguments": { "door": 2.0 }, "delivery": { "url": URL } });
    assert_eq!(desk.ask("events/unsubscribe", key.clone()).unwrap()["result"]["resultType"], "complete");
    assert_eq!(desk.door.heard, ["begin", "end"]);
    desk.reply(&second, 500, b"");
    assert!(desk.post().is_none());
    assert_eq!(desk.ask("events/unsubscribe", key).unwrap()["error"]["data"], json!({ "kind": "subscription" }));
}

// spec: E093 E094
#[test]
fn what_fails_is_tried_again_and_given_up() {
    let mut desk = Desk::new();
    desk.subscribed(json!({}));
    desk.ring(1);
    desk.ring(2);
    let mut times = Vec::new();
    loop {
        let Some(delivery) = desk.post() else {
            desk.now += 1_000;
            continue;
        };
        // Each attempt has a time and a signature of its own.
        assert!(is_signed(&delivery, 1, desk.now));
        if body(&delivery)["eventId"] == "77.1" {
            break;
        }
        times.push(desk.now / 1000);
        desk.reply(&delivery, 503, b"");
    }
    assert_eq!(times, [0, 10, 40, 160, 640]);
    let refreshed = desk.subscribe(json!({}), 1).unwrap()["result"].clone();
    // The cursor is behind those that were given up.
    assert_eq!(refreshed["cursor"], "77.1");
    assert_eq!(
        (&refreshed["deliveryStatus"]["lastError"], &refreshed["deliveryStatus"]["active"]),
        (&json!("http_5xx"), &json!(true))
    );
    assert!(refreshed["deliveryStatus"]["failedSince"].is_string());
}

// spec: E095
#[test]
fn an_endpoint_refuses_one_occurrence() {
    for status in [410, 413] {
        let mut desk = Desk::new();
        desk.subscribed(json!({}));
        desk.ring(1);
        desk.ring(2);
        let first = desk.post().unwrap();
        desk.reply(&first, status, b"");
        assert_eq!(body(&desk.post().unwrap())["eventId"], "77.1");
    }
}

// spec: E092 E096
#[test]
fn an_endpoint_that_does_not_agree() {
    for (outcome, reason) in [
        (Ok((200, &b"{\"challenge\":\"other\"}"[..])), "challenge_failed"),
        (Ok((200, &b"ok"[..])), "challenge_failed"),
        (Ok((404, &b""[..])), "challenge_failed"),
        (Err(DeliveryFailure::Timeout), "timeout"),
        (Err(DeliveryFailure::ConnectionRefused), "connection_refused"),
    ] {
        let mut desk = Desk::new();
        assert_eq!(desk.subscribe(json!({}), 1), None);
        let challenge = desk.post().unwrap();
        desk.door.webhooks.delivered(challenge.number, outcome, desk.now);
        let error = desk.turn().remove(0)["error"].clone();
        assert_eq!((&error["code"], &error["data"]), (&json!(-32027), &json!({ "reason": reason })));
        desk.ring(1);
        assert!(desk.post().is_none() && desk.door.heard.is_empty());
    }
    // Nor does one wait for ever whose outcome the loop does not note.
    let mut desk = Desk::new();
    desk.subscribe(json!({ "ttlMs": 60_000 }), 1);
    desk.post().unwrap();
    desk.now += 60_000;
    assert_eq!(desk.turn()[0]["error"]["data"], json!({ "reason": "timeout" }));
}

// spec: E032 E097 E098 E106
#[test]
fn what_is_refused_at_once() {
    let mut desk = Desk::new();
    let code = |desk: &mut Desk, delivery: Value| {
        desk.ask("events/subscribe", json!({ "name": "bell.rung", "delivery": delivery })).unwrap()["error"]["code"]
            .clone()
    };
    let good = secret(1).to_text();
    for url in [
        "http://proxy.example.com/",
        "proxy.example.com",
        "https://",
        "https://a@b.example/",
        "https://b.example/#a",
        "ftp://b/",
        "https://b.example:0/",
        "https://b.example:65536/",
        "https://b.example:x/",
        "https://b.example/<",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://%31.example/",
        "https://[::1/",
        "https://[fe80::1%25lo]/",
        "https://[::1]x/",
    ] {
        assert_eq!(code(&mut desk, json!({ "url": url, "secret": good })), -32602, "{url}");
    }
    for secret in ["", "whsec_", "whsec_AAAA", "AAAA"] {
        assert_eq!(code(&mut desk, json!({ "url": URL, "secret": secret })), -32602, "{secret}");
    }
    assert_eq!(code(&mut desk, json!({ "url": URL })), -32602);
    desk.user = None;
    assert_eq!(code(&mut desk, json!({ "url": URL, "secret": good })), -32024);
    desk.user = Some("alice");
    // Limits: a share of a user, and one question of each user at a time for each host.
    desk.subscribed(json!({ "arguments": { "door": 1 } }));
    // The same user and URL: no second question.
    assert!(desk.subscribe(json!({ "arguments": { "door": 2 } }), 1).unwrap()["result"]["id"].is_string());
    assert_eq!(desk.subscribe(json!({ "arguments": { "door": 3 } }), 1).unwrap()["error"]["code"], -32025);
    desk.user = Some("bob");
    assert_eq!(desk.subscribe(json!({}), 1), None);
    for host in ["PROXY.example.com", "proxy.example.com.", "proxy.example.com:444", "proxy.example.com:0443"] {
        let other = json!({ "url": format!("https://{host}/hooks/2"), "secret": good });
        assert_eq!(code(&mut desk, other), -32025, "{host}");
    }
}

/// One address of IPv6 has many forms.
#[test]
fn a_host_in_many_forms_is_asked_once() {
    let mut desk = Desk::new();
    let mut ask = |host: &str| {
        let delivery = json!({ "url": format!("https://{host}/"), "secret": secret(1).to_text() });
        desk.ask("events/subscribe", json!({ "name": "bell.rung", "delivery": delivery }))
    };
    assert_eq!(ask("[2606:2800::1]"), None);
    assert_eq!(ask("[2606:2800:0:0:0:0:0:1]:8443").unwrap()["error"]["code"], -32025);
}

/// The id of an occurrence is a header of its delivery: once one that cannot be a header was tried for eleven minutes, and lost.
#[test]
fn an_id_that_is_no_header_is_a_gap() {
    for id in ["a\r\nX: b", " a", "a\u{7f}"] {
        let mut desk = Desk::new();
        desk.subscribed(json!({}));
        emit(&mut desk.door, &EventOccurrence::new("bell.rung").id(id), desk.now, &mut |_| {}).unwrap();
        desk.ring(1);
        let gap = desk.post().unwrap();
        assert_eq!(body(&gap), json!({ "type": "gap", "cursor": "77.1" }));
        desk.reply(&gap, 200, b"");
        assert_eq!(body(&desk.post().unwrap())["data"]["door"], 1);
    }
}

/// An endpoint that is slow to agree, or to take what is delivered, holds other users of its host up for a minute at most.
#[test]
fn slow_endpoints_leave_others_their_questions() {
    let mut desk = Desk::new();
    let limits = WebhookLimits { most: 9, share: 2, shortest: 300_000, longest: 300_000 };
    desk.door.webhooks = Webhooks::new(limits, |bytes| bytes.fill(7));
    desk.subscribed(json!({}));
    desk.ring(1);
    desk.turn();
    let users = ["bob", "carol", "dave", "eve", "mallory"];
    let asked = users.map(|user| {
        desk.user = Some(user);
        desk.subscribe(json!({}), 1).is_none()
    });
    assert_eq!(asked, [true, true, true, true, false]);
    // Their questions do not wait for what is delivered.
    let kinds = std::iter::from_fn(|| desk.post()).map(|delivery| body(&delivery)["type"].as_str().map(String::from));
    let question = Some("verification".to_owned());
    assert_eq!(kinds.collect::<Vec<_>>(), [question.clone(), question.clone(), question.clone(), question, None]);
    desk.now += 59_999;
    assert!(desk.turn().is_empty());
    desk.now += 1;
    let answers = desk.turn();
    assert!(answers.len() == 4 && answers.iter().all(|answer| answer["error"]["data"]["reason"] == "timeout"));
    assert_eq!(desk.subscribe(json!({}), 1), None);
}

// spec: E099 E100 E102
#[test]
fn lifetimes_and_secrets_change() {
    let mut desk = Desk::new();
    let first = desk.subscribed(json!({ "ttlMs": 1 }))["result"].clone();
    assert_eq!(first["refreshBefore"], "2026-07-28T09:31:00.001Z");
    // Never without an end: subscriptions are not kept over a start.
    let second = desk.subscribe(json!({ "ttlMs": null }), 2).unwrap()["result"].clone();
    assert_eq!((&second["refreshBefore"], &second["id"]), (&json!("2026-07-28T10:00:00.001Z"), &first["id"]));
    desk.ring(1);
    let delivery = desk.post().unwrap();
    assert!(is_signed(&delivery, 1, desk.now) && is_signed(&delivery, 2, desk.now));
    desk.now += 300_000;
    desk.reply(&delivery, 200, b"");
    desk.ring(2);
    let delivery = desk.post().unwrap();
    assert!(!is_signed(&delivery, 1, desk.now) && is_signed(&delivery, 2, desk.now));
    desk.now = 1_800_001;
    desk.ring(3);
    assert!(desk.post().is_none());
    assert_eq!(desk.door.heard, ["begin", "end"]);
}

// spec: E031
#[test]
fn gaps_and_terminations_are_posted() {
    let mut desk = Desk::new();
    desk.subscribed(json!({}));
    (0..6).for_each(|door| desk.ring(door));
    let gap = desk.post().unwrap();
    assert_eq!(body(&gap), json!({ "type": "gap", "cursor": "77.2" }));
    assert!(gap.headers[1].1.starts_with("msg_gap_") && is_signed(&gap, 1, desk.now));
    desk.reply(&gap, 200, b"");
    let event = desk.post().unwrap();
    assert_eq!(body(&event)["data"]["door"], 2);
    desk.door.is_closed = true;
    desk.reply(&event, 200, b"");
    let last = desk.post().unwrap();
    assert_eq!(body(&last), json!({ "type": "terminated", "error": { "code": -32024, "message": "Forbidden" } }));
    assert_eq!(desk.door.heard, ["begin", "end"]);
    assert_eq!(desk.subscribe(json!({}), 1).unwrap()["error"]["code"], -32024);
    desk.reply(&last, 200, b"");
    assert!(desk.post().is_none());
}

/// Without a cursor a subscription begins now, whatever time the source of an occurrence gives.
#[test]
fn nothing_is_too_old_for_a_new_subscription() {
    let mut desk = Desk::new();
    assert_eq!(desk.subscribe(json!({ "maxAgeMs": 1_000 }), 1), None);
    let challenge = desk.post().unwrap();
    let old = EventOccurrence::new("bell.rung").timestamp(EPOCH - 3_600_000);
    emit(&mut desk.door, &old, desk.now, &mut |data| data.number("door", 7)).unwrap();
    let nonce = body(&challenge)["challenge"].clone();
    desk.reply(&challenge, 200, json!({ "challenge": nonce }).to_string().as_bytes());
    desk.turn();
    assert_eq!(body(&desk.post().unwrap())["data"]["door"], 7);
}

/// Once it took 25 seconds for 24 levels, and twice as long for each one more.
#[test]
fn arguments_with_many_levels() {
    let mut desk = Desk::new();
    let nested = |inner: Value| (0..20).fold(inner, |inner, _| json!({ "\"a\\": [inner, 1e300] }));
    desk.subscribed(json!({ "arguments": nested(json!("x")) }));
    let mut is_refresh = |inner: Value| {
        let answer = desk.subscribe(json!({ "arguments": nested(inner) }), 1).unwrap();
        answer["result"].get("deliveryStatus").is_some()
    };
    assert_eq!((is_refresh(json!("x")), is_refresh(json!(["x"]))), (true, false));
}

/// The end of a subscription that waits for its endpoint is also the end of its request.
#[test]
fn a_subscription_that_ends_before_it_begins() {
    let mut desk = Desk::new();
    let key = json!({ "name": "bell.rung", "delivery": { "url": URL } });
    for is_answered in [false, true] {
        assert_eq!(desk.subscribe(json!({}), 1), None);
        let challenge = desk.post().unwrap();
        let nonce = body(&challenge)["challenge"].clone();
        let agree = |desk: &mut Desk| {
            desk.reply(&challenge, 200, json!({ "challenge": nonce }).to_string().as_bytes());
        };
        if is_answered {
            agree(&mut desk);
        }
        assert!(desk.ask("events/unsubscribe", key.clone()).unwrap()["result"].is_object());
        agree(&mut desk);
        assert_eq!(desk.turn()[0]["error"]["data"], json!({ "reason": "challenge_failed" }));
        desk.ring(1);
        assert!(desk.post().is_none() && desk.door.heard.is_empty());
    }
}

/// A turn comes after each message of any client: it costs no look at the ring for each subscription.
#[test]
fn turns_without_news_read_nothing() {
    let mut desk = Desk::new();
    desk.door.events = Events::new(vec![0; 1 << 19].leak(), 10_000, 77);
    let limits = WebhookLimits { most: 50, share: 50, shortest: 60_000, longest: 60_000 };
    desk.door.webhooks = Webhooks::new(limits, |bytes| bytes.fill(7));
    desk.subscribed(json!({ "arguments": { "door": 0 } }));
    (1..50).for_each(|door| drop(desk.subscribe(json!({ "arguments": { "door": door } }), 1)));
    (0..10_000).for_each(|_| desk.ring(99));
    assert!(desk.post().is_none());
    assert_eq!(LOOKS.take(), 50 * 10_000);
    (0..10).for_each(|_| drop(desk.turn()));
    assert_eq!(LOOKS.take(), 0);
}

/// A subscription whose functions panic ends, and holds no others up: once the panic ended the loop, in each turn anew.
#[test]
fn panics_end_the_subscription() {
    let mut desk = Desk::new();
    desk.subscribed(json!({ "arguments": { "door": 1 } }));
    assert!(desk.subscribe(json!({ "arguments": { "panics": 1 } }), 1).unwrap()["result"]["id"].is_string());
    desk.user = Some("bob");
    desk.subscribed(json!({}));
    desk.ring(1);
    let posts = std::iter::from_fn(|| desk.post()).map(|delivery| body(&delivery)).collect::<Vec<_>>();
    let error = json!({ "code": -32603, "message": "The event type has panicked" });
    assert_eq!(posts[1], json!({ "type": "terminated", "error": error }));
    assert_eq!((&posts[0]["data"]["door"], &posts[2]["data"]["door"], posts.len()), (&json!(1), &json!(1), 3));
    assert_eq!(desk.door.heard, ["begin", "begin", "begin", "end"]);
    desk.ring(1);
    assert!(desk.post().is_none());
}
