//! The tasks of a client of 2025-11-25 from outside: each line that it writes to a server.
#![cfg(all(feature = "alloc", feature = "tasks"))]

use mcp_sansio::client::result::{ClientResult, CreateMessageResult};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo, PendingRequest, SendError, ServerRequestKind};
use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::{ClientCapability, code};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{ContentBlock, InputRequest};
use mcp_sansio::sink::{LineSink, MessageHead, SliceStorage, whole};
use mcp_sansio_extensions::tasks::receiver::{Received, Receiver};
use mcp_sansio_extensions::tasks::{TaskError, TaskOptions, TaskStatus, TaskToken, Tasks};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";
/// Forms may be tasks of 2025-11-25, and samplings too. URLs are declared without a word about tasks.
static BOTH: ClientInfo<'static> = ClientInfo::new("test", "1")
    .tasks(ClientCapability::Sampling)
    .tasks(ClientCapability::ElicitForm)
    .feature(ClientCapability::ElicitUrl);
static SAMPLING: ClientInfo<'static> =
    ClientInfo::new("test", "1").tasks(ClientCapability::SamplingTools).feature(ClientCapability::ElicitForm);
static NONE: ClientInfo<'static> =
    ClientInfo::new("test", "1").feature(ClientCapability::Sampling).feature(ClientCapability::ElicitForm);

fn sampled(text: &str) -> ClientResult<'_> {
    ClientResult::sampled(CreateMessageResult::new("model", ContentBlock::text(text)))
}

/// A client, its tasks, and a server.
struct Desk {
    client: Client<'static>,
    receiver: Receiver,
    now: u64,
    random: u8,
    begun: Vec<TaskToken>,
    last_id: u64,
    capabilities: Value,
}

impl Desk {
    fn new() -> Self {
        Desk::with(&BOTH, Revision::V2025_11_25)
    }

    /// A client whose server has answered `initialize`.
    fn with(info: &'static ClientInfo<'static>, revision: Revision) -> Self {
        let slots: Vec<_> = (0..4).map(|_| PendingRequest::FREE).collect();
        let mut desk = Desk {
            client: Client::new(info, slots.leak()).held(Store::growing(1 << 20)),
            receiver: Receiver::new(Tasks::growing(40, 65_536).epoch(1_785_231_000_000)),
            now: 0,
            random: 0,
            begun: Vec::new(),
            last_id: 100,
            capabilities: Value::Null,
        };
        desk.open(revision);
        desk
    }

    fn open(&mut self, revision: Revision) {
        self.client.connect_as(revision);
        let mut out = LineSink::new(Vec::new());
        assert!(self.client.advance(0, &mut out).unwrap().is_none());
        let asked = read(&out).remove(0);
        self.capabilities = asked["params"]["capabilities"].clone();
        let result = json!({ "protocolVersion": revision.date(), "capabilities": { "tools": {} },
            "serverInfo": { "name": "server", "version": "1" } });
        self.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        let mut out = LineSink::new(Vec::new());
        assert!(self.client.advance(0, &mut out).unwrap().is_none());
    }

    /// The server sends a line. Returns the lines of the client.
    fn say(&mut self, line: &Value) -> Vec<Value> {
        let mut out = LineSink::new(Vec::new());
        let line = line.to_string();
        if let Some(ClientEvent::Asked(asked)) = self.client.receive(line.as_bytes(), &mut out).unwrap() {
            let mut link = ClientHandle { client: &mut self.client, out: &mut out };
            for question in asked.questions() {
                self.random = self.random.wrapping_add(1);
                let options = TaskOptions::new([self.random; 16]).ttl(60_000).poll_interval(200);
                match self.receiver.take(&question, self.now, &options, &mut link).unwrap() {
                    Received::Task(token) => self.begun.push(token),
                    Received::Handled => {}
                    Received::Ordinary if question.kind == ServerRequestKind::Sampling => {
                        link.reply(question.id, &sampled("at once")).unwrap();
                    }
                    Received::Ordinary => link.reply(question.id, &ClientResult::decline()).unwrap(),
                }
            }
        }
        read(&out)
    }

