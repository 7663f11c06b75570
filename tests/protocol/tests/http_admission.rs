//! Limits of the input of connections: nothing after a refused head, little behind an open stream, and a total for
//! all connections.
use crate::common;

use std::cell::Cell;

use common::{World, everything, initialize, json};
use mcp_sansio::memory::Store;
use mcp_sansio::server::{MessageLimits as ServerLimits, Server};
use mcp_sansio::service::Service;
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead};
use mcp_sansio_http::host::{BodyBuffer, Budget, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;

/// A server that authorizes by name.
struct Site {
    endpoint: Endpoint<'static>,
    service: Service<'static, World>,
    world: World,
    body: BodyBuffer<Vec<u8>>,
    budget: Budget,
    /// The number of calls of `authorize`.
    asked: Cell<usize>,
}

struct Client {
    http: HttpConnection<'static>,
    seen: String,
    wait: WaitFor,
    /// The client reads its answers.
    reads: bool,
}

const LARGE: usize = 1 << 20;

impl Client {
    fn new() -> Client {
        let http = HttpConnection::new(Store::growing(2 * LARGE), Store::growing(LARGE), ConnectionLimits::default());
        Client { http, seen: String::new(), wait: WaitFor::Read, reads: true }
    }

    fn statuses(&self) -> Vec<&str> {
        self.seen.match_indices("HTTP/1.1 ").map(|(at, _)| &self.seen[at + 9..at + 12]).collect()
    }

    fn memory(&mut self) -> usize {
        self.http.connection.input_size()
    }
}

impl Site {
    fn new(config: EndpointConfig<'static>, inputs: usize) -> Site {
        let server = Server::growing(ServerLimits::default());
        Site {
            endpoint: Endpoint::growing(config, server, EndpointLimits::default()),
            service: everything::service(),
            world: World::default(),
            body: BodyBuffer::new(Vec::new()),
            budget: Budget::new(inputs),
            asked: Cell::new(0),
        }
    }

    fn serve(&mut self, client: &mut Client) {
        loop {
            let asked = &self.asked;
            let authorize = |head: &RequestHead<'_>| {
                asked.set(asked.get() + 1);
                match head.text("authorization") {
                    Some("nobody") => Access::Denied { status: 401, challenge: Some("Bearer") },
                    _ => Access::Granted { principal: Some("somebody") },
                }
            };
            let mut app = App::new(&self.service, &mut self.world).authorize(&authorize);
            let mut host = ServeContext { endpoint: &mut self.endpoint, app: &mut app, body: &mut self.body, now: 0 };
            client.wait = client.http.serve(&mut host, &mut |bytes| bytes.fill(9));
            client.http.trim(&mut self.budget);
            if !client.reads {
                return;
            }
            let pending = client.http.connection.pending();
            client.seen.push_str(std::str::from_utf8(pending).unwrap());
            let n = pending.len();
            client.http.connection.sent(n);
            if client.wait != WaitFor::Write {
                return;
            }
        }
    }

    /// Feeds as many bytes as are taken. Returns their number.
    fn feed(&mut self, client: &mut Client, bytes: &[u8], cut: usize) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let space = client.http.space_in(&mut self.budget);
            let n = space.len().min(cut).min(bytes.len() - taken);
            space[..n].copy_from_slice(&bytes[taken..taken + n]);
            client.http.connection.filled(n);
            taken += n;
            self.serve(client);
            if n == 0 || client.wait == WaitFor::Close {
                break;
            }
        }
        taken
    }

    /// Opens a session. Returns the headers that name it.
    fn open(&mut self) -> String {
        let mut client = Client::new();
        let opening = initialize("2025-11-25", json!({}));
        self.feed(&mut client, post("", &opening).as_bytes(), usize::MAX);
        let (_, id) = client.seen.split_once("Mcp-Session-Id: ").expect("a session");
        client.http.pay_back(&mut self.budget);
        format!("Mcp-Session-Id: {}\r\n", &id[..32])
    }
}

