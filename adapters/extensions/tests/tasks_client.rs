//! A client that follows tasks: against the server of this crate, and against answers that no good server gives.
#![cfg(all(feature = "alloc", feature = "tasks"))]

use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{
    Client, ClientEvent, ClientInfo, Request, RequestError, SendError, ServerRequestKind, TransportError,
};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Millis, RpcError};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio::trace_context::{TraceContext, TraceParent};
use mcp_sansio_extensions::tasks::client::{
    DECLARATION, FollowLimits, RESULT_TYPES, TaskEnd, TaskEvent, TaskFollower, TaskHandle, TaskStep,
};
use mcp_sansio_extensions::tasks::{
    HasTasks, TaskOptions, TaskSlot, TaskStatus, TaskToken, Tasks, begin, complete, extension,
};
use mcp_sansio_host::testing::Conversation;

struct World {
    tasks: Tasks<'static>,
    token: Option<TaskToken>,
}

impl HasTasks for World {
    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

fn work(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let options = TaskOptions::new([7; 16]).ttl(600_000).poll_interval(1_000).message("begun");
    let (token, done) = begin(world, call, &options)?;
    world.token = Some(token);
    Ok(done)
}

static TOOLS: [Tool<World>; 1] = [Tool::new("work", "Works for a while", work)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);
const SURE: Raw<'static> = Raw::constant(r#"{"sure":true}"#);

static PROFILE: ClientInfo<'static> =
    ClientInfo::new("test", "1").extensions(DECLARATION, RESULT_TYPES).feature(ClientCapability::ElicitForm);

fn engine() -> Client<'static> {
    let mut engine = Client::growing(&PROFILE);
    engine.connect_as(Revision::V2026_07_28);
    engine
}

/// A client and a server.
struct Pair {
    engine: Client<'static>,
    server: Conversation<'static, World>,
    now: Millis,
    /// The methods that were sent.
    sent: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        let slots: Vec<_> = (0..2).map(|_| TaskSlot::FREE).collect();
        let world = World { tasks: Tasks::new(slots.leak(), vec![0; 2048].leak()), token: None };
        Pair { engine: engine(), server: Conversation::new(&SERVICE, world), now: 0, sent: Vec::new() }
    }

    /// Sends a request. Returns its result, or the code of its error.
    fn request(&mut self, request: &Request<'_>) -> Result<String, i32> {
        self.sent.push(request.name.into());
        let mut out = LineSink::new(Vec::new());
        self.engine.send(request, &mut out).unwrap();
        let line = String::from_utf8(out.into_inner()).unwrap();
        let answer = self.server.say(line.trim_end()).remove(0);
        let mut out = LineSink::new(Vec::new());
        match self.engine.receive(answer.as_bytes(), &mut out).unwrap().unwrap() {
            ClientEvent::Done { outcome: Ok(result), .. } => Ok(result.as_str().into()),
            ClientEvent::Done { outcome: Err(RequestError::Error(error)), .. } => Err(error.code),
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self) -> TaskHandle {
        let result = self.request(&Request::call("work")).unwrap();
        TaskHandle::of(Raw::parse(result.as_bytes()).unwrap()).unwrap().unwrap()
    }

    fn wait(&mut self, millis: Millis) {
        self.now += millis;
        self.server.wait(millis);
    }

    /// Follows a task until it waits or ends. Returns the events, and how long it waits.
    fn follow(&mut self, task: &mut TaskFollower) -> (Vec<TaskEvent>, Option<Millis>) {
        let mut events = Vec::new();
        loop {
            events.extend(std::iter::from_fn(|| task.event()));
            let outcome = match task.next(self.now) {
                TaskStep::Send(request) => self.request(&request),
                TaskStep::Wait(until) => return (events, Some(until - self.now)),
                TaskStep::End if events.last().is_some_and(|event| matches!(event, TaskEvent::Ended(_))) => {
                    return (events, None);
                }
                TaskStep::End => continue,
            };
            match outcome {
                Ok(result) => task.answered(Raw::parse(result.as_bytes()).unwrap(), self.now, &self.engine),
                Err(code) => task.refused(code, "", self.now),
            }
        }
    }

    fn token(&mut self) -> TaskToken {
        self.server.state().token.unwrap()
    }

    fn complete(&mut self, text: &'static str) {
        let (token, now) = (self.token(), self.now);
        complete(&SERVICE, self.server.state(), token, now, |_, call| call.text(text)).unwrap();
    }

    fn ask(&mut self, keys: &[&'static str]) {
        let (token, now) = (self.token(), self.now);
        let questions: Vec<_> = keys.iter().map(|key| InputRequest::elicit(key, "Sure?", SCHEMA)).collect();
        self.server.state().tasks.ask(token, now, &questions).unwrap();
    }
}

fn status(status: TaskStatus, message: &str) -> TaskEvent {
    TaskEvent::Status { status, message: Some(message.into()) }
}

/// Returns the keys of the questions.
fn asked(events: &[TaskEvent]) -> Vec<&str> {
    let mut keys = Vec::new();
    for event in events {
        if let TaskEvent::Asked(question) = event {
            keys.push(question.key.as_str());
        }
    }
    keys
}

#[test]
fn a_task_is_polled_to_its_result() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::new(pair.begin(), FollowLimits::DEFAULT);
    assert_eq!(pair.follow(&mut task), (vec![], Some(1_000)));
    pair.wait(999);
    assert_eq!(pair.follow(&mut task), (vec![], Some(1)));
    pair.wait(1);
    assert_eq!(pair.follow(&mut task), (vec![status(TaskStatus::Working, "begun")], Some(1_000)));
    pair.wait(1_000);
    assert_eq!(pair.follow(&mut task), (vec![], Some(1_000)));
    pair.complete("done");
    pair.wait(1_000);
    let (events, wait) = pair.follow(&mut task);
    let Some(TaskEvent::Ended(TaskEnd::Completed(result))) = events.last() else { panic!("{events:?}") };
    assert!(result.raw().get("content").unwrap().as_str().contains("\"done\""));
    assert_eq!((events.len(), wait), (2, None));
    assert_eq!(pair.sent, ["tools/call", "tasks/get", "tasks/get", "tasks/get"]);
    assert!(matches!(task.next(pair.now), TaskStep::End));
}

