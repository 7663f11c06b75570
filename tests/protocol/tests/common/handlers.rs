//! The handlers of the service in `everything`.

use super::everything::World;
use mcp_sansio::json::{Decimal, Raw, Text};
use mcp_sansio::protocol::{ClientCapability, LoggingLevel};
use mcp_sansio::server::{Progress, RpcError};
use mcp_sansio::service::{
    Annotations, Call, Complete, ContentBlock, CreateMessage, CustomRequest, GetPrompt, HandlerResult, InputError,
    InputRequest, InputResponse, PromptMessage, ReadResource, ResourceContents, ResourceLink, SourceError,
};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

pub const FORM: Raw<'static> = Raw::constant(
    r#"{"type":"object","properties":{"name":{"type":"string","minLength":1},"sure":{"type":"boolean","default":true}},"required":["name"]}"#,
);
const ARRAY_FORM: Raw<'static> = Raw::constant(
    r#"{"type":"object","properties":{"colours":{"type":"array","items":{"type":"string","enum":["red","blue"]}}}}"#,
);

#[derive(Deserialize)]
struct Verbatim<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

pub fn echo(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Verbatim { text } = call.args()?;
    call.text(text)
}

#[derive(Deserialize)]
struct Borrowed<'a> {
    text: &'a str,
}

pub fn shout(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Borrowed { text } = call.args()?;
    call.text(text.to_uppercase())
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

pub fn add(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Add { a, b } = call.args()?;
    call.text(format_args!("{}", i128::from(a) + i128::from(b)))
}

const META: Raw<'static> = Raw::constant(r#"{"example.com/x":1}"#);

fn all_contents() -> [ContentBlock<'static>; 6] {
    [
        ContentBlock::text("a \"quoted\" line\nand another")
            .annotations(Annotations::new().user().assistant().priority(100).last_modified("2026-01-01T00:00:00Z")),
        ContentBlock::image(b"\x89PNG", "image/png").meta(META),
        ContentBlock::audio(b"RIFF!", "audio/wav").annotations(Annotations::new().assistant()),
        ContentBlock::resource(ResourceContents::text("test://text", "hello").mime("text/plain").meta(META)),
        ContentBlock::resource(ResourceContents::blob("test://blob", &[0, 255])),
        ContentBlock::link(
            ResourceLink::new("test://book", "book").title("The book").description("Long").mime("text/plain").size(9),
        ),
    ]
}

pub fn contents(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.content(&all_contents())
}

#[derive(Serialize)]
struct Weather<'a> {
    celsius: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wind: Option<&'static str>,
    /// Written by `Display`, in pieces.
    words: std::fmt::Arguments<'a>,
}

pub fn weather(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.json(&Weather { celsius: 21.5, wind: None, words: format_args!("{}", "\"fine\"\n") })
}

pub fn numbers(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.json(&[1, 2, 3])
}

pub fn fail(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.error("it did not work")
}

