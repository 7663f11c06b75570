//! Event streams, and requests of 2026-07-28.

use super::*;

// spec: T094 T095 T096 T099 T101 T102 T108 T109 T133 T134 T135 T136 T137 T142 T147 T158 T160
#[test]
fn modern_requests_over_one_connection() {
    in_pieces("http://localhost:80/mcp", HttpClientConfig::DEFAULT, |bench| {
        bench.send(&modern(1, "tools/list", ""));
        let request = bench.received(0);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            head,
            format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost:80\r\nAccept: application/json, text/event-stream\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                 Mcp-Method: tools/list\r\nAccept-Encoding: identity",
                body.len()
            )
        );
        assert_eq!(body, modern(1, "tools/list", ""));
        let tools = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}}"#;
        bench.reply(0, &json("200 OK", "", tools));
        assert_eq!(bench.told(), [format!("1 {tools}")]);

        bench.send(&modern(2, "tools/call", r#""name":"t","arguments":{"r":"é"},"#));
        let request = bench.received(0);
        assert!(
            request.contains("\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\nMcp-Param-Region: =?base64?w6k=?=\r\nAccept-Encoding: identity\r\n\r\n")
        );
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        let events = format!(": hello\n\ndata: {progress}\n\nevent: message\ndata: {}\n\n", result(2));
        bench.reply(0, &stream(&events));
        assert_eq!(bench.told(), [format!("2 {progress}"), format!("2 {}", result(2))]);
        assert!(bench.remote.is_idle() || bench.remote.next_deadline() == Some(500));
        bench.reply(0, "0\r\n\r\n");

        bench.send(&modern(3, "resources/read", r#""uri":"file:///a b","#));
        assert!(bench.received(0).contains("\r\nMcp-Name: file:///a b\r\n"));
        bench.reply(0, "HTTP/1.1 100 Continue\r\n\r\n");
        bench.reply(0, &json("404 Not Found", "", r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"}}"#));
        assert_eq!(bench.told().len(), 1);
        assert_eq!(bench.connections, 1);
        bench.wait(2_999);
        assert!(bench.sent[0].is_some());
        bench.wait(1);
        assert!(bench.sent[0].is_none(), "an idle connection is closed");
        assert!(bench.remote.is_idle());
    });
}

/// Each request repeats its version and its method in headers, and those that name something its name.
// spec: T136 T158
#[test]
fn every_request_has_its_headers() {
    let config = HttpClientConfig::DEFAULT.names(&[("com.example/open", "door")]);
    for (method, params, name) in [
        ("server/discover", "", None),
        ("tools/list", "", None),
        ("prompts/list", "", None),
        ("resources/list", "", None),
        ("resources/templates/list", "", None),
        ("tools/call", r#""name":"t","arguments":{"uri":"a:b"},"#, Some("t")),
        ("prompts/get", r#""name":"p","uri":"a:b","#, Some("p")),
        ("resources/read", r#""name":"r","uri":"a:b","#, Some("a:b")),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"#, None),
        ("subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#, None),
        ("com.example/open", r#""name":"n","door":"d","#, Some("d")),
        ("com.example/shut", r#""name":"n","door":"d","#, None),
    ] {
        let mut bench = Bench::new("http://h/mcp", config);
        bench.send(&modern(1, method, params));
        let request = bench.received(0);
        let head = request.split_once("\r\n\r\n").unwrap().0;
        let value = |header: &str| head.lines().find_map(|line| line.strip_prefix(header)?.strip_prefix(": "));
        assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
        assert_eq!(value("MCP-Protocol-Version"), Some("2026-07-28"), "{head}");
        assert_eq!((value("Mcp-Method"), value("Mcp-Name")), (Some(method), name), "{head}");
    }
}

/// A tool whose annotations are invalid is not called, and the client sends no byte.
#[test]
fn a_tool_that_is_excluded() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let tool = |name: &str, header: &str| {
            format!(
                r#"{{"name":"{name}","inputSchema":{{"properties":{{"r":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
            )
        };
        let tools = [tool("good", "R"), tool("bad", "X\\r\\nEvil: 1")].join(",");
        bench.send(&modern(1, "tools/list", ""));
        bench.received(0);
        bench.reply(0, &json("200 OK", "", &format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]}}}}"#)));
        bench.told();
        bench.send(&modern(2, "tools/call", r#""name":"b\u0061d","arguments":{"r":"x"},"#));
        assert_eq!(bench.told(), ["2 Excluded(Name) "]);
        let excluded: Vec<_> = bench.remote.excluded().map(|(name, why)| format!("{name} {why:?}")).collect();
        assert_eq!(excluded, ["bad Name"]);
        // Other things with that name are not concerned.
        bench.send(&modern(3, "prompts/get", r#""name":"bad","#));
        assert!(bench.received(0).contains("\r\nMcp-Name: bad\r\n"));
        bench.reply(0, &json("200 OK", "", &result(3)));
        bench.send(&modern(4, "tools/call", r#""name":"good","arguments":{"r":"x"},"#));
        assert!(bench.received(0).contains("\r\nMcp-Param-R: x\r\n"));
        bench.reply(0, &json("200 OK", "", &result(4)));
        assert_eq!(bench.told().len(), 2);
    });
}

/// Secrets are not in the output of `Debug`, neither as text nor as numbers.
// spec: A216 T057
#[test]
fn secrets_are_not_shown() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    bench.remote.set_header("Authorization", "Bearer SECRET").unwrap();
    open_session(&mut bench, SESSION);
    bench.send(&legacy(7, "tools/call"));
    let at = bench.find("POST");
    let sent = bench.received(at);
    assert!(sent.contains("SECRET") && sent.contains("s-1"), "{sent}");
    let shown = format!("{:?} {:#?}", bench.remote, bench.remote).split_whitespace().collect::<String>();
    for secret in ["SECRET", "s-1", "83,69,67,82,69,84", "115,45,49"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

// spec: T018 T045 T047
#[test]
fn a_broken_stream_is_resumed() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT.listen(false), |bench| {
        let first = "id: 1\nretry: 1500\ndata:\n\n";
        bench.send(&legacy(7, "tools/call"));
        bench.received(0);
        bench.reply(0, &stream(first));
        bench.reply(0, "0\r\n\r\n");
        bench.wait(1_499);
        assert_eq!(bench.remote.next_deadline(), Some(1_500));
        bench.wait(1);
        assert!(bench.received(0).starts_with("GET /mcp HTTP/1.1\r\n"));
        // The tries fail, each after a longer time.
        bench.close(0);
        bench.wait(2_999);
        assert!(bench.sent[0].is_none());
        bench.wait(1);
        assert!(bench.received(0).contains("\r\nLast-Event-ID: 1\r\n"));
        bench.reply(0, &stream(&format!("id: 2\ndata: {}\n\n", result(7))));
        assert_eq!(bench.told(), [format!("7 {}", result(7))]);
        bench.close(0);
        // Without an id the stream cannot be resumed.
        bench.send(&legacy(8, "tools/call"));
        bench.reply(0, &stream("retry: 1\ndata:\n\n"));
        bench.close(0);
        assert_eq!(bench.told(), ["8 Broken "]);
        // The client does not try for ever.
        bench.send(&legacy(9, "tools/call"));
        bench.reply(0, &stream(first));
        bench.close(0);
        for _ in 0..5 {
            bench.wait(60_000);
            bench.close(0);
        }
        assert_eq!(bench.told(), ["9 Reset "]);
        // The client gives up what the server has given up.
        bench.send(&legacy(10, "tools/call"));
        bench.reply(0, &stream(first));
        bench.close(0);
        bench.wait(1_500);
        bench.reply(0, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told(), ["10 Broken "]);
    });
}

/// Counts as tries only those without an event. The waits between streams without a message grow nevertheless, also against the
/// field `retry` of the stream. A message makes the next wait short again.
#[test]
fn a_stream_that_brings_an_event_each_time_is_resumed_again_and_again() {
    for retry in [0, 1, 500] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false).tries(2));
        bench.send(&legacy(7, "tools/call"));
        let asked = u64::max(retry, 100);
        let mut wait = asked;
        for id in 1..=20 {
            bench.reply(0, &stream(&format!("id: {id}\nretry: {retry}\ndata:\n\n")));
            bench.close(0);
            assert_eq!(bench.remote.next_deadline(), Some(bench.now + wait), "{retry}");
            bench.wait(wait);
            let request = bench.received(0);
            assert!(request.contains(&format!("\r\nLast-Event-ID: {id}\r\n")), "{request}");
            wait = (2 * wait.max(1_000)).min(48_000);
        }
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        bench.reply(0, &stream(&format!("id: 30\ndata: {progress}\n\n")));
        assert_eq!(bench.told(), [format!("7 {progress}")]);
        bench.close(0);
        assert_eq!(bench.remote.next_deadline(), Some(bench.now + asked));
        bench.wait(asked);
        bench.reply(0, &stream(&format!("data: {}\n\n", result(7))));
        assert_eq!(bench.told(), [format!("7 {}", result(7))]);
    }
}

/// Many clients of a server that was gone do not come at once.
#[test]
fn pauses_are_spread() {
    let pause = |seed| {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false));
        bench.remote.origin.seed = seed;
        bench.send(&legacy(7, "tools/call"));
        bench.reply(0, &stream("id: 1\ndata:\n\n"));
        bench.close(0);
        bench.remote.next_deadline().unwrap() - bench.now
    };
    let pauses: Vec<_> = (1..=40).map(pause).collect();
    assert!(pauses.iter().all(|pause| (1_000..=1_250).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().max().unwrap() - pauses.iter().min().unwrap() > 150, "{pauses:?}");
}

#[test]
fn modern_streams_are_never_resumed() {
    in_pieces("http://h/", HttpClientConfig::DEFAULT, |bench| {
        bench.send(&modern(1, "tools/call", ""));
        bench.reply(0, &stream("id: 1\ndata:\n\n"));
        bench.close(0);
        bench.send(&modern(2, "tools/call", ""));
        bench.reply(0, &stream("id: 1\ndata:\n\n"));
        bench.reply(0, "0\r\n\r\n");
        assert_eq!(bench.told(), ["1 Broken ", "2 Unanswered "]);
        bench.send(&modern(3, "subscriptions/listen", ""));
        bench.reply(bench.find("POST"), &stream(""));
        assert!(bench.remote.abandon(3) && !bench.remote.abandon(3));
        bench.turn();
        assert!(bench.sent.iter().all(Option::is_none));
        assert!(bench.told().is_empty());
    });
}

/// Proxies cut streams without events.
#[test]
fn a_quiet_stream_is_opened_again_and_again() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    let mut get = open_session(&mut bench, SESSION);
    for _ in 0..20 {
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.wait(60_000);
        bench.close(get);
        bench.wait(1_000);
        get = bench.find("GET");
    }
    // But not a stream that is closed at once. The last one was tried once.
    let mut tries = 1;
    while bench.remote.listening() != ListenState::No {
        tries += 1;
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.close(get);
        bench.wait(60_000);
        get = bench.sent.iter().position(|sent| sent.as_ref().is_some_and(|sent| !sent.is_empty())).unwrap_or(get);
    }
    assert_eq!(tries, 6);
}

/// A server that is overloaded for a moment: the stream is opened later. One that has no such stream says so.
#[test]
fn a_stream_that_the_server_cannot_open_now() {
    for (status, comes_again) in [("503 Later", true), ("500 Oh", true), ("405 No", false), ("404 No", false)] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
        let get = open_session(&mut bench, "");
        bench.received(get);
        bench.reply(get, &format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        bench.wait(60_000);
        let opens = bench.sent.iter().flatten().any(|sent| sent.starts_with(b"GET "));
        assert_eq!((opens, bench.remote.listening() != ListenState::No), (comes_again, comes_again), "{status}");
    }
}

#[test]
fn what_is_skipped_in_streams() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        bench.send(&modern(1, "tools/call", ""));
        let body = format!("data: {{\n\nevent: other\ndata: 1\n\n: hi\n\ndata: [{}]\n\n", result(1));
        bench.reply(0, &stream(&body));
        assert_eq!(bench.told(), ["1 skipped Garbage {".to_string(), format!("1 [{}]", result(1))]);
    });
}

