//! HTTP over Unix sockets and over streams of bytes: servers and clients.
#![cfg(all(feature = "client", feature = "http", unix))]

use std::future::Future;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{ClientHandler, ClientInfo, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::Progress;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio_smol::client::{Client, ClientEvent, ClientHandle, Http, HttpOptions, Ignore};
use mcp_sansio_smol::http::{HttpServer, Stopper};
use mcp_sansio_smol::{LateSender, channel};
use smol::io::AsyncWrite;
use smol::{Timer, Unblock, future};

type State = LateSender<Sender>;
struct Sender(Option<State>);

fn add(_: &mut Sender, call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", a + b))
}

const FORM: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}"#);

fn confirm(_: &mut Sender, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[InputRequest::elicit("sure", "Really?", FORM)], b"");
    };
    call.text(if answer.value("yes").is_some() { "confirmed" } else { "never mind" })
}

/// Answers from a task, with progress before.
fn brew(state: &mut Sender, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    let Some(answers) = state.0.clone() else { return outcome };
    smol::spawn(async move {
        Timer::after(Duration::from_millis(5)).await;
        let _ = answers.progress(token, Progress::new(1));
        let _ = answers.answer(token, |_, call| call.text("at last"));
    })
    .detach();
    outcome
}

static TOOLS: [Tool<Sender>; 3] =
    [Tool::new("add", "Adds", add), Tool::new("confirm", "Asks", confirm), Tool::new("brew", "Later", brew)];

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);

fn only(revision: Revision) -> &'static ClientInfo<'static> {
    Box::leak(Box::new(PROFILE.revisions(Revisions::NONE.with(revision))))
}

