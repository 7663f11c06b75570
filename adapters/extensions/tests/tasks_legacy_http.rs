//! Tasks of 2025-11-25 over HTTP: the sessions of two users, and requests that wait on streams.
#![cfg(feature = "tasks")]

use mcp_sansio::json::Raw;
use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::service::{Call, Extension, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio::sink::LineSink;
use mcp_sansio_extensions::tasks::{
    HasTasks, TaskOptions, TaskSlot, TaskSupport, TaskToken, Tasks, begin, complete, extension, task_support,
};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, StreamId,
};
use serde_json::{Value, json};

struct World {
    tasks: Tasks<'static>,
    begun: Vec<TaskToken>,
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
    let random = [world.begun.len() as u8; 16];
    let (token, done) = begin(world, call, &TaskOptions::new(random))?;
    world.begun.push(token);
    Ok(done)
}

static TOOLS: [Tool<World>; 1] = [task_support(Tool::new("work", "Works", work), TaskSupport::Required)];
static EXTENSIONS: [Extension<World>; 1] = [extension()];
const SERVICE: Service<'static, World> = Service::new("worker", "1.0").tools(&TOOLS).extend(&EXTENSIONS);
const SCHEMA: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"sure":{"type":"boolean"}}}"#);

/// A client: its session and its user.
#[derive(Clone)]
struct Peer {
    session: String,
    user: &'static str,
}

struct Site {
    endpoint: Endpoint<'static>,
    world: World,
    random: u8,
}

fn user(head: &RequestHead<'_>) -> Access<'static> {
    Access::Granted { principal: ["anna", "bert"].into_iter().find(|user| head.text("x-user") == Some(user)) }
}

impl Site {
    fn new() -> Self {
        let slots: Vec<_> = (0..8).map(|_| TaskSlot::FREE).collect();
        let world = World { tasks: Tasks::new(slots.leak(), vec![0; 4096].leak()), begun: Vec::new() };
        let server = Server::growing(MessageLimits::default());
        let endpoint = Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default());
        Site { endpoint, world, random: 0 }
    }

    /// Posts a message. Returns the status, the session that begins, and the body or the stream.
    fn post(&mut self, peer: &Peer, message: &Value) -> (u16, Option<String>, Result<Value, StreamId>) {
        let body = message.to_string();
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
            ("x-user", peer.user.as_bytes()),
        ];
        if !peer.session.is_empty() {
            headers.push(("mcp-session-id", peer.session.as_bytes()));
            headers.push(("mcp-protocol-version", b"2025-11-25"));
        }
        let headers: &[(&str, &[u8])] = &headers;
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let mut app = App::new(const { &SERVICE }, &mut self.world).authorize(&|head| user(head));
        let mut out = LineSink::new(Vec::new());
        let mut random = |bytes: &mut [u8]| {
            self.random += 1;
            bytes.fill(self.random);
        };
        let response = self.endpoint.request(&mut app, &head, body.as_bytes(), 0, &mut random, &mut out);
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
        let new = Peer { session: String::new(), user };
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let (_, session, _) = self.post(&new, &message);
        let peer = Peer { session: session.unwrap(), user };
        let noted = self.post(&peer, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(noted.0, 202);
        peer
    }

    fn send(&mut self, peer: &Peer, id: u64, method: &str, params: Value) -> Result<Value, StreamId> {
        self.post(peer, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).2
    }

    /// Sends a request whose answer comes at once.
    fn ask(&mut self, peer: &Peer, method: &str, params: Value) -> Value {
        match self.send(peer, 7, method, params) {
            Ok(answer) => answer,
            Err(stream) => self.pull(stream).remove(0),
        }
    }

    fn begin(&mut self, peer: &Peer) -> (TaskToken, String) {
        let created = self.ask(peer, "tools/call", json!({ "name": "work", "task": {} }));
        (*self.world.begun.last().unwrap(), created["result"]["task"]["taskId"].as_str().unwrap().to_owned())
    }

    fn listed(&mut self, peer: &Peer) -> usize {
        self.ask(peer, "tasks/list", json!({}))["result"]["tasks"].as_array().unwrap().len()
    }

    /// Resumes what goes on.
    fn turn(&mut self) {
        while let Some(token) = self.world.tasks.next_resumable() {
            let mut app = App::new(const { &SERVICE }, &mut self.world);
            self.endpoint.resume(&mut app, token).unwrap();
        }
    }

    /// Pulls the messages of a stream.
    fn pull(&mut self, stream: StreamId) -> Vec<Value> {
        let mut app = App::new(const { &SERVICE }, &mut self.world);
        let mut out = LineSink::new(Vec::new());
        let _ = self.endpoint.pull(stream, &mut app, 0, &mut out);
        let text = std::str::from_utf8(out.pending()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| data.contains('{'));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

// spec: K014 K016
#[test]
fn a_result_that_waits_on_its_stream() {
    let mut site = Site::new();
    let anna = site.open("anna");
    let (token, id) = site.begin(&anna);
    let stream = site.send(&anna, 8, "tasks/result", json!({ "taskId": id })).unwrap_err();
    assert_eq!(site.pull(stream), [json!(null); 0]);
    // The question and the result come on the stream of the request.
    site.world.tasks.ask(token, 0, &[InputRequest::elicit("sure", "Sure?", SCHEMA)]).unwrap();
    site.turn();
    let asked = site.pull(stream);
    assert_eq!((asked.len(), &asked[0]["method"]), (1, &json!("elicitation/create")));
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
    assert_eq!(asked[0]["params"]["_meta"], related);
    // `tasks/get` is answered without a stream.
    let got = site.send(&anna, 9, "tasks/get", json!({ "taskId": id })).unwrap();
    assert_eq!(got["result"]["status"], "input_required");
    let answer = json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "result": { "action": "accept", "content": {} } });
    assert_eq!(site.post(&anna, &answer).0, 202);
    assert_eq!(site.pull(stream), [json!(null); 0]);
    assert_eq!(site.world.tasks.next_answered(), Some(token));
    complete(&SERVICE, &mut site.world, token, 0, |_, call| call.text("done")).unwrap();
    site.turn();
    let told = site.pull(stream);
    assert_eq!((told.len(), &told[0]["id"], &told[0]["result"]["_meta"]), (1, &json!(8), &related));
    assert_eq!(told[0]["result"]["content"][0]["text"], "done");
}

