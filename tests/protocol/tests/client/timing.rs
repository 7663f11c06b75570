//! Deadlines, progress, and cancelled requests.

use crate::desk::{Desk, FULL, OFFERS, everywhere};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{Client, Request};
use mcp_sansio::memory::Slots;
use mcp_sansio::revision::Revision;

fn progress(desk: &mut Desk, token: &str, rest: &str) {
    desk.feed(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications\/progress","params":{{"progressToken":{token},{rest}}}}}"#
    ));
}

// spec: B087 B088 B112 B134 B135 B137 B139
#[test]
fn a_request_takes_only_so_long() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            let token = desk.send(&Request::list_tools().timeout(1_000));
            desk.send(&Request::list_tools());
            let id = desk.last_id();
            desk.forget();
            assert_eq!(desk.client().next_deadline(), Some(1_000));
            desk.wait(999);
            desk.quiet();
            desk.wait(1);
            assert_eq!(desk.event(), "tools/list failed: the request took too long");
            assert_eq!(desk.one()["params"]["requestId"], id - 1);
            assert!(!desk.client().is_open(token));
            desk.result_of(id - 1, "{}");
            assert_eq!(desk.event(), "ignored UnknownResponse");
            desk.wait(59_000);
            assert_eq!(desk.event(), "tools/list failed: the request took too long");
            assert_eq!((desk.said().len(), desk.client().next_deadline()), (1, None));
            desk
        });
    }
}

#[test]
fn progress_starts_the_time_again_up_to_a_limit() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.send(&Request::call("x").with_progress().timeout(1_000).total_timeout(2_500));
            let token = desk.last_id().to_string();
            assert_eq!(desk.one()["params"]["_meta"]["progressToken"].to_string(), token);
            for value in ["0.50", "0.51"] {
                desk.wait(999);
                progress(&mut desk, &token, &format!(r#""progress":{value},"total":1e1,"message":"h\u0061lf""#));
                assert_eq!(desk.event(), format!("progress {value} of 1e1 half"));
            }
            assert_eq!(desk.client().next_deadline(), Some(2_500));
            desk.wait(501);
            desk.quiet();
            desk.wait(1);
            assert_eq!(desk.event(), "tools/call failed: the request took too long");
            assert_eq!(desk.one()["method"], "notifications/cancelled");
            progress(&mut desk, &token, r#""progress":1"#);
            assert_eq!(desk.event(), "ignored UnknownProgress");
            desk
        });
    }
}

/// Progress that repeats the same value does not extend the time.
#[test]
fn progress_that_stands_still() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::call("x").with_progress().timeout(1_000));
        let token = desk.last_id().to_string();
        desk.forget();
        for wait in [600, 300] {
            desk.wait(wait);
            progress(&mut desk, &token, r#""progress":7"#);
            assert_eq!(desk.event(), "progress 7 of ? ", "it is told all the same");
            assert_eq!(desk.client().next_deadline(), Some(1_600));
        }
        desk.wait(700);
        assert_eq!(desk.event(), "tools/call failed: the request took too long");
        desk
    });
}

