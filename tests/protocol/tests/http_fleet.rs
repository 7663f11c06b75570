//! Several endpoints that serve the same clients over an engine in memory, which can fail.
mod common;

use std::collections::BTreeSet;

use common::everything::World;
use common::http::*;
use common::{LEGACY, answer, cancel, json, notify, request};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{MessageLimits, Server, ServerChange};
use mcp_sansio::service::{Call, HandlerResult, Service, Tool};
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointLimits, SessionSeal, StreamId};
use mcp_sansio_http::fleet::{Arrival, Engine, FleetLimits, MemoryHub, ProcessTag, Recipients};
use mcp_sansio_http::host::{BodyBuffer, HttpConnection, ServeContext, WaitFor};
use mcp_sansio_http::http1::ConnectionLimits;
use mcp_sansio_http::seal::HmacSeal;

const HOUR: u64 = 3_600_000;

fn seal(key: u8) -> SessionSeal<'static> {
    SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[key; 32])))).lifetime(HOUR)
}

/// A process with its engine.
struct Process {
    web: Web,
    engine: SharedEngine,
}

impl Process {
    fn new(hub: &MemoryHub, tag: u32, limits: FleetLimits) -> Process {
        let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
        let endpoint = Endpoint::growing(config(), server, EndpointLimits::default()).seal_sessions(seal(7));
        let engine = hub.join(ProcessTag::new(tag));
        let mut web = Web::of(endpoint.join_fleet(engine.tag(), limits));
        web.dice.0 = tag.into();
        let engine = SharedEngine::new(engine.into());
        web.engine = Some(SharedEngine::clone(&engine));
        Process { web, engine }
    }

    fn meet(&mut self) -> bool {
        self.web.meet(&mut *self.engine.borrow_mut())
    }
}

struct Fleet {
    hub: MemoryHub,
    processes: Vec<Process>,
}

impl Fleet {
    fn of(number: u32) -> Fleet {
        Fleet::limited(number, FleetLimits::default())
    }

    fn limited(number: u32, limits: FleetLimits) -> Fleet {
        let hub = MemoryHub::new();
        let processes = (1..=number).map(|tag| Process::new(&hub, tag, limits)).collect();
        let mut fleet = Fleet { hub, processes };
        fleet.settle();
        fleet
    }

    fn web(&mut self, process: usize) -> &mut Web {
        &mut self.processes[process].web
    }

    /// Lets all processes meet, until nothing is on its way.
    fn settle(&mut self) {
        for _ in 0..8 {
            for process in &mut self.processes {
                while process.meet() {}
            }
        }
    }

    /// Opens a session at a process, and makes the oracles of all know its revision.
    fn open(&mut self, process: usize, revision: &str) -> String {
        let session = self.web(process).open(revision);
        for process in &mut self.processes {
            process.web.sessions.insert(session.clone(), revision.to_owned());
        }
        session
    }

    /// Opens the session's stream at a process.
    fn listen(&mut self, process: usize, session: &str) -> StreamId {
        let stream = self.web(process).listen(session, None).opened();
        self.web(process).pull(stream);
        stream
    }

    /// Returns the methods, and URIs, that come on a stream.
    fn heard(&mut self, process: usize, stream: StreamId) -> Vec<String> {
        let web = self.web(process);
        if !web.is_ready(stream) {
            return Vec::new();
        }
        let of = |message: serde_json::Value| {
            let uri = message["params"]["uri"].as_str().map(|uri| format!(" {uri}")).unwrap_or_default();
            format!("{}{uri}", message["method"].as_str().unwrap_or("none"))
        };
        web.pull(stream).json().into_iter().map(of).collect()
    }
}

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

fn all() -> BTreeSet<String> {
    [TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED].map(String::from).into()
}

#[test]
fn a_change_is_heard_once_by_the_clients_of_all_processes() {
    let mut fleet = Fleet::of(3);
    let streams: Vec<_> = (0..3)
        .map(|process| {
            let session = fleet.open(process, "2025-11-25");
            fleet.listen(process, &session)
        })
        .collect();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let modern = fleet.web(2).modern(1, "subscriptions/listen", listen).opened();
    fleet.web(2).pull(modern);
    fleet.web(0).publish(ServerChange::Tools);
    fleet.web(0).publish(ServerChange::Tools);
    fleet.settle();
    fleet.settle();
    for (process, stream) in streams.iter().enumerate() {
        assert_eq!(fleet.heard(process, *stream), [TOOLS_CHANGED], "{process}");
    }
    assert_eq!(fleet.heard(2, modern), [TOOLS_CHANGED]);
    // One that each process sees by itself.
    fleet.web(0).endpoint.publish_here(ServerChange::Prompts);
    fleet.settle();
    assert_eq!(fleet.heard(0, streams[0]), [PROMPTS_CHANGED]);
    assert_eq!(fleet.heard(1, streams[1]), [""; 0]);
}

