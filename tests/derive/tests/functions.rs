//! Functions that return values: as text, as structured content, or as an error for the model.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fmt;

use mcp_sansio::json::Text;
use mcp_sansio::revision::Revision;
use mcp_sansio::server::RpcError;
use mcp_sansio::service::{
    Call, HandlerError, HandlerResult, Output, Prompt, ReadResource, Resource, ResourceTemplate, Service, Tool, prompt,
    resource, tool,
};
use mcp_sansio_host::testing::Conversation;
use serde_json::json;

#[derive(Default)]
struct Notes(Vec<String>);

#[derive(Debug)]
enum MathError {
    ByZero,
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the divisor is 0")
    }
}

#[derive(Output)]
struct Quotient {
    quotient: i64,
    remainder: i64,
}

/// Divides two numbers
#[tool(state = Notes)]
fn div(a: f64, b: f64) -> Result<f64, MathError> {
    if b == 0.0 { Err(MathError::ByZero) } else { Ok(a / b) }
}

/// Divides two integers
#[tool(state = Notes, read_only)]
fn divide(a: i64, b: i64) -> Result<Quotient, MathError> {
    let quotient = a.checked_div(b).ok_or(MathError::ByZero)?;
    Ok(Quotient { quotient, remainder: a % b })
}

/// Says it louder
#[tool(state = Notes)]
fn shout(text: String) -> String {
    text.to_uppercase()
}

/// Takes the blanks away
#[tool(state = Notes)]
fn trim(text: &str) -> &str {
    text.trim()
}

/// Adds a note
#[tool]
fn add(notes: &mut Notes, text: String) {
    notes.0.push(text);
}

/// Returns a note
#[tool]
fn note(notes: &mut Notes, at: usize) -> Result<&str, String> {
    notes.0.get(at).map(String::as_str).ok_or_else(|| format!("there are {} notes", notes.0.len()))
}

/// Returns something that is no text, but `Display`
#[tool(state = Notes)]
fn why() -> MathError {
    MathError::ByZero
}

/// Returns what has no name
#[tool(state = Notes)]
fn unnamed(n: u8) -> Result<impl fmt::Display, MathError> {
    Ok(format!("{n:?}"))
}

/// Has a context and no state, and fails in each way
#[tool(state = Notes)]
fn fails(call: &mut Call<'_>, how: Text<'_>) -> Result<u64, HandlerError> {
    if how.eq_str("rpc") {
        return Err(RpcError::new(-31001, "not today").into());
    }
    call.ok("x".parse::<u64>())
}

/// Answers by itself
#[tool]
fn itself(notes: &mut Notes, call: &mut Call<'_>, text: Text<'_>) -> HandlerResult {
    notes.0.push(text.to_string());
    call.text(text)
}

type Answer = Result<Quotient, MathError>;

/// Returns a type by another name
#[tool(state = Notes)]
fn alias() -> Answer {
    divide(7, 2)
}

static TOOLS: [Tool<Notes>; 11] = [DIV, DIVIDE, SHOUT, TRIM, ADD, NOTE, WHY, UNNAMED, FAILS, ITSELF, ALIAS];

/// Reviews code
#[prompt(state = Notes)]
fn review(language: Text<'_>) -> Result<String, MathError> {
    if language.eq_str("none") { Err(MathError::ByZero) } else { Ok(format!("Review this {language}")) }
}

static PROMPTS: [Prompt<Notes>; 1] = [REVIEW];

#[resource("notes://{at}")]
fn by_number(notes: &mut Notes, read: &mut ReadResource<'_>, at: usize) -> Result<String, String> {
    let note = notes.0.get(at).cloned();
    note.ok_or_else(|| format!("{}: there are {} notes", read.uri, notes.0.len()))
}

static TEMPLATES: [ResourceTemplate<Notes>; 1] = [BY_NUMBER];

#[resource("notes://all")]
fn all(notes: &mut Notes) -> String {
    notes.0.join("\n")
}

static RESOURCES: [Resource<Notes>; 1] = [ALL];

#[test]
fn a_function_returns_a_value_or_an_error() {
    let service =
        Service::new("notes", "1.0").tools(&TOOLS).prompts(&PROMPTS).resources(&RESOURCES).templates(&TEMPLATES);
    for revision in Revision::ALL {
        let mut notes = Conversation::new(&service, Notes::default());
        notes.open(revision);
        for (tool, arguments, text, is_error) in [
            ("div", json!({"a": 3, "b": 2}), "1.5", false),
            ("div", json!({"a": 3, "b": 0}), "the divisor is 0", true),
            ("div", json!({"a": 3}), "Invalid arguments: missing member `b`", true),
            ("divide", json!({"a": 7, "b": 2}), r#"{"quotient":3,"remainder":1}"#, false),
            ("divide", json!({"a": 7, "b": 0}), "the divisor is 0", true),
            ("shout", json!({"text": "a \"b\""}), "A \"B\"", false),
            ("trim", json!({"text": " a\n"}), "a", false),
            ("add", json!({"text": "one"}), "", false),
            ("note", json!({"at": 0}), "one", false),
            ("note", json!({"at": 1}), "there are 1 notes", true),
            ("why", json!({}), "the divisor is 0", false),
            ("unnamed", json!({"n": 5}), "5", false),
            ("fails", json!({"how": "ok"}), "invalid digit found in string", true),
            ("itself", json!({"text": "two"}), "two", false),
            ("alias", json!({}), r#"{"quotient":3,"remainder":1}"#, false),
        ] {
            let reply = notes.call(tool, &arguments);
            assert_eq!((reply.text().as_str(), reply.is_error()), (text, is_error), "{tool} {arguments}");
        }
        assert_eq!(notes.call("fails", &json!({"how": "rpc"})).error().unwrap().code, -31001);
        assert_eq!(notes.prompt("review", &json!({"language": "none"})).error().unwrap().message, "the divisor is 0");
        assert!(notes.prompt("review", &json!({"language": "Rust"})).result().as_str().contains("Review this Rust"));
        assert!(notes.read("notes://1").result().as_str().contains("two"));
        assert!(notes.read("notes://all").result().as_str().contains(r"one\ntwo"));
        assert_eq!(notes.read("notes://2").error().unwrap().message, "notes://2: there are 2 notes");
    }
}

#[test]
fn the_output_schema_is_that_of_the_type() {
    let service = Service::new("notes", "1.0").tools(&TOOLS);
    let mut notes = Conversation::new(&service, Notes::default());
    notes.open(Revision::V2025_06_18);
    let reply = notes.request("tools/list", &json!({}));
    let list: serde_json::Value = serde_json::from_str(reply.result().as_str()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(Quotient::OUTPUT_SCHEMA).unwrap();
    for tool in list["tools"].as_array().unwrap() {
        let expected = matches!(tool["name"].as_str(), Some("divide" | "alias")).then_some(&schema);
        assert_eq!(tool.get("outputSchema"), expected, "{tool}");
    }
}
