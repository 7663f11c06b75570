//! Late answers: of each kind of request, in each revision, and of handlers that are resumed.
use crate::common;

use common::*;
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::{Method, ServerCapability};
use mcp_sansio::server::{
    Caching, IncomingRequest, MessageLimits, RequestToken, RespondError, RpcError, Server, ServerEvent, ServerInfo,
    ServerOptions,
};
use mcp_sansio::service::{
    Call, Complete, CustomRequest, GetPrompt, HandlerResult, InputRequest, MessageSource, Prompt, PromptArgument,
    ReadResource, Resource, ResourceContents, ResourceTemplate, Service, SourceError, Tool,
};
use mcp_sansio::sink::LineSink;
use mcp_sansio_test_support::Oracle;

fn put_off(world: &mut World, (token, outcome): (RequestToken, HandlerResult)) -> HandlerResult {
    world.later.push((String::new(), token));
    outcome
}

/// Asks for the roots, which each revision has, after it was resumed.
fn job(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    let text = call.arguments().get("text").and_then(|text| text.text()).map_or(String::new(), |text| text.to_string());
    if let Some(answer) = call.answer("roots") {
        assert!(!call.is_resumed());
        return call.text(format_args!("{text}: {} with {}", answer.accepted(), state_of(call.state())));
    }
    if call.is_resumed() {
        assert_eq!(call.state(), b"kept");
        return call.ask(&[InputRequest::roots("roots")], b"asked");
    }
    let (token, done) = call.suspend(b"kept")?;
    world.later.push((text, token));
    Ok(done)
}

fn read_job(world: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    let uri = read.uri.to_owned();
    if read.answer("roots").is_some() {
        return read.text(format_args!("{uri} {}", state_of(read.state())));
    }
    if read.is_resumed() {
        return read.ask(&[InputRequest::roots("roots")], b"asked");
    }
    let (token, done) = read.suspend(b"")?;
    world.later.push((uri, token));
    Ok(done)
}

fn get_job(world: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let who = get.arg("who").map_or(String::new(), |who| who.to_string());
    if get.answer("roots").is_some() {
        return get.user(format_args!("{who} {}", state_of(get.state())));
    }
    if get.is_resumed() {
        return get.ask(&[InputRequest::roots("roots")], b"asked");
    }
    let (token, done) = get.suspend(b"")?;
    world.later.push((who, token));
    Ok(done)
}

/// Puts its answer off again and again, and counts this in its state.
fn patient(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let times = call.state().len();
    if times == 100 {
        return call.text("at last");
    }
    let (token, done) = call.suspend(&vec![b'x'; times + 1])?;
    world.later = vec![(String::new(), token)];
    Ok(done)
}

fn complete_later(world: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    if complete.value == "suspend" {
        return complete.suspend(b"").map(|(_, done)| done);
    }
    if complete.argument.eq_str("now") {
        return complete.matching(["Ada", "Alan", "Grace"]);
    }
    put_off(world, complete.later())
}

