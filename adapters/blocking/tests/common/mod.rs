//! What the tests of clients have in common: a server that behaves, and the time that anything may take.
#![allow(unreachable_pub, dead_code, reason = "shared by the tests beside it")]

use std::time::{Duration, Instant};

use mcp_sansio::client::{Lost, Profile, Request};
use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientFeature;
use mcp_sansio::service::{Call, Outcome, Question, Service, Tool};
use mcp_sansio_blocking::client::{Answer, Error};

fn add(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let (a, b): (i64, i64) = (call.arg("a")?, call.arg("b")?);
    call.text(format_args!("{}", a + b))
}

const FORM: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}"#);

fn confirm(_: &mut (), call: &mut Call<'_>) -> Outcome {
    let Some(answer) = call.answer("sure") else {
        return call.ask(&[Question::elicit("sure", "Really?", FORM)], b"");
    };
    let agreed = answer.value("yes").and_then(|yes| yes.bool());
    call.text(if agreed == Some(true) { "confirmed" } else { "never mind" })
}

static TOOLS: [Tool<()>; 2] = [Tool::new("add", "Adds", add), Tool::new("confirm", "Asks", confirm)];

/// What a server that behaves offers.
pub fn service() -> Service<'static, ()> {
    Service::new("own", "1").tools(&TOOLS)
}

pub static PROFILE: Profile<'static> = Profile::new("test", "1").feature(ClientFeature::ElicitForm);

pub const QUICK: Duration = Duration::from_millis(150);

/// No misbehaviour takes longer to notice than this, on a slow machine.
pub const SOON: Duration = Duration::from_secs(3);

/// Takes the time of something that must not take long.
#[track_caller]
pub fn soon<R>(what: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let done = what();
    assert!(begun.elapsed() < SOON, "it took {:?}", begun.elapsed());
    done
}

#[track_caller]
pub fn lost(outcome: Result<Answer, Error>) -> (Lost, String) {
    let error = outcome.unwrap_err();
    (error.lost().unwrap_or_else(|| panic!("{error}")), error.to_string())
}

/// A tool's name: what is asked does not matter to scripts.
pub fn call() -> Request<'static> {
    Request::call("any")
}