    /// Sends a request of the server. Returns the lines that come back at once.
    fn send(&mut self, method: &str, params: Value) -> Vec<Value> {
        self.last_id += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut lines = self.send(method, params);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0]["id"], self.last_id);
        lines.remove(0)
    }

    fn code(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params)["error"]["code"].take()
    }

    /// Begins a task. Returns its token and id.
    fn begin(&mut self) -> (TaskToken, String) {
        let created = self.ask("sampling/createMessage", sampling(json!({})));
        (*self.begun.last().unwrap(), created["result"]["task"]["taskId"].as_str().unwrap().to_owned())
    }

    fn get(&mut self, id: &str) -> Value {
        self.ask("tasks/get", json!({ "taskId": id }))["result"].take()
    }

    /// Sends a `tasks/result` that waits. Returns its id.
    fn wait_for(&mut self, id: &str) -> Value {
        assert_eq!(self.send("tasks/result", json!({ "taskId": id })), [Value::Null; 0]);
        json!(self.last_id)
    }

    fn flush(&mut self) -> Vec<Value> {
        let mut out = LineSink::new(Vec::new());
        let mut link = ClientHandle { client: &mut self.client, out: &mut out };
        self.receiver.flush(self.now, &mut link).unwrap();
        read(&out)
    }

    fn complete(&mut self, token: TaskToken, result: &ClientResult<'_>) -> Vec<Value> {
        self.receiver.complete(token, self.now, result).unwrap();
        self.flush()
    }
}

fn read(out: &LineSink<Vec<u8>>) -> Vec<Value> {
    std::str::from_utf8(out.pending()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sampling(task: Value) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    json!({ "messages": [message], "maxTokens": 9, "task": task })
}

fn form(task: Value) -> Value {
    json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} }, "task": task })
}

// spec: K001 K003 K004 K005 K027 K028 K029 K030 K031 K032 K033 K034 K041 K042 K043 K058 K069 K070 K071
#[test]
fn a_task_from_its_creation_to_its_result() {
    let mut desk = Desk::new();
    desk.now = 1_500;
    let created = desk.ask("sampling/createMessage", sampling(json!({ "ttl": 30_000 })))["result"].take();
    let token = desk.begun[0];
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    let task = json!({
        "taskId": "01".repeat(16), "status": "working", "createdAt": "2026-07-28T09:30:01.500Z",
        "lastUpdatedAt": "2026-07-28T09:30:01.500Z", "ttl": 30_000, "pollInterval": 200,
    });
    assert_eq!(created, json!({ "task": task }));
    // `taskId` decides, and no other name of a task in the request.
    let other = json!({ RELATED: { "taskId": "other" } });
    assert_eq!(desk.ask("tasks/get", json!({ "taskId": id, "_meta": other }))["result"], task);
    let listed = desk.ask("tasks/list", json!({ "_meta": other }))["result"].take();
    assert_eq!(listed, json!({ "tasks": [task] }));

    // The result is not there yet: two requests wait for it, and one is cancelled.
    let first = desk.wait_for(&id);
    let second = desk.wait_for(&id);
    let third = desk.wait_for(&id);
    desk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": third } }));
    assert_eq!(desk.flush(), [Value::Null; 0]);
    desk.now = 2_000;
    desk.receiver.tasks.set_message(token, 2_000, "half of it").unwrap();
    let got = desk.get(&id);
    assert_eq!(
        (&got["statusMessage"], &got["lastUpdatedAt"]),
        (&json!("half of it"), &json!("2026-07-28T09:30:02.000Z"))
    );

    let meta = Raw::constant(r#"{"com.example/a":1,"io.modelcontextprotocol/related-task":7}"#);
    let said = CreateMessageResult::new("model", ContentBlock::text("done")).meta(meta);
    let told = desk.complete(token, &ClientResult::sampled(said));
    assert_eq!(told.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), [first, second]);
    let result = json!({
        "role": "assistant", "content": { "type": "text", "text": "done" }, "model": "model", "stopReason": "endTurn",
        "_meta": { "com.example/a": 1, RELATED: { "taskId": id } },
    });
    assert!(told.iter().all(|line| line["result"] == result), "{told:?}");
    // It stays until the time that the server asked for is over. `taskId` decides here too.
    assert_eq!(desk.get(&id)["status"], "completed");
    assert_eq!(desk.ask("tasks/result", json!({ "taskId": id, "_meta": other }))["result"], result);
    desk.now = 31_500;
    assert_eq!(desk.code("tasks/get", json!({ "taskId": id })), code::INVALID_PARAMS);
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INVALID_PARAMS);

    // The task of a request that itself belongs to a task of the server.
    let mut params = form(json!({}));
    params["_meta"] = other.clone();
    let created = desk.ask("elicitation/create", params)["result"].take();
    assert_eq!(created["_meta"], other);
    let id = created["task"]["taskId"].clone();
    desk.complete(desk.begun[1], &ClientResult::accept(Raw::constant(r#"{"name":"x"}"#)));
    let result = desk.ask("tasks/result", json!({ "taskId": id }))["result"].take();
    let meta = json!({ RELATED: { "taskId": id } });
    assert_eq!(result, json!({ "action": "accept", "content": { "name": "x" }, "_meta": meta }));
}

// spec: K021 K022 K023 K025 K026 K032 K034 K039 K040
#[test]
fn failures() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let waiting = desk.wait_for(&id);
    let error = json!({ "code": -31_000, "message": "rate \"limit\"", "data": { "seconds": 9 } });
    let data = Raw::constant(r#"{"seconds":9}"#);
    desk.receiver.fail(token, 0, &RpcError::new(-31_000, "rate \"limit\"").with_data(data)).unwrap();
    let told = desk.flush();
    assert_eq!((told.len(), &told[0]["id"], &told[0]["error"]), (1, &waiting, &error));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["statusMessage"]), (&json!("failed"), &error["message"]));
    assert_eq!(desk.ask("tasks/result", json!({ "taskId": id }))["error"], error);

    // A result that is too large for the memory.
    let (token, id) = desk.begin();
    desk.complete(token, &sampled(&"x".repeat(70_000)));
    assert_eq!(desk.get(&id)["status"], "failed");
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INTERNAL);

    for params in [json!({ "taskId": "unknown" }), json!({ "taskId": 7 }), json!({})] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(desk.code(method, params.clone()), code::INVALID_PARAMS, "{method} {params}");
        }
    }
    let error = desk.ask("tasks/get", json!({ "taskId": "unknown" }))["error"].take();
    assert!(error["message"].as_str().unwrap().contains("task"), "{error}");
    for cursor in [json!("x"), json!(7), json!("40"), json!("-1")] {
        assert_eq!(desk.code("tasks/list", json!({ "cursor": cursor })), code::INVALID_PARAMS);
    }
    let tasks = desk.receiver.tasks.count();
    for task in [json!(7), json!({ "ttl": "long" }), json!({ "ttl": -1 }), json!({ "ttl": 1.5 })] {
        assert_eq!(desk.code("sampling/createMessage", sampling(task)), code::INVALID_PARAMS);
    }
    // The program's random bytes come again.
    desk.random = 0;
    assert_eq!(desk.code("sampling/createMessage", sampling(json!({}))), code::INTERNAL);
    assert_eq!(desk.receiver.tasks.count(), tasks);
}

