//! Tasks of 2025-11-25, driven by operations of clients and of the program. A model says what each of them must find, and that
//! each `tasks/result` is answered once.

use arbitrary::{Result, Unstructured};
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, RespondError, RpcError, Server};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, MessageSource, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{HasTasks, TaskError, TaskOptions, TaskStatus, TaskSupport, TaskToken, Tasks};
use mcp_sansio_extensions::tasks::{begin, complete, extension, task_support};
use serde_json::{Value, json};

use crate::tasks::lines;

const SLOTS: usize = 5;
const USERS: [Option<&str>; 3] = [None, Some("ann"), Some("bob")];
const KEYS: [&str; 4] = ["a", "b", "c", "a key that is longer than the others"];
const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
const RELATED: &str = "io.modelcontextprotocol/related-task";

struct State {
    tasks: Tasks<'static>,
    made: u8,
    begun: Option<TaskToken>,
}

impl HasTasks for State {
    const LEGACY: bool = true;

    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

fn work(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let options = TaskOptions::new([state.made; 16]).ttl(1_000);
    let (token, done) = begin(state, call, &options)?;
    state.begun = Some(token);
    Ok(done)
}

static TOOLS: [Tool<State>; 1] = [task_support(Tool::new("work", "Works", work), TaskSupport::Required)];
static EXTENSIONS: [Extension<State>; 1] = [extension()];
const SERVICE: Service<'static, State> = Service::new("worker", "1").tools(&TOOLS).extend(&EXTENSIONS);

/// A task as the model sees it.
struct Model {
    id: String,
    token: TaskToken,
    user: Option<&'static str>,
    /// How it has ended.
    ended: Option<TaskStatus>,
    ends_at: u64,
    asked: Vec<&'static str>,
}

struct World {
    server: Server<'static>,
    state: State,
    now: u64,
    live: Vec<Model>,
    requests: u64,
    /// The requests that wait for a result, and the ids of their tasks.
    waiting: Vec<(u64, String)>,
    /// The questions without an answer.
    questions: Vec<Value>,
}

impl World {
    /// Sends a message. Returns the answer to its request, if there is one already.
    fn say(&mut self, user: Option<&str>, message: &Value) -> Option<Value> {
        let source = MessageSource::LINE.principal(user);
        self.server.now = self.now;
        let mut out = LineSink::new(Vec::new());
        let line = message.to_string();
        let done = SERVICE.dispatch_from(&source, &mut self.state, line.as_bytes(), &mut self.server, &mut out);
        assert!(done.is_ok(), "a sink that grows takes everything");
        let id = message["method"].as_str().map(|_| &message["id"]).filter(|id| id.is_number());
        let first = self.take_in(&out, id);
        let later = self.turn(id);
        assert!(first.is_none() || later.is_none());
        first.or(later)
    }

    /// Resumes what was woken.
    fn turn(&mut self, id: Option<&Value>) -> Option<Value> {
        let mut out = LineSink::new(Vec::new());
        for round in 0.. {
            assert!(round < 1000, "it spins");
            while let Some(token) = self.state.tasks.next_resumable() {
                assert_ne!(self.server.wake(token), Err(RespondError::WrongKind));
            }
            let Some(token) = self.server.ready() else { break };
            let resumed = SERVICE.resume(&mut self.state, token, &mut self.server, &mut out);
            assert!(resumed.is_ok(), "a sink that grows takes everything");
        }
        self.take_in(&out, id)
    }

