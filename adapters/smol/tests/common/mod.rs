//! A server to test, a client for it, and slow readers and writers.
#![allow(unreachable_pub, dead_code, reason = "shared by the tests beside it")]

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RequestToken, ServerChange};
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument, ReadResource,
    Resource, Service, Tool,
};
use mcp_sansio_smol::{LateSendError, LateSender, Serve, channel};
use serde_json::{Value, json};
use smol::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use smol::net::unix::UnixStream;
use smol::{Task, Timer, future};

pub struct State {
    pub answers: LateSender<State>,
    pub tasks: HashMap<RequestToken, Task<Result<(), LateSendError>>>,
    /// The findings of tasks, for requests that are resumed.
    pub found: HashMap<RequestToken, &'static str>,
    pub cancelled: usize,
    pub looks: usize,
}

impl State {
    pub fn new(answers: LateSender<State>) -> Self {
        State { answers, tasks: HashMap::new(), found: HashMap::new(), cancelled: 0, looks: 0 }
    }
}

fn echo(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    match call.arguments().get("text").and_then(|text| text.text()) {
        Some(text) => call.text(text),
        None => call.error("no text"),
    }
}

/// Sends `steps` progress notifications with a log message after each, and answers after `ms` milliseconds; never if
/// `ms` is 0.
fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let number = |name: &str| call.arguments().get(name).and_then(|n| n.u64()).unwrap_or(0);
    let (ms, steps) = (number("ms"), number("steps"));
    let (token, outcome) = call.later();
    state.tasks.insert(token, smol::spawn(waiting(state.answers.clone(), token, ms, steps)));
    outcome
}

async fn waiting(answers: LateSender<State>, token: RequestToken, ms: u64, steps: u64) -> Result<(), LateSendError> {
    for step in 1..=steps {
        answers.progress(token, Progress::new(step).of(steps).message("step"))?;
        answers.log(token, LoggingLevel::Error, format!("after {step}"))?;
    }
    if ms == 0 {
        future::pending::<()>().await;
    }
    Timer::after(Duration::from_millis(ms)).await;
    let done = move |state: &mut State, call: &mut Call<'_>| {
        state.tasks.remove(&token);
        call.text(format_args!("waited {ms}"))
    };
    answers.answer(token, done)
}

/// Logs at once. After the end of the input, sends progress and more.
fn tell(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    let answers = state.answers.clone();
    let task = smol::spawn(async move {
        answers.log(token, LoggingLevel::Error, "before".to_owned())?;
        Timer::after(Duration::from_millis(200)).await;
        answers.progress(token, Progress::new(1))?;
        answers.log(token, LoggingLevel::Error, "after".to_owned())?;
        answers.answer(token, |_, call| call.text("told"))
    });
    state.tasks.insert(token, task);
    outcome
}

const NAME: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"name":{"type":"string"}}}"#);

/// Asks for a first name, then for a second one.
fn meet(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    fn given<'a>(call: &Call<'a>, key: &str) -> Option<&'a str> {
        call.answer(key)?.value("name")?.text()?.plain()
    }
    if let Some(second) = given(call, "second") {
        let first = std::str::from_utf8(call.state()).unwrap_or("");
        return call.text(format_args!("{first} {second}"));
    }
    match given(call, "first") {
        Some(first) => call.ask(&[InputRequest::elicit("second", "And then?", NAME)], first.as_bytes()),
        None => call.ask(&[InputRequest::elicit("first", "Who are you?", NAME)], b""),
    }
}

/// Asks once, with an empty state.
fn greet(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    match call.answer("who").and_then(|answer| answer.value("name")?.text()?.plain()) {
        Some(name) => call.text(format_args!("Hello, {name}")),
        None => call.ask(&[InputRequest::elicit("who", "Who are you?", NAME)], b""),
    }
}

/// Finds a name in a task, then asks the client to confirm it.
fn guess(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    if let Some(answer) = call.answer("right") {
        return call.text(format_args!("accepted: {}", answer.accepted()));
    }
    if let Some(name) = state.found.remove(&call.token()) {
        assert!(call.is_resumed());
        return call.ask(&[InputRequest::elicit("right", &format!("Are you {name}?"), NAME)], b"");
    }
    let (token, done) = call.suspend(b"")?;
    let answers = state.answers.clone();
    let task = smol::spawn(async move {
        Timer::after(Duration::from_millis(10)).await;
        answers.resume(token, move |state| _ = state.found.insert(token, "Ada"))
    });
    state.tasks.insert(token, task);
    Ok(done)
}

/// Answers a read late; with the answer for a tool if the URI asks for it.
fn read_late(state: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    let (token, outcome) = read.later();
    let (answers, uri) = (state.answers.clone(), read.uri.to_owned());
    let task = smol::spawn(async move {
        match uri.ends_with("wrong") {
            true => answers.answer(token, |_, call| call.text("no tool was called")),
            false => answers.answer(token.as_read(uri), |_, read| read.text("late")),
        }
    });
    state.tasks.insert(token, task);
    outcome
}

fn get_late(state: &mut State, get: &mut GetPrompt<'_>) -> HandlerResult {
    let (token, outcome) = get.later();
    let answers = state.answers.clone();
    let task = smol::spawn(async move { answers.answer(token.as_prompt(), |_, get| get.user("late")) });
    state.tasks.insert(token, task);
    outcome
}