#[test]
fn what_a_handler_publishes_reaches_the_others() {
    fn change(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
        call.publish(ServerChange::Resources);
        call.text("changed")
    }
    static TOOLS: [Tool<World>; 1] = [Tool::new("change", "Changes the resources", change)];
    let mut fleet = Fleet::of(2);
    for process in 0..2 {
        let service = Service::new("test", "1").tools(&TOOLS).feature(ServerCapability::ResourcesChanged);
        fleet.web(process).service = service;
    }
    let session = fleet.open(1, "2025-06-18");
    let stream = fleet.listen(1, &session);
    fleet.web(0).call(&session, 1, "change", json!({}));
    fleet.settle();
    assert_eq!(fleet.heard(1, stream), [RESOURCES_CHANGED]);
}

#[test]
fn after_a_loss_all_may_have_changed() {
    let mut fleet = Fleet::of(3);
    let streams: Vec<_> = (0..3)
        .map(|process| {
            let session = fleet.open(process, "2025-11-25");
            fleet.listen(process, &session)
        })
        .collect();
    // Cut off: its own clients hear at once, the others when it is back, and it hears what it has missed.
    let one = fleet.processes[0].engine.borrow().tag();
    fleet.hub.cut(one);
    fleet.web(0).publish(ServerChange::Tools);
    fleet.web(1).publish(ServerChange::Prompts);
    fleet.settle();
    assert_eq!(fleet.heard(0, streams[0]), [TOOLS_CHANGED]);
    assert_eq!(fleet.heard(1, streams[1]), [PROMPTS_CHANGED]);
    assert_eq!(fleet.heard(2, streams[2]), [PROMPTS_CHANGED]);
    fleet.hub.heal(one);
    fleet.settle();
    for (process, stream) in streams.iter().enumerate() {
        assert_eq!(fleet.heard(process, *stream).into_iter().collect::<BTreeSet<_>>(), all(), "{process}");
    }
    // Lost on the way.
    fleet.hub.lose(1);
    fleet.web(0).publish(ServerChange::Tools);
    fleet.settle();
    assert_eq!(fleet.heard(1, streams[1]).into_iter().collect::<BTreeSet<_>>(), all());
    assert_eq!(fleet.heard(0, streams[0]), [TOOLS_CHANGED]);
}

#[test]
fn too_many_changes_become_one() {
    let mut fleet = Fleet::limited(2, FleetLimits { outbox: 3, ..FleetLimits::default() });
    let session = fleet.open(1, "2025-11-25");
    let stream = fleet.listen(1, &session);
    for uri in ["a", "b", "c", "d", "e"] {
        fleet.web(0).publish(ServerChange::Resource(uri));
    }
    fleet.settle();
    assert_eq!(fleet.heard(1, stream).into_iter().collect::<BTreeSet<_>>(), all());
    fleet.web(0).publish(ServerChange::Tools);
    fleet.settle();
    assert_eq!(fleet.heard(1, stream), [TOOLS_CHANGED]);
}

#[test]
fn a_meeting_has_an_end() {
    let mut fleet = Fleet::limited(2, FleetLimits { turn: 4, ..FleetLimits::default() });
    let Process { engine, .. } = &mut fleet.processes[0];
    for message in [&b""[..], b"\x01", b"\x01\xff", b"\x02\x01", b"\x01\x04\xff\xff\xff\xff", b"rubbish"] {
        engine.borrow_mut().publish(Recipients::Others, message, 1_000);
    }
    // Four in the first turn, two in the second.
    assert!(fleet.processes[1].meet());
    assert!(fleet.processes[1].meet());
    assert!(!fleet.processes[1].meet());
}

/// An endpoint without a fleet has nothing to do with one.
#[test]
fn alone() {
    let hub = MemoryHub::new();
    let mut engine = hub.join(ProcessTag::new(1));
    let mut other = hub.join(ProcessTag::new(2));
    while other.take().is_some() {}
    let mut web = Web::new();
    web.publish(ServerChange::Tools);
    assert!(!web.meet(&mut engine));
    assert_eq!(other.take(), None);
}

const REVISION: &str = "2025-11-25";

impl Fleet {
    /// Asks the user by a tool at a process. Returns the stream and the id of the question.
    fn ask(&mut self, process: usize, session: &str, id: i64) -> (StreamId, serde_json::Value) {
        let web = self.web(process);
        let stream = web.call(session, id, "confirm", json!({})).opened();
        let asked = web.pull(stream).json();
        (stream, asked[0]["id"].clone())
    }

    /// Returns the session's subscription to a resource, made at a process.
    fn subscribe(&mut self, process: usize, session: &str, method: &str, uri: &str) {
        self.set(process, session, method, json!({"uri": uri}));
    }

    /// Sets what a session hears of. The answer waits until the others know of it: a driver gives the request again.
    fn set(&mut self, process: usize, session: &str, method: &str, params: serde_json::Value) {
        let message = request(REVISION, 50, method, params);
        let mut reply = self.web(process).say(session, &message);
        if reply.undecided {
            self.settle();
            reply = self.web(process).say(session, &message);
        }
        if reply.undecided {
            // A message was lost.
            self.web(process).now += 200;
            reply = self.web(process).say(session, &message);
        }
        assert_eq!(reply.body["result"], json!({}), "{reply:?}");
    }

    fn set_level(&mut self, process: usize, session: &str, level: &str) {
        self.set(process, session, "logging/setLevel", json!({"level": level}));
    }

