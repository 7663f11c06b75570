//! The server over a reader and a writer: the order of its messages, slow ends, and the end of the input.

mod common;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use common::{Client, Dribble, State, Trickle, call, initialize, plain, serve, service, talk, text};
use mcp_sansio::server::MessageLimits;
use mcp_sansio::service::Service;
use mcp_sansio_smol::{Serve, channel};
use serde_json::{Value, json};
use smol::Timer;
use smol::net::unix::UnixStream;

#[test]
fn late_answers_come_in_the_order_in_which_they_are_given() {
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "wait", json!({"ms": 120})).await;
        client.call(2, "wait", json!({"ms": 20})).await;
        client.call(3, "echo", json!({"text": "now"})).await;
        let got = [client.expect().await, client.expect().await, client.expect().await];
        assert_eq!(got.each_ref().map(|message| message["id"].as_u64().unwrap()), [3, 2, 1]);
        assert_eq!(got.each_ref().map(text), ["now", "waited 20", "waited 120"]);
        client.end();
    });
}

#[test]
fn progress_and_log_messages_keep_their_order_and_the_answer_comes_last() {
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "wait", json!({"ms": 1, "steps": 200})).await;
        for step in 1..=200 {
            let progress = client.expect().await;
            assert_eq!(
                progress["params"],
                json!({"progressToken": 1, "progress": step, "total": 200, "message": "step"})
            );
            assert_eq!(client.expect().await["params"]["data"], format!("after {step}"));
        }
        assert_eq!(text(&client.expect().await), "waited 1");
        client.end();
        assert!(client.rest().await.is_empty());
    });
}

#[test]
fn a_cancelled_call_is_not_answered_and_its_task_ends() {
    let state = talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "wait", json!({"ms": 50})).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
        client.call(2, "wait", json!({"ms": 100})).await;
        assert_eq!(client.expect().await["id"], 2);
        client.end();
        assert!(client.rest().await.is_empty());
    });
    assert_eq!((state.cancelled, state.tasks.len()), (1, 0));
}

#[test]
fn late_answers_are_waited_for_at_the_end_of_the_input() {
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "wait", json!({"ms": 100})).await;
        client.end();
        let rest = client.rest().await;
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(text(&rest[0]), "waited 100");
    });
}

/// Some clients fail on a notification after they have closed their side.
#[test]
fn nothing_but_answers_is_written_after_the_end_of_the_input() {
    talk(plain, |mut client| async move {
        client.open().await;
        let uri = json!({"uri": "test://clock"});
        client.send(json!({"jsonrpc": "2.0", "id": 9, "method": "resources/subscribe", "params": uri})).await;
        client.expect().await;
        // Progress and log messages are sent when the end of the input is read, or later.
        client.call(1, "tell", json!({})).await;
        while client.expect().await["params"]["data"] != "before" {}
        client.end();
        let rest = client.rest().await;
        let known = |message: &Value| message["id"] == 1 || message["params"] == uri;
        // A change that was published before the end of the input may be among the messages.
        let answered = rest.iter().position(|message| message["id"] == 1).expect("an answer");
        assert!(rest.iter().all(known) && answered == rest.len() - 1, "{rest:?}");
        assert_eq!(text(&rest[answered]), "told");
    });
}

#[test]
fn what_nobody_answers_in_time_is_answered_with_an_error() {
    // More than the default.
    const GRACE: Duration = Duration::from_millis(1_700);
    let begun = Instant::now();
    talk(
        |serve| serve.grace(GRACE),
        |mut client| async move {
            client.open().await;
            client.call(1, "wait", json!({"ms": 0})).await;
            client.call(2, "wait", json!({"ms": 1})).await;
            client.end();
            let rest = client.rest().await;
            assert_eq!(rest.iter().map(|message| message["id"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 1]);
            assert_eq!(rest[1]["error"]["code"], -32603);
        },
    );
    assert!(begun.elapsed() >= GRACE);
}

// spec: T087
#[test]
fn an_end_with_nothing_open_is_not_waited_for() {
    let begun = Instant::now();
    talk(
        |serve| serve.grace(Duration::from_secs(10)),
        |mut client| async move {
            client.open().await;
            client.end();
            assert!(client.rest().await.is_empty());
        },
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn two_rounds_of_questions() {
    let answer = |question: &Value, name: &str| {
        assert_eq!(question["method"], "elicitation/create");
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": name}}})
    };
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "meet", json!({})).await;
        for name in ["Ada", "Lovelace"] {
            let question = client.expect().await;
            client.call(7, "echo", json!({"text": "meanwhile"})).await;
            assert_eq!(text(&client.expect().await), "meanwhile");
            client.send(answer(&question, name)).await;
        }
        assert_eq!(text(&client.expect().await), "Ada Lovelace");
        client.end();
    });
}

