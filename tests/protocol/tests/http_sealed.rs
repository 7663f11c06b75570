//! Sessions with sealed ids, at two endpoints with one key.
use crate::common;

use common::http::*;
use common::{LEGACY, all_capabilities, initialize, json, notify};
use mcp_sansio::server::{AssociatedData, MessageLimits, Seal, SealError, Server};
use mcp_sansio_http::endpoint::{Access, Endpoint, EndpointConfig, EndpointLimits, SessionSeal};
use mcp_sansio_http::seal::HmacSeal;

const HOUR: u64 = 3_600_000;

fn seal(key: u8) -> SessionSeal<'static> {
    SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[key; 32])))).lifetime(HOUR)
}

fn endpoint(seal: SessionSeal<'static>, config: EndpointConfig<'static>, limits: EndpointLimits, dice: u64) -> Web {
    let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
    let mut web = Web::of(Endpoint::growing(config, server, limits).seal_sessions(seal));
    web.dice.0 = dice;
    web
}

fn web(seal: SessionSeal<'static>, dice: u64) -> Web {
    endpoint(seal, config(), EndpointLimits::default(), dice)
}

fn two() -> (Web, Web) {
    (web(seal(7), 1), web(seal(7), 2))
}

/// Opens a session at one endpoint, and makes the oracle of the other know its revision.
fn opened(a: &mut Web, b: &mut Web, revision: &str) -> String {
    let session = a.open(revision);
    b.sessions.insert(session.clone(), revision.to_owned());
    session
}

// spec: T051
#[test]
fn any_endpoint_with_the_key_serves_a_session() {
    for revision in &LEGACY[1..] {
        let (mut a, mut b) = two();
        let session = opened(&mut a, &mut b, revision);
        assert!(session.len() > 32 && session.len() <= 128, "{session}");
        assert!(session.bytes().all(|byte| byte.is_ascii_graphic()), "{session}");
        // In turns, as behind a proxy; each has the session once.
        for id in 0..6 {
            let web = if id % 2 == 0 { &mut b } else { &mut a };
            let body = web.call(&session, id, "count", json!({})).body;
            assert_eq!(body["result"]["content"][0]["text"], json!((id / 2 + 1).to_string()), "{body}");
            assert_eq!(web.endpoint.load().1, 1);
        }
        // The capabilities came along: the tool may ask. The question goes to the stream of the call.
        if *revision != "2025-03-26" {
            let reply = b.call(&session, 10, "confirm", json!({}));
            let asked = b.pull(reply.stream.expect("a stream")).json();
            assert_eq!(asked[0]["method"], "elicitation/create", "{asked:?}");
        }
        // And its stream for messages outside requests.
        assert_eq!(b.listen(&session, None).status, 200);
    }
}

/// Capabilities that a client did not declare are not there at another endpoint either.
#[test]
fn a_client_that_can_do_nothing() {
    let (mut a, mut b) = two();
    let reply = a.post(&initialize("2025-11-25", json!({})));
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    // Without `notifications/initialized`, which another endpoint may have got.
    let refused = b.call(&session, 1, "need", json!({}));
    assert!(refused.body.to_string().contains("does not support sampling"), "{refused:?}");
    // One that can does so there too.
    let session = opened(&mut a, &mut b, "2025-11-25");
    let asked = b.call(&session, 1, "need", json!({}));
    assert!(!format!("{:?}", asked.body).contains("does not support"), "{asked:?}");
}

// spec: T054
#[test]
fn an_ended_session_is_ended_where_it_was_ended() {
    let (mut a, mut b) = two();
    let session = opened(&mut a, &mut b, "2025-11-25");
    let delete = |web: &mut Web| web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(delete(&mut a).status, 204);
    assert_eq!(a.endpoint.load().1, 0);
    a.call(&session, 1, "count", json!({})).refused(404);
    a.listen(&session, None).refused(404);
    delete(&mut a).refused(404);
    // The other one does not know of it, until its client ends it there: even if it has not seen it before.
    assert_eq!(delete(&mut b).status, 204);
    b.call(&session, 2, "count", json!({})).refused(404);
}