// spec: K004 K021 K024 K035 K036 K037 K060
#[test]
fn cancelled_is_the_end() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let waiting = desk.wait_for(&id);
    let (_, other) = desk.begin();
    let other = json!({ RELATED: { "taskId": other } });
    let told = desk.send("tasks/cancel", json!({ "taskId": id, "_meta": other }));
    assert_eq!((told.len(), &told[0]["id"], &told[1]["id"]), (2, &json!(desk.last_id), &waiting));
    assert_eq!((&told[0]["result"]["taskId"], &told[0]["result"]["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(told[1]["error"]["code"], code::INVALID_PARAMS);
    let tasks = &mut desk.receiver.tasks;
    assert_eq!((tasks.next_cancelled(), tasks.next_cancelled()), (Some(token), None));
    // A task that has ended does not change, and is not cancelled again.
    assert_eq!(desk.receiver.complete(token, 9, &sampled("late")), Err(TaskError::Over));
    assert_eq!(desk.receiver.fail(token, 9, &RpcError::refused()), Err(TaskError::Over));
    assert_eq!(desk.get(&id)["status"], "cancelled");
    assert_eq!(desk.code("tasks/cancel", json!({ "taskId": id })), code::INVALID_PARAMS);
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INVALID_PARAMS);
    let (token, id) = desk.begin();
    desk.complete(token, &sampled("done"));
    assert_eq!(desk.code("tasks/cancel", json!({ "taskId": id })), code::INVALID_PARAMS);
    assert_eq!(desk.get(&id)["status"], "completed");
    assert_eq!(desk.receiver.complete(token, 9, &sampled("again")), Err(TaskError::Over));
}

// spec: K044 K052 K053 K055
#[test]
fn lists_in_pages() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
    let begun: Vec<_> = (0..20).map(|_| desk.begin().1).collect();
    let first = desk.ask("tasks/list", json!({}))["result"].take();
    let second = desk.ask("tasks/list", json!({ "cursor": first["nextCursor"] }))["result"].take();
    assert_eq!(second.get("nextCursor"), None);
    let listed = [&first, &second].map(|page| page["tasks"].as_array().unwrap().clone()).concat();
    assert_eq!((listed.len(), &listed[0]), (20, &desk.get(&begun[0])));
    assert!(begun.iter().all(|id| listed.iter().any(|task| task["taskId"] == id.as_str())));
    // A full table refuses more, until the time of the tasks is over.
    for _ in 0..20 {
        desk.begin();
    }
    let error = desk.ask("elicitation/create", form(json!({})))["error"].take();
    assert_eq!((&error["code"], &error["message"]), (&json!(code::INTERNAL), &json!("Overloaded: too many tasks")));
    assert_eq!(desk.receiver.tasks.count(), 40);
    desk.now = 60_000;
    desk.begin();
    assert_eq!(desk.receiver.tasks.count(), 1);
}

