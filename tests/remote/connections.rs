//! Limits of connections, and their ends, over real sockets: the same for both adapters, with the same service.
//!
//! The file that takes this module in has `start`: it serves the service, in a thread, and counts the turns of the loop.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::server::MessageLimits;
use mcp_sansio::service::{Service, Tool};
use mcp_sansio_host::{HttpServerOptions, Stopper};
use mcp_sansio_http::http1::ConnectionLimits;

/// What `hold` and `count` share with [`a_client_that_pipelines_holds_nobody_up`], which alone calls them.
static HOLDS: AtomicBool = AtomicBool::new(false);
static RELEASED: AtomicBool = AtomicBool::new(false);
static COUNTED: AtomicUsize = AtomicUsize::new(0);

static TOOLS: [Tool<()>; 4] = [
    Tool::new("length", "The length of a text", |_, call| {
        let text: mcp_sansio::json::Text<'_> = call.arg("text")?;
        call.text(format_args!("{}", text.decoded_len().unwrap_or(0)))
    }),
    Tool::new("large", "Eight MiB", |_, call| call.text(&*"x".repeat(8 << 20))),
    Tool::new("hold", "Holds up the whole server until it is released", |_, call| {
        HOLDS.store(true, Ordering::SeqCst);
        wait_for(&RELEASED);
        call.text("released")
    }),
    Tool::new("count", "The number of calls before", |_, call| {
        call.text(format_args!("{}", COUNTED.fetch_add(1, Ordering::SeqCst)))
    }),
];

pub(crate) const SERVICE: Service<'static, ()> = Service::new("connections", "1").tools(&TOOLS);

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stopper: Stopper,
    pub(crate) thread: Option<JoinHandle<std::io::Result<()>>>,
    /// The turns of its loop.
    pub(crate) turns: Arc<AtomicUsize>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let served = self.thread.take().unwrap().join();
        assert!(thread::panicking() || matches!(served, Ok(Ok(()))));
    }
}

impl Running {
    fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    /// Returns how many turns the loop takes in some time in which nothing happens.
    fn turns_at_rest(&self) -> usize {
        thread::sleep(Duration::from_millis(50));
        let before = self.turns.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(200));
        self.turns.load(Ordering::Relaxed) - before
    }
}

