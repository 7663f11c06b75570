//! Subscriptions to changes, in both eras.

use crate::desk::{Desk, FULL, LEGACY, OFFERS, everywhere};
use mcp_sansio::client::{Client, PendingId, SendError, SubscriptionFilter, TransportError};
use mcp_sansio::memory::Slots;
use mcp_sansio::revision::Revision;

const URIS: [&str; 2] = ["r://one", "r://%22two%22"];
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn all() -> SubscriptionFilter<'static> {
    SubscriptionFilter::new().tools().prompts().resources().uris(&URIS)
}

fn listen(desk: &mut Desk, filter: &SubscriptionFilter<'_>) -> PendingId {
    desk.with(|client, _| client.listen(filter)).expect("there is room")
}

fn notify(desk: &mut Desk, method: &str, id: u64, params: &str) {
    let comma = if params.is_empty() { "" } else { "," };
    desk.feed(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{params}{comma}"_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
    ));
}

fn acknowledge(desk: &mut Desk, id: u64, filter: &str) {
    notify(desk, "subscriptions/acknowledged", id, &format!(r#""notifications":{filter}"#));
}

/// Opens a 2026-07-28 subscription. Returns its token and its id in the messages.
fn open(desk: &mut Desk) -> (PendingId, u64) {
    let token = listen(desk, &all());
    let id = desk.last_id();
    acknowledge(desk, id, r#"{"toolsListChanged":true,"resourceSubscriptions":["r://one"]}"#);
    assert_eq!(desk.event(), "listening tools 1");
    desk.forget();
    (token, id)
}

// spec: B179 B184 T080
#[test]
fn modern() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let token = listen(&mut desk, &all());
        let said = desk.one();
        assert_eq!(said["method"], "subscriptions/listen");
        let filter = &said["params"]["notifications"];
        assert_eq!(filter["resourceSubscriptions"], serde_json::json!(URIS));
        assert_eq!(filter.as_object().unwrap().len(), 4);
        let id = desk.last_id();
        acknowledge(
            &mut desk,
            id,
            r#"{"promptsListChanged":true,"toolsListChanged":false,"resourceSubscriptions":[]}"#,
        );
        assert_eq!(desk.event(), "listening prompts 0");
        desk.wait(10_000_000);
        desk.quiet();
        notify(&mut desk, "prompts/list_changed", id, "");
        notify(&mut desk, "resources\\/updated", id, r#""uri":"r:\/\/one""#);
        assert_eq!(
            desk.events(),
            ["changed Prompts on a listen", "changed Resource(Text(\"r:\\\\/\\\\/one\")) on a listen"]
        );
        notify(&mut desk, "prompts/list_changed", id + 1, "");
        desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        acknowledge(&mut desk, 77, "{}");
        assert_eq!(desk.events(), ["ignored UnknownListen"; 3]);
        desk.cancel(token).unwrap();
        assert_eq!(desk.one()["params"]["requestId"], id);
        notify(&mut desk, "prompts/list_changed", id, "");
        assert_eq!(desk.event(), "ignored UnknownListen");
        assert_eq!((desk.cancel(token), desk.client().in_flight()), (Err(SendError::Stale), 0));
        desk
    });
}

#[test]
fn the_server_ends_it() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let (token, id) = open(&mut desk);
        desk.result_of(id, &format!(r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION}":{id}}}}}"#));
        assert!(desk.event().starts_with("subscriptions/listen ok"));
        assert!(!desk.client().is_open(token));
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
        desk.wait(1_000_000);
        desk.quiet();
        // The server may also refuse it.
        listen(&mut desk, &all());
        desk.error(-32602, "");
        assert_eq!(desk.event(), "subscriptions/listen failed: no (-32602)");
        assert_eq!(desk.client().in_flight(), 0);
        desk
    });
}

#[test]
fn a_listen_that_is_cut_off_is_opened_again() {
    for by_server in [false, true] {
        everywhere(|| {
            let mut desk = Desk::modern(&FULL);
            let (token, id) = open(&mut desk);
            match by_server {
                true => desk.feed(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                )),
                false => desk.client().lost(id, TransportError::Broken),
            }
            desk.pump();
            desk.quiet();
            assert_eq!(desk.client().next_deadline(), Some(1_000));
            desk.wait(999);
            desk.quiet();
            desk.wait(1);
            assert_eq!(desk.one()["params"]["notifications"]["resourceSubscriptions"], serde_json::json!(URIS));
            notify(&mut desk, "tools/list_changed", id, "");
            assert_eq!(desk.event(), "ignored UnknownListen");
            let id = desk.last_id();
            acknowledge(&mut desk, id, r#"{"toolsListChanged":true}"#);
            assert_eq!(desk.event(), "listening tools 0");
            assert!(desk.client().is_open(token));
            desk
        });
    }
}

