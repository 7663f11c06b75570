//! A client that follows a task of a server which answers anything, made from the fuzzer's bytes.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use mcp_sansio::client::result::ClientResult;
use mcp_sansio::client::{Client, ClientEvent, ClientInfo, RequestError, SendError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::revision::Revision;
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::client::{
    DECLARATION, FollowLimits, RESULT_TYPES, TaskEvent, TaskFollower, TaskHandle, TaskStep,
};
use serde_json::{Value, json};

const ID: &str = "a task";
const KEYS: [&str; 4] = ["a", "b", "\u{e9}\"\\", ""];
/// The most questions of a task.
const QUESTIONS: usize = 3;
const AT_MOST: u64 = 10_000;

static PROFILE: ClientInfo<'static> =
    ClientInfo::new("follower", "1").extensions(DECLARATION, RESULT_TYPES).feature(ClientCapability::ElicitForm);

fn limits() -> FollowLimits {
    FollowLimits::DEFAULT
        .total_timeout(AT_MOST)
        .poll_interval(50, 2_000)
        .cancel_time(500)
        .failures(2)
        .questions(QUESTIONS)
}

fn connected(revision: Revision) -> Client<'static> {
    let mut engine = Client::growing(&PROFILE);
    engine.connect_as(revision);
    if !revision.is_modern() {
        let mut out = LineSink::new(Vec::new());
        let _ = engine.advance(0, &mut out);
        let sent: Value = serde_json::from_slice(out.pending()).expect("it initializes");
        let result = json!({ "protocolVersion": revision.date(), "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        let answer = json!({ "jsonrpc": "2.0", "id": sent["id"], "result": result }).to_string();
        let _ = engine.receive(answer.as_bytes(), &mut LineSink::new(Vec::new()));
        let _ = engine.advance(0, &mut LineSink::new(Vec::new()));
    }
    assert_eq!(engine.revision(), Some(revision));
    engine
}

struct World {
    task: TaskFollower,
    engine: Client<'static>,
    revision: Revision,
    now: u64,
    /// The time that the follower knows.
    known: u64,
    /// The time at which it must have given up.
    end: Option<u64>,
    /// The time that is left while the end is not known.
    left: u64,
    /// The open questions, and whether they were answered.
    open: BTreeMap<String, bool>,
    /// The keys whose answers the server has taken.
    taken: Vec<String>,
    has_ended: bool,
}

/// Makes a task as a server may show it.
fn shown(u: &mut Unstructured<'_>) -> Result<Value> {
    let id = if u.ratio(1, 30)? { "another" } else { ID };
    let status = *u.choose(&[
        "working",
        "working",
        "input_required",
        "input_required",
        "completed",
        "failed",
        "cancelled",
        "x",
    ])?;
    let mut task = json!({ "resultType": "complete", "taskId": id, "status": status });
    if u.arbitrary()? {
        task["statusMessage"] = json!(u.choose(&["one", "two\u{7}"])?);
    }
    for name in ["ttlMs", "pollIntervalMs", "ttl", "pollInterval"] {
        if u.ratio(1, 4)? {
            task[name] = u.choose(&[json!(0), json!(70), json!(u64::MAX), json!(-1), json!("1"), json!(null)])?.clone();
        }
    }
    let mut requests = serde_json::Map::new();
    for _ in 0..u.int_in_range(0..=3)? {
        let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
        // The last two were not declared, or are nothing.
        let method = if u.ratio(1, 20)? { *u.choose(&["roots/list", "x"])? } else { "elicitation/create" };
        requests.insert((*u.choose(&KEYS)?).into(), json!({ "method": method, "params": form }));
    }
    if u.ratio(15, 16)? {
        task["inputRequests"] = Value::Object(requests);
    }
    for name in ["result", "error"] {
        if u.ratio(15, 16)? {
            task[name] = json!({ "content": [], "code": -32000, "message": "m" });
        }
    }
    Ok(task)
}

/// Reads the text of a handle that a disk or a person has changed, at each place: what is read is written and read again the same.
fn damaged(text: &str) {
    for (at, _) in text.char_indices() {
        let (before, after) = text.split_at(at);
        let cut = format!("{before}{}", after.get(1..).unwrap_or(""));
        let other = format!("{before}1{}", after.get(1..).unwrap_or(""));
        for handle in [before, &cut, &other].into_iter().filter_map(|text| text.parse::<TaskHandle>().ok()) {
            assert!(!handle.id.is_empty());
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
    }
}

/// Reads what might be the result of the call: a task of each era, or something else.
fn begun(result: &Value) {
    let mut task = result.clone();
    task["resultType"] = json!("task");
    for result in [json!({ "task": result }), task, result.clone()] {
        let text = result.to_string();
        if let Ok(Some(handle)) = TaskHandle::of(Raw::parse(text.as_bytes()).expect("it is JSON")) {
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
    }
}

impl World {
    /// Sends a request, and gives the follower what comes back.
    fn send(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let TaskStep::Send(request) = self.task.next(self.now) else { unreachable!("it was asked for a moment ago") };
        let mut out = LineSink::new(Vec::new());
        self.engine.send(&request, &mut out).expect("memory grows");
        let sent: Value = serde_json::from_slice(out.pending()).expect("a request is JSON");
        assert_eq!(sent["params"]["taskId"], ID);
        let method = sent["method"].as_str().expect("it has a method");
        assert_ne!(method, if self.revision.is_modern() { "tasks/result" } else { "tasks/update" });
        let given = sent["params"].get("inputResponses").map(|given| given.as_object().expect("an object"));
        assert_eq!(given.is_some(), method == "tasks/update");
        let given: Vec<String> = given.into_iter().flatten().map(|(key, _)| key.clone()).collect();
        assert!(given.iter().all(|key| self.open.get(key) == Some(&true)), "{given:?} of {:?}", self.open);
        if u.ratio(1, 8)? {
            // A notification overtakes the answer.
            let params = shown(u)?.to_string();
            self.known = self.now;
            self.task.notified(Raw::parse(params.as_bytes()).expect("it is JSON"), self.now, &self.engine);
        }
        self.now += u.int_in_range(0..=100)?;
        let answer = match u.int_in_range(0..=7)? {
            0 => {
                self.lose();
                return Ok(());
            }
            1 => json!({ "error": { "code": u.choose(&[-32602, -32603, -32601, 5])?, "message": "m" } }),
            2 => json!({ "result": *u.choose(&[&json!({}), &json!({ "content": [] })])? }),
            _ => {
                let task = shown(u)?;
                begun(&task);
                json!({ "result": task })
            }
        };
        let mut answer = answer;
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), sent["id"].clone());
        let answer = answer.to_string();
        self.known = self.now;
        match self.engine.receive(answer.as_bytes(), &mut LineSink::new(Vec::new())) {
            Ok(Some(ClientEvent::Done { outcome: Ok(result), .. })) => {
                let result: Vec<u8> = result.as_bytes().to_vec();
                if self.task.awaits_answer() {
                    self.taken.extend(given.iter().cloned());
                    self.open.retain(|key, _| !given.contains(key));
                }
                self.task.answered(Raw::parse(&result).expect("it is JSON"), self.now, &self.engine);
            }
            Ok(Some(ClientEvent::Done { outcome: Err(RequestError::Error(error)), .. })) => {
                let (code, message) = (error.code, error.message.to_string());
                self.task.refused(code, &message, self.now);
            }
            // The client did not take it.
            _ => self.lose(),
        }
        Ok(())
    }

    /// The connection is lost, with the request.
    fn lose(&mut self) {
        self.known = self.now;
        if !self.task.lost(self.now) {
            self.reconnect();
        }
    }

    fn reconnect(&mut self) {
        self.engine = connected(self.revision);
        self.task.reconnected();
        // The clock of the new connection, which the follower knows when it is asked next.
        if let Some(end) = self.end.take() {
            self.left = end.saturating_sub(self.known);
        }
        (self.now, self.known) = (0, 0);
    }

    /// The program starts again with the text that it kept.
    fn restart(&mut self) {
        let text = self.task.handle().to_string();
        let handle: TaskHandle = text.parse().expect("it was written by a handle");
        assert_eq!(&handle, self.task.handle());
        damaged(&text);
        self.task = TaskFollower::resume(handle, limits());
        (self.end, self.left, self.has_ended) = (None, AT_MOST, false);
        self.open.clear();
        self.reconnect();
    }

    fn events(&mut self) {
        while let Some(event) = self.task.event() {
            assert!(!self.has_ended, "{event:?} after the end");
            match event {
                TaskEvent::Asked(question) => {
                    assert!(!self.taken.contains(&question.key), "{question:?} was answered");
                    assert!(self.open.insert(question.key, false).is_none(), "it is asked once");
                    assert!(self.open.len() <= QUESTIONS);
                }
                TaskEvent::Withdrawn(key) => assert!(self.open.remove(&key).is_some(), "it was asked"),
                TaskEvent::Ended(_) => self.has_ended = true,
                _ => {}
            }
        }
    }

    /// Answers a question, or one that there is not.
    fn answer(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let key = *u.choose(&KEYS)?;
        let done = self.task.answer(key, &ClientResult::decline());
        match self.open.get_mut(key).filter(|answered| !**answered && !self.has_ended) {
            Some(answered) if done.is_ok() => *answered = true,
            // Cancelled: no question is open any more.
            _ => assert_eq!(done, Err(SendError::Stale)),
        }
        Ok(())
    }

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.events();
        match u.int_in_range(0..=15)? {
            0 | 1 => self.answer(u)?,
            2 if u.ratio(1, 4)? => self.task.cancel(),
            3 if u.ratio(1, 2)? => self.restart(),
            4 if u.ratio(1, 2)? => self.reconnect(),
            5 => self.task.set_notified(u.arbitrary()?),
            6 => {
                let params = shown(u)?.to_string();
                self.known = self.now;
                self.task.notified(Raw::parse(params.as_bytes()).expect("it is JSON"), self.now, &self.engine);
            }
            7 => self.now += u.int_in_range(0..=3_000)?,
            _ => {
                let end = *self.end.get_or_insert(self.now + self.left);
                self.known = self.now;
                match self.task.next(self.now) {
                    TaskStep::Send(request) => {
                        assert!(self.now < end && request.name.starts_with("tasks/"));
                        self.send(u)?;
                    }
                    TaskStep::Wait(until) => {
                        assert!(self.now < until && until <= end, "{until}, now {}, end {end}", self.now);
                        self.now = if u.arbitrary()? { until } else { self.now };
                    }
                    TaskStep::End => {
                        self.events();
                        assert!(self.has_ended);
                    }
                }
            }
        }
        Ok(())
    }
}

pub fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let revision = if u.ratio(2, 3)? { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
    let mut world = World {
        task: TaskFollower::new(TaskHandle::new(ID, revision), limits()),
        engine: connected(revision),
        revision,
        now: 0,
        known: 0,
        end: None,
        left: AT_MOST,
        open: BTreeMap::new(),
        taken: Vec::new(),
        has_ended: false,
    };
    while !u.is_empty() {
        world.step(u)?;
    }
    // It always ends, and says so once.
    let first = world.task.next(world.now);
    assert!(!world.has_ended || matches!(first, TaskStep::End), "{first:?} after the end");
    let last = world.task.next(world.now.saturating_add(AT_MOST));
    assert!(matches!(last, TaskStep::End), "{last:?}");
    world.events();
    assert!(world.has_ended);
    Ok(())
}
