//! All the ways to open a connection.

use crate::desk::{Desk, FULL, LEGACY, OFFERS, PLAIN, everywhere};
use mcp_sansio::FullError;
use mcp_sansio::client::{
    Client, ClientEvent, ClientInfo, Request, RequestError, SendError, SubscriptionFilter, TransportError,
};
use mcp_sansio::memory::Slots;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::sink::{LineSink, SliceStorage};

static MODERN_ONLY: ClientInfo<'static> = FULL.revisions(Revisions::NONE.with(Revision::V2026_07_28));
static LEGACY_ONLY: ClientInfo<'static> =
    FULL.revisions(Revisions::NONE.with(Revision::V2024_11_05).with(Revision::V2025_06_18).with(Revision::V2025_11_25));
static NOTHING: ClientInfo<'static> = PLAIN.revisions(Revisions::NONE);

/// Returns a client that has sent its probe.
fn probing(info: &'static ClientInfo<'static>) -> Desk {
    let mut desk = Desk::new(info);
    desk.client().connect();
    desk.pump();
    assert_eq!(desk.one()["method"], "server/discover");
    desk
}

fn falls_back(desk: &mut Desk) {
    let said = desk.one();
    assert_eq!(
        (said["method"].as_str(), said["params"]["protocolVersion"].as_str()),
        (Some("initialize"), Some("2025-11-25"))
    );
    assert_eq!(
        (&said["params"]["clientInfo"]["name"], &said["params"]["clientInfo"]["version"]),
        (&"desk".into(), &"1.0".into())
    );
    desk.initialized("2025-11-25", OFFERS);
    assert_eq!(desk.event(), "connected 2025-11-25");
    assert_eq!(desk.one()["method"], "notifications/initialized");
}

// spec: B002 B209 S004 T073 T074
#[test]
fn modern() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        assert_eq!(desk.try_send(&Request::list_tools()), Err(SendError::NotConnected));
        desk.result(r#"{"resultType":"complete","supportedVersions":["2027-01-01","2026-07-28"],"capabilities":{}}"#);
        assert_eq!(desk.event(), "connected 2026-07-28");
        desk.quiet();
        assert_eq!(desk.client().revision(), Some(Revision::V2026_07_28));
        desk
    });
}

// spec: B214 T075
#[test]
fn a_modern_error_with_legacy_revisions_leads_to_initialize() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.error(-32022, r#"{"supported":["2025-06-18","2024-11-05","1999-01-01"],"requested":"2026-07-28"}"#);
        assert_eq!(desk.one()["params"]["protocolVersion"], "2025-06-18");
        desk.initialized("2025-06-18", OFFERS);
        assert_eq!(desk.event(), "connected 2025-06-18");
        desk
    });
}

// spec: T075
#[test]
fn a_modern_error_with_a_common_revision_is_tried_again_a_few_times() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        for _ in 0..2 {
            desk.error(-32022, r#"{"supported":["2026-07-28"],"requested":"x"}"#);
            assert_eq!(desk.one()["method"], "server/discover");
        }
        desk.error(-32022, r#"{"supported":["2026-07-28"],"requested":"x"}"#);
        assert_eq!(desk.event(), "unconnected: there is no revision that both sides speak");
        assert!(!desk.client().is_connected());
        desk
    });
}

