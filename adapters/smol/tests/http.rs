//! The HTTP server from outside, over real sockets.

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{State, call, initialize, service, text};
use mcp_sansio::server::Change;
use mcp_sansio_smol::channel;
use mcp_sansio_smol::http::{Access, Config, HttpServer, Stopper, WireLimits};
use serde_json::{Value, json};

type Server = HttpServer<'static, State>;

/// What takes longer does not come.
const SOON: Duration = Duration::from_secs(20);

/// Runs a client in a thread of its own against a server; the state as it is when the server has been stopped.
fn talk(configure: fn(Server) -> Server, client: impl FnOnce(SocketAddr, &Stopper) + Send + 'static) -> State {
    let (answers, late) = channel();
    let mut state = State::new(answers);
    let server = configure(HttpServer::bind("127.0.0.1:0").unwrap().late(late));
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let client = thread::spawn(move || {
        // The server is stopped even if the client panics.
        let stopper = StopAtEnd(stopper);
        client(address, &stopper.0);
    });
    let service = service();
    smol::block_on(server.serve(&service, &mut state)).unwrap();
    client.join().unwrap();
    state
}

struct StopAtEnd(Stopper);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn plain(server: Server) -> Server {
    server.watch(Duration::from_millis(20), |state, endpoint| {
        state.looks += 1;
        endpoint.publish(Change::Resource("test://clock"));
    })
}

/// A connection of a client that knows just enough HTTP.
struct Client {
    socket: BufReader<TcpStream>,
    headers: String,
    /// What has come of an event stream and is no whole event yet.
    stream: String,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.head, self.body))
    }
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client { socket: BufReader::new(socket), headers: String::new(), stream: String::new() }
    }

    /// Another connection of the same client.
    fn twin(&self) -> Self {
        let address = self.socket.get_ref().peer_addr().unwrap();
        Client { headers: self.headers.clone(), ..Client::new(address) }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        );
        self.socket.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// The head of a response, and its body unless that is a stream.
    fn response(&mut self) -> Response {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.socket.read_line(&mut head).unwrap() > 0, "the end after {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut response = Response { status, head, body: String::new() };
        if let Some(length) = response.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.socket.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        }
        response
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Response {
        self.send(method, path, body);
        self.response()
    }

    fn post(&mut self, message: &Value) -> Response {
        self.ask("POST", "/mcp", &message.to_string())
    }

    /// Opens a session, whose id is in the headers from here on.
    fn open(address: SocketAddr) -> Self {
        let mut client = Client::new(address);
        let opened = client.post(&initialize());
        client.headers = format!("Mcp-Session-Id: {}\r\n", opened.header("mcp-session-id").unwrap());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized).status, 202);
        client
    }

    /// The data of the next event with any; `None` at the end of the stream.
    fn event(&mut self) -> Option<Value> {
        loop {
            let Some(end) = self.stream.find("\n\n") else {
                let chunk = self.chunk()?;
                self.stream.push_str(&chunk);
                continue;
            };
            let event: String = self.stream.drain(..end + 2).collect();
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return Some(serde_json::from_str(data).unwrap_or_else(|_| json!(data)));
            }
        }
    }

    fn expect(&mut self) -> Value {
        self.event().expect("one more event")
    }

    /// `None` for the last chunk.
    fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        self.socket.read_line(&mut size).unwrap();
        let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap() + 2];
        self.socket.read_exact(&mut chunk).unwrap();
        chunk.truncate(chunk.len() - 2);
        (!chunk.is_empty()).then(|| String::from_utf8(chunk).unwrap())
    }
}

/// A request of 2026-07-28, with its headers.
fn modern(client: &mut Client, name: Option<&str>, mut message: Value) {
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    let method = message["method"].as_str().unwrap();
    client.headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    if let Some(name) = name {
        client.headers += &format!("Mcp-Name: {name}\r\n");
    }
    client.send("POST", "/mcp", &message.to_string());
}

fn listen(client: &mut Client) {
    let params = json!({"notifications": {"resourceSubscriptions": ["test://clock"]}});
    modern(client, None, json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}));
    assert_eq!(client.response().header("content-type"), Some("text/event-stream"));
    assert_eq!(client.expect()["method"], "notifications/subscriptions/acknowledged");
}