    /// Ends a session. The answer waits until the others know of it: a driver gives the request again.
    fn delete(&mut self, process: usize, session: &str) -> u16 {
        let delete =
            |fleet: &mut Self| fleet.web(process).request("DELETE", "/mcp", &[("mcp-session-id", session)], "").status;
        let first = delete(self);
        if first != 503 {
            return first;
        }
        assert_eq!(delete(self), 503, "the others do not know yet");
        self.settle();
        delete(self)
    }
}

const YES: &str = r#"{"action":"accept","content":{}}"#;

fn yes() -> serde_json::Value {
    serde_json::from_str(YES).unwrap()
}

#[test]
fn a_question_is_answered_at_another_process() {
    for revision in &LEGACY[3..] {
        let mut fleet = Fleet::of(3);
        let session = fleet.open(0, revision);
        let (stream, id) = fleet.ask(0, &session, 1);
        // The process that asks is in the id, and the id has digits that JSON programs keep.
        assert_eq!((id.as_u64().unwrap() >> 32, id.as_u64().unwrap() < 1 << 53), (1, true));
        let (other, other_id) = fleet.ask(1, &session, 2);
        assert_eq!(other_id.as_u64().unwrap() >> 32, 2);
        assert_eq!(fleet.web(2).say(&session, &answer(&id, yes())).status, 202);
        fleet.settle();
        let answered = fleet.web(0).pull(stream);
        assert!(answered.ended && answered.json()[0]["result"]["content"].is_array(), "{answered:?}");
        assert!(!fleet.web(1).is_ready(other));
        // The process that asked takes an answer as ever.
        assert_eq!(fleet.web(1).say(&session, &answer(&other_id, yes())).status, 202);
        assert!(fleet.web(1).pull(other).ended);
    }
}

#[test]
fn answers_in_a_batch_and_of_refusals_travel() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, "2025-03-26");
    let mut ask = |id: i64| {
        let stream = fleet.web(0).call(&session, id, "sample", json!({})).opened();
        let asked = fleet.web(0).pull(stream).json();
        (stream, asked[0]["id"].clone())
    };
    let asked = [ask(1), ask(2)];
    let refusal = |id: &serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}});
    let batch = json!(asked.iter().map(|(_, id)| refusal(id)).collect::<Vec<_>>()).to_string();
    assert_eq!(fleet.web(1).say(&session, &batch).status, 202);
    fleet.settle();
    for (stream, _) in asked {
        assert!(fleet.web(0).pull(stream).ended);
    }
}

/// What someone without the key writes to the database names no session, and what another session answers is not asked there.
#[test]
fn answers_of_others_are_none() {
    let mut fleet = Fleet::of(2);
    let hub = fleet.hub.clone();
    let mut spy = hub.join(ProcessTag::new(9));
    let session = fleet.open(0, REVISION);
    let (stream, id) = fleet.ask(0, &session, 1);
    let other = fleet.open(1, REVISION);
    assert_eq!(fleet.web(1).say(&other, &answer(&id, yes())).status, 202);
    fleet.settle();
    assert!(!fleet.web(0).is_ready(stream));
    // A message of a real session, as the spy sees it, with another id.
    fleet.web(1).call(&session, 5, "count", json!({}));
    // It names the request that waits, but it does not get there.
    fleet.hub.cut(ProcessTag::new(1));
    fleet.web(1).say(&session, &cancel(1));
    fleet.settle();
    let seen = std::iter::from_fn(|| spy.take()).find_map(|arrival| match arrival {
        Arrival::Message { message, .. } => Some(message),
        _ => None,
    });
    let seen = seen.expect("a message");
    let at = seen.windows(session.len()).position(|part| part == session.as_bytes()).expect("the session");
    fleet.hub.heal(ProcessTag::new(1));
    for forged in [at, at + 20, at + session.len() - 2] {
        let mut message = seen.clone();
        message[forged] ^= 1;
        spy.publish(Recipients::Others, &message, 1_000);
    }
    fleet.settle();
    assert_eq!(fleet.web(0).endpoint.load().0, 1);
    spy.publish(Recipients::Others, &seen, 1_000);
    fleet.settle();
    assert_eq!(fleet.web(0).endpoint.load().0, 0);
}

#[test]
fn a_request_is_cancelled_at_another_process() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(0, REVISION);
    let stream = fleet.web(0).call(&session, 1, "later", json!({"tag": "t"})).opened();
    assert_eq!(fleet.web(1).say(&session, &cancel(1)).status, 202);
    fleet.settle();
    assert_eq!(fleet.web(0).world.cancelled.len(), 1);
    assert!(fleet.web(0).pull(stream).ended);
    // One that is here goes no further.
    let hub = fleet.hub.clone();
    let mut spy = hub.join(ProcessTag::new(9));
    let stream = fleet.web(0).call(&session, 2, "later", json!({"tag": "u"})).opened();
    fleet.web(0).say(&session, &cancel(2));
    fleet.settle();
    assert!(fleet.web(0).pull(stream).ended);
    assert!(std::iter::from_fn(|| spy.take()).all(|arrival| matches!(arrival, Arrival::Joined(_))));
    // What the client reports reaches each process that has its session open.
    fleet.web(1).call(&session, 3, "count", json!({}));
    fleet.web(0).say(&session, &notify("notifications/roots/list_changed", json!({})));
    fleet.settle();
    let heard = |web: &Web| web.world.notified.iter().filter(|name| name.ends_with("roots/list_changed")).count();
    assert_eq!([0, 1, 2].map(|at| heard(fleet.web(at))), [1, 1, 0]);
}

