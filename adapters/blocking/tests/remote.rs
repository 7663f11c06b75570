//! Clients over HTTP, with correct and with faulty servers. The client soon reports each error, and requests that
//! are not affected go on.
#![cfg(all(feature = "client", feature = "http", unix))]

mod common;
#[path = "../../../tests/remote/scripted.rs"]
mod scripted;
#[cfg(feature = "tls")]
#[path = "../../../tests/remote/secured.rs"]
mod secured;

use std::cell::RefCell;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{PROFILE, QUICK, SOON, call, lost, service, soon};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ListToolsResult;
use mcp_sansio::client::{ClientHandler, ProtocolViolation, Request, SubscriptionFilter, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::revision::{Revision, Revisions};
#[cfg(feature = "tls")]
use mcp_sansio_blocking::client::rustls;
use mcp_sansio_blocking::client::{
    ChallengeAnswer, Client, ClientEvent, ClientHandle, ClientOptions, Direction, Http, HttpClientConfig, HttpOptions,
    Ignore, OwnedResult, Transport,
};
use mcp_sansio_blocking::http::{HttpServer, HttpServerOptions, Stopper};
use scripted::{Scripted, answer, empty, id, json, scripted, send, stream, until_gone};

/// A correct server.
struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn start(address: impl std::net::ToSocketAddrs) -> Running {
    let mut config = mcp_sansio_blocking::http::EndpointConfig::DEFAULT;
    config.hosts = &["127.0.0.77"];
    let server = HttpServer::bind(address).unwrap().options(HttpServerOptions::new().config(config));
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || server.serve(&service(), &mut ()));
    Running { address, stopper, thread: Some(thread) }
}

impl Running {
    /// A URL with a name: its first address may be another one than the server's.
    fn url(&self) -> String {
        format!("http://localhost:{}/mcp", self.address.port())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

/// An address whose ports no other program uses.
const OWN: &str = if cfg!(target_os = "linux") { "127.0.0.77:0" } else { "127.0.0.1:0" };

fn sum() -> Raw<'static> {
    Raw::constant(r#"{"a":1,"b":2}"#)
}

#[test]
fn a_whole_life_in_every_revision() {
    let server = start("127.0.0.1:0");
    for revision in Revision::ALL {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
        assert_eq!(client.connect().unwrap().revision(), revision);
        let arguments = sum();
        let call = Request::call("add").arguments(&arguments);
        let tokens: Vec<_> = (0..20).map(|_| client.send(&call).unwrap()).collect();
        for token in tokens {
            assert!(client.wait(token).unwrap().as_str().contains("\"3\""));
        }
        assert_eq!(client.request(&Request::call("nothing")).unwrap_err().server().unwrap().code, -32602);
        assert_eq!(soon(|| client.restart().unwrap().revision()), revision);
        assert!(client.request(&call).unwrap().as_str().contains("\"3\""));
        soon(|| client.close());
    }
}

/// The client finds out the server's revision.
#[test]
fn the_newest_revision() {
    let server = start("127.0.0.1:0");
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    assert_eq!(client.connect().unwrap().revision(), Revision::V2026_07_28);
}

/// Only one of a name's addresses has a server.
#[test]
fn the_other_localhost() {
    // Another program may listen at the same port of the other address.
    let connects = || {
        let Ok(listener) = TcpListener::bind("[::1]:0") else { return true };
        let address = listener.local_addr().unwrap();
        drop(listener);
        let server = start(address);
        Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore).connect().is_ok()
    };
    assert!((0..3).any(|_| connects()));
}

/// The handler gets the server's requests in each revision that has them, and the server gets the answers.
#[test]
fn questions() {
    let server = start("127.0.0.1:0");
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut asked = 0;
        let handler = |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Asked(questions) = event {
                for question in questions.questions() {
                    asked += 1;
                    handle.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"yes":true}"#))).unwrap();
                }
            }
        };
        let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), handler);
        client.connect().unwrap();
        let answer = client.request(&Request::call("confirm")).unwrap();
        assert!(answer.as_str().contains("confirmed"), "{answer:?}");
        drop(client);
        assert_eq!(asked, 1);
    }
}

