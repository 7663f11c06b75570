//! A server with handlers of every kind, driven by operations made from the fuzzer's bytes.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::{LineServer, NextStep};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{MIN_ROOM, Progress, RequestSlot, RequestToken, RespondError, Server, ServerChange};
use mcp_sansio::service::{
    Call, Complete, ContentBlock, CreateMessage, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument,
    ReadResource, Resource, ResourceTemplate, Service, SourceError, Tool,
};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_http::seal::HmacSeal;

/// The state of the handlers.
#[derive(Default)]
pub(crate) struct State {
    /// The requests to be answered later, each with the text of its answer.
    pub(crate) open: Vec<(RequestToken, String)>,
}

/// Returns a text that names the client: only that client may see it.
pub(crate) fn for_client(principal: Option<&str>) -> String {
    format!("for {};", principal.unwrap_or("anybody"))
}

pub(crate) fn now(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let text = for_client(call.principal());
    call.log(LoggingLevel::Info, &text);
    call.progress(Progress::new(1).of(2).message(&text));
    call.text(&text)
}

fn much(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    call.content(&[
        ContentBlock::text("x"),
        ContentBlock::image(&[7; 90], "image/png"),
        ContentBlock::audio(&[1, 2], "audio/wav"),
    ])
}

pub(crate) fn later(state: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let text = for_client(call.principal());
    let (token, outcome) = call.later();
    state.open.push((token, text));
    outcome
}

pub(crate) fn source(_: &mut State, key: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    if key == 1 && at > 500 {
        return Err(SourceError);
    }
    let left = 1000u32.saturating_sub(at) as usize;
    let n = left.min(bytes.len()).min(7);
    bytes[..n].fill(b'"');
    Ok(n)
}

pub(crate) fn stream(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    if call.arguments().get("broken").is_some() { call.stream_image(1, "image/png") } else { call.stream_text(0) }
}

const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}}}"#);

/// Asks three questions. Its state says whose it is: it must come back with the same request of the same client.
pub(crate) fn ask(_: &mut State, call: &mut Call<'_>) -> HandlerResult {
    let state = format!("{} {:?}", for_client(call.principal()), (call.name(), call.arguments()));
    assert!(call.state().is_empty() || call.state() == state.as_bytes(), "the state of another request");
    if call.answer("form").is_some() && call.answer("model").is_some() {
        return call.text(for_client(call.principal()));
    }
    let (model, question) = (CreateMessage::new(&[], 10), for_client(call.principal()));
    call.ask(
        &[
            InputRequest::elicit("form", &question, FORM),
            InputRequest::sample("model", model),
            InputRequest::roots("r"),
        ],
        state.as_bytes(),
    )
}

fn read(_: &mut State, read: &mut ReadResource<'_>) -> HandlerResult {
    match read.var("id") {
        Some("none") => read.not_found(),
        Some("big") => read.stream_blob(0),
        _ => read.text(for_client(read.principal())),
    }
}

fn get(_: &mut State, get: &mut GetPrompt<'_>) -> HandlerResult {
    match get.arg("what") {
        Some(what) => get.user(what),
        None => get.user("nothing"),
    }
}

fn complete(_: &mut State, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["alpha", "beta"])
}

pub(crate) static TOOLS: [Tool<State>; 6] = [
    Tool::new("now", "Answers at once", now),
    Tool::new("much", "Answers with much", much),
    Tool::new("later", "Answers later", later),
    Tool::new("stream", "Answers with a stream", stream).source(source),
    Tool::new("ask", "Asks first", ask),
    Tool::new("ask_too", "Asks first", ask),
];
pub(crate) static RESOURCES: [Resource<State>; 1] = [Resource::new("r://one", "one", read)];
pub(crate) static TEMPLATES: [ResourceTemplate<State>; 1] =
    [ResourceTemplate::new("t://{id}", "many", read).complete(complete).source(source)];
static ARGUMENTS: [PromptArgument; 1] = [PromptArgument::optional("what")];
pub(crate) static PROMPTS: [Prompt<State>; 1] =
    [Prompt::new("p", "A prompt", get).arguments(&ARGUMENTS).complete(complete)];

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}},"progressToken":1,"io.modelcontextprotocol/logLevel":"debug"}"#;
const LEGACY: &str = r#""_meta":{"progressToken":"t"}"#;