/// The memory for ended sessions has a bound: the one whose time is over first is forgotten.
#[test]
fn only_so_many_ended_sessions_are_remembered() {
    let mut a = web(seal(7).ended(2), 1);
    let sessions: Vec<String> = (0..3)
        .map(|_| {
            a.now += 1;
            let session = a.open("2025-11-25");
            assert_eq!(a.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status, 204);
            session
        })
        .collect();
    let statuses: Vec<u16> = sessions.iter().map(|session| a.call(session, 1, "count", json!({})).status).collect();
    assert_eq!(statuses, [200, 404, 404]);
}

// spec: T054
#[test]
fn ids_have_an_end() {
    let (mut a, mut b) = two();
    let session = opened(&mut a, &mut b, "2025-11-25");
    for web in [&mut a, &mut b] {
        web.now += HOUR - 1;
        assert_eq!(web.call(&session, 1, "count", json!({})).status, 200);
        web.now += 1;
        web.call(&session, 2, "count", json!({})).refused(404);
        assert_eq!(web.endpoint.load().1, 0);
    }
    web(seal(7), 3).call(&session, 3, "count", json!({}));
}

/// A session that was closed for its rest goes on at its next request, until its end.
#[test]
fn idle_sessions_come_back() {
    let mut a = endpoint(seal(7), config().session_idle(60_000), EndpointLimits::default(), 1);
    let session = a.open("2025-06-18");
    a.wait(61_000);
    assert_eq!(a.endpoint.load().1, 0);
    assert_eq!(a.call(&session, 1, "count", json!({})).status, 200);
}

#[test]
fn forged_ids_are_unknown() {
    let (mut a, mut b) = two();
    let session = opened(&mut a, &mut b, "2025-11-25");
    let digits = session.as_bytes();
    let mut forged: Vec<Vec<u8>> = (0..digits.len()).map(|len| digits[..len].to_vec()).collect();
    for at in 0..digits.len() {
        for other in [digits[at] ^ 1, digits[at] ^ 2, digits[at] ^ 0x20, b'A', b'_', b'=', b'!', b'~'] {
            let mut changed = digits.to_vec();
            changed[at] = other;
            forged.push(changed);
        }
        for to in at + 1..digits.len() {
            let mut swapped = digits.to_vec();
            swapped.swap(at, to);
            forged.push(swapped);
        }
        let mut longer = digits.to_vec();
        longer.insert(at, b'A');
        forged.push(longer);
    }
    forged.extend([b"A".repeat(200), [digits, b"A"].concat(), [digits, b"AAAA"].concat(), [digits, digits].concat()]);
    // Another id of the same key, with parts exchanged.
    let second = a.open("2025-11-25").into_bytes();
    forged.extend((1..digits.len()).map(|at| [&digits[..at], &second[at..]].concat()));
    for id in forged.iter().filter(|id| *id != digits && **id != second) {
        let id = std::str::from_utf8(id).unwrap();
        for web in [&mut a, &mut b] {
            web.call(id, 1, "count", json!({})).refused(404);
        }
    }
    // None of them has opened a session.
    assert_eq!((a.endpoint.load().1, b.endpoint.load().1), (2, 0));
    // A process without the seal, or with another key, knows none.
    Web::new().call(&session, 1, "count", json!({})).refused(404);
    web(seal(8), 3).call(&session, 1, "count", json!({})).refused(404);
    // And the good one is good all the same.
    assert_eq!(b.call(&session, 1, "count", json!({})).status, 200);
}

fn as_user(web: &mut Web) {
    web.authorize = Box::new(|head| Access::Granted {
        principal: match head.headers.get("authorization") {
            Some(b"ann") => Some("ann"),
            Some(b"bob") => Some("bob"),
            _ => None,
        },
    });
}

#[test]
fn sessions_belong_to_their_principal_everywhere() {
    let (mut a, mut b) = two();
    as_user(&mut a);
    as_user(&mut b);
    let open = initialize("2025-11-25", all_capabilities("2025-11-25"));
    let reply = a.request("POST", "/mcp", &[JSON, ACCEPT, ("authorization", "ann")], &open);
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    for web in [&mut a, &mut b] {
        let mut ping = |who: &[(&str, &str)]| {
            let headers = [&[JSON, ACCEPT, ("mcp-session-id", session.as_str())], who].concat();
            web.request("POST", "/mcp", &headers, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).status
        };
        assert_eq!([ping(&[("authorization", "bob")]), ping(&[]), ping(&[("authorization", "ann")])], [404, 404, 200]);
        assert_eq!([ping(&[("authorization", "bob")]), ping(&[])], [404, 404]);
    }
}

