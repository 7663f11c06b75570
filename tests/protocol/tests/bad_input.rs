//! Bad input: a table of lines and their answers. No line ends the server, and the next message is always answered.
use crate::common;

use common::*;

/// The answer to a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    /// An error of this code whose id could not be read.
    Unread(i64),
    /// An error of this code with this id, as text.
    Error(i64, &'static str),
    /// A result under this id, as text.
    Result(&'static str),
    /// A result with `isError`.
    Failed,
    Silence,
}
use Is::*;

const PING: &str = r#"{"jsonrpc":"2.0","id":"next","method":"ping"}"#;

fn check(rig: &mut Rig, line: &[u8], expected: Is, context: &str) {
    rig.feed(line);
    rig.feed(b"\n");
    let said = rig.take();
    let context = format!("{context}: {}\n{said:#?}", String::from_utf8_lossy(&line[..line.len().min(300)]));
    let found = said.first().map(|line| (parse(line), line.clone()));
    match (expected, found) {
        (Silence, None) => {}
        (Unread(expected), Some((value, _))) => {
            assert_eq!(value["error"]["code"], expected, "{context}");
            assert!(value["id"].is_null(), "{context}");
        }
        (Error(expected, id), Some((value, line))) => {
            assert_eq!(value["error"]["code"], expected, "{context}");
            assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id}"#)), "{context}");
        }
        (Result(id), Some((value, line))) => {
            assert!(value["result"].is_object(), "{context}");
            assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id}"#)), "{context}");
        }
        (Failed, Some((value, _))) => assert_eq!(value["result"]["isError"], true, "{context}"),
        _ => panic!("{expected:?} {context}"),
    }
    assert!(said.len() <= 1, "{context}");
    // The next message is answered.
    let next = rig.say(PING);
    assert_eq!(next, [r#"{"jsonrpc":"2.0","id":"next","result":{}}"#], "behind {context}");
}

/// Rows for every revision: none of them depends on how the connection was opened.
fn rows() -> Vec<(Vec<u8>, Is)> {
    let text = |line: &str, is| (line.as_bytes().to_vec(), is);
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let mut rows = vec![
        // Not JSON.
        text("nonsense", Unread(-32700)),
        text("{", Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}"#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, Unread(-32700)),
        text(r#"{'jsonrpc':'2.0'}"#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#, Unread(-32700)),
        text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\tng\"}", Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"\q"}"#, Unread(-32700)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"\u12"}"#, Unread(-32700)),
        // Bytes that are no text.
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec(), Unread(-32700)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}".to_vec(), Unread(-32700)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}".to_vec(), Unread(-32700)),
        (b"\x00".to_vec(), Unread(-32700)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}".to_vec(), Unread(-32700)),
        (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec(), Unread(-32700)),
        (b"\xff\xfe{\x00}\x00".to_vec(), Unread(-32700)),
        // No request.
        text("1", Unread(-32600)),
        text("null", Unread(-32600)),
        text(r#""ping""#, Unread(-32600)),
        text("{}", Unread(-32600)),
        text(r#"{"jsonrpc":"2.0"}"#, Unread(-32600)),
        text(r#"{"jsonrpc":"2.0","id":7}"#, Error(-32600, "7")),
        text(r#"{"id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc" : "1.0","id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"version":"2.0","id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"id":7,"method":"ping","params":{"jsonrpc" : "2.0"}}"#, Error(-32600, "7")),
        text(r#"{"json\u0072pc" : "2.0","id":7,"method":"ping"}"#, Result("7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":null}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","method":["ping"]}"#, Unread(-32600)),
        // A member that comes twice: two readers could take different values.
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":8,"id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","jsonrpc":"1.0"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc" : "1.0","id":7,"method":"ping","json\u0072pc" : "2.0"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","m\u0065thod":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"\u0069d":7,"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}"#, Unread(-32600)),
        text(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"notifications/x"}"#, Unread(-32600)),
        text(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{},"params":{}}"#, Unread(-32600)),
        // A message of two kinds: a request or notification, and a response.
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","error":{"code":1,"message":"x"}}"#, Error(-32600, "7")),
        text(r#"{"error" : "x","jsonrpc":"2.0","id":7,"method":"tools/list"}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":null,"error":{"code":1}}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","r\u0065sult":5}"#, Error(-32600, "7")),
        text(r#"{"jsonrpc":"2.0","method":"notifications/initialized","result":{}}"#, Unread(-32600)),
        text(r#"{"jsonrpc":"2.0","method":"notifications/x","error":{"code":1,"message":"x"}}"#, Unread(-32600)),
        // Some peers write an absent member as null.
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":null,"error":null}"#, Result("7")),
        // Params that are no object.
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#, Error(-32602, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#, Error(-32602, "7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":"x"}"#, Error(-32602, "7")),
        // Ids of every kind.
        text(&ping("null"), Unread(-32600)),
        text(&ping("1.5"), Unread(-32600)),
        text(&ping("1e3"), Unread(-32600)),
        text(&ping("true"), Unread(-32600)),
        text(&ping("{}"), Unread(-32600)),
        text(&ping("[1]"), Unread(-32600)),
        text(&ping(r#""\ud800""#), Unread(-32600)),
        text(&ping("0"), Result("0")),
        text(&ping("-0"), Result("-0")),
        text(&ping("-5"), Result("-5")),
        text(&ping("9007199254740992"), Result("9007199254740992")),
        text(&ping("123456789012345678901234567890"), Result("123456789012345678901234567890")),
        text(&ping(r#""""#), Result(r#""""#)),
        text(&ping(r#""a b""#), Result(r#""a b""#)),
        text(&ping(r#""\u00e9\n\"""#), Result(r#""\u00e9\n\"""#)),
        text(&ping("\"\u{e9}\u{1f600}\""), Result("\"\u{e9}\u{1f600}\"")),
        // Longer than an id may be: the error still names it.
        text(&ping(&format!("\"{}\"", "x".repeat(mcp_sansio::server::ID_MAX - 2))), Result("\"xxxx")),
        text(&ping(&format!("\"{}\"", "x".repeat(mcp_sansio::server::ID_MAX - 1))), Error(-32600, "\"xxxx")),
        // Responses are never answered, not even broken ones.
        text(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","id":{},"result":5}"#, Silence),
        text(r#"{"id":99999999999999999999,"result":null,"error":null}"#, Silence),
        text(r#"{"jsonrpc":"1.0","result":{}}"#, Silence),
        text(r#"{"error":"x"}"#, Silence),
        text(r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"id":8,"error":{"code":1,"message":"x"}}"#, Silence),
        // Notifications are not answered either.
        text(r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":[1]}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"tools/call"}"#, Silence),
        text(r#"{"method":"ping"}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"disconnect"}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"\ud800"}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never"}}"#, Silence),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}"#, Silence),
        // Forms that are fine.
        text("  \t{ \"jsonrpc\" : \"2.0\" , \"id\" : 7 , \"method\" : \"ping\" }  ", Result("7")),
        text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\r", Result("7")),
        text(r#"{"jsonrpc":"2.0","id":7,"method":"p\u0069ng","more":[1,{"x":null}]}"#, Result("7")),
        text(r#"{"json\u0072pc":"2.0","\u0069d":7,"meth\u006fd":"ping"}"#, Result("7")),
        text("", Silence),
        text("   \t ", Silence),
        text("\r", Silence),
    ];
    for (depth, is) in [(100, Result("7")), (200, Unread(-32700)), (100_000, Unread(-32700))] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        rows.push(text(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","extra":{nested}}}"#), is));
    }
    rows
}

// spec: B040 B057 B061 B062 B128 B129 B131
#[test]
fn before_anything_was_opened() {
    let mut rig = Rig::new();
    for (line, expected) in rows() {
        check(&mut rig, &line, expected, "unopened");
    }
}

// spec: B057 B120 T066
#[test]
fn in_every_legacy_revision() {
    for revision in LEGACY {
        let mut rig = Rig::new().opened(revision);
        for (line, expected) in rows() {
            check(&mut rig, &line, expected, revision);
        }
    }
}

/// The error for an unknown id: `id` is `null` in A to C, missing in D, in E and before any era.
// spec: B015
#[test]
fn the_id_that_could_not_be_read() {
    for revision in REVISIONS {
        let reply = Rig::new().opened(revision).one("nonsense");
        let null = reply.starts_with(r#"{"jsonrpc":"2.0","id":null,"#);
        assert_eq!(null, revision < "2025-11-25", "{revision}: {reply}");
        assert!(null || reply.starts_with(r#"{"jsonrpc":"2.0","error":"#), "{reply}");
    }
}

/// Wrong requests of a known method, with the envelope in order.
// spec: B015 B174 S058
#[test]
fn wrong_params() {
    for revision in REVISIONS {
        let mut rig = Rig::new().opened(revision);
        let unknown_resource = if is_modern(revision) { -32602 } else { -32002 };
        let rows = [
            ("tools/call", json!({"name": "nothing"}), -32602),
            ("tools/call", json!({"name": "ADD"}), -32602),
            ("tools/call", json!({"name": null}), -32602),
            ("tools/call", json!({"name": "add", "arguments": null}), -32602),
            ("tools/call", json!({"name": "add", "arguments": "{}"}), -32602),
            ("tools/list", json!({"cursor": "x"}), -32602),
            ("tools/list", json!({"cursor": "0"}), -32602),
            ("tools/list", json!({"cursor": "00"}), -32602),
            ("tools/list", json!({"cursor": "99999999999999999999"}), -32602),
            ("tools/list", json!({"cursor": null}), -32602),
            ("prompts/get", json!({"name": "nothing"}), -32602),
            ("resources/read", json!({"uri": "test://none"}), unknown_resource),
            ("resources/read", json!({"uri": ""}), unknown_resource),
            ("resources/read", json!({"uri": ["test://text"]}), -32602),
            ("completion/complete", json!({"ref": "greet", "argument": {"name": "name", "value": ""}}), -32602),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": 5}}),
                -32602,
            ),
            ("tools/call", json!({"name": "add", "_meta": {"progressToken": 1.5}}), -32602),
            ("tools/call", json!({"name": "add", "_meta": {"progressToken": null}}), -32602),
            (
                "tools/call",
                json!({"name": "add", "_meta": {"progressToken": "x".repeat(mcp_sansio::server::ID_MAX - 1)}}),
                -32602,
            ),
        ];
        for (method, params, expected) in rows {
            let line = request(revision, 7, method, params);
            check(&mut rig, line.as_bytes(), Error(expected, "7"), revision);
        }
        // An empty cursor means the first page, as in other servers.
        let line = request(revision, 7, "tools/list", json!({"cursor": ""}));
        check(&mut rig, line.as_bytes(), Result("7"), revision);
        // Before 2026-07-28 nothing needs `_meta`: one that is no object counts as absent.
        for meta in [json!(null), json!([]), json!("x")].into_iter().filter(|_| !is_modern(revision)) {
            let line = request(revision, 7, "tools/list", json!({ "_meta": meta }));
            check(&mut rig, line.as_bytes(), Result("7"), revision);
        }
        for arguments in [
            json!({}),
            json!({"a": 1.5, "b": 1}),
            json!({"a": 1e99, "b": 1}),
            json!({"a": null, "b": 1}),
            json!({"a": [1], "b": 2}),
            json!({"a": "1", "b": 2}),
        ] {
            let line = call(revision, 7, "add", arguments);
            check(&mut rig, line.as_bytes(), Failed, revision);
        }
        // Numbers out of range, keys that come twice, unknown members.
        let raw = |arguments: &str| {
            let line = call(revision, 7, "add", json!({"here": 0}));
            line.replace(r#"{"here":0}"#, arguments)
        };
        let huge = format!(r#"{{"a":{},"b":1}}"#, "9".repeat(400));
        check(&mut rig, raw(&huge).as_bytes(), Failed, revision);
        check(&mut rig, raw(r#"{"a":9223372036854775808,"b":1}"#).as_bytes(), Failed, revision);
        check(&mut rig, raw(r#"{"a":1e400,"b":1}"#).as_bytes(), Failed, revision);
        check(&mut rig, raw(r#"{"a":2.0,"b":1,"c":[{}]}"#).as_bytes(), Result("7"), revision);
        check(&mut rig, raw(r#"{"a":1,"a":2,"b":1}"#).as_bytes(), Failed, revision);
        // A lone surrogate where text is decoded.
        let half = call(revision, 7, "shout", json!({"here": 0})).replace(r#"{"here":0}"#, r#"{"text":"\ud800"}"#);
        check(&mut rig, half.as_bytes(), Failed, revision);
        let half = call(revision, 7, "x", json!({})).replace(r#""x""#, r#""\ud800x""#);
        check(&mut rig, half.as_bytes(), Error(-32602, "7"), revision);
        let half = request(revision, 7, "resources/read", json!({"uri": "x"})).replace(r#""x""#, r#""test:\ud800""#);
        check(&mut rig, half.as_bytes(), Error(unknown_resource, "7"), revision);
        if !is_modern(revision) {
            for level in [json!("loud"), json!(null), json!(3), json!("INFO")] {
                let line = request(revision, 7, "logging/setLevel", json!({"level": level}));
                check(&mut rig, line.as_bytes(), Error(-32602, "7"), revision);
            }
        }
    }
}

/// A line longer than the buffer is skipped to its newline and answered, once.
#[test]
fn lines_that_are_too_long() {
    for revision in REVISIONS {
        for length in [2048, 2049, 5000, 100_000] {
            for step in [1, 7, 2048, usize::MAX] {
                let mut rig = Rig::new().input(2048).opened(revision);
                let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}\n", "x".repeat(length));
                for piece in line.as_bytes().chunks(step.min(line.len())) {
                    rig.feed(piece);
                }
                let said = rig.take();
                assert_eq!(said.len(), 1, "{said:?}");
                assert_eq!(code(&said[0]), -32600);
                assert_eq!(rig.say(PING).len(), 1);
            }
        }
    }
}

/// Random damage to valid messages: each gets an answer or none, and the next message is answered.
#[test]
fn damaged_messages() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for revision in ["2025-03-26", "2025-11-25", MODERN] {
        // The damage is echoed, so the schemas cannot judge the answer.
        let mut rig = Rig::new().opened(revision).unjudged();
        let good: Vec<_> = [
            call(revision, 7, "echo", json!({"text": "h\u{e9}llo \"x\""})),
            request(revision, 8, "resources/read", json!({"uri": "test://items/7"})),
            request(
                revision,
                "n",
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "A"}}),
            ),
            format!("[{}]", request("2025-03-26", 9, "ping", json!({}))),
        ]
        .into_iter()
        .map(String::into_bytes)
        .collect();
        for _ in 0..4000 {
            let mut line = good[dice.roll(good.len())].clone();
            for _ in 0..=dice.roll(3) {
                let at = dice.roll(line.len());
                match dice.roll(4) {
                    0 => line[at] = b" \"{}[],:\\0\x80\xff"[dice.roll(12)],
                    1 => drop(line.remove(at)),
                    2 => line.insert(at, b"\"{}[],:\\e9"[dice.roll(10)]),
                    _ => line.truncate(at.max(1)),
                }
                if line.is_empty() {
                    line.push(b'{');
                }
            }
            line.retain(|byte| *byte != b'\n');
            rig.feed(&line);
            rig.feed(b"\n");
            rig.take().iter().for_each(|line| drop(mcp_sansio_test_support::strict_json(line.as_bytes()).unwrap()));
            assert_eq!(rig.say(PING), [r#"{"jsonrpc":"2.0","id":"next","result":{}}"#]);
        }
    }
}

#[test]
fn the_error_says_why_it_is_no_json() {
    let mut rig = Rig::new();
    let deep = format!("{{\"a\":{}", "[".repeat(200));
    for (line, message) in [
        (&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..], "Parse error: not UTF-8"),
        (deep.as_bytes(), "Parse error: nested too deeply"),
        (br#"{"jsonrpc":"2.0","id":1"#, "Parse error: the message ends too early"),
        (b"nonsense", "Parse error"),
    ] {
        rig.feed(line);
        rig.feed(b"\n");
        let said = rig.take();
        let [said] = &said[..] else { panic!("{said:?}") };
        assert_eq!(parse(said)["error"]["message"], message, "{said}");
    }
}

#[test]
fn the_error_names_the_member_that_is_wrong() {
    for (revision, method, params, message) in [
        ("2025-11-25", "resources/read", json!({}), "Invalid params: uri is missing"),
        (MODERN, "resources/read", json!({"uri": 5}), "Invalid params: uri is missing"),
        ("2025-11-25", "prompts/get", json!({"name": {}}), "Invalid params: name is missing"),
        (MODERN, "tools/call", json!({}), "Invalid params: name is missing"),
        (MODERN, "tools/call", json!({"name": "count", "arguments": []}), "Invalid params: arguments is not an object"),
    ] {
        let mut rig = Rig::new().opened(revision);
        let reply = rig.one(&request(revision, 1, method, params));
        assert_eq!(parse(&reply)["error"]["message"], message, "{reply}");
        assert_eq!(rig.world.effects, 0);
    }
}
