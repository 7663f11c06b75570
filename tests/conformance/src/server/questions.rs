//! Tools that ask the client: the same handler sends requests up to 2025-11-25 and answers with `input_required` from
//! 2026-07-28 on. It is run again from its beginning when the answers are in.

use mcp_sansio::json::Raw;
use mcp_sansio::protocol::ClientFeature;
use mcp_sansio::service::{Answer, Call, Content, Get, Message, Outcome, Question, Sampling};
use serde::Deserialize;

use crate::Fixture;

/// A form with one text in it.
const NAME: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#);
const COLOR: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}"#);
const CONTEXT: Raw<'static> =
    Raw::constant(r#"{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}"#);
const OK: Raw<'static> = Raw::constant(r#"{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}"#);
const USER: Raw<'static> = Raw::constant(
    r#"{
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        },
        "required": ["username", "email"]
    }"#,
);
const DEFAULTS: Raw<'static> = Raw::constant(
    r#"{
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true}
        }
    }"#,
);
const ENUMS: Raw<'static> = Raw::constant(
    r#"{
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    {"const": "value1", "title": "First Option"},
                    {"const": "value2", "title": "Second Option"},
                    {"const": "value3", "title": "Third Option"}
                ]
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"const": "value1", "title": "First Choice"},
                        {"const": "value2", "title": "Second Choice"},
                        {"const": "value3", "title": "Third Choice"}
                    ]
                }
            }
        }
    }"#,
);

#[derive(Deserialize)]
struct Prompted<'a> {
    #[serde(borrow)]
    prompt: std::borrow::Cow<'a, str>,
}

/// `test_sampling`
pub(crate) fn sampling(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    if let Some(answer) = call.answer("response") {
        return match answer.text() {
            Some(text) => call.text(format_args!("LLM response: {text}")),
            None => call.error("The model did not answer in text"),
        };
    }
    let Prompted { prompt } = call.args()?;
    let messages = [Message::user(Content::text(&*prompt))];
    call.ask(&[Question::sample("response", Sampling::new(&messages, 100))], b"")
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    message: std::borrow::Cow<'a, str>,
}

/// `test_elicitation`
pub(crate) fn elicitation(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    if let Some(answer) = call.answer("user") {
        return tell(call, "User response", answer);
    }
    let Asked { message } = call.args()?;
    call.ask(&[Question::elicit("user", &message, USER)], b"")
}

/// `test_elicitation_sep1034_defaults`
pub(crate) fn defaults(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    match call.answer("form") {
        Some(answer) => tell(call, "Elicitation completed", answer),
        None => call.ask(&[Question::elicit("form", "Please check the defaults", DEFAULTS)], b""),
    }
}

/// `test_elicitation_sep1330_enums`
pub(crate) fn enums(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    match call.answer("form") {
        Some(answer) => tell(call, "Elicitation completed", answer),
        None => call.ask(&[Question::elicit("form", "Please choose", ENUMS)], b""),
    }
}

fn tell(call: &mut Call<'_>, what: &str, answer: Answer<'_>) -> Outcome {
    let action = if answer.accepted() {
        "accept"
    } else if answer.declined() {
        "decline"
    } else {
        "cancel"
    };
    let content = answer.content().map_or("none", |content| content.as_str());
    call.text(format_args!("{what}: action={action}, content={content}"))
}

/// `test_input_required_result_elicitation`, and as `test_streaming_elicitation`
pub(crate) fn user_name(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    match call.answer("user_name").and_then(|answer| answer.value("name")?.text()) {
        Some(name) => call.text(format_args!("Hello, {name}!")),
        None => call.ask(&[Question::elicit("user_name", "What is your name?", NAME)], b""),
    }
}

