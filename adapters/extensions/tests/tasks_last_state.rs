//! Tasks of a process that has ended: another one answers with their last states.
#![cfg(all(feature = "alloc", feature = "tasks"))]

use std::cell::RefCell;

use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Call, CustomRequest, Extension, HandlerResult, InputRequest, MessageSource, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{
    HasTasks, ID, LastStates, TaskLookUp, TaskOptions, TaskSupport, TaskToken, Tasks, begin, complete, extension,
    task_support,
};
use serde_json::{Value, json};

struct World {
    tasks: Tasks<'static>,
    begun: Vec<TaskToken>,
    wanted: Wanted,
}

/// The questions for tasks, if tasks are looked up.
#[derive(Default)]
struct Wanted(Option<RefCell<Vec<TaskLookUp>>>);

impl LastStates for Wanted {
    fn keep(&self, _: &Tasks<'_>, _: &str) {}

    fn look_up(&self, wanted: TaskLookUp) {
        self.0.as_ref().unwrap().borrow_mut().push(wanted);
    }
}

impl HasTasks for World {
    const LEGACY: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
    fn last_states(&self) -> Option<&dyn LastStates> {
        self.wanted.0.is_some().then_some(&self.wanted)
    }
}

fn work(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let random = [world.begun.len() as u8 + 0x70; 16];
    let (token, done) = begin(world, call, &TaskOptions::new(random).ttl(60_000))?;
    world.begun.push(token);
    Ok(done)
}

static TOOLS: [Tool<World>; 1] = [task_support(Tool::new("work", "Works", work), TaskSupport::Required)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

const HERE: u32 = 0xabcde;
const THERE: u32 = 0x00017;

/// A process, with one client.
struct Process {
    server: Server<'static>,
    world: World,
    user: Option<&'static str>,
    modern: bool,
}

impl Process {
    fn new(number: u32, modern: bool) -> Self {
        let tasks = Tasks::growing(8, 65_536).process(number);
        let world = World { tasks, begun: Vec::new(), wanted: Wanted(Some(RefCell::default())) };
        let mut process =
            Process { server: Server::growing(MessageLimits::default()), world, user: Some("ann"), modern };
        if !modern {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "test", "version": "1" },
            });
            process.ask("initialize", params);
        }
        process
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} }, "elicitation": {} },
            });
        }
        let line = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string();
        let source = MessageSource::LINE.principal(self.user);
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.dispatch_from(&source, &mut self.world, line.as_bytes(), &mut self.server, &mut out).unwrap();
        serde_json::from_slice(out.pending()).unwrap_or(Value::Null)
    }

    /// Returns what was looked up.
    fn wanted(&self) -> Vec<TaskLookUp> {
        self.world.wanted.0.as_ref().unwrap().take()
    }

    /// Asks for a task of a process that has ended, and left this.
    fn ask_ended(&mut self, method: &str, id: &str, kept: Option<&str>) -> Value {
        let told = self.ask(method, json!({ "taskId": id, "inputResponses": {} }));
        assert_eq!(told, Value::Null, "{method}");
        let [wanted] = &self.wanted()[..] else { panic!("{method} is looked up") };
        assert_eq!(wanted.id(), id);
        let kept = kept.map(|kept| (Some("ann"), kept));
        let mut out = LineSink::new(Vec::new());
        let answer = |_: &mut World, request: &mut CustomRequest<'_>| wanted.answer(kept, request);
        match SERVICE.answer(&mut self.world, wanted.token.as_custom(), &mut self.server, &mut out, answer) {
            Ok(_) => {}
            Err(error) => panic!("{method}: {error:?}"),
        }
        assert_eq!(self.server.in_flight(), 0);
        serde_json::from_slice(out.pending()).unwrap()
    }

    fn begin(&mut self) -> (TaskToken, String) {
        let created = self.ask("tools/call", json!({ "name": "work", "task": {} }));
        let created = if self.modern { &created["result"] } else { &created["result"]["task"] };
        (*self.world.begun.last().unwrap(), created["taskId"].as_str().unwrap().to_owned())
    }

    /// Returns what is kept of a task.
    fn kept(&self, id: &str) -> String {
        self.world.tasks.last_state(id).unwrap().task
    }
}

const UNKNOWN: &str = "There is no such task";

#[test]
fn ids_name_their_process() {
    for modern in [true, false] {
        let mut there = Process::new(THERE, modern);
        let (_, id) = there.begin();
        assert_eq!(id, format!("00017{}", &"70".repeat(16)[5..]));
        let last = there.world.tasks.last_state(&id).unwrap();
        assert_eq!((last.user.as_deref(), last.keep), (Some("ann"), 60_000));
        assert!(there.world.tasks.last_state("x").is_none());
        // It is kept from its beginning.
        assert_eq!(there.world.tasks.next_change().unwrap().as_str(), id);
        assert!(there.world.tasks.next_change().is_none());
    }
}