#[test]
fn without_the_engine_an_answer_waits_for_another_one() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    let (stream, id) = fleet.ask(0, &session, 1);
    fleet.hub.cut(ProcessTag::new(2));
    assert_eq!(fleet.web(1).say(&session, &answer(&id, yes())).status, 202);
    fleet.settle();
    assert!(!fleet.web(0).is_ready(stream));
    fleet.hub.heal(ProcessTag::new(2));
    fleet.settle();
    fleet.web(1).say(&session, &answer(&id, yes()));
    fleet.settle();
    assert!(fleet.web(0).pull(stream).ended);
}

#[test]
fn a_subscription_counts_at_all_processes() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(0, REVISION);
    let stream = fleet.listen(0, &session);
    fleet.subscribe(1, &session, "resources/subscribe", "test://text");
    fleet.settle();
    fleet.web(2).publish(ServerChange::Resource("test://text"));
    fleet.settle();
    assert_eq!(fleet.heard(0, stream), ["notifications/resources/updated test://text"]);
    // A change that comes before the subscription is heard, since it may have been made after it; once.
    fleet.subscribe(2, &session, "resources/unsubscribe", "test://text");
    fleet.settle();
    fleet.web(2).publish(ServerChange::Resource("test://text"));
    fleet.settle();
    assert_eq!(fleet.heard(0, stream), [""; 0]);
    fleet.subscribe(2, &session, "resources/subscribe", "test://text");
    fleet.settle();
    assert_eq!(fleet.heard(0, stream), ["notifications/resources/updated test://text"]);
    // Not one of long ago.
    fleet.subscribe(2, &session, "resources/unsubscribe", "test://text");
    for process in 0..3 {
        fleet.web(process).now += 6_000;
    }
    fleet.subscribe(2, &session, "resources/subscribe", "test://text");
    fleet.settle();
    assert_eq!(fleet.heard(0, stream), [""; 0]);
}

fn announced(fleet: &mut Fleet, process: usize, stream: StreamId) -> usize {
    let web = fleet.web(process);
    let Web { endpoint, service, world, .. } = web;
    endpoint.announce(&App::new(service, world), LoggingLevel::Info, "all is well");
    fleet.heard(process, stream).len()
}

#[test]
fn a_process_that_opens_a_session_later_knows_its_subscriptions_and_its_level() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    fleet.subscribe(0, &session, "resources/subscribe", "test://text");
    fleet.set_level(0, &session, "debug");
    fleet.set_level(0, &session, "error");
    fleet.settle();
    let stream = fleet.listen(1, &session);
    fleet.settle();
    fleet.web(0).publish(ServerChange::Resource("test://text"));
    fleet.settle();
    assert_eq!(fleet.heard(1, stream), ["notifications/resources/updated test://text"]);
    assert_eq!(announced(&mut fleet, 1, stream), 0);
    // The level of the same moment is newer than the log.
    fleet.processes.push(Process::new(&fleet.hub.clone(), 3, FleetLimits::default()));
    fleet.web(2).sessions.insert(session.clone(), REVISION.into());
    let stream = fleet.listen(2, &session);
    fleet.set_level(2, &session, "info");
    fleet.settle();
    assert_eq!(announced(&mut fleet, 2, stream), 1);
    // The log ends with its session.
    assert_eq!(fleet.hub.logs().len(), 1);
    fleet.hub.advance(HOUR);
    assert_eq!(fleet.hub.logs(), []);
}

#[test]
fn after_a_loss_the_logs_of_sessions_are_read_again() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    let stream = fleet.listen(1, &session);
    fleet.settle();
    fleet.hub.lose(1);
    fleet.subscribe(0, &session, "resources/subscribe", "test://text");
    fleet.settle();
    fleet.heard(1, stream);
    fleet.web(0).publish(ServerChange::Resource("test://text"));
    fleet.settle();
    assert_eq!(fleet.heard(1, stream), ["notifications/resources/updated test://text"]);
}

/// The database is started anew, and has forgotten the logs: who knows what was set writes it again.
#[test]
fn what_was_set_outlives_the_database() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    for uri in ["test://text", "test://blob"] {
        fleet.subscribe(0, &session, "resources/subscribe", uri);
    }
    fleet.set_level(0, &session, "error");
    fleet.settle();
    fleet.hub.restart();
    // One setting of the same moment does not stand for all.
    fleet.subscribe(0, &session, "resources/unsubscribe", "test://blob");
    fleet.settle();
    for process in [1, 2] {
        fleet.hub.kill(ProcessTag::new(process));
    }
    fleet.settle();
    let hub = fleet.hub.clone();
    fleet.processes = [3, 4].map(|tag| Process::new(&hub, tag, FleetLimits::default())).into();
    fleet.web(0).sessions.insert(session.clone(), REVISION.into());
    fleet.settle();
    let stream = fleet.listen(0, &session);
    fleet.heard(0, stream);
    for uri in ["test://text", "test://blob"] {
        fleet.web(1).publish(ServerChange::Resource(uri));
    }
    fleet.settle();
    assert_eq!(fleet.heard(0, stream), ["notifications/resources/updated test://text"]);
    assert_eq!(announced(&mut fleet, 0, stream), 0);
}