#[test]
fn requests_are_in_the_trace_of_the_call() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let trace = TraceContext::new(TraceParent::parse(PARENT).unwrap());
    let mut task = resumed(FollowLimits::DEFAULT).trace_context(trace);
    let mut engine = engine();
    let mut send = |task: &mut TaskFollower, now| {
        let TaskStep::Send(request) = task.next(now) else { panic!("it sends nothing") };
        let mut out = LineSink::new(Vec::new());
        engine.send(&request, &mut out).unwrap();
        let line = String::from_utf8(out.into_inner()).unwrap();
        assert!(line.contains(&format!(r#""traceparent":"{PARENT}""#)), "{line}");
        request.name.to_owned()
    };
    assert_eq!(send(&mut task, 0), "tasks/get");
    assert!(task.lost(10));
    task.cancel();
    assert_eq!(send(&mut task, 5_000), "tasks/cancel");
}

#[test]
fn a_question_is_asked_and_answered_once() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::resume(pair.begin(), FollowLimits::DEFAULT);
    pair.ask(&["a", "b"]);
    let (events, _) = pair.follow(&mut task);
    assert_eq!(asked(&events), ["a", "b"]);
    let TaskEvent::Asked(question) = &events[1] else { panic!("{events:?}") };
    assert_eq!(question.kind, ServerRequestKind::Form);
    assert!(question.params.raw().get("message").unwrap().text().unwrap().eq_str("Sure?"));
    pair.wait(1_000);
    assert_eq!(pair.follow(&mut task), (vec![], Some(1_000)));

    // One answer, then the other.
    assert_eq!(task.answer("c", &ClientResult::decline()), Err(SendError::Stale));
    task.answer("b", &ClientResult::accept(SURE)).unwrap();
    assert_eq!(task.answer("b", &ClientResult::decline()), Err(SendError::Stale));
    pair.sent.clear();
    assert_eq!(pair.follow(&mut task), (vec![], Some(200)));
    assert_eq!(pair.sent, ["tasks/update"]);
    pair.wait(200);
    assert_eq!(pair.follow(&mut task), (vec![], Some(1_000)));
    task.answer("a", &ClientResult::decline()).unwrap();
    assert_eq!(pair.follow(&mut task), (vec![], Some(200)));
    let token = pair.token();
    assert_eq!(pair.server.state().tasks.next_answered(), Some(token));
    let answer = |pair: &mut Pair, key| pair.server.state().tasks.answer(token, key).unwrap().accepted();
    assert!(answer(&mut pair, "b") && !answer(&mut pair, "a"));
    pair.wait(200);
    assert_eq!(pair.follow(&mut task), (vec![status(TaskStatus::Working, "begun")], Some(1_000)));
    assert_eq!(pair.sent, ["tasks/update", "tasks/get", "tasks/update", "tasks/get"]);
}

/// The handle knows the answered questions: a server that has not taken the answer in yet may show them again.
#[test]
fn a_restart_asks_open_questions_only() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::resume(pair.begin(), FollowLimits::DEFAULT);
    pair.ask(&["a", "b"]);
    pair.follow(&mut task);
    task.answer("a", &ClientResult::decline()).unwrap();
    pair.follow(&mut task);
    let kept = task.handle().to_string();
    drop(task);

    let handle: TaskHandle = kept.parse().unwrap();
    let mut task = TaskFollower::resume(handle.clone(), FollowLimits::DEFAULT);
    assert_eq!(asked(&pair.follow(&mut task).0), ["b"]);
    let mut task = TaskFollower::resume(handle, FollowLimits::DEFAULT);
    let id = task.handle().id.to_owned();
    feed(&mut task, 0, &with_questions(&["a", "b"]).replace("\"t\"", &format!("\"{id}\"")));
    let events: Vec<_> = std::iter::from_fn(|| task.event()).collect();
    assert_eq!(asked(&events), ["b"]);
}

