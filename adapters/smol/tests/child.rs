//! Clients of child processes: servers that behave, and servers that do not.
#![cfg(all(feature = "client", unix))]

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::views::ListToolsResult;
use mcp_sansio::client::{ClientInfo, ProtocolViolation, Request, SendError, SubscriptionFilter, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::{ClientCapability, LoggingLevel};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::MessageLimits;
use mcp_sansio::sink::LineSink;
use mcp_sansio_smol::client::{
    Child, ChildOptions, Client, ClientError, ClientEvent, ClientHandle, ClientOptions, Direction, Ignore, OwnedEvent,
    OwnedResult, PageLimits, Stderr, StopSignal, StreamTransport, SubscriptionEvent, events,
};
use mcp_sansio_smol::{Serve, channel};
use restarting::{folder, process, program, runs};
use smol::future::FutureExt;
use smol::io::{AsyncRead, AsyncWrite};
use smol::stream::StreamExt;
use smol::{Timer, future};

mod common;
#[path = "../../../tests/remote/restarting.rs"]
mod restarting;

static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);

/// Returns a client of one revision.
fn only(revision: Revision) -> &'static ClientInfo<'static> {
    Box::leak(Box::new(PROFILE.revisions(Revisions::NONE.with(revision))))
}

/// A correct server: this program runs it when [`own_server`] starts it.
#[test]
#[ignore = "a server"]
fn server() {
    let (answers, late) = channel();
    let mut state = common::State::new(answers);
    smol::block_on(common::plain(Serve::new(&common::service()).late(late)).stdio(&mut state)).unwrap();
}

/// The harness says a few words of its own on stdout, which a client has to bear.
fn own_server() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    command
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// Runs a test beside the driver. A test that hangs fails.
fn run<F: Future<Output = ()>>(child: Child, test: impl FnOnce(Client) -> F) {
    let (client, driver) = Client::new(child, Ignore);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        test(client).await;
        driver.await;
    }));
}

/// Runs a future, and counts how often it is polled.
fn counted(future: impl Future<Output = ()>) -> (impl Future<Output = ()>, Arc<AtomicUsize>) {
    let polls = Arc::new(AtomicUsize::new(0));
    let count = polls.clone();
    let mut future = Box::pin(future);
    let counting = future::poll_fn(move |cx| {
        count.fetch_add(1, Ordering::Relaxed);
        future.as_mut().poll(cx)
    });
    (counting, polls)
}

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    future::or(future, async {
        Timer::after(Duration::from_secs(20)).await;
        panic!("it hangs")
    })
    .await
}

fn start(command: Command, options: ChildOptions) -> Child {
    Child::spawn_with(command, &PROFILE, options).unwrap()
}

/// Returns options with times that a test can wait for.
fn hasty() -> ChildOptions {
    let time = Duration::from_millis(100);
    ChildOptions::new().close_time(time).terminate_time(time)
}

fn lost(outcome: Result<OwnedResult, ClientError>) -> (TransportError, String) {
    match outcome {
        Err(ClientError::Lost { why, detail }) => (why, detail),
        other => panic!("{other:?}"),
    }
}

/// Answers the probe as a server of 2026-07-28, then goes on with `rest`.
fn modern(rest: &str) -> Command {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","capabilities":{"tools":{}},"supportedVersions":["2026-07-28"]}}"#;
    shell(&format!("read line; echo '{hello}'; {rest}"))
}

const ECHO: Raw<'static> = Raw::constant(r#"{"text":"hello"}"#);

#[test]
fn a_whole_life() {
    run(start(own_server(), ChildOptions::new()), |client| async move {
        let hello = client.connect().await.unwrap();
        assert_eq!(hello.revision(), Revision::V2026_07_28);
        let mut names = Vec::new();
        let mut pages = client.pages(Request::list_tools());
        while let Some(page) = pages.next().await {
            let page = page.unwrap();
            names.extend(
                page.view::<ListToolsResult<'_>>().unwrap().iter().map(|tool| tool.unwrap().name().to_string()),
            );
        }
        assert!(names.iter().any(|name| name == "echo"), "{names:?}");
        let answer = client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
        assert!(answer.as_str().contains("hello"), "{answer:?}");
        // It has ended before the time for the next signal.
        assert_eq!(client.close().await.unwrap().after, StopSignal::StdinClosed);
        let (why, detail) = lost(client.request(Request::list_tools()).await);
        assert_eq!((why, detail.as_str()), (TransportError::Closed, "it was closed"));
        assert_eq!(client.close().await.unwrap().after, StopSignal::StdinClosed);
    });
}

/// A journal is a layer of a client.
#[test]
fn a_journal_of_a_client() {
    let journal: &'static mcp_sansio_smol::layers::Journal<Vec<u8>> =
        Box::leak(Box::new(mcp_sansio_smol::layers::Journal::new(Vec::new())));
    let layers: [&dyn mcp_sansio::client::Layer; 1] = [journal];
    let layers: &'static _ = Box::leak(Box::new(layers));
    let info: &'static _ = Box::leak(Box::new(PROFILE.layers(layers)));
    run(Child::spawn(own_server(), info).unwrap(), |client| async move {
        client.connect().await.unwrap();
        client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
        client.request(Request::call("nothing")).await.unwrap_err();
        client.close().await.unwrap();
    });
    let lines = journal.with(|lines| String::from_utf8(lines.clone()).unwrap());
    for expected in [
        r#""method":"server/discover","outcome":"result""#,
        r#""method":"tools/call","name":"echo","outcome":"result""#,
        r#""method":"tools/call","name":"nothing","outcome":"error","code":-32602"#,
    ] {
        assert!(lines.contains(expected), "{lines}");
    }
}

/// A list whose cursors form a circle ends.
#[test]
fn a_circle_of_pages_ends() {
    let script = r#"i=0; while read l; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"nextCursor":"'$((i%3))'","resultType":"complete"}}'; done"#;
    run(start(shell(script), hasty()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let mut pages = client.pages(Request::list_tools());
        for _ in 0..3 {
            pages.next().await.unwrap().unwrap();
        }
        assert!(pages.next().await.is_none() && pages.next().await.is_none());
        client.close().await;
    });
}

