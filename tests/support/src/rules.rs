//! Rules that no schema contains: the sender of each message, and members that a revision's messages must not have.

use crate::envelope::{Body, Context};
use crate::methods::{self, Kind, Method, Side};
use crate::revision::Revision;
use crate::shape::{Shape, Walk};
use crate::shapes;
use serde_json::{Value, json};

const PREFIX: &str = "io.modelcontextprotocol/";

/// The methods of 2026-07-28 whose complete results carry `ttlMs` and `cacheScope`.
const CACHED: [&str; 6] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"];

/// The methods that may be answered with `input_required`.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Rules that a test may switch off.
#[derive(Clone, Copy)]
pub(crate) struct Expect {
    pub(crate) server_info: bool,
    pub(crate) is_error: bool,
    pub(crate) unknown_members: bool,
}

/// Applies every rule to one message.
pub(crate) fn check(context: Context<'_>, expect: Expect, message: &Value, body: Body<'_>, found: &mut Vec<String>) {
    let mut rules = Rules { context, expect, found };
    match body {
        Body::Request(method) => rules.request(method, &message["params"]),
        Body::Notification(method) => rules.notification(method, &message["params"]),
        Body::Result(result) => rules.result(result),
        Body::Error(error) => rules.error(error),
    }
}

struct Rules<'a> {
    context: Context<'a>,
    expect: Expect,
    found: &'a mut Vec<String>,
}

