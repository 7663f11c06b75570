//! Tasks in a fleet: begun at one process, polled, answered, cancelled and listened to at the others, which may fail.
#![cfg(feature = "alloc")]

use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Millis, Server, ServerChange};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, SessionSeal, StreamId,
    StreamStatus,
};
use mcp_sansio_http::fleet::{Engine, FleetLimits, MemoryEngine, MemoryHub, ProcessTag};
use mcp_sansio_http::seal::HmacSeal;
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
    let (token, done) = begin(world, call, &TaskOptions::new(random).ttl(600_000))?;
    world.begun.push(token);
    Ok(done)
}

static TOOLS: [Tool<World>; 1] = [task_support(Tool::new("work", "Works", work), TaskSupport::Required)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);
const UNKNOWN: &str = "There is no such task";
const ENDED: &str = "The process that worked on the task has ended";
const UNREACHED: &str = "The process that can answer did not answer in time: try again";

/// A client: its user, and its session in 2025-11-25.
#[derive(Clone)]
struct Peer {
    session: Option<String>,
    user: &'static str,
}

const ANNA: Peer = Peer { session: None, user: "anna" };
const BERT: Peer = Peer { session: None, user: "bert" };

/// A process.
struct Site {
    endpoint: Endpoint<'static>,
    engine: MemoryEngine,
    world: World,
    now: Millis,
    random: u8,
    /// The last id of a request.
    asked: u64,
}

const USERS: [&str; 8] = ["anna", "bert", "cora", "dora", "emil", "finn", "gina", "hugo"];

fn user(head: &RequestHead<'_>) -> Access<'static> {
    Access::Granted { principal: USERS.into_iter().find(|user| head.text("x-user") == Some(user)) }
}

impl Site {
    fn new(hub: &MemoryHub, number: u32, limits: FleetLimits) -> Self {
        Site::with(hub, number, limits, EndpointConfig::DEFAULT.request_share(2).keep_alive(0))
    }

    fn with(hub: &MemoryHub, number: u32, limits: FleetLimits, config: EndpointConfig<'static>) -> Self {
        let engine = hub.join(ProcessTag::new(number));
        let world = World { tasks: Tasks::growing(8, 65_536).process(engine.tag().number()), begun: Vec::new() };
        let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
        let seal = SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[7; 32]))));
        let endpoint = Endpoint::growing(config, server, EndpointLimits::default()).seal_sessions(seal);
        let endpoint = endpoint.join_fleet(engine.tag(), limits);
        let (random, asked) = (number as u8 * 50, u64::from(number) * 1000);
        Site { endpoint, engine, world, now: 0, random, asked }
    }

    /// Posts a message, again if it waits for what was set in its session. Returns the status, the session that begins, and the body or the
    /// stream.
    fn post(&mut self, peer: &Peer, message: &Value) -> (u16, Option<String>, Result<Value, StreamId>) {
        let answer = self.post_once(peer, message);
        if answer.0 != 503 {
            return answer;
        }
        self.meet();
        self.post_once(peer, message)
    }

    fn post_once(&mut self, peer: &Peer, message: &Value) -> (u16, Option<String>, Result<Value, StreamId>) {
        let body = message.to_string();
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
            ("x-user", peer.user.as_bytes()),
        ];
        let name = message["params"]["taskId"].as_str().or(message["params"]["name"].as_str()).unwrap_or("").to_owned();
        let method = message["method"].as_str().unwrap_or("");
        match &peer.session {
            Some(session) if !session.is_empty() => {
                headers.push(("mcp-session-id", session.as_bytes()));
                headers.push(("mcp-protocol-version", b"2025-11-25"));
            }
            Some(_) => {}
            None => {
                headers.push(("mcp-protocol-version", b"2026-07-28"));
                headers.push(("mcp-method", method.as_bytes()));
                if !name.is_empty() {
                    headers.push(("mcp-name", name.as_bytes()));
                }
            }
        }
        let headers: &[(&str, &[u8])] = &headers;
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let mut app = App::new(const { &SERVICE }, &mut self.world).authorize(&|head| user(head));
        let mut out = LineSink::new(Vec::new());
        let mut random = |bytes: &mut [u8]| {
            self.random = self.random.wrapping_add(1);
            bytes.fill(self.random);
        };
        let response = self.endpoint.request(&mut app, &head, body.as_bytes(), self.now, &mut random, &mut out);
        let mut session = None;
        response.headers(&mut |name, value| {
            if name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value.to_owned());
            }
        });
        let content = match response.content {
            ResponseBody::Stream(id) => Err(id),
            _ => Ok(serde_json::from_slice(out.pending()).unwrap_or(Value::Null)),
        };
        (response.status, session, content)
    }

    fn open(&mut self, user: &'static str) -> Peer {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let new = Peer { session: Some(String::new()), user };
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let (_, session, _) = self.post(&new, &message);
        let peer = Peer { session: Some(session.unwrap()), user };
        let noted = self.post(&peer, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(noted.0, 202);
        peer
    }

    /// Sends a request.
    fn send(&mut self, peer: &Peer, method: &str, mut params: Value) -> Result<Value, StreamId> {
        if peer.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: {} }, "elicitation": {} },
            });
        }
        self.asked += 1;
        self.post(peer, &json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params })).2
    }

    fn pull(&mut self, stream: StreamId) -> (Vec<Value>, bool) {
        let mut out = LineSink::new(Vec::new());
        let status = self.endpoint.pull(stream, &mut App::new(const { &SERVICE }, &mut self.world), self.now, &mut out);
        let text = String::from_utf8(out.pending().to_vec()).unwrap();
        let events = text.split("\n\n").filter_map(|event| Some(event.split_once("data: ")?.1.trim()));
        let messages = events.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect();
        (messages, matches!(status, StreamStatus::End | StreamStatus::Stale))
    }

    fn meet(&mut self) {
        let mut app = App::new(const { &SERVICE }, &mut self.world);
        while let Some(id) = app.state.tasks.next_change() {
            self.endpoint.publish(ServerChange::Topic { member: "taskIds", key: id.as_str() });
        }
        while let Some(request) = app.state.tasks.next_resumable() {
            let _ = self.endpoint.resume(&mut app, request);
        }
        while self.endpoint.meet_fleet(&mut app, &mut self.engine, self.now) {}
    }

    /// Lets time pass.
    fn wait(&mut self, millis: Millis) {
        let end = self.now + millis;
        while let Some(deadline) = self.endpoint.next_deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.endpoint.expire(&mut App::new(const { &SERVICE }, &mut self.world), self.now);
        }
        self.now = end;
    }

    fn in_flight(&self) -> usize {
        self.endpoint.load().0
    }
}

