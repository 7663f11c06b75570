//! The tasks of the conformance fixture over HTTP: what the official suite does not look at. The clock stands still unless a
//! test moves it.
#![cfg(feature = "tasks")]

use mcp_sansio::server::{MessageLimits, Server};
use mcp_sansio::sink::LineSink;
use mcp_sansio_conformance_fixture::{Fixture, RandomBytes, SERVICE, go_on};
use mcp_sansio_extensions::tasks::{ID, TaskSlot, Tasks};
use mcp_sansio_http::endpoint::{
    Access, App, Endpoint, EndpointConfig, EndpointLimits, RequestHead, ResponseBody, StreamId, StreamStatus,
};
use serde_json::{Value, json};

/// Bytes that never repeat. A server takes secure random ones.
struct Counter(u8);

impl RandomBytes for Counter {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 += 1;
        bytes.fill(self.0);
    }
}

/// The time for which an ended task is kept.
const KEEP: u64 = 10_000;

/// A server whose users are named by a header.
struct Site {
    endpoint: Endpoint<'static>,
    fixture: Fixture,
    now: u64,
    user: &'static str,
    /// The capabilities of the client.
    capabilities: Value,
    /// `Mcp-Name` is sent with this value, if it is not the target.
    name: Option<Option<&'static str>>,
}

/// A table for this many tasks, in 4 KiB.
fn table(tasks: usize) -> Tasks<'static> {
    let slots: Vec<_> = (0..tasks).map(|_| TaskSlot::FREE).collect();
    Tasks::new(slots.leak(), vec![0; 4096].leak())
}

