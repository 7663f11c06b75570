//! A client with a hostile server, driven by operations made from the fuzzer's bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use arbitrary::{Result, Unstructured};
use mcp_sansio::client::result::{ClientResult, CreateMessageResult, Root};
use mcp_sansio::client::{
    Client, ClientEvent, ClientHandle, ClientHandler, ClientInfo, LineClient, PendingId, Request, SendError,
    ServerRequestId, SubscriptionFilter, TransportError,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::NextStep;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::{ClientCapability, LoggingLevel};
use mcp_sansio::revision::Revision;
use mcp_sansio::service::ContentBlock;
use mcp_sansio::sink::{LineSink, SliceStorage};

static ALL: ClientInfo<'static> = ClientInfo::new("fuzz", "1")
    .tasks(ClientCapability::SamplingTools)
    .tasks(ClientCapability::ElicitForm)
    .feature(ClientCapability::ElicitUrl)
    .roots_changed();
static SOME: ClientInfo<'static> = ClientInfo::new("fuzz", "1").feature(ClientCapability::ElicitForm);
static NONE: ClientInfo<'static> = ClientInfo::new("f", "1");

type Connection<'m> = LineClient<'m, LineSink<SliceStorage<'m>>>;

/// A request that the client wrote.
struct Written {
    id: u64,
    method: String,
    /// `params` without what differs from round to round.
    params: serde_json::Map<String, serde_json::Value>,
}

/// What an `InputRequiredResult` demands of the next round of its request.
struct Round {
    params: serde_json::Map<String, serde_json::Value>,
    /// The keys of `inputRequests`.
    keys: BTreeSet<String>,
}

/// The history that the driver keeps.
#[derive(Default)]
struct Seen {
    line: Vec<u8>,
    /// Ids of the requests that the client wrote; each must be unique.
    ids: BTreeSet<u64>,
    /// The last requests without an answer.
    open: VecDeque<Written>,
    /// The rounds that are to come, by `requestState`.
    rounds: BTreeMap<String, Round>,
    states: u32,
    sent: Vec<PendingId>,
    cancelled: Vec<PendingId>,
    outcomes: Vec<PendingId>,
    questions: Vec<ServerRequestId>,
}

impl ClientHandler for Seen {
    fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
        match event {
            ClientEvent::Done { token, .. } => self.outcomes.push(token),
            ClientEvent::Asked(asked) => {
                let before = self.questions.len();
                self.questions.extend(asked.questions().map(|question| question.id));
                for asks in asked.questions() {
                    // Whatever a server asks, it can be shown.
                    drop(format!("{:?} {:?} {:?} {:?}", asks.message(), asks.form(), asks.url(), asks.trace_context()));
                }
                assert!(self.questions.len() > before, "somebody asks nothing");
            }
            other => drop(format!("{other:?}")),
        }
    }
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.message(&line);
            } else {
                self.line.push(byte);
            }
        }
    }

    fn message(&mut self, line: &[u8]) {
        let value: serde_json::Value = serde_json::from_slice(line)
            .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(line)));
        let (Some(id), Some(method)) = (value["id"].as_u64(), value["method"].as_str()) else { return };
        assert!(self.ids.insert(id), "an id comes twice");
        let mut params = value["params"].as_object().cloned().unwrap_or_default();
        let (state, answers) = (params.remove("requestState"), params.remove("inputResponses"));
        params.remove("_meta");
        if let Some(round) = state.as_ref().and_then(|state| self.rounds.remove(state.as_str()?)) {
            let answers = answers.as_ref().and_then(|answers| answers.as_object()).into_iter().flatten();
            let keys: BTreeSet<_> = answers.map(|(key, _)| key.clone()).collect();
            assert_eq!((&params, &keys), (&round.params, &round.keys), "a round of another request");
        }
        self.open.push_back(Written { id, method: method.to_owned(), params });
        if self.open.len() > OPEN {
            self.open.pop_front();
        }
    }

    fn sent(&mut self, token: PendingId) {
        assert!(!self.sent.contains(&token), "a token is given twice");
        self.sent.push(token);
    }

    /// Checks that each request had one outcome, or none if it was cancelled.
    fn check(&self) {
        for token in &self.sent {
            let told = self.outcomes.iter().filter(|told| *told == token).count();
            let cancelled = self.cancelled.contains(token);
            assert_eq!(told, usize::from(!cancelled), "cancelled: {cancelled}");
        }
        assert!(self.outcomes.iter().all(|told| self.sent.contains(told)));
    }
}

