//! Servers of one fleet with a real Redis: each message of a session goes to another one. Left out where there is no
//! `redis-server`.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use common::Redis;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::ServerChange;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Resource, Service, Tool};
use mcp_sansio_blocking::http::{HmacSeal, HttpServer, HttpServerOptions, SessionSeal, Stopper};
use mcp_sansio_fleet::{Fleet, FleetNews, FleetOptions};
use serde_json::{Value, json};

static SEAL: LazyLock<HmacSeal> = LazyLock::new(|| HmacSeal::new(&[7; 32]));
const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);

fn confirm(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    match call.answer("sure") {
        Some(answer) => call.text(if answer.accepted() { "confirmed" } else { "never mind" }),
        None => call.ask(&[InputRequest::elicit("sure", "Really?", FORM)], b""),
    }
}

static TOOLS: [Tool<()>; 2] = [
    Tool::new("confirm", "Asks", confirm),
    Tool::new("change", "Changes the page", |(), call| {
        call.publish(ServerChange::Resource("test://page"));
        call.text("changed")
    }),
];
static RESOURCES: [Resource<()>; 1] = [Resource::new("test://page", "A page", |(), read| read.text("page"))];

/// A server in a thread of its own.
struct Server {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    fn start(redis: &Redis) -> Server {
        let (sender, news) = std::sync::mpsc::channel();
        let fleet =
            Fleet::start(&redis.url(), FleetOptions::new("servers"), move |news| _ = sender.send(news)).unwrap();
        assert_eq!(news.recv_timeout(Duration::from_secs(20)), Ok(FleetNews::Joined));
        let options = HttpServerOptions::new().session_seal(SessionSeal::new(&*SEAL));
        let server = HttpServer::bind("127.0.0.1:0").unwrap().options(options).fleet(fleet);
        let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
        let serve = move || {
            let service = Service::new("test", "1").tools(&TOOLS).resources(&RESOURCES);
            server.serve(&service.feature(ServerCapability::Subscribe), &mut ()).unwrap();
        };
        Server { address, stopper, thread: Some(thread::spawn(serve)) }
    }

    /// Sends a request. Returns its status, and the lines that follow.
    fn send(&self, method: &str, session: &str, body: &str) -> Answer {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let session = if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
        write!(
            socket,
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: {accept}\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = Answer { lines: BufReader::new(socket), status: 0, session: String::new() };
        answer.status = answer.line().split(' ').nth(1).unwrap().parse().unwrap();
        loop {
            match answer.line() {
                line if line.is_empty() => return answer,
                line => {
                    if let Some((_, id)) =
                        line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
                    {
                        answer.session = id.into();
                    }
                }
            }
        }
    }

    fn call(&self, session: &str, id: u32, tool: &str) -> Answer {
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
        self.send("POST", session, &call.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper.stop();
        let _ = self.thread.take().unwrap().join();
    }
}

struct Answer {
    lines: BufReader<TcpStream>,
    status: u16,
    session: String,
}

impl Answer {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads to the next event.
    fn event(&mut self) -> Value {
        loop {
            if let Some(data) = self.line().strip_prefix("data: ").filter(|data| !data.is_empty()) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

fn open(server: &Server) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}});
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    server.send("POST", "", &opening.to_string()).session
}

#[test]
fn each_message_of_a_session_goes_to_another_process() {
    let Some(mut redis) = Redis::new() else { return };
    let servers = [(); 3].map(|()| Server::start(&redis));
    let session = open(&servers[0]);
    // A question of the first is answered at the third.
    let mut call = servers[0].call(&session, 1, "confirm");
    let id = call.event()["id"].clone();
    let yes = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {}}});
    assert_eq!(servers[2].send("POST", &session, &yes.to_string()).status, 202);
    assert_eq!(call.event()["result"]["content"][0]["text"], "confirmed");
    // A subscription at the first, the stream at the second, the change at the third.
    let mut stream = servers[1].send("GET", &session, "");
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "test://page"}});
    assert_eq!(servers[0].send("POST", &session, &subscribe.to_string()).status, 200);
    servers[2].call(&session, 3, "change");
    assert_eq!(stream.event()["params"]["uri"], "test://page");
    // Without Redis each goes on, and after it all may have changed.
    redis.kill();
    assert_eq!(servers[0].call(&session, 4, "change").status, 200);
    redis.start();
    assert_eq!(stream.event()["params"]["uri"], "test://page");
    // The end, which the second hears of.
    assert_eq!(servers[2].send("DELETE", &session, "").status, 204);
    while !stream.line().is_empty() || stream.lines.fill_buf().is_ok_and(|rest| !rest.is_empty()) {}
    assert_eq!(servers[1].call(&session, 5, "change").status, 404);
}
