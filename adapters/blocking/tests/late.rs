//! `Serve`: answers, progress and changes from other threads.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::mpsc::{Receiver, channel as plain_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{MessageLimits, Progress, RequestToken, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, ReadResource, Resource, Service, Tool};
use mcp_sansio_blocking::{LateReceiver, LateSendError, LateSender, Serve, channel};
use serde_json::{Value, json};

struct State {
    late: LateSender<State>,
    /// Gets the token of each request that is put off.
    tokens: std::sync::mpsc::Sender<RequestToken>,
    found: u32,
    full: Option<LateSendError>,
}

fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    state.tokens.send(token).unwrap();
    outcome
}

fn read_later(state: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    let (token, outcome) = read.later();
    state.tokens.send(token).unwrap();
    outcome
}

/// Waits for its finding, and then asks.
fn order(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    if call.answer("roots").is_some() {
        return call.text(format_args!("{} found", state.found));
    }
    if call.is_resumed() {
        return call.ask(&[InputRequest::roots("roots")], b"");
    }
    let (token, outcome) = call.suspend(b"")?;
    state.tokens.send(token).unwrap();
    Ok(outcome)
}

/// Sends more than the channel holds, from the thread of the server.
fn flood(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let sent = (0..2000).find_map(|_| state.late.publish(ServerChange::Tools).err());
    state.full = sent;
    call.text(format_args!("{sent:?}"))
}

/// Sends more than one turn takes, from the thread of the server, and then the answer.
fn burst(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    for step in 1..=200 {
        state.late.progress(token, Progress::new(step)).unwrap();
    }
    state.late.answer(token, |_, call| call.text("at last")).unwrap();
    outcome
}

static TOOLS: [Tool<State>; 4] = [
    Tool::new("burst", "Sends more than one turn takes", burst),
    Tool::new("later", "Is answered later", later),
    Tool::new("order", "Asks after a while", order),
    Tool::new("flood", "Sends much", flood),
];
static RESOURCES: [Resource<State>; 1] = [Resource::new("late://it", "it", read_later)];

fn service() -> Service<'static, State> {
    Service::new("late", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::Logging)
}

/// A server on a thread of its own, with the client's ends of its pipes.
struct Running {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    late: LateSender<State>,
    tokens: Receiver<RequestToken>,
    server: JoinHandle<std::io::Result<()>>,
}

fn start(
    settings: impl for<'s> FnOnce(Serve<'s, 'static, State>) -> Serve<'s, 'static, State> + Send + 'static,
) -> Running {
    let (late, receiver): (_, LateReceiver<State>) = channel();
    let (reader, input) = pipe().unwrap();
    let (output, writer) = pipe().unwrap();
    let (sender, tokens) = plain_channel();
    let mut state = State { late: late.clone(), tokens: sender, found: 0, full: None };
    let server = thread::spawn(move || {
        let service = service();
        settings(Serve::new(&service)).late(receiver).over(reader, writer, &mut state)
    });
    let mut running = Running { input: Some(input), output: BufReader::new(output), late, tokens, server };
    running.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"}}}));
    running.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(running.hear()["id"], 0);
    running
}

