//! Sessions up to 2025-11-25.

use super::*;

// spec: B119 K014 T004 T010 T011 T015 T027 T028 T032 T039 T052 T056 T093 T133 T134
#[test]
fn a_legacy_session_from_its_opening_to_its_end() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        assert_eq!(bench.remote.listening(), ListenState::Opening);
        assert!(bench.received(get).ends_with(
            "\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: s-1\r\nAccept-Encoding: identity\r\n\r\n"
        ));
        let asks = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
        bench.reply(get, &stream(&format!("id: 7\nretry: 20\ndata: \n\nid: 8\ndata: {asks}\n\n")));
        assert_eq!(bench.remote.listening(), ListenState::Open);
        assert_eq!(bench.told(), [format!("- {asks}")]);
        // Two requests leave one slot for an answer.
        bench.send(&legacy(1, "tools/call"));
        bench.send(&legacy(2, "tools/call"));
        let busy =
            mcp_sansio::sink::whole(&mut bench.remote, MessageHead::Request(&RequestInfo::new(0, "ping")), |out| {
                out.put(b"{}")
            });
        assert_eq!(busy, Err(FullError::Now));
        bench.send(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
        for slot in (0..4).filter(|slot| *slot != get) {
            let request = bench.received(slot);
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            let expected = format!(
                "POST /mcp HTTP/1.1\r\nHost: h\r\nAccept: application/json, text/event-stream\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\nMCP-Protocol-Version: 2025-06-18\r\n\
                 Mcp-Session-Id: s-1\r\nAccept-Encoding: identity",
                body.len()
            );
            assert_eq!(head, expected);
            assert_eq!(body.matches("\"jsonrpc\"").count(), 1, "one message");
            if request.contains("\"result\"") {
                bench.reply(slot, ACCEPTED);
            } else if request.contains("\"id\":1,") {
                bench.reply(slot, &json("200 OK", "", &result(1)));
            } else {
                bench.reply(slot, &stream(&format!("data: {}\n\n", result(2))));
            }
        }
        let mut told = bench.told();
        told.sort();
        assert_eq!(told, [format!("1 {}", result(1)), format!("2 {}", result(2))]);
        // The stream breaks and is resumed after the last event.
        bench.close(get);
        assert_eq!(bench.remote.listening(), ListenState::Opening);
        bench.wait(99);
        assert!(bench.sent[get].is_none());
        bench.wait(1);
        assert!(bench.received(get).contains("\r\nLast-Event-ID: 8\r\n"));
        bench.reply(get, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.remote.listening(), ListenState::No);
        assert!(bench.remote.end_session());
        bench.turn();
        let slot = bench.find("DELETE /mcp HTTP/1.1\r\n");
        let request = bench.received(slot);
        assert!(request.ends_with(
            "\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: s-1\r\nAccept-Encoding: identity\r\n\r\n"
        ));
        bench.reply(slot, "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(bench.told(), ["ended"]);
        assert_eq!(bench.remote.session(), None);
        assert!(!bench.remote.end_session());
    });
}

/// Otherwise requests could overtake `notifications/initialized` on another connection.
#[test]
fn requests_wait_for_initialized() {
    let begin = |bench: &mut Bench| {
        bench.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
        bench.received(0);
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        bench.reply(0, &json("200 OK", SESSION, answer));
        bench.told();
        assert_eq!(bench.remote.listening(), ListenState::No);
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(bench.remote.listening(), ListenState::Opening);
        bench.send(&legacy(1, "tools/list"));
        assert_eq!(bench.sent.iter().flatten().count(), 1);
        assert!(bench.received(0).contains("initialized"));
    };
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        begin(bench);
        bench.reply(0, ACCEPTED);
        let get = bench.find("GET ");
        bench.received(get);
        let post = bench.find("POST ");
        assert!(bench.received(post).contains("tools/list"));
        bench.reply(get, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.remote.listening(), ListenState::No);
        bench.reply(post, &json("200 OK", "", &result(1)));
        assert_eq!(bench.told(), [format!("1 {}", result(1))]);
    });
    // A challenge is no answer.
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        begin(bench);
        bench.reply(0, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told(), ["- challenge 0 401 "]);
        assert_eq!(bench.sent.iter().flatten().count(), 0);
        bench.remote.retry(0);
        bench.turn();
        assert!(bench.received(0).contains("initialized"));
        bench.reply(0, ACCEPTED);
        let post = bench.find("POST ");
        assert!(bench.received(post).contains("tools/list"));
    });
    // If a server refuses it, loses it or does not answer it, the request is still sent.
    for refusal in ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "", "-"] {
        in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
            begin(bench);
            match refusal {
                "" => bench.close(0),
                "-" => bench.wait(HttpClientConfig::DEFAULT.reply_time),
                refusal => bench.reply(0, refusal),
            }
            let post = bench.find("POST ");
            // The client may send it once more if the connection was used before.
            assert!(bench.received(post).contains("tools/list") || refusal.is_empty());
        });
    }
    // The session is lost with it.
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        begin(bench);
        bench.reply(0, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told().last().map(String::as_str), Some("1 SessionLost "));
    });
}

