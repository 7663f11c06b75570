//! Tasks of 2025-11-25 from outside: each line of a server, from the handlers that also serve 2026-07-28.
#![cfg(feature = "tasks")]

use mcp_sansio::json::Raw;
use mcp_sansio::memory::Store;
use mcp_sansio::protocol::code;
use mcp_sansio::server::{MessageLimits, RespondError, RpcError, Scope, Server};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, MessageSource, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{
    HasTasks, ID, TaskError, TaskOptions, TaskSlot, TaskSupport, TaskToken, Tasks, begin, complete, extension,
    task_support, wants_task,
};
use serde_json::{Value, json};

struct World {
    tasks: Tasks<'static>,
    begun: Vec<TaskToken>,
    random: u8,
}

impl HasTasks for World {
    const LEGACY: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

fn work(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.random += 1;
    let options = TaskOptions::new([world.random; 16]).ttl(60_000).poll_interval(200);
    let (token, done) = begin(world, call, &options)?;
    world.begun.push(token);
    Ok(done)
}

fn maybe(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if wants_task(world, call) { work(world, call) } else { call.text("at once") }
}

static TOOLS: [Tool<World>; 3] = [
    task_support(Tool::new("work", "Works for a while", work), TaskSupport::Required),
    task_support(Tool::new("maybe", "Works for a while, or at once", maybe), TaskSupport::Optional),
    Tool::new("never", "Answers at once", |_, call| call.text("at once")),
];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);

const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A server, its state and its clients.
struct Desk {
    server: Server<'static>,
    world: World,
    now: u64,
    user: Option<&'static str>,
    last_id: u64,
}

impl Desk {
    /// A server whose client has sent `initialize` in a revision.
    fn opened(revision: &str) -> Self {
        let limits = MessageLimits { ask_timeout: 5_000, ..MessageLimits::default() };
        Desk::with(revision, Server::growing(limits))
    }

    fn with(revision: &str, server: Server<'static>) -> Self {
        let slots: Vec<_> = (0..40).map(|_| TaskSlot::FREE).collect();
        let tasks = Tasks::new(slots.leak(), vec![0; 65_536].leak()).epoch(1_785_231_000_000);
        let world = World { tasks, begun: Vec::new(), random: 0 };
        let mut desk = Desk { server, world, now: 0, user: None, last_id: 100 };
        let capabilities = json!({ "elicitation": {}, "sampling": {} });
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client });
        let opened = desk.ask("initialize", params);
        assert_eq!(opened["result"]["protocolVersion"], revision);
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        let has_tasks = revision == "2025-11-25";
        assert_eq!(opened["result"]["capabilities"].get("tasks"), has_tasks.then_some(&tasks));
        desk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        desk
    }

    fn new() -> Self {
        Desk::opened("2025-11-25")
    }

    fn say(&mut self, line: &Value) -> Vec<Value> {
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut out = LineSink::new(Vec::new());
        let line = line.to_string();
        let done = SERVICE.dispatch_from(&source, &mut self.world, line.as_bytes(), &mut self.server, &mut out);
        let _ = done.unwrap();
        let mut lines = read(&out);
        lines.extend(self.turn());
        lines
    }

    /// Resumes what goes on. Returns the lines that it writes.
    fn turn(&mut self) -> Vec<Value> {
        let mut out = LineSink::new(Vec::new());
        loop {
            while let Some(token) = self.world.tasks.next_resumable() {
                assert_ne!(self.server.wake(token), Err(RespondError::WrongKind));
            }
            let Some(token) = self.server.ready() else { return read(&out) };
            let _ = SERVICE.resume(&mut self.world, token, &mut self.server, &mut out).unwrap();
        }
    }

    /// Sends a request. Returns the lines that come back at once.
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

    /// Begins a task. Returns its token and id.
    fn begin(&mut self) -> (TaskToken, String) {
        let created = self.ask("tools/call", json!({ "name": "work", "task": {} }));
        let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        (*self.world.begun.last().unwrap(), id)
    }

    fn get(&mut self, id: &str) -> Value {
        self.ask("tasks/get", json!({ "taskId": id }))["result"].take()
    }

    fn code(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params)["error"]["code"].take()
    }

    /// Ends a task. Returns the lines that this causes.
    fn complete(
        &mut self,
        token: TaskToken,
        answer: impl FnOnce(&mut World, &mut Call<'_>) -> HandlerResult,
    ) -> Vec<Value> {
        complete(&SERVICE, &mut self.world, token, self.now, answer).unwrap();
        self.turn()
    }

    fn elicit(&mut self, token: TaskToken, keys: &[&str]) -> Vec<Value> {
        let questions: Vec<_> = keys.iter().map(|key| InputRequest::elicit(key, "Sure?", SCHEMA)).collect();
        self.world.tasks.ask(token, self.now, &questions).unwrap();
        self.turn()
    }

    fn respond(&mut self, question: &Value, member: &str, value: Value) -> Vec<Value> {
        self.say(&json!({ "jsonrpc": "2.0", "id": question["id"], member: value }))
    }
}