/// A server that has no stream now may say when to come again, up to an hour.
#[test]
fn a_server_says_when_to_come_again() {
    for (head, wait) in
        [("429 Slow\r\nRetry-After: 7", 7_000), ("503 Busy\r\nRetry-After: 999999", 3_600_000), ("503 Busy", 2_000)]
    {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false));
        bench.send(&legacy(7, "tools/call"));
        bench.reply(0, &stream("id: 1\ndata:\n\n"));
        bench.close(0);
        bench.wait(1_000);
        bench.received(0);
        bench.reply(0, &format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(bench.remote.next_deadline(), Some(bench.now + wait), "{head}");
    }
}

/// Each try that fails doubles the time before the next one, up to a longest time, if the server wants no longer one.
#[test]
fn tries_to_resume_a_stream_become_rare() {
    for (retry, waits) in [
        ("", [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 48_000]),
        ("retry: 20000\n", [20_000, 40_000, 48_000, 48_000, 48_000, 48_000, 48_000]),
        ("retry: 60000\n", [60_000; 7]),
        ("retry: 99999999\n", [3_600_000; 7]),
    ] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false).tries(7));
        bench.send(&legacy(7, "tools/call"));
        bench.reply(0, &stream(&format!("id: 1\n{retry}data:\n\n")));
        for wait in waits {
            bench.close(0);
            assert_eq!(bench.remote.next_deadline(), Some(bench.now + wait), "{retry}");
            assert!(bench.told().is_empty());
            bench.wait(wait);
        }
        bench.close(0);
        assert_eq!(bench.told(), ["7 Reset "]);
    }
}

