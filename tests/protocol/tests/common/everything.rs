//! A service with one of everything that the protocol has.

use super::handlers::*;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::Feature;
use mcp_sansio::server::{Caching, Icon, Scope, Token};
use mcp_sansio::service::{Annotations, Argument, Hints, Notified, Prompt, Resource, Service, Template, Tool};

/// The state of all handlers: what they did, and what is to be done behind their backs.
#[derive(Debug, Default)]
pub struct World {
    /// How often tools with an effect have run.
    pub effects: usize,
    /// How often handlers ran that ask.
    pub runs: usize,
    /// How often `must_visit` ran.
    pub visits: usize,
    /// Requests that were put off, by the tag they came with.
    pub later: Vec<(String, Token)>,
    pub cancelled: Vec<Token>,
    pub notified: Vec<String>,
    /// From which sessions, and from whom.
    pub heard_from: Vec<(Scope, Option<String>)>,
    /// What the rig does when the session waits.
    pub deeds: Vec<Deed>,
    /// What `demo/example` answers.
    pub example: String,
    /// How many bytes a source gives at once; 0 for as many as are wanted.
    pub sip: usize,
}

/// Something that happens outside of a handler.
#[derive(Debug)]
pub enum Deed {
    Publish(String),
    Answer(Token, String),
}

static ICONS: [Icon<'static>; 1] =
    [Icon::new("https://example.com/i.png").mime("image/png").sizes(&["48x48"]).theme("dark")];

const TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

/// Written over several lines: raw newlines must never reach a message.
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
        .hints(Hints::new().read_only(true).destructive(false).idempotent(true).open_world(true))
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

pub static TEMPLATES: [Template<World>; 2] = [
    Template::new("test://items/{id}", "item", read_item)
        .title("An item")
        .description("Any item")
        .mime("text/plain")
        .icons(&ICONS)
        .complete(complete_item),
    Template::new("file:///{+path}", "file", read_item),
];

static GREET: [Argument; 2] = [
    Argument::required("name").title("Name").description("Who is greeted"),
    Argument::optional("style").description("How"),
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
        .feature(Feature::ToolsChanged)
        .feature(Feature::ResourcesChanged)
        .feature(Feature::PromptsChanged)
        .feature(Feature::Subscribe)
        .feature(Feature::Logging)
        .other(other)
        .on_cancel(|world, token| world.cancelled.push(token))
        .on_notification(notified)
}

/// Client notifications of the tests' own make things happen: `notifications/test/publish {what}`, and
/// `notifications/test/answer {tag}`.
fn notified(world: &mut World, heard: &Notified<'_>) {
    let Notified { method, params, .. } = *heard;
    let member = |name: &str| params.and_then(|params| params.get(name)?.text()).map(|text| text.to_string());
    if method.is("notifications/test/publish") {
        world.deeds.push(Deed::Publish(member("what").unwrap()));
    } else if method.is("notifications/test/answer") {
        let tag = member("tag").unwrap();
        if let Some((_, token)) = world.later.iter().find(|(known, _)| *known == tag) {
            world.deeds.push(Deed::Answer(*token, format!("late {tag}")));
        }
    } else {
        world.notified.push(method.to_string());
        world.heard_from.push((heard.scope, heard.principal.map(str::to_owned)));
    }
}