#[test]
fn a_session_with_answers_at_once_and_late() {
    let state = talk(plain, |address, _| {
        let mut client = Client::open(address);
        let echoed = client.post(&call(1, "echo", json!({"text": "now"})));
        assert_eq!((echoed.status, text(&echoed.json())), (200, "now"));

        let waited = client.post(&call(2, "wait", json!({"ms": 1, "steps": 100})));
        assert_eq!(waited.header("content-type"), Some("text/event-stream"));
        for step in 1..=100 {
            assert_eq!(client.expect()["params"]["progress"], step);
            assert_eq!(client.expect()["params"]["data"], format!("after {step}"));
        }
        assert_eq!(text(&client.expect()), "waited 1");
        assert!(client.event().is_none());

        // The connection goes on.
        assert_eq!(client.ask("DELETE", "/mcp", "").status, 204);
        assert_eq!(client.post(&call(3, "echo", json!({"text": "gone"}))).status, 404);
    });
    assert_eq!((state.tasks.len(), state.cancelled), (0, 0));
}

#[test]
fn changes_and_announcements_are_heard_on_the_stream_of_the_session() {
    talk(plain, |address, _| {
        let mut client = Client::open(address);
        let uri = json!({"uri": "test://clock"});
        let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": uri});
        assert_eq!(client.post(&subscribe).json()["result"], json!({}));
        let mut stream = client.twin();
        assert_eq!(stream.ask("GET", "/mcp", "").header("content-type"), Some("text/event-stream"));
        for _ in 0..3 {
            assert_eq!(stream.expect()["params"], uri);
        }
        assert_eq!(client.post(&call(4, "announce", json!({}))).status, 200);
        let heard = std::iter::from_fn(|| stream.event()).find(|event| event["params"] != uri).unwrap();
        assert_eq!(
            (&heard["method"], &heard["params"]["data"]),
            (&json!("notifications/message"), &json!("hear, hear"))
        );
        let unsubscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": uri});
        assert_eq!(client.post(&unsubscribe).status, 200);
        assert_eq!(client.ask("DELETE", "/mcp", "").status, 204);
        while stream.event().is_some() {}
    });
}

#[test]
fn late_answers_and_a_listen_of_2026() {
    let state = talk(plain, |address, _| {
        let mut stream = Client::new(address);
        listen(&mut stream);
        let mut client = Client::new(address);
        modern(&mut client, Some("wait"), call(1, "wait", json!({"ms": 1, "steps": 100})));
        assert_eq!(client.response().status, 200);
        for step in 1..=100 {
            assert_eq!(client.expect()["params"]["progress"], step);
        }
        assert_eq!(text(&client.expect()), "waited 1");
        assert!(client.event().is_none());
        for _ in 0..2 {
            let update = stream.expect();
            assert_eq!(
                (&update["method"], &update["params"]["uri"]),
                (&json!("notifications/resources/updated"), &json!("test://clock"))
            );
        }

        // Whoever leaves has cancelled.
        modern(&mut client, Some("wait"), call(2, "wait", json!({"ms": 0, "steps": 1})));
        client.response();
        client.expect();
        drop(client);
        thread::sleep(Duration::from_millis(200));
    });
    assert_eq!((state.cancelled, state.tasks.len()), (1, 0));
    assert!(state.looks > 1);
}

#[test]
fn the_old_transport_answers_on_its_stream() {
    talk(plain, |address, _| {
        let mut stream = Client::new(address);
        assert_eq!(stream.ask("GET", "/sse", "").status, 200);
        let path = stream.expect().as_str().unwrap().to_owned();
        let mut client = Client::new(address);
        assert_eq!(client.ask("POST", &path, &initialize().to_string()).status, 202);
        assert_eq!(stream.expect()["id"], 0);
        assert_eq!(client.ask("POST", &path, &call(1, "wait", json!({"ms": 1, "steps": 1})).to_string()).status, 202);
        assert_eq!(stream.expect()["method"], "notifications/progress");
        assert_eq!(stream.expect()["method"], "notifications/message");
        assert_eq!(text(&stream.expect()), "waited 1");
    });
}

