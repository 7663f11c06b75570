//! Clients over HTTP, with correct and with faulty servers.
#![cfg(all(feature = "client", feature = "http"))]

mod common;
#[path = "../../../tests/remote/scripted.rs"]
mod scripted;
#[cfg(feature = "tls")]
#[path = "../../../tests/remote/secured.rs"]
mod secured;

use std::future::Future;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::{State, service};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ListToolsResult;
use mcp_sansio::client::{ClientInfo, Request, SubscriptionFilter, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::ServerChange as Published;
use mcp_sansio_smol::channel;
#[cfg(feature = "tls")]
use mcp_sansio_smol::client::rustls;
use mcp_sansio_smol::client::{
    AuthorizationDemand, Client, ClientError, ClientHandler, ClientOptions, Direction, Http, HttpOptions, Ignore,
    OwnedEvent, OwnedResult, SubscriptionEvent, events,
};
use mcp_sansio_smol::http::{HttpServer, Stopper};
use scripted::{Scripted, answer, empty, json, scripted, send, stream, until_gone};
use smol::stream::StreamExt;
use smol::{Timer, future};

/// Longer than any answer takes on a slow machine.
const SOON: Duration = Duration::from_secs(5);

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);

fn only(revision: Revision) -> &'static ClientInfo<'static> {
    Box::leak(Box::new(PROFILE.revisions(Revisions::NONE.with(revision))))
}

/// A correct server.
struct Running {
    address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

fn start() -> Running {
    start_at("127.0.0.1:0")
}

fn start_at(address: impl std::net::ToSocketAddrs) -> Running {
    let (answers, late) = channel();
    let server = HttpServer::bind(address).unwrap().late(late).watch(Duration::from_millis(20), |_, endpoint| {
        endpoint.publish(Published::Resource("test://clock"));
    });
    let (address, stopper) = (server.local_addr().unwrap(), server.stopper());
    let thread = thread::spawn(move || {
        let mut state = State::new(answers);
        smol::block_on(server.serve(&service(), &mut state)).unwrap();
    });
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
        let _ = self.thread.take().unwrap().join();
    }
}

/// Runs a test beside the driver. A test that hangs fails.
fn run<F: Future<Output = ()>>(http: Http, test: impl FnOnce(Client) -> F) {
    run_with(http, Ignore, test);
}

fn run_with<H, F>(http: Http, handler: H, test: impl FnOnce(Client) -> F)
where
    H: ClientHandler + Unpin + Send + 'static,
    F: Future<Output = ()>,
{
    let (client, driver) = Client::new(http, handler);
    let begun = Instant::now();
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
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
}

#[track_caller]
fn lost(outcome: Result<OwnedResult, ClientError>) -> (TransportError, String) {
    let error = outcome.unwrap_err();
    (error.lost().unwrap_or_else(|| panic!("{error}")), error.to_string())
}

const ECHO: Raw<'static> = Raw::constant(r#"{"text":"hello"}"#);

#[test]
fn a_whole_life_in_every_revision() {
    let server = start();
    for revision in Revision::ALL {
        run(Http::new(&server.url(), only(revision)).unwrap(), |client| async move {
            assert_eq!(client.connect().await.unwrap().revision(), revision);
            let answers = (0..20).map(|_| client.request(Request::call("echo").arguments(&ECHO)));
            for answer in answers.collect::<Vec<_>>() {
                assert!(answer.await.unwrap().as_str().contains("hello"));
            }
            let error = client.request(Request::call("nothing")).await.unwrap_err();
            assert_eq!(error.server().unwrap().code, -32602);
            assert_eq!(client.restart().await.unwrap().revision(), revision);
            let answer = client.request(Request::call("echo").arguments(&ECHO));
            assert!(answer.await.unwrap().as_str().contains("hello"));
            assert_eq!(client.close().await, None);
        });
    }
}