pub fn broken(_: &mut World, _: &mut Call<'_>) -> HandlerResult {
    Err(RpcError::new(7, "broken").with_data(Raw::constant(r#"{"why":"because"}"#)).into())
}

pub fn count(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.effects += 1;
    call.text(format_args!("{}", world.effects))
}

pub fn chatty(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.effects += 1;
    for done in [1, 2, 2, 1, 3] {
        call.progress(Progress::new(done).of(3).message("working"));
    }
    call.log(LoggingLevel::Debug, "a detail");
    call.log(LoggingLevel::Info, "half way");
    call.log_as(Some("chatty"), LoggingLevel::Warning, &"nearly \"there\"");
    call.text(format_args!("{}", world.effects))
}

/// One message of each level, from the lowest to the highest.
pub fn gossip(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    for level in LoggingLevel::ALL {
        call.log(level, level.name());
    }
    call.text("done")
}

pub fn large(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let size = call.arguments().get("size").and_then(|size| size.u64()).unwrap_or(0) as usize;
    world.effects += 1;
    call.text("x".repeat(size))
}

pub fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let tag = call.arguments().get("tag").and_then(|tag| tag.text()).map_or(String::new(), |tag| tag.to_string());
    let (token, outcome) = call.later();
    world.later.push((tag, token));
    outcome
}

/// Describes the client's answer in words.
fn told(answer: InputResponse<'_>) -> String {
    match answer.result {
        Err(InputError::TimedOut) => "timed out".into(),
        Err(InputError::Closed) => "closed".into(),
        Err(InputError::Error(_)) if answer.declined() => "refused".into(),
        Err(InputError::Error(code)) => format!("error {code}"),
        Err(_) => "nothing".into(),
        Ok(_) if answer.accepted() => {
            format!("accepted {}", answer.value("name").and_then(|v| v.text()).map_or("?".into(), |v| v.to_string()))
        }
        Ok(_) if answer.declined() => "declined".into(),
        Ok(_) if answer.dismissed() => "dismissed".into(),
        Ok(raw) => format!("answered {raw}"),
    }
}

pub fn confirm(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    let Some(answer) = call.answer("confirm") else {
        return call.ask(&[InputRequest::elicit("confirm", "Really?", FORM)], b"");
    };
    call.text(told(answer))
}

pub fn strict(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("colours") else {
        return call.ask(&[InputRequest::elicit("colours", "Which?", ARRAY_FORM)], b"");
    };
    call.text(told(answer))
}

const VISIT: InputRequest<'static> = InputRequest::visit("page", "Please sign in", "https://example.com/in", "visit-1");

pub fn visit(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("page") else { return call.ask(&[VISIT], b"") };
    call.text(told(answer))
}

pub fn must_visit(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.visits += 1;
    match call.answer("page") {
        Some(answer) => call.text(told(answer)),
        None if world.visits > 1 => call.text("visited"),
        None => call.require_visits(&[VISIT]),
    }
}

pub fn sample(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("model") else {
        let image = ContentBlock::image(b"GIF8", "image/gif");
        let messages = [PromptMessage::user(ContentBlock::text("Hello?")), PromptMessage::assistant(image)];
        let sampling = CreateMessage::new(&messages, 100)
            .system_prompt("Be brief.")
            .temperature(Decimal::new(7, 1))
            .stop_sequences(&["END"])
            .include_context("thisServer")
            .preferences(Raw::constant(r#"{"hints":[{"name":"small"}],"speedPriority":0.5}"#))
            .metadata(Raw::constant(r#"{"user":"1"}"#));
        return call.ask(&[InputRequest::sample("model", sampling)], b"");
    };
    match answer.text() {
        Some(text) => call.text(text),
        None => call.text(told(answer)),
    }
}

pub fn sample_tools(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("model") else {
        let result = [ContentBlock::text("4")];
        let messages = [
            PromptMessage::user(ContentBlock::text("2+2?")),
            PromptMessage::assistant(ContentBlock::tool_use("t1", "add", Raw::constant(r#"{"a":2,"b":2}"#))),
            PromptMessage::user(ContentBlock::tool_result("t1", &result, false)),
        ];
        let sampling = CreateMessage::new(&messages, 10)
            .tools(Raw::constant(r#"[{"name":"add","description":"Adds","inputSchema":{"type":"object"}}]"#))
            .tool_choice(Raw::constant(r#"{"mode":"auto"}"#));
        return call.ask(&[InputRequest::sample("model", sampling)], b"");
    };
    call.text(told(answer))
}

pub fn sample_sound(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("model") else {
        let messages = [PromptMessage::user(ContentBlock::audio(b"RIFF", "audio/wav"))];
        return call.ask(&[InputRequest::sample("model", CreateMessage::new(&messages, 10))], b"");
    };
    call.text(told(answer))
}

pub fn roots(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("roots") else { return call.ask(&[InputRequest::roots("roots")], b"") };
    let roots: Vec<_> = answer.roots().map(|uri| uri.to_string()).collect();
    if roots.is_empty() { call.text(told(answer)) } else { call.text(roots.join(" ")) }
}

pub fn survey(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    let (Some(name), Some(roots)) = (call.answer("name"), call.answer("roots")) else {
        return call.ask(&[InputRequest::elicit("name", "Your name?", FORM), InputRequest::roots("roots")], b"");
    };
    call.text(format!("{}, {}", told(name), told(roots)))
}

/// Two rounds: the second question depends on the first answer, which is kept in the state.
pub fn interview(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    if let Some(second) = call.answer("second") {
        let first = std::str::from_utf8(call.state()).unwrap_or("?").to_owned();
        return call.text(format!("{first}, then {}", told(second)));
    }
    match call.answer("first") {
        Some(first) => {
            let first = told(first);
            call.ask(&[InputRequest::elicit("second", "And then?", FORM)], first.as_bytes())
        }
        None => call.ask(&[InputRequest::elicit("first", "First?", FORM)], b""),
    }
}

pub fn restless(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    let seen = call.state().len();
    if seen == 3 { call.text("rested") } else { call.ask(&[], &b"abc"[..seen + 1]) }
}

pub fn endless(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.runs += 1;
    call.ask(&[], b"again")
}

/// The text of the sources: characters of each length, and characters that must be escaped.
pub fn book_text() -> String {
    let line = "It was a dark\tand \"stormy\" night; \\ the rain fell in torrents \u{2014} \u{e9}t\u{e9} \u{1f327}\n";
    line.repeat(40)
}

pub fn picture_bytes() -> Vec<u8> {
    (0..3001u32).map(|i| (i * 7 % 256) as u8).collect()
}

static BOOK: LazyLock<String> = LazyLock::new(book_text);
static PICTURE: LazyLock<Vec<u8>> = LazyLock::new(picture_bytes);

fn give(world: &World, all: &[u8], at: u32, bytes: &mut [u8]) -> usize {
    let rest = all.get(at as usize..).unwrap_or(&[]);
    let most = if world.sip == 0 { usize::MAX } else { world.sip };
    let n = rest.len().min(bytes.len()).min(most);
    bytes[..n].copy_from_slice(&rest[..n]);
    n
}

pub fn book_source(world: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    Ok(give(world, BOOK.as_bytes(), at, bytes))
}

pub fn picture_source(world: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    Ok(give(world, &PICTURE, at, bytes))
}

pub fn torn_source(world: &mut World, _: u32, at: u32, bytes: &mut [u8]) -> Result<usize, SourceError> {
    if at >= 700 { Err(SourceError) } else { Ok(give(world, &BOOK.as_bytes()[..700], at, bytes)) }
}

pub fn book(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

pub fn torn_book(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.stream_text(0)
}

pub fn picture(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.stream_image(0, "image/png")
}

pub fn torn_picture(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.stream_image(0, "image/png")
}

pub fn raw(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.result(Raw::constant(
        r#"{"content":[{"type":"text","text":"mine"}],"isError":false,"_meta":{"example.com/mine":1}}"#,
    ))
}

pub fn meta(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if let Some(meta) = call.meta().and_then(|meta| meta.get("example.com/pass")) {
        call.set_meta(meta);
    }
    call.text("see _meta")
}

pub fn need(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.need(ClientCapability::Sampling)?;
    call.text("there is sampling")
}

pub fn twice(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.text("first")?;
    call.text("second")
}

pub fn read_text(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("hello")
}

pub fn read_blob(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.blob(&[0, 1, 2, 255])
}

pub fn read_book(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.stream_text(0)
}

pub fn read_film(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.stream_blob(0)
}

pub fn read_secret(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    let Some(answer) = read.answer("why") else {
        return read.ask(&[InputRequest::elicit("why", "Why do you want to know?", FORM)], b"");
    };
    read.text(told(answer))
}

pub fn read_item(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    match read.var("id").or(read.var("path")) {
        Some("missing") => read.not_found(),
        Some(id) => read.text(format!("item {id}")),
        None => read.not_found(),
    }
}

pub fn complete_item(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching((0..250).map(|n| n.to_string()))
}

pub fn complete_greet(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    if complete.argument.eq_str("style") {
        let name = complete.other("name").map_or("nobody".into(), |name| name.to_string());
        return complete.offer([format!("warmly, to {name}")]);
    }
    complete.matching(["Ada", "Alan", "Grace"])
}

pub fn get_plain(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user("Just say \"hello\".")
}

pub fn get_greet(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let name = get.arg("name").map_or(String::new(), |name| name.to_string());
    let style = get.arg("style").map_or("plainly".into(), |style| style.to_string());
    get.messages(&[
        PromptMessage::user(ContentBlock::text(&format!("Greet {name} {style}."))),
        PromptMessage::assistant(ContentBlock::text("Hello.")),
    ])
}

pub fn get_media(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let messages = all_contents().map(PromptMessage::user);
    get.messages(&messages)
}

pub fn get_quiz(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let Some(answer) = get.answer("quiz") else {
        return get.ask(&[InputRequest::elicit("quiz", "What is the answer?", FORM)], b"");
    };
    get.user(told(answer))
}

/// A method that is not in the protocol.
pub fn other(world: &mut World, other: &mut CustomRequest<'_>) -> HandlerResult {
    if other.method.eq_str("demo/example") {
        return other.result(Raw::parse(world.example.as_bytes()).expect("an example is JSON"));
    }
    if other.method.eq_str("demo/hello") { other.result(Raw::constant(r#"{"hello":true}"#)) } else { other.decline() }
}