#[test]
fn a_question_that_is_open_at_the_end_is_closed() {
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "meet", json!({})).await;
        client.expect().await;
        client.end();
        let rest = client.rest().await;
        assert_eq!(rest.last().map(|message| message["id"].clone()), Some(json!(1)));
    });
}

#[test]
fn a_question_times_out() {
    talk(
        |serve| serve.limits(mcp_sansio::server::MessageLimits { ask_timeout: 30, ..Default::default() }),
        |mut client| async move {
            client.open().await;
            client.call(1, "meet", json!({})).await;
            let question = client.expect().await;
            let cancelled = client.expect().await;
            assert_eq!(cancelled["params"]["requestId"], question["id"]);
            client.end();
            client.rest().await;
        },
    );
}

#[test]
fn changes_are_looked_for_while_somebody_is_subscribed() {
    let request = |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": "test://clock"}});
    let told = Arc::new(AtomicUsize::new(3));
    let updates = told.clone();
    let state = talk(plain, |mut client| async move {
        client.open().await;
        Timer::after(Duration::from_millis(100)).await;
        client.send(request(1, "resources/subscribe")).await;
        assert_eq!(client.expect().await["result"], json!({}));
        for _ in 0..3 {
            assert_eq!(client.expect().await["method"], "notifications/resources/updated");
        }
        client.send(request(2, "resources/unsubscribe")).await;
        while client.expect().await["id"] != 2 {
            updates.fetch_add(1, Ordering::SeqCst);
        }
        Timer::after(Duration::from_millis(100)).await;
        client.end();
        assert!(client.rest().await.is_empty());
    });
    // Each call of `look` publishes an update. Calls in the two pauses without a subscription would add about ten.
    let updates = told.load(Ordering::SeqCst);
    assert!(state.looks >= 3 && state.looks < updates + 5, "looked {} times for {updates} updates", state.looks);
}

#[test]
fn the_first_look_of_a_watch_is_a_period_later() {
    let state = talk(
        |serve| serve.watch(Duration::from_secs(3600), |state, _| state.looks += 1),
        |mut client| async move {
            client.open().await;
            let params = json!({"uri": "test://clock"});
            client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params})).await;
            assert_eq!(client.expect().await["id"], 1);
            client.call(2, "echo", json!({"text": "x"})).await;
            assert_eq!(client.expect().await["id"], 2);
            client.end();
            client.rest().await;
        },
    );
    assert_eq!(state.looks, 0);
}

/// Without a word from its client, which stays.
#[test]
fn a_server_at_rest_is_stopped() {
    let service = Service::<()>::new("test", "1");
    let serve = Serve::new(&service).grace(Duration::from_secs(20));
    let stopper = serve.stopper();
    let (_client, server) = std::os::unix::net::UnixStream::pair().unwrap();
    let (reader, writer) = (smol::Async::new(server.try_clone().unwrap()), smol::Async::new(server));
    let stop = async {
        Timer::after(Duration::from_millis(50)).await;
        stopper.stop();
        Timer::after(Duration::from_secs(10)).await;
        panic!("it goes on");
    };
    smol::block_on(smol::future::or(serve.over(reader.unwrap(), writer.unwrap(), &mut ()), stop)).unwrap();
}

/// The first stop is like an end of the input: what is in flight has its time. The second one ends that.
#[test]
fn a_stop_leaves_time_for_answers_and_a_second_one_none() {
    let (answers, late) = channel();
    let (mut state, service) = (State::new(answers), service());
    let serve = Serve::new(&service).late(late).grace(Duration::from_secs(600));
    let stopper = serve.stopper();
    let (near, far) = UnixStream::pair().unwrap();
    let client = async {
        let mut client = Client::over(near);
        client.open().await;
        client.call(1, "wait", json!({"ms": 0, "steps": 1})).await;
        client.call(2, "wait", json!({"ms": 50, "steps": 1})).await;
        // Progress and a log message of each.
        for _ in 0..4 {
            assert!(client.expect().await["method"].is_string());
        }
        stopper.stop();
        assert_eq!(text(&client.expect().await), "waited 50");
        stopper.stop();
        let last = client.rest().await;
        assert_eq!((last.len(), &last[0]["id"], &last[0]["error"]["code"]), (1, &json!(1), &json!(-32603)));
    };
    let served = smol::future::zip(serve.over(far.clone(), far, &mut state), client);
    let late = async {
        Timer::after(Duration::from_secs(20)).await;
        panic!("it hangs")
    };
    smol::block_on(smol::future::or(served, late)).0.unwrap();
}