/// The same cursor again may lead to another page; a list beyond a limit ends with an error.
#[test]
fn pages_with_equal_cursors_and_limits() {
    let script = r#"i=0; while read l; do i=$((i+1)); next=',"nextCursor":"c"'; [ $((i % 4)) = 0 ] && next=
        echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"page":'$i$next',"resultType":"complete"}}'; done"#;
    run(start(shell(script), hasty()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let pages =
            client.pages(Request::list_tools()).map(|page| page.unwrap().raw().get("page").unwrap().u64().unwrap());
        assert_eq!(pages.collect::<Vec<_>>().await, [1, 2, 3, 4]);
        let mut pages = client.pages(Request::list_tools()).limits(PageLimits::DEFAULT.bytes(1));
        pages.next().await.unwrap().unwrap();
        assert!(matches!(pages.next().await, Some(Err(ClientError::ListTooLarge))));
        assert!(pages.next().await.is_none());
        client.close().await;
    });
}

// spec: T001
#[test]
fn every_revision() {
    for revision in Revision::ALL {
        let info = only(revision);
        run(Child::spawn(own_server(), info).unwrap(), |client| async move {
            assert_eq!(client.connect().await.unwrap().revision(), revision);
            client.set_log_level(LoggingLevel::Error).await.unwrap();
            let answer = client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
            assert!(answer.as_str().contains("hello"), "{answer:?}");
            client.close().await;
        });
    }
}

#[test]
fn more_requests_than_places_from_many_tasks() {
    run(start(own_server(), ChildOptions::new()), |client| async move {
        client.connect().await.unwrap();
        let tasks: Vec<_> = (0..500)
            .map(|number: u32| {
                let client = client.clone();
                smol::spawn(async move {
                    let arguments = serde_json::json!({ "text": format!("<{number}>") });
                    let answer = client.request(Request::call("echo").arguments(&arguments)).await.unwrap();
                    assert!(answer.as_str().contains(&format!("<{number}>")), "{answer:?}");
                    number
                })
            })
            .collect();
        let mut done = HashSet::new();
        for task in tasks {
            done.insert(task.await);
        }
        assert_eq!(done.len(), 500);
        // The second answer comes before the first one.
        let slow = client.request(Request::call("wait").arguments(&Wait { ms: 60, steps: 0 }));
        let fast = client.request(Request::call("wait").arguments(&Wait { ms: 1, steps: 0 }));
        let first = future::or(async { (slow.await.unwrap(), "slow").1 }, async { (fast.await.unwrap(), "fast").1 });
        assert_eq!(first.await, "fast");
        client.close().await;
    });
}

#[derive(serde::Serialize)]
struct Wait {
    ms: u64,
    steps: u64,
}

#[test]
fn a_dropped_request_is_cancelled() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = sent.clone();
    run(start(own_server(), ChildOptions::new()), |client| async move {
        client.trace(move |_, message| seen.lock().unwrap().push(String::from_utf8_lossy(message).into_owned()));
        client.connect().await.unwrap();
        let never = client.request(Request::call("wait").arguments(&Wait { ms: 0, steps: 0 }));
        let timed = future::or(async { Some(never.await) }, async {
            Timer::after(Duration::from_millis(50)).await;
            None
        });
        assert!(timed.await.is_none());
        client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
        client.close().await;
    });
    let sent = sent.lock().unwrap();
    let cancels =
        sent.iter().filter(|line| line.contains(r#""method":"notifications/cancelled","params":{"requestId":2"#));
    assert_eq!(cancels.count(), 1, "{sent:?}");
}

#[test]
fn those_that_wait_for_room_go_on_when_one_of_them_is_dropped() {
    run(start(own_server(), ChildOptions::new()), |client| async move {
        client.connect().await.unwrap();
        let never = Request::call("wait").arguments(&Wait { ms: 0, steps: 0 });
        let sent = Arc::new(AtomicUsize::new(0));
        let begin = |request| {
            let sent = sent.clone();
            client.request_with(request, move |_| _ = sent.fetch_add(1, Ordering::Relaxed))
        };
        let mut taken: Vec<_> = (0..mcp_sansio_smol::client::IN_FLIGHT).map(|_| begin(never)).collect();
        let first = begin(Request::call("echo").arguments(&ECHO));
        let second = begin(Request::call("echo").arguments(&ECHO));
        assert_eq!(sent.load(Ordering::Relaxed), 64);
        assert!(future::poll_once(Box::pin(client.request(Request::list_tools()))).await.is_none());
        let second = smol::spawn(second);
        Timer::after(Duration::from_millis(20)).await;
        drop(first);
        drop(taken.pop());
        assert!(second.await.unwrap().as_str().contains("hello"));
        assert_eq!(sent.load(Ordering::Relaxed), 65, "the dropped one had no token");
        // A request that waits for its turn ends by its time, too.
        let outcome = client.request(never);
        let late = client.request(Request::call("echo").arguments(&ECHO).timeout(40));
        assert_eq!(lost(late.await).0, TransportError::TimedOut);
        drop((taken, outcome));
        client.close().await;
    });
}

#[test]
fn progress_and_questions_go_to_the_events() {
    let (handler, mut events) = events(100);
    let (client, driver) = Client::new(start(own_server(), ChildOptions::new()), handler);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        client.connect().await.unwrap();
        let (sending, sent) = std::sync::mpsc::channel();
        let request = Request::call("wait").arguments(&Wait { ms: 1, steps: 3 }).with_progress();
        client.request_with(request, move |token| sending.send(token).unwrap()).await.unwrap();
        let token = sent.recv().ok();
        let mut reports = Vec::new();
        while reports.len() < 3 {
            if let OwnedEvent::Progress { token: of, done, total, .. } = events.next().await.unwrap() {
                assert_eq!((Some(of), total), (token, Some(3.0)));
                reports.push(done);
            }
        }
        assert_eq!(reports, [1.0, 2.0, 3.0]);
        for name in ["Ada", "Lovelace"] {
            let met = smol::spawn(client.request(Request::call("greet")));
            let ask = loop {
                if let OwnedEvent::Asked(ask) = events.next().await.unwrap() {
                    break ask;
                }
            };
            assert!(ask.params().get("requestedSchema").is_some());
            let content = format!(r#"{{"name":"{name}"}}"#);
            let content = ClientResult::accept(Raw::parse(content.as_bytes()).unwrap());
            client.reply(ask.id, &content).unwrap();
            assert!(matches!(client.reply(ask.id, &content), Err(ClientError::NotSent(SendError::Stale))));
            assert!(met.await.unwrap().as_str().contains(name));
        }
        assert_eq!(events.missed(), 0);
        client.close().await;
        driver.await;
    }));
}