#[test]
fn it_waits_longer_each_time_and_gives_up() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let (token, id) = open(&mut desk);
        let mut rest = 1_000;
        desk.client().lost(id, TransportError::Unreachable);
        for _ in 0..12 {
            desk.wait(rest - 1);
            desk.quiet();
            desk.wait(1);
            assert_eq!(desk.one()["method"], "subscriptions/listen");
            let id = desk.last_id();
            desk.client().lost(id, TransportError::Unreachable);
            desk.pump();
            rest = (2 * rest).min(48_000);
        }
        assert_eq!(desk.event(), "subscriptions/listen failed: the exchange broke off before the answer came");
        assert!(!desk.client().is_open(token));
        assert_eq!(desk.client().next_deadline(), None);
        desk
    });
}

/// A server that acknowledges each listen and closes it at once is asked again and again, but ever more rarely. A change, or a
/// stream that was open for long, makes the next rest short.
#[test]
fn it_waits_longer_after_listens_that_bring_nothing() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let (_, mut id) = open(&mut desk);
        let mut reopened = |desk: &mut Desk, rest: u64| {
            desk.client().lost(id, TransportError::Broken);
            desk.pump();
            desk.wait(rest - 1);
            desk.quiet();
            desk.wait(1);
            assert_eq!(desk.one()["method"], "subscriptions/listen", "{rest}");
            id = desk.last_id();
            acknowledge(desk, id, r#"{"toolsListChanged":true}"#);
            assert_eq!(desk.event(), "listening tools 0");
            id
        };
        let mut rest = 1_000;
        for _ in 0..20 {
            reopened(&mut desk, rest);
            rest = (2 * rest).min(48_000);
        }
        desk.wait(47_999);
        let id = reopened(&mut desk, 48_000);
        notify(&mut desk, "tools/list_changed", id, "");
        assert_eq!(desk.event(), "changed Tools on a listen");
        reopened(&mut desk, 1_000);
        reopened(&mut desk, 2_000);
        desk.wait(48_000);
        reopened(&mut desk, 1_000);
        desk
    });
}

// spec: B182
#[test]
fn listens_outlive_the_connection() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let (token, _) = open(&mut desk);
        let resting = open(&mut desk);
        desk.client().lost(resting.1, TransportError::Broken);
        desk.client().reconnect(TransportError::Closed);
        desk.wait(100_000);
        assert_eq!(desk.said().first().unwrap()["method"], "server/discover");
        desk.client().connect_as(Revision::V2026_07_28);
        desk.pump();
        let said = desk.said();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(desk.client().is_open(token));
        let id = desk.last_id();
        acknowledge(&mut desk, id, "{}");
        assert_eq!(desk.event(), "listening 0");
        desk
    });
}

#[test]
fn a_listen_takes_only_so_long_to_open() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        listen(&mut desk, &all());
        desk.forget();
        desk.wait(60_000);
        assert_eq!(desk.event(), "subscriptions/listen failed: the request took too long");
        assert_eq!(desk.one()["method"], "notifications/cancelled");
        desk
    });
}

#[test]
fn legacy() {
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, revision);
            let token = listen(&mut desk, &all());
            for uri in URIS {
                let said = desk.one();
                assert_eq!(
                    (said["method"].as_str(), &said["params"]["uri"]),
                    (Some("resources/subscribe"), &uri.into())
                );
                assert_eq!(desk.events(), [""; 0]);
                desk.result("{}");
            }
            assert_eq!(desk.event(), "listening tools prompts resources 2");
            desk.quiet();
            desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            desk.feed(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r://one"}}"#);
            assert_eq!(desk.events(), ["changed Tools", r#"changed Resource(Text("r://one"))"#]);
            desk.cancel(token).unwrap();
            assert!(!desk.client().is_open(token));
            assert_eq!(desk.cancel(token), Err(SendError::Stale));
            for uri in URIS {
                let said = desk.one();
                assert_eq!(
                    (said["method"].as_str(), &said["params"]["uri"]),
                    (Some("resources/unsubscribe"), &uri.into())
                );
                // Any answer of the server has the same effect.
                if uri == URIS[0] { desk.result("{}") } else { desk.error(-32601, "") }
            }
            desk.quiet();
            assert_eq!(desk.client().in_flight(), 0);
            desk
        });
    }
}