#[test]
fn the_log_of_a_session_has_limits() {
    let limits = FleetLimits { session_entries: 3, ..FleetLimits::default() };
    let mut fleet = Fleet::limited(2, limits);
    let session = fleet.open(0, REVISION);
    for _ in 0..5 {
        fleet.subscribe(0, &session, "resources/subscribe", "test://text");
    }
    fleet.settle();
    assert_eq!(fleet.hub.logs()[0].1, 3);
    // They count at a process that opens the session later too.
    fleet.listen(1, &session);
    fleet.settle();
    fleet.subscribe(1, &session, "resources/subscribe", "test://text");
    fleet.settle();
    assert_eq!(fleet.hub.logs()[0].1, 3);
    let bytes = FleetLimits { session_bytes: 100, ..FleetLimits::default() };
    let mut fleet = Fleet::limited(1, bytes);
    let session = fleet.open(0, REVISION);
    fleet.subscribe(0, &session, "resources/subscribe", "test://text");
    fleet.subscribe(0, &session, "resources/subscribe", "test://text");
    fleet.settle();
    assert_eq!(fleet.hub.logs()[0].1, 1);
}

// spec: T054
#[test]
fn an_ended_session_is_ended_at_all_processes() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(0, REVISION);
    let stream = fleet.listen(0, &session);
    assert_eq!(fleet.delete(1, &session), 204);
    // All know it before the answer.
    assert!(fleet.web(0).pull(stream).ended);
    // Also at one that has not seen it.
    for process in 0..3 {
        fleet.web(process).call(&session, 1, "count", json!({})).refused(404);
        assert_eq!(fleet.web(process).endpoint.load().1, 0);
    }
    // One that was not there learns it when it opens the session.
    fleet.processes.push(Process::new(&fleet.hub.clone(), 4, FleetLimits::default()));
    fleet.web(3).sessions.insert(session.clone(), REVISION.into());
    fleet.web(3).call(&session, 2, "count", json!({})).refused(404);
}

#[test]
fn a_setting_is_known_at_all_processes_before_its_answer() {
    let mut fleet = Fleet::of(3);
    let session = fleet.open(0, REVISION);
    let streams = [0, 1].map(|process| fleet.listen(process, &session));
    fleet.settle();
    assert!(fleet.web(0).pull(streams[0]).ended);
    let set = |id, level| request(REVISION, id, "logging/setLevel", json!({"level": level}));
    let ask = |fleet: &mut Fleet, id, level| fleet.web(0).say(&session, &set(id, level)).undecided;
    assert!(ask(&mut fleet, 1, "error"));
    fleet.processes[1].meet();
    // Another one has not said yet that it knows.
    assert!(ask(&mut fleet, 1, "error"));
    // Other requests go on, and another setting waits by itself.
    assert_eq!(fleet.web(0).call(&session, 9, "count", json!({})).status, 200);
    assert!(ask(&mut fleet, 2, "error"));
    fleet.processes[2].meet();
    assert!(!ask(&mut fleet, 1, "error"));
    assert_eq!(announced(&mut fleet, 1, streams[1]), 0);
    // Not for ever.
    let until = fleet.web(0).now + 200;
    assert!(ask(&mut fleet, 3, "debug"));
    fleet.web(0).now = until - 1;
    assert!(ask(&mut fleet, 3, "debug"));
    fleet.web(0).now = until;
    assert!(!ask(&mut fleet, 3, "debug"));
    // Not for those that have left, and not alone.
    fleet.settle();
    for process in [2, 3] {
        fleet.hub.cut(ProcessTag::new(process));
        assert_eq!(ask(&mut fleet, 4, "debug"), process == 2);
    }
    assert!(!ask(&mut fleet, 5, "debug"));
}