fn read(out: &LineSink<Vec<u8>>) -> Vec<Value> {
    std::str::from_utf8(out.pending()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// spec: K003 K004 K005 K028 K029 K030 K031 K032 K033 K034 K041 K042 K043 K058 K069 K070 K071
#[test]
fn a_task_from_its_creation_to_its_result() {
    let mut desk = Desk::new();
    desk.now = 1_500;
    let created = desk.ask("tools/call", json!({ "name": "work", "task": { "ttl": 30_000 } }))["result"].take();
    let token = desk.world.begun[0];
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    let task = json!({
        "taskId": "01".repeat(16), "status": "working", "createdAt": "2026-07-28T09:30:01.500Z",
        "lastUpdatedAt": "2026-07-28T09:30:01.500Z", "ttl": 30_000, "pollInterval": 200,
    });
    assert_eq!(created, json!({ "task": task }));
    // `taskId` decides, and no other name of a task in the request.
    let other = json!({ RELATED: { "taskId": "other" } });
    assert_eq!(desk.ask("tasks/get", json!({ "taskId": id, "_meta": other }))["result"], task);

    // The result is not there yet: two requests wait for it, and one is cancelled.
    assert_eq!(desk.send("tasks/result", json!({ "taskId": id, "_meta": other })), [json!(null); 0]);
    let first = desk.last_id;
    assert_eq!(desk.send("tasks/result", json!({ "taskId": id })), [json!(null); 0]);
    let second = desk.last_id;
    assert_eq!(desk.send("tasks/result", json!({ "taskId": id })), [json!(null); 0]);
    let params = json!({ "requestId": desk.last_id });
    desk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    desk.now = 2_000;
    desk.world.tasks.set_message(token, 2_000, "half of it").unwrap();
    let got = desk.get(&id);
    assert_eq!(
        (&got["statusMessage"], &got["lastUpdatedAt"]),
        (&json!("half of it"), &json!("2026-07-28T09:30:02.000Z"))
    );

    let told = desk.complete(token, |_, call| {
        call.set_meta(Raw::constant(r#"{"com.example/a":1,"io.modelcontextprotocol/related-task":7}"#));
        call.text("done")
    });
    assert_eq!(told.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), [json!(first), json!(second)]);
    let result = json!({
        "content": [{ "type": "text", "text": "done" }], "isError": false,
        "_meta": { "com.example/a": 1, RELATED: { "taskId": id } },
    });
    assert!(told.iter().all(|line| line["result"] == result), "{told:?}");
    // It stays until the time that the client asked for is over.
    assert_eq!(desk.get(&id)["status"], "completed");
    assert_eq!(desk.ask("tasks/result", json!({ "taskId": id, "_meta": other }))["result"], result);
    assert_eq!(desk.server.in_flight(), 0);
    desk.now = 31_500;
    assert_eq!(desk.code("tasks/get", json!({ "taskId": id })), code::INVALID_PARAMS);
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INVALID_PARAMS);
}

// spec: K008 K066 K068
#[test]
fn calls_with_and_without_task() {
    let mut desk = Desk::new();
    let listed = desk.ask("tools/list", json!({}));
    let support = |at: usize| &listed["result"]["tools"][at]["execution"];
    assert_eq!(
        (support(0), support(1)),
        (&json!({ "taskSupport": "required" }), &json!({ "taskSupport": "optional" }))
    );
    assert_eq!(desk.code("tools/call", json!({ "name": "work" })), code::METHOD_NOT_FOUND);
    let at_once = desk.ask("tools/call", json!({ "name": "maybe" }));
    assert_eq!(at_once["result"]["content"][0]["text"], "at once");
    for task in [json!(7), json!({ "ttl": "long" }), json!({ "ttl": -1 }), json!({ "ttl": 1.5 })] {
        assert_eq!(desk.code("tools/call", json!({ "name": "maybe", "task": task })), code::INVALID_PARAMS);
    }
    // A tool without support is called without `task`.
    assert_eq!(listed["result"]["tools"][2].get("execution"), None);
    assert_eq!(desk.code("tools/call", json!({ "name": "never", "task": {} })), code::METHOD_NOT_FOUND);
    assert_eq!(desk.ask("tools/call", json!({ "name": "never" }))["result"]["isError"], false);
    assert_eq!(desk.world.tasks.count(), 0);
    // The program has the last word on the time to live.
    for (asked, given) in [(json!({}), 60_000), (json!({ "ttl": 90_000 }), 60_000), (json!({ "ttl": 10 }), 10)] {
        let created = desk.ask("tools/call", json!({ "name": "maybe", "task": asked }));
        assert_eq!(created["result"]["task"]["ttl"], given);
    }
    // A server without tasks of this revision ignores `task`: so does each one in an older revision.
    let mut desk = Desk::opened("2025-06-18");
    let at_once = desk.ask("tools/call", json!({ "name": "maybe", "task": {} }));
    assert_eq!(at_once["result"]["content"][0]["text"], "at once");
    assert_eq!(desk.ask("tools/call", json!({ "name": "work", "task": {} }))["result"]["isError"], true);
    assert_eq!(desk.ask("tools/call", json!({ "name": "never", "task": {} }))["result"]["isError"], false);
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"] {
        assert_eq!(desk.code(method, json!({ "taskId": "x" })), code::METHOD_NOT_FOUND);
    }
}

// spec: K021 K022 K025 K026 K032 K034 K039 K040
#[test]
fn failures() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.error("the disk is full"));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["statusMessage"]), (&json!("failed"), &json!("the disk is full")));
    let result = desk.ask("tasks/result", json!({ "taskId": id }))["result"].take();
    assert_eq!((&result["isError"], &result["_meta"][RELATED]["taskId"]), (&json!(true), &json!(id)));

    let (token, id) = desk.begin();
    desk.send("tasks/result", json!({ "taskId": id }));
    let error = json!({ "code": -31_000, "message": "rate \"limit\"", "data": { "seconds": 9 } });
    let data = Raw::constant(r#"{"seconds":9}"#);
    let told = desk.complete(token, |_, _| Err(RpcError::new(-31_000, "rate \"limit\"").with_data(data).into()));
    assert_eq!((told.len(), &told[0]["error"]), (1, &error));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["statusMessage"]), (&json!("failed"), &error["message"]));

    // A result that is too large for the memory.
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.text("x".repeat(70_000).as_str()));
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INTERNAL);

    for params in [json!({ "taskId": "unknown" }), json!({ "taskId": 7 }), json!({})] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let error = desk.ask(method, params.clone())["error"].take();
            assert_eq!(error["code"], code::INVALID_PARAMS, "{method} {params}");
            assert!(error["message"].as_str().unwrap().contains("task"), "{error}");
        }
    }
    assert_eq!(desk.code("tasks/update", json!({ "taskId": id, "inputResponses": {} })), code::METHOD_NOT_FOUND);
}