/// A stream that was open for a long time counts as resumed, even without an event.
#[test]
fn a_stream_that_was_open_for_long_was_resumed() {
    for (open, wait) in [(47_999, 3_000), (48_000, 1_500)] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false));
        bench.send(&legacy(7, "tools/call"));
        bench.reply(0, &stream("id: 1\nretry: 1500\ndata:\n\n"));
        bench.close(0);
        bench.wait(1_500);
        bench.received(0);
        bench.reply(0, &stream(""));
        bench.wait(open);
        bench.close(0);
        assert_eq!(bench.remote.next_deadline(), Some(bench.now + wait), "{open}");
    }
}

/// A server that fails for a moment is asked again. One that refuses has no such stream any more.
#[test]
fn a_resumption_that_is_refused() {
    for (status, again) in [("500 Oh", true), ("503 Later", true), ("499 No", false), ("404 No", false)] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.listen(false));
        bench.send(&legacy(7, "tools/call"));
        bench.reply(0, &stream("id: 1\nretry: 1500\ndata:\n\n"));
        bench.close(0);
        bench.wait(1_500);
        bench.reply(0, &format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        let told = bench.told();
        assert_eq!(told.is_empty(), again, "{status} {told:?}");
        bench.wait(3_000);
        assert_eq!(bench.sent[0].is_some(), again, "{status}");
    }
}

/// The rest of a stream behind its answer may come soon, so that its connection is used again. No message waits for it.
#[test]
fn the_end_of_a_stream_is_waited_for_a_moment() {
    let answered = || {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
        bench.send(&modern(1, "ping", ""));
        bench.received(0);
        bench.reply(0, &stream(&format!("data: {}\n\n", result(1))));
        assert_eq!(bench.told().len(), 1);
        bench
    };
    let mut bench = answered();
    bench.wait(499);
    assert!(bench.sent[0].is_some());
    bench.wait(1);
    assert!(bench.sent[0].is_none());
    let mut bench = answered();
    bench.reply(0, "0\r\n\r\n");
    bench.wait(500);
    bench.send(&modern(2, "ping", ""));
    assert_eq!((bench.connections, bench.received(0).contains("\"id\":2")), (1, true));
    let mut bench = answered();
    bench.send(&modern(2, "ping", ""));
    assert!(bench.received(1).contains("\"id\":2"));
    bench.reply(0, "0\r\n\r\n");
    assert!(bench.sent[0].is_some() && bench.told().is_empty());
}