/// Each list may change. From 2026-07-28 on the change names its listen.
#[test]
fn changes_of_each_list() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            listen(&mut desk, &SubscriptionFilter::new().tools().prompts().resources());
            let id = desk.last_id();
            if revision.is_modern() {
                let all = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
                acknowledge(&mut desk, id, all);
            }
            assert_eq!(desk.event(), "listening tools prompts resources 0");
            for (list, change) in [("tools", "Tools"), ("prompts", "Prompts"), ("resources", "Resources")] {
                let method = format!("{list}/list_changed");
                if revision.is_modern() {
                    notify(&mut desk, &method, id, "");
                    assert_eq!(desk.event(), format!("changed {change} on a listen"));
                } else {
                    desk.feed(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}"}}"#));
                    assert_eq!(desk.event(), format!("changed {change}"));
                }
            }
            desk
        });
    }
}

#[test]
fn what_an_older_server_has_not() {
    everywhere(|| {
        let mut desk = Desk::new(&FULL);
        desk.open_legacy(Revision::V2025_06_18, r#"{"tools":{"listChanged":true},"resources":{"listChanged":"yes"}}"#);
        let token = listen(&mut desk, &all());
        assert_eq!(desk.event(), "listening tools 0");
        desk.cancel(token).unwrap();
        desk.quiet();
        // The server refuses a subscription: it is not counted.
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        let token = listen(&mut desk, &all());
        desk.error(-32002, "");
        desk.result("{}");
        assert_eq!(desk.event(), "listening tools prompts resources 1");
        desk.forget();
        desk.cancel(token).unwrap();
        assert_eq!(desk.one()["params"]["uri"], URIS[1]);
        desk.result("{}");
        assert_eq!(desk.client().in_flight(), 0);
        desk
    });
}

/// A subscription that is granted after it was cancelled is unsubscribed.
#[test]
fn cancelled_while_it_subscribes() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        let token = listen(&mut desk, &all());
        desk.forget();
        desk.cancel(token).unwrap();
        desk.quiet();
        desk.result("{}");
        let said = desk.one();
        assert_eq!((said["method"].as_str(), &said["params"]["uri"]), (Some("resources/unsubscribe"), &URIS[0].into()));
        desk.result("{}");
        desk.quiet();
        assert_eq!(desk.client().in_flight(), 0);
        desk
    });
}

#[test]
fn a_resource_that_two_listen_to() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
        let filter = SubscriptionFilter::new().uris(&["r://one"]);
        let tokens = [(); 2].map(|()| {
            let token = listen(&mut desk, &filter);
            desk.result("{}");
            assert_eq!(desk.event(), "listening 1");
            token
        });
        desk.forget();
        desk.cancel(tokens[0]).unwrap();
        desk.quiet();
        desk.cancel(tokens[1]).unwrap();
        assert_eq!(desk.one()["method"], "resources/unsubscribe");
        desk.result("{}");
        assert_eq!(desk.client().in_flight(), 0);
        desk
    });
}

#[test]
fn an_older_server_that_never_answers() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
        let token = listen(&mut desk, &all());
        desk.result("{}");
        desk.result("{}");
        desk.forget();
        desk.cancel(token).unwrap();
        assert_eq!(desk.one()["method"], "resources/unsubscribe");
        desk.wait(60_000);
        desk.quiet();
        assert_eq!(desk.client().in_flight(), 0);
        listen(&mut desk, &all());
        desk.forget();
        desk.wait(60_000);
        assert_eq!(desk.event(), "subscriptions/listen failed: the request took too long");
        assert_eq!(desk.one()["method"], "notifications/cancelled");
        desk
    });
}

#[test]
fn older_listens_outlive_the_connection() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        listen(&mut desk, &all());
        desk.result("{}"); // one is subscribed to, the other is on the wire
        let closing = listen(&mut desk, &SubscriptionFilter::new().uris(&["r://x"]));
        desk.result("{}");
        desk.cancel(closing).unwrap();
        desk.forget();
        desk.client().reconnect(TransportError::Closed);
        desk.pump();
        desk.initialized("2025-06-18", OFFERS);
        assert_eq!(desk.event(), "connected 2025-06-18");
        let said = desk.said();
        assert_eq!(said[2]["params"]["uri"], URIS[0]);
        desk.result("{}");
        assert_eq!(desk.one()["params"]["uri"], URIS[1]);
        desk.result("{}");
        assert_eq!(desk.event(), "listening tools prompts resources 2");
        assert_eq!(desk.client().in_flight(), 1);
        desk
    });
}