// spec: B214 T075
#[test]
fn a_modern_error_is_no_reason_to_fall_back() {
    for (code, data, expected) in [
        (
            -32022,
            r#"{"supported":["2031-01-01"],"requested":"2026-07-28"}"#,
            "there is no revision that both sides speak",
        ),
        (-32022, "", "there is no revision that both sides speak"),
        (-32021, r#"{"requiredCapabilities":{"roots":{}}}"#, "no (-32021)"),
        (-32020, "", "no (-32020)"),
    ] {
        everywhere(|| {
            let mut desk = probing(&FULL);
            desk.error(code, data);
            assert_eq!(desk.event(), format!("unconnected: {expected}"));
            desk.quiet();
            desk
        });
    }
}

// spec: B007 T076 T077
#[test]
fn any_other_error_means_legacy() {
    for error in [
        r#""id":1,"error":{"code":-32601,"message":"Method not found"}"#,
        r#""id":1,"error":{"code":-32602,"message":"Invalid params"}"#,
        r#""id":1,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}"#,
        r#""id":1,"error":{"code":0,"message":""}"#,
        r#""id":1,"error":"no"#,
        r#""id":null,"error":{"code":-32600,"message":"Invalid Request"}"#,
        r#""error":{"code":-32600,"message":"Invalid Request"}"#,
        r#""id":1,"result":{}"#,
        r#""id":1,"result":null"#,
        r#""id":1,"result":{"supportedVersions":[]}"#,
        r#""id":1,"result":{"supportedVersions":["2026-07-28"]},"error":{"code":-32603,"message":"both"}"#,
        r#""id":1,"result":{"resultType":"bogus","supportedVersions":["2026-07-28"]}"#,
        r#""id":1,"result":{"resultType":"input_required","requestState":"x","supportedVersions":["2026-07-28"]}"#,
        r#""id":1,"result":{"resultType":null,"supportedVersions":["2026-07-28"]}"#,
    ] {
        everywhere(|| {
            let mut desk = probing(&FULL);
            let end = if error.ends_with("\"no") { "\"" } else { "" };
            desk.feed(&format!(r#"{{"jsonrpc":"2.0",{error}{end}}}"#));
            falls_back(&mut desk);
            desk
        });
    }
}

// spec: B073 B074 B137 B209
#[test]
fn a_client_of_the_modern_era_alone_does_not_fall_back() {
    everywhere(|| {
        let mut desk = probing(&MODERN_ONLY);
        desk.wait(59_999);
        desk.quiet();
        desk.error(-32601, "");
        assert_eq!(desk.event(), "unconnected: no (-32601)");
        // No other message follows the probe, so the client cancels it.
        let mut desk = probing(&MODERN_ONLY);
        desk.wait(60_000);
        assert_eq!(desk.event(), "unconnected: the request took too long");
        let said = desk.one();
        assert_eq!(
            (said["method"].as_str(), &said["params"]["requestId"]),
            (Some("notifications/cancelled"), &1.into())
        );
        let mut desk = probing(&MODERN_ONLY);
        desk.result(r#"{"resultType":"bogus","supportedVersions":["2026-07-28"]}"#);
        assert_eq!(desk.event(), "unconnected: the answer is not a valid one");
        let mut desk = probing(&MODERN_ONLY);
        desk.result(r#"{"supportedVersions":["2025-11-25"]}"#);
        assert_eq!(desk.event(), "unconnected: there is no revision that both sides speak");
        desk
    });
}

#[test]
fn revisions_that_only_the_server_speaks_end_it() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.result(r#"{"supportedVersions":["2099-01-01"],"capabilities":{}}"#);
        assert_eq!(desk.event(), "unconnected: there is no revision that both sides speak");
        let mut desk = Desk::new(&NOTHING);
        desk.client().connect();
        desk.pump();
        assert_eq!(desk.event(), "unconnected: there is no revision that both sides speak");
        desk
    });
}

// spec: S004 T076
#[test]
fn silence_means_legacy() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        assert_eq!(desk.client().next_deadline(), Some(5_000));
        desk.wait(4_999);
        desk.quiet();
        desk.wait(1);
        falls_back(&mut desk);
        // A late answer to the probe is no error. A second answer is.
        desk.wait(60_000);
        desk.result_of(1, r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#);
        desk.quiet();
        desk.result_of(1, r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#);
        assert_eq!(desk.event(), "ignored UnknownResponse");
        assert_eq!(desk.client().revision(), Some(Revision::V2025_11_25));
        desk
    });
}

/// A server that starts slowly reads the probe and `initialize` together.
#[test]
fn late_errors_are_the_probes() {
    for late in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        everywhere(|| {
            let mut desk = probing(&FULL);
            desk.wait(5_000);
            desk.feed(late);
            assert_eq!(desk.events(), [""; 0]);
            falls_back(&mut desk);
            desk
        });
    }
}

#[test]
fn an_error_without_an_id_refuses_initialize_too() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.wait(5_000);
        for _ in 0..2 {
            desk.feed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#);
        }
        assert_eq!(desk.event(), "unconnected: Invalid Request (-32600)");
        desk
    });
}

#[test]
fn a_late_modern_answer_counts() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.wait(5_000);
        assert_eq!(desk.one()["method"], "initialize");
        desk.result_of(
            1,
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
        );
        assert_eq!(desk.event(), "connected 2026-07-28");
        // The other answer comes later.
        desk.send(&Request::list_tools());
        assert!(desk.one()["params"]["_meta"].is_object());
        for answer in [r#""error":{"code":-32601,"message":"Method not found"}"#, r#""result":{}"#] {
            desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":2,{answer}}}"#));
            let second = answer.contains("result");
            assert_eq!(desk.events(), vec!["ignored UnknownResponse"; usize::from(second)]);
        }
        desk.result(r#"{"tools":[]}"#);
        assert!(desk.event().starts_with("tools/list ok"));
        desk
    });
}