fn user(head: &RequestHead<'_>) -> Access<'static> {
    let principal = ["anna", "bert"].into_iter().find(|user| head.text("x-user") == Some(user));
    Access::Granted { principal }
}

impl Site {
    fn new() -> Self {
        Site::with(table(16))
    }

    fn with(tasks: Tasks<'static>) -> Self {
        let server = Server::growing(MessageLimits::default());
        Site {
            endpoint: Endpoint::growing(EndpointConfig::DEFAULT, server, EndpointLimits::default()),
            fixture: Fixture::new(tasks, KEEP, Box::leak(Box::new(Counter(0)))),
            now: 0,
            user: "anna",
            capabilities: json!({ "extensions": { ID: {} }, "elicitation": {} }),
            name: None,
        }
    }

    fn post(&mut self, method: &str, mut params: Value) -> Result<(u16, Value), StreamId> {
        let target = params["name"].as_str().or(params["taskId"].as_str()).map(str::to_owned);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let mut headers: Vec<(&str, &[u8])> = vec![
            ("host", b"localhost"),
            ("content-type", b"application/json"),
            ("accept", b"application/json, text/event-stream"),
            ("mcp-protocol-version", b"2026-07-28"),
            ("mcp-method", method.as_bytes()),
            ("x-user", self.user.as_bytes()),
        ];
        if let Some(name) = self.name.unwrap_or(target.as_deref()) {
            headers.push(("mcp-name", name.as_bytes()));
        }
        let headers: &[(&str, &[u8])] = &headers;
        let head = RequestHead::new("POST", "/mcp", None, &headers);
        let mut app = App::new(const { &SERVICE }, &mut self.fixture).authorize(&|head| user(head));
        let mut out = LineSink::new(Vec::new());
        let response =
            self.endpoint.request(&mut app, &head, body.as_bytes(), self.now, &mut |bytes| bytes.fill(7), &mut out);
        match response.content {
            ResponseBody::Stream(id) => Err(id),
            _ => Ok((response.status, serde_json::from_slice(out.pending()).unwrap())),
        }
    }

    /// Sends a request. Returns the result, or the code of the error.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let (_, mut answer) = self.post(method, params).unwrap();
        if answer.get("error").is_some() { answer["error"]["code"].take() } else { answer["result"].take() }
    }

    /// Calls a tool. Returns the id of the task.
    fn begin(&mut self, tool: &str, arguments: Value) -> String {
        let created = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    fn get(&mut self, id: &str) -> Value {
        self.ask("tasks/get", json!({ "taskId": id }))
    }

    fn status(&mut self, id: &str) -> String {
        self.get(id)["status"].as_str().unwrap_or("gone").to_owned()
    }

    fn update(&mut self, id: &str, responses: Value) -> Value {
        self.ask("tasks/update", json!({ "taskId": id, "inputResponses": responses }))
    }

    /// Lets the loop work at a time. Returns when it has to work again.
    fn work(&mut self, now: u64) -> Option<u64> {
        self.now = now;
        let mut app = App::new(const { &SERVICE }, &mut self.fixture);
        go_on(&mut app, &mut self.endpoint, now)
    }

    fn listen(&mut self, ids: &[&str]) -> StreamId {
        self.post("subscriptions/listen", json!({ "notifications": { "taskIds": ids } })).unwrap_err()
    }

    /// Pulls the messages of a stream.
    fn pull(&mut self, stream: StreamId) -> Vec<Value> {
        let mut app = App::new(const { &SERVICE }, &mut self.fixture);
        let mut out = LineSink::new(Vec::new());
        assert_eq!(self.endpoint.pull(stream, &mut app, self.now, &mut out), StreamStatus::Idle);
        let text = std::str::from_utf8(out.pending()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| data.contains('{'));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

#[test]
fn cancelled_work_has_ended() {
    let mut site = Site::new();
    let id = site.begin("slow_compute", json!({ "seconds": 60, "label": "much" }));
    assert_eq!(site.work(0), Some(60_000));
    assert_eq!(site.ask("tasks/cancel", json!({ "taskId": id }))["resultType"], "complete");
    assert_eq!((site.status(&id), site.work(1)), ("cancelled".into(), None));
    // Nothing comes when the result would have been due.
    site.work(KEEP - 1);
    let got = site.get(&id);
    assert_eq!((&got["status"], got.get("result"), got.get("error")), (&json!("cancelled"), None, None));

    // The answer that comes after the cancellation is not taken.
    let id = site.begin("confirm_delete", json!({ "filename": "a.txt" }));
    assert!(site.work(site.now + 50).is_some());
    assert_eq!(site.ask("tasks/cancel", json!({ "taskId": id }))["resultType"], "complete");
    let late = site.update(&id, json!({ "confirm": { "action": "accept", "content": { "confirm": true } } }));
    assert_eq!((&late["resultType"], site.work(site.now)), (&json!("complete"), None));
    assert_eq!(site.status(&id), "cancelled");
}

#[test]
fn the_time_to_live_ends_the_work() {
    let mut site = Site::new();
    let id = site.begin("confirm_delete", json!({ "filename": "a.txt" }));
    site.work(50);
    let got = site.get(&id);
    let ttl = got["ttlMs"].as_u64().unwrap();
    assert_eq!((&got["status"], ttl > 50), (&json!("input_required"), true));
    assert!(site.work(ttl - 1).is_some());
    assert_eq!(site.status(&id), "input_required");
    assert_eq!(site.work(ttl), None);
    // To get, update and cancel, it does not exist.
    assert_eq!(site.get(&id), -32602);
    assert_eq!(site.update(&id, json!({ "confirm": { "action": "accept" } })), -32602);
    assert_eq!(site.ask("tasks/cancel", json!({ "taskId": id })), -32602);

    // An ended task is there until its own time is over.
    let id = site.begin("failing_job", json!({}));
    let end = site.now + 50;
    site.work(end);
    assert_eq!(site.status(&id), "completed");
    site.work(end + KEEP - 1);
    assert_eq!(site.status(&id), "completed");
    site.work(end + KEEP);
    assert_eq!(site.status(&id), "gone");
    // After a restart there are no tasks.
    let id = site.begin("failing_job", json!({}));
    assert_eq!(Site::new().get(&id), -32602);
}

#[test]
fn answers_are_accepted_declined_cancelled_or_malformed() {
    let mut site = Site::new();
    for (response, text) in [
        (json!({ "action": "accept", "content": { "confirm": true } }), "Deleted a.txt"),
        (json!({ "action": "accept", "content": { "confirm": false } }), "Kept a.txt"),
        (json!({ "action": "decline" }), "Kept a.txt"),
        (json!({ "action": "cancel" }), "Kept a.txt"),
        // The client may send anything. The handler looks whether it is an answer.
        (json!({}), "Kept a.txt"),
        (json!({ "action": 7, "content": "yes" }), "Kept a.txt"),
    ] {
        let id = site.begin("confirm_delete", json!({ "filename": "a.txt" }));
        site.work(site.now + 50);
        // Nothing of these is an answer to an open question.
        for malformed in [json!(7), json!([]), json!(null), json!("confirm"), json!({ "confirm": true })] {
            assert_eq!(site.update(&id, malformed), -32602);
        }
        assert_eq!(site.update(&id, json!({ "Confirm": response, "": response }))["resultType"], "complete");
        site.work(site.now);
        assert_eq!(site.status(&id), "input_required");
        let acknowledged = site.update(&id, json!({ "confirm": response }));
        assert_eq!(acknowledged["resultType"], "complete");
        assert_eq!(acknowledged.as_object().unwrap().keys().collect::<Vec<_>>(), ["_meta", "resultType"]);
        // The work goes on at once, and a second answer changes nothing.
        site.update(&id, json!({ "confirm": { "action": "accept", "content": { "confirm": true } } }));
        site.work(site.now);
        let got = site.get(&id);
        assert_eq!(got["result"]["content"][0]["text"], text, "{response}");
    }
    // A client without elicitation cannot be asked, so the tool does not begin.
    site.capabilities = json!({ "extensions": { ID: {} } });
    assert_eq!(site.ask("tools/call", json!({ "name": "multi_input" })), -32021);
}

#[test]
fn times_are_iso_8601_and_move() {
    let mut site = Site::with(table(4).epoch(1_785_231_000_000));
    site.now = 1_000;
    let id = site.begin("multi_input", json!({}));
    let times = |got: Value| [got["createdAt"].clone(), got["lastUpdatedAt"].clone()];
    assert_eq!(times(site.get(&id)), ["2026-07-28T09:30:01.000Z", "2026-07-28T09:30:01.000Z"]);
    site.work(1_050);
    assert_eq!(times(site.get(&id)), ["2026-07-28T09:30:01.000Z", "2026-07-28T09:30:01.050Z"]);
    site.now = 2_000;
    site.update(&id, json!({ "name": { "action": "decline" } }));
    assert_eq!(times(site.get(&id)), ["2026-07-28T09:30:01.000Z", "2026-07-28T09:30:02.000Z"]);
}

#[test]
fn headers_and_statuses() {
    let mut site = Site::new();
    let id = site.begin("slow_compute", json!({ "seconds": 1 }));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": id, "inputResponses": {} });
        for name in [None, Some("another"), Some("")] {
            site.name = Some(name);
            let (status, answer) = site.post(method, params.clone()).unwrap();
            assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "{method} {name:?}");
        }
        site.name = None;
        let (status, answer) = site.post(method, json!({ "taskId": "unknown", "inputResponses": {} })).unwrap();
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)), "{method}");
        let declared = std::mem::replace(&mut site.capabilities, json!({ "extensions": { "a.example/tasks": {} } }));
        let (status, answer) = site.post(method, params).unwrap();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32021)), "{method}");
        site.capabilities = declared;
    }
    // None of these has cancelled it.
    assert_eq!(site.status(&id), "working");
    assert_eq!(site.post("tasks/list", json!({})).unwrap().0, 404);
}

