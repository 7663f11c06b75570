//! Work for calls, and the channel that its answers take, around a connection without I/O.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mcp_sansio::json::Raw;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::server::{MessageLimits, Progress, RequestToken, RpcError, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_host::{LateReceiver, LateSendError, LateSender, Work, WorkFuture, channel, channel_of};
use serde_json::{Value, json};

struct State {
    work: Work<State>,
    gate: Gate,
    /// The number of values that were dropped in work.
    dropped: Arc<AtomicUsize>,
}

/// Holds threads until the test lets them go.
#[derive(Clone)]
struct Gate(Arc<Mutex<mpsc::Receiver<()>>>);

impl Gate {
    fn pass(&self) {
        let _ = self.0.lock().unwrap().recv();
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn brew(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let gate = state.gate.clone();
    let brewing = state.work.thread(move |job| {
        job.progress(Progress::new(1).of(2).message("brewing"));
        gate.pass();
        if job.is_cancelled() { Err("it was cancelled") } else { Ok("coffee") }
    });
    brewing.answer(call)
}

fn burn(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    state.work.thread(|_| Err::<&str, _>("it burns")).answer(call)
}

fn panic(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let gate = state.gate.clone();
    let panics = state.work.thread(move |_| -> Result<&str, &str> {
        gate.pass();
        panic!("as it should")
    });
    panics.answer(call)
}

fn wait(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let counted = Counted(Arc::clone(&state.dropped));
    let waits = state.work.future(|_| async move {
        pending::<()>().await;
        drop(counted);
        Ok::<_, &str>("never")
    });
    waits.answer(call)
}

fn count(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let counts = state.work.future(|job| async move {
        job.log(LoggingLevel::Error, "one");
        job.late.room().await.map(|()| 7)
    });
    counts.then(call, |state, call, result| call.text(format_args!("{result:?}, {} at work", state.work.running())))
}

const SURE: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);

fn order(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    if let Some(answer) = call.answer("sure") {
        return call.text(if answer.accepted() { "ordered" } else { "not ordered" });
    }
    match state.work.take::<u32>(call) {
        Some(price) => call.ask(&[InputRequest::elicit("sure", &format!("Pay {price}?"), SURE)], b""),
        None => state.work.thread(|_| 12_u32).resume(call, b""),
    }
}

/// Asks without having taken the result of its work: a job, whose end frees its place.
fn leave(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    match call.is_resumed() {
        true => call.ask(&[InputRequest::elicit("sure", "Sure?", SURE)], b""),
        false => state.work.future(|job| async move { job }).resume(call, b""),
    }
}

/// Waits for a number, whose type says which of two pieces of work it has done.
fn numbers(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    if !call.is_resumed() {
        let small = call.arguments().get("small").is_some();
        return match small {
            true => state.work.future(|_| async { 1_u8 }).resume(call, b""),
            false => state.work.future(|_| async { 2_u64 }).resume(call, b""),
        };
    }
    let (small, large) = (state.work.take::<u8>(call), state.work.take::<u64>(call));
    call.text(format_args!("{small:?} {large:?} {:?}", state.work.take::<u64>(call)))
}

static TOOLS: [Tool<State>; 8] = [
    Tool::new("brew", "Brews", brew),
    Tool::new("burn", "Burns", burn),
    Tool::new("panic", "Panics", panic),
    Tool::new("wait", "Waits", wait),
    Tool::new("count", "Counts", count),
    Tool::new("order", "Orders", order),
    Tool::new("leave", "Leaves its result", leave),
    Tool::new("numbers", "Waits for a number", numbers),
];

struct Rig {
    service: Service<'static, State>,
    lines: LineServer<'static, LineSink<Vec<u8>>>,
    receiver: LateReceiver<State>,
    state: State,
    gate: mpsc::Sender<()>,
}

impl Rig {
    fn new(most: usize, set: impl FnOnce(Work<State>) -> Work<State>) -> Rig {
        let ((late, receiver), (gate, gated)) = (channel(), mpsc::channel());
        let gated = Gate(Arc::new(Mutex::new(gated)));
        let service =
            Service::new("work", "1").tools(&TOOLS).on_cancel(|state: &mut State, token| state.work.cancel(token));
        let mut rig = Rig {
            service: service.feature(mcp_sansio::protocol::ServerCapability::Logging),
            lines: LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new())),
            receiver,
            state: State { work: set(Work::new(late, most)), gate: gated, dropped: Arc::default() },
            gate,
        };
        let client = json!({"name": "t", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client});
        rig.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        rig.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        rig.next();
        rig
    }

    fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.lines.space()[..line.len()].copy_from_slice(line.as_bytes());
        self.lines.filled(line.len());
    }

    fn call(&mut self, id: u32, name: &str) {
        let params = json!({"name": name, "_meta": {"progressToken": id}});
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        self.run();
    }

    fn run(&mut self) {
        let Rig { service, lines, receiver, state, .. } = self;
        assert_eq!(lines.run(service, state), NextStep::Read);
        receiver.give(lines, service, state);
        assert_eq!(lines.run(service, state), NextStep::Read);
    }

    /// Returns the next message of the server.
    fn next(&mut self) -> Value {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            self.run();
            if let Some(end) = self.lines.out.pending().iter().position(|byte| *byte == b'\n') {
                let message = serde_json::from_slice(&self.lines.out.pending()[..end]).unwrap();
                self.lines.out.sent(end + 1);
                return message;
            }
            assert!(Instant::now() < until, "nothing comes");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the text of the next answer, and whether it is an error of the tool.
    fn text(&mut self) -> (String, bool) {
        let answer = self.next();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (text, answer["result"]["isError"] == true)
    }
}

