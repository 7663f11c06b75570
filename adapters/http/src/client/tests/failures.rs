//! Failures of a connection and of an answer, and their time.

use super::*;

#[test]
fn failures() {
    let bad = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let (other, request) = (format!("1 Garbage {}", result(2)), format!("1 Garbage {}", legacy(1, "ping")));
    let cases: Vec<(String, bool, &str)> = vec![
        (String::new(), true, "1 Reset "),
        ("HTTP/1.1 2".into(), true, "1 Broken "),
        (json("200 OK", "", &result(1))[..80].into(), true, "1 Broken "),
        ("SSH-2.0-x\r\n".into(), false, "1 NotHttp "),
        ("\x16\x03\x01".into(), false, "1 NotHttp "),
        (bad("200 OK", "", ""), false, "1 Unanswered "),
        (ACCEPTED.into(), false, "1 Unanswered "),
        (bad("200 OK", "Content-Type: text/html\r\n", "<p>"), false, "1 ContentType "),
        (json("200 OK", "Content-Encoding: gzip\r\n", "x"), false, "1 ContentEncoding gzip"),
        (json("200 OK", "Content-Encoding: identity\r\n", "{"), false, "1 Garbage {"),
        (json("200 OK", "", r#"{"error":"slow_down"}"#), false, r#"1 Garbage {"error":"slow_down"}"#),
        (
            json("429 Slow", "", r#"{"error":{"message":"Slow"}}"#),
            false,
            r#"1 Status { code: 429, retry_after: None } {"error":{"message":"Slow"}}"#,
        ),
        (json("200 OK", "", &result(2)), false, &other),
        (json("200 OK", "", &legacy(1, "ping")), false, &request),
        (bad("500 Oops", "", "at line 1"), false, "1 Status { code: 500, retry_after: None } at line 1"),
        (bad("503 Busy", "Retry-After: 7\r\n", ""), false, "1 Status { code: 503, retry_after: Some(7) } "),
        (json("403 No", "", r#"{"a":1}"#), false, r#"1 Status { code: 403, retry_after: None } {"a":1}"#),
        (bad("302 Found", "Location: /x\r\n", ""), false, "1 Redirect(302) /x"),
        (bad("307 Moved", "Location: http://evil/x\r\n", ""), false, "1 Redirect(307) http://evil/x"),
        (bad("308 Moved", "", ""), false, "1 Redirect(308) "),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n".into(), false, "1 NotHttp "),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".into(), false, "1 NotHttp "),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".into(), false, "1 NotHttp "),
        (
            json("200 OK", "", "").replace("Content-Length: 0", "Transfer-Encoding: chunked") + "zz\r\n",
            false,
            "1 NotHttp ",
        ),
    ];
    for (reply, close, expected) in cases {
        in_pieces("http://h/", HttpClientConfig::DEFAULT, |bench| {
            bench.send(&modern(1, "tools/call", ""));
            bench.reply(0, &reply);
            if close {
                bench.close(0);
            }
            assert_eq!(bench.told(), [expected], "{reply}");
            assert!(bench.remote.is_idle());
            // The client continues.
            bench.send(&modern(2, "tools/call", ""));
            let slot = bench.find("POST");
            bench.reply(slot, &json("200 OK", "Connection: close\r\n", &result(2)));
            assert_eq!(bench.told(), [format!("2 {}", result(2))]);
            assert!(bench.sent[slot].is_none());
        });
    }
}

#[test]
fn redirects_on_the_same_origin() {
    let mut bench = Bench::new("http://h/a/mcp", HttpClientConfig::DEFAULT);
    let to = |location: &str| format!("HTTP/1.1 308 Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    bench.send(&modern(1, "tools/call", ""));
    for (target, location) in [("/a/mcp", "/b/mcp"), ("/b/mcp", "x"), ("/b/x", "?y"), ("/b/x?y", "/z")] {
        assert!(bench.received(0).starts_with(&format!("POST {target} HTTP/1.1\r\n")), "{target}");
        bench.reply(0, &to(location));
    }
    assert_eq!(bench.told(), ["1 Redirect(308) /z"]);
    bench.send(&modern(2, "tools/call", ""));
    assert!(bench.received(bench.find("POST")).starts_with("POST /a/mcp HTTP/1.1\r\n"));
}

/// Some servers send 408 before they close an idle connection.
#[test]
fn a_kept_connection_on_which_something_came_unasked() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    bench.send(&modern(1, "ping", ""));
    bench.received(0);
    bench.reply(0, &json("200 OK", "", &result(1)));
    bench.told();
    let message = modern(2, "tools/call", "");
    write(&mut bench.remote, &message).unwrap();
    bench.reply(0, &json("408 Request Timeout", "Connection: close\r\n", "late"));
    assert_eq!((bench.told(), bench.connections), (vec![], 2));
    assert!(bench.received(0).ends_with(&message));
    bench.reply(0, &json("200 OK", "", &result(2)));
    assert_eq!(bench.told(), [format!("2 {}", result(2))]);
}

#[test]
fn an_answer_that_is_announced_and_never_comes() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    bench.reply(0, "HTTP/1.1 100 Continue\r\n\r\n");
    bench.wait(30_000);
    assert_eq!(bench.told(), ["- TimedOut "]);
    bench.send(&modern(1, "ping", ""));
    bench.reply(0, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
    bench.wait(3_000_000);
    bench.reply(0, &json("200 OK", "", &result(1)));
    assert_eq!(bench.told(), [format!("1 {}", result(1))]);
}

/// The same for a body: of an answer that says nothing, and of an error.
#[test]
fn a_body_that_is_announced_and_never_comes() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    bench.reply(0, "HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\n");
    bench.wait(29_999);
    assert_eq!(bench.told(), [""; 0]);
    bench.wait(1);
    assert!(bench.remote.is_idle() && bench.sent[0].is_none());
    bench.told();
    bench.send(&modern(1, "ping", ""));
    bench.reply(0, "HTTP/1.1 500 Oh\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    bench.wait(29_999);
    assert_eq!(bench.told(), [""; 0]);
    bench.wait(1);
    assert_eq!(bench.told().len(), 1);
    assert!(bench.remote.is_idle());
}

#[test]
fn a_kept_connection_that_was_closed_meanwhile() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    let first = |bench: &mut Bench| {
        bench.send(&modern(1, "ping", ""));
        bench.received(0);
        bench.reply(0, &json("200 OK", "", &result(1)));
        bench.told();
    };
    first(&mut bench);
    bench.send(&modern(2, "tools/list", ""));
    let request = bench.received(0);
    bench.close(0);
    assert_eq!(bench.received(0), request, "it is sent again");
    bench.close(0);
    assert_eq!(bench.told(), ["2 Reset "], "but only once");
    first(&mut bench);
    bench.send(&modern(3, "tools/call", ""));
    bench.received(0);
    bench.close(0);
    assert_eq!(bench.told(), ["3 Reset "], "it may have been done");
    first(&mut bench);
    // A part of the message was not sent, so the server cannot have handled it.
    let message = modern(4, "tools/call", "");
    write(&mut bench.remote, &message).unwrap();
    let n = bench.remote.pending(0).len() - 1;
    bench.remote.sent(0, n);
    bench.close(0);
    assert!(bench.received(0).ends_with(&message));
}

#[test]
fn times() {
    let config = HttpClientConfig::DEFAULT;
    let mut bench = Bench::new("http://h/mcp", config);
    let message = modern(1, "ping", "");
    write(&mut bench.remote, &message).unwrap();
    assert_eq!(bench.remote.next_action(), Some(SocketAction::Connect(0)));
    bench.remote.expire(9_999);
    assert!(bench.remote.next_event().is_none());
    bench.remote.expire(10_000);
    bench.listen();
    assert_eq!(bench.told(), ["1 TimedOut "]);
    assert_eq!(bench.remote.next_action(), Some(SocketAction::Close(0)));
    bench.now = 10_000;
    // A server that does not read.
    write(&mut bench.remote, &message).unwrap();
    let _ = bench.remote.next_action();
    bench.sent[0] = Some(Vec::new());
    bench.remote.connected(0);
    bench.remote.sent(0, 1);
    bench.remote.expire(39_999);
    assert!(bench.remote.next_event().is_none());
    bench.wait(30_000);
    assert_eq!(bench.told(), ["1 TimedOut "]);
    // The caller sets the time of a request. All else must be answered soon.
    bench.send(&modern(2, "tools/call", ""));
    bench.send(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    // Under 2026-07-28 there are no notifications: this one is dropped.
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    bench.wait(30_000);
    assert_eq!(bench.told(), ["- TimedOut "]);
    bench.wait(3_000_000);
    bench.reply(0, &json("200 OK", "", &result(2)));
    assert_eq!(bench.told(), [format!("2 {}", result(2))]);
}

#[test]
fn a_notification_that_is_not_taken() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        bench.reply(0, &json("400 Bad", "", r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}"#));
        let told = bench.told();
        assert!(told[0].starts_with("- Status { code: 400, retry_after: None } {\"jsonrpc\""), "{told:?}");
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        bench.reply(0, &json("200 OK", "", r#"{"jsonrpc":"2.0","result":{}}"#));
        assert!(bench.told().is_empty() && bench.remote.is_idle());
    });
}

/// At each byte and in each way of loss, each request comes to exactly one end, in bounded time.
#[test]
fn a_connection_lost_at_every_byte() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let answers = [
        json("200 OK", "", &result(1)),
        json("500 No", "", &result(1)),
        json("401 No", "", ""),
        stream(&format!("id: 1\nretry: 5\ndata:\n\ndata: {progress}\n\ndata: {}\n\n", result(1))) + "0\r\n\r\n",
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", result(1)),
        "HTTP/1.1 307 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".to_string(),
    ];
    for answer in &answers {
        for request in [modern(1, "ping", ""), legacy(1, "ping"), legacy(1, "initialize"), modern(1, "tools/call", "")]
        {
            for (at, clean) in (0..=answer.len()).flat_map(|at| [(at, true), (at, false)]) {
                let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
                bench.send(&request);
                bench.reply(0, &answer[..at]);
                for _ in 0..40 {
                    for slot in 0..4 {
                        if bench.sent[slot].take().is_some() {
                            if clean { bench.remote.closed(slot) } else { bench.remote.failed(slot) }
                        }
                        bench.remote.give_up(slot);
                    }
                    bench.turn();
                    bench.wait(100_000);
                }
                assert!(bench.remote.is_idle(), "cut at {at} of {answer}");
                let ends = |told: &String| !told.contains("progress") && !told.contains("challenge");
                assert_eq!(bench.told().iter().filter(|told| ends(told)).count(), 1, "cut at {at} of {answer}");
            }
        }
    }
}

/// Decisions made before the next event is asked for count too.
#[test]
fn decisions_in_the_middle_of_events() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    let message = modern(1, "ping", "");
    let ask = |bench: &mut Bench| {
        write(&mut bench.remote, &message).unwrap();
        while bench.remote.next_action().is_some() {}
        bench.sent[0] = Some(Vec::new());
        bench.remote.connected(0);
        let n = bench.remote.pending(0).len();
        bench.remote.sent(0, n);
        let reply = json("401 No", "", "");
        bench.remote.space(0)[..reply.len()].copy_from_slice(reply.as_bytes());
        bench.remote.filled(0, reply.len());
        assert!(matches!(bench.remote.next_event(), Some(HttpClientEvent::Challenge { slot: 0, .. })));
    };
    ask(&mut bench);
    bench.remote.give_up(0);
    bench.turn();
    assert_eq!(bench.told(), ["1 GivenUp "]);
    ask(&mut bench);
    bench.remote.retry(0);
    bench.turn();
    bench.reply(0, &json("200 OK", "", &result(1)));
    assert_eq!(bench.told(), [format!("1 {}", result(1))]);
}

/// A connection is kept for the next message for some time. What a server sends on it meanwhile is no answer.
#[test]
fn an_idle_connection_ends() {
    let answered = || {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
        bench.send(&modern(1, "ping", ""));
        bench.received(0);
        bench.reply(0, &json("200 OK", "", &result(1)));
        bench.told();
        bench
    };
    let mut bench = answered();
    assert_eq!(bench.remote.next_deadline(), Some(3_000));
    bench.wait(2_999);
    assert!(bench.sent[0].is_some());
    bench.wait(1);
    assert!(bench.sent[0].is_none() && bench.remote.next_deadline().is_none());
    // The server ends it first.
    let mut bench = answered();
    bench.close(0);
    assert_eq!((bench.told(), bench.remote.next_deadline()), (vec![], None));
    bench.send(&modern(2, "ping", ""));
    assert_eq!((bench.connections, bench.received(0).contains("\"id\":2")), (2, true));
    // Bytes that came unasked are not read as the next answer.
    let mut bench = answered();
    bench.reply(0, &json("200 OK", "", &result(2)));
    assert!(bench.sent[0].is_none() && bench.told().is_empty());
    bench.send(&modern(2, "ping", ""));
    assert_eq!(bench.told(), [""; 0]);
    assert!(bench.received(0).contains("\"id\":2"));
}

/// A connection is used again if the head of the answer says nothing against it.
#[test]
fn a_connection_that_the_server_ends_after_its_answer() {
    for (headers, kept) in [
        ("", true),
        ("Connection: close\r\n", false),
        ("Connection: x, Close\r\n", false),
        ("Connection: keep-alive\r\n", true),
    ] {
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
            bench.send(&modern(1, "ping", ""));
            bench.reply(0, &json("200 OK", headers, &result(1)).replace("HTTP/1.1", version));
            assert_eq!(bench.told().len(), 1);
            let expected = if version == "HTTP/1.0" { headers.contains("keep-alive") } else { kept };
            assert_eq!(bench.sent[0].is_some(), expected, "{version} {headers}");
        }
    }
}
