//! `com.example/timers`: an extension with every part of the contract, defined with nothing but the public API of
//! `mcp-sansio`, without an allocator. The tests serve it and use it over lines and over HTTP.
#![no_std]

use mcp_sansio::json::{Object, Raw};
use mcp_sansio::revision::{Revision, Revisions};
use mcp_sansio::server::{Caching, RpcError};
use mcp_sansio::service::{
    Call, CustomRequest, Extension, ExtensionMethod, HandlerResult, InputError, InputRequest, Service, Tool, Topic,
};

/// The identifier of the extension.
pub const ID: &str = "com.example/timers";

/// The methods with a target, and the member of their params that `Mcp-Name` repeats: for the client over HTTP.
pub const NAMES: &[(&str, &str)] = &[("com.example/timers/get", "timer")];

/// A timer: its name, the user that it belongs to, and the seconds that are left.
#[derive(Debug)]
pub struct Timer {
    /// The name.
    pub name: &'static str,
    /// The user that may see it; `None` for all.
    pub owner: Option<&'static str>,
    /// The seconds that are left.
    pub seconds: u64,
}

/// The state of the handlers.
#[derive(Debug)]
pub struct Kitchen {
    /// The timers.
    pub timers: [Timer; 2],
    /// The loop publishes this timer and resets the mark.
    pub changed: Option<&'static str>,
    /// The token of the request that waits, as a number.
    pub waiting: Option<u64>,
}

impl Kitchen {
    /// Makes the state at the start: an egg of all, and the cake of anna.
    #[must_use]
    pub const fn new() -> Self {
        let egg = Timer { name: "egg", owner: None, seconds: 300 };
        let cake = Timer { name: "cake", owner: Some("anna"), seconds: 3600 };
        Kitchen { timers: [egg, cake], changed: None, waiting: None }
    }

    fn seen_by(&self, name: &str, user: Option<&str>) -> Option<&Timer> {
        self.timers.iter().find(|timer| timer.name == name && timer.owner.is_none_or(|owner| user == Some(owner)))
    }
}

impl Default for Kitchen {
    fn default() -> Self {
        Kitchen::new()
    }
}

fn write_timer(timer: &Timer, object: &mut Object<'_, '_>) {
    object.text("timer", timer.name);
    object.number("seconds", timer.seconds)
}

/// `com.example/timers/get`
fn get(kitchen: &mut Kitchen, request: &mut CustomRequest<'_>) -> HandlerResult {
    let name = request.params().and_then(|params| params.get("timer")?.text()?.plain());
    match name.and_then(|name| kitchen.seen_by(name, request.principal())) {
        Some(timer) => request.result_as("complete", &mut |result| write_timer(timer, result)),
        None => Err(RpcError::invalid_params("No such timer").into()),
    }
}

