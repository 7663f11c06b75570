//! A service with each kind of item, and the events of its client.

use mcp_sansio::client::result::{ClientResult, CreateMessageResult, Root};
use mcp_sansio::client::{
    self, ClientEvent, ClientHandle, ClientInfo, PendingId, Request, ServerRequestId, ServerRequestKind,
};
use mcp_sansio::error::RpcError;
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ClientCapability, LoggingLevel, ServerCapability};
use mcp_sansio::server::{self, Progress};
use mcp_sansio::service::{
    Call, Complete, ContentBlock, CreateMessage, GetPrompt, HandlerResult, InputRequest, Prompt, PromptArgument,
    ReadResource, Resource, ResourceTemplate, Service, Tool,
};
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct World {
    pub(crate) logged: u64,
    pub(crate) open: Vec<server::RequestToken>,
}

fn work(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    for step in 1..=5 {
        call.progress(Progress::new(step).of(5).message("on"));
        world.logged += 1;
        call.log(LoggingLevel::Warning, format_args!("{}", world.logged));
    }
    call.text("worked")
}

fn later(world: &mut World, call: &mut Call<'_>) -> HandlerResult {
    let (token, outcome) = call.later();
    world.open.push(token);
    outcome
}

const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}}}"#);

fn ask(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    if call.answer("model").is_some() {
        return call.text("asked");
    }
    let messages = [server_message()];
    call.ask(&[InputRequest::sample("model", CreateMessage::new(&messages, 10)), InputRequest::roots("r\"")], b"")
}

fn server_message() -> mcp_sansio::service::PromptMessage<'static> {
    mcp_sansio::service::PromptMessage::user(ContentBlock::text("?"))
}

fn form(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    match call.answer("form") {
        Some(_) => call.text("formed"),
        None => call.ask(&[InputRequest::elicit("form", "Well?", FORM)], b""),
    }
}

fn large(_: &mut World, call: &mut Call<'_>) -> HandlerResult {
    call.content(&[ContentBlock::text("x\n\u{e9}\""), ContentBlock::image(&[7; 300], "image/png")])
}

fn read(_: &mut World, read: &mut ReadResource<'_>) -> HandlerResult {
    read.text(read.uri)
}

fn get(_: &mut World, get: &mut GetPrompt<'_>) -> HandlerResult {
    get.user("hm")
}

fn complete(_: &mut World, complete: &mut Complete<'_>) -> HandlerResult {
    complete.matching(["alpha", "beta"])
}

static TOOLS: [Tool<World>; 5] = [
    Tool::new("work", "Works", work),
    Tool::new("later", "Answers later", later),
    Tool::new("ask", "Asks a model and for roots", ask),
    Tool::new("form", "Asks the user", form),
    Tool::new("large", "Answers with much", large),
];
static RESOURCES: [Resource<World>; 1] = [Resource::new("r://one", "one", read)];
static TEMPLATES: [ResourceTemplate<World>; 1] = [ResourceTemplate::new("t://{id}", "many", read).complete(complete)];
static ARGUMENTS: [PromptArgument; 1] = [PromptArgument::optional("what")];
static PROMPTS: [Prompt<World>; 1] = [Prompt::new("p", "A prompt", get).arguments(&ARGUMENTS).complete(complete)];
pub(crate) static SERVICE: Service<'static, World> = Service::new("pair", "1")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .templates(&TEMPLATES)
    .prompts(&PROMPTS)
    .feature(ServerCapability::Subscribe)
    .feature(ServerCapability::ToolsChanged)
    .feature(ServerCapability::PromptsChanged)
    .feature(ServerCapability::ResourcesChanged)
    .feature(ServerCapability::Logging);

pub(crate) static PROFILE: ClientInfo<'static> = ClientInfo::new("pair", "1")
    .feature(ClientCapability::SamplingTools)
    .feature(ClientCapability::ElicitForm)
    .feature(ClientCapability::ElicitUrl)
    .roots_changed();
