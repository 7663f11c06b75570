//! Tasks from outside: each line of a server, and the table behind it.
#![cfg(feature = "tasks")]

use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, RpcError, Server, ServerChange};
use mcp_sansio::service::{
    Call, ContentBlock, CreateMessage, Extension, HandlerResult, InputRequest, MessageSource, PromptMessage, Service,
    Tool,
};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{
    HasTasks, ID, TaskError, TaskOptions, TaskSlot, TaskStatus, TaskToken, Tasks, begin, complete, extension,
};
use serde_json::{Value, json};

struct World {
    tasks: Tasks<'static>,
    begun: Vec<TaskToken>,
    random: u8,
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
    world.random += 1;
    let options = TaskOptions::new([world.random; 16]).ttl(60_000).poll_interval(200).message("begun");
    let (token, done) = begin(world, call, &options)?;
    world.begun.push(token);
    Ok(done)
}

static TOOLS: [Tool<World>; 1] = [Tool::new("work", "Works for a while", work)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);

const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

/// A server, its state and its clients.
struct Desk {
    server: Server<'static>,
    world: World,
    now: u64,
    user: Option<&'static str>,
    declares: bool,
    /// The capabilities of the client beside the extension.
    capabilities: Value,
}

impl Desk {
    fn with(tasks: Tasks<'static>) -> Self {
        let world = World { tasks: tasks.epoch(1_785_231_000_000), begun: Vec::new(), random: 0 };
        Desk {
            server: Server::growing(MessageLimits::default()),
            world,
            now: 0,
            user: None,
            declares: true,
            capabilities: json!({ "elicitation": {} }),
        }
    }

    fn new() -> Self {
        Desk::with(Desk::memory(4, 2048))
    }