/// `com.example/timers/count`
fn count(_: &mut Kitchen, request: &mut CustomRequest<'_>) -> HandlerResult {
    request.set_meta(Raw::constant(r#"{"com.example/counted":true}"#));
    request.result(Raw::constant(r#"{"count":2}"#))
}

/// The question of `com.example/timers/wait`, as it was kept, and its `_meta`.
const QUESTION: Raw<'static> = Raw::constant(
    r#"{"method":"elicitation/create","params":{"message":"Now?","requestedSchema":{"type":"object","properties":{}}}}"#,
);
const QUESTION_META: Raw<'static> = Raw::constant(r#"{"com.example/timer":"egg"}"#);

/// `com.example/timers/wait`: waits until it is resumed, and asks the client where it can.
fn wait(kitchen: &mut Kitchen, request: &mut CustomRequest<'_>) -> HandlerResult {
    if let Some(answer) = request.answer("now").filter(|_| !request.is_resumed()) {
        return match answer.result {
            Ok(answer) => request.result(answer),
            Err(InputError::TimedOut) => request.suspend(b"asked").map(|(_, done)| done),
            Err(_) => request.fail_raw(Raw::constant(r#"{"code":-31000,"message":"not \"now\"","data":[1]}"#)),
        };
    }
    match request.state() {
        b"waits" if request.method.eq_str("com.example/timers/wait") => {
            let question = InputRequest::kept("now", QUESTION, QUESTION_META);
            request.ask(question.as_slice(), b"asked")
        }
        b"asked" => request.result(Raw::constant(r#"{"gone":true}"#)),
        _ => {
            let (token, done) = request.suspend(b"waits")?;
            kitchen.waiting = Some(token.to_bits());
            Ok(done)
        }
    }
}

/// Refuses calls with `timer` in the params of tools that have none.
fn check_call(call: &Call<'_>, entry: Option<Raw<'_>>) -> Result<(), RpcError<'static>> {
    let wants_timer = call.params().is_some_and(|params| params.get("timer").is_some());
    match wants_timer && entry.and_then(|entry| entry.get("timer")).is_none() {
        true => Err(RpcError::new(-31_001, "The tool has no timer")),
        false => Ok(()),
    }
}

/// `boil`: a tool whose answer is a timer for clients that know timers.
fn boil(kitchen: &mut Kitchen, call: &mut Call<'_>) -> HandlerResult {
    let [egg, _] = &mut kitchen.timers;
    egg.seconds -= 1;
    kitchen.changed = Some(egg.name);
    if call.client_extension(ID).is_none() {
        return call.text("The egg boils");
    }
    call.result_as("com.example/timer", &mut |result| write_timer(egg, result))
}

fn tell(kitchen: &Kitchen, name: &str, params: &mut Object<'_, '_>) {
    let timer = kitchen.timers.iter().find(|timer| timer.name == name);
    match timer {
        Some(timer) => write_timer(timer, params),
        None => params.fail(),
    }
}

const TIMERS: Topic<Kitchen> = Topic::new("timers", "notifications/com.example/timer", tell)
    .agrees(|kitchen, name, user| kitchen.seen_by(name, user).is_some());

const ANY: Topic<Kitchen> = Topic::new("anyTimer", "notifications/com.example/any", |kitchen, _, params| {
    params.number("timers", kitchen.timers.len() as u64)
});

/// The extension.
pub const TIMER_EXTENSION: Extension<Kitchen> = Extension::new(ID)
    .settings(Raw::constant(r#"{"most":2}"#))
    .capabilities(|capabilities, revision| {
        if !revision.is_modern() {
            capabilities.fixed("timers", "{}");
        }
    })
    .methods(&[
        ExtensionMethod::new("com.example/timers/get", get).target("timer"),
        ExtensionMethod::new("com.example/timers/count", count).caching(Caching::public(5_000)).open(),
        ExtensionMethod::new("com.example/timers/hidden", count).hidden(),
        ExtensionMethod::new("com.example/timers/old", count).revisions(Revisions::ALL),
        ExtensionMethod::new("com.example/timers/wait", wait).revisions(Revisions::ALL),
    ])
    .check_calls(check_call)
    .topics(&[TIMERS, ANY]);

/// Another extension, to see two of them in one service.
pub const OTHER_EXTENSION: Extension<Kitchen> = Extension::new("com.example/other");

static EXTENSIONS: [Extension<Kitchen>; 2] = [TIMER_EXTENSION, OTHER_EXTENSION];

static TOOLS: [Tool<Kitchen>; 2] = [
    Tool::new("boil", "Boils an egg", boil)
        .entry(r#"{"timer":{"seconds":300}}"#, Revisions::from(Revision::LATEST))
        .meta(r#"{"com.example/kind":"egg"}"#),
    Tool::new("bake", "Bakes a cake, only for clients with timers", |_, call| {
        call.need_extension(ID)?;
        call.text("baked")
    }),
];

/// The service: both extensions, one that is declared by hand, and a method of its own beside them.
pub const SERVICE: Service<'static, Kitchen> = Service::new("kitchen", "1.0")
    .tools(&TOOLS)
    .extend(&EXTENSIONS)
    .extensions(Raw::constant(r#"{"com.example/by-hand":{}}"#))
    .other(|_, request| match request.method {
        own if own.eq_str("example.com/own") => request.result(Raw::constant(r#"{"own":true}"#)),
        later if later.eq_str("example.com/later") => request.suspend(b"").map(|(_, done)| done),
        _ => request.decline(),
    });