/// The ids of an opening are not used again while they may still be answered.
#[test]
fn late_answers_of_an_opening_are_those_of_no_request() {
    let mut desk = probing(&FULL);
    desk.wait(5_000);
    falls_back(&mut desk);
    // Ids repeat after four billion requests.
    let mut ids = Vec::new();
    for _ in 0..5 {
        let token = desk.send(&Request::list_tools());
        ids.push(desk.last_id());
        desk.cancel(token).unwrap();
    }
    assert!(!ids.contains(&1), "{ids:?}");
}

/// A new connection keeps nothing of the old one: neither its requests nor the capabilities of its server.
// spec: B099
#[test]
fn connected_a_second_time() {
    for (first, second) in
        [(Revision::V2026_07_28, Revision::V2025_11_25), (Revision::V2025_11_25, Revision::V2026_07_28)]
    {
        everywhere(|| {
            let mut desk = Desk::speaking(first);
            let token = desk.send(&Request::list_tools());
            let id = desk.last_id();
            desk.forget();
            desk.client().connect_as(second);
            assert!(second.is_modern() || desk.try_send(&Request::list_tools()) == Err(SendError::NotConnected));
            desk.pump();
            assert_eq!(desk.event(), "tools/list failed: the connection ended before the answer came");
            assert!(!desk.client().is_open(token));
            desk.result_of(id, r#"{"tools":[]}"#);
            assert_eq!(desk.event(), "ignored UnknownResponse");
            if !second.is_modern() {
                desk.initialized(second.date(), r#"{"tools":{}}"#);
                assert_eq!(desk.event(), format!("connected {second}"));
                assert_eq!(desk.try_send(&Request::list_prompts()), Err(SendError::NotOffered));
                desk.with(|client, _| client.listen(&SubscriptionFilter::new().tools())).unwrap();
                assert_eq!(desk.event(), "listening 0");
            }
            desk.forget();
            desk.send(&Request::list_tools());
            assert_eq!(desk.one()["params"].get("_meta").is_some(), second.is_modern());
            desk.result(r#"{"tools":[]}"#);
            assert!(desk.event().starts_with("tools/list ok"));
            // The same with a probe: requests wait for the revision.
            desk.client().connect();
            assert_eq!(desk.try_send(&Request::list_tools()), Err(SendError::NotConnected));
            desk.pump();
            let expected = if second.is_modern() { "server/discover" } else { "initialize" };
            assert_eq!(desk.one()["method"], expected);
            desk
        });
    }
}

/// The failure is reported once, and no part of a message is sent.
#[test]
fn a_sink_that_is_too_small_for_the_opening() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let mut bytes = [0; 100];
        let mut out = LineSink::new(SliceStorage::new(&mut bytes));
        let info = FULL.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(&info, Slots::growing(2));
        client.connect();
        assert_eq!(client.advance(0, &mut out).unwrap_err(), FullError::Never);
        let told = client.advance(0, &mut out).unwrap();
        assert!(
            matches!(told, Some(ClientEvent::Unconnected(RequestError::Lost(TransportError::TooLarge)))),
            "{told:?}"
        );
        assert!(client.advance(0, &mut out).unwrap().is_none());
        assert!(out.pending().is_empty() && client.next_deadline().is_none());
    }
}

/// The answer comes while `initialize` waits for room.
#[test]
fn a_late_modern_answer_counts_before_initialize_is_sent() {
    let mut bytes = [0; 300];
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    let mut client = Client::growing(&PLAIN);
    client.connect();
    assert!(client.advance(0, &mut out).unwrap().is_none());
    assert!(!out.pending().is_empty());
    assert_eq!(client.advance(5_000, &mut out).unwrap_err(), FullError::Now);
    let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}"#;
    let event = client.receive(answer, &mut out).unwrap();
    assert!(matches!(event, Some(ClientEvent::Connected(_))), "{event:?}");
}

