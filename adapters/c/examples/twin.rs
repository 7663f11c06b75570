//! The service of `tests/c/twin.c` without C, over stdin and stdout: `tests/c/transcripts.py` compares the bytes of both.

use std::io::{BufRead, Write};

use mcp_sansio::frame::{LineBuffer, NextStep};
use mcp_sansio::json::{Raw, Text};
use mcp_sansio::line_server::LineServer;
use mcp_sansio::protocol::{LoggingLevel, ServerCapability};
use mcp_sansio::server::{Progress, RequestSlot, RequestToken, Server, ServerChange};
use mcp_sansio::service::{
    Call, Complete, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument, ReadResource, Resource,
    ResourceTemplate, Service, Tool, ToolAnnotations,
};
use mcp_sansio::sink::{LineSink, SliceStorage};

#[derive(Default)]
struct World {
    effects: i64,
    changed: bool,
    later: Vec<RequestToken>,
}

type Session = LineServer<'static, LineSink<SliceStorage<'static>>>;

fn decoded(text: Text<'_>) -> String {
    text.decode(&mut [0; 512]).unwrap_or_default().to_owned()
}

fn echo(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    match call.arguments().get("text").and_then(|text| text.text()) {
        Some(text) => call.text(decoded(text).as_str()),
        None => call.error("no text"),
    }
}

fn add(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let argument = |name| call.arguments().get(name).and_then(|value| value.i64());
    match argument("a").zip(argument("b")) {
        Some((a, b)) => call.text(a.wrapping_add(b)),
        None => call.error("no numbers"),
    }
}

fn fail(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.error("it did not work")
}

fn breaks(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.fail_with(7, "broken")
}

fn count(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    world.changed = true;
    world.effects += 1;
    call.text(world.effects)
}

fn chatty(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    for done in [1, 2, 2, 1, 3] {
        call.progress(Progress::new(done).of(3).message("working"));
    }
    call.log(LoggingLevel::Debug, "a detail");
    call.log_as(Some("chatty"), LoggingLevel::Warning, &"nearly \"there\"");
    call.text("done")
}

fn weather(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.json_raw(Raw::constant(r#"{"celsius":21.5}"#))
}

fn raw(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.result(Raw::constant(r#"{"content":[{"type":"text","text":"raw"}],"_meta":{"example.com/x":1}}"#))
}

fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    world.later.push(token);
    outcome
}

fn twice(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.text("first")?;
    call.text("second")
}

fn confirm(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    const NOTHING: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{}}"#);
    match call.answer("sure") {
        Some(answer) if answer.declined() => call.text("declined"),
        Some(answer) if answer.dismissed() => call.text("dismissed"),
        Some(answer) => call.text(if answer.result.is_ok() { "accepted" } else { "unanswered" }),
        None => call.ask(&[InputRequest::elicit("sure", "Sure?", NOTHING)], b""),
    }
}

fn read_text(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text("hello")
}

fn read_blob(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.blob(&[0, 255])
}

fn read_secret(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.not_found()
}

fn read_item(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    match read.var("id") {
        Some(id) => read.text(id),
        None => read.not_found(),
    }
}

fn complete(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["Ada", "Alan", "a1", "a2"])
}

fn plain(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user("hello")
}

fn greet(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    let name = get.params().and_then(|params| params.get("arguments")?.get("name")?.text());
    get.user(name.map_or("nobody".to_owned(), decoded).as_str())
}

const TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const READS: ToolAnnotations =
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(false).open_world(true);
static TOOLS: [Tool<World>; 11] = [
    Tool::new("echo", "Gives a text back", echo).input(TEXT),
    Tool::new("add", "Adds two integers", add),
    Tool::new("fail", "Fails as a tool", fail),
    Tool::new("break", "Fails as a request", breaks),
    Tool::new("count", "Counts its calls", count),
    Tool::new("chatty", "Tells of its progress", chatty),
    Tool::new("weather", "Structured output", weather).title("Weather").output(r#"{"type":"object"}"#).hints(READS),
    Tool::new("raw", "A result of its own making", raw).reserve(1024),
    Tool::new("later", "Answers later", later),
    Tool::new("twice", "Answers twice", twice),
    Tool::new("confirm", "Asks the user", confirm).reserve(1024),
];
static RESOURCES: [Resource<World>; 3] = [
    Resource::new("test://text", "text", read_text).title("A text").description("Some text").mime("text/plain"),
    Resource::new("test://blob", "blob", read_blob),
    Resource::new("test://secret", "secret", read_secret),
];
static TEMPLATES: [ResourceTemplate<World>; 2] = [
    ResourceTemplate::new("test://items/{id}", "item", read_item).complete(complete),
    ResourceTemplate::new("file:///{+path}", "file", read_item),
];
static GREET: [PromptArgument; 2] =
    [PromptArgument::required("name").description("Who is greeted"), PromptArgument::optional("style")];
static PROMPTS: [Prompt<World>; 2] = [
    Prompt::new("plain", "No arguments", plain),
    Prompt::new("greet", "Greets", greet).title("Greeting").arguments(&GREET).complete(complete),
];

fn flush(session: &mut Session) -> std::io::Result<()> {
    std::io::stdout().write_all(session.out.pending())?;
    session.out.sent(session.out.pending().len());
    Ok(())
}

/// Answers the requests that were put off, and publishes changes. Returns whether there were any.
fn act(world: &mut World, service: &Service<'_, World>, session: &mut Session) -> std::io::Result<bool> {
    let later = core::mem::take(&mut world.later);
    let changed = core::mem::take(&mut world.changed);
    for token in &later {
        let _ = session.answer(service, world, *token, |_, call| call.text("late"));
        flush(session)?;
    }
    if changed {
        session.server.publish(ServerChange::Tools);
        session.server.publish(ServerChange::Resource("test://text"));
    }
    Ok(changed || !later.is_empty())
}

fn main() -> std::io::Result<()> {
    let memory = |len| vec![0; len].leak();
    let service = Service::new("twin", "1.0").instructions("Try \"everything\".").tools(&TOOLS);
    let service = service.resources(&RESOURCES).templates(&TEMPLATES).prompts(&PROMPTS);
    let features = [
        ServerCapability::ToolsChanged,
        ServerCapability::ResourcesChanged,
        ServerCapability::Subscribe,
        ServerCapability::PromptsChanged,
        ServerCapability::Logging,
    ];
    let service = features.into_iter().fold(service, Service::feature);
    let server = Server::new(Box::leak(Box::new([RequestSlot::FREE; 8])) as &mut [_])
        .scratch(memory(4096))
        .asks(memory(4096))
        .subscriptions(memory(4096));
    let (input, output) = (LineBuffer::new(memory(16384)), SliceStorage::new(memory(16384)));
    let mut session = LineServer::new(input, server, LineSink::new(output));
    let (mut world, mut input) = (World::default(), std::io::stdin().lock());
    loop {
        loop {
            let next = session.run(&service, &mut world);
            flush(&mut session)?;
            if !act(&mut world, &service, &mut session)? && next != NextStep::Write {
                break;
            }
        }
        if session.is_done() {
            return Ok(());
        }
        // One line at a time: so late answers and changes come at the same place in both programs.
        let (mut line, space) = (Vec::new(), session.space());
        std::io::Read::take(&mut input, space.len() as u64).read_until(b'\n', &mut line)?;
        space[..line.len()].copy_from_slice(&line);
        if line.is_empty() { session.end_of_input() } else { session.filled(line.len()) }
    }
}