#[test]
fn only_ids_of_tasks_that_are_not_here_are_looked_up() {
    for modern in [true, false] {
        let mut here = Process::new(HERE, modern);
        let (_, own) = here.begin();
        here.user = Some("eve");
        for id in [
            own, // one of another user
            "0".repeat(31),
            "0".repeat(33),
            "0".repeat(31) + "A",
            "é".repeat(16),
        ] {
            let refused = here.ask("tasks/get", json!({ "taskId": id }));
            assert_eq!(refused["error"]["message"], UNKNOWN, "{id}");
        }
        let missing = here.ask("tasks/get", json!({}));
        assert_eq!(missing["error"]["code"], -32602);
        assert!(here.wanted().is_empty());
        // There is one of another user.
        let unknown = here.ask_ended("tasks/get", &"0".repeat(32), Some(r#"{"ttl":1,"ttlMs":1}"#));
        assert_eq!(unknown["error"]["message"], UNKNOWN);
        // The states are kept nowhere.
        here.world.wanted.0 = None;
        let refused = here.ask("tasks/get", json!({ "taskId": "0".repeat(32) }));
        assert_eq!(refused["error"]["message"], UNKNOWN);
    }
}

#[test]
fn a_process_ends_before_its_task() {
    let mut there = Process::new(THERE, true);
    let (token, id) = there.begin();
    there.world.tasks.set_message(token, 9, "half").unwrap();
    let mut here = Process::new(HERE, true);
    for asks in [false, true] {
        if asks {
            there.world.tasks.ask(token, 10, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
        }
        let kept = there.kept(&id);
        let failed = here.ask_ended("tasks/get", &id, Some(&kept));
        let task = &failed["result"];
        assert_eq!((&task["status"], &task["taskId"], &task["ttlMs"]), (&json!("failed"), &json!(id), &json!(60_000)));
        assert_eq!(task["error"]["code"], -32603);
        assert_eq!(task["error"]["message"], "The process that worked on the task has ended");
        assert_eq!(task["statusMessage"], task["error"]["message"]);
        assert_eq!(task.get("inputRequests"), None);
        for method in ["tasks/update", "tasks/cancel"] {
            let taken = here.ask_ended(method, &id, Some(&kept));
            assert_eq!(taken["result"]["resultType"], "complete", "{method}");
        }
    }
    let unknown = here.ask_ended("tasks/get", &id, None);
    assert_eq!(unknown["error"]["message"], UNKNOWN);
}

#[test]
fn a_process_ends_after_its_task() {
    let mut there = Process::new(THERE, true);
    let (token, id) = there.begin();
    complete(&SERVICE, &mut there.world, token, 5, |_, call| call.text("done")).unwrap();
    let mut here = Process::new(HERE, true);
    let got = here.ask_ended("tasks/get", &id, Some(&there.kept(&id)));
    let before = there.ask("tasks/get", json!({ "taskId": id }));
    assert_eq!(got, before);
    assert_eq!(got["result"]["result"]["content"][0]["text"], "done");
    // Clients of one era do not see tasks of the other one.
    let mut old = Process::new(HERE, false);
    let unknown = old.ask_ended("tasks/get", &id, Some(&there.kept(&id)));
    assert_eq!(unknown["error"]["message"], UNKNOWN);
}

#[test]
fn in_2025_11_25() {
    let mut there = Process::new(THERE, false);
    let mut here = Process::new(HERE, false);
    let (token, id) = there.begin();
    let kept = there.kept(&id);
    let failed = here.ask_ended("tasks/get", &id, Some(&kept));
    let task = &failed["result"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("failed"), &json!(60_000)));
    assert_eq!((task.get("error"), task.get("resultType")), (None, None));
    let result = here.ask_ended("tasks/result", &id, Some(&kept));
    assert_eq!(result["error"]["message"], "The process that worked on the task has ended");
    let cancelled = here.ask_ended("tasks/cancel", &id, Some(&kept));
    assert_eq!(cancelled["error"]["code"], -32602);

    complete(&SERVICE, &mut there.world, token, 5, |_, call| call.text("done")).unwrap();
    let kept = there.kept(&id);
    let got = here.ask_ended("tasks/get", &id, Some(&kept));
    assert_eq!((&got["result"]["status"], got["result"].get("result")), (&json!("completed"), None));
    let result = here.ask_ended("tasks/result", &id, Some(&kept));
    assert_eq!(result["result"]["content"][0]["text"], "done");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);

    let (token, id) = there.begin();
    there.world.tasks.cancel(token, 7).unwrap();
    let result = here.ask_ended("tasks/result", &id, Some(&there.kept(&id)));
    assert_eq!(result["error"]["message"], "The task was cancelled: it has no result");
}