fn complete_late(state: &mut State, complete: &mut Complete<'_>) -> HandlerResult {
    let (token, outcome) = complete.later();
    let (answers, value) = (state.answers.clone(), complete.value.to_owned());
    let task =
        smol::spawn(async move { answers.answer(token.as_completion(value), |_, it| it.matching(["late", "x"])) });
    state.tasks.insert(token, task);
    outcome
}

fn other_late(state: &mut State, other: &mut CustomRequest<'_>) -> HandlerResult {
    let (token, outcome) = other.later();
    let answers = state.answers.clone();
    let task = smol::spawn(async move {
        answers.answer(token.as_custom(), |_, other| other.result(Raw::constant(r#"{"late":true}"#)))
    });
    state.tasks.insert(token, task);
    outcome
}

/// Sends a log message to all clients.
fn announce(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let answers = state.answers.clone();
    smol::spawn(async move { answers.announce(LoggingLevel::Error, "hear, hear") }).detach();
    call.text("done")
}

static TOOLS: [Tool<State>; 8] = [
    Tool::new("guess", "Asks after it has waited", guess),
    Tool::new("echo", "Gives a text back", echo),
    Tool::new("wait", "Takes its time", wait),
    Tool::new("tell", "Tells what happens", tell),
    Tool::new("announce", "Says something to everybody", announce),
    Tool::new("cancelled", "How many were cancelled", |state, call| call.text(format_args!("{}", state.cancelled))),
    Tool::new("meet", "Asks twice", meet),
    Tool::new("greet", "Asks once", greet),
];

static RESOURCES: [Resource<State>; 3] = [
    Resource::new("test://clock", "clock", |_, read| read.text("tick")),
    Resource::new("test://late", "late", read_late),
    Resource::new("test://late/wrong", "wrong", read_late),
];

static ARGUMENTS: [PromptArgument; 1] = [PromptArgument::optional("who")];
static PROMPTS: [Prompt<State>; 1] =
    [Prompt::new("late", "Late", get_late).arguments(&ARGUMENTS).complete(complete_late)];

pub fn service() -> Service<'static, State> {
    Service::new("test", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .prompts(&PROMPTS)
        .other(other_late)
        .feature(ServerCapability::Logging)
        .feature(ServerCapability::Subscribe)
        .on_cancel(|state: &mut State, token| {
            state.cancelled += 1;
            state.tasks.remove(&token);
        })
}

pub type Configure = for<'s> fn(Serve<'s, 'static, State>) -> Serve<'s, 'static, State>;

/// Leaves the settings of `Serve` unchanged.
pub fn plain<'s>(serve: Serve<'s, 'static, State>) -> Serve<'s, 'static, State> {
    serve.watch(Duration::from_millis(20), |state, server| {
        state.looks += 1;
        server.publish(ServerChange::Resource("test://clock"));
    })
}

/// Serves `reader` and `writer`, and returns the final state.
pub async fn serve(reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin, configure: Configure) -> State {
    let (answers, late) = channel();
    let mut state = State::new(answers);
    let service = service();
    configure(Serve::new(&service).late(late)).over(reader, writer, &mut state).await.unwrap();
    state
}

/// Runs a client against the server over a socket, until both have ended.
pub fn talk<F: Future<Output = ()>>(configure: Configure, client: impl FnOnce(Client) -> F) -> State {
    smol::block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let served = serve(far.clone(), far, configure);
        let client = client(Client::over(near));
        let both = future::zip(served, client);
        let late = async {
            Timer::after(Duration::from_secs(20)).await;
            panic!("it hangs")
        };
        future::or(both, late).await.0
    })
}

pub struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Client {
    pub fn over(socket: UnixStream) -> Self {
        Client { reader: BufReader::new(socket.clone()), writer: socket }
    }

    pub async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn call(&mut self, id: u32, name: &str, arguments: Value) {
        self.send(call(id, name, arguments)).await;
    }

    /// Returns the next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let n = self.reader.read_line(&mut line).await.unwrap();
        (n > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub async fn expect(&mut self) -> Value {
        self.next().await.expect("one more message")
    }

    pub async fn open(&mut self) {
        self.send(initialize()).await;
        self.expect().await;
    }

    pub fn end(&self) {
        self.writer.shutdown(Shutdown::Write).unwrap();
    }

    pub async fn rest(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.push(message);
        }
        all
    }
}

pub fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}}})
}

/// Returns a call with a progress token.
pub fn call(id: u32, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": {"progressToken": id}}})
}

pub fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {message}"))
}

/// Reads one byte at a time, and yields to other tasks between two bytes.
pub struct Dribble<'i>(pub &'i [u8], pub bool);

impl AsyncRead for Dribble<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        self.1 = !self.1;
        if self.1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some((first, rest)) = self.0.split_first() else { return Poll::Ready(Ok(0)) };
        (to[0], self.0) = (*first, rest);
        Poll::Ready(Ok(1))
    }
}

/// Writes three bytes at a time, and yields to other tasks in between.
#[derive(Default)]
pub struct Trickle {
    pub bytes: Vec<u8>,
    pub flushed: usize,
    turn: bool,
}

impl AsyncWrite for Trickle {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.turn = !self.turn;
        if self.turn {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let n = bytes.len().min(3);
        self.bytes.extend_from_slice(&bytes[..n]);
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed = self.bytes.len();
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
