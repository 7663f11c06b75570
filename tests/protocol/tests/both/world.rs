//! A service with something of everything, and what comes of it at the client.

use mcp_sansio::client::reply::{Refusal, Reply, Root, Sampled};
use mcp_sansio::client::{self, Event, Link, Profile, QuestionId, QuestionKind, Reference, Request, Token};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::{ClientFeature, Feature, Level};
use mcp_sansio::server::{self, Progress};
use mcp_sansio::service::{
    Argument, Call, Complete, Content, Get, Outcome, Prompt, Question, Read, Resource, Sampling, Service, Template,
    Tool,
};
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct World {
    pub(crate) logged: u64,
    pub(crate) open: Vec<server::Token>,
}

fn work(world: &mut World, call: &mut Call<'_>) -> Outcome {
    for step in 1..=5 {
        call.progress(Progress::new(step).of(5).message("on"));
        world.logged += 1;
        call.log(Level::Warning, format_args!("{}", world.logged));
    }
    call.text("worked")
}

fn later(world: &mut World, call: &mut Call<'_>) -> Outcome {
    let (token, outcome) = call.later();
    world.open.push(token);
    outcome
}

const FORM: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}}}"#);

fn ask(_: &mut World, call: &mut Call<'_>) -> Outcome {
    if call.answer("model").is_some() {
        return call.text("asked");
    }
    let messages = [server_message()];
    call.ask(&[Question::sample("model", Sampling::new(&messages, 10)), Question::roots("r\"")], b"")
}

fn server_message() -> mcp_sansio::service::Message<'static> {
    mcp_sansio::service::Message::user(Content::text("?"))
}

fn form(_: &mut World, call: &mut Call<'_>) -> Outcome {
    match call.answer("form") {
        Some(_) => call.text("formed"),
        None => call.ask(&[Question::elicit("form", "Well?", FORM)], b""),
    }
}

fn large(_: &mut World, call: &mut Call<'_>) -> Outcome {
    call.content(&[Content::text("x\n\u{e9}\""), Content::image(&[7; 300], "image/png")])
}

fn read(_: &mut World, read: &mut Read<'_>) -> Outcome {
    read.text(read.uri())
}

fn get(_: &mut World, get: &mut Get<'_>) -> Outcome {
    get.user("hm")
}

fn complete(_: &mut World, complete: &mut Complete<'_>) -> Outcome {
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
static TEMPLATES: [Template<World>; 1] = [Template::new("t://{id}", "many", read).complete(complete)];
static ARGUMENTS: [Argument; 1] = [Argument::optional("what")];
static PROMPTS: [Prompt<World>; 1] = [Prompt::new("p", "A prompt", get).arguments(&ARGUMENTS).complete(complete)];
pub(crate) static SERVICE: Service<'static, World> = Service::new("pair", "1")
    .tools(&TOOLS)
    .resources(&RESOURCES)
    .templates(&TEMPLATES)
    .prompts(&PROMPTS)
    .feature(Feature::Subscribe)
    .feature(Feature::ToolsChanged)
    .feature(Feature::PromptsChanged)
    .feature(Feature::ResourcesChanged)
    .feature(Feature::Logging);

pub(crate) static PROFILE: Profile<'static> = Profile::new("pair", "1")
    .feature(ClientFeature::SamplingTools)
    .feature(ClientFeature::ElicitForm)
    .feature(ClientFeature::ElicitUrl)
    .roots_changed();
const ROOTS: [Root<'static>; 1] = [Root::new("file:///x").unwrap()];
pub(crate) const URIS: [&str; 2] = ["r://one", "t://two"];

/// Every request there is. Which of them a revision has not is the client's to say.
pub(crate) fn request(number: u64) -> Request<'static> {
    match number % 18 {
        0 => Request::list_tools(),
        1 => Request::list_resources(),
        2 => Request::list_templates(),
        3 => Request::list_prompts().after("none such"),
        4 => Request::call("work").with_progress().with_logs(Level::Debug),
        5 => Request::call("later").timeout(5_000).with_progress(),
        6 => Request::call("ask").at_most(100_000),
        7 => Request::call("form"),
        8 => Request::call("large"),
        9 => Request::call("none"),
        10 => Request::read("t://\"x\""),
        11 => Request::prompt("p").arguments(const { &Raw::constant(r#"{"what":"x"}"#) }),
        12 => Request::complete(Reference::prompt("p"), "what", "a"),
        13 => Request::ping(),
        14 => Request::discover(),
        15 => Request::subscribe("r://one"),
        16 => Request::set_level(Level::Info),
        _ => Request::raw("no/such", None),
    }
}

/// What has come to the client.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connected: u32,
    pub(crate) unconnected: u32,
    /// How many outcomes a request has had.
    pub(crate) outcomes: HashMap<Token, (u32, bool)>,
    pub(crate) progress: HashMap<Token, u64>,
    pub(crate) logged: u64,
    /// Messages may be lost, or overtake each other on another stream.
    pub(crate) loose: bool,
    pub(crate) questions: Vec<QuestionId>,
    pub(crate) changes: u32,
    pub(crate) listening: u32,
}

impl client::Handler for Seen {
    fn event(&mut self, event: Event<'_>, _: &mut Link<'_, '_>) {
        match event {
            Event::Connected(_) => self.connected += 1,
            Event::Unconnected(_) => self.unconnected += 1,
            Event::Done { token, outcome, .. } => {
                let seen = self.outcomes.entry(token).or_default();
                *seen = (seen.0 + 1, outcome.is_ok());
            }
            Event::Asked(asked) => self.questions.extend(asked.questions().map(|question| question.id)),
            Event::Progress(report) => {
                let done = report.done.u64().expect("a whole number");
                assert!(!self.outcomes.contains_key(&report.token), "progress comes before the outcome");
                let before = self.progress.insert(report.token, done);
                let next = before.unwrap_or(0) + 1;
                assert!(done == next || self.loose && done > next, "in order, and none is missing: {next}, {done}");
            }
            Event::Log(log) => {
                let number = log.data.text().unwrap().to_string().parse().unwrap();
                assert!(number > self.logged || self.loose, "in order");
                self.logged = number;
            }
            Event::Changed { .. } => self.changes += 1,
            Event::Listening(_) => self.listening += 1,
            Event::Withdrawn(question) => self.questions.retain(|open| *open != question),
            _ => {}
        }
    }
}

impl Seen {
    /// Answers one of the questions that are open, if there is one.
    pub(crate) fn answer(&mut self, at: usize, refuse: bool, mut link: Link<'_, '_>) {
        if at >= self.questions.len() {
            return;
        }
        let question = self.questions.swap_remove(at);
        // The request may be over by now.
        let _ = match question.kind() {
            _ if refuse => link.refuse(question, &Refusal::refused()),
            QuestionKind::Sampling => link.reply(question, &Reply::sampled(Sampled::new("m", Content::text("42")))),
            QuestionKind::Roots => link.reply(question, &Reply::roots(&ROOTS)),
            _ => link.reply(question, &Reply::accept(Raw::constant(r#"{"yes":true}"#))),
        };
    }
}

/// Numbers at random, the same for the same seed.
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
