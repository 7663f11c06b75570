//! The HTTP server from outside, over real sockets.

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{State, call, initialize, service, text};
use mcp_sansio::server::{MessageLimits, ServerChange};
use mcp_sansio_smol::channel;
use mcp_sansio_smol::http::{Access, EndpointConfig, HttpServer, HttpServerOptions, Stopper, WireLimits};
use serde_json::{Value, json};

type Server = HttpServer<'static, State>;

/// The time to wait for any answer.
const SOON: Duration = Duration::from_secs(20);

/// Runs a client in its own thread against a server, stops the server, and returns its final state.
fn talk(configure: impl FnOnce(Server) -> Server, client: impl FnOnce(SocketAddr, &Stopper) + Send + 'static) -> State {
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
        endpoint.publish(ServerChange::Resource("test://clock"));
    })
}

/// A connection of a minimal HTTP client.
struct Client {
    socket: BufReader<TcpStream>,
    headers: String,
    /// The bytes of an event stream after the last whole event.
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
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
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

    /// Reads the head of a response, and its body if it is not a stream.
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

    /// Opens a session. Later requests carry its id.
    fn open(address: SocketAddr) -> Self {
        let mut client = Client::new(address);
        let opened = client.post(&initialize());
        client.headers = format!("Mcp-Session-Id: {}\r\n", opened.header("mcp-session-id").unwrap());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized).status, 202);
        client
    }

    /// Returns the data of the next event that has some; `None` at the end of the stream.
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

    /// Returns `None` for the last chunk.
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

        // The connection stays open.
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

        // Closing the connection cancels the request.
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
    let at_once = |server| plain(server).grace(Duration::ZERO);
    talk(at_once, |address, stopper| {
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

// spec: A021
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
        |server| server.options(HttpServerOptions::new().connections(2)),
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

/// Each connection needs two descriptors, because both ends are in this process.
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

/// There are no looks after the end of the last stream.
#[test]
fn the_watch_ends_with_the_last_stream() {
    let open = std::sync::Arc::new(std::sync::Mutex::new(Duration::ZERO));
    let opened = open.clone();
    let state = talk(plain, move |address, _| {
        let begun = Instant::now();
        for _ in 0..3 {
            let mut stream = Client::new(address);
            listen(&mut stream);
        }
        let mut client = Client::open(address);
        assert_eq!(client.post(&call(1, "echo", json!({"text": "x"}))).status, 200);
        *opened.lock().unwrap() = begun.elapsed();
        thread::sleep(Duration::from_millis(800));
    });
    let looks = open.lock().unwrap().as_millis() / 20 + 10;
    assert!(u128::try_from(state.looks).unwrap() <= looks, "{} looks, {looks} expected", state.looks);
}

#[test]
fn the_first_look_of_a_watch_is_a_period_later() {
    let state = talk(
        |server| server.watch(Duration::from_secs(3600), |state, _| state.looks += 1),
        |address, _| {
            let mut stream = Client::new(address);
            listen(&mut stream);
            let mut client = Client::open(address);
            for id in 0..3 {
                assert_eq!(client.post(&call(id, "echo", json!({"text": "x"}))).status, 200);
            }
        },
    );
    assert_eq!(state.looks, 0);
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    talk(
        |server| server.options(HttpServerOptions::new().wire_limits(WireLimits::DEFAULT.write_time(200))),
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
            // The sockets and some memory take bytes, then the server closes the connection.
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

/// Reads until the server closes the connection.
fn rest(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    // Bytes sent to a server that does not read them may end in a reset.
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
        server.options(
            HttpServerOptions::new()
                .wire_limits(WireLimits::DEFAULT.head_time(50).body_time(50).idle_time(50).linger_time(50)),
        )
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
        |server| server.options(HttpServerOptions::new().input_total(100 * 1024)),
        |address, _| {
            let foreign = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 16000000\r\n\r\n";
            assert!(rest(&mut connect(address, foreign)).starts_with("HTTP/1.1 403"));
            // The body is sent after the head, so that it is not there yet when the head is refused.
            let large = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";
            let mut socket = connect(address, large);
            let _ = socket.write_all(&[b' '; 150_000]);
            assert!(rest(&mut socket).starts_with("HTTP/1.1 503"));
            let mut client = Client::open(address);
            assert_eq!(client.post(&call(1, "echo", json!({"text": "small"}))).status, 200);
        },
    );
}

/// A client fills its input behind a stream, and leaves: the server notices it without sending anything.
#[test]
fn a_client_that_goes_with_its_input_full() {
    fn quiet(server: Server) -> Server {
        let mut config = EndpointConfig::DEFAULT;
        config.keep_alive = 0;
        server.options(HttpServerOptions::new().config(config))
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

/// The question of a resumed handler goes out on the stream of its request; in 2026-07-28 as the result.
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

/// Unread answers have a total limit: the server closes the connection with the most bytes.
#[test]
fn answers_that_are_not_read() {
    talk(
        |server| server.options(HttpServerOptions::new().output_total(15 << 20)),
        |address, _| {
            let mut client = Client::open(address);
            let ask = |mib: usize| {
                let mut asking = client.twin();
                let message = call(1, "echo", json!({"text": "x".repeat(mib << 20)})).to_string();
                asking.send("POST", "/mcp", &message);
                asking.socket.read_exact(&mut [0; 15]).unwrap();
                asking
            };
            let (mut large, mut larger) = (ask(8), ask(10));
            assert_eq!(client.post(&call(1, "echo", json!({"text": "small"}))).status, 200);
            let mut cut = Vec::new();
            let _ = larger.socket.read_to_end(&mut cut);
            assert!(cut.len() < 10 << 20, "it was cut short");
            large.socket.read_exact(&mut vec![0; 8 << 20]).unwrap();
        },
    );
}

/// A client that closes its side after its requests gets its answers and then the end.
#[test]
fn half_shut_connections_are_answered() {
    talk(plain, |address, _| {
        let mut client = Client::open(address);
        client.send("POST", "/mcp", &call(1, "echo", json!({ "text": "one" })).to_string());
        client.send("POST", "/mcp", &call(2, "echo", json!({ "text": "two" })).to_string());
        client.socket.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.socket.read_to_string(&mut answer).unwrap();
        let answers = ["\"id\":1", "\"id\":2"].map(|id| answer.matches(id).count());
        assert!(answer.starts_with("HTTP/1.1 200") && answers == [1, 1], "{answer}");

        let mut idle = TcpStream::connect(address).unwrap();
        idle.set_read_timeout(Some(SOON)).unwrap();
        idle.shutdown(Shutdown::Write).unwrap();
        assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    });
}

/// The last answers of a connection are written to their end, before the connection is shut or closed.
#[test]
fn last_answers_that_are_read_late_are_whole() {
    const SIZE: usize = 12 << 20;
    // Its body does not come.
    const REFUSED: &[u8] = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n";
    let limits = MessageLimits { message: 2 * SIZE, ..MessageLimits::default() };
    let large = move |server: Server| server.options(HttpServerOptions::new().limits(limits));
    talk(large, |address, _| {
        for is_half_shut in [true, false] {
            let mut client = Client::open(address);
            client.send("POST", "/mcp", &call(1, "echo", json!({ "text": "x".repeat(SIZE) })).to_string());
            match is_half_shut {
                true => client.socket.get_ref().shutdown(Shutdown::Write).unwrap(),
                false => client.socket.get_mut().write_all(REFUSED).unwrap(),
            }
            // The answer has begun, and does not fit into the socket.
            client.socket.fill_buf().unwrap();
            thread::sleep(Duration::from_millis(300));
            assert_eq!(text(&client.response().json()).len(), SIZE);
            if !is_half_shut {
                assert_eq!(client.response().status, 403);
            }
            assert_eq!(client.socket.read(&mut [0]).unwrap(), 0);
        }
    });
}

/// Makes the end of a connection a reset.
#[cfg(unix)]
fn reset(client: Client) {
    rustix::net::sockopt::set_socket_linger(client.socket.get_ref(), Some(Duration::ZERO)).unwrap();
}

/// A client whose request waits for the application resets its connection: its place is free before the decision.
#[cfg(unix)]
#[test]
fn a_reset_frees_the_place_of_an_undecided_request() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn undecided(server: Server) -> Server {
        server.options(HttpServerOptions::new().connections(1)).authorize(&|head| match head.text("authorization") {
            Some(_) => Access::Granted { principal: None },
            None => {
                ASKED.fetch_add(1, Ordering::Relaxed);
                Access::Later
            }
        })
    }
    talk(undecided, |address, _| {
        let mut first = Client::new(address);
        first.send("POST", "/mcp", &initialize().to_string());
        // It still waits for the answer.
        first.socket.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut second = Client::new(address);
        second.headers = "Authorization: Bearer sesame\r\n".into();
        second.send("POST", "/mcp", &initialize().to_string());
        thread::sleep(Duration::from_millis(200));
        let asked = ASKED.load(Ordering::Relaxed);
        // Two looks for clients that have gone do not ask again.
        second.socket.get_ref().set_read_timeout(Some(Duration::from_millis(2_500))).unwrap();
        assert!(second.socket.fill_buf().is_err());
        assert!(ASKED.load(Ordering::Relaxed) < asked + 2, "{asked}, then {ASKED:?}");
        second.socket.get_ref().set_read_timeout(Some(SOON)).unwrap();
        reset(first);
        assert_eq!(second.response().status, 200);
    });
}

/// The same for a request of HTTP with SSE that waits because its stream is not read.
#[cfg(unix)]
#[test]
fn a_reset_frees_the_place_of_a_request_that_waits_for_its_stream() {
    const SIZE: usize = 12 << 20;
    let limits = MessageLimits { message: 2 * SIZE, ..MessageLimits::default() };
    let large = move |server: Server| server.options(HttpServerOptions::new().limits(limits).connections(2));
    talk(large, |address, _| {
        let mut stream = Client::new(address);
        assert_eq!(stream.ask("GET", "/sse", "").status, 200);
        let path = stream.expect().as_str().unwrap().to_owned();
        let mut first = Client::new(address);
        assert_eq!(first.ask("POST", &path, &initialize().to_string()).status, 202);
        assert_eq!(stream.expect()["id"], 0);
        let echo = call(1, "echo", json!({ "text": "x".repeat(SIZE) })).to_string();
        assert_eq!(first.ask("POST", &path, &echo).status, 202);
        first.send("POST", &path, &call(2, "echo", json!({"text": "waits"})).to_string());
        let mut second = Client::new(address);
        second.send("POST", "/mcp", &initialize().to_string());
        second.socket.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        assert!(second.socket.fill_buf().is_err());
        second.socket.get_ref().set_read_timeout(Some(SOON)).unwrap();
        reset(first);
        assert_eq!(second.response().status, 200);
    });
}

/// Introspection in a task: the request waits, other requests do not, and then a message is refused by its tool.
#[test]
fn authorization_comes_later() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcp_sansio_smol::http::{Grant, Refusal};

    let known: Mutex<Vec<String>> = Mutex::default();
    let (asked, unknown) = (AtomicUsize::new(0), async_channel::unbounded::<String>());
    let (answers, late) = channel();
    let mut state = State::new(answers.clone());
    let authorize = |head: &mcp_sansio_smol::http::RequestHead<'_>| {
        asked.fetch_add(1, Ordering::Relaxed);
        match head.text("authorization").and_then(|value| value.strip_prefix("Bearer ")) {
            None => Access::RefusedWith(Refusal::new(401).header("WWW-Authenticate", "Bearer").unwrap()),
            Some(token) if known.lock().unwrap().iter().any(|known| known == token) => {
                Access::GrantedTo(Grant::to(Some(token)).unwrap())
            }
            Some(token) => {
                unknown.0.try_send(token.into()).unwrap();
                Access::Later
            }
        }
    };
    let permit = |message: &mcp_sansio_smol::http::MessageAccess<'_>| match message.calls_tool("wait") {
        true => Access::Denied { status: 403, challenge: Some("Bearer error=\"insufficient_scope\"") },
        false => Access::Granted { principal: None },
    };
    let server = HttpServer::bind("127.0.0.1:0").unwrap().late(late).authorize(&authorize).permit(&permit);
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let client = thread::spawn(move || {
        let stopper = StopAtEnd(stopper);
        let mut slow = Client::new(address);
        slow.headers = "Authorization: Bearer ann\r\n".into();
        slow.send("POST", "/mcp", &initialize().to_string());
        let mut half_shut = slow.twin();
        half_shut.send("POST", "/mcp", &initialize().to_string());
        half_shut.socket.get_ref().shutdown(Shutdown::Write).unwrap();
        assert_eq!(Client::new(address).post(&initialize()).status, 401);
        let begun = Instant::now();
        let opened = slow.response();
        assert_eq!(opened.status, 200);
        let waited = begun.elapsed();
        assert_eq!(half_shut.response().status, 200);
        slow.headers += &format!("Mcp-Session-Id: {}\r\n", opened.header("mcp-session-id").unwrap());
        let refused = slow.post(&call(1, "wait", json!({"ms": 0, "steps": 1})));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
        assert_eq!(refused.status, 403);
        assert_eq!(slow.post(&call(2, "echo", json!({"text": "x"}))).status, 200);
        drop(stopper);
        waited
    });
    let introspects = async {
        let token = unknown.1.recv().await.unwrap();
        smol::Timer::after(Duration::from_millis(200)).await;
        known.lock().unwrap().push(token);
        answers.decided().unwrap();
        std::future::pending().await
    };
    let service = service();
    let served = smol::future::or(server.serve(&service, &mut state), introspects);
    smol::block_on(served).unwrap();
    assert!(client.join().unwrap() > Duration::from_millis(100));
    // Nothing asks in a loop: a few requests, with their bodies in several pieces.
    assert!(asked.load(Ordering::Relaxed) < 16, "{asked:?}");
}