/// Makes a message that is valid more often than random bytes.
pub(crate) fn message(u: &mut Unstructured<'_>, id: u32) -> Result<String> {
    let meta = if u.arbitrary()? { META } else { LEGACY };
    let version = u.choose(&mcp_sansio::revision::Revision::ALL)?.date();
    let tool = u.choose(&["now", "much", "later", "stream", "ask", "none"])?;
    let other = u.int_in_range(0..=id)?;
    let question = u.arbitrary::<u32>()?;
    let request = |method: &str, params: &str| {
        let comma = if params.is_empty() { "" } else { "," };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#)
    };
    Ok(match u.int_in_range(0..=19)? {
        0 => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}},"sampling":{{}},"roots":{{}}}},"clientInfo":{{"name":"f","version":"1"}}}}}}"#
        ),
        1 => r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
        2..=6 => request("tools/call", &format!(r#""name":"{tool}","arguments":{{"broken":1}}"#)),
        7 => request("tools/call", &format!(r#""name":"{tool}""#)),
        8 => request("tools/list", ""),
        9 => request("resources/read", r#""uri":"t://big""#),
        10 => request("resources/read", r#""uri":"r://one""#),
        11 => request("resources/subscribe", r#""uri":"r://one""#),
        12 => request(
            "subscriptions/listen",
            r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["r://one","t://\u0031"]}"#,
        ),
        13 => request("prompts/get", r#""name":"p","arguments":{"what":"a\nb"}"#),
        14 => {
            let reference = match other % 4 {
                1 => r#""ref":{"type":"ref/resource","uri":"t://{id}"},"argument":{"name":"id","value":"a"}"#,
                2 => r#""ref":{"type":"ref/resource","uri":"t://1"},"argument":{"name":"id","value":1}"#,
                3 => r#""ref":{"type":"ref/prompt","name":"p"},"context":{"arguments":{"what":"b"}}"#,
                _ => r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"what","value":"a"}"#,
            };
            request("completion/complete", reference)
        }
        15 => format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{other}}}}}"#),
        16 => format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"action":"accept","content":{{}}}}}}"#),
        // The first id is `id`, the second is [`second_of`] it.
        17 => {
            let second = request("tools/call", r#""name":"stream""#);
            let second = second.replacen(&format!(r#""id":{id}"#), &format!(r#""id":{}"#, second_of(id)), 1);
            format!("[{},{second}]", request("tools/list", ""))
        }
        18 => match other % 4 {
            1 => request("logging/setLevel", r#""level":"debug""#),
            2 => request("resources/unsubscribe", r#""uri":"r://one""#),
            3 => request("ping", ""),
            _ => request("server/discover", ""),
        },
        _ => String::from_utf8_lossy(u.bytes(u.len().min(20))?).into_owned(),
    })
}

/// The questions that clients have got in results of 2026-07-28, with the `params` of their requests.
#[derive(Default)]
pub(crate) struct Rounds<C> {
    /// `params` of calls by the ids of their requests.
    asking: BTreeMap<u64, serde_json::Value>,
    /// What is to be sent again, and the client that got the questions.
    known: Vec<(serde_json::Value, C)>,
}

impl<C: Clone> Rounds<C> {
    /// Notes a request.
    pub(crate) fn sent(&mut self, request: &serde_json::Value) {
        if let Some(id) = request["id"].as_u64().filter(|_| request["params"]["name"].as_str() == Some("ask")) {
            self.asking.insert(id, request["params"].clone());
        }
    }

    /// Notes an answer that a client got.
    pub(crate) fn heard(&mut self, answer: &serde_json::Value, client: C) {
        let asking = answer["id"].as_u64().and_then(|id| self.asking.remove(&id));
        let state = answer["result"].get("requestState");
        if let (Some(mut params), Some(state)) = (asking, state) {
            params["requestState"] = state.clone();
            self.known.push((params, client));
        }
    }

    /// Makes the next round of a request, more often than not as it should be, and returns it with its client.
    pub(crate) fn next(&self, u: &mut Unstructured<'_>, id: u32) -> Result<Option<(String, C)>> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let (mut params, client) = u.choose(&self.known)?.clone();
        params["inputResponses"] = serde_json::json!({
            "form": { "action": "accept", "content": { "yes": true } },
            "model": { "role": "assistant", "model": "m", "content": { "type": "text", "text": "x" } },
            "r": { "roots": [] },
        });
        match u.int_in_range(0..=9)? {
            0 => params["name"] = "ask_too".into(),
            1 => params["arguments"] = serde_json::json!({ "broken": 2 }),
            2 => drop(params.as_object_mut().expect("an object").remove("requestState")),
            3 => {
                let mut state = params["requestState"].as_str().unwrap_or("").to_owned().into_bytes();
                let at = u.choose_index(state.len().max(1))?;
                state.get_mut(at).into_iter().for_each(|byte| *byte = b'a' + *byte % 26);
                params["requestState"] = String::from_utf8(state).unwrap_or_default().into();
            }
            4 => params["inputResponses"] = u.choose(&[serde_json::json!({}), 1.into(), "form".into()])?.clone(),
            _ => {}
        }
        let params = params.to_string();
        Ok(Some((format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#), client)))
    }
}

/// Returns the id of the second request in a batch.
fn second_of(id: u32) -> u32 {
    id + 1_000_000
}

/// The requests that the server got, by their ids.
#[derive(Default)]
struct Owed {
    /// Must be answered exactly once.
    once: Vec<u32>,
    /// Must be answered at most once: it was cancelled, is in a batch (which most revisions refuse), or is a
    /// `subscriptions/listen`.
    at_most_once: Vec<u32>,
    /// Random bytes may contain an id: then nothing is checked.
    unknown: bool,
}

impl Owed {
    fn sent(&mut self, id: u32, line: &str, fits: bool) {
        let request = line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method""#));
        let cancelled = line.split_once(r#""requestId":"#).and_then(|(_, rest)| rest.split_once('}')?.0.parse().ok());
        if let Some(cancelled) = cancelled {
            self.once.retain(|&id| id != cancelled);
            self.at_most_once.push(cancelled);
        } else if line.starts_with('[') && line.contains(r#""method":"tools/list""#) {
            self.at_most_once.extend([id, second_of(id)]);
        } else if request && fits && !line.contains("subscriptions/listen") {
            self.once.push(id);
        } else if request {
            self.at_most_once.push(id);
        } else if !line.starts_with(r#"{"jsonrpc":"2.0""#) {
            self.unknown |= line.contains("id");
        }
    }

    fn check(&self, answered: &BTreeMap<String, u32>) {
        let times = |id: &u32| answered.get(&id.to_string()).copied().unwrap_or(0);
        if self.unknown {
            return;
        }
        for id in &self.once {
            assert_eq!(times(id), 1, "answers to {id}");
        }
        for id in &self.at_most_once {
            assert!(times(id) <= 1, "{id} was answered {} times", times(id));
        }
    }
}

/// The messages of the server, and the ids that they answer.
#[derive(Default)]
struct Seen {
    line: Vec<u8>,
    answered: BTreeMap<String, u32>,
    /// Ids of the requests of the server.
    asked: Vec<u64>,
    rounds: Rounds<()>,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let value: serde_json::Value = serde_json::from_slice(&line)
                    .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(&line)));
                match value {
                    serde_json::Value::Array(answers) => answers.iter().for_each(|answer| self.message(answer)),
                    message => self.message(&message),
                }
            } else {
                self.line.push(byte);
            }
        }
    }

    fn message(&mut self, message: &serde_json::Value) {
        let id = message.get("id").filter(|id| !id.is_null());
        match (id, message.get("method")) {
            (Some(id), None) => {
                *self.answered.entry(id.to_string()).or_default() += 1;
                self.rounds.heard(message, ());
            }
            (Some(id), Some(_)) => self.asked.extend(id.as_u64()),
            _ => {}
        }
    }
}

/// Runs the operations.
pub(crate) fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let service = Service::new("fuzz", "1")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::Logging);
    let mut input = vec![0; u.int_in_range(8..=900)?];
    // The most bytes of a line, with its newline.
    let longest = input.len();
    let mut output = vec![0; u.int_in_range(MIN_ROOM..=2000)?];
    let mut asks = vec![0; u.int_in_range(0..=600)?];
    let mut subscriptions = vec![0; u.int_in_range(0..=200)?];
    let mut scratch = vec![0; u.int_in_range(0..=64)?];
    let mut slots = [RequestSlot::FREE; 3];
    let seal = HmacSeal::new(&[7; 32]);
    let server = Server::new(&mut slots)
        .seal(&seal)
        .asks(&mut asks[..])
        .subscriptions(&mut subscriptions[..])
        .scratch(&mut scratch[..])
        .ask_timeout(50);
    let out = LineSink::new(SliceStorage::new(&mut output));
    let mut session = LineServer::new(LineBuffer::new(&mut input[..]), server, out);
    let (mut state, mut seen, mut sent, mut time) = (State::default(), Seen::default(), 0, 0);
    let mut owed = Owed::default();
    while !u.is_empty() && sent < 200 {
        match u.int_in_range(0..=9)? {
            0..=4 => {
                sent += 1;
                let mut line = message(u, sent)?;
                if line.contains(r#""name":"none""#)
                    && let Some((next, ())) = seen.rounds.next(u, sent)?
                {
                    line = next;
                }
                seen.rounds.sent(&serde_json::from_str(&line).unwrap_or_default());
                owed.sent(sent, &line, line.len() < longest);
                let mut line = line.into_bytes();
                line.push(b'\n');
                let limit = u.int_in_range(1..=2000)?;
                feed(&mut session, &service, &mut state, &line, limit, &mut seen);
            }
            5 => {
                let n = u.int_in_range(0..=session.out.pending().len())?;
                drain(&mut session, n, &mut seen);
            }
            6 if !state.open.is_empty() => {
                let (token, text) = state.open[u.choose_index(state.open.len())?].clone();
                session.progress(token, Progress::new(u.arbitrary::<u64>()?));
                // Only the last of these fits the request.
                let answered = match u.int_in_range(0..=7)? {
                    0 => session.answer(&service, &mut state, token.as_read("r://one"), |_, read| read.text("at last")),
                    1 => session.answer(&service, &mut state, token.as_prompt(), |_, get| get.user("at last")),
                    2 => session.answer(&service, &mut state, token.as_custom(), |_, other| other.decline()),
                    3 => session.server.wake(token),
                    _ => session.answer(&service, &mut state, token, |_, call| call.text(&text)),
                };
                match answered {
                    Ok(()) | Err(RespondError::Stale) => state.open.retain(|(open, _)| *open != token),
                    Err(_) => {}
                }
            }
            7 => session.server.publish(if u.arbitrary()? { ServerChange::Tools } else { ServerChange::Resource("r://one") }),
            8 => {
                time += u.int_in_range(0..=60)?;
                session.server.expire(time);
            }
            _ if !seen.asked.is_empty() => {
                let id = seen.asked[u.choose_index(seen.asked.len())?];
                let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"action\":\"accept\"}}}}\n");
                feed(&mut session, &service, &mut state, answer.as_bytes(), usize::MAX, &mut seen);
            }
            _ => {}
        }
    }
    finish(session, &service, &mut state, &mut seen);
    owed.check(&seen.answered);
    Ok(())
}