struct Fleet {
    hub: MemoryHub,
    sites: Vec<Site>,
}

impl Fleet {
    fn new() -> Self {
        Fleet::limited(FleetLimits::default())
    }

    fn limited(limits: FleetLimits) -> Self {
        let hub = MemoryHub::new();
        let sites = (1..=3).map(|number| Site::new(&hub, number, limits)).collect();
        let mut fleet = Fleet { hub, sites };
        fleet.settle();
        // Each knows all others then.
        fleet.sites.iter_mut().for_each(|site| site.wait(limits.join_within));
        fleet
    }

    /// Lets all processes meet until nothing is on its way.
    fn settle(&mut self) {
        for _ in 0..6 {
            self.sites.iter_mut().for_each(Site::meet);
        }
    }

    /// A client of an era.
    fn peer(&mut self, modern: bool, user: &'static str) -> Peer {
        if modern { Peer { session: None, user } } else { self.sites[2].open(user) }
    }

    /// Sends a request to a process, and returns its answer.
    fn ask(&mut self, at: usize, peer: &Peer, method: &str, params: Value) -> Value {
        match self.sites[at].send(peer, method, params) {
            Ok(answer) => answer,
            Err(stream) => {
                self.settle();
                let (mut messages, ended) = self.sites[at].pull(stream);
                assert!(ended && messages.len() == 1, "{messages:?} {ended}");
                assert_eq!(messages[0]["id"], self.sites[at].asked);
                messages.remove(0)
            }
        }
    }

