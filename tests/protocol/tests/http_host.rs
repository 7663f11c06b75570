//! Whole exchanges as bytes: a wire connection served by an endpoint.
use crate::common;

use common::{World, call, everything, initialize, json};
use mcp_sansio::server::{MessageLimits as ServerLimits, NotifyStatus, Progress, Server};
use mcp_sansio::service::Service;
use mcp_sansio_http::endpoint::{App, Endpoint, EndpointConfig, EndpointLimits};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

struct Site {
    endpoint: Endpoint<'static>,
    service: Service<'static, World>,
    world: World,
    body: BodyBuffer<Vec<u8>>,
    now: u64,
}

struct Client {
    http: HttpConnection<'static>,
    seen: Vec<u8>,
    wait: WaitFor,
}

impl Client {
    fn new(input: usize, output: usize) -> Client {
        let (input, output) = (vec![0; input].leak(), vec![0; output].leak());
        Client {
            http: HttpConnection::new(&mut *input, &mut *output, ConnectionLimits::default()),
            seen: Vec::new(),
            wait: WaitFor::Read,
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.seen.clone()).unwrap()
    }

    /// Returns the body, with its chunks joined.
    fn body(&self) -> String {
        let text = self.text();
        let (_, mut rest) = text.split_once("\r\n\r\n").unwrap();
        let mut body = String::new();
        loop {
            let (size, chunk) = rest.split_once("\r\n").expect("a chunk");
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 {
                return body;
            }
            body.push_str(&chunk[..size]);
            rest = chunk[size..].strip_prefix("\r\n").unwrap();
        }
    }
}

impl Site {
    fn new() -> Site {
        let server = Server::growing(ServerLimits::default());
        Site {
            endpoint: Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default()),
            service: everything::service(),
            world: World::default(),
            body: BodyBuffer::new(Vec::new()),
            now: 0,
        }
    }

    /// Serves until it waits for input, taking at most `gulp` pending bytes at a time.
    fn serve(&mut self, client: &mut Client, gulp: usize) {
        for _ in 0..100_000 {
            let mut app = App::new(&self.service, &mut self.world);
            let mut host =
                ServeContext { endpoint: &mut self.endpoint, app: &mut app, body: &mut self.body, now: self.now };
            client.wait = client.http.serve(&mut host, &mut |bytes| bytes.fill(9));
            let n = client.http.connection.pending().len().min(gulp);
            client.seen.extend_from_slice(&client.http.connection.pending()[..n]);
            client.http.connection.sent(n);
            if n == 0 || (client.wait == WaitFor::Read && !client.http.connection.has_pending()) {
                return;
            }
        }
        panic!("it spins");
    }

    fn feed(&mut self, client: &mut Client, mut bytes: &[u8], cut: usize) {
        while !bytes.is_empty() {
            let space = client.http.space();
            let n = space.len().min(cut).min(bytes.len());
            if n == 0 {
                return; // it takes no more for now
            }
            space[..n].copy_from_slice(&bytes[..n]);
            client.http.connection.filled(n);
            bytes = &bytes[n..];
            self.serve(client, usize::MAX);
        }
    }

    fn leave(&mut self, client: &mut Client) {
        let mut app = App::new(&self.service, &mut self.world);
        let mut host =
            ServeContext { endpoint: &mut self.endpoint, app: &mut app, body: &mut self.body, now: self.now };
        client.http.leave(&mut host);
    }
}