// spec: K004 K021 K024 K035 K036 K037 K060
#[test]
fn cancelled_is_the_end() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    assert_eq!(desk.send("tasks/result", json!({ "taskId": id })), [json!(null); 0]);
    let waiting = desk.last_id;
    let (_, other) = desk.begin();
    let other = json!({ RELATED: { "taskId": other } });
    let told = desk.send("tasks/cancel", json!({ "taskId": id, "_meta": other }));
    assert_eq!((told.len(), &told[0]["result"]["taskId"]), (2, &json!(id)));
    assert_eq!((&told[0]["id"], &told[0]["result"]["status"]), (&json!(desk.last_id), &json!("cancelled")));
    assert_eq!((&told[1]["id"], &told[1]["error"]["code"]), (&json!(waiting), &json!(code::INVALID_PARAMS)));
    assert_eq!((desk.world.tasks.next_cancelled(), desk.world.tasks.next_cancelled()), (Some(token), None));
    assert_eq!(desk.get(&id)["status"], "cancelled");
    // A task that has ended does not change, and is not cancelled again.
    assert_eq!(complete(&SERVICE, &mut desk.world, token, 9, |_, _| panic!()), Err(TaskError::Over));
    assert_eq!(desk.get(&id)["status"], "cancelled");
    assert_eq!(desk.code("tasks/cancel", json!({ "taskId": id })), code::INVALID_PARAMS);
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.text("done"));
    assert_eq!(desk.code("tasks/cancel", json!({ "taskId": id })), code::INVALID_PARAMS);
    assert_eq!((desk.get(&id)["status"].take(), desk.world.tasks.next_cancelled()), (json!("completed"), None));
}

