//! A service with one item of each kind that the protocol has.

use super::handlers::*;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ServerCapability;
use mcp_sansio::server::{Caching, Icon, RequestToken, Scope};
use mcp_sansio::service::{
    Annotations, NotificationContext, Prompt, PromptArgument, Resource, ResourceTemplate, Service, Tool,
    ToolAnnotations,
};

/// The state of all handlers: a record of their actions, and actions for the rig.
#[derive(Debug, Default)]
pub struct World {
    /// The number of runs of tools with an effect.
    pub effects: usize,
    /// The number of runs of handlers that ask.
    pub runs: usize,
    /// The number of runs of `must_visit`.
    pub visits: usize,
    /// Requests that were put off, by the tag in their arguments.
    pub later: Vec<(String, RequestToken)>,
    pub cancelled: Vec<RequestToken>,
    pub notified: Vec<String>,
    /// The sessions and principals of notifications.
    pub heard_from: Vec<(Scope, Option<String>)>,
    /// Actions for the rig while the session waits.
    pub deeds: Vec<Deed>,
    /// The answer of `demo/example`.
    pub example: String,
    /// The rows of lists that come from the state.
    pub rows: Vec<String>,
    /// The bytes that a source gives in one read; 0 for no limit.
    pub sip: usize,
}

/// An action outside of a handler.
#[derive(Debug)]
pub enum Deed {
    Publish(String),
    Answer(RequestToken, String),
}