impl Running {
    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn call(&mut self, id: u64, tool: &str) -> RequestToken {
        self.request(id, "tools/call", json!({"name": tool, "_meta": {"progressToken": id}}));
        self.tokens.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes the input. Returns all lines that come until the server ends.
    fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let lines = self.output.by_ref().lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        self.server.join().unwrap().unwrap();
        lines
    }
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

#[test]
fn messages_come_in_the_order_in_which_they_were_sent() {
    let mut server = start(|serve| serve);
    let token = server.call(1, "later");
    let late = server.late.clone();
    thread::spawn(move || {
        late.progress(token, Progress::new(1).of(2).message("half")).unwrap();
        late.log(token, LoggingLevel::Error, "it boils over").unwrap();
        late.progress(token, Progress::new(2).of(2)).unwrap();
        late.answer(token, |state, call| {
            state.found += 1;
            call.text(format_args!("cup {}", state.found))
        })
    });
    let heard = [server.hear(), server.hear(), server.hear(), server.hear()];
    assert_eq!(heard[0]["params"]["message"], "half");
    assert_eq!(heard[1]["params"]["data"], "it boils over");
    assert_eq!(heard[2]["params"]["progress"], 2);
    assert_eq!((&heard[3]["id"], text(&heard[3])), (&json!(1), "cup 1"));
    assert!(server.end().is_empty());
}

/// More messages than one turn takes, while the client is silent.
#[test]
fn many_messages_at_once_are_all_sent() {
    let mut server = start(|serve| serve);
    let token = server.call(1, "later");
    let mut sent = 0;
    while sent < 600 {
        // The channel may be full.
        match server.late.progress(token, Progress::new(sent + 1)) {
            Ok(()) => sent += 1,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
    while server.late.answer(token, |_, call| call.text("at last")).is_err() {
        thread::sleep(Duration::from_millis(1));
    }
    for step in 1..=600 {
        assert_eq!(server.hear()["params"]["progress"], step);
    }
    assert_eq!(text(&server.hear()), "at last");
}

/// The client is silent, and nothing wakes the server.
#[test]
fn many_messages_of_one_handler_are_all_sent() {
    let mut server = start(|serve| serve);
    server.request(1, "tools/call", json!({"name": "burst", "_meta": {"progressToken": 1}}));
    for step in 1..=200 {
        assert_eq!(server.hear()["params"]["progress"], step);
    }
    assert_eq!(text(&server.hear()), "at last");
}

/// A question ends by its own deadline when the client does not answer it.
#[test]
fn a_question_that_is_not_answered_ends_in_time() {
    let mut server = start(|serve| serve.limits(MessageLimits { ask_timeout: 50, ..MessageLimits::default() }));
    let token = server.call(1, "order");
    server.late.resume(token, |state| state.found = 7).unwrap();
    let asked = server.hear();
    assert_eq!(asked["method"], "roots/list");
    let cancelled = server.hear();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    assert_eq!(text(&server.hear()), "7 found");
}

/// The first stop ends a question, and leaves the call its time. The second ends that.
#[test]
fn a_second_stop_ends_the_time_for_late_answers() {
    let (sender, stopper) = plain_channel();
    let mut server = start(move |serve| {
        sender.send(serve.stopper()).unwrap();
        serve.grace(Duration::from_secs(3600))
    });
    let stopper = stopper.recv().unwrap();
    server.call(1, "later");
    let token = server.call(2, "order");
    server.late.resume(token, |state| state.found = 7).unwrap();
    assert_eq!(server.hear()["method"], "roots/list");
    stopper.stop();
    assert_eq!(text(&server.hear()), "7 found");
    stopper.stop();
    let last = server.hear();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!(1), &json!(-32603)));
    // The client has not closed its side.
    server.server.join().unwrap().unwrap();
}

#[test]
fn changes_and_reads_come_late_too() {
    let mut server = start(|serve| serve);
    server.request(1, "resources/subscribe", json!({"uri": "late://it"}));
    server.hear();
    server.late.publish(ServerChange::Resource("late://it")).unwrap();
    assert_eq!(server.hear()["params"]["uri"], "late://it");
    server.request(2, "resources/read", json!({"uri": "late://it"}));
    let token = server.tokens.recv_timeout(Duration::from_secs(20)).unwrap();
    server.late.answer(token.as_read("late://it"), |_, read| read.text("here")).unwrap();
    assert_eq!(server.hear()["result"]["contents"][0]["text"], "here");
}

/// An answer of the wrong kind is an error, not silence.
#[test]
fn an_answer_of_another_kind_is_an_error() {
    let mut server = start(|serve| serve);
    let token = server.call(1, "later");
    server.late.answer(token.as_read("late://it"), |_, read| read.text("no")).unwrap();
    assert_eq!(server.hear()["error"]["code"], -32603);
}

#[test]
fn a_suspended_handler_asks_when_it_is_resumed() {
    let mut server = start(|serve| serve);
    let token = server.call(1, "order");
    server.late.resume(token, |state| state.found = 7).unwrap();
    let asked = server.hear();
    assert_eq!(asked["method"], "roots/list");
    server.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}));
    assert_eq!(text(&server.hear()), "7 found");
}