// spec: K021 K023 K044 K052 K053 K055
#[test]
fn lists_in_pages() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
    let mut begun: Vec<_> = (0..20).map(|_| desk.begin().1).collect();
    let first = desk.ask("tasks/list", json!({}))["result"].take();
    let cursor = first["nextCursor"].clone();
    let second = desk.ask("tasks/list", json!({ "cursor": cursor }))["result"].take();
    assert_eq!(second.get("nextCursor"), None);
    let listed = [&first, &second].map(|page| page["tasks"].as_array().unwrap().clone()).concat();
    assert_eq!(listed[0], desk.get(&begun[0]));
    let mut ids: Vec<_> = listed.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    begun.sort();
    assert_eq!(ids, begun);
    for cursor in [json!("x"), json!("40"), json!(1), json!("-1"), json!("99999999999999999999")] {
        assert_eq!(desk.code("tasks/list", json!({ "cursor": cursor })), code::INVALID_PARAMS);
    }
    // Tasks whose time is over are not there.
    desk.now = 60_000;
    assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
}

/// Two connections of one program share the table: without users each sees its own tasks, and a request that goes on names its
/// connection.
#[test]
fn a_task_of_another_connection_does_not_exist() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    desk.send("tasks/result", json!({ "taskId": id }));
    let first = std::mem::replace(&mut desk.server, Server::growing(MessageLimits::default()));
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "b", "version": "1" } });
    desk.ask("initialize", params);
    assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(desk.code(method, json!({ "taskId": id })), code::INVALID_PARAMS);
    }
    complete(&SERVICE, &mut desk.world, token, desk.now, |_, call| call.text("done")).unwrap();
    let waits = desk.world.tasks.next_resumable().unwrap();
    assert_eq!(desk.server.wake(waits), Err(RespondError::Stale));
    desk.server = first;
    desk.server.wake(waits).unwrap();
    assert_eq!(desk.turn()[0]["result"]["content"][0]["text"], "done");
}

/// Two tables: the token of a task is stale in the other one.
#[test]
fn a_token_of_another_table_is_stale() {
    let [mut here, mut there] = [Desk::new(), Desk::new()];
    there.world.random = 100;
    let ((token, id), (other, _)) = (here.begin(), there.begin());
    assert_ne!(token, other);
    let done = complete(&SERVICE, &mut here.world, other, 0, |_, _| panic!("it must not run"));
    assert_eq!(done, Err(TaskError::Over));
    assert_eq!(here.world.tasks.set_message(other, 0, "no"), Err(TaskError::Over));
    here.world.tasks.forget(other);
    assert_eq!(here.get(&id)["status"], "working");
    here.complete(token, |_, call| call.text("done"));
    assert_eq!(here.get(&id)["status"], "completed");
}