/// The most requests that wait for an answer of the model.
const OPEN: usize = 6;

const DISCOVERED: [&str; 3] = [
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}}"#,
    r#"{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#,
];

const INITIALIZED: [&str; 4] = [
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}"#,
    r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}}}"#,
    r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{},"resources":{"subscribe":true}}}"#,
    r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#,
];

/// Entries of `inputRequests`.
const INPUTS: [&str; 5] = [
    r#"{"method":"roots/list"}"#,
    r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":5}}}}}"#,
    r#"{"method":"elicitation/create","params":{"mode":"url","message":"m","elicitationId":"e","url":"https://x/"}}"#,
    r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1}}"#,
    r#"{"method":"ping"}"#,
];

const RESULTS: [&str; 16] = [
    "{}",
    r#"{"resultType":"complete"}"#,
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{}}}"#,
    r#"{"supportedVersions":["2025-06-18"],"capabilities":{}}"#,
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}"#,
    r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{},"resources":{"subscribe":true}}}"#,
    r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#,
    r#"{"protocolVersion":"x"}"#,
    r#"{"resultType":"input_required","requestState":"a\"\u0062"}"#,
    r#"{"resultType":"input_required","inputRequests":{"a\"":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"requestedSchema":{}}}}}"#,
    r#"{"resultType":"input_required","inputRequests":{"v":{"method":"elicitation/create","params":{"mode":"url","url":"x"}},"s":{"method":"sampling/createMessage","params":{"messages":[]}}},"requestState":"s"}"#,
    r#"{"resultType":"input_required","inputRequests":[1]}"#,
    r#"{"resultType":"input_required"}"#,
    r#"{"tools":[],"nextCursor":"n\n"}"#,
    r#"{"resultType":7}"#,
    "null",
];

const ERRORS: [&str; 9] = [
    r#"{"code":-32601,"message":"no"}"#,
    r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28","2025-06-18"]}}"#,
    r#"{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}"#,
    r#"{"code":-32020,"message":"no"}"#,
    r#"{"code":-32042,"message":"no","data":{"elicitations":[{"mode":"url","url":"x"},{"url":"y"}]}}"#,
    r#"{"code":-32042,"message":"no","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://x/","message":"m"}]}}"#,
    r#"{"code":-32602,"message":"no","data":{"supported":["2024-11-05"]}}"#,
    r#"{"code":1e99}"#,
    "null",
];