    fn memory(slots: usize, bytes: usize) -> Tasks<'static> {
        let slots: Vec<_> = (0..slots).map(|_| TaskSlot::FREE).collect();
        Tasks::new(slots.leak(), vec![0; bytes].leak())
    }

    fn lines(&mut self, id: u64, method: &str, mut params: Value) -> Vec<Value> {
        let extensions = if self.declares { json!({ ID: {} }) } else { json!({}) };
        let mut capabilities = self.capabilities.clone();
        capabilities["extensions"] = extensions;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let source = MessageSource::LINE.principal(self.user);
        self.server.now = self.now;
        let mut out = LineSink::new(Vec::new());
        let done = SERVICE.dispatch_from(&source, &mut self.world, line.as_bytes(), &mut self.server, &mut out);
        let _ = done.unwrap();
        read(&out)
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut lines = self.lines(7, method, params);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// Begins a task. Returns its token and id.
    fn begin(&mut self) -> (TaskToken, String) {
        let created = self.ask("tools/call", json!({ "name": "work" }));
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        (*self.world.begun.last().unwrap(), created["result"]["taskId"].as_str().unwrap().to_owned())
    }

    fn get(&mut self, id: &str) -> Value {
        let mut got = self.ask("tasks/get", json!({ "taskId": id }));
        if got.get("error").is_some() { got["error"]["code"].take() } else { got["result"].take() }
    }

    fn complete(&mut self, token: TaskToken, answer: impl FnOnce(&mut World, &mut Call<'_>) -> HandlerResult) {
        complete(&SERVICE, &mut self.world, token, self.now, answer).unwrap();
    }

    fn update(&mut self, id: &str, responses: Value) -> Value {
        self.ask("tasks/update", json!({ "taskId": id, "inputResponses": responses }))
    }

    /// Publishes all changes. Returns the lines that they cause.
    fn publish(&mut self) -> Vec<Value> {
        while let Some(id) = self.world.tasks.next_change() {
            self.server.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
        }
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.pull(&self.world, &mut self.server, &mut out);
        read(&out)
    }
}

fn read(out: &LineSink<Vec<u8>>) -> Vec<Value> {
    std::str::from_utf8(out.pending()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_task_from_its_creation_to_its_result() {
    let mut desk = Desk::new();
    let discovered = desk.ask("server/discover", json!({}));
    assert_eq!(discovered["result"]["capabilities"]["extensions"], json!({ ID: {} }));

    desk.now = 1_500;
    let created = desk.ask("tools/call", json!({ "name": "work", "task": { "ttl": 1 } }))["result"].take();
    let token = desk.world.begun[0];
    let members = ["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"];
    let own: Vec<_> =
        created.as_object().unwrap().keys().filter(|key| !matches!(&***key, "_meta" | "resultType")).collect();
    assert_eq!(own.len(), members.len(), "{created}");
    assert!(members.iter().all(|member| created.get(member).is_some()), "{created}");
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!((&created["status"], &created["statusMessage"]), (&json!("working"), &json!("begun")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(60_000), &json!(200)));
    assert_eq!(created["createdAt"], "2026-07-28T09:30:01.500Z");

    desk.now = 2_000;
    desk.world.tasks.set_message(token, 2_000, "half of it").unwrap();
    let got = desk.get(&id);
    assert_eq!((&got["resultType"], &got["status"]), (&json!("complete"), &json!("working")));
    assert_eq!((&got["statusMessage"], &got["taskId"]), (&json!("half of it"), &json!(id)));
    assert_eq!((&got["createdAt"], &got["lastUpdatedAt"]), (&created["createdAt"], &json!("2026-07-28T09:30:02.000Z")));

    desk.complete(token, |world, call| call.text(format_args!("done by {}", world.begun.len())));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["result"]["content"][0]["text"]), (&json!("completed"), &json!("done by 1")));
    assert_eq!((&got["result"]["isError"], got.get("error")), (&json!(false), None));
    // It has ended, and stays so.
    assert_eq!(complete(&SERVICE, &mut desk.world, token, 1, |_, _| panic!()), Err(TaskError::Over));
    assert_eq!(desk.world.tasks.fail(token, 1, &RpcError::internal("late")), Err(TaskError::Over));
    assert_eq!(desk.get(&id), got);
}

#[test]
fn errors_of_tools_and_of_the_protocol() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.error("the disk is full"));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["result"]["isError"]), (&json!("completed"), &json!(true)));

    let (token, id) = desk.begin();
    desk.complete(token, |_, _| Err(RpcError::new(-31_000, "rate limit").into()));
    let got = desk.get(&id);
    assert_eq!((&got["status"], got.get("result")), (&json!("failed"), None));
    assert_eq!(got["error"], json!({ "code": -31000, "message": "rate limit" }));

    let (token, id) = desk.begin();
    desk.world.tasks.fail(token, 5, &RpcError::internal("the power is gone")).unwrap();
    assert_eq!(desk.get(&id)["error"]["message"], "the power is gone");

    // An answer that is not one leaves the task as it is.
    let (token, id) = desk.begin();
    let later = complete(&SERVICE, &mut desk.world, token, 5, |_, call| call.later().1);
    assert_eq!((later, desk.get(&id)["status"].take()), (Err(TaskError::Unanswered), json!("working")));
}

#[test]
fn clients_without_the_extension() {
    let mut desk = Desk::new();
    let (_, id) = desk.begin();
    desk.declares = false;
    for (method, params) in [
        ("tools/call", json!({ "name": "work" })),
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/update", json!({ "taskId": "unknown", "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": "unknown" })),
        ("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })),
    ] {
        let error = desk.ask(method, params)["error"].take();
        assert_eq!(error["code"], -32021, "{method}");
        assert_eq!(error["data"], json!({ "requiredCapabilities": { "extensions": { ID: {} } } }));
    }
    desk.declares = true;
    assert_eq!(desk.world.tasks.count(), 1);
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(desk.ask(method, json!({ "taskId": id }))["error"]["code"], -32601);
    }
    for params in [json!({ "taskId": "unknown" }), json!({ "taskId": 7 }), json!({}), json!({ "taskId": "" })] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            assert_eq!(desk.ask(method, params.clone())["error"]["code"], -32602, "{method} {params}");
        }
    }
    assert_eq!(desk.ask("tasks/update", json!({ "taskId": id }))["error"]["code"], -32602);
}