#[test]
fn a_thread_reports_and_answers() {
    let mut rig = Rig::new(2, |work| work);
    rig.call(1, "brew");
    let progress = rig.next();
    assert_eq!((&progress["params"]["progress"], &progress["params"]["message"]), (&json!(1), &json!("brewing")));
    assert_eq!(rig.state.work.running(), 1);
    rig.gate.send(()).unwrap();
    assert_eq!(rig.text(), ("coffee".into(), false));
    assert_eq!(rig.state.work.running(), 0);
    rig.call(2, "burn");
    assert_eq!(rig.text(), ("it burns".into(), true));
}

#[test]
fn there_is_a_limit() {
    let mut rig = Rig::new(1, |work| work);
    rig.call(1, "brew");
    rig.next();
    rig.call(2, "burn");
    let (text, is_error) = rig.text();
    assert!(is_error && text.contains("too many calls"), "{text}");
    // A handler that would be resumed is refused as well, and has not waited.
    rig.call(3, "order");
    assert_eq!(rig.next()["error"]["code"], -32603);
    rig.gate.send(()).unwrap();
    assert_eq!(rig.text().0, "coffee");
    rig.call(4, "burn");
    assert_eq!(rig.text().0, "it burns");
}

#[test]
fn a_panic_is_an_error() {
    let mut rig = Rig::new(1, |work| work);
    rig.call(1, "panic");
    rig.gate.send(()).unwrap();
    let answer = rig.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(rig.state.work.running(), 0);
}

#[test]
fn a_cancelled_future_is_dropped() {
    for on_threads in [true, false] {
        let spawned = Arc::new(Mutex::new(Vec::<WorkFuture>::new()));
        let queue = Arc::clone(&spawned);
        let mut rig = Rig::new(1, |work| match on_threads {
            true => work,
            false => work.spawner(move |future| queue.lock().unwrap().push(future)),
        });
        rig.call(1, "wait");
        let cx = &mut Context::from_waker(Waker::noop());
        spawned.lock().unwrap().iter_mut().for_each(|future| assert!(future.as_mut().poll(cx).is_pending()));
        let params = json!({"requestId": 1});
        rig.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        rig.run();
        spawned.lock().unwrap().iter_mut().for_each(|future| assert!(future.as_mut().poll(cx).is_ready()));
        let until = Instant::now() + Duration::from_secs(20);
        while rig.state.dropped.load(Ordering::SeqCst) == 0 || rig.state.work.running() > 0 {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(1));
        }
        rig.run();
        assert!(rig.lines.out.pending().is_empty(), "a cancelled request is not answered");
    }
}