#[test]
fn tasks_belong_to_their_user() {
    let mut site = Site::new();
    let id = site.begin("confirm_delete", json!({ "filename": "a.txt" }));
    site.work(50);
    site.user = "bert";
    let yes = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
    assert_eq!((site.get(&id), site.update(&id, yes.clone())), (json!(-32602), json!(-32602)));
    assert_eq!(site.ask("tasks/cancel", json!({ "taskId": id })), -32602);
    let own = site.begin("slow_compute", json!({ "seconds": 5 }));
    let stream = site.listen(&[&id, &own]);
    assert_eq!(site.pull(stream)[0]["params"]["notifications"], json!({ "taskIds": [own] }));
    site.user = "anna";
    site.update(&id, yes);
    site.work(60);
    assert_eq!(site.get(&id)["result"]["content"][0]["text"], "Deleted a.txt");
    assert_eq!(site.pull(stream), [json!(null); 0]);
}

#[test]
fn a_listen_hears_each_change() {
    let mut site = Site::new();
    let id = site.begin("confirm_delete", json!({ "filename": "a.txt" }));
    let other = site.begin("slow_compute", json!({ "seconds": 5 }));
    site.work(0);
    let stream = site.listen(&[&id, "unknown"]);
    assert_eq!(site.pull(stream)[0]["params"]["notifications"], json!({ "taskIds": [id] }));
    let heard = |site: &mut Site| {
        let [message] = &site.pull(stream)[..] else { panic!("not one message") };
        assert_eq!(message["method"], "notifications/tasks");
        let mut params = message["params"].clone();
        let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
        assert_eq!(meta, json!({ "io.modelcontextprotocol/subscriptionId": 7 }));
        let mut got = site.get(&id);
        got.as_object_mut().unwrap().retain(|key, _| !matches!(&**key, "_meta" | "resultType"));
        assert_eq!(params, got);
        params["status"].as_str().unwrap().to_owned()
    };
    site.work(50);
    assert_eq!(heard(&mut site), "input_required");
    site.ask("tasks/cancel", json!({ "taskId": other }));
    site.work(60);
    assert_eq!(site.pull(stream), [json!(null); 0]);
    site.update(&id, json!({ "confirm": { "action": "decline" } }));
    site.work(70);
    assert_eq!(heard(&mut site), "completed");
    // A task that is not there any more says nothing.
    site.work(70 + KEEP);
    assert_eq!((site.pull(stream), site.status(&id)), (vec![], "gone".into()));
}