/// Its connection keeps it, with what was decided about its head, and nothing of the answer that it did not get.
#[test]
fn a_request_that_waits_in_its_connection_is_authorized_once() {
    for waits in [true, false] {
        let mut fleet = Fleet::of(2);
        let session = fleet.open(0, REVISION);
        let (mut input, mut output) = ([0; 2048], [0; 2048]);
        let mut connection: HttpConnection<'_> =
            HttpConnection::new(&mut input[..], &mut output[..], ConnectionLimits::DEFAULT);
        connection.set_waits_for_streams(waits);
        let mut body = BodyBuffer::new(Vec::new());
        let authorized = std::cell::Cell::new(0);
        let mut serve = |fleet: &mut Fleet, connection: &mut HttpConnection<'_>| {
            let Web { endpoint, service, world, now, .. } = fleet.web(0);
            let allow = allowing(|_| {
                authorized.set(authorized.get() + 1);
                Access::Granted { principal: None }
            });
            let mut app = App::new(service, world).authorize(&allow);
            let mut host = ServeContext { endpoint, app: &mut app, body: &mut body, now: *now };
            connection.serve(&mut host, &mut |bytes| bytes.fill(9))
        };
        let message = request(REVISION, 50, "resources/subscribe", json!({"uri": "file:///a"}));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
            message.len()
        );
        for part in [head, message] {
            connection.space()[..part.len()].copy_from_slice(part.as_bytes());
            connection.filled(part.len());
        }
        if waits {
            for _ in 0..3 {
                assert_eq!(serve(&mut fleet, &mut connection), WaitFor::Stream);
                assert!(!connection.has_pending());
            }
            fleet.settle();
        }
        assert_eq!(serve(&mut fleet, &mut connection), WaitFor::Read);
        let answer = std::str::from_utf8(connection.pending()).unwrap();
        let (status, is_result) = if waits { ("200", true) } else { ("503", false) };
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        let (_, json) = answer.split_once("\r\n\r\n").unwrap();
        let json: serde_json::Value = serde_json::from_str(json).expect("one message");
        assert_eq!(json.get("result").is_some(), is_result, "{answer}");
        assert_eq!(authorized.get(), 1);
    }
}

/// What is set while a process reads what was set before counts there, though the log of it is lost.
#[test]
fn a_setting_that_arrives_while_its_log_is_read() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    fleet.settle();
    // Without an engine the request stays undecided, and the log is asked for at the next meeting.
    let engine = fleet.web(1).engine.take();
    assert!(fleet.web(1).listen(&session, None).undecided);
    let subscribe = request(REVISION, 50, "resources/subscribe", json!({"uri": "file:///a"}));
    fleet.web(0).engine = None;
    assert!(fleet.web(0).say(&session, &subscribe).undecided);
    while fleet.processes[0].meet() {}
    fleet.hub.restart();
    while fleet.processes[1].meet() {}
    fleet.web(1).engine = engine;
    let stream = fleet.listen(1, &session);
    fleet.heard(1, stream);
    for uri in ["file:///b", "file:///a"] {
        fleet.web(1).endpoint.publish_here(ServerChange::Resource(uri));
    }
    assert_eq!(fleet.heard(1, stream), ["notifications/resources/updated file:///a"]);
}

#[test]
fn the_settings_that_wait_have_a_limit() {
    let mut fleet = Fleet::limited(2, FleetLimits { settled: 1, ..FleetLimits::default() });
    let session = fleet.open(0, REVISION);
    let set = |id| request(REVISION, id, "logging/setLevel", json!({"level": "error"}));
    let waits = |fleet: &mut Fleet, id| fleet.web(0).say(&session, &set(id)).undecided;
    assert_eq!([1, 2].map(|id| waits(&mut fleet, id)), [true, false]);
    // A client that is gone leaves its place.
    fleet.web(0).wait(2_200);
    assert_eq!([3, 4].map(|id| waits(&mut fleet, id)), [true, false]);
    fleet.settle();
    assert!(!waits(&mut fleet, 3));
    let mut fleet = Fleet::limited(2, FleetLimits { settle_within: 0, ..FleetLimits::default() });
    let session = fleet.open(0, REVISION);
    assert!(!fleet.web(0).say(&session, &set(1)).undecided);
}

/// A client that has hung up does not leave this process behind the others.
#[test]
fn a_setting_whose_client_is_gone_counts_at_all_processes() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    assert!(fleet.web(0).say(&session, &set).undecided);
    fleet.settle();
    fleet.web(0).wait(2_200);
    fleet.settle();
    let stream = fleet.listen(0, &session);
    assert_eq!(announced(&mut fleet, 0, stream), 0);
}

#[test]
fn a_request_waits_for_what_was_set_in_its_session() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    fleet.set_level(0, &session, "error");
    fleet.settle();
    fleet.processes.push(Process::new(&fleet.hub.clone(), 3, FleetLimits::default()));
    fleet.web(2).sessions.insert(session.clone(), REVISION.into());
    fleet.settle();
    fleet.hub.hold();
    let asked = |fleet: &mut Fleet| fleet.web(2).listen(&session, None);
    assert!(asked(&mut fleet).undecided);
    // What comes meanwhile from others counts after what the log has.
    fleet.set_level(0, &session, "info");
    fleet.hub.release();
    let stream = asked(&mut fleet).opened();
    fleet.web(2).pull(stream);
    assert_eq!(announced(&mut fleet, 2, stream), 1);
    // Not for ever.
    let session = fleet.open(0, REVISION);
    fleet.hub.hold();
    assert!(fleet.web(2).listen(&session, None).undecided);
    fleet.web(2).now += 200;
    fleet.web(2).listen(&session, None).opened();
}

/// The log of a session that is read late has the end that was just written into it.
#[test]
fn an_end_that_comes_back_is_answered() {
    let mut fleet = Fleet::of(2);
    let session = fleet.open(0, REVISION);
    let delete = |fleet: &mut Fleet| fleet.web(0).request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status;
    assert_eq!(delete(&mut fleet), 503);
    fleet.hub.lose(1);
    fleet.web(1).publish(ServerChange::Tools);
    for process in [1, 0, 0] {
        fleet.processes[process].meet();
    }
    assert_eq!(delete(&mut fleet), 204);
}

