//! The JSON-RPC envelope of messages.

use crate::methods::Side;
use crate::revision::Revision;
use serde_json::Value;

/// The known facts about a message before it is read.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) revision: Revision,
    pub(crate) sender: Side,
    /// The method of the request that a result or an error answers.
    pub(crate) answered: Option<&'a str>,
    /// The method of the request whose id `params.requestId` is; `None` if it is unknown.
    pub(crate) cancelled: Option<&'a str>,
}

/// The kind of a message, with the part that shows it.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    Request(&'a str),
    Notification(&'a str),
    Result(&'a Value),
    Error(&'a Value),
}

impl Body<'_> {
    pub(crate) fn is_response(&self) -> bool {
        matches!(self, Body::Result(_) | Body::Error(_))
    }
}

/// Sorts a message by its members, strictly: our messages have no further members.
pub(crate) fn sort(message: &Value) -> Result<Body<'_>, String> {
    let Value::Object(members) = message else { return Err("a message is an object".into()) };
    let keys: Vec<_> = members.keys().map(String::as_str).collect();
    let only = |allowed: &[&str]| match keys.iter().find(|k| !allowed.contains(k)) {
        Some(odd) => Err(format!("odd member {odd:?} of the message")),
        None => Ok(()),
    };
    match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(Value::String(method)), None, None) => {
            only(&["jsonrpc", "id", "method", "params"])?;
            Ok(if members.contains_key("id") { Body::Request(method) } else { Body::Notification(method) })
        }
        (None, Some(result), None) => only(&["jsonrpc", "id", "result"]).map(|()| Body::Result(result)),
        (None, None, Some(error)) => only(&["jsonrpc", "id", "error"]).map(|()| Body::Error(error)),
        _ => Err("neither one method (a string), nor one result, nor one error".into()),
    }
}

pub(crate) fn check(context: Context<'_>, message: &Value, body: Body<'_>, found: &mut Vec<String>) {
    if message["jsonrpc"] != "2.0" {
        found.push("jsonrpc is not \"2.0\"".into());
    }
    if message.get("params").is_some_and(|p| !p.is_object()) {
        found.push("params is not an object".into());
    }
    if let Err(wrong) = check_id(context.revision, message.get("id"), body) {
        found.push(wrong);
    }
}

fn check_id(revision: Revision, id: Option<&Value>, body: Body<'_>) -> Result<(), String> {
    match (body, id) {
        (Body::Notification(_), _) => Ok(()),
        (_, Some(id)) if is_id(id) => Ok(()),
        // An unknown id: `null` on stdio in A to C; absent in D, in E and in HTTP bodies.
        (Body::Error(_), Some(Value::Null)) if revision <= Revision::C => Ok(()),
        (Body::Error(_), None) => Ok(()),
        (_, Some(id)) => Err(format!("id is {id}")),
        (_, None) => Err("no id".into()),
    }
}

/// Returns whether it is a string or an integer of any size. One beyond 64 bits is a float here.
pub(crate) fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64() || id.as_f64().is_some_and(|f| f.fract() == 0.0)
}