fn post(session: Option<&str>, body: &str) -> String {
    let session = session.map_or(String::new(), |session| format!("Mcp-Session-Id: {session}\r\n"));
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn modern(tool: &str) -> String {
    let body = call("2026-07-28", 1, tool, json!({}));
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn opened(site: &mut Site) -> String {
    let mut client = Client::new(4096, 8192);
    site.feed(&mut client, post(None, &initialize("2025-11-25", json!({}))).as_bytes(), usize::MAX);
    let text = client.text();
    let (_, rest) = text.split_once("Mcp-Session-Id: ").expect("a session");
    rest[..32].to_owned()
}

fn whole_exchange(cut: usize) -> String {
    let mut site = Site::new();
    let mut client = Client::new(4096, 8192);
    let session = opened(&mut site);
    let requests = [
        post(Some(&session), &call("2025-11-25", 1, "count", json!({}))),
        post(Some(&session), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        post(Some(&session), &call("2025-11-25", 2, "gossip", json!({}))),
        post(Some("nonsense"), &call("2025-11-25", 3, "count", json!({}))),
        format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n\r\n"),
        "PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned(),
    ]
    .concat();
    site.feed(&mut client, requests.as_bytes(), cut);
    assert_eq!(site.endpoint.load(), (0, 0, 0));
    client.text()
}

#[test]
fn however_it_is_cut() {
    let whole = whole_exchange(usize::MAX);
    let statuses: Vec<&str> = whole.match_indices("HTTP/1.1 ").map(|(at, _)| &whole[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "202", "200", "404", "204", "405"], "{whole}");
    assert!(whole.contains("text/event-stream") && whole.contains("X-Accel-Buffering: no"));
    for cut in [1, 2, 3, 7, 64, 100, 333] {
        assert_eq!(whole_exchange(cut), whole, "cut {cut}");
    }
}

// spec: T005 T031 T040 T117 T141
#[test]
fn answers_say_their_type() {
    let mut site = Site::new();
    let session = opened(&mut site);
    let get = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    for (request, is_stream) in [
        (post(Some(&session), &call("2025-11-25", 1, "count", json!({}))), false),
        (post(Some(&session), &call("2025-11-25", 1, "gossip", json!({}))), true),
        (get, true),
        (modern("count"), false),
        (modern("later"), true),
    ] {
        let mut client = Client::new(4096, 8192);
        site.feed(&mut client, request.as_bytes(), usize::MAX);
        let text = client.text();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(&format!("\r\nContent-Type: {kind}")), "{head}");
        assert_eq!(head.contains("\r\nX-Accel-Buffering: no"), is_stream, "{head}");
    }
}

// spec: T037
#[test]
fn an_abort_frees_everything() {
    let mut site = Site::new();
    let session = opened(&mut site);
    for request in [modern("later"), post(Some(&session), &call("2025-11-25", 1, "later", json!({})))] {
        let mut client = Client::new(4096, 8192);
        site.feed(&mut client, request.as_bytes(), 50);
        assert_eq!((site.endpoint.load().0, client.wait), (1, WaitFor::Read));
        client.http.connection.ended = true;
        site.serve(&mut client, usize::MAX);
        assert_eq!(client.wait, WaitFor::Close);
        site.leave(&mut client);
        site.now += 60_000;
        site.endpoint.expire(&mut App::new(&site.service, &mut site.world), site.now);
        // A lost stream cancels nothing in the legacy revisions, and its requests from 2026-07-28 on.
        let legacy = request.contains("Mcp-Session-Id");
        assert_eq!(site.endpoint.load(), if legacy { (1, 1, 1) } else { (0, 1, 0) });
    }
    site.now += 3_600_000;
    site.endpoint.expire(&mut App::new(&site.service, &mut site.world), site.now);
    assert_eq!(site.endpoint.load(), (0, 0, 0));
}

#[test]
fn a_client_that_never_reads() {
    let mut site = Site::new();
    let session = opened(&mut site);
    let mut idle = Client::new(1024, 2048);
    let get = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    idle.http.space()[..get.len()].copy_from_slice(get.as_bytes());
    idle.http.connection.filled(get.len());
    for _ in 0..10_000 {
        site.endpoint.publish(mcp_sansio::server::ServerChange::Tools);
        site.now += 20_000;
        site.serve(&mut idle, 0);
        assert!(idle.http.connection.pending().len() <= 2048);
    }
    let mut other = Client::new(4096, 8192);
    site.feed(&mut other, post(Some(&session), &call("2025-11-25", 1, "count", json!({}))).as_bytes(), 999);
    assert!(other.text().contains("200 OK"));
    site.serve(&mut idle, usize::MAX);
    assert!(idle.text().contains("tools/list_changed"));
    site.leave(&mut idle);
    site.now += 60_000;
    site.endpoint.expire(&mut App::new(&site.service, &mut site.world), site.now);
    assert_eq!(site.endpoint.load().2, 0);
}

#[test]
fn events_through_a_small_buffer() {
    let mut site = Site::new();
    let session = opened(&mut site);
    for (output, gulp) in [(600, 1), (600, 7), (1000, usize::MAX)] {
        let mut client = Client::new(2048, output);
        let request = post(Some(&session), &call("2025-11-25", 1, "gossip", json!({})));
        client.http.space()[..request.len()].copy_from_slice(request.as_bytes());
        client.http.connection.filled(request.len());
        site.serve(&mut client, gulp);
        let text = client.body();
        assert!(text.matches("notifications/message").count() == 7 && text.contains("\"done\""), "{text}");
        assert_eq!(site.endpoint.load(), (0, 1, 0));
    }
}

/// What a client accepted and cannot be sent is an error with a status, and leaves no request and no stream.
#[test]
fn an_answer_that_is_larger_than_the_output() {
    let mut site = Site::new();
    let session = opened(&mut site);
    let large = call("2025-11-25", 1, "large", json!({"size": 1000}));
    let later = call("2025-11-25", 2, "later", json!({}));
    for (request, output) in
        [(post(Some(&session), &large), 400), (post(Some(&session), &later), 120), (modern("later"), 120)]
    {
        let mut client = Client::new(4096, output);
        site.feed(&mut client, request.as_bytes(), usize::MAX);
        let text = client.text();
        assert!(text.starts_with("HTTP/1.1 500 ") && text.ends_with("\r\n\r\n"), "{text}");
        // The connection serves further requests.
        site.feed(&mut client, b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", usize::MAX);
        assert_eq!(client.text().matches("HTTP/1.1 ").count(), 2, "{}", client.text());
        let whole = post(Some(&session), &call("2025-11-25", 9, "count", json!({})));
        let mut other = Client::new(4096, 8192);
        site.feed(&mut other, whole.as_bytes(), usize::MAX);
        assert!(other.text().starts_with("HTTP/1.1 200 "), "{}", other.text());
        // A stream of a session may be taken back for some time; one of 2026-07-28 ends with its connection.
        site.now += 120_000;
        site.endpoint.expire(&mut App::new(&site.service, &mut site.world), site.now);
        let waits = usize::from(request.contains("later") && request.contains("Mcp-Session-Id"));
        assert_eq!(site.endpoint.load().0, waits, "{request}");
        if waits > 0 {
            let cancel = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}});
            site.feed(&mut other, post(Some(&session), &cancel.to_string()).as_bytes(), usize::MAX);
        }
        assert_eq!(site.endpoint.load().0, 0);
    }
}