trait Principals {
    fn name_principals(&mut self);
}

impl Principals for Web {
    fn name_principals(&mut self) {
        self.authorize = Box::new(|head| Access::Granted {
            principal: match head.headers.get("x-name") {
                Some(b"ann") => Some("ann"),
                Some(b"bob") => Some("bob"),
                _ => None,
            },
        });
    }
}

/// A session belongs to its principal at each process.
#[test]
fn another_principal_ends_and_answers_nothing() {
    let mut fleet = Fleet::of(2);
    let hub = fleet.hub.clone();
    for process in 0..2 {
        fleet.web(process).name_principals();
    }
    let named = |name: &'static str| [JSON, ACCEPT, ("mcp-protocol-version", REVISION), ("x-name", name)];
    let opening = common::initialize(REVISION, common::all_capabilities(REVISION));
    let opened = fleet.web(0).request("POST", "/mcp", &named("ann"), &opening);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let of = |name| [&named(name)[..], &[("mcp-session-id", session.as_str())]].concat();
    fleet.web(1).request("DELETE", "/mcp", &of("bob"), "").refused(404);
    let mut spy = hub.join(ProcessTag::new(9));
    assert_eq!(fleet.web(1).request("DELETE", "/mcp", &of("ann"), "").status, 503);
    fleet.processes[1].meet();
    let told = std::iter::from_fn(|| spy.take()).find_map(|arrival| match arrival {
        Arrival::Message { message, .. } => Some(message),
        _ => None,
    });
    // The same with another name beside it: who has no key can not bind it to that.
    let mut fleet = Fleet::of(1);
    fleet.web(0).name_principals();
    let mut message = told.unwrap();
    let at = message.windows(3).rposition(|part| part == b"ann").unwrap();
    message[at..at + 3].copy_from_slice(b"bob");
    let mut spy = fleet.hub.join(ProcessTag::new(9));
    spy.publish(Recipients::Others, &message, 1_000);
    fleet.settle();
    // It is still there. The answer does not wait for a process that leaves.
    assert_eq!(fleet.web(0).request("DELETE", "/mcp", &of("ann"), "").status, 503);
    drop(spy);
    fleet.settle();
    assert_eq!(fleet.web(0).request("DELETE", "/mcp", &of("ann"), "").status, 204);
}

const OLD: &str = "2024-11-05";

impl Fleet {
    /// Opens a stream of 2024-11-05 at the first process. Returns the path for messages.
    fn open_old(&mut self) -> (StreamId, String) {
        let stream = self.web(0).request("GET", "/sse", &[SSE], "").opened();
        let first = self.web(0).pull(stream).events.remove(0);
        (stream, first.data)
    }

    /// Posts a message at a process, which the first one answers.
    fn post_old(&mut self, process: usize, to: &str, body: &str) -> u16 {
        self.web(0).hear(OLD, body);
        let reply = self.web(process).request("POST", to, &[JSON], body);
        self.settle();
        reply.status
    }
}

// spec: T022 T025
#[test]
fn a_session_of_http_with_sse_is_reached_from_each_process() {
    let mut fleet = Fleet::of(3);
    let (stream, to) = fleet.open_old();
    assert_eq!(fleet.post_old(1, &to, &common::initialize(OLD, common::all_capabilities(OLD))), 202);
    assert_eq!(fleet.web(0).pull(stream).json()[0]["result"]["protocolVersion"], OLD);
    assert_eq!(fleet.post_old(2, &to, &notify("notifications/initialized", json!({}))), 202);
    for id in 1..5_i64 {
        let process = id as usize % 3;
        assert_eq!(fleet.post_old(process, &to, &common::call(OLD, id, "count", json!({}))), 202);
        assert_eq!(fleet.web(0).pull(stream).json()[0]["result"]["content"][0]["text"], id.to_string());
    }
    // A message waits while the stream has a reply that is not read, and those behind it too.
    fleet.post_old(0, &to, &common::call(OLD, 10, "book", json!({})));
    fleet.post_old(1, &to, &common::call(OLD, 11, "count", json!({})));
    fleet.post_old(2, &to, &common::call(OLD, 12, "count", json!({})));
    let mut answered = Vec::new();
    for _ in 0..3 {
        answered.extend(fleet.web(0).pull(stream).json().iter().map(|answer| answer["id"].clone()));
        fleet.settle();
    }
    assert_eq!(answered, [10, 11, 12]);
    // Its id is good for nothing else, and ends with its stream.
    let session = to.split_once("session=").unwrap().1.to_owned();
    for process in 0..3 {
        fleet.web(process).call(&session, 20, "count", json!({})).refused(404);
    }
    fleet.web(0).detach(stream);
    for process in 0..2 {
        let status = fleet.post_old(process, &to, &common::call(OLD, 21, "count", json!({})));
        // The other process has no other way to know.
        assert_eq!(status, [404, 202][process]);
    }
}

