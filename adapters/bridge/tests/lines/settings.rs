//! Subscriptions and levels that a host sets: the server's own answer counts. Tools that it may not use.

use crate::rig::Rig;
use mcp_sansio::revision::Revision;
use mcp_sansio_bridge::{Bridge, BridgeLimits, ToolFilter};
use serde_json::{Value, json};

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

impl Rig {
    /// Answers a request that the server has heard with an error.
    fn refuse(&mut self, heard: &Value) {
        self.serve(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-7,"message":"no","x":[ ]}}}}"#,
            heard["id"]
        ));
    }

    /// Acknowledges a listen.
    pub(crate) fn acknowledge(&mut self, listen: &Value, uris: Value) {
        let params = json!({
            "_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
            "notifications": {"resourceSubscriptions": uris},
        });
        self.serve(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{params}}}"#
        ));
    }

    /// Updates a resource, for a listen from 2026-07-28 on. Returns how many notifications the host gets.
    fn update(&mut self, uri: &str, listen: Option<&Value>) -> usize {
        let before = self.count("notifications/resources/updated");
        let mut params = json!({"uri": uri});
        if let Some(listen) = listen {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        }
        self.serve(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{params}}}"#));
        self.count("notifications/resources/updated") - before
    }
}

#[test]
fn an_old_server_answers() {
    let mut rig = Rig::open(OLD, OLD);
    let requests = [
        ("resources/subscribe", json!({"uri": "r://a"})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("logging/setLevel", json!({"level": "of the server alone"})),
        ("resources/unsubscribe", json!({"uri": "r://a"})),
    ];
    for (method, params) in &requests {
        let id = rig.send(method, params.clone(), false);
        let heard = rig.one(method);
        assert_eq!(&heard["params"], params);
        assert!(rig.is_waiting(id));
        rig.refuse(&heard);
        assert_eq!(rig.answer(id)["error"], json!({"code": -7, "message": "no", "x": []}));
    }
    // The front has not noted what was refused.
    assert_eq!(rig.update("r://a", None), 0);
    rig.lose();
    rig.up();
    let settings = rig.heard.iter().filter(|message| message["method"] != "notifications/initialized");
    assert_eq!(settings.count(), 0, "{:?}", rig.heard);
    rig.heard.clear();
    for (method, params) in &requests {
        let id = rig.send(method, params.clone(), false);
        let heard = rig.one(method);
        rig.result(&heard, r#"{"_meta":{"x":1.0}}"#);
        assert!(
            rig.wire
                .ends_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"_meta\":{{\"x\":1.0}}}}}}\n"))
        );
        assert_eq!(rig.heard.len(), 0, "said once: {:?}", rig.heard);
        assert_eq!(rig.update("r://a", None), usize::from(*method != "resources/unsubscribe"));
    }
}