/// The storage of a connection that has gone in the middle of a stream, or of a request, is as good as new.
#[test]
fn the_next_connection_in_the_same_storage() {
    let mut site = Site::new();
    let session = opened(&mut site);
    let later = post(Some(&session), &call("2025-11-25", 1, "later", json!({})));
    let count = post(Some(&session), &call("2025-11-25", 2, "count", json!({})));
    let mut client = Client::new(4096, 8192);
    for (seen, first) in [(1, &later[..]), (2, &count[..count.len() - 1]), (3, &count[..20])] {
        site.feed(&mut client, first.as_bytes(), usize::MAX);
        site.leave(&mut client);
        client.http.reset();
        client.seen.clear();
        // The head before it was admitted; this one is judged for itself.
        site.feed(&mut client, count.replace("Host: localhost", "Host: evil.example").as_bytes(), usize::MAX);
        assert!(client.text().starts_with("HTTP/1.1 403 "), "{}", client.text());
        site.leave(&mut client);
        client.http.reset();
        client.seen.clear();
        assert!(client.http.space().len() == 4096 && !client.http.connection.has_pending());
        site.feed(&mut client, count.as_bytes(), usize::MAX);
        let text = client.text();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\nContent-Length") && text.contains(&format!("\"{seen}\"")),
            "{text}"
        );
        client.seen.clear();
    }
}

/// A client that goes while it has a stream gives it back at once.
#[test]
fn a_stream_is_left_at_the_end_of_its_connection() {
    let mut site = Site::new();
    let mut client = Client::new(4096, 8192);
    site.feed(&mut client, modern("later").as_bytes(), usize::MAX);
    assert_eq!(site.endpoint.load().0, 1);
    client.http.connection.ended = true;
    site.serve(&mut client, usize::MAX);
    assert_eq!((client.wait, site.endpoint.load()), (WaitFor::Close, (0, 0, 0)));
}