#[test]
fn cancelled_is_the_end() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let acknowledged = desk.ask("tasks/cancel", json!({ "taskId": id }))["result"].take();
    let members: Vec<_> = acknowledged.as_object().unwrap().keys().collect();
    assert_eq!(members, ["_meta", "resultType"]);
    assert_eq!((desk.world.tasks.next_cancelled(), desk.world.tasks.next_cancelled()), (Some(token), None));
    assert_eq!(complete(&SERVICE, &mut desk.world, token, 9, |_, _| panic!()), Err(TaskError::Over));
    assert_eq!(desk.world.tasks.ask(token, 9, &[]), Err(TaskError::Over));
    let got = desk.get(&id);
    assert_eq!((&got["status"], got.get("result"), got.get("error")), (&json!("cancelled"), None, None));
    assert_eq!(desk.ask("tasks/cancel", json!({ "taskId": id }))["result"], acknowledged);

    // A task that has ended before stays as it is.
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.text("done"));
    assert_eq!(desk.ask("tasks/cancel", json!({ "taskId": id }))["result"], acknowledged);
    assert_eq!((desk.get(&id)["status"].take(), desk.world.tasks.next_cancelled()), (json!("completed"), None));
}

#[test]
fn questions_while_it_runs() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let questions =
        [InputRequest::elicit("sure", "Are you sure?", SCHEMA), InputRequest::elicit("why", "Why?", SCHEMA)];
    desk.world.tasks.ask(token, 10, &questions).unwrap();
    let got = desk.get(&id);
    assert_eq!(got["status"], "input_required");
    assert_eq!(got["inputRequests"].as_object().unwrap().len(), 2);
    assert_eq!(got["inputRequests"]["sure"]["method"], "elicitation/create");
    assert_eq!(got["inputRequests"]["sure"]["params"]["message"], "Are you sure?");

    // One of two, and some that nothing asked for.
    let responses = json!({ "other": { "action": "accept" }, "why": { "action": "decline" } });
    assert_eq!(desk.update(&id, responses)["result"]["resultType"], "complete");
    let got = desk.get(&id);
    assert_eq!(got["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["sure"]);
    assert_eq!(desk.world.tasks.next_answered(), None);
    // The first answer counts.
    desk.update(&id, json!({ "why": { "action": "accept" } }));
    desk.update(&id, json!({ "sure": { "action": "accept", "content": { "sure": true } } }));
    assert_eq!((desk.world.tasks.next_answered(), desk.world.tasks.next_answered()), (Some(token), None));
    assert_eq!(desk.get(&id)["status"], "working");
    assert!(desk.world.tasks.answer(token, "why").unwrap().declined());
    let sure = desk.world.tasks.answer(token, "sure").unwrap();
    assert_eq!((sure.accepted(), sure.value("sure").and_then(|sure| sure.bool())), (true, Some(true)));

    // No key is used twice, also one whose question is answered; and all of the questions are asked, or none.
    let again = [InputRequest::elicit("new", "New?", SCHEMA), InputRequest::elicit("why", "Why again?", SCHEMA)];
    assert_eq!(desk.world.tasks.ask(token, 11, &again), Err(TaskError::NotNew));
    assert_eq!(desk.world.tasks.ask(token, 11, &[InputRequest::elicit("a\"b", "", SCHEMA)]), Err(TaskError::NotNew));
    assert_eq!(desk.world.tasks.ask(token, 11, &[InputRequest::roots("roots")]), Err(TaskError::CannotAsk));
    assert_eq!(desk.world.tasks.status(token), Some(TaskStatus::Working));
    desk.world.tasks.ask(token, 11, &again[..1]).unwrap();
    assert_eq!(desk.get(&id)["inputRequests"].as_object().unwrap().len(), 1);
    // A task may end with an open question; an answer that comes late harms nothing.
    desk.complete(token, |_, call| call.text("done"));
    assert_eq!(desk.update(&id, json!({ "new": { "action": "accept" } }))["result"]["resultType"], "complete");
    assert_eq!(desk.get(&id)["status"], "completed");
}

#[test]
fn questions_to_the_model_and_for_roots() {
    let mut desk = Desk::new();
    desk.capabilities = json!({ "sampling": {}, "roots": {} });
    let (token, id) = desk.begin();
    let messages = [PromptMessage::user(ContentBlock::text("Say yes."))];
    let questions = [InputRequest::sample("model", CreateMessage::new(&messages, 10)), InputRequest::roots("folders")];
    desk.world.tasks.ask(token, 10, &questions).unwrap();
    let requests = desk.get(&id)["inputRequests"].take();
    assert_eq!(requests["model"]["method"], "sampling/createMessage");
    assert_eq!(requests["model"]["params"]["messages"][0]["content"]["text"], "Say yes.");
    assert_eq!(requests["folders"]["method"], "roots/list");
    // The client did not declare that it can be asked by a form: nothing of this is asked.
    let form = [InputRequest::roots("more"), InputRequest::elicit("sure", "Sure?", SCHEMA)];
    assert_eq!(desk.world.tasks.ask(token, 10, &form), Err(TaskError::CannotAsk));
    assert_eq!(desk.get(&id)["inputRequests"], requests);
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "yes" }, "model": "m" });
    desk.update(&id, json!({ "model": model, "folders": { "roots": [{ "uri": "file:///a" }] } }));
    assert_eq!(desk.world.tasks.next_answered(), Some(token));
    let tasks = &desk.world.tasks;
    assert!(tasks.answer(token, "model").unwrap().text().unwrap().eq_str("yes"));
    let roots: Vec<_> = tasks.answer(token, "folders").unwrap().roots().collect();
    assert!(roots.len() == 1 && roots[0].eq_str("file:///a"));
}