/// `test_input_required_result_sampling`
pub(crate) fn capital(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    if let Some(text) = call.answer("capital_question").and_then(|answer| answer.text()) {
        return call.text(format_args!("The model says: {text}"));
    }
    let messages = [Message::user(Content::text("What is the capital of France?"))];
    call.ask(&[Question::sample("capital_question", Sampling::new(&messages, 100))], b"")
}

/// `test_input_required_result_list_roots`
pub(crate) fn roots(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    match call.answer("client_roots") {
        Some(answer) => call.text(format_args!("The client has {} roots", answer.roots().count())),
        None => call.ask(&[Question::roots("client_roots")], b""),
    }
}

/// `test_input_required_result_request_state`, and as `test_input_required_result_tampered_state`
pub(crate) fn state(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    match (call.answer("confirm"), call.state()) {
        (Some(answer), b"confirming") if answer.accepted() => call.text("state-ok"),
        (Some(answer), b"confirming") if answer.declined() || answer.dismissed() => call.text("not confirmed"),
        _ => call.ask(&[Question::elicit("confirm", "Is that all right?", OK)], b"confirming"),
    }
}

/// `test_input_required_result_multiple_inputs`
pub(crate) fn several(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    let name = call.answer("user_name").and_then(|answer| answer.value("name")?.text());
    let greeting = call.answer("greeting").and_then(|answer| answer.text());
    if let (Some(name), Some(greeting), Some(roots)) = (name, greeting, call.answer("client_roots")) {
        let roots = roots.roots().count();
        return call.text(format_args!("{greeting} {name}, you have {roots} roots"));
    }
    let messages = [Message::user(Content::text("Say a greeting in one sentence."))];
    let questions = [
        Question::elicit("user_name", "What is your name?", NAME),
        Question::sample("greeting", Sampling::new(&messages, 50)),
        Question::roots("client_roots"),
    ];
    call.ask(&questions, b"all three")
}

/// `test_input_required_result_multi_round`: the answers of the round before travel in the state.
pub(crate) fn rounds(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    let name = call.answer("step1").and_then(|answer| answer.value("name")?.text());
    let color = call.answer("step2").and_then(|answer| answer.value("color")?.text());
    match (call.state(), name, color) {
        (b"", ..) | (b"step1", None, _) => call.ask(&[Question::elicit("step1", "What is your name?", NAME)], b"step1"),
        (b"step1", Some(name), _) => {
            let question = Question::elicit("step2", "What is your favourite color?", COLOR);
            call.ask(&[question], name.to_string().as_bytes())
        }
        (name, _, Some(color)) => {
            let name = String::from_utf8_lossy(name);
            call.text(format_args!("{name} likes {color}"))
        }
        (name, _, None) => call.ask(&[Question::elicit("step2", "What is your favourite color?", COLOR)], name),
    }
}

/// `test_input_required_result_capabilities`: asks what the client can answer.
pub(crate) fn possible(_: &mut Fixture, call: &mut Call<'_>) -> Outcome {
    if call.answer("name").or(call.answer("model")).is_some() {
        return call.text("Thank you");
    }
    let messages = [Message::user(Content::text("What is the capital of France?"))];
    let form = Question::elicit("name", "What is your name?", NAME);
    let model = Question::sample("model", Sampling::new(&messages, 100));
    match (call.client_has(ClientFeature::ElicitForm), call.client_has(ClientFeature::Sampling)) {
        (true, true) => call.ask(&[form, model], b""),
        (true, false) => call.ask(&[form], b""),
        (false, true) => call.ask(&[model], b""),
        (false, false) => call.text("This client cannot be asked anything"),
    }
}

/// `test_input_required_result_prompt`
pub(crate) fn prompt(_: &mut Fixture, get: &mut Get<'_>) -> Outcome {
    match get.answer("user_context").and_then(|answer| answer.value("context")?.text()) {
        Some(context) => get.user(format_args!("Use this context: {context}")),
        None => get.ask(&[Question::elicit("user_context", "What is the context?", CONTEXT)], b""),
    }
}