/// Many more requests than connections.
#[test]
fn a_trace_shows_all_messages() {
    let server = start();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let sink = shown.clone();
    run(Http::new(&server.url(), only(Revision::V2025_11_25)).unwrap(), |client| async move {
        client
            .trace(move |way, message| sink.lock().unwrap().push((way, String::from_utf8_lossy(message).into_owned())));
        client.connect().await.unwrap();
        client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
        client.close().await;
    });
    let shown = shown.lock().unwrap();
    let of = |wanted| shown.iter().filter(|(way, _)| *way == wanted).map(|(_, text)| text.as_str()).collect::<Vec<_>>();
    let (sent, received) = (of(Direction::Sent), of(Direction::Received));
    assert_eq!(sent.len(), 3, "{sent:?}");
    for (text, part) in sent.iter().zip(["\"initialize\"", "notifications/initialized", "tools/call"]) {
        assert!(text.contains(part), "{text}");
    }
    assert!(received.len() == 2 && received[1].contains("hello"), "{received:?}");
}

/// A driver with nothing to do is not polled again and again, also when the server has closed its connections.
#[test]
fn the_driver_rests() {
    let server = scripted(|_, request, socket| send(socket, &json(&answer(request))));
    let (client, driver) = Client::new(Http::new(&server.url(), only(Revision::V2026_07_28)).unwrap(), Ignore);
    let polls = Arc::new(AtomicUsize::new(0));
    let (count, mut driver) = (polls.clone(), Box::pin(driver));
    let driver = future::poll_fn(move |cx| {
        count.fetch_add(1, Ordering::Relaxed);
        driver.as_mut().poll(cx)
    });
    let test = async {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        for _ in 0..3 {
            client.request(call()).await.unwrap();
        }
        Timer::after(Duration::from_millis(50)).await;
        let before = polls.load(Ordering::Relaxed);
        Timer::after(Duration::from_millis(200)).await;
        let polls = polls.load(Ordering::Relaxed) - before;
        assert!(polls < 10, "{polls} polls of a driver at rest");
    };
    smol::block_on(future::or(test, driver));
}

