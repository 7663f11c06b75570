//! A receiver of webhooks, with deliveries as a server signs them.
#![cfg(feature = "webhooks")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use mcp_sansio::client::Request;
use mcp_sansio::client::views::ViewError;
use mcp_sansio::json::Raw;
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
use mcp_sansio_extensions::events::webhook::{LONGEST_BODY, ReceivedDelivery, WebhookFollower, WebhookSecret, receive};
use mcp_sansio_http::http1::{Connection, ConnectionLimits, ConnectionStep, Status};
use serde_json::{Value, json};

/// 2026-07-28T09:30:00Z.
const NOW: u64 = 1_785_231_000_000;

fn secret(random: u8) -> WebhookSecret {
    WebhookSecret::new(&[random; 32]).unwrap()
}

fn bell(secret: WebhookSecret) -> WebhookFollower {
    WebhookFollower::new(EventFollower::new("bell.rung"), "https://example.com/hooks/1", secret)
}

fn subscribed(secret: WebhookSecret, id: &str) -> WebhookFollower {
    let mut bell = bell(secret);
    let result = json!({ "id": id, "refreshBefore": "2026-07-28T10:30:00Z", "cursor": "c0" }).to_string();
    bell.subscribed(Raw::parse(result.as_bytes()).unwrap(), NOW).unwrap();
    bell
}

fn event(id: &str) -> String {
    json!({ "eventId": id, "name": "bell.rung", "timestamp": "2026-07-28T09:30:00Z", "data": { "door": 2 }, "cursor": "c1" })
        .to_string()
}

/// Delivers a body, signed now. Returns the status and the body of the answer.
fn deliver(hooks: &mut [WebhookFollower], secret: &WebhookSecret, to: &str, id: &str, body: &str) -> (u16, String) {
    let signature = secret.sign(id, NOW / 1000, body.as_bytes());
    let timestamp = (NOW / 1000).to_string();
    let delivery = ReceivedDelivery { headers: [id, &timestamp, &signature], subscription: to, body: body.as_bytes() };
    let answer = receive(hooks, &delivery, NOW + 1_000).0;
    (answer.status, answer.body)
}

fn events(hook: &mut WebhookFollower) -> Vec<String> {
    std::iter::from_fn(|| hook.follower.event())
        .map(|event| match event {
            FollowedEvent::Occurred(event) => event.event_id,
            other => format!("{other:?}"),
        })
        .collect()
}

/// Returns the params that a client sends.
fn params(request: &Request<'_>) -> Value {
    let profile = mcp_sansio::client::ClientInfo::new("test", "1");
    let mut client = mcp_sansio::client::Client::growing(&profile);
    let mut bytes = vec![0; 2048];
    let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    client.connect_as(mcp_sansio::revision::Revision::LATEST);
    client.send(request, &mut out).unwrap();
    let mut sent: Value = serde_json::from_slice(out.pending()).unwrap();
    sent["params"].as_object_mut().unwrap().remove("_meta");
    json!({ sent["method"].as_str().unwrap(): sent["params"] })
}

