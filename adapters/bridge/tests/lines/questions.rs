//! Questions of the server, in both forms.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use serde_json::json;

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;
const SAMPLE: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9,"x":[ 1 ]}"#;

fn ask(rig: &mut Rig, id: u32) {
    rig.serve(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{SAMPLE}}}"#));
}

#[test]
fn requests_become_requests() {
    let mut rig = Rig::open(OLD, OLD);
    let call = rig.call(false);
    let heard = rig.one("tools/call");
    ask(&mut rig, 7);
    let asked = rig.got.iter().find(|message| message["method"] == "sampling/createMessage").unwrap().clone();
    assert_eq!(asked["params"], serde_json::from_str::<serde_json::Value>(SAMPLE).unwrap());
    rig.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no","data":[1]}}}}"#, asked["id"]));
    let answer = rig.heard.iter().find(|message| message["id"] == 7).unwrap();
    assert_eq!(answer["error"], json!({"code": -1, "message": "no", "data": [1]}));
    ask(&mut rig, 8);
    rig.serve(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#);
    assert_eq!(rig.count("notifications/cancelled"), 1);
    rig.result(&heard, r#"{"content":[]}"#);
    assert!(rig.answer(call)["result"].is_object());
}

#[test]
fn rounds_become_requests() {
    let mut rig = Rig::open(OLD, NEW);
    let call = rig.call(false);
    let heard = rig.one("tools/call");
    let one = format!(r#"{{"method":"sampling/createMessage","params":{SAMPLE}}}"#);
    rig.result(&heard, &format!(r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"a":{one},"b":{{"method":"roots/list"}}}}}}"#));
    let asked: Vec<_> = rig.got.iter().filter(|message| message.get("method").is_some()).cloned().collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for question in asked {
        rig.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[ ]}}}}"#, question["id"]));
    }
    let again = rig.one("tools/call");
    assert_eq!(
        (&again["params"]["requestState"], again["params"]["inputResponses"].as_object().unwrap().len()),
        (&json!("s"), 2)
    );
    rig.result(&again, r#"{"content":[]}"#);
    assert!(rig.answer(call)["result"].is_object());
}

#[test]
fn requests_become_rounds() {
    let mut rig = Rig::open(NEW, OLD);
    let mut call = rig.call(true);
    let heard = rig.one("tools/call");
    ask(&mut rig, 7);
    let first = rig.answer(call)["result"].clone();
    // Two more come while the host answers: one round.
    ask(&mut rig, 8);
    ask(&mut rig, 9);
    let mut result = first;
    for ids in [vec![7], vec![8, 9]] {
        assert_eq!(result["inputRequests"].as_object().unwrap().len(), ids.len());
        let responses: serde_json::Map<_, _> = result["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .map(|key| {
                (key.clone(), json!({"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"}))
            })
            .collect();
        let params = json!({"name": "t", "requestState": result["requestState"], "inputResponses": responses});
        call = rig.send("tools/call", params, true);
        for id in ids {
            assert!(rig.heard.iter().any(|message| message["id"] == id && message["result"]["model"] == "m"));
        }
        if rig.is_waiting(call) {
            break;
        }
        result = rig.answer(call)["result"].clone();
    }
    rig.result(&heard, r#"{"content":[]}"#);
    assert_eq!(rig.answer(call)["result"]["resultType"], "complete");
    assert!(rig.bridge.is_idle());
}

/// The state is the server's own: nothing is kept.
#[test]
fn rounds_pass_as_they_are() {
    let mut rig = Rig::open(NEW, NEW);
    let call = rig.call(true);
    let heard = rig.one("tools/call");
    rig.result(
        &heard,
        r#"{"resultType":"input_required","requestState":"its own","inputRequests":{"k":{"method":"roots/list"}}}"#,
    );
    assert_eq!(rig.answer(call)["result"]["requestState"], "its own");
    assert!(rig.bridge.is_idle());
    rig.send(
        "tools/call",
        json!({"name": "t", "requestState": "its own", "inputResponses": {"k": {"roots": []}}}),
        true,
    );
    assert_eq!(rig.one("tools/call")["params"]["inputResponses"], json!({"k": {"roots": []}}));
    // That of a bridge which is the server.
    rig.send("tools/call", json!({"name": "t", "requestState": "mcp-bridge:7", "inputResponses": {}}), true);
    assert_eq!(rig.one("tools/call")["params"]["requestState"], "mcp-bridge:7");
}

/// The token is that of the request that is open now.
#[test]
fn progress_after_a_round() {
    let mut rig = Rig::open(NEW, OLD);
    let call = |rig: &mut Rig, token: u64, mut params: serde_json::Value| {
        let version = json!("2026-07-28");
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": token});
        rig.say(&json!({"jsonrpc": "2.0", "id": token, "method": "tools/call", "params": params}).to_string());
    };
    call(&mut rig, 90, json!({"name": "t"}));
    let heard = rig.one("tools/call");
    ask(&mut rig, 7);
    let state = rig.answer(90)["result"]["requestState"].clone();
    call(&mut rig, 91, json!({"name": "t", "requestState": state, "inputResponses": {}}));
    let token = &heard["params"]["_meta"]["progressToken"];
    let progress = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    rig.serve(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{progress}}}"#));
    let told = rig.got.iter().find(|message| message["method"] == "notifications/progress");
    assert_eq!(told.expect("progress")["params"]["progressToken"], 91);
}

#[test]
fn only_so_many() {
    let mut rig = Rig::open(OLD, OLD);
    rig.call(false);
    for id in 0..70 {
        ask(&mut rig, id);
    }
    assert_eq!(rig.count("sampling/createMessage"), 64);
    let refused = rig.heard.iter().filter(|message| message.get("error").is_some()).count();
    assert_eq!(refused, 6);
    // The same for rounds, those of all requests together.
    let mut rig = Rig::open(NEW, OLD);
    for id in 0..70 {
        if id % 10 == 0 {
            rig.call(true);
        }
        ask(&mut rig, id);
    }
    let refused = rig.heard.iter().filter(|message| message.get("error").is_some()).count();
    assert_eq!(refused, 6);
    // The host does not send the next round: the request is cancelled at the server.
    let mut rig = Rig::open(NEW, OLD);
    rig.call(true);
    rig.one("tools/call");
    ask(&mut rig, 7);
    rig.wait(600_000);
    rig.one("notifications/cancelled");
}
