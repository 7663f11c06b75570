//! The transport of 2024-11-05: HTTP with SSE.

use super::*;

// spec: T026
#[test]
fn the_old_transport_by_its_url() {
    in_pieces("http://h/sse", HttpClientConfig::DEFAULT.transport(TransportKind::Sse), |bench| {
        bench.send(&legacy(0, "initialize"));
        let stream_slot = bench.find("GET /sse HTTP/1.1\r\n");
        assert_eq!(bench.sent.iter().flatten().count(), 1, "nothing is posted before it is known where to");
        bench.reply(stream_slot, &stream("event: endpoint\ndata: /messages?id=7\n\n"));
        assert!(bench.remote.is_old());
        let slot = bench.find("POST /messages?id=7 HTTP/1.1\r\n");
        bench.received(slot);
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}"#;
        bench.reply(slot, ACCEPTED);
        bench.reply(stream_slot, &chunk(&format!("event: message\ndata: {answer}\n\n")));
        assert_eq!(bench.told(), [format!("0 {answer}")]);
        // The answer may come before the server accepts the message.
        bench.send(&legacy(1, "tools/call"));
        let slot = bench.find("POST /messages?id=7 HTTP/1.1\r\n");
        let ping = legacy(5, "ping");
        bench.reply(stream_slot, &chunk(&format!("data: {ping}\n\ndata: {}\n\ndata: {}\n\n", result(1), result(9))));
        assert_eq!(bench.told(), [format!("- {ping}"), format!("1 {}", result(1)), format!("- {}", result(9))]);
        bench.reply(slot, ACCEPTED);
        // The session ends with its stream.
        bench.send(&legacy(2, "tools/call"));
        bench.close(stream_slot);
        assert_eq!(bench.told(), ["2 SessionLost "]);
        bench.send(&legacy(3, "initialize"));
        let stream_slot = bench.find("GET /sse HTTP/1.1\r\n");
        bench.reply(stream_slot, &stream("event: endpoint\ndata: //evil/x\n\n"));
        assert_eq!(bench.told(), ["3 Endpoint "]);
        bench.send(&legacy(4, "initialize"));
        bench.reply(bench.find("GET"), "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told(), ["4 Status { code: 500, retry_after: None } "]);
        assert!(bench.remote.is_idle());
    });
}

/// The request whose message was accepted waits for the stream, and its connection only for the time of an idle one.
#[test]
fn a_connection_is_idle_while_the_answer_is_awaited_elsewhere() {
    let config = HttpClientConfig::DEFAULT.transport(TransportKind::Sse);
    let mut bench = Bench::new("http://h/sse", config);
    bench.send(&legacy(0, "initialize"));
    let stream_slot = bench.find("GET");
    bench.reply(stream_slot, &stream("event: endpoint\ndata: /messages\n\n"));
    let slot = bench.find("POST");
    bench.reply(slot, ACCEPTED);
    bench.wait(config.idle_time - 1);
    assert!(bench.sent[slot].is_some());
    bench.wait(1);
    assert!(bench.sent[slot].is_none() && bench.sent[stream_slot].is_some());
    bench.reply(stream_slot, &chunk(&format!("data: {}\n\n", result(0))));
    assert_eq!(bench.told(), [format!("0 {}", result(0))]);
}

/// A client without requests in flight must get this event too: its next message could not be answered.
#[test]
fn the_old_stream_is_gone_while_nothing_is_under_way() {
    for transport in [TransportKind::Sse, TransportKind::Detect] {
        in_pieces("http://h/sse", HttpClientConfig::DEFAULT.transport(transport), |bench| {
            bench.send(&legacy(0, "initialize"));
            if transport == TransportKind::Detect {
                bench.received(0);
                bench.reply(0, &json("405 No", "", ""));
            }
            let stream_slot = bench.find("GET /sse HTTP/1.1\r\n");
            bench.reply(stream_slot, &stream("event: endpoint\ndata: /messages\n\n"));
            let slot = bench.find("POST /messages HTTP/1.1\r\n");
            bench.reply(slot, ACCEPTED);
            bench.reply(stream_slot, &chunk(&format!("data: {}\n\n", result(0))));
            assert_eq!(bench.told(), [format!("0 {}", result(0))]);
            bench.close(stream_slot);
            assert_eq!(bench.told(), ["- SessionLost "]);
            assert!(bench.remote.is_idle() && !bench.remote.is_old());
        });
    }
}

// spec: T107
#[test]
fn the_old_transport_is_found_out() {
    for (status, body) in
        [("400 Bad", ""), ("404 No", "<html>"), ("405 No", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}"#)]
    {
        in_pieces("http://h/x/mcp", HttpClientConfig::DEFAULT, |bench| {
            bench.send(&legacy(0, "initialize"));
            bench.received(0);
            bench.reply(0, &json(status, "", body));
            assert!(bench.told().is_empty());
            let get = bench.find("GET /x/mcp HTTP/1.1\r\n");
            bench.reply(get, &stream("event: endpoint\ndata: http://h/x/post\n\n"));
            let slot = bench.find("POST /x/post HTTP/1.1\r\n");
            bench.received(slot);
            bench.reply(slot, ACCEPTED);
            bench.reply(get, &chunk(&format!("data: {}\n\n", result(0))));
            assert_eq!(bench.told(), [format!("0 {}", result(0))]);
        });
        // The server does not speak it: then the first answer counts.
        in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
            bench.send(&legacy(0, "initialize"));
            bench.received(0);
            bench.reply(0, &json(status, "", body));
            bench.reply(bench.find("GET"), &json("405 No", "", ""));
            let code = &status[..3];
            let expected = if body.starts_with('{') {
                format!("0 {body}")
            } else {
                format!("0 Status {{ code: {code}, retry_after: None }} {body}")
            };
            assert_eq!(bench.told(), [expected]);
            assert!(!bench.remote.is_old() && bench.remote.is_idle());
        });
    }
    let unknown = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"m"}}"#;
    in_pieces("http://h/mcp", HttpClientConfig::DEFAULT, |bench| {
        bench.send(&legacy(0, "initialize"));
        bench.reply(0, &json("404 No", "", unknown));
        assert_eq!(bench.told(), [format!("0 {unknown}")]);
    });
}