const QUESTIONS: [(&str, &str); 10] = [
    ("ping", "{}"),
    ("roots/list", "{}"),
    ("elicitation/create", r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#),
    ("elicitation\\/create", r#"{"mode":"url","message":"m","url":"x"}"#),
    ("sampling/createMessage", r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1}"#),
    ("sampling/createMessage", r#"{"messages":[],"tools":[]}"#),
    (
        "sampling/createMessage",
        r#"{"messages":[],"maxTokens":1,"task":{"ttl":5},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t\n"},"traceparent":"00-1"}}"#,
    ),
    ("tasks/result", r#"{"taskId":"t\n"}"#),
    ("tasks/list", "{}"),
    ("tools/list", "{}"),
];

const NEWS: [&str; 7] = [
    "tools/list_changed",
    "resources/updated",
    "subscriptions/acknowledged",
    "message",
    "progress",
    "cancelled",
    "elicitation/complete",
];

/// Makes the result of a request, more often than not one that its method may have.
fn result(u: &mut Unstructured<'_>, seen: &mut Seen, at: usize) -> Result<String> {
    if u.ratio(1, 5)? {
        return Ok((*u.choose(&RESULTS)?).to_owned());
    }
    let fitting: &[&str] = match seen.open[at].method.as_str() {
        "server/discover" => &DISCOVERED,
        "initialize" => &INITIALIZED,
        "tools/list" => &[
            r#"{"resultType":"complete","tools":[],"nextCursor":"n\n"}"#,
            r#"{"resultType":"complete","tools":[{"name":"t","inputSchema":{}}]}"#,
        ],
        "tools/call" | "resources/read" | "prompts/get" if u.ratio(2, 3)? => return input_required(u, seen, at),
        _ => &[r#"{"resultType":"complete"}"#, "{}"],
    };
    Ok((*u.choose(fitting)?).to_owned())
}

fn input_required(u: &mut Unstructured<'_>, seen: &mut Seen, at: usize) -> Result<String> {
    let (mut requests, mut keys) = (Vec::new(), BTreeSet::new());
    for _ in 0..u.int_in_range(0..=3)? {
        let key = *u.choose(&["a\"", "b", "\u{e9}", ""])?;
        requests.push(format!("{}:{}", serde_json::Value::from(key), u.choose(&INPUTS)?));
        keys.insert(key.to_owned());
    }
    let mut members = vec![r#""resultType":"input_required""#.to_owned()];
    if !requests.is_empty() {
        members.push(format!(r#""inputRequests":{{{}}}"#, requests.join(",")));
    }
    if u.ratio(3, 4)? {
        seen.states += 1;
        let state = format!("s\"{}", seen.states);
        members.push(format!(r#""requestState":{}"#, serde_json::Value::from(state.as_str())));
        seen.rounds.insert(state, Round { params: seen.open[at].params.clone(), keys });
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// Makes a message that is valid more often than random bytes.
fn message(u: &mut Unstructured<'_>, seen: &mut Seen) -> Result<String> {
    let at = if seen.open.is_empty() || u.ratio(1, 10)? { None } else { Some(u.choose_index(seen.open.len())?) };
    let id = match at {
        Some(at) => seen.open[at].id.to_string(),
        None => (*u.choose(&["null", "0", "7", "\"a\\u0062\"", "-1", "4294967297", "1.5"])?).to_owned(),
    };
    Ok(match u.int_in_range(0..=9)? {
        kind @ 0..=4 => {
            let outcome = match at {
                _ if kind == 4 => format!(r#""error":{}"#, u.choose(&ERRORS)?),
                Some(at) => format!(r#""result":{}"#, result(u, seen, at)?),
                None => format!(r#""result":{}"#, u.choose(&RESULTS)?),
            };
            if let Some(at) = at
                && u.ratio(7, 8)?
            {
                seen.open.remove(at);
            }
            format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#)
        }
        5 => {
            let (method, params) = u.choose(&QUESTIONS)?;
            let id = u.choose(&["1", "\"q\"", "\"\\u0071\"", "900"])?;
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
        }
        6 | 7 => format!(
            concat!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{}","params":{{"progressToken":{},"progress":1,"#,
                r#""uri":"r://x","level":"info","data":1,"elicitationId":"e","requestId":{},"notifications":{{"toolsListChanged":true}},"#,
                r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}"#
            ),
            u.choose(&NEWS)?,
            id,
            if u.arbitrary()? { "1" } else { id.as_str() },
            id
        ),
        8 if u.len() > 20 => {
            let (one, other) = (message(u, seen)?, message(u, seen)?);
            format!("[{one},{other}]")
        }
        _ => String::from_utf8_lossy(u.bytes(u.len().min(20))?).into_owned(),
    })
}

fn request(u: &mut Unstructured<'_>) -> Result<Request<'static>> {
    let request = match u.int_in_range(0..=11)? {
        0 => Request::list_tools().after("c\""),
        1..=3 => Request::call("t\"\n").arguments(const { &Raw::constant("{\"a\":\n1}") }),
        4 => Request::read("r://x"),
        5 => Request::prompt("p").meta(Raw::constant(r#"{"k":"v","progressToken":1}"#)),
        6 => Request::complete_template("r", "a", "v"),
        7 => Request::ping(),
        8 => Request::discover(),
        9 => Request::subscribe("r://x"),
        10 => Request::set_level(LoggingLevel::Info),
        _ => Request::raw("x/y", Some(Raw::constant(r#"{"_meta":{"a":1},"b":[]}"#))),
    };
    Ok(match u.int_in_range(0..=4)? {
        0 => request.with_progress().timeout(100),
        1 => request.with_logs(LoggingLevel::Debug).total_timeout(200),
        2 => request.timeout(u64::MAX),
        3 => request.no_timeout(),
        _ => request,
    })
}

/// Runs an operation of the application. A refused operation must change nothing.
fn act(session: &mut Connection<'_>, u: &mut Unstructured<'_>, seen: &mut Seen) -> Result<()> {
    let open = session.client.in_flight();
    let pending = session.out.pending().len();
    let refused = match u.int_in_range(0..=7)? {
        0..=2 => session.handle().send(&request(u)?).map(|token| seen.sent(token)),
        3 => {
            let uris = ["r://x", "r://y\""];
            let filter = SubscriptionFilter::new().tools().uris(uris.get(..u.int_in_range(0..=2)?).unwrap_or(&[]));
            let filter = if u.ratio(1, 4)? { filter.prompts().topics(&[("things", &["k\""])]) } else { filter };
            session.client.listen(&filter).map(|token| seen.sent(token))
        }
        4 => {
            if seen.sent.is_empty() {
                return Ok(());
            }
            let token = *u.choose(&seen.sent)?;
            session.handle().cancel(token, Some("\"")).map(|()| seen.cancelled.push(token))
        }
        5 | 6 => return answer(session, u, seen),
        _ if u.ratio(1, 4)? => {
            let handle = session.handle();
            handle.client.roots_changed(handle.out)
        }
        _ => {
            let level = *u.choose(&LoggingLevel::ALL)?;
            let handle = session.handle();
            let set = handle.client.set_log_level(level, handle.out);
            set.map(|token| token.into_iter().for_each(|token| seen.sent(token)))
        }
    };
    if refused.is_err() {
        assert_eq!((session.client.in_flight(), session.out.pending().len()), (open, pending));
    }
    Ok(())
}

fn answer(session: &mut Connection<'_>, u: &mut Unstructured<'_>, seen: &mut Seen) -> Result<()> {
    if seen.questions.is_empty() {
        return Ok(());
    }
    const ROOTS: [Root<'static>; 1] = [Root::new("file:///x").unwrap().name("n\n").meta(Raw::constant("{}"))];
    const SCHEMA: Raw<'static> = Raw::constant(
        r#"{"type":"object","properties":{"a":{"type":"integer","default":5},"b\"":{"type":"string","default":"x"},"c":{"type":"boolean","default":1}}}"#,
    );
    let question = *u.choose(&seen.questions)?;
    let raw = Raw::constant(r#"[{"type":"tool_use","id":"i","name":"n","input":{}},{"type":"text","text":"x"}]"#);
    let pieces = [ContentBlock::text("x"), ContentBlock::text("\u{e9}")];
    let replies = [
        ClientResult::accept(Raw::constant(r#"{"a":1}"#)),
        ClientResult::accept(Raw::constant(r#"{"a":1}"#)).defaults(SCHEMA),
        ClientResult::cancel(),
        ClientResult::raw(Raw::constant(r#"{"a":1,"_meta":{"b":2}}"#)),
        ClientResult::sampled(CreateMessageResult::pieces("m", &pieces).stop_reason("endTurn")),
        ClientResult::sampled(CreateMessageResult::raw("m", raw).meta(Raw::constant(r#"{"a":1}"#))),
        ClientResult::consent(),
        ClientResult::decline(),
        ClientResult::roots(&ROOTS),
        ClientResult::sampled(CreateMessageResult::new("m\n", ContentBlock::text("x"))),
    ];
    let done = match u.int_in_range(0..=replies.len())? {
        n if n == replies.len() => session.handle().refuse(question, &RpcError::refused()),
        n => session.handle().reply(question, &replies[n]),
    };
    if done.is_ok() {
        let again = session.handle().reply(question, &replies[2]);
        assert_eq!(again, Err(SendError::Stale), "a question is answered twice");
    }
    Ok(())
}

/// Runs an operation of the connection.
fn connection(session: &mut Connection<'_>, u: &mut Unstructured<'_>, seen: &mut Seen) -> Result<()> {
    let revision = *u.choose(&Revision::ALL)?;
    let why = *u.choose(&[
        TransportError::Broken,
        TransportError::Unsent,
        TransportError::Unreachable,
        TransportError::Status(404),
        TransportError::TooLarge,
    ])?;
    match u.int_in_range(0..=6)? {
        6 => drop(session.give_up_probe()),
        0 => session.client.connect(),
        1 => session.client.connect_as(revision),
        2 => session.reconnect(TransportError::SessionLost),
        3 => session.end_of_input(),
        _ => {
            let wire = seen.open.back().map_or(0, |last| last.id);
            session.client.lost(wire, why);
        }
    }
    Ok(())
}

/// Runs until there is nothing to do; panics if the session does not come to an end.
fn work(session: &mut Connection<'_>, now: u64, seen: &mut Seen) {
    for _ in 0..100_000 {
        match session.run(now, seen) {
            NextStep::Write => {
                assert!(!session.out.pending().is_empty(), "it wants room and has nothing to send");
                drain(session, usize::MAX, seen);
            }
            _ => return,
        }
    }
    panic!("it spins");
}

fn drain(session: &mut Connection<'_>, n: usize, seen: &mut Seen) {
    let n = n.min(session.out.pending().len());
    seen.take(&session.out.pending()[..n]);
    session.out.sent(n);
}

fn feed(session: &mut Connection<'_>, mut bytes: &[u8], limit: usize, now: u64, seen: &mut Seen) {
    while !bytes.is_empty() {
        work(session, now, seen);
        let space = session.space();
        let n = space.len().min(limit).min(bytes.len());
        assert!(n > 0, "there is no space although nothing waits");
        space[..n].copy_from_slice(&bytes[..n]);
        session.filled(n);
        bytes = &bytes[n..];
    }
    // Sometimes the line waits for room, and other operations come first.
    let _ = session.run(now, seen);
}

/// Runs the operations.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let info = *u.choose(&[&ALL, &SOME, &NONE])?;
    let mut input = vec![0; u.int_in_range(8..=900)?];
    let mut output = vec![0; u.int_in_range(64..=1500)?];
    let mut held = vec![0; u.int_in_range(0..=500)?];
    let client = Client::new(info, Slots::growing(4)).timeout(1_000).max_input_rounds(3);
    let client = if u.arbitrary()? { client.held(&mut held[..]) } else { client.held(Store::growing(4000)) };
    let input = if u.arbitrary()? { LineBuffer::new(&mut input[..]) } else { LineBuffer::new(Store::growing(2000)) };
    let mut session: Connection<'_> = LineClient::new(input, client, LineSink::new(SliceStorage::new(&mut output)));
    let (mut seen, mut now, mut steps) = (Seen::default(), u.arbitrary::<u64>()?, 0);
    match u.choose(&[
        None,
        None,
        Some(Revision::V2026_07_28),
        Some(Revision::V2025_11_25),
        Some(Revision::V2025_03_26),
    ])? {
        Some(revision) => session.client.connect_as(*revision),
        None => session.client.connect(),
    }
    while !u.is_empty() && steps < 200 {
        steps += 1;
        match u.int_in_range(0..=15)? {
            0..=6 => {
                if u.ratio(3, 4)? {
                    work(&mut session, now, &mut seen);
                    drain(&mut session, usize::MAX, &mut seen);
                }
                let line = message(u, &mut seen)? + "\n";
                let limit = u.int_in_range(1..=2000)?;
                feed(&mut session, line.as_bytes(), limit, now, &mut seen);
            }
            7..=11 => act(&mut session, u, &mut seen)?,
            12 => {
                let n = u.int_in_range(0..=300)?;
                drain(&mut session, n, &mut seen);
            }
            13 => {
                now = now.wrapping_add(u.int_in_range(0..=2_000)?);
                work(&mut session, now, &mut seen);
            }
            14 => drop(session.run(now, &mut seen)),
            _ => connection(&mut session, u, &mut seen)?,
        }
    }
    session.end_of_input();
    // Nothing reads from the client any more, and still it must come to an end.
    assert_eq!(session.run(now, &mut seen), NextStep::Read);
    assert_eq!(session.client.in_flight(), 0, "a request is left open");
    assert_eq!(session.client.next_deadline(), None);
    drain(&mut session, usize::MAX, &mut seen);
    assert!(seen.line.is_empty(), "a line is left without its end");
    seen.check();
    Ok(())
}