#[test]
fn the_time_to_live() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    desk.complete(token, |_, call| call.text("done"));
    desk.now = 59_999;
    assert_eq!(desk.get(&id)["status"], "completed");
    desk.now = 60_000;
    assert_eq!(desk.get(&id), -32602);
    assert_eq!((desk.world.tasks.count(), desk.world.tasks.status(token)), (0, None));
    // A program keeps an ended task for another time. The client sees the new `ttlMs`, counted from the creation.
    let (token, id) = desk.begin();
    desk.now = 61_000;
    desk.complete(token, |_, call| call.text("done"));
    desk.world.tasks.keep_for(token, desk.now, 500).unwrap();
    let got = desk.get(&id);
    assert_eq!((&got["ttlMs"], &got["status"]), (&json!(1_500), &json!("completed")));
    desk.now = 61_499;
    assert_eq!(desk.get(&id)["status"], "completed");
    desk.now = 61_500;
    assert_eq!(desk.get(&id), -32602);
    assert_eq!(desk.world.tasks.keep_for(token, desk.now, 500), Err(TaskError::Over));
    // The token of the old task does not reach the new one in its slot.
    let (new, _) = desk.begin();
    assert!(new != token && desk.world.tasks.fail(token, 61_501, &RpcError::internal("old")).is_err());
    assert_eq!(desk.world.tasks.status(new), Some(TaskStatus::Working));
}

#[test]
fn no_room() {
    let mut desk = Desk::with(Desk::memory(2, 400));
    let (first, id) = desk.begin();
    let (second, second_id) = desk.begin();
    let full = desk.ask("tools/call", json!({ "name": "work" }))["error"].take();
    assert_eq!(full, json!({ "code": -32603, "message": "Overloaded: too many tasks" }));
    assert_eq!(desk.world.begun.len(), 2);

    // A result larger than the memory: first the short error that a call would get, then an error that needs no memory.
    let long = "x".repeat(400);
    desk.complete(first, |_, call| call.text(&*long));
    let got = desk.get(&id);
    assert_eq!((&got["status"], &got["error"]["code"]), (&json!("failed"), &json!(-32603)));
    let question = [InputRequest::elicit("sure", &long, SCHEMA)];
    assert_eq!(desk.world.tasks.ask(second, 1, &question), Err(TaskError::NoRoom));
    assert_eq!(desk.world.tasks.set_message(second, 1, &long), Err(TaskError::NoRoom));
    let filler = "y".repeat(150);
    desk.world.tasks.set_message(second, 1, &filler).unwrap();
    desk.complete(second, |_, call| call.text("x".repeat(100).as_str()));
    let got = desk.get(&second_id);
    assert_eq!((&got["status"], &got["error"]["code"]), (&json!("failed"), &json!(-32603)));

    // A slot that is free again is used again.
    desk.now = 60_000;
    desk.begin();

    let mut desk = Desk::with(Desk::memory(4, 2048).share(1, 300));
    desk.user = Some("anna");
    desk.begin();
    assert_eq!(desk.ask("tools/call", json!({ "name": "work" }))["error"]["code"], -32603);
    desk.user = Some("bert");
    let (token, id) = desk.begin();
    // An answer of the client beyond its share, and one within it.
    desk.world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    let answer = |len| json!({ "sure": { "action": "accept", "content": { "sure": "z".repeat(len) } } });
    assert_eq!(desk.update(&id, answer(200))["error"]["code"], -32603);
    assert_eq!(desk.get(&id)["status"], "input_required");
    assert_eq!(desk.update(&id, answer(2))["result"]["resultType"], "complete");
    assert_eq!(desk.get(&id)["status"], "working");
    let many = ["1", "2", "3", "4", "5", "6", "7", "8", "9"].map(|key| InputRequest::elicit(key, "?", SCHEMA));
    assert_eq!(desk.world.tasks.ask(token, 1, &many), Err(TaskError::NoRoom));

    let mut desk = Desk::with(Tasks::none());
    assert_eq!(desk.ask("tools/call", json!({ "name": "work" }))["error"]["code"], -32603);

    // Random bytes that come again.
    let mut desk = Desk::new();
    desk.begin();
    desk.world.random = 0;
    assert_eq!(desk.ask("tools/call", json!({ "name": "work" }))["error"]["code"], -32603);
}