    /// Notes what the server has written. Returns the answer to the request with this id.
    fn take_in(&mut self, out: &LineSink<Vec<u8>>, own: Option<&Value>) -> Option<Value> {
        let mut answer = None;
        for line in lines(out) {
            match line["method"].as_str() {
                Some("elicitation/create") => {
                    let task = line["params"]["_meta"][RELATED]["taskId"].as_str().expect("it names its task");
                    // The request that asks has not been noted yet, or waits.
                    assert!(own.is_some() || self.waiting.iter().any(|(_, id)| id == task), "{line}");
                    self.questions.push(line);
                }
                Some("notifications/cancelled") => {
                    self.questions.retain(|question| question["id"] != line["params"]["requestId"]);
                }
                Some(method) => panic!("what is {method}"),
                None if own.is_some_and(|id| line["id"] == *id) => {
                    assert!(answer.is_none(), "two answers to {line}");
                    answer = Some(line);
                }
                None => {
                    let at = self.waiting.iter().position(|(id, _)| line["id"] == *id);
                    let (_, task) = self.waiting.remove(at.unwrap_or_else(|| panic!("nothing waits for {line}")));
                    self.judge(&task, &line);
                }
            }
        }
        answer
    }

    /// Checks the answer to a `tasks/result`.
    fn judge(&self, task: &str, answer: &Value) {
        let ended = self.live.iter().find(|live| live.id == task).map(|live| live.ended);
        match answer["error"]["code"].as_i64() {
            None => {
                assert!(ended.is_some_and(|ended| ended.is_some()), "a result of what has not ended: {answer}");
                assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], task);
            }
            // Failed, or cancelled, or it is not there any more.
            Some(-1 | -32602) => assert!(ended.is_none_or(|ended| ended.is_some()), "{answer}"),
            // Without room, or with questions that were not answered, at any time.
            Some(code) => assert_eq!(code, -32603, "{answer}"),
        }
    }

    /// Sends a request. Returns its answer, if it has one.
    fn send(&mut self, user: Option<&str>, method: &str, params: Value) -> Option<Value> {
        self.requests += 1;
        self.say(user, &json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }))
    }

    /// Sends a request that is answered at once. Returns its result, or the code of its error.
    fn ask(&mut self, user: Option<&str>, method: &str, params: Value) -> std::result::Result<Value, i64> {
        let mut answer = self.send(user, method, params).expect("it is answered at once");
        answer["error"]["code"].as_i64().map_or_else(|| Ok(answer["result"].take()), Err)
    }

    fn begin(&mut self, user: Option<&'static str>, u: &mut Unstructured<'_>) -> Result<()> {
        let again = u.ratio(1, 10)?;
        self.state.made = if again { self.state.made } else { self.state.made.wrapping_add(1) };
        let id = format!("{:02x}", self.state.made).repeat(16);
        let ttl = u
            .choose(&[json!({}), json!({ "ttl": 300 }), json!({ "ttl": 99_999 }), json!({ "ttl": "1" }), json!(7)])?
            .clone();
        let known = self.live.iter().any(|task| task.id == id);
        match self.ask(user, "tools/call", json!({ "name": "work", "task": ttl })) {
            Ok(created) => {
                assert!(!known && self.live.len() < SLOTS, "{created}");
                let task = &created["task"];
                let millis = ttl["ttl"].as_u64().unwrap_or(1_000).min(1_000);
                assert_eq!(
                    (&task["taskId"], &task["status"], &task["ttl"]),
                    (&json!(id), &json!("working"), &json!(millis))
                );
                let token = self.state.begun.take().expect("the handler has run");
                let (ends_at, asked) = (self.now + millis, Vec::new());
                self.live.push(Model { id, token, user, ended: None, ends_at, asked });
            }
            Err(-32602) => assert!(!ttl.is_object() || ttl["ttl"].is_string()),
            Err(code) => assert!(code == -32603 && (known || self.live.len() == SLOTS || user.is_some()), "{code}"),
        }
        Ok(())
    }

    fn find(&self, id: &str, user: Option<&str>) -> Option<&Model> {
        self.live.iter().find(|task| task.id == id && task.user == user)
    }

    fn get(&mut self, id: &str, user: Option<&str>) {
        let got = self.ask(user, "tasks/get", json!({ "taskId": id }));
        let Some(task) = self.find(id, user) else { return assert_eq!(got, Err(-32602)) };
        let got = got.expect("it is there");
        assert_eq!(got["taskId"], id);
        match task.ended {
            Some(status) => assert_eq!(got["status"], status.name()),
            None => assert!(["working", "input_required"].iter().any(|status| got["status"] == *status), "{got}"),
        }
    }

    /// All pages of a list name each task of the user once.
    fn list(&mut self, user: Option<&str>) {
        let (mut listed, mut cursor) = (Vec::new(), None);
        for page in 0.. {
            assert!(page <= SLOTS, "the list has no end");
            let params = cursor.take().map_or(json!({}), |cursor: Value| json!({ "cursor": cursor }));
            let list = self.ask(user, "tasks/list", params).expect("there is room");
            let ids = list["tasks"].as_array().expect("a list").iter();
            listed.extend(ids.map(|task| task["taskId"].as_str().expect("an id").to_owned()));
            cursor = list.get("nextCursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        let mut own: Vec<_> = self.live.iter().filter(|task| task.user == user).map(|task| task.id.clone()).collect();
        listed.sort_unstable();
        own.sort_unstable();
        assert_eq!(listed, own);
    }

    fn cancel(&mut self, id: &str, user: Option<&str>) {
        let before = self.find(id, user).map(|task| task.ended);
        // What waits for it is answered before this is.
        if let Some(task) = self.live.iter_mut().find(|task| task.id == id && task.user == user) {
            task.ended = task.ended.or(Some(TaskStatus::Cancelled));
        }
        let cancelled = self.ask(user, "tasks/cancel", json!({ "taskId": id }));
        match before {
            Some(None) => assert_eq!(cancelled.expect("it has not ended")["status"], "cancelled"),
            _ => assert_eq!(cancelled, Err(-32602)),
        }
    }

    fn result(&mut self, id: &str, user: Option<&str>) {
        let (known, ended) = self.find(id, user).map_or((false, true), |task| (true, task.ended.is_some()));
        match self.send(user, "tasks/result", json!({ "taskId": id })) {
            None => {
                assert!(!ended, "it waits for what has ended");
                self.waiting.push((self.requests, id.to_owned()));
            }
            Some(answer) if known => self.judge(id, &answer),
            Some(answer) => assert_eq!(answer["error"]["code"], -32602),
        }
    }

    /// The program does something with a task.
    fn program(&mut self, at: usize, u: &mut Unstructured<'_>) -> Result<()> {
        let (now, state) = (self.now, &mut self.state);
        let task = &mut self.live[at];
        let (token, is_open) = (task.token, task.ended.is_none());
        match u.int_in_range(0..=4)? {
            0 => {
                let text = "t".repeat(u.int_in_range(0..=300)?);
                let done = complete(&SERVICE, state, token, now, |_, call| call.text(&*text));
                assert_eq!(done, if is_open { Ok(()) } else { Err(TaskError::Over) });
                task.ended = state.tasks.status(token).filter(|status| status.is_terminal());
            }
            1 => {
                let failed = state.tasks.fail(token, now, &RpcError::new(-1, "broken"));
                assert_eq!(failed, if is_open { Ok(()) } else { Err(TaskError::Over) });
                task.ended = state.tasks.status(token).filter(|status| status.is_terminal());
            }
            2 | 3 => {
                let key = *u.choose(&KEYS)?;
                match state.tasks.ask(token, now, &[InputRequest::elicit(key, "?", FORM)]) {
                    Ok(()) => {
                        assert!(is_open && !task.asked.contains(&key));
                        task.asked.push(key);
                    }
                    Err(TaskError::Over) => assert!(!is_open),
                    Err(TaskError::NotNew) => assert!(task.asked.contains(&key)),
                    Err(error) => assert_eq!(error, TaskError::NoRoom),
                }
            }
            _ => {
                state.tasks.forget(token);
                self.live.remove(at);
            }
        }
        Ok(())
    }

    fn respond(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.questions.is_empty() {
            return Ok(());
        }
        let question = self.questions.swap_remove(u.choose_index(self.questions.len())?);
        let content = "x".repeat(u.int_in_range(0..=300)?);
        let (member, value) = match u.int_in_range(0..=3)? {
            0 => ("error", json!({ "code": -1, "message": content })),
            1 => ("result", json!({ "action": "decline" })),
            _ => ("result", json!({ "action": "accept", "content": { "x": content } })),
        };
        // The answer comes from the user who was asked: a connection, or a session, is of one user.
        let task = question["params"]["_meta"][RELATED]["taskId"].as_str().unwrap_or_default();
        let user = self.live.iter().find(|live| live.id == task).and_then(|live| live.user);
        assert_eq!(self.say(user, &json!({ "jsonrpc": "2.0", "id": question["id"], member: value })), None);
        Ok(())
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let user = *u.choose(&USERS)?;
        let at = u.int_in_range(0..=SLOTS)?.min(self.live.len());
        let id = self.live.get(at).map_or("none".to_owned(), |task| task.id.clone());
        // Most requests come from the owner.
        let user = if u.ratio(1, 4)? { user } else { self.live.get(at).map_or(user, |task| task.user) };
        match u.int_in_range(0..=14)? {
            0 | 1 => self.begin(user, u)?,
            2 => self.get(&id, user),
            3..=5 => self.result(&id, user),
            6 => self.cancel(&id, user),
            7 => self.list(user),
            8..=10 if at < self.live.len() => self.program(at, u)?,
            11 => self.respond(u)?,
            12 if !self.waiting.is_empty() => {
                let (id, _) = self.waiting.swap_remove(u.choose_index(self.waiting.len())?);
                let params = json!({ "requestId": id });
                self.say(user, &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            }
            13 => {
                // Anything in the place of the params.
                let values = [json!(7), json!(null), json!([]), json!({ "a": 7 }), json!("\u{0}\"\\")];
                let value = u.choose(&values)?;
                let (method, member) =
                    *u.choose(&[("tasks/get", "taskId"), ("tasks/result", "taskId"), ("tasks/cancel", "taskId")])?;
                assert_eq!(self.ask(user, method, json!({ member: value })), Err(-32602));
            }
            _ => {
                self.now += *u.choose(&[1, 100, 900])?;
                self.server.expire(self.now);
                self.state.tasks.expire(self.now);
                self.live.retain(|task| task.ends_at > self.now);
            }
        }
        self.turn(None);
        let is_over = |id: &str| self.live.iter().all(|task| task.id != id || task.ended.is_some());
        assert!(!self.waiting.iter().any(|(_, id)| is_over(id)), "it waits for what has ended");
        while self.state.tasks.next_answered().is_some() {}
        while self.state.tasks.next_cancelled().is_some() {}
        assert_eq!(self.state.tasks.count(), self.live.len());
        Ok(())
    }
}

pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let bytes = *u.choose(&[0, 100, 400, 2000])?;
    let limits = MessageLimits { ask_timeout: 500, ..MessageLimits::default() };
    let mut world = World {
        server: Server::growing(limits),
        state: State { tasks: Tasks::growing(SLOTS, bytes), made: 0, begun: None },
        now: 0,
        live: Vec::new(),
        requests: 0,
        waiting: Vec::new(),
        questions: Vec::new(),
    };
    let client = json!({ "name": "fuzz", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": client });
    world.ask(None, "initialize", params).expect("it is served");
    world.say(None, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    while !u.is_empty() {
        world.step(u)?;
    }
    for at in (0..world.live.len()).rev() {
        let (id, user) = (world.live[at].id.clone(), world.live[at].user);
        world.cancel(&id, user);
    }
    assert_eq!((world.waiting.len(), world.server.in_flight()), (0, 0), "something is left");
    assert_eq!(world.state.tasks.next_resumable(), None);
    Ok(())
}