#[test]
fn stopping_ends_streams_and_answers_what_is_open() {
    talk(plain, |address, stopper| {
        let mut stream = Client::new(address);
        listen(&mut stream);
        let mut client = Client::open(address);
        assert_eq!(client.post(&call(1, "wait", json!({"ms": 0, "steps": 1}))).status, 200);
        let begun = Instant::now();
        stopper.stop();
        let last = std::iter::from_fn(|| client.event()).last().unwrap();
        assert_eq!((&last["id"], &last["error"]["code"]), (&json!(1), &json!(-32603)));
        while stream.event().is_some() {}
        assert!(begun.elapsed() < Duration::from_secs(2));
    });
}

#[test]
fn authorization_comes_first() {
    fn guarded(server: Server) -> Server {
        server.authorize(&|head| match head.text("authorization") {
            Some("Bearer sesame") => Access::Granted { principal: Some("ali") },
            _ => Access::Denied { status: 401, challenge: Some("Bearer") },
        })
    }
    talk(guarded, |address, _| {
        let mut client = Client::new(address);
        let refused = client.post(&initialize());
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
        client.headers = "Authorization: Bearer sesame\r\n".into();
        assert_eq!(client.post(&initialize()).status, 200);
    });
}

#[test]
fn more_connections_than_allowed_wait() {
    talk(
        |server| server.connections(2),
        |address, _| {
            let (first, mut second, mut third) = (Client::open(address), Client::open(address), Client::new(address));
            third.socket.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            third.send("POST", "/mcp", &initialize().to_string());
            assert!(third.socket.fill_buf().is_err());
            assert_eq!(second.post(&call(1, "echo", json!({"text": "x"}))).status, 200);
            drop(first);
            third.socket.get_ref().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            assert_eq!(third.response().status, 200);
        },
    );
}

/// As many descriptors as that are needed twice in this process.
const STREAMS: usize = 400;

#[test]
fn idle_streams_slow_nobody_down() {
    talk(
        |server| server,
        |address, _| {
            let mut client = Client::open(address);
            let timed = |client: &mut Client| {
                let begun = Instant::now();
                for id in 0..500 {
                    assert_eq!(client.post(&call(id, "echo", json!({"text": "x"}))).status, 200);
                }
                begun.elapsed()
            };
            let alone = timed(&mut client);
            let streams: Vec<_> = (0..STREAMS)
                .map(|_| {
                    let mut stream = Client::new(address);
                    listen(&mut stream);
                    stream
                })
                .collect();
            let among = timed(&mut client);
            println!("500 requests: {alone:?} alone, {among:?} among {} idle streams", streams.len());
            assert!(among < alone * 5 + Duration::from_millis(500));
        },
    );
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    talk(
        |server| server.wire_limits(WireLimits::DEFAULT.write_time(200)),
        |address, _| {
            let mut slow = Client::open(address);
            slow.socket.get_ref().set_nonblocking(true).unwrap();
            let message = call(1, "echo", json!({"text": "x".repeat(100_000)})).to_string();
            let request = format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Accept: application/json\r\n{}Content-Length: {}\r\n\r\n{message}",
                slow.headers,
                message.len()
            );
            // All that the sockets hold and some memory is taken; then it is let go.
            let (mut sent, mut answered) = (0, 0);
            let deadline = Instant::now() + SOON;
            let error = loop {
                match slow.socket.get_mut().write(&request.as_bytes()[sent % request.len()..]) {
                    Ok(n) => sent += n,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let mut client = Client::open(address);
                        assert_eq!(client.post(&call(1, "echo", json!({"text": "quick"}))).status, 200);
                        answered += 1;
                    }
                    Err(error) => break error.kind(),
                }
                assert!(Instant::now() < deadline, "{sent} bytes were taken");
            };
            assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
            assert!(sent < 60 << 20 && answered > 0, "{sent} bytes were taken, {answered} others answered");
        },
    );
}

/// What comes until the server hangs up.
fn rest(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    // What is sent to one that refuses to read it may end in a reset.
    if let Err(error) = socket.read_to_string(&mut text) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "after {text:?}");
    }
    text
}

fn connect(address: SocketAddr, text: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket.write_all(text.as_bytes()).unwrap();
    socket
}