fn head(line: &str, headers: &str, length: usize) -> String {
    format!(
        "{line} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

fn post(headers: &str, body: &str) -> String {
    head("POST /mcp", &format!("Host: localhost\r\n{headers}"), body.len()) + body
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

// spec: A132 A188
#[test]
fn a_head_is_judged_before_its_body_comes() {
    let rows = [
        ("403", "POST /mcp", "Host: evil.example\r\n", 0),
        ("403", "POST http://evil.example/mcp", "Host: localhost\r\n", 0),
        ("403", "POST /mcp", "Host: localhost\r\nOrigin: http://evil.example\r\n", 0),
        ("403", "POST /mcp", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 0),
        ("404", "POST /elsewhere", "Host: localhost\r\n", 0),
        ("401", "POST /mcp", "Host: localhost\r\nAuthorization: nobody\r\n", 1),
        ("405", "PUT /mcp", "Host: localhost\r\n", 1),
        ("405", "POST /sse", "Host: localhost\r\n", 1),
        ("405", "PUT /messages", "Host: localhost\r\n", 1),
    ];
    for (status, line, headers, asked) in rows {
        for expect in ["", "Expect: 100-continue\r\n"] {
            for cut in [usize::MAX, 1, 7] {
                let mut site = Site::new(EndpointConfig::DEFAULT, usize::MAX);
                let mut client = Client::new();
                let head = head(line, &format!("{headers}{expect}"), LARGE);
                site.feed(&mut client, head.as_bytes(), cut);
                assert_eq!((client.statuses(), client.wait), (vec![status], WaitFor::Shut), "{head}");
                assert!(client.seen.contains("Connection: close"), "{}", client.seen);
                assert_eq!(client.seen.contains("WWW-Authenticate: Bearer"), status == "401");
                assert_eq!(site.asked.get(), asked, "{head}");
                // A little of the body is read, in order to drop it.
                let taken = site.feed(&mut client, &vec![b' '; LARGE], usize::MAX);
                assert!(taken <= 300 * 1024 && client.memory() <= 16 * 1024, "{taken}, {}", client.memory());
                assert_eq!((client.statuses(), site.asked.get()), (vec![status], asked));
            }
        }
    }
}

#[test]
fn who_may_is_asked_once_for_each_request() {
    for cut in [usize::MAX, 1, 50] {
        let mut site = Site::new(EndpointConfig::DEFAULT, usize::MAX);
        let session = site.open();
        let mut client = Client::new();
        let expecting = post(&format!("{session}Expect: 100-continue\r\n"), PING);
        let requests = [post(&session, PING), expecting, post(&session, PING)].concat();
        site.feed(&mut client, requests.as_bytes(), cut);
        assert_eq!(client.statuses().into_iter().filter(|status| *status != "100").collect::<Vec<_>>(), ["200"; 3]);
        // The session belongs to the principal, which was kept while the body came.
        assert_eq!(site.asked.get(), 4, "cut {cut}");
    }
}

#[test]
fn pages_elsewhere_that_send_no_origin() {
    let get = |headers: &str| {
        let mut site = Site::new(EndpointConfig::DEFAULT, usize::MAX);
        let mut client = Client::new();
        let head = format!("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n{headers}\r\n");
        site.feed(&mut client, head.as_bytes(), usize::MAX);
        (client.statuses()[0].to_owned(), site.endpoint.load())
    };
    assert_eq!(get("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"), ("403".to_owned(), (0, 0, 0)));
    // An allowed origin, a URL that the user typed, and clients that are no browser.
    for headers in ["Sec-Fetch-Site: cross-site\r\nOrigin: http://localhost:3000\r\n", "Sec-Fetch-Site: none\r\n", ""] {
        assert_eq!(get(headers), ("200".to_owned(), (0, 1, 1)), "{headers}");
    }
}

#[test]
fn little_is_taken_behind_an_open_stream() {
    let mut site = Site::new(EndpointConfig::DEFAULT, usize::MAX);
    let session = site.open();
    let mut client = Client::new();
    // After a large request, its memory is kept for the next one. Behind a stream, a driver releases it.
    let large = post(&session, &format!("{}{PING}", " ".repeat(LARGE)));
    assert_eq!(site.feed(&mut client, large.as_bytes(), 9999), large.len());
    assert!(client.memory() > LARGE, "{}", client.memory());
    let get = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}\r\n");
    site.feed(&mut client, get.as_bytes(), usize::MAX);
    assert!(client.http.stream().is_some());
    client.http.release(&mut site.budget);
    assert_eq!((client.memory(), site.budget.used()), (0, 0));
    let behind = post(&session, PING).repeat(1000);
    let taken = site.feed(&mut client, behind.as_bytes(), usize::MAX);
    assert!((8 * 1024..=16 * 1024).contains(&taken), "{taken}");
    assert!(client.memory() <= 20 * 1024, "{}", client.memory());
    // The connection waits for its turn.
    let mut other = Client::new();
    let delete = format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n");
    site.feed(&mut other, delete.as_bytes(), usize::MAX);
    site.serve(&mut client);
    let rest = behind.len() - taken;
    assert_eq!(site.feed(&mut client, &behind.as_bytes()[taken..], usize::MAX), rest);
    assert_eq!(client.statuses().iter().filter(|status| **status == "404").count(), 1000);
}

#[test]
fn what_all_requests_take_together_is_bounded() {
    let mut site = Site::new(EndpointConfig::DEFAULT, 200 * 1024);
    let session = site.open();
    let large = post(&session, &format!("{}{PING}", " ".repeat(150 * 1024)));
    let mut first = Client::new();
    site.feed(&mut first, &large.as_bytes()[..large.len() - 1], 4096);
    assert_eq!(site.budget.used(), first.memory());
    let mut refused: Vec<Client> = (0..5).map(|_| Client::new()).collect();
    for second in &mut refused {
        site.feed(second, large.as_bytes(), 4096);
        assert_eq!((second.statuses(), second.wait), (vec!["503"], WaitFor::Shut));
        // A request that exceeds the limit is refused; a request that fits into the space of a head is still served.
        assert!(site.budget.used() <= 250 * 1024, "{}", site.budget.used());
        let mut small = Client::new();
        site.feed(&mut small, post(&session, &format!("{}{PING}", " ".repeat(10_000))).as_bytes(), 999);
        assert_eq!(small.statuses(), ["200"]);
        small.http.pay_back(&mut site.budget);
        second.http.pay_back(&mut site.budget);
    }
    assert_eq!(site.budget.used(), first.memory());
    site.feed(&mut first, &large.as_bytes()[large.len() - 1..], usize::MAX);
    assert_eq!(first.statuses(), ["200"]);
    assert!(site.budget.used() <= 64 * 1024);
    // There is room again, over the same connection too.
    let mut third = Client::new();
    for client in [&mut third, &mut first] {
        site.feed(client, large.as_bytes(), 4096);
        assert_eq!(client.statuses().last(), Some(&"200"));
        client.http.pay_back(&mut site.budget);
    }
    assert_eq!(site.budget.used(), 0);
}

/// The unread answers of all connections have a total: the connections with the most bytes are named first.
#[test]
fn unsent_answers_have_a_total() {
    let mut site = Site::new(EndpointConfig::DEFAULT, usize::MAX);
    site.budget = Budget::new(usize::MAX).output(400 * 1024);
    let session = site.open();
    let echo = |len: usize| {
        let text = "x".repeat(len);
        post(&session, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": text}}}).to_string())
    };
    let mut held = Vec::new();
    for (len, exceeded) in [(100, false), (250, false), (150, true)] {
        let mut client = Client::new();
        client.reads = false;
        site.feed(&mut client, echo(len * 1024).as_bytes(), usize::MAX);
        assert!(client.http.output_held() > len * 1024);
        assert_eq!(site.budget.is_exceeded(), exceeded, "{} bytes", site.budget.output_used());
        held.push(client);
    }
    let largest = held.iter_mut().max_by_key(|client| client.http.output_held()).unwrap();
    assert!(largest.http.output_held() > 250 * 1024);
    largest.http.pay_back(&mut site.budget);
    assert!(!site.budget.is_exceeded());
    // Sent bytes are released at once.
    let last = &mut held[2];
    (last.reads, last.wait) = (true, WaitFor::Read);
    site.serve(last);
    site.serve(last);
    assert!(last.http.output_held() <= 64 * 1024);
    held.iter_mut().for_each(|client| client.http.pay_back(&mut site.budget));
    assert_eq!((site.budget.used(), site.budget.output_used()), (0, 0));
}
