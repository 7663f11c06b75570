//! Intended differences between our messages and the official schemas (or the foreign types made from them). The
//! message is rewritten into one that they accept, and they judge the rest; the rules judge the rewritten part.
//! Batches are one more difference: the oracle takes them apart.

use crate::envelope::{Body, Context};
use crate::revision::Revision;
use serde_json::{Value, json};

/// Rewrites the message for the official schema; `for_types` then rewrites it for the types.
pub(crate) fn for_schema(context: Context<'_>, message: &Value, body: Body<'_>) -> Value {
    let mut copy = message.clone();
    match body {
        Body::Error(_) => unread_id(context.revision, &mut copy),
        Body::Result(_) if context.answered == Some("elicitation/create") => whole_numbers(&mut copy["result"]),
        Body::Request(_) => input_responses(&mut copy),
        _ => {}
    }
    if context.revision.is_modern() {
        free_objects(&mut copy);
    }
    copy
}

/// Rewrites the parts that only the types refuse.
pub(crate) fn for_types(context: Context<'_>, mut message: Value) -> Value {
    long_id(&mut message);
    if context.revision == Revision::C {
        whole_bounds(&mut message);
    }
    message
}

/// Adds the missing id to an error reply whose request id could not be read. The schemas of A to C require one.
fn unread_id(revision: Revision, message: &mut Value) {
    if revision <= Revision::C && message.get("id").is_none_or(Value::is_null) {
        message["id"] = json!(0);
    }
}

/// Makes the numbers of elicitation content whole: the schemas say integer, the pages allow fractions.
fn whole_numbers(answer: &mut Value) {
    members(answer.get_mut("content")).for_each(whole);
}

fn input_responses(message: &mut Value) {
    let answers = members(message.pointer_mut("/params/inputResponses"));
    answers.filter(|answer| answer.get("action").is_some()).for_each(whole_numbers);
}

/// The definition `JSONValue` of E has neither `null` nor fractions. It types free objects of the application:
/// sampling `metadata`, and the settings of experimental capabilities and extensions.
fn free_objects(message: &mut Value) {
    for place in [
        "/result/capabilities",
        "/error/data/requiredCapabilities",
        "/params/_meta/io.modelcontextprotocol~1clientCapabilities",
    ] {
        message.pointer_mut(place).into_iter().for_each(plain_scalars);
    }
    for request in members(message.pointer_mut("/result/inputRequests")) {
        request.pointer_mut("/params/metadata").into_iter().for_each(plain_scalars);
    }
}

/// Replaces each `null` and each fraction by an integer, at any depth.
fn plain_scalars(value: &mut Value) {
    match value {
        Value::Null => *value = json!(0),
        Value::Number(_) => whole(value),
        Value::Array(items) => items.iter_mut().for_each(plain_scalars),
        Value::Object(members) => members.values_mut().for_each(plain_scalars),
        Value::Bool(_) | Value::String(_) => {}
    }
}

/// Ids of any size are echoed; the types hold them in an `i64`.
fn long_id(message: &mut Value) {
    if message.get("id").is_some_and(|id| id.is_number() && !id.is_i64()) {
        message["id"] = json!(0);
    }
}

/// Makes the bounds of a number whole: rust-mcp-schema 0.10 holds them in an `i64`, against the schema (2.0
/// does not).
fn whole_bounds(message: &mut Value) {
    for schema in members(message.pointer_mut("/params/requestedSchema/properties")) {
        for bound in ["minimum", "maximum"] {
            schema.get_mut(bound).into_iter().for_each(whole);
        }
    }
}

fn whole(value: &mut Value) {
    if value.is_f64() {
        *value = json!(0);
    }
}

fn members(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(|members| members.values_mut())
}