#[test]
fn a_listen_stands_for_a_subscription() {
    let mut rig = Rig::open(OLD, NEW);
    rig.serve(r#"{"jsonrpc":"2.0","method":"ignored"}"#);
    let refused = rig.send("resources/subscribe", json!({"uri": "r://none"}), false);
    let listen = rig.one("subscriptions/listen");
    rig.acknowledge(&listen, json!([]));
    assert_eq!(rig.answer(refused)["error"]["message"], "The server has not agreed to this subscription");
    assert_eq!(rig.one("notifications/cancelled")["params"]["requestId"], listen["id"]);
    let refused = rig.send("resources/subscribe", json!({"uri": "r://b"}), false);
    let listen = rig.one("subscriptions/listen");
    rig.refuse(&listen);
    assert_eq!(rig.answer(refused)["error"], json!({"code": -7, "message": "no", "x": []}));
    let agreed = rig.send("resources/subscribe", json!({"uri": "r://a"}), false);
    let listen = rig.one("subscriptions/listen");
    assert_eq!(listen["params"]["notifications"], json!({"resourceSubscriptions": ["r://a"]}));
    assert!(rig.is_waiting(agreed) && rig.update("r://a", Some(&listen)) == 0);
    rig.acknowledge(&listen, json!(["r://a"]));
    assert_eq!(rig.answer(agreed)["result"], json!({}));
    // The one listen for all changes has it now.
    let listens: Vec<_> = rig.heard.drain(..).filter(|message| message["method"] == "subscriptions/listen").collect();
    assert_eq!(listens[0]["params"]["notifications"]["resourceSubscriptions"], json!(["r://a"]));
    assert_eq!((listens[0]["params"]["notifications"]["toolsListChanged"].as_bool(), listens.len()), (Some(true), 1));
    assert_eq!(rig.update("r://a", Some(&listens[0])), 1);
    let over = rig.send("resources/unsubscribe", json!({"uri": "r://a"}), false);
    assert_eq!(rig.answer(over)["result"], json!({}));
    assert!(rig.heard.iter().any(|message| message["method"] == "subscriptions/listen"), "{:?}", rig.heard);
    for (level, answers) in [("error", "result"), ("none", "error")] {
        let set = rig.send("logging/setLevel", json!({"level": level}), false);
        assert!(rig.answer(set)[answers].is_object());
    }
    rig.heard.clear();
    rig.call(false);
    assert_eq!(rig.one("tools/call")["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "error");
}

/// To set the same twice does no harm.
#[test]
fn lost_while_the_server_answers() {
    for server in [OLD, NEW] {
        let method = if server == OLD { "resources/subscribe" } else { "subscriptions/listen" };
        let mut rig = Rig::open(OLD, server);
        let id = rig.send("resources/subscribe", json!({"uri": "r://a"}), false);
        rig.one(method);
        rig.lose();
        assert!(rig.is_waiting(id));
        rig.up();
        let with_uri = |message: &Value| message["method"] == method && message.to_string().contains("r://a");
        let heard: Vec<_> = rig.heard.drain(..).filter(with_uri).collect();
        assert_eq!(heard.len(), 1, "{heard:?}");
        match server {
            OLD => rig.result(&heard[0], "{}"),
            _ => rig.acknowledge(&heard[0], json!(["r://a"])),
        }
        assert_eq!(rig.answer(id)["result"], json!({}));
    }
}

/// A listen of a host of 2026-07-28 is its server's in front; behind, each URI is one request.
#[test]
fn listens_of_new_hosts_at_an_old_server() {
    let mut rig = Rig::open(NEW, OLD);
    let filter = json!({"resourceSubscriptions": ["r://a", "r://b"]});
    let id = rig.send("subscriptions/listen", json!({"notifications": filter}), true);
    for uri in ["r://a", "r://b"] {
        let heard = rig.one("resources/subscribe");
        assert_eq!(heard["params"]["uri"], uri);
        rig.result(&heard, "{}");
    }
    assert_eq!(rig.update("r://b", None), 1);
    rig.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    let mut gone: Vec<_> = rig.heard.drain(..).map(|message| message["params"]["uri"].clone()).collect();
    gone.sort_unstable_by_key(Value::to_string);
    assert_eq!(gone, ["r://a", "r://b"]);
}

fn filtered(filter: ToolFilter) -> Rig {
    let mut rig = Rig::of(OLD, Bridge::new(BridgeLimits::DEFAULT).tools(filter));
    let opening = rig.opening(OLD);
    rig.up();
    rig.answer(opening);
    rig.heard.clear();
    rig
}

/// A server may take the first of two names where the bridge looks at the last one.
#[test]
fn a_name_that_comes_twice() {
    let mut rig = filtered(ToolFilter { deny: vec!["rm".into()], ..ToolFilter::default() });
    for params in [r#"{"name":"rm","name":"ls"}"#, r#"{"name":"ls","n\u0061me":"rm"}"#, r#"{"name":"rm"}"#, "{}"] {
        rig.last += 1;
        rig.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{params}}}"#, rig.last));
        assert_eq!((&rig.answer(rig.last)["error"]["code"], rig.heard.len()), (&json!(-32602), 0), "{params}");
    }
    rig.send("tools/call", json!({"name": "ls"}), false);
    rig.one("tools/call");
}

/// A server changes the hint of a tool, or another server has come.
#[test]
fn a_tool_that_does_not_only_read_any_more() {
    let mut rig = filtered(ToolFilter { read_only: true, ..ToolFilter::default() });
    for reads in [true, false] {
        rig.send("tools/list", json!({}), false);
        let heard = rig.one("tools/list");
        rig.result(&heard, &format!(r#"{{"tools":[{{"name":"t","annotations":{{"readOnlyHint":{reads}}}}}]}}"#));
        let call = rig.call(false);
        assert_eq!(rig.is_waiting(call), reads);
        rig.heard.clear();
    }
}