/// The first request of a session waits until the stream is open on which the server may ask.
#[test]
fn the_first_request_waits_for_the_stream_of_the_server() {
    let (opened, early) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let noted = early.clone();
    let server = scripted(move |_, request, socket| {
        if request.starts_with("GET") {
            // Time in which a request that does not wait would come.
            thread::sleep(Duration::from_millis(150));
            opened.store(true, Ordering::SeqCst);
            send(socket, &stream(""));
            until_gone(socket);
        } else if request.contains("\"initialize\"") {
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, scripted::id(request));
            send(socket, &json(&body).replace("\r\nContent-Type", "\r\nMcp-Session-Id: s\r\nContent-Type"));
        } else if request.contains("tools/call") {
            noted.fetch_or(!opened.load(Ordering::SeqCst), Ordering::SeqCst);
            send(socket, &json(&answer(request)));
        } else {
            send(socket, "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let options = HttpOptions::new().settle_time(Duration::from_secs(30));
    run(Http::with(&server.url(), only(Revision::V2025_11_25), options).unwrap(), |client| async move {
        client.connect().await.unwrap();
        client.request(call()).await.unwrap();
        client.close().await;
    });
    assert!(server.was_asked("GET /mcp") && !early.load(Ordering::SeqCst), "the request did not wait");
}

/// Requests that wait when the client is closed end at once, and nothing is sent after it.
#[test]
fn closing_ends_what_waits() {
    let server = scripted(|_, _, socket| until_gone(socket));
    run(Http::new(&server.url(), only(Revision::V2026_07_28)).unwrap(), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let (begun, waiting) = (Instant::now(), client.clone());
        let waiting = smol::spawn(async move { waiting.request(call()).await });
        Timer::after(Duration::from_millis(50)).await;
        assert_eq!(client.close().await, None);
        for (why, text) in [lost(waiting.await), lost(client.request(call()).await)] {
            assert_eq!((why, text.contains("it was closed")), (TransportError::Closed, true), "{text}");
        }
        assert!(begun.elapsed() < SOON);
    });
}

#[test]
fn many_tasks_at_once() {
    let server = start();
    run(Http::new(&server.url(), &PROFILE).unwrap(), |client| async move {
        assert_eq!(client.connect().await.unwrap().revision(), Revision::V2026_07_28);
        let tasks: Vec<_> = (0..200)
            .map(|number: u32| {
                let client = client.clone();
                smol::spawn(async move {
                    let arguments = serde_json::json!({ "text": format!("<{number}>") });
                    let answer = client.request(Request::call("echo").arguments(&arguments)).await.unwrap();
                    assert!(answer.as_str().contains(&format!("<{number}>")), "{answer:?}");
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        client.close().await;
    });
}

#[test]
fn questions_and_progress() {
    let server = start();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let (handler, mut events) = events(100);
        run_with(Http::new(&server.url(), only(revision)).unwrap(), handler, |client| async move {
            client.connect().await.unwrap();
            let answering = client.clone();
            let task = smol::spawn(async move {
                let mut progress = 0;
                while let Some(event) = events.next().await {
                    match event {
                        OwnedEvent::Asked(ask) => {
                            let answer = ClientResult::accept(Raw::constant(r#"{"name":"Ada"}"#));
                            answering.reply(ask.id, &answer).unwrap();
                        }
                        OwnedEvent::Progress { .. } => progress += 1,
                        _ => {}
                    }
                    if progress == 3 {
                        return;
                    }
                }
            });
            let answer = client.request(Request::call("greet")).await.unwrap();
            assert!(answer.as_str().contains("Hello, Ada"), "{answer:?}");
            let arguments = Raw::constant(r#"{"ms":1,"steps":3}"#);
            client.request(Request::call("wait").arguments(&arguments).with_progress()).await.unwrap();
            task.await;
            client.close().await;
        });
    }
}

#[test]
fn changes_in_both_eras() {
    let server = start();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        run(Http::new(&server.url(), only(revision)).unwrap(), |client| async move {
            assert!(client.listen(&SubscriptionFilter::new().tools()).is_err());
            client.connect().await.unwrap();
            let mut changes = client.listen(&SubscriptionFilter::new().uris(&["test://clock"])).unwrap();
            let first = changes.next().await.unwrap().unwrap();
            assert!(matches!(first, SubscriptionEvent::Listening(listening) if listening.uris == 1), "{first:?}");
            for _ in 0..2 {
                let change = changes.next().await.unwrap().unwrap();
                assert_eq!(change, SubscriptionEvent::Resource("test://clock".to_owned()));
            }
            // The stream is not read meanwhile: equal changes become one.
            Timer::after(Duration::from_millis(100)).await;
            changes.next().await.unwrap().unwrap();
            assert!(future::poll_once(changes.next()).await.is_none());
            drop(changes);
            client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
            client.close().await;
        });
    }
}

/// Dropping a request closes its exchange, which cancels it.
#[test]
fn a_dropped_request_is_cancelled() {
    let gone = Arc::new(AtomicBool::new(false));
    let seen = gone.clone();
    let server = scripted(move |_, request, socket| {
        if request.contains("slow") {
            send(socket, &stream(""));
            until_gone(socket);
            return gone.store(true, Ordering::SeqCst);
        }
        send(socket, &json(&answer(request)));
    });
    let noted = server.clone();
    run(server.http(HttpOptions::new()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let slow = client.request(Request::call("slow"));
        noted.until("slow").await;
        drop(slow);
        while !seen.load(Ordering::SeqCst) {
            Timer::after(Duration::from_millis(2)).await;
        }
        client.request(call()).await.unwrap();
        client.close().await;
    });
}

#[test]
fn a_server_that_starts_anew() {
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25] {
        let server = start();
        let url = server.url();
        run(Http::new(&url, only(revision)).unwrap(), |client| async move {
            client.connect().await.unwrap();
            client.request(Request::list_tools()).await.unwrap();
            let address = server.address;
            drop(server);
            let _server = start_at(address);
            let (why, _) = lost(client.request(Request::list_tools()).await);
            assert!(matches!(why, TransportError::SessionLost | TransportError::Broken), "{why}");
            // The next request waits for the new session.
            if client.request(Request::list_tools()).await.is_err() {
                client.request(Request::list_tools()).await.unwrap();
            }
            client.close().await;
        });
    }
}

#[test]
fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    run(Http::new(&format!("http://{address}/mcp"), &PROFILE).unwrap(), |client| async move {
        let error = client.connect().await.unwrap_err();
        assert_eq!(error.lost(), Some(TransportError::Unreachable));
        let text = error.to_string();
        assert!(text.contains(&address.to_string()) && text.contains("refused"), "{text}");
        // A second attempt works.
        let _server = start_at(address);
        client.connect().await.unwrap();
        client.close().await;
    });
    run(Http::new("http://nowhere.invalid/mcp", &PROFILE).unwrap(), |client| async move {
        let text = client.connect().await.unwrap_err().to_string();
        assert!(text.contains("nowhere.invalid"), "{text}");
        client.close().await;
    });
    for url in ["ftp://localhost/", "localhost:80", "http://"] {
        let error = Http::new(url, &PROFILE).unwrap_err();
        assert!(error.to_string().contains(url), "{error}");
    }
    let error = Http::new("http://user:secret@localhost/", &PROFILE).unwrap_err().to_string();
    assert!(error.contains("localhost") && !error.contains("secret"), "{error}");
}

// spec: A083
#[test]
fn authorization_takes_its_time_and_is_asked_for_once() {
    let server = scripted(|_, request, socket| {
        if request.contains("Bearer fresh") {
            return send(socket, &json(&answer(request)));
        }
        send(socket, &empty("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"x\""));
    });
    let demands = Arc::new(Mutex::new(Vec::new()));
    let seen = demands.clone();
    let options = HttpOptions::new().header("Authorization", "Bearer stale");
    let http = server.http(options).authorize(move |demand: AuthorizationDemand| {
        seen.lock().unwrap().push(demand);
        async {
            Timer::after(Duration::from_millis(60)).await;
            Some(vec![("Authorization".to_owned(), "Bearer fresh".to_owned())])
        }
    });
    let url = server.url();
    run(http, |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let both = [client.request(call()), client.request(call())];
        for outcome in both {
            outcome.await.unwrap();
        }
        client.close().await;
    });
    let demands = demands.lock().unwrap();
    assert_eq!(demands.len(), 1, "{demands:?}");
    let AuthorizationDemand { status, www_authenticate, url: of, tries, .. } = &demands[0];
    assert_eq!((*status, www_authenticate.as_str(), of, *tries), (401, "Bearer realm=\"x\"", &url, 0));
}

#[test]
fn authorization_in_vain() {
    let refuse = |_: usize, _: &str, socket: &mut TcpStream| {
        send(socket, &empty("401 Unauthorized"));
    };
    for given in [None, Some(Vec::new())] {
        let server = scripted(refuse);
        let http =
            server.http(HttpOptions::new()).authorize(move |_: AuthorizationDemand| future::ready(given.clone()));
        run(http, |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            assert_eq!(lost(client.request(call()).await).0, TransportError::Unauthorized);
            client.close().await;
        });
    }
    run(scripted(refuse).http(HttpOptions::new()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        assert_eq!(lost(client.request(call()).await).0, TransportError::Unauthorized);
        client.close().await;
    });
}

/// Tools that must not be called over HTTP are neither listed nor called.
// spec: T124
#[test]
fn tools_that_are_left_out() {
    let server = scripted(|_, request, socket| {
        let tool = |name: &str, kind: &str| {
            format!(
                r#"{{"name":"{name}","inputSchema":{{"properties":{{"a":{{"type":"{kind}","x-mcp-header":"A"}}}}}}}}"#
            )
        };
        let tools = [tool("bad", "number"), tool("good", "string")].join(",");
        let list = answer(request).replace("\"content\":[]", &format!("\"tools\":[{tools}]"));
        send(socket, &json(&if request.contains("tools/list") { list } else { answer(request) }));
    });
    let seen = server.clone();
    run(server.http(HttpOptions::new()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let mut pages = client.pages(Request::list_tools());
        let page = pages.next().await.unwrap().unwrap();
        let names: Vec<_> =
            page.view::<ListToolsResult<'_>>().unwrap().iter().map(|t| t.unwrap().name().to_string()).collect();
        assert_eq!(names, ["good"]);
        assert!(pages.next().await.is_none());
        let excluded: Vec<_> = client.excluded().into_iter().map(|excluded| excluded.tool).collect();
        assert_eq!(excluded, ["bad"]);
        let (why, text) = lost(client.request(Request::call("bad")).await);
        assert!(why == TransportError::Excluded && text.contains("not a string, an integer or a boolean"), "{text}");
        assert!(!seen.was_asked("tools/call"));
        client.request(Request::call("good")).await.unwrap();
        let raw = client.request(Request::raw("tools/list", None)).await.unwrap();
        let tools = raw.view::<ListToolsResult<'_>>().unwrap();
        let why: Vec<_> = tools.iter().flatten().map(|tool| client.excludes(&tool).is_some()).collect();
        assert_eq!(why, [true, false]);
        client.close().await;
    });
}

/// The server's reaction to a request.
type Act = fn(&str, &mut TcpStream);

/// Each fault of a server is reported in time, and other requests go on.
#[test]
fn servers_that_misbehave() {
    let cases: [(&str, &[TransportError], Act); 8] = [
        ("silent", &[TransportError::TimedOut], |_, socket| until_gone(socket)),
        ("hangs up", &[TransportError::Broken], |_, _| {}),
        ("cut off", &[TransportError::Broken], |_, socket| {
            send(socket, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"js");
        }),
        ("no HTTP", &[TransportError::Invalid], |_, socket| send(socket, "SSH-2.0-nothing here\r\n\r\n")),
        ("a status", &[TransportError::Status(500)], |_, socket| {
            send(socket, "HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 4\r\n\r\noops");
        }),
        ("too large", &[TransportError::TooLarge], |request, socket| {
            let long = answer(request).replace("[]", &format!("\"{}\"", "x".repeat(200_000)));
            send(socket, &json(&long));
        }),
        ("garbage", &[TransportError::Invalid], |_, socket| send(socket, &json("garbage"))),
        ("endless events", &[TransportError::TimedOut, TransportError::Broken], |_, socket| {
            send(socket, &stream(""));
            while socket.write_all(b": still here\n\n").is_ok() {}
        }),
    ];
    for (name, expected, act) in cases {
        let server = scripted(move |_, request, socket| match request.contains("\"bad\"") {
            true => act(request, socket),
            false => send(socket, &json(&answer(request))),
        });
        // Only requests that are expected to time out have a short time.
        let time = if expected.contains(&TransportError::TimedOut) { Duration::from_millis(300) } else { SOON };
        let options = ClientOptions::DEFAULT.timeout(SOON).message(100_000);
        run(server.http(HttpOptions::new().options(options)), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            let bad = client.request(Request::call("bad").timeout(time.as_millis() as u64));
            client.request(call()).await.unwrap();
            let (why, text) = lost(bad.await);
            assert!(expected.contains(&why), "{name}: {text}");
            client.request(call()).await.unwrap();
            client.close().await;
        });
    }
}

impl Scripted {
    fn http(&self, options: HttpOptions) -> Http {
        Http::with(&self.url(), &PROFILE, options).unwrap()
    }

    /// Waits until `what` was requested.
    async fn until(&self, what: &str) {
        while !self.was_asked(what) {
            Timer::after(Duration::from_millis(2)).await;
        }
    }
}

/// Returns a request; scripts do not look at its tool.
fn call() -> Request<'static> {
    Request::call("any")
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use secured::{CERTIFICATE, secured, trusting};

    #[test]
    fn a_whole_life() {
        let server = start();
        let url = format!("https://localhost:{}/mcp", secured(server.address).port());
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let options = HttpOptions::new().tls(trusting(Some(CERTIFICATE)));
            run(Http::with(&url, only(revision), options).unwrap(), |client| async move {
                assert_eq!(client.connect().await.unwrap().revision(), revision);
                let large = |size: usize| serde_json::json!({ "text": "x".repeat(size) });
                let (text, size) = (large(100_000), 100_000);
                let answers = [(); 4].map(|()| client.request(Request::call("echo").arguments(&text)));
                for answer in answers {
                    assert!(answer.await.unwrap().as_str().len() > size);
                }
                if revision.is_modern() {
                    // More than the sockets hold.
                    let (text, size) = (large(2_000_000), 2_000_000);
                    let answer = client.request(Request::call("echo").arguments(&text)).await;
                    assert!(answer.unwrap().as_str().len() > size);
                }
                client.close().await;
            });
        }
    }

    #[test]
    fn a_server_that_nobody_knows() {
        let server = start();
        let url = format!("https://localhost:{}/mcp", secured(server.address).port());
        let options = HttpOptions::new().tls(trusting(None));
        run(Http::with(&url, &PROFILE, options).unwrap(), |client| async move {
            let error = client.connect().await.unwrap_err();
            assert_eq!(error.lost(), Some(TransportError::Unreachable));
            assert!(error.to_string().contains("certificate"), "{error}");
            client.close().await;
        });
    }

    #[test]
    fn a_server_without_tls() {
        let server = start();
        let options = HttpOptions::new().tls(trusting(Some(CERTIFICATE)));
        let url = format!("https://localhost:{}/mcp", server.address.port());
        run(Http::with(&url, &PROFILE, options).unwrap(), |client| async move {
            assert_eq!(client.connect().await.unwrap_err().lost(), Some(TransportError::Unreachable));
            client.close().await;
        });
    }
}