#[test]
fn a_task_of_another_user_does_not_exist() {
    let mut desk = Desk::new();
    desk.user = Some("anna");
    let (token, id) = desk.begin();
    desk.world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    for other in [Some("bert"), None] {
        desk.user = other;
        let unknown = desk.ask("tasks/get", json!({ "taskId": "unknown" }));
        assert_eq!(desk.ask("tasks/get", json!({ "taskId": id })), unknown);
        assert_eq!(desk.ask("tasks/cancel", json!({ "taskId": id })), unknown);
        let responses = json!({ "sure": { "action": "accept" } });
        assert_eq!(desk.update(&id, responses), unknown);
        let listening = desk.lines(8, "subscriptions/listen", json!({ "notifications": { "taskIds": [id] } }));
        assert_eq!(listening[0]["params"]["notifications"], json!({}));
        desk.lines(9, "ping", json!({}));
        let end = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#;
        let _ = SERVICE.dispatch(&mut desk.world, end, &mut desk.server, &mut LineSink::new(Vec::new())).unwrap();
    }
    desk.user = Some("anna");
    assert_eq!(desk.get(&id)["status"], "input_required");
    assert_eq!(desk.world.tasks.next_cancelled(), None);
}

#[test]
fn notifications_have_what_get_has() {
    let mut desk = Desk::new();
    let (token, id) = desk.begin();
    let (other, _) = desk.begin();
    let listening = desk.lines(8, "subscriptions/listen", json!({ "notifications": { "taskIds": [id, "unknown"] } }));
    assert_eq!(listening[0]["params"]["notifications"], json!({ "taskIds": [id] }));
    assert_eq!(desk.publish(), [json!(null); 0]);
    let mut statuses = Vec::new();
    let mut told = |desk: &mut Desk| {
        let [told] = &desk.publish()[..] else { panic!() };
        assert_eq!(told["method"], "notifications/tasks");
        let mut params = told["params"].clone();
        assert_eq!(params["_meta"], json!({ "io.modelcontextprotocol/subscriptionId": 8 }));
        let mut got = desk.get(&id);
        got.as_object_mut().unwrap().retain(|key, _| !matches!(&**key, "_meta" | "resultType"));
        params.as_object_mut().unwrap().remove("_meta");
        assert_eq!(params, got);
        statuses.push(got["status"].as_str().unwrap().to_owned());
    };
    desk.world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    told(&mut desk);
    desk.update(&id, json!({ "sure": { "action": "accept" } }));
    told(&mut desk);
    desk.world.tasks.set_message(token, 2, "nearly").unwrap();
    // Two changes, one notification.
    desk.complete(token, |_, call| call.text("done"));
    told(&mut desk);
    assert_eq!(statuses, ["input_required", "working", "completed"]);
    // The listen did not select the other task.
    desk.world.tasks.cancel(other, 3).unwrap();
    assert_eq!(desk.publish(), [json!(null); 0]);
    // A task that was forgotten before its notification was written has nothing to say.
    desk.server.publish(ServerChange::Topic { member: "taskIds", key: &id });
    desk.world.tasks.forget(token);
    assert_eq!(desk.publish(), [json!(null); 0]);
}