/// A server on a thread of its own.
struct Running {
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn start(server: HttpServer<'static, Sender>) -> Running {
    let (answers, late) = channel();
    let server = server.late(late);
    let stopper = server.stopper();
    let thread = thread::spawn(move || {
        let service = Service::new("own", "1").tools(&TOOLS);
        smol::block_on(server.serve(&service, &mut Sender(Some(answers))))
    });
    Running { stopper, thread: Some(thread) }
}

impl Running {
    fn join(mut self) {
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mcp-smol-carriers-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// Runs a test beside the driver. A test that hangs fails.
fn run<H, F>(http: Http, handler: H, test: impl FnOnce(Client) -> F)
where
    H: ClientHandler + Unpin + Send + 'static,
    F: Future<Output = ()>,
{
    let (client, driver) = Client::new(http, handler);
    smol::block_on(future::or(
        async {
            let driver = smol::spawn(driver);
            test(client).await;
            driver.await;
        },
        async {
            Timer::after(Duration::from_secs(20)).await;
            panic!("it hangs")
        },
    ));
}

fn yes(event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>) {
    if let ClientEvent::Asked(questions) = event {
        for question in questions.questions() {
            handle.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"yes":true}"#))).unwrap();
        }
    }
}

async fn calls(client: &Client, revision: Revision) {
    assert_eq!(client.connect().await.unwrap().revision(), revision);
    let arguments = Raw::constant(r#"{"a":1,"b":2}"#);
    let answers: Vec<_> = (0..20).map(|_| client.request(Request::call("add").arguments(&arguments))).collect();
    for answer in answers {
        assert!(answer.await.unwrap().as_str().contains("\"3\""));
    }
    assert!(client.request(Request::call("brew")).await.unwrap().as_str().contains("at last"));
}

#[test]
fn a_whole_life_at_a_unix_socket_in_every_revision() {
    let folder = folder("life");
    let path = folder.join("s");
    let server = start(HttpServer::bind_unix(&path).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let url = format!("unix:{}", path.display());
    for revision in Revision::ALL {
        run(Http::new(&url, only(revision)).unwrap(), yes, async |client| {
            calls(&client, revision).await;
            if revision >= Revision::V2025_06_18 {
                let answer = client.request(Request::call("confirm")).await.unwrap();
                assert!(answer.as_str().contains("confirmed"));
            }
            client.close().await;
        });
    }
    assert_eq!(HttpServer::<Sender>::bind_unix(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(server);
    assert!(!path.exists(), "the file is there after the end");
    run(Http::new(&url, &PROFILE).unwrap(), Ignore, async |client| {
        let error = client.connect().await.unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
        client.close().await;
    });
    // A socket that a killed server has left is replaced.
    drop(UnixListener::bind(&path).unwrap());
    let third = HttpServer::<Sender>::bind_unix_with(&path, 0o660).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    drop(third);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Two pipes whose ends block, on threads.
fn over_pipes(info: &'static ClientInfo<'static>) -> (Http, Running) {
    let (requests, to_server) = std::io::pipe().unwrap();
    let (answers, to_client) = std::io::pipe().unwrap();
    let server = start(HttpServer::over(Unblock::new(requests), Unblock::new(to_client)));
    let http = Http::over(Unblock::new(answers), Unblock::new(to_server), info, HttpOptions::new());
    (http.unwrap(), server)
}

#[test]
fn a_whole_life_over_pipes() {
    for revision in Revision::ALL {
        let (http, server) = over_pipes(only(revision));
        run(http, yes, async |client| {
            calls(&client, revision).await;
            if revision == Revision::V2026_07_28 {
                let answer = client.request(Request::call("confirm")).await.unwrap();
                assert!(answer.as_str().contains("confirmed"));
            }
            client.close().await;
        });
        // The end of its only connection ends the server.
        let begun = Instant::now();
        server.join();
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

/// The end of the server is the end of the client's only connection.
#[test]
fn a_server_over_pipes_stops() {
    let (http, server) = over_pipes(&PROFILE);
    run(http, Ignore, async |client| {
        client.connect().await.unwrap();
        drop(server);
        let error = client.request(Request::list_tools()).await.unwrap_err().to_string();
        assert!(error.contains("one connection"), "{error}");
        client.close().await;
    });
}

/// Keeps the bytes of each write.
struct Writes(Arc<Mutex<Vec<String>>>);

impl AsyncWrite for Writes {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.0.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn pipelined_requests_are_answered_in_one_write() {
    let body = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":20,"b":22},"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}"#
    );
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
        text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let writes = Arc::new(Mutex::new(Vec::new()));
    let input = smol::io::Cursor::new(request.repeat(6).into_bytes());
    let server = HttpServer::over(input, Writes(Arc::clone(&writes)));
    let service = Service::new("own", "1").tools(&TOOLS);
    smol::block_on(server.serve(&service, &mut Sender(None))).unwrap();
    let writes = writes.lock().unwrap();
    assert_eq!(writes.iter().map(|bytes| bytes.matches("\"42\"").count()).collect::<Vec<_>>(), [6], "{writes:?}");
}

/// Keeps its bytes until it is flushed, which takes two calls. Counts how often it is closed.
#[derive(Default)]
struct Buffered {
    kept: Vec<u8>,
    is_flushing: bool,
    sent: Arc<Mutex<Vec<u8>>>,
    closed: Arc<Mutex<usize>>,
}

impl AsyncWrite for Buffered {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.kept.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.kept.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.is_flushing = !self.is_flushing;
        if self.is_flushing {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let kept = std::mem::take(&mut self.kept);
        self.sent.lock().unwrap().extend(kept);
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        *self.closed.lock().unwrap() += 1;
        Poll::Ready(Ok(()))
    }
}

/// Reads ten bytes at a time, and yields between them.
struct Pieces(std::io::Cursor<Vec<u8>>, bool);

impl smol::io::AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<std::io::Result<usize>> {
        self.1 = !self.1;
        if self.1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let n = to.len().min(10);
        Poll::Ready(std::io::Read::read(&mut self.0, &mut to[..n]))
    }
}

/// Serves the bytes as one connection. Returns the bytes that were sent, and how often the writer was closed.
fn serve_pieces(bytes: &str) -> (String, usize) {
    let output = Buffered::default();
    let (sent, closed) = (Arc::clone(&output.sent), Arc::clone(&output.closed));
    let server = HttpServer::over(Pieces(std::io::Cursor::new(bytes.as_bytes().to_vec()), false), output);
    let service = Service::new("own", "1").tools(&TOOLS);
    smol::block_on(server.serve(&service, &mut Sender(None))).unwrap();
    let sent = String::from_utf8(sent.lock().unwrap().clone()).unwrap();
    (sent, *closed.lock().unwrap())
}

#[test]
fn the_last_answer_is_flushed_before_the_end() {
    let (sent, _) = serve_pieces(&"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2));
    assert_eq!(sent.matches("HTTP/1.1 404").count(), 2, "{sent}");
}

/// The server has said all that it has to say, and reads on for a while.
#[test]
fn a_refused_body_is_read_behind_one_close() {
    let head = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100000\r\n\r\n";
    let (sent, closed) = serve_pieces(&format!("{head}{}", " ".repeat(200)));
    assert!(sent.starts_with("HTTP/1.1 403"), "{sent}");
    assert_eq!(closed, 1);
}