/// Over HTTP, one exchange of a subscription of an older revision may break.
#[test]
fn a_subscription_that_breaks_is_sent_again() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        let token = listen(&mut desk, &all());
        desk.forget();
        let id = desk.last_id();
        desk.client().lost(id, TransportError::Broken);
        desk.wait(1_000);
        assert_eq!(desk.one()["params"]["uri"], URIS[0]);
        desk.result("{}");
        desk.result("{}");
        assert_eq!(desk.event(), "listening tools prompts resources 2");
        desk.cancel(token).unwrap();
        let id = desk.last_id();
        desk.client().lost(id, TransportError::Broken);
        desk.forget();
        desk.wait(100_000);
        desk.quiet();
        assert_eq!(desk.client().in_flight(), 0);
        desk
    });
}

/// A cancelled subscription stays cancelled when the connection is opened again, in either era.
#[test]
fn a_listen_that_was_given_up_does_not_come_back() {
    for subscribed in [false, true] {
        for revision in [None, Some(Revision::V2025_11_25), Some(Revision::V2026_07_28)] {
            everywhere(|| {
                let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
                let filter =
                    if subscribed { SubscriptionFilter::new().uris(&URIS) } else { SubscriptionFilter::new().tools() };
                let token = listen(&mut desk, &filter);
                for _ in 0..if subscribed { URIS.len() } else { 0 } {
                    desk.result("{}");
                }
                desk.forget();
                // The cancellation is not written before the connection is lost.
                desk.client_and_out(|client, out| client.cancel(token, None, out)).unwrap();
                match revision {
                    Some(revision) => desk.client().connect_as(revision),
                    None => desk.client().connect(),
                }
                assert!(!desk.client().is_open(token));
                assert_eq!(desk.client().in_flight(), 0);
                desk.pump();
                if revision.is_none_or(|revision| !revision.is_modern()) {
                    desk.initialized("2025-11-25", OFFERS);
                }
                let said: Vec<_> = desk.said().iter().map(|said| said["method"].to_string()).collect();
                assert!(!said.iter().any(|method| method.contains("subscri")), "{said:?}");
                desk.client().end_of_input();
                desk.pump();
                assert!(!desk.events().iter().any(|event| event.contains("subscri")));
                desk
            });
        }
    }
}

/// Returns id, method and resource of the last request.
fn subscription(desk: &mut Desk) -> (u64, String, String) {
    let said = desk.one();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    (desk.last_id(), word(&said["method"]), word(&said["params"]["uri"]))
}

/// Two subscriptions of an older revision with one common resource: each is subscribed and unsubscribed on its own.
#[test]
fn two_older_listens_at_once() {
    for common_granted in [true, false] {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, Revision::V2025_11_25);
            let one = listen(&mut desk, &SubscriptionFilter::new().uris(&["r://both", "r://one"]));
            let (first, _, uri) = subscription(&mut desk);
            assert_eq!(uri, "r://both");
            let two = listen(&mut desk, &SubscriptionFilter::new().tools().uris(&["r://two", "r://both"]));
            let (second, _, uri) = subscription(&mut desk);
            assert_eq!(uri, "r://two");
            // The answers come in reverse order.
            desk.result_of(second, "{}");
            let (second, _, uri) = subscription(&mut desk);
            assert_eq!(uri, "r://both");
            desk.result_of(first, "{}");
            let (first, _, uri) = subscription(&mut desk);
            assert_eq!(uri, "r://one");
            assert_eq!(desk.events(), [""; 0]);
            if common_granted {
                desk.result_of(second, "{}");
                assert_eq!(desk.event(), "listening tools 2");
            } else {
                desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{second},"error":{{"code":-32002,"message":"no"}}}}"#));
                assert_eq!(desk.event(), "listening tools 1");
            }
            desk.result_of(first, "{}");
            assert_eq!(desk.event(), "listening 2");
            desk.quiet();
            // The first subscription ends: its own resource is unsubscribed, and the common one if no other
            // subscription has it.
            desk.cancel(one).unwrap();
            let mut taken = Vec::new();
            while desk.client().in_flight() > 1 {
                let (_, method, uri) = subscription(&mut desk);
                assert_eq!(method, "resources/unsubscribe");
                taken.push(uri);
                desk.result("{}");
            }
            assert_eq!(taken, if common_granted { vec!["r://one"] } else { vec!["r://both", "r://one"] });
            assert!(desk.client().is_open(two));
            desk.cancel(two).unwrap();
            let mut taken = Vec::new();
            while desk.client().in_flight() > 0 {
                taken.push(subscription(&mut desk).2);
                desk.result("{}");
            }
            assert_eq!(taken, if common_granted { vec!["r://two", "r://both"] } else { vec!["r://two"] });
            desk.quiet();
            desk
        });
    }
}