// spec: K008 K063
#[test]
fn what_was_declared() {
    let tasks = |requests: Value| json!({ "list": {}, "cancel": {}, "requests": requests });
    let (create_message, create) = (json!({ "createMessage": {} }), json!({ "create": {} }));
    let both = tasks(json!({ "sampling": create_message, "elicitation": create }));
    for (info, revision, declared) in [
        (&BOTH, Revision::V2025_11_25, Some(both)),
        (&SAMPLING, Revision::V2025_11_25, Some(tasks(json!({ "sampling": create_message })))),
        (&NONE, Revision::V2025_11_25, None),
        (&BOTH, Revision::V2025_06_18, None),
        (&BOTH, Revision::V2024_11_05, None),
    ] {
        let mut desk = Desk::with(info, revision);
        assert_eq!(desk.capabilities.get("tasks"), declared.as_ref(), "{revision}");
        let has = |of: &str| declared.as_ref().is_some_and(|tasks| tasks["requests"].get(of).is_some());
        // A request without `task` is answered at once, and so is each one that was not declared.
        let mut params = sampling(json!({}));
        let created = desk.ask("sampling/createMessage", params.clone())["result"].take();
        assert_eq!(created.get("task").is_some(), has("sampling"), "{created}");
        params.as_object_mut().unwrap().remove("task");
        assert_eq!(desk.ask("sampling/createMessage", params)["result"]["content"]["text"], "at once");
        if revision != Revision::V2024_11_05 {
            let created = desk.ask("elicitation/create", form(json!({})))["result"].take();
            assert_eq!(created.get("task").is_some(), has("elicitation"), "{created}");
            assert_eq!(created.get("action").is_some(), !has("elicitation"), "{created}");
        }
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let expected = if declared.is_some() { code::INVALID_PARAMS } else { code::METHOD_NOT_FOUND };
            assert_eq!(desk.code(method, json!({ "taskId": "x" })), expected, "{method} in {revision}");
        }
        let listed = desk.ask("tasks/list", json!({}));
        assert_eq!(listed.get("result").is_some(), declared.is_some(), "{listed}");
        assert_eq!(desk.code("tasks/update", json!({ "taskId": "x" })), code::METHOD_NOT_FOUND);
    }
}

#[test]
fn times_to_live() {
    let mut desk = Desk::new();
    // The program has the last word.
    for (asked, given) in [(json!({}), 60_000), (json!({ "ttl": 90_000 }), 60_000), (json!({ "ttl": 10 }), 10)] {
        assert_eq!(desk.ask("sampling/createMessage", sampling(asked))["result"]["task"]["ttl"], given);
    }
    let (token, id) = desk.begin();
    let waiting = desk.wait_for(&id);
    desk.now = 59_999;
    assert_eq!((desk.flush(), desk.receiver.tasks.status(token)), (vec![], Some(TaskStatus::Working)));
    desk.now = 60_000;
    let told = desk.flush();
    assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&waiting, &json!(code::INVALID_PARAMS)));
    assert_eq!(desk.receiver.tasks.status(token), None);
    assert_eq!(desk.receiver.complete(token, 60_000, &sampled("late")), Err(TaskError::Over));
    assert_eq!(desk.receiver.tasks.count(), 0);
}

#[test]
fn requests_that_wait() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let (other, other_id) = desk.begin();
    let of_other = desk.wait_for(&other_id);
    let mut waiting: Vec<_> = (0..4).map(|_| desk.wait_for(&id)).collect();
    // The fifth takes the place of the oldest.
    let told = desk.send("tasks/result", json!({ "taskId": id }));
    assert_eq!((told.len(), &told[0]["id"], &told[0]["error"]["code"]), (1, &waiting[0], &json!(code::INTERNAL)));
    waiting.remove(0);
    waiting.push(json!(desk.last_id));
    let told = desk.complete(token, &sampled("done"));
    assert_eq!(told.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), waiting);
    let told = desk.complete(other, &sampled("done"));
    assert_eq!((told.len(), &told[0]["id"]), (1, &of_other));

    // After a new connection the tasks are there, and what waited on the old one is gone.
    let (token, id) = desk.begin();
    desk.wait_for(&id);
    desk.client.end_of_input();
    desk.open(Revision::V2025_11_25);
    assert_eq!(desk.get(&id)["status"], "working");
    assert_eq!(desk.complete(token, &sampled("done")), [Value::Null; 0]);
    assert_eq!(desk.ask("tasks/result", json!({ "taskId": id }))["result"]["content"]["text"], "done");
}

