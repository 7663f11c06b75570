//! Tasks of another process: requests that are relayed to it, and those that are answered when it has ended.
#![cfg(feature = "alloc")]

use mcp_sansio::json::Object;
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, MessageSource, Relay, Service, Tool};
use mcp_sansio::sink::{LineSink, MessageKind, whole};
use mcp_sansio_tasks::{
    HasTasks, ID, TaskOptions, TaskSupport, TaskToken, Tasks, begin, complete, extension, task_support,
};
use serde_json::{Value, json};

struct World {
    tasks: Tasks<'static>,
    begun: Vec<TaskToken>,
}

impl HasTasks for World {
    const LEGACY: bool = true;
    const FLEET: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
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
        let world = World { tasks, begun: Vec::new() };
        let mut process =
            Process { server: Server::growing(MessageLimits::default()), world, user: Some("ann"), modern };
        if !modern {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "test", "version": "1" },
            });
            process.ask("initialize", params, None);
        }
        process
    }

    fn ask(&mut self, method: &str, mut params: Value, relay: Option<&Relay<'_>>) -> Value {
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} }, "elicitation": {} },
            });
        }
        let line = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params }).to_string();
        let source = MessageSource::new(&());
        let source = self.user.map_or(source, |user| source.principal(user));
        let source = relay.map_or(source, |relay| source.relay(relay));
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.dispatch_from(&source, &mut self.world, line.as_bytes(), &mut self.server, &mut out).unwrap();
        serde_json::from_slice(out.pending()).unwrap_or(Value::Null)
    }

    /// Relays a request to a process that has ended, and left this.
    fn ask_ended(&mut self, method: &str, id: &str, kept: Option<&str>) -> Value {
        let relay = Relay::open();
        let told = self.ask(method, json!({ "taskId": id, "inputResponses": {} }), Some(&relay));
        assert_eq!(told, Value::Null, "{method}");
        let to = relay.take().unwrap();
        assert_eq!((to.process, to.key.as_str()), (THERE, id));
        let token = (0..8).find_map(|slot| self.server.token_at(slot)).unwrap();
        assert!(self.server.is_suspended(token));
        self.server.wake(token).unwrap();
        let ended = Relay::ended(kept.map(|kept| Raw::parse(kept.as_bytes()).unwrap()));
        let source = MessageSource::new(&()).relay(&ended);
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.resume_from(&source, &mut self.world, token, &mut self.server, &mut out).unwrap();
        assert_eq!(self.server.in_flight(), 0);
        serde_json::from_slice(out.pending()).unwrap()
    }

    fn begin(&mut self) -> (TaskToken, String) {
        let created = self.ask("tools/call", json!({ "name": "work", "task": {} }), None);
        let created = if self.modern { &created["result"] } else { &created["result"]["task"] };
        (*self.world.begun.last().unwrap(), created["taskId"].as_str().unwrap().to_owned())
    }

    /// Returns what the transport keeps of a task.
    fn kept(&self, id: &str) -> String {
        let mut out = LineSink::new(Vec::new());
        whole(&mut out, MessageKind::Notification, |out| {
            let mut params = Object::open(out);
            SERVICE.write_topic(&self.world, "taskIds", id, &mut params)?;
            params.close()
        })
        .unwrap();
        String::from_utf8(out.pending().trim_ascii_end().to_vec()).unwrap()
    }
}

const UNKNOWN: &str = "There is no such task";

#[test]
fn ids_name_their_process() {
    for modern in [true, false] {
        let mut there = Process::new(THERE, modern);
        let (_, id) = there.begin();
        assert_eq!(id, format!("00017{}", &"70".repeat(16)[5..]));
        let owner = SERVICE.kept_topic(&there.world, "taskIds", &id).unwrap();
        assert_eq!((owner.principal, owner.keep), (Some("ann"), 60_000));
        assert!(SERVICE.kept_topic(&there.world, "taskIds", "x").is_none());
        assert!(SERVICE.kept_topic(&there.world, "x", &id).is_none());
        // It is kept from its beginning.
        assert_eq!(there.world.tasks.next_change().unwrap().as_str(), id);
        assert!(there.world.tasks.next_change().is_none());
    }
}

#[test]
fn only_ids_of_others_are_relayed() {
    for modern in [true, false] {
        let mut here = Process::new(HERE, modern);
        let relay = Relay::open();
        for id in [
            "abcde".to_owned() + &"0".repeat(27), // its own, and there is none
            "0".repeat(32),                       // no process has this number
            "00017".to_owned() + &"0".repeat(26),
            "00017".to_owned() + &"0".repeat(28),
            "00017".to_owned() + &"A".repeat(27),
            "00017".to_owned() + &"é".repeat(13) + "0",
        ] {
            let refused = here.ask("tasks/get", json!({ "taskId": id }), Some(&relay));
            assert_eq!(refused["error"]["message"], UNKNOWN, "{id}");
            assert!(relay.take().is_none());
        }
        let missing = here.ask("tasks/get", json!({}), Some(&relay));
        assert_eq!(missing["error"]["code"], -32602);
        // A transport without other processes.
        let id = "00017".to_owned() + &"0".repeat(27);
        let refused = here.ask("tasks/get", json!({ "taskId": id }), None);
        assert_eq!(refused["error"]["message"], UNKNOWN);
        assert_eq!(here.server.in_flight(), 0);
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
    let before = there.ask("tasks/get", json!({ "taskId": id }), None);
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