    fn begin(&mut self, peer: &Peer) -> (TaskToken, String) {
        let created = self.ask(0, peer, "tools/call", json!({ "name": "work", "task": {} }));
        let created = if peer.session.is_none() { &created["result"] } else { &created["result"]["task"] };
        let id = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        self.settle();
        (*self.sites[0].world.begun.last().unwrap(), id)
    }

    fn get(&mut self, at: usize, peer: &Peer, id: &str) -> Value {
        self.ask(at, peer, "tasks/get", json!({ "taskId": id }))
    }

    fn complete(&mut self, token: TaskToken) {
        complete(&SERVICE, &mut self.sites[0].world, token, 5, |_, call| call.text("done")).unwrap();
        self.settle();
    }

    /// Ends the process of the tasks.
    fn kill(&mut self) {
        self.settle();
        self.hub.kill(ProcessTag::new(1));
        self.settle();
    }

    fn idle(&self) -> bool {
        self.sites.iter().all(|site| site.in_flight() == 0)
    }
}

#[test]
fn begun_at_one_and_used_at_the_others() {
    for modern in [true, false] {
        let mut fleet = Fleet::new();
        let peer = fleet.peer(modern, "anna");
        let (token, id) = fleet.begin(&peer);
        for at in 0..3 {
            assert_eq!(fleet.get(at, &peer, &id)["result"]["status"], "working", "{modern} {at}");
        }
        fleet.complete(token);
        for at in 0..3 {
            assert_eq!(fleet.get(at, &peer, &id)["result"]["status"], "completed", "{modern} {at}");
        }
        let (token, id) = fleet.begin(&peer);
        let cancelled = fleet.ask(2, &peer, "tasks/cancel", json!({ "taskId": id }));
        assert!(cancelled.get("result").is_some(), "{cancelled}");
        assert_eq!(fleet.sites[0].world.tasks.next_cancelled(), Some(token));
        assert_eq!(fleet.get(1, &peer, &id)["result"]["status"], "cancelled");
        assert!(fleet.idle());
    }
}

#[test]
fn a_question_is_answered_at_another_process() {
    let mut fleet = Fleet::new();
    let (token, id) = fleet.begin(&ANNA);
    fleet.sites[0].world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    let got = fleet.get(1, &ANNA, &id);
    assert_eq!(got["result"]["inputRequests"]["sure"]["method"], "elicitation/create");
    let answers = json!({ "sure": { "action": "accept", "content": { "sure": true } } });
    let taken = fleet.ask(2, &ANNA, "tasks/update", json!({ "taskId": id, "inputResponses": answers }));
    assert_eq!(taken["result"]["resultType"], "complete");
    assert_eq!(fleet.sites[0].world.tasks.next_answered(), Some(token));
}

#[test]
fn a_result_is_waited_for_at_another_process() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (token, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    // Longer than the deadline: its process works on it.
    for _ in 0..24 {
        fleet.sites.iter_mut().for_each(|site| site.wait(2_500));
        fleet.settle();
    }
    assert_eq!(fleet.sites[1].pull(stream), (vec![], false));
    fleet.sites[0].world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    fleet.settle();
    let (asked, ended) = fleet.sites[1].pull(stream);
    assert_eq!((asked[0]["method"].as_str(), asked.len(), ended), (Some("elicitation/create"), 1, false));
    fleet.complete(token);
    let (mut got, ended) = fleet.sites[1].pull(stream);
    let got = got.pop().unwrap();
    assert!(ended && fleet.idle());
    assert_eq!((&got["id"], &got["result"]["content"][0]["text"]), (&json!(fleet.sites[1].asked), &json!("done")));
}

#[test]
fn a_client_that_is_gone_needs_no_answer() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (_, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    assert_eq!((fleet.sites[0].in_flight(), fleet.sites[1].in_flight()), (1, 1));
    let asked = fleet.sites[1].asked;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": asked } });
    assert_eq!(fleet.sites[1].post(&peer, &cancel).0, 202);
    fleet.settle();
    assert_eq!(fleet.sites[1].pull(stream), (vec![], true));
    assert!(fleet.idle());
}

