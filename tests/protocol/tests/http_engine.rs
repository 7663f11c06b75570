//! An endpoint of a fleet with an engine that the test plays: it sees each call of the endpoint, and makes each arrival.
mod common;

use std::collections::{BTreeSet, VecDeque};

use common::everything::World;
use common::handlers::{count, large, later};
use common::http::*;
use common::{MODERN, Value, cancel, json, notify, parse, request};
use mcp_sansio::json::{Object, Raw};
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio::revision::Revisions;
use mcp_sansio::server::{MessageLimits, NotifyStatus, Progress, RespondError, Server, ServerChange};
use mcp_sansio::service::{Call, CustomRequest, Extension, ExtensionMethod, HandlerResult, KeptTopic, Tool, Topic};
use mcp_sansio::sink::FullError;
use mcp_sansio_http::endpoint::{Access, App, Endpoint, EndpointLimits, SessionSeal, StreamId};
use mcp_sansio_http::fleet::{Arrival, Engine, FleetLimits, ProcessTag, Recipients};
use mcp_sansio_http::seal::HmacSeal;

const HOUR: u64 = 3_600_000;
const REVISION: &str = "2025-11-25";
const OWN: ProcessTag = ProcessTag::new(4);
const TWO: ProcessTag = ProcessTag::new(2);
const THREE: ProcessTag = ProcessTag::new(3);

/// A call of the endpoint.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    Publish(Recipients, Vec<u8>, u64),
    Append(String, Option<u64>, Vec<u8>, u64),
    Replace(String, Vec<u8>, u64),
    Read(String, u64, Option<u64>),
    Stop(String),
}

#[derive(Default)]
struct Script {
    asked: Vec<Asked>,
    arrivals: VecDeque<Arrival>,
}

impl Engine for Script {
    fn tag(&self) -> ProcessTag {
        OWN
    }
    fn publish(&mut self, to: Recipients, message: &[u8], within: u64) {
        self.asked.push(Asked::Publish(to, message.to_vec(), within));
    }
    fn take(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }
    fn append(&mut self, log: &str, id: Option<u64>, entry: &[u8], keep: u64) {
        self.asked.push(Asked::Append(log.to_owned(), id, entry.to_vec(), keep));
    }
    fn replace(&mut self, log: &str, entry: &[u8], keep: u64) {
        self.asked.push(Asked::Replace(log.to_owned(), entry.to_vec(), keep));
    }
    fn read(&mut self, log: &str, after: u64, follow: Option<u64>) {
        self.asked.push(Asked::Read(log.to_owned(), after, follow));
    }
    fn stop(&mut self, log: &str) {
        self.asked.push(Asked::Stop(log.to_owned()));
    }
    fn set_waker(&mut self, _: std::sync::Arc<dyn Fn() + Send + Sync>) {}
}

/// `give`: another process answers it, else what that has kept, else this one.
fn give(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let key = call.arguments().get("key").and_then(|key| key.text()?.plain()).unwrap_or("");
    let process = call.arguments().get("to").and_then(|to| to.u64()).unwrap_or(2);
    match call.kept() {
        Some(kept) => call.text(kept.as_str()),
        None if call.can_relay() => call.relay(process as u32, key),
        None => call.text("here"),
    }
}

/// A method that another process answers.
fn bare(_: &mut World, request: &mut CustomRequest<'_>) -> HandlerResult {
    request.relay(2, "")
}

/// The keys `none` and `broken` have no state, the others belong to all or to ann.
const THINGS: Topic<World> = Topic::new("things", "notifications/things", |_, key, params| match key {
    "broken" => Err(FullError::Never),
    _ => params.text("key", key),
})
.outlives(
    |_, key| {
        let keep = if key == "long" { u64::MAX } else { 5_000 };
        (key != "none").then_some(KeptTopic { principal: (key == "ann").then_some("ann"), keep })
    },
    |kept: Raw<'_>, params: &mut Object<'_, '_>| params.raw("ended", kept),
);

static EXTENSIONS: [Extension<World>; 1] = [Extension::new("com.example/things")
    .topics(&[THINGS])
    .methods(&[ExtensionMethod::new("com.example/bare", bare).revisions(Revisions::ALL)])];
/// Changes the state of a topic.
fn change(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.publish(ServerChange::Topic { member: "things", key: "a" });
    call.text("changed")
}

static TOOLS: [Tool<World>; 5] = [
    Tool::new("change", "Changes a topic", change),
    Tool::new("give", "Is answered by another process", give),
    Tool::new("count", "Counts its calls", count),
    Tool::new("large", "Answers with so many characters", large).reserve(16),
    Tool::new("later", "Answers later", later),
];

struct Site {
    web: Web,
    engine: Script,
}

impl Site {
    /// Process 4, which knows of 2 and 3 and has heard all that are alive.
    fn new(limits: FleetLimits) -> Site {
        Site::with(EndpointLimits::default(), limits)
    }

    fn with(places: EndpointLimits, limits: FleetLimits) -> Site {
        let mut site = Site::alone(places, limits);
        [OWN, TWO, THREE].into_iter().for_each(|tag| drop(site.arrive(Arrival::Joined(tag))));
        site.web.wait(limits.join_within);
        site.meet();
        site
    }

    /// Process 4, before its engine has said anything.
    fn alone(places: EndpointLimits, limits: FleetLimits) -> Site {
        let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
        let endpoint = Endpoint::growing(config().keep_alive(0), server, places).seal_sessions(seal());
        let mut web = Web::of(endpoint.join_fleet(OWN, limits));
        web.service = web.service.tools(&TOOLS).extend(&EXTENSIONS);
        web.authorize = Box::new(|head| Access::Granted {
            principal: ["ann", "bob"].into_iter().find(|name| head.text("x-name") == Some(*name)),
        });
        Site { web, engine: Script::default() }
    }

    /// Lets the endpoint meet its engine, until nothing arrives any more. Returns its calls.
    fn meet(&mut self) -> Vec<Asked> {
        while self.web.meet(&mut self.engine) {}
        std::mem::take(&mut self.engine.asked)
    }

    fn arrive(&mut self, arrival: Arrival) -> Vec<Asked> {
        self.engine.arrivals.push_back(arrival);
        self.meet()
    }

    fn hear(&mut self, from: ProcessTag, message: Vec<u8>) -> Vec<Asked> {
        self.arrive(Arrival::Message { from, message })
    }

    /// Lets time pass, and then the endpoint meet its engine.
    fn wait(&mut self, millis: u64) -> Vec<Asked> {
        self.web.wait(millis);
        self.meet()
    }

    /// Calls `give`. Returns the stream, and the request that goes to the other process.
    fn give(&mut self, arguments: Value) -> (StreamId, Vec<Asked>) {
        let params = json!({"name": "give", "arguments": arguments, "_meta": {"progressToken": 1}});
        let stream = self.web.modern(1, "tools/call", params).opened();
        (stream, self.meet())
    }

    /// Returns an answer to request 1 as another process would write it.
    fn answer(&mut self) -> String {
        let mut body = self.web.modern(90, "tools/call", json!({"name": "count", "arguments": {}})).body;
        body["id"] = 1.into();
        body.to_string()
    }

    fn in_flight(&self) -> usize {
        self.web.endpoint.load().0
    }
}

fn seal() -> SessionSeal<'static> {
    SessionSeal::new(Box::leak(Box::new(HmacSeal::new(&[7; 32])))).lifetime(HOUR)
}

// The format of messages: the version and the kind, then fields.

fn raw(kind: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    [vec![1, kind], fields.concat()].concat()
}