/// Gives its bytes, and counts how often it is asked for them and for more.
struct Counted<'i>(&'i [u8], &'i AtomicUsize);

impl smol::io::AsyncRead for Counted<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let n = self.0.len().min(to.len());
        to[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        if n > 0 { Poll::Ready(Ok(n)) } else { Poll::Pending }
    }
}

/// The question is open for some time, in which the server sleeps.
#[test]
fn a_deadline_takes_one_turn() {
    fn quick<'s>(serve: Serve<'s, 'static, State>) -> Serve<'s, 'static, State> {
        serve.limits(MessageLimits { ask_timeout: 200, ..Default::default() })
    }
    let input = format!("{}\n{}\n", initialize(), call(1, "meet", json!({})));
    let (asked, mut output) = (AtomicUsize::new(0), Vec::new());
    let served = async {
        serve(Counted(input.as_bytes(), &asked), &mut output, quick).await;
    };
    smol::block_on(smol::future::or(served, async {
        Timer::after(Duration::from_millis(400)).await;
    }));
    let output = String::from_utf8(output).unwrap();
    assert!(output.contains("notifications/cancelled"), "{output}");
    assert!(asked.load(Ordering::Relaxed) < 50, "{asked:?}");
}

#[test]
fn the_limits_of_serve_hold() {
    let limits = MessageLimits { message: 300, ..MessageLimits::default() };
    let large = call(1, "echo", json!({"text": "x".repeat(300)}));
    let input = format!("{}\n{large}\n{}\n", initialize(), call(2, "echo", json!({"text": "small"})));
    let (answers, _late) = channel();
    let (mut state, mut output, service) = (State::new(answers), Vec::new(), service());
    let served = mcp_sansio_smol::Serve::new(&service).limits(limits).over(input.as_bytes(), &mut output, &mut state);
    smol::block_on(served).unwrap();
    let output = String::from_utf8(output).unwrap();
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["id"] != 1), "{output}");
    assert!(lines.len() == 3 && lines[1]["error"].is_object() && text(&lines[2]) == "small", "{output}");
}

/// A server: this program runs it for [`stdin_and_stdout_are_served`].
#[test]
#[ignore = "a server"]
fn server() {
    smol::block_on(mcp_sansio_smol::serve_stdio(&Service::new("of stdio", "1"), &mut ())).unwrap();
}

#[test]
fn stdin_and_stdout_are_served() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server", "--ignored", "--nocapture"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{}\n", initialize()).as_bytes()).unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(output.contains(r#""name":"of stdio""#), "{output}");
    assert!(child.wait().unwrap().success());
}

/// A session whose output is the same for any cutting of the bytes.
fn script() -> String {
    let messages = [
        initialize(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(1, "wait", json!({"ms": 5, "steps": 3})),
        call(2, "echo", json!({"text": "tab\tquote\" é \u{1F600}"})),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "nothing"}),
    ];
    messages.map(|message| message.to_string() + "\n").concat()
}

fn answers(output: &[u8]) -> Vec<Value> {
    let lines = std::str::from_utf8(output).unwrap().lines();
    let mut all: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    all.retain(|message| message.get("id").is_some());
    all.sort_by_key(|message| message["id"].as_u64());
    all
}

#[test]
fn slow_readers_and_writers_change_nothing() {
    let script = script();
    let (mut whole, mut slow) = (Vec::new(), Trickle::default());
    smol::block_on(serve(script.as_bytes(), &mut whole, plain));
    smol::block_on(serve(Dribble(script.as_bytes(), false), &mut slow, |serve| serve.backlog(1)));
    assert_eq!(answers(&whole).len(), 5);
    assert_eq!(answers(&whole), answers(&slow.bytes));
    assert_eq!(slow.flushed, slow.bytes.len());
}

