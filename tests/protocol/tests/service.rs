//! A service with wrong tables, handlers and requests, and cases that few other tests have.
use crate::common;

use common::*;
use mcp_sansio::frame::LineBuffer;
use mcp_sansio::json::Raw;
use mcp_sansio::line_server::LineServer;
use mcp_sansio::memory::{Slots, Store};
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::revision::Revision;
use mcp_sansio::server::{Caching, NotifyStatus, PullStatus, RpcError, Server};
use mcp_sansio::service::{
    Call, Caller, Complete, ContentBlock, CreateMessage, DynamicList, HandlerResult, InputRequest, Prompt,
    PromptArgument, PromptMessage, ReadResource, Resource, ResourceTemplate, Service, SourceError, Tool, ToolInfo,
    is_tool_name,
};
use mcp_sansio::sink::{LineSink, SliceStorage};
use mcp_sansio_host::testing::Conversation;
use mcp_sansio_host::{OwnedTool, OwnedTools};

const D: &str = "2025-11-25";

/// Returns a service of these tools.
fn with_tools<const N: usize>(tools: [Tool<World>; N]) -> Service<'static, World> {
    Service::new("few", "1").tools(Box::leak(Box::new(tools))).feature(ServerCapability::Logging)
}

fn rig(service: Service<'static, World>, revision: &str) -> Rig {
    Rig::new().serving(service).opened(revision)
}

fn run(revision: &str, tool: fn(&mut World, &mut Call<'_>) -> HandlerResult) -> Vec<String> {
    let service = with_tools([Tool::new("it", "Does it", tool).reserve(2048)]);
    rig(service, revision).say(&call(revision, 1, "it", json!({})))
}

fn names(listed: &str) -> Vec<String> {
    let listed = parse(listed);
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// The tools of another server, valid or not.
struct Foreign(&'static [fn(&mut ToolInfo<'static>)]);

impl DynamicList<Tool<World>> for Foreign {
    fn list(&self, _: &World, _: &Caller<'_>, from: usize, with: &mut dyn FnMut(&ToolInfo<'_>) -> bool) {
        const NAMES: [&str; 14] =
            ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11", "t12", "t13"];
        for (name, change) in NAMES.into_iter().zip(self.0).skip(from) {
            let mut info = ToolInfo::new(name, "");
            change(&mut info);
            // It does not heed that no more is wanted.
            let _ = with(&info);
        }
    }

    fn run(&self, index: usize, _: &mut World, call: &mut Call<'_>) -> HandlerResult {
        call.text(format_args!("{index}"))
    }
}

