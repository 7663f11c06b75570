//! Common parts of the engine's tests: a service with one of each item ([`everything`]), a driver that feeds it bytes
//! and has each line of output judged ([`rig`]), and functions that write messages.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test program uses a part of it")]

pub mod everything;
pub mod handlers;
pub mod http;
pub mod rig;
pub mod toy_seal;

pub use everything::World;
pub use rig::{Rig, Window};

use mcp_sansio::revision::Revision;
pub use serde_json::{Value, json};

/// The dates of all revisions, oldest first.
pub const REVISIONS: [&str; Revision::ALL.len()] = {
    let mut dates = [""; Revision::ALL.len()];
    let mut n = 0;
    while n < dates.len() {
        dates[n] = Revision::ALL[n].date();
        n += 1;
    }
    dates
};
/// The revisions with a handshake. There will be no others.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The newest revision.
pub const MODERN: &str = Revision::LATEST.date();

/// Returns whether a revision has no handshake.
pub fn is_modern(revision: &str) -> bool {
    !LEGACY.contains(&revision)
}

/// Returns all capabilities that a client of this revision can declare.
pub fn all_capabilities(revision: &str) -> Value {
    let mut all = json!({"roots": {}, "sampling": {}});
    if revision >= "2025-06-18" {
        all["elicitation"] = json!({});
    }
    if revision >= "2025-11-25" {
        all["elicitation"] = json!({"form": {}, "url": {}});
        all["sampling"] = json!({"tools": {}, "context": {}});
    }
    all
}

/// `initialize` with id 0.
pub fn initialize(version: &str, capabilities: Value) -> String {
    let params = json!({"protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "tests", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// `_meta` of a request of the newest revision.
pub fn modern_meta(capabilities: Value) -> Value {
    modern_meta_of(MODERN, capabilities)
}

/// `_meta` of a request of a revision without a handshake.
pub fn modern_meta_of(revision: &str, capabilities: Value) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": capabilities})
}

/// A request of a revision from a client that can do everything.
pub fn request(revision: &str, id: impl Into<Value>, method: &str, params: Value) -> String {
    request_of(revision, id, method, params, all_capabilities(revision))
}

/// A request of a revision; `capabilities` travel with it in 2026-07-28.
pub fn request_of(
    revision: &str,
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> String {
    if is_modern(revision) {
        let mut meta = modern_meta_of(revision, capabilities);
        if let Some(given) = params.get("_meta").and_then(Value::as_object) {
            meta.as_object_mut().unwrap().extend(given.clone());
        }
        params["_meta"] = meta;
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string()
}

/// A call of a tool.
pub fn call(revision: &str, id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    request(revision, id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// A notification.
pub fn notify(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

pub fn cancel(id: impl Into<Value>) -> String {
    notify("notifications/cancelled", json!({"requestId": id.into()}))
}

/// A client's answer to a question.
pub fn answer(id: &Value, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

pub fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

/// The code of an error response.
pub fn code(line: &str) -> i64 {
    parse(line)["error"]["code"].as_i64().unwrap_or_else(|| panic!("not an error: {line}"))
}

/// The text of the first content of a tool result.
pub fn text(line: &str) -> String {
    let value = parse(line);
    value["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {line}")).to_owned()
}

/// Random numbers (xorshift), the same in each run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}