/// Each subscription of 2026-07-28 has its own resources and its own notifications.
// spec: B184 T080
#[test]
fn two_modern_listens_at_once() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        let mut ids = Vec::new();
        for (filter, expected) in [
            (SubscriptionFilter::new().uris(&["r://one"]), serde_json::json!({"resourceSubscriptions": ["r://one"]})),
            (
                SubscriptionFilter::new().prompts().uris(&["r://two"]),
                serde_json::json!({"promptsListChanged": true, "resourceSubscriptions": ["r://two"]}),
            ),
        ] {
            let token = listen(&mut desk, &filter);
            assert_eq!(desk.one()["params"]["notifications"], expected);
            ids.push((token, desk.last_id()));
        }
        acknowledge(&mut desk, ids[1].1, r#"{"promptsListChanged":true,"resourceSubscriptions":["r://two"]}"#);
        acknowledge(&mut desk, ids[0].1, r#"{"resourceSubscriptions":["r://one"]}"#);
        assert_eq!(desk.events(), ["listening prompts 1", "listening 1"]);
        desk.cancel(ids[0].0).unwrap();
        assert_eq!(desk.one()["params"]["requestId"], ids[0].1);
        notify(&mut desk, "prompts/list_changed", ids[1].1, "");
        notify(&mut desk, "prompts/list_changed", ids[0].1, "");
        assert_eq!(desk.events(), ["changed Prompts on a listen", "ignored UnknownListen"]);
        // A subscription is opened again with its own filter.
        desk.client().lost(ids[1].1, TransportError::Broken);
        desk.wait(1_000);
        assert_eq!(desk.one()["params"]["notifications"]["resourceSubscriptions"], serde_json::json!(["r://two"]));
        desk
    });
}

/// A subscription of an older revision ignores the acknowledgement of 2026-07-28.
#[test]
fn an_acknowledgement_of_the_wrong_era() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        listen(&mut desk, &all());
        let id = desk.last_id();
        acknowledge(&mut desk, id, "{}");
        assert_eq!(desk.event(), "ignored UnknownListen");
        desk.result("{}");
        desk.result("{}");
        assert_eq!(desk.event(), "listening tools prompts resources 2");
        desk
    });
}

#[test]
fn uris_that_do_not_fit() {
    let store = vec![0; 30].leak();
    let mut desk = Desk::of(Client::new(&FULL, Slots::growing(6)).held(&mut *store));
    desk.open_modern(OFFERS);
    assert_eq!(desk.with(|client, _| client.listen(&all())), Err(SendError::NoRoom));
    assert_eq!(desk.client().in_flight(), 0);
    desk.quiet();
    listen(&mut desk, &SubscriptionFilter::new().tools());
    assert_eq!(desk.one()["params"]["notifications"], serde_json::json!({"toolsListChanged": true}));
}

#[test]
fn topics_that_do_not_fit_leave_nothing_behind() {
    let store = vec![0; 60].leak();
    let mut desk = Desk::of(Client::new(&FULL, Slots::growing(1)).held(&mut *store));
    desk.open_modern(OFFERS);
    let long = "m".repeat(256);
    let keys: &[&str] = &["a key", "another key", "a key that is longer"];
    for topics in [[("timers", keys)], [(long.as_str(), &[])]] {
        let refused =
            desk.with(|client, _| client.listen(&SubscriptionFilter::new().uris(&["r://one"]).topics(&topics)));
        assert_eq!(refused, Err(SendError::NoRoom));
        assert_eq!(desk.client().in_flight(), 0);
        desk.quiet();
    }
    // The one slot and the store are free again.
    let uris = ["r://one", "r://two", "r://three"];
    listen(&mut desk, &SubscriptionFilter::new().uris(&uris));
    assert_eq!(desk.one()["params"]["notifications"], serde_json::json!({"resourceSubscriptions": uris}));
}