#[test]
fn other_users_and_other_ids_have_no_task() {
    for modern in [true, false] {
        let mut fleet = Fleet::new();
        let (anna, bert) = (fleet.peer(modern, "anna"), fleet.peer(modern, "bert"));
        let (_, id) = fleet.begin(&anna);
        let forged = |process: &str| format!("{process}{}", &id[5..]);
        for (peer, id) in [(&bert, id.clone()), (&anna, forged("00002")), (&anna, forged("00009"))] {
            for method in ["tasks/get", "tasks/cancel"] {
                for at in 0..3 {
                    let refused = fleet.ask(at, peer, method, json!({ "taskId": id }));
                    assert_eq!(refused["error"]["message"], UNKNOWN, "{modern} {method} {id} {at}");
                }
            }
        }
        fleet.kill();
        assert_eq!(fleet.get(1, &bert, &id)["error"]["message"], UNKNOWN);
        assert_eq!(fleet.get(1, &anna, &id)["result"]["status"], "failed");
    }
}

#[test]
fn its_process_ends() {
    for modern in [true, false] {
        let mut fleet = Fleet::new();
        let peer = fleet.peer(modern, "anna");
        let (token, id) = fleet.begin(&peer);
        let (_, working) = fleet.begin(&peer);
        fleet.complete(token);
        let waits =
            (!modern).then(|| fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": working })).unwrap_err());
        fleet.kill();
        if let Some(stream) = waits {
            let (told, ended) = fleet.sites[1].pull(stream);
            assert!(ended && told[0]["error"]["message"] == ENDED, "{told:?}");
            let result = fleet.ask(2, &peer, "tasks/result", json!({ "taskId": id }));
            assert_eq!(result["result"]["content"][0]["text"], "done");
        }
        for at in 1..3 {
            assert_eq!(fleet.get(at, &peer, &id)["result"]["status"], "completed", "{modern}");
            let failed = fleet.get(at, &peer, &working);
            assert_eq!(failed["result"]["status"], "failed", "{modern}");
            assert_eq!(failed["result"]["statusMessage"], ENDED, "{modern}");
        }
        assert_eq!((fleet.sites[1].in_flight(), fleet.sites[2].in_flight()), (0, 0));
        // It is kept for its time to live.
        fleet.hub.advance(700_000);
        assert_eq!(fleet.get(1, &peer, &id)["error"]["message"], UNKNOWN);
    }
}

#[test]
fn a_process_that_does_not_answer_in_time() {
    let mut fleet = Fleet::new();
    let (_, id) = fleet.begin(&ANNA);
    fleet.hub.hold();
    let stream = fleet.sites[1].send(&ANNA, "tasks/get", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.sites[1].wait(4_999);
    assert_eq!(fleet.sites[1].pull(stream), (vec![], false));
    fleet.sites[1].wait(1);
    let (told, ended) = fleet.sites[1].pull(stream);
    assert!(ended && told[0]["error"]["message"] == UNREACHED && told[0]["error"]["code"] == -32603);
    // What comes too late does no harm.
    fleet.hub.release();
    fleet.settle();
    assert!(fleet.idle());
    assert_eq!(fleet.get(1, &ANNA, &id)["result"]["status"], "working");
}

#[test]
fn a_state_that_is_not_read_in_time() {
    let mut fleet = Fleet::new();
    let (_, id) = fleet.begin(&ANNA);
    fleet.kill();
    fleet.hub.hold();
    let stream = fleet.sites[1].send(&ANNA, "tasks/get", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.sites[1].wait(5_000);
    let (told, ended) = fleet.sites[1].pull(stream);
    assert!(ended && told[0]["error"]["message"] == UNREACHED, "{told:?}");
    fleet.hub.release();
    fleet.settle();
    assert_eq!(fleet.get(1, &ANNA, &id)["result"]["status"], "failed");
}

#[test]
fn a_process_that_is_alone() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (_, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.hub.cut(ProcessTag::new(2));
    fleet.settle();
    let (told, ended) = fleet.sites[1].pull(stream);
    assert!(ended && told[0]["error"]["message"] == UNREACHED, "{told:?}");
    assert_eq!(fleet.get(1, &peer, &id)["error"]["message"], UNREACHED);
    // The other one does not wait for it any more.
    assert!(fleet.idle());
    fleet.hub.heal(ProcessTag::new(2));
    fleet.settle();
    assert_eq!(fleet.get(1, &peer, &id)["result"]["status"], "working");
}

#[test]
fn lost_messages_end_what_waits() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (token, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    // The other process says again and again that it works on it.
    for _ in 0..5 {
        fleet.sites.iter_mut().for_each(|site| site.wait(2_500));
        fleet.settle();
        assert_eq!(fleet.sites[1].pull(stream), (vec![], false));
    }
    // Its answer is lost.
    fleet.hub.lose(9);
    fleet.complete(token);
    fleet.hub.lose(0);
    for _ in 0..2 {
        assert_eq!(fleet.sites[1].pull(stream), (vec![], false));
        fleet.sites.iter_mut().for_each(|site| site.wait(2_500));
        fleet.settle();
    }
    let (told, ended) = fleet.sites[1].pull(stream);
    assert!(ended && told[0]["error"]["message"] == UNREACHED, "{told:?}");
    assert!(fleet.idle());
    // A message to one that is lost has a deadline.
    fleet.hub.lose(1);
    let stream = fleet.sites[1].send(&peer, "tasks/get", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.sites[1].wait(5_000);
    assert_eq!(fleet.sites[1].pull(stream).0[0]["error"]["message"], UNREACHED);
}

/// A process that was silent for a while counts as gone: it learns that its requests are not worked on any more.
#[test]
fn a_process_that_was_silent() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (_, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.hub.suspect(ProcessTag::new(2));
    fleet.settle();
    let (told, ended) = fleet.sites[1].pull(stream);
    assert!(ended && told[0]["error"]["code"] == -32603, "{told:?}");
    assert!(fleet.idle());
}

/// A process serves before its engine has answered.
#[test]
fn a_process_that_has_just_started() {
    let mut fleet = Fleet::new();
    let (_, id) = fleet.begin(&ANNA);
    let new = Site::new(&fleet.hub, 4, FleetLimits::default());
    fleet.sites.push(new);
    assert_eq!(fleet.get(3, &ANNA, &id)["result"]["status"], "working");
}

/// The sessions of a user are counted, also those that begin with a request of another process, before this one has had a
/// request of its own and with it random bytes.
#[test]
fn a_session_that_another_process_has_named_counts() {
    let mut fleet = Fleet::new();
    // Their index has several rows then.
    let peers = USERS.map(|user| fleet.peer(false, user));
    let (_, id) = fleet.begin(&peers[0]);
    fleet.kill();
    let config = EndpointConfig::DEFAULT.session_share(1).session_rest(0);
    // The old one leaves first: it has the same tag.
    drop(fleet.sites.remove(0));
    fleet.sites.insert(0, Site::with(&fleet.hub, 1, FleetLimits::default(), config));
    fleet.settle();
    for peer in &peers {
        fleet.get(1, peer, &id);
    }
    assert_eq!(fleet.sites[0].endpoint.load().1, USERS.len());
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    for user in USERS {
        let new = Peer { session: Some(String::new()), user };
        assert_eq!(fleet.sites[0].post(&new, &message).0, 503, "{user} has a session already");
    }
}

#[test]
fn full_limits() {
    let mut fleet = Fleet::limited(FleetLimits { relayed: 0, ..FleetLimits::default() });
    let (_, id) = fleet.begin(&ANNA);
    let refused = fleet.get(1, &ANNA, &id);
    assert_eq!(refused["error"]["message"], "Overloaded: too many requests of other processes");

    let mut fleet = Fleet::limited(FleetLimits { relay_bytes: 1_000, ..FleetLimits::default() });
    let (token, id) = fleet.begin(&ANNA);
    assert_eq!(fleet.get(1, &ANNA, &id)["result"]["status"], "working");
    let long = "x".repeat(1_000);
    let asked = fleet.ask(1, &ANNA, "tasks/update", json!({ "taskId": id, "inputResponses": { "a": { "b": long } } }));
    assert_eq!(asked["error"]["message"], "The request is too large for another process");
    complete(&SERVICE, &mut fleet.sites[0].world, token, 5, |_, call| call.text(&*long)).unwrap();
    assert_eq!(
        fleet.get(1, &ANNA, &id)["error"]["message"],
        "The other process has not answered, or its answer is too large"
    );
    assert!(fleet.idle());

    // A client has its share where its requests have come, however many processes work on them.
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (_, id) = fleet.begin(&peer);
    for _ in 0..2 {
        fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    }
    let refused = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap();
    assert_eq!(refused["error"]["code"], -32603);
}

/// Opens a listen for a task.
fn listen(fleet: &mut Fleet, at: usize, peer: &Peer, id: &str) -> (StreamId, Value) {
    let wanted = json!({ "notifications": { "taskIds": [id] } });
    let stream = fleet.sites[at].send(peer, "subscriptions/listen", wanted).unwrap_err();
    let (mut acknowledged, _) = fleet.sites[at].pull(stream);
    (stream, acknowledged.remove(0))
}

#[test]
fn a_listen_at_another_process() {
    let mut fleet = Fleet::new();
    let (token, id) = fleet.begin(&ANNA);
    let (anna, acknowledged) = listen(&mut fleet, 1, &ANNA, &id);
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]));
    let (bert, _) = listen(&mut fleet, 1, &BERT, &id);
    fleet.settle();
    fleet.sites[0].world.tasks.set_message(token, 1, "half").unwrap();
    fleet.settle();
    let (told, _) = fleet.sites[1].pull(anna);
    let params = &told[0]["params"];
    assert_eq!((told.len(), &told[0]["method"]), (1, &json!("notifications/tasks")));
    assert_eq!((&params["taskId"], &params["statusMessage"]), (&json!(id), &json!("half")));
    assert!(params["_meta"].is_object());
    fleet.complete(token);
    let (told, _) = fleet.sites[1].pull(anna);
    assert_eq!(told[0]["params"]["result"]["content"][0]["text"], "done");
    assert_eq!(fleet.sites[1].pull(bert), (vec![], false));
    // Nothing new to say about it.
    fleet.kill();
    assert_eq!(fleet.sites[1].pull(anna), (vec![], false));
}

#[test]
fn a_listen_hears_that_the_process_has_ended() {
    let mut fleet = Fleet::new();
    let (token, id) = fleet.begin(&ANNA);
    let (anna, _) = listen(&mut fleet, 1, &ANNA, &id);
    fleet.sites[0].world.tasks.set_message(token, 1, "half").unwrap();
    fleet.settle();
    fleet.sites[1].pull(anna);
    fleet.kill();
    let (told, _) = fleet.sites[1].pull(anna);
    assert_eq!((&told[0]["params"]["status"], told.len()), (&json!("failed"), 1));
    assert_eq!(told[0]["params"]["error"]["message"], ENDED);
}

#[test]
fn states_within_their_limit() {
    let mut fleet = Fleet::limited(FleetLimits { states_bytes: 300, ..FleetLimits::default() });
    let (token, id) = fleet.begin(&ANNA);
    let (stream, _) = listen(&mut fleet, 1, &ANNA, &id);
    fleet.sites[0].world.tasks.set_message(token, 1, &"x".repeat(300)).unwrap();
    fleet.settle();
    assert_eq!(fleet.sites[1].pull(stream), (vec![], false));
}

#[test]
fn the_share_of_a_user_counts_over_all() {
    let mut fleet = Fleet::new();
    let (anna, bert) = (fleet.peer(false, "anna"), fleet.peer(false, "bert"));
    let (token, id) = fleet.begin(&anna);
    let (_, of_bert) = fleet.begin(&bert);
    let refused =
        |fleet: &mut Fleet, at: usize| match fleet.sites[at].send(&anna, "tasks/result", json!({ "taskId": id })) {
            Ok(refused) => {
                assert_eq!(refused["error"]["code"], -32603);
                true
            }
            Err(stream) => {
                let asked = fleet.sites[at].asked;
                let params = json!({ "requestId": asked });
                let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                assert_eq!(fleet.sites[at].post(&anna, &cancel).0, 202);
                fleet.sites[at].pull(stream);
                fleet.settle();
                false
            }
        };
    let fill = |fleet: &mut Fleet| {
        for _ in 0..2 {
            fleet.sites[0].send(&anna, "tasks/result", json!({ "taskId": id })).unwrap_err();
        }
        fleet.sites.iter_mut().for_each(|site| site.wait(200));
        fleet.settle();
    };
    assert!(!refused(&mut fleet, 1));
    fill(&mut fleet);
    assert!(refused(&mut fleet, 1) && refused(&mut fleet, 2) && refused(&mut fleet, 0));
    // Requests that are answered at once need no place, and others have their own share.
    assert!(fleet.sites[1].send(&anna, "tools/list", json!({})).unwrap().get("result").is_some());
    assert!(fleet.sites[1].send(&bert, "tasks/result", json!({ "taskId": of_bert })).is_err());
    // It is said again before it is old.
    for _ in 0..40 {
        fleet.sites.iter_mut().for_each(|site| site.wait(200));
        fleet.settle();
    }
    assert!(refused(&mut fleet, 1));
    fleet.complete(token);
    fleet.sites.iter_mut().for_each(|site| site.wait(200));
    fleet.settle();
    assert!(!refused(&mut fleet, 1));
}

#[test]
fn only_the_busiest_are_counted() {
    let mut fleet = Fleet::limited(FleetLimits { principals: 1, ..FleetLimits::default() });
    let peers = [fleet.peer(false, "anna"), fleet.peer(false, "bert")];
    let tasks: Vec<_> = peers.iter().map(|peer| fleet.begin(peer).1).collect();
    for (peer, id) in peers.iter().zip(&tasks) {
        fleet.sites[0].send(peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    }
    fleet.sites[0].send(&peers[1], "tasks/result", json!({ "taskId": tasks[1] })).unwrap_err();
    fleet.sites.iter_mut().for_each(|site| site.wait(200));
    fleet.settle();
    // One has two, the other one has one that the others do not know of.
    assert!(fleet.sites[1].send(&peers[1], "tasks/result", json!({ "taskId": tasks[1] })).is_ok());
    for _ in 0..2 {
        assert!(fleet.sites[1].send(&peers[0], "tasks/result", json!({ "taskId": tasks[0] })).is_err());
    }
}

#[test]
fn shares_of_silent_processes_do_not_count() {
    for leaves in [true, false] {
        let mut fleet = Fleet::new();
        let anna = fleet.peer(false, "anna");
        let (_, id) = fleet.begin(&anna);
        // A task of the second process, which stays.
        let created = fleet.ask(1, &anna, "tools/call", json!({ "name": "work", "task": {} }));
        let other = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        for _ in 0..2 {
            fleet.sites[0].send(&anna, "tasks/result", json!({ "taskId": id })).unwrap_err();
        }
        fleet.sites.iter_mut().for_each(|site| site.wait(200));
        fleet.settle();
        assert!(fleet.sites[1].send(&anna, "tasks/result", json!({ "taskId": other })).is_ok());
        if leaves {
            fleet.kill();
        } else {
            fleet.sites[1].wait(4_999);
            assert!(fleet.sites[1].send(&anna, "tasks/result", json!({ "taskId": other })).is_ok());
            fleet.sites[1].wait(1);
        }
        assert!(fleet.sites[1].send(&anna, "tasks/result", json!({ "taskId": other })).is_err(), "{leaves}");
    }
}

#[test]
fn the_answer_to_a_question_comes_to_a_third_process() {
    let mut fleet = Fleet::new();
    let peer = fleet.peer(false, "anna");
    let (token, id) = fleet.begin(&peer);
    let stream = fleet.sites[1].send(&peer, "tasks/result", json!({ "taskId": id })).unwrap_err();
    fleet.settle();
    fleet.sites[0].world.tasks.ask(token, 1, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    fleet.settle();
    let (asked, _) = fleet.sites[1].pull(stream);
    let result = json!({ "action": "accept", "content": { "sure": true } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "result": result });
    assert_eq!(fleet.sites[2].post(&peer, &answer).0, 202);
    fleet.settle();
    assert_eq!(fleet.sites[0].world.tasks.next_answered(), Some(token));
    fleet.complete(token);
    let (got, ended) = fleet.sites[1].pull(stream);
    assert_eq!((&got[0]["result"]["content"][0]["text"], ended), (&json!("done"), true));
    assert!(fleet.idle());
}
