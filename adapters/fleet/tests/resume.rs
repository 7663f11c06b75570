//! Two HTTP servers with a real Redis: the event stream of one breaks, and goes on at the other. Left out where there is no
//! `redis-server`.
mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use common::Redis;
use mcp_sansio::server::{Progress, RequestToken};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::http::{HmacSeal, HttpServer, HttpServerOptions, SessionSeal};
use mcp_sansio_fleet::{Fleet, FleetOptions};
use mcp_sansio_http::fleet::FleetLimits;
use serde_json::{Value, json};

static SEAL: LazyLock<HmacSeal> = LazyLock::new(|| HmacSeal::new(&[7; 32]));

/// An order of the test to a server.
enum Command {
    Progress(u32),
    Answer,
    Stop,
}

struct Server {
    address: SocketAddr,
    commands: Sender<Command>,
}

fn work(open: &mut Option<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    *open = Some(token);
    outcome
}

impl Server {
    fn start(redis: &Redis) -> Server {
        static TOOLS: [Tool<Option<RequestToken>>; 1] = [Tool::new("work", "Works until it is said to be done", work)];
        let options = FleetOptions::new("test").silence(Duration::from_secs(2));
        let engine = Fleet::start(&redis.url(), options, |_| ()).unwrap();
        let (commands, received) = channel();
        let (sender, address) = channel();
        thread::spawn(move || {
            let service = Service::new("test", "1").tools(&TOOLS);
            let server = HttpServer::bind("127.0.0.1:0").unwrap();
            sender.send(server.local_addr().unwrap()).unwrap();
            let stopper = server.stopper();
            let tick = move |app: &mut mcp_sansio_blocking::http::App<'_, Option<RequestToken>>,
                             endpoint: &mut mcp_sansio_blocking::http::HttpEndpoint,
                             now| {
                for command in received.try_iter() {
                    match (command, *app.state) {
                        (Command::Progress(done), Some(token)) => drop(endpoint.progress(token, Progress::new(done))),
                        (Command::Answer, Some(token)) => {
                            endpoint.answer(app, token, |_, call| call.text("done")).unwrap();
                        }
                        _ => stopper.stop(),
                    }
                }
                Some(now + 5)
            };
            // A request at another process waits for what it needs, and not for the end of this time.
            let limits = FleetLimits { settle_within: 60_000, ..FleetLimits::default() };
            let options = HttpServerOptions::new().session_seal(SessionSeal::new(&*SEAL)).fleet_limits(limits);
            server.options(options).fleet(engine).tick(tick).serve(&service, &mut None).unwrap();
        });
        Server { address: address.recv().unwrap(), commands }
    }

    fn request(&self, method: &str, session: Option<&str>, last: Option<&str>, body: Option<&Value>) -> Response {
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\n",
            self.address
        );
        for (name, value) in [("Mcp-Session-Id", session), ("Last-Event-ID", last)] {
            head.extend(value.map(|value| format!("{name}: {value}\r\n")));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut response = Response { status: 0, session: None, length: 0, input: BufReader::new(stream) };
        response.status = response.line().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        while let Some(line) = response.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").unwrap();
            match name.to_ascii_lowercase().as_str() {
                "mcp-session-id" => response.session = Some(value.into()),
                "content-length" => response.length = value.parse().unwrap(),
                _ => {}
            }
        }
        response
    }
}

struct Response {
    status: u16,
    session: Option<String>,
    length: usize,
    input: BufReader<TcpStream>,
}

impl Response {
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    fn body(mut self) -> Value {
        let mut body = vec![0; self.length];
        self.input.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// Returns the id and message of the next event; `None` at the end of the stream.
    fn event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        loop {
            let line = self.line()?;
            if let Some(value) = line.strip_prefix("id: ") {
                id = value.into();
            } else if let Some(data) = line.strip_prefix("data:") {
                return Some((id, serde_json::from_str(data).unwrap_or_default()));
            } else if line == "0" {
                return None;
            }
        }
    }
}

/// Opens a session and a stream of a call at a server. Returns the session and the id of the first event.
fn begin(server: &Server) -> (String, String) {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = server.request("POST", None, None, Some(&message));
    let session = response.session.clone().unwrap();
    assert_eq!(response.body()["result"]["protocolVersion"], "2025-11-25");
    let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.request("POST", Some(&session), None, Some(&message)).status, 202);
    let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": 1}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut response = server.request("POST", Some(&session), None, Some(&message));
    let (id, message) = response.event().unwrap();
    assert_eq!((response.status, message), (200, Value::Null));
    (session, id)
}

/// Starts two servers, and waits until each knows that the other is alive: processes say it each second.
fn two_servers(redis: &Redis) -> [Server; 2] {
    let servers = [(); 2].map(|()| Server::start(redis));
    std::thread::sleep(Duration::from_millis(1_500));
    servers
}

#[test]
fn a_stream_goes_on_at_another_server() {
    let Some(redis) = Redis::new() else { return };
    let [one, two] = two_servers(&redis);
    let (session, first) = begin(&one);
    one.commands.send(Command::Progress(1)).unwrap();
    let mut stream = two.request("GET", Some(&session), Some(&first), None);
    assert_eq!(stream.status, 200);
    let (second, message) = stream.event().unwrap();
    assert_eq!(message["params"]["progress"], 1);
    // There it breaks too, and goes on at the first.
    drop(stream);
    one.commands.send(Command::Progress(2)).unwrap();
    let mut stream = one.request("GET", Some(&session), Some(&second), None);
    assert_eq!(stream.event().unwrap().1["params"]["progress"], 2);
    drop(stream);
    let mut stream = two.request("GET", Some(&session), Some(&second), None);
    assert_eq!(stream.event().unwrap().1["params"]["progress"], 2);
    one.commands.send(Command::Answer).unwrap();
    assert_eq!(stream.event().unwrap().1["result"]["content"][0]["text"], "done");
    assert_eq!(stream.event(), None);
    // Streams that there are not, at a process that is not there, and at one that is.
    let (place, tag) = first.rsplit_once('-').unwrap();
    for unknown in [format!("{place}-p1"), format!("9-9-0-{tag}")] {
        assert_eq!(two.request("GET", Some(&session), Some(&unknown), None).status, 400);
    }
}

#[test]
fn a_server_that_stops_answers_before() {
    let Some(redis) = Redis::new() else { return };
    let [one, two] = two_servers(&redis);
    let (session, first) = begin(&one);
    let mut stream = two.request("GET", Some(&session), Some(&first), None);
    assert_eq!(stream.status, 200);
    one.commands.send(Command::Stop).unwrap();
    let (_, message) = stream.event().unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(stream.event(), None);
}

#[test]
fn without_redis_the_client_may_try_again() {
    let Some(mut redis) = Redis::new() else { return };
    let [one, two] = two_servers(&redis);
    let (session, first) = begin(&one);
    redis.kill();
    assert_eq!(two.request("GET", Some(&session), Some(&first), None).status, 503);
    // At its own process it needs none.
    one.commands.send(Command::Answer).unwrap();
    let mut stream = one.request("GET", Some(&session), Some(&first), None);
    assert_eq!(stream.event().unwrap().1["result"]["content"][0]["text"], "done");
}
