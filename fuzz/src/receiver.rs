//! The tasks of a client of 2025-11-25, driven by requests of the server and by work of the program, made from the fuzzer's
//! bytes. A model says which answers may come.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use mcp_sansio::client::result::{ClientResult, CreateMessageResult};
use mcp_sansio::client::{Client, ClientEvent, ClientHandle, ClientInfo};
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::ContentBlock;
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::receiver::{Received, Receiver};
use mcp_sansio_extensions::tasks::{TaskError, TaskOptions, TaskStatus, TaskToken, Tasks};
use serde_json::{Value, json};

const SLOTS: usize = 4;
const TTL: u64 = 1_000;

static PROFILE: ClientInfo<'static> =
    ClientInfo::new("answers later", "1").tasks(ClientCapability::Sampling).feature(ClientCapability::ElicitForm);

/// A task as the model sees it.
struct Model {
    token: TaskToken,
    id: String,
    status: TaskStatus,
    end: u64,
}

struct World {
    client: Client<'static>,
    receiver: Receiver,
    now: u64,
    made: u8,
    live: Vec<Model>,
    /// The requests of the server without an answer, and what they are.
    open: BTreeMap<u64, (&'static str, Value)>,
    sent: u64,
}

fn lines(out: &LineSink<Vec<u8>>) -> Vec<Value> {
    let text = std::str::from_utf8(out.pending()).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

impl World {
    fn new(bytes: usize) -> Self {
        let mut client = Client::growing(&PROFILE);
        client.connect_as(Revision::V2025_11_25);
        let mut out = LineSink::new(Vec::new());
        let _ = client.advance(0, &mut out);
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        let answer = json!({ "jsonrpc": "2.0", "id": lines(&out)[0]["id"], "result": result }).to_string();
        let _ = client.receive(answer.as_bytes(), &mut LineSink::new(Vec::new()));
        let _ = client.advance(0, &mut LineSink::new(Vec::new()));
        assert!(client.revision().is_some());
        let receiver = Receiver::new(Tasks::growing(SLOTS, bytes));
        World { client, receiver, now: 0, made: 0, live: Vec::new(), open: BTreeMap::new(), sent: 0 }
    }

    /// The server sends a line; the handler gives each request to the receiver.
    fn say(&mut self, line: &Value, again: bool) {
        let mut out = LineSink::new(Vec::new());
        let line = line.to_string();
        if let Some(ClientEvent::Asked(asked)) = self.client.receive(line.as_bytes(), &mut out).expect("memory grows") {
            let mut link = ClientHandle { client: &mut self.client, out: &mut out };
            for question in asked.questions() {
                self.made = if again { self.made } else { self.made.wrapping_add(1) };
                let options = TaskOptions::new([self.made; 16]).ttl(TTL);
                match self.receiver.take(&question, self.now, &options, &mut link).expect("memory grows") {
                    Received::Task(token) => {
                        let ttl = question.params.get("task").and_then(|task| task.get("ttl")?.u64());
                        let end = self.now + ttl.unwrap_or(TTL).min(TTL);
                        let id = format!("{:02x}", self.made).repeat(16);
                        assert!(self.live.len() < SLOTS && self.live.iter().all(|task| task.id != id));
                        self.live.push(Model { token, id, status: TaskStatus::Working, end });
                    }
                    Received::Handled => {}
                    Received::Ordinary => {
                        assert!(question.params.get("task").is_none() || line.contains("elicitation/create"));
                        link.reply(question.id, &ClientResult::decline()).expect("memory grows");
                    }
                }
            }
        }
        self.hear(&out);
    }

    fn send(&mut self, method: &'static str, params: Value, again: bool) {
        self.sent += 1;
        self.open.insert(self.sent, (method, params["taskId"].clone()));
        self.say(&json!({ "jsonrpc": "2.0", "id": self.sent, "method": method, "params": params }), again);
    }

    /// Takes what the client writes: one answer for each request, and none before its time.
    fn hear(&mut self, out: &LineSink<Vec<u8>>) {
        for line in lines(out) {
            let id = line["id"].as_u64().expect("an answer has the id of its request");
            let (method, target) = self.open.remove(&id).expect("one answer for each request");
            let task = self.live.iter_mut().find(|task| target == task.id);
            let (result, code) = (&line["result"], line["error"]["code"].as_i64());
            let named = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
            match (method, task) {
                ("tasks/get" | "tasks/cancel" | "tasks/result", None) => assert_eq!(code, Some(-32602), "{line}"),
                ("tasks/get", Some(task)) => assert_eq!(result["status"], task.status.name()),
                ("tasks/cancel", Some(task)) if task.status.is_terminal() => assert_eq!(code, Some(-32602), "{line}"),
                ("tasks/cancel", Some(task)) => {
                    assert_eq!(result["status"], "cancelled", "{line}");
                    task.status = TaskStatus::Cancelled;
                }
                // The fifth that waits takes the place of the first one.
                ("tasks/result", Some(task)) if !task.status.is_terminal() => assert_eq!(code, Some(-32603), "{line}"),
                ("tasks/result", Some(task)) => match task.status {
                    TaskStatus::Completed => assert_eq!(*named, *task.id, "{line}"),
                    _ => assert!(code.is_some(), "{line}"),
                },
                _ => {}
            }
        }
    }

    fn flush(&mut self) {
        self.expire();
        let mut out = LineSink::new(Vec::new());
        let mut link = ClientHandle { client: &mut self.client, out: &mut out };
        self.receiver.flush(self.now, &mut link).expect("memory grows");
        self.hear(&out);
    }

    fn expire(&mut self) {
        let now = self.now;
        self.live.retain(|task| now < task.end);
    }

    /// The program ends a task.
    fn work(&mut self, at: usize, u: &mut Unstructured<'_>) -> Result<()> {
        let task = &mut self.live[at];
        let over = if task.status.is_terminal() { Err(TaskError::Over) } else { Ok(()) };
        let said = "t".repeat(u.int_in_range(0..=300)?);
        let done = match u.int_in_range(0..=2)? {
            0 => self.receiver.fail(task.token, self.now, &RpcError::internal("broken")),
            _ => {
                let result = ClientResult::sampled(CreateMessageResult::new("m", ContentBlock::text(&said)));
                self.receiver.complete(task.token, self.now, &result)
            }
        };
        assert_eq!(done, over);
        if over.is_ok() {
            // Failed without room for the result.
            task.status = self.receiver.tasks.status(task.token).expect("it is there");
            assert!(matches!(task.status, TaskStatus::Completed | TaskStatus::Failed));
        }
        Ok(())
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.expire();
        let at = u.int_in_range(0..=SLOTS)?;
        let id = self.live.get(at).map_or(json!("none"), |task| json!(task.id));
        match u.int_in_range(0..=11)? {
            0..=2 => {
                let mut params = json!({ "messages": [], "maxTokens": 5 });
                let tasks = [
                    json!({}),
                    json!({ "ttl": 100 }),
                    json!({ "ttl": 5_000 }),
                    json!({ "ttl": null }),
                    json!({ "ttl": "1" }),
                    json!(7),
                ];
                if u.ratio(7, 8)? {
                    params["task"] = u.choose(&tasks)?.clone();
                }
                let again = u.ratio(1, 10)?;
                self.send("sampling/createMessage", params, again);
            }
            3 => {
                let form =
                    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} }, "task": {} });
                self.send("elicitation/create", form, false);
            }
            4 => self.send("tasks/get", json!({ "taskId": id }), false),
            5 | 6 => self.send("tasks/result", json!({ "taskId": id }), false),
            7 => self.send("tasks/cancel", json!({ "taskId": id }), false),
            8 if u.arbitrary()? => {
                let cursor = u
                    .choose(&[json!({}), json!({ "cursor": "0" }), json!({ "cursor": 5 }), json!({ "cursor": "x" })])?
                    .clone();
                self.send("tasks/list", cursor, false);
            }
            8 => {
                // Anything in the place of the params, or a request that the server gives up.
                if let Some((&id, _)) = self.open.first_key_value().filter(|_| u.ratio(1, 2) == Ok(true)) {
                    self.open.remove(&id);
                    let params = json!({ "requestId": id });
                    self.say(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
                        false,
                    );
                } else {
                    let id = u.choose(&[json!(7), json!(null), json!("\u{0}\"\\")])?.clone();
                    let method = *u.choose(&["tasks/get", "tasks/result", "tasks/cancel"])?;
                    self.send(method, json!({ "taskId": id }), false);
                }
            }
            9 if at < self.live.len() => self.work(at, u)?,
            10 => self.flush(),
            _ => self.now += *u.choose(&[1, 30, 300])?,
        }
        Ok(())
    }
}

pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut world = World::new(*u.choose(&[0, 200, 2000])?);
    while !u.is_empty() {
        world.step(u)?;
    }
    // When all tasks have ended, each request has its answer.
    world.now += TTL;
    world.flush();
    assert!(world.open.is_empty(), "{:?}", world.open);
    assert_eq!(world.receiver.tasks.count(), 0);
    Ok(())
}