/// A server in the memory of this program: it has answered when a write returns.
#[derive(Clone)]
struct Quick(Arc<Mutex<QuickServer>>);

type QuickServer = (LineServer<'static, LineSink<Vec<u8>>>, common::State);

impl Quick {
    fn new() -> Self {
        let server = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
        Quick(Arc::new(Mutex::new((server, common::State::new(channel().0)))))
    }
}

impl AsyncWrite for Quick {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let (server, state) = &mut *self.0.lock().unwrap();
        let space = server.space();
        let n = space.len().min(bytes.len());
        space[..n].copy_from_slice(&bytes[..n]);
        server.filled(n);
        let _ = server.run(&common::service(), state);
        Poll::Ready(Ok(n))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Quick {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<std::io::Result<usize>> {
        let (server, _) = &mut *self.0.lock().unwrap();
        let n = space.len().min(server.out.pending().len());
        if n == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        space[..n].copy_from_slice(&server.out.pending()[..n]);
        server.out.sent(n);
        Poll::Ready(Ok(n))
    }
}

/// A handler that answers a question has to know the request that caused it. Three requests wait for the connection; the last one
/// is sent before `request_with` returns.
#[test]
fn a_token_is_known_before_the_first_event_that_carries_it() {
    let names = Arc::new(Mutex::new(HashMap::new()));
    let known = names.clone();
    let handler = move |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
        let ClientEvent::Asked(asked) = event else { return };
        let Some(name) = asked.token.and_then(|token| known.lock().unwrap().remove(&token)) else { return };
        for question in asked.questions() {
            let content = format!(r#"{{"name":"{name}"}}"#);
            handle.reply(question.id, &ClientResult::accept(Raw::parse(content.as_bytes()).unwrap())).unwrap();
        }
    };
    let server = Quick::new();
    let (client, driver) = Client::new(StreamTransport::new(server.clone(), server, &PROFILE), handler);
    let greet = |client: &Client, name: &'static str| {
        let names = names.clone();
        client.request_with(Request::call("greet"), move |token| _ = names.lock().unwrap().insert(token, name))
    };
    let (seen, calls) = (names.clone(), Arc::new(AtomicUsize::new(0)));
    let written = calls.clone();
    client.trace(move |direction, message| {
        let message = String::from_utf8_lossy(message);
        let first = message.contains("tools/call") && !message.contains("inputResponses");
        if direction == Direction::Sent && first {
            assert!(!seen.lock().unwrap().is_empty(), "the token comes after the bytes");
            written.fetch_add(1, Ordering::Relaxed);
        }
    });
    smol::block_on(bounded(async {
        let mut connected = Box::pin(client.connect());
        assert!(future::poll_once(&mut connected).await.is_none());
        let waiting = ["Grace", "Mary", "Emmy"].map(|name| (name, greet(&client, name)));
        assert!(names.lock().unwrap().is_empty());
        let driver = smol::spawn(driver);
        connected.await.unwrap();
        for (name, greeted) in waiting {
            assert!(greeted.await.unwrap().as_str().contains(&format!("Hello, {name}")));
        }
        assert!(greet(&client, "Ada").await.unwrap().as_str().contains("Hello, Ada"));
        assert_eq!((names.lock().unwrap().len(), calls.load(Ordering::Relaxed)), (0, 4));
        client.close().await;
        driver.await;
    }));
}

#[test]
fn log_messages_go_to_the_events() {
    let (handler, mut events) = events(100);
    let info = only(Revision::V2025_11_25);
    let (client, driver) = Client::new(Child::spawn(own_server(), info).unwrap(), handler);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        client.connect().await.unwrap();
        client.request(Request::call("wait").arguments(&Wait { ms: 1, steps: 1 })).await.unwrap();
        let (level, data) = loop {
            if let OwnedEvent::Log { level, data, .. } = events.next().await.unwrap() {
                break (level, data);
            }
        };
        assert_eq!((level, data.as_str()), (Some(LoggingLevel::Error), r#""after 1""#));
        client.close().await;
        driver.await;
    }));
}

/// Up to 2025-11-25 a change names no subscription: each one takes what it has asked for.
#[test]
fn changed_lists_before_2026() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true}},"serverInfo":{"name":"a","version":"1"}}}"#;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let answer = r#"'{"jsonrpc":"2.0","id":'$(echo "$l" | sed 's/.*"id":\([0-9]*\).*/\1/')',"result":{}}'"#;
    let script = format!("read l; echo '{hello}'; read l; read l; echo '{changed}'; echo {answer}; cat > /dev/null");
    let info = only(Revision::V2025_11_25);
    run(Child::spawn(shell(&script), info).unwrap(), |client| async move {
        client.connect().await.unwrap();
        let mut tools = client.listen(&SubscriptionFilter::new().tools()).unwrap();
        let mut prompts = client.listen(&SubscriptionFilter::new().prompts()).unwrap();
        client.request(Request::ping()).await.unwrap();
        client.close().await;
        assert!(matches!(tools.next().await, Some(Ok(SubscriptionEvent::Listening(_)))));
        assert_eq!(tools.next().await.unwrap().unwrap(), SubscriptionEvent::Tools);
        assert!(matches!(prompts.next().await, Some(Ok(SubscriptionEvent::Listening(_)))));
        assert!(matches!(prompts.next().await, None | Some(Err(_))));
    });
}

