//! HTTP over Unix sockets and over streams of bytes: servers and clients.
#![cfg(all(feature = "client", feature = "http", unix))]

mod common;

use std::io::{ErrorKind, Read, Write, pipe};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use common::{PROFILE, service, soon};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{ClientHandler, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::RequestToken;
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_blocking::client::{Client, ClientEvent, ClientHandle, Http, HttpOptions, Ignore, Transport};
use mcp_sansio_blocking::http::{HttpServer, Stopper};

/// A server at a Unix socket, in a folder of its own.
struct Running {
    folder: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mcp-carriers-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn start(name: &str) -> Running {
    let folder = folder(name);
    let server = HttpServer::bind_unix(folder.join("s")).unwrap();
    let stopper = server.stopper();
    let thread = thread::spawn(move || server.serve(&service(), &mut ()));
    Running { folder, stopper, thread: Some(thread) }
}

impl Running {
    fn path(&self) -> PathBuf {
        self.folder.join("s")
    }

    fn url(&self) -> String {
        format!("unix:{}", self.path().display())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn sum() -> Raw<'static> {
    Raw::constant(r#"{"a":1,"b":2}"#)
}

fn yes(event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
    if let ClientEvent::Asked(questions) = event {
        for question in questions.questions() {
            handle.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"yes":true}"#))).unwrap();
        }
    }
}

fn calls<'m, T: Transport<'m>, H: ClientHandler>(client: &mut Client<'m, T, H>, revision: Revision) {
    assert_eq!(client.connect().unwrap().revision(), revision);
    let arguments = sum();
    let call = Request::call("add").arguments(&arguments);
    let tokens: Vec<_> = (0..20).map(|_| client.send(&call).unwrap()).collect();
    for token in tokens {
        assert!(client.wait(token).unwrap().as_str().contains("\"3\""));
    }
    assert_eq!(client.request(&Request::call("nothing")).unwrap_err().server().unwrap().code, -32602);
}

#[test]
fn a_whole_life_at_a_unix_socket_in_every_revision() {
    let server = start("life");
    for revision in Revision::ALL {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), yes);
        calls(&mut client, revision);
        if revision >= Revision::V2025_06_18 {
            assert!(client.request(&Request::call("confirm")).unwrap().as_str().contains("confirmed"));
        }
        soon(|| client.close());
    }
}

/// Sends one request with this head, and returns the answer's head.
fn ask(path: &Path, head: &str) -> String {
    let mut socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(socket, "GET /sse HTTP/1.1\r\nAccept: text/event-stream\r\n{head}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let mut chunk = [0; 1024];
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = socket.read(&mut chunk).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..n]);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn hosts_and_origins_are_checked_at_a_unix_socket() {
    let server = start("hosts");
    for (head, status) in [
        ("Host: localhost", "200"),
        ("Host: evil.example", "403"),
        ("Host: localhost\r\nOrigin: http://localhost", "200"),
        ("Host: localhost\r\nOrigin: http://evil.example", "403"),
    ] {
        assert_eq!(ask(&server.path(), head).split(' ').nth(1), Some(status), "{head}");
    }
}

#[test]
fn the_file_of_a_unix_socket() {
    let server = start("file");
    let path = server.path();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // A second server does not take the socket of the first.
    let second = HttpServer::<()>::bind_unix(&path).unwrap_err();
    assert!(second.kind() == ErrorKind::AddrInUse && second.to_string().contains("/s: another process"), "{second}");
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    server.stopper.stop();
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while path.exists() && std::time::Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!path.exists(), "the file is there after the end");
    let mut late = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    let error = late.connect().unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("No such file"), "{error}");
    // A socket that a killed server has left is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let third = HttpServer::<()>::bind_unix_with(&path, 0o660).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(third.local_addr().is_err());
}

/// A server and a client at the ends of two pipes.
fn over_pipes<'m>(
    info: &'m mcp_sansio::client::ClientInfo<'m>,
) -> (Http<'m>, Stopper, JoinHandle<std::io::Result<()>>) {
    let (requests, to_server) = pipe().unwrap();
    let (answers, to_client) = pipe().unwrap();
    let server = HttpServer::over(requests, to_client).unwrap();
    let stopper = server.stopper();
    let thread = thread::spawn(move || server.serve(&service(), &mut ()));
    (Http::over(answers, to_server, info, HttpOptions::new()).unwrap(), stopper, thread)
}

