//! Servers made of scripts: what a client sends to them, and what it makes of their answers wherever they are cut.

use super::*;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// What was told, as text.
type Told = Vec<String>;

/// A client with sockets that end in strings.
struct Bench {
    remote: Remote<'static, 4>,
    /// What was sent on each open connection and not looked at.
    sent: [Option<Vec<u8>>; 4],
    told: Told,
    now: u64,
    /// Bytes that are delivered at once; 0 means all.
    step: usize,
    connections: usize,
}

impl Bench {
    fn new(url: &str, config: Config) -> Bench {
        Bench {
            remote: Remote::growing(url, config).unwrap(),
            sent: [const { None }; 4],
            told: Vec::new(),
            now: 0,
            step: 0,
            connections: 0,
        }
    }

    fn send(&mut self, message: &str) {
        let kind = if !message.contains("\"method\"") {
            Kind::Result
        } else if message.contains("\"id\"") {
            Kind::Request
        } else {
            Kind::Notification
        };
        mcp_sansio::sink::whole(&mut self.remote, kind, |out| out.put(message.as_bytes())).unwrap();
        self.turn();
    }

    /// Carries out actions, takes what is sent, and listens, until nothing happens any more.
    fn turn(&mut self) {
        loop {
            let mut any = self.listen();
            while let Some(action) = self.remote.next_action() {
                any = true;
                match action {
                    Action::Connect(slot) => {
                        assert!(self.sent[slot].is_none(), "it is connected");
                        self.sent[slot] = Some(Vec::new());
                        self.connections += 1;
                        self.remote.connected(slot);
                    }
                    Action::Close(slot) => {
                        assert!(self.sent[slot].take().is_some(), "it is not connected");
                    }
                }
            }
            for slot in 0..4 {
                let n = self.remote.pending(slot).len();
                if n > 0 {
                    any = true;
                    let sent = self.sent[slot].as_mut().expect("a connection");
                    sent.extend_from_slice(self.remote.pending(slot));
                    self.remote.sent(slot, n);
                }
            }
            if !any {
                break;
            }
        }
    }

    fn listen(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.remote.next_event() {
            any = true;
            self.told.push(match event {
                Event::Message { request, bytes } => {
                    format!("{} {}", id(request), String::from_utf8_lossy(bytes))
                }
                Event::Failed { request, why, detail } => format!("{} {why:?} {detail}", id(request)),
                Event::Challenge { slot, request, status, www_authenticate } => {
                    format!("{} challenge {slot} {status} {www_authenticate}", id(request))
                }
                Event::Skipped { request, why, start } => {
                    format!("{} skipped {why:?} {}", id(request), String::from_utf8_lossy(start))
                }
                Event::Ended => "ended".to_string(),
            });
        }
        any
    }

    /// The request that came on a connection, of which there is one.
    fn received(&mut self, slot: usize) -> String {
        let bytes = core::mem::take(self.sent[slot].as_mut().unwrap_or_else(|| panic!("{slot} is not connected")));
        String::from_utf8(bytes).unwrap()
    }

    /// The connection on which something was sent that begins like this.
    fn find(&self, start: &str) -> usize {
        let found = |sent: &Option<Vec<u8>>| sent.as_ref().is_some_and(|sent| sent.starts_with(start.as_bytes()));
        self.sent.iter().position(found).unwrap_or_else(|| panic!("no {start} in {:?}", self.sent))
    }

    fn reply(&mut self, slot: usize, bytes: &str) {
        let mut rest = bytes.as_bytes();
        while !rest.is_empty() {
            let space = self.remote.space(slot);
            let step = if self.step == 0 { rest.len() } else { self.step };
            let n = space.len().min(step).min(rest.len());
            if n == 0 {
                break; // it is closed
            }
            let (now, later) = rest.split_at(n);
            space[..n].copy_from_slice(now);
            rest = later;
            self.remote.filled(slot, n);
            self.turn();
        }
    }

    fn close(&mut self, slot: usize) {
        self.sent[slot] = None;
        self.remote.closed(slot);
        self.turn();
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.remote.expire(self.now);
        self.turn();
    }

    fn told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }
}