// spec: K045 K049 K050
#[test]
fn a_task_of_another_user_does_not_exist() {
    let mut desk = Desk::new();
    desk.user = Some("anna");
    let (token, id) = desk.begin();
    for other in [Some("bert"), None] {
        desk.user = other;
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let unknown = desk.ask(method, json!({ "taskId": "unknown" }))["error"].take();
            assert_eq!(desk.ask(method, json!({ "taskId": id }))["error"], unknown);
        }
        assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
    }
    desk.user = Some("anna");
    assert_eq!(desk.ask("tasks/list", json!({}))["result"]["tasks"].as_array().unwrap().len(), 1);
    // A request that waits belongs to its user also when it goes on.
    desk.send("tasks/result", json!({ "taskId": id }));
    let told = desk.complete(token, |_, call| call.text("done"));
    assert_eq!(told[0]["result"]["content"][0]["text"], "done");

    // Without users, tasks belong to their session.
    desk.user = None;
    let (_, id) = desk.begin();
    assert_eq!(desk.ask("tasks/list", json!({}))["result"]["tasks"].as_array().unwrap().len(), 1);
    let mut peer = desk.server.peer;
    let mut server = std::mem::replace(&mut desk.server, Server::growing(MessageLimits::default()));
    server.with_peer(&mut peer, Scope(9), |server| {
        std::mem::swap(server, &mut desk.server);
        assert_eq!(desk.ask("tasks/list", json!({}))["result"], json!({ "tasks": [] }));
        assert_eq!(desk.code("tasks/get", json!({ "taskId": id })), code::INVALID_PARAMS);
        std::mem::swap(server, &mut desk.server);
    });
    desk.server = server;
    assert_eq!(desk.get(&id)["taskId"], id);
}

#[test]
fn eras_do_not_see_each_other() {
    let mut desk = Desk::new();
    let (_, id) = desk.begin();
    let mut modern = |method: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} } },
        });
        let server = Server::growing(MessageLimits::default());
        let legacy = std::mem::replace(&mut desk.server, server);
        let answer = desk.ask(method, params);
        desk.server = legacy;
        answer
    };
    assert_eq!(modern("tasks/get", json!({ "taskId": id }))["error"]["code"], code::INVALID_PARAMS);
    let discovered = modern("server/discover", json!({}))["result"]["capabilities"].take();
    assert_eq!((discovered.get("tasks"), &discovered["extensions"]), (None, &json!({ ID: {} })));
    let tool = modern("tools/list", json!({}))["result"]["tools"][0].take();
    assert_eq!(tool.get("execution"), None);
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(modern(method, json!({ "taskId": id }))["error"]["code"], code::METHOD_NOT_FOUND);
    }
    let created = modern("tools/call", json!({ "name": "maybe", "task": { "ttl": 1 } }))["result"].take();
    assert_eq!((&created["resultType"], &created["ttlMs"]), (&json!("task"), &json!(60_000)));
    assert_eq!(desk.code("tasks/get", json!({ "taskId": created["taskId"] })), code::INVALID_PARAMS);
    assert_eq!(desk.ask("tasks/list", json!({}))["result"]["tasks"].as_array().unwrap().len(), 1);
}

// spec: K001 K002 K017 K018 K020 K027
#[test]
fn questions_while_it_runs() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    // No request waits: the client sees the status, and asks for the questions.
    assert_eq!(desk.elicit(token, &["sure", "why"]), [json!(null); 0]);
    assert_eq!(desk.get(&id)["status"], "input_required");
    let asked = desk.send("tasks/result", json!({ "taskId": id }));
    let waiting = desk.last_id;
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|question| question["method"] == "elicitation/create"));
    assert_eq!(asked[0]["params"]["_meta"], json!({ RELATED: { "taskId": id } }));
    assert_eq!((&asked[0]["params"]["message"], &asked[0]["params"]["mode"]), (&json!("Sure?"), &json!("form")));

    let accepted = json!({ "action": "accept", "content": { "sure": true } });
    assert_eq!(desk.respond(&asked[0], "result", accepted), [json!(null); 0]);
    assert_eq!(desk.get(&id)["status"], "input_required");
    let refusal = json!({ "code": -1, "message": "the user refused" });
    assert_eq!(desk.respond(&asked[1], "error", refusal), [json!(null); 0]);
    assert_eq!(desk.get(&id)["status"], "working");
    assert_eq!((desk.world.tasks.next_answered(), desk.world.tasks.next_answered()), (Some(token), None));
    let sure = desk.world.tasks.answer(token, "sure").unwrap();
    assert_eq!((sure.accepted(), sure.value("sure").and_then(|sure| sure.bool())), (true, Some(true)));
    assert!(desk.world.tasks.answer(token, "why").unwrap().declined());

    // The request waits on, and asks again; a question that comes meanwhile is asked after it.
    let asked = desk.elicit(token, &["again"]);
    assert_eq!(asked.len(), 1);
    assert_eq!(desk.elicit(token, &["more"]), [json!(null); 0]);
    let asked = desk.respond(&asked[0], "result", json!({ "action": "decline" }));
    assert_eq!((asked.len(), &asked[0]["method"]), (1, &json!("elicitation/create")));
    assert_eq!(desk.world.tasks.next_answered(), None);
    // The task ends with an open question: the question is taken back, and the request has its result.
    let told = desk.complete(token, |_, call| call.text("done"));
    assert_eq!((told.len(), &told[0]["method"]), (2, &json!("notifications/cancelled")));
    assert_eq!(told[0]["params"]["requestId"], asked[0]["id"]);
    assert_eq!((&told[1]["id"], &told[1]["result"]["content"][0]["text"]), (&json!(waiting), &json!("done")));
    // An answer that comes late harms nothing.
    assert_eq!(desk.respond(&asked[0], "result", json!({ "action": "accept" })), [json!(null); 0]);
    assert_eq!((desk.get(&id)["status"].take(), desk.server.in_flight()), (json!("completed"), 0));
}