// spec: B001 B094 B098 B101
#[test]
fn a_pinned_revision_needs_no_probe() {
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::new(&FULL);
            desk.client().connect_as(revision);
            desk.pump();
            assert_eq!(desk.one()["params"]["protocolVersion"], revision.date());
            desk.initialized(revision.date(), OFFERS);
            assert_eq!(desk.event(), format!("connected {revision}"));
            assert_eq!(desk.one()["method"], "notifications/initialized");
            desk
        });
    }
    everywhere(|| {
        let mut desk = Desk::new(&FULL);
        desk.client().connect_as(Revision::V2026_07_28);
        desk.pump();
        desk.quiet();
        desk.send(&Request::list_prompts());
        desk.result(r#"{"resultType":"complete","prompts":[]}"#);
        assert!(desk.event().starts_with("prompts/list ok"));
        desk
    });
}

// spec: B089 B092 B093 B096 B098 B113 B114
#[test]
fn a_legacy_client_begins_with_initialize() {
    everywhere(|| {
        let mut desk = Desk::new(&LEGACY_ONLY);
        desk.client().connect();
        desk.pump();
        falls_back(&mut desk);
        desk
    });
}

// spec: B082 B083 B090 B106 B118
#[test]
fn the_server_chooses() {
    let cases = [
        ("2024-11-05", "connected 2024-11-05"),
        ("2025-06-18", "connected 2025-06-18"),
        ("2025-03-26", "unconnected: there is no revision that both sides speak"),
        ("2026-07-28", "unconnected: there is no revision that both sides speak"),
        ("1.0", "unconnected: there is no revision that both sides speak"),
    ];
    for (version, expected) in cases {
        everywhere(|| {
            let mut desk = Desk::new(&LEGACY_ONLY);
            desk.client().connect();
            desk.pump();
            desk.forget();
            desk.initialized(version, "{}");
            assert_eq!(desk.event(), expected);
            assert_eq!(desk.said().len(), usize::from(expected.starts_with("connected")));
            desk
        });
    }
    for result in ["{}", "[]", "null", r#"{"protocolVersion":20250618}"#] {
        everywhere(|| {
            let mut desk = Desk::new(&LEGACY_ONLY);
            desk.client().connect();
            desk.pump();
            desk.result(result);
            assert_eq!(desk.event(), "unconnected: the answer is not a valid one");
            desk
        });
    }
}

#[test]
fn a_refusal_with_revisions_is_an_offer() {
    everywhere(|| {
        let mut desk = Desk::new(&LEGACY_ONLY);
        desk.client().connect();
        desk.pump();
        desk.forget();
        desk.error(-32602, r#"{"supported":["2024-11-05","2025-03-26"],"requested":"2025-11-25"}"#);
        assert_eq!(desk.one()["params"]["protocolVersion"], "2024-11-05");
        desk.error(-32602, r#"{"supported":["2024-11-05"]}"#);
        assert_eq!(desk.event(), "unconnected: no (-32602)");
        desk.quiet();
        desk
    });
}

// spec: B066 B190
#[test]
fn pings_are_answered_from_the_first_moment() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.ask(r#""a""#, "ping", "{}");
        assert_eq!(desk.one()["id"], "a");
        desk.ask("7", "roots/list", "{}");
        assert_eq!(desk.one()["error"]["code"], -32601);
        assert_eq!(desk.event(), "ignored Undeclared");
        desk
    });
}

/// The server's name, or a missing name, changes nothing.
// spec: B041 B053 S003
#[test]
fn names_change_nothing() {
    const KEY: &str = "io.modelcontextprotocol/serverInfo";
    for revision in Revision::ALL {
        let mut seen = Vec::new();
        for info in [r#"{"name":"s","version":"1"}"#, r#"{"name":"","version":"","title":"x","more":1}"#, "null", "3"] {
            let mut desk = Desk::new(&FULL);
            let result = match revision.is_modern() {
                true => format!(
                    r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{OFFERS},"_meta":{{"{KEY}":{info}}}}}"#
                ),
                false => {
                    format!(r#"{{"protocolVersion":"{revision}","capabilities":{OFFERS},"serverInfo":{info}}}"#)
                }
            };
            if revision.is_modern() {
                desk.client().connect();
            } else {
                desk.client().connect_as(revision);
            }
            desk.pump();
            desk.result(&result);
            assert_eq!(desk.event(), format!("connected {revision}"), "{info}");
            desk.send(&Request::call("x"));
            desk.result(&format!(r#"{{"resultType":"complete","content":[],"_meta":{{"{KEY}":{info}}}}}"#));
            assert!(desk.event().starts_with("tools/call ok"));
            desk.send(&Request::list_prompts());
            seen.push(desk.said());
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]) && seen[0].len() >= 3, "{seen:?}");
    }
}