/// More changes than are kept until they are taken: the subscriber learns that all may have changed.
#[test]
fn changes_that_are_left_out_are_told() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"a","version":"1"}}}"#;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://&"}}"#;
    let answer = r#"'{"jsonrpc":"2.0","id":'$(echo "$l" | sed 's/.*"id":\([0-9]*\).*/\1/')',"result":{}}'"#;
    let script = format!(
        "read l; echo '{hello}'; read l; read l; echo {answer}; read l; seq 5000 | sed 's|.*|{changed}|'; echo {answer}; cat > /dev/null"
    );
    let info = only(Revision::V2025_11_25);
    run(Child::spawn(shell(&script), info).unwrap(), |client| async move {
        client.connect().await.unwrap();
        let mut changes = client.listen(&SubscriptionFilter::new().uris(&["test://"])).unwrap();
        assert!(matches!(changes.next().await, Some(Ok(SubscriptionEvent::Listening(_)))));
        client.request(Request::ping()).await.unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), SubscriptionEvent::All);
        client.close().await;
        assert!(matches!(changes.next().await, None | Some(Err(_))));
    });
}

#[test]
fn a_dropped_subscription_is_cancelled() {
    let rest = r#"t=no; while read l; do case "$l" in *notifications/cancelled*) t=yes;; *tools/call*)
        id=$(echo "$l" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","content":[{"type":"text","text":"'$t'"}]}}'
        esac; done"#;
    run(start(modern(rest), hasty()), |client| async move {
        client.connect().await.unwrap();
        let listen = client.listen(&SubscriptionFilter::new().tools()).unwrap();
        // The listen has been sent when this is answered.
        let answer = client.request(Request::call("x")).await.unwrap();
        assert!(answer.as_str().contains("no"), "{answer:?}");
        drop(listen);
        let answer = client.request(Request::call("x")).await.unwrap();
        assert!(answer.as_str().contains("yes"), "{answer:?}");
        client.close().await;
    });
}

#[test]
fn questions_that_nobody_takes_are_refused() {
    let (handler, events) = events(1);
    drop(events);
    let (client, driver) = Client::new(start(own_server(), ChildOptions::new()), handler);
    smol::block_on(bounded(future::or(
        async {
            client.connect().await.unwrap();
            // The form is declined, because its events are dropped. The server sends it again up to the limit of
            // rounds.
            let error = client.request(Request::call("greet")).await.unwrap_err();
            assert_eq!(error.lost(), Some(TransportError::TooManyRounds));
            client.close().await;
            future::pending::<()>().await;
        },
        driver,
    )));
}

#[test]
fn a_handler_answers_at_once() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let handler = move |event: ClientEvent<'_>, handle: &mut ClientHandle<'_, '_>| {
            if let ClientEvent::Asked(asked) = event {
                for question in asked.questions() {
                    handle.reply(question.id, &ClientResult::accept(Raw::constant(r#"{"name":"Ada"}"#))).unwrap();
                }
            }
        };
        let info = only(revision);
        let (client, driver) = Client::new(Child::spawn(own_server(), info).unwrap(), handler);
        smol::block_on(bounded(async {
            smol::spawn(driver).detach();
            client.connect().await.unwrap();
            let answer = client.request(Request::call("greet")).await.unwrap();
            assert!(answer.as_str().contains("Hello, Ada"), "{answer:?}");
            client.close().await;
        }));
    }
}

#[test]
fn changes_in_every_revision() {
    for revision in Revision::ALL {
        let info = only(revision);
        run(Child::spawn(own_server(), info).unwrap(), |client| async move {
            client.connect().await.unwrap();
            let clock = ["test://clock"];
            let filter = SubscriptionFilter::new().uris(&clock);
            let mut listens = [client.listen(&filter).unwrap(), client.listen(&filter).unwrap()];
            for listen in &mut listens {
                assert!(
                    matches!(listen.next().await, Some(Ok(SubscriptionEvent::Listening(listening))) if listening.uris == 1)
                );
                assert_eq!(
                    listen.next().await.unwrap().unwrap(),
                    SubscriptionEvent::Resource("test://clock".to_owned())
                );
            }
            let [mut one, other] = listens;
            drop(other);
            one.next().await.unwrap().unwrap();
            client.close().await;
            while let Some(change) = one.next().await {
                if let Err(error) = change {
                    assert_eq!(error.lost(), Some(TransportError::Closed));
                }
            }
        });
    }
}

/// A server in the same program, over a socket, and no spawned tasks.
// spec: T002 T063 T065 T072
#[test]
fn over_a_socket() {
    let (near, far) = smol::net::unix::UnixStream::pair().unwrap();
    let (client, driver) = Client::new(StreamTransport::new(near.clone(), near, &PROFILE), Ignore);
    smol::block_on(bounded(async {
        let serving = common::serve(far.clone(), far, common::plain);
        let using = async {
            client.connect().await.unwrap();
            let answer = client.request(Request::call("echo").arguments(&ECHO)).await.unwrap();
            assert!(answer.as_str().contains("hello"));
            let never = client.request(Request::call("wait").arguments(&Wait { ms: 0, steps: 0 }));
            assert_eq!(client.close().await, None);
            assert_eq!(lost(never.await), (TransportError::Closed, "it was closed".to_owned()));
        };
        future::zip(using, future::zip(driver, serving)).await;
    }));
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A lone request is written and its answer read in its own task; several are written by the driver, at once.
#[test]
fn a_lone_request_needs_no_driver() {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let near = smol::net::unix::UnixStream::from(smol::Async::new(near).unwrap());
    let (client, driver) = Client::new(StreamTransport::new(near.clone(), near, &PROFILE), Ignore);
    let (mut driver, wakes, own) = (Box::pin(driver), Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let (driver_waker, own_waker) = (Waker::from(wakes.clone()), Waker::from(own.clone()));
    let (mut driver_cx, mut cx) = (Context::from_waker(&driver_waker), Context::from_waker(&own_waker));
    smol::block_on(client.connect_as(Revision::V2026_07_28)).unwrap();
    let mut lines = BufReader::new(&far).lines();
    let mut id_of_next = || {
        let line = lines.next().unwrap().unwrap();
        Raw::parse(line.as_bytes()).unwrap().get("id").and_then(|id| id.u64())
    };
    // The first deadline needs the driver's timer.
    let first = client.request(Request::call("echo"));
    assert!(driver.as_mut().poll(&mut driver_cx).is_pending());
    assert!(id_of_next().is_some());
    drop(first);
    // Its cancellation.
    assert!(driver.as_mut().poll(&mut driver_cx).is_pending());
    assert_eq!(id_of_next(), None);

    let before = wakes.0.load(Ordering::SeqCst);
    let mut answer = Box::pin(client.request(Request::call("echo")));
    let id = id_of_next().unwrap();
    assert!(answer.as_mut().poll(&mut cx).is_pending());
    assert_eq!(wakes.0.load(Ordering::SeqCst), before, "it was written without the driver");
    writeln!(&far, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}"#).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while wakes.0.load(Ordering::SeqCst) == before && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(answer.as_mut().poll(&mut cx), Poll::Ready(Ok(_))), "it was read without the driver");
    assert_eq!(own.0.load(Ordering::SeqCst), 0, "the task did not wake itself");

    let before = wakes.0.load(Ordering::SeqCst);
    let _several = [client.request(Request::call("echo")), client.request(Request::call("echo"))];
    assert!(wakes.0.load(Ordering::SeqCst) > before, "the driver writes the second");
}

/// The handler panics with a clear message; it would wait for itself otherwise.
#[test]
fn a_handler_that_uses_the_client() {
    let own = Arc::new(Mutex::new(None::<Client>));
    let found = own.clone();
    let handler =
        move |_: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>| drop(found.lock().unwrap().as_ref().unwrap().server());
    let (client, driver) = Client::new(start(own_server(), ChildOptions::new()), handler);
    *own.lock().unwrap() = Some(client.clone());
    smol::block_on(bounded(async {
        let driver = smol::spawn(std::panic::AssertUnwindSafe(driver).catch_unwind());
        assert_eq!(client.connect().await.unwrap_err().lost(), Some(TransportError::Closed));
        let panic = driver.await.unwrap_err();
        assert!(panic.downcast::<&str>().unwrap().contains("its own handler"));
    }));
}

#[test]
fn a_death_is_told_with_its_last_words() {
    let script = "read line; echo 'out of cheese' >&2; exit 3";
    run(start(modern(script), ChildOptions::new()), |client| async move {
        client.connect().await.unwrap();
        let [one, two] = [(); 2].map(|()| client.request(Request::list_tools()));
        for outcome in [one.await, two.await] {
            let (why, detail) = lost(outcome);
            // The server may end before the second one is written.
            assert!(matches!(why, TransportError::Closed | TransportError::Unsent), "{why}");
            assert!(detail.contains("exit status: 3") && detail.ends_with("out of cheese"), "{detail}");
        }
        let (_, detail) = lost(client.request(Request::list_tools()).await);
        assert!(detail.contains("exit status: 3"), "{detail}");
        let refused = client.listen(&SubscriptionFilter::new().tools()).unwrap_err();
        assert_eq!(refused.lost(), Some(TransportError::Closed));
        assert!(refused.to_string().contains("exit status: 3"), "{refused}");
        assert_eq!(client.close().await.unwrap().after, StopSignal::None);
    });
}

#[test]
fn a_program_that_is_no_server() {
    let missing = Child::spawn(Command::new("/no/such/program"), &PROFILE);
    assert!(matches!(missing, Err(ClientError::Start { program, .. }) if program == "/no/such/program"));
    run(start(shell("echo usage: none; exit 1"), ChildOptions::new()), |client| async move {
        let error = client.connect().await.unwrap_err();
        assert_eq!(error.lost(), Some(TransportError::Closed));
        assert!(error.to_string().contains("exit status: 1"), "{error}");
        assert!(matches!(
            client.request(Request::list_tools()).await,
            Err(ClientError::Lost { why: TransportError::Closed, .. })
        ));
        client.close().await;
    });
}

/// A server of an older revision that ends at a request before `initialize`. It notes each of its starts in the file `$0`.
const STRICT: &str = r#"echo start >> "$0"
read line
case "$line" in *'"method":"initialize"'*) ;; *) echo "expected initialize" >&2; exit 1 ;; esac
id=${line#*'"id":'}; id=${id%%[,\}]*}
echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"strict","version":"1"}}}'
read line
while read line; do id=${line#*'"id":'}; echo '{"jsonrpc":"2.0","id":'${id%%[,\}]*}',"result":{"tools":[]}}'; done"#;

/// The process is started once more, and no third time.
#[test]
fn a_server_that_ends_at_the_probe() {
    let starts = std::env::temp_dir().join(format!("mcp-starts-smol-{}", std::process::id()));
    let command = |script| {
        let mut command = shell(script);
        command.arg(&starts);
        command
    };
    let counted = || std::fs::read_to_string(&starts).unwrap().lines().count();
    run(start(command(STRICT), hasty()), |client| async move {
        assert_eq!(client.connect().await.unwrap().revision(), Revision::V2025_06_18);
        assert!(client.request(Request::list_tools()).await.unwrap().as_str().contains("tools"));
        assert_eq!(client.close().await.unwrap().after, StopSignal::StdinClosed);
    });
    assert_eq!(counted(), 2);
    let fails = "echo start >> \"$0\"; read line; echo never >&2; exit 3";
    run(start(command(fails), hasty()), |client| async move {
        let error = client.connect().await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.matches("never").count() == 1, "{error}");
        client.close().await;
    });
    assert_eq!(counted(), 4);
    std::fs::remove_file(starts).unwrap();
}