#[test]
fn a_trace_shows_all_messages() {
    let server = start("127.0.0.1:0");
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    let shown = Rc::new(RefCell::new(Vec::new()));
    let sink = shown.clone();
    client.trace(move |way, message| sink.borrow_mut().push((way, String::from_utf8_lossy(message).into_owned())));
    client.connect().unwrap();
    client.request(&Request::list_tools()).unwrap();
    let shown = shown.borrow();
    let ways: Vec<_> = shown.iter().map(|(way, _)| *way).collect();
    assert_eq!(ways, [Direction::Sent, Direction::Received, Direction::Sent, Direction::Received]);
    assert!(shown[2].1.starts_with(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list""#), "{shown:?}");
    assert!(shown[3].1.contains("inputSchema"));
}

/// The server has lost the session: the request is lost, the next one goes out in a new session.
// spec: T055
#[test]
fn a_server_that_starts_anew() {
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let server = start(OWN);
        let (url, address) = (format!("http://{}/mcp", server.address), server.address);
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(Http::new(&url, &info).unwrap(), Ignore);
        client.connect().unwrap();
        client.request(&Request::list_tools()).unwrap();
        drop(server);
        let _server = start(address);
        let (why, _) = soon(|| lost(client.request(&Request::list_tools())));
        assert!(matches!(why, TransportError::SessionLost | TransportError::Broken), "{why}");
        let answer =
            soon(|| client.request(&Request::list_tools()).or_else(|_| client.request(&Request::list_tools())));
        answer.unwrap();
    }
}

/// The server chooses a version that the client does not support: the client ends the session.
// spec: B118
#[test]
fn a_version_that_nobody_speaks() {
    let server = scripted(|_, request, socket| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"1999-01-01","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
            id(request)
        );
        send(socket, &json(&body).replacen("\r\n", "\r\nMcp-Session-Id: s-1\r\n", 1));
    });
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_06_18));
    let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
    soon(|| client.connect().unwrap_err());
    soon(|| client.close());
    let requests = server.requests.lock().unwrap();
    assert!(requests.last().is_some_and(|last| last.starts_with("DELETE ") && last.contains("s-1")), "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains("notifications/initialized")));
}

#[test]
fn nobody_there() {
    let listener = TcpListener::bind(OWN).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client = Client::new(Http::new(&format!("http://{address}/mcp"), &PROFILE).unwrap(), Ignore);
    let error = soon(|| client.connect().unwrap_err());
    assert_eq!(error.lost(), Some(TransportError::Unreachable));
    assert!(error.to_string().contains(&address.to_string()) && error.to_string().contains("refused"), "{error}");
    // A second attempt works.
    let _server = start(address);
    client.connect().unwrap();
}