/// Servers of 2026-07-28 send no requests, and a client with this revision alone answers none.
// spec: B143
#[test]
fn a_client_of_the_modern_era_alone_answers_no_requests() {
    everywhere(|| {
        let mut desk = probing(&MODERN_ONLY);
        for method in ["ping", "roots/list"] {
            desk.ask(r#""a""#, method, "{}");
            assert_eq!((desk.event().as_str(), desk.said().len()), ("ignored BadRequest", 0));
        }
        desk.result(r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#);
        assert_eq!(desk.event(), "connected 2026-07-28");
        desk
    });
}

#[test]
fn the_end_of_input_ends_the_opening() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.client().end_of_input();
        desk.pump();
        assert_eq!(desk.event(), "unconnected: the connection ended before the answer came");
        desk.pump();
        desk.quiet();
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        desk.client().end_of_input();
        desk.pump();
        // Also without a request in flight, and once.
        assert_eq!(desk.event(), "Closed");
        desk.client().end_of_input();
        desk.pump();
        desk.quiet();
        assert_eq!(desk.try_send(&Request::list_tools()), Err(SendError::NotConnected));
        desk
    });
}

// spec: B085 B186
#[test]
fn initialize_takes_only_so_long() {
    everywhere(|| {
        let mut desk = Desk::new(&LEGACY_ONLY);
        desk.client().connect();
        desk.pump();
        desk.forget();
        desk.wait(60_000);
        assert_eq!(desk.event(), "unconnected: the request took too long");
        desk.quiet();
        desk
    });
}

/// The opening as a whole takes no longer than a request may: the time of a probe without an answer counts.
#[test]
fn a_silent_server_takes_only_so_long() {
    everywhere(|| {
        let mut desk = probing(&FULL);
        desk.wait(5_000);
        assert_eq!(desk.one()["method"], "initialize");
        desk.wait(54_999);
        desk.quiet();
        desk.wait(1);
        assert_eq!(desk.event(), "unconnected: the request took too long");
        desk
    });
    // A probe that may take longer than a request has half of the time, and `initialize` the other half.
    everywhere(|| {
        let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)).timeout(3_000));
        desk.client().connect();
        desk.pump();
        desk.forget();
        desk.wait(1_499);
        desk.quiet();
        desk.wait(1);
        assert_eq!(desk.one()["method"], "initialize");
        desk.wait(1_499);
        desk.quiet();
        desk.wait(1);
        assert_eq!(desk.event(), "unconnected: the request took too long");
        desk
    });
}

#[test]
fn a_lost_probe_and_a_lost_initialize() {
    everywhere(|| {
        // An HTTP status as the answer means an older server.
        let mut desk = probing(&FULL);
        desk.client().lost(1, TransportError::Status(400));
        desk.pump();
        falls_back(&mut desk);
        let mut desk = probing(&FULL);
        desk.client().lost(1, TransportError::Unreachable);
        desk.pump();
        assert_eq!(desk.event(), "unconnected: the server could not be reached");
        let mut desk = Desk::new(&LEGACY_ONLY);
        desk.client().connect();
        desk.pump();
        desk.client().lost(1, TransportError::Status(500));
        desk.pump();
        assert_eq!(desk.event(), "unconnected: the server answered with HTTP status 500");
        desk
    });
}

// spec: B207
#[test]
fn the_era_is_remembered() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_03_26);
        desk.client().reconnect(TransportError::SessionLost);
        desk.pump();
        assert_eq!(desk.one()["params"]["protocolVersion"], "2025-03-26");
        desk.initialized("2025-03-26", "{}");
        assert_eq!(desk.event(), "connected 2025-03-26");
        let mut desk = Desk::modern(&FULL);
        let _ = desk.send(&Request::list_tools());
        desk.forget();
        desk.client().reconnect(TransportError::SessionLost);
        desk.pump();
        assert_eq!(desk.event(), "tools/list failed: the server has forgotten the session");
        assert_eq!(desk.one()["method"], "server/discover");
        desk
    });
}

#[test]
fn lent_memory_is_enough() {
    let mut held = [0; 1];
    let info = PLAIN;
    let mut client = Client::new(&info, Slots::growing(1)).held(&mut held);
    let mut bytes = [0; 400];
    let mut out = mcp_sansio::sink::LineSink::new(mcp_sansio::sink::SliceStorage::new(&mut bytes));
    client.connect();
    assert!(client.advance(0, &mut out).unwrap().is_none());
    assert!(out.pending().ends_with(b"}\n"));
    assert_eq!(client.in_flight(), 0);
}