#[test]
fn a_task_is_cancelled() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::new(pair.begin(), FollowLimits::DEFAULT);
    pair.follow(&mut task);
    task.cancel();
    let (events, wait) = pair.follow(&mut task);
    assert_eq!((events.last(), wait), (Some(&TaskEvent::Ended(TaskEnd::Cancelled)), None));
    assert_eq!(pair.sent, ["tools/call", "tasks/cancel", "tasks/get"]);
    let token = pair.token();
    assert_eq!(pair.server.state().tasks.next_cancelled(), Some(token));

    // The work was done before.
    let mut pair = Pair::new();
    let mut task = TaskFollower::new(pair.begin(), FollowLimits::DEFAULT);
    pair.complete("done");
    task.cancel();
    let (events, _) = pair.follow(&mut task);
    assert!(matches!(events.last(), Some(TaskEvent::Ended(TaskEnd::Completed(_)))), "{events:?}");
}

#[test]
fn a_task_is_gone_when_its_time_is_over() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::resume(pair.begin(), FollowLimits::DEFAULT);
    pair.wait(600_000);
    assert_eq!(pair.follow(&mut task), (vec![TaskEvent::Ended(TaskEnd::Gone)], None));
    let mut unknown = TaskFollower::resume(TaskHandle::new("nothing", Revision::LATEST), FollowLimits::DEFAULT);
    assert_eq!(pair.follow(&mut unknown), (vec![TaskEvent::Ended(TaskEnd::Gone)], None));
}