#[test]
fn those_that_are_slow_are_let_go() {
    fn hurry(server: Server) -> Server {
        server.wire_limits(WireLimits::DEFAULT.head_time(50).body_time(50).idle_time(50).linger_time(50))
    }
    talk(hurry, |address, _| {
        let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let begun = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
        for (sent, answer) in [("", ""), ("POST /m", timeout), (begun, timeout)] {
            assert_eq!(rest(&mut connect(address, sent)), answer, "{sent:?}");
        }
        let closing = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(rest(&mut connect(address, closing)).starts_with("HTTP/1.1 404"));
    });
}

#[test]
fn bodies_that_are_not_taken_in() {
    talk(
        |server| server.input_total(100 * 1024),
        |address, _| {
            let foreign = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 16000000\r\n\r\n";
            assert!(rest(&mut connect(address, foreign)).starts_with("HTTP/1.1 403"));
            // The bytes come after the head, so that they are not there when it is refused.
            let large = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";
            let mut socket = connect(address, large);
            let _ = socket.write_all(&[b' '; 150_000]);
            assert!(rest(&mut socket).starts_with("HTTP/1.1 503"));
            let mut client = Client::open(address);
            assert_eq!(client.post(&call(1, "echo", json!({"text": "small"}))).status, 200);
        },
    );
}

/// A client that has sent more than is read behind its stream, and goes: that is noticed without anything being sent.
#[test]
fn a_client_that_goes_with_its_input_full() {
    fn quiet(server: Server) -> Server {
        let mut config = Config::DEFAULT;
        config.keep_alive = 0;
        server.config(config)
    }
    talk(quiet, |address, _| {
        let mut gone = Client::new(address);
        modern(&mut gone, Some("wait"), call(1, "wait", json!({"ms": 0})));
        let mut socket = gone.socket.into_inner();
        socket.set_nonblocking(true).unwrap();
        let mut refused = 0;
        while refused < 10 {
            if socket.write(&[b' '; 64 * 1024]).is_err() {
                refused += 1;
                thread::sleep(Duration::from_millis(20));
            }
        }
        drop(socket); // with the head of its answer unread: a reset
        let mut client = Client::open(address);
        let deadline = Instant::now() + SOON;
        while text(&client.post(&call(2, "cancelled", json!({}))).json()) != "1" {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn the_future_may_go_to_another_thread() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (answers, late) = channel();
    let mut state = State::new(answers);
    let service = service();
    let server = HttpServer::bind("127.0.0.1:0").unwrap().late(late);
    drop(is_send(server.serve(&service, &mut state)));
}

/// What a handler asks that was resumed goes out on the stream of its request; in 2026-07-28 as its result.
#[test]
fn a_resumed_handler_asks_on_the_stream_of_its_request() {
    talk(plain, |address, _| {
        let mut client = Client::open(address);
        client.send("POST", "/mcp", &call(1, "guess", json!({})).to_string());
        assert_eq!(client.response().header("content-type"), Some("text/event-stream"));
        let asked = client.expect();
        assert_eq!(asked["params"]["message"], "Are you Ada?", "{asked}");
        let accepted = json!({"action": "accept", "content": {}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted});
        assert_eq!(client.twin().post(&answer).status, 202);
        assert_eq!(text(&client.expect()), "accepted: true");
        assert!(client.event().is_none());

        let mut client = Client::new(address);
        modern(&mut client, Some("guess"), call(2, "guess", json!({})));
        assert_eq!(client.response().status, 200);
        let asked = client.expect();
        assert_eq!(asked["result"]["inputRequests"]["right"]["params"]["message"], "Are you Ada?", "{asked}");
        assert!(client.event().is_none());
        let mut again = call(3, "guess", json!({}));
        again["params"]["inputResponses"] = json!({"right": accepted});
        modern(&mut client, Some("guess"), again);
        assert_eq!(text(&client.response().json()), "accepted: true");
    });
}

#[test]
fn late_reads_and_answers_of_another_kind() {
    talk(plain, |address, _| {
        let mut client = Client::new(address);
        for (uri, place) in [("test://late", "/result/contents/0/text"), ("test://late/wrong", "/error/message")] {
            let params = json!({"uri": uri});
            let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
            modern(&mut client, Some(uri), read);
            assert_eq!(client.response().status, 200);
            let reply = client.expect();
            assert!(reply.pointer(place).is_some(), "{reply}");
            assert!(client.event().is_none());
        }
    });
}