fn id(request: Option<u64>) -> String {
    request.map_or("-".to_string(), |id| id.to_string())
}

fn json(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn stream(body: &str) -> String {
    let chunk = if body.is_empty() { String::new() } else { chunk(body) };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"
    )
}

fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn modern(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{META}}}}}"#)
}

fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// Runs a script with answers whole, byte by byte, and in other pieces.
fn in_pieces(url: &str, config: Config, script: impl Fn(&mut Bench)) {
    for step in [0, 1, 2, 3, 5, 7, 16, 61] {
        let mut bench = Bench::new(url, config);
        bench.step = step;
        script(&mut bench);
    }
}

#[test]
fn modern_requests_over_one_connection() {
    in_pieces("http://localhost:80/mcp", Config::DEFAULT, |bench| {
        bench.send(&modern(1, "tools/list", ""));
        let request = bench.received(0);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            head,
            format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost:80\r\nAccept: application/json, text/event-stream\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                 Mcp-Method: tools/list",
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
            request.contains("\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\nMcp-Param-Region: =?base64?w6k=?=\r\n\r\n")
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

/// `notifications/initialized` and what comes before it, with a session; the streams of the server's own opens at the end.
fn open_session(bench: &mut Bench, headers: &str) -> usize {
    bench.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
    let request = bench.received(0);
    assert!(!request.contains("Mcp-") && !request.contains("MCP-"), "{request}");
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    bench.reply(0, &json("200 OK", headers, answer));
    assert_eq!(bench.told(), [format!("0 {answer}")]);
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let request = bench.received(0);
    assert!(request.contains("\r\nMCP-Protocol-Version: 2025-06-18\r\n"), "{request}");
    assert_eq!(request.contains("\r\nMcp-Session-Id: s-1\r\n"), headers.contains("s-1"), "{request}");
    bench.reply(0, ACCEPTED);
    assert!(bench.told().is_empty());
    bench.find("GET /mcp HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n")
}

const SESSION: &str = "mcp-session-id: s-1\r\n";

fn legacy(id: u64, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

#[test]
fn a_legacy_session_from_its_opening_to_its_end() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        assert_eq!(bench.remote.listening(), Listening::Opening);
        assert!(bench.received(get).ends_with("\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: s-1\r\n\r\n"));
        let asks = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
        bench.reply(get, &stream(&format!("id: 7\nretry: 20\ndata: \n\nid: 8\ndata: {asks}\n\n")));
        assert_eq!(bench.remote.listening(), Listening::Open);
        assert_eq!(bench.told(), [format!("- {asks}")]);
        // Two requests, and there is still a slot for the answer.
        bench.send(&legacy(1, "tools/call"));
        bench.send(&legacy(2, "tools/call"));
        let busy = mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(b"{}"));
        assert_eq!(busy, Err(Full::Now));
        bench.send(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
        for slot in (0..4).filter(|slot| *slot != get) {
            let request = bench.received(slot);
            assert!(request.contains("\r\nMcp-Session-Id: s-1\r\n"));
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
        // The stream breaks off and is taken up again behind the last event.
        bench.close(get);
        assert_eq!(bench.remote.listening(), Listening::Opening);
        bench.wait(19);
        assert!(bench.sent[get].is_none());
        bench.wait(1);
        assert!(bench.received(get).contains("\r\nLast-Event-ID: 8\r\n"));
        bench.reply(get, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.remote.listening(), Listening::No);
        assert!(bench.remote.end_session());
        bench.turn();
        let slot = bench.find("DELETE /mcp HTTP/1.1\r\n");
        assert!(bench.received(slot).contains("\r\nMcp-Session-Id: s-1\r\n"));
        bench.reply(slot, "HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(bench.told(), ["ended"]);
        assert_eq!(bench.remote.session(), None);
        assert!(!bench.remote.end_session());
    });
}

/// Requests would otherwise overtake `notifications/initialized` on another connection.
#[test]
fn requests_wait_for_initialized() {
    let begin = |bench: &mut Bench| {
        bench.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
        bench.received(0);
        let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        bench.reply(0, &json("200 OK", SESSION, answer));
        bench.told();
        assert_eq!(bench.remote.listening(), Listening::No);
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(bench.remote.listening(), Listening::Opening);
        bench.send(&legacy(1, "tools/list"));
        assert_eq!(bench.sent.iter().flatten().count(), 1);
        assert!(bench.received(0).contains("initialized"));
    };
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        begin(bench);
        bench.reply(0, ACCEPTED);
        let get = bench.find("GET ");
        bench.received(get);
        let post = bench.find("POST ");
        assert!(bench.received(post).contains("tools/list"));
        bench.reply(get, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.remote.listening(), Listening::No);
        bench.reply(post, &json("200 OK", "", &result(1)));
        assert_eq!(bench.told(), [format!("1 {}", result(1))]);
    });
    // A challenge is no answer.
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
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
    // Servers that refuse it, lose it, or do not answer it get the request all the same.
    for refusal in ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "", "-"] {
        in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
            begin(bench);
            match refusal {
                "" => bench.close(0),
                "-" => bench.wait(Config::DEFAULT.reply_time),
                refusal => bench.reply(0, refusal),
            }
            let post = bench.find("POST ");
            // It may be sent once more where the connection had been used before.
            assert!(bench.received(post).contains("tools/list") || refusal.is_empty());
        });
    }
    // The session is lost with it.
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        begin(bench);
        bench.reply(0, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told().last().map(String::as_str), Some("1 SessionLost "));
    });
}