#[test]
fn a_failed_task_has_its_error() {
    let mut pair = Pair::new();
    let mut task = TaskFollower::resume(pair.begin(), FollowLimits::DEFAULT);
    let (token, now) = (pair.token(), pair.now);
    pair.server.state().tasks.fail(token, now, &RpcError::new(-32050, "on fire")).unwrap();
    let (events, _) = pair.follow(&mut task);
    let Some(TaskEvent::Ended(TaskEnd::Failed(error))) = events.last() else { panic!("{events:?}") };
    assert_eq!(error.raw().as_str(), r#"{"code":-32050,"message":"on fire"}"#);
}

const ID: &str = "t";

fn got(status: &str, more: &str) -> String {
    format!(r#"{{"resultType":"complete","taskId":"{ID}","status":"{status}"{more}}}"#)
}

fn with_questions(keys: &[&str]) -> String {
    let ask = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let asks: Vec<_> = keys.iter().map(|key| format!("\"{key}\":{ask}")).collect();
    got("input_required", &format!(",\"inputRequests\":{{{}}}", asks.join(",")))
}

fn resumed(limits: FollowLimits) -> TaskFollower {
    TaskFollower::resume(TaskHandle::new(ID, Revision::LATEST), limits)
}

/// Gives a task the answer to the request that it sends now. Returns the method.
#[track_caller]
fn feed(task: &mut TaskFollower, now: Millis, answer: &str) -> String {
    let method = sent(task, now);
    task.answered(Raw::parse(answer.as_bytes()).unwrap(), now, &engine());
    method
}

#[track_caller]
fn sent(task: &mut TaskFollower, now: Millis) -> String {
    match task.next(now) {
        TaskStep::Send(request) => {
            let mut out = LineSink::new(Vec::new());
            engine().send(&request, &mut out).unwrap();
            let line = String::from_utf8(out.into_inner()).unwrap();
            // The `taskId` names the task, and nothing else does.
            assert!(line.contains(r#""taskId":"#) && !line.contains("related-task"), "{line}");
            request.name.into()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn waits(task: &mut TaskFollower, now: Millis) -> Millis {
    match task.next(now) {
        TaskStep::Wait(until) => until - now,
        other => panic!("{other:?}"),
    }
}

/// Returns the end, which is the last event.
#[track_caller]
fn end(task: &mut TaskFollower) -> TaskEnd {
    match std::iter::from_fn(|| task.event()).last() {
        Some(TaskEvent::Ended(end)) => end,
        other => panic!("{other:?}"),
    }
}

// spec: K062
#[test]
fn intervals_have_bounds() {
    for (interval, expected) in
        [("", 1_000), ("0", 200), ("200", 200), ("5000", 5_000), ("99999999999", 60_000), ("null", 1_000)]
    {
        let mut task = resumed(FollowLimits::DEFAULT);
        let more = if interval.is_empty() { String::new() } else { format!(",\"pollIntervalMs\":{interval}") };
        feed(&mut task, 50, &got("working", &more));
        assert_eq!(waits(&mut task, 50), expected, "{interval}");
    }
    // The interval may change.
    let mut task = resumed(FollowLimits::DEFAULT.poll_interval(10, 20));
    feed(&mut task, 0, &got("working", ",\"pollIntervalMs\":1"));
    assert_eq!(waits(&mut task, 0), 10);
    feed(&mut task, 10, &got("working", ",\"pollIntervalMs\":30"));
    assert_eq!(waits(&mut task, 10), 20);
    // With notifications the longest is enough.
    task.set_notified(true);
    feed(&mut task, 30, &got("working", ",\"pollIntervalMs\":1"));
    assert_eq!(waits(&mut task, 30), 20);
}

#[test]
fn it_gives_up_in_time() {
    let limits = FollowLimits::DEFAULT.total_timeout(2_500).request_timeout(700);
    let mut task = resumed(limits);
    feed(&mut task, 1_000, &got("working", ""));
    feed(&mut task, 2_000, &got("working", ""));
    feed(&mut task, 3_000, &got("working", ""));
    assert_eq!(waits(&mut task, 3_100), 400);
    assert!(matches!(task.next(3_500), TaskStep::End));
    assert_eq!(end(&mut task), TaskEnd::GaveUp);
    // A late answer changes nothing.
    task.answered(Raw::parse(got("working", "").as_bytes()).unwrap(), 3_600, &engine());
    assert_eq!(task.event(), None);

    // The limit holds over a new connection, whose clock is another one.
    let mut task = resumed(limits);
    feed(&mut task, 1_000, &got("working", ""));
    feed(&mut task, 2_000, &got("working", ""));
    task.reconnected();
    feed(&mut task, 7, &got("working", ""));
    assert_eq!(waits(&mut task, 8), 999);
    assert!(matches!(task.next(1_507), TaskStep::End));
    assert_eq!(end(&mut task), TaskEnd::GaveUp);

    // A cancellation that has no effect.
    let mut task = resumed(FollowLimits::DEFAULT.cancel_time(1_500));
    feed(&mut task, 0, &got("working", ""));
    task.cancel();
    assert_eq!(feed(&mut task, 10, "{}"), "tasks/cancel");
    assert_eq!(feed(&mut task, 10, &got("working", "")), "tasks/get");
    assert_eq!(feed(&mut task, 1_010, &with_questions(&["a"])), "tasks/get");
    assert_eq!(waits(&mut task, 1_010), 490);
    assert!(matches!(task.next(1_500), TaskStep::End));
    assert_eq!(end(&mut task), TaskEnd::Unconfirmed);
}

#[test]
fn lost_requests_are_sent_again_with_longer_pauses() {
    let mut task = resumed(FollowLimits::DEFAULT.failures(3));
    let mut now = 0;
    for pause in [2_000, 4_000, 8_000] {
        assert_eq!(sent(&mut task, now), "tasks/get");
        assert!(task.lost(now));
        assert_eq!(waits(&mut task, now), pause);
        now += pause;
    }
    sent(&mut task, now);
    assert!(!task.lost(now));
    // The connection is good again.
    task.reconnected();
    feed(&mut task, 0, &with_questions(&["a"]));
    // An answer whose fate is not known is sent again, as long as the question is open.
    task.answer("a", &ClientResult::decline()).unwrap();
    assert_eq!(sent(&mut task, 10), "tasks/update");
    assert!(task.lost(10));
    assert_eq!(feed(&mut task, 2_010, "{}"), "tasks/update");
    assert_eq!(feed(&mut task, 2_210, &with_questions(&["a"])), "tasks/get");
    assert_eq!(waits(&mut task, 2_210), 1_000);

    // An internal error may pass; others do not.
    let mut task = resumed(FollowLimits::DEFAULT.failures(1));
    sent(&mut task, 0);
    task.refused(-32603, "busy", 0);
    sent(&mut task, 2_000);
    task.refused(-32603, "still busy", 2_000);
    assert_eq!(end(&mut task), TaskEnd::Refused { code: -32603, message: "still busy".into() });
    let mut task = resumed(FollowLimits::DEFAULT);
    sent(&mut task, 0);
    task.refused(-32601, "no\u{1b}[2J tasks", 0);
    let refused = end(&mut task);
    assert!(!refused.to_string().contains('\u{1b}') && refused.to_string().contains("-32601"), "{refused}");
    // A server that does not cancel what has ended.
    let mut task = resumed(FollowLimits::DEFAULT);
    task.cancel();
    assert_eq!(sent(&mut task, 0), "tasks/cancel");
    task.refused(-32602, "it has ended", 0);
    feed(&mut task, 0, &got("completed", r#","result":{}"#));
    assert!(matches!(end(&mut task), TaskEnd::Completed(_)));
}

#[test]
fn questions_that_nobody_needs_answered_are_withdrawn() {
    let events = |task: &mut TaskFollower| std::iter::from_fn(|| task.event()).collect::<Vec<_>>();
    let mut task = resumed(FollowLimits::DEFAULT);
    feed(&mut task, 0, &with_questions(&["a", "b"]));
    assert_eq!(asked(&events(&mut task)), ["a", "b"]);
    feed(&mut task, 1_000, &with_questions(&["b", "c"]));
    let now = events(&mut task);
    assert_eq!((now.first(), asked(&now)), (Some(&TaskEvent::Withdrawn("a".into())), vec!["c"]));
    assert_eq!(task.answer("a", &ClientResult::decline()), Err(SendError::Stale));
    // The application has not seen the question `d` yet: it does not see it at all.
    feed(&mut task, 2_000, &with_questions(&["b", "c", "d"]));
    feed(&mut task, 3_000, &got("working", ""));
    let rest = events(&mut task);
    assert!(asked(&rest).is_empty() && !rest.contains(&TaskEvent::Withdrawn("d".into())), "{rest:?}");
    assert!(rest.contains(&TaskEvent::Withdrawn("b".into())) && rest.contains(&TaskEvent::Withdrawn("c".into())));
}

#[test]
fn servers_that_break_the_rules() {
    let invalid = TaskEnd::Invalid(TransportError::Invalid);
    let asks = |request: &str| got("input_required", &format!(",\"inputRequests\":{{\"a\":{request}}}"));
    let sampling = r#"{"method":"sampling/createMessage","params":{"messages":[]}}"#;
    for (answer, expected) in [
        ("{}".to_owned(), invalid.clone()),
        (got("done", ""), invalid.clone()),
        (got("working", "").replace("\"t\"", "\"another\""), invalid.clone()),
        (got("completed", ""), invalid.clone()),
        (got("completed", ",\"result\":[]"), invalid.clone()),
        (got("failed", ",\"result\":{}"), invalid.clone()),
        (got("input_required", ""), invalid.clone()),
        (got("input_required", ",\"inputRequests\":[]"), invalid.clone()),
        (asks("7"), invalid.clone()),
        (asks("{\"method\":\"tools/list\"}"), invalid.clone()),
        (asks("{\"method\":\"elicitation/create\"}"), invalid.clone()),
        (with_questions(&["a", "\\u0061"]), invalid.clone()),
        (asks(sampling), TaskEnd::Invalid(TransportError::Undeclared)),
        (asks("{\"method\":\"roots/list\"}"), TaskEnd::Invalid(TransportError::Undeclared)),
        (with_questions(&["a", "b", "c", "d"]), invalid.clone()),
    ] {
        let mut task = resumed(FollowLimits::DEFAULT.questions(3));
        feed(&mut task, 0, &answer);
        assert_eq!(end(&mut task), expected, "{answer}");
    }
    // One question after the other, without end.
    let mut task = resumed(FollowLimits::DEFAULT.questions(3));
    for (now, key) in (0..).step_by(10_000).zip(["a", "b", "c"]) {
        feed(&mut task, now, &with_questions(&[key]));
        task.answer(key, &ClientResult::decline()).unwrap();
        assert_eq!(feed(&mut task, now, "{}"), "tasks/update");
    }
    feed(&mut task, 40_000, &with_questions(&["d"]));
    assert_eq!(end(&mut task), TaskEnd::Invalid(TransportError::TooManyRounds));
}

#[test]
fn notifications_are_as_good_as_polls() {
    let mut task = resumed(FollowLimits::DEFAULT);
    feed(&mut task, 0, &got("working", ""));
    let notify = |task: &mut TaskFollower, now, params: &str| {
        task.notified(Raw::parse(params.as_bytes()).unwrap(), now, &engine());
    };
    let completed = got("completed", r#","result":{}"#);
    notify(&mut task, 500, "{}");
    notify(&mut task, 500, &completed.replace("\"t\"", "\"other\""));
    assert_eq!(waits(&mut task, 500), 500);
    notify(&mut task, 600, &with_questions(&["a"]));
    assert_eq!(waits(&mut task, 600), 1_000);
    let events: Vec<_> = std::iter::from_fn(|| task.event()).collect();
    assert_eq!(asked(&events), ["a"]);
    // The answer to a poll that the notification has overtaken.
    assert_eq!(sent(&mut task, 1_600), "tasks/get");
    assert!(task.awaits_answer());
    notify(&mut task, 1_610, &got("working", ""));
    assert!(!task.awaits_answer());
    task.answered(Raw::parse(with_questions(&["a", "b"]).as_bytes()).unwrap(), 1_620, &engine());
    let events: Vec<_> = std::iter::from_fn(|| task.event()).collect();
    assert!(asked(&events).is_empty() && events.contains(&TaskEvent::Withdrawn("a".into())), "{events:?}");
    notify(&mut task, 1_630, &completed);
    assert!(matches!(end(&mut task), TaskEnd::Completed(_)));
}

/// The server has taken the answers, and says so before the `tasks/update` is answered: a message that is older, or a start
/// with the handle, must not ask again.
#[test]
fn an_answer_that_was_sent_counts_as_taken() {
    let mut task = resumed(FollowLimits::DEFAULT);
    feed(&mut task, 0, &with_questions(&["a", "b"]));
    assert_eq!(std::iter::from_fn(|| task.event()).filter(|event| matches!(event, TaskEvent::Asked(_))).count(), 2);
    task.answer("a", &ClientResult::decline()).unwrap();
    assert_eq!(sent(&mut task, 0), "tasks/update");
    // This answer was not sent yet: the question is withdrawn.
    task.answer("b", &ClientResult::decline()).unwrap();
    let notify = |task: &mut TaskFollower, params: &str| {
        task.notified(Raw::parse(params.as_bytes()).unwrap(), 10, &engine());
        std::iter::from_fn(|| task.event()).collect::<Vec<_>>()
    };
    let events = notify(&mut task, &got("working", ""));
    let withdrawn: Vec<_> = events.iter().filter(|event| matches!(event, TaskEvent::Withdrawn(_))).collect();
    assert_eq!(withdrawn, [&TaskEvent::Withdrawn("b".into())]);
    assert!(task.lost(20));
    assert_eq!(asked(&notify(&mut task, &with_questions(&["a", "b"]))), ["b"]);
    let mut task = TaskFollower::resume(task.handle().to_string().parse().unwrap(), FollowLimits::DEFAULT);
    assert_eq!(asked(&notify(&mut task, &with_questions(&["a", "c"]))), ["c"]);
}

/// Following ends while an answer is on its way, but the task goes on: who follows it again is not asked what the server has
/// taken, and is asked what it has not.
#[test]
fn an_answer_that_is_taken_after_the_end_is_in_the_handle() {
    let broken = got("input_required", "");
    for (is_taken, again) in [(true, vec!["b"]), (false, vec!["a", "b"])] {
        let mut task = resumed(FollowLimits::DEFAULT);
        feed(&mut task, 0, &with_questions(&["a", "b"]));
        assert_eq!(std::iter::from_fn(|| task.event()).filter(|event| matches!(event, TaskEvent::Asked(_))).count(), 2);
        task.answer("a", &ClientResult::decline()).unwrap();
        assert_eq!(sent(&mut task, 0), "tasks/update");
        task.notified(Raw::parse(broken.as_bytes()).unwrap(), 10, &engine());
        assert_eq!(end(&mut task), TaskEnd::Invalid(TransportError::Invalid));
        assert_eq!(task.answer("b", &ClientResult::decline()), Err(SendError::Stale));
        assert!(task.awaits_answer());
        if is_taken {
            task.answered(Raw::constant("{}"), 20, &engine());
        } else {
            task.refused(-32603, "", 20);
        }
        assert!(matches!(task.next(20), TaskStep::End) && task.event().is_none());
        let mut task = TaskFollower::resume(task.handle().to_string().parse().unwrap(), FollowLimits::DEFAULT);
        feed(&mut task, 0, &with_questions(&["a", "b"]));
        let events: Vec<_> = std::iter::from_fn(|| task.event()).collect();
        assert_eq!(asked(&events), again);
    }
}

/// In 2025-11-25 the result comes by `tasks/result`, and the questions with it.
// spec: B189 K004 K011 K012 K013 K019 K056 K061 K072
#[test]
fn tasks_of_the_revision_before() {
    let legacy = || TaskFollower::resume(TaskHandle::new(ID, Revision::V2025_11_25), FollowLimits::DEFAULT);
    let is = |status: &str| format!(r#"{{"taskId":"{ID}","status":"{status}","ttl":60000,"pollInterval":300}}"#);
    let result = r#"{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
    for status in ["completed", "failed"] {
        let mut task = legacy();
        assert_eq!(feed(&mut task, 0, &is("working")), "tasks/get");
        assert_eq!(waits(&mut task, 0), 300);
        assert_eq!(feed(&mut task, 300, &is(status)), "tasks/get");
        assert_eq!(feed(&mut task, 300, result), "tasks/result");
        let TaskEnd::Completed(ended) = end(&mut task) else { panic!() };
        assert_eq!(ended.raw().as_str(), result);
    }
    let mut task = legacy();
    feed(&mut task, 0, &is("failed"));
    assert_eq!(sent(&mut task, 0), "tasks/result");
    task.refused(-32602, "no \"ink\"", 0);
    let TaskEnd::Failed(error) = end(&mut task) else { panic!() };
    assert_eq!(error.raw().as_str(), r#"{"code":-32602,"message":"no \"ink\""}"#);

    // The server asks while `tasks/result` waits. It may wait longer than a request, as often as it takes.
    let mut task = legacy();
    for now in (0..).step_by(10_000).take(20) {
        assert_eq!(feed(&mut task, now, &is("input_required")), "tasks/get");
        assert_eq!(sent(&mut task, now), "tasks/result");
        assert!(task.lost(now + 5_000));
        assert_eq!(waits(&mut task, now + 5_000), 300);
    }
    // A result that is lost is fetched again.
    feed(&mut task, 200_000, &is("completed"));
    sent(&mut task, 200_000);
    assert!(task.lost(200_000));
    assert_eq!(feed(&mut task, 210_000, result), "tasks/result");
    assert!(matches!(end(&mut task), TaskEnd::Completed(_)));

    // After a cancellation it only polls, unless there is a result.
    let mut task = legacy();
    feed(&mut task, 0, &is("input_required"));
    task.cancel();
    assert_eq!(feed(&mut task, 10, &is("working")), "tasks/cancel");
    assert_eq!(feed(&mut task, 10, &is("input_required")), "tasks/get");
    assert_eq!(waits(&mut task, 10), 300);
    assert_eq!(feed(&mut task, 310, &is("cancelled")), "tasks/get");
    assert_eq!(end(&mut task), TaskEnd::Cancelled);
    // A cancelled task may be gone at once.
    let mut task = legacy();
    task.cancel();
    feed(&mut task, 0, "{}");
    assert_eq!(sent(&mut task, 0), "tasks/get");
    task.refused(-32602, "unknown", 0);
    assert_eq!(end(&mut task), TaskEnd::Gone);
}

/// In 2025-11-25 a task is cancelled before the server answers, and need not be kept: the answer is the end.
// spec: K038
#[test]
fn the_answer_to_a_cancellation_is_the_end() {
    let cancelled =
        |id: &str| format!(r#"{{"taskId":"{id}","status":"cancelled","statusMessage":"stopped","ttl":null}}"#);
    let handle = TaskHandle::new(ID, Revision::V2025_11_25);
    for (id, expected) in [(ID, TaskEnd::Cancelled), ("another", TaskEnd::Invalid(TransportError::Invalid))] {
        let mut task = TaskFollower::resume(handle.clone(), FollowLimits::DEFAULT);
        task.cancel();
        assert_eq!(feed(&mut task, 0, &cancelled(id)), "tasks/cancel");
        let events: Vec<_> = std::iter::from_fn(|| task.event()).collect();
        assert_eq!(events.last(), Some(&TaskEvent::Ended(expected)));
        assert_eq!(events.contains(&status(TaskStatus::Cancelled, "stopped")), id == ID);
        assert!(matches!(task.next(0), TaskStep::End));
    }
    // The extension answers without the task.
    let mut task = resumed(FollowLimits::DEFAULT);
    task.cancel();
    feed(&mut task, 0, &got("cancelled", ""));
    assert_eq!(sent(&mut task, 0), "tasks/get");
}

/// rmcp before 3.0 does not know a task with -32002, and refuses with -32600 to cancel one that has ended.
#[test]
fn codes_of_other_servers() {
    let get = |revision, code| {
        let mut task = TaskFollower::resume(TaskHandle::new(ID, revision), FollowLimits::DEFAULT);
        sent(&mut task, 0);
        task.refused(code, "no", 0);
        end(&mut task)
    };
    let refused = |code| TaskEnd::Refused { code, message: "no".into() };
    assert_eq!(get(Revision::V2025_11_25, -32002), TaskEnd::Gone);
    assert_eq!(get(Revision::V2025_11_25, -32600), refused(-32600));
    assert_eq!(get(Revision::V2026_07_28, -32002), refused(-32002));
    let cancel = |revision, code| {
        let mut task = TaskFollower::resume(TaskHandle::new(ID, revision), FollowLimits::DEFAULT);
        task.cancel();
        sent(&mut task, 0);
        task.refused(code, "no", 0);
        task
    };
    for code in [-32600, -32002, -32602] {
        assert_eq!(sent(&mut cancel(Revision::V2025_11_25, code), 0), "tasks/get");
    }
    for code in [-32600, -32002] {
        assert_eq!(end(&mut cancel(Revision::V2026_07_28, code)), refused(code));
    }
}