#[test]
fn a_full_table_refuses_and_drops_nothing() {
    let mut site = Site::with(table(3));
    let ids: Vec<_> = (0..3).map(|_| site.begin("failing_job", json!({}))).collect();
    let call = json!({ "name": "failing_job" });
    assert_eq!(site.ask("tools/call", call.clone()), -32603);
    site.work(50);
    // Ended tasks are still kept.
    assert_eq!(site.ask("tools/call", call.clone()), -32603);
    assert!(ids.iter().all(|id| site.status(id) == "completed"));
    site.work(50 + KEEP);
    assert_eq!(site.ask("tools/call", call)["resultType"], "task");
    // A call that needs no task does not mind.
    assert_eq!(site.ask("tools/call", json!({ "name": "greet", "arguments": { "name": "you" } }))["isError"], false);
}

#[test]
fn without_the_extension_a_call_is_answered_late_or_refused() {
    let mut site = Site::new();
    site.capabilities = json!({});
    for tool in ["failing_job", "protocol_error_job", "test_tool_with_task"] {
        let (status, answer) = site.post("tools/call", json!({ "name": tool })).unwrap();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32021)), "{tool}");
    }
    let call = json!({ "name": "slow_compute", "arguments": { "seconds": 2 } });
    let stream = site.post("tools/call", call).unwrap_err();
    assert_eq!(site.work(0), Some(2_000));
    assert_eq!(site.pull(stream), [json!(null); 0]);
    site.work(2_000);
    let mut app = App::new(const { &SERVICE }, &mut site.fixture);
    let mut out = LineSink::new(Vec::new());
    assert_eq!(site.endpoint.pull(stream, &mut app, 2_000, &mut out), StreamStatus::End);
    let text = std::str::from_utf8(out.pending()).unwrap();
    assert!(text.contains(r#""resultType":"complete""#) && text.contains(r#""text":"Computed""#), "{text}");
}