fn wait_for(flag: &AtomicBool) {
    let begun = Instant::now();
    while !flag.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it waits for ever");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A request of 2026-07-28.
fn request(tool: &str, arguments: &str, headers: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads an answer with a `Content-Length`: its head and its body.
fn answer(socket: &mut impl Read) -> (String, String) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(socket.read(&mut byte).unwrap(), 1, "the end after {:?}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    socket.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn ask(socket: &mut TcpStream, text: &str) -> (String, String) {
    socket.write_all(text.as_bytes()).unwrap();
    answer(socket)
}

/// The largest head before the largest body is taken, in one connection after another request.
#[test]
fn a_head_and_a_body_of_the_largest_size() {
    const BODY: usize = 20_000;
    let limits = MessageLimits { message: BODY, ..MessageLimits::default() };
    let server = super::start(HttpServerOptions::new().limits(limits));
    let mut socket = server.connect();
    let rest = request("length", r#"{"text":""}"#, "").rsplit_once("\r\n").unwrap().1.len();
    let text = "x".repeat(BODY - rest);
    let arguments = format!(r#"{{"text":"{text}"}}"#);
    let padding = format!("X-Padding: {}\r\n", "p".repeat(15_000));
    for headers in ["", &padding, &padding] {
        let (head, body) = ask(&mut socket, &request("length", &arguments, headers));
        assert!(head.starts_with("HTTP/1.1 200") && body.contains(&format!("\"{}\"", text.len())), "{head}{body}");
    }
    let (head, _) = ask(&mut socket, &request("length", &format!("{arguments} "), &padding));
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
}

#[test]
fn more_connections_than_allowed_wait() {
    let server = super::start(HttpServerOptions::new().connections(2));
    let [mut first, mut second, mut third] = [(); 3].map(|()| server.connect());
    let text = request("length", r#"{"text":"four"}"#, "");
    for socket in [&mut first, &mut second] {
        assert!(ask(socket, &text).1.contains("\"4\""));
    }
    third.write_all(text.as_bytes()).unwrap();
    third.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let waits = third.read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(waits, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{waits:?}");
    assert!(ask(&mut second, &text).1.contains("\"4\""));
    drop(first);
    third.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(answer(&mut third).1.contains("\"4\""));
}

/// It has room for twice the largest message, and some more.
#[test]
fn an_answer_may_be_twice_as_large_as_a_message() {
    let limits = MessageLimits { message: (4 << 20) - 30_000, ..MessageLimits::default() };
    let server = super::start(HttpServerOptions::new().limits(limits));
    let (head, body) = ask(&mut server.connect(), &request("large", "{}", ""));
    assert!(head.starts_with("HTTP/1.1 200") && body.len() > 8 << 20, "{head}");
}

/// Answers that were sent count no longer: no connection is closed for the memory that it keeps, large or small.
#[test]
fn answers_that_were_read_count_for_nothing() {
    let small = request("length", r#"{"text":"four"}"#, "");
    for (tool, total, many) in [(request("large", "{}", ""), 9 << 20, 2), (small, 100_000, 100)] {
        let server = super::start(HttpServerOptions::new().output_total(total));
        let mut sockets: Vec<_> = (0..many).map(|_| server.connect()).collect();
        for _ in 0..2 {
            for socket in &mut sockets {
                assert!(ask(socket, &tool).0.starts_with("HTTP/1.1 200"));
            }
        }
    }
}

/// A request that is refused before its body came: the server ends its side, and reads on for a while, so that the client gets
/// the answer and not a reset.
#[test]
fn a_refused_body_is_awaited_behind_the_end() {
    let limits = ConnectionLimits::DEFAULT.linger_time(60_000);
    let server = super::start(HttpServerOptions::new().wire_limits(limits));
    let mut socket = server.connect();
    socket.write_all(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
    assert!(server.turns_at_rest() < 20);
    socket.write_all(&[b' '; 50_000]).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}

/// The server ends its side only when all answers before the refusal were sent.
#[test]
fn a_refusal_comes_behind_an_answer_that_is_read_late() {
    let server = super::start(HttpServerOptions::new());
    let mut socket = server.connect();
    let refused = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n";
    socket.write_all((request("large", "{}", "") + refused).as_bytes()).unwrap();
    assert!(server.turns_at_rest() < 20);
    let (head, body) = answer(&mut socket);
    assert!(head.starts_with("HTTP/1.1 200") && body.len() > 8 << 20, "{head}");
    let mut rest = String::new();
    socket.read_to_string(&mut rest).unwrap();
    assert!(rest.starts_with("HTTP/1.1 403"), "{rest}");
}

/// An answer that is not read waits, without a turn of the loop.
#[test]
fn an_answer_that_is_not_read_takes_no_turns() {
    let server = super::start(HttpServerOptions::new());
    let mut socket = server.connect();
    socket.write_all(request("large", "{}", "").as_bytes()).unwrap();
    socket.read_exact(&mut [0; 15]).unwrap();
    let turns = server.turns_at_rest();
    assert!(turns < 20, "{turns} turns");
    socket.read_exact(&mut vec![0; 8 << 20]).unwrap();
}

/// A client that sends on behind its open stream, and does not read: the server waits, and does not turn in a loop.
#[test]
fn a_full_input_behind_a_stream_takes_no_turns() {
    let mut config = mcp_sansio_http::endpoint::EndpointConfig::DEFAULT;
    config.keep_alive = 0;
    let server = super::start(HttpServerOptions::new().config(config));
    let mut socket = server.connect();
    socket.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n").unwrap();
    socket.read_exact(&mut [0; 15]).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (mut refused, begun) = (0, Instant::now());
    while refused < 5 {
        match socket.write(&[b' '; 64 * 1024]) {
            Ok(_) => refused = 0,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "its stream stays open");
                refused += 1;
                thread::sleep(Duration::from_millis(20));
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it takes bytes without end");
    }
    let turns = server.turns_at_rest();
    assert!(turns < 20, "{turns} turns");
    // It is still there, also after the looks for clients that have gone.
    thread::sleep(Duration::from_millis(1_300));
    let outcome = socket.write(b" ").map_err(|error| error.kind());
    assert!(matches!(outcome, Ok(1) | Err(ErrorKind::WouldBlock)), "{outcome:?}");
    let mut other = server.connect();
    assert!(ask(&mut other, &request("length", r#"{"text":"four"}"#, "")).1.contains("\"4\""));
}

/// Thousands of requests that one client sends at once: another one is served between them.
#[test]
fn a_client_that_pipelines_holds_nobody_up() {
    const MANY: usize = 4_000;
    let server = super::start(HttpServerOptions::new());
    let [flood, mut other] = [(); 2].map(|()| server.connect());
    let count = request("count", "{}", "");
    assert!(ask(&mut other, &count).1.contains("\"0\""));
    let mut requests = flood.try_clone().unwrap();
    let flooding = thread::spawn({
        let text = request("hold", "{}", "") + &count.repeat(MANY);
        move || requests.write_all(text.as_bytes()).unwrap()
    });
    // The handler holds the server until both clients have sent their requests.
    wait_for(&HOLDS);
    other.write_all(count.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(100));
    RELEASED.store(true, Ordering::SeqCst);
    let reading = thread::spawn(move || {
        let mut flood = BufReader::new(flood);
        (0..=MANY).filter(|_| answer(&mut flood).0.starts_with("HTTP/1.1 200")).count()
    });
    let body = answer(&mut other).1;
    let before: usize = body.split('"').find_map(|part| part.parse().ok()).unwrap();
    // A turn of the first client serves some thirty.
    assert!(before < 250, "{before} requests of the first client were served before");
    assert_eq!(reading.join().unwrap(), MANY + 1);
    flooding.join().unwrap();
}