#[test]
fn a_session_that_is_lost() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
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
        assert_eq!((bench.remote.session(), bench.remote.listening()), (None, Listening::No));
        assert!(bench.sent.iter().all(Option::is_none), "all connections of the session are closed");
        open_session(&mut *bench, SESSION);
    });
}

#[test]
fn a_broken_stream_is_resumed() {
    in_pieces("http://h/mcp", Config::DEFAULT.listen(false), |bench| {
        let first = "id: 1\nretry: 500\ndata:\n\n";
        bench.send(&legacy(7, "tools/call"));
        bench.received(0);
        bench.reply(0, &stream(first));
        bench.reply(0, "0\r\n\r\n");
        bench.wait(499);
        assert_eq!(bench.remote.next_deadline(), Some(500));
        bench.wait(1);
        assert!(bench.received(0).starts_with("GET /mcp HTTP/1.1\r\n"));
        // In vain, and each time after a longer wait.
        bench.close(0);
        bench.wait(999);
        assert!(bench.sent[0].is_none());
        bench.wait(1);
        assert!(bench.received(0).contains("\r\nLast-Event-ID: 1\r\n"));
        bench.reply(0, &stream(&format!("id: 2\ndata: {}\n\n", result(7))));
        assert_eq!(bench.told(), [format!("7 {}", result(7))]);
        bench.close(0);
        // Without an id there is nothing to go on from.
        bench.send(&legacy(8, "tools/call"));
        bench.reply(0, &stream("retry: 1\ndata:\n\n"));
        bench.close(0);
        assert_eq!(bench.told(), ["8 Broken "]);
        // It is not tried for ever.
        bench.send(&legacy(9, "tools/call"));
        bench.reply(0, &stream(first));
        bench.close(0);
        for _ in 0..5 {
            bench.wait(60_000);
            bench.close(0);
        }
        assert_eq!(bench.told(), ["9 Reset "]);
        // What the server has given up is given up.
        bench.send(&legacy(10, "tools/call"));
        bench.reply(0, &stream(first));
        bench.close(0);
        bench.wait(500);
        bench.reply(0, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(bench.told(), ["10 Broken "]);
    });
}

#[test]
fn modern_streams_are_never_resumed() {
    in_pieces("http://h/", Config::DEFAULT, |bench| {
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

#[test]
fn failures() {
    let bad = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let cases: Vec<(String, bool, &str)> = vec![
        (String::new(), true, "1 Reset "),
        ("HTTP/1.1 2".into(), true, "1 Broken "),
        (json("200 OK", "", &result(1))[..80].into(), true, "1 Broken "),
        ("SSH-2.0-x\r\n".into(), false, "1 NotHttp "),
        ("\x16\x03\x01".into(), false, "1 NotHttp "),
        (bad("200 OK", "", ""), false, "1 Unanswered "),
        (ACCEPTED.into(), false, "1 Unanswered "),
        (bad("200 OK", "Content-Type: text/html\r\n", "<p>"), false, "1 ContentType "),
        (json("200 OK", "Content-Encoding: gzip\r\n", "x"), false, "1 ContentType "),
        (json("200 OK", "", "{"), false, "1 Garbage "),
        (json("200 OK", "", &result(2)), false, "1 Garbage "),
        (json("200 OK", "", &legacy(1, "ping")), false, "1 Garbage "),
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
        in_pieces("http://h/", Config::DEFAULT, |bench| {
            bench.send(&modern(1, "tools/call", ""));
            bench.reply(0, &reply);
            if close {
                bench.close(0);
            }
            assert_eq!(bench.told(), [expected], "{reply}");
            assert!(bench.remote.is_idle());
            // And it goes on.
            bench.send(&modern(2, "tools/call", ""));
            let slot = bench.find("POST");
            bench.reply(slot, &json("200 OK", "Connection: close\r\n", &result(2)));
            assert_eq!(bench.told(), [format!("2 {}", result(2))]);
            assert!(bench.sent[slot].is_none());
        });
    }
}

#[test]
fn the_old_transport_by_its_url() {
    in_pieces("http://h/sse", Config::DEFAULT.transport(Transport::Sse), |bench| {
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
        // The answer may come before the message is said to be accepted.
        bench.send(&legacy(1, "tools/call"));
        let slot = bench.find("POST /messages?id=7 HTTP/1.1\r\n");
        let ping = legacy(5, "ping");
        bench.reply(stream_slot, &chunk(&format!("data: {ping}\n\ndata: {}\n\ndata: {}\n\n", result(1), result(9))));
        assert_eq!(bench.told(), [format!("- {ping}"), format!("1 {}", result(1)), format!("- {}", result(9))]);
        bench.reply(slot, ACCEPTED);
        // When the stream is gone, so is the session.
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

/// A client that waits for nothing has to learn of it too: what it would send next would be for nobody.
#[test]
fn the_old_stream_is_gone_while_nothing_is_under_way() {
    for transport in [Transport::Sse, Transport::Detect] {
        in_pieces("http://h/sse", Config::DEFAULT.transport(transport), |bench| {
            bench.send(&legacy(0, "initialize"));
            if transport == Transport::Detect {
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

#[test]
fn the_old_transport_is_found_out() {
    for (status, body) in
        [("400 Bad", ""), ("404 No", "<html>"), ("405 No", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}"#)]
    {
        in_pieces("http://h/x/mcp", Config::DEFAULT, |bench| {
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
        // It is not, after all: then what was answered first counts.
        in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
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
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        bench.send(&legacy(0, "initialize"));
        bench.reply(0, &json("404 No", "", unknown));
        assert_eq!(bench.told(), [format!("0 {unknown}")]);
    });
}

#[test]
fn challenges() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        let challenge = "WWW-Authenticate: Basic x\r\nWWW-Authenticate: Bearer scope=\"a\"\r\n";
        bench.send(&modern(1, "tools/call", ""));
        let first = bench.received(0);
        bench.reply(0, &json("401 Unauthorized", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 401 Bearer scope=\"a\""]);
        assert!(!bench.remote.is_idle());
        bench.wait(100_000);
        bench.remote.set_header("Authorization", "Bearer t").unwrap();
        bench.remote.retry(0);
        bench.turn();
        assert_eq!(bench.received(0), first.replace("tools/call\r\n", "tools/call\r\nAuthorization: Bearer t\r\n"));
        bench.reply(0, &json("403 Forbidden", challenge, "{}"));
        assert_eq!(bench.told(), ["1 challenge 0 403 Bearer scope=\"a\""]);
        bench.remote.give_up(0);
        bench.remote.give_up(0);
        bench.turn();
        assert_eq!(bench.told(), ["1 GivenUp "]);
        bench.remote.retry(0);
        bench.turn();
        assert!(bench.remote.is_idle() && bench.told().is_empty());
    });
}

#[test]
fn headers_of_the_callers_own() {
    let mut remote: Remote<'_, 1> = Remote::growing("http://h", Config::DEFAULT).unwrap();
    for name in ["", "a b", "a:", "é"] {
        assert_eq!(remote.set_header(name, "x"), Err(BadHeader::Name), "{name}");
    }
    for name in ["Host", "content-length", "Mcp-Session-Id", "mcp-param-x"] {
        assert_eq!(remote.set_header(name, "x"), Err(BadHeader::Reserved), "{name}");
    }
    for value in [" a", "a\r\nb: c", "\0", "a\t"] {
        assert_eq!(remote.set_header("X", value), Err(BadHeader::Value), "{value:?}");
    }
    let long = "x".repeat(1 << 16);
    remote.set_header("X", "1").unwrap();
    assert_eq!(remote.set_header("x", &long), Err(BadHeader::Room));
    remote.set_header("x", "2").unwrap();
    remote.set_header("Y", "3").unwrap();
    remote.remove_header("y");
    assert_eq!(remote.site.headers().collect::<Vec<_>>(), [b"x: 2"]);
}

#[test]
fn redirects_on_the_same_origin() {
    let mut bench = Bench::new("http://h/a/mcp", Config::DEFAULT);
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

/// Some servers say 408 before they close a connection that is idle.
#[test]
fn a_kept_connection_on_which_something_came_unasked() {
    let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
    bench.send(&modern(1, "ping", ""));
    bench.received(0);
    bench.reply(0, &json("200 OK", "", &result(1)));
    bench.told();
    let message = modern(2, "tools/call", "");
    mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
    bench.reply(0, &json("408 Request Timeout", "Connection: close\r\n", "late"));
    assert_eq!((bench.told(), bench.connections), (vec![], 2));
    assert!(bench.received(0).ends_with(&message));
    bench.reply(0, &json("200 OK", "", &result(2)));
    assert_eq!(bench.told(), [format!("2 {}", result(2))]);
}

/// Proxies cut streams on which nothing comes.
#[test]
fn a_quiet_stream_is_opened_again_and_again() {
    let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
    let mut get = open_session(&mut bench, SESSION);
    for _ in 0..20 {
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.wait(60_000);
        bench.close(get);
        bench.wait(1_000);
        get = bench.find("GET");
    }
    // But not one that is closed at once; the last one was tried once.
    let mut tries = 1;
    while bench.remote.listening() != Listening::No {
        tries += 1;
        bench.reply(get, &stream(""));
        bench.received(get);
        bench.close(get);
        bench.wait(60_000);
        get = bench.sent.iter().position(|sent| sent.as_ref().is_some_and(|sent| !sent.is_empty())).unwrap_or(get);
    }
    assert_eq!(tries, 6);
}

/// A client that merely listens has to learn of it too.
#[test]
fn a_session_that_is_lost_while_nothing_is_under_way() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        let gone = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        let get = open_session(bench, SESSION);
        bench.reply(get, &stream(""));
        bench.close(get);
        bench.wait(1_000);
        bench.reply(bench.find("GET"), gone);
        assert_eq!(bench.told(), ["- SessionLost "]);
        assert_eq!((bench.remote.session(), bench.remote.listening()), (None, Listening::No));
        // Of a stream that never was it says nothing.
        let get = open_session(bench, SESSION);
        bench.reply(get, gone);
        assert_eq!((bench.told(), bench.remote.session()), (vec![], Some("s-1")));
    });
}

#[test]
fn an_answer_that_is_announced_and_never_comes() {
    let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
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

/// From 2025-06-18 on there are none: what a client cannot read is no answer, and its request must not wait for another.
#[test]
fn answers_in_arrays() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        let get = open_session(bench, SESSION);
        bench.reply(get, "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
        let array = format!("[{}]", result(1));
        bench.send(&legacy(1, "tools/list"));
        let slot = bench.find("POST");
        bench.received(slot);
        bench.reply(slot, &json("200 OK", "", &array));
        assert_eq!(bench.told(), ["1 Garbage "]);
        bench.send(&legacy(1, "tools/list"));
        let slot = bench.find("POST");
        bench.received(slot);
        bench.reply(slot, &stream(&format!("data: {array}\n\n")));
        bench.reply(slot, "0\r\n\r\n");
        assert_eq!(bench.told(), [format!("1 {array}"), "1 Unanswered ".into()]);
    });
}

/// A client with two connections; what it is told.
fn web(profile: &'static mcp_sansio::client::Profile<'static>) -> Web<'static, 4, 2> {
    let client = mcp_sansio::client::Client::growing(profile).timeout(5_000);
    let mut web = Web::growing(client, Remote::growing("http://h/mcp", Config::DEFAULT).unwrap());
    web.client().connect_as(Revision::V2026_07_28);
    web
}

const PROFILE: mcp_sansio::client::Profile<'static> = mcp_sansio::client::Profile::new("test", "1");

/// What waits for a slot does not keep others from taking too long.
#[test]
fn time_goes_on_while_all_slots_are_taken() {
    use mcp_sansio::client::{Event as Told, Filter, Link, Request};
    let mut web = web(&PROFILE);
    let first = web.link().send(&Request::list_tools()).unwrap();
    web.link().send(&Request::list_prompts()).unwrap();
    web.link().cancel(first, None).unwrap();
    // It has a place before the other's.
    let listen = web.client().listen(&Filter::new().tools()).unwrap();
    let mut told = Vec::new();
    let mut handler = |event: Told<'_>, _: &mut Link<'_, '_>| told.push(format!("{event:?}"));
    while web.run(0, &mut handler, &mut ()) {}
    web.link().send(&Request::list_resources()).unwrap();
    while web.run(1, &mut handler, &mut ()) {}
    assert!(web.next_deadline().is_some_and(|due| due <= 5_000));
    while web.run(5_001, &mut handler, &mut ()) {}
    assert!(told.iter().any(|told| told.contains("TimedOut")), "{told:?}");
    assert!(web.engine().is_open(listen));
}

/// A user takes minutes to log in. Neither does the probe count as unanswered then.
#[test]
fn time_stands_still_while_somebody_gives_credentials() {
    use mcp_sansio::client::{Event as Told, Link, Request};
    struct Later;
    impl Hooks for Later {
        fn challenged(&mut self, _: &Challenge<'_>, _: &mut Headers<'_>) -> Verdict {
            Verdict::Later
        }
    }
    for probes in [true, false] {
        let mut web = web(&PROFILE);
        if probes {
            web.client().connect();
        } else {
            web.link().send(&Request::list_tools()).unwrap();
        }
        let mut told = Vec::new();
        let mut handler = |event: Told<'_>, _: &mut Link<'_, '_>| told.push(format!("{event:?}"));
        while web.run(0, &mut handler, &mut Later) {}
        assert_eq!(web.remote().next_action(), Some(Action::Connect(0)));
        web.remote().connected(0);
        let n = web.remote().pending(0).len();
        web.remote().sent(0, n);
        let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        web.remote().space(0)[..answer.len()].copy_from_slice(answer);
        web.remote().filled(0, answer.len());
        while web.run(4_000, &mut handler, &mut Later) {}
        assert_eq!(web.next_deadline(), None);
        while web.run(400_000, &mut handler, &mut Later) {}
        assert!(web.engine().awaits(1), "{probes}");
        web.retry(0);
        while web.run(500_000, &mut handler, &mut Later) {}
        assert_eq!(web.next_deadline(), Some(505_000), "it begins again");
        while web.run(505_000, &mut handler, &mut Later) {}
        assert_eq!(told.len(), usize::from(!probes), "{told:?}");
    }
}

/// However many are challenged in turn.
#[test]
fn challenges_are_bounded() {
    use mcp_sansio::client::{Event as Told, Link, Request};
    struct Always(u32);
    impl Hooks for Always {
        fn challenged(&mut self, _: &Challenge<'_>, _: &mut Headers<'_>) -> Verdict {
            self.0 += 1;
            Verdict::Retry
        }
    }
    let mut web = web(&PROFILE);
    web.link().send(&Request::list_tools()).unwrap();
    web.link().send(&Request::list_prompts()).unwrap();
    let (mut hooks, mut failed) = (Always(0), 0);
    let mut handler = |event: Told<'_>, _: &mut Link<'_, '_>| failed += u32::from(matches!(event, Told::Done { .. }));
    for _ in 0..100 {
        while web.run(0, &mut handler, &mut hooks) {}
        while let Some(action) = web.remote().next_action() {
            if let Action::Connect(slot) = action {
                web.remote().connected(slot);
            }
        }
        for slot in 0..2 {
            let n = web.remote().pending(slot).len();
            web.remote().sent(slot, n);
            if n > 0 {
                let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
                web.remote().space(slot)[..answer.len()].copy_from_slice(answer);
                web.remote().filled(slot, answer.len());
            }
        }
    }
    assert_eq!((failed, hooks.0), (2, 2 * u32::from(CHALLENGES)));
}

#[test]
fn a_kept_connection_that_was_closed_meanwhile() {
    let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
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
    // Not all of it was sent: nobody can have done it.
    let message = modern(4, "tools/call", "");
    mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
    let n = bench.remote.pending(0).len() - 1;
    bench.remote.sent(0, n);
    bench.close(0);
    assert!(bench.received(0).ends_with(&message));
}

#[test]
fn times() {
    let config = Config::DEFAULT;
    let mut bench = Bench::new("http://h/mcp", config);
    let message = modern(1, "ping", "");
    mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
    assert_eq!(bench.remote.next_action(), Some(Action::Connect(0)));
    bench.remote.expire(9_999);
    assert!(bench.remote.next_event().is_none());
    bench.remote.expire(10_000);
    bench.listen();
    assert_eq!(bench.told(), ["1 TimedOut "]);
    assert_eq!(bench.remote.next_action(), Some(Action::Close(0)));
    bench.now = 10_000;
    // A server that does not read.
    mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
    let _ = bench.remote.next_action();
    bench.sent[0] = Some(Vec::new());
    bench.remote.connected(0);
    bench.remote.sent(0, 1);
    bench.remote.expire(39_999);
    assert!(bench.remote.next_event().is_none());
    bench.wait(30_000);
    assert_eq!(bench.told(), ["1 TimedOut "]);
    // A request may take as long as the caller lets it; what is none is answered soon.
    bench.send(&modern(2, "tools/call", ""));
    bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    bench.wait(30_000);
    assert_eq!(bench.told(), ["- TimedOut "]);
    bench.wait(3_000_000);
    bench.reply(0, &json("200 OK", "", &result(2)));
    assert_eq!(bench.told(), [format!("2 {}", result(2))]);
}

#[test]
fn a_notification_that_is_not_taken() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        bench.reply(0, &json("400 Bad", "", r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}"#));
        let told = bench.told();
        assert!(told[0].starts_with("- Status { code: 400, retry_after: None } {\"jsonrpc\""), "{told:?}");
        bench.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        bench.reply(0, &json("200 OK", "", r#"{"jsonrpc":"2.0","result":{}}"#));
        assert!(bench.told().is_empty() && bench.remote.is_idle());
    });
}

#[test]
fn limits_of_lent_storage() {
    let (mut texts, mut tools) = ([0; 64], [0; 64]);
    let (mut input, mut message, mut output) = ([0; 64], [0; 48], [0; 2048]);
    let slot = Slot::new(&mut input, &mut message, &mut output);
    let mut remote: Remote<'_, 1> =
        Remote::new("http://h/mcp", Config::DEFAULT, &mut texts, &mut tools, [slot]).unwrap();
    assert_eq!(remote.capacity(), 1024);
    let ask = |remote: &mut Remote<'_, 1>, reply: &str| {
        let message = modern(1, "ping", "");
        mcp_sansio::sink::whole(remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
        while let Some(action) = remote.next_action() {
            if let Action::Connect(slot) = action {
                remote.connected(slot);
            }
        }
        let n = remote.pending(0).len();
        remote.sent(0, n);
        let mut rest = reply.as_bytes();
        let mut told = Vec::new();
        loop {
            let space = remote.space(0);
            let n = space.len().min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            remote.filled(0, n);
            match remote.next_event() {
                Some(Event::Message { bytes, .. }) => told.push(format!("{} bytes", bytes.len())),
                Some(Event::Failed { why, .. }) => told.push(format!("{why:?}")),
                Some(other) => panic!("{other:?}"),
                None if n == 0 => break,
                None => {}
            }
        }
        let _ = remote.next_action();
        told
    };
    let head =
        |length: usize| format!("HTTP/1.1 200 \r\nContent-Type:application/json\r\nContent-Length:{length}\r\n\r\n");
    assert!(head(48).len() > 64);
    assert_eq!(ask(&mut remote, &head(36)), ["TooLarge"], "the head does not fit");
    let head = "HTTP/1.1 200\r\nContent-Type:application/json\r\n\r\n";
    let body = |len: usize| format!("{head}{}{}", result(1), " ".repeat(len - result(1).len()));
    assert_eq!(ask(&mut remote, &body(49)), ["TooLarge"]);
    let events = "HTTP/1.1 200\r\nContent-Type:text/event-stream\r\n\r\n";
    let event = |len: usize| format!("{events}data:{}{}\n\n", result(1), " ".repeat(len - result(1).len()));
    assert_eq!(ask(&mut remote, &event(47)), ["47 bytes"]);
    assert_eq!(ask(&mut remote, &event(48)), ["TooLarge"]);
    assert_eq!(remote.set_header("a", &"x".repeat(40)), Err(BadHeader::Room));
    let large = mcp_sansio::sink::whole(&mut remote, Kind::Request, |out| out.put(&[b' '; 1025]));
    assert_eq!(large, Err(Full::Never));
    assert!(remote.is_idle());
}

#[test]
fn what_is_skipped_in_streams() {
    in_pieces("http://h/mcp", Config::DEFAULT, |bench| {
        bench.send(&modern(1, "tools/call", ""));
        let body = format!("data: {{\n\nevent: other\ndata: 1\n\n: hi\n\ndata: [{}]\n\n", result(1));
        bench.reply(0, &stream(&body));
        assert_eq!(bench.told(), ["1 skipped Garbage {".to_string(), format!("1 [{}]", result(1))]);
    });
}

/// Wherever a connection is lost, and however: each request comes to exactly one end, in bounded time.
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
                let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
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

/// What is decided at once, before the next event is asked for, counts all the same.
#[test]
fn decisions_in_the_middle_of_events() {
    let mut bench = Bench::new("http://h/mcp", Config::DEFAULT);
    let message = modern(1, "ping", "");
    let ask = |bench: &mut Bench| {
        mcp_sansio::sink::whole(&mut bench.remote, Kind::Request, |out| out.put(message.as_bytes())).unwrap();
        while bench.remote.next_action().is_some() {}
        bench.sent[0] = Some(Vec::new());
        bench.remote.connected(0);
        let n = bench.remote.pending(0).len();
        bench.remote.sent(0, n);
        let reply = json("401 No", "", "");
        bench.remote.space(0)[..reply.len()].copy_from_slice(reply.as_bytes());
        bench.remote.filled(0, reply.len());
        assert!(matches!(bench.remote.next_event(), Some(Event::Challenge { slot: 0, .. })));
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

/// Headers that do not fit end what needs them, and nothing is tried for ever.
#[test]
fn heads_that_do_not_fit() {
    let (mut texts, mut memory) = ([0; 4096], [[0; 1024]; 6]);
    let mut parts = memory.iter_mut();
    let slots = core::array::from_fn(|_| {
        let [a, b, c] = core::array::from_fn(|_| parts.next().unwrap());
        Slot::new(a, b, c)
    });
    let mut remote: Remote<'_, 2> = Remote::new("http://h", Config::DEFAULT, &mut texts, Store::none(), slots).unwrap();
    remote.set_header("x", &"y".repeat(2000)).unwrap();
    // Nothing fits beside the room for a head.
    let message = mcp_sansio::sink::whole(&mut remote, Kind::Notification, |out| out.put(b"{}"));
    assert_eq!((message, remote.capacity()), (Err(Full::Never), 0));
    remote.begin(Kind::Notification).unwrap();
    remote.end();
    assert!(matches!(remote.next_event(), Some(Event::Failed { request: None, why: Why::NoRoom, .. })));
    remote.site.listening = Listening::Opening;
    assert!(remote.next_event().is_none());
    assert_eq!(remote.listening(), Listening::No);
}