#[test]
fn requests_of_a_subscription() {
    let follower = EventFollower::new("bell.rung").arguments(Raw::constant(r#"{"door":2}"#)).max_age(5);
    let mut hook = WebhookFollower::new(follower, "https://example.com/h", secret(7)).ttl(Some(60_000));
    let delivery = json!({ "mode": "webhook", "url": "https://example.com/h", "secret": secret(7).to_text() });
    let first = json!({ "events/subscribe": { "name": "bell.rung", "arguments": { "door": 2 }, "cursor": null, "maxAgeMs": 5,
        "delivery": delivery, "ttlMs": 60_000 } });
    assert_eq!(params(&hook.subscribe()), first);
    let ended = json!({ "events/unsubscribe": { "name": "bell.rung", "arguments": { "door": 2 },
        "delivery": { "url": "https://example.com/h" } } });
    assert_eq!(params(&hook.unsubscribe()), ended);
    assert_eq!(params(&bell(secret(7)).ttl(None).subscribe())["events/subscribe"]["ttlMs"], Value::Null);
    assert!(params(&bell(secret(7)).subscribe())["events/subscribe"].get("ttlMs").is_none());
}

// spec: E070
#[test]
fn results_of_a_subscription() {
    let mut hook = bell(secret(7));
    let mut take = |json: Value| {
        let text = json.to_string();
        let taken = hook.subscribed(Raw::parse(text.as_bytes()).unwrap(), NOW);
        let status = hook.status.clone();
        let refresh = hook.refresh_at;
        taken.map(|()| (refresh, status, events(&mut hook), hook.follower.cursor().map(str::to_owned)))
    };
    // Half of the hour.
    let first =
        take(json!({ "id": "sub_1", "refreshBefore": "2026-07-28T10:30:00Z", "cursor": "c0", "truncated": false }));
    assert_eq!(first, Ok((Some(NOW + 1_800_000), None, vec![], Some("c0".into()))));
    let status = json!({ "active": false, "lastDeliveryAt": "a", "lastError": "http_4xx", "failedSince": "b",
        "throttled": true, "retryAfterMs": 60_000 });
    let (refresh, status, told, cursor) = take(
        json!({ "id": "sub_1", "refreshBefore": null, "cursor": "c5", "truncated": true, "deliveryStatus": status }),
    )
    .unwrap();
    assert_eq!((refresh, told, cursor), (None, vec!["Gap".to_owned()], Some("c5".into())));
    let status = status.unwrap();
    assert_eq!((status.active, status.throttled, status.retry_after), (false, true, Some(60_000)));
    let texts = [status.last_delivery_at, status.last_error, status.failed_since].map(Option::unwrap);
    assert_eq!(texts, ["a", "http_4xx", "b"]);
    // The server has no cursors: what is known stays.
    let over = take(json!({ "id": "sub_1", "refreshBefore": "2026-07-28T09:00:00Z" })).unwrap();
    // Once the loop of the program subscribed without a rest, as long as the clock of the server was behind.
    assert_eq!((over.0, over.3), (Some(NOW + 1_000), Some("c5".into())));
    assert_eq!(take(json!({ "refreshBefore": null })), Err(ViewError::Missing("id")));
    assert_eq!(take(json!({ "id": "sub_1", "refreshBefore": "soon" })), Err(ViewError::Missing("refreshBefore")));
}

// spec: E072 E073 E074
#[test]
fn only_what_the_server_has_signed() {
    let mut hooks = [subscribed(secret(7), "sub_1")];
    let (body, time) = (event("e1"), (NOW / 1000).to_string());
    let good = secret(7).sign("e1", NOW / 1000, body.as_bytes());
    let other = secret(8).sign("e1", NOW / 1000, body.as_bytes());
    let mut status = |headers: [&str; 3], subscription: &str, body: &str, now: u64| {
        receive(&mut hooks, &ReceivedDelivery { headers, subscription, body: body.as_bytes() }, now).0.status
    };
    let spaced = body.replace(',', ", ");
    for (headers, to, body, now, expected) in [
        (["e1", &time, &other], "sub_1", &body, NOW, 401),
        (["e2", &time, &good], "sub_1", &body, NOW, 401),
        (["e1", "1785231001", &good], "sub_1", &body, NOW, 401),
        (["e1", &time, ""], "sub_1", &body, NOW, 401),
        (["", "", ""], "", &body, NOW, 401),
        // The same JSON in other bytes.
        (["e1", &time, &good], "sub_1", &spaced, NOW, 401),
        (["e1", &time, &good], "sub_2", &body, NOW, 401),
        // Older than five minutes.
        (["e1", &time, &good], "sub_1", &body, NOW + 301_000, 401),
        // While the server changes its secret it signs with both.
        (["e1", &time, &format!("{other} v1a,AAAA {good}")], "sub_1", &body, NOW + 300_000, 204),
    ] {
        assert_eq!(status(headers, to, body, now), expected, "{headers:?} {to} {now}");
    }
    let long = "x".repeat(LONGEST_BODY + 1);
    assert_eq!(status(["e1", &time, &secret(7).sign("e1", NOW / 1000, long.as_bytes())], "sub_1", &long, NOW), 413);
    assert_eq!(events(&mut hooks[0]), ["e1"]);
}

// spec: E076
#[test]
fn the_server_asks_at_the_address_first() {
    let question = r#"{"type":"verification","challenge":"n\u006fnce"}"#;
    // The second subscription is new: it is known by its secret.
    let mut hooks = [subscribed(secret(7), "sub_1"), bell(secret(8)), bell(secret(9))];
    let answer = deliver(&mut hooks, &secret(9), "sub_3", "msg_verification_1", question);
    assert_eq!(answer, (200, r#"{"challenge":"n\u006fnce"}"#.to_owned()));
    assert_eq!(deliver(&mut hooks, &secret(6), "sub_3", "msg_verification_2", question).0, 401);
    assert_eq!(deliver(&mut hooks, &secret(7), "sub_1", "msg_1", r#"{"type":"verification","challenge":1}"#).0, 400);
    // The result of the subscription has not come yet: later.
    assert_eq!(deliver(&mut hooks, &secret(9), "sub_3", "e1", &event("e1")).0, 503);
    assert_eq!(deliver(&mut hooks, &secret(8), "sub_2", "e1", &event("e1")).0, 503);
    let result = Raw::constant(r#"{"id":"sub_3","refreshBefore":null}"#);
    hooks[2].subscribed(result, NOW).unwrap();
    assert_eq!(deliver(&mut hooks, &secret(9), "sub_3", "e1", &event("e1")).0, 204);
    assert_eq!(hooks.iter_mut().map(|hook| events(hook).len()).collect::<Vec<_>>(), [0, 0, 1]);
}

// spec: E075 E077 E078 E082
#[test]
fn occurrences_gaps_and_the_end() {
    let mut hooks = [subscribed(secret(7), "sub_1")];
    let say = |hooks: &mut [WebhookFollower; 1], id: &str, body: &str| deliver(hooks, &secret(7), "sub_1", id, body).0;
    assert_eq!([say(&mut hooks, "e1", &event("e1")), say(&mut hooks, "e1", &event("e1"))], [204, 204]);
    assert_eq!(hooks[0].follower.cursor(), Some("c0"));
    assert_eq!((events(&mut hooks[0]), hooks[0].follower.cursor()), (vec!["e1".to_owned()], Some("c1")));
    // One that could not be kept comes again.
    hooks[0].follower.forget("e1");
    assert_eq!(say(&mut hooks, "e1", &event("e1")), 204);
    assert_eq!(events(&mut hooks[0]), ["e1"]);
    for wrong in
        ["[]", "{}", "no", r#"{"type":"other"}"#, r#"{"type":7}"#, &event("e9"), &event("e2").replace("bell", "b")]
    {
        assert_eq!(say(&mut hooks, "e2", wrong), 400, "{wrong}");
    }
    assert_eq!(say(&mut hooks, "e2", &event("e2").replace(r#""cursor":"c1","#, "")), 204);
    let gap = r#"{"type":"gap","cursor":"c7"}"#;
    assert_eq!([say(&mut hooks, "msg_gap_1", gap), say(&mut hooks, "msg_gap_1", gap)], [204, 204]);
    assert_eq!((events(&mut hooks[0]), hooks[0].follower.cursor()), (vec!["e2".into(), "Gap".into()], Some("c7")));
    let end = r#"{"type":"terminated","error":{"code":-32024,"message":"Forbidden","data":{"reason":"revoked"}}}"#;
    assert_eq!([say(&mut hooks, "msg_1", end), say(&mut hooks, "msg_1", end)], [204, 204]);
    assert_eq!(hooks[0].ended.as_ref().map(|error| (error.code, &*error.message)), Some((-32024, "Forbidden")));
    assert_eq!((hooks[0].refresh_at, say(&mut hooks, "e3", &event("e3"))), (None, 410));
    hooks[0].subscribed(Raw::constant(r#"{"id":"sub_1","refreshBefore":null}"#), NOW).unwrap();
    // The server did not hear that it has come.
    assert_eq!((say(&mut hooks, "msg_1", end), hooks[0].ended.as_ref()), (204, None));
    assert_eq!(say(&mut hooks, "e3", &event("e3")), 204);
    // Nor does an old occurrence lead back.
    assert_eq!(say(&mut hooks, "e4", &event("e4").replace("c1", "c8")), 204);
    assert_eq!(say(&mut hooks, "e3", &event("e3")), 204);
    assert_eq!((events(&mut hooks[0]), hooks[0].follower.cursor()), (vec!["e3".into(), "e4".into()], Some("c8")));
    // Events that the program does not take are not lost.
    let most = (0..1_000).take_while(|n| say(&mut hooks, &format!("f{n}"), &event(&format!("f{n}"))) == 204).count();
    assert_eq!(most, 256);
    assert_eq!(events(&mut hooks[0]).len(), 256);
    assert_eq!(say(&mut hooks, "f256", &event("f256")), 204);
}

/// The old secret is good until the server has the new one.
#[test]
fn the_secret_changes() {
    let mut hooks = [subscribed(secret(7), "sub_1")];
    hooks[0].change_secret(secret(8));
    assert_eq!(params(&hooks[0].subscribe())["events/subscribe"]["delivery"]["secret"], secret(8).to_text());
    let say = |hooks: &mut [WebhookFollower; 1], random: u8, id: &str| {
        deliver(hooks, &secret(random), "sub_1", id, &event(id)).0
    };
    assert_eq!([say(&mut hooks, 7, "e1"), say(&mut hooks, 8, "e2")], [204, 204]);
    hooks[0].subscribed(Raw::constant(r#"{"id":"sub_1","refreshBefore":null}"#), NOW).unwrap();
    assert_eq!([say(&mut hooks, 7, "e3"), say(&mut hooks, 8, "e3")], [401, 204]);
}

/// The HTTP server of one connection, with a receiver behind it: all of it.
fn serve(mut socket: TcpStream, hooks: &mut [WebhookFollower]) {
    let (mut input, mut output) = ([0; 4096], [0; 1024]);
    let mut wire = Connection::<16>::new(&mut input, &mut output, ConnectionLimits::default());
    loop {
        if wire.step(0) == ConnectionStep::Request {
            let (request, response) = wire.exchange().unwrap();
            assert_eq!((request.head.method(), request.head.path()), ("POST", "/hooks/1"));
            let head = request.head.request_head();
            let delivery = ReceivedDelivery::new(|name| head.text(name), request.body.unwrap());
            let answer = receive(hooks, &delivery, NOW).0;
            let json = [("Content-Type", "application/json")];
            response.full(Status(answer.status), &json, answer.body.as_bytes()).unwrap();
        }
        let n = wire.pending().len();
        socket.write_all(wire.pending()).unwrap();
        wire.sent(n);
        match socket.read(wire.space()).unwrap() {
            0 => return,
            n => wire.filled(n),
        }
    }
}

#[test]
fn behind_an_http_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let mut hooks = [bell(secret(7))];
        serve(listener.accept().unwrap().0, &mut hooks);
        hooks
    });
    let mut post = |id: &str, body: &str| {
        let signature = secret(7).sign(id, NOW / 1000, body.as_bytes());
        let head = format!(
            "POST /hooks/1 HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\nWebhook-Id: {id}\r\n\
             webhook-timestamp: {}\r\nWebhook-Signature: {signature}\r\nX-MCP-Subscription-Id: sub_1\r\nContent-Length: {}\r\n\r\n",
            NOW / 1000,
            body.len()
        );
        socket.write_all((head + body).as_bytes()).unwrap();
        let mut answer = vec![0; 1024];
        let n = socket.read(&mut answer).unwrap();
        String::from_utf8(answer[..n].to_vec()).unwrap()
    };
    let answer = post("msg_verification_1", r#"{"type":"verification","challenge":"nonce"}"#);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n{\"challenge\":\"nonce\"}"), "{answer}");
    assert!(post("e1", &event("e1")).starts_with("HTTP/1.1 503"));
    drop(socket);
    assert_eq!(receiver.join().unwrap().len(), 1);
}