/// A driver that has nothing to do is not polled again and again.
#[test]
fn the_driver_rests() {
    let (client, driver) = Client::new(start(own_server(), ChildOptions::new()), Ignore);
    let (driver, polls) = counted(driver);
    smol::block_on(bounded(future::or(
        async {
            client.connect().await.unwrap();
            // Answers that are read while requests still wait to be written.
            let large = serde_json::json!({ "text": "x".repeat(300_000) });
            let answers = [(); 8].map(|()| client.request(Request::call("echo").arguments(&large)));
            for answer in answers {
                assert!(answer.await.unwrap().as_str().len() > 300_000);
            }
            Timer::after(Duration::from_millis(50)).await;
            let before = polls.load(Ordering::Relaxed);
            Timer::after(Duration::from_millis(200)).await;
            let polls = polls.load(Ordering::Relaxed) - before;
            assert!(polls < 10, "{polls} polls of a driver at rest");
        },
        driver,
    )));
}

/// Requests that wait in other tasks end when the client is closed.
#[test]
fn closing_wakes_those_that_wait() {
    let child = start(modern("cat > /dev/null"), hasty());
    run(child, |client| async move {
        client.connect().await.unwrap();
        let waiting = [(); 3].map(|()| {
            let client = client.clone();
            smol::spawn(async move { client.request(Request::call("any")).await })
        });
        Timer::after(Duration::from_millis(50)).await;
        client.close().await;
        for outcome in waiting {
            assert_eq!(lost(outcome.await).0, TransportError::Closed);
        }
    });
}

