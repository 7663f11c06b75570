//! Where the project knowingly sends what the official schemas (and the foreign types made from them)
//! do not take. The message is rewritten into one they do take, and they judge the rest of it; what was
//! rewritten has been judged by the rules. Batches are the third exception: the oracle takes them apart.

use crate::envelope::{Body, Context};
use crate::revision::Revision;
use serde_json::{Value, json};

pub(crate) fn rewrite(context: Context<'_>, message: &Value, body: Body<'_>) -> Value {
    let mut copy = message.clone();
    match body {
        Body::Error(_) => unread_id(context.revision, &mut copy),
        Body::Result(_) if context.answered == Some("elicitation/create") => whole_numbers(&mut copy["result"]),
        Body::Request(_) => input_responses(&mut copy),
        _ => {}
    }
    long_id(&mut copy);
    copy
}

/// The id of an error reply to something whose id could not be read. The schemas of A to C demand one.
fn unread_id(revision: Revision, message: &mut Value) {
    if revision <= Revision::C && message.get("id").is_none_or(Value::is_null) {
        message["id"] = json!(0);
    }
}

/// Numbers of elicitation content: the schemas type them as integer, the pages allow fractions.
fn whole_numbers(answer: &mut Value) {
    for value in answer.get_mut("content").and_then(Value::as_object_mut).into_iter().flat_map(|c| c.values_mut()) {
        if value.is_f64() {
            *value = json!(0);
        }
    }
}

fn input_responses(message: &mut Value) {
    let responses = message.pointer_mut("/params/inputResponses").and_then(Value::as_object_mut);
    for answer in responses.into_iter().flat_map(|r| r.values_mut()).filter(|a| a.get("action").is_some()) {
        whole_numbers(answer);
    }
}

/// Ids are echoed whatever their size; the foreign types hold them in an `i64`.
fn long_id(message: &mut Value) {
    if message.get("id").is_some_and(|id| id.is_number() && !id.is_i64()) {
        message["id"] = json!(0);
    }
}