#[test]
fn what_was_cancelled_is_not_answered() {
    let mut server = start(|serve| serve);
    let token = server.call(1, "later");
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    server.request(2, "ping", json!({}));
    assert_eq!(server.hear()["id"], 2);
    server.late.answer(token, |_, _| panic!("it runs although it was cancelled")).unwrap();
    server.request(3, "ping", json!({}));
    assert_eq!(server.hear()["id"], 3);
}

#[test]
fn after_the_end_of_the_input_late_answers_are_awaited() {
    let mut server = start(|serve| serve.grace(Duration::from_secs(20)));
    let token = server.call(1, "later");
    let late = server.late.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        // Not an answer: it is left out now.
        late.progress(token, Progress::new(1)).unwrap();
        late.answer(token, |_, call| call.text("in time"))
    });
    let lines = server.end();
    assert_eq!(lines.iter().map(text).collect::<Vec<_>>(), ["in time"]);
}

#[test]
fn the_wait_for_late_answers_ends() {
    let mut server = start(|serve| serve.grace(Duration::from_millis(50)));
    server.call(1, "later");
    let (late, begun) = (server.late.clone(), Instant::now());
    let lines = server.end();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((lines.len(), &lines[0]["error"]["code"]), (1, &json!(-32603)));
    assert_eq!(late.publish(ServerChange::Tools), Err(LateSendError::Ended));
}

#[test]
fn the_watch_runs_while_somebody_is_subscribed() {
    let mut server = start(|serve| {
        serve.watch(Duration::from_millis(10), |state, server| {
            state.found += 1;
            server.publish(ServerChange::Resource("late://it"));
        })
    });
    server.request(1, "resources/subscribe", json!({"uri": "late://it"}));
    assert_eq!(server.hear()["id"], 1);
    for _ in 0..2 {
        assert_eq!(server.hear()["method"], "notifications/resources/updated");
    }
}

#[test]
fn the_first_look_of_a_watch_is_a_period_later() {
    let mut server = start(|serve| {
        serve.watch(Duration::from_secs(3600), |_, server| {
            server.publish(ServerChange::Resource("late://it"));
        })
    });
    server.request(1, "resources/subscribe", json!({"uri": "late://it"}));
    for id in 1..4 {
        assert_eq!(server.hear()["id"], id);
        thread::sleep(Duration::from_millis(10));
        server.request(id + 1, "ping", json!({}));
    }
    assert_eq!(server.end().len(), 1);
}

/// A handler that fills the channel of its own server gets an error, and does not wait for ever.
#[test]
fn the_server_does_not_wait_for_itself() {
    let mut server = start(|serve| serve);
    server.request(1, "tools/call", json!({"name": "flood"}));
    assert_eq!(text(&server.hear()), "Some(Full)");
}

/// Input in one piece, and an answer that is longer than the buffer of a pipe.
#[test]
fn without_a_channel_it_serves_like_serve() {
    static ECHO: [Tool<()>; 1] = [Tool::new("echo", "Gives a text back", |(), call| {
        let text: mcp_sansio::json::Text<'_> = call.arg("text")?;
        call.text(text)
    })];
    let service = Service::new("echo", "1.0").tools(&ECHO);
    let long = "x".repeat(200_000);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let lines: Vec<String> = (0..3)
        .map(|id| {
            let params = json!({"name": "echo", "arguments": {"text": long}, "_meta": meta});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
        })
        .collect();
    let mut output = Vec::new();
    Serve::new(&service).over(std::io::Cursor::new(lines.join("\n")), &mut output, &mut ()).unwrap();
    let answers: Vec<Value> =
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| text(answer) == long));
}
