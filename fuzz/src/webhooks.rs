//! Webhooks: signatures, and what is read in a body that is signed.

use mcp_sansio::json::Raw;
use mcp_sansio_extensions::events::client::{EventFollower, FollowedEvent};
use mcp_sansio_extensions::events::webhook::{
    ReceivedDelivery, SignatureError, WebhookFollower, WebhookSecret, receive,
};
use serde_json::Value;

/// The time of the deliveries, in seconds since the beginning of 1970, and the most that a receiver may be away from it.
const TIME: u64 = 1_785_231_000;
const FRESH: u64 = 300;

/// Signs a body, and changes one thing after the other.
fn signature(secret: WebhookSecret, id: &str, body: &[u8], [at, bits]: [u8; 2]) {
    let (time, own) = (TIME.to_string(), secret.sign(id, TIME, body));
    let verify = |secret: &WebhookSecret, id: &str, time: &str, signatures: &str, body: &[u8], now: u64| {
        secret.verify([id, time, signatures], body, now)
    };
    assert_eq!(WebhookSecret::parse(&secret.to_text()), Some(secret));
    for now in [TIME - FRESH, TIME, TIME + FRESH] {
        assert_eq!(verify(&secret, id, &time, &format!("v1a,AAAA {own}"), body, now), Ok(()));
    }
    for now in [TIME - FRESH - 1, TIME + FRESH + 1] {
        assert_eq!(verify(&secret, id, &time, &own, body, now), Err(SignatureError::Timestamp));
    }
    let change = |bytes: &[u8]| {
        let mut changed = bytes.to_vec();
        if let Some(byte) = changed.get_mut(usize::from(at).min(bytes.len().saturating_sub(1))) {
            *byte ^= bits | 1;
        }
        changed
    };
    let is_refused = |verified| assert_eq!(verified, Err(SignatureError::Signature));
    if !body.is_empty() {
        is_refused(verify(&secret, id, &time, &own, &change(body), TIME));
    }
    is_refused(verify(&secret, &format!("{id}x"), &time, &own, body, TIME));
    is_refused(verify(&secret, id, &(TIME + 1).to_string(), &own, body, TIME));
    is_refused(verify(&WebhookSecret::new(&[bits; 24]).expect("24 bytes"), id, &time, &own, body, TIME));
    if let Ok(changed) = String::from_utf8(change(own.as_bytes())) {
        is_refused(verify(&secret, id, &time, &changed, body, TIME));
    }
}

/// Reads a body as serde_json does: the status of the answer; `None` where it cannot be compared.
fn expected(body: &[u8], id: &str) -> Option<(u16, Value)> {
    let body = body.trim_ascii();
    let Ok(raw) = Raw::parse(body) else { return Some((400, Value::Null)) };
    // Numbers without end and halves of characters are none for serde_json.
    let value: Value = serde_json::from_slice(body).ok()?;
    // Of two members with one name, serde_json takes the last one.
    if value.as_object().is_some_and(|members| members.len() != raw.members().count()) {
        return None;
    }
    let is_text = |name: &str| value[name].is_string();
    let status = match value.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
        _ if !value.is_object() => 400,
        Some("verification") if is_text("challenge") => 200,
        Some("terminated" | "gap") => 204,
        None if value["eventId"] == id && value["name"] == "a" && is_text("timestamp") && value["data"].is_object() => {
            204
        }
        _ => 400,
    };
    Some((status, value))
}

/// Takes a body of any content whose signature is good, and compares.
fn envelope(secret: WebhookSecret, id: &str, body: &[u8]) -> Option<()> {
    let follower = EventFollower::new("a").cursor_from(Some("before".into()));
    let mut hooks = [WebhookFollower::new(follower, "https://example.com", secret)];
    hooks[0].subscribed(Raw::constant(r#"{"id":"s","refreshBefore":null}"#), 0).expect("a result");
    let signature = secret.sign(id, TIME, body);
    let headers = [id, &TIME.to_string(), &signature];
    let delivery = ReceivedDelivery { headers, subscription: "s", body };
    let answer = receive(&mut hooks, &delivery, TIME * 1000).0;
    let (status, value) = expected(body, id)?;
    assert_eq!(answer.status, status, "{value}");
    let mut events = Vec::new();
    while let Some(event) = hooks[0].follower.event() {
        events.push(event);
    }
    let is_of = |kind: &str| status != 400 && value["type"] == kind;
    assert_eq!(hooks[0].ended.is_some(), is_of("terminated"));
    if is_of("verification") {
        assert_eq!(serde_json::from_str::<Value>(&answer.body).expect("JSON")["challenge"], value["challenge"]);
    }
    match events.first() {
        Some(FollowedEvent::Occurred(event)) => {
            assert!(status == 204 && event.event_id == id && value["timestamp"] == event.timestamp, "{value}");
            assert_eq!(serde_json::from_str::<Value>(event.data.as_str()).expect("JSON"), value["data"]);
        }
        _ => assert!(status != 204 || value.get("type").is_some(), "{value}"),
    }
    let moves = status == 204 && !is_of("terminated") && value["cursor"].is_string();
    let cursor = if moves { value["cursor"].as_str() } else { Some("before") };
    assert_eq!(hooks[0].follower.cursor(), cursor, "{value}");
    Some(())
}

/// Takes the change, the secret, and the body.
pub(crate) fn run(data: &[u8]) -> Option<()> {
    let ([at, bits, length, fill], body) = data.split_first_chunk()?;
    let secret = WebhookSecret::new(&vec![*fill; 24 + usize::from(length % 41)]).expect("24 to 64 bytes");
    let id = serde_json::from_slice::<Value>(body).ok();
    let id = id.as_ref().and_then(|value| value["eventId"].as_str()).unwrap_or("id");
    // Another secret, or it would be a good signature.
    signature(secret, id, body, [*at, if bits == fill { bits ^ 2 } else { *bits }]);
    envelope(secret, id, body)
}