/// A request with progress ends at its limit, however often the server reports progress.
// spec: B136
#[test]
fn progress_for_ever() {
    for (client, request, most) in [
        (Client::growing(&FULL), Request::call("x"), 3_600_000),
        (Client::growing(&FULL).total_timeout(5_000), Request::call("x"), 5_000),
        (Client::growing(&FULL).total_timeout(5_000), Request::call("x").total_timeout(7_000), 7_000),
        // The time of the request is longer than the limit of the client.
        (Client::growing(&FULL).total_timeout(5_000), Request::call("x").timeout(9_000), 9_000),
    ] {
        let mut desk = Desk::of(client.timeout(1_000));
        desk.open_modern(OFFERS);
        desk.send(&request.with_progress());
        let token = desk.last_id().to_string();
        desk.forget();
        let mut passed = 0;
        while passed + 900 < most {
            desk.wait(900);
            passed += 900;
            progress(&mut desk, &token, &format!(r#""progress":{passed}"#));
            assert!(desk.event().starts_with("progress"), "after {passed}");
        }
        assert_eq!(desk.client().next_deadline(), Some(most));
        desk.wait(most - passed);
        assert_eq!(desk.event(), "tools/call failed: the request took too long");
    }
}

/// The time that the user takes does not count.
#[test]
fn a_question_stops_the_usual_limit() {
    everywhere(|| {
        let mut desk = Desk::of(Client::growing(&FULL).timeout(1_000).total_timeout(5_000));
        desk.open_modern(OFFERS);
        desk.send(&Request::call("x").with_progress());
        desk.result(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#);
        desk.wait(100_000);
        desk.reply(desk.asked[0].0, &ClientResult::roots(&[])).unwrap();
        desk.forget();
        desk.wait(999);
        desk.quiet();
        desk.wait(1);
        assert_eq!(desk.event(), "tools/call failed: the request took too long");
        desk
    });
}

// spec: B171 B201
#[test]
fn progress_of_nothing() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::call("x").timeout(1_000));
        desk.send(&Request::call("x").with_progress().timeout(1_000));
        desk.forget();
        let id = desk.last_id();
        desk.wait(500);
        progress(&mut desk, &(id - 1).to_string(), r#""progress":1"#);
        progress(&mut desk, "99", r#""progress":1"#);
        progress(&mut desk, &format!("\"{id}\""), r#""progress":1"#);
        progress(&mut desk, &id.to_string(), r#""progress":"much""#);
        progress(&mut desk, &id.to_string(), r#""total":1"#);
        assert_eq!(desk.events(), ["ignored UnknownProgress"; 5]);
        progress(&mut desk, &format!("{id}.0"), r#""progress":1,"total":null"#);
        assert_eq!(desk.event(), "progress 1 of ? ");
        desk.wait(500);
        assert_eq!(desk.events().len(), 1);
        desk
    });
}

/// Each request has its own id, which is also its progress token, in each revision.
// spec: B063 B064 B174 B175 B204
#[test]
fn tokens_differ() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            let [a, b, c] = ["x", "y", "z"].map(|name| {
                desk.send(&Request::call(name).with_progress());
                let said = desk.one();
                assert_eq!(said["params"]["_meta"]["progressToken"], said["id"]);
                said["id"].to_string()
            });
            assert!(a != b && a != c && b != c, "{a} {b} {c}");
            desk
        });
    }
}

#[test]
fn a_patient_request() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::call("x").total_timeout(5).no_timeout());
        // A time that is never over.
        desk.send(&Request::call("x").timeout(u64::MAX));
        desk.send(&Request::call("x").timeout(u64::MAX).total_timeout(u64::MAX));
        desk.forget();
        desk.pump();
        desk.wait(1 << 62);
        desk.quiet();
        assert_eq!(desk.client().in_flight(), 3);
        desk
    });
}

#[test]
fn the_clock_may_wrap_around() {
    everywhere(|| {
        let mut desk = Desk::new(&FULL);
        desk.set_clock(u64::MAX - 10);
        desk.open_modern(OFFERS);
        desk.send(&Request::list_tools().timeout(8));
        desk.send(&Request::list_tools().timeout(100));
        desk.forget();
        assert_eq!(desk.client().next_deadline(), Some(u64::MAX - 2));
        desk.wait(8);
        assert_eq!(desk.events().len(), 1);
        assert_eq!(desk.client().next_deadline(), Some(89));
        desk.wait(91);
        assert_eq!(desk.events().len(), 0);
        desk.wait(1);
        assert_eq!(desk.events().len(), 1);
        desk
    });
}

const MISMATCH: &str = "tools/call failed: no (-32020)";

fn mismatched() -> Desk {
    let mut desk = Desk::modern(&FULL);
    desk.send(&Request::call("x").arguments(&serde_json::json!({"a": 1})));
    desk.error(-32020, "");
    desk
}