/// Authorization with OAuth, by a client that needs no person.
#[cfg(feature = "tls")]
mod auth {
    use super::*;
    use mcp_sansio_smol::client::AuthorizationOptions;
    use mcp_sansio_smol::client::auth::RegisteredClient;

    /// An MCP server that takes one token at a time.
    #[derive(Clone)]
    struct Guarded {
        server: Scripted,
        good: Arc<Mutex<&'static str>>,
    }

    /// Starts a server that is its own authorization server. Requests for tokens are answered one after the other.
    fn guarded(answers: &'static [&'static str]) -> Guarded {
        let good = Arc::new(Mutex::new("t1"));
        let (taken, asked) = (good.clone(), AtomicUsize::new(0));
        let server = scripted(move |_, request, socket| {
            let line = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
            let origin = format!("http://{line}");
            if request.starts_with("GET /.well-known/oauth-protected-resource") {
                let body = format!(r#"{{"resource":"{origin}/mcp","authorization_servers":["{origin}"]}}"#);
                send(socket, &json(&body));
            } else if request.starts_with("GET /.well-known/") {
                let body = format!(
                    r#"{{"issuer":"{origin}","token_endpoint":"{origin}/token","grant_types_supported":["client_credentials","refresh_token"]}}"#
                );
                send(socket, &json(&body));
            } else if request.starts_with("POST /token") {
                let answer = answers[asked.fetch_add(1, Ordering::SeqCst)];
                let bad = json(answer).replace("200 OK", "400 Bad Request");
                send(socket, &if answer.contains("error") { bad } else { json(answer) });
            } else if request.contains(&format!("Bearer {}\r\n", taken.lock().unwrap())) {
                send(socket, &json(&super::answer(request)));
            } else {
                send(socket, &empty("401 Unauthorized\r\nWWW-Authenticate: Bearer"));
            }
        });
        Guarded { server, good }
    }

    impl Guarded {
        fn http(&self) -> Http {
            let robot =
                RegisteredClient::new("robot").secret("hush").issuer(self.server.url().trim_end_matches("/mcp"));
            let options = AuthorizationOptions::new("test").config(|config| config.registered(robot));
            self.server.http(HttpOptions::new()).authorization(options).unwrap()
        }

        /// Returns the tokens of all requests for `what`, in order.
        fn tokens(&self, what: &str) -> Vec<String> {
            let requests = self.server.requests.lock().unwrap();
            let token = |request: &String| {
                let rest = request.split("Bearer ").nth(1).unwrap_or_default();
                rest.lines().next().unwrap_or_default().to_owned()
            };
            requests.iter().filter(|request| request.contains(what)).map(token).collect()
        }

        fn count(&self, what: &str) -> usize {
            self.server.requests.lock().unwrap().iter().filter(|request| request.contains(what)).count()
        }
    }

    /// A token that was good once is no good reason to give up when it is refused.
    #[test]
    fn a_token_is_used_while_it_is_good_and_then_replaced() {
        let guarded = guarded(&[
            r#"{"access_token":"t1","token_type":"Bearer"}"#,
            r#"{"access_token":"t2","token_type":"Bearer"}"#,
        ]);
        let server = guarded.clone();
        run(guarded.http(), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            client.request(call()).await.unwrap();
            client.request(call()).await.unwrap();
            assert_eq!(server.tokens("tools/call"), ["", "t1", "t1"]);
            *server.good.lock().unwrap() = "t2";
            client.request(call()).await.unwrap();
            assert_eq!(server.tokens("tools/call")[3..], ["t1", "t2"]);
            client.close().await;
        });
        assert_eq!(guarded.count("POST /token"), 2);
    }

    /// Requests that are challenged together wait for the same token.
    #[test]
    fn a_token_is_got_once_for_all_that_wait() {
        let guarded = guarded(&[r#"{"access_token":"t1","token_type":"Bearer"}"#]);
        run(guarded.http(), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            let waiting = [(); 3].map(|()| client.request(call()));
            for outcome in waiting {
                outcome.await.unwrap();
            }
            client.close().await;
        });
        assert_eq!(guarded.count("POST /token"), 1);
    }

    /// Requests go on with the old token meanwhile, and the end of the client waits for the new one.
    #[test]
    fn a_token_that_ends_soon_is_replaced_beside_the_requests() {
        let guarded = guarded(&[
            r#"{"access_token":"t1","token_type":"Bearer","expires_in":0,"refresh_token":"r1"}"#,
            r#"{"access_token":"t1","token_type":"Bearer","expires_in":3600}"#,
        ]);
        let server = guarded.clone();
        run(guarded.http(), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            client.request(call()).await.unwrap();
            assert_eq!(server.count("grant_type=refresh_token"), 0, "it was not used yet");
            client.request(call()).await.unwrap();
            server.server.until("grant_type=refresh_token").await;
            client.request(call()).await.unwrap();
            client.close().await;
        });
        assert_eq!(guarded.tokens("tools/call"), ["", "t1", "t1", "t1"]);
        assert_eq!(guarded.count("POST /token"), 2);
    }

    #[test]
    fn the_refusal_of_the_authorization_server_is_the_reason() {
        let refusal = r#"{"error":"invalid_client","error_description":"no robots today"}"#;
        let guarded = guarded(Box::leak(Box::new([refusal, refusal])));
        run(guarded.http(), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            let (why, text) = lost(client.request(call()).await);
            assert!(why == TransportError::Unauthorized && text.contains("no robots today"), "{text}");
            client.close().await;
        });
    }
}
