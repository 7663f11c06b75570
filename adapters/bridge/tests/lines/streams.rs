//! Requests whose notifications come until they are cancelled, such as `events/stream`.

use mcp_sansio::revision::Revision;
use serde_json::{Value, json};

use crate::rig::Rig;

const NEW: Revision = Revision::V2026_07_28;
const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn open(rig: &mut Rig, id: &str) -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "bell.rung", "_meta": meta});
    rig.say(&json!({"jsonrpc": "2.0", "id": id, "method": "events/stream", "params": params}).to_string());
    rig.one("events/stream")["id"].clone()
}

fn notify(rig: &mut Rig, id: &Value) -> Option<Value> {
    rig.got.clear();
    let params = json!({"cursor": "7", "_meta": {ID: id, "other": 1}});
    rig.serve(&json!({"jsonrpc": "2.0", "method": "notifications/events/heartbeat", "params": params}).to_string());
    rig.got.pop().map(|mut message| message["params"].take())
}

/// They have the id that the host has given, and those of one that it has cancelled are not passed on.
#[test]
fn notifications_name_the_request_of_the_host() {
    let mut rig = Rig::open(NEW, NEW);
    let [first, second] = ["a", "b"].map(|id| open(&mut rig, id));
    assert_ne!(first, second);
    for (behind, host) in [(&first, "a"), (&second, "b"), (&first, "a")] {
        assert_eq!(notify(&mut rig, behind), Some(json!({"cursor": "7", "_meta": {"other": 1, ID: host}})));
    }
    rig.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#);
    assert_eq!(rig.one("notifications/cancelled")["params"]["requestId"], first);
    assert_eq!(notify(&mut rig, &first), None);
    assert!(notify(&mut rig, &second).is_some());
}