#[test]
fn a_session_that_is_lost() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.send(&legacy(1, "tools/call"));
        bench.send(&legacy(2, "ping"));
        let first = bench.sent.iter().position(|sent| sent.as_ref().is_some_and(|sent| sent.ends_with(b"\"ping\"}")));
        bench.reply(first.unwrap(), "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
        let mut told = bench.told();
        told.sort();
        assert_eq!(told, ["1 SessionLost ", "2 SessionLost "]);
        assert_eq!((bench.remote.session(), bench.remote.listening()), (None, ListenState::No));
        assert!(bench.sent.iter().all(Option::is_none), "all connections of the session are closed");
        open_session(&mut *bench, SESSION);
    });
}

/// A client that only listens must get this event too.
#[test]
fn a_session_that_is_lost_while_nothing_is_under_way() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        let get = open_session(bench, SESSION);
        bench.reply(get, &stream(""));
        bench.close(get);
        bench.wait(1_000);
        bench.reply(bench.find("GET"), gone);
        assert_eq!(bench.told(), ["- SessionLost "]);
        assert_eq!((bench.remote.session(), bench.remote.listening()), (None, ListenState::No));
        // A stream that never existed says nothing about the session.
        let get = open_session(bench, SESSION);
        bench.reply(get, gone);
        assert_eq!((bench.told(), bench.remote.session()), (vec![], Some("s-1")));
    });
}

/// As after a sleep: nothing says that the connection is dead. Streams of calls may be silent.
#[test]
fn a_stream_for_changes_that_is_silent() {
    let config = HttpClientConfig::DEFAULT.silence(60_000);
    in_pieces("http://h/mcp", config, |bench| {
        let get = open_session(bench, SESSION);
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.wait(59_999);
        bench.reply(get, &chunk(":\n\n"));
        bench.wait(59_999);
        assert_eq!(bench.remote.listening(), ListenState::Open);
        bench.wait(1);
        assert_eq!((bench.remote.listening(), &bench.sent[get]), (ListenState::Opening, &None));
        bench.wait(1_000);
        bench.find("GET");
    });
    for (method, is_lost) in [("subscriptions/listen", true), ("tools/call", false)] {
        in_pieces("http://h/mcp", config, |bench| {
            bench.send(&modern(1, method, ""));
            bench.reply(0, &stream(":\n\n"));
            bench.wait(60_000);
            let lost: &[&str] = if is_lost { &["1 Broken "] } else { &[] };
            assert_eq!(bench.told(), lost, "{method}");
        });
    }
    // On a kept connection that is dead, not even the head comes.
    for (silence, wait) in [(1_000, 1_000), (60_000, 30_000), (u64::MAX, 30_000)] {
        let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT.silence(silence));
        bench.send(&modern(1, "ping", ""));
        bench.reply(0, &json("200 OK", "", &result(1)));
        bench.told();
        bench.send(&modern(2, "subscriptions/listen", ""));
        bench.wait(wait - 1);
        assert_eq!((bench.connections, bench.told()), (1, vec![]));
        bench.wait(1);
        assert_eq!((bench.told(), &bench.sent[0]), (vec!["2 TimedOut ".into()], &None));
    }
}

/// From 2025-06-18 on there are no batches: an array that a client cannot read is no answer, and its request must
/// not wait for another.
#[test]
fn answers_in_arrays() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        bench.reply(get, "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
        let array = format!("[{}]", result(1));
        bench.send(&legacy(1, "tools/list"));
        let slot = bench.find("POST");
        bench.received(slot);
        bench.reply(slot, &json("200 OK", "", &array));
        assert_eq!(bench.told(), [format!("1 Garbage {array}")]);
        bench.send(&legacy(1, "tools/list"));
        let slot = bench.find("POST");
        bench.received(slot);
        bench.reply(slot, &stream(&format!("data: {array}\n\n")));
        bench.reply(slot, "0\r\n\r\n");
        assert_eq!(bench.told(), [format!("1 {array}"), "1 Unanswered ".into()]);
    });
}

/// Without this, the client would open it again without end.
#[test]
fn a_stream_that_is_answered_with_another_protocol_is_given_up() {
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        bench.reply(get, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
        assert_eq!((bench.told(), bench.remote.listening()), (vec![], ListenState::No));
        assert!(bench.sent[get].is_none() && bench.remote.session() == Some("s-1"));
    });
}

/// Nothing of what was under way is left: a message that was not finished, a hold, the stream for the server's own messages.
#[test]
fn shut_down_in_the_middle() {
    let mut bench = Bench::new("http://h/mcp", HttpClientConfig::DEFAULT);
    open_session(&mut bench, SESSION);
    bench.remote.begin(MessageHead::Request(&RequestInfo::new(0, "ping"))).unwrap();
    bench.remote.put(b"{\"half\"").unwrap();
    assert_eq!(bench.remote.begin(MessageHead::Request(&RequestInfo::new(0, "ping"))), Err(FullError::Now));
    bench.remote.hold(true);
    bench.remote.shut_down();
    bench.turn();
    assert!(bench.sent.iter().all(Option::is_none) && bench.remote.is_idle() && !bench.remote.held());
    bench.wait(600_000);
    assert!(bench.sent.iter().all(Option::is_none), "it listens yet");
    bench.send(&modern(1, "ping", ""));
    let request = bench.received(0);
    assert!(request.starts_with("POST /mcp") && !request.contains("half"), "{request}");
}