#[test]
fn questions_without_an_answer() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    desk.elicit(token, &["sure"]);
    let first = desk.send("tasks/result", json!({ "taskId": id }));
    let first_id = desk.last_id;
    // The client sends a new request, as after a lost connection: the question moves to it.
    let told = desk.send("tasks/result", json!({ "taskId": id }));
    let (second_id, second) = (desk.last_id, told[0]["id"].clone());
    assert_eq!((told.len(), &told[0]["method"]), (2, &json!("elicitation/create")));
    assert_eq!(
        (&told[1]["method"], &told[1]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &first[0]["id"])
    );
    assert_eq!(desk.respond(&first[0], "result", json!({ "action": "accept" })), [json!(null); 0]);
    assert_eq!(desk.get(&id)["status"], "input_required");

    // The client does not answer in time: the request fails, the task and its question stay.
    desk.now = 5_000;
    desk.server.expire(5_000);
    let told = desk.turn();
    assert_eq!((told.len(), &told[0]["params"]["requestId"]), (2, &second));
    assert_eq!((&told[1]["id"], &told[1]["error"]["code"]), (&json!(second_id), &json!(code::INTERNAL)));
    assert_eq!(desk.get(&id)["status"], "input_required");
    // With a new question, the request that still waits asks both.
    assert_eq!(desk.elicit(token, &["more"]).len(), 2);
    let asked = desk.send("tasks/result", json!({ "taskId": id }));
    let third_id = desk.last_id;
    let methods: Vec<_> = asked.iter().map(|line| line["method"].as_str().unwrap()).collect();
    let (question, taken_back) = ("elicitation/create", "notifications/cancelled");
    assert_eq!(methods, [question, question, taken_back, taken_back]);
    for question in &asked[..2] {
        desk.respond(question, "result", json!({ "action": "accept" }));
    }
    assert_eq!(desk.world.tasks.next_answered(), Some(token));
    // Both requests that wait get the result.
    let told = desk.complete(token, |_, call| call.text("done"));
    assert_eq!(told.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), [json!(first_id), json!(third_id)]);
}

#[test]
fn limits_of_waiting() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            assert_eq!(desk.send("tasks/result", json!({ "taskId": id })), [json!(null); 0]);
            desk.last_id
        })
        .collect();
    // The fifth request takes the place of the first.
    let told = desk.send("tasks/result", json!({ "taskId": id }));
    assert_eq!(
        (told.len(), &told[0]["id"], &told[0]["error"]["code"]),
        (1, &json!(waiting[0]), &json!(code::INTERNAL))
    );
    // A task that is forgotten does not exist for those that wait, and its slot is free for another one.
    desk.world.tasks.forget(token);
    let told = desk.send("tools/call", json!({ "name": "work", "task": {} }));
    let (other, other_id) = (*desk.world.begun.last().unwrap(), told[0]["result"]["task"]["taskId"].clone());
    let unknown = |line: &Value| line["error"]["code"] == code::INVALID_PARAMS;
    assert_eq!((told.len(), told[1..].iter().all(unknown), desk.server.in_flight()), (5, true, 0), "{told:?}");
    assert!(desk.send("tasks/result", json!({ "taskId": other_id })).is_empty());
    let told = desk.complete(other, |_, call| call.text("other"));
    assert_eq!((told.len(), &told[0]["result"]["content"][0]["text"]), (1, &json!("other")));

    // The time to live ends what waits.
    let (_, id) = desk.begin();
    desk.send("tasks/result", json!({ "taskId": id }));
    desk.world.tasks.expire(60_000);
    let told = desk.turn();
    assert_eq!((told.len(), &told[0]["error"]["code"]), (1, &json!(code::INVALID_PARAMS)));

    // A server without memory for requests that wait says so.
    let mut desk = Desk::with("2025-11-25", Server::growing(MessageLimits::default()).asks(Store::none()));
    let (token, id) = desk.begin();
    assert_eq!(desk.code("tasks/result", json!({ "taskId": id })), code::INTERNAL);
    desk.complete(token, |_, call| call.text("done"));
    assert_eq!(desk.ask("tasks/result", json!({ "taskId": id }))["result"]["isError"], false);
}