#[test]
fn a_client_that_does_not_read_is_not_listened_to() {
    let mut input = initialize().to_string() + "\n";
    let line = call(1, "echo", json!({"text": "x".repeat(10_000)})).to_string() + "\n";
    input.push_str(&line.repeat(2000));
    let (mut flood, mut wall) = (input.as_bytes(), Wall::default());
    let served = serve(&mut flood, &mut wall, |serve| serve.backlog(100_000));
    // The input is always ready, and the writer takes nothing: after one turn the server waits for ever.
    assert!(smol::block_on(smol::future::poll_once(served)).is_none());
    let read = input.len() - flood.len();
    assert!((100_000..400_000).contains(&read), "{read} bytes were read though nothing was taken");
}

/// A late message that has no room waits, and the server does not turn in a loop.
#[test]
fn a_late_answer_for_a_client_that_does_not_read_waits() {
    let wait = call(1, "wait", json!({"ms": 50}));
    let large = call(2, "echo", json!({"text": "x".repeat(200_000)}));
    let input = format!("{}\n{wait}\n{large}\n", initialize());
    let served = serve(input.as_bytes(), Wall::default(), |serve| serve.backlog(100_000));
    let time = async {
        Timer::after(Duration::from_millis(300)).await;
        None
    };
    assert!(smol::block_on(smol::future::or(async { Some(served.await) }, time)).is_none());
}

/// A writer that takes nothing. A server that asks it again and again fails.
#[derive(Default)]
struct Wall {
    asked: usize,
}

impl smol::io::AsyncWrite for Wall {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        self.asked += 1;
        assert!(self.asked < 1000, "a loop");
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// A writer that fails.
struct Broken(io::ErrorKind);

impl smol::io::AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(self.0.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The end of the reader is no error, and a disk that is full is one.
#[test]
fn a_writer_that_fails() {
    for (kind, is_error) in [
        (io::ErrorKind::BrokenPipe, false),
        (io::ErrorKind::ConnectionReset, false),
        (io::ErrorKind::StorageFull, true),
    ] {
        let service = Service::new("test", "1");
        let served = smol::block_on(Serve::new(&service).over(script().as_bytes(), Broken(kind), &mut ()));
        assert_eq!(served.err().map(|error| error.kind()), is_error.then_some(kind));
    }
}

#[test]
fn a_client_that_goes_away_is_no_error() {
    talk(plain, |mut client| async move {
        client.open().await;
        for id in 1..=50 {
            client.call(id, "echo", json!({"text": "x"})).await;
        }
    });
}

fn late_requests() -> [(Value, &'static str); 4] {
    let of = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let completion = json!({"ref": {"type": "ref/prompt", "name": "late"}, "argument": {"name": "who", "value": "l"}});
    [
        (of("resources/read", json!({"uri": "test://late"})), "/contents/0/text"),
        (of("prompts/get", json!({"name": "late"})), "/messages/0/content/text"),
        (of("completion/complete", completion), "/completion/values/0"),
        (of("demo/late", json!({})), "/late"),
    ]
}

#[test]
fn every_kind_of_request_is_answered_late() {
    talk(plain, |mut client| async move {
        client.open().await;
        for (request, place) in late_requests() {
            client.send(request).await;
            let reply = client.expect().await;
            let said = reply["result"].pointer(place).unwrap_or_else(|| panic!("{reply}"));
            assert!(*said == json!("late") || *said == json!(true), "{reply}");
        }
        client.end();
    });
}

#[test]
fn an_answer_of_another_kind_is_an_error_and_no_wrong_result() {
    talk(plain, |mut client| async move {
        client.open().await;
        let params = json!({"uri": "test://late/wrong"});
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})).await;
        let reply = client.expect().await;
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
        client.end();
    });
}

#[test]
fn a_resumed_handler_asks_what_it_has_found_out() {
    talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "guess", json!({})).await;
        let asked = client.expect().await;
        assert_eq!(asked["params"]["message"], "Are you Ada?", "{asked}");
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})).await;
        assert_eq!(text(&client.expect().await), "accepted: true");
        client.end();
    });
}

/// A cancelled request is not resumed: its `prepare` does not run.
#[test]
fn a_cancelled_request_is_not_resumed() {
    let state = talk(plain, |mut client| async move {
        client.open().await;
        client.call(1, "guess", json!({})).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
        client.call(2, "wait", json!({"ms": 60})).await;
        assert_eq!(client.expect().await["id"], 2);
        client.end();
        assert!(client.rest().await.is_empty());
    });
    assert_eq!((state.cancelled, state.found.len()), (1, 0));
}