type Connection<'m> = LineServer<'m, LineSink<SliceStorage<'m>>>;

/// Feeds bytes in pieces. Sends the pending bytes when the session asks for it.
fn feed(
    session: &mut Connection<'_>,
    service: &Service<'_, State>,
    state: &mut State,
    mut bytes: &[u8],
    limit: usize,
    seen: &mut Seen,
) {
    while !bytes.is_empty() {
        work(session, service, state, seen);
        let space = session.space();
        let n = space.len().min(limit).min(bytes.len());
        assert!(n > 0, "there is no space although nothing waits");
        space[..n].copy_from_slice(&bytes[..n]);
        session.filled(n);
        bytes = &bytes[n..];
    }
    work(session, service, state, seen);
}

/// Runs until there is nothing to do; panics if the session does not come to an end.
fn work(session: &mut Connection<'_>, service: &Service<'_, State>, state: &mut State, seen: &mut Seen) {
    for _ in 0..100_000 {
        match session.run(service, state) {
            NextStep::Write => {
                assert!(!session.out.pending().is_empty(), "it wants room and has nothing to send");
                let all = session.out.pending().len();
                drain(session, all, seen);
            }
            _ => return,
        }
    }
    panic!("it spins");
}

fn drain(session: &mut Connection<'_>, n: usize, seen: &mut Seen) {
    seen.take(&session.out.pending()[..n]);
    session.out.sent(n);
}

/// Ends the input: the server must send all answers.
fn finish(mut session: Connection<'_>, service: &Service<'_, State>, state: &mut State, seen: &mut Seen) {
    session.end_of_input();
    work(&mut session, service, state, seen);
    while session.abandon() == NextStep::Write {
        let all = session.out.pending().len();
        drain(&mut session, all, seen);
    }
    work(&mut session, service, state, seen);
    let all = session.out.pending().len();
    drain(&mut session, all, seen);
    assert_eq!(session.server.in_flight(), 0, "a request is left open");
    assert!(seen.line.is_empty(), "a line is left without its end");
}