// spec: K045 K049 K050 K055
#[test]
fn tasks_belong_to_users_and_not_to_sessions() {
    let mut site = Site::new();
    let (anna, bert) = (site.open("anna"), site.open("bert"));
    let (token, id) = site.begin(&anna);
    let unknown = site.ask(&bert, "tasks/get", json!({ "taskId": "unknown" }));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(site.ask(&bert, method, json!({ "taskId": id })), unknown);
    }
    assert_eq!((site.listed(&anna), site.listed(&bert)), (1, 0));
    // Another session of the same user has the task too, and waits for it beside the first.
    let again = site.open("anna");
    assert_eq!(site.listed(&again), 1);
    let streams = [&anna, &again].map(|peer| site.send(peer, 9, "tasks/result", json!({ "taskId": id })).unwrap_err());
    complete(&SERVICE, &mut site.world, token, 0, |_, call| call.text("done")).unwrap();
    site.turn();
    for stream in streams {
        assert_eq!(site.pull(stream)[0]["result"]["content"][0]["text"], "done");
    }

    // Without users, tasks belong to their session.
    let (one, other) = (site.open(""), site.open(""));
    let (_, id) = site.begin(&one);
    assert_eq!((site.listed(&one), site.listed(&other), site.listed(&anna)), (1, 0, 1));
    assert_eq!(site.ask(&one, "tasks/get", json!({ "taskId": id }))["result"]["ttl"], Value::Null);
    for peer in [&other, &anna] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            assert_eq!(site.ask(peer, method, json!({ "taskId": id })), unknown);
        }
    }
}
