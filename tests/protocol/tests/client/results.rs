//! What counts as an answer.

use crate::desk::{Desk, FULL, LEGACY, everywhere};
use mcp_sansio::client::{Lost, Request};
use mcp_sansio::revision::Revision;

#[test]
fn results_and_what_is_none() {
    let invalid = "tools/list failed: the answer is not a valid one";
    let cases = [
        (
            r#""result":{"resultType":"complete","tools":[]}"#,
            r#"tools/list ok {"resultType":"complete","tools":[]}"#,
            true,
        ),
        (r#""result":{"tools":[]}"#, r#"tools/list ok {"tools":[]}"#, true),
        (r#""result":{"resultType":"comp\u006cete"}"#, r#"tools/list ok {"resultType":"comp\u006cete"}"#, true),
        (r#""result":{"resultType":"future"}"#, invalid, false),
        (r#""result":{"resultType":null}"#, invalid, false),
        (r#""result":{"resultType":3}"#, invalid, false),
        (r#""result":{"resultType":"input_required","requestState":"x"}"#, invalid, false),
        (r#""result":[]"#, invalid, true),
        (r#""result":null"#, invalid, true),
        (r#""result":"x""#, invalid, true),
        (r#""result":{},"error":{"code":1,"message":"both"}"#, invalid, true),
        (r#""error":{"code":-32601,"message":"gone"}"#, "tools/list failed: gone (-32601)", true),
        (r#""error":{"code":1e9,"message":"big"}"#, "tools/list failed: big (1000000000)", true),
        (r#""error":{"code":"x"}"#, "tools/list failed:  (0)", true),
        (r#""error":null"#, "tools/list failed:  (0)", true),
    ];
    for revision in Revision::ALL {
        for (answer, expected, always) in cases {
            everywhere(|| {
                let mut desk = Desk::speaking(revision);
                desk.send(&Request::list_tools());
                let id = desk.last_id();
                desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
                let told = desk.event();
                match always || revision.is_modern() {
                    true => assert_eq!(told, expected, "{answer} in {revision}"),
                    // What `resultType` says is nothing to the older ones.
                    false => assert!(told.starts_with("tools/list ok"), "{told}"),
                }
                // The same again answers nothing.
                desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
                assert!(desk.event().starts_with("ignored Un"));
                assert_eq!(desk.client().in_flight(), 0);
                desk
            });
        }
    }
}

#[test]
fn answers_to_nothing() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::list_tools());
        let id = desk.last_id();
        for wrong in [
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":-{id},"result":{{}}}}"#),
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":{"a":1},"result":{}}"#.to_owned(),
        ] {
            desk.feed(&wrong);
            assert_eq!(desk.event(), "ignored UnknownResponse", "{wrong}");
        }
        desk.feed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#);
        assert_eq!(desk.event(), "ignored Unread { code: -32700 }");
        for wrong in ["{}", "[]", "3", "null", "{", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"id":1,"method":"ping"}"#] {
            desk.feed(wrong);
            assert_eq!(desk.event(), "ignored NoMessage", "{wrong}");
        }
        // Some servers count in floating point.
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{{}}}}"#));
        assert_eq!(desk.event(), "tools/list ok {}");
        desk
    });
}

/// Over HTTP an error belongs to the exchange that it came in.
#[test]
fn errors_of_an_exchange() {
    everywhere(|| {
        let mut desk = Desk::modern(&FULL);
        desk.send(&Request::list_tools());
        let id = desk.last_id();
        desk.feed_on(Some(id), r#"{"jsonrpc":"2.0","id":null,"result":{}}"#);
        assert_eq!(desk.event(), "ignored UnknownResponse");
        desk.feed_on(Some(id), r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"headers"}}"#);
        assert_eq!(desk.event(), "tools/list failed: headers (-32020)");
        desk.feed_on(Some(id), r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"headers"}}"#);
        assert_eq!(desk.event(), "ignored Unread { code: -32020 }");
        desk
    });
}

#[test]
fn late_answers_are_ignored() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        let token = desk.send(&Request::call("x"));
        let id = desk.last_id();
        desk.cancel(token).unwrap();
        desk.result_of(id, "{}");
        assert_eq!(desk.event(), "ignored UnknownResponse");
        // What was cancelled, some servers answer with an error. They could read it.
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":0,"message":"Request cancelled"}}}}"#));
        assert_eq!(desk.event(), "ignored UnknownResponse");
        desk.send(&Request::call("x"));
        desk.client().lost(id + 1, Lost::Broken);
        desk.result_of(id + 1, "{}");
        assert_eq!(
            desk.events(),
            ["ignored UnknownResponse", "tools/call failed: the exchange broke off before the answer came"]
        );
        desk
    });
}

#[test]
fn batches() {
    let batch = |id: u64| {
        format!(
            r#"[{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}},{{"jsonrpc":"2.0","id":"q","method":"ping"}},
            [], 3, {{"jsonrpc":"2.0","id":{id},"result":{{}}}}, {{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#
        )
    };
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.send(&Request::list_tools());
            desk.forget();
            desk.feed(&batch(desk.last_id()));
            if revision.has_batches() {
                let events = desk.events();
                assert_eq!(
                    events,
                    ["changed Tools", "ignored NoMessage", "tools/list ok {}", "ignored UnknownResponse"],
                );
                assert_eq!(desk.one()["id"], "q");
            } else {
                assert_eq!(desk.event(), "ignored NoMessage");
                desk.quiet();
            }
            desk
        });
    }
}

/// The end of the input gives everything that is open one outcome.
#[test]
fn the_end_of_input() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.send(&Request::list_tools());
            desk.send(&Request::call("x"));
            desk.with(|client, _| client.listen(&mcp_sansio::client::Filter::new().uris(&["r://a"]))).unwrap();
            desk.forget();
            desk.client().end_of_input();
            desk.client().end_of_input();
            desk.result_of(1, "{}");
            let closed = "the connection ended before the answer came";
            let told = desk.events();
            assert_eq!(told[0], "ignored UnknownResponse");
            for (told, method) in told[1..].iter().zip(["tools/list", "tools/call", "subscriptions/listen"]) {
                assert_eq!(*told, format!("{method} failed: {closed}"));
            }
            assert_eq!((told.len(), desk.client().in_flight()), (4, 0));
            desk.pump();
            desk.quiet();
            desk
        });
    }
}

#[test]
fn requests_that_no_server_may_send() {
    for revision in LEGACY {
        everywhere(|| {
            let mut desk = Desk::legacy(&FULL, revision);
            for (id, method) in [("1", "tools/list"), ("\"x\"", "unknown/thing"), ("3", "server/discover")] {
                desk.ask(id, method, "{}");
                assert_eq!(desk.one()["error"]["code"], -32601);
                assert_eq!(desk.event(), "ignored BadRequest");
            }
            desk
        });
    }
    let mut desk = Desk::modern(&FULL);
    for method in ["ping", "roots/list", "tools/list"] {
        desk.ask("1", method, "{}");
        assert_eq!((desk.event(), desk.said()), ("ignored BadRequest".to_owned(), vec![]));
    }
}