#[test]
fn urls_that_are_none() {
    for url in ["ftp://localhost/", "localhost:80", "http://"] {
        let error = Http::new(url, &PROFILE).unwrap_err();
        assert!(error.to_string().contains(url), "{error}");
    }
    for url in [
        "http://user:secret@localhost/",
        "https:/user:secret@localhost/",
        "ftp://us@er:secret@localhost",
        "user:secret@localhost",
    ] {
        let error = Http::new(url, &PROFILE).unwrap_err().to_string();
        assert!(error.contains("@localhost") && !error.contains("secret") && !error.contains("er:"), "{error}");
    }
    let error = Http::new("http://local\u{1b}[31mhost/", &PROFILE).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn a_name_that_leads_nowhere() {
    let mut client = Client::new(Http::new("http://nowhere.invalid/mcp", &PROFILE).unwrap(), Ignore);
    let error = client.connect().unwrap_err();
    assert!(error.to_string().contains("nowhere.invalid"), "{error}");
}

fn connected<H: ClientHandler>(http: Http<'static>, handler: H) -> Client<'static, Http<'static>, H> {
    let mut client = Client::new(http, handler);
    client.connect_as(Revision::V2026_07_28).unwrap();
    client
}

impl Scripted {
    fn client(&self, timeout: Duration) -> Client<'static, Http<'static>, Ignore> {
        self.client_with(HttpOptions::new().options(ClientOptions::DEFAULT.timeout(timeout).message(100_000)), Ignore)
    }

    fn client_with<H: ClientHandler>(&self, options: HttpOptions, handler: H) -> Client<'static, Http<'static>, H> {
        connected(self.http(options), handler)
    }

    fn http(&self, options: HttpOptions) -> Http<'static> {
        Http::with(&self.url(), &PROFILE, options).unwrap()
    }

    /// Waits until `what` was requested.
    fn until(&self, what: &str) {
        let begun = Instant::now();
        while !self.was_asked(what) {
            assert!(begun.elapsed() < SOON, "no {what}");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Answers the first request as `wrong` does, and the second one correctly.
#[track_caller]
fn goes_wrong(wrong: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> (TransportError, String) {
    let server = scripted(move |number, request, socket| match number {
        0 => wrong(request, socket),
        _ => send(socket, &json(&answer(request))),
    });
    let mut client = server.client(Duration::from_millis(400));
    let outcome = soon(|| lost(client.request(&call())));
    client.request(&call()).unwrap();
    outcome
}

#[test]
fn hangs_up() {
    let (why, text) = goes_wrong(|_, _| {});
    assert_eq!(why, TransportError::Broken, "{text}");
    // The system resets a connection with unread bytes.
    let (why, text) = goes_wrong(|_, socket| {
        send(socket, "HTTP/1.1 200 OK\r\nContent-Le");
        let _ = socket.shutdown(Shutdown::Both);
    });
    assert_eq!(why, TransportError::Broken, "{text}");
}

#[test]
fn is_no_http() {
    let (why, _) = goes_wrong(|_, socket| send(socket, "SSH-2.0-OpenSSH_9.2p1\r\n\r\n"));
    assert_eq!(why, TransportError::Invalid);
}

#[test]
fn errors_of_http() {
    let (why, text) = goes_wrong(|_, socket| {
        send(socket, "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 19\r\n\r\nupstream is asleep\n");
    });
    assert_eq!(why, TransportError::Status(502));
    assert!(text.contains("502") && text.contains("upstream is asleep"), "{text}");
}

#[test]
fn redirects() {
    let (why, text) = goes_wrong(|_, socket| {
        send(
            socket,
            "HTTP/1.1 307 Over there\r\nLocation: http://example.com/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        );
    });
    assert_eq!(why, TransportError::Status(307));
    assert!(text.contains("http://example.com/"), "{text}");
    // A redirect that forms a circle.
    let server = scripted(|_, _, socket| {
        send(socket, "HTTP/1.1 308 Round\r\nLocation: /mcp\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let mut client = server.client(SOON * 2);
    let (why, _) = soon(|| lost(client.request(&call())));
    assert_eq!(why, TransportError::Status(308));
}

#[test]
fn garbage() {
    let (why, _) = goes_wrong(|_, socket| send(socket, &json("{\"jsonrpc\":\"2.0\",")));
    assert_eq!(why, TransportError::Invalid);
    let (why, _) = goes_wrong(|_, socket| {
        send(
            socket,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 4\r\n\r\n<hi>",
        );
    });
    assert_eq!(why, TransportError::Invalid);
    let (why, _) = goes_wrong(|_, socket| send(socket, &stream(": nothing\n\n")));
    assert_eq!(why, TransportError::Invalid);
}

#[test]
fn answers_that_are_too_large() {
    let (why, _) = goes_wrong(|request, socket| {
        let text = answer(request).replace("[]", &format!("[{}]", " ".repeat(300_000)));
        send(socket, &json(&text));
    });
    assert_eq!(why, TransportError::TooLarge);
}

/// The client keeps no bytes of an event without an end; other requests are answered meanwhile.
#[test]
fn an_endless_event() {
    let server = scripted(|_, request, socket| match request.contains("slow") {
        true => {
            send(socket, &stream("data: "));
            while socket.write_all(&[b'x'; 10_000]).is_ok() {}
        }
        false => send(socket, &json(&answer(request))),
    });
    let mut client = server.client(QUICK * 3);
    let first = client.send(&Request::call("slow")).unwrap();
    for _ in 0..5 {
        soon(|| client.request(&call()).unwrap());
    }
    let (why, _) = soon(|| lost(client.wait(first)));
    assert_eq!(why, TransportError::TooLarge);
}

/// Events without a message are skipped and reported.
#[test]
fn garbage_events() {
    let odd = Rc::new(RefCell::new(Vec::new()));
    let sink = odd.clone();
    let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
        if let ClientEvent::Ignored(oddity) = event {
            sink.borrow_mut().push(oddity);
        }
    };
    let server = scripted(|_, request, socket| {
        let stray = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
        let text = format!("data: {{nonsense\n\ndata: {stray}\n\ndata: {}\n\n", answer(request));
        send(socket, &stream(&text));
    });
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.timeout(SOON).message(100_000));
    let mut client = server.client_with(options, handler);
    client.request(&call()).unwrap();
    assert_eq!(*odd.borrow(), [ProtocolViolation::NoMessage, ProtocolViolation::UnknownResponse]);
}

/// An answer is cut at each byte: the client reports the loss at once, or has the whole answer already.
#[test]
fn drops_the_answer_at_each_byte() {
    let server = scripted(|number, request, socket| {
        let message = answer(request);
        let whole = match number % 2 {
            0 => json(&message),
            _ => stream(&format!(": hello\n\ndata: {message}\n\n")),
        };
        let cut = (number / 2).min(whole.len());
        send(socket, &whole[..cut]);
    });
    let mut client = server.client(SOON);
    let (mut whole, mut broken) = (0, 0);
    for _ in 0..400 {
        match soon(|| client.request(&call())) {
            Ok(_) => whole += 1,
            Err(error) => {
                assert!(matches!(error.lost(), Some(TransportError::Broken | TransportError::Invalid)), "{error}");
                broken += 1;
            }
        }
    }
    assert!(whole > 20 && broken > 200, "{whole} {broken}");
}

/// Closing the connection of a request that takes too long or was dropped cancels it from 2026-07-28 on. Others are
/// answered meanwhile, on all connections.
// spec: B138
#[test]
fn never_answers() {
    let (gone, told) = std::sync::mpsc::channel();
    let gone = Mutex::new(gone);
    let server = scripted(move |_, request, socket| match request.contains("slow") {
        true => {
            until_gone(socket);
            gone.lock().unwrap().send(()).unwrap();
        }
        false => send(socket, &json(&answer(request))),
    });
    let mut client = server.client(Duration::from_millis(400));
    let slow = Request::call("slow");
    let tokens: Vec<_> = (0..4).map(|_| client.send(&slow).unwrap()).collect();
    for _ in 0..5 {
        client.request(&call()).unwrap();
    }
    client.cancel(tokens[0], None).unwrap();
    told.recv_timeout(SOON).unwrap();
    for token in &tokens[1..] {
        assert_eq!(soon(|| lost(client.wait(*token))).0, TransportError::TimedOut);
    }
    client.run().unwrap();
    for _ in &tokens[1..] {
        told.recv_timeout(SOON).unwrap();
    }
    assert!(!server.requests.lock().unwrap().iter().any(|request| request.contains("notifications/cancelled")));
}

/// `run` handles messages that are already there without waiting.
#[test]
fn looks_without_waiting() {
    let server = scripted(|_, request, socket| send(socket, &json(&answer(request))));
    let mut client = server.client(SOON);
    let token = client.send(&call()).unwrap();
    let begun = Instant::now();
    let answer = loop {
        client.run().unwrap();
        if let Some(answer) = client.poll(token) {
            break answer;
        }
        assert!(begun.elapsed() < SOON, "nothing is read");
    };
    answer.unwrap();
}

/// The time of a connection begins with the request, not when the client was made.
#[test]
fn rests_for_long() {
    let server = scripted(|_, request, socket| send(socket, &json(&answer(request))));
    let config = HttpClientConfig::DEFAULT.connect_time(250).write_time(250).idle_time(50);
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.timeout(QUICK * 2)).config(config);
    let told = Rc::new(RefCell::new(Vec::new()));
    let sink = told.clone();
    let mut client = server.client_with(options, move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| {
        if let ClientEvent::Done { outcome, .. } = event {
            sink.borrow_mut().push(outcome.is_ok());
        }
    });
    for _ in 0..2 {
        client.request(&call()).unwrap();
        thread::sleep(QUICK * 4);
    }
    // The same for requests sent through the handle.
    client.handle().send(&call()).unwrap();
    soon(|| while !client.turn(SOON).unwrap() {});
    assert_eq!(*told.borrow(), [true]);
}

/// A user needs long to log in: this counts neither for the request's time nor for the connection's.
#[test]
fn takes_long_to_give_credentials() {
    let server = scripted(|_, request, socket| match request.contains("Bearer") {
        true => send(socket, &json(&answer(request))),
        false => send(socket, &empty("401 Unauthorized")),
    });
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.timeout(QUICK * 2));
    let options = options.config(HttpClientConfig::DEFAULT.connect_time(250).write_time(250));
    let http = server.http(options).authorize(|_, headers| {
        thread::sleep(QUICK * 4);
        headers.set("Authorization", "Bearer x").unwrap();
        ChallengeAnswer::Retry
    });
    connected(http, Ignore).request(&call()).unwrap();
}

/// All connections are in use: the next request waits until one is free.
#[test]
fn more_requests_than_connections() {
    let server = scripted(|_, request, socket| match request.contains("slow") {
        true => until_gone(socket),
        false => send(socket, &json(&answer(request))),
    });
    let mut client = server.client(QUICK * 2);
    let slow = Request::call("slow");
    for _ in 0..8 {
        client.send(&slow).unwrap();
    }
    soon(|| client.request(&call()).unwrap());
}

/// The answer to `initialize`.
fn initialized(request: &str) -> String {
    json(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
        id(request)
    ))
}

/// A legacy server without a session, made of a script.
fn legacy(request: &str, socket: &mut TcpStream) -> bool {
    if request.starts_with("GET") {
        send(socket, "HTTP/1.1 405 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    } else if request.contains("server/discover") {
        send(socket, "HTTP/1.1 400 What?\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    } else if request.contains("\"initialize\"") {
        send(socket, &initialized(request));
    } else if request.contains("notifications/") {
        send(socket, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    } else {
        return false;
    }
    true
}

/// All connections except one are in use, and the server sends more requests at once than there is room for: the
/// answers wait for their turn, and all are sent.
#[test]
fn many_answers_at_once() {
    let server = scripted(|_, request, socket| {
        if request.contains("slow") {
            let ping = |n: usize| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"ping-{n}\",\"method\":\"ping\"}}\n\n");
            send(socket, &stream(&(0..10).map(ping).collect::<String>()));
            until_gone(socket);
        } else if request.contains("\"ping-") {
            thread::sleep(Duration::from_millis(1));
            send(socket, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        } else if !legacy(request, socket) {
            send(socket, &json(&answer(request)));
        }
    });
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    for _ in 0..6 {
        client.send(&Request::call("slow")).unwrap();
    }
    soon(|| client.request(&call()).unwrap());
    let answered = || server.requests.lock().unwrap().iter().filter(|request| request.contains("\"ping-")).count();
    soon(|| {
        while answered() < 60 {
            client.turn(QUICK / 10).unwrap();
        }
    });
    assert_eq!(answered(), 60);
}

/// Tools with invalid header annotations are left out, but only in revisions with these annotations.
// spec: T124
#[test]
fn tools_that_are_left_out() {
    let server = scripted(|_, request, socket| {
        if request.contains("tools/list") {
            let tool = |name: &str, header: &str| {
                format!(
                    r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
                )
            };
            let tools = [tool("good", "Region"), tool("bad", "no header"), tool("empty", "")].join(",");
            let result = format!(r#"{{"resultType":"complete","tools":[{tools}]}}"#);
            send(socket, &json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id(request))));
        } else {
            legacy(request, socket);
        }
    });
    let mut client = server.client(SOON);
    let names = |page: &OwnedResult| {
        let tools = page.view::<ListToolsResult<'_>>().unwrap();
        tools.iter().map(|tool| tool.unwrap().name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&client.request(&Request::list_tools()).unwrap()), ["good"]);
    let pages: Vec<_> = client.pages(Request::list_tools()).map(|page| names(&page.unwrap())).collect();
    assert_eq!(pages, [["good"]]);
    let excluded: Vec<_> = client.excluded().iter().map(ToString::to_string).collect();
    let expected = [
        "the tool bad is left out: x-mcp-header is not a valid header name",
        "the tool empty is left out: x-mcp-header is empty or no text",
    ];
    assert_eq!(excluded, expected);
    // A call of the tool fails, and nothing is sent.
    let (why, text) = lost(client.request(&Request::call("bad")));
    assert!(why == TransportError::Excluded && text.contains("not a valid header name"), "{text}");
    assert!(!server.was_asked("tools/call"));
    // A raw request returns the whole list, and the application can check a tool itself.
    let raw = client.request(&Request::raw("tools/list", None)).unwrap();
    assert_eq!(names(&raw), ["good", "bad", "empty"]);
    fn reasons<'m>(client: &Client<'m, Http<'m>, Ignore>, tools: &OwnedResult) -> Vec<Option<String>> {
        tools.view::<ListToolsResult<'_>>().unwrap().iter().flatten().map(|tool| client.excludes(&tool)).collect()
    }
    assert!(matches!(&reasons(&client, &raw)[..], [None, Some(name), Some(empty)] if name != empty));
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    assert!(!client.connect().unwrap().revision().is_modern());
    assert_eq!(names(&client.request(&Request::list_tools()).unwrap()), ["good", "bad", "empty"]);
    assert!(reasons(&client, &raw).iter().all(Option::is_none) && client.excluded().is_empty());
}

/// Debug output contains no secrets.
// spec: A216
#[test]
fn secrets_are_not_shown() {
    let options = HttpOptions::new().header("Authorization", "Bearer SECRET");
    let client = Client::new(Http::with("http://localhost/", &PROFILE, options).unwrap(), Ignore);
    let shown = format!("{client:?}");
    assert!(!shown.contains("SECRET") && !shown.contains("83, 69"), "{shown}");
}

/// The server sends its requests on the stream that the client opens: the first request waits for that stream.
#[test]
fn the_stream_comes_first() {
    let server = scripted(|_, request, socket| {
        if request.starts_with("GET") {
            thread::sleep(QUICK);
            send(socket, &stream(": hello\n\n"));
            until_gone(socket);
        } else if !legacy(request, socket) {
            send(socket, &json(&answer(request)));
        }
    });
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    assert!(server.requests.lock().unwrap().iter().any(|request| request.starts_with("GET")));
    soon(|| client.request(&call()).unwrap());
}

/// Up to 2025-11-25 the client cancels with a notification.
// spec: T038
#[test]
fn cancels_in_the_old_way() {
    let (gone, told) = std::sync::mpsc::channel();
    let gone = Mutex::new(gone);
    let server = scripted(move |_, request, socket| {
        if !legacy(request, socket) {
            until_gone(socket);
            gone.lock().unwrap().send(()).unwrap();
        }
    });
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    assert_eq!(client.connect().unwrap().revision(), Revision::V2025_11_25);
    let token = client.send(&call()).unwrap();
    client.turn(QUICK / 10).unwrap();
    server.until("tools/call");
    client.cancel(token, Some("enough")).unwrap();
    while client.turn(QUICK / 10).unwrap() {}
    server.until("\"reason\":\"enough\"");
    told.recv_timeout(SOON).unwrap();
}

/// The server does not answer the probe: the client sends `initialize`, and the probe uses no connection any more.
#[test]
fn a_probe_that_is_not_answered() {
    let (gone, told) = std::sync::mpsc::channel();
    let gone = Mutex::new(gone);
    let server = scripted(move |_, request, socket| match request.contains("server/discover") {
        true => {
            until_gone(socket);
            gone.lock().unwrap().send(()).unwrap();
        }
        false => assert!(legacy(request, socket)),
    });
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.probe_timeout(QUICK));
    let mut client = Client::new(Http::with(&server.url(), &PROFILE, options).unwrap(), Ignore);
    assert_eq!(soon(|| client.connect().unwrap().revision()), Revision::V2025_11_25);
    client.turn(QUICK / 10).unwrap();
    told.recv_timeout(SOON).unwrap();
}

/// A server that loses each session at once: the client gives up.
#[test]
fn a_server_without_memory() {
    let server = scripted(|_, request, socket| {
        if request.contains("\"initialize\"") {
            send(socket, &initialized(request).replace("\r\n\r\n", "\r\nMcp-Session-Id: abc\r\n\r\n"));
        } else {
            send(socket, "HTTP/1.1 404 Gone\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
    let _ = soon(|| client.connect().map(drop));
    for _ in 0..6 {
        assert!(soon(|| client.request(&Request::list_tools())).is_err());
    }
    assert!(server.requests.lock().unwrap().len() < 50);
}

/// A server that refuses the stream for its own requests is not waited for any longer.
#[test]
fn a_stream_that_is_refused_delays_nothing() {
    let server = scripted(|_, request, socket| {
        if !legacy(request, socket) {
            send(socket, &json(&answer(request)));
        }
    });
    let options = HttpOptions::new().settle_time(SOON * 20);
    let mut client = Client::new(Http::with(&server.url(), &PROFILE, options).unwrap(), Ignore);
    soon(|| client.connect().map(drop).unwrap());
    assert!(server.was_asked("GET "));
    soon(|| client.request(&call()).unwrap());
}

/// A transport that was closed can connect once more.
#[test]
fn a_connection_is_opened_again_after_its_end() {
    let server = start("127.0.0.1:0");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let info = PROFILE.revisions(Revisions::NONE.with(revision));
        let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
        for _ in 0..2 {
            assert_eq!(soon(|| client.connect().unwrap().revision()), revision);
            soon(|| client.request(&Request::list_tools()).unwrap());
            client.transport.close();
            let error = client.request(&Request::list_tools()).unwrap_err();
            assert_eq!(error.lost(), Some(TransportError::Closed), "{error}");
        }
    }
}

/// Closing the client ends the session first.
// spec: T056
#[test]
fn closing_ends_the_session() {
    let server = scripted(|_, request, socket| {
        if request.contains("\"initialize\"") {
            send(socket, &initialized(request).replace("\r\n\r\n", "\r\nMcp-Session-Id: abc\r\n\r\n"));
        } else if !legacy(request, socket) {
            send(socket, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
    });
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    soon(|| client.close());
    let requests = server.requests.lock().unwrap();
    let last = requests.last().unwrap();
    assert!(last.starts_with("DELETE /mcp ") && last.contains("\r\nMcp-Session-Id: abc\r\n"), "{last}");
}

/// The server does not answer the request that ends the session: closing does not wait for long.
#[test]
fn closing_does_not_wait_for_long() {
    let server = scripted(|_, request, socket| {
        if request.contains("\"initialize\"") {
            send(socket, &initialized(request).replace("\r\n\r\n", "\r\nMcp-Session-Id: abc\r\n\r\n"));
        } else if !legacy(request, socket) {
            until_gone(socket);
        }
    });
    let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
    client.connect().unwrap();
    assert_eq!(client.transport.session(), Some("abc"));
    let begun = Instant::now();
    client.close();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(server.was_asked("DELETE /mcp "));
}

/// A server that refuses the probe with an error of 2026-07-28 supports that revision: the client must not send
/// `initialize`.
// spec: T090
#[test]
fn a_modern_refusal_is_no_reason_to_fall_back() {
    for error in [
        r#""code":-32020,"message":"Mcp-Method is missing""#,
        r#""code":-32021,"message":"roots are needed","data":{"requiredCapabilities":{"roots":{}}}"#,
        r#""code":-32022,"message":"too old","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}"#,
    ] {
        let server = scripted(move |_, request, socket| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{{error}}}}}"#, id(request));
            send(socket, &json(&body).replace("200 OK", "400 Bad Request"));
        });
        let mut client = Client::new(Http::new(&server.url(), &PROFILE).unwrap(), Ignore);
        soon(|| client.connect().unwrap_err());
        assert!(server.was_asked("server/discover") && !server.was_asked("\"initialize\""), "{error}");
    }
}

// spec: A083 A173
#[test]
fn authorization() {
    let server = scripted(|_, request, socket| match request.to_lowercase().contains("authorization: bearer fresh") {
        true => send(socket, &json(&answer(request))),
        false => send(
            socket,
            "HTTP/1.1 401 Who?\r\nWWW-Authenticate: Bearer resource_metadata=\"http://x/\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        ),
    });
    let mut client = server.client(SOON);
    let (why, text) = soon(|| lost(client.request(&call())));
    assert_eq!(why, TransportError::Unauthorized);
    assert!(text.contains("resource_metadata"), "{text}");

    let url = server.url();
    let http = server.http(HttpOptions::new()).authorize(move |challenge, headers| {
        assert_eq!((challenge.status, challenge.tries, challenge.url), (401, 0, url.as_str()));
        assert!(challenge.www_authenticate.starts_with("Bearer "));
        headers.set("Authorization", "Bearer fresh").unwrap();
        ChallengeAnswer::Retry
    });
    let mut client = connected(http, Ignore);
    client.request(&call()).unwrap();
    client.request(&call()).unwrap();

    // Credentials that stay wrong are asked for three times.
    let asked = Rc::new(RefCell::new(0));
    let count = asked.clone();
    let http = server.http(HttpOptions::new()).authorize(move |_, _| {
        *count.borrow_mut() += 1;
        ChallengeAnswer::Retry
    });
    let mut client = connected(http, Ignore);
    assert_eq!(soon(|| lost(client.request(&call()))).0, TransportError::Unauthorized);
    assert_eq!(*asked.borrow(), 3);
}

/// The credentials come while the client does something else, or do not come.
#[test]
fn authorization_that_is_decided_later() {
    let server = scripted(|_, request, socket| match request.contains("Authorization: Bearer fresh") {
        true => send(socket, &json(&answer(request))),
        false => {
            send(
                socket,
                "HTTP/1.1 401 Who?\r\nWWW-Authenticate: Bearer\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            );
        }
    });
    for granted in [false, true] {
        let slot = Rc::new(RefCell::new(None));
        let asked = slot.clone();
        let http = server.http(HttpOptions::new()).authorize(move |challenge, _| {
            *asked.borrow_mut() = Some(challenge.slot);
            ChallengeAnswer::Later
        });
        let mut client = connected(http, Ignore);
        let token = client.send(&call()).unwrap();
        soon(|| {
            while slot.borrow().is_none() {
                client.turn(QUICK).unwrap();
            }
        });
        let slot = slot.borrow().unwrap();
        assert!(!client.turn(QUICK).unwrap() && client.poll(token).is_none(), "it waits");
        if granted {
            client.transport.set_header("Authorization", "Bearer fresh").unwrap();
            client.transport.retry(slot);
            soon(|| client.wait(token)).unwrap();
        } else {
            client.transport.give_up(slot);
            assert_eq!(soon(|| lost(client.wait(token))).0, TransportError::Unauthorized);
        }
    }
}

/// A subscription whose stream breaks is opened again.
#[test]
fn a_listen_comes_back() {
    let server = scripted(|number, request, socket| {
        let id = id(request);
        let note = |method: &str, more: &str| {
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":{{{more}\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}}}}}\n\n"
            )
        };
        let open = note("subscriptions/acknowledged", "\"notifications\":{\"toolsListChanged\":true},");
        send(socket, &stream(&(open + &note("tools/list_changed", ""))));
        if number > 0 {
            until_gone(socket);
        }
    });
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = seen.clone();
    let handler = move |event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| match event {
        ClientEvent::Listening(listening) => sink.borrow_mut().push(format!("open {}", listening.tools)),
        ClientEvent::Changed { what, .. } => sink.borrow_mut().push(format!("{what:?}")),
        other => panic!("{other:?}"),
    };
    let mut client = server.client_with(HttpOptions::new(), handler);
    let token = client.listen(&SubscriptionFilter::new().tools()).unwrap();
    soon(|| {
        while seen.borrow().len() < 4 {
            client.turn(SOON).unwrap();
        }
    });
    assert_eq!(*seen.borrow(), ["open true", "Tools", "open true", "Tools"]);
    client.cancel(token, None).unwrap();
}

/// A session that the client opened again by itself has succeeded; the next `connect` fails with its own error.
#[test]
fn each_connect_has_its_own_outcome() {
    let opened = Mutex::new(0);
    let server = scripted(move |_, request, socket| {
        let first = request.contains("Mcp-Session-Id: s-1");
        if request.contains("\"initialize\"") {
            let mut opened = opened.lock().unwrap();
            *opened += 1;
            let session = format!("\r\nMcp-Session-Id: s-{opened}\r\n");
            match *opened {
                1 | 2 => send(socket, &initialized(request).replacen("\r\n", &session, 1)),
                _ => send(socket, "HTTP/1.1 500 Oh\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
            }
        } else if request.contains("tools/call") {
            let gone = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            send(socket, if first { gone.to_owned() } else { json(&answer(request)) }.as_str());
        } else if request.contains("notifications/initialized") {
            send(socket, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        } else {
            send(socket, "HTTP/1.1 405 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
    client.connect().unwrap();
    // Lost with its session, or sent again in the next one.
    let _ = soon(|| client.request(&call()));
    soon(|| client.request(&call())).unwrap();
    let error = soon(|| client.connect().map(drop).unwrap_err());
    assert!(error.to_string().contains("500"), "{error}");
}

/// A server that forgets each session at once is given up.
#[test]
fn sessions_that_are_lost_again_and_again() {
    let server = scripted(|_, request, socket| {
        let opened = initialized(request).replacen("\r\n", "\r\nMcp-Session-Id: s\r\n", 1);
        let gone = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        send(socket, if request.contains("\"initialize\"") { &opened } else { gone });
    });
    let info = PROFILE.revisions(Revisions::NONE.with(Revision::V2025_11_25));
    let mut client = Client::new(Http::new(&server.url(), &info).unwrap(), Ignore);
    soon(|| client.connect().map(drop)).unwrap();
    for _ in 0..20 {
        let ended = soon(|| client.request(&call())).unwrap_err();
        assert_eq!(ended.lost(), Some(TransportError::Closed), "{ended}");
    }
    let opened = server.requests.lock().unwrap().iter().filter(|request| request.contains("\"initialize\"")).count();
    assert_eq!(opened, 4);
}

/// The server accepts connections and never answers.
#[test]
fn says_nothing() {
    let server = scripted(|_, _, socket| until_gone(socket));
    let options = HttpOptions::new().options(ClientOptions::DEFAULT.timeout(QUICK).probe_timeout(QUICK));
    let options = options.config(HttpClientConfig::DEFAULT.connect_time(1_000));
    let mut client = Client::new(Http::with(&server.url(), &PROFILE, options).unwrap(), Ignore);
    let error = soon(|| client.connect().unwrap_err());
    assert_eq!(error.lost(), Some(TransportError::TimedOut));
    soon(|| client.close());
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use secured::{CERTIFICATE, secured, trusting};

    #[test]
    fn a_whole_life() {
        let server = start("127.0.0.1:0");
        let url = format!("https://localhost:{}/mcp", secured(server.address).port());
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let info = PROFILE.revisions(Revisions::NONE.with(revision));
            let options = HttpOptions::new().tls(trusting(Some(CERTIFICATE)));
            let mut client = Client::new(Http::with(&url, &info, options).unwrap(), Ignore);
            // The inner server does not know the name and port in `Host`, and does not have to.
            assert_eq!(client.connect().unwrap().revision(), revision);
            let large = format!(r#"{{"a":1,"b":2,"rest":"{}"}}"#, "x".repeat(100_000));
            let arguments = Raw::parse(large.as_bytes()).unwrap();
            let call = Request::call("add").arguments(&arguments);
            let tokens: Vec<_> = (0..4).map(|_| client.send(&call).unwrap()).collect();
            for token in tokens {
                assert!(client.wait(token).unwrap().as_str().contains("\"3\""));
            }
            soon(|| client.close());
        }
    }

    /// The connection ends without the word of TLS that it does, and within an answer.
    #[test]
    fn an_answer_that_is_cut_short() {
        let short = scripted(|_, request, socket| {
            let whole = json(&answer(request));
            send(socket, &whole[..whole.len() - 1]);
        });
        let url = format!("https://localhost:{}/mcp", secured(short.address).port());
        let options = HttpOptions::new().tls(trusting(Some(CERTIFICATE)));
        let mut client = connected(Http::with(&url, &PROFILE, options).unwrap(), Ignore);
        let (why, text) = soon(|| lost(client.request(&call())));
        assert_eq!(why, TransportError::Broken);
        assert!(text.contains("connection reset"), "{text}");
    }

    #[test]
    fn a_server_that_nobody_knows() {
        let server = start("127.0.0.1:0");
        let url = format!("https://localhost:{}/mcp", secured(server.address).port());
        let options = HttpOptions::new().tls(trusting(None));
        let mut client = Client::new(Http::with(&url, &PROFILE, options).unwrap(), Ignore);
        let error = soon(|| client.connect().unwrap_err());
        assert_eq!(error.lost(), Some(TransportError::Unreachable));
        assert!(error.to_string().contains("certificate"), "{error}");
    }

    #[test]
    fn a_server_without_tls() {
        let server = start("127.0.0.1:0");
        let options = HttpOptions::new().tls(trusting(Some(CERTIFICATE)));
        let url = format!("https://localhost:{}/mcp", server.address.port());
        let mut client = Client::new(Http::with(&url, &PROFILE, options).unwrap(), Ignore);
        let error = soon(|| client.connect().unwrap_err());
        assert_eq!(error.lost(), Some(TransportError::Unreachable), "{error}");
    }
}