/// A result that was not taken is dropped with its request. Its drop may need the table of results.
#[test]
fn a_result_that_was_not_taken_is_dropped_outside_the_lock() {
    let (done, is_done) = mpsc::channel();
    // On a thread of its own: a drop under the lock would never end.
    thread::spawn(move || {
        let spawned = Arc::new(Mutex::new(Vec::<WorkFuture>::new()));
        let queue = Arc::clone(&spawned);
        let mut rig = Rig::new(1, |work| work.spawner(move |future| queue.lock().unwrap().push(future)));
        rig.call(1, "leave");
        let cx = &mut Context::from_waker(Waker::noop());
        for mut future in spawned.lock().unwrap().drain(..) {
            assert!(future.as_mut().poll(cx).is_ready());
        }
        assert_eq!(rig.next()["method"], "elicitation/create");
        rig.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
        rig.run();
        done.send(rig.state.work.running()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(0));
}

/// A runtime that ends drops its futures; a state that is dropped cancels its work.
#[test]
fn nothing_is_left_behind() {
    let spawned = Arc::new(Mutex::new(Vec::<WorkFuture>::new()));
    let queue = Arc::clone(&spawned);
    let mut rig = Rig::new(1, |work| work.spawner(move |future| queue.lock().unwrap().push(future)));
    rig.call(1, "wait");
    spawned.lock().unwrap().clear();
    assert_eq!(rig.next()["error"]["code"], -32603);
    rig.call(2, "wait");
    let Rig { state, .. } = rig;
    drop(state.work);
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(spawned.lock().unwrap()[0].as_mut().poll(cx).is_ready());
    assert_eq!(state.dropped.load(Ordering::SeqCst), 2);
}

#[test]
fn the_result_comes_with_the_state() {
    let mut rig = Rig::new(1, |work| work);
    rig.call(1, "count");
    assert_eq!(rig.next()["method"], "notifications/message");
    assert_eq!(rig.text().0, "Ok(7), 0 at work");
}

#[test]
fn a_handler_asks_after_its_work() {
    let mut rig = Rig::new(1, |work| work);
    rig.call(1, "order");
    let question = rig.next();
    assert_eq!(question["params"]["message"], "Pay 12?");
    rig.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}}));
    assert_eq!(rig.text(), ("ordered".into(), false));
}

/// Results that are there at the same time go to their own requests.
#[test]
fn each_handler_takes_its_own_result() {
    let spawned = Arc::new(Mutex::new(Vec::<WorkFuture>::new()));
    let queue = Arc::clone(&spawned);
    let mut rig = Rig::new(2, |work| work.spawner(move |future| queue.lock().unwrap().push(future)));
    for (id, arguments) in [(1, json!({})), (2, json!({"small": true}))] {
        let params = json!({"name": "numbers", "arguments": arguments});
        rig.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        rig.run();
    }
    let cx = &mut Context::from_waker(Waker::noop());
    // The last one ends first.
    for mut future in spawned.lock().unwrap().drain(..).rev() {
        assert!(future.as_mut().poll(cx).is_ready());
    }
    let answers = [rig.next(), rig.next()];
    for (id, text) in [(1, "None Some(2) None"), (2, "Some(1) None None")] {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], text);
    }
}

/// A future counts as running until it ends, also if it does not keep its `Job`.
#[test]
fn a_future_without_its_job_is_at_work() {
    let spawned = Arc::new(Mutex::new(Vec::<WorkFuture>::new()));
    let queue = Arc::clone(&spawned);
    let mut rig = Rig::new(1, |work| work.spawner(move |future| queue.lock().unwrap().push(future)));
    rig.call(1, "wait");
    rig.run();
    assert!(rig.lines.out.pending().is_empty());
    assert_eq!((rig.state.work.running(), rig.receiver.is_empty()), (1, true));
}