static FOREIGN: Foreign = Foreign(&[
    |info| info.name = "bad name, \u{e9}",
    |info| info.input = "null",
    |_| {},
    |info| info.input = "[1",
    |info| info.input = r#"{"type":"string"}"#,
    |info| info.output = Some("nonsense {"),
    |info| info.input = "{\n\"type\": \"object\"\n}",
    |info| info.meta = Some("3"),
    |info| info.name = "",
    |info| info.output = Some(r#"{"type":"array"}"#),
    |info| info.output = Some("{}}"),
    |info| info.input = "",
    |info| info.input = UNFOLLOWED,
    |info| info.input = r#"{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"A"}}}"#,
]);

/// Clients leave out a tool with a header for a number.
const UNFOLLOWED: &str = r#"{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#;

// spec: S055 S165 T058 T068
#[test]
fn dynamic_tools_never_damage_the_list() {
    static WORSE: Foreign = Foreign(&[|info| info.input = "", |info| info.input = "{"]);
    for revision in REVISIONS {
        let list = request(revision, 1, "tools/list", json!({}));
        let own = || with_tools([Tool::new("own", "Its own", |_, call| call.text("own"))]);
        for window in [usize::MAX, 300] {
            let mut rig: Rig = Rig::with(window).serving(own().dynamic_tools(&FOREIGN)).opened(revision);
            assert_eq!(names(&rig.one(&list)), ["own", "t2", "t6", "t9", "t13"], "{revision}");
        }
        let mut alone = rig(Service::new("alone", "1").dynamic_tools(&FOREIGN), revision);
        assert_eq!(names(&alone.one(&list)), ["t2", "t6", "t9", "t13"], "{revision}");
        for (index, tool) in ["bad name, \u{e9}", "t1", "t2", "t3", "t4", "t5", "t6", "t7", ""].into_iter().enumerate()
        {
            let reply = alone.one(&call(revision, 2, tool, json!({})));
            if [2, 6].contains(&index) {
                assert_eq!(text(&reply), index.to_string());
            } else {
                assert_eq!(code(&reply), -32602, "{tool}");
            }
        }
        assert!(names(&rig(Service::new("worse", "1").dynamic_tools(&WORSE), revision).one(&list)).is_empty());
        // With pages of any size; each page is valid JSON.
        for size in 1..8 {
            let mut rig = rig(own().dynamic_tools(&FOREIGN).page_size(size), revision);
            let (mut all, mut cursor) = (Vec::new(), None);
            loop {
                let params = cursor.take().map_or(json!({}), |cursor: Value| json!({"cursor": cursor}));
                let page = rig.one(&request(revision, 1, "tools/list", params));
                all.extend(names(&page));
                match parse(&page)["result"].get("nextCursor") {
                    Some(next) => cursor = Some(next.clone()),
                    None => break,
                }
            }
            assert_eq!(all, ["own", "t2", "t6", "t9", "t13"], "{revision}, {size} in a page");
        }
    }
}

// spec: S057 S059 S060
#[test]
fn names_of_tools() {
    let long: &'static str = "x".repeat(129).leak();
    for (name, allowed) in [
        ("", false),
        ("a", true),
        ("A-z_0.9", true),
        (&long[1..], true),
        (long, false),
        ("a b", false),
        ("\u{e9}", false),
    ] {
        assert_eq!(is_tool_name(name), allowed, "{name}");
        assert_eq!(OwnedTool::new(name, "Words", |_: &mut (), call| call.text("")).is_some(), allowed, "{name}");
        assert_eq!(
            std::panic::catch_unwind(|| Tool::<()>::new(name, "Words", |_, call| call.text(""))).is_ok(),
            allowed,
            "{name}"
        );
    }
    assert!(OwnedTool::new("a", "", |_: &mut (), call| call.text("")).is_none(), "models choose by the description");
}

// spec: B076 S055 S058 S061
#[test]
fn owned_tools_come_and_go() {
    let tool = |name: &str, said: &'static str| {
        OwnedTool::new(name, said, move |_: &mut World, call: &mut Call<'_>| call.text(said)).unwrap()
    };
    let list = request(D, 1, "tools/list", json!({}));
    let tools = OwnedTools::default();
    ["a", "b", "c"].into_iter().for_each(|name| tools.push(tool(name, name)));
    // Replaces a tool in its place, removes it, and finds it missing.
    tools.push(tool("b", "another"));
    assert!(tools.remove("a") && !tools.remove("a") && !tools.remove("d"));
    let tools: &OwnedTools<World> = Box::leak(Box::new(tools));
    let mut rig = rig(Service::new("owned", "1").dynamic_tools(tools), D);
    assert_eq!(names(&rig.one(&list)), ["b", "c"]);
    assert_eq!(text(&rig.one(&call(D, 2, "b", json!({})))), "another");
    assert_eq!(code(&rig.one(&call(D, 3, "a", json!({})))), -32602);
    assert_eq!(code(&rig.one(&call(D, 3, "C", json!({})))), -32602, "case counts");
    assert_eq!(tools.len(), 2);
    for schema in ["", "null", "[]", "{}", "{", r#"{"type":"array"}"#, r#"{"type":"object"}}"#, UNFOLLOWED] {
        assert!(tool("a", "a").input(schema).is_err(), "{schema}");
    }
    for schema in ["", "null", "[]", "{"] {
        assert!(tool("a", "a").output(schema).is_err(), "{schema}");
    }
    let array = tool("a", "a").input(r#"{"type":"object"}"#).unwrap().output(r#"{"type":"array"}"#);
    assert!(array.is_ok(), "from 2026-07-28 on a result may be of any type");
}

// spec: T122
#[test]
fn headers_of_parameters_are_checked() {
    let declare = |schema: &'static str| {
        std::panic::catch_unwind(|| {
            let _ = Tool::<World>::new("a", "A", |_, call| call.text("")).input(schema);
        })
    };
    assert!(declare(UNFOLLOWED).is_err());
    assert!(declare(r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#).is_ok());
}

/// Two items with one name, in each kind of table, when the table is not a constant.
// spec: S061
#[test]
fn names_that_come_twice() {
    fn read(_: &mut (), read: &mut ReadResource<'_>) -> HandlerResult {
        read.text("")
    }
    static TOOLS: [Tool<()>; 3] = [
        Tool::new("one", "One", |_, call| call.text("")),
        Tool::new("two", "Two", |_, call| call.text("")),
        Tool::new("one", "One again", |_, call| call.text("")),
    ];
    static RESOURCES: [Resource<()>; 2] = [Resource::new("a:1", "a", read), Resource::new("a:1", "b", read)];
    static TEMPLATES: [ResourceTemplate<()>; 2] =
        [ResourceTemplate::new("a:{x}", "a", read), ResourceTemplate::new("a:{x}", "b", read)];
    static PROMPTS: [Prompt<()>; 2] =
        [Prompt::new("a", "A", |_, get| get.user("")), Prompt::new("a", "B", |_, get| get.user(""))];
    let panics = |make: fn(Service<'static, ()>) -> Service<'static, ()>| {
        std::panic::catch_unwind(|| make(Service::new("twice", "1")).about().has(ServerCapability::Tools)).is_err()
    };
    assert!(panics(|service| service.tools(&TOOLS)) && !panics(|service| service.tools(&TOOLS[..2])));
    assert!(panics(|service| service.resources(&RESOURCES)) && !panics(|service| service.resources(&RESOURCES[1..])));
    assert!(panics(|service| service.templates(&TEMPLATES)) && !panics(|service| service.templates(&TEMPLATES[1..])));
    assert!(panics(|service| service.prompts(&PROMPTS)) && !panics(|service| service.prompts(&PROMPTS[1..])));
}

const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);

/// A question that a handler must not ask ends its request with -32603, once, in each revision.
// spec: B158 B165 C068 C069 C070
#[test]
fn questions_that_are_wrong() {
    const VISIT: InputRequest<'static> = InputRequest::visit("a", "Sign in", "https://example.com", "v");
    const FORMS: InputRequest<'static> = InputRequest::elicit("a", "?", FORM);
    let wrong: [fn(&mut World, &mut Call<'_>) -> HandlerResult; 7] = [
        |_, call| call.ask(&[InputRequest::roots("a"), InputRequest::roots("b"), InputRequest::roots("a")], b""),
        |_, call| call.ask(&[InputRequest::roots("a"), FORMS], b""),
        |_, call| call.ask(&[], b""),
        |_, call| call.ask(&["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(InputRequest::roots), b""),
        |_, call| call.require_visits(&[]),
        |_, call| call.require_visits(&[FORMS]),
        |_, call| call.require_visits(&[VISIT, FORMS]),
    ];
    for (number, tool) in wrong.into_iter().enumerate() {
        for revision in REVISIONS {
            let said = run(revision, tool);
            assert_eq!(said.len(), 1, "{said:?}");
            assert_eq!(code(&said[0]), -32603, "{number} {revision}");
        }
    }
    for revision in REVISIONS {
        // A second answer is not written.
        let said = run(revision, |_, call| {
            call.text("first")?;
            call.require_visits(&[VISIT])
        });
        assert_eq!((said.len(), text(&said[0]).as_str()), (1, "first"), "{revision}");
    }
    let both =
        run(D, |_, call| call.require_visits(&[VISIT, InputRequest::visit("b", "Pay", "https://example.com/b", "w")]));
    assert_eq!(parse(&both[0])["error"]["data"]["elicitations"].as_array().map(Vec::len), Some(2));
}

const NOTHING: Raw<'static> = Raw::constant("{}");

type Answer = fn(&mut Call<'_>) -> HandlerResult;

/// All ways to answer a call, to put it off and to ask.
const ANSWERS: [Answer; 13] = [
    |call| call.text("text"),
    |call| call.later().1,
    |call| call.suspend(b"").map(|(_, done)| done),
    |call| call.ask(&[InputRequest::roots("a")], b""),
    |call| call.stream_text(0),
    |call| call.error("error"),
    |call| call.content(&[ContentBlock::text("content")]),
    |call| call.json_raw(NOTHING),
    |call| call.result(NOTHING),
    |call| call.fail(&RpcError::internal("fail")),
    |call| call.fail_with(-31000, "fail_with"),
    |call| Err(call.failed("failed")),
    |call| call.require_visits(&[InputRequest::visit("a", "Sign in", "https://example.com", "v")]),
];

/// The members of a retry belong to 2026-07-28: before, they may be anything.
#[test]
fn members_of_later_revisions_are_not_looked_at() {
    for (members, is_right) in [
        (json!({"inputResponses": 7}), false),
        (json!({"inputResponses": {"a": 7}}), false),
        (json!({"requestState": 7}), false),
        (json!({"inputResponses": {"a": {}}}), true),
        (json!({"inputResponses": {}}), true),
    ] {
        for revision in REVISIONS {
            let mut params = json!({"name": "it"});
            params.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let service = with_tools([Tool::new("it", "Does it", |_, call| call.text("done"))]);
            let said = rig(service, revision).say(&request(revision, 1, "tools/call", params));
            let is_served = said[0].contains("done");
            assert_eq!(is_served, is_right || revision != MODERN, "{revision} {members}: {said:?}");
        }
    }
}

/// The first answer of a handler counts, whatever it does after that.
#[test]
fn a_request_is_answered_once() {
    type Answers = (Answer, Option<Answer>);
    fn twice((first, second): &mut Answers, call: &mut Call<'_>) -> HandlerResult {
        if call.answer("a").is_some() {
            return call.text("there is no answer");
        }
        let done = first(call);
        assert!(second.is_none_or(|second| second(call).is_err()));
        done
    }
    fn source(_: &mut Answers, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
        let rest = &b"stream"[at as usize..];
        let n = rest.len().min(bytes.len());
        bytes[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    static TOOLS: [Tool<Answers>; 1] = [Tool::new("twice", "Answers twice", twice).source(source)];
    let service = Service::new("twice", "1").tools(&TOOLS);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let said = |answers: Answers| {
            let mut talk = Conversation::new(&service, answers);
            talk.open(revision);
            let mut said = talk.say(&call(revision.date(), 7, "twice", json!({})));
            // A request that is open gets an error at the end, one that was answered does not.
            said.extend(talk.finish());
            said
        };
        for (number, first) in ANSWERS.into_iter().enumerate() {
            let alone = said((first, None));
            assert!(!alone.is_empty(), "{number}");
            for second in if number < 5 { &ANSWERS[..] } else { &ANSWERS[..2] } {
                assert_eq!(said((first, Some(*second))), alone, "{revision:?} {number}");
            }
        }
    }
}

fn tool_use(id: &'static str) -> ContentBlock<'static> {
    ContentBlock::tool_use(id, "t", NOTHING)
}

fn result(id: &'static str) -> ContentBlock<'static> {
    ContentBlock::tool_result(id, &[], false)
}

fn sample(call: &mut Call<'_>, messages: &[PromptMessage<'_>]) -> HandlerResult {
    call.ask(&[InputRequest::sample("model", CreateMessage::new(messages, 9))], b"")
}

/// The conversation of the page "Sampling": two tool uses in one message, both results in the next one.
// spec: C120
#[test]
fn several_contents_in_a_message() {
    fn weather(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
        let (wishes, results) = ([tool_use("b")], [result("a")]);
        let said = [
            PromptMessage::user(ContentBlock::text("?")),
            PromptMessage::assistant(tool_use("a")).and(&wishes),
            PromptMessage::user(result("b")).and(&results),
        ];
        sample(call, &said)
    }
    fn words(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
        let more = [ContentBlock::text("two"), ContentBlock::text("three")];
        sample(
            call,
            &[
                PromptMessage::user(ContentBlock::text("one")).and(&more),
                PromptMessage::assistant(ContentBlock::text("four")),
            ],
        )
    }
    let messages = |said: &[String]| {
        let said = parse(&said[0]);
        let params = said.pointer("/params").or(said.pointer("/result/inputRequests/model/params"));
        params.unwrap_or_else(|| panic!("no question: {said}"))["messages"].clone()
    };
    for revision in [D, MODERN] {
        let said = messages(&run(revision, weather));
        assert_eq!(said.as_array().map(Vec::len), Some(3));
        let kinds = |n: usize, key: &str| [said[n]["content"][0][key].clone(), said[n]["content"][1][key].clone()];
        assert_eq!((kinds(1, "id"), kinds(2, "toolUseId")), ([json!("a"), json!("b")], [json!("b"), json!("a")]));
        assert_eq!(messages(&run(revision, words))[0]["content"].as_array().map(Vec::len), Some(3));
    }
    // Revisions with one content in each message get several messages.
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let said = messages(&run(revision, words));
        let flat = said
            .as_array()
            .unwrap()
            .iter()
            .map(|m| (m["role"].as_str().unwrap(), m["content"]["text"].as_str().unwrap()));
        let expected = [("user", "one"), ("user", "two"), ("user", "three"), ("assistant", "four")];
        assert_eq!(flat.collect::<Vec<_>>(), expected, "{revision}");
    }
    // The same in prompts.
    static PROMPTS: [Prompt<World>; 1] = [Prompt::new("p", "P", |_, get| {
        get.messages(&[PromptMessage::user(ContentBlock::text("one")).and(&[ContentBlock::text("two")])])
    })];
    for revision in REVISIONS {
        let reply = rig(Service::new("p", "1").prompts(&PROMPTS), revision).one(&request(
            revision,
            1,
            "prompts/get",
            json!({"name": "p"}),
        ));
        assert_eq!(parse(&reply)["result"]["messages"][1]["content"]["text"], "two", "{reply}");
    }
}

// spec: C120 C123 C129 C130
#[test]
fn conversations_without_balance() {
    let wrong: [fn(&mut World, &mut Call<'_>) -> HandlerResult; 6] = [
        |_, call| sample(call, &[PromptMessage::assistant(tool_use("a"))]),
        |_, call| {
            sample(
                call,
                &[PromptMessage::assistant(tool_use("a")), PromptMessage::user(ContentBlock::text("mixed in"))],
            )
        },
        |_, call| sample(call, &[PromptMessage::user(result("a"))]),
        |_, call| sample(call, &[PromptMessage::user(tool_use("a")), PromptMessage::user(result("a"))]),
        |_, call| sample(call, &[PromptMessage::assistant(tool_use("a")), PromptMessage::assistant(result("a"))]),
        |_, call| {
            let more = [ContentBlock::text("and words")];
            sample(call, &[PromptMessage::assistant(tool_use("a")), PromptMessage::user(result("a")).and(&more)])
        },
    ];
    for (number, tool) in wrong.into_iter().enumerate() {
        for revision in [D, MODERN] {
            let said = run(revision, tool);
            assert_eq!((said.len(), code(&said[0])), (1, -32603), "{number} {revision}");
        }
    }
}

/// After its answer, a handler's notifications are dropped.
// spec: B173 B203
#[test]
fn nothing_is_told_after_the_answer() {
    for revision in REVISIONS {
        let said = run(revision, |_, call| {
            let outcome = call.text("done");
            let data = Raw::constant("{}");
            let told = [
                call.progress(mcp_sansio::server::Progress::new(1)),
                call.log(LoggingLevel::Emergency, "too late"),
                call.log_data(None, LoggingLevel::Emergency, data),
            ];
            assert_eq!(told, [NotifyStatus::Stale; 3]);
            outcome
        });
        assert_eq!(said.len(), 1, "{said:?}");
    }
}

/// `data` of a log message is any JSON.
#[test]
fn log_messages_with_data() {
    let tool = |_: &mut World, call: &mut Call<'_>| {
        call.log_data(Some("db"), LoggingLevel::Warning, Raw::constant("{\"rows\": [1,\n2], \"why\": null}"));
        call.log_data(None, LoggingLevel::Debug, Raw::constant("[]"));
        call.text("done")
    };
    for revision in LEGACY {
        let said = run(revision, tool);
        let params = json!({"level": "warning", "logger": "db", "data": {"rows": [1, 2], "why": null}});
        assert_eq!((said.len(), &parse(&said[0])["params"]), (2, &params), "{said:?}");
    }
    // Outside of a handler, for no request.
    let mut rig = Rig::new().opened(D);
    let logs = rig.service;
    let (server, out) = (&mut rig.session.server, &mut rig.session.out);
    let data = Raw::constant("[1]");
    assert_eq!(server.log_data(logs.about(), None, LoggingLevel::Error, None, data, out), NotifyStatus::Sent);
    assert_eq!(server.log_data(logs.about(), None, LoggingLevel::Debug, None, data, out), NotifyStatus::NotAsked);
    let silent = Service::<World>::new("silent", "1");
    assert_eq!(server.log_data(silent.about(), None, LoggingLevel::Error, None, data, out), NotifyStatus::NotAsked);
    assert_eq!(
        server.log(silent.about(), None, LoggingLevel::Error, None, format_args!("x"), out),
        NotifyStatus::NotAsked
    );
    rig.service = everything::service();
    rig.work();
    assert_eq!(parse(&rig.take()[0])["params"], json!({"level": "error", "data": [1]}));
    // For a request that is over.
    rig.say(&call(D, 1, "later", json!({"tag": "a"})));
    rig.say(&cancel(1));
    let token = rig.world.later[0].1;
    let (server, out) = (&mut rig.session.server, &mut rig.session.out);
    assert_eq!(
        server.log_data(everything::service().about(), Some(token), LoggingLevel::Error, None, data, out),
        NotifyStatus::Stale
    );
}

/// A server in memory of a fixed size.
fn small<'m>(
    input: &'m mut [u8],
    output: &'m mut [u8],
    server: Server<'m>,
) -> LineServer<'m, LineSink<SliceStorage<'m>>> {
    LineServer::new(LineBuffer::new(input), server, LineSink::new(SliceStorage::new(output)))
}

fn say<S>(
    session: &mut LineServer<'_, LineSink<SliceStorage<'_>>>,
    service: &Service<'_, S>,
    state: &mut S,
    line: &str,
) -> String {
    session.space()[..line.len()].copy_from_slice(line.as_bytes());
    session.filled(line.len());
    session.space()[..1].copy_from_slice(b"\n");
    session.filled(1);
    let _ = session.run(service, state);
    let said = String::from_utf8(session.out.pending().to_vec()).unwrap();
    session.out.sent(said.len());
    said
}

static PLACES: [ResourceTemplate<()>; 2] = [
    ResourceTemplate::new("file:///{+path}", "file", |_, read| match read.var("path") {
        Some(path) => read.text(format_args!("{} bytes", path.len())),
        None => read.not_found(),
    })
    .complete(complete),
    ResourceTemplate::new("stream:{name}", "stream", |_, read| read.stream_text(7)).source(|_, key, at, bytes| {
        assert_eq!(key, 7);
        let rest = b"from the source".get(at as usize..).ok_or(SourceError)?;
        let n = rest.len().min(bytes.len());
        bytes[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }),
];
static GREET: [PromptArgument; 1] = [PromptArgument::optional("name")];
static FAILING: [Prompt<()>; 1] = [Prompt::new("greet", "Greets", |_, get| get.user(""))
    .arguments(&GREET)
    .complete(|_, _| Err(mcp_sansio::server::RpcError::internal("The words are lost").into()))];

fn complete(_: &mut (), complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["\u{e9}t\u{e9}", "automne"])
}

/// Text with escapes is decoded if there is room for it; if not, the request is refused and the handler does not run.
// spec: S026 S100 S114
#[test]
fn text_with_escapes() {
    let service = Service::new("places", "1").templates(&PLACES).prompts(&FAILING);
    let path = "/d".repeat(400);
    let read = |uri: &str| request(MODERN, 1, "resources/read", json!({"uri": "URI"})).replace("URI", uri);
    let completion = |value: &str| {
        let params = json!({"ref": {"type": "ref/resource", "uri": "file:///{+path}"}, "argument": {"name": "path", "value": "VALUE"}});
        request(MODERN, 1, "completion/complete", params).replace("VALUE", value)
    };
    let escaped = format!("file://{path}").replace('/', "\\/");
    let (mut input, mut output, mut scratch) = ([0; 4096], [0; 2048], [0; 2048]);
    let mut session = small(&mut input, &mut output, Server::new(Slots::growing(2)).scratch(&mut scratch[..]));
    for uri in [&format!("file://{path}"), &escaped] {
        let reply = say(&mut session, &service, &mut (), &read(uri));
        assert_eq!(parse(&reply)["result"]["contents"][0]["text"], "799 bytes", "{reply}");
    }
    let reply = say(&mut session, &service, &mut (), &completion(r"\u00e9"));
    assert_eq!(parse(&reply)["result"]["completion"]["values"], json!(["\u{e9}t\u{e9}"]));
    let (mut input, mut output) = ([0; 4096], [0; 2048]);
    let mut session = small(&mut input, &mut output, Server::new(Slots::growing(2)));
    assert_eq!(code(&say(&mut session, &service, &mut (), &read(&escaped))), -32603);
    assert_eq!(code(&say(&mut session, &service, &mut (), &completion(r"\u00e9"))), -32603);
    let reply = say(&mut session, &service, &mut (), &completion("a"));
    assert_eq!(parse(&reply)["result"]["completion"]["values"], json!(["automne"]));
    let reply = say(&mut session, &service, &mut (), &read("stream:x"));
    assert_eq!(parse(&reply)["result"]["contents"][0], json!({"uri": "stream:x", "text": "from the source"}));
    // A completer that fails.
    let params = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}});
    for revision in REVISIONS {
        let service = Service::new("failing", "1").templates(&PLACES).prompts(&FAILING);
        let (mut input, mut output) = ([0; 4096], [0; 2048]);
        let mut session = small(&mut input, &mut output, Server::new(Slots::growing(2)));
        if !is_modern(revision) {
            say(&mut session, &service, &mut (), &initialize(revision, json!({})));
        }
        let reply = say(&mut session, &service, &mut (), &request(revision, 1, "completion/complete", params.clone()));
        assert_eq!(code(&reply), -32603, "{revision}");
    }
}

/// Lists are the same for each client, and after any other request.
// spec: S038 S040
#[test]
fn lists_do_not_vary() {
    for revision in REVISIONS {
        let lists = |rig: &mut Rig| {
            ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]
                .map(|method| rig.one(&request_of(revision, 1, method, json!({}), json!({}))))
        };
        let mut rig = Rig::new().opened(revision);
        let first = lists(&mut rig);
        for tool in ["count", "fail", "confirm", "later", "none"] {
            rig.say(&call(revision, tool, tool, json!({})));
        }
        rig.say(&request(revision, 2, "prompts/get", json!({"name": "plain"})));
        assert_eq!(lists(&mut rig), first, "{revision}");
        assert_eq!(lists(&mut Rig::new().opened_by(revision, json!({}))), first, "{revision}");
    }
}

/// All pages of a list have the same caching hints, and so has the list in one piece.
// spec: S087 S088 S165
#[test]
fn pages_have_one_scope() {
    for caching in [Caching::NONE, Caching::private(7), Caching::public(9)] {
        for (method, key) in [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")] {
            let service = everything::service().caching(caching).page_size(3);
            let mut rig = Rig::new().serving(service);
            let (mut entries, mut hints, mut params) = (0, Vec::new(), json!({}));
            loop {
                let result = parse(&rig.one(&request(MODERN, 1, method, params)))["result"].clone();
                entries += result[key].as_array().unwrap().len();
                hints.push((result["ttlMs"].clone(), result["cacheScope"].clone()));
                match result.get("nextCursor") {
                    Some(cursor) => params = json!({"cursor": cursor}),
                    None => break,
                }
            }
            assert!(entries > 3 && hints.len() == entries.div_ceil(3));
            let scope = if caching.public { "public" } else { "private" };
            assert!(hints.iter().all(|hint| *hint == (json!(caching.ttl_ms), json!(scope))), "{hints:?}");
        }
    }
}

/// Arguments with escapes can be read more than once, and the state of a question is sealed behind them.
#[test]
fn arguments_are_read_twice() {
    let service = with_tools([Tool::new("it", "Asks", |_, call| {
        let [first, second]: [std::collections::BTreeMap<&str, &str>; 2] = [call.args()?, call.args()?];
        assert_eq!((first.get("a"), &first), (Some(&"\n"), &second));
        call.ask(&[InputRequest::roots("b")], b"kept")
    })]);
    let server = Server::new(Slots::growing(8)).scratch(Store::growing(4096)).seal(&toy_seal::SEAL);
    let reply = Rig::of(usize::MAX, server).serving(service).one(&call(MODERN, 1, "it", json!({"a": "\n"})));
    assert!(parse(&reply)["result"]["requestState"].is_string(), "{reply}");
}

/// A state and notifications that are too large.
#[test]
fn too_large_to_be_told() {
    let service = with_tools([Tool::new("it", "Asks", |_, call| call.ask(&[InputRequest::roots("a")], &[0; 200]))]);
    let server = Server::new(Slots::growing(8)).scratch(Store::growing(64)).seal(&toy_seal::SEAL);
    let mut rig = Rig::of(usize::MAX, server).serving(service);
    let reply = rig.one(&call(MODERN, 1, "it", json!({})));
    assert_eq!(code(&reply), -32603);
    assert!(reply.contains("too large to be sealed"), "{reply}");

    let (mut input, mut output, mut subscriptions) = ([0; 1024], [0; 300], [0; 512]);
    let server = Server::new(Slots::growing(2)).subscriptions(&mut subscriptions[..]);
    let mut session = small(&mut input, &mut output, server);
    let service = Service::<()>::new("news", "1").templates(&PLACES).feature(ServerCapability::Subscribe);
    say(&mut session, &service, &mut (), &initialize(D, json!({})));
    let uri = format!("file:///{}", "x".repeat(300));
    let reply = say(&mut session, &service, &mut (), &request(D, 1, "resources/subscribe", json!({"uri": uri})));
    assert!(reply.contains("\"result\":{}"), "{reply}");
    session.server.publish(mcp_sansio::server::ServerChange::Resource(&uri));
    let (server, out) = (&mut session.server, &mut session.out);
    assert_eq!(server.pull(service.about(), out), PullStatus::TooSmall);
    let reply = say(&mut session, &service, &mut (), &request(D, 2, "ping", json!({})));
    assert_eq!(reply.lines().count(), 1, "the next request is answered: {reply}");
}
