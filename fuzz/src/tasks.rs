//! Tasks, driven by operations of clients and of the program, made from the fuzzer's bytes. A model says what each of them
//! must find.

use arbitrary::{Result, Unstructured};
use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, RpcError, Server, ServerChange};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, MessageSource, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{HasTasks, TaskError, TaskOptions, TaskStatus, TaskToken, Tasks};
use mcp_sansio_extensions::tasks::{begin, complete, extension};
use serde_json::{Value, json};

const ID: &str = mcp_sansio_extensions::tasks::ID;
const SLOTS: usize = 4;
const USERS: [Option<&str>; 3] = [None, Some("ann"), Some("bob")];
const KEYS: [&str; 5] = ["a", "b", "c", "a key that is longer than the others", ""];
const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);

struct State {
    tasks: Tasks<'static>,
    options: TaskOptions<'static>,
    begun: Option<TaskToken>,
}

impl HasTasks for State {
    fn tasks(&self) -> &Tasks<'static> {
        &self.tasks
    }
    fn tasks_mut(&mut self) -> &mut Tasks<'static> {
        &mut self.tasks
    }
}

fn work(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let options = state.options;
    let (token, done) = begin(state, call, &options)?;
    state.begun = Some(token);
    Ok(done)
}

static TOOLS: [Tool<State>; 1] = [Tool::new("work", "Works", work)];
static EXTENSIONS: [Extension<State>; 1] = [extension()];
const SERVICE: Service<'static, State> = Service::new("worker", "1").tools(&TOOLS).extend(&EXTENSIONS);

/// A task as the model sees it.
struct Model {
    id: String,
    token: TaskToken,
    user: Option<&'static str>,
    status: TaskStatus,
    created: u64,
    ttl: Option<u64>,
    /// The keys of all its questions, and of those without an answer.
    asked: Vec<&'static str>,
    open: Vec<&'static str>,
    changed: bool,
}

impl Model {
    fn is_open(&self) -> bool {
        !self.status.is_terminal()
    }

    fn end(&mut self, status: TaskStatus) {
        self.status = status;
        self.open.clear();
        self.changed = true;
    }
}

struct World {
    server: Server<'static>,
    state: State,
    now: u64,
    made: u8,
    live: Vec<Model>,
    /// Tokens of tasks that were forgotten.
    stale: Vec<TaskToken>,
    /// The listens: the id of the request, and the tasks that were agreed.
    listens: Vec<(u64, Vec<String>)>,
    requests: u64,
}