/// The first process closes its stdout at the probe and lives on: it is stopped when the second one is started.
#[test]
fn the_process_that_is_replaced_is_stopped() {
    let file = std::env::temp_dir().join(format!("mcp-replaced-smol-{}", std::process::id()));
    let first = r#"if [ ! -e "$0" ]; then echo $$ > "$0"; read line; exec >&-; exec sleep 60; fi"#;
    let mut command = shell(&format!("{first}\n{STRICT}"));
    command.arg(&file);
    run(start(command, hasty()), |client| async move {
        assert_eq!(client.connect().await.unwrap().revision(), Revision::V2025_06_18);
        let text = std::fs::read_to_string(&file).unwrap();
        let old = text.lines().next().unwrap();
        let lives =
            || Command::new("kill").args(["-0", old]).stderr(std::process::Stdio::null()).status().unwrap().success();
        while lives() {
            Timer::after(Duration::from_millis(10)).await;
        }
        client.close().await;
        std::fs::remove_file(&file).unwrap();
    });
}

/// The first process ends and has read a byte of the probe, which is larger than a pipe: the second one gets none of its rest.
#[test]
fn the_rest_of_a_probe_goes_to_no_other_process() {
    let file = std::env::temp_dir().join(format!("mcp-rest-smol-{}", std::process::id()));
    // A process that ends before the probe has begun is not started again.
    let first = r#"if [ ! -e "$0" ]; then echo first > "$0"; head -c 1 > /dev/null; exit; fi"#;
    let mut command = shell(&format!("{first}\n{STRICT}"));
    command.arg(&file);
    let name: &str = Box::leak("n".repeat(200_000).into_boxed_str());
    let info: &ClientInfo<'_> = Box::leak(Box::new(ClientInfo::new(name, "1")));
    run(Child::spawn_with(command, info, hasty()).unwrap(), |client| async move {
        assert_eq!(client.connect().await.unwrap().revision(), Revision::V2025_06_18);
        client.close().await;
        std::fs::remove_file(&file).unwrap();
    });
}