/// A client has no questions to the server.
#[test]
fn a_task_of_a_client_asks_nothing() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let question = InputRequest::elicit("q", "Sure?", Raw::constant(r#"{"type":"object","properties":{}}"#));
    assert_eq!(desk.receiver.tasks.ask(token, 0, &[question]), Err(TaskError::CannotAsk));
    assert_eq!(desk.get(&id)["status"], "working");
}

/// A server polls as long as a task runs: such requests do not count as questions without end.
#[test]
fn polls_do_not_count() {
    let mut desk = Desk::new();
    let mut out = LineSink::new(Vec::new());
    desk.client.send(&mcp_sansio::client::Request::call("work"), &mut out).unwrap();
    let (_, id) = desk.begin();
    for _ in 0..1_000 {
        assert_eq!(desk.send("tasks/get", json!({ "taskId": id }))[0]["result"]["status"], "working");
    }
    let mut refused = 0;
    for _ in 0..1_000 {
        refused += usize::from(desk.send("elicitation/create", form(Value::Null))[0].get("error").is_some());
    }
    assert!(refused > 0);
}

/// The program has completed the task, and not flushed yet: requests that wait for it keep no place.
#[test]
fn a_task_that_has_ended_keeps_no_place_for_those_that_wait() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let waiting: Vec<_> = (0..4).map(|_| desk.wait_for(&id)).collect();
    desk.receiver.complete(token, desk.now, &sampled("done")).unwrap();
    let answers = desk.send("tasks/result", json!({ "taskId": id }));
    let last = json!(desk.last_id);
    let ids: Vec<_> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, waiting.iter().chain([&last]).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["result"]["content"]["text"] == "done"), "{answers:?}");
}

/// A full sink loses nothing: no task begins, a task that ended has its result, and a request that waits keeps its place.
#[test]
fn full_sinks() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let waiting = desk.wait_for(&id);
    desk.receiver.complete(token, 0, &sampled("done")).unwrap();
    let mut bytes = [0; 300];
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    while whole(&mut out, MessageHead::Notification, |out| out.put(b"{}")).is_ok() {}
    let mut link = ClientHandle { client: &mut desk.client, out: &mut out };
    assert_eq!(desk.receiver.flush(0, &mut link), Err(SendError::FullNow));
    let line = json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": sampling(json!({})) });
    let line = line.to_string();
    let Ok(Some(ClientEvent::Asked(asked))) = link.client.receive(line.as_bytes(), link.out) else { panic!() };
    let question = asked.questions().next().unwrap();
    let options = TaskOptions::new([99; 16]);
    assert_eq!(desk.receiver.take(&question, 0, &options, &mut link), Err(SendError::FullNow));
    assert_eq!(desk.receiver.tasks.count(), 1);
    let filled = out.pending().len();
    out.sent(filled);
    let mut link = ClientHandle { client: &mut desk.client, out: &mut out };
    assert_eq!(desk.receiver.flush(0, &mut link), Ok(()));
    let told: Value = serde_json::from_slice(out.pending()).unwrap();
    assert_eq!((&told["id"], &told["result"]["content"]["text"]), (&waiting, &json!("done")));
    let filled = out.pending().len();
    out.sent(filled);
    let mut link = ClientHandle { client: &mut desk.client, out: &mut out };
    assert!(matches!(desk.receiver.take(&question, 0, &options, &mut link), Ok(Received::Task(_))));

    // A result that is larger than the whole sink.
    let (token, id) = desk.begin();
    let waiting = desk.wait_for(&id);
    desk.receiver.complete(token, 0, &sampled(&"x".repeat(300))).unwrap();
    let mut out = LineSink::new(SliceStorage::new(&mut bytes));
    let mut link = ClientHandle { client: &mut desk.client, out: &mut out };
    assert_eq!(desk.receiver.flush(0, &mut link), Ok(()));
    let told: Value = serde_json::from_slice(out.pending()).unwrap();
    assert_eq!((&told["id"], &told["error"]["code"]), (&waiting, &json!(code::INTERNAL)));
}