impl Rules<'_> {
    fn revision(&self) -> Revision {
        self.context.revision
    }

    fn modern(&self) -> bool {
        self.revision().is_modern()
    }

    fn need(&mut self, holds: bool, rule: impl Into<String>) {
        if !holds {
            self.found.push(rule.into());
        }
    }

    fn walk(&mut self, shape: &Shape, value: &Value) {
        let unknown_members = self.expect.unknown_members;
        Walk { revision: self.revision(), unknown_members, found: self.found }.object(shape, value);
    }

    // Requests and notifications.

    fn request(&mut self, name: &str, params: &Value) {
        if let Some(method) = self.method(name) {
            self.need(method.kind != Kind::Notification, format!("{name} is a notification but has an id"));
            self.walk(method.params, params);
        }
        if self.modern() {
            self.modern_request(params);
        }
        if name == "elicitation/create" {
            self.elicitation(params);
        }
    }

    fn modern_request(&mut self, params: &Value) {
        self.need(self.context.sender == Side::Client, "a modern server sends no requests");
        let meta = &params["_meta"];
        let version = &meta[format!("{PREFIX}protocolVersion")];
        self.need(version == self.revision().name(), format!("_meta {PREFIX}protocolVersion is {version}"));
        let capabilities = &meta[format!("{PREFIX}clientCapabilities")];
        self.need(capabilities.is_object(), format!("_meta {PREFIX}clientCapabilities is no object"));
    }

    fn notification(&mut self, name: &str, params: &Value) {
        if let Some(method) = self.method(name) {
            self.need(method.kind == Kind::Notification, format!("{name} is a request but has no id"));
            self.walk(method.params, params);
        }
        if self.modern() && self.context.sender == Side::Server && name == "notifications/cancelled" {
            // A listen that has ended may be unknown to the test.
            let cancelled = self.context.cancelled.unwrap_or("subscriptions/listen");
            let what = format!("a modern server cancels {cancelled}, which is not a listen");
            self.need(cancelled == "subscriptions/listen", what);
        }
        if self.modern() && is_listened(name) {
            let id = &params["_meta"][format!("{PREFIX}subscriptionId")];
            self.need(crate::envelope::is_id(id), format!("{name} names no {PREFIX}subscriptionId"));
        }
    }

    /// Returns the method if the protocol knows it. The sender must be allowed to send it.
    fn method(&mut self, name: &str) -> Option<&'static Method> {
        let tasks = name.starts_with("tasks/") || name.starts_with("notifications/tasks");
        self.need(!tasks, format!("{name}: the project sends nothing about tasks"));
        let method = methods::find(name)?;
        let (sender, revision) = (self.context.sender, self.revision());
        self.need(
            method.sent_by(sender, revision),
            format!("a {sender:?} does not send {name} in {}", revision.name()),
        );
        Some(method)
    }

    /// Rules for an elicitation that the tables of members do not contain.
    fn elicitation(&mut self, params: &Value) {
        if self.revision() != Revision::C {
            return;
        }
        for (key, schema) in params["requestedSchema"]["properties"].as_object().into_iter().flatten() {
            let fits = schema.get("default").is_none() || schema["type"] == "boolean";
            self.need(fits, format!("{key}: only a boolean has a default in 2025-06-18"));
        }
    }

    // Results.

    fn result(&mut self, result: &Value) {
        self.answering();
        let Value::Object(_) = result else { return self.need(false, "result is not an object") };
        if self.modern() {
            self.modern_result(result);
        } else {
            self.legacy_result(result);
        }
        if let Some(method) = self.context.answered.and_then(methods::find) {
            self.answer_to(method, result);
        }
    }

    /// A side answers only requests that the other side may send; a modern client gets no requests.
    fn answering(&mut self) {
        let Context { revision, sender, answered, .. } = self.context;
        self.need(!(self.modern() && sender == Side::Client), "a modern client sends no responses");
        let other = if sender == Side::Client { Side::Server } else { Side::Client };
        if let Some(method) = answered.and_then(methods::find) {
            let asked = method.sent_by(other, revision);
            self.need(asked, format!("a {other:?} does not ask {} in {}", method.name, revision.name()));
        }
    }

    fn answer_to(&mut self, method: &Method, result: &Value) {
        if self.modern() && result["resultType"] == "input_required" {
            return self.input_required(method, result);
        }
        self.walk(method.result, result);
        match method.name {
            "initialize" => self.initialized(result),
            "server/discover" => self.no_legacy(&result["supportedVersions"], "supportedVersions"),
            "tools/call" if self.expect.is_error => {
                self.need(result["isError"].is_boolean(), "a tool result without isError");
            }
            "completion/complete" => {
                let values = result["completion"]["values"].as_array().map_or(0, Vec::len);
                self.need(values <= 100, format!("{values} completion values, more than 100"));
            }
            "sampling/createMessage" => {
                self.need(result["stopReason"].is_string(), "a sampling result without stopReason");
            }
            _ => {}
        }
    }

    fn initialized(&mut self, result: &Value) {
        let version = &result["protocolVersion"];
        self.need(version == self.revision().name(), format!("initialize is answered with {version}"));
    }

    fn legacy_result(&mut self, result: &Value) {
        for key in ["resultType", "inputRequests", "requestState", "ttlMs", "cacheScope"] {
            self.need(result.get(key).is_none(), format!("{key} in a legacy result"));
        }
        let server_info = result["_meta"].get(format!("{PREFIX}serverInfo"));
        self.need(server_info.is_none(), "_meta serverInfo in a legacy result");
        let empty = self.context.answered.and_then(methods::find).filter(|m| is_empty(m));
        if let Some(method) = empty {
            self.need(*result == json!({}), format!("{} is answered with {{}} exactly", method.name));
        }
    }

    fn modern_result(&mut self, result: &Value) {
        let kind = result["resultType"].as_str();
        self.need(matches!(kind, Some("complete" | "input_required")), format!("resultType is {kind:?}"));
        if self.expect.server_info {
            let info = &result["_meta"][format!("{PREFIX}serverInfo")];
            let named = info["name"].is_string() && info["version"].is_string();
            self.need(named, format!("no _meta {PREFIX}serverInfo with name and version"));
        }
        self.caching(result);
        if self.context.answered == Some("subscriptions/listen") {
            let id = &result["_meta"][format!("{PREFIX}subscriptionId")];
            self.need(crate::envelope::is_id(id), format!("the end of a listen names no {PREFIX}subscriptionId"));
        }
    }

    fn caching(&mut self, result: &Value) {
        let complete = result["resultType"] == "complete";
        if self.context.answered.is_some_and(|m| complete && CACHED.contains(&m)) {
            let ttl = &result["ttlMs"];
            self.need(ttl.is_u64(), format!("ttlMs is {ttl}"));
            let scope = &result["cacheScope"];
            self.need(matches!(scope.as_str(), Some("public" | "private")), format!("cacheScope is {scope}"));
        } else {
            for key in ["ttlMs", "cacheScope"] {
                self.need(result.get(key).is_none(), format!("{key} in a result that cannot be cached"));
            }
        }
    }

    fn input_required(&mut self, method: &Method, result: &Value) {
        self.walk(&shapes::INPUT_REQUIRED, result);
        self.need(ASKING.contains(&method.name), format!("{} cannot ask for input", method.name));
        let asks = result.get("inputRequests").is_some() || result.get("requestState").is_some();
        self.need(asks, "input_required asks nothing: neither inputRequests nor requestState");
    }

    // Errors.

    fn error(&mut self, error: &Value) {
        self.need(!(self.modern() && self.context.sender == Side::Client), "a modern client sends no responses");
        let Value::Object(members) = error else { return self.need(false, "error is not an object") };
        let odd = members.keys().find(|k| !["code", "message", "data"].contains(&k.as_str()));
        self.need(odd.is_none(), format!("odd member {odd:?} of the error"));
        self.need(error["message"].is_string(), "the error has no message");
        match error["code"].as_i64() {
            Some(code) => self.code(code, &error["data"]),
            None => self.need(false, "the error's code is no integer"),
        }
    }

    fn code(&mut self, code: i64, data: &Value) {
        let (revision, sender) = (self.revision(), self.context.sender);
        let defined = is_defined(code, revision, sender);
        self.need(defined, format!("a {sender:?} does not send the code {code} in {}", revision.name()));
        match code {
            -32002 => self.need(data["uri"].is_string(), "-32002 without data.uri"),
            -32021 => self.need(data["requiredCapabilities"].is_object(), "-32021 without data.requiredCapabilities"),
            -32022 => {
                self.need(data["requested"].is_string(), "-32022 without data.requested");
                self.no_legacy(&data["supported"], "data.supported");
            }
            -32042 => self.elicitations(&data["elicitations"]),
            _ => {}
        }
    }

    fn elicitations(&mut self, list: &Value) {
        let Value::Array(list) = list else { return self.need(false, "-32042 without data.elicitations") };
        for one in list {
            self.walk(&shapes::ELICIT_PARAMS, one);
            let whole = one["mode"] == "url" && one["elicitationId"].is_string() && one["url"].is_string();
            self.need(whole, format!("-32042 with an elicitation that is not url mode with an id: {one}"));
        }
    }

    /// Checks that a list of versions has only revisions that are served without a handshake.
    fn no_legacy(&mut self, versions: &Value, name: &str) {
        let Value::Array(versions) = versions else { return self.need(false, format!("{name} is no array")) };
        self.need(!versions.is_empty(), format!("{name} is empty"));
        for version in versions {
            let legacy = version.as_str().and_then(|v| Revision::parse(v).ok()).is_some_and(|r| !r.is_modern());
            self.need(!legacy, format!("{name} names {version}, which is not served statelessly"));
        }
    }
}

fn is_empty(method: &Method) -> bool {
    std::ptr::eq(method.result, &shapes::EMPTY_RESULT)
}

/// Returns whether a notification belongs to a listen stream in 2026-07-28.
fn is_listened(name: &str) -> bool {
    name.ends_with("/list_changed")
        || matches!(name, "notifications/resources/updated" | "notifications/subscriptions/acknowledged")
}

/// Own codes are outside of the range of JSON-RPC; inside of it, only codes from the pages of the revision are sent.
fn is_defined(code: i64, revision: Revision, sender: Side) -> bool {
    match code {
        -32700 | -32603..=-32600 => true,
        -32002 => sender == Side::Server && !revision.is_modern(),
        -32042 => sender == Side::Server && revision == Revision::D,
        // No page has this code; the SDKs send it for an unknown session.
        -32001 => sender == Side::Server && !revision.is_modern(),
        -32022..=-32020 => sender == Side::Server && revision.is_modern(),
        -32768..=-32000 => false,
        _ => true,
    }
}
