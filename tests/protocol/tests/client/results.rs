//! Which responses count as an answer.

use crate::desk::{Desk, FULL, LEGACY, PLAIN, everywhere};
use mcp_sansio::client::{ClientInfo, ErrorObject, Request, RequestError, SubscriptionFilter, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio_blocking::client::ClientError;

// spec: B066 B067 B074
#[test]
fn results_and_what_is_none() {
    let invalid = "tools/list failed: the answer is not a valid one";
    let unknown = "tools/list failed: the resultType of the answer is not known";
    let cases = [
        (
            r#""result":{"resultType":"complete","tools":[]}"#,
            r#"tools/list ok {"resultType":"complete","tools":[]}"#,
            true,
        ),
        (r#""result":{"tools":[]}"#, r#"tools/list ok {"tools":[]}"#, true),
        (r#""result":{"resultType":"comp\u006cete"}"#, r#"tools/list ok {"resultType":"comp\u006cete"}"#, true),
        (r#""result":{"resultType":null}"#, unknown, false),
        (r#""result":{"resultType":3}"#, unknown, false),
        (r#""result":{"resultType":"input_required","requestState":"x"}"#, invalid, false),
        (r#""result":[]"#, invalid, true),
        (r#""result":null"#, invalid, true),
        (r#""result":"x""#, invalid, true),
        (r#""result":{},"error":{"code":1,"message":"both"}"#, invalid, true),
        // Some servers write a missing member as `null`.
        (r#""result":{"tools":[]},"error":null"#, r#"tools/list ok {"tools":[]}"#, true),
        (r#""result":null,"error":{"code":-32601,"message":"gone"}"#, "tools/list failed: gone (-32601)", true),
        (r#""error":{"code":-32601,"message":"gone"}"#, "tools/list failed: gone (-32601)", true),
        (r#""error":{"code":1e9,"message":"big"}"#, "tools/list failed: big (1000000000)", true),
        (r#""error":{"code":"x"}"#, "tools/list failed: an error without code and message", true),
        (r#""error":{"code":-5}"#, "tools/list failed: an error without message (-5)", true),
        (r#""error":"boom""#, "tools/list failed: boom", true),
        (r#""error":[7]"#, "tools/list failed: an error without code and message", true),
        (r#""error":null"#, "tools/list failed: an error without code and message", true),
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
                    // `resultType` has no meaning in the older revisions.
                    false => assert!(told.starts_with("tools/list ok"), "{told}"),
                }
                // The second response with the same id is ignored.
                desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
                assert!(desk.event().starts_with("ignored Un"));
                assert_eq!(desk.client().in_flight(), 0);
                desk
            });
        }
    }
}

/// A declared extension may have its own result types; the application interprets them.
// spec: B072 B073
#[test]
fn results_of_extensions() {
    let result = r#"{"resultType":"com.example\/x","y":1}"#;
    const UNKNOWN: &str = "tools/call failed: the resultType of the answer is not known";
    for (info, expected) in [(&FULL, format!("tools/call ok {result}")), (&PLAIN, UNKNOWN.to_owned())] {
        everywhere(|| {
            let mut desk = Desk::modern(info);
            desk.send(&Request::call("x"));
            desk.result(result);
            assert_eq!(desk.event(), expected);
            // Not one of the extensions that are declared, or no string.
            for kind in
                [r#""com.example/y""#, r#""""#, r#""Complete""#, r#""complete ""#, "3", "null", r#"["complete"]"#]
            {
                desk.send(&Request::call("x"));
                desk.result(&format!(r#"{{"resultType":{kind},"content":[]}}"#));
                assert_eq!(desk.event(), UNKNOWN, "{kind}");
            }
            desk
        });
    }
}

/// The error for an unknown resource, in the forms of all revisions.
// spec: B007 B011 S027
#[test]
fn unknown_resources() {
    for (code, data, expected) in [
        (-32002, "", true),
        (-32002, r#"{"uri":"r://x"}"#, true),
        (-32602, r#"{"uri":"r://x"}"#, true),
        (-32602, "", false),
        (-32602, r#"{"name":"x"}"#, false),
        (-32601, r#"{"uri":"r://x"}"#, false),
        // Servers use these codes for other errors too.
        (-32000, r#"{"uri":"r://x"}"#, false),
        (-32001, r#"{"uri":"r://x"}"#, false),
        (-32019, r#"{"uri":"r://x"}"#, false),
    ] {
        let data = if data.is_empty() { String::new() } else { format!(r#","data":{data}"#) };
        let error = format!(r#"{{"code":{code},"message":"no"{data}}}"#);
        let error = ErrorObject::read(Raw::parse(error.as_bytes()).unwrap());
        assert_eq!(error.is_unknown_resource(), expected, "{error:?}");
    }
}

/// Each request of 2026-07-28 carries the client's name and capabilities: also those that the client sends by itself.
// spec: B046 B049 B144 C004
#[test]
fn every_request_says_who_asks() {
    static FORMS: ClientInfo<'static> = PLAIN.feature(ClientCapability::ElicitForm);
    let full = r#"{"experimental":{"x":{"a":1}},"extensions":{"com.example/x":{}},"roots":{},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}"#;
    for (info, name, capabilities) in
        [(&PLAIN, "plain", "{}"), (&FORMS, "plain", r#"{"elicitation":{"form":{}}}"#), (&FULL, "desk", full)]
    {
        let capabilities: serde_json::Value = serde_json::from_str(capabilities).unwrap();
        let check = |said: &serde_json::Value| {
            let meta = &said["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], name, "{said}");
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], Revision::LATEST.date(), "{said}");
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], capabilities, "{said}");
        };
        let mut probing = Desk::new(info);
        probing.client().connect();
        probing.pump();
        check(&probing.one());
        let mut desk = Desk::modern(info);
        for request in [
            Request::discover(),
            Request::list_tools(),
            Request::list_prompts(),
            Request::list_resources(),
            Request::list_templates(),
            Request::call("x"),
            Request::read("r://x"),
            Request::prompt("x"),
            Request::complete_prompt("x", "a", ""),
            Request::raw("com.example/x", None),
        ] {
            let token = desk.send(&request);
            check(&desk.one());
            desk.cancel(token).unwrap();
            desk.forget();
        }
        let filter = SubscriptionFilter::new().tools();
        desk.with(|client, _| client.listen(&filter)).unwrap();
        check(&desk.one());
        // A call that is sent again with the state of the server.
        desk.send(&Request::call("x"));
        desk.forget();
        desk.result(r#"{"resultType":"input_required","requestState":"s"}"#);
        let again = desk.one();
        assert_eq!(again["params"]["requestState"], "s");
        check(&again);
    }
}

/// The text of a server's error contains no control characters: they could move the cursor of a terminal or forge a
/// log line.
#[test]
fn errors_are_shown_without_control_characters() {
    let error = r#"{"code":-1,"message":"a\u001b[31m\u009b2J\r\nb\tc\u202e\u0000d\u2028e"}"#;
    let error = ErrorObject::read(Raw::parse(error.as_bytes()).unwrap());
    assert_eq!(error.to_string(), "a\u{fffd}[31m\u{fffd}2J  b c\u{fffd}\u{fffd}d\u{fffd}e (-1)");
    let owned = ClientError::failed(&RequestError::Error(error)).to_string();
    assert!(!owned.chars().any(char::is_control) && owned.contains("a\u{fffd}[31m"), "{owned:?}");
    let failed = RequestError::Error(error).to_string();
    assert!(!failed.chars().any(char::is_control), "{failed:?}");
    // The stderr of a process may have several lines.
    let detail = "it wrote:\r\n\u{1b}]52;c;x\u{7}\nend".to_owned();
    let lost = ClientError::Lost { why: TransportError::Closed, detail }.to_string();
    assert!(lost.ends_with("it wrote:\n\u{fffd}]52;c;x\u{fffd}\nend"), "{lost:?}");
    assert!(!ClientError::Url("http://x\u{1b}/: no".to_owned()).to_string().contains('\u{1b}'));
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
        // Some servers write ids as floating point numbers.
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{{}}}}"#));
        assert_eq!(desk.event(), "tools/list ok {}");
        desk
    });
}

/// A message of two kinds, and one whose members come twice: none is taken for the answer, and a server that asks gets an error.
#[test]
fn two_messages_in_one() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.send(&Request::list_tools());
            let id = desk.last_id();
            desk.forget();
            for wrong in [
                format!(r#""id":{id},"method":"ping","result":{{}}"#),
                r#""id":"q","error":{"code":1,"message":"x"},"method":"roots/list""#.to_owned(),
                r#""jsonrpc":"2.0","id":"q","method":"ping""#.to_owned(),
                r#""id":"p","id":"q","method":"ping""#.to_owned(),
                r#""id":"q","method":5"#.to_owned(),
            ] {
                desk.feed(&format!(r#"{{"jsonrpc":"2.0",{wrong}}}"#));
                assert_eq!(desk.event(), "ignored NoMessage", "{wrong}");
                match revision == Revision::LATEST {
                    true => desk.quiet(),
                    false => assert_eq!(desk.one()["error"]["code"], -32600, "{wrong}"),
                }
            }
            // Without an id there is nothing to answer.
            for wrong in [
                r#""method":"notifications/tools/list_changed","method":"x""#,
                r#""method":"notifications/tools/list_changed","result":{}"#,
            ] {
                desk.feed(&format!(r#"{{"jsonrpc":"2.0",{wrong}}}"#));
                assert_eq!(desk.event(), "ignored NoMessage", "{wrong}");
                desk.quiet();
            }
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{"tools":[]}}}}"#);
            desk.feed(&answer);
            assert!(desk.event().starts_with("tools/list failed"));
            desk
        });
    }
}

/// Over HTTP an error without an id belongs to the exchange that carries it.
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

// spec: B127 B140 B188
#[test]
fn late_answers_are_ignored() {
    everywhere(|| {
        let mut desk = Desk::legacy(&FULL, Revision::V2025_06_18);
        let token = desk.send(&Request::call("x"));
        let id = desk.last_id();
        desk.cancel(token).unwrap();
        desk.forget();
        desk.result_of(id, "{}");
        assert_eq!(desk.event(), "ignored UnknownResponse");
        // Some servers answer a cancelled request with an error.
        desk.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":0,"message":"Request cancelled"}}}}"#));
        assert_eq!(desk.event(), "ignored UnknownResponse");
        desk.quiet();
        desk.send(&Request::call("x"));
        desk.client().lost(id + 1, TransportError::Broken);
        desk.result_of(id + 1, "{}");
        assert_eq!(
            desk.events(),
            ["ignored UnknownResponse", "tools/call failed: the exchange broke off before the answer came"]
        );
        desk
    });
}

// spec: B004
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

/// At the end of the input each open request gets one outcome.
#[test]
fn the_end_of_input() {
    for revision in Revision::ALL {
        everywhere(|| {
            let mut desk = Desk::speaking(revision);
            desk.send(&Request::list_tools());
            desk.send(&Request::call("x"));
            desk.with(|client, _| client.listen(&mcp_sansio::client::SubscriptionFilter::new().uris(&["r://a"])))
                .unwrap();
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
            assert_eq!((told.len(), &*told[4], desk.client().in_flight()), (5, "Closed", 0));
            desk.pump();
            desk.quiet();
            desk
        });
    }
}

// spec: B143 T082 T138
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
