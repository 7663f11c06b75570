//! Common parts of the client tests: a correct server, and a time limit for each step.
#![allow(unreachable_pub, dead_code, reason = "shared by the tests beside it")]

use std::time::{Duration, Instant};

use mcp_sansio::client::{ClientInfo, Request, TransportError};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientCapability;
use mcp_sansio::service::{Call, HandlerResult, InputRequest, Service, Tool};
use mcp_sansio_blocking::client::{ClientError, OwnedResult};

fn add(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", a + b))
}

const FORM: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}"#);

fn confirm(_: &mut (), call: &mut Call<'_>) -> HandlerResult {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[InputRequest::elicit("sure", "Really?", FORM)], b"");
    };
    let agreed = answer.value("yes").and_then(|yes| yes.bool());
    call.text(if agreed == Some(true) { "confirmed" } else { "never mind" })
}

static TOOLS: [Tool<()>; 2] = [Tool::new("add", "Adds", add), Tool::new("confirm", "Asks", confirm)];

/// The service of a correct server.
pub fn service() -> Service<'static, ()> {
    Service::new("own", "1").tools(&TOOLS)
}

pub static PROFILE: ClientInfo<'static> = ClientInfo::new("test", "1").feature(ClientCapability::ElicitForm);

pub const QUICK: Duration = Duration::from_millis(150);

/// The longest time to notice any fault, on a slow machine.
pub const SOON: Duration = Duration::from_secs(3);

/// Runs a step that must be fast, and fails if it is not.
#[track_caller]
pub fn soon<R>(what: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let done = what();
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    done
}

#[track_caller]
pub fn lost(outcome: Result<OwnedResult, ClientError>) -> (TransportError, String) {
    let error = outcome.unwrap_err();
    (error.lost().unwrap_or_else(|| panic!("{error}")), error.to_string())
}

/// Returns a request; scripts do not look at its tool.
pub fn call() -> Request<'static> {
    Request::call("any")
}