/// Gives all bytes to a connection and serves it once. Returns the number of answers that wait.
fn serve_once(site: &mut Site, client: &mut Client, bytes: &[u8]) -> (WaitFor, usize) {
    client.http.space()[..bytes.len()].copy_from_slice(bytes);
    client.http.connection.filled(bytes.len());
    let mut app = App::new(&site.service, &mut site.world);
    let mut host = ServeContext { endpoint: &mut site.endpoint, app: &mut app, body: &mut site.body, now: site.now };
    let wait = client.http.serve(&mut host, &mut |bytes| bytes.fill(9));
    let answers = client.http.connection.pending().windows(9).filter(|start| *start == b"HTTP/1.1 ").count();
    (wait, answers)
}

/// Requests that are sent ahead are answered some at a time, so that other connections have a turn. Refused ones count too.
#[test]
fn requests_sent_ahead_are_answered_in_turns() {
    let mut site = Site::new();
    let session = opened(&mut site);
    let ping = post(Some(&session), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    for request in [ping.clone(), ping.replace("Host: localhost", "Host: evil.example")] {
        let mut client = Client::new(1 << 16, 1 << 16);
        let ahead = request.repeat(40);
        for (bytes, expected) in [(ahead.as_bytes(), (WaitFor::Write, 16)), (&b""[..], (WaitFor::Write, 16))] {
            assert_eq!(serve_once(&mut site, &mut client, bytes), expected);
            client.http.connection.sent(1 << 16);
        }
        assert_eq!(serve_once(&mut site, &mut client, b""), (WaitFor::Read, 8));
    }
}

/// A client that has so much to read gets no further answer before it has read it.
#[test]
fn a_further_request_waits_while_much_is_unread() {
    const AHEAD: usize = 16 * 1024;
    let answered = |size: usize| {
        let mut site = Site::new();
        let session = opened(&mut site);
        let large = call("2025-11-25", 1, "large", json!({"size": size}));
        let both = post(Some(&session), &large) + &post(Some(&session), &call("2025-11-25", 2, "count", json!({})));
        let mut client = Client::new(1 << 16, 1 << 16);
        let (wait, answers) = serve_once(&mut site, &mut client, both.as_bytes());
        (wait, answers, client.http.connection.pending().len())
    };
    let (_, _, len) = answered(AHEAD);
    let around = len - AHEAD;
    assert_eq!(answered(AHEAD - around), (WaitFor::Write, 1, AHEAD));
    let (wait, answers, _) = answered(AHEAD - around - 1);
    assert_eq!((wait, answers), (WaitFor::Read, 2));
}

/// Events for a client that has so much to read stay in the log.
#[test]
fn events_stay_in_the_log_while_much_is_unread() {
    const AHEAD: usize = 16 * 1024;
    let unread = |size: usize| {
        let mut site = Site::new();
        let session = opened(&mut site);
        let meta = json!({"name": "later", "arguments": {}, "_meta": {"progressToken": 1}});
        let message = common::request("2025-11-25", 1, "tools/call", meta);
        let mut client = Client::new(1 << 16, 1 << 17);
        let (wait, _) = serve_once(&mut site, &mut client, post(Some(&session), &message).as_bytes());
        assert_eq!(wait, WaitFor::Read);
        let token = site.world.later[0].1;
        let mut seen = Vec::new();
        for (done, text) in [(1, "x".repeat(size)), (2, "more".to_owned())] {
            let progress = Progress::new(done).message(&text);
            assert_eq!(site.endpoint.progress(token, progress), NotifyStatus::Sent);
            let (wait, _) = serve_once(&mut site, &mut client, b"");
            seen.push((wait, client.http.connection.pending().len()));
        }
        [seen[0], seen[1]]
    };
    let [(_, len), _] = unread(AHEAD);
    let around = len - AHEAD;
    assert_eq!(unread(AHEAD - around), [(WaitFor::Read, AHEAD), (WaitFor::Write, AHEAD)]);
    let [before, (wait, len)] = unread(AHEAD - around - 1);
    assert_eq!((before, wait), ((WaitFor::Read, AHEAD - 1), WaitFor::Read));
    assert!(len > AHEAD);
}
