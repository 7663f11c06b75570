//! The steps of a plan.

use std::time::{Duration, Instant};

use mcp_sansio::client::views::{CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult, View};
use mcp_sansio::client::{PendingId, Request, SubscriptionFilter};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::LoggingLevel;
use mcp_sansio_blocking::client::{ClientError, OwnedResult, Transport};
use serde_json::{Value, json};

use crate::watch::Mood;
use crate::{Guide, value};

/// The time to wait for a message that should not come.
const QUIET: Duration = Duration::from_millis(200);

/// Does one step. Returns its outcome.
pub(crate) fn take<T: Transport<'static>>(client: &mut Guide<T>, step: &Value) -> Value {
    let came = json!({"step": text(step, "do"), "name": step["name"]});
    client.handler.mood = match text(step, "mood") {
        "decline" => Mood::Decline,
        "cancel" => Mood::Cancel,
        _ => Mood::Accept,
    };
    match done(client, step, came.clone()) {
        Ok(came) => came,
        Err(error) => failed(came, &error),
    }
}

/// Adds the reason why a step has no result.
pub(crate) fn failed(mut came: Value, error: &ClientError) -> Value {
    match error.server() {
        Some(error) => came["error"] = json!({"code": error.code, "message": error.message, "data": error.data}),
        None => came["failure"] = json!(error.to_string()),
    }
    came
}

fn done<T: Transport<'static>>(client: &mut Guide<T>, step: &Value, mut came: Value) -> Result<Value, ClientError> {
    let name = text(step, "name");
    let args = step.get("arguments");
    let with_args = |request| args.map_or(request, |args| Request::arguments(request, args));
    match text(step, "do") {
        "call" => {
            let token = client.send(&asked(with_args(Request::call(name)), step))?;
            if let Some(after) = step["cancel_after"].as_u64() {
                return cancelled(client, token, after, came);
            }
            let answer = client.wait(token)?;
            came["flaws"] = json!(flaws_of_call(&answer));
            came["result"] = value(answer.raw());
        }
        "read" => {
            let answer = client.request(&asked(Request::read(name), step))?;
            let flaws = answer.view::<ReadResourceResult<'_>>().map(|read| {
                let flaws = read.contents().filter_map(|contents| contents.and_then(|some| some.check()).err());
                flaws.map(|flaw| flaw.to_string()).collect()
            });
            came["flaws"] = json!(flaws.unwrap_or_else(|flaw| vec![flaw.to_string()]));
            came["result"] = value(answer.raw());
        }
        "prompt" => {
            let answer = client.request(&asked(with_args(Request::prompt(name)), step))?;
            let flaws = answer.view::<GetPromptResult<'_>>().map(|prompt| {
                let flaws = prompt.messages().filter_map(|message| message.and_then(|some| some.check()).err());
                flaws.map(|flaw| flaw.to_string()).collect()
            });
            came["flaws"] = json!(flaws.unwrap_or_else(|flaw| vec![flaw.to_string()]));
            came["result"] = value(answer.raw());
        }
        "complete" => {
            let (argument, begin) = (text(step, "argument"), text(step, "value"));
            let request = match step["of"] == "prompt" {
                true => Request::complete_prompt(name, argument, begin),
                false => Request::complete_template(name, argument, begin),
            };
            let answer = client.request(&with_args(request))?;
            let flaw = answer.view::<CompleteResult<'_>>().and_then(|completion| completion.check()).err();
            came["flaws"] = json!(flaw.iter().map(ToString::to_string).collect::<Vec<_>>());
            came["result"] = value(answer.raw());
        }
        "listen" => listen(client, step)?,
        "together" => {
            // The effects of the steps may come before, between or after their answers.
            take_inner(client, step);
            let times = step["times"].as_u64().unwrap_or(1) as usize;
            wait_for(client, text(step, "await"), times, patience(step))?;
        }
        "level" => {
            let level = LoggingLevel::ALL.into_iter().find(|level| level.name() == name).unwrap_or(LoggingLevel::Info);
            client.set_log_level(level)?;
        }
        "roots" => {
            client.roots_changed()?;
            pause(client, step["wait"].as_u64().unwrap_or(200))?;
        }
        "relist" => {
            let list = match name {
                "tools" => Request::list_tools(),
                "resources" => Request::list_resources(),
                "templates" => Request::list_templates(),
                _ => Request::list_prompts(),
            };
            let (pages, items, flaws) = crate::list_all(client, name, list)?;
            (came["pages"], came["items"], came["flaws"]) = (json!(pages), json!(items), json!(flaws));
        }
        "many" => {
            // Several calls at once, each with its own answer.
            let times = step["times"].as_u64().unwrap_or(8);
            let tokens: Result<Vec<PendingId>, ClientError> =
                (0..times).map(|_| client.send(&with_args(Request::call(name)))).collect();
            let mut answers = Vec::new();
            for token in tokens? {
                answers.push(value(client.wait(token)?.raw()));
            }
            came["answers"] = json!(answers);
        }
        "ping" => came["result"] = value(client.request(&Request::ping())?.raw()),
        "discover" => came["result"] = value(client.request(&Request::discover())?.raw()),
        "raw" => {
            let params = step.get("params").map(Value::to_string);
            let params = params.as_ref().and_then(|params| Raw::parse(params.as_bytes()).ok());
            came["result"] = value(client.request(&Request::raw(name, params))?.raw());
        }
        other => came["failure"] = json!(format!("there is no step {other:?}")),
    }
    Ok(came)
}