fn number(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn field(text: &str) -> Vec<u8> {
    [number(text.len() as u32), text.as_bytes().to_vec()].concat()
}

fn option(text: Option<&str>) -> Vec<u8> {
    text.map_or(number(0), |text| [number(1), field(text)].concat())
}

fn relay(given: u32, session: &str, principal: Option<&str>, message: &str) -> Vec<u8> {
    raw(40, &[number(given), field(session), option(principal), field(message)])
}

fn relayed(given: u32, is_last: bool, message: &str) -> Vec<u8> {
    raw(41, &[number(given), number(is_last.into()), field(message)])
}

fn relay_end(given: u32) -> Vec<u8> {
    raw(42, &[number(given)])
}

fn state(key: &str, principal: Option<&str>, params: &str) -> Vec<u8> {
    raw(43, &[field("things"), field(key), option(principal), field(params)])
}

fn to(process: ProcessTag, message: Vec<u8>) -> Asked {
    Asked::Publish(Recipients::One(process), message, 5_000)
}

/// Returns the message of an error that is the only one on a stream.
fn failure(pulled: &Pulled) -> String {
    let only = pulled.only();
    assert_eq!((&only["id"], &only["error"]["code"]), (&json!(1), &json!(-32603)), "{only}");
    only["error"]["message"].as_str().unwrap().to_owned()
}

fn text(pulled: &Pulled) -> String {
    pulled.only()["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
}

const UNREACHED: &str = "The process that can answer did not answer in time: try again";
const UNANSWERED: &str = "The other process has not answered, or its answer is too large";

// Requests that are given away.

#[test]
fn a_request_is_given_away_as_it_came() {
    let mut site = Site::new(FleetLimits::default());
    let arguments = json!({"to": 3, "key": "a", "text": "\u{e9}\"\n"});
    let body = request(MODERN, "x-7", "tools/call", json!({"name": "give", "arguments": arguments}));
    let headers = [JSON, ACCEPT, ("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "give")];
    site.web.request("POST", "/mcp", &headers, &body).opened();
    let params = body.split_once("\"params\":").unwrap().1;
    let given = format!(r#"{{"jsonrpc":"2.0","id":"x-7","method":"tools/call","params":{params}"#);
    assert_eq!(site.meet(), [to(THREE, relay(1, "", None, &given))]);
    // One in a session, of a principal, and without params.
    let opening = common::initialize(REVISION, json!({}));
    let named = [JSON, ACCEPT, ("x-name", "ann")];
    let opened = site.web.request("POST", "/mcp", &named, &opening);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let in_session = [&named[..], &[("mcp-session-id", session.as_str())]].concat();
    let bare = r#"{"jsonrpc":"2.0","id":2,"method":"com.example/bare"}"#;
    site.web.request("POST", "/mcp", &in_session, bare).opened();
    let asked = site.meet();
    assert!(asked.contains(&to(TWO, relay(2, &session, Some("ann"), bare))), "{asked:?}");
}

#[test]
fn only_its_own_process_answers_a_request() {
    let mut site = Site::new(FleetLimits::default());
    let answer = site.answer();
    let (stream, asked) = site.give(json!({}));
    assert_eq!(asked.len(), 1);
    let (other, asked) = site.give(json!({}));
    assert_eq!(asked.len(), 1);
    for (from, message) in [(THREE, relayed(1, true, &answer)), (TWO, relayed(3, true, &answer))] {
        assert_eq!(site.hear(from, message), []);
        assert!(!site.web.pull(stream).ended && site.in_flight() == 2);
    }
    assert_eq!(site.hear(TWO, relayed(1, true, &answer)), []);
    assert_eq!(site.web.pull(stream).only(), parse(&answer));
    // It is over: a second answer is none, and the other one still waits.
    assert_eq!(site.hear(TWO, relayed(1, true, &answer)), []);
    assert!(!site.web.pull(other).ended);
    assert_eq!(site.web.endpoint.load(), (1, 0, 1));
    site.hear(TWO, relayed(2, true, &answer));
    assert_eq!(site.web.pull(other).only(), parse(&answer));
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
}

fn progress(done: u32) -> String {
    notify("notifications/progress", json!({"progressToken": 1, "progress": done}))
}

/// What the other process says about a request goes to its client, and only that.
#[test]
fn messages_before_the_answer() {
    for last in [true, false] {
        let mut site = Site::new(FleetLimits::default());
        let answer = site.answer();
        let (stream, _) = site.give(json!({}));
        site.hear(TWO, relayed(1, false, &progress(1)));
        // A damaged message, and one that only says that it is worked on.
        for nothing in ["", "{", "[]", r#"{"jsonrpc":"2.0"}"#] {
            assert_eq!(site.hear(TWO, relayed(1, false, nothing)), []);
        }
        site.hear(TWO, relayed(1, false, &progress(2)));
        let told = site.web.pull(stream);
        assert_eq!((told.json().len(), told.ended), (2, false));
        assert_eq!(told.json()[1], parse(&progress(2)));
        if last {
            site.hear(TWO, relayed(1, true, &answer));
            assert_eq!(site.web.pull(stream).only(), parse(&answer));
        } else {
            // The client of the request is gone.
            site.web.detach(stream);
            assert_eq!(site.meet(), [to(TWO, relay_end(1))]);
            assert_eq!(site.hear(TWO, relayed(1, true, &answer)), []);
        }
        assert_eq!((site.web.endpoint.load(), site.meet()), ((0, 0, 0), vec![]));
    }
}

#[test]
fn an_end_without_an_answer_is_an_error() {
    for nothing in ["", "{", "[]", r#"{"jsonrpc":"2.0"}"#] {
        let mut site = Site::new(FleetLimits::default());
        let (stream, _) = site.give(json!({}));
        assert_eq!(site.hear(TWO, relayed(1, true, nothing)), []);
        assert_eq!(failure(&site.web.pull(stream)), UNANSWERED, "{nothing}");
        assert_eq!(site.web.endpoint.load(), (0, 0, 0));
    }
    // An error of the other process is an answer.
    for code in ["-32602", "5000000000", "\"x\""] {
        let mut site = Site::new(FleetLimits::default());
        let (stream, _) = site.give(json!({}));
        let error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#);
        site.hear(TWO, relayed(1, true, &error));
        let (status, _) = site.web.sip(stream, 10_000);
        assert_eq!((status, site.in_flight()), (mcp_sansio_http::endpoint::StreamStatus::End, 0), "{code}");
    }
}

/// A sign of the other process prolongs the time of a request.
#[test]
fn a_request_waits_from_the_last_sign_on() {
    for sign in ["", "{", &*progress(1)] {
        let mut site = Site::new(FleetLimits::default());
        let (stream, _) = site.give(json!({}));
        assert_eq!(site.wait(4_999), []);
        assert_eq!(site.hear(TWO, relayed(1, false, sign)), []);
        assert_eq!(site.wait(4_999), []);
        assert!(!site.web.pull(stream).ended);
        // Its process stops to work on it.
        assert_eq!(site.wait(1), [to(TWO, relay_end(1))]);
        assert_eq!(failure(&site.web.pull(stream)), UNREACHED);
        assert_eq!(site.hear(TWO, relayed(1, true, &progress(2))), []);
        assert_eq!(site.web.endpoint.load(), (0, 0, 0));
    }
}

#[test]
fn messages_that_find_no_room_on_the_stream() {
    let places = EndpointLimits { stream: 500, ..EndpointLimits::default() };
    let long = "x".repeat(600);
    let mut site = Site::with(places, FleetLimits::default());
    let answer = site.answer();
    let too_long = answer.replace("\"text\":\"1\"", &format!("\"text\":\"{long}\""));
    let (stream, _) = site.give(json!({}));
    // A notification is left out.
    let notification = notify("notifications/progress", json!({"progressToken": 1, "progress": 1, "message": long}));
    assert_eq!(site.hear(TWO, relayed(1, false, &notification)), []);
    assert!(site.web.pull(stream).json().is_empty() && site.in_flight() == 1);
    assert_eq!(site.hear(TWO, relayed(1, true, &too_long)), []);
    assert_eq!(failure(&site.web.pull(stream)), "The answer of the other process is too large");
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
    // A question that cannot be asked ends the request, and the other process learns of it.
    let (stream, _) = site.give(json!({}));
    let question = request(REVISION, 1, "elicitation/create", json!({"message": long}));
    assert_eq!(site.hear(TWO, relayed(2, false, &question)), [to(TWO, relay_end(2))]);
    assert_eq!(failure(&site.web.pull(stream)), "The answer of the other process is too large");
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
}

fn entry(key: &str, entry: Vec<u8>) -> Arrival {
    Arrival::Entry { log: format!("t:{key}"), id: 1, entry }
}

fn caught_up(key: &str) -> Arrival {
    Arrival::CaughtUp { log: format!("t:{key}") }
}

/// The handler runs again with the last state that the process has kept for the client.
#[test]
fn a_process_that_leaves_is_answered_for() {
    for (entries, expected) in [
        (vec![], "here"),
        (vec![state("k", None, r#"{"n":1}"#)], r#"{"n":1}"#),
        (vec![state("k", None, r#"{"n":1}"#), state("k", None, r#"{"n":2}"#)], r#"{"n":2}"#),
        (vec![state("k", Some("bob"), r#"{"n":1}"#)], "here"),
        (vec![state("k", None, r#"{"n":1}"#), state("k", Some("bob"), r#"{"n":2}"#)], "here"),
        (vec![state("k", None, r#"{"n":"#)], "here"),
        (vec![b"nonsense".to_vec()], "here"),
        (vec![relay_end(1)], "here"),
    ] {
        let mut site = Site::new(FleetLimits::default());
        let answer = site.answer();
        let (stream, _) = site.give(json!({"key": "k"}));
        let (other, _) = site.give(json!({"key": "other"}));
        let (third, _) = site.give(json!({"to": 3, "key": "k"}));
        let read = |key: &str| Asked::Read(format!("t:{key}"), 0, None);
        assert_eq!(site.arrive(Arrival::Left(TWO)), [read("k"), read("other")]);
        // It is heard no more.
        assert_eq!(site.hear(TWO, relayed(1, true, &answer)), []);
        for kept in entries {
            assert_eq!(site.arrive(entry("k", kept)), []);
        }
        site.arrive(entry("other", state("other", None, "{}")));
        assert!(!site.web.pull(stream).ended);
        assert_eq!(site.arrive(caught_up("k")), []);
        assert_eq!(text(&site.web.pull(stream)), expected);
        assert!(!site.web.pull(other).ended && !site.web.pull(third).ended);
        site.arrive(caught_up("other"));
        assert_eq!(text(&site.web.pull(other)), "{}");
        site.hear(THREE, relayed(3, true, &answer));
        assert!(site.web.pull(third).ended);
        assert_eq!((site.web.endpoint.load(), site.meet()), ((0, 0, 0), vec![]));
    }
}

#[test]
fn a_process_that_keeps_nothing_is_not_read() {
    let mut site = Site::new(FleetLimits::default());
    let (stream, _) = site.give(json!({}));
    assert_eq!(site.arrive(Arrival::Left(TWO)), []);
    assert_eq!(text(&site.web.pull(stream)), "here");
    // One that has left already is not asked.
    let (stream, asked) = site.give(json!({"key": "k"}));
    assert_eq!(asked, [Asked::Read("t:k".to_owned(), 0, None)]);
    // To leave once more begins nothing anew.
    assert_eq!(site.arrive(Arrival::Left(TWO)), []);
    site.arrive(caught_up("k"));
    assert_eq!(text(&site.web.pull(stream)), "here");
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
}

#[test]
fn a_log_that_does_not_arrive_has_a_time() {
    for over in [true, false] {
        let mut site = Site::new(FleetLimits::default());
        let (stream, _) = site.give(json!({"key": "k"}));
        site.wait(1_000);
        site.arrive(Arrival::Left(TWO));
        if over {
            assert_eq!(site.arrive(Arrival::ReadOver { log: "t:k".to_owned() }), []);
        }
        assert_eq!(site.wait(4_999), []);
        assert!(!site.web.pull(stream).ended);
        // There is no process that could stop.
        assert_eq!(site.wait(1), []);
        assert_eq!(failure(&site.web.pull(stream)), UNREACHED);
        assert_eq!((site.arrive(caught_up("k")), site.in_flight()), (vec![], 0));
    }
}

/// A request for a process that was not heard is sent until all were heard, and then its log is read.
#[test]
fn a_process_that_was_not_heard_yet() {
    let limits = FleetLimits::default();
    let mut site = Site::alone(EndpointLimits::default(), limits);
    let (early, asked) = site.give(json!({"to": 2, "key": "k"}));
    assert_eq!(asked.len(), 1, "the engine has said nothing yet");
    site.arrive(Arrival::Joined(OWN));
    site.arrive(Arrival::Joined(THREE));
    site.arrive(Arrival::Left(ProcessTag::new(9)));
    let (unheard, asked) = site.give(json!({"to": 8, "key": "u"}));
    assert!(matches!(asked[..], [Asked::Publish(..)]), "{asked:?}");
    let (left, asked) = site.give(json!({"to": 9, "key": "l"}));
    assert_eq!(asked, [Asked::Read("t:l".to_owned(), 0, None)]);
    let (known, _) = site.give(json!({"to": 3, "key": "a"}));
    assert_eq!(site.wait(limits.join_within - 1), []);
    let mut asked = site.wait(1);
    asked.sort_by_key(|asked| format!("{asked:?}"));
    assert_eq!(asked, ["t:k", "t:u"].map(|log| Asked::Read(log.to_owned(), 0, None)));
    for key in ["k", "u", "l", "a"] {
        site.arrive(caught_up(key));
    }
    for stream in [early, unheard, left] {
        assert_eq!(text(&site.web.pull(stream)), "here");
    }
    assert!(!site.web.pull(known).ended);
}

#[test]
fn a_process_that_cannot_be_asked() {
    // The engine is away.
    let mut site = Site::new(FleetLimits::default());
    let (waits, _) = site.give(json!({}));
    assert_eq!(site.arrive(Arrival::Left(OWN)), [to(TWO, relay_end(1))]);
    assert_eq!(failure(&site.web.pull(waits)), UNREACHED);
    let (stream, asked) = site.give(json!({}));
    assert_eq!(asked, []);
    assert_eq!(failure(&site.web.pull(stream)), UNREACHED);
    // It is back, with the others.
    site.arrive(Arrival::Joined(OWN));
    site.arrive(Arrival::Joined(TWO));
    assert_eq!(site.give(json!({})).1.len(), 1);
    // There is no room for the request.
    let mut site = Site::new(FleetLimits { outbox: 0, ..FleetLimits::default() });
    let (stream, asked) = site.give(json!({}));
    assert_eq!((failure(&site.web.pull(stream)), asked), (UNREACHED.to_owned(), vec![]));
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
}

#[test]
fn requests_for_another_process_have_a_limit_of_bytes() {
    let mut site = Site::new(FleetLimits::default());
    let (_, asked) = site.give(json!({}));
    let [Asked::Publish(_, message, _)] = &asked[..] else { panic!("{asked:?}") };
    // Before it are the kind, its number, no session, no principal and its length.
    let len = message.len() - (2 + 4 + 4 + 4 + 4);
    let mut site = Site::new(FleetLimits { relay_bytes: len, ..FleetLimits::default() });
    assert_eq!(site.give(json!({})).1, asked);
    let mut site = Site::new(FleetLimits { relay_bytes: len - 1, ..FleetLimits::default() });
    let (stream, asked) = site.give(json!({}));
    assert_eq!(failure(&site.web.pull(stream)), "The request is too large for another process");
    assert_eq!((asked, site.in_flight()), (vec![], 0));
}

/// The answer comes later, on a stream.
#[test]
fn a_client_without_streams_cannot_be_answered_by_another_process() {
    let mut site = Site::new(FleetLimits::default());
    let body = request(MODERN, 1, "tools/call", json!({"name": "give", "arguments": {}}));
    let accept = ("accept", "application/json");
    let headers = [JSON, accept, ("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "give")];
    site.web.request("POST", "/mcp", &headers, &body).refused(406);
    assert_eq!((site.meet(), site.web.endpoint.load()), (vec![], (0, 0, 0)));
}

/// A session that only one process knows cannot be served by another one.
#[test]
fn only_sealed_sessions_are_relayed() {
    for sealed in [true, false] {
        let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
        let mut endpoint = Endpoint::growing(config(), server, EndpointLimits::default());
        if sealed {
            endpoint = endpoint.seal_sessions(seal());
        }
        let mut web = Web::of(endpoint.join_fleet(OWN, FleetLimits::default()));
        web.service = web.service.tools(&TOOLS);
        let session = web.open(REVISION);
        let reply = web.call(&session, 1, "give", json!({}));
        assert_eq!(reply.stream.is_some(), sealed, "{reply:?}");
        assert!(sealed || reply.text() == "here");
    }
}

// Requests of other processes.

fn call(name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 1}});
    request(MODERN, 1, "tools/call", params)
}

/// Returns the only message for a process, and whether it is the last one about a request.
fn only(asked: &[Asked], number: u32) -> (bool, String) {
    let [Asked::Publish(Recipients::One(_), message, 5_000)] = asked else { panic!("{asked:?}") };
    assert_eq!(message[..6], relayed(number, false, "")[..6], "{message:?}");
    (message[9] == 1, String::from_utf8(message[14..].to_vec()).unwrap())
}

#[test]
fn a_request_of_another_process_is_answered() {
    let mut site = Site::new(FleetLimits::default());
    let (is_last, answer) = only(&site.hear(TWO, relay(7, "", None, &call("count", json!({})))), 7);
    assert!(is_last && parse(&answer)["result"]["content"][0]["text"] == "1", "{answer}");
    assert_eq!(site.web.endpoint.load(), (0, 0, 0));
    // One that takes its time: the other process learns that it is worked on, of progress, and of the answer.
    let later = relay(8, "", None, &call("later", json!({"tag": "a"})));
    assert_eq!(site.hear(TWO, later.clone()), [to(TWO, relayed(8, false, ""))]);
    let token = site.web.later("a");
    assert_eq!(site.web.endpoint.progress(token, Progress::new(1)), NotifyStatus::Sent);
    let (is_last, told) = only(&site.meet(), 8);
    assert_eq!((is_last, parse(&told)), (false, parse(&progress(1))));
    site.web.answer(token, "at last").unwrap();
    let (is_last, answer) = only(&site.meet(), 8);
    assert!(is_last && parse(&answer)["result"]["content"][0]["text"] == "at last", "{answer}");
    assert_eq!((site.web.endpoint.load(), site.wait(10_000)), ((0, 0, 0), vec![]));
}

/// The other process waits for a sign; it gets one twice in that time.
#[test]
fn a_request_that_is_worked_on_gives_signs() {
    let mut site = Site::new(FleetLimits::default());
    let later = |number: u32| relay(number, "", None, &call("later", json!({"tag": number.to_string()})));
    let sign = |number: u32| to(TWO, relayed(number, false, ""));
    assert_eq!(site.hear(TWO, later(1)), [sign(1)]);
    assert_eq!(site.wait(1_000), []);
    assert_eq!(site.hear(TWO, later(2)), [sign(2)]);
    for _ in 0..2 {
        assert_eq!(site.wait(1_499), []);
        assert_eq!(site.wait(1), [sign(1)]);
        assert_eq!(site.wait(999), []);
        assert_eq!(site.wait(1), [sign(2)]);
    }
    let token = site.web.later("1");
    site.web.answer(token, "done").unwrap();
    assert_eq!(site.meet().len(), 1);
    assert_eq!(site.wait(2_500), [sign(2)]);
    // The other one goes on by itself.
    let token = site.web.later("2");
    site.web.answer(token, "done").unwrap();
    assert!(only(&site.meet(), 2).0);
    assert_eq!((site.wait(10_000), site.in_flight()), (vec![], 0));
    // However short the time is.
    for relay_within in [0, 1, 2, 3] {
        let mut site = Site::new(FleetLimits { relay_within, ..FleetLimits::default() });
        assert_eq!(site.hear(TWO, later(1)).len(), 1);
        assert_eq!(site.wait(3).len(), 3, "{relay_within}");
    }
}

#[test]
fn requests_of_other_processes_have_limits() {
    let message = call("count", json!({}));
    let overloaded = |asked: &[Asked], number| {
        let (is_last, error) = only(asked, number);
        let error = parse(&error);
        assert_eq!((is_last, &error["id"], &error["error"]["code"]), (true, &json!(1), &json!(-32603)));
        assert_eq!(error["error"]["message"], "Overloaded: too many requests of other processes");
    };
    for relay_bytes in [message.len(), message.len() - 1] {
        let mut site = Site::new(FleetLimits { relay_bytes, ..FleetLimits::default() });
        let asked = site.hear(TWO, relay(7, "", None, &message));
        match relay_bytes == message.len() {
            true => assert!(parse(&only(&asked, 7).1).get("result").is_some()),
            false => overloaded(&asked, 7),
        }
    }
    let mut site = Site::new(FleetLimits { relayed: 1, ..FleetLimits::default() });
    let later = call("later", json!({"tag": "a"}));
    assert_eq!(site.hear(TWO, relay(1, "", None, &later)), [to(TWO, relayed(1, false, ""))]);
    overloaded(&site.hear(TWO, relay(2, "", None, &message)), 2);
    // One of another process has a number of its own, and counts too.
    overloaded(&site.hear(THREE, relay(1, "", None, &message)), 1);
    assert_eq!(site.hear(TWO, relay_end(1)), []);
    assert!(parse(&only(&site.hear(THREE, relay(1, "", None, &message)), 1).1).get("result").is_some());
    // Neither is there a stream for it.
    let places = EndpointLimits { streams: 1, ..EndpointLimits::default() };
    let mut site = Site::with(places, FleetLimits::default());
    site.hear(TWO, relay(1, "", None, &later));
    overloaded(&site.hear(TWO, relay(2, "", None, &message)), 2);
    assert_eq!(site.web.endpoint.load(), (1, 0, 1));
}

#[test]
fn answers_for_other_processes_have_a_limit_of_bytes() {
    for size in [2_000, 200_000] {
        let message = call("large", json!({"size": size}));
        let mut site = Site::new(FleetLimits::default());
        let (_, answer) = only(&site.hear(TWO, relay(7, "", None, &message)), 7);
        assert!(answer.len() > size);
        let mut site = Site::new(FleetLimits { relay_bytes: answer.len(), ..FleetLimits::default() });
        assert_eq!(only(&site.hear(TWO, relay(7, "", None, &message)), 7), (true, answer.clone()));
        let mut site = Site::new(FleetLimits { relay_bytes: answer.len() - 1, ..FleetLimits::default() });
        assert_eq!(site.hear(TWO, relay(7, "", None, &message)), [to(TWO, relayed(7, true, ""))]);
        assert_eq!(site.web.endpoint.load(), (0, 0, 0));
    }
}

#[test]
fn a_request_of_another_process_ends_with_its_client() {
    let mut site = Site::new(FleetLimits::default());
    let later = call("later", json!({"tag": "a"}));
    site.hear(TWO, relay(7, "", None, &later));
    let token = site.web.later("a");
    // Another process has another request of that number, or none.
    assert_eq!((site.hear(THREE, relay_end(7)), site.hear(TWO, relay_end(8))), (vec![], vec![]));
    assert_eq!((site.in_flight(), site.web.world.cancelled.len()), (1, 0));
    assert_eq!(site.hear(TWO, relay_end(7)), []);
    assert_eq!((site.web.endpoint.load(), &site.web.world.cancelled), ((0, 0, 0), &vec![token]));
    assert_eq!(site.web.answer(token, "too late"), Err(RespondError::Stale));
    assert_eq!(site.wait(10_000), []);
    // And with its process, which may be there still.
    site.hear(THREE, relay(1, "", None, &later));
    site.hear(TWO, relay(1, "", None, &later));
    assert_eq!(site.arrive(Arrival::Left(TWO)), [to(TWO, relayed(1, true, ""))]);
    assert_eq!((site.in_flight(), site.web.world.cancelled.len()), (1, 2));
    assert_eq!(site.hear(THREE, relay_end(1)), []);
    assert_eq!(site.in_flight(), 0);
}

#[test]
fn nonsense_of_another_process_gets_one_answer() {
    let mut site = Site::new(FleetLimits::default());
    let (is_last, error) = only(&site.hear(TWO, relay(1, "", None, "nonsense")), 1);
    assert!(is_last && parse(&error)["error"]["code"] == -32700, "{error}");
    // A notification has no answer.
    let notification = notify("notifications/cancelled", json!({"requestId": 9}));
    assert_eq!(site.hear(TWO, relay(2, "", None, &notification)), [to(TWO, relayed(2, true, ""))]);
    // The session is unknown.
    let unknown = "A".repeat(64);
    let (is_last, error) = only(&site.hear(TWO, relay(3, &unknown, None, &call("count", json!({})))), 3);
    assert!(is_last && parse(&error)["error"]["code"] == -32001, "{error}");
    assert_eq!((site.web.endpoint.load(), site.wait(10_000)), ((0, 0, 0), vec![]));
}

/// What a request of another process changes in its session counts there.
#[test]
fn a_request_of_another_process_in_a_session() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    let stream = site.web.listen(&session, None).opened();
    site.web.pull(stream);
    site.meet();
    let announced = |site: &mut Site| {
        let Web { endpoint, service, world, .. } = &mut site.web;
        endpoint.announce(&App::new(service, world), LoggingLevel::Info, "all is well");
        if site.web.is_ready(stream) { site.web.pull(stream).json().len() } else { 0 }
    };
    assert_eq!(announced(&mut site), 1);
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    let (is_last, answer) = only(&site.hear(TWO, relay(1, &session, None, &set)), 1);
    assert!(is_last && parse(&answer)["result"] == json!({}), "{answer}");
    assert_eq!(announced(&mut site), 0);
    // Not for another principal.
    let (_, error) = only(&site.hear(TWO, relay(2, &session, Some("ann"), &set)), 2);
    assert_eq!(parse(&error)["error"]["code"], -32001);
    assert_eq!(site.web.endpoint.load(), (0, 1, 1));
}

// Topics.

fn publish(site: &mut Site, key: &str) {
    site.web.publish(ServerChange::Topic { member: "things", key });
}

fn topic_changed(key: &str) -> Asked {
    Asked::Publish(Recipients::Others, raw(5, &[field("things"), field(key)]), u64::MAX)
}

/// The state of a key is kept for its owner, as long as it wants within a limit, and goes to the others.
#[test]
fn the_state_of_a_topic_is_kept_and_sent() {
    let limits = FleetLimits { keep: 60_000, ..FleetLimits::default() };
    let mut site = Site::new(limits);
    for (key, principal, keep) in [("a", None, 5_000), ("ann", Some("ann"), 5_000), ("long", None, 60_000)] {
        // Twice is once.
        publish(&mut site, key);
        publish(&mut site, key);
        let entry = state(key, principal, &format!(r#"{{"key":"{key}"}}"#));
        assert_eq!(
            site.meet(),
            [
                Asked::Replace(format!("t:{key}"), entry.clone(), keep),
                Asked::Publish(Recipients::Others, entry, limits.within)
            ]
        );
    }
    // Without a state the others only learn that it has changed.
    for key in ["none", "broken"] {
        publish(&mut site, key);
        assert_eq!(site.meet(), [topic_changed(key)]);
    }
    assert_eq!(site.meet(), []);
}

#[test]
fn the_state_of_a_topic_has_a_limit_of_bytes() {
    let len = state("a", None, r#"{"key":"a"}"#).len();
    for (relay_bytes, is_sent) in [(len, true), (len - 1, false)] {
        let mut site = Site::new(FleetLimits { relay_bytes, ..FleetLimits::default() });
        publish(&mut site, "a");
        let asked = site.meet();
        assert_eq!((asked.len(), asked.contains(&topic_changed("a"))), (if is_sent { 2 } else { 1 }, !is_sent));
    }
}

/// Changes of more keys than are noted go out without their state.
#[test]
fn the_keys_that_have_changed_have_a_limit() {
    let mut site = Site::new(FleetLimits { outbox: 100_000, ..FleetLimits::default() });
    for key in 0..10_002 {
        publish(&mut site, &format!("{key:05}"));
    }
    let asked = site.meet();
    let changes: Vec<_> = asked.iter().filter(|asked| matches!(asked, Asked::Publish(_, _, u64::MAX))).collect();
    assert_eq!(changes, [&topic_changed("10000"), &topic_changed("10001")]);
    assert_eq!(asked.iter().filter(|asked| matches!(asked, Asked::Replace(..))).count(), 10_000);
}

// Counts of requests in flight.

/// Returns the counts that go to the others, in their order.
fn counted(asked: &[Asked]) -> Vec<Vec<u32>> {
    let counts = asked.iter().filter_map(|asked| match asked {
        Asked::Publish(Recipients::Others, message, 5_000) if message[..2] == [1, 44] => Some(&message[6..]),
        _ => None,
    });
    let count = |entry: &[u8]| u32::from_be_bytes(entry[16..].try_into().unwrap());
    counts.map(|entries| entries.chunks(20).map(count).collect()).collect()
}

#[test]
fn the_others_learn_the_counts_of_principals() {
    let mut site = Site::new(FleetLimits::default());
    let call = |site: &mut Site, name: &str, tag: &str| {
        let params = json!({"name": "later", "arguments": {"tag": tag}});
        site.web.modern_with(&[("x-name", name)], 1, "tools/call", params).opened()
    };
    // Those without a name cannot be distinguished.
    call(&mut site, "", "0");
    assert_eq!(counted(&site.wait(10_000)), [[0; 0]; 0]);
    call(&mut site, "ann", "1");
    assert_eq!(counted(&site.wait(0)), [[1]]);
    // Again after some time, though nothing has changed; changes not too often.
    assert_eq!(counted(&site.wait(1_999)), [[0; 0]; 0]);
    assert_eq!(counted(&site.wait(1)), [[1]]);
    call(&mut site, "ann", "2");
    call(&mut site, "bob", "3");
    assert_eq!(counted(&site.wait(199)), [[0; 0]; 0]);
    assert_eq!(counted(&site.wait(1)), [[2, 1]]);
    // What has changed and is the same again is not said before its time.
    let token = site.web.later("2");
    site.web.answer(token, "done").unwrap();
    call(&mut site, "ann", "4");
    assert_eq!(counted(&site.wait(1_999)), [[0; 0]; 0]);
    assert_eq!(counted(&site.wait(1)), [[2, 1]]);
    for tag in ["1", "3", "4"] {
        let token = site.web.later(tag);
        site.web.answer(token, "done").unwrap();
    }
    assert_eq!(counted(&site.wait(199)), [[0; 0]; 0]);
    assert_eq!(counted(&site.wait(1)), [[0; 0]; 1]);
    assert_eq!(counted(&site.wait(10_000)), [[0; 0]; 0]);
}

/// The time of the last message may be in the future then.
#[test]
fn counts_are_said_after_the_clock_was_set_back() {
    let mut site = Site::new(FleetLimits::default());
    let params = json!({"name": "later", "arguments": {"tag": "1"}});
    site.web.now = 100_000;
    site.web.modern_with(&[("x-name", "ann")], 1, "tools/call", params).opened();
    assert_eq!(counted(&site.wait(0)), [[1]]);
    site.web.now = 50_000;
    let Web { endpoint, service, world, .. } = &mut site.web;
    endpoint.expire(&mut App::new(service, world), 50_000);
    assert_eq!(counted(&site.meet()), [[1]]);
    assert_eq!(counted(&site.wait(1_999)), [[0; 0]; 0]);
    assert_eq!(counted(&site.wait(1)), [[1]]);
}

// Presence.

/// Of more processes than the limit, the endpoint waits for no acknowledgement, and knows not that they have left.
#[test]
fn only_so_many_processes_are_known() {
    let limits = FleetLimits { processes: 1, ..FleetLimits::default() };
    let mut site = Site::alone(EndpointLimits::default(), limits);
    [OWN, TWO, THREE].into_iter().for_each(|tag| drop(site.arrive(Arrival::Joined(tag))));
    [5, 6].into_iter().for_each(|tag| drop(site.arrive(Arrival::Left(ProcessTag::new(tag)))));
    assert!(matches!(site.give(json!({"to": 5, "key": "k"})).1[..], [Asked::Read(..)]));
    assert!(matches!(site.give(json!({"to": 6, "key": "k"})).1[..], [Asked::Publish(..)]));
    let session = site.web.open(REVISION);
    site.meet();
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    assert!(site.web.say(&session, &set).undecided);
    let known = |request: &str| raw(26, &[field(&session), option(None), field(request)]);
    site.hear(TWO, known("2"));
    assert!(site.web.say(&session, &set).undecided, "that is another request");
    // The session of another id, which begins as this one.
    let mut other = session.clone();
    other.replace_range(session.len() - 1.., if session.ends_with('A') { "B" } else { "A" });
    site.hear(TWO, raw(26, &[field(&other), option(None), field("1")]));
    assert!(site.web.say(&session, &set).undecided);
    site.hear(TWO, known("1"));
    assert_eq!(site.web.say(&session, &set).body["result"], json!({}));
}

#[test]
fn a_turn_takes_at_least_one_arrival() {
    for (turn, turns) in [(0, 3), (1, 3), (2, 2), (3, 1)] {
        let mut site = Site::new(FleetLimits { turn, ..FleetLimits::default() });
        site.engine.arrivals.extend([Arrival::Lost, Arrival::Lost, Arrival::Lost]);
        let taken = std::iter::from_fn(|| site.web.meet(&mut site.engine).then_some(())).count();
        assert_eq!(taken, turns, "{turn}");
    }
}

// Sessions.

/// Returns an endpoint that knows nothing of a session yet, and its id.
fn elsewhere(limits: FleetLimits) -> (Site, String) {
    let mut other = Site::new(FleetLimits::default());
    other.web.dice.0 = 5;
    let session = other.web.open(REVISION);
    let mut site = Site::new(limits);
    site.web.sessions.insert(session.clone(), REVISION.to_owned());
    (site, session)
}

fn log_of(session: &str) -> String {
    format!("s:{}", &session[..16])
}

#[test]
fn the_log_of_a_session_is_read_once_and_no_longer_than_the_session_lasts() {
    let (mut site, session) = elsewhere(FleetLimits::default());
    let ping = request(REVISION, 1, "ping", json!({}));
    assert!(site.web.say(&session, &ping).undecided);
    // Its time is a deadline, and not one of the session.
    assert_eq!(site.web.endpoint.next_deadline(), Some(site.web.now + 200));
    assert_eq!(site.meet(), [Asked::Read(log_of(&session), 0, None)]);
    assert!(site.web.say(&session, &ping).undecided);
    assert_eq!(site.meet(), []);
    site.web.wait(199);
    assert!(site.web.say(&session, &ping).undecided);
    site.web.wait(1);
    assert_eq!(site.web.say(&session, &ping).status, 200);
    assert_ne!(site.web.endpoint.next_deadline(), Some(site.web.now));
    let delete = |site: &mut Site| {
        let delete = |web: &mut Web| web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status;
        assert_eq!(delete(&mut site.web), 503);
        site.web.now += 200;
        assert_eq!(delete(&mut site.web), 204);
        site.meet()
    };
    assert!(delete(&mut site).contains(&Asked::Stop(log_of(&session))));
    // One that was read is not stopped.
    let (mut site, session) = elsewhere(FleetLimits::default());
    assert!(site.web.say(&session, &ping).undecided);
    site.meet();
    site.arrive(Arrival::CaughtUp { log: log_of(&session) });
    assert_eq!(site.web.say(&session, &ping).status, 200);
    let delete = |web: &mut Web| web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status;
    assert_eq!(delete(&mut site.web), 503);
    site.web.now += 200;
    assert_eq!(delete(&mut site.web), 204);
    let asked = site.meet();
    assert!(!asked.iter().any(|asked| matches!(asked, Asked::Stop(_))), "{asked:?}");
}

fn setting(method: &str, member: &str, value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{{"{member}":"{value}"}}}}"#)
}

/// First into the log, as long as the session lasts, and then to the others, in its shortest form.
#[test]
fn a_setting_goes_into_the_log_and_to_the_others() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    site.web.wait(1_000);
    let uri = "test://text";
    let cases = [
        ("logging/setLevel", "level", "error"),
        ("resources/subscribe", "uri", uri),
        ("resources/unsubscribe", "uri", uri),
    ];
    for (id, (method, member, value)) in cases.into_iter().enumerate() {
        let message = request(REVISION, id as u64 + 1, method, json!({member: value, "_meta": {"a": 1}}));
        assert!(site.web.say(&session, &message).undecided);
        let short = setting(method, member, value);
        assert_eq!(
            site.meet(),
            [
                Asked::Append(log_of(&session), None, raw(17, &[field(&short)]), HOUR - 1_000),
                Asked::Publish(
                    Recipients::Others,
                    raw(17, &[field(&session), option(None), field(&(id + 1).to_string()), field(&short)]),
                    10_000
                )
            ]
        );
    }
    // Other requests, and settings without a value, are none.
    for (method, params) in [
        ("ping", json!({})),
        ("logging/setLevel", json!({})),
        ("logging/setLevel", json!({"level": 1})),
        ("resources/subscribe", json!({"uri": []})),
        ("resources/unsubscribe", json!({})),
    ] {
        assert!(!site.web.say(&session, &request(REVISION, 9, method, params)).undecided, "{method}");
        assert_eq!(site.meet(), [], "{method}");
    }
}

#[test]
fn the_log_of_a_session_has_a_limit_of_bytes() {
    let len = setting("resources/subscribe", "uri", "test://text").len();
    for (bytes, kept) in [(2 * len - 1, 1), (2 * len, 2), (2 * len + 1, 2)] {
        let mut site = Site::new(FleetLimits { session_bytes: bytes, settle_within: 0, ..FleetLimits::default() });
        let session = site.web.open(REVISION);
        site.meet();
        for id in 0..3 {
            let subscribe = request(REVISION, id, "resources/subscribe", json!({"uri": "test://text"}));
            assert_eq!(site.web.say(&session, &subscribe).status, 200);
        }
        let asked = site.meet();
        assert_eq!(asked.iter().filter(|asked| matches!(asked, Asked::Append(..))).count(), kept, "{bytes}");
    }
}

/// A process that heard the end of a session, or of a setting in one, says so.
#[test]
fn what_others_change_in_a_session_is_acknowledged() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    let set = |request: &str| {
        let short = setting("logging/setLevel", "level", "error");
        raw(17, &[field(&session), option(None), field(request), field(&short)])
    };
    let known = |request: &str| {
        Asked::Publish(Recipients::One(TWO), raw(26, &[field(&session), option(None), field(request)]), 10_000)
    };
    assert_eq!(site.hear(TWO, set("\"a\"")), [known("\"a\"")]);
    // One of a batch has no id.
    assert_eq!(site.hear(TWO, set("")), []);
    let ended = raw(18, &[field(&session), option(None)]);
    assert_eq!(site.hear(TWO, ended.clone()), [known("")]);
    assert_eq!(site.web.endpoint.load().1, 0);
    // Also a second time, and of a session that is not open here.
    assert_eq!(site.hear(TWO, ended), [known("")]);
    site.web.call(&session, 1, "count", json!({})).refused(404);
}

/// Returns the changes of resources that a session hears of that subscribes after them.
fn heard_after(site: &mut Site, session: &str, stream: StreamId, uris: &[String]) -> Vec<String> {
    for uri in uris {
        let short = setting("resources/subscribe", "uri", uri);
        site.hear(TWO, raw(17, &[field(session), option(None), field("1"), field(&short)]));
    }
    if !site.web.is_ready(stream) {
        return Vec::new();
    }
    let told = site.web.pull(stream).json();
    let heard: BTreeSet<_> = told.iter().map(|message| message["params"]["uri"].as_str().unwrap()).collect();
    assert_eq!(heard.len(), told.len(), "each once");
    uris.iter().filter(|uri| heard.contains(uri.as_str())).cloned().collect()
}

/// A change may have come before the subscription of another process. The last ones are kept for some seconds.
#[test]
fn the_last_changes_of_resources_are_kept() {
    let uris: Vec<_> = (0..65).map(|n| format!("test://items/{n}")).collect();
    for (later, heard) in [(5_000, &uris[1..]), (5_001, &[][..])] {
        let mut site = Site::new(FleetLimits::default());
        let session = site.web.open(REVISION);
        let stream = site.web.listen(&session, None).opened();
        site.web.pull(stream);
        for uri in &uris {
            let message = raw(4, &[field(uri)]);
            site.hear(TWO, message);
        }
        // Lists are not among them.
        site.hear(TWO, raw(1, &[]));
        site.web.pull(stream);
        site.web.wait(later);
        assert_eq!(heard_after(&mut site, &session, stream, &uris), heard, "{later}");
    }
}

/// A message that cancels a request here goes no further, and the next one does.
#[test]
fn what_was_cancelled_here_goes_no_further() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    let passed = |asked: &[Asked], message: &str| {
        let message = raw(16, &[field(&session), option(None), field(message)]);
        asked == [Asked::Publish(Recipients::Others, message, 10_000)]
    };
    site.web.call(&session, 1, "later", json!({"tag": "a"})).opened();
    site.meet();
    site.web.say(&session, &cancel(1));
    let asked = site.meet();
    assert!(!asked.iter().any(|asked| matches!(asked, Asked::Publish(..))), "{asked:?}");
    // It is not here any more.
    site.web.say(&session, &cancel(1));
    assert!(passed(&site.meet(), &cancel(1)));
    let changed = notify("notifications/roots/list_changed", json!({}));
    site.web.say(&session, &changed);
    assert!(passed(&site.meet(), &changed));
    // What concerns only the process that gets it.
    for method in ["notifications/initialized", "notifications/test/own"] {
        site.web.say(&session, &notify(method, json!({})));
        assert_eq!(site.meet(), [], "{method}");
    }
}

// Streams of other processes that are resumed here.

fn long(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// The log of stream 7 of process 2, which is in slot 3 there.
const COPY: &str = "e:2-3-7";

/// Returns the id of an event of that stream.
fn event_id(event: u32) -> String {
    format!("3-7-{event}-p2")
}

fn record(kind: u8, content: &[Vec<u8>]) -> Vec<u8> {
    let content = content.concat();
    [vec![kind], number(content.len() as u32), content].concat()
}

fn begins(session: &str, ids: &[&str]) -> Vec<u8> {
    let ids = ids.iter().map(|id| field(id)).collect::<Vec<_>>().concat();
    record(1, &[session.as_bytes()[..16].to_vec(), ids])
}

fn event(event: u32, message: &str) -> Vec<u8> {
    record(2, &[number(event), message.as_bytes().to_vec()])
}

fn ends(is_lost: bool) -> Vec<u8> {
    record(4, &[if is_lost { vec![1] } else { vec![] }])
}

fn copied(id: u64, records: &[Vec<u8>]) -> Arrival {
    Arrival::Entry { log: COPY.to_owned(), id, entry: [vec![1], records.concat()].concat() }
}

/// The process of the stream learns which events its client has.
fn follows(session: &str, event: u32, since: u64) -> Asked {
    let stream = [number(3), long(7), number(event), long(since)];
    let message = raw(24, &[&[field(session), option(None)][..], &stream].concat());
    Asked::Publish(Recipients::One(TWO), message, 10_000)
}

/// Begins to resume the stream after an event. Returns the session.
fn look(site: &mut Site, after: u32) -> String {
    let session = site.web.open(REVISION);
    site.web.hear(REVISION, &common::call(REVISION, 1, "later", json!({})));
    site.meet();
    assert!(site.web.listen(&session, Some(&event_id(after))).undecided);
    assert_eq!(site.meet(), [Asked::Read(COPY.to_owned(), 0, Some(600_000))]);
    session
}

/// Resumes the stream, of which the client has no event. Returns the session and the stream here.
fn resumed(site: &mut Site) -> (String, StreamId) {
    let session = look(site, 0);
    assert_eq!(site.arrive(copied(1, &[begins(&session, &["1"])])), []);
    let stream = site.web.listen(&session, Some(&event_id(0))).opened();
    assert_eq!(site.meet(), [follows(&session, 0, site.web.now)]);
    (session, stream)
}

fn events(pulled: &Pulled) -> Vec<String> {
    pulled.events.iter().map(|event| event.id.clone().expect("an id")).collect()
}

#[test]
fn a_stream_is_read_from_its_log() {
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 1);
    // It is read once, until its first entry has come.
    assert!(site.web.listen(&session, Some(&event_id(1))).undecided);
    assert_eq!(site.meet(), []);
    site.arrive(copied(1, &[begins(&session, &["1"]), event(1, &progress(1)), event(2, &progress(2))]));
    let stream = site.web.listen(&session, Some(&event_id(1))).opened();
    assert_eq!(site.meet(), [follows(&session, 2, site.web.now)]);
    assert_eq!(events(&site.web.pull(stream)), [event_id(2)]);
    // Entries and events that come twice are left out.
    for (id, number) in [(2, 3), (2, 4), (1, 4), (3, 3)] {
        site.arrive(copied(id, &[event(number, &progress(number))]));
    }
    assert_eq!(events(&site.web.pull(stream)), [event_id(3)]);
    // A copy that begins anew may skip entries.
    site.arrive(copied(9, &[begins(&session, &["1"]), event(3, &progress(3)), event(4, &progress(4))]));
    assert_eq!(events(&site.web.pull(stream)), [event_id(4)]);
    assert_eq!(site.arrive(copied(10, &[ends(false)])), [Asked::Stop(COPY.to_owned())]);
    let last = site.web.pull(stream);
    assert!(last.ended && last.events.is_empty());
    assert_eq!(site.web.endpoint.load(), (0, 1, 0));
}

/// What is behind a gap is not sent: the client comes again.
#[test]
fn a_log_with_a_gap_ends_the_stream() {
    for entry in [
        copied(3, &[event(1, &progress(1))]),
        copied(2, &[event(2, &progress(2))]),
        copied(2, &[record(3, &[])]),
        Arrival::Entry { log: COPY.to_owned(), id: 2, entry: vec![2] },
    ] {
        let mut site = Site::new(FleetLimits::default());
        let (session, stream) = resumed(&mut site);
        site.arrive(entry.clone());
        site.arrive(copied(4, &[event(1, &progress(1))]));
        let pulled = site.web.pull(stream);
        assert!(pulled.ended && pulled.events.is_empty(), "{entry:?}");
        assert_eq!(site.web.endpoint.load(), (0, 1, 0));
        assert!(site.web.listen(&session, Some(&event_id(0))).undecided);
    }
}

/// A log that does not begin with its session says nothing of it.
#[test]
fn a_log_of_another_session_is_unknown() {
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    let other = site.web.open(REVISION);
    for entry in [copied(1, &[event(1, &progress(1))]), copied(1, &[ends(false)]), copied(1, &[])] {
        assert_eq!(site.arrive(entry), []);
        assert!(site.web.listen(&session, Some(&event_id(0))).undecided);
    }
    let asked = site.arrive(copied(1, &[begins(&other, &["1"])]));
    assert!(asked.contains(&Asked::Stop(COPY.to_owned())), "{asked:?}");
    site.web.listen(&other, Some(&event_id(0))).refused(400);
    site.web.listen(&session, Some(&event_id(0))).refused(400);
    assert_eq!(site.web.endpoint.load(), (0, 2, 0));
}

#[test]
fn requests_without_an_answer_get_an_error_at_a_lost_end() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}"#;
    let other = answer.replace("\"id\":1", "\"id\":2");
    for (message, is_lost, errors) in [(answer, true, 0), (&*other, true, 1), (&*other, false, 0), ("", true, 1)] {
        let mut site = Site::new(FleetLimits::default());
        let (_, stream) = resumed(&mut site);
        site.web.hear(REVISION, &common::call(REVISION, 2, "later", json!({})));
        if !message.is_empty() {
            site.arrive(copied(2, &[event(1, message)]));
        }
        site.arrive(copied(3 - u64::from(message.is_empty()), &[ends(is_lost)]));
        let pulled = site.web.pull(stream);
        let found = pulled.json().iter().filter(|message| message["error"]["code"] == -32603).count();
        assert_eq!((found, pulled.ended), (errors, true), "{message} {is_lost}");
    }
}

/// Its process learns of it after some events, and then of more.
#[test]
fn a_process_learns_which_events_were_read_elsewhere() {
    let mut site = Site::new(FleetLimits::default());
    let (session, stream) = resumed(&mut site);
    let since = site.web.now;
    for number in 1..=130 {
        let asked = site.arrive(copied(u64::from(number) + 1, &[event(number, &progress(number))]));
        match number {
            64 | 128 => assert_eq!(asked, [follows(&session, number, since)]),
            _ => assert_eq!(asked, [], "{number}"),
        }
    }
    assert_eq!(site.web.pull(stream).events.len(), 130);
    // Not while no client reads it here.
    site.web.detach(stream);
    for number in 131..=230 {
        assert_eq!(site.arrive(copied(u64::from(number) + 1, &[event(number, &progress(number))])), []);
    }
}

/// It keeps what its client needs as long as it hears of it, twice in the time in which a client may come back.
#[test]
fn a_process_learns_again_that_its_stream_is_read_elsewhere() {
    let mut site = Site::new(FleetLimits::default());
    let (session, stream) = resumed(&mut site);
    let since = site.web.now;
    for _ in 0..3 {
        assert_eq!(site.wait(29_999), []);
        assert_eq!(site.wait(1), [follows(&session, 0, since)]);
    }
    site.web.pull(stream);
    site.web.detach(stream);
    assert_eq!(site.wait(59_999), []);
    // The client does not come back.
    assert_eq!(site.wait(1), [Asked::Stop(COPY.to_owned())]);
    assert_eq!((site.wait(100_000), site.web.endpoint.load()), (vec![], (0, 1, 0)));
}

#[test]
fn the_time_until_a_stream_is_found() {
    let caught_up = || Arrival::CaughtUp { log: COPY.to_owned() };
    let undecided = |site: &mut Site, session: &str| site.web.listen(session, Some(&event_id(0))).undecided;
    let stop = Asked::Stop(COPY.to_owned());
    // Its process is alive, and may still begin the copy.
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    assert_eq!(site.arrive(caught_up()), []);
    assert_eq!(site.wait(999), []);
    assert!(undecided(&mut site, &session));
    assert_eq!(site.wait(1), std::slice::from_ref(&stop));
    site.web.listen(&session, Some(&event_id(0))).refused(400);
    // It has begun meanwhile.
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    site.arrive(caught_up());
    site.arrive(copied(1, &[begins(&session, &["1"])]));
    assert_eq!(site.wait(1_000), []);
    site.web.listen(&session, Some(&event_id(0))).opened();
    // Its process is gone.
    let mut site = Site::new(FleetLimits::default());
    site.arrive(Arrival::Left(TWO));
    let session = look(&mut site, 0);
    assert_eq!(site.arrive(caught_up()), std::slice::from_ref(&stop));
    site.web.listen(&session, Some(&event_id(0))).refused(400);
    // The engine is away, or says nothing.
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    assert_eq!(site.arrive(Arrival::Left(OWN)), std::slice::from_ref(&stop));
    site.web.listen(&session, Some(&event_id(0))).refused(503);
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    assert_eq!(site.wait(9_999), []);
    assert!(undecided(&mut site, &session));
    assert_eq!(site.wait(1), [stop]);
    let refused = site.web.listen(&session, Some(&event_id(0)));
    refused.refused(503);
    assert!(!refused.undecided);
    // Then it is asked once more.
    assert!(undecided(&mut site, &session));
    // The log could not be read.
    let mut site = Site::new(FleetLimits::default());
    let session = look(&mut site, 0);
    assert_eq!(site.arrive(Arrival::ReadOver { log: COPY.to_owned() }), []);
    assert!(!site.web.listen(&session, Some(&event_id(0))).undecided);
}

/// A look that was begun takes a place until its time is over, however soon it ended.
#[test]
fn looks_have_a_total() {
    let mut site = Site::new(FleetLimits { followed: 1, ..FleetLimits::default() });
    let session = site.web.open(REVISION);
    site.meet();
    let unknown = |site: &mut Site, stream: u32| {
        let id = format!("0-{stream}-0-p9");
        let first = site.web.listen(&session, Some(&id));
        if !first.undecided {
            return first.status;
        }
        site.arrive(Arrival::CaughtUp { log: format!("e:9-0-{stream}") });
        site.web.listen(&session, Some(&id)).status
    };
    assert_eq!([1, 2, 3].map(|stream| unknown(&mut site, stream)), [400, 400, 503]);
    site.wait(9_999);
    assert_eq!(unknown(&mut site, 3), 503);
    site.wait(1);
    assert_eq!([3, 4, 5].map(|stream| unknown(&mut site, stream)), [400, 400, 503]);
    // Nor is there a place in the outbox.
    let mut site = Site::new(FleetLimits { outbox: 1, ..FleetLimits::default() });
    let session = site.web.open(REVISION);
    site.meet();
    site.web.publish(ServerChange::Tools);
    let refused = site.web.listen(&session, Some(&event_id(0)));
    assert_eq!((refused.status, refused.undecided), (503, false));
    site.meet();
    assert!(site.web.listen(&session, Some(&event_id(0))).undecided);
}

#[test]
fn numbers_of_events_have_a_limit() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    site.web.listen(&session, Some(&event_id(1 << 31))).refused(400);
    assert_eq!(site.meet(), []);
    assert!(site.web.listen(&session, Some(&event_id((1 << 31) - 1))).undecided);
    // An id of this process is of a stream that it knows.
    site.web.listen(&session, Some("0-99-0-s4")).refused(400);
}

/// The engine follows a log for some time. Then it is asked again, from the last entry on.
#[test]
fn a_log_is_followed_as_long_as_it_is_read() {
    let mut site = Site::new(FleetLimits::default());
    let (_, stream) = resumed(&mut site);
    let over = || Arrival::ReadOver { log: COPY.to_owned() };
    site.arrive(copied(2, &[event(1, &progress(1))]));
    site.wait(600_000);
    assert_eq!(site.arrive(over()), [Asked::Read(COPY.to_owned(), 2, Some(600_000))]);
    site.arrive(copied(3, &[event(2, &progress(2))]));
    let pulled = site.web.pull(stream);
    assert_eq!((pulled.events.len(), pulled.ended), (2, false));
    // It ends before its time: the database is away.
    site.wait(599_999);
    let asked = site.arrive(over());
    assert!(!asked.iter().any(|asked| matches!(asked, Asked::Read(..))), "{asked:?}");
    assert!(site.web.pull(stream).ended);
}

/// The database was away while the client was. When it is back, its log is read on.
#[test]
fn a_log_is_read_on_for_a_client_that_is_back() {
    let mut site = Site::new(FleetLimits::default());
    let (session, stream) = resumed(&mut site);
    site.arrive(copied(2, &[event(1, &progress(1))]));
    assert_eq!(events(&site.web.pull(stream)), [event_id(1)]);
    site.web.detach(stream);
    assert_eq!(site.arrive(Arrival::ReadOver { log: COPY.to_owned() }), []);
    let stream = site.web.listen(&session, Some(&event_id(1))).opened();
    let read = Asked::Read(COPY.to_owned(), 2, Some(600_000));
    assert_eq!(site.meet(), [read, follows(&session, 1, site.web.now)]);
    site.arrive(copied(3, &[event(2, &progress(2))]));
    let pulled = site.web.pull(stream);
    assert_eq!((events(&pulled), pulled.ended), (vec![event_id(2)], false));
    // While it is read, it is not asked for again.
    site.web.detach(stream);
    site.web.listen(&session, Some(&event_id(1))).opened();
    assert_eq!(site.meet(), [follows(&session, 2, site.web.now)]);
}

/// Events that the client has read at another process are not unsent here, and its connection here ends.
#[test]
fn a_stream_that_is_read_elsewhere_is_given_up() {
    for (later, given_up) in [(1_000, false), (1_001, true)] {
        let mut site = Site::new(FleetLimits::default());
        let session = site.web.open(REVISION);
        let stream = site.web.call(&session, 1, "later", json!({"tag": "a"})).opened();
        let id = site.web.pull(stream).events[0].id.clone().unwrap();
        let opened = site.web.now;
        site.web.wait(5_000);
        site.meet();
        let number_of = |at: usize| id.split('-').nth(at).unwrap().parse::<u64>().unwrap();
        let (slot, stream_number) = (number_of(0) as u32, number_of(1));
        let hear = |site: &mut Site, session: &str, slot: u32, number_of: u64| {
            let stream = [number(slot), long(number_of), number(0), long(opened + later)];
            site.hear(TWO, raw(24, &[&[field(session), option(None)][..], &stream].concat()));
        };
        // Another stream, or one of another session.
        let other = site.web.open(REVISION);
        hear(&mut site, &session, slot + 1, stream_number);
        hear(&mut site, &session, slot, stream_number + 1);
        hear(&mut site, &other, slot, stream_number);
        hear(&mut site, &session, slot + 65_536, stream_number);
        assert!(!site.web.is_ready(stream) && !site.web.pull(stream).ended);
        hear(&mut site, &session, slot, stream_number);
        assert_eq!(site.web.is_ready(stream), given_up, "{later}");
        assert_eq!(site.web.pull(stream).ended, given_up);
        let token = site.web.later("a");
        site.web.answer(token, "done").unwrap();
        assert_eq!(site.web.is_ready(stream), !given_up);
    }
}

/// Of two streams of a session the newer one goes on; of two of the same time, that of the process with the larger number.
#[test]
fn the_newest_stream_of_a_session_goes_on() {
    for (from, difference, ends) in
        [(2, -1, false), (2, 0, false), (2, 1, true), (5, -1, false), (5, 0, true), (5, 1, true)]
    {
        let mut site = Site::new(FleetLimits::default());
        let session = site.web.open(REVISION);
        let stream = site.web.listen(&session, None).opened();
        site.web.pull(stream);
        let since = site.web.now.checked_add_signed(difference).unwrap();
        let message = raw(25, &[field(&session), option(None), long(site.web.now)]);
        assert!(site.meet().contains(&Asked::Publish(Recipients::Others, message, 10_000)));
        site.web.wait(5_000);
        site.hear(ProcessTag::new(from), raw(25, &[field(&session), option(None), long(since)]));
        assert_eq!(site.web.pull(stream).ended, ends, "{from} {difference}");
    }
}

/// What is set at other processes while a log is read counts after it, within the limits of the log.
#[test]
fn the_settings_that_wait_for_a_log_have_limits() {
    let uris = [1, 2, 3].map(|n| format!("test://items/{n}"));
    let len = setting("resources/subscribe", "uri", &uris[0]).len();
    for (session_entries, session_bytes, kept) in [(2, 1_000, 2), (9, 2 * len, 2), (9, 2 * len - 1, 1)] {
        let (mut site, session) = elsewhere(FleetLimits { session_entries, session_bytes, ..FleetLimits::default() });
        assert!(site.web.say(&session, &request(REVISION, 1, "ping", json!({}))).undecided);
        site.meet();
        for uri in &uris {
            let short = setting("resources/subscribe", "uri", uri);
            let asked = site.hear(TWO, raw(17, &[field(&session), option(None), field("1"), field(&short)]));
            assert_eq!(asked.len(), 1, "it is acknowledged");
        }
        site.arrive(Arrival::CaughtUp { log: log_of(&session) });
        let stream = site.web.listen(&session, None).opened();
        site.web.pull(stream);
        for uri in &uris {
            site.web.endpoint.publish_here(ServerChange::Resource(uri));
        }
        assert_eq!(site.web.pull(stream).json().len(), kept, "{session_entries} {session_bytes}");
    }
}

/// The other processes know it already, so it is done here too, some time after its driver would have asked again.
#[test]
fn what_a_client_that_is_gone_has_asked_for_is_done() {
    let mut site = Site::new(FleetLimits::default());
    let session = site.web.open(REVISION);
    site.meet();
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    assert!(site.web.say(&session, &set).undecided);
    site.meet();
    assert_eq!(site.web.endpoint.next_deadline(), Some(site.web.now + 200));
    assert_eq!(site.wait(200), []);
    assert_eq!(site.web.endpoint.next_deadline(), Some(site.web.now + 2_000));
    assert_eq!(site.wait(1_999), []);
    assert_eq!(site.wait(1), [Asked::Read(log_of(&session), 0, None)]);
    site.arrive(Arrival::CaughtUp { log: log_of(&session) });
    let delete = |web: &mut Web| web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status;
    assert_eq!(delete(&mut site.web), 503);
    assert_eq!(site.meet().len(), 2);
    assert_eq!((site.wait(2_199), site.web.endpoint.load().1), (vec![], 1));
    assert_eq!((site.wait(1), site.web.endpoint.load().1), (vec![], 0));
    site.web.call(&session, 2, "count", json!({})).refused(404);
}

/// An error that finds no room on the stream of a request is lost, and the request is over all the same.
#[test]
fn a_request_that_fails_without_room_is_over() {
    let mut site = Site::with(EndpointLimits { stream: 300, ..EndpointLimits::default() }, FleetLimits::default());
    let (stream, _) = site.give(json!({}));
    // The client does not read.
    for done in 1..10 {
        site.hear(TWO, relayed(1, false, &progress(done)));
    }
    assert_eq!((site.wait(5_000), site.in_flight()), (vec![to(TWO, relay_end(1))], 0));
    let told = site.web.pull(stream);
    assert!(told.ended && told.json().iter().all(|message| message.get("error").is_none()), "{told:?}");
}

/// A turn ends in the middle of a message. It goes on there.
#[test]
fn many_messages_for_another_process_arrive_whole() {
    let mut site = Site::new(FleetLimits { relay_bytes: 60_000, ..FleetLimits::default() });
    site.hear(TWO, relay(7, "", None, &call("later", json!({"tag": "a"}))));
    let token = site.web.later("a");
    for done in 1..=1_000 {
        assert_eq!(site.web.endpoint.progress(token, Progress::new(done)), NotifyStatus::Sent);
    }
    let mut all = Vec::new();
    for _ in 0..10 {
        all.extend(site.meet());
    }
    let expected: Vec<_> = all.iter().map(|asked| parse(&only(std::slice::from_ref(asked), 7).1)).collect();
    assert_eq!(expected, (1..=1_000).map(|done| parse(&progress(done))).collect::<Vec<_>>());
}

/// One meeting gives what has arrived to the endpoint, and what that answers to the engine.
#[test]
fn what_arrives_is_answered_in_the_same_meeting() {
    let mut site = Site::new(FleetLimits::default());
    let message = relay(7, "", None, &call("change", json!({})));
    site.engine.arrivals.push_back(Arrival::Message { from: TWO, message });
    assert!(site.web.meet(&mut site.engine));
    let asked = std::mem::take(&mut site.engine.asked);
    assert!(asked.iter().any(|asked| matches!(asked, Asked::Replace(log, ..) if log == "t:a")), "{asked:?}");
    let answer = asked.iter().find(|asked| matches!(asked, Asked::Publish(Recipients::One(_), ..)));
    assert!(only(std::slice::from_ref(answer.expect("an answer")), 7).0);
    assert!(!site.web.meet(&mut site.engine));
    assert_eq!(site.engine.asked, []);
}

/// A driver may give the time with a meeting before it gives it otherwise.
#[test]
fn a_meeting_brings_the_time() {
    let limits = FleetLimits::default();
    // All have been heard.
    let mut site = Site::alone(EndpointLimits::default(), limits);
    site.arrive(Arrival::Joined(OWN));
    site.give(json!({"to": 8, "key": "k"}));
    site.web.now += limits.join_within - 1;
    assert_eq!(site.meet(), []);
    site.web.now += 1;
    assert_eq!(site.meet(), [Asked::Read("t:k".to_owned(), 0, None)]);
    // The client of a setting is gone.
    let mut site = Site::new(limits);
    let session = site.web.open(REVISION);
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    assert!(site.web.say(&session, &set).undecided);
    site.meet();
    site.web.now += 2_200;
    site.web.call(&session, 2, "count", json!({}));
    assert_eq!(site.meet(), [Asked::Read(log_of(&session), 0, None)]);
    // The log of a stream does not arrive.
    let mut site = Site::new(limits);
    look(&mut site, 0);
    site.web.now += 10_000;
    assert_eq!(site.meet(), [Asked::Stop(COPY.to_owned())]);
}

/// A batch does not wait for the other processes. What it sets goes to them, and needs no acknowledgement.
#[test]
fn settings_in_a_batch_go_to_the_others() {
    let mut site = Site::new(FleetLimits::default());
    let revision = "2025-03-26";
    let session = site.web.open(revision);
    site.meet();
    let set = request(revision, 1, "logging/setLevel", json!({"level": "error"}));
    let batch = format!("[{set},{}]", request(revision, 2, "ping", json!({})));
    let stream = site.web.say(&session, &batch).opened();
    let short = setting("logging/setLevel", "level", "error");
    let others = raw(17, &[field(&session), option(None), field(""), field(&short)]);
    let asked = site.meet();
    let settings: Vec<_> =
        asked.into_iter().filter(|asked| matches!(asked, Asked::Publish(..) | Asked::Append(_, None, ..))).collect();
    assert_eq!(
        settings,
        [
            Asked::Append(log_of(&session), None, raw(17, &[field(&short)]), HOUR),
            Asked::Publish(Recipients::Others, others, 10_000)
        ]
    );
    assert_eq!(site.web.pull(stream).json()[0].as_array().map(Vec::len), Some(2));
}

/// A session that is not sealed is known to one process alone.
#[test]
fn messages_of_a_session_that_is_not_sealed_stay_here() {
    let server = Server::growing(MessageLimits { in_flight: 8, ..MessageLimits::default() });
    let endpoint = Endpoint::growing(config(), server, EndpointLimits::default());
    let mut site = Site { web: Web::of(endpoint.join_fleet(OWN, FleetLimits::default())), engine: Script::default() };
    [OWN, TWO].into_iter().for_each(|tag| drop(site.arrive(Arrival::Joined(tag))));
    let session = site.web.open(REVISION);
    assert_eq!(site.web.say(&session, &notify("notifications/roots/list_changed", json!({}))).status, 202);
    let set = request(REVISION, 1, "logging/setLevel", json!({"level": "error"}));
    assert_eq!(site.web.say(&session, &set).body["result"], json!({}));
    site.web.listen(&session, None).opened();
    assert_eq!(site.web.request("DELETE", "/mcp", &[("mcp-session-id", &session)], "").status, 204);
    assert_eq!(site.meet(), []);
}

/// A session is in use while its client sends messages to other processes.
#[test]
fn messages_at_other_processes_keep_a_session() {
    for (used, stays) in [(true, true), (false, false)] {
        let mut site = Site::new(FleetLimits::default());
        let session = site.web.open(REVISION);
        let idle = config().session_idle;
        site.wait(idle - 1);
        if used {
            let message = notify("notifications/roots/list_changed", json!({}));
            site.hear(TWO, raw(16, &[field(&session), option(None), field(&message)]));
        }
        site.web.wait(idle - 1);
        assert_eq!(site.web.endpoint.load().1 == 1, stays);
    }
}