static ICONS: [Icon<'static>; 1] =
    [Icon::new("https://example.com/i.png").mime("image/png").sizes(&["48x48"]).theme("dark")];

const TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

/// A schema of several lines: its newlines must never reach a message.
const PRETTY: &str =
    "{\n  \"type\": \"object\",\r\n  \"properties\": {\n    \"city\": { \"type\": \"string\" }\n  }\n}";

pub static TOOLS: [Tool<World>; 33] = [
    Tool::new("echo", "Gives a text back as it came", echo).input(TEXT).reserve(4096),
    Tool::new("shout", "Gives a text back in capitals, decoded", shout).input(TEXT),
    Tool::new("add", "Adds two integers", add).input(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}"#,
    ),
    Tool::new("contents", "Every kind of content", contents).title("All contents").reserve(2048),
    Tool::new("weather", "Structured output", weather)
        .title("Weather")
        .input(PRETTY)
        .output(r#"{"type":"object","properties":{"celsius":{"type":"number"}},"required":["celsius"]}"#)
        .hints(ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(true))
        .icons(&ICONS)
        .meta("{\n\"example.com/tool\": 1\n}")
        .reserve(1024),
    Tool::new("numbers", "Structured output that is no object", numbers)
        .output(r#"{"type":"array","items":{"type":"integer"}}"#)
        .reserve(1024),
    Tool::new("fail", "Fails as a tool", fail),
    Tool::new("break", "Fails as a request", broken),
    Tool::new("count", "Counts its calls", count),
    Tool::new("chatty", "Counts its calls, with progress and log messages", chatty),
    Tool::new("large", "Counts its calls, and answers with so many characters", large)
        .input(r#"{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}"#)
        .reserve(16),
    Tool::new("later", "Answers later", later),
    Tool::new("confirm", "Asks the user", confirm).reserve(1024),
    Tool::new("visit", "Asks the user to visit a page", visit).reserve(1024),
    Tool::new("must_visit", "Refuses before a page was visited", must_visit).reserve(1024),
    Tool::new("sample", "Asks a model", sample).reserve(1024),
    Tool::new("sample_tools", "Asks a model that may call tools", sample_tools).reserve(2048),
    Tool::new("sample_sound", "Asks a model about a sound", sample_sound).reserve(1024),
    Tool::new("roots", "Asks for roots", roots).reserve(1024),
    Tool::new("survey", "Asks two questions at once", survey).reserve(2048),
    Tool::new("interview", "Asks twice, and remembers", interview).reserve(1024),
    Tool::new("restless", "Wants to be run again three times", restless).reserve(1024),
    Tool::new("endless", "Wants to be run again for ever", endless).reserve(1024),
    Tool::new("strict", "Asks an array, which 2025-06-18 cannot", strict).reserve(1024),
    Tool::new("book", "A long text", book).source(book_source),
    Tool::new("torn_book", "A long text that breaks off", torn_book).source(torn_source),
    Tool::new("picture", "A large image", picture).source(picture_source),
    Tool::new("torn_picture", "A large image that breaks off", torn_picture).source(torn_source),
    Tool::new("raw", "A result of its own making", raw).reserve(1024),
    Tool::new("meta", "Gives _meta back", meta).reserve(1024),
    Tool::new("need", "Needs sampling", need),
    Tool::new("twice", "Answers twice", twice),
    Tool::new("gossip", "Logs at every level", gossip).reserve(256),
];

pub static RESOURCES: [Resource<World>; 7] = [
    Resource::new("test://text", "text", read_text)
        .title("A text")
        .description("Some text")
        .mime("text/plain")
        .size(5)
        .annotations(Annotations::new().user().assistant().priority(50).last_modified("2026-01-01T00:00:00Z"))
        .icons(&ICONS)
        .meta(r#"{"example.com/resource":true}"#)
        .caching(Caching::public(60_000)),
    Resource::new("test://blob", "blob", read_blob).mime("application/octet-stream"),
    Resource::new("test://book", "book", read_book).mime("text/plain").source(book_source),
    Resource::new("test://film", "film", read_film).source(picture_source),
    Resource::new("test://torn", "torn", read_book).source(torn_source),
    Resource::new("test://torn-film", "torn-film", read_film).source(torn_source),
    Resource::new("test://secret", "secret", read_secret).reserve(1024),
];

pub static TEMPLATES: [ResourceTemplate<World>; 2] = [
    ResourceTemplate::new("test://items/{id}", "item", read_item)
        .title("An item")
        .description("Any item")
        .mime("text/plain")
        .icons(&ICONS)
        .complete(complete_item),
    ResourceTemplate::new("file:///{+path}", "file", read_item),
];

static GREET: [PromptArgument; 2] = [
    PromptArgument::required("name").title("Name").description("Who is greeted"),
    PromptArgument::optional("style").description("How"),
];

pub static PROMPTS: [Prompt<World>; 4] = [
    Prompt::new("plain", "No arguments", get_plain),
    Prompt::new("greet", "Greets", get_greet)
        .title("Greeting")
        .arguments(&GREET)
        .icons(&ICONS)
        .meta(r#"{"example.com/prompt":[]}"#)
        .complete(complete_greet),
    Prompt::new("media", "Every kind of content", get_media).reserve(2048),
    Prompt::new("quiz", "Asks the user", get_quiz).reserve(1024),
];

/// The whole service.
pub fn service() -> Service<'static, World> {
    const EXPERIMENTAL: Raw<'static> = Raw::constant(r#"{"example.com/feature":{}}"#);
    const EXTENSIONS: Raw<'static> = Raw::constant(r#"{"com.example/thing":{}}"#);
    Service::new("everything", "1.0")
        .title("Everything")
        .description("One of everything")
        .website("https://example.com")
        .icons(&ICONS)
        .instructions("Try \"everything\".")
        .experimental(EXPERIMENTAL)
        .extensions(EXTENSIONS)
        .caching(Caching::private(1000))
        .tools(&TOOLS)
        .resources(&RESOURCES)
        .templates(&TEMPLATES)
        .prompts(&PROMPTS)
        .feature(ServerCapability::ToolsChanged)
        .feature(ServerCapability::ResourcesChanged)
        .feature(ServerCapability::PromptsChanged)
        .feature(ServerCapability::Subscribe)
        .feature(ServerCapability::Logging)
        .other(other)
        .on_cancel(|world, token| world.cancelled.push(token))
        .on_notification(notified)
}

/// Notifications for the tests: `notifications/test/publish {what}` publishes, `notifications/test/answer {tag}`
/// answers.
fn notified(world: &mut World, heard: &NotificationContext<'_>) {
    let NotificationContext { method, params, .. } = *heard;
    let member = |name: &str| params.and_then(|params| params.get(name)?.text()).map(|text| text.to_string());
    if method.eq_str("notifications/test/publish") {
        world.deeds.push(Deed::Publish(member("what").unwrap()));
    } else if method.eq_str("notifications/test/answer") {
        let tag = member("tag").unwrap();
        if let Some((_, token)) = world.later.iter().find(|(known, _)| *known == tag) {
            world.deeds.push(Deed::Answer(*token, format!("late {tag}")));
        }
    } else {
        world.notified.push(method.to_string());
        world.heard_from.push((heard.scope, heard.principal.map(str::to_owned)));
    }
}