/// With progress and logs, if the plan wants them.
fn asked<'r>(mut request: Request<'r>, step: &Value) -> Request<'r> {
    if step["progress"] == true {
        request = request.with_progress();
    }
    if let Some(level) = LoggingLevel::ALL.into_iter().find(|level| step["logs"] == level.name()) {
        request = request.with_logs(level);
    }
    if let Some(time) = step["timeout"].as_u64() {
        request = request.timeout(time);
    }
    request
}

fn flaws_of_call(answer: &OwnedResult) -> Vec<String> {
    match answer.view::<CallToolResult<'_>>() {
        Ok(result) => {
            let flaws = result.content().filter_map(|piece| piece.and_then(|piece| piece.check()).err());
            flaws.map(|flaw| flaw.to_string()).collect()
        }
        Err(flaw) => vec![flaw.to_string()],
    }
}

/// Cancels a call after its first progress or after a time, and waits for messages that should not come.
fn cancelled<T: Transport<'static>>(
    client: &mut Guide<T>,
    token: PendingId,
    after: u64,
    mut came: Value,
) -> Result<Value, ClientError> {
    let end = Instant::now() + Duration::from_millis(after);
    while client.handler.count("progress") == 0 && Instant::now() < end {
        client.turn(end.saturating_duration_since(Instant::now()))?;
    }
    client.cancel(token, Some("changed my mind"))?;
    let before = client.handler.events.len();
    let end = Instant::now() + QUIET;
    while Instant::now() < end {
        client.turn(end.saturating_duration_since(Instant::now()))?;
    }
    came["late"] = json!(client.handler.events[before..]);
    came["cancelled"] = json!(true);
    Ok(came)
}

/// Subscribes, does the steps in `then`, waits for a number of changes, and unsubscribes.
fn listen<T: Transport<'static>>(client: &mut Guide<T>, step: &Value) -> Result<(), ClientError> {
    let uris: Vec<&str> = step["uris"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut filter = SubscriptionFilter::new().uris(&uris);
    if step["tools"] == true {
        filter = filter.tools();
    }
    if step["prompts"] == true {
        filter = filter.prompts();
    }
    if step["resources"] == true {
        filter = filter.resources();
    }
    let token = client.listen(&filter)?;
    wait_for(client, "listening", 1, patience(step))?;
    if client.handler.count("done") > 0 {
        return Ok(()); // The server has refused it.
    }
    take_inner(client, step);
    let changes = step["changes"].as_u64().unwrap_or(0) as usize;
    wait_for(client, "changed", changes, patience(step))?;
    client.cancel(token, None)?;
    pause(client, QUIET.as_millis() as u64)
}

/// Does the steps within a step: their outcomes are among its events.
fn take_inner<T: Transport<'static>>(client: &mut Guide<T>, step: &Value) {
    for inner in step["then"].as_array().into_iter().flatten() {
        let came = take(client, inner);
        client.handler.events.push(json!({"event": "then", "came": came}));
    }
}

/// Returns the time to wait for the effects of a step.
fn patience(step: &Value) -> Duration {
    Duration::from_millis(step["wait"].as_u64().unwrap_or(4_000))
}

fn wait_for<T: Transport<'static>>(
    client: &mut Guide<T>,
    event: &str,
    times: usize,
    at_most: Duration,
) -> Result<(), ClientError> {
    let end = Instant::now() + at_most;
    while client.handler.count(event) < times && client.handler.count("done") == 0 && Instant::now() < end {
        client.turn(end.saturating_duration_since(Instant::now()))?;
    }
    Ok(())
}

fn pause<T: Transport<'static>>(client: &mut Guide<T>, millis: u64) -> Result<(), ClientError> {
    let end = Instant::now() + Duration::from_millis(millis);
    while Instant::now() < end {
        client.turn(end.saturating_duration_since(Instant::now()))?;
    }
    Ok(())
}

fn text<'s>(step: &'s Value, key: &str) -> &'s str {
    step[key].as_str().unwrap_or_default()
}