#[test]
fn the_channel_has_room_for_so_much_and_for_each_answer() {
    let (late, mut receiver): (LateSender<State>, _) = channel_of(2);
    for _ in 0..2 {
        late.publish(ServerChange::Tools).unwrap();
    }
    assert_eq!(late.publish(ServerChange::Tools), Err(LateSendError::Full));
    let mut rig = Rig::new(1, |work| work);
    rig.call(1, "brew");
    rig.next();
    // An answer always has room, of a foreign token too.
    let token = foreign_token();
    late.fail(token, &RpcError::internal("no")).unwrap();
    let (mut room, cx) = (Box::pin(late.room()), &mut Context::from_waker(Waker::noop()));
    assert!(room.as_mut().poll(cx).is_pending());
    let waits = thread::spawn({
        let late = late.clone();
        move || late.wait_for_room()
    });
    assert!(poll_once(&mut receiver).is_ready());
    let Rig { service, lines, state, .. } = &mut rig;
    assert!(!receiver.give(lines, service, state));
    assert!(receiver.is_empty() && poll_once(&mut receiver).is_pending());
    assert_eq!((room.as_mut().poll(cx), waits.join().unwrap()), (Poll::Ready(Ok(())), Ok(())));
    drop(receiver);
    assert_eq!(late.publish(ServerChange::Tools), Err(LateSendError::Ended));
    assert_eq!(late.fail(token, &RpcError::internal("no")), Err(LateSendError::Ended));
    assert_eq!(late.wait_for_room(), Err(LateSendError::Ended));
    let _ = rig.gate.send(());
}

/// A second connection with the same requests: what the channel or the work of the first one says for them is dropped.
#[test]
fn late_messages_for_another_connection_are_dropped() {
    let [mut rig, mut other] = [(); 2].map(|()| Rig::new(2, |work| work));
    rig.call(1, "brew");
    other.call(1, "brew");
    assert_eq!(
        (rig.next()["method"].as_str(), other.next()["method"].as_str()),
        (Some("notifications/progress"), Some("notifications/progress"))
    );
    let [token, stranger] = [&mut rig, &mut other].map(|rig| rig.lines.server.token_at(0).unwrap());
    assert_ne!(token, stranger);
    let late = rig.state.work.late.clone();
    late.progress(stranger, Progress::new(2)).unwrap();
    late.log(stranger, LoggingLevel::Error, "no").unwrap();
    late.answer(stranger, |_, _| panic!("it must not run")).unwrap();
    late.resume(stranger, |_| panic!("it must not run")).unwrap();
    late.fail(stranger, &RpcError::internal("no")).unwrap();
    // That is the work of the other connection.
    rig.state.work.cancel(stranger);
    rig.run();
    assert_eq!(rig.lines.out.pending(), b"");
    late.progress(token, Progress::new(2)).unwrap();
    assert_eq!(rig.next()["params"]["progress"], 2);
    rig.gate.send(()).unwrap();
    assert_eq!(rig.text(), ("coffee".into(), false));
    other.gate.send(()).unwrap();
    assert_eq!(other.text(), ("coffee".into(), false));
}

/// One place for work, of two connections: each cancels its own.
#[test]
fn work_of_two_connections_in_one_place() {
    let mut rig = Rig::new(2, |work| work);
    let mut lines = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
    rig.call(1, "wait");
    std::mem::swap(&mut rig.lines, &mut lines);
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    rig.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    rig.next();
    rig.call(1, "wait");
    assert_eq!((rig.state.work.running(), rig.lines.out.pending()), (2, &b""[..]));
    let (first, second) = (lines.server.token_at(0).unwrap(), rig.lines.server.token_at(0).unwrap());
    assert_ne!(first, second);
    rig.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    rig.run();
    let until = Instant::now() + Duration::from_secs(20);
    while rig.state.work.running() != 1 {
        assert!(Instant::now() < until, "it does not end");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(lines.server.is_open(first) && !rig.lines.server.is_open(second));
}

fn foreign_token() -> RequestToken {
    let mut lines = LineServer::growing(MessageLimits::default(), LineSink::new(Vec::new()));
    static TAKES: [Tool<Option<RequestToken>>; 1] = [Tool::new("t", "Takes a token", |state, call| {
        let (token, outcome) = call.later();
        *state = Some(token);
        outcome
    })];
    let mut token = None;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": meta}})
        .to_string()
        + "\n";
    lines.space()[..line.len()].copy_from_slice(line.as_bytes());
    lines.filled(line.len());
    let _ = lines.run(&Service::new("t", "1").tools(&TAKES), &mut token);
    token.unwrap()
}

fn poll_once(receiver: &mut LateReceiver<State>) -> Poll<()> {
    receiver.poll_ready(&mut Context::from_waker(Waker::noop()))
}
