//! One line, UTF-8, strict JSON, a JSON-RPC envelope.

mod common;
use common::*;
use mcp_sansio_test_support::{Oracle, strict_json};

#[test]
fn a_message_is_one_line() {
    good(client(A, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
    good(client(A, "{\"id\":\"\\n\",\t\"jsonrpc\":\"2.0\", \"method\":\"ping\"}"));
    bad(client(A, "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"ping\"}"), "one line");
    bad(client(A, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r"), "one line");
    bad(client(A, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"), "one line");
    bad(client(A, "{} {}"), "more than one JSON value");
    bad(client(A, ""), "not strict JSON");
    bad(Oracle::new().client_sends(A, None, b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}"), "not UTF-8");
}

#[test]
fn no_key_is_there_twice_at_any_depth() {
    bad(client(A, r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#), "\"id\" is there twice");
    let inside = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":[{"x":1,"\u0078":2}]}}}"#;
    bad(client(A, inside), "\"x\" is there twice");
}

#[test]
fn deep_values_are_read() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(strict_json(nested(300).as_bytes()).is_ok());
    assert!(strict_json(nested(600).as_bytes()).is_err());
}

#[test]
fn the_envelope_is_exact() {
    for revision in LEGACY {
        bad(client(revision, r#"{"id":1,"method":"ping"}"#), "jsonrpc is not");
        bad(client(revision, r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), "jsonrpc is not");
        bad(client(revision, r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), "id is null");
        bad(client(revision, r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), "id is 1.5");
        bad(client(revision, r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#), "params is not an object");
        bad(client(revision, r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#), "params is not an object");
        bad(client(revision, r#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}"#), "odd member \"extra\"");
        bad(
            server(revision, r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#),
            "neither one method",
        );
        bad(server(revision, r#"{"jsonrpc":"2.0","result":{}}"#), "no id");
        bad(server(revision, r#"{"jsonrpc":"2.0","id":1,"result":null}"#), "result is not an object");
        bad(server(revision, "3"), "a message is an object");
        bad(client(revision, r#"{"jsonrpc":"2.0","method":"ping"}"#), "ping is a request but has no id");
        bad(
            client(revision, r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#),
            "is a notification but has an id",
        );
    }
    bad(Oracle::new().server_sends("2025-01-01", None, b"{}"), "no such revision");
}

#[test]
fn ids_are_echoed_at_any_size() {
    for id in ["-5", "9007199254740993", "18446744073709551615", "18446744073709551616", "\"\\u00e9\"", "\"\""] {
        let pong = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        good(Oracle::new().server_sends(D, Some("ping"), pong.as_bytes()));
    }
}

#[test]
fn an_unread_id_is_null_or_absent() {
    let null = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
    let absent = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#;
    for revision in [A, B, C] {
        good(server(revision, null));
        good(server(revision, absent));
    }
    for revision in [D, E] {
        bad(server(revision, null), "id is null");
        good(server(revision, absent));
    }
    bad(server(A, r#"{"jsonrpc":"2.0","id":null,"result":{}}"#), "id is null");
}

#[test]
fn batches_are_of_old_revisions_and_of_one_kind() {
    let (ping, note) =
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let (pong, error) = (
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"x"}}"#,
    );
    for revision in [A, B] {
        good(client(revision, &format!("[{ping},{note}]")));
        good(server(revision, &format!("[{pong},{error}]")));
        bad(server(revision, &format!("[{pong},{ping}]")), "both responses and others");
        bad(server(revision, "[]"), "an empty batch");
        bad(server(revision, &format!("[{pong},[{pong}]]")), "a message is an object");
        bad(server(revision, r#"[{"jsonrpc":"2.0","id":1.5,"result":{}}]"#), "id is 1.5");
        bad(client(revision, r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#), "initialize in a batch");
    }
    for revision in [C, D, E] {
        bad(server(revision, &format!("[{pong}]")), "a batch in");
    }
}

#[test]
fn a_batch_answers_each_id_by_its_method() {
    let methods = |id: &serde_json::Value| Some(if *id == 1 { "ping" } else { "tools/list" }.to_owned());
    let oracle = Oracle::new();
    let right = br#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}]"#;
    good(oracle.server_answers(B, &methods, right));
    let swapped = br#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]"#;
    bad(oracle.server_answers(B, &methods, swapped), "ping is answered with {} exactly");
    let ping = |_: &serde_json::Value| Some("ping".to_owned());
    good(oracle.client_answers(B, &ping, br#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#));
}