#[test]
fn a_whole_life_over_pipes() {
    for revision in Revision::ALL {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let (http, _stopper, thread) = over_pipes(&info);
        let mut client = Client::new(http, yes);
        soon(|| calls(&mut client, revision));
        if revision == Revision::V2026_07_28 {
            assert!(client.request(&Request::call("confirm")).unwrap().as_str().contains("confirmed"));
        }
        soon(|| client.close());
        soon(|| thread.join().unwrap().unwrap());
    }
}

/// The end of the server is the end of the client's only connection.
#[test]
fn a_server_over_pipes_stops() {
    let (http, stopper, thread) = over_pipes(&PROFILE);
    let mut client = Client::new(http, Ignore);
    client.connect().unwrap();
    stopper.stop();
    soon(|| thread.join().unwrap().unwrap());
    let error = soon(|| client.request(&Request::list_tools())).unwrap_err().to_string();
    assert!(error.contains("one connection"), "{error}");
}

/// Up to 2025-11-25 the answer to a question needs a second connection: the call is too late, and nothing hangs.
#[test]
fn a_question_of_an_older_revision_over_pipes() {
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let (http, stopper, thread) = over_pipes(&info);
    let mut client = Client::new(http, yes);
    client.connect().unwrap();
    soon(|| client.request(&Request::call("confirm").timeout(200)).unwrap_err());
    soon(|| client.request(&Request::list_tools()).unwrap_err());
    soon(|| client.close());
    stopper.stop();
    soon(|| thread.join().unwrap().unwrap());
}

/// A writer that several threads can look at.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A program may end after `serve`: everything is written then, and the writer is closed.
#[test]
fn a_slow_writer_has_everything_when_the_server_has_ended() {
    struct Slow(Shared, Arc<AtomicBool>);
    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            thread::sleep(Duration::from_millis(100));
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(100));
            self.1.store(true, Ordering::Relaxed);
        }
    }
    let (output, closed) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let input = &b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"[..];
    let server = HttpServer::over(input, Slow(output.clone(), Arc::clone(&closed))).unwrap();
    server.serve(&service(), &mut ()).unwrap();
    assert!(output.0.lock().unwrap().starts_with(b"HTTP/1.1 404"));
    assert!(closed.load(Ordering::Relaxed));
}

fn wait(tokens: &mut Vec<RequestToken>, call: &mut Call<'_>) -> HandlerResult {
    let (token, later) = call.later();
    tokens.push(token);
    later
}
static LATE: [Tool<Vec<RequestToken>>; 1] = [Tool::new("wait", "Answers later", wait)];

/// A reader that has no descriptor: requests that are all there at once. The answers come before `serve` returns, also
/// late ones.
#[test]
fn pipelined_requests_of_any_reader() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: wait\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (input, mut client) = pipe().unwrap();
    client.write_all(request.repeat(40).as_bytes()).unwrap();
    let output = Shared::default();
    let server = HttpServer::over(input, output.clone()).unwrap();
    let (seen, stopper) = (output.clone(), server.stopper());
    let watching = thread::spawn(move || {
        let until = std::time::Instant::now() + Duration::from_secs(20);
        let count = || String::from_utf8_lossy(&seen.0.lock().unwrap()).matches("at last").count();
        while count() < 40 && std::time::Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        // The end of the input is the end of the server.
        drop(client);
        thread::sleep(Duration::from_secs(5));
        stopper.stop();
    });
    let service = Service::new("late", "1").tools(&LATE);
    let mut tokens = Vec::new();
    let server = server.tick(|app, endpoint, now| {
        for token in std::mem::take::<Vec<RequestToken>>(app.state) {
            endpoint.answer(app, token, |_, call| call.text("at last")).unwrap();
        }
        Some(now + 5)
    });
    server.serve(&service, &mut tokens).unwrap();
    assert!(!watching.is_finished(), "only the stop has ended the server");
    assert_eq!(String::from_utf8_lossy(&output.0.lock().unwrap()).matches("at last").count(), 40);
}