fn other(world: &mut World, other: &mut CustomRequest<'_>) -> HandlerResult {
    if other.method.eq_str("demo/now") {
        return other.result(Raw::constant(r#"{"hello":true}"#));
    }
    if other.method.eq_str("demo/suspend") {
        return other.suspend(b"").map(|(_, done)| done);
    }
    put_off(world, other.later())
}

fn source(_: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    let rest = &b"a stream"[at as usize..];
    let n = rest.len().min(bytes.len());
    bytes[..n].copy_from_slice(&rest[..n]);
    Ok(n)
}

fn torn(_: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    if at > 0 {
        return Err(SourceError);
    }
    bytes[..3].copy_from_slice(b"abc");
    Ok(3)
}

/// Sets a shorter time for its question than the server's.
fn hasty(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    match call.answer("roots") {
        Some(answer) => call.text(format_args!("{:?}", answer.result)),
        None => {
            call.ask_timeout = Some(50);
            call.ask(&[InputRequest::roots("roots")], b"")
        }
    }
}

static TOOLS: [Tool<World>; 10] = [
    Tool::new("hoard", "Has more state than there is memory", |_, call| {
        call.suspend(&[b'x'; 600]).map(|(_, done)| done)
    }),
    Tool::new("hasty", "Waits 50 ms for an answer", hasty).reserve(1024),
    Tool::new("later", "Later", |world: &mut World, call| put_off(world, call.later())),
    Tool::new("now", "Now", |_, call| call.text("hello")),
    Tool::new("job", "Asks after it has waited", job).reserve(1024),
    Tool::new("patient", "Waits again and again", patient),
    Tool::new("sourceless", "Streams without a source", |_, call| call.stream_text(0)),
    Tool::new("fail", "Fails with words made at run time", |_, call| {
        call.fail(&RpcError::new(-31000, &format!("{} jobs are waiting", 12)).with_data(Raw::constant("[1]")))
    }),
    Tool::new("json_twice", "Answers twice", |_, call| {
        let _ = call.json_raw(Raw::constant("1"));
        call.json_raw(Raw::constant("2"))
    }),
    Tool::new("fail_twice", "Fails twice", |_, call| {
        let _ = call.fail(&RpcError::new(-31000, "once"));
        call.fail(&RpcError::new(-31001, "twice"))
    }),
];

const HOUR: Caching = Caching::public(3_600_000);
const OWN: [&str; 5] = [
    r#"{"contents":[{"uri":"t://own","text":"x"}]}"#,
    r#"{"contents":[],"ttlMs":-1,"cacheScope":"private"}"#,
    r#"{"contents":[],"ttlMs":"1","cacheScope":7}"#,
    r#"{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"private","_meta":{"example.com/a":1}}"#,
    r#"{"contents":[],"cacheScope":"everyone","ttlMs":2}"#,
];

static RESOURCES: [Resource<World>; 12] = [
    Resource::new("t://later", "later", |world: &mut World, read| put_off(world, read.later()))
        .mime("text/plain")
        .caching(HOUR)
        .source(source),
    Resource::new("t://text", "text", |_, read| read.text("hello")).mime("text/plain").caching(HOUR),
    Resource::new("t://blob", "blob", |_, read| read.blob(b"\x00\xff")).caching(HOUR),
    Resource::new("t://json", "json", |_, read| read.json(&[1, 2])).caching(HOUR),
    Resource::new("t://json/own", "json", |_, read| read.json(&[1, 2])).mime("application/x+json"),
    Resource::new("t://json/set", "json", |_, read| {
        read.mime = Some("text/json");
        read.json(&[1, 2])
    }),
    Resource::new("t://contents", "contents", |_, read| {
        read.contents(&[ResourceContents::text("t://a", "a"), ResourceContents::blob("t://b", b"b")])
    })
    .caching(HOUR),
    Resource::new("t://stream", "stream", |_, read| read.stream_text(0)).caching(HOUR).source(source),
    Resource::new("t://torn", "torn", |_, read| read.stream_text(0)).caching(HOUR).source(torn),
    Resource::new("t://sourceless", "sourceless", |_, read| read.stream_text(0)).caching(HOUR),
    Resource::new("t://own", "own", |world: &mut World, read| {
        let own = world.example.clone();
        read.result(Raw::parse(own.as_bytes()).unwrap())
    })
    .caching(HOUR),
    Resource::new("t://fail", "fail", |_, read| read.fail(&RpcError::new(-31000, &format!("no {}", 1)))),
];

static TEMPLATES: [ResourceTemplate<World>; 2] = [
    ResourceTemplate::new("t://items/{id}", "item", |world: &mut World, read| put_off(world, read.later()))
        .caching(HOUR),
    ResourceTemplate::new("t://jobs/{id}", "job", read_job).reserve(1024),
];

static ARGUMENTS: [PromptArgument; 2] = [PromptArgument::optional("now"), PromptArgument::optional("who")];
static PROMPTS: [Prompt<World>; 3] = [
    Prompt::new("later", "The same words", |world: &mut World, get| put_off(world, get.later()))
        .arguments(&ARGUMENTS)
        .complete(complete_later),
    Prompt::new("now", "The same words", |_, get| get.user("hello")),
    Prompt::new("job", "Asks after it has waited", get_job).arguments(&ARGUMENTS).reserve(1024),
];

const fn service() -> Service<'static, World> {
    Service::new("late", "1.0")
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(ServerCapability::Completions)
        .other(other)
        .on_cancel(|world, token| world.cancelled.push(token))
}

fn rig(revision: &str) -> Rig {
    Rig::new().serving(service()).opened(revision)
}

fn state_of(state: &[u8]) -> &str {
    std::str::from_utf8(state).unwrap()
}

const KINDS: [Method; 5] =
    [Method::ToolsCall, Method::ResourcesRead, Method::PromptsGet, Method::Complete, Method::Other];

/// Answers as if the request had this method.
fn answer_as(rig: &mut Rig, kind: Method, token: RequestToken) -> Result<Vec<String>, RespondError> {
    let Rig { session, service, world, .. } = &mut *rig;
    match kind {
        Method::ToolsCall => session.answer(service, world, token, |_, call| call.text("hello")),
        Method::ResourcesRead => {
            session.answer(service, world, token.as_read("t://later"), |_, read| read.text("hello"))
        }
        Method::PromptsGet => session.answer(service, world, token.as_prompt(), |_, get| get.user("hello")),
        Method::Complete => session.answer(service, world, token.as_completion("A"), |_, complete| {
            assert_eq!(complete.value, "A");
            complete.matching(["Ada", "Alan", "Grace"])
        }),
        _ => session
            .answer(service, world, token.as_custom(), |_, other| other.result(Raw::constant(r#"{"hello":true}"#))),
    }?;
    rig.work();
    Ok(rig.take())
}

/// Returns a request that is put off, and one with the same definition that is answered at once.
fn requests(revision: &str, kind: Method) -> [String; 2] {
    let completion = |argument: &str| json!({"ref": {"type": "ref/prompt", "name": "later"}, "argument": {"name": argument, "value": "A"}});
    let (later, now) = match kind {
        Method::ToolsCall => (json!({"name": "later"}), json!({"name": "now"})),
        Method::ResourcesRead => (json!({"uri": "t://later"}), json!({"uri": "t://text"})),
        Method::PromptsGet => (json!({"name": "later"}), json!({"name": "now"})),
        Method::Complete => (completion("who"), completion("now")),
        _ => {
            let of = |method: &str| request(revision, 1, method, json!({}));
            return [of("demo/later"), of("demo/now")];
        }
    };
    [later, now].map(|params| request(revision, 1, kind.name(), params))
}

/// A late answer equals the direct one. An answer of another kind is refused, and changes nothing.
#[test]
fn every_kind_of_request_can_be_answered_late() {
    for revision in REVISIONS {
        for kind in KINDS {
            let mut rig = rig(revision);
            let [later, now] = requests(revision, kind);
            assert_eq!(rig.say(&later), [""; 0], "{kind:?}");
            let (_, token) = rig.world.later.pop().unwrap();
            for wrong in KINDS.into_iter().filter(|wrong| *wrong != kind) {
                assert_eq!(answer_as(&mut rig, wrong, token), Err(RespondError::WrongKind), "{wrong:?} for {kind:?}");
            }
            assert_eq!(rig.session.server.wake(token), Err(RespondError::WrongKind));
            let late = answer_as(&mut rig, kind, token).unwrap();
            let direct = rig.one(&now).replace("t://text", "t://later");
            assert_eq!(late, [direct], "{revision} {kind:?}");
            assert_eq!(answer_as(&mut rig, kind, token), Err(RespondError::Stale));
            assert_eq!(rig.session.server.wake(token), Err(RespondError::Stale));
        }
    }
}

/// An answer of another kind does not run.
#[test]
fn the_wrong_answer_does_not_run() {
    let mut rig = rig(MODERN);
    let [later, _] = requests(MODERN, Method::ResourcesRead);
    rig.say(&later);
    let (_, token) = rig.world.later.pop().unwrap();
    let Rig { session, service, world, .. } = &mut rig;
    let wrong = session.answer(service, world, token, |_, _| panic!("it runs"));
    assert_eq!(wrong, Err(RespondError::WrongKind));
}

#[test]
fn late_reads_know_their_template_and_stream() {
    for revision in REVISIONS {
        let mut rig = rig(revision);
        for (uri, streams) in [("t://items/7", false), ("t://later", true)] {
            rig.say(&request(revision, 1, "resources/read", json!({"uri": uri})));
            let (_, token) = rig.world.later.pop().unwrap();
            let Rig { session, service, world, .. } = &mut rig;
            session
                .answer(service, world, token.as_read(uri), |_, read| match streams {
                    true => read.stream_text(0),
                    false => read.text(read.var("id").unwrap_or("none")),
                })
                .unwrap();
            rig.work();
            let reply = parse(&rig.take()[0]);
            let text = if streams { "a stream" } else { "7" };
            assert_eq!(reply["result"]["contents"][0]["text"], text);
            assert_eq!(reply["result"].get("ttlMs"), (is_modern(revision)).then_some(&json!(3_600_000)));
        }
    }
}

/// `not_found` and errors made at run time, directly and late.
#[test]
fn errors_made_at_run_time() {
    for revision in REVISIONS {
        let mut rig = rig(revision);
        let error = |line: &str| parse(line)["error"].clone();
        let failed = json!({"code": -31000, "message": "12 jobs are waiting", "data": [1]});
        assert_eq!(error(&rig.one(&call(revision, 1, "fail", json!({})))), failed);
        assert_eq!(error(&rig.one(&call(revision, 1, "fail_twice", json!({}))))["message"], "once");
        assert_eq!(text(&rig.one(&call(revision, 1, "json_twice", json!({})))), "1");
        let failed = json!({"code": -31000, "message": "no 1"});
        assert_eq!(error(&rig.one(&request(revision, 1, "resources/read", json!({"uri": "t://fail"})))), failed);
        for kind in KINDS {
            let [later, _] = requests(revision, kind);
            rig.say(&later);
            let (_, token) = rig.world.later.pop().unwrap();
            let words = format!("late {kind:?}");
            let failure = RpcError::new(-31000, &words);
            let Rig { session, service, world, .. } = &mut rig;
            match kind {
                Method::ToolsCall => session.answer(service, world, token, |_, call| call.fail(&failure)),
                Method::ResourcesRead => {
                    session.answer(service, world, token.as_read(""), |_, call| call.fail(&failure))
                }
                Method::PromptsGet => session.answer(service, world, token.as_prompt(), |_, call| call.fail(&failure)),
                Method::Complete => {
                    session.answer(service, world, token.as_completion(""), |_, call| call.fail(&failure))
                }
                _ => session.answer(service, world, token.as_custom(), |_, call| call.fail(&failure)),
            }
            .unwrap();
            rig.work();
            assert_eq!(error(&rig.take()[0]), json!({"code": -31000, "message": words}));
        }
        // A lone surrogate, which strict readers refuse, is replaced.
        let broken = request(revision, 1, "resources/read", json!({"uri": "x:a-b"})).replace("a-b", r"a\ud800b");
        assert_eq!(error(&rig.one(&broken))["data"]["uri"], "x:a\u{fffd}b");
        for uri in ["t://items/none", "t://items/a\"b\\c"] {
            rig.say(&request(revision, 1, "resources/read", json!({"uri": uri})));
            let (_, token) = rig.world.later.pop().unwrap();
            let Rig { session, service, world, .. } = &mut rig;
            session.answer(service, world, token.as_read(uri), |_, read| read.not_found()).unwrap();
            rig.work();
            let code = if is_modern(revision) { -32602 } else { -32002 };
            let not_found = json!({"code": code, "message": "Resource not found", "data": {"uri": uri}});
            assert_eq!(error(&rig.take()[0]), not_found);
        }
    }
}

/// A late answer that does not fit leaves its request open.
#[test]
fn late_answers_that_do_not_fit() {
    let mut rig: Rig = Rig::with(400).serving(service()).opened("2025-11-25");
    let long = "x".repeat(500);
    for kind in [Method::ResourcesRead, Method::PromptsGet] {
        let [later, _] = requests("2025-11-25", kind);
        rig.say(&later);
        let (_, token) = rig.world.later.pop().unwrap();
        let Rig { session, service, world, .. } = &mut rig;
        let mut answer = |text: &str| match kind {
            Method::ResourcesRead => {
                session.answer(service, world, token.as_read("t://later"), |_, read| read.text(text))
            }
            _ => session.answer(service, world, token.as_prompt(), |_, get| get.user(text)),
        };
        assert_eq!(answer(&long), Err(RespondError::FullNever));
        assert_eq!(answer("short"), Ok(()));
        // The other request waits for room: the sink is not empty.
        rig.work();
        assert!(rig.take()[0].contains("short"));
    }
}

/// The caching hints are right for each way to answer a read; the oracle judges each line.
// spec: S074 S080 S095
#[test]
fn every_way_to_answer_a_read() {
    for revision in REVISIONS {
        let mut rig = rig(revision);
        let read =
            |rig: &mut Rig, uri: &str| parse(&rig.one(&request(revision, 1, "resources/read", json!({"uri": uri}))));
        let hints = |reply: &Value| (reply["result"]["ttlMs"].clone(), reply["result"]["cacheScope"].clone());
        let modern = is_modern(revision);
        let expected =
            |ttl: u64, scope: &str| if modern { (json!(ttl), json!(scope)) } else { (json!(null), json!(null)) };
        for uri in ["t://text", "t://blob", "t://json", "t://contents", "t://stream"] {
            assert_eq!(hints(&read(&mut rig, uri)), expected(3_600_000, "public"), "{uri}");
        }
        let own = [(3_600_000, "public"), (3_600_000, "private"), (3_600_000, "public"), (5, "private"), (2, "public")];
        for (example, (ttl, scope)) in OWN.into_iter().zip(own) {
            rig.world.example = example.into();
            assert_eq!(hints(&read(&mut rig, "t://own")), expected(ttl, scope), "{example}");
        }
        for (uri, mime) in
            [("t://json", "application/json"), ("t://json/own", "application/x+json"), ("t://json/set", "text/json")]
        {
            let contents = &read(&mut rig, uri)["result"]["contents"];
            assert_eq!(contents, &json!([{"uri": uri, "mimeType": mime, "text": "[1,2]"}]));
        }
        // A partial text must not be cached.
        let broken = read(&mut rig, "t://torn");
        assert_eq!((&broken["result"]["contents"][0]["text"], hints(&broken)), (&json!("abc"), expected(0, "private")));
        assert_eq!(broken["result"]["_meta"]["incomplete"], true);
        // Without a source there is nothing to stream.
        assert_eq!(read(&mut rig, "t://sourceless")["error"]["code"], -32603);
        assert_eq!(code(&rig.one(&call(revision, 1, "sourceless", json!({})))), -32603);
    }
}

/// A tool made at run time has no source.
#[test]
fn an_owned_tool_cannot_stream() {
    use mcp_sansio_host::{OwnedTool, OwnedTools};
    let tools = OwnedTools::new();
    tools.push(OwnedTool::new("stream", "Streams", |_: &mut World, call: &mut Call<'_>| call.stream_text(0)).unwrap());
    let tools: &'static OwnedTools<World> = Box::leak(Box::new(tools));
    for revision in REVISIONS {
        let mut rig = Rig::new().serving(Service::new("owned", "1").dynamic_tools(tools)).opened(revision);
        assert_eq!(code(&rig.one(&call(revision, 1, "stream", json!({})))), -32603);
    }
}

/// Applications that dispatch requests themselves get the hints too.
// spec: S074 S095
#[test]
fn responses_of_ones_own_have_the_hints() {
    let about = ServerInfo::new("own", "1")
        .feature(ServerCapability::Tools)
        .feature(ServerCapability::Resources)
        .feature(ServerCapability::Prompts);
    let oracle = Oracle::new().without_server_info();
    let methods = [
        ("tools/list", r#"{"tools":[]}"#),
        ("resources/list", r#"{"resources":[],"ttlMs":-4}"#),
        ("resources/templates/list", r#"{"resourceTemplates":[],"cacheScope":"x"}"#),
        ("prompts/list", r#"{"prompts":[],"ttlMs":7,"cacheScope":"public"}"#),
        ("resources/read", OWN[0]),
        ("tools/call", r#"{"content":[],"isError":false}"#),
    ];
    for (method, result) in methods {
        let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
        let mut out = LineSink::new(Vec::new());
        let line = request(MODERN, 1, method, json!({"uri": "t://own", "name": "x"}));
        let event = server
            .handle(&ServerOptions::new(&about), line.as_bytes(), &mut IncomingRequest::empty(), &mut out)
            .unwrap();
        let Some(ServerEvent::Request { token, .. }) = event else { panic!("{event:?}") };
        server.respond(token, Raw::parse(result.as_bytes()).unwrap(), &mut out).unwrap();
        let reply = String::from_utf8(out.pending().to_vec()).unwrap();
        oracle
            .server_sends(MODERN, Some(method), reply.trim_end().as_bytes())
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        if method == "prompts/list" {
            assert!(reply.contains(r#""ttlMs":7,"cacheScope":"public""#), "{reply}");
        }
    }
}

/// Returns the answer to a question: in 2026-07-28 a retry of the request, in older revisions a response.
fn answer_roots(rig: &mut Rig, revision: &str, method: &str, params: &Value, asked: &str) -> String {
    let asked = parse(asked);
    if !is_modern(revision) {
        assert_eq!(asked["method"], "roots/list");
        return rig.one(&answer(&asked["id"], json!({"roots": []})));
    }
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut params = params.clone();
    params["inputResponses"] = json!({"roots": {"roots": []}});
    params["requestState"] = asked["result"]["requestState"].clone();
    rig.one(&request(revision, 2, method, params))
}

/// A handler that has waited may ask: it runs again, with all of its arguments.
#[test]
fn a_resumed_handler_can_ask() {
    let ways = [
        ("tools/call", json!({"name": "job", "arguments": {"text": "a \"b\"\n\u{e9}"}}), "a \"b\"\n\u{e9}"),
        ("resources/read", json!({"uri": "t://jobs/7"}), "t://jobs/7"),
        ("prompts/get", json!({"name": "job", "arguments": {"who": "\"Ada\""}}), "\"Ada\""),
    ];
    for revision in REVISIONS {
        for (method, params, seen) in &ways {
            let mut rig = rig(revision);
            assert_eq!(rig.say(&request(revision, 1, method, params.clone())), [""; 0]);
            let (what, token) = rig.world.later.pop().unwrap();
            assert_eq!(what, *seen);
            // Other requests are served meanwhile, and use the same memory.
            assert_eq!(text(&rig.one(&call(revision, "now", "now", json!({"escaped": "\"\u{e9}\""})))), "hello");
            rig.session.server.wake(token).unwrap();
            rig.session.server.wake(token).unwrap();
            rig.work();
            let asked = rig.take();
            assert_eq!(asked.len(), 1, "{asked:?}");
            let reply = answer_roots(&mut rig, revision, method, params, &asked[0]);
            let quoted = serde_json::to_string(seen).unwrap();
            assert!(reply.contains(quoted.trim_matches('"')) && reply.contains("asked"), "{reply}");
            assert_eq!(rig.session.server.wake(token), Err(RespondError::Stale));
            assert_eq!(rig.session.server.in_flight(), 0);
        }
    }
}

/// A suspended request may be answered, cancelled or abandoned; its memory is released each time.
#[test]
fn suspended_requests_give_their_memory_back() {
    for revision in ["2025-11-25", MODERN] {
        let server = Server::growing(MessageLimits::default()).asks(Store::growing(600)).seal(&toy_seal::SEAL);
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        let arguments = json!({"text": "x".repeat(100)});
        for round in 0..20 {
            assert_eq!(rig.say(&call(revision, round, "job", arguments.clone())), [""; 0]);
            let (_, token) = rig.world.later.pop().unwrap();
            if round % 2 == 0 {
                assert_eq!(answer_as(&mut rig, Method::ResourcesRead, token), Err(RespondError::WrongKind));
                assert_eq!(text(&answer_as(&mut rig, Method::ToolsCall, token).unwrap()[0]), "hello");
            } else {
                // The same if it was resumed before.
                if round % 4 == 1 {
                    rig.session.server.wake(token).unwrap();
                    rig.session.server.forget(token);
                } else {
                    assert_eq!(rig.say(&cancel(round)), [""; 0]);
                    assert_eq!(rig.world.cancelled.pop(), Some(token));
                }
                assert_eq!(rig.session.server.wake(token), Err(RespondError::Stale));
            }
        }
        assert_eq!(rig.world.runs, 20);
        rig.say(&call(revision, "a", "job", arguments));
        rig.session.end_of_input();
        let _ = rig.session.abandon();
        rig.work();
        assert_eq!(code(&rig.take()[0]), -32603);
    }
}

/// Without memory for it, a suspension is refused with a text.
#[test]
fn without_memory_nothing_is_suspended() {
    for revision in REVISIONS {
        let server = Server::new(Slots::growing(8)).scratch(Store::growing(4096)).asks(Store::growing(200));
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        let reply = rig.one(&call(revision, 1, "job", json!({"text": "x".repeat(300)})));
        assert!(text(&reply).contains("too large to be kept"), "{reply}");
        let long = format!("t://jobs/{}", "x".repeat(300));
        assert_eq!(code(&rig.one(&request(revision, 1, "resources/read", json!({"uri": long})))), -32603);
        assert_eq!(rig.session.server.in_flight(), 0);
        assert!(rig.world.later.is_empty());
    }
}

/// Which handler it was is not kept for completion, and for methods that the service has no table of.
#[test]
fn what_cannot_be_resumed_is_not_suspended() {
    for revision in REVISIONS {
        let server = Server::growing(MessageLimits::default()).asks(Store::growing(2_000));
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        let asked =
            json!({"ref": {"type": "ref/prompt", "name": "later"}, "argument": {"name": "who", "value": "suspend"}});
        for (method, params) in [("completion/complete", asked), ("demo/suspend", json!({}))] {
            let reply = rig.one(&request(revision, 1, method, params));
            assert_eq!(code(&reply), -32603, "{method}");
            assert!(reply.contains("The handler suspends what cannot be resumed"), "{reply}");
            assert_eq!(rig.session.server.in_flight(), 0);
        }
    }
}

/// Nothing stays of a suspension whose params fit and whose state does not.
#[test]
fn a_refused_suspension_takes_no_memory() {
    for revision in REVISIONS {
        let server = Server::growing(MessageLimits::default()).asks(Store::growing(600));
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        for round in 0..20 {
            let reply = rig.one(&call(revision, round, "hoard", json!({})));
            assert!(text(&reply).contains("too large to be kept"), "{reply}");
        }
        assert_eq!(rig.say(&call(revision, "j", "job", json!({}))), [""; 0]);
    }
}

/// Each suspension has a new state, which replaces the last one.
#[test]
fn suspended_again_and_again() {
    for revision in ["2025-11-25", MODERN] {
        // While the handler runs, the old and the new state exist, and no third one.
        let server = Server::growing(MessageLimits::default()).asks(Store::growing(800));
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        assert_eq!(rig.say(&call(revision, 1, "patient", json!({}))), [""; 0]);
        for _ in 1..100 {
            let (_, token) = rig.world.later[0];
            rig.session.server.wake(token).unwrap();
            rig.work();
            assert_eq!(rig.take(), [""; 0]);
        }
        let (_, token) = rig.world.later[0];
        rig.session.server.wake(token).unwrap();
        rig.work();
        assert_eq!(text(&rig.take()[0]), "at last");
    }
}

/// Requests that wait for the client leave one slot free, also those that were resumed.
#[test]
fn resumed_handlers_do_not_take_the_last_place() {
    let server = Server::growing(MessageLimits { in_flight: 2, ..MessageLimits::default() });
    let mut rig = Rig::of(usize::MAX, server).serving(service()).opened("2025-11-25");
    rig.say(&call("2025-11-25", "a", "job", json!({})));
    rig.say(&call("2025-11-25", "b", "job", json!({})));
    for (at, (_, token)) in rig.world.later.clone().into_iter().enumerate() {
        rig.session.server.wake(token).unwrap();
        rig.work();
        let reply = rig.take().remove(0);
        assert_eq!(reply.contains("roots/list"), at == 0, "{reply}");
    }
}

/// A program without a service gets the reason of a cancellation.
// spec: B132
#[test]
fn the_reason_of_a_cancellation() {
    let cancel = |reason: Value| notify("notifications/cancelled", json!({"requestId": 1, "reason": reason}));
    for revision in REVISIONS {
        let mut server = Server::growing(MessageLimits { in_flight: 4, ..MessageLimits::default() });
        let mut out = LineSink::new(Vec::new());
        let about = ServerInfo::new("own", "1").feature(ServerCapability::Tools);
        let mut say = |line: &str| {
            let mut request = IncomingRequest::empty();
            let event = server.handle(&ServerOptions::new(&about), line.as_bytes(), &mut request, &mut out).unwrap();
            match event {
                Some(ServerEvent::Cancelled { .. }) => request.reason().map(|reason| reason.to_string()),
                _ => None,
            }
        };
        if is_modern(revision) {
            say(&call(revision, 1, "later", json!({})));
            assert_eq!(say(&cancel(json!("why"))).as_deref(), Some("why"));
        }
    }
}

/// A question can have its own time; the next one has the server's time again.
// spec: B135
#[test]
fn a_question_with_a_time_of_its_own() {
    for revision in LEGACY {
        let server = Server::growing(MessageLimits::default()).ask_timeout(1000);
        let mut rig: Rig = Rig::of(usize::MAX, server).serving(service()).opened(revision);
        rig.session.server.expire(10);
        rig.one(&call(revision, "a", "hasty", json!({})));
        rig.say(&call(revision, "b", "job", json!({})));
        let (_, token) = rig.world.later.pop().unwrap();
        rig.session.server.wake(token).unwrap();
        rig.work();
        rig.take();
        assert_eq!(rig.session.server.next_deadline(), Some(60));
        rig.session.server.expire(59);
        rig.work();
        assert_eq!(rig.take(), [""; 0]);
        rig.session.server.expire(60);
        rig.work();
        let said = rig.take();
        assert!(said[0].contains("notifications/cancelled") && text(&said[1]).contains("TimedOut"), "{said:?}");
        assert_eq!(rig.session.server.next_deadline(), Some(1010));
    }
}

#[test]
fn a_late_answer_to_another_method_can_decline() {
    // A late `CustomRequest` or `Complete` has empty texts, not those of another request.
    let mut rig = rig("2025-11-25");
    let [later, _] = requests("2025-11-25", Method::Other);
    rig.say(&later);
    let (_, token) = rig.world.later.pop().unwrap();
    let Rig { session, service, world, .. } = &mut rig;
    let empty = |text: Text<'_>| assert!(text.eq_str(""));
    session.answer(service, world, token.as_custom(), |_, other| (empty(other.method), other.decline()).1).unwrap();
    rig.work();
    assert_eq!(code(&rig.take()[0]), -32601);
}

/// A handler that has asked may run again without a message of its client: when the time of its question is over, and after it
/// was suspended. Each run knows the principal.
#[test]
fn each_run_knows_the_principal() {
    #[derive(Default)]
    struct Seen {
        principals: Vec<Option<String>>,
        suspended: Option<RequestToken>,
    }
    fn ask_then_wait(seen: &mut Seen, call: &mut Call<'_>) -> HandlerResult {
        seen.principals.push(call.principal().map(str::to_owned));
        if call.is_resumed() {
            return call.text("done");
        }
        if call.answer("roots").is_none() {
            return call.ask(&[InputRequest::roots("roots")], b"");
        }
        let (token, done) = call.suspend(b"")?;
        seen.suspended = Some(token);
        Ok(done)
    }
    static TOOLS: [Tool<Seen>; 1] = [Tool::new("wait", "Asks, then waits", ask_then_wait)];
    const SERVICE: Service<'static, Seen> = Service::new("late", "1.0").tools(&TOOLS);
    for revision in LEGACY {
        for (principal, is_answered) in [(Some("ann"), true), (Some("ann"), false), (None, true), (None, false)] {
            let source = MessageSource::LINE.principal(principal);
            let mut server = Server::growing(MessageLimits::default()).ask_timeout(1000);
            let (mut seen, mut out) = (Seen::default(), LineSink::new(Vec::new()));
            let mut say = |seen: &mut Seen, server: &mut Server<'_>, message: &str| {
                let _ = SERVICE.dispatch_from(&source, seen, message.as_bytes(), server, &mut out).unwrap();
                let said = String::from_utf8(out.pending().to_vec()).unwrap();
                out.sent(said.len());
                said
            };
            say(&mut seen, &mut server, &initialize(revision, json!({"roots": {}})));
            say(&mut seen, &mut server, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            let asked = parse(&say(&mut seen, &mut server, &call(revision, 1, "wait", json!({}))));
            assert_eq!(asked["method"], "roots/list");
            if is_answered {
                say(&mut seen, &mut server, &answer(&asked["id"], json!({"roots": []})));
            } else {
                server.expire(1000);
            }
            let token = server.ready().unwrap();
            let _ = SERVICE.resume(&mut seen, token, &mut server, &mut LineSink::new(Vec::new())).unwrap();
            server.wake(seen.suspended.unwrap()).unwrap();
            let token = server.ready().unwrap();
            let mut out = LineSink::new(Vec::new());
            let _ = SERVICE.resume(&mut seen, token, &mut server, &mut out).unwrap();
            assert_eq!(text(std::str::from_utf8(out.pending()).unwrap()), "done");
            assert_eq!(seen.principals, vec![principal.map(str::to_owned); 3], "{revision} {is_answered}");
        }
    }
}

/// The service may have changed while a request was suspended.
#[test]
fn a_handler_that_is_gone_when_it_is_resumed() {
    const EMPTY: Service<'static, World> = Service::new("late", "1.0");
    for revision in REVISIONS {
        let mut rig = rig(revision);
        assert_eq!(rig.say(&call(revision, 1, "job", json!({}))), [""; 0]);
        let (_, token) = rig.world.later.pop().unwrap();
        rig.session.server.wake(token).unwrap();
        let mut out = LineSink::new(Vec::new());
        let token = rig.session.server.ready().unwrap();
        let _ = EMPTY.resume(&mut rig.world, token, &mut rig.session.server, &mut out).unwrap();
        assert!(matches!(code(std::str::from_utf8(out.pending()).unwrap()), -32601 | -32602));
        assert_eq!(rig.session.server.in_flight(), 0);
    }
}