// spec: S167 T100
#[test]
fn wrong_headers_are_mended_once() {
    everywhere(|| {
        let mut desk = mismatched();
        let said = desk.said();
        assert_eq!(said[1]["method"], "tools/list");
        desk.result(r#"{"resultType":"complete","tools":[],"nextCursor":"p\"2"}"#);
        assert_eq!(desk.one()["params"]["cursor"], "p\"2");
        desk.result(r#"{"resultType":"complete","tools":[]}"#);
        let again = desk.one();
        assert_eq!(again["params"], said[0]["params"]);
        assert_ne!(again["id"], said[0]["id"]);
        assert_eq!(desk.events(), [""; 0]);
        desk.error(-32020, "");
        assert_eq!(desk.event(), MISMATCH);
        desk.quiet();
        desk
    });
}

#[test]
fn whatever_the_list_is_answered_with() {
    for answer in [
        r#""error":{"code":-32020,"message":"again"}"#,
        r#""result":{"resultType":"input_required","requestState":"x"}"#,
        r#""result":{"resultType":"unknown"}"#,
        r#""result":[]"#,
    ] {
        everywhere(|| {
            let mut desk = mismatched();
            desk.forget();
            let id = desk.last_id();
            desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
            let again = desk.one();
            assert_eq!((again["method"].as_str(), again["params"].get("requestState")), (Some("tools/call"), None));
            desk.result(r#"{"resultType":"complete","content":[]}"#);
            assert!(desk.event().starts_with("tools/call ok"));
            desk
        });
    }
}

#[test]
fn a_list_without_end_is_not_followed_for_ever() {
    everywhere(|| {
        let mut desk = Desk::of(Client::growing(&FULL).max_input_rounds(3));
        desk.open_modern(OFFERS);
        desk.send(&Request::call("x"));
        desk.forget();
        desk.error(-32020, "");
        for _ in 0..4 {
            assert_eq!(desk.one()["method"], "tools/list");
            desk.result(r#"{"tools":[],"nextCursor":"more"}"#);
        }
        assert_eq!(desk.one()["method"], "tools/call");
        desk
    });
}

/// A request that was not kept, or that is no call, is not sent again.
#[test]
fn wrong_headers_that_cannot_be_mended() {
    everywhere(|| {
        let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)));
        desk.open_modern(OFFERS);
        desk.send(&Request::call("x"));
        desk.error(-32020, "");
        assert_eq!(desk.event(), MISMATCH);
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::read("r://x"));
        desk.error(-32020, "");
        assert_eq!(desk.event(), "resources/read failed: no (-32020)");
        desk
    });
}

/// A clock that a person or a time server sets by days, forward and back: each request ends once, by its answer or
/// its time.
#[test]
fn a_clock_that_jumps() {
    const DAY: u64 = 86_400_000;
    for revision in Revision::ALL {
        let mut desk = Desk::speaking(revision);
        let (mut now, mut seed, mut open, mut sent, mut ended) = (30 * DAY, 3_u64, Vec::new(), 0, 0);
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for _ in 0..1_000 {
            let far = [100, 90_000, 3 * DAY][random(3) as usize];
            let by = random(far);
            now = if random(2) == 0 { now.saturating_sub(by) } else { now + by };
            desk.set_clock(now);
            desk.pump();
            assert!(desk.client().next_deadline().is_none_or(|next| next > now), "what was due is due again");
            open.retain(|(token, _)| desk.client().is_open(*token));
            if open.len() < 4 {
                let token = desk.send(&Request::call("x").timeout(1 + random(60_000)));
                open.push((token, desk.last_id()));
                sent += 1;
            } else if random(2) == 0 {
                let (_, id) = open.remove(random(4) as usize);
                desk.result_of(id, "{}");
            }
            ended += desk.events().len();
            open.retain(|(token, _)| desk.client().is_open(*token));
            assert_eq!(sent, ended + open.len());
            desk.forget();
        }
        assert!(sent > 100, "only {sent} requests");
    }
}