/// Random operations: each `tasks/result` that the client does not cancel gets exactly one answer, and each question is
/// answered, or taken back.
#[test]
fn each_request_that_waits_is_answered_once() {
    const KEYS: [&str; 4] = ["a", "b", "c", "d"];
    for seed in 1..=300_u64 {
        let mut state = seed;
        let mut roll = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut desk = Desk::new();
        let mut tasks: Vec<(TaskToken, String)> = Vec::new();
        let (mut waiting, mut questions): (Vec<u64>, Vec<Value>) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for step in 0..60 {
            let lines = match (roll(10), tasks.len()) {
                (0, 0..4) | (_, 0) => {
                    tasks.push(desk.begin());
                    Vec::new()
                }
                (0..=2, most) => {
                    waiting.push(desk.last_id + 1);
                    desk.send("tasks/result", json!({ "taskId": tasks[roll(most)].1 }))
                }
                (3, _) if !waiting.is_empty() => {
                    let id = waiting.swap_remove(roll(waiting.len()));
                    // What it has asked needs no answer any more; the server takes it back, or forgets it.
                    let params = json!({ "requestId": id });
                    desk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                }
                (4 | 5, most) => {
                    let question = [InputRequest::elicit(KEYS[roll(4)], "Sure?", SCHEMA)];
                    let _ = desk.world.tasks.ask(tasks[roll(most)].0, desk.now, &question);
                    desk.turn()
                }
                (6 | 7, _) if !questions.is_empty() => {
                    let question = questions.swap_remove(roll(questions.len()));
                    match roll(3) {
                        0 => desk.respond(&question, "error", json!({ "code": -1, "message": "no" })),
                        _ => desk.respond(&question, "result", json!({ "action": "decline" })),
                    }
                }
                (8, most) if step % 4 == 0 => {
                    let _ =
                        complete(&SERVICE, &mut desk.world, tasks[roll(most)].0, desk.now, |_, call| call.text("done"));
                    desk.turn()
                }
                (8, _) => {
                    desk.now += 2_000;
                    desk.server.expire(desk.now);
                    desk.turn()
                }
                (_, most) if step % 3 == 0 => {
                    desk.world.tasks.forget(tasks.swap_remove(roll(most)).0);
                    desk.turn()
                }
                _ => Vec::new(),
            };
            seen.extend(lines);
            take_in(&mut seen, &mut waiting, &mut questions, seed);
        }
        for (token, _) in tasks {
            let _ = desk.world.tasks.cancel(token, desk.now);
        }
        seen.extend(desk.turn());
        take_in(&mut seen, &mut waiting, &mut questions, seed);
        assert_eq!((waiting, desk.server.in_flight()), (Vec::new(), 0), "seed {seed}");
        assert_eq!(desk.world.tasks.next_resumable(), None);
    }
}

/// Notes the answers and the questions among the lines of a server.
fn take_in(lines: &mut Vec<Value>, waiting: &mut Vec<u64>, questions: &mut Vec<Value>, seed: u64) {
    for line in lines.drain(..) {
        match line["method"].as_str() {
            Some("elicitation/create") => questions.push(line),
            Some(_) => questions.retain(|question| question["id"] != line["params"]["requestId"]),
            None => {
                let at = waiting.iter().position(|id| line["id"] == *id);
                waiting.swap_remove(at.unwrap_or_else(|| panic!("seed {seed}: nothing waits for {line}")));
            }
        }
    }
}