impl World {
    /// Sends a request of 2026-07-28. Returns the lines that the server writes.
    fn send(&mut self, user: Option<&str>, method: &str, mut params: Value) -> Vec<Value> {
        self.requests += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} }, "elicitation": {}, "roots": {} },
        });
        let line = json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params }).to_string();
        let source = MessageSource::LINE.principal(user);
        self.server.now = self.now;
        let mut out = LineSink::new(Vec::new());
        let done = SERVICE.dispatch_from(&source, &mut self.state, line.as_bytes(), &mut self.server, &mut out);
        assert!(done.is_ok(), "a sink that grows takes everything");
        lines(&out)
    }

    /// Sends a request with one answer. Returns its result, or the code of its error.
    fn ask(&mut self, user: Option<&str>, method: &str, params: Value) -> std::result::Result<Value, i64> {
        let mut answers = self.send(user, method, params);
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer = &mut answers[0];
        assert_eq!(answer["id"], self.requests);
        match answer["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(answer["result"].take()),
        }
    }

    fn expire(&mut self) {
        self.state.tasks.expire(self.now);
        let now = self.now;
        let is_over = |task: &Model| task.ttl.is_some_and(|ttl| now - task.created >= ttl);
        self.stale.extend(self.live.iter().filter(|task| is_over(task)).map(|task| task.token));
        self.live.retain(|task| !is_over(task));
    }

    fn begin(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let user = *u.choose(&USERS)?;
        let ttl = *u.choose(&[None, Some(1), Some(20), Some(300), Some(u64::MAX)])?;
        let again = u.ratio(1, 10)?;
        self.made = if again { self.made } else { self.made.wrapping_add(1) };
        let options = TaskOptions::new([self.made; 16]);
        self.state.options = ttl.map_or(options, |ttl| options.ttl(ttl));
        let id = format!("{:02x}", self.made).repeat(16);
        let known = self.live.iter().any(|task| task.id == id);
        match self.ask(user, "tools/call", json!({ "name": "work" })) {
            Ok(created) => {
                assert!(!known && self.live.len() < SLOTS, "{created}");
                assert_eq!((&created["resultType"], &created["taskId"]), (&json!("task"), &json!(id)));
                assert_eq!((&created["status"], &created["ttlMs"]), (&json!("working"), &json!(ttl)));
                let token = self.state.begun.take().expect("the handler has run");
                let (status, created) = (TaskStatus::Working, self.now);
                let (asked, open) = (Vec::new(), Vec::new());
                self.live.push(Model { id, token, user, status, created, ttl, asked, open, changed: false });
            }
            // A task without a user needs no bytes.
            Err(code) => assert!(code == -32603 && (known || self.live.len() == SLOTS || user.is_some())),
        }
        Ok(())
    }

    fn get(&mut self, id: &str, user: Option<&str>) {
        let got = self.ask(user, "tasks/get", json!({ "taskId": id }));
        let Some(task) = self.live.iter().find(|task| task.id == id && task.user == user) else {
            return assert_eq!(got, Err(-32602));
        };
        let got = got.expect("it is there");
        assert_eq!((&got["taskId"], &got["status"]), (&json!(id), &json!(task.status.name())));
        let keys: Vec<_> =
            got["inputRequests"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let mut open = task.open.clone();
        open.sort_unstable();
        assert_eq!(keys, open);
        assert_eq!(got.get("result").is_some(), task.status == TaskStatus::Completed);
        assert_eq!(got.get("error").is_some(), task.status == TaskStatus::Failed);
    }

    fn update(&mut self, id: &str, user: Option<&str>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut responses = serde_json::Map::new();
        for _ in 0..u.int_in_range(0..=3)? {
            let value = u.choose(&["accept", "decline", "cancel", "\u{1}"])?;
            let more = "x".repeat(u.int_in_range(0..=200)?);
            responses.insert((*u.choose(&KEYS)?).into(), json!({ "action": value, "content": { "x": more } }));
        }
        let keys: Vec<String> = responses.keys().cloned().collect();
        let updated = self.ask(user, "tasks/update", json!({ "taskId": id, "inputResponses": responses }));
        let Some(task) = self.live.iter_mut().find(|task| task.id == id && task.user == user) else {
            assert_eq!(updated, Err(-32602));
            return Ok(());
        };
        let before = task.open.len();
        match updated {
            Ok(updated) => {
                let left = updated
                    .as_object()
                    .expect("an object")
                    .keys()
                    .find(|key| !matches!(&***key, "_meta" | "resultType"));
                assert_eq!(left, None);
                task.open.retain(|key| !keys.iter().any(|given| given == key));
            }
            // Those for which there was room were taken.
            Err(code) => {
                assert_eq!(code, -32603);
                let tasks = &self.state.tasks;
                task.open.retain(|key| tasks.answer(task.token, key).is_none());
            }
        }
        if task.open.len() < before {
            task.changed = true;
            if task.open.is_empty() {
                task.status = TaskStatus::Working;
            }
        }
        Ok(())
    }

    fn cancel(&mut self, id: &str, user: Option<&str>) {
        let cancelled = self.ask(user, "tasks/cancel", json!({ "taskId": id }));
        match self.live.iter_mut().find(|task| task.id == id && task.user == user) {
            None => assert_eq!(cancelled, Err(-32602)),
            Some(task) => {
                assert_eq!(cancelled.expect("it is there")["resultType"], "complete");
                if task.is_open() {
                    task.end(TaskStatus::Cancelled);
                }
            }
        }
    }

    /// The program does something with a task.
    fn program(&mut self, at: usize, u: &mut Unstructured<'_>) -> Result<()> {
        let (now, state) = (self.now, &mut self.state);
        let task = &mut self.live[at];
        let (token, is_open) = (task.token, task.is_open());
        match u.int_in_range(0..=5)? {
            0 => {
                let text = "t".repeat(u.int_in_range(0..=300)?);
                let done = complete(&SERVICE, state, token, now, |_, call| call.text(&*text));
                assert_eq!(done, if is_open { Ok(()) } else { Err(TaskError::Over) });
                if is_open {
                    // Failed without room for the result.
                    let status = state.tasks.status(token).expect("it is there");
                    assert!(matches!(status, TaskStatus::Completed | TaskStatus::Failed));
                    task.end(status);
                }
            }
            1 => {
                let failed = state.tasks.fail(token, now, &RpcError::internal("broken"));
                assert_eq!(failed, if is_open { Ok(()) } else { Err(TaskError::Over) });
                if is_open {
                    task.end(TaskStatus::Failed);
                }
            }
            2 => {
                let keys: Vec<&'static str> =
                    (0..u.int_in_range(1..=4)?).map(|_| u.choose(&KEYS).copied()).collect::<Result<_>>()?;
                let questions: Vec<_> = keys.iter().map(|key| InputRequest::elicit(key, "?", FORM)).collect();
                let twice = (1..keys.len()).any(|n| keys[..n].contains(&keys[n]));
                let is_new = !twice && !keys.iter().any(|key| task.asked.contains(key));
                match state.tasks.ask(token, now, &questions) {
                    Ok(()) => {
                        assert!(is_open && is_new);
                        task.asked.extend(&keys);
                        task.open.extend(&keys);
                        (task.status, task.changed) = (TaskStatus::InputRequired, true);
                    }
                    Err(error) => match error {
                        TaskError::Over => assert!(!is_open),
                        TaskError::NotNew => assert!(!is_new),
                        error => assert_eq!(error, TaskError::NoRoom),
                    },
                }
            }
            3 => {
                let message = "m".repeat(u.int_in_range(0..=100)?);
                let set = state.tasks.set_message(token, now, &message);
                assert!(matches!(set, Ok(()) | Err(TaskError::NoRoom)));
                task.changed = true;
            }
            4 => {
                let millis = *u.choose(&[1, 50, u64::MAX])?;
                assert_eq!(state.tasks.keep_for(token, now, millis), Ok(()));
                task.ttl = Some((now - task.created).saturating_add(millis));
                task.changed = true;
            }
            _ => {
                state.tasks.forget(token);
                self.stale.push(token);
                self.live.remove(at);
            }
        }
        Ok(())
    }

    /// A token of a forgotten task reaches nothing.
    fn stale(&mut self, token: TaskToken) {
        let state = &mut self.state;
        assert_eq!((state.tasks.status(token), state.tasks.id(token).is_some()), (None, false));
        assert_eq!(complete(&SERVICE, state, token, self.now, |_, _| panic!("it runs")), Err(TaskError::Over));
        let tasks = &mut state.tasks;
        assert_eq!(tasks.cancel(token, self.now), Err(TaskError::Over));
        assert_eq!(tasks.ask(token, self.now, &[InputRequest::elicit("a", "?", FORM)]), Err(TaskError::Over));
        assert_eq!(tasks.set_message(token, self.now, "m"), Err(TaskError::Over));
        assert_eq!(tasks.keep_for(token, self.now, 1), Err(TaskError::Over));
        assert!(tasks.answer(token, "a").is_none());
        tasks.forget(token);
    }

    fn listen(&mut self, user: Option<&str>) {
        if self.listens.len() == 3 {
            return;
        }
        let all: Vec<_> = self.live.iter().map(|task| task.id.clone()).chain(["none".into()]).collect();
        let own: Vec<_> = self.live.iter().filter(|task| task.user == user).map(|task| task.id.clone()).collect();
        let heard = self.send(user, "subscriptions/listen", json!({ "notifications": { "taskIds": all } }));
        let agreed = &heard[0]["params"]["notifications"]["taskIds"];
        let agreed: Vec<String> = serde_json::from_value(agreed.clone()).unwrap_or_default();
        assert_eq!(agreed, own);
        self.listens.push((self.requests, own));
    }

    /// The loop publishes changes: each listen hears the present state of each of its tasks that has changed.
    fn publish(&mut self) {
        let mut changed = Vec::new();
        while let Some(id) = self.state.tasks.next_change() {
            self.server.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
            changed.push(id.as_str().to_owned());
        }
        let mut expected: Vec<_> = self.live.iter().filter(|task| task.changed).map(|task| task.id.clone()).collect();
        changed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(changed, expected);
        let mut out = LineSink::new(Vec::new());
        let _ = SERVICE.pull(&self.state, &mut self.server, &mut out);
        let mut heard = Vec::new();
        for line in lines(&out) {
            assert_eq!(line["method"], "notifications/tasks");
            let params = &line["params"];
            let listen = params["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64();
            let id = params["taskId"].as_str().expect("it names its task").to_owned();
            let task = self.live.iter().find(|task| task.id == id).expect("the task is there");
            assert_eq!(params["status"], task.status.name());
            heard.push((listen.expect("it names its listen"), id));
        }
        let due = |(listen, ids): &(u64, Vec<String>)| {
            let due = changed.iter().filter(|id| ids.contains(id));
            due.map(|id| (*listen, id.clone())).collect::<Vec<_>>()
        };
        let mut expected: Vec<_> = self.listens.iter().flat_map(due).collect();
        heard.sort_unstable();
        expected.sort_unstable();
        assert_eq!(heard, expected);
        self.live.iter_mut().for_each(|task| task.changed = false);
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.expire();
        let user = *u.choose(&USERS)?;
        let mut at = u.int_in_range(0..=SLOTS)?;
        at = at.min(self.live.len());
        let id = self.live.get(at).map_or("none".to_owned(), |task| task.id.clone());
        // Most requests come from the owner.
        let user = if u.ratio(1, 4)? { user } else { self.live.get(at).map_or(user, |task| task.user) };
        match u.int_in_range(0..=12)? {
            0 | 1 => self.begin(u)?,
            2 | 3 => self.get(&id, user),
            4 | 5 => self.update(&id, user, u)?,
            6 => self.cancel(&id, user),
            7..=9 if at < self.live.len() => self.program(at, u)?,
            10 => self.publish(),
            11 => self.listen(user),
            12 => {
                // Anything in the place of the params.
                let values = [json!(7), json!(null), json!([]), json!({ "a": 7 }), json!("\u{0}\"\\"), json!(id)];
                let method = *u.choose(&["tasks/get", "tasks/update", "tasks/cancel"])?;
                let (target, responses) = (u.choose(&values[..5])?.clone(), u.choose(&values)?.clone());
                assert_eq!(
                    self.ask(user, method, json!({ "taskId": target, "inputResponses": responses })),
                    Err(-32602)
                );
            }
            _ => self.now += *u.choose(&[1, 10, 100])?,
        }
        if let Some(token) = self.stale.pop() {
            self.stale(token);
        }
        while let Some(token) = self.state.tasks.next_answered() {
            let task = self.live.iter().find(|task| task.token == token).expect("the task is there");
            assert!(
                task.status == TaskStatus::Working
                    && task.asked.iter().all(|key| self.state.tasks.answer(token, key).is_some())
            );
        }
        while let Some(token) = self.state.tasks.next_cancelled() {
            assert!(self.live.iter().any(|task| task.token == token && task.status == TaskStatus::Cancelled));
        }
        assert_eq!(self.state.tasks.count(), self.live.len());
        Ok(())
    }
}

pub(crate) fn lines(out: &LineSink<Vec<u8>>) -> Vec<Value> {
    let text = std::str::from_utf8(out.pending()).expect("it is text");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let bytes = *u.choose(&[0, 100, 400, 2000])?;
    let tasks = Tasks::growing(SLOTS, bytes);
    let mut world = World {
        server: Server::growing(MessageLimits::default()),
        state: State { tasks, options: TaskOptions::new([0; 16]), begun: None },
        now: 0,
        made: 0,
        live: Vec::new(),
        stale: Vec::new(),
        listens: Vec::new(),
        requests: 0,
    };
    while !u.is_empty() {
        world.step(u)?;
    }
    world.expire();
    for task in 0..world.live.len() {
        let (id, user) = (world.live[task].id.clone(), world.live[task].user);
        world.get(&id, user);
    }
    Ok(())
}