#[test]
fn sessions_of_elsewhere_have_the_same_limits() {
    let full = || endpoint(seal(7), config().session_rest(0), EndpointLimits::default().sessions(1), 1);
    let mut a = web(seal(7), 2);
    let mut b = full();
    let (first, second) = (a.open("2025-11-25"), a.open("2025-11-25"));
    assert_eq!(b.call(&first, 1, "count", json!({})).status, 200);
    b.call(&second, 1, "count", json!({})).refused(503);
    assert_eq!(b.request("DELETE", "/mcp", &[("mcp-session-id", &first)], "").status, 204);
    assert_eq!(b.call(&second, 1, "count", json!({})).status, 200);
    // With a rest, the one at rest makes way, and comes back later.
    let mut c = endpoint(seal(7), config().session_rest(10), EndpointLimits::default().sessions(1), 3);
    for _ in 0..3 {
        for session in [&first, &second] {
            assert_eq!(c.call(session, 1, "count", json!({})).status, 200);
            c.now += 20;
        }
    }
    assert_eq!(c.endpoint.load().1, 1);
}

#[test]
fn keys_change_without_losing_sessions() {
    let keys = |own: u8, other: Option<u8>| {
        let seal = HmacSeal::new(&[own; 32]);
        let seal = match other {
            Some(other) => seal.accept(&[other; 32]),
            None => seal,
        };
        SessionSeal::new(Box::leak(Box::new(seal)))
    };
    let session = web(keys(1, None), 1).open("2025-11-25");
    // All accept the new key, then all seal with it.
    let between = web(keys(1, Some(2)), 2).open("2025-11-25");
    let later = web(keys(2, Some(1)), 3).open("2025-11-25");
    let status = |keys, session: &str| web(keys, 9).call(session, 1, "count", json!({})).status;
    assert_eq!(status(keys(1, Some(2)), &session), 200);
    assert_eq!(status(keys(1, Some(2)), &later), 200);
    assert_eq!(status(keys(2, Some(1)), &session), 200);
    assert_eq!(status(keys(2, Some(1)), &between), 200);
    assert_eq!(status(keys(2, None), &later), 200);
    assert_eq!(status(keys(2, None), &session), 404);
}

/// A seal that adds too much: sessions stay where they were opened, as without one.
#[test]
fn a_seal_without_room() {
    struct Wordy;
    impl Seal for Wordy {
        fn seal(&self, _: &AssociatedData<'_>, state: &[u8], sealed: &mut [u8]) -> Result<usize, SealError> {
            if sealed.len() < state.len() + 75 { Err(SealError::Room) } else { Ok(state.len() + 75) }
        }
        fn open(&self, _: &AssociatedData<'_>, _: &[u8], _: &mut [u8]) -> Result<usize, SealError> {
            Err(SealError::Broken)
        }
    }
    let mut a = web(SessionSeal::new(&Wordy), 1);
    let session = a.open("2025-11-25");
    assert_eq!(session.len(), 32);
    assert_eq!(a.call(&session, 1, "count", json!({})).status, 200);
}

/// Another `initialize` in a session, and the old transport, are as without a seal.
#[test]
fn the_rest_is_as_before() {
    let mut a = web(seal(7), 1);
    let session = a.open("2025-11-25");
    let again = |web: &mut Web, session: &str| {
        let reply = web.say(session, &initialize("2025-11-25", json!({})));
        (reply.status, reply.header("mcp-session-id").is_some(), reply.body)
    };
    let mut plain = Web::new();
    let plain_session = plain.open("2025-11-25");
    assert_eq!(again(&mut a, &session), again(&mut plain, &plain_session));
    assert_eq!(a.say(&session, &notify("notifications/initialized", json!({}))).status, 202);
    let reply = a.request("GET", "/sse", &[SSE], "");
    let stream = reply.stream.unwrap();
    let endpoint = a.pull(stream).events.remove(0).data;
    assert_eq!(endpoint.split_once("session=").unwrap().1.len(), 32);
    assert_eq!(a.request("POST", &endpoint, &[JSON], &initialize("2024-11-05", json!({}))).status, 202);
    assert_eq!(a.pull(stream).json().len(), 1);
}