const ROOTS: [Root<'static>; 1] = [Root::new("file:///x").unwrap()];
pub(crate) const URIS: [&str; 2] = ["r://one", "t://two"];

/// Returns one of all requests. The client refuses those that the revision does not have.
pub(crate) fn request(number: u64) -> Request<'static> {
    match number % 18 {
        0 => Request::list_tools(),
        1 => Request::list_resources(),
        2 => Request::list_templates(),
        3 => Request::list_prompts().after("none such"),
        4 => Request::call("work").with_progress().with_logs(LoggingLevel::Debug),
        5 => Request::call("later").timeout(5_000).with_progress(),
        6 => Request::call("ask").total_timeout(100_000),
        7 => Request::call("form"),
        8 => Request::call("large"),
        9 => Request::call("none"),
        10 => Request::read("t://\"x\""),
        11 => Request::prompt("p").arguments(const { &Raw::constant(r#"{"what":"x"}"#) }),
        12 => Request::complete_prompt("p", "what", "a"),
        13 => Request::ping(),
        14 => Request::discover(),
        15 => Request::subscribe("r://one"),
        16 => Request::set_level(LoggingLevel::Info),
        _ => Request::raw("no/such", None),
    }
}

/// The events at the client.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connected: u32,
    pub(crate) unconnected: u32,
    /// The number of outcomes of a request.
    pub(crate) outcomes: HashMap<PendingId, (u32, bool)>,
    pub(crate) progress: HashMap<PendingId, u64>,
    pub(crate) logged: u64,
    /// Messages may be lost, or overtake each other on another stream.
    pub(crate) loose: bool,
    pub(crate) questions: Vec<ServerRequestId>,
    pub(crate) changes: u32,
    pub(crate) listening: u32,
}

impl client::ClientHandler for Seen {
    fn event(&mut self, event: ClientEvent<'_>, _: &mut ClientHandle<'_, '_>) {
        match event {
            ClientEvent::Connected(_) => self.connected += 1,
            ClientEvent::Unconnected(_) => self.unconnected += 1,
            ClientEvent::Done { token, outcome, .. } => {
                let seen = self.outcomes.entry(token).or_default();
                *seen = (seen.0 + 1, outcome.is_ok());
            }
            ClientEvent::Asked(asked) => self.questions.extend(asked.questions().map(|question| question.id)),
            ClientEvent::Progress { token, done, .. } => {
                let done = done.u64().expect("a whole number");
                assert!(!self.outcomes.contains_key(&token), "progress comes before the outcome");
                let before = self.progress.insert(token, done);
                let next = before.unwrap_or(0) + 1;
                assert!(done == next || self.loose && done > next, "in order, and none is missing: {next}, {done}");
            }
            ClientEvent::Log { data, .. } => {
                let number = data.text().unwrap().to_string().parse().unwrap();
                assert!(number > self.logged || self.loose, "in order");
                self.logged = number;
            }
            ClientEvent::Changed { .. } => self.changes += 1,
            ClientEvent::Listening(_) => self.listening += 1,
            ClientEvent::Withdrawn { question, .. } => self.questions.retain(|open| *open != question),
            _ => {}
        }
    }
}

impl Seen {
    /// Answers one of the open questions, if there is one.
    pub(crate) fn answer(&mut self, at: usize, refuse: bool, mut handle: ClientHandle<'_, '_>) {
        if at >= self.questions.len() {
            return;
        }
        let question = self.questions.swap_remove(at);
        // The request may be over by now.
        let _ = match question.kind() {
            _ if refuse => handle.refuse(question, &RpcError::refused()),
            ServerRequestKind::Sampling => {
                handle.reply(question, &ClientResult::sampled(CreateMessageResult::new("m", ContentBlock::text("42"))))
            }
            ServerRequestKind::Roots => handle.reply(question, &ClientResult::roots(&ROOTS)),
            _ => handle.reply(question, &ClientResult::accept(Raw::constant(r#"{"yes":true}"#))),
        };
    }
}

/// Random numbers, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }
}