#[test]
fn a_server_that_has_ended_is_started_again() {
    let folder = folder("ended");
    run(start(Command::new(program(&folder)), hasty()), |client| async move {
        client.connect().await.unwrap();
        let first = process(&client.request(Request::call("any")).await.unwrap());
        let hello = client.server().unwrap();
        for _ in 0..2 {
            let error = client.request(Request::call("end")).await.unwrap_err();
            assert!(error.is_disconnected(), "{error}");
            assert!(client.request(Request::call("any")).await.unwrap_err().is_disconnected());
            assert_eq!(client.restart().await.unwrap().revision(), hello.revision());
            assert_ne!(process(&client.request(Request::call("any")).await.unwrap()), first);
        }
        assert_eq!(client.close().await.unwrap().after, StopSignal::StdinClosed);
        assert!(client.restart().await.unwrap_err().is_disconnected(), "it was closed");
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// The old process ends before the new one begins; two tasks get the same new one, and what they request meanwhile waits.
#[test]
fn a_server_that_hangs_is_ended_and_started_again() {
    let folder = folder("hangs");
    run(start(Command::new(program(&folder)), hasty()), |client| async move {
        client.connect().await.unwrap();
        let first = process(&client.request(Request::call("any")).await.unwrap());
        let hung = client.request(Request::call("hang"));
        let error = client.request(Request::call("any").timeout(100)).await.unwrap_err();
        assert!(error.lost() == Some(TransportError::TimedOut) && !error.is_disconnected(), "{error}");
        let (again, asking) = (client.clone(), client.clone());
        let meanwhile = async {
            Timer::after(Duration::from_millis(20)).await;
            asking.request(Request::call("any")).await
        };
        let (both, answer) = future::zip(future::zip(client.restart(), again.restart()), meanwhile).await;
        assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
        let second = process(&answer.unwrap());
        assert_eq!(lost(hung.await).0, TransportError::Closed);
        assert_ne!(second, first);
        assert_eq!(process(&client.request(Request::call("any")).await.unwrap()), second);
        client.close().await;
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_that_is_gone_can_come_back() {
    let folder = folder("gone");
    let path = program(&folder);
    run(start(Command::new(&path), hasty()), |client| async move {
        client.connect().await.unwrap();
        let open = client.request(Request::call("hang"));
        std::fs::remove_file(&path).unwrap();
        for _ in 0..2 {
            let error = client.restart().await.unwrap_err();
            assert!(matches!(error, ClientError::Start { .. }) && error.is_disconnected(), "{error}");
        }
        assert_eq!(lost(open.await).0, TransportError::Closed);
        assert!(client.request(Request::call("any")).await.unwrap_err().is_disconnected());
        program(path.parent().unwrap());
        client.restart().await.unwrap();
        client.request(Request::call("any")).await.unwrap();
        client.close().await;
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// The old process is ended in order, and nothing begins any more.
#[test]
fn a_client_is_closed_while_it_makes_a_new_connection() {
    let folder = folder("closed");
    run(start(Command::new(program(&folder)), hasty()), |client| async move {
        client.connect().await.unwrap();
        let hung = client.request(Request::call("hang"));
        let closing = client.clone();
        let close = async {
            Timer::after(Duration::from_millis(20)).await;
            closing.close().await
        };
        let (restarted, ended) = future::zip(client.restart(), close).await;
        assert!(restarted.is_err());
        assert!(ended.is_some_and(|ended| ended.after == StopSignal::Terminate), "{ended:?}");
        assert_eq!(lost(hung.await).0, TransportError::Closed);
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_server_that_never_answers() {
    let options = ClientOptions::DEFAULT.probe_timeout(Duration::from_millis(30)).timeout(Duration::from_millis(60));
    let child = start(shell("cat >/dev/null"), hasty().options(options));
    run(child, |client| async move {
        let begun = Instant::now();
        assert_eq!(client.connect().await.unwrap_err().lost(), Some(TransportError::TimedOut));
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(client.close().await.unwrap().after, StopSignal::StdinClosed);
    });
}

#[test]
fn a_server_that_does_not_read() {
    run(start(modern("exec sleep 30 >/dev/null"), hasty()), |client| async move {
        client.connect().await.unwrap();
        let text = "x".repeat(700_000);
        let big = serde_json::json!({ "text": text });
        let request = Request::call("echo").arguments(&big).timeout(100);
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = || {
            let sent = sent.clone();
            move |_| _ = sent.fetch_add(1, Ordering::Relaxed)
        };
        let outcomes: Vec<_> = (0..8).map(|_| client.request_with(request, counted())).collect();
        assert!((1..8).contains(&sent.load(Ordering::Relaxed)), "the last ones wait for their turn");
        let begun = Instant::now();
        for outcome in outcomes {
            assert!(matches!(
                lost(outcome.await).0,
                TransportError::TimedOut | TransportError::Closed | TransportError::Unsent
            ));
        }
        assert!(begun.elapsed() < Duration::from_secs(2));
        // The server ignores the end of its stdin, so it needs SIGTERM.
        assert_eq!(client.close().await.unwrap().after, StopSignal::Terminate);
    });
}

/// The server writes all its messages before it reads the next line.
#[test]
fn a_server_that_says_much_before_it_reads() {
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}"#;
    let script = format!("sleep 0.2; yes '{{}}' | head -n 100000; head -n 1 >/dev/null; echo '{answer}'; cat");
    run(start(modern(&script), hasty()), |client| async move {
        client.connect().await.unwrap();
        let big = serde_json::json!({ "text": "x".repeat(2 << 20) });
        client.request(Request::call("echo").arguments(&big).timeout(10_000)).await.unwrap();
        client.close().await;
    });
}

// spec: B111
#[test]
fn a_server_that_does_not_want_to_end() {
    let child = start(modern("trap '' TERM; while :; do sleep 1; done"), hasty());
    run(child, |client| async move {
        client.connect().await.unwrap();
        let begun = Instant::now();
        assert_eq!(client.close().await.unwrap().after, StopSignal::Kill);
        assert!(begun.elapsed() < Duration::from_secs(2));
    });
}

/// The server is a child of a shell, as behind `npx` or `uv run`: it is stopped with it.
#[test]
fn a_wrapper_is_stopped_with_its_server() {
    let file = std::env::temp_dir().join(format!("server-{}", std::process::id()));
    let child = start(modern(&format!("sleep 60 & echo $! >{}; wait", file.display())), hasty());
    run(child, |client| async move {
        client.connect().await.unwrap();
        while !std::fs::read_to_string(&file).is_ok_and(|id| id.ends_with('\n')) {
            smol::Timer::after(Duration::from_millis(5)).await;
        }
        let server = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        std::fs::remove_file(&file).unwrap();
        client.close().await.unwrap();
        let begun = Instant::now();
        while runs(&server) {
            assert!(begun.elapsed() < Duration::from_secs(5), "the process {server} is still there");
            smol::Timer::after(Duration::from_millis(10)).await;
        }
    });
}

/// The server may use its whole time to end for writing, and must not block on a full pipe: on one, and on the other.
#[test]
fn a_server_that_says_a_lot_at_the_end() {
    for (first, second) in [("", ""), ("", ">&2"), (">&2", "")] {
        let last =
            format!("cat >/dev/null; head -c 300000 /dev/zero {first}; head -c 300000 /dev/zero {second}; exit 7");
        let options = ChildOptions::new().close_time(Duration::from_secs(5));
        run(start(modern(&last), options), |client| async move {
            client.connect().await.unwrap();
            let ended = client.close().await.unwrap();
            assert_eq!(
                (ended.after, ended.status.and_then(|status| status.code())),
                (StopSignal::StdinClosed, Some(7))
            );
        });
    }
}

#[test]
fn a_server_that_floods() {
    let lines = Arc::new(Mutex::new(0));
    let counted = lines.clone();
    let stderr = Stderr::Lines(Box::new(move |_| *counted.lock().unwrap() += 1));
    let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}"#;
    let script = format!("yes | head -n 200000 >&2; yes '{{}}' | head -n 20000; read line; echo '{answer}'; cat");
    run(start(modern(&script), ChildOptions::new().stderr(stderr)), |client| async move {
        client.connect().await.unwrap();
        client.request(Request::list_tools()).await.unwrap();
        client.close().await;
    });
    assert_eq!(*lines.lock().unwrap(), 200_000);
}

#[test]
fn a_server_that_answers_twice_and_more_than_it_was_asked() {
    let (handler, mut events) = events(10);
    let result =
        |id: u32| format!(r#"echo '{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","tools":[]}}}}'"#);
    let script = format!("read line; {}; {}; {}; cat", result(2), result(2), result(77));
    let (client, driver) = Client::new(start(modern(&script), ChildOptions::new()), handler);
    smol::block_on(bounded(async {
        smol::spawn(driver).detach();
        client.connect().await.unwrap();
        client.request(Request::list_tools()).await.unwrap();
        assert_eq!(events.next().await, Some(OwnedEvent::Connected(Revision::V2026_07_28)));
        for _ in 0..2 {
            assert_eq!(events.next().await, Some(OwnedEvent::Ignored(ProtocolViolation::UnknownResponse)));
        }
        client.close().await;
        assert_eq!(events.next().await, Some(OwnedEvent::Closed));
        assert_eq!(events.next().await, None);
    }));
}

#[test]
fn half_a_line_and_a_closed_stdout() {
    run(start(modern(r#"read line; printf '{"jsonrpc"'; exec >&-; sleep 30"#), hasty()), |client| async move {
        client.connect().await.unwrap();
        let (why, detail) = lost(client.request(Request::list_tools()).await);
        assert_eq!(why, TransportError::Closed);
        assert!(detail.contains("closed its stdout"), "{detail}");
        client.close().await;
    });
}

#[test]
fn without_its_driver_nobody_waits() {
    let (client, driver) = Client::new(start(shell("cat >/dev/null"), hasty()), Ignore);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        let connecting = smol::spawn({
            let client = client.clone();
            async move { client.connect().await.map(drop) }
        });
        Timer::after(Duration::from_millis(20)).await;
        drop(driver);
        assert_eq!(connecting.await.unwrap_err().lost(), Some(TransportError::Closed));
        assert_eq!(client.close().await, None);
    }));
    // The same for requests that are under way.
    let (client, driver) = Client::new(start(shell("cat >/dev/null"), hasty()), Ignore);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let waiting = [(); 2].map(|()| {
            let client = client.clone();
            smol::spawn(async move { client.request(Request::call("any")).await })
        });
        Timer::after(Duration::from_millis(20)).await;
        drop(driver);
        for outcome in waiting {
            assert_eq!(lost(outcome.await).0, TransportError::Closed);
        }
    }));
}

#[test]
fn the_last_handle_ends_the_server() {
    let child = start(own_server(), ChildOptions::new());
    let id = child.id();
    let (client, driver) = Client::new(child, Ignore);
    smol::block_on(bounded(async {
        let driver = smol::spawn(driver);
        client.connect().await.unwrap();
        drop(client);
        driver.await;
    }));
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

/// Checks that an error is the expected one.
type Expected = fn(&ClientError) -> bool;

/// Each limit of a list ends it with an error that says that there are more pages.
#[test]
fn pages_have_limits() {
    let script = r#"i=0; while read l; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"page":'$i',"nextCursor":"c","resultType":"complete"}}'; done"#;
    let size = r#"{"tools":[],"page":1,"nextCursor":"c","resultType":"complete"}"#.len();
    let limits = PageLimits::DEFAULT;
    let cases: [(PageLimits, usize, Expected); 4] = [
        (limits.pages(3), 3, |error| matches!(error, ClientError::TooManyPages)),
        (limits.bytes(2 * size), 2, |error| matches!(error, ClientError::ListTooLarge)),
        (limits.bytes(2 * size + 1), 3, |error| matches!(error, ClientError::ListTooLarge)),
        (limits.time(Duration::ZERO), 0, |error| matches!(error, ClientError::ListTooSlow)),
    ];
    for (limits, good, is_expected) in cases {
        run(start(shell(script), hasty()), |client| async move {
            client.connect_as(Revision::V2026_07_28).await.unwrap();
            let mut pages = client.pages(Request::list_tools()).limits(limits);
            for _ in 0..good {
                pages.next().await.unwrap().unwrap();
            }
            let error = pages.next().await.unwrap().unwrap_err();
            assert!(is_expected(&error), "{error}");
            assert!(pages.next().await.is_none());
            client.close().await;
        });
    }
}

/// Waits until a process is gone.
async fn until_gone(id: u32) {
    let lives = || {
        let mut command = Command::new("kill");
        command.args(["-0", &id.to_string()]).stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    while lives() {
        Timer::after(Duration::from_millis(5)).await;
    }
}

/// In the same order as one that is closed: its stdin first.
#[test]
fn a_child_that_is_dropped_is_stopped() {
    let long = Duration::from_secs(600);
    for (script, options) in [
        ("cat", ChildOptions::new().close_time(long)),
        ("exec sleep 600", hasty().terminate_time(long)),
        ("trap '' TERM; while :; do sleep 0.1; done", hasty()),
    ] {
        let child = start(shell(script), options);
        let id = child.id();
        drop(child);
        smol::block_on(bounded(until_gone(id)));
    }
}

/// A server may end in the middle of a line of its stderr, while it lives and while it is stopped.
#[test]
fn the_last_words_of_a_server_need_no_end_of_line() {
    for script in ["printf 'one\nhalf' >&2; exec 2>&-; cat >/dev/null", "cat >/dev/null; printf 'one\nhalf' >&2"] {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let stderr = Stderr::Lines(Box::new(move |line| {
            kept.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
        }));
        let options = ChildOptions::new().stderr(stderr).close_time(Duration::from_secs(10));
        run(start(modern(script), options), |client| async move {
            client.connect().await.unwrap();
            client.close().await;
        });
        assert_eq!(*lines.lock().unwrap(), ["one", "half"], "{script}");
    }
}

#[test]
fn a_server_that_closes_its_stdin_and_lives_on() {
    run(start(modern("exec <&-; exec sleep 600"), hasty()), |client| async move {
        client.connect().await.unwrap();
        let detail = loop {
            match lost(client.request(Request::call("any").timeout(50)).await) {
                // It was written before the server closed its stdin.
                (TransportError::TimedOut, _) => {}
                (why, detail) => {
                    assert_eq!(why, TransportError::Unsent);
                    break detail;
                }
            }
        };
        assert!(detail.contains("closed its stdin, but goes on"), "{detail}");
        assert_eq!(client.close().await.unwrap().after, StopSignal::Terminate);
    });
}

#[test]
fn a_list_may_have_a_limit_of_pages() {
    let script = r#"i=0; while read l; do i=$((i+1)); echo '{"jsonrpc":"2.0","id":'$i',"result":{"tools":[],"page":'$i',"nextCursor":"c","resultType":"complete"}}'; done"#;
    run(start(shell(script), hasty()), |client| async move {
        client.connect_as(Revision::V2026_07_28).await.unwrap();
        let mut pages = client.pages(Request::list_tools()).limits(PageLimits::DEFAULT.pages(2));
        for _ in 0..2 {
            pages.next().await.unwrap().unwrap();
        }
        assert!(matches!(pages.next().await, Some(Err(ClientError::TooManyPages))));
        client.close().await;
    });
}