#[test]
fn a_session_of_http_with_sse_of_a_process_that_is_gone() {
    let mut fleet = Fleet::of(3);
    let (_, to) = fleet.open_old();
    let body = common::initialize(OLD, common::all_capabilities(OLD));
    // Forged: refused at once.
    let hub = fleet.hub.clone();
    let mut spy = hub.join(ProcessTag::new(9));
    for at in [20, to.len() - 1] {
        let mut forged = to.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(fleet.post_old(1, std::str::from_utf8(&forged).unwrap(), &body), 404);
    }
    assert!(std::iter::from_fn(|| spy.take()).all(|arrival| matches!(arrival, Arrival::Joined(_))));
    // Alone: the other process may be there.
    fleet.hub.cut(ProcessTag::new(2));
    fleet.settle();
    assert_eq!(fleet.post_old(1, &to, &body), 503);
    fleet.hub.heal(ProcessTag::new(2));
    fleet.settle();
    assert_eq!(fleet.post_old(1, &to, &body), 202);
    fleet.hub.kill(ProcessTag::new(1));
    fleet.settle();
    assert_eq!(fleet.post_old(1, &to, &body), 404);
}

/// A client that sends ever more and reads nothing loses its stream, and no other client does.
#[test]
fn messages_for_a_stream_that_is_not_read_have_limits() {
    let limits = FleetLimits { waiting_share: 3, ..FleetLimits::default() };
    for (limits, most) in [
        (limits, 3),
        (FleetLimits { waiting: 2, ..FleetLimits::default() }, 2),
        (FleetLimits { waiting_bytes: 250, ..FleetLimits::default() }, 2),
    ] {
        let mut fleet = Fleet::limited(2, limits);
        let (stream, to) = fleet.open_old();
        let (_, _other) = fleet.open_old();
        fleet.post_old(0, &to, &common::initialize(OLD, common::all_capabilities(OLD)));
        fleet.web(0).pull(stream);
        fleet.post_old(0, &to, &common::call(OLD, 1, "book", json!({})));
        for id in 0..most {
            fleet.post_old(1, &to, &common::call(OLD, 2 + id, "count", json!({})));
            assert_eq!(fleet.web(0).endpoint.load().1, 2, "{limits:?}");
        }
        fleet.post_old(1, &to, &common::call(OLD, 9, "count", json!({})));
        assert_eq!(fleet.web(0).endpoint.load().1, 1, "{limits:?}");
        fleet.settle();
    }
}

/// A message that was taken leaves its room to the next one.
#[test]
fn messages_that_were_taken_leave_their_room() {
    let count = |id: i64| common::call(OLD, id, "count", json!({}));
    let limits = FleetLimits { waiting_bytes: count(50).len(), ..FleetLimits::default() };
    let mut fleet = Fleet::limited(2, limits);
    let (stream, to) = fleet.open_old();
    fleet.post_old(0, &to, &common::initialize(OLD, common::all_capabilities(OLD)));
    fleet.web(0).pull(stream);
    for round in 0..5 {
        fleet.post_old(0, &to, &common::call(OLD, 10 + round, "book", json!({})));
        fleet.post_old(1, &to, &count(50 + round));
        let mut answered = Vec::new();
        for _ in 0..2 {
            answered.extend(fleet.web(0).pull(stream).json().iter().map(|answer| answer["id"].clone()));
            fleet.settle();
        }
        assert_eq!((answered, fleet.web(0).endpoint.load().1), (vec![json!(10 + round), json!(50 + round)], 1));
    }
}

/// Writes a message of the fleet: a kind, then numbers and texts.
fn raw(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    [&[&[1, kind][..]], fields].concat().concat()
}

fn field(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// Writes a request that another process has given this one, under a number of that process.
fn relayed(number: u32) -> Vec<u8> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "later", "arguments": {"tag": "a"}, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    raw(40, &[&number.to_be_bytes(), &field(""), &0u32.to_be_bytes(), &field(&call)])
}

/// Requests of other processes leave the places for requests that are answered at once.
#[test]
fn relayed_requests_have_a_total() {
    let mut fleet = Fleet::of(1);
    let mut other = fleet.hub.join(ProcessTag::new(9));
    let session = fleet.open(0, REVISION);
    for number in 1..=9 {
        let message = relayed(number);
        other.publish(Recipients::One(ProcessTag::new(1)), &message, 1_000);
        fleet.settle();
        // Of eight places one is for quick requests.
        assert_eq!(fleet.web(0).endpoint.load().0, number.min(7) as usize, "{number}");
    }
    assert_eq!(fleet.web(0).call(&session, 1, "count", json!({})).text(), "1");
}

/// A broken engine hands the request of another process in twice: it is served once, and nothing is left of it.
#[test]
fn a_relayed_request_that_comes_twice_is_served_once() {
    let mut fleet = Fleet::of(1);
    let mut other = fleet.hub.join(ProcessTag::new(9));
    let to = Recipients::One(ProcessTag::new(1));
    for _ in 0..3 {
        other.publish(to, &relayed(7), 1_000);
        fleet.settle();
        assert_eq!(fleet.web(0).endpoint.load(), (1, 0, 1));
    }
    other.publish(to, &raw(42, &[&7u32.to_be_bytes()]), 1_000);
    fleet.settle();
    assert_eq!(fleet.web(0).endpoint.load(), (0, 0, 0));
}
